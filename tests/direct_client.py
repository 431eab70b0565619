"""A client that drives the loop of an application itself: no threads, no network, a call in a fraction of a moment.

It has the words of Starlette's test client that the adapters of doors use. What it `wears` goes with each request and
each handshake, as headers that a proxy or the client's own signing adds; `sent` is every byte that came back.
"""

import asyncio
import json as jsons
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import unquote, urlencode

import httpx2
from starlette.testclient import WebSocketDenialResponse
from starlette.websockets import WebSocketDisconnect

from awp_publish.http.exchange import AsgiApp, Message, Scope
from awp_publish.http.running import running

Line: TypeAlias = tuple[bytes, bytes]
Wear: TypeAlias = Callable[[Scope], list[Line]]
"""The header lines that go with a request besides its own."""

Value = TypeVar("Value")

PATIENCE: Final = 60.0
"""Seconds after which an answer that does not come is a failure."""


class DirectClient:
    """Speaks to an application at the ASGI interface. Requests come from an `address`, or each from one of its own."""

    def __init__(self, app: AsgiApp, host: str = "shop.example") -> None:
        self._app = app
        self._host = host.encode()
        self._loop = asyncio.new_event_loop()
        self._addresses = count(1)
        self._running = running(app)
        self.wear: Wear = lambda scope: []
        self.address: str | None = None
        self.sent = bytearray()
        self.do(self._running.__aenter__())

    def close(self) -> None:
        """Stop the application."""
        self.do(self._running.__aexit__(None, None, None))
        self._loop.run_until_complete(_end_tasks())
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def do(self, work: Awaitable[Value]) -> Value:
        """Run the loop until something is done."""

        async def limited() -> Value:
            async with asyncio.timeout(PATIENCE):
                return await work

        return self._loop.run_until_complete(limited())

    def request(
        self,
        method: str,
        target: str,
        *,
        json: Any = None,
        data: Mapping[str, Any] | None = None,
        content: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> httpx2.Response:
        """The answer to a request."""
        lines = [(name.lower().encode(), value.encode("latin-1")) for name, value in (headers or {}).items()]
        if json is not None:
            content = jsons.dumps(json).encode()
            lines.append((b"content-type", b"application/json"))
        if data is not None:
            content = urlencode(data, doseq=True).encode()
            lines.append((b"content-type", b"application/x-www-form-urlencoded"))
        scope = self._scope("http", method, target, [*lines, (b"content-length", b"%d" % len(content))])
        start: Message = {}
        body, requests = bytearray(), [content]

        async def receive() -> Message:
            if not requests:
                await asyncio.get_running_loop().create_future()
            return {"type": "http.request", "body": requests.pop(), "more_body": False}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            elif message["type"] == "http.response.body":
                body.extend(message.get("body", b""))

        self.do(self._app(scope, receive, send))
        self.sent += b"".join(b"%s: %s\n" % pair for pair in start["headers"]) + body
        return httpx2.Response(start["status"], headers=start["headers"], content=bytes(body))

    def post(self, target: str, **options: Any) -> httpx2.Response:
        """The answer to a POST."""
        return self.request("POST", target, **options)

    def get(self, target: str, **options: Any) -> httpx2.Response:
        """The answer to a GET."""
        return self.request("GET", target, **options)

    def follow(self, target: str, json: Any, headers: Mapping[str, str]) -> "Followed":
        """The beginning of an answer, which goes on until it is left."""
        lines = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
        scope = self._scope("http", "POST", target, [*lines, (b"content-type", b"application/json")])
        followed = Followed(self, jsons.dumps(json).encode())
        followed.task = self._loop.create_task(followed.run(self._app, scope))
        self.do(followed.begun.wait())
        return followed

    @contextmanager
    def websocket_connect(self, path: str, headers: Mapping[str, str] | None = None) -> Iterator["DirectSocket"]:
        """Open a WebSocket. Raises WebSocketDenialResponse if it is refused."""
        lines = [(name.lower().encode(), value.encode("latin-1")) for name, value in (headers or {}).items()]
        scope = self._scope("websocket", "GET", path, [line for line in lines if line[0] != b"host"])
        scope.update(subprotocols=[], extensions={"websocket.http.response": {}})
        socket = DirectSocket(self, self._loop)
        talking = self._loop.create_task(socket.serve(self._app, scope))
        try:
            socket.open()
            yield socket
        finally:
            socket.hang_up()
            self.do(talking)

    def _scope(self, kind: str, method: str, target: str, lines: list[Line]) -> Scope:
        path, _, query = target.partition("?")
        number = next(self._addresses)
        scope: Scope = {
            "type": kind,
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": method,
            "scheme": "https" if kind == "http" else "wss",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "server": ("shop.example", 443),
            "client": (self.address or f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}", 4711),
            "state": {},
            "headers": [],
        }
        named = {name for name, _ in lines}
        worn = self.wear(scope)
        host = [] if b"host" in named or b"host" in {name for name, _ in worn} else [(b"host", self._host)]
        scope["headers"] = [*host, *lines, *worn]
        if kind == "websocket":
            del scope["method"]
        return scope


class Followed:
    """An answer that may be a stream. `status` and `first` are what it begins with."""

    def __init__(self, client: DirectClient, body: bytes) -> None:
        self._client = client
        self._bodies = [body]
        self._has_left = asyncio.Event()
        self.begun = asyncio.Event()
        self.status = 0
        self.first = b""
        self.task: asyncio.Task[None]

    async def run(self, app: AsgiApp, scope: Scope) -> None:
        """Send the request."""
        await app(scope, self.receive, self.send)

    async def receive(self) -> Message:
        if self._bodies:
            return {"type": "http.request", "body": self._bodies.pop(), "more_body": False}
        await self._has_left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif not self.first:
            self.first = message.get("body", b"")
            if self.first or not message.get("more_body", False):
                self.begun.set()

    def leave(self) -> None:
        """Hang up."""
        self._has_left.set()
        self._client.do(asyncio.wait({self.task}))


async def _end_tasks() -> None:
    """End what runs: a library for streams watches for the end of a server that is none."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


class DirectSocket:
    """A WebSocket, with the words of Starlette's test session."""

    def __init__(self, client: DirectClient, loop: asyncio.AbstractEventLoop) -> None:
        self._client = client
        self._in: asyncio.Queue[Message] = asyncio.Queue()
        self._out: asyncio.Queue[Message] = asyncio.Queue()
        self._in.put_nowait({"type": "websocket.connect"})

    async def serve(self, app: AsgiApp, scope: Scope) -> None:
        """Run the application for this connection."""
        try:
            await app(scope, self._in.get, self._out.put)
        finally:
            self._out.put_nowait({"type": "websocket.close", "code": 1000})

    def open(self) -> None:
        """Wait for the answer to the handshake."""
        first = self._next()
        if first["type"] == "websocket.http.response.start":
            body = self._next().get("body", b"")
            self._client.sent += b"".join(b"%s: %s\n" % pair for pair in first["headers"]) + body
            headers = [(name.decode(), value.decode("latin-1")) for name, value in first["headers"]]
            raise WebSocketDenialResponse(status_code=first["status"], headers=headers, content=body)
        if first["type"] != "websocket.accept":
            raise WebSocketDisconnect(first.get("code", 1000))

    def hang_up(self) -> None:
        """Leave."""
        self._in.put_nowait({"type": "websocket.disconnect", "code": 1005})

    def send_text(self, text: str) -> None:
        """Send a frame."""
        self._in.put_nowait({"type": "websocket.receive", "text": text})

    def send_json(self, item: Any) -> None:
        """Send an item."""
        self.send_text(jsons.dumps(item))

    def receive_text(self) -> str:
        """The next frame. Raises WebSocketDisconnect at the end."""
        message = self._next()
        if message["type"] != "websocket.send":
            raise WebSocketDisconnect(message.get("code", 1000))
        text = str(message["text"])
        self._client.sent += text.encode()
        return text

    def receive_json(self) -> Any:
        """The next item."""
        return jsons.loads(self.receive_text())

    def _next(self) -> Message:
        return self._client.do(self._out.get())
