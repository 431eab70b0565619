"""Headers of several lines: a list is one list at every door, and what may stand once only is believed of nobody."""

import gzip

import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from awp_publish import AgentPublisher, BearerToken
from awp_publish.calls.call import Principal
from tests.guarded import make_shop
from tests.installed import installed, is_installed
from tests.plugins.mcp.mcp_messages import VERSIONS, headers_of, message

PARTS = {"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"data": {"skill": "mine", "input": {}}}]}}
RPC = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": PARTS}
TOOL = message("tools/call", {"name": "mine"})
CALLS = {
    "WoA": ("/agents/mine/invoke", {}, {"input": {}}),
    "MCP": ("/mcp", headers_of(TOOL), TOOL),
    "A2A": ("/a2a", {"a2a-version": "1.0"}, RPC),
}
DOORS = [name for name in CALLS if name == "WoA" or is_installed(name.lower())]


@pytest.fixture
def client(open_client):
    site = make_shop(plugins=installed("mcp", "a2a", "awp", "pages"), authenticate=BearerToken({"ann-token": "ann"}))

    @site.agent("mine", auth_required=True)
    async def mine() -> str:
        """What is mine."""
        return "mine"

    @site.agent("look")
    async def look() -> str:
        """Look at books."""
        return "books"

    app = Starlette(routes=[Route("/page", lambda request: HTMLResponse("<h1>Page</h1>"))])
    return open_client(AgentPublisher(app, site=site, check=False))


def lines(name, values, **others):
    """Headers with several lines of one name, and `others`."""
    return [*((name.replace("_", "-"), value) for name, value in others.items()), *((name, value) for value in values)]


@pytest.mark.parametrize("accepted", [["text/html", "application/json"], ["application/json", "text/html"]])
def test_lines_of_accept_are_one_list_at_the_woa_door(client, accepted):
    headers = lines("accept", accepted)
    assert client.post("/agents/look/invoke", json={"input": {}}, headers=headers).status_code == 200
    only = lines("accept", ["text/html", "text/plain"])
    assert client.post("/agents/look/invoke", json={"input": {}}, headers=only).status_code == 406


@pytest.mark.needs("mcp")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "accepted", [["text/event-stream", "application/json"], ["text/html", "application/json, text/event-stream"]]
)
def test_lines_of_accept_are_one_list_at_the_mcp_door(client, version, accepted):
    sent = message("tools/call", {"name": "look"}, version=version)
    own = {name.replace("-", "_"): value for name, value in headers_of(sent, version).items() if name != "accept"}
    assert client.post("/mcp", json=sent, headers=lines("accept", accepted, **own)).status_code == 200


@pytest.mark.needs("a2a")
@pytest.mark.parametrize("accepted", [["text/plain", "application/a2a+json"], ["application/a2a+json", "text/plain"]])
def test_lines_of_accept_are_one_list_at_the_a2a_door(client, accepted):
    headers = lines("accept", accepted, a2a_version="1.0")
    answer = client.post("/a2a/message:send", json=PARTS, headers=headers)
    assert answer.headers["content-type"] == "application/a2a+json"


@pytest.mark.needs("pages")
@pytest.mark.parametrize("accepted", [["text/html;q=0.1", "text/markdown"], ["text/markdown", "*/*"]])
def test_lines_of_accept_are_one_list_for_pages_and_their_endpoint(client, accepted):
    for path in ("/page", "/agents/som?url=/page"):
        assert client.get(path, headers=lines("accept", accepted)).text == "# Page\n"


@pytest.mark.needs("discovery", "pages")
def test_lines_of_other_lists_are_one_list_for_documents(client):
    plain = client.get("/agent.json", headers={"accept-encoding": "identity"})
    coded = client.get("/agent.json", headers=lines("accept-encoding", ["identity;q=0.1", "gzip"]))
    assert coded.headers["content-encoding"] == "gzip"
    assert coded.content == plain.content or gzip.decompress(coded.content) == plain.content
    known = lines("if-none-match", ['"other"', plain.headers["etag"]], accept_encoding="identity")
    assert client.get("/agent.json", headers=known).status_code == 304
    tag = client.get("/page", headers={"accept": "text/markdown"}).headers["etag"]
    known = lines("if-none-match", ['"other"', tag], accept="text/markdown")
    assert client.get("/page", headers=known).status_code == 304


@pytest.mark.needs("mcp", "a2a")
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("shown", [["Bearer ann-token", "Bearer other"], ["Bearer other", "Bearer ann-token"]])
def test_two_credentials_are_refused(client, door, shown):
    path, own, body = CALLS[door]
    named = {name.replace("-", "_"): value for name, value in own.items()}
    answer = client.post(path, json=body, headers=lines("authorization", shown, **named))
    assert "INVALID_CREDENTIALS" in answer.text
    right = client.post(path, json=body, headers={**own, "authorization": "Bearer ann-token"})
    assert "mine" in right.text
    assert "INVALID_CREDENTIALS" not in right.text


@pytest.mark.needs("mcp")
@pytest.mark.parametrize("door", DOORS)
def test_two_host_headers_are_not_the_sites_own(client, door):
    path, own, body = CALLS[door]
    named = {name.replace("-", "_"): value for name, value in own.items()}
    headers = lines("host", ["shop.example", "evil.example"], origin="https://shop.example", **named)
    answer = client.post(path, json=body, headers=headers)
    assert (answer.status_code, "FOREIGN_HOST" in answer.text) == (403, True)


@pytest.mark.parametrize("door", [door for door in DOORS if door != "MCP"])
def test_two_content_types_are_refused(client, door):
    path, own, _ = CALLS[door]
    named = {name.replace("-", "_"): value for name, value in own.items()}
    headers = lines("content-type", ["application/json", "text/plain"], **named)
    assert client.post(path, content=b"{}", headers=headers).status_code == 415


def test_cookies_of_several_lines_are_one_header(open_client):
    site = make_shop(
        authenticate=lambda shown: Principal(shown.headers["cookie"]) if "cookie" in shown.headers else None
    )

    @site.agent("who", auth_required=True, confirm=False)
    async def who() -> str:
        """Who calls."""
        return "known"

    heard = []
    site.on_call(lambda call: heard.append(call["principal"]))
    client = open_client(AgentPublisher(Starlette(), site=site, check=False))
    client.post("/agents/who/invoke", json={"input": {}}, headers=lines("cookie", ["a=1", "b=2"]))
    assert heard == ["a=1; b=2"]
