"""The AWP door of the bookshop over real sockets: uvicorn, and the client that everybody has (websockets)."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from typing import Any

import msgpack
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from demo_site.accounts import DEMO_ACCOUNTS
from tests.http.test_real_server import answers, free_port, wait_until


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("bookshop")
    port = free_port()
    options = ["--port", str(port), "--database", str(folder / "books.db"), "--doors", "awp"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "demo_site", *options], stdout=log, stderr=log)
        try:
            wait_until(lambda: answers(f"http://127.0.0.1:{port}"))
            yield f"127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=90) in (0, -signal.SIGTERM)
    assert b"Traceback" not in (folder / "log").read_bytes()


class Agent:
    """An agent, from its handshake on."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self._ids = count(1)

    @classmethod
    @asynccontextmanager
    async def at(cls, address: str) -> AsyncIterator["Agent"]:
        async with connect(f"ws://{address}/awp") as connection:
            agent = cls(connection)
            await agent.do("awp.hello", client_name="agent", client_version="1", awp_version="0.1")
            yield agent

    async def ask(self, method: str, **params: Any) -> Any:
        message = {"id": str(next(self._ids)), "type": "request", "method": method, "params": params}
        await self.connection.send(json.dumps(message))
        answer = json.loads(await self.connection.recv())
        assert answer["id"] == message["id"]
        return answer

    async def do(self, method: str, **params: Any) -> Any:
        answer = await self.ask(method, **params)
        assert "result" in answer, answer
        return answer["result"]


class Visit:
    """What an agent does in one session, by what it observes."""

    def __init__(self, agent: Agent, session: str) -> None:
        self._agent = agent
        self._session = session

    async def open(self, url: str) -> Any:
        return await self._agent.do("page.navigate", session_id=self._session, url=url)

    async def act(self, action: str, target: dict[str, Any], value: str | None = None) -> Any:
        intent = {"action": action, "target": target} | ({} if value is None else {"value": value})
        return await self._agent.do("page.act", session_id=self._session, intent=intent)

    async def find(self, role: str, words: str) -> dict[str, Any]:
        """The target of the first element of a role whose text or label has these words."""
        som = (await self._agent.do("page.observe", session_id=self._session))["som"]
        found = next(
            element
            for element in elements_of(som)
            if element["role"] == role and words in f"{element.get('text', '')} {element.get('label', '')}"
        )
        return {"ref": found["id"]}

    async def heading(self) -> str:
        fields = {"title": {"role": "heading", "level": 1}}
        return str((await self._agent.do("page.extract", session_id=self._session, fields=fields))["data"]["title"])


def elements_of(som: dict[str, Any]) -> Iterator[dict[str, Any]]:
    waiting = [element for region in som["regions"] for element in region["elements"]]
    while waiting:
        element = waiting.pop(0)
        yield element
        waiting = [*element.get("children", []), *waiting]


async def test_a_book_is_found_and_ordered_with_these_methods_alone(address):
    name, password = next(iter(DEMO_ACCOUNTS.items()))
    async with Agent.at(address) as agent:
        visit = Visit(agent, (await agent.do("session.create"))["session_id"])
        await visit.open(f"http://{address}/")
        await visit.act("click", await visit.find("link", "Sign in"))
        await visit.act("type", await visit.find("text_input", "Name"), name)
        await visit.act("type", await visit.find("text_input", "Password"), password)
        await visit.act("click", await visit.find("button", "Sign in"))
        await visit.open("/search")
        await visit.act("type", {"css": "input[name=q]"}, "pride")
        assert (await visit.act("click", {"css": ".search-form button, form[role=search] button"}))["effects"][
            "navigated"
        ]
        await visit.act("click", await visit.find("link", "Pride and Prejudice"))
        await visit.act("type", await visit.find("text_input", "Copies"), "2")
        await visit.act("click", await visit.find("button", "Put in basket"))
        await visit.open("/checkout")
        await visit.act("type", await visit.find("text_input", "Name"), "Ann Elliot")
        await visit.act("type", await visit.find("textarea", "Address"), "Kellynch Hall\nSomerset")
        placed = await visit.act("click", await visit.find("button", "Place the order"))
        assert placed["effects"]["navigated"]
        assert "order" in (await visit.heading()).lower()


async def test_message_pack_and_json_say_the_same(address):
    async with Agent.at(address) as agent:
        session = (await agent.do("session.create"))["session_id"]
        await agent.do("page.navigate", session_id=session, url="/")
        plain = await agent.do("page.observe", session_id=session)
        params = {"session_id": session}
        await agent.connection.send(msgpack.packb({"id": "p", "method": "page.observe", "params": params}))
        packed = await agent.connection.recv()
        assert isinstance(packed, bytes)
        assert msgpack.unpackb(packed)["result"] == plain


async def test_a_hundred_sessions_fit_on_the_connections_of_one_address_however_few_these_are(address):
    async with AsyncExitStack() as stack:
        agents = [await stack.enter_async_context(Agent.at(address)) for _ in range(2)]
        for _ in range(96):
            assert "result" in await patiently(agents[0], "session.create")
        made = [(await patiently(agents[1], "session.create"))["result"]["session_id"] for _ in range(4)]
        for agent in agents:
            refused = (await patiently(agent, "session.create"))["error"]
            assert refused["message"] == "Maximum sessions (100) of this address reached"
        assert (await patiently(agents[0], "session.list"))["result"]["count"] == 96
        await agents[1].do("session.close", session_id=made[0])
        assert "result" in await patiently(agents[1], "session.create")


async def patiently(agent: Agent, method: str, **params: Any) -> Any:
    """Ask, and ask again later where there were too many messages."""
    answer = await agent.ask(method, **params)
    if answer.get("error", {}).get("code") != "RATE_LIMITED":
        return answer
    await asyncio.sleep(answer["error"]["details"]["retry_after_ms"] / 1000)
    return await patiently(agent, method, **params)


async def test_a_session_is_resumed_after_the_line_broke(address):
    async with Agent.at(address) as agent:
        made = await agent.do("session.create")
        await agent.do("page.navigate", session_id=made["session_id"], url="/about")
        agent.connection.transport.abort()
    async with Agent.at(address) as agent:
        wanted = {"session_id": made["session_id"], "resume_token": made["resume_token"]}
        assert (await agent.do("session.resume", **wanted))["url"].endswith("/about")
        assert (await agent.do("page.observe", session_id=made["session_id"]))["som"]["url"].endswith("/about")
        await agent.do("session.close", session_id=made["session_id"])


async def test_pages_of_other_sites_are_refused(address):
    with pytest.raises(InvalidStatus) as refused:
        async with connect(f"ws://{address}/awp", origin="https://evil.example"):  # type: ignore[arg-type]
            pass
    assert refused.value.response.status_code == 403
    async with connect(f"ws://{address}/awp", origin=f"http://{address}"):  # type: ignore[arg-type]
        pass


async def test_giant_frames_are_refused(address):
    async with Agent.at(address) as agent:
        await agent.connection.send(json.dumps({"id": "a", "method": "session.list", "x": "x" * 1_100_000}))
        assert json.loads(await agent.connection.recv())["error"]["code"] == "INVALID_REQUEST"
        with pytest.raises(ConnectionClosed):
            await agent.connection.recv()
        assert agent.connection.close_code == 1009


async def test_a_client_that_stops_reading_does_not_hold_up_others(address):
    host, port = address.split(":")
    with socket.create_connection((host, int(port))) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.sendall(
            b"GET /awp HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        assert b" 101 " in line.recv(4096)
        hello = json.dumps({"id": "1", "method": "awp.hello"}).encode()
        listing = json.dumps({"id": "2", "method": "skills.list"}).encode()
        line.sendall(masked(hello) + masked(listing) * 100)
        async with Agent.at(address) as agent:
            session = (await agent.do("session.create"))["session_id"]
            assert (await agent.do("page.navigate", session_id=session, url="/"))["status"] == 200
            await agent.do("session.close", session_id=session)


def masked(payload: bytes) -> bytes:
    """A text frame as a client sends it (RFC 6455 section 5.2), with the mask of zeros."""
    assert len(payload) < 126
    return bytes([0x81, 0x80 | len(payload), 0, 0, 0, 0]) + payload
