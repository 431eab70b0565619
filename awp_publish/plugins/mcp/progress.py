"""Progress of a call, and of a background job that a call follows."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from mcp.server.session import ServerSession

from awp_publish.calls.call import Outcome, TakePart
from awp_publish.calls.progress import MAX_MESSAGE, Progress, open_report, printable
from awp_publish.problems import Problem

PROGRESS_INTERVAL: Final = 0.1
"""Seconds between two notifications at least, because receivers of many may drop the connection."""


POLL_INTERVAL: Final = 0.05


MAX_POLL_INTERVAL: Final = 2.0
"""Seconds between two polls of a job."""


@asynccontextmanager
async def notify_progress(session: ServerSession) -> AsyncIterator[Callable[[Progress], None]]:
    """Notify a client of progress that is reported inside of the block, in any thread. Only increases are sent."""
    loop, reported, sent = asyncio.get_running_loop(), asyncio.Event(), -1.0
    latest: Progress | None = None

    def take(progress: Progress) -> None:
        nonlocal latest
        latest = progress
        reported.set()

    def note(progress: Progress) -> None:
        with suppress(RuntimeError):  # the loop of the call has ended
            loop.call_soon_threadsafe(take, progress)

    async def notify() -> None:
        nonlocal sent
        if latest is not None and latest.fraction > sent:
            sent = latest.fraction
            await session.report_progress(sent, latest.total, latest.message or None)

    async def keep_notifying() -> None:
        while True:
            await reported.wait()
            reported.clear()
            await notify()
            await asyncio.sleep(PROGRESS_INTERVAL)

    open_report(note)
    notifying = asyncio.create_task(keep_notifying())
    try:
        yield note
        await asyncio.sleep(0)  # let the last report of another thread arrive
    finally:
        notifying.cancel()
        await asyncio.wait({notifying})
    await notify()


def note_parts(note: Callable[[Progress], None]) -> TakePart:
    """Return what reports the parts of a text that a route streams, as they come. The result has the whole."""
    received = 0

    async def take(head: Outcome, part: bytes) -> bool:
        nonlocal received
        received += len(part)
        if head.content is not None and head.content.charset:
            note(Progress(received, printable(part.decode(head.content.charset, "replace"))[:MAX_MESSAGE], None))
        return False

    return take


async def follow_job(jobs: Any, job_id: str, caller: str, note: Callable[[Progress], None]) -> Any:
    """Return the job of the plug-in "jobs" once it has ended, or None if it was deleted or the store is unavailable."""
    pause = POLL_INTERVAL
    with suppress(Problem):
        while not (job := await jobs.show(job_id, caller)).has_ended:
            if job.progress is not None:
                note(job.progress)
            await asyncio.sleep(pause)
            pause = min(1.5 * pause, MAX_POLL_INTERVAL)
        return job
    return None
