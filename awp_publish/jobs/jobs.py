"""`JobStore`: the life of background jobs in a store: accepted -> running -> done | failed | cancelled.

A job is a record under its id, and a member of a queue that is due when somebody has to look at it: at once when it is
accepted, and while it runs whenever its lease ends without having been renewed. Every change replaces exactly the bytes
that it was decided upon, so that of two who want to change a job only one does.

JobStore of one caller do not keep those of others waiting. A job whose caller has no other is queued in QUEUE, like one
whose run was cut short; all further ones in MORE, for which workers keep one slot less, and there the second job of one
caller comes before the third of another, unless that has waited a minute longer. Until a job has ended it also is a
member of two bounded queues that nobody takes from, ALL_JOBS and its caller's.
"""

import asyncio
import logging
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias, get_args
from zlib import crc32

import orjson

from awp_publish.model import JsonObject, utc_text
from awp_publish.problems import (
    ALL,
    JobCancelled,
    JobEnded,
    JobInterrupted,
    JobQueueFull,
    Problem,
    StoreUnavailable,
    TooManyJobs,
    UnknownJob,
    UnknownOperation,
    Violation,
)
from awp_publish.stores.store import JOB, Add, Counted, Look, Schedule, Step, Store, Swap, Unschedule

# --- `Job`: what is known of one background job, and the same as bytes for a store ---
# The bytes are one line of JSON and, after it, the action's own JSON text as it was: a poll hands that text on
# without reading it. Records are compared byte by byte when they are replaced, so whoever replaces one keeps the
# bytes it read.

Status: TypeAlias = Literal["accepted", "running", "done", "failed", "cancelled"]

ENDED: Final = frozenset({"done", "failed", "cancelled"})
_ID: Final = re.compile(r"[A-Za-z0-9_-]{22}")
_CLASSES: Final = {problem.slug: problem for problem in ALL}


class UnreadableJob(Exception):
    """The bytes of a record are not what this version writes."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a job: `fraction` from 0 to 1, and a word for people."""

    fraction: float
    message: str = ""


@dataclass(frozen=True, slots=True)
class JobResult:
    """The answer of an action: HTTP status, the headers worth carrying to the caller, and JSON text."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One call that runs in the background.

    `principal` is the id of who started it, "" for nobody known. `context` is what the door needs to make the request
    again and may hold credentials; `share` says whose part of all jobs it takes. Both, and the input, are gone as soon
    as the job has ended. `worker` is the token of the run that has the job, `attempt` counts the runs. A done job has a
    `result`, a failed or cancelled one a `problem`.
    """

    id: str
    action: str
    input: JsonObject = field(repr=False)
    principal: str = ""
    request_id: str = ""
    door: str = ""
    context: JsonObject = field(default_factory=dict, repr=False)
    share: str = ""
    status: Status = "accepted"
    progress: Progress | None = None
    cancel_requested: bool = False
    worker: str = ""
    attempt: int = 0
    result: JobResult | None = None
    problem: Problem | None = None
    created: datetime
    updated: datetime

    @property
    def has_ended(self) -> bool:
        return self.status in ENDED

    def describe(self, endpoint: str) -> dict[str, object]:
        """Return what is told of it, but for a problem, whose words depend on who tells it."""
        described: dict[str, object] = {"job_id": self.id, "action": self.action, "status": self.status}
        if self.progress is not None:
            described["progress"] = {"fraction": self.progress.fraction, "message": self.progress.message}
        if self.cancel_requested:
            described["cancel_requested"] = True
        described |= {"poll_endpoint": endpoint, "created": utc_text(self.created, "milliseconds")}
        described["updated"] = utc_text(self.updated, "milliseconds")
        if self.result is not None:
            described["result"] = orjson.Fragment(self.result.body)
        return described


class Stored(NamedTuple):
    """A job and the very bytes under which the store has it."""

    job: Job
    raw: bytes


def new_id() -> str:
    """A job id: 128 random bits, so that knowing one means having been told."""
    return secrets.token_urlsafe(16)


def is_id(text: str) -> bool:
    """Return True if a text looks like a job id."""
    return _ID.fullmatch(text) is not None


def end_job(job: Job, status: Status, ended: JobResult | Problem, now: datetime) -> Job:
    """The same job with its final state, and without what only a run needs."""
    result = ended if isinstance(ended, JobResult) else None
    problem = ended if isinstance(ended, Problem) else None
    return replace(
        job,
        status=status,
        result=result,
        problem=problem,
        input={},
        context={},
        share="",
        worker="",
        cancel_requested=False,
        updated=now,
    )


# --- To bytes ---


def store_job(job: Job) -> Stored:
    """A job with its bytes."""
    return Stored(job, write_job(job))


def write_job(job: Job) -> bytes:
    """The bytes of a job. Texts of a request or a handler that JSON cannot hold are replaced: never a failure."""
    progress, result, problem = job.progress, job.result, job.problem
    members = {
        **{name: getattr(job, name) for name in _KINDS},
        "progress": None if progress is None else [progress.fraction, progress.message],
        "result": None,
        "problem": None,
        "created": job.created,
        "updated": job.updated,
    }
    if result is not None:
        headers = [[name.decode("latin-1"), value.decode("latin-1")] for name, value in result.headers]
        members["result"] = [result.status, headers, crc32(result.body)]
    if problem is not None:
        members["problem"] = {
            "slug": problem.slug,
            "detail": problem.detail,
            "status": problem.status,
            "code": problem.code,
            "recovery": problem.recovery,
            "errors": [[violation.pointer, violation.detail] for violation in problem.errors],
            "headers": problem.headers,
            "members": problem.members,
        }
    try:
        head = orjson.dumps(members, option=orjson.OPT_UTC_Z)
    except TypeError:
        head = orjson.dumps(_printable(members), option=orjson.OPT_UTC_Z)
    return head if result is None else head + b"\n" + result.body


def _printable(value: object, levels: int = 100) -> object:
    if isinstance(value, (bool, float, datetime)) or value is None:
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else str(value)
    if isinstance(value, Mapping) and levels:
        return {printable(str(name)): _printable(member, levels - 1) for name, member in value.items()}
    if isinstance(value, (list, tuple)) and levels:
        return [_printable(member, levels - 1) for member in value]
    return printable(str(value))


def printable(text: str) -> str:
    """The same text without lone surrogates, which JSON cannot say."""
    return text.encode("utf-8", "replace").decode()


# --- From bytes ---

_KINDS: Final[Mapping[str, type]] = {
    "id": str,
    "action": str,
    "input": dict,
    "principal": str,
    "request_id": str,
    "door": str,
    "context": dict,
    "share": str,
    "status": str,
    "cancel_requested": bool,
    "worker": str,
    "attempt": int,
}
"""Members that are kept as they are."""


def read_job(raw: bytes, job_id: str | None = None) -> Job:
    """The job of some bytes, which has to be the one with that id. Raises UnreadableJob."""
    head, _, body = raw.partition(b"\n")
    try:
        job = _read_members(orjson.loads(head), body)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise UnreadableJob(f"A job's record cannot be read: {type(error).__name__}.") from error
    if job_id not in (None, job.id):
        raise UnreadableJob("A job's record is that of another job.")
    return job


def _read_members(members: dict[str, Any], body: bytes) -> Job:
    for name, kind in _KINDS.items():
        if type(members[name]) is not kind:
            raise TypeError(name)
    if members["status"] not in get_args(Status):
        raise ValueError(members["status"])
    progress = result = problem = None
    if members["progress"] is not None:
        fraction, message = members["progress"]
        progress = Progress(float(fraction), _text(message))
    if members["result"] is not None:
        status, headers, checksum = members["result"]
        if type(status) is not int or checksum != crc32(body):
            raise ValueError("the result is not the one that was written")
        encoded = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in headers)
        result = JobResult(status, encoded, body)
    if (found := members["problem"]) is not None:
        # Of the class it was; the plain one if a later version has done away with that class.
        problem = _CLASSES.get(_text(found["slug"]), Problem)(
            _text(found["detail"]),
            status=int(found["status"]),
            code=_text(found["code"]),
            recovery=None if found["recovery"] is None else _text(found["recovery"]),
            errors=[Violation(_text(pointer), _text(detail)) for pointer, detail in found["errors"]],
            headers=[(_text(name), _text(value)) for name, value in found["headers"]],
            members=found["members"],
        )
    created, updated = (datetime.fromisoformat(members[name]).astimezone(UTC) for name in ("created", "updated"))
    kept = {name: members[name] for name in _KINDS}
    return Job(**kept, progress=progress, result=result, problem=problem, created=created, updated=updated)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} instead of a text")
    return value


logger: Final = logging.getLogger("awp_publish.jobs")

QUEUE: Final = "jobs"
MORE: Final = "jobs:more"
ALL_JOBS: Final = "jobs:all"
MAX_JOBS: Final = 10_000
"""JobStore of a site that have not ended; further ones are refused."""

MAX_JOBS_OF_CALLER: Final = 1_000
"""The same of one caller: a known one, or an address from which nobody known calls."""

HEAD_START: Final = 60.0
"""Seconds by which a caller's job comes before the one that it sent after it, against jobs of others."""

RETRY_SECONDS: Final = 10
RESULT_SECONDS: Final = 86_400.0
"""Time for which the result of a job can be polled."""

UNREADABLE_SECONDS: Final = 3600.0
"""After so long a record that could not be read is looked at again: a later version of us may have written it."""

MAX_ATTEMPTS: Final = 3
"""Runs of a repeatable job whose workers died; after that the job itself is thought to be the cause."""

MAX_TRIES: Final = 20
"""Times that a change is tried against others who change the same job."""

IsRepeatable: TypeAlias = Callable[[str], bool | None]
"""Tells if an action may run again after a run that was cut short; None for an action that the site does not have."""


class Live(Protocol):
    """A run in this process, which is told at once what others learn at their next heartbeat."""

    @property
    def token(self) -> str: ...

    def cancel(self) -> None: ...


def read_clock() -> datetime:
    """The time of day."""
    return datetime.now(UTC)


class JobStore:
    """The background jobs of one store.

    A result can be polled for `result_seconds`; a job that nobody gets to run is forgotten after `pending_seconds`. A
    run renews its lease of `lease_seconds` every `beat_seconds`. At most `most` jobs that have not ended are taken on,
    and `most_of_caller` of one caller.
    """

    def __init__(
        self,
        store: Store,
        *,
        result_seconds: float = RESULT_SECONDS,
        pending_seconds: float = 604_800.0,
        lease_seconds: float = 30.0,
        beat_seconds: float = 2.0,
        most: int = MAX_JOBS,
        most_of_caller: int = MAX_JOBS_OF_CALLER,
        clock: Callable[[], datetime] = read_clock,
    ) -> None:
        self.store = store
        self.lease_seconds = lease_seconds
        self.beat_seconds = beat_seconds
        self.clock = clock
        self._result_seconds = result_seconds
        self._pending_seconds = pending_seconds
        self._most = most
        self._most_of_caller = most_of_caller
        self.announced: tuple[str, Callable[[], None]] | None = None
        """The queue of jobs that have ended and are to be told of, and whom to call; None where nobody is told."""
        self._live: dict[str, Live] = {}
        self._listeners: tuple[Callable[[], None], ...] = ()

    # --- What callers do ---

    async def accept(
        self,
        action: str,
        given: JsonObject,
        *,
        principal: str = "",
        request_id: str = "",
        door: str = "",
        context: JsonObject | None = None,
        share: str = "",
    ) -> Job:
        """Take a call on as a job. When this returns, the job outlives a loss of power.

        `share` names whose part of all jobs it counts against, for a caller who is not known; of a known one it is the
        principal. Raises TooManyJobs, JobQueueFull, StoreUnavailable.
        """
        now = self.clock()
        job = Job(
            id=new_id(),
            action=action,
            input=given,
            principal=principal,
            request_id=request_id,
            door=door,
            context=context or {},
            share=f"user:{principal}" if principal else share,
            created=now,
            updated=now,
        )
        try:
            await self._queue(job)
        except (TooManyJobs, JobQueueFull):
            # Make room where records have expired without having ended.
            queues, lease = (ALL_JOBS, _queue_of_caller(job)), self.lease_seconds
            leftovers = [(queue, one) for queue in queues for one in await self.store.take(queue, lease, 100)]
            if not leftovers:
                raise
            await self.store.run([Unschedule(queue, one) for queue, one in leftovers])
            await self._queue(job)
        for listener in self._listeners:
            listener()
        return job

    async def _queue(self, job: Job) -> None:
        """Put a job into the store. Of most callers it is the only one, so that is tried first."""
        pending = self._pending_seconds
        add, in_all = Add(_key(job.id), store_job(job).raw, pending), Schedule(ALL_JOBS, job.id, pending, self._most)
        of_caller = Schedule(_queue_of_caller(job), job.id, pending, 1)
        ran = await self.store.run((add, of_caller, in_all, Schedule(QUEUE, job.id, 0.0)), durable=True)
        if ran.failed == 1 and isinstance(others := ran.seen[1], Counted):
            of_caller = of_caller._replace(most=self._most_of_caller)
            head_start = min((others.events - self._most_of_caller) * HEAD_START, 0.0)
            ran = await self.store.run((add, of_caller, in_all, Schedule(MORE, job.id, head_start)), durable=True)
        retry = [("Retry-After", str(RETRY_SECONDS))]
        match ran.failed:
            case None:
                return
            case 1:
                raise TooManyJobs(f"{self._most_of_caller} of your jobs have not ended.", headers=retry)
            case 2:
                raise JobQueueFull(f"{self._most} jobs of this site have not ended.", headers=retry)
            case _:
                raise _busy()

    async def show(self, job_id: str, principal: str) -> Job:
        """The job as it stands, to who started it; a job that nobody known started, to whoever knows its id.

        Raises UnknownJob, StoreUnavailable.
        """
        return (await self._find(job_id, principal)).job

    async def cancel(self, job_id: str, principal: str) -> Job:
        """Cancel a job: at once if it does not run yet, else as soon as the run notices.

        Raises UnknownJob, JobEnded, StoreUnavailable.
        """
        for _ in range(MAX_TRIES):
            stored = await self._find(job_id, principal)
            if stored.job.has_ended:
                raise JobEnded(f"The job has ended already: it is {stored.job.status}.")
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

    # --- What workers do ---

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have `listener` called whenever this process accepts a job. Returns what ends that."""
        self._listeners = (*self._listeners, listener)

        def forget() -> None:
            self._listeners = tuple(one for one in self._listeners if one is not listener)

        return forget

    async def look(self, job_id: str) -> Stored | None:
        """A job with its bytes; None if there is none. Raises UnreadableJob, StoreUnavailable."""
        raw = (await self.store.run((Look(_key(job_id)),))).seen[0]
        if not isinstance(raw, bytes):
            return None
        try:
            return Stored(read_job(raw, job_id), raw)
        except UnreadableJob as error:
            logger.error("job %s: %s", job_id, error)
            raise

    async def reclaim(self, job_id: str, is_repeatable: IsRepeatable) -> Stored | None:
        """Judge a job that is due: what is returned waits to be run, None needs nothing more.

        One that runs is due because the worker that had it is gone: it goes back to the queue if it is repeatable, and
        else ends as JobInterrupted.
        """
        try:
            stored = await self.look(job_id)
        except UnreadableJob:
            await self.postpone(job_id, UNREADABLE_SECONDS)
            return None
        if stored is None or stored.job.has_ended:
            await self.store.run([Unschedule(queue, job_id) for queue in (QUEUE, MORE, ALL_JOBS)])
            return None
        repeatable = is_repeatable(stored.job.action)
        if stored.job.status == "accepted" and repeatable is not None:
            return stored
        live = self._live.get(job_id)
        if live is not None and live.token == stored.job.worker:
            await self.postpone(job_id, self.lease_seconds)  # it is we who have it: the store was away for a while
            return None
        if repeatable is None:
            gone = f'The site no longer has action "{stored.job.action}".'
            await self.end(stored, "failed", UnknownOperation(gone))
            return None
        return await self.give_up(stored, repeatable)

    async def give_up(self, stored: Stored, repeatable: bool, *, on_purpose: bool = False) -> Stored | None:
        """End a run that did not come to its end: the job waits for another run, or ends.

        Returns the job if it waits again. A run that was ended `on_purpose` does not count as an attempt.
        """
        job = stored.job
        if job.cancel_requested:
            await self.end(stored, "cancelled", _cancelled())
            return None
        if not repeatable:
            await self.end(stored, "failed", JobInterrupted("The worker was stopped while it ran this job."))
            return None
        if job.attempt >= MAX_ATTEMPTS and not on_purpose:
            told = f"The worker was stopped each of the {job.attempt} times that it ran this job."
            await self.end(stored, "failed", JobInterrupted(told))
            return None
        attempt = job.attempt - 1 if on_purpose else job.attempt
        waiting = replace(job, status="accepted", worker="", attempt=attempt, progress=None, updated=self.clock())
        return await self.change(stored, waiting, (Schedule(QUEUE, job.id, 0.0),), durable=True)

    async def begin(self, stored: Stored, repeatable: bool) -> Stored | None:
        """Make an accepted job ours, under a new token; None if somebody else was quicker.

        A loss of power must not make the store forget that a job was begun which may not be begun twice.
        """
        job = stored.job
        running = replace(job, status="running", worker=new_id(), attempt=job.attempt + 1, updated=self.clock())
        lease = (Schedule(QUEUE, job.id, self.lease_seconds), Unschedule(MORE, job.id))
        return await self.change(stored, running, lease, durable=not repeatable)

    async def beat(self, stored: Stored) -> Stored | None:
        """Renew the lease of a job of ours, and write down how far it is; None if the record is not as we knew it."""
        beating = replace(stored.job, updated=self.clock())
        return await self.change(stored, beating, (Schedule(QUEUE, beating.id, self.lease_seconds),))

    async def postpone(self, job_id: str, delay: float) -> None:
        """Look at a job again after `delay` seconds."""
        await self.store.run((Schedule(QUEUE, job_id, delay), Unschedule(MORE, job_id)))

    async def end(self, stored: Stored, status: Status, result: JobResult | Problem) -> Stored | None:
        """Write a job's final state; None if the record is not as we knew it."""
        ending = end_job(stored.job, status, result, self.clock())
        unschedule = [Unschedule(queue, ending.id) for queue in (QUEUE, MORE, ALL_JOBS, _queue_of_caller(stored.job))]
        also: list[Step] = list(unschedule)
        if self.announced is not None:
            also.append(Schedule(self.announced[0], ending.id, 0.0))
        ended = await self.change(stored, ending, also, seconds=self._result_seconds, durable=True)
        if self.announced is not None:
            self.announced[1]()
        return ended

    async def change(
        self, stored: Stored, job: Job, also: Sequence[Step], *, seconds: float = 0.0, durable: bool = False
    ) -> Stored | None:
        """Replace a record by another and do what goes with it; None, and nothing done, if it is not as we knew it."""
        changed = store_job(job)
        swap = Swap(_key(job.id), stored.raw, changed.raw, seconds or self._pending_seconds)
        ran = await self.store.run((swap, *also), durable=durable)
        return changed if ran.failed is None else None

    def enter(self, job_id: str, live: Live) -> None:
        """A run of this process begins."""
        self._live[job_id] = live

    def leave(self, job_id: str, live: Live) -> None:
        """A run of this process has ended."""
        if self._live.get(job_id) is live:
            del self._live[job_id]


def _key(job_id: str) -> str:
    return JOB + job_id


def _queue_of_caller(job: Job) -> str:
    return f"jobs of {job.share}"


def _cancelled() -> JobCancelled:
    return JobCancelled("The job was cancelled at its caller's request.")


def _busy() -> StoreUnavailable:
    return StoreUnavailable("The job is being changed by others; try again.", headers=[("Retry-After", "1")])
