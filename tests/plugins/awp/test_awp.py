"""The AWP door speaks: upgrade, handshake, envelope, encodings, scopes."""

import json

import msgpack
import pytest
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.testclient import WebSocketDenialResponse
from starlette.websockets import WebSocket, WebSocketDisconnect

from awp_publish import AgentPublisher, BearerToken, Principal, Site
from awp_publish.plugins.awp.callers import SCOPES
from tests.client import TestClient
from tests.plugins.awp.awp_client import HELLO, AwpClient
from tests.plugins.awp.awp_site import make_site, publish

DRAFT_HELLO = {
    "client": {"name": "tests", "version": "1"},
    "awp": {"versions": ["0.1"]},
    "wants": {"encoding": ["msgpack", "json"], "compression": ["none", "zstd"], "features": ["som.snapshots"]},
}


@pytest.fixture
def client(open_client) -> TestClient:
    return open_client(publish())


# --- The upgrade ---


def test_the_door_is_closed_until_a_site_opens_it(open_client):
    closed = open_client(AgentPublisher(Starlette(), site=Site("Shop", "Sells.", url="https://shop.example")))
    assert closed.get("/awp").status_code == 404
    assert "x-awp" not in closed.get("/agent.json").json()["protocols"]
    with pytest.raises(WebSocketDisconnect), closed.websocket_connect("/awp"):
        pass


def test_agent_json_says_where_the_open_door_is(client):
    assert client.get("/agent.json").json()["protocols"]["x-awp"] == {
        "version": "0.1",
        "endpoint": "wss://shop.example/awp",
        "transport": "websocket",
    }


def test_plain_http_is_told_to_upgrade(client):
    answer = client.get("/awp")
    assert (answer.status_code, answer.headers["upgrade"]) == (426, "websocket")


def test_websockets_of_the_application_stay_its_own(open_client):
    async def chat(socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_text("its own")

    client = open_client(AgentPublisher(Starlette(routes=[WebSocketRoute("/chat", chat)]), site=make_site()))
    with client.websocket_connect("/chat") as socket:
        assert socket.receive_text() == "its own"


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "https://shop.example.evil", "http://shop.example"])
def test_pages_of_other_origins_are_refused(client, origin):
    with pytest.raises(WebSocketDenialResponse) as denied, AwpClient.open(client, {"origin": origin}):
        pass
    assert denied.value.status_code == 403


def test_cookies_of_other_sites_pages_are_told_as_at_every_door(client):
    headers = {"origin": "https://evil.example", "cookie": "session=1"}
    with pytest.raises(WebSocketDenialResponse) as denied, AwpClient.open(client, headers):
        pass
    assert denied.value.json()["code"] == "CROSS_SITE_COOKIES"


@pytest.mark.parametrize("origin", [None, "https://shop.example", "https://friend.example"])
def test_programs_own_pages_and_welcome_origins_come_in(open_client, origin):
    client = open_client(publish(make_site(allow_origins=["https://friend.example"])))
    with AwpClient.greeted(client, {"origin": origin} if origin else {}) as caller:
        assert caller.create()


def test_a_subprotocol_is_chosen_if_it_is_ours(client):
    for offered, chosen in ((["x", "awp.msgpack"], "awp.msgpack"), (["x"], None), ([], None)):
        with client.websocket_connect("/awp", subprotocols=offered) as socket:
            assert socket.accepted_subprotocol == chosen


# --- The handshake ---


def test_skills_are_a_feature_where_there_are_some(open_client):
    site = make_site()

    @site.agent("look")
    async def look() -> str:
        """Look."""
        return "here"

    for declared, client in ((False, open_client(publish())), (True, open_client(publish(site)))):
        with AwpClient.open(client) as caller:
            assert ("skills.invoke" in caller.do("awp.hello")["features"]) == declared


def test_the_handshake_may_be_sent_again(client):
    with AwpClient.greeted(client) as caller:
        caller.create()
        assert caller.do("awp.hello", **HELLO)["awp_version"] == "0.1"
        assert caller.do("session.list")["count"] == 1


def test_messages_may_follow_the_handshake_at_once(client):
    with AwpClient.open(client) as caller:
        asked = [caller.say("awp.hello"), caller.say("session.create"), caller.say("session.list")]
        values = {(answer := caller.hear())["id"]: answer for _ in asked}
    assert set(values) == set(asked)
    assert values[asked[2]]["result"]["count"] == 1


# --- The envelope ---


@pytest.mark.parametrize(
    ("frame", "request_id"),
    [
        ('{"id": "a", "method": "awp.hello", "params": ' + "[" * 500 + "]" * 500 + "}", ""),
        ("[" * 100_000, ""),
    ],
)
def test_an_invalid_request_is_refused_and_the_connection_continues(client, frame, request_id):
    with AwpClient.open(client) as caller:
        caller.socket.send_text(frame)
        answer = caller.hear()
        assert (answer["id"], answer["type"], answer["error"]["code"]) == (request_id, "response", "INVALID_REQUEST")
        assert caller.do("awp.hello")


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\xc1",
        b"\x91" * 100_000,
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        msgpack.packb({"id": "a"}) + b"x",
        msgpack.packb({1: 2}),
        msgpack.packb({"id": "a", "method": b"awp.hello"}),
        msgpack.packb({"id": "a", "method": "awp.hello", "params": {"n": float("nan")}}),
        msgpack.packb({"id": "a", "method": "awp.hello", "params": {"n": msgpack.ExtType(4, b"x")}}),
        msgpack.packb({"id": "a", "method": "awp.hello", "params": {"n": 2**64 - 1}}),
        b"\x82\xa2id\xa1a\xa2id\xa1b",
        b"\x81\xa2id\xa2\xff\xfe",
    ],
)
def test_invalid_message_pack_is_refused_in_message_pack(client, frame):
    with AwpClient.open(client, is_packed=True) as caller:
        caller.socket.send_bytes(frame)
        answer = caller.hear()
        assert (answer["id"], answer["error"]["code"]) == ("", "INVALID_REQUEST")
        assert caller.do("awp.hello")


def test_each_request_is_answered_in_the_form_that_it_came_in(client):
    with AwpClient.open(client) as caller:
        caller.socket.send_bytes(msgpack.packb({"id": "a", "method": "awp.hello", "params": {}}))
        assert msgpack.unpackb(caller.socket.receive_bytes())["result"]["encoding"] == {"selected": "msgpack"}
        caller.socket.send_text(json.dumps({"id": "b", "method": "session.list"}))
        assert json.loads(caller.socket.receive_text())["id"] == "b"


# --- Scopes ---


def scoped(open_client, *scopes: str) -> TestClient:
    site = make_site(authenticate=BearerToken({"token": Principal("ann", frozenset(scopes))}))

    @site.agent("look")
    async def look() -> str:
        """Look."""
        return "here"

    return open_client(publish(site))


ASKED = {
    "som:read": ["page.observe", "page.extract", "page.list", "page.history"],
    "page:act": ["page.navigate", "page.act", "page.back", "page.reload", "page.create"],
    "session:write": ["session.create", "session.close", "session.export", "session.cookies.get", "session.resume"],
    "skills:invoke": ["skills.invoke"],
}


@pytest.mark.parametrize("held", ASKED)
def test_a_caller_with_scopes_has_these_and_no_others(open_client, held):
    with AwpClient.greeted(scoped(open_client, held, "buy"), {"authorization": "Bearer token"}) as caller:
        for scope, methods in ASKED.items():
            for method in methods:
                error = caller.ask(method, {"skill": "look", "url": "/", "page_id": "p_1"}).get("error", {})
                refused = error.get("code") == "PERMISSION_DENIED"
                assert refused == (scope != held), method
                if refused:
                    assert error["details"]["required_scope"] == scope


def test_a_caller_without_scopes_of_awp_has_all_that_are_harmless(open_client):
    with AwpClient.open(scoped(open_client, "buy"), {"authorization": "Bearer token"}) as caller:
        granted = set(caller.do("awp.hello")["auth"]["scopes"])
    assert granted == set(SCOPES) - {"page:evaluate", "network:configure"}
