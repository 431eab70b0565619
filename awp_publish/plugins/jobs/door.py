"""The HTTP door of background jobs: `GET` and `DELETE` of a job's address.

A job is a resource of its own: a poll is answered with 200 even if the job has failed, and the body has its status. The
job's address is the poll endpoint of WoA (draft-gaikwad-woa-00) and agent.json.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from awp_publish.calls.call import SESSION_HEADER, Outcome, Principal, key_of, scopes_of
from awp_publish.http.cors import Cors
from awp_publish.http.doors import Identify, identify_caller, session_ids_of
from awp_publish.http.endpoint import Endpoint
from awp_publish.http.exchange import RawHeaders, Reply
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.http.request import DoorRequest
from awp_publish.model import Action
from awp_publish.plugin import Context, Endpoints
from awp_publish.plugins.jobs.job import Job
from awp_publish.plugins.jobs.jobs import JobStore
from awp_publish.plugins.jobs.problems import UnknownJob
from awp_publish.problems import SessionUnknown

logger: Final = logging.getLogger("awp_publish.calls")

JOBS_ENDED: Final = "{jobs}ended"
"""The queue of background jobs that have ended and whose event is still to be emitted."""

METHODS: Final = "GET, HEAD, DELETE, OPTIONS"

MAX_PAUSE: Final = 5
"""Maximum seconds in the Retry-After of a poll."""

YOUNG_SECONDS: Final = 15
"""Seconds of a job's age after which its Retry-After grows by one second, repeatedly."""

_NOT_REPEATED: Final = frozenset({b"content-type", b"content-length", b"cache-control", b"set-cookie", b"retry-after"})
"""Headers of an action's answer that are not repeated in polls: they describe that answer itself, or set cookies."""


def accepted_reply(job: Job, address: str) -> Reply:
    """Return the 202 reply to a call that has become a job (RFC 9110 section 15.3.3). `address` is that of all jobs."""
    endpoint = f"{address}/{job.id}"
    body = orjson.dumps(job.describe(endpoint))
    return Reply(202, ((b"location", endpoint.encode()), (b"retry-after", b"1")), body)


def open_jobs(context: Context) -> Endpoints:
    """Open the addresses of jobs at one address of the site."""
    catalog, admission = context.catalog, context.admission
    jobs = catalog.absolute(catalog.paths.jobs)
    door = JobsDoor(
        context.service.jobs,
        jobs,
        ProblemRenderer(catalog),
        Cors(admission.allow_origins),
        identify_caller(context),
        admission.own_origins,
        session_ids_of(context),
        catalog.actions,
    )
    return Endpoints(below={f"{catalog.paths.jobs}/": door})


class JobsDoor(Endpoint):
    """Answers polls and cancellations. `address` is the public address of all jobs, without a trailing slash."""

    methods = METHODS
    usage = "A job is polled with GET and cancelled with DELETE"

    def __init__(
        self,
        jobs: JobStore,
        address: str,
        renderer: ProblemRenderer,
        cors: Cors,
        identify: Identify,
        own_origins: frozenset[str] = frozenset(),
        sessions: Any = None,
        actions: Iterable[Action] = (),
    ) -> None:
        """Create the door. `actions` are the site's; jobs of those for a limited audience are checked."""
        super().__init__(renderer, cors, own_origins)
        self._sessions = sessions
        self._restricted = {action.id: action for action in actions if not action.is_public}
        self._jobs = jobs
        self._address = address
        self._identify = identify

    async def _has_renewed(self, job_id: str, session_id: str) -> bool:
        sessions = self._sessions
        return sessions is not None and await sessions.has_moved_to(session_id, sessions.ids_of_job(job_id))

    async def handle(self, request: DoorRequest, named: str | None) -> None:
        """Answer a poll or a cancellation of the job with the id `named`, which may be any text."""
        try:
            caller = await self._identify(request.scope, request.fields)
            principal = key_of(caller)
        except SessionUnknown:  # the job itself has signed in, which gave the session of its caller a new id
            if not await self._has_renewed(named or "", request.fields.get(SESSION_HEADER, b"").decode("latin-1")):
                raise
            caller, stored = None, await self._jobs.look(named or "")
            principal = stored.job.principal if stored is not None else ""
        if self._restricted:
            check_visible(self._restricted, (await self._jobs.show(named or "", principal)).action, caller)
        if request.scope["method"] == "DELETE":
            job = await self._jobs.cancel(named or "", principal)
            status = 200 if job.has_ended else 202
        else:
            job, status = await self._jobs.show(named or "", principal), 200
        endpoint = f"{self._address}/{job.id}"
        described = job.describe(endpoint)
        if job.problem is not None:
            described["problem"] = self._renderer.describe(job.problem, urlsplit(endpoint).path, job.request_id)
        headers: RawHeaders = ()
        if not job.has_ended:  # the longer a job has taken, the less likely it ends within the next second
            age = (self._jobs.clock() - job.created).total_seconds()
            headers = ((b"retry-after", b"%d" % min(MAX_PAUSE, 1 + max(0, int(age // YOUNG_SECONDS)))),)
        if job.result is not None:
            headers += tuple(pair for pair in job.result.headers if pair[0].lower() not in _NOT_REPEATED)
            for begun in self._sessions.ids_of_job(job.id) if self._sessions is not None else ():
                if await self._sessions.find(begun) is not None:
                    headers += ((SESSION_HEADER, begun.encode()),)
        await request.deliver(Outcome(orjson.dumps(described), None, status, headers))


def check_visible(actions: Mapping[str, Action], action_id: str, caller: Principal | None) -> None:
    """Raise UnknownJob if a job's action is one of `actions` and the caller may no longer know of it."""
    action = actions.get(action_id)
    if action is not None and not action.is_for(scopes_of(caller)):
        raise UnknownJob("There is no such job, its result has expired, or somebody else started it.")
