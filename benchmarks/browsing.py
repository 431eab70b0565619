"""Browsing through the AWP door, beside what it cannot do without: rendering the page, and compiling its SOM.

The page is the bookshop's search. Its address differs each time, so that nothing that was compiled before is at hand;
whoever opens the same page again is answered sooner. What idle sessions take is measured on a server of its own: each
has a page open that it has observed, and a connection of its own.
"""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count as numbers
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import httpx2
import orjson
from websockets.asyncio.client import ClientConnection, connect

from awp_publish import AgentPublisher, Site
from awp_publish.http.exchange import AsgiApp, Message, Receive, Scope, Send
from awp_publish.http.running import running
from awp_publish.pages.som import compile_som
from benchmarks.measure import Case, Series, ask, interleave, on_each_loop
from benchmarks.table import Row, at_most, compare
from demo_site.app import create_app

URL: Final = "http://127.0.0.1:8000"
SEARCH: Final = "/search?q=the&n="
SESSIONS: Final = 400
SHARE: Final = 100
MOST_MEMORY: Final = 120
PORT: Final = 8461


def browsing(seconds: float) -> list[Row]:
    """Time in process, and memory of a server."""
    found = on_each_loop(lambda: _measure(seconds / 3))
    beside = "rendering and compiling the page once"
    return [
        compare("page.navigate and page.observe", found, "browse", "once", beside, at_most(2.0)),
        _measure_memory(max(1, int(SESSIONS * min(1.0, seconds / 30)))),
    ]


# --- Time ---


async def _measure(seconds: float) -> dict[str, Series]:
    with TemporaryDirectory() as folder:
        app = create_app(url=URL, database=Path(folder) / "books.db", doors=["awp"])
        _let_everything_through(app)
        async with running(app), _Agent.at(app) as agent:
            cases = [Case("browse", agent, "/"), Case("once", _Once(app), "/")]
            documents = [orjson.loads((await ask(case)).body) for case in cases]
            assert documents[0]["regions"] == documents[1]["regions"]
            return await interleave(cases, seconds)


def _let_everything_through(app: Any) -> None:
    """Nobody sends as many messages a second as a benchmark."""
    site: Site = next(
        middleware.kwargs["site"] for middleware in app.user_middleware if middleware.cls is AgentPublisher
    )
    setup = site.plugins["awp"]
    setup.options = replace(setup.options, messages_per_second=1_000_000)


class _Agent:
    """As an ASGI application: a request has the next page navigated to and observed."""

    def __init__(self) -> None:
        self._in: asyncio.Queue[Message] = asyncio.Queue()
        self._out: asyncio.Queue[Message] = asyncio.Queue()
        self._numbers = numbers()
        self._session = ""

    @classmethod
    @asynccontextmanager
    async def at(cls, app: AsgiApp) -> AsyncIterator["_Agent"]:
        agent = cls()
        agent._in.put_nowait({"type": "websocket.connect"})
        task = asyncio.create_task(_run(app, agent))
        assert (await agent._out.get())["type"] == "websocket.accept"
        await agent.do("awp.hello", {})
        agent._session = (await agent.do("session.create", {}))["session_id"]
        try:
            yield agent
        finally:
            agent._in.put_nowait({"type": "websocket.disconnect", "code": 1000})
            await task

    async def do(self, method: str, params: dict[str, object]) -> Any:
        frame = orjson.dumps({"id": "1", "method": method, "params": params}).decode()
        self._in.put_nowait({"type": "websocket.receive", "text": frame})
        return orjson.loads((await self._out.get())["text"])["result"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        url = f"{SEARCH}{next(self._numbers)}"
        await self.do("page.navigate", {"session_id": self._session, "url": url})
        som = (await self.do("page.observe", {"session_id": self._session}))["som"]
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": orjson.dumps(som)})


async def _run(app: AsgiApp, agent: _Agent) -> None:
    scope = {
        "type": "websocket",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "scheme": "ws",
        "path": "/awp",
        "raw_path": b"/awp",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8000")],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8000),
        "subprotocols": [],
        "state": {},
    }
    await app(scope, agent._in.get, agent._out.put)


class _Once:
    """As an ASGI application: the next page is rendered, compiled and written, and that is all."""

    def __init__(self, app: AsgiApp) -> None:
        self._app = app
        self._numbers = numbers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        url = f"{SEARCH}{next(self._numbers)}"
        page = await ask(Case("page", self._app, url, headers=((b"accept", b"text/html"),)))
        assert page.status == 200
        som = compile_som(page.body, f"{URL}{url}", charset="utf-8")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": som.dump()})


# --- Memory ---


def _measure_memory(sessions: int) -> Row:
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "demo_site", "--port", str(PORT), "--database", f"{folder}/books.db"]
        process = subprocess.Popen([*command, "--doors", "awp"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            taken = asyncio.run(_open_and_weigh(sessions, process.pid))
        finally:
            process.terminate()
            process.wait()
    what, beside = f"{sessions} idle sessions on the bookshop", "the server without them"
    return Row(what, beside, taken, at_most(MOST_MEMORY, "MiB"), f"{taken / sessions * 1024:.0f} KiB each", "MiB")


async def _open_and_weigh(sessions: int, pid: int) -> float:
    await _wait_for_server()
    async with _connected(1) as connections:
        session = await _open_session(connections[0], 0)  # so that all code is loaded
        await _do(connections[0], "session.close", {"session_id": session})
    before = _memory_of(pid)
    async with _connected(sessions) as connections:
        for number, connection in enumerate(connections):
            await _open_session(connection, number)
        return _memory_of(pid) - before


async def _wait_for_server() -> None:
    async with httpx2.AsyncClient() as client:
        while True:
            try:
                await client.get(f"http://127.0.0.1:{PORT}/agent.json")
            except httpx2.TransportError:
                await asyncio.sleep(0.1)
            else:
                return


@asynccontextmanager
async def _connected(count: int) -> AsyncIterator[list[ClientConnection]]:
    """Connections from several loopback addresses, for each may hold a share of the sessions only."""
    homes = [(f"127.0.0.{1 + number // SHARE}", 0) for number in range(count)]
    connections = [await connect(f"ws://127.0.0.1:{PORT}/awp", local_addr=home) for home in homes]
    try:
        yield connections
    finally:
        for connection in connections:
            await connection.close()


async def _open_session(connection: ClientConnection, number: int) -> str:
    await _do(connection, "awp.hello", {})
    session = str((await _do(connection, "session.create", {}))["session_id"])
    await _do(connection, "page.navigate", {"session_id": session, "url": f"{SEARCH}{number}"})
    await _do(connection, "page.observe", {"session_id": session})
    return session


async def _do(connection: ClientConnection, method: str, params: dict[str, object]) -> Any:
    await connection.send(orjson.dumps({"id": "1", "method": method, "params": params}).decode())
    return orjson.loads(await connection.recv())["result"]


def _memory_of(pid: int) -> float:
    """Resident memory in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS:"))) / 1024
