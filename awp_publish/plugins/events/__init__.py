"""Events: what a site declares can happen, read by agents or delivered to their webhooks."""

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from awp_publish.calls.call import Principal
from awp_publish.calls.callers import AgentAuthenticator
from awp_publish.calls.verifiers import people_of
from awp_publish.http.running import INSPECTED
from awp_publish.model import PUBLIC
from awp_publish.plugin import Plugin, Serving, Setup
from awp_publish.plugins.events.delivery import EventDelivery
from awp_publish.plugins.events.log import Events
from awp_publish.plugins.events.webhooks import Webhooks


@dataclass(frozen=True, slots=True)
class ServedEvents:
    """The events of a site while it runs: the log of what has happened, and the webhooks that wait for it."""

    log: Events
    webhooks: Webhooks
    delivery: EventDelivery


def _event(
    events: Events,
    event_id: str,
    /,
    *,
    payload: object = None,
    description: str | None = None,
    audience: str = PUBLIC,
) -> Callable[[Any], Any]:
    """Declare an event that agents can subscribe to. See docs/events.md.

    `payload` is the type of its data: a model, any other type, or a JSON Schema of an object. `audience` are those who
    may see the event, as for an action. The decorated class or function is returned unchanged: a class is the payload
    unless one is given, and a function's docstring is the description.
    """
    return events.declare(event_id, payload, description, audience)


async def _emit(
    events: Events,
    event_id: str,
    payload: object,
    /,
    *,
    audience: str | Principal | None = None,
    unique: str | None = None,
) -> str:
    """Publish an event to agents. Returns its id as soon as it is recorded in the site's store.

    `audience` are those who see it: `"public"`, `"known"`, `"principal:ID"` or a Principal, `"scope:NAME"`; the default
    is the audience of the declaration. `unique` is the event's id at its source, such as a webhook's: of several events
    with the same id only the first is recorded. Raises DeclarationError, InvalidOutput if the payload does not match
    the declaration, and StoreUnavailable.
    """
    return await events.emit(event_id, payload, audience, unique=unique)


def _start(setup: Setup) -> Events:
    authenticators = setup.site.authenticators
    people = sole_people(authenticators) if authenticators else ""
    return Events(lambda: setup.site.store, setup.site.refuse_when_frozen, people)


def _serve(serving: Serving) -> ServedEvents:
    webhooks = Webhooks(lambda: serving.site.store, serving.state)
    return ServedEvents(serving.state, webhooks, EventDelivery(serving.state, webhooks))


def _running(serving: Serving) -> AbstractAsyncContextManager[object]:
    has_work = serving.site.catalog.events or serving.site.catalog.door("a2a") is not None
    return (
        serving.service.webhooks.working()
        if has_work and INSPECTED not in serving.application.extensions()
        else nullcontext()
    )


def sole_people(authenticators: Iterable[object]) -> str | None:
    """Return the people whom a name without an issuer means: those of the only authenticator that knows persons."""
    people = {people_of(each) for each in authenticators if not isinstance(each, AgentAuthenticator)}
    return people.pop() if len(people) == 1 else None


PLUGIN = Plugin(
    name="events",
    is_default=True,
    start=_start,
    declares={"event": _event, "emit": _emit},
    derive=lambda setup, catalog: replace(catalog, events=setup.state.all()),
    keeps=lambda setup, catalog: "what has happened" if catalog.events else None,
    serve=_serve,
    running=_running,
)
