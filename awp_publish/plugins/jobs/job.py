"""One background job, and its record as bytes.

A record is one line of JSON, followed by the action's own JSON text unchanged: a poll passes that text on without
parsing it. Records are compared byte by byte when they are replaced, so whoever replaces one keeps the bytes it read.
"""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args
from zlib import crc32

import orjson

from awp_publish.calls.progress import Progress, printable
from awp_publish.model import JsonObject, utc_text
from awp_publish.plugins.jobs.problems import JobInterrupted
from awp_publish.problems import ALL, Problem, Violation

Status: TypeAlias = Literal["accepted", "running", "done", "failed", "cancelled"]

ENDED: Final = frozenset({"done", "failed", "cancelled"})

_ID: Final = re.compile(r"[A-Za-z0-9_-]{22}")

_CLASSES: Final[Mapping[str, type[Problem]]] = {problem.slug: problem for problem in ALL} | {
    JobInterrupted.slug: JobInterrupted
}


class UnreadableJob(Exception):
    """A record does not have the form that this version writes."""


@dataclass(frozen=True, slots=True)
class JobResult:
    """The answer of an action: HTTP status, the headers to pass on to the caller, and JSON text."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One call that runs in the background.

    `principal` is the id of the caller who started it, "" for an unknown one. `context` is what the door needs to
    repeat the request, and may hold credentials; `share` is the quota that the job counts against, `reserved` the bytes
    that it takes of it. These, and the input, are dropped when the job ends. `has_turn` is set for the one job of its
    share that waits, or runs, in the turn of its share. `worker` is the token of the run that owns the job, `attempt`
    counts the runs. A done job has a `result`, a failed or cancelled one a `problem`.
    """

    id: str
    action: str
    input: JsonObject = field(repr=False)
    principal: str = ""
    request_id: str = ""
    door: str = ""
    context: JsonObject = field(default_factory=dict, repr=False)
    share: str = ""
    reserved: int = 0
    has_turn: bool = False
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
        """Return what callers are told about the job, except its problem, which each door renders in its own way."""
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
    """A job and the exact bytes of its record in the store."""

    job: Job
    raw: bytes


def new_id() -> str:
    """Return a job id of 128 random bits, which cannot be guessed."""
    return secrets.token_urlsafe(16)


def is_id(text: str) -> bool:
    """Return True if a text looks like a job id."""
    return _ID.fullmatch(text) is not None


def end_job(job: Job, status: Status, ended: JobResult | Problem, now: datetime) -> Job:
    """Return the job in its final state, without what only a run needs."""
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
        reserved=0,
        has_turn=False,
        worker="",
        cancel_requested=False,
        updated=now,
    )


def store_job(job: Job) -> Stored:
    """Return a job with the bytes of its record."""
    return Stored(job, write_job(job))


def write_job(job: Job) -> bytes:
    """Return the record of a job.

    Values of a request or handler that JSON cannot represent are replaced; never fails.
    """
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
        head = orjson.dumps(printable_value(members), option=orjson.OPT_UTC_Z)
    return head if result is None else head + b"\n" + result.body


def printable_value(value: object, levels: int = 100) -> object:
    if isinstance(value, (bool, float, datetime)) or value is None:
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else str(value)
    if isinstance(value, Mapping) and levels:
        return {printable(str(name)): printable_value(member, levels - 1) for name, member in value.items()}
    if isinstance(value, (list, tuple)) and levels:
        return [printable_value(member, levels - 1) for member in value]
    return printable(str(value))


_KINDS: Final[Mapping[str, type]] = {
    "id": str,
    "action": str,
    "input": dict,
    "principal": str,
    "request_id": str,
    "door": str,
    "context": dict,
    "share": str,
    "reserved": int,
    "has_turn": bool,
    "status": str,
    "cancel_requested": bool,
    "worker": str,
    "attempt": int,
}
"""Members that are stored unchanged."""


def read_job(raw: bytes, job_id: str | None = None) -> Job:
    """Parse the record of a job, which must have `job_id` if that is given. Raises UnreadableJob."""
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
            raise ValueError("it is not the result that was written")
        encoded = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in headers)
        result = JobResult(status, encoded, body)
    if (facts := members["problem"]) is not None:
        # Of its own class, or a plain Problem if this version no longer has that class.
        problem = _CLASSES.get(_text(facts["slug"]), Problem)(
            _text(facts["detail"]),
            status=int(facts["status"]),
            code=_text(facts["code"]),
            recovery=None if facts["recovery"] is None else _text(facts["recovery"]),
            errors=[Violation(_text(pointer), _text(detail)) for pointer, detail in facts["errors"]],
            headers=[(_text(name), _text(value)) for name, value in facts["headers"]],
            members=facts["members"],
        )
    created, updated = (datetime.fromisoformat(members[name]).astimezone(UTC) for name in ("created", "updated"))
    plain = {name: members[name] for name in _KINDS}
    return Job(**plain, progress=progress, result=result, problem=problem, created=created, updated=updated)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} instead of a text")
    return value
