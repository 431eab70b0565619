"""`report_progress`: what a handler reports while it runs, for whoever follows its call.

A report is kept in memory until it is read: by a job's next heartbeat, or at once by an MCP caller who follows. A
handler may report as often as it likes.
"""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, TypeAlias

MAX_MESSAGE: Final = 500
"""Characters of a message that are kept."""


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

    For use in handlers, `async def` or plain. Outside a background job, only MCP callers who asked for progress are
    told. Raises ValueError for a fraction outside this range.
    """
    if not 0 <= fraction <= 1:
        raise ValueError(f"fraction must be between 0 and 1, not {fraction!r}.")
    report = _REPORT.get()
    if report is not None:
        report.note(Progress(float(fraction), printable(message[:MAX_MESSAGE])))


def printable(text: str) -> str:
    """Replace lone surrogates, which JSON cannot represent."""
    return text.encode("utf-8", "replace").decode()
