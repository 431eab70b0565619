"""`JobStore`: the life cycle of background jobs in a store: accepted -> running -> done | failed | cancelled.

A job is a record under its id, and a member of a queue that is due when a worker has to look at it: at once when it is
accepted, and, while it runs, whenever its lease expires without having been renewed. Each change replaces exactly the
bytes that it was based on (compare and swap), so that of two concurrent changes only one succeeds.

One caller's jobs do not hold up those of others. Each caller has one turn: the job that has it waits in QUEUE, and
passes it on when it ends, to the job of the same caller that has waited longest. All other jobs wait in MORE, for which
workers use two slots less, so that callers with many long jobs leave slots to the turns of others. In MORE, the second
job of one caller comes before the third of another, unless that has waited a minute longer. A job that a worker has
taken is leased: it is a member of LEASED instead, and is due there if it has not begun, or its lease was not renewed,
in time. It then waits again, in front of those that wait where it was.

Until a job has ended it is also a member of two bounded queues, its caller's and that of all known or all unknown
callers (`_queue_of_all`). In its caller's it is due while it waits for the turn; the other one only counts.

The bytes of a record are reserved in the total of its caller as long as the record is kept, with its result; those of
unknown callers also in a total of all of them together, so that they leave room for known ones. A member of FORGOTTEN
says how many bytes to give back when the record has expired.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

from awp_publish.calls.call import KNOWN_SHARE, share_of
from awp_publish.model import JsonObject
from awp_publish.plugins.jobs.job import (
    Job,
    JobResult,
    Status,
    Stored,
    UnreadableJob,
    end_job,
    is_id,
    new_id,
    read_job,
    store_job,
    write_job,
)
from awp_publish.plugins.jobs.problems import JobEnded, JobInterrupted, JobQueueFull, TooManyJobs, UnknownJob
from awp_publish.problems import (
    AnswerNotKept,
    JobCancelled,
    Problem,
    StoreUnavailable,
    UnknownOperation,
)
from awp_publish.stores.store import JOB, Add, Counted, Look, Reserve, Schedule, Step, Store, Swap, Unschedule

logger: Final = logging.getLogger("awp_publish.plugins.jobs")

QUEUE: Final = "{jobs}waiting"

MORE: Final = "{jobs}more"

LEASED: Final = "{jobs}leased"

_QUEUES: Final = (QUEUE, MORE, LEASED)

ALL_JOBS: Final = "{jobs}all"

ALL_UNKNOWN: Final = "{jobs}all:unknown"

FORGOTTEN: Final = "{jobs}forgotten"
"""The queue of records whose bytes are given back: members are due when their record has expired."""

MAX_JOBS: Final = 10_000
"""Unfinished jobs of all known callers, and of all unknown ones half as many; further ones are refused."""

MAX_JOBS_OF_CALLER: Final = 1_000
"""Unfinished jobs of one caller: a known one, or an address for callers who are not known."""

BYTES_OF_UNKNOWN: Final = "{jobs}bytes"
"""The key of the bytes of all unknown callers together."""

ABSENT_PAUSE: Final = 2.0
"""Maximum seconds, and half of them the minimum, until a job is taken again that found a worker without its action.

They are random: after the same pause, the worker that had given the job back would be the first to look each time.
"""

RECORD_BYTES: Final = 1024
"""Bytes that a job needs in the store besides its record: keys, and members of queues."""

MIB: Final = 1024 * 1024


class ByteLimits(NamedTuple):
    """Bytes of jobs and their kept results: of a known caller, of the unknown ones of an address, of all unknown ones.

    With these, unknown callers leave more than half of a `MemoryStore` to others.
    """

    of_caller: int = 128 * MIB
    of_address: int = 32 * MIB
    of_unknown: int = 96 * MIB


FULL_RETRY_SECONDS: Final = 60
"""Seconds after which a job may be tried again for which no bytes were left."""

FORGET_SECONDS: Final = 60.0
"""Seconds between two searches for expired records, and until an expired one is looked at again after a failure."""

MAX_FORGOTTEN: Final = 100
"""Expired records that are handled at a time."""

EXPIRY_MARGIN: Final = 1.0
"""Seconds after which a record has expired for certain."""

HEAD_START: Final = 60.0
"""Seconds by which each further job of a caller is ranked later among the jobs of others."""

RETRY_SECONDS: Final = 10

RESULT_SECONDS: Final = 86_400.0
"""Seconds for which the result of a job can be polled."""

UNREADABLE_SECONDS: Final = 3600.0
"""Seconds until an unreadable record is looked at again: a newer version may have written it."""

MAX_ATTEMPTS: Final = 3
"""Runs of a repeatable job whose workers died; after these the job itself is assumed to be the cause."""

MAX_TRIES: Final = 20
"""Attempts to change a job that others change at the same time."""

Failed: TypeAlias = Literal["record", "bytes", "heir"] | None
"""The obstacle to writing a final state: the job or its heir was changed by others, or there are no bytes left."""

IsRepeatable: TypeAlias = Callable[[str], bool | None]
"""Returns whether an action may run again after a run was cut short; None if the site has no such action."""


class Live(Protocol):
    """A run in this process, which can be cancelled at once instead of at its next heartbeat."""

    @property
    def token(self) -> str: ...

    def cancel(self) -> None: ...


def _absent_pause() -> float:
    return random.uniform(ABSENT_PAUSE / 2, ABSENT_PAUSE)


class JobStore:
    """The background jobs of one store.

    A result can be polled for `result_seconds`; a job that is never run is forgotten after `pending_seconds`. A run
    renews its lease of `lease_seconds` every `beat_seconds`. While a new version of a site is deployed, old workers
    take jobs whose action they have not got: such a job waits `absent_seconds` for a worker that has it. At most `most`
    unfinished jobs are accepted from all known callers, half as many from unknown ones, and `most_of_caller` from one
    caller, with at most `most_bytes`.
    """

    Unknown: Final = UnknownJob
    Ended: Final = JobEnded
    Interrupted: Final = JobInterrupted
    """What it raises, and how a job may end, for doors that have their tasks run as jobs."""

    def __init__(
        self,
        store: Store,
        *,
        result_seconds: float = RESULT_SECONDS,
        pending_seconds: float = 604_800.0,
        lease_seconds: float = 30.0,
        beat_seconds: float = 2.0,
        absent_seconds: float = 600.0,
        most: int = MAX_JOBS,
        most_of_caller: int = MAX_JOBS_OF_CALLER,
        most_bytes: ByteLimits = ByteLimits(),  # noqa: B008
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.store = store
        self.lease_seconds = lease_seconds
        self.beat_seconds = beat_seconds
        self._absent_seconds = absent_seconds
        self.clock = clock
        self.result_seconds = result_seconds
        self._pending_seconds = pending_seconds
        self._most = most
        self._most_of_caller = most_of_caller
        self._most_bytes = most_bytes
        self.announced: tuple[str, Callable[[], None]] | None = None
        """The queue in which ended jobs are announced, and a callback that wakes its reader; None if nobody is told."""
        self._live: dict[str, Live] = {}
        self._listeners: tuple[Callable[[], None], ...] = ()

    async def accept(
        self,
        action: str,
        arguments: JsonObject,
        *,
        principal: str = "",
        request_id: str = "",
        door: str = "",
        context: JsonObject | None = None,
        share: str = "",
    ) -> Job:
        """Accept a call as a job. When this returns, the job survives a power failure.

        `share` names the quota of a caller who is not known; that of a known one is its principal. Raises TooManyJobs,
        JobQueueFull, StoreUnavailable.
        """
        now = self.clock()
        job = Job(
            id=new_id(),
            action=action,
            input=arguments,
            principal=principal,
            request_id=request_id,
            door=door,
            context=context or {},
            share=share_of(principal, "") if principal else share,
            created=now,
            updated=now,
        )
        job = replace(job, reserved=len(write_job(job)) + RECORD_BYTES)
        try:
            job = await self._queue(job)
        except (TooManyJobs, JobQueueFull):
            if not await self.forget():
                raise
            job = await self._queue(job)
        for listener in self._listeners:
            listener()
        return job

    async def _queue(self, job: Job) -> Job:
        """Put a job into the store, and return it. Most callers have only one, so that case is tried first."""
        pending, most = self._pending_seconds, self._most if job.principal else self._most // 2
        queued = replace(job, has_turn=True)
        add = Add(_key(job.id), write_job(queued), pending)
        in_all = Schedule(_queue_of_all(job.share), job.id, pending, most)
        of_caller = Schedule(_queue_of_caller(job.share), job.id, pending, self._most_of_caller)
        bytes_of = self._reserve(job.share, job.reserved)
        expiry = Schedule(FORGOTTEN, _expiry_of(job.id, job.reserved, job.share), pending + EXPIRY_MARGIN)
        has_room: tuple[Step, ...] = (add, of_caller, in_all, *bytes_of)
        turn, first = Schedule(_turn_of(job.share), job.id, pending, 1), Schedule(QUEUE, job.id, 0.0)
        ran = await self.store.run((*has_room, turn, first, expiry), durable=True)
        if ran.failed == len(has_room) and isinstance(others := ran.seen[1], Counted):  # another job has the turn
            head_start = min((others.events - self._most_of_caller) * HEAD_START, 0.0)
            queued = job
            has_room = (add._replace(value=write_job(job)), of_caller._replace(delay=0.0), in_all, *bytes_of)
            ran = await self.store.run((*has_room, Schedule(MORE, job.id, head_start), expiry), durable=True)
        if ran.failed is None:
            return queued
        of_all = "" if job.principal else " of anonymous callers"
        yours = f"{of_all} from your address" if of_all else " of yours"
        retry = [("Retry-After", str(RETRY_SECONDS))]
        match ran.failed:
            case 1:
                raise TooManyJobs(f"{self._most_of_caller} jobs{yours} have not ended.", headers=retry)
            case 2:
                raise JobQueueFull(f"{most} jobs{of_all} have not ended.", headers=retry)
            case 3:
                raise self._too_large(TooManyJobs, job, bytes_of[0], yours)
            case 4:
                raise self._too_large(JobQueueFull, job, bytes_of[1], of_all)
            case _:
                raise _busy()

    def _reserve(self, share: str, amount: int, *, is_bounded: bool = True) -> list[Reserve]:
        """Return the steps that reserve bytes of a share, or give some back."""
        seconds, most = self._pending_seconds + self.result_seconds, self._most_bytes
        totals = [(f"{BYTES_OF_UNKNOWN}:{share}", most.of_caller)]
        if not share.startswith(KNOWN_SHARE):
            totals = [(f"{BYTES_OF_UNKNOWN}:{share}", most.of_address), (BYTES_OF_UNKNOWN, most.of_unknown)]
        return [Reserve(key, amount, most if is_bounded else None, seconds) for key, most in totals]

    def _too_large(self, kind: type[Problem], job: Job, total: Reserve, whose: str) -> Problem:
        """Return the refusal of a job for which no bytes are left."""
        return kind(
            f"The site keeps at most {total.most} bytes of jobs{whose} and their results, and has no room for the "
            f"{job.reserved} of this one. A result is kept for {self.result_seconds:g} seconds.",
            recovery="Cancel jobs that are not needed, or wait until some have ended or their results have expired; "
            "then send the same call again.",
            headers=[("Retry-After", str(FULL_RETRY_SECONDS))],
        )

    async def forget(self) -> int:
        """Give back what jobs took whose records have expired. Returns how many were handled, at most MAX_FORGOTTEN."""
        members = await self.store.take(FORGOTTEN, FORGET_SECONDS, MAX_FORGOTTEN)
        for member in members:
            job_id, reserved, share = member.split(" ", 2)
            # The first step holds only without a record: that of a job which runs for long is renewed.
            gone = Add(_key(job_id), b"", 0.0)
            queues = (*_QUEUES, _queue_of_all(share), _queue_of_caller(share), _turn_of(share))
            unschedule = [Unschedule(FORGOTTEN, member), *(Unschedule(queue, job_id) for queue in queues)]
            ran = await self.store.run([gone, *self._reserve(share, -int(reserved)), *unschedule])
            if ran.failed is not None:
                await self.store.run([Schedule(FORGOTTEN, member, self.result_seconds)])
        return len(members)

    async def show(self, job_id: str, principal: str) -> Job:
        """Return a job to the caller who started it, or, if that one was unknown, to anyone who knows its id.

        Raises UnknownJob, StoreUnavailable.
        """
        return (await self._find(job_id, principal)).job

    async def cancel(self, job_id: str, principal: str) -> Job:
        """Cancel a job: at once if it is not running yet, otherwise as soon as the run notices.

        Raises UnknownJob, JobEnded, StoreUnavailable.
        """
        for _ in range(MAX_TRIES):
            stored = await self._find(job_id, principal)
            if stored.job.has_ended:
                raise JobEnded(f"The job has already ended: it is {stored.job.status}.")
            if stored.job.status == "accepted":
                cancelled = await self.end(stored, "cancelled", _cancelled())
            elif stored.job.cancel_requested:
                return stored.job
            else:
                requested = replace(stored.job, cancel_requested=True, updated=self.clock())
                cancelled = await self.change(stored, requested, ())
                live = self._live.get(job_id)
                if cancelled is not None and live is not None and live.token == stored.job.worker:
                    live.cancel()
            if cancelled is not None:
                return cancelled.job
            await asyncio.sleep(0)
        raise _busy()

    async def _find(self, job_id: str, principal: str) -> Stored:
        try:
            stored = await self.look(job_id) if is_id(job_id) else None
        except UnreadableJob as error:
            raise StoreUnavailable("The record of the job cannot be read.", headers=[("Retry-After", "60")]) from error
        if stored is None or stored.job.principal not in ("", principal):
            raise UnknownJob("There is no such job, its result has expired, or somebody else started it.")
        return stored

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` whenever this process accepts a job. Returns a function that stops this."""
        self._listeners = (*self._listeners, listener)

        def unlisten() -> None:
            self._listeners = tuple(other for other in self._listeners if other is not listener)

        return unlisten

    async def look(self, job_id: str, *also: Step) -> Stored | None:
        """Return a job with its bytes, and carry out further steps; None if there is none.

        Raises UnreadableJob, StoreUnavailable.
        """
        raw = (await self.store.run((Look(_key(job_id)), *also))).seen[0]
        if not isinstance(raw, bytes):
            return None
        try:
            return Stored(read_job(raw, job_id), raw)
        except UnreadableJob as error:
            logger.error("job %s: %s", job_id, error)
            raise

    async def pick(self, job_id: str, is_repeatable: IsRepeatable, lease: float | None = None) -> Stored | None:
        """Lease a job that was taken from QUEUE or MORE. Returns it if it still has to be run.

        If it has not begun after `lease` seconds, it waits again where it was: see `reclaim`.
        """
        lease = self.lease_seconds if lease is None else lease
        try:
            stored = await self.look(job_id, Schedule(LEASED, job_id, lease), *_unschedule(job_id, QUEUE, MORE))
        except UnreadableJob:
            await self.postpone(job_id, UNREADABLE_SECONDS)
            return None
        if stored is None or stored.job.has_ended:
            await self._sweep(job_id)
            return None
        if stored.job.status == "running":  # it has begun meanwhile, and was leased once more
            return None
        if is_repeatable(stored.job.action) is None:
            if self._may_come(stored.job):
                await self.put_back(stored, _absent_pause())
            else:
                await self._end_unknown(stored)
            return None
        return stored

    async def reclaim(self, job_id: str, is_repeatable: IsRepeatable, taken_at: datetime | None = None) -> None:
        """Decide about a job whose lease has ended, because its worker is gone or was slow.

        One that has not begun waits again, first of those where it was. One that runs waits for another run if it is
        repeatable, and otherwise ends as JobInterrupted; one that has begun since it was `taken_at` is left alone.
        """
        try:
            stored = await self.look(job_id)
        except UnreadableJob:
            await self.postpone(job_id, UNREADABLE_SECONDS)
            return
        if stored is None or stored.job.has_ended:
            await self._sweep(job_id)
            return
        job, repeatable = stored.job, is_repeatable(stored.job.action)
        if job.status == "accepted" and repeatable is not None:
            await self._wait_again(stored, job)
            return
        if job.status == "running" and taken_at is not None and job.updated > taken_at:
            return
        live = self._live.get(job_id)
        if live is not None and live.token == job.worker:
            await self.postpone(
                job_id, self.lease_seconds
            )  # it runs here: its lease expired while the store was unavailable
            return
        if repeatable is None and self._may_come(job):
            await self.postpone(job_id, _absent_pause())
        elif repeatable is None:
            await self._end_unknown(stored)
        else:
            await self.give_up(stored, repeatable)

    async def put_back(self, stored: Stored, delay: float) -> None:
        """Let a job that was leased wait again in `delay` seconds, behind those that wait already."""
        await self._wait_again(stored, stored.job, delay)

    async def _wait_again(
        self, stored: Stored, job: Job, delay: float | None = None, *, durable: bool = False
    ) -> Stored | None:
        """Let a job that was leased wait again, by default in front; in the turn of its share if no other job has it.

        Returns None, with nothing done, if somebody else changed its record.
        """
        delay = -self._most_of_caller * HEAD_START if delay is None else delay
        unlease = _unschedule(job.id, *_QUEUES)
        turn = Schedule(_turn_of(job.share), job.id, self._pending_seconds, 1)
        of_caller = Schedule(_queue_of_caller(job.share), job.id, self._pending_seconds)
        in_turn: list[Step] = [turn, of_caller, *unlease, Schedule(QUEUE, job.id, delay)]
        waiting = await self.change(stored, replace(job, has_turn=True), in_turn, durable=durable)
        if waiting is not None or job.has_turn:
            return waiting
        more: list[Step] = [of_caller._replace(delay=delay), *unlease, Schedule(MORE, job.id, delay)]
        return await self.change(stored, job, more, durable=durable)

    def _may_come(self, job: Job) -> bool:
        """Return whether a worker with the action of a job, which this one does not have, may yet come."""
        return (self.clock() - job.updated).total_seconds() < self._absent_seconds

    async def _end_unknown(self, stored: Stored) -> None:
        detail = f'The site no longer has action "{stored.job.action}".'
        await self.end(stored, "failed", UnknownOperation(detail))

    async def _sweep(self, job_id: str) -> None:
        """Remove a job that has ended from the queues that may still have it."""
        await self.store.run(_unschedule(job_id, *_QUEUES, ALL_JOBS, ALL_UNKNOWN))

    async def give_up(self, stored: Stored, repeatable: bool, *, on_purpose: bool = False) -> Stored | None:
        """Settle a job whose run was cut short: it waits for another run, or ends.

        Returns the job if it waits again. A run that was stopped `on_purpose` does not count as an attempt.
        """
        job = stored.job
        if job.cancel_requested:
            await self.end(stored, "cancelled", _cancelled())
            return None
        if not repeatable:
            await self.end(stored, "failed", JobInterrupted("The worker was stopped while it ran this job."))
            return None
        if job.attempt >= MAX_ATTEMPTS and not on_purpose:
            detail = f"The worker was stopped each of the {job.attempt} times that it ran this job."
            await self.end(stored, "failed", JobInterrupted(detail))
            return None
        attempt = job.attempt - 1 if on_purpose else job.attempt
        waiting = replace(job, status="accepted", worker="", attempt=attempt, progress=None, updated=self.clock())
        return await self._wait_again(stored, waiting, durable=True)

    async def begin(self, stored: Stored, repeatable: bool) -> Stored | None:
        """Claim an accepted job under a new token. Returns None if another worker was quicker.

        The claim on a job that must not run twice is durable, so that a power failure cannot undo it.
        """
        job = stored.job
        running = replace(job, status="running", worker=new_id(), attempt=job.attempt + 1, updated=self.clock())
        of_caller = Schedule(_queue_of_caller(job.share), job.id, self._pending_seconds)  # it waits for no turn
        lease: list[Step] = [*_unschedule(job.id, QUEUE, MORE), Schedule(LEASED, job.id, self.lease_seconds), of_caller]
        return await self.change(stored, running, lease, durable=not repeatable)

    async def beat(self, stored: Stored) -> Stored | None:
        """Renew the lease of a running job and record its progress.

        Returns None if somebody else changed the record.
        """
        beating = replace(stored.job, updated=self.clock())
        return await self.change(stored, beating, (Schedule(LEASED, beating.id, self.lease_seconds),))

    async def postpone(self, job_id: str, delay: float) -> None:
        """Look at a job again after `delay` seconds."""
        await self.store.run((Schedule(LEASED, job_id, delay), *_unschedule(job_id, QUEUE, MORE)))

    async def end(self, stored: Stored, status: Status, result: JobResult | Problem) -> Stored | None:
        """Write a job's final state. Returns None if somebody else changed the record.

        A result for which an unknown caller has no bytes left is not kept: the job ends as AnswerNotKept.
        """
        ended = store_job(end_job(stored.job, status, result, self.clock()))
        is_bounded = not stored.job.principal
        for _ in range(MAX_TRIES):
            heir = await self._find_heir(stored.job) if stored.job.has_turn else None
            failed = await self._write_end(stored, ended, heir, is_bounded=is_bounded)
            if heir is not None and failed in ("record", "bytes"):
                await self._wait_for_turn_again(heir)
            if failed == "bytes":
                detail = f"The action succeeded, but its answer of {len(ended.raw)} bytes could not be stored."
                ended = store_job(end_job(stored.job, "failed", AnswerNotKept(detail), self.clock()))
                is_bounded = False
            elif failed != "heir":
                break
        if self.announced is not None:
            self.announced[1]()
        return ended if failed is None else None

    async def _find_heir(self, job: Job) -> Stored | None:
        """Return the job that has waited longest for the turn of a job's caller, None if none waits."""
        for _ in range(MAX_TRIES):
            waiting = await self.store.take(_queue_of_caller(job.share), self.lease_seconds, 1)
            if not waiting:
                break
            with suppress(UnreadableJob):
                stored = await self.look(waiting[0])
                if stored is not None and stored.job.status == "accepted" and stored.job.id != job.id:
                    return stored
        return None

    async def _wait_for_turn_again(self, heir: Stored) -> None:
        """Give an heir that was not needed its place in front of its caller's other jobs, unless it has changed."""
        job, pending = heir.job, self._pending_seconds
        in_front = Schedule(_queue_of_caller(job.share), job.id, -self._most_of_caller * HEAD_START)
        await self.store.run([Swap(_key(job.id), heir.raw, heir.raw, pending), in_front])

    async def _write_end(self, stored: Stored, ended: Stored, heir: Stored | None, *, is_bounded: bool) -> Failed:
        """Write a final state, and pass the turn of the job on to its heir. Returns what kept it from that."""
        job, reserved = stored.job, len(ended.raw) + RECORD_BYTES
        bytes_of = self._reserve(job.share, reserved - job.reserved, is_bounded=is_bounded)
        steps: list[Step] = [Swap(_key(job.id), stored.raw, ended.raw, self.result_seconds), *bytes_of]
        of_caller, turn = _queue_of_caller(job.share), _turn_of(job.share)
        steps += _unschedule(job.id, *_QUEUES, _queue_of_all(job.share), of_caller, turn)
        if heir is not None:
            next_id, pending = heir.job.id, self._pending_seconds
            steps.append(Swap(_key(next_id), heir.raw, write_job(replace(heir.job, has_turn=True)), pending))
            steps += [Schedule(queue, next_id, pending) for queue in (of_caller, turn)]
            steps += [Schedule(QUEUE, next_id, 0.0), *_unschedule(next_id, MORE, LEASED)]
        steps.append(Unschedule(FORGOTTEN, _expiry_of(job.id, job.reserved, job.share)))
        steps.append(Schedule(FORGOTTEN, _expiry_of(job.id, reserved, job.share), self.result_seconds + EXPIRY_MARGIN))
        if self.announced is not None:
            steps.append(Schedule(self.announced[0], job.id, 0.0))
        failed = (await self.store.run(steps, durable=True)).failed
        if failed is None:
            return None
        return "record" if failed == 0 else "bytes" if failed <= len(bytes_of) else "heir"

    async def change(self, stored: Stored, job: Job, also: Sequence[Step], *, durable: bool = False) -> Stored | None:
        """Replace a record, together with further steps.

        Returns None, with nothing done, if somebody else changed it.
        """
        changed = store_job(job)
        swap = Swap(_key(job.id), stored.raw, changed.raw, self._pending_seconds)
        ran = await self.store.run((swap, *also), durable=durable)
        return changed if ran.failed is None else None

    def enter(self, job_id: str, live: Live) -> None:
        """Register a run of this process."""
        self._live[job_id] = live

    def leave(self, job_id: str, live: Live) -> None:
        """Unregister a run of this process."""
        if self._live.get(job_id) is live:
            del self._live[job_id]


def _key(job_id: str) -> str:
    return JOB + job_id


def _queue_of_caller(share: str) -> str:
    return f"{{jobs}}of {share}"


def _turn_of(share: str) -> str:
    return f"{{jobs}}turn of {share}"


def _unschedule(job_id: str, *queues: str) -> list[Unschedule]:
    return [Unschedule(queue, job_id) for queue in queues]


def _queue_of_all(share: str) -> str:
    return ALL_JOBS if share.startswith(KNOWN_SHARE) else ALL_UNKNOWN


def _expiry_of(job_id: str, reserved: int, share: str) -> str:
    """Return the member of FORGOTTEN for a record that takes `reserved` bytes of a share."""
    return f"{job_id} {reserved} {share}"


def _cancelled() -> JobCancelled:
    return JobCancelled("The job was cancelled at its caller's request.")


def _busy() -> StoreUnavailable:
    return StoreUnavailable("The job is being changed by another request; try again.", headers=[("Retry-After", "1")])
