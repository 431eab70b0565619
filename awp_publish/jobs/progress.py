"""`report_progress`: how a handler says how far it is.

What is reported is kept in memory; the heartbeat of the run takes it to the store. So reporting costs a handler
nothing, however often it does it.
"""

from contextvars import ContextVar
from typing import Final

from awp_publish.jobs.record import Progress, printable

LONGEST: Final = 500
"""Characters of a message that are kept."""


class Report:
    """What the handler of one run said last. Written in whichever thread the handler runs in."""

    __slots__ = ("latest",)

    def __init__(self) -> None:
        self.latest: Progress | None = None


_REPORT: Final[ContextVar[Report | None]] = ContextVar("awp_publish_job_report", default=None)


def open_report() -> Report:
    """From now on, what is reported in this task and what it starts is kept in the report that is returned."""
    report = Report()
    _REPORT.set(report)
    return report


def report_progress(fraction: float, message: str = "") -> None:
    """Say how far the job is that is being run: `fraction` from 0 to 1, and a word for people.

    For use in handlers, `async def` and plain ones. Outside of a background job it does nothing. Raises ValueError for
    a fraction that is none.
    """
    if not 0 <= fraction <= 1:
        raise ValueError(f"A fraction lies between 0 and 1, which {fraction!r} does not.")
    report = _REPORT.get()
    if report is not None:
        report.latest = Progress(float(fraction), printable(message[:LONGEST]))
