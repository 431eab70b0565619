"""What the log says when a server starts: once, in few lines, with the action and the remedy."""

import os
import signal
import subprocess
import sys
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Annotated

import pytest
from fastapi import Depends, FastAPI, Query
from fastapi.security import OAuth2PasswordBearer
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from awp_publish import AgentPublisher, Site
from tests.client import TestClient
from tests.guarded import make_shop
from tests.http.test_real_server import free_port, wait_until
from tests.installed import installed

ROOT = Path(__file__).parents[3]


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "awp_publish.checks"]


async def answer(request: Request) -> Response:
    return PlainTextResponse("here")


def start(app: object, root_path: str = "") -> None:
    with TestClient(app, base_url="https://shop.example", root_path=root_path):  # type: ignore[arg-type]
        pass


def make_site(**options: object) -> Site:
    return Site(**({"name": "Shop", "description": "Sells things.", "url": "https://shop.example"} | options))  # type: ignore[arg-type]


def test_a_site_in_order_is_started_without_a_word(caplog):
    site, app = make_site(plugins=installed("a2a", "mcp")), FastAPI()

    class Line(BaseModel):
        price: Decimal = Decimal("1.50")
        grid: list[list[int]] = []
        anything: list[int | str] = []

    @app.post("/order")
    @site.action("order", effect="write")
    async def order(line: Line, discount: Decimal = Decimal("2.50"), rows: list[list[str]] | None = None) -> Line:
        """Order something."""
        return line

    app.add_middleware(AgentPublisher, site=site)
    start(app)
    assert lines(caplog) == []


@pytest.mark.parametrize(("url", "told"), [("token", 0), ("/token", 0), ("login/token", 1), ("https://a.example/t", 0)])
def test_the_address_of_tokens_leads_somewhere(caplog, url, told):
    site, app = make_site(), FastAPI()
    app.post("/token")(lambda: "token")

    @app.get("/orders")
    @site.action("list_orders")
    async def list_orders(token: Annotated[str, Depends(OAuth2PasswordBearer(url))]) -> str:
        """List orders."""
        return token

    start(AgentPublisher(app, site))
    assert len([line for line in lines(caplog) if "A security scheme's tokenUrl names /login/token" in line]) == told
    assert len(lines(caplog)) == told


SHOP = """
from fastapi import Depends, FastAPI, Query
from fastapi.security import OAuth2PasswordBearer
from awp_publish import About, AgentPublisher, Site

site = Site(name="Shop", description="Sells things.", url="https://shop.example",
            about=About(documentation="/nowhere"))
site.declare("search", method="GET", path="/search", description="Search.")
app = FastAPI()

@app.get("/search")
def search() -> str:
    return "found"

app.add_middleware(AgentPublisher, site=site)
"""


def test_several_workers_speak_once_and_the_server_tells_its_root_path(tmp_path):
    (tmp_path / "shop.py").write_text(SHOP)
    said, port = tmp_path / "said", free_port()
    words = [sys.executable, "-m", "uvicorn", "shop:app", "--port", str(port), "--workers", "2", "--root-path", "/shop"]
    with said.open("w") as output:
        server = subprocess.Popen(
            words,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        wait_until(lambda: said.read_text().count("Application startup complete") == 2, 120)
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait(30)
    results = [line for line in said.read_text().splitlines() if line.startswith("warning: ")]
    assert [line.split(", ")[0] for line in results] == [
        "warning: site: The server says that the application is below /shop (root_path)",
        "warning: site: About(documentation=...) names /nowhere",
    ]


@pytest.mark.needs("awp")
def test_a_door_over_websocket_without_a_library_of_it_is_told(caplog, monkeypatch):
    for name in ("websockets", "wsproto", "autobahn"):
        monkeypatch.setitem(sys.modules, name, None)
    site = Site("Shop", "Sells things.", "https://shop.example", plugins=installed("awp"))

    @site.agent("ask")
    async def ask(question: str) -> str:
        """Answer a question."""
        return question

    with TestClient(AgentPublisher(Starlette(), site=site)):
        lines = [record.getMessage() for record in caplog.records]
    assert any("start-websocket" in line and 'pip install "awp-publish[awp]"' in line for line in lines), lines


def test_a_default_that_is_a_list_of_options_is_no_mistake(caplog):
    class Sort(Enum):
        new = "new"
        cheap = "cheap"

    class Level(IntEnum):
        low = 1

    site, app = make_shop(), FastAPI()

    @app.get("/books")
    @site.action("books")
    async def books(
        sort: Annotated[list[Sort], Query()] = [Sort.new, Sort.cheap],  # noqa: B006
        levels: Annotated[list[Level], Query()] = [Level.low],  # noqa: B006
    ) -> list[str]:
        """List books."""
        return [item.value for item in sort]

    app.add_middleware(AgentPublisher, site=site)
    with caplog.at_level("INFO", "awp_publish.checks"), TestClient(app, base_url="https://shop.example") as client:
        assert client.post("/agents/books/invoke", json={"input": {}}).json() == ["new", "cheap"]
    assert [record.message for record in caplog.records if "default" in record.message] == []


@pytest.mark.parametrize("kind", [Starlette, FastAPI])
def test_a_schema_says_explicitly_that_an_action_takes_further_query_members(kind):
    site = make_shop()
    open_to_all = {"type": "object", "properties": {"q": {"type": "string"}}, "additionalProperties": True}

    @site.action("find", inputs=open_to_all)
    async def find(request: Request) -> JSONResponse:
        """Find books."""
        return JSONResponse(dict(request.query_params))

    app = kind(routes=[Route("/find", find)])
    app.add_middleware(AgentPublisher, site=site)
    with TestClient(app, base_url="https://shop.example") as client:
        given = {"q": "emma", "extra.color": "red"}
        assert client.get("/agents/actions/find", params=given).json() == given
        assert client.post("/agents/find/invoke", json={"input": given}).json() == given


@pytest.mark.parametrize("is_inside", [True, False])
def test_a_second_site_of_one_application_is_not_reached(caplog, is_inside):
    shop, club, app = make_site(), make_site(name="Club"), FastAPI()
    wrapped: object = app
    for site in (club, shop):
        if is_inside:
            app.add_middleware(AgentPublisher, site=site)
        else:
            wrapped = AgentPublisher(wrapped, site=site)  # type: ignore[arg-type]
    start(wrapped)
    results = [line for line in lines(caplog) if "[start-shadowed;" in line]
    assert ['The site "Club" of the same application is not reached' in line for line in results] == [True]
    caplog.clear()
    only = make_site()
    start(AgentPublisher(AgentPublisher(Starlette(), site=only), site=only))
    assert "start-shadowed" not in caplog.text
