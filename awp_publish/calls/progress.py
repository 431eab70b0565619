"""`report_progress`: what a handler reports while it runs, for whoever follows its call.

A report is kept in memory until it is read: by a job's next heartbeat, or at once by an MCP or A2A caller who follows.
A handler may report as often as it likes.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from awp_publish.calls.call import Outcome

MAX_MESSAGE: Final = 500
"""Characters of a message that are kept."""

PROGRESS_INTERVAL: Final = 0.1
"""Seconds between two reports at least that a caller gets, because receivers of many may drop the connection."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a call: `fraction` from 0 to 1, and a message for people. Without a `total`, a count of bytes."""

    fraction: float
    message: str = ""
    total: float | None = 1.0


Listener: TypeAlias = Callable[[Progress], None]


class Report:
    """The latest progress that a run's handler reported.

    Updated in the handler's thread, where `listener` is called.
    """

    __slots__ = ("_listener", "latest")

    def __init__(self, listener: Listener | None = None) -> None:
        self.latest: Progress | None = None
        self._listener = listener

    def note(self, progress: Progress) -> None:
        self.latest = progress
        if self._listener is not None:
            self._listener(progress)


_REPORT: Final[ContextVar[Report | None]] = ContextVar("awp_publish_job_report", default=None)


def open_report(listener: Listener | None = None) -> Report:
    """Return a report that receives, from now on, what this task and those that it starts report."""
    report = Report(listener)
    _REPORT.set(report)
    return report


def report_progress(fraction: float, message: str = "") -> None:
    """Report the progress of the running job: `fraction` from 0 to 1, and a message for people.

    For use in handlers, `async def` or plain. Outside a background job, only callers who follow the call are told: of
    MCP with a progressToken, of A2A with a stream. Raises ValueError for a fraction outside this range.
    """
    if not 0 <= fraction <= 1:
        raise ValueError(f"fraction must be between 0 and 1, not {fraction!r}.")
    report = _REPORT.get()
    if report is not None:
        report.note(Progress(float(fraction), printable(message[:MAX_MESSAGE])))


class ProgressFeed:
    """The progress of one call for its caller, made in the event loop of the call: what its handler reports, in any
    thread, and the parts of a text that its route streams.
    """

    def __init__(self) -> None:
        self._loop, self._reported = asyncio.get_running_loop(), asyncio.Event()
        self._latest: Progress | None = None
        self._shown = -1.0
        self._received = 0

    def note(self, progress: Progress) -> None:
        """Take a report. May be called in any thread."""
        with suppress(RuntimeError):  # the loop of the call has ended
            self._loop.call_soon_threadsafe(self._take, progress)

    async def note_part(self, head: Outcome, part: bytes) -> bool:
        """Take a part of a streamed answer. Returns False: the caller still needs the whole."""
        self._received += len(part)
        if head.content is not None and head.content.charset:
            text = printable(part.decode(head.content.charset, "replace"))[:MAX_MESSAGE]
            self.note(Progress(self._received, text, None))
        return False

    async def until(self, ended: "asyncio.Future[Any]") -> AsyncGenerator[Progress, None]:
        """Yield each increase, at most ten a second, until the future is done."""
        ended.add_done_callback(lambda _: self._reported.set())
        while True:
            await self._reported.wait()
            self._reported.clear()
            if self._latest is not None and self._latest.fraction > self._shown:
                self._shown = self._latest.fraction
                yield self._latest
            if ended.done():
                return
            await asyncio.wait({ended}, timeout=PROGRESS_INTERVAL)

    def _take(self, progress: Progress) -> None:
        self._latest = progress
        self._reported.set()


def printable(text: str) -> str:
    """Replace lone surrogates, which JSON cannot represent."""
    return text.encode("utf-8", "replace").decode()
