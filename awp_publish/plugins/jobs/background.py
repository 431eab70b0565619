"""Background actions: calls become jobs, which are run as calls again, in this process or in another."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from awp_publish.browsing.addresses import parse_address
from awp_publish.calls.call import Call, CallCarrier, Outcome, Principal, Result, never_disconnected, share_of
from awp_publish.calls.callers import CALLER
from awp_publish.calls.hooks import Accept
from awp_publish.calls.invoke import Invoker
from awp_publish.http.client_address import TrustedProxies
from awp_publish.http.credentials import read_credentials
from awp_publish.http.dispatch import RouteCaller
from awp_publish.http.exchange import AsgiApp, Scope, read_fields
from awp_publish.http.position import CalledApplication
from awp_publish.http.running import running
from awp_publish.model import Action, Catalog, Status
from awp_publish.plugin import Serving
from awp_publish.plugins.jobs.ended import JOB_ENDED
from awp_publish.plugins.jobs.job import Job, JobResult, UnreadableJob
from awp_publish.plugins.jobs.jobs import JobStore
from awp_publish.plugins.jobs.packing import pack_request, unpack_request
from awp_publish.plugins.jobs.runner import Runner
from awp_publish.plugins.jobs.stopping import wait_for_signal
from awp_publish.plugins.jobs.worker import Worker
from awp_publish.problems import DeclarationError, Problem, SessionUnknown, StoreUnavailable
from awp_publish.stores.store import Unschedule, session_key

if TYPE_CHECKING:
    from awp_publish.plugins.jobs.taskiq_queue import TaskiqQueue
from awp_publish.plugins.jobs.door import JOBS_ENDED, accepted_reply, check_visible, logger

# A job reaches its route through all middleware of the application, as its caller would, so that middleware sets up
# the request (session, user) again.
BACKGROUNDS: Final = "awp_publish.backgrounds"
"""An extension of the lifespan's scope: a list to which a publisher appends its Background."""


class Background:
    """The jobs of one site, which are run by calls of its outermost application."""

    def __init__(self, serving: Serving) -> None:
        catalog, settings = serving.site.catalog, serving.settings
        guards = serving.application.guards_of(catalog)
        self._sessions = serving.ask("sessions")
        self._successes = serving.ask("prerequisites")
        self._announces = serving.state.announces
        self._extensions = serving.application.extensions
        self._catalog = catalog
        self.jobs = JobStore(guards.store)
        self.is_shared = guards.store.is_shared
        self._settings = serving.options
        self._queue_name = f"awp_publish:{settings.namespace}"
        self._actions: Mapping[str, Action] = {action.id: action for action in catalog.actions if action.is_background}
        # Degraded actions are refused when a call comes in. Accepted jobs always run.
        own = replace(catalog, actions=tuple(self._actions.values()), agents=(), status=Status())
        called = CalledApplication(serving.application.app, serving.application.called.routes)
        self._routes = RouteCaller(called, own, among=catalog)
        self._invoker = Invoker(own, self._routes, observers=serving.application.observers)
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
        if self._sessions is not None and call.carrier is not None:  # a caller without a cookie jar
            conversation = call.conversation.id if call.conversation is not None else ""
            own = session_key(conversation) if self._sessions.is_own(conversation) else ""
            context["session"] = call.session_id or own
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

        request, scopes, set_cookies = job.context.get("request"), job.context.get("scopes"), list[str]()
        context = unpack_request(request if isinstance(request, dict) else {}, self._state)
        call = Call(self._actions[job.action], job.input, job.request_id, "job", context, never_disconnected)
        if job.principal:
            call.principal = Principal.of_key(job.principal, frozenset(scopes if isinstance(scopes, list) else ()))
        call.credentials = partial(read_credentials, context, read_fields(context["headers"]), TrustedProxies())
        if "session" in job.context:
            call.carrier = CallCarrier(lambda lines: set_cookies.extend(line.decode("latin-1") for line in lines))
        CALLER.set(call.principal)
        await self._invoker.run(call, keep)
        if set_cookies:
            await self._keep_cookies(job, set_cookies)
        result = results[0]
        if isinstance(result, Problem):
            return result
        headers = [pair for pair in result.headers if pair[0].lower() != b"set-cookie"]
        receipt = await self._successes.certify(call) if self._successes is not None else ()
        return JobResult(result.status, (*headers, *receipt), result.body)

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
                new_id = self._sessions.ids_of_job(job.id)[0]
                await self._sessions.update(session, set_cookies, at, new_id=new_id, may_renew=session.key == key)
            elif not has_begun and self._sessions.are_worth_keeping(set_cookies, at):
                address = "" if job.principal else job.share.removeprefix("ip:")  # a known caller has its own share
                await self._sessions.begin(key, job.principal, address, set_cookies, at)
        except (StoreUnavailable, SessionUnknown):  # the caller gets the answer nevertheless
            logger.exception(
                "the cookies of a job of action %s are not kept (request_id=%s)", job.action, job.request_id
            )

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

    Raises DeclarationError if it has no background actions or no store for them, StartFailed if it does not start.
    """
    backgrounds: list[Background] = []
    async with running(app, {BACKGROUNDS: backgrounds}):
        if not backgrounds:
            raise DeclarationError("site", "has no background actions to work for.", 'Declare execution="async".')
        if not backgrounds[0].is_shared:
            remedy = 'Give Site(store="sqlite:///agents.db") or "redis://...".'
            raise DeclarationError(
                "site", "keeps jobs in the memory of each process, where no worker finds them.", remedy
            )
        await backgrounds[0].serve()
