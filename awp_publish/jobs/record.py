"""`Job`: what is known of one background job, and the same as bytes for a store.

The bytes are one line of JSON and, after it, the action's own JSON text as it was: a poll hands that text on without
reading it. Records are compared byte by byte when they are replaced, so whoever replaces one keeps the bytes it read.
"""

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args
from zlib import crc32

import orjson

from awp_publish.model import JsonObject
from awp_publish.problems import ALL, Problem, Violation

Status: TypeAlias = Literal["accepted", "running", "done", "failed", "cancelled"]

ENDED: Final = frozenset({"done", "failed", "cancelled"})
_ID: Final = re.compile(r"[A-Za-z0-9_-]{22}")
_CLASSES: Final = {problem.slug: problem for problem in ALL}


class Unreadable(Exception):
    """The bytes of a record are not what this version writes."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is: `fraction` from 0 to 1, and a word for people."""

    fraction: float
    message: str = ""


@dataclass(frozen=True, slots=True)
class JobResult:
    """What an action answered: HTTP status, the headers worth carrying to the caller, and JSON text."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One call that runs in the background.

    `principal` is the id of who started it, "" for nobody known. `context` is what the door needs to make the request
    again and may hold credentials; `share` says whose part of all jobs it takes. Both are gone as soon as the job has
    ended. `worker` is the token of the run that has the job, `attempt` counts the runs. A done job has a `result`, a
    failed or cancelled one a `problem`.
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


class Stored(NamedTuple):
    """A job and the very bytes under which the store has it."""

    job: Job
    raw: bytes


def new_id() -> str:
    """A job id: 128 random bits, so that knowing one means having been told."""
    return secrets.token_urlsafe(16)


def is_id(text: str) -> bool:
    """Whether a text looks like a job id."""
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
    """The bytes of a job."""
    head = _dump(_describe(job))
    return head if job.result is None else head + b"\n" + job.result.body


def _describe(job: Job) -> dict[str, object]:
    return {
        "id": job.id,
        "action": job.action,
        "input": job.input,
        "principal": job.principal,
        "request_id": job.request_id,
        "door": job.door,
        "context": job.context,
        "share": job.share,
        "status": job.status,
        "progress": None if job.progress is None else [job.progress.fraction, job.progress.message],
        "cancel_requested": job.cancel_requested,
        "worker": job.worker,
        "attempt": job.attempt,
        "result": None if job.result is None else _describe_result(job.result),
        "problem": None if job.problem is None else _describe_problem(job.problem),
        "created": job.created,
        "updated": job.updated,
    }


def _describe_result(result: JobResult) -> list[object]:
    return [result.status, _as_text(result.headers), crc32(result.body)]


def _describe_problem(problem: Problem) -> dict[str, object]:
    return {
        "slug": problem.slug,
        "detail": problem.detail,
        "status": problem.status,
        "code": problem.code,
        "recovery": problem.recovery,
        "errors": [[violation.pointer, violation.detail] for violation in problem.errors],
        "headers": problem.headers,
        "members": problem.members,
    }


def _as_text(headers: Sequence[tuple[bytes, bytes]]) -> list[list[str]]:
    return [[name.decode("latin-1"), value.decode("latin-1")] for name, value in headers]


def _dump(described: dict[str, object]) -> bytes:
    """Words from a request or a handler may hold what JSON cannot say: that is replaced, never a failure."""
    try:
        return orjson.dumps(described, option=orjson.OPT_UTC_Z)
    except TypeError:
        return orjson.dumps(_printable(described), option=orjson.OPT_UTC_Z)


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


def read_job(raw: bytes, job_id: str | None = None) -> Job:
    """The job of some bytes, which has to be the one with that id. Raises Unreadable."""
    head, _, body = raw.partition(b"\n")
    try:
        job = _read_described(orjson.loads(head), body)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise Unreadable(f"A job's record cannot be read: {type(error).__name__}.") from error
    if job_id not in (None, job.id):
        raise Unreadable("A job's record is that of another job.")
    return job


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


def _read_described(told: dict[str, Any], body: bytes) -> Job:
    for name, kind in _KINDS.items():
        if type(told[name]) is not kind:
            raise TypeError(name)
    if told["status"] not in get_args(Status):
        raise ValueError(told["status"])
    return Job(
        **{name: told[name] for name in _KINDS},
        progress=None if told["progress"] is None else _read_progress(told["progress"]),
        result=None if told["result"] is None else _read_result(told["result"], body),
        problem=None if told["problem"] is None else _read_problem(told["problem"]),
        created=_read_time(told["created"]),
        updated=_read_time(told["updated"]),
    )


def _read_progress(told: list[Any]) -> Progress:
    fraction, message = told
    return Progress(float(fraction), _text(message))


def _read_result(told: list[Any], body: bytes) -> JobResult:
    status, headers, checksum = told
    if type(status) is not int or checksum != crc32(body):
        raise ValueError("the result is not the one that was written")
    return JobResult(status, tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in headers), body)


def _read_problem(told: dict[str, Any]) -> Problem:
    """A problem of the class it was; of the plain one if a later version has done away with that class."""
    return _CLASSES.get(_text(told["slug"]), Problem)(
        _text(told["detail"]),
        status=int(told["status"]),
        code=_text(told["code"]),
        recovery=None if told["recovery"] is None else _text(told["recovery"]),
        errors=[Violation(_text(pointer), _text(detail)) for pointer, detail in told["errors"]],
        headers=[(_text(name), _text(value)) for name, value in told["headers"]],
        members=told["members"],
    )


def _text(told: object) -> str:
    if not isinstance(told, str):
        raise TypeError(f"{type(told).__name__} instead of a text")
    return told


def _read_time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
