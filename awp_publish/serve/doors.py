"""The live endpoints of one public address of a site, and which of them a path means."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Final, Protocol, TypeAlias, cast

from awp_publish.discover import Route
from awp_publish.invoke import Invoker
from awp_publish.model import Action, Catalog, Door, Paths
from awp_publish.policy.authentication import AuthenticationGate
from awp_publish.policy.call import Principal
from awp_publish.policy.guard import Guards
from awp_publish.problems import DeclarationError
from awp_publish.serve.credentials import read_credentials
from awp_publish.serve.documents import Prepared
from awp_publish.serve.endpoint import Admission, ProblemRenderer
from awp_publish.serve.http import AsgiApp, Cors, Fields, Receive, Scope, Send, read_fields
from awp_publish.serve.jobs import Background, Identify, JobsDoor
from awp_publish.serve.metrics import MetricsDoor
from awp_publish.serve.pages import PageReader, SomDoor
from awp_publish.serve.plain import DIALECT, DOOR as PLAIN, PlainDoor, UnknownActionDoor
from awp_publish.serve.sessions import CookieSessions, SessionCalls
from awp_publish.serve.status import StatusDoor, StatusKeeper
from awp_publish.serve.webhooks import Webhooks
from awp_publish.serve.woa import PROTOCOL as WOA, InvokeAddress, WoaDoor
from awp_publish.settings import SiteSettings
from awp_publish.site import Site

# --- Doors that a site has to ask for: each in its own file with its extra, opened only then ---

Answer: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

AnswerRest: TypeAlias = Callable[[Scope, Receive, Send, str], Awaitable[None]]
"""A door that is given the rest of its path."""

MODULES: Final = {
    "mcp": "awp_publish.serve.mcp",
    "a2a": "awp_publish.serve.a2a",
    "awp": "awp_publish.serve.awp",
    "bridge": "awp_publish.serve.bridge",
}
PACKAGES: Final = {"mcp": ("mcp",), "a2a": ("a2a",), "awp": ("selectolax", "msgpack"), "bridge": ("selectolax",)}
EXTRAS: Final = {"bridge": "actions"}
"""Doors of `Site(doors=...)`: where each is, the packages it needs, and its extra where that has another name."""

OVERVIEW: Final = "awp_publish.serve.overview"

ENTRANCE: Final = "awp_publish.entrance"
"""The member of a scope in which a framework of its own way says where requests come in from outside."""

Entrance: TypeAlias = Callable[[Scope], AsgiApp]
"""The application with all that stands around us, as a connection that has come in to us tells it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorContext:
    """What the doors of one public address of a site are made of. `catalog` has what is offered at the door.

    `published` is the catalog as it was published last, with what works at the moment. `keys` are what is signed with,
    the newest first. `pages` is None where pages are HTML only. `sessions` and `carry` are there where the site has
    sessions: they keep those of callers without a cookie jar, and have them at hand in a call. For the overview there
    are `site`, its `documents` (those of ours, and those that stand where the application has none) and the `routes`.
    """

    settings: SiteSettings
    catalog: Catalog
    published: Callable[[], Catalog]
    invoker: Invoker
    guards: Guards
    keys: tuple[str, ...]
    admission: Admission
    background: Background | None
    entrance: Entrance
    pages: PageReader | None
    site: Site
    documents: Callable[[], tuple[Mapping[str, Prepared], Mapping[str, Prepared]]]
    routes: Callable[[], Sequence[Route]]
    sessions: CookieSessions | None = None
    carry: SessionCalls | None = None
    webhooks: Webhooks | None = None


@dataclass(frozen=True, slots=True)
class LiveDoor:
    """What a live door answers, at which paths, and what has to run for it while the application runs.

    `exact` are paths known beforehand, `below` beginnings of paths, `sockets` paths of WebSockets. Without a lifespan
    `running` is never entered, and the door has to work all the same.
    """

    exact: Mapping[str, Answer]
    below: Mapping[str, AnswerRest] = field(default_factory=dict)
    running: Callable[[], AbstractAsyncContextManager[None]] | None = None
    sockets: Mapping[str, Answer] = field(default_factory=dict)


class DoorModule(Protocol):
    """The file of a live door."""

    def describe_door(self, paths: Paths) -> Door:
        """Return what the documents may say about this door."""

    def open_door(self, context: DoorContext) -> LiveDoor:
        """Make the door."""


class OverviewModule(Protocol):
    """The file of the overview."""

    def open_overview(self, door: DoorContext) -> LiveDoor:
        """Make it."""


def describe_live_doors(settings: SiteSettings) -> tuple[Door, ...]:
    """The doors that a site asks for. Raises DeclarationError for one whose extra is not installed."""
    return tuple(_module(name).describe_door(settings.paths) for name in settings.doors)


def open_live_doors(context: DoorContext) -> tuple[LiveDoor, ...]:
    """Make the doors that a site asks for."""
    return tuple(
        _module(name).open_door(replace(context, catalog=context.catalog.exposed_at(name)))
        for name in context.settings.doors
    )


def _module(name: str) -> DoorModule:
    if any(find_spec(package) is None for package in PACKAGES[name]):
        raise DeclarationError(
            "site",
            f'doors: "{name}" needs a package that is missing.',
            f'Install it: pip install "awp-publish[{EXTRAS.get(name, name)}]".',
        )
    return cast(DoorModule, import_module(MODULES[name]))


@dataclass(frozen=True, slots=True)
class Doors:
    """The doors of one address.

    `exact` are those at paths known beforehand, `below` those below a path, `sockets` those that speak WebSocket.
    `heads` are what every path of ours begins with that is not known beforehand.
    """

    invoker: Invoker
    exact: Mapping[str, Answer]
    below: Mapping[str, AnswerRest]
    heads: tuple[str, ...]
    woa: WoaDoor
    address: InvokeAddress
    live: tuple[LiveDoor, ...] = ()
    sockets: Mapping[str, Answer] = field(default_factory=dict)

    def find(self, scope: Scope, path: str) -> Answer | None:
        """The door that a path with one of the heads means, None if it is the application's."""
        for head, answer in self.below.items():
            if path.startswith(head):
                return partial(_pass_rest, answer, path.removeprefix(head))
        matched = self.address.match(path, scope["query_string"])
        if matched is None:
            return None
        return partial(self.woa, named=self.address.agent_of(matched, scope["query_string"]))


def identify_caller(context: DoorContext, action: Action | None = None) -> Identify:
    """Return what tells who makes a request, with the cookies of the session that it shows.

    Of an `action` it is told what the action asks its callers for.
    """
    carry, proxies = context.carry, context.admission.trusted_proxies
    needed, scopes = (False, ()) if action is None else (action.auth_required, action.scopes)
    gate = context.guards.identify(required=needed, scopes=scopes)

    async def identify(scope: Scope, fields: Fields) -> Principal | None:
        if carry is not None:
            scope = await carry.visit(scope)
            fields = read_fields(scope["headers"])
        return await gate(read_credentials(scope, fields, proxies))

    return identify


def open_doors(context: DoorContext, status: StatusKeeper) -> Doors:
    """Open the doors of one public address of a site."""
    catalog, invoker, admission, background = context.catalog, context.invoker, context.admission, context.background
    woa, address = WoaDoor(catalog, invoker, admission), InvokeAddress(catalog.paths.invoke)
    calls, cors = address.calls(catalog.exposed_at(WOA)), Cors(admission.allow_origins)
    live = open_live_doors(context)
    if context.settings.has_overview:
        overview: OverviewModule = cast(OverviewModule, import_module(OVERVIEW))  # what is off is not even imported
        live = (*live, overview.open_overview(context))
    below: dict[str, AnswerRest] = {}
    if background is not None:
        renderer = ProblemRenderer(catalog)
        jobs = catalog.absolute(catalog.paths.jobs)
        identify, hosts = identify_caller(context), admission.own_hosts
        door = JobsDoor(background.jobs, jobs, renderer, cors, identify, hosts, context.sessions, catalog.actions)
        below[f"{catalog.paths.jobs}/"] = door
    exact: dict[str, Answer] = {catalog.paths.status: StatusDoor(catalog, status, admission.own_hosts)}
    if context.pages is not None:
        exact[catalog.paths.som] = SomDoor(context.pages, admission.own_hosts)
    kept, traffic = context.settings.traffic, context.site.traffic
    if kept is not None and kept.metrics and traffic is not None:
        gate, guards = None, context.guards
        if isinstance(kept.metrics, str):
            scopes, metadata = (kept.metrics,), guards.metadata_url
            gate = AuthenticationGate(guards.authenticators, True, scopes, guards.realm, metadata, store=guards.store)
        asked = MetricsDoor(catalog, traffic, admission.own_hosts, gate, admission.trusted_proxies)
        exact[catalog.paths.metrics] = asked
    said = ProblemRenderer(catalog, DIALECT)
    offered = catalog.exposed_at(PLAIN)
    below[f"{catalog.paths.actions}/"] = missing = UnknownActionDoor(offered, admission, said, cors)
    exact |= {
        catalog.plain_path_of(one): PlainDoor(one, invoker, admission, said, cors, missing.describe)
        for one in offered.actions
    }
    for path in calls.keys() & exact.keys():
        remedy = "Give the agent another id, or our addresses other paths: Site(paths=...)."
        raise DeclarationError(
            f'agent "{calls[path]}"', f"is called at {path}, which is another address of ours.", remedy
        )
    exact |= {path: partial(woa.__call__, named=agent_id) for path, agent_id in calls.items()}
    for one in live:
        exact |= one.exact
        below |= one.below
    heads = (catalog.paths.invoke.partition("{")[0].partition("?")[0], *below)
    sockets = {path: answer for one in live for path, answer in one.sockets.items()}
    return Doors(invoker, exact, below, heads, woa, address, live, sockets)


async def _pass_rest(answer: AnswerRest, rest: str, scope: Scope, receive: Receive, send: Send) -> None:
    await answer(scope, receive, send, rest)
