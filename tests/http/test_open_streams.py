"""Streams and connections are shared out: strangers at one address cannot take those of others, or of known callers."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from starlette.applications import Starlette

from awp_publish import AgentPublisher
from awp_publish.http import streams
from awp_publish.http.running import running
from awp_publish.http.streams import StreamLimits
from awp_publish.plugins.a2a.wire import read_metadata
from awp_publish.plugins.actions_json import bridge
from tests.guarded import ANN, BEN, known_callers, make_shop
from tests.installed import installed, is_installed
from tests.plugins.awp.awp_client import HELLO
from tests.plugins.mcp.mcp_messages import headers_of, message

SMALL = StreamLimits(most=7, of_unknown=5, of_address=3, of_caller=2)


@pytest.fixture
def go_on():
    """Set once background jobs may end."""
    return asyncio.Event()


@pytest.fixture
def app(monkeypatch, go_on):
    monkeypatch.setattr(streams, "LIMITS", SMALL)
    monkeypatch.setattr(bridge, "CONNECTIONS", SMALL)
    site = make_shop(
        plugins=installed("mcp", "a2a", "awp", "bridge"),
        authenticate=known_callers(),
        proxies={"trusted": ["192.0.2.1"]},
    )
    site.event("sold", payload={"type": "object", "properties": {}}, description="Something was sold.")

    @site.agent("later", execution="async")
    async def later() -> str:
        """When it may."""
        await go_on.wait()
        return "done"

    return AgentPublisher(Starlette(), site=site)


class Opened:
    """One stream or connection at the ASGI interface. `problem` is that of a refusal, None for an open one."""

    def __init__(self, app, scope: Mapping[str, Any]) -> None:
        self._incoming: asyncio.Queue[Any] = asyncio.Queue()
        self.outgoing: asyncio.Queue[Any] = asyncio.Queue()
        self._app, self._scope = app, scope
        self.problem: Any = None
        self.status = 0
        self.headers: dict[str, str] = {}

    def say(self, item: Mapping[str, Any]) -> None:
        self._incoming.put_nowait(item)

    async def hear(self) -> Any:
        """The next part, None at the end."""
        async with asyncio.timeout(30):
            item = await self.outgoing.get()
        if item is not None and item["type"].endswith("response.start"):
            self.status = item["status"]
            self.headers = {name.decode(): value.decode() for name, value in item["headers"]}
            return await self.hear()
        return item

    def start(self) -> None:
        self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        try:
            await self._app(self._scope, self._incoming.get, self.outgoing.put)
        finally:
            self.outgoing.put_nowait(None)

    async def close(self) -> None:
        self.say({"type": "websocket.disconnect" if self._scope["type"] == "websocket" else "http.disconnect"})
        async with asyncio.timeout(30):
            with suppress(asyncio.CancelledError):
                await self._task


def scope_of(kind: str, path: str, headers: Mapping[str, str]) -> dict[str, Any]:
    fields = {"host": "shop.example", "content-type": "application/json", **headers}
    return {
        "type": kind,
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "https" if kind == "http" else "wss",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
        "subprotocols": [],
        "server": ("shop.example", 443),
        "client": ("192.0.2.1", 1),
        "extensions": {"websocket.http.response": {}},
    }


async def send(app, path: str, body: Any, headers: Mapping[str, str]) -> Opened:
    """A request whose answer is a stream."""
    opened = Opened(app, scope_of("http", path, headers))
    opened.say({"type": "http.request", "body": json.dumps(body).encode()})
    opened.start()
    first = await opened.hear()
    for line in first["body"].decode().splitlines():
        if line.startswith(("data: ", "{")) and "error" in (answer := json.loads(line.removeprefix("data: "))):
            data = answer["error"]["data"]
            opened.problem = read_metadata(data[0]["metadata"]) if isinstance(data, list) else data
            break
    return opened


async def connect(app, path: str, headers: Mapping[str, str]) -> Opened:
    """A WebSocket."""
    opened = Opened(app, scope_of("websocket", path, headers))
    opened.say({"type": "websocket.connect"})
    opened.start()
    first = await opened.hear()
    if first["type"] != "websocket.accept":
        opened.problem = json.loads(first["body"])
    return opened


async def open_mcp(app, method: str, params: Mapping[str, Any], headers: Mapping[str, str]) -> Opened:
    sent = message(method, params)
    return await send(app, "/mcp", sent, headers_of(sent) | dict(headers))


async def open_a2a(app, method: str, params: Mapping[str, Any], headers: Mapping[str, str]) -> Opened:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return await send(app, "/a2a", body, {"a2a-version": "1.0", **headers})


def a2a_message(data: Mapping[str, Any]) -> dict[str, Any]:
    return {"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"data": data}]}}


async def open_a2a_task(app, headers: Mapping[str, str]) -> Opened:
    """A stream of what becomes of a task that runs already."""
    params = a2a_message({"skill": "later"}) | {"configuration": {"returnImmediately": True}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
    begun = Opened(app, scope_of("http", "/a2a", {"a2a-version": "1.0", **headers}))
    begun.say({"type": "http.request", "body": json.dumps(body).encode()})
    begun.start()
    task = json.loads((await begun.hear())["body"])["result"]["task"]
    await begun.close()
    return await open_a2a(app, "SubscribeToTask", {"id": task["id"]}, headers)


async def open_awp(app, headers: Mapping[str, str]) -> Opened:
    opened = await connect(app, "/awp", headers)
    if opened.problem is None:
        opened.say(
            {"type": "websocket.receive", "text": json.dumps({"id": "1", "method": "awp.hello", "params": HELLO})}
        )
        answer = json.loads((await opened.hear())["text"])
        opened.problem = answer["error"]["details"] if "error" in answer else None
    return opened


KINDS = {
    "mcp events": lambda app, headers: open_mcp(app, "events/stream", {"name": "sold"}, headers),
    "mcp subscriptions": lambda app, headers: open_mcp(
        app, "subscriptions/listen", {"notifications": {"toolsListChanged": True}}, headers
    ),
    "a2a events": lambda app, headers: open_a2a(app, "SendStreamingMessage", a2a_message({"skill": "sold"}), headers),
    "a2a jobs": lambda app, headers: open_a2a(app, "SendStreamingMessage", a2a_message({"skill": "later"}), headers),
    "a2a tasks": open_a2a_task,
    "awp": open_awp,
    "bridge": lambda app, headers: connect(app, "/actions-bridge", headers),
}


def at(address: int) -> dict[str, str]:
    return {"x-forwarded-for": f"203.0.113.{address}"}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if is_installed(kind.split()[0])])
async def test_strangers_share_what_is_theirs_and_known_callers_have_their_own(app, kind, go_on):
    opened: list[Opened] = []

    async def attempt(headers: Mapping[str, str]) -> Opened:
        opened.append(await KINDS[kind](app, headers))
        return opened[-1]

    async def refused(headers: Mapping[str, str]) -> str:
        problem = (await attempt(headers)).problem
        assert problem is not None
        assert (problem["code"], int(problem["retry_after"]) > 0) == ("RATE_LIMITED", True)
        return f"{problem['detail']}"

    async with running(app):
        for _ in range(SMALL.of_address):
            assert (await attempt(at(1))).problem is None
        assert "anonymous callers from one address have 3" in await refused(at(1))
        for _ in range(SMALL.of_unknown - SMALL.of_address):
            assert (await attempt(at(2))).problem is None
        assert "all anonymous callers together have 5" in await refused(at(2))
        assert "all anonymous callers together have 5" in await refused(at(3))
        known = [await attempt(ANN | at(1)) for _ in range(SMALL.of_caller)]
        assert [item.problem for item in known] == [None] * SMALL.of_caller
        assert "you have 2" in await refused(ANN | at(5))
        assert "all callers together have 7" in await refused(BEN | at(5))
        await known[0].close()
        assert (await attempt(BEN | at(5))).problem is None
        await opened[0].close()
        assert (await attempt(at(1))).problem is None
        for item in opened:
            await item.close()
        go_on.set()


@pytest.mark.needs("mcp")
async def test_a_refused_stream_has_the_status_and_the_fields_of_its_problem(app):
    async with running(app):
        streams = [await KINDS["mcp events"](app, at(1)) for _ in range(SMALL.of_address)]
        for kind, code in (("mcp events", -32025), ("mcp subscriptions", -32603)):
            refused = await KINDS[kind](app, at(1))
            assert (refused.status, refused.headers["retry-after"], refused.problem["max"]) == (429, "30", 3), code
            assert refused.problem["limit"] == "streams"
        for stream in streams:
            await stream.close()


@pytest.mark.needs("awp")
async def test_a_caller_who_is_known_later_leaves_the_share_of_their_address(app):
    async with running(app):
        for _ in range(SMALL.of_caller):
            assert (await open_awp(app, ANN | at(1))).problem is None
        for _ in range(SMALL.of_address):
            assert (await open_awp(app, at(1))).problem is None
        assert (await open_awp(app, at(1))).problem["code"] == "RATE_LIMITED"


@pytest.mark.needs("awp")
async def test_connections_that_say_nothing_have_a_share_of_their_address(app):
    async with running(app):
        for _ in range(SMALL.of_address):
            assert (await connect(app, "/awp", at(1))).problem is None
        refused = await connect(app, "/awp", at(1))
        assert (refused.status, refused.problem["code"]) == (429, "RATE_LIMITED")
        assert "connections" in refused.problem["detail"]
        assert (await connect(app, "/awp", at(2))).problem is None
