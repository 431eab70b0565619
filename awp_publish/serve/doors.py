"""The live endpoints of one public address of a site, and which of them a path means."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Final, Protocol, TypeAlias, cast

from awp_publish.guarding import make_guards
from awp_publish.invoke import Invoker, Observer
from awp_publish.model import Catalog, Door
from awp_publish.policy.guard import Guards
from awp_publish.problems import DeclarationError
from awp_publish.protocols import protected_resource
from awp_publish.serve.credentials import read_credentials
from awp_publish.serve.dispatch import CalledApplication, RouteCaller
from awp_publish.serve.endpoint import Admission, ProblemRenderer, read_admission_of
from awp_publish.serve.guarded_routes import GuardedRoutes
from awp_publish.serve.http import AsgiApp, Cors, Fields, Receive, Scope, Send, read_fields
from awp_publish.serve.jobs import Background, JobsDoor
from awp_publish.serve.pages import PageReader, SomDoor
from awp_publish.serve.plain import DIALECT, PlainDoor, UnknownActionDoor
from awp_publish.serve.sessions import CookieSessions, Outside, SessionCalls, has_session_callers, make_sessions
from awp_publish.serve.status import StatusDoor, StatusKeeper
from awp_publish.serve.woa import InvokeAddress, WoaDoor
from awp_publish.site import Site

# --- Doors that a site has to ask for: each in its own file with its extra, opened only then ---

Answer: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

AnswerRest: TypeAlias = Callable[[Scope, Receive, Send, str], Awaitable[None]]
"""A door that is given the rest of its path."""

MODULES: Final = {"mcp": "awp_publish.serve.mcp", "a2a": "awp_publish.serve.a2a", "awp": "awp_publish.serve.awp"}
PACKAGES: Final = {"mcp": ("mcp",), "a2a": ("a2a",), "awp": ("selectolax", "msgpack")}
"""Doors of `Site(doors=...)`: where each is, and the packages it needs; its extra has the door's name."""

ENTRANCE: Final = "awp_publish.entrance"
"""The member of a scope in which a framework of its own way says where requests come in from outside."""

Entrance: TypeAlias = Callable[[Scope], AsgiApp]
"""The application with all that stands around us, as a connection that has come in to us tells it."""


@dataclass(frozen=True, slots=True)
class DoorContext:
    """What a live door is made of, for one public address of a site.

    `pages` is None where pages are HTML only, `sessions` where the site keeps none in cookies.
    """

    site: Site
    catalog: Catalog
    invoker: Invoker
    guards: Guards
    admission: Admission
    background: Background | None
    entrance: Entrance
    pages: PageReader | None
    sessions: CookieSessions | None


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

    def describe_door(self, site: Site) -> Door:
        """What the documents may say about this door."""

    def open_door(self, context: DoorContext) -> LiveDoor:
        """Make the door."""


def describe_live_doors(site: Site) -> tuple[Door, ...]:
    """The doors that a site asks for. Raises DeclarationError for one whose extra is not installed."""
    return tuple(_module(name).describe_door(site) for name in site.doors)


def open_live_doors(context: DoorContext) -> tuple[LiveDoor, ...]:
    """Make the doors that a site asks for."""
    return tuple(_module(name).open_door(context) for name in context.site.doors)


def _module(name: str) -> DoorModule:
    if any(find_spec(package) is None for package in PACKAGES[name]):
        raise DeclarationError(
            "site",
            f'doors: "{name}" needs a package that is missing.',
            f'Install it: pip install "awp-publish[{name}]".',
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


def open_doors(
    site: Site,
    catalog: Catalog,
    app: CalledApplication,
    status: StatusKeeper,
    background: Background | None,
    pages: PageReader | None,
    entrance: Entrance,
    outside: Outside | None = None,
    has_sessions: bool = False,
) -> Doors:
    """The doors of one public address of a site; `pages` reads its pages, None where they are HTML only.

    `outside` is what stands outside of us, `has_sessions` whether the application is seen to keep sessions in cookies.
    """
    guards = make_guards(site.guarding, catalog, protected_resource.metadata_url(catalog))
    accept = background.accepting(catalog) if background is not None else None
    observer = Observer(site.guarding.log_inputs, site.call_listeners)
    admission = read_admission_of(site, catalog.actions)
    sessions = carry = None
    if has_sessions or has_session_callers(guards, catalog):
        sessions = make_sessions(site.guarding)
        carry = SessionCalls(sessions, catalog, guards, admission.trusted_proxies, outside)
    invoker = Invoker(catalog, RouteCaller(app, catalog), guards, accept, observer, carry)
    woa, address = WoaDoor(catalog, invoker, admission), InvokeAddress(catalog.paths.invoke)
    calls, cors = address.calls(catalog), Cors(admission.allow_origins)
    context = DoorContext(site, catalog, invoker, guards, admission, background, entrance, pages, sessions)
    live = open_live_doors(context)
    below: dict[str, AnswerRest] = {}
    if background is not None:
        gate = guards.identify()

        async def identify(scope: Scope, fields: Fields) -> str:
            if carry is not None:
                scope = await carry.visit(scope)
                fields = read_fields(scope["headers"])
            principal = await gate(read_credentials(scope, fields, admission.trusted_proxies))
            return principal.id if principal is not None else ""

        renderer = ProblemRenderer(catalog)
        jobs = catalog.absolute(catalog.paths.jobs)
        door = JobsDoor(background.jobs, jobs, renderer, cors, identify, admission.own_hosts)
        below[f"{catalog.paths.jobs}/"] = door
    exact: dict[str, Answer] = {catalog.paths.status: StatusDoor(site, status, admission.own_hosts)}
    if pages is not None:
        exact[catalog.paths.som] = SomDoor(pages, admission.own_hosts)
    said = ProblemRenderer(catalog, DIALECT)
    exact |= {catalog.plain_path_of(one): PlainDoor(one, invoker, admission, said, cors) for one in catalog.actions}
    below[f"{catalog.paths.actions}/"] = UnknownActionDoor(catalog, admission, said, cors)
    for path in calls.keys() & exact.keys():
        remedy = "Give the agent another id, or our addresses other paths: Site(paths=...)."
        raise DeclarationError(
            f'agent "{calls[path]}"', f"is called at {path}, which is another address of ours.", remedy
        )
    exact |= {path: partial(woa, named=agent_id) for path, agent_id in calls.items()}
    for one in live:
        exact |= one.exact
        below |= one.below
    heads = (catalog.paths.invoke.partition("{")[0].partition("?")[0], *below)
    sockets = {path: answer for one in live for path, answer in one.sockets.items()}
    return Doors(invoker, exact, below, heads, woa, address, live, sockets)


def guard_routes(site: Site, catalog: Catalog, app: AsgiApp, routes: object) -> GuardedRoutes | None:
    """The application behind the gates of its actions' routes, None where no route is to be guarded."""
    by_site = site.limits.guard_routes
    actions = [one for one in catalog.actions if (by_site if one.guards_route is None else one.guards_route)]
    if not any(action.target is not None for action in actions):
        return None
    guards = make_guards(site.guarding, catalog, protected_resource.metadata_url(catalog))
    observer = Observer(site.guarding.log_inputs, site.call_listeners)
    guarded = GuardedRoutes(app, routes, catalog, actions, guards, observer, read_admission_of(site))
    return guarded if guarded.is_needed else None


async def _pass_rest(answer: AnswerRest, rest: str, scope: Scope, receive: Receive, send: Send) -> None:
    await answer(scope, receive, send, rest)
