"""Timing ASGI applications in process, side by side.

Requests are made before the clock starts, so that the cost of building their scopes is not measured. Every round times
each case for a few milliseconds, in an order that is shuffled: turning it round would keep neighbours, and what the one
leaves in the processor's cache. What is reported is the median, over all rounds, of the ratio of two cases of the same
round. A busy machine slows both sides of such a pair alike.
"""

import asyncio
import gc
import random
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, TypeAlias

import uvloop

from awp_publish.http.exchange import AsgiApp, Message, RawHeaders, Receive, Scope, Send

SLICE: Final = 0.004
"""Seconds that one case is timed for in one round."""

MOST_REQUESTS: Final = 400
"""Requests of a slice; more of them would no longer stay in the processor's cache."""

LEAST_ROUNDS: Final = 5

LOOPS: Final[Mapping[str, Callable[[], asyncio.AbstractEventLoop]]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}

Exchange: TypeAlias = tuple[Scope, Receive, Send]
Series: TypeAlias = list[float]
Found: TypeAlias = dict[str, dict[str, Series]]
"""For each event loop, by the cases' names, what every round measured."""


@dataclass(slots=True)
class Answer:
    """What an application answered."""

    status: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Case:
    """An application and the request it is timed with. `fresh` gives each request headers of its own, a key say.

    `at_once` requests are under way at any time. `clock` is `thread_time` for what never waits: the time that this
    thread has computed, whatever else the machine does meanwhile.
    """

    name: str
    app: AsgiApp
    path: str
    method: str = "GET"
    headers: RawHeaders = ()
    body: bytes = b""
    fresh: Callable[[], RawHeaders] | None = None
    at_once: int = 1
    clock: Callable[[], float] = time.perf_counter

    def exchange(self, send: Send) -> Exchange:
        return self._scope(), _receiver(self.body), send

    def _headers(self) -> RawHeaders:
        own = {name for name, _ in self.headers}
        usual = (pair for pair in USUAL_HEADERS if pair[0] not in own)
        return (*usual, *self.headers, *(self.fresh() if self.fresh is not None else ()))

    def _scope(self) -> Scope:
        """What uvicorn passes for a request of an ordinary client."""
        path, _, query = self.path.partition("?")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "server": ("127.0.0.1", 8000),
            "client": (_address(next(_requests)) if self.fresh is not None else "127.0.0.1", 50000),
            "scheme": "http",
            "root_path": "",
            "method": self.method,
            "path": path,
            "raw_path": path.encode("ascii"),
            "query_string": query.encode("ascii"),
            "headers": [(_copied(name), _copied(value)) for name, value in self._headers()],
            "state": {},
        }


_requests: Final = count()


def _address(number: int) -> str:
    """Return one address for each hundred requests: what unknown callers of one may keep is bounded."""
    return f"10.{number // 6_553_600 % 256}.{number // 25_600 % 256}.{number // 100 % 256}"


def _copied(text: bytes) -> bytes:
    """New bytes, as a server reads them from its connection: nothing about them is known from an earlier request."""
    return bytes(bytearray(text))


USUAL_HEADERS: Final[RawHeaders] = (
    (b"host", b"books.example"),
    (b"user-agent", b"python-httpx/0.28.1"),
    (b"accept", b"*/*"),
    (b"connection", b"keep-alive"),
)


def _receiver(body: bytes) -> Receive:
    """Hands out a body once; the caller never hangs up."""
    waiting = [body]

    async def receive() -> Message:
        if not waiting:
            await asyncio.Future()
        return {"type": "http.request", "body": waiting.pop(), "more_body": False}

    return receive


async def ask(case: Case) -> Answer:
    """One request, for its answer. Every case is asked, and its answer checked, before it is timed."""
    answer = Answer()

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            answer.status, answer.headers = message["status"], list(message["headers"])
        else:
            answer.body += message.get("body", b"")

    await case.app(*case.exchange(send))
    return answer


async def same(case: Case, wanted: Answer) -> Case:
    """The case, asserted to give the wanted status and bytes."""
    answer = await ask(case)
    assert (answer.status, answer.body) == (wanted.status, wanted.body), case.name
    return case


async def _discard(message: Message) -> None:
    pass


async def time_slice(case: Case, count: int) -> float:
    """Microseconds a request, over `count` requests that were made before."""
    app, clock = case.app, case.clock
    exchanges = [case.exchange(_discard) for _ in range(count)]
    started = clock()
    if case.at_once == 1:
        for scope, receive, send in exchanges:
            await app(scope, receive, send)
    else:
        waiting = iter(exchanges)
        await asyncio.gather(*(_answer_some(app, waiting) for _ in range(case.at_once)))
    return (clock() - started) / count * 1e6


async def _answer_some(app: AsgiApp, waiting: Iterator[Exchange]) -> None:
    for scope, receive, send in waiting:
        await app(scope, receive, send)


async def _count(case: Case) -> int:
    await time_slice(case, 20)
    cost = min([await time_slice(case, 20) for _ in range(3)])
    return max(10, min(MOST_REQUESTS, int(SLICE * 1e6 / cost)))


async def interleave(cases: Sequence[Case], seconds: float) -> dict[str, Series]:
    """Microseconds a request of every case, one figure a round, for about `seconds`."""
    counts = {case.name: await _count(case) for case in cases}
    series: dict[str, Series] = {case.name: [] for case in cases}
    turn, finish, order = 0, time.monotonic() + seconds, list(cases)
    gc.collect()
    while turn < LEAST_ROUNDS or time.monotonic() < finish:
        turn += 1
        random.shuffle(order)
        for case in order:
            series[case.name].append(await time_slice(case, counts[case.name]))
    return series


def on_each_loop(work: Callable[[], Coroutine[Any, Any, dict[str, Series]]]) -> Found:
    """The same measurement on asyncio's own event loop and on uvloop."""
    found = {}
    for name, factory in LOOPS.items():
        with asyncio.Runner(loop_factory=factory) as runner:
            found[name] = runner.run(work())
    return found
