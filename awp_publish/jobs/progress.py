"""`report_progress`: how a handler says how far it is.

What is reported is kept in memory; the heartbeat of the run takes it to the store. So reporting costs a handler
nothing, however often it does it.
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, TypeAlias

from awp_publish.jobs.record import Progress, printable

LONGEST: Final = 500
"""Characters of a message that are kept."""


Heard: TypeAlias = Callable[[Progress], None]


class Report:
    """What the handler of one run said last. Written in whichever thread the handler runs in, where `heard` is told."""

    __slots__ = ("_heard", "latest")

    def __init__(self, heard: Heard | None = None) -> None:
        self.latest: Progress | None = None
        self._heard = heard

    def note(self, progress: Progress) -> None:
        self.latest = progress
        if self._heard is not None:
            self._heard(progress)


_REPORT: Final[ContextVar[Report | None]] = ContextVar("awp_publish_job_report", default=None)


def open_report(heard: Heard | None = None) -> Report:
    """From now on, what is reported in this task and what it starts is kept in the report that is returned."""
    report = Report(heard)
    _REPORT.set(report)
    return report


def report_progress(fraction: float, message: str = "") -> None:
    """Say how far the job is that is being run: `fraction` from 0 to 1, and a word for people.

    For use in handlers, `async def` and plain ones. Outside of a background job it is told to callers of the MCP door
    who ask for progress, and else to nobody. Raises ValueError for a fraction that is none.
    """
    if not 0 <= fraction <= 1:
        raise ValueError(f"A fraction lies between 0 and 1, which {fraction!r} does not.")
    report = _REPORT.get()
    if report is not None:
        report.note(Progress(float(fraction), printable(message[:LONGEST])))
