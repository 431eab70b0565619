"""Crowds of strangers that take all they can get, and what has to be left for others.

A crowd does one thing over and over: first from one address, until it is refused, then from many. However much the
strangers of one address take, one of another address is served; however much all of them take, a caller who is known is
served; and what they leave in the store is bounded. Where a share ends is the site's own affair.
"""

import asyncio
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from fastapi import FastAPI, Request
from starlette.testclient import WebSocketDenialResponse
from starlette.websockets import WebSocketDisconnect

from awp_publish import AgentPublisher, BearerToken, Site
from awp_publish.plugins.jobs.jobs import MAX_JOBS_OF_CALLER
from tests.direct_client import DirectClient, Followed
from tests.plugins.awp.awp_client import AwpClient
from tests.plugins.mcp.mcp_messages import headers_of, message

TOKEN: Final = "a-token-that-the-shop-knows"
MIB: Final = 1 << 20

LARGE: Final = 900_000
"""Characters of a large input, just below what a call may have."""

MOST_OF_ADDRESS: Final = 64 * MIB
"""Bytes that the strangers of one address may leave in the store by one kind of request."""

MOST_OF_ALL: Final = 256 * MIB
"""Bytes that all strangers may leave there."""

ADDRESSES: Final = 20
REFUSALS: Final = 3
"""How many refusals in a row say that nothing is left."""


class Shop:
    """A shop that is open to strangers, with everything that they may hold."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        site = Site(
            name="Shop",
            description="Sells books.",
            url="https://shop.example",
            plugins=["mcp", "a2a", "awp", "bridge"],
            authenticate=BearerToken({TOKEN: "ann"}),
            secret_keys=["a-key-that-nobody-else-has-0123456789"],
            store=f"sqlite:///{folder}/agents.db",
        )
        app = FastAPI(openapi_url=None)
        site.event("sold", payload={"type": "object", "properties": {}}, description="Something was sold.")

        @site.agent("print_book", execution="async", timeout=600.0)
        async def print_book(text: str) -> int:
            """Print a book, some day."""
            await self._never.wait()
            return 0

        @site.agent("copy_book", idempotency="24h")
        async def copy_book(text: str) -> str:
            """Copy a book."""
            return text

        @site.agent("burn_book", confirm=True)
        async def burn_book(text: str) -> str:
            """Burn a book."""
            return text

        @app.post("/basket")
        @site.action("fill_basket")
        async def fill_basket(request: Request) -> dict[str, str]:
            """Fill a basket."""
            return {}

        app.add_middleware(AgentPublisher, site=site, check=False)
        self._never = asyncio.Event()
        self.client = DirectClient(app)
        self._kept = ExitStack()

    def become(self, address: int, token: str = "") -> None:
        """Speak from an address, as a stranger or as one who is known."""
        self.client.address = f"198.51.{address >> 8}.{address & 255}"
        lines = [(b"authorization", f"Bearer {token}".encode())] if token else []
        self.client.wear = lambda scope: lines

    @property
    def stored(self) -> int:
        """The bytes of the store."""
        size = 0
        for file in self._folder.iterdir():
            with suppress(FileNotFoundError):  # a journal, which is gone by now
                size += file.stat().st_size
        return size

    def keep(self, followed: Followed) -> bool:
        """Whether a stream was opened. It stays open."""
        if followed.status >= 400 or b'"error"' in followed.first:
            followed.leave()
            return False
        self._kept.callback(followed.leave)
        return True

    def keep_socket(self, path: str, greet: Callable[[Any], bool]) -> bool:
        """Whether a WebSocket was opened. It stays open."""
        with suppress(WebSocketDenialResponse, WebSocketDisconnect), ExitStack() as opened:
            socket = opened.enter_context(self.client.websocket_connect(path))
            if greet(socket):
                self._kept.push(opened.pop_all())
                return True
        return False

    def close(self) -> None:
        """Leave everything."""
        self._kept.close()
        self._never.set()
        self.client.close()


# --- What a crowd does ---

Act: TypeAlias = Callable[[Shop, int], bool]
"""Does something for the n-th time, and tells whether it was served."""


@dataclass(frozen=True)
class Crowd:
    """One thing that strangers do. `most` is how often they try it from the first address, `of_others` from others."""

    act: Act
    most: int
    of_others: int | None = None
    holds: bool = False
    """Whether each takes a stream or a connection for as long as it goes on; then there is an end to them."""


def _job(shop: Shop, number: int) -> bool:
    body = {"input": {"text": "x" * LARGE}}
    return shop.client.post("/agents/print_book/invoke", json=body).status_code == 202


def _small_job(shop: Shop, number: int) -> bool:
    return shop.client.post("/agents/print_book/invoke", json={"input": {"text": "x"}}).status_code == 202


def _answer(shop: Shop, number: int) -> bool:
    body = {"input": {"text": f"{number}" + "x" * LARGE}}
    key = {"idempotency-key": f"k-{shop.client.address}-{number}"}
    return shop.client.post("/agents/copy_book/invoke", json=body, headers=key).status_code == 200


def _a2a_task(shop: Shop, number: int) -> bool:
    body = _a2a("SendMessage", {"skill": "burn_book", "input": {"text": "x" * LARGE}})
    return b'"task"' in shop.client.post("/a2a", json=body, headers={"a2a-version": "1.0"}).content


def _mcp_task(shop: Shop, number: int) -> bool:
    asks: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}, "elicitation": {}}
    sent = message("tools/call", {"name": "burn_book", "arguments": {"text": "x" * LARGE}}, capabilities=asks)
    return b'"result"' in shop.client.post("/mcp", json=sent, headers=headers_of(sent)).content


def _mcp_stream(method: str, params: Mapping[str, Any]) -> Act:
    def act(shop: Shop, number: int) -> bool:
        sent = message(method, params)
        return shop.keep(shop.client.follow("/mcp", sent, headers_of(sent)))

    return act


def _a2a(method: str, data: Mapping[str, Any]) -> Any:
    parts = [{"data": data}]
    params = {"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": parts}}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _a2a_stream(data: Mapping[str, Any]) -> Act:
    def act(shop: Shop, number: int) -> bool:
        body = _a2a("SendStreamingMessage", data)
        return shop.keep(shop.client.follow("/a2a", body, {"a2a-version": "1.0"}))

    return act


def _awp(shop: Shop, number: int) -> bool:
    return shop.keep_socket("/awp", lambda socket: "result" in AwpClient(socket).ask("awp.hello"))


def _awp_session(shop: Shop, number: int) -> bool:
    def greet(socket: Any) -> bool:
        caller = AwpClient(socket)
        caller.ask("awp.hello")
        return "result" in caller.ask("session.create")

    return shop.keep_socket("/awp", greet)


def _bridge(shop: Shop, number: int) -> bool:
    return shop.keep_socket("/actions-bridge", lambda socket: True)


CROWDS: Final[Mapping[str, Crowd]] = {
    "large jobs": Crowd(_job, 80, 20),
    "many jobs": Crowd(_small_job, MAX_JOBS_OF_CALLER + 10),
    "large recorded answers": Crowd(_answer, 80, 20),
    "large tasks of A2A": Crowd(_a2a_task, 80, 20),
    "large tasks of MCP": Crowd(_mcp_task, 80, 20),
    "streams of events by MCP": Crowd(_mcp_stream("events/stream", {"name": "sold"}), 510, holds=True),
    "listeners by MCP": Crowd(
        _mcp_stream("subscriptions/listen", {"notifications": {"toolsListChanged": True}}), 510, holds=True
    ),
    "streams of events by A2A": Crowd(_a2a_stream({"skill": "sold"}), 510, holds=True),
    "streams of jobs by A2A": Crowd(_a2a_stream({"skill": "print_book", "input": {"text": "x"}}), 510, holds=True),
    "connections of AWP": Crowd(_awp, 510, holds=True),
    "sessions of AWP": Crowd(_awp_session, 510, holds=True),
    "connections of the bridge": Crowd(_bridge, 1_010, holds=True),
}


# --- Judging ---


def _take(shop: Shop, crowd: Crowd, address: int, most: int) -> int:
    """Let the strangers of an address take what they get, and return how much that is."""
    shop.become(address)
    taken = refused = 0
    for number in range(most):
        is_served = crowd.act(shop, number)
        taken += is_served
        refused = 0 if is_served else refused + 1
        if refused == REFUSALS:
            break
    return taken


def judge(shop: Shop, crowd: Crowd) -> Iterator[str]:
    """Let a crowd in, and yield what is wrong."""
    before = shop.stored
    taken = _take(shop, crowd, 1, crowd.most)
    if not taken:
        yield "strangers are not served at all, so that nothing is tried"
    if crowd.holds and taken == crowd.most:
        yield f"one address has {taken} at a time, and may have more"
        return
    if (kept := shop.stored - before) > MOST_OF_ADDRESS:
        yield f"{taken} requests of one address left {kept / MIB:.0f} MiB in the store"
        return
    shop.become(2)
    if not crowd.act(shop, 0):
        yield f"a stranger of another address is refused after {taken} requests of one"
    others = crowd.of_others or crowd.most
    taken += sum(_take(shop, crowd, address, others) for address in range(2, 2 + ADDRESSES))
    if (kept := shop.stored - before) > MOST_OF_ALL:
        yield f"{taken} requests of {ADDRESSES + 1} addresses left {kept / MIB:.0f} MiB in the store"
    shop.become(999, TOKEN)
    if not crowd.act(shop, 0):
        yield f"a caller who is known is refused after {taken} requests of strangers"


def try_crowds(names: Mapping[str, Crowd] = CROWDS) -> list[str]:
    """Let each crowd into a shop of its own, and return what is wrong."""
    wrong = []
    for name, crowd in names.items():
        with tempfile.TemporaryDirectory() as folder:
            shop = Shop(Path(folder))
            try:
                wrong += [f"{name}: {words}" for words in judge(shop, crowd)]
            finally:
                shop.close()
    return wrong
