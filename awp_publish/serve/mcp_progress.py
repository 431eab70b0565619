"""Progress, for callers who ask for it with a `progressToken` (specification, Basic/Utilities/Progress).

Such a call is answered with a stream: notifications of what the handler reports, then the result. A background action's
job is followed to its end, for as long as the action may take; a job that has not ended by then is answered as it is
answered to everybody else, with the address to poll.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeAlias

import orjson
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.streamable_http import check_accept_headers
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request

from awp_publish.jobs import Job, Jobs, Progress
from awp_publish.jobs.worker import open_report
from awp_publish.policy.call import Call, Outcome, Result
from awp_publish.problems import Problem
from awp_publish.serve.jobs import describe_job
from awp_publish.serve.mcp_exchange import McpExchange
from awp_publish.serve.reply import Scope

PAUSE: Final = 0.1
"""Seconds between two notifications, at least: receivers of many may drop the connection."""

FIRST_LOOK: Final = 0.05
LONGEST_LOOK: Final = 2.0
"""Seconds between two looks at a job."""

Context: TypeAlias = ServerRequestContext[Any, Any]
Carry: TypeAlias = Callable[[], Awaitable[Result | None]]


def wants_progress(message: Mapping[str, object], scope: Scope) -> bool:
    """Whether a message is a call that is to be told of, in a stream that its caller takes."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    if message.get("method") != "tools/call" or isinstance(token, bool) or not isinstance(token, (str, int)):
        return False
    return check_accept_headers(Request(scope)) == (True, True)


class Teller:
    """Notifies one caller. The progress of notifications has to grow, so what does not is not told."""

    def __init__(self, session: ServerSession) -> None:
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._heard = asyncio.Event()
        self._latest: Progress | None = None
        self._told = -1.0

    def note(self, progress: Progress) -> None:
        """Take note of progress, in any thread."""
        with suppress(RuntimeError):  # the loop has ended, and the call with it
            self._loop.call_soon_threadsafe(self._take, progress)

    def _take(self, progress: Progress) -> None:
        self._latest = progress
        self._heard.set()

    async def tell(self) -> None:
        """Notify of what was noted last, if it is more than the caller knows."""
        latest = self._latest
        if latest is not None and latest.fraction > self._told:
            self._told = latest.fraction
            await self._session.report_progress(latest.fraction, 1.0, latest.message or None)

    async def keep_telling(self) -> None:
        """Notify again and again."""
        while True:
            await self._heard.wait()
            self._heard.clear()
            await self.tell()
            await asyncio.sleep(PAUSE)


@asynccontextmanager
async def _telling(session: ServerSession) -> AsyncIterator[Teller]:
    """A teller of all that is reported inside."""
    teller = Teller(session)
    open_report(teller.note)
    task = asyncio.create_task(teller.keep_telling())
    try:
        yield teller
        await asyncio.sleep(0)  # what another thread noted last comes in
    finally:
        task.cancel()
        await asyncio.wait({task})
    await teller.tell()


class ProgressCalls:
    """Carries out calls whose progress is told."""

    def __init__(self, jobs: Jobs | None) -> None:
        self._jobs = jobs

    async def carry(self, context: Context, exchange: McpExchange, call: Call, carry: Carry) -> Result | None:
        """What a call comes to, and a background call's job; None if its caller has gone."""
        async with _telling(context.session) as teller:
            result = await carry()
            if (
                exchange.is_answered
                or self._jobs is None
                or not call.action.is_background
                or not isinstance(result, Outcome)
            ):
                return result
            return await self._follow(self._jobs, context, exchange, call, result, teller)

    async def _follow(
        self, jobs: Jobs, context: Context, exchange: McpExchange, call: Call, accepted: Outcome, teller: Teller
    ) -> Result | None:
        answer = orjson.loads(accepted.body)
        following = asyncio.create_task(_end_of(jobs, answer["job_id"], call.caller_id, teller.note))
        leaving = asyncio.create_task(exchange.gone())
        try:
            await asyncio.wait({following, leaving}, timeout=call.action.timeout, return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                return _answer_of(following.result(), accepted, answer["poll_endpoint"])
            if not leaving.done():
                return accepted
            await self._heed_leaving(jobs, context, call, answer["job_id"])
            return None
        finally:
            for task in (following, leaving):
                task.cancel()
            await asyncio.wait({following, leaving})

    async def _heed_leaving(self, jobs: Jobs, context: Context, call: Call, job_id: str) -> None:
        """Closing the stream cancels since 2026-07-28, and did not before. A key says that the caller comes back."""
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS and call.idempotency_key is None:
            with suppress(Problem):
                await jobs.cancel(job_id, call.caller_id)


async def _end_of(jobs: Jobs, job_id: str, caller: str, note: Callable[[Progress], None]) -> Job | None:
    """The job once it has ended; None if it is gone, or its store is away."""
    pause = FIRST_LOOK
    with suppress(Problem):
        while not (job := await jobs.show(job_id, caller)).has_ended:
            if job.progress is not None:
                note(job.progress)
            await asyncio.sleep(pause)
            pause = min(1.5 * pause, LONGEST_LOOK)
        return job
    return None


def _answer_of(job: Job | None, accepted: Outcome, endpoint: str) -> Result:
    """What a poll would answer; a job that has failed is told as the problem that it met."""
    if job is None:
        return accepted
    if job.problem is not None:
        return job.problem
    described = orjson.dumps(describe_job(job, endpoint))
    return Outcome(described, None, 200, accepted.headers)
