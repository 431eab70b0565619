"""The HTTP door of background jobs: `GET` and `DELETE` of a job's address.

A job is a resource of its own: a poll is answered with 200 whatever became of the job, and the answer says what that
is. Its address is what WoA (draft-gaikwad-woa-00) and agent.json call the poll endpoint.
"""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias
from urllib.parse import quote, urlsplit

import orjson

from awp_publish.jobs import Job, Jobs
from awp_publish.problems import MethodNotAllowed, Problem
from awp_publish.serve.cors import Cors
from awp_publish.serve.exchange import STATIC_HEADERS, Telling, read_request_id
from awp_publish.serve.problem_json import describe_problem, render_problem
from awp_publish.serve.reply import Fields, RawHeaders, Receive, Reply, Scope, Send, read_fields, send_reply

METHODS: Final = "GET, HEAD, DELETE, OPTIONS"
LONGEST_PAUSE: Final = 5
"""Seconds that a caller is asked to wait between two polls, at most."""

YOUNG_SECONDS: Final = 15
"""Every so many seconds of a job's life, its caller is asked to wait a second longer."""

_NOT_RETOLD: Final = frozenset({b"content-type", b"content-length", b"cache-control", b"set-cookie", b"retry-after"})
"""Headers of an action's answer that speak about that answer itself, or that must not be told again with each poll."""

Identify: TypeAlias = Callable[[Scope, Fields], Awaitable[str]]
"""The id of who makes a request, "" for nobody known. Raises a Problem for credentials that are not valid."""


def accepted_reply(job: Job, address: str) -> Reply:
    """What a caller is told whose call has become a job (RFC 9110 section 15.3.3). `address` is that of all jobs."""
    endpoint = f"{address}/{job.id}"
    body = orjson.dumps(describe_job(job, endpoint))
    return Reply(202, ((b"location", endpoint.encode()), (b"retry-after", b"1")), body)


class JobsDoor:
    """Answers polls and cancellations. `address` is the public address of all jobs, without a slash at its end."""

    def __init__(self, jobs: Jobs, address: str, telling: Telling, cors: Cors, identify: Identify) -> None:
        self._jobs = jobs
        self._address = address
        self._telling = telling
        self._cors = cors
        self._identify = identify

    async def __call__(self, scope: Scope, receive: Receive, send: Send, job_id: str) -> None:
        """Answer one request; `job_id` is the rest of its path, whatever that is."""
        fields = read_fields(scope["headers"])
        if scope["method"] == "OPTIONS":
            await send_reply(self._cors.preflight(fields, METHODS), send)
            return
        request_id = read_request_id(fields)
        extra = (*self._cors.headers(fields), (b"x-request-id", request_id.encode()))
        try:
            reply = await self._answer(scope, fields, job_id, extra)
        except Problem as problem:
            told, path = self._telling, quote(scope["path"])
            reply = render_problem(problem, told.types, told.recoveries, path, request_id, extra)
        if scope["method"] == "HEAD":
            reply = Reply(reply.status, reply.headers)
        await send_reply(reply, send)

    async def _answer(self, scope: Scope, fields: Fields, job_id: str, extra: RawHeaders) -> Reply:
        method: str = scope["method"]
        if method not in METHODS.split(", "):
            detail = f"A job is polled with GET and cancelled with DELETE, not {method[:20]}."
            raise MethodNotAllowed(detail, headers=[("Allow", METHODS)])
        principal = await self._identify(scope, fields)
        if method != "DELETE":
            return self._render(200, await self._jobs.show(job_id, principal), extra)
        job = await self._jobs.cancel(job_id, principal)
        return self._render(200 if job.has_ended else 202, job, extra)

    def _render(self, status: int, job: Job, extra: RawHeaders) -> Reply:
        endpoint = f"{self._address}/{job.id}"
        described = describe_job(job, endpoint)
        retold: RawHeaders = ()
        if job.result is not None:
            retold = tuple(pair for pair in job.result.headers if pair[0].lower() not in _NOT_RETOLD)
        if job.problem is not None:
            told, path = self._telling, urlsplit(endpoint).path
            described["problem"] = describe_problem(job.problem, told.types, told.recoveries, path, job.request_id)
        body = orjson.dumps(described)
        pause = () if job.has_ended else ((b"retry-after", b"%d" % _pause(self._jobs.clock() - job.created)),)
        return Reply(status, (*STATIC_HEADERS, (b"content-length", b"%d" % len(body)), *pause, *retold, *extra), body)


def describe_job(job: Job, endpoint: str) -> dict[str, object]:
    """What is told of a job, but for a problem, whose words depend on who tells it."""
    described: dict[str, object] = {"job_id": job.id, "action": job.action, "status": job.status}
    if job.progress is not None:
        described["progress"] = {"fraction": job.progress.fraction, "message": job.progress.message}
    if job.cancel_requested:
        described["cancel_requested"] = True
    described |= {"poll_endpoint": endpoint, "created": _as_text(job.created), "updated": _as_text(job.updated)}
    if job.result is not None:
        described["result"] = orjson.Fragment(job.result.body)
    return described


def _as_text(moment: datetime) -> str:
    """RFC 3339, in UTC, to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _pause(age: timedelta) -> int:
    """Seconds until the next poll: a job that has taken long will hardly end within the next second."""
    return min(LONGEST_PAUSE, 1 + max(0, int(age.total_seconds() // YOUNG_SECONDS)))
