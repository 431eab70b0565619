"""A site without WoA: its actions are called at their own addresses, and nothing says otherwise."""

import json
import re

import pytest
from fastapi import FastAPI

from awp_publish import AgentPublisher, Overview, Site
from awp_publish.client import AgentClient
from tests.client import TestClient
from tests.conftest import run_command

APPLICATION = """
from fastapi import FastAPI
from awp_publish import AgentPublisher, Site

site = Site("Shop", "Sells tea.", "https://shop.example", plugins=["no:woa"])
app = FastAPI()

@app.get("/teas")
@site.action("list_teas")
def teas(word: str = "") -> list[str]:
    "List the teas."
    return [word]

app.add_middleware(AgentPublisher, site=site)
"""


def make_app(*left_out: str) -> FastAPI:
    """Make a site without these plug-ins."""
    site, app = Site("Shop", "Sells tea.", "https://shop.example", plugins=[*left_out, Overview(None)]), FastAPI()

    @app.get("/teas")
    @site.action("list_teas")
    def teas(word: str = "") -> list[str]:
        """List the teas."""
        return [word]

    @app.post("/orders")
    @site.action("order_tea", confirm=True)
    def order(tea: str) -> str:
        """Order a tea."""
        return f"ordered {tea}"

    app.add_middleware(AgentPublisher, site=site)
    return app


@pytest.fixture
def client(open_client) -> TestClient:
    return open_client(make_app("no:woa"))


def test_the_client_calls_the_plain_door():
    with AgentClient(make_app("no:woa"), confirm=True) as client:
        assert client.call("list_teas", word="assam") == ["assam"]
        assert client.call("order_tea", tea="assam") == "ordered assam"


def test_the_command_line_calls_the_plain_door(tmp_path):
    (tmp_path / "teas.py").write_text(APPLICATION)
    called = run_command("call", "teas:app", "list_teas", "word=assam", cwd=tmp_path)
    assert (called.returncode, json.loads(called.stdout)) == (0, ["assam"]), called.stderr
    refused = run_command("call", "teas:app", "list_teas", "--door", "woa", cwd=tmp_path)
    assert 'Write Site(plugins=["woa"])' in refused.stderr


def test_without_the_plugin_there_is_neither_document_nor_door(client):
    for path in ("/agents/list_teas/invoke", "/.well-known/woa.json", "/agents/webmcp.tools.js"):
        assert client.request("POST" if path.endswith("invoke") else "GET", path).status_code == 404
    assert "x-woa" not in client.get("/agent.json").json()["protocols"]


def test_llms_txt_says_how_the_actions_are_called(client):
    text = client.get("/llms.txt").text
    assert "Call: POST https://shop.example/agents/actions/NAME with the inputs as JSON" in text
    assert "invoke" not in client.get("/llms-full.txt").text


def test_the_overview_shows_requests_of_the_plain_door(client):
    text = client.get("/agents", headers={"accept": "text/html"}).text
    assert "/agents/actions/list_teas" in text
    assert not re.search(r"/agents/\w+/invoke", text)
    trial = client.get("/agents/try/list_teas", headers={"accept": "text/html"}).text
    assert "AgentClient(app)" in trial
