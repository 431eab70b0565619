"""DNS rebinding, at everything of ours that answers: a page of another name that leads here is a page of nobody's."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import WebSocketDenialResponse

from awp_publish import AgentPublisher
from tests.client import TestClient
from tests.guarded import make_shop
from tests.installed import installed, is_installed
from tests.plugins.mcp.mcp_messages import headers_of, message

TOOL = message("tools/call", {"name": "look"})
PARTS = {"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"data": {"skill": "look", "input": {}}}]}}
RPC = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": PARTS}
A2A = {"a2a-version": "1.0"}

ROWS: Mapping[str, tuple[str, str, str, Mapping[str, str], Any]] = {
    "the plain door": ("", "POST", "/agents/actions/look", {}, {}),
    "WoA": ("woa", "POST", "/agents/look/invoke", {}, {"input": {}}),
    "MCP": ("mcp", "POST", "/mcp", headers_of(TOOL), TOOL),
    "A2A over JSON-RPC": ("a2a", "POST", "/a2a", A2A, RPC),
    "A2A over HTTP+JSON": ("a2a", "POST", "/a2a/message:send", A2A, PARTS),
    "A2A, reading": ("a2a", "GET", "/a2a/tasks", A2A, None),
    "a job": ("jobs", "GET", "/agents/jobs/none", {}, None),
    "a job's end": ("jobs", "DELETE", "/agents/jobs/none", {}, None),
    "status": ("status", "GET", "/agents/status", {}, None),
    "SOM directory": ("pages", "GET", "/agents/som", {}, None),
    "SOM": ("pages", "GET", "/agents/som?url=/", {}, None),
}
"""By name: the plug-in that answers, and a request to it."""
ASKED = {name: request for name, (plugin, *request) in ROWS.items() if not plugin or is_installed(plugin)}


class Shop:
    """A shop with every door open, and what ran in it."""

    def __init__(self, open_client: Any) -> None:
        self.runs: list[str] = []
        site = make_shop(plugins=installed("mcp", "a2a", "awp", "pages"))

        @site.agent("look")
        async def look() -> str:
            """Look at books."""
            self.runs.append("look")
            return "books"

        if is_installed("jobs"):

            @site.agent("print", execution="async")
            async def print_book() -> str:
                """Print a book."""
                return "printed"

        self.client: TestClient = open_client(AgentPublisher(Starlette(), site=site, check=False))

    def ask(self, name: str, **headers: str) -> tuple[int, str]:
        """The status of an answer, and its whole text."""
        method, path, own, body = ASKED[name]
        sent = {**own, **{name.replace("_", "-"): value for name, value in headers.items()}}
        answer = self.client.request(method, path, headers=sent, json=body)
        return answer.status_code, answer.text


@pytest.fixture
def shop(open_client) -> Shop:
    return Shop(open_client)


@pytest.mark.parametrize("name", ASKED)
def test_a_page_whose_name_leads_here_is_refused_by_its_browsers_headers(shop, name):
    for told in (
        {"origin": "http://evil.example"},
        {"sec_fetch_site": "same-origin"},
        {"sec_fetch_mode": "cors"},
        {"origin": "https://shop.example"},
        {"origin": "http://evil.example", "cookie": "session=1", "x_forwarded_host": "shop.example"},
    ):
        status, text = shop.ask(name, host="evil.example", **told)
        assert status == 403
        assert "FOREIGN_HOST" in text
        assert "Site(url=[" in text
    assert shop.runs == []


@pytest.mark.parametrize("name", ASKED)
def test_programs_may_use_any_name(shop, name):
    assert shop.ask(name, host="shop.internal:8000")[0] != 403


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("host", ["shop.example", "localhost:8000", "127.0.0.1:8000", "[::1]", "192.168.1.7:8000"])
def test_pages_of_the_sites_own_names_and_of_names_that_cannot_be_rebound_are_answered(shop, name, host):
    own = {"host": host, "origin": f"http{'s' if host == 'shop.example' else ''}://{host}"}
    assert shop.ask(name, **own, cookie="session=1", sec_fetch_site="same-origin")[0] != 403
    assert shop.ask(name, **own, cookie="session=1")[0] != 403


@pytest.mark.parametrize("name", [name for name in ASKED if "SOM" not in name and name != "status"])
def test_the_name_that_a_request_came_by_makes_no_other_page_the_sites_own(shop, name):
    foreign = {"origin": "http://localhost:9000", "cookie": "session=1"}
    assert shop.ask(name, host="localhost:8000", **foreign)[0] == 403
    assert shop.runs == []


@pytest.mark.needs("awp", "bridge")
def test_a_browser_opens_a_websocket_under_the_sites_own_names_and_its_owners_machine(shop):
    def status(host: str, origin: str | None) -> int:
        headers = {"host": host} | ({"origin": origin} if origin else {})
        try:
            with shop.client.websocket_connect("/awp", headers=headers) as socket:
                socket.send_text(json.dumps({"id": "1", "method": "awp.hello", "params": {}}))
                assert "result" in socket.receive_json()
            return 101
        except WebSocketDenialResponse as denied:
            return denied.status_code

    assert status("evil.example", "http://evil.example") == 403
    assert status("evil.example", "https://shop.example") == 403
    assert status("localhost:8000", "http://localhost:9000") == 403
    assert status("shop.example", "https://shop.example") == 101
    assert status("localhost:8000", "http://localhost:8000") == 101
    assert status("shop.internal", None) == 101
