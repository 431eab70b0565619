"""Loads a server over HTTP from one process, on connections that stay open, and times each answer.

One thread writes and reads raw bytes: it has to cost less than the server that it loads.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, cast

import uvloop

CONNECTIONS: Final = 32


@dataclass(frozen=True, slots=True)
class Load:
    """Answers a second, the 50th and 99th percentile of their times in milliseconds; `cpu` is the load's own processor
    time in microseconds a request."""

    rate: float
    p50: float
    p99: float
    cpu: float


class _Connection(asyncio.Protocol):
    """Sends the next request when an answer is complete."""

    def __init__(self, requests: Callable[[], bytes], until: float, times: list[float]) -> None:
        self._requests = requests
        self._until = until
        self._times = times
        self._read = b""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._send()

    def _send(self) -> None:
        self._sent = time.perf_counter()
        if self._sent >= self._until:
            self._transport.close()
            return
        self._transport.write(self._requests())

    def data_received(self, data: bytes) -> None:
        self._read += data
        head = self._read.find(b"\r\n\r\n")
        if head < 0:
            return
        at = self._read.lower().find(b"content-length:", 0, head)
        length = int(self._read[at + 15 : self._read.find(b"\r", at)])
        if len(self._read) < head + 4 + length:
            return
        if self._read[9:12] not in (b"200", b"304"):
            self._fail(AssertionError(f"the server answered {self._read[:500]!r}"))
            return
        self._times.append(time.perf_counter() - self._sent)
        self._read = b""
        self._send()

    def _fail(self, error: Exception) -> None:
        self._transport.close()
        if not self.ended.done():
            self.ended.set_exception(error)

    def connection_lost(self, error: Exception | None) -> None:
        if self._sent < self._until:
            self._fail(error or ConnectionError("the server closed a connection"))
        elif not self.ended.done():
            self.ended.set_result(None)


async def _run(port: int, requests: Callable[[], bytes], seconds: float, connections: int) -> Load:
    loop, times = asyncio.get_running_loop(), list[float]()
    start, cpu = time.perf_counter(), time.process_time()
    made = [
        await loop.create_connection(lambda: _Connection(requests, start + seconds, times), "127.0.0.1", port)
        for _ in range(connections)
    ]
    await asyncio.gather(*(protocol.ended for _, protocol in made))
    taken = time.perf_counter() - start
    times.sort()
    p50, p99 = (times[int(len(times) * part)] * 1000 for part in (0.5, 0.99))
    return Load(len(times) / taken, p50, p99, (time.process_time() - cpu) / len(times) * 1e6)


def load(port: int, requests: Callable[[], bytes], seconds: float, connections: int = CONNECTIONS) -> Load:
    """Load a port of this machine for some seconds."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_run(port, requests, seconds, connections))
