"""The HTTP door of background jobs: `GET` and `DELETE` of a job's address.

A job is a resource of its own: a poll is answered with 200 even if the job has failed, and the body has its status. The
job's address is the poll endpoint of WoA (draft-gaikwad-woa-00) and agent.json.
"""

import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import orjson

from awp_publish.browsing.addresses import parse_address
from awp_publish.calls.authentication import CALLER
from awp_publish.calls.call import SESSION_HEADER, Call, Outcome, Principal, Result, never_disconnected, share_of
from awp_publish.calls.gates.prerequisites import certify
from awp_publish.calls.invoke import Accept, Invoker
from awp_publish.http.client_address import TrustedProxies
from awp_publish.http.cors import Cors
from awp_publish.http.credentials import read_credentials
from awp_publish.http.dispatch import CalledApplication, RouteCaller
from awp_publish.http.doors import Identify, identify_caller, session_ids_of
from awp_publish.http.endpoint import Endpoint
from awp_publish.http.exchange import AsgiApp, RawHeaders, Reply, Scope, read_fields
from awp_publish.http.packing import pack_request, unpack_request
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.http.request import DoorRequest
from awp_publish.http.running import running
from awp_publish.model import Action, Catalog, Status
from awp_publish.plugin import Context, Endpoints, Serving
from awp_publish.plugins.jobs.ended import JOB_ENDED
from awp_publish.plugins.jobs.jobs import Job, JobResult, JobStore, UnreadableJob
from awp_publish.plugins.jobs.worker import Runner, Worker, wait_for_signal
from awp_publish.problems import DeclarationError, Problem, SessionUnknown, StoreUnavailable, UnknownJob
from awp_publish.stores.store import Unschedule, session_key

if TYPE_CHECKING:
    from awp_publish.plugins.jobs.taskiq_queue import TaskiqQueue

logger: Final = logging.getLogger("awp_publish.calls")

JOBS_ENDED: Final = "events:jobs"
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
        self._restricted = restricted(actions)
        self._jobs = jobs
        self._address = address
        self._identify = identify

    async def _has_renewed(self, job_id: str, session_id: str) -> bool:
        """Return True if a job has given the session with an id its new one."""
        sessions = self._sessions
        return sessions is not None and await sessions.has_moved_to(session_id, sessions.ids_of_job(job_id))

    async def handle(self, request: DoorRequest, named: str | None) -> None:
        """Answer a poll or a cancellation of the job with the id `named`, which may be any text."""
        try:
            caller = await self._identify(request.scope, request.fields)
            principal = caller.key if caller is not None else ""
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


def restricted(actions: Iterable[Action]) -> Mapping[str, Action]:
    """Return the actions for a limited audience, by id."""
    return {one.id: one for one in actions if not one.is_public}


def check_visible(actions: Mapping[str, Action], action_id: str, caller: Principal | None) -> None:
    """Raise UnknownJob if a job's action is one of `actions` and the caller may no longer know of it."""
    action = actions.get(action_id)
    if action is not None and not action.is_for(caller.scopes if caller is not None else None):
        raise UnknownJob("There is no such job, its result has expired, or somebody else started it.")


# --- Background actions: calls become jobs, which are run as calls again, in this process or in another ---
# A job reaches its route through all middleware of the application, as its caller would, so that middleware sets up
# the request (session, user) again.

BACKGROUNDS: Final = "awp_publish.backgrounds"
"""An extension of the lifespan's scope: a list to which a publisher appends its Background."""


class Background:
    """The jobs of one site, which are run by calls of its outermost application."""

    def __init__(self, serving: Serving) -> None:
        catalog, settings = serving.site.catalog, serving.settings
        guards = serving.guards_of(catalog)
        self._sessions = serving.ask("sessions")
        self._announces = serving.state.announces
        self._extensions = serving.extensions
        self._catalog = catalog
        self.jobs = JobStore(guards.store)
        self._settings = serving.options
        self._queue_name = f"awp_publish:{settings.namespace}"
        self._actions: Mapping[str, Action] = {one.id: one for one in catalog.actions if one.is_background}
        # Degraded actions are refused when a call comes in. Accepted jobs always run.
        own = replace(catalog, actions=tuple(self._actions.values()), agents=(), status=Status())
        called = CalledApplication(serving.app, serving.called.routes)
        self._routes = RouteCaller(called, own, among=catalog)
        self._invoker = Invoker(own, self._routes.call, observer=serving.observer)
        self._guards = guards
        self._state: Mapping[str, object] = {}
        self._worker: Worker | None = None
        self._has_lifespan = False

    check_visible = staticmethod(check_visible)

    def announce_to(self, events: Any) -> None:
        """Announce the end of each job: to the webhooks that wait for it, and as an event for its caller."""
        log, webhooks = events.log, events.webhooks
        self.jobs.announced = JOBS_ENDED, webhooks.hurry

        async def announce(job_id: str) -> None:
            with suppress(UnreadableJob):
                stored = await self.jobs.look(job_id)
                if stored is not None and stored.job.principal and self._announces:
                    job, endpoint = stored.job, self._catalog.absolute(f"{self._catalog.paths.jobs}/{job_id}")
                    event = {"job_id": job.id, "action": job.action, "status": job.status, "poll_endpoint": endpoint}
                    await log.emit(JOB_ENDED, event, audience=Principal.of_key(job.principal), unique=job.id)
            await webhooks.wake(f"job:{job_id}", Unschedule(JOBS_ENDED, job_id))

        webhooks.on_queue[JOBS_ENDED] = announce

    def accepting(self, catalog: Catalog) -> Accept:
        """Return the function that accepts calls at one address of the site."""
        return partial(self._accept, catalog.absolute(catalog.paths.jobs))

    async def _accept(self, address: str, call: Call) -> Outcome:
        self._routes.check(call)
        scope: Scope = call.context  # type: ignore[assignment]
        scopes = sorted(call.principal.scopes) if call.principal is not None else []
        context: dict[str, object] = {"scopes": scopes, "request": pack_request(scope)}
        if self._sessions is not None and call.on_cookies is not None:  # a caller without a cookie jar
            conversation = call.conversation if self._sessions.is_own(call.conversation or "") else None
            context["session"] = call.session_id or (session_key(conversation) if conversation else "")
            context["has_begun"] = bool(call.session_id)
        job = await self.jobs.accept(
            call.action.id,
            call.input,
            principal=call.caller_key,
            request_id=call.request_id,
            door=call.door,
            context=context,
            share=share_of("", call.credentials().address),
        )
        works = self._worker is not None and self._worker.is_working
        if not works and not self._has_lifespan and self._settings.queue is None:
            self._worker = self._runs_here()  # without a lifespan, the worker ends with the event loop
            self._worker.start()
        reply = accepted_reply(job, address)
        return Outcome(reply.body, None, reply.status, reply.headers)

    async def run(self, job: Job) -> JobResult | Problem:
        """Run a job as a call. There are no gates: the call passed them when it was accepted."""
        results: list[Result] = []

        async def keep(result: Result) -> None:
            results.append(result)

        request, scopes, taken = job.context.get("request"), job.context.get("scopes"), list[str]()
        context = unpack_request(request if isinstance(request, dict) else {}, self._state)
        call = Call(self._actions[job.action], job.input, job.request_id, "job", context, never_disconnected)
        if job.principal:
            call.principal = Principal.of_key(job.principal, frozenset(scopes if isinstance(scopes, list) else ()))
        call.credentials = partial(read_credentials, context, read_fields(context["headers"]), TrustedProxies())
        if "session" in job.context:
            call.on_cookies = lambda set_cookies: taken.extend(one.decode("latin-1") for one in set_cookies)
        CALLER.set(call.principal)
        await self._invoker.run(call, keep)
        if taken:
            await self._keep_cookies(job, taken)
        result = results[0]
        if isinstance(result, Problem):
            return result
        headers = [pair for pair in result.headers if pair[0].lower() != b"set-cookie"]
        return JobResult(result.status, (*headers, *await certify(self._guards, call)), result.body)

    async def _keep_cookies(self, job: Job, set_cookies: list[str]) -> None:
        """Save the cookies of a job in the session of its call, or in a new one."""
        target = self._actions[job.action].target
        if self._sessions is None or target is None:
            return
        at, has_begun = parse_address(self._catalog.absolute(target.path)), bool(job.context.get("has_begun"))
        key = str(job.context["session"]) or session_key(self._sessions.ids_of_job(job.id)[0])
        try:
            session = await self._sessions.load(key, follows=True)
            if session is not None:  # a poll hands out the id of a job's session, if it has signed in or out
                new_id, successes = self._sessions.ids_of_job(job.id)[0], self._guards.receipted
                await self._sessions.update(
                    session, set_cookies, at, new_id=new_id, successes=successes, may_renew=session.key == key
                )
            elif not has_begun and self._sessions.are_worth_keeping(set_cookies, at):
                address = "" if job.principal else job.share.removeprefix("ip:")  # a known caller has its own share
                await self._sessions.begin(key, job.principal, address, set_cookies, at)
        except (StoreUnavailable, SessionUnknown):  # the caller gets the answer nevertheless
            logger.exception(
                "the cookies of a job of action %s are not kept (request_id=%s)", job.action, job.request_id
            )

    # --- Working ---

    @asynccontextmanager
    async def working(self, state: Mapping[str, object]) -> AsyncIterator[None]:
        """Run due jobs, in this process or by a task queue. `state` is the application's lifespan state."""
        self._state = state
        self._has_lifespan = True
        self._extensions().get(BACKGROUNDS, []).append(self)
        async with AsyncExitStack() as stack:
            worker = self._runs_here()
            if self._settings.queue is not None:
                from awp_publish.plugins.jobs.taskiq_queue import SEND_AGAIN_SECONDS

                queue = self._open_queue(self._settings.queue)
                await queue.open()
                stack.push_async_callback(queue.close)
                worker = Worker(self.jobs, queue, lease=SEND_AGAIN_SECONDS)
            worker.start()
            stack.push_async_callback(worker.stop)
            yield

    async def serve(self) -> None:
        """Run jobs in a worker process until SIGTERM or SIGINT. Call this inside `working`."""
        if self._settings.queue is None:
            await wait_for_signal()
            return
        from awp_publish.plugins.jobs.taskiq_queue import serve_worker

        queue = self._open_queue(self._settings.queue)
        await serve_worker(queue, self._runner(), concurrency=self._settings.concurrency)

    def _runs_here(self) -> Worker:
        return Worker(self.jobs, self._runner(), concurrency=self._settings.concurrency)

    def _runner(self) -> Runner:
        return Runner(self.jobs, self.run, self._is_repeatable)

    def _open_queue(self, url: str) -> "TaskiqQueue":
        from awp_publish.plugins.jobs.taskiq_queue import TaskiqQueue

        return TaskiqQueue(self.jobs, url, self._is_repeatable, queue_name=self._queue_name)

    def _is_repeatable(self, action_id: str) -> bool | None:
        action = self._actions.get(action_id)
        return action.is_repeatable if action is not None else None


async def serve_jobs(app: AsgiApp) -> None:
    """Run the background jobs of an application in a worker process, until SIGTERM or SIGINT.

    Raises DeclarationError if it has no background actions, StartFailed if it does not start.
    """
    found: list[Background] = []
    async with running(app, {BACKGROUNDS: found}):
        if not found:
            raise DeclarationError("site", "has no background actions to work for.", 'Declare execution="async".')
        await found[0].serve()
