"""A small shop for tests of guarded calls: two callers with tokens, and the words with which they call."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import orjson
from starlette.applications import Starlette

from awp_publish import AgentPublisher, BearerToken, Principal, Site
from awp_publish.http.exchange import AsgiApp, Message
from awp_publish.stores.store import Ran, Step
from tests.client import TestClient

ANN = {"authorization": "Bearer ann-secret-token"}
BEN = {"authorization": "Bearer ben-secret-token"}
KEYS = ["a-secret-key-of-this-test-and-nobody-else"]


def known_callers() -> BearerToken:
    return BearerToken({"ann-secret-token": Principal("ann", frozenset({"buy"})), "ben-secret-token": "ben"})


def make_shop(**options: Any) -> Site:
    return Site("Shop", "Sells things.", url="https://shop.example", **options)


def publish(site: Site, open_client, app: AsgiApp | None = None) -> TestClient:
    return open_client(AgentPublisher(app or Starlette(), site=site))


def invoke(client: TestClient, action: str, inputs: Any = None, headers: Any = None, **members: object):
    """Return the answer to a call at the plain door; `members` stand in the body beside the inputs."""
    return client.post(f"/agents/actions/{action}", json={**(inputs or {}), **members}, headers=headers)


def read(client: TestClient, action: str, inputs: Any = None, headers: Any = None):
    """Return the answer to a call of an action whose route is read."""
    return client.get(f"/agents/actions/{action}", params=inputs, headers=headers)


def invoke_agent(client: TestClient, agent: str, inputs: Any = None, headers: Any = None, **members: object):
    """Return the answer to a call at the WoA door; `members` stand in the envelope beside the input."""
    return client.post(f"/agents/{agent}/invoke", json={"input": inputs or {}, **members}, headers=headers)


def status_and_code(answer) -> tuple[int, str]:
    """Status and code of a refusal."""
    return answer.status_code, answer.json()["code"]


def poll(client, address, headers=None):
    """The job at an address once it has ended."""
    give_up = time.monotonic() + 30
    while True:
        answer = client.get(address, headers=headers)
        assert answer.status_code == 200, answer.text
        if answer.json()["status"] in ("done", "failed", "cancelled"):
            return answer
        assert time.monotonic() < give_up, answer.text
        time.sleep(0.01)


class Caller:
    """One call at the ASGI interface, which may hang up before it has its answer."""

    def __init__(self, app: AsgiApp, action: str, inputs: object, headers: Mapping[str, str] | None = None) -> None:
        self._app = app
        self._bodies = [orjson.dumps(inputs)]
        self._path = f"/agents/actions/{action}"
        sent = {"content-type": "application/json", "host": "shop.example", **(headers or {})}
        self._headers = [(name.encode(), value.encode()) for name, value in sent.items()]
        self._hung_up = asyncio.Event()
        self.answered = asyncio.Event()
        self.messages: list[Message] = []

    async def call(self) -> "Caller":
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "https",
            "path": self._path,
            "raw_path": self._path.encode(),
            "query_string": b"",
            "headers": self._headers,
            "server": ("shop.example", 443),
            "client": ("192.0.2.1", 1),
        }
        await self._app(scope, self._receive, self._send)
        return self

    def hang_up(self) -> None:
        self._hung_up.set()

    async def _receive(self) -> Message:
        if self._bodies:
            return {"type": "http.request", "body": self._bodies.pop(), "more_body": False}
        await self._hung_up.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self.messages.append(message)
        if message["type"] == "http.response.body":
            self.answered.set()

    @property
    def is_answered(self) -> bool:
        return len(self.messages) == 2

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.messages[0]["headers"])

    @property
    def body(self) -> bytes:
        return bytes(self.messages[1]["body"])

    @property
    def code(self) -> str:
        """The code of a refusal, "" for a success."""
        return str(orjson.loads(self.body)["code"]) if self.status >= 400 else ""


class Watched:
    """A store around another, which notes every run, may be told to fail, and to tell other bytes than are there."""

    def __init__(self, store) -> None:
        self._store = store
        self.runs: list[tuple[str, ...]] = []
        self.trouble: Callable[[Sequence[Step]], Awaitable[None]] | None = None
        self.told_instead: bytes | None = None

    @property
    def is_shared(self) -> bool:
        return bool(self._store.is_shared)

    async def run(self, steps, *, durable: bool = False) -> Ran:
        self.runs.append(tuple(type(step).__name__ for step in steps))
        if self.trouble is not None:
            await self.trouble(steps)
        ran = await self._store.run(steps, durable=durable)
        if self.told_instead is None:
            return Ran(*ran)
        return Ran(ran.failed, tuple(self.told_instead if isinstance(item, bytes) else item for item in ran.seen))

    async def take(self, queue: str, lease: float, most: int) -> tuple[str, ...]:
        return await self._store.take(queue, lease, most)

    async def close(self) -> None:
        await self._store.close()
