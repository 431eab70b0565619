"""Ends of the bridge at the ASGI interface: agents and runtimes that say and hear items, and hang up at any moment."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from awp_publish.http.exchange import AsgiApp, Message


class End:
    """One WebSocket of the bridge. `items` are those that came and were not heard yet."""

    def __init__(self, app: AsgiApp, headers: Mapping[str, str] | None = None, path: str = "/actions-bridge") -> None:
        self._app, self._path = app, path
        self._headers = {"host": "shop.example", **(headers or {})}
        self._in: asyncio.Queue[Message] = asyncio.Queue()
        self.items: asyncio.Queue[Any] = asyncio.Queue()
        self.messages: list[Message] = []
        self._in.put_nowait({"type": "websocket.connect"})
        self.accepted = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        scope = {
            "type": "websocket",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "scheme": "wss",
            "path": self._path,
            "raw_path": self._path.encode(),
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in self._headers.items()],
            "subprotocols": [],
            "client": ("192.0.2.1", 1),
            "server": ("shop.example", 443),
            "extensions": {"websocket.http.response": {}},
        }
        try:
            await self._app(scope, self._in.get, self._send)
        finally:
            self.accepted.set()

    async def _send(self, message: Message) -> None:
        self.messages.append(message)
        if message["type"] == "websocket.send":
            self.items.put_nowait(json.loads(message["text"]))
        else:
            self.accepted.set()

    @property
    def status(self) -> int:
        """The status of a refused handshake, 101 for one that was accepted."""
        first = self.messages[0]
        return 101 if first["type"] == "websocket.accept" else first["status"]

    @property
    def close_code(self) -> int | None:
        return next((message["code"] for message in self.messages if message["type"] == "websocket.close"), None)

    def say(self, item: object) -> None:
        self._in.put_nowait({"type": "websocket.receive", "text": json.dumps(item)})

    def say_text(self, text: str) -> None:
        self._in.put_nowait({"type": "websocket.receive", "text": text})

    def hang_up(self) -> None:
        self._in.put_nowait({"type": "websocket.disconnect", "code": 1006})

    async def hear(self) -> Any:
        """The next item."""
        async with asyncio.timeout(50):
            return await self.items.get()

    async def quiet(self) -> bool:
        """Whether nothing comes before what is under way here is done."""
        for _ in range(50):
            await asyncio.sleep(0)
        return self.items.empty()

    # --- As a runtime ---

    async def ready(self, runtime_id: str = "tab", url: str = "https://shop.example/", **members: object) -> None:
        self.say({"type": "runtime_ready", "runtime_id": runtime_id, "url": url, **members})
        await self.quiet()

    def answer(self, call: Mapping[str, Any], output: object) -> None:
        given = {"call_id": call["call_id"], "runtime_id": call["runtime_id"], "output": output}
        self.say({"type": "action_call_output", **given})

    # --- As an agent ---

    def call(self, name: str, arguments: object = None, call_id: str = "call-1", **members: object) -> None:
        given = {"call_id": call_id, "name": name, "arguments": {} if arguments is None else arguments}
        self.say({"type": "action_call", **given, **members})

    async def ask(self, name: str, arguments: object = None, call_id: str = "call-1", **members: object) -> Any:
        """Call, and give the answer."""
        self.call(name, arguments, call_id, **members)
        return await self.hear()

    async def error(self, name: str, arguments: object = None, call_id: str = "call-1", **members: object) -> Any:
        """Call, and give the error."""
        answer = await self.ask(name, arguments, call_id, **members)
        assert answer["type"] == "action_error", answer
        return answer["error"]


@asynccontextmanager
async def connected(
    app: AsgiApp, headers: Mapping[str, str] | None = None, path: str = "/actions-bridge"
) -> AsyncIterator[End]:
    end = End(app, headers, path)
    end.task = asyncio.create_task(end.run())
    async with asyncio.timeout(50):
        await end.accepted.wait()
    try:
        yield end
    finally:
        end.hang_up()
        async with asyncio.timeout(50):
            await end.task
