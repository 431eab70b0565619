"""A client of the AWP door at the ASGI interface, which may stop reading, and hang up at any moment."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from awp_publish.http.exchange import AsgiApp, Message


class Socket:
    """One WebSocket. `sent` is all that came from the door."""

    def __init__(self, app: AsgiApp) -> None:
        self._app = app
        self._in: asyncio.Queue[Message] = asyncio.Queue()
        self.sent: list[Message] = []
        self.heard = asyncio.Event()
        self.reads = asyncio.Event()
        self.reads.set()
        self.is_broken = False
        self._in.put_nowait({"type": "websocket.connect"})

    async def run(self) -> None:
        path = "/awp"
        scope = {
            "type": "websocket",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "scheme": "wss",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(b"host", b"shop.example")],
            "subprotocols": [],
            "client": ("192.0.2.1", 1),
            "server": ("shop.example", 443),
            "extensions": {},
        }
        await self._app(scope, self._in.get, self._send)

    def say(self, method: str, request_id: str = "r", **params: object) -> None:
        frame = json.dumps({"id": request_id, "method": method, "params": params})
        self._in.put_nowait({"type": "websocket.receive", "text": frame})

    def hang_up(self) -> None:
        self._in.put_nowait({"type": "websocket.disconnect", "code": 1006})

    async def hear(self, request_id: str) -> Any:
        """The answer to a request."""
        async with asyncio.timeout(50):
            while True:
                for message in self.sent:
                    if (
                        message["type"] == "websocket.send"
                        and (answer := json.loads(message["text"]))["id"] == request_id
                    ):
                        return answer
                self.heard.clear()
                await self.heard.wait()

    async def _send(self, message: Message) -> None:
        await self.reads.wait()
        if self.is_broken:
            raise OSError("The other end is gone.")
        self.sent.append(message)
        self.heard.set()


@asynccontextmanager
async def connected(app: AsgiApp) -> AsyncIterator[Socket]:
    socket = Socket(app)
    task = asyncio.create_task(socket.run())
    try:
        socket.say("awp.hello", "hello")
        await socket.hear("hello")
        yield socket
    finally:
        socket.hang_up()
        async with asyncio.timeout(50):
            await task
