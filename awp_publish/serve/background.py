"""Background actions: calls become jobs, and jobs become calls again, in this process or in another.

A job reaches its route through the whole application, from outside, as its caller would: what other middleware makes of
the request (session, user) is made again.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from awp_publish.guarding import make_enforcement
from awp_publish.invoke import Accept, Invoker, Observer
from awp_publish.jobs import Job, JobResult, Jobs, Runner, Worker, wait_for_signal
from awp_publish.model import Action, Catalog, Status
from awp_publish.policy.authentication import Principal, set_caller
from awp_publish.policy.call import Call, Outcome, Result, never_gone
from awp_publish.problems import DeclarationError, Problem
from awp_publish.serve.credentials import TrustedProxies, read_credentials
from awp_publish.serve.dispatch import CalledApplication, RouteReach
from awp_publish.serve.jobs import accepted_reply
from awp_publish.serve.lifespan import running
from awp_publish.serve.reply import AsgiApp, Scope, read_fields
from awp_publish.serve.request_again import pack_request, unpack_request
from awp_publish.site import Site

if TYPE_CHECKING:
    from awp_publish.jobs.taskiq import TaskiqQueue

BACKGROUNDS: Final = "awp_publish.backgrounds"
"""An extension of the lifespan's scope: a list, into which a publisher puts its Background."""


class Background:
    """The jobs of one site. `app` is the whole application, with all that stands around us; `routes` has its routes."""

    def __init__(self, site: Site, catalog: Catalog, app: AsgiApp, routes: object) -> None:
        guarding = site.guarding
        self.jobs = Jobs(guarding.store, result_seconds=guarding.job_results)
        self._guarding = guarding
        self._actions: Mapping[str, Action] = {one.id: one for one in catalog.actions if one.is_background}
        # What is degraded was refused when it was accepted; what was accepted is done.
        own = replace(catalog, actions=tuple(self._actions.values()), agents=(), status=Status())
        self._reach = RouteReach(CalledApplication(app, routes), own, among=catalog)
        self._invoker = Invoker(own, self._reach, observer=Observer(guarding.log_inputs, site.call_listeners))
        self._enforcement = make_enforcement(guarding, catalog, None)
        self._state: Mapping[str, object] = {}
        self._worker: Worker | None = None
        self._has_lifespan = False

    def accepting(self, catalog: Catalog) -> Accept:
        """How calls are taken in that come to one address of the site."""
        return partial(self._accept, catalog.absolute(catalog.paths.jobs))

    async def _accept(self, address: str, call: Call) -> Outcome:
        self._reach.check(call)
        scope: Scope = call.context  # type: ignore[assignment]
        scopes = sorted(call.principal.scopes) if call.principal is not None else []
        job = await self.jobs.accept(
            call.action.id,
            call.input,
            principal=call.caller_id,
            request_id=call.request_id,
            door=call.door,
            context={"scopes": scopes, "request": pack_request(scope)},
            share=f"ip:{call.credentials().address}" if call.credentials is not None else "",
        )
        self._work_anyway()
        reply = accepted_reply(job, address)
        return Outcome(reply.body, None, reply.status, reply.headers)

    async def run(self, job: Job) -> JobResult | Problem:
        """Make a job a call again, and carry it out. No gate stands before it: it was admitted when it was accepted."""
        results: list[Result] = []

        async def keep(result: Result) -> None:
            results.append(result)

        call = self._call_of(job)
        set_caller(call.principal)
        await self._invoker.run(call, keep)
        result = results[0]
        if isinstance(result, Problem):
            return result
        return JobResult(result.status, (*result.headers, *self._receipt(call)), result.body)

    def _call_of(self, job: Job) -> Call:
        request, scopes = job.context.get("request"), job.context.get("scopes")
        context = unpack_request(request if isinstance(request, dict) else {}, self._state)
        principal = Principal(job.principal, frozenset(scopes if isinstance(scopes, list) else ()))
        call = Call(self._actions[job.action], job.input, job.request_id, "job", context, never_gone)
        call.principal = principal if job.principal else None
        call.credentials = partial(read_credentials, context, read_fields(context["headers"]), TrustedProxies())
        return call

    def _receipt(self, call: Call) -> tuple[tuple[bytes, bytes], ...]:
        receipts = self._enforcement.receipts
        if receipts is None or call.action.id not in self._enforcement.receipted:
            return ()
        return (receipts.write(call),)

    # --- Working ---

    @asynccontextmanager
    async def working(self, state: Mapping[str, object]) -> AsyncIterator[None]:
        """Carry out what is due, as long as the application runs. `state` is what it keeps for its requests."""
        self._state = state
        self._has_lifespan = True
        async with AsyncExitStack() as stack:
            worker = await self._make_worker(stack)
            worker.start()
            stack.push_async_callback(worker.stop)
            yield

    async def _make_worker(self, stack: AsyncExitStack) -> Worker:
        """One that runs jobs here, or with a task queue one that sends them there."""
        if self._guarding.job_queue is None:
            return self._runs_here()
        from awp_publish.jobs.taskiq import SEND_AGAIN_SECONDS

        queue = self._open_queue(self._guarding.job_queue)
        await queue.open()
        stack.push_async_callback(queue.close)
        return Worker(self.jobs, queue, lease=SEND_AGAIN_SECONDS)

    async def serve(self) -> None:
        """Be a worker process: run jobs until SIGTERM or SIGINT. Within `working`."""
        if self._guarding.job_queue is None:
            await wait_for_signal()
            return
        from awp_publish.jobs.taskiq import serve_worker

        queue = self._open_queue(self._guarding.job_queue)
        await serve_worker(queue, self._runner(), concurrency=self._guarding.job_concurrency)

    def _work_anyway(self) -> None:
        """Where a server tells of no lifespan, the first job starts the worker; it ends with the event loop."""
        if self._has_lifespan or self._guarding.job_queue is not None:
            return
        if self._worker is None or not self._worker.is_working:
            self._worker = self._runs_here()
            self._worker.start()

    def _runs_here(self) -> Worker:
        return Worker(self.jobs, self._runner(), concurrency=self._guarding.job_concurrency)

    def _runner(self) -> Runner:
        return Runner(self.jobs, self.run, self._is_repeatable)

    def _open_queue(self, url: str) -> "TaskiqQueue":
        from awp_publish.jobs.taskiq import TaskiqQueue

        return TaskiqQueue(self.jobs, url, self._is_repeatable, queue_name=f"awp_publish:{self._guarding.host}")

    def _is_repeatable(self, action_id: str) -> bool | None:
        action = self._actions.get(action_id)
        return action.repeatable if action is not None else None


async def serve_jobs(app: AsgiApp) -> None:
    """Run the background jobs of an application in a process that is no server, until SIGTERM or SIGINT.

    Raises DeclarationError if it has no background actions, StartFailed if it does not start.
    """
    found: list[Background] = []
    async with running(app, {BACKGROUNDS: found}):
        if not found:
            raise DeclarationError("site", "has no background actions to work for.", 'Declare execution="async".')
        await found[0].serve()
