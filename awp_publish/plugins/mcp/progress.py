"""Progress of a call, and of a background job that a call follows."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from mcp.server.session import ServerSession

from awp_publish.calls.progress import Progress, ProgressFeed, open_report
from awp_publish.problems import Problem

POLL_INTERVAL: Final = 0.05


MAX_POLL_INTERVAL: Final = 2.0
"""Seconds between two polls of a job."""


@asynccontextmanager
async def notify_progress(session: ServerSession) -> AsyncIterator[ProgressFeed]:
    """Notify a client of progress that is reported inside of the block, in any thread. Only increases are sent."""
    feed, ended = ProgressFeed(), asyncio.get_running_loop().create_future()

    async def keep_notifying() -> None:
        async for progress in feed.until(ended):
            await session.report_progress(progress.fraction, progress.total, progress.message or None)

    open_report(feed.note)
    notifying = asyncio.create_task(keep_notifying())
    try:
        yield feed
        await asyncio.sleep(0)  # let the last report of another thread arrive
        ended.set_result(None)
        await notifying
    finally:
        notifying.cancel()
        await asyncio.wait({notifying})


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
