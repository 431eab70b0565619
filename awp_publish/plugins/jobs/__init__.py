"""Background jobs: calls that are answered before they are carried out."""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from awp_publish.http.running import INSPECTED
from awp_publish.model import KNOWN, Catalog
from awp_publish.plugin import (
    CallHooks,
    Command,
    Context,
    Door,
    Endpoints,
    Finding,
    LoadedApplication,
    Plugin,
    Serving,
    Setup,
)
from awp_publish.plugins.jobs.ended import JOB_ENDED, JOB_PAYLOAD
from awp_publish.plugins.jobs.options import Jobs
from awp_publish.plugins.jobs.problems import JobEnded, JobInterrupted, JobQueueFull, TooManyJobs, UnknownJob
from awp_publish.problems import DeclarationError


class JobsSetup:
    """The jobs of one site. `announces` means that known callers are notified when their jobs end."""

    announces = False


def _has_jobs(catalog: Catalog) -> bool:
    return any(action.is_background for action in catalog.actions)


def _derive(setup: Setup, catalog: Catalog) -> Catalog:
    """Add an event for known callers, whose jobs end."""
    events = setup.ask("events")
    if events is None or not setup.site.authenticators or not _has_jobs(catalog):
        return catalog
    if JOB_ENDED not in {event.id for event in events.all()}:
        events.declare(
            JOB_ENDED, JOB_PAYLOAD, "One of your background jobs has finished. Its result is at poll_endpoint.", KNOWN
        )
        setup.state.announces = True
    return replace(catalog, events=events.all())


def _check(setup: Setup, catalog: Catalog) -> Iterator[Finding]:
    background = [action for action in catalog.actions if action.is_background]
    if not background or setup.options.queue is None:
        return
    subject = f'action "{background[0].id}"'
    if not setup.site.store.is_shared:
        wrong = "runs in another process, which cannot see a store in memory."
        raise DeclarationError(subject, wrong, 'Give Site(store="redis://...").')
    if find_spec("taskiq") is None or find_spec("taskiq_redis") is None:
        remedy = 'Install it: pip install "awp-publish[jobs]".'
        raise DeclarationError(subject, "needs taskiq, which is not installed.", remedy)
    yield from ()


def _serve(serving: Serving) -> Any:
    catalog = serving.site.catalog
    if not _has_jobs(catalog):
        return None
    from awp_publish.plugins.jobs.background import Background

    background = Background(serving)
    if (events := serving.ask("events")) is not None:
        background.announce_to(events)
    return background


def _running(serving: Serving) -> AbstractAsyncContextManager[object]:
    background: Any = serving.service
    if background is None or INSPECTED in serving.application.extensions():
        return nullcontext()
    return background.working(serving.application.lifespan_state())  # type: ignore[no-any-return]


def _calls(context: Context) -> CallHooks:
    background = context.service
    return CallHooks(accept=background.accepting(context.catalog) if background is not None else None)


def _open(context: Context) -> Endpoints:
    if context.service is None:
        return Endpoints()
    from awp_publish.plugins.jobs.door import open_jobs

    return open_jobs(context)


WORKER = "run the background jobs of an application until it is stopped"


def _work(console: Any, application: LoadedApplication, options: Any) -> int:
    from awp_publish.plugins.jobs.background import serve_jobs

    asyncio.run(serve_jobs(application.app))
    return 0


PLUGIN = Plugin(
    name="jobs",
    options=Jobs,
    is_default=True,
    fulfils=("execution",),
    problems=(TooManyJobs, JobQueueFull, UnknownJob, JobEnded, JobInterrupted),
    start=lambda setup: JobsSetup(),
    derive=_derive,
    check=_check,
    serve=_serve,
    running=_running,
    calls=_calls,
    doors=lambda setup, paths: [Door(name="jobs", calls=False, path=paths.jobs, open=_open)],
    commands={"worker": Command(help=WORKER, run=_work)},
)
