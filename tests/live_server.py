"""An application in a server of its own, in the test's event loop, for what needs sockets: browsers and WebSockets."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson
import uvicorn
from websockets.asyncio.client import connect

from awp_publish.http.exchange import AsgiApp


@asynccontextmanager
async def serve(make_app: Callable[[str], AsgiApp]) -> AsyncIterator[str]:
    """Run the application that is made for an address, and give the address."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        server = uvicorn.Server(uvicorn.Config(make_app(url), log_level="warning"))
        task = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started:  # noqa: ASYNC110 - the server tells it no other way
            await asyncio.sleep(0.01)
        try:
            yield url
        finally:
            server.should_exit = True
            await task


class BridgeAgent:
    """An agent at the bridge; with a code, in the tab of whoever has given it. `events` are those that came by."""

    def __init__(self, socket: Any, code: str | None) -> None:
        self._socket, self._code, self._number = socket, code, 0
        self.events: list[Any] = []

    async def ask(self, name: str, arguments: object, **members: object) -> Any:
        """Call, and give the output or the error."""
        self._number += 1
        item = {"type": "action_call", "call_id": f"c{self._number}", "name": name, "arguments": arguments, **members}
        item |= {"authorization_id": self._code} if self._code else {}
        await self._socket.send(orjson.dumps(item).decode())
        while True:
            answer = await self._hear()
            if answer["type"] != "dom_event":
                return answer["error"] if "error" in answer else answer["output"]
            self.events.append(answer)

    async def hear_event(self) -> Any:
        """The next event."""
        return self.events.pop(0) if self.events else await self._hear()

    async def _hear(self) -> Any:
        async with asyncio.timeout(30):
            return orjson.loads(await self._socket.recv())

    async def __call__(self, mode: str, /, *, confirmation: str | None = None, **arguments: Any) -> Any:
        """Use `actions.site`."""
        members = {"confirmation": confirmation} if confirmation else {}
        return await self.ask("actions.site", {"mode": mode, **arguments}, **members)


@asynccontextmanager
async def agent_of(url: str, code: str | None = None) -> AsyncIterator[BridgeAgent]:
    """Connect an agent."""
    async with connect(f"{url.replace('http', 'ws')}/actions-bridge") as opened:
        yield BridgeAgent(opened, code)


async def pair(tab: Any) -> str:
    """Pair a tab as a visitor does, and give the code that is shown."""
    await tab.click("[data-agents-pair]")
    await tab.get_by_text("An agent may use this tab").wait_for()
    shown: str = await tab.inner_text("[data-agents-badge] span")
    return shown.rpartition(" ")[2]
