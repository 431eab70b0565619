"""`AgentPublisher`: the one middleware. Documents and doors are answered here, all else goes to the application."""

import gc
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from typing import Final, Protocol as Interface, cast
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.middleware.sessions import SessionMiddleware

from awp_publish.discover import find_routes, routed
from awp_publish.health import count_workers, is_first_worker, root_path_of_server
from awp_publish.invoke import Invoker, Observer
from awp_publish.model import Catalog, Door, Paths, seconds_of
from awp_publish.policy.authentication import AuthenticationGate
from awp_publish.policy.botauth import WebBotAuth
from awp_publish.policy.call import Credentials, Label
from awp_publish.policy.guard import Guards, Tokens
from awp_publish.policy.jwt import JwtBearer
from awp_publish.problems import DeclarationError
from awp_publish.protocols import ALL, link_header, llms_txt
from awp_publish.protocols.crawling import has_sitemap
from awp_publish.protocols.protected_resource import metadata_url
from awp_publish.protocols.protocol import Protocol, published
from awp_publish.serve.dispatch import ROUTE_CALL, CalledApplication, RouteCaller
from awp_publish.serve.documents import Prepared, prepare, problem_documents
from awp_publish.serve.doors import ENTRANCE, Answer, AnswerRest, DoorContext, LiveDoor, identify_caller
from awp_publish.serve.endpoint import ProblemRenderer, read_admission_of
from awp_publish.serve.forms import DIALECT
from awp_publish.serve.guarded_routes import ARRIVED, GuardedRoutes
from awp_publish.serve.http import (
    AsgiApp,
    Cors,
    Fields,
    Receive,
    Reply,
    Scope,
    Send,
    ask_first,
    read_fields,
    route_path,
    send_reply,
)
from awp_publish.serve.jobs import BACKGROUNDS, Background, JobsDoor
from awp_publish.serve.lifespan import run_lifespan
from awp_publish.serve.metrics import MetricsDoor
from awp_publish.serve.negotiation import (
    READ_METHODS,
    Guide,
    NegotiatedPages,
    NegotiatedRequest,
    PageRenderer,
    negotiate,
)
from awp_publish.serve.pages import PageReader, SomDoor, describe_pages
from awp_publish.serve.plain import DOOR as PLAIN, PlainDoor, UnknownActionDoor
from awp_publish.serve.sessions import LIFETIME, CookieSessions, Outside, SessionCalls, has_session_callers
from awp_publish.serve.startup import report
from awp_publish.serve.status import StatusDoor, StatusKeeper
from awp_publish.serve.webhooks import Webhooks
from awp_publish.serve.woa import PROTOCOL as WOA, InvokeAddress, WoaDoor, door_of
from awp_publish.site import Site

RECEIPT_SECONDS: Final = 3600.0
"""Time for which a receipt is good."""
# --- The doors that a site has to ask for: each in its own file with its extra, imported only then ---

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


class DoorModule(Interface):
    """The file of a live door."""

    def describe_door(self, paths: Paths) -> Door:
        """Return what the documents may say about this door."""

    def open_door(self, context: DoorContext) -> LiveDoor:
        """Make the door."""


def import_door(name: str) -> DoorModule:
    """Return the file of a door. Raises DeclarationError if its extra is not installed."""
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
    live: tuple[LiveDoor, ...]
    sockets: Mapping[str, Answer]

    def find(self, scope: Scope, path: str) -> Answer | None:
        """The door that a path with one of the heads means, None if it is the application's."""
        for head, answer in self.below.items():
            if path.startswith(head):
                rest = path.removeprefix(head)
                return lambda scope, receive, send: answer(scope, receive, send, rest)
        matched = self.address.match(path, scope["query_string"])
        if matched is None:
            return None
        return partial(self.woa, named=self.address.agent_of(matched, scope["query_string"]))


@dataclass(frozen=True, slots=True)
class _Published:
    """All that one public address of the site serves; replaced as a whole, so that no request sees half of it.

    `fallbacks` are documents that stand where the application answers 404. `go_on` is how all other requests reach the
    application, `pages` what they may ask of it, None for HTML only; `guarded` stands before its routes, None where
    none is guarded.
    """

    host: str
    documents: Mapping[str, Prepared]
    fallbacks: Mapping[str, Prepared]
    doors: Doors
    pages: NegotiatedPages | None
    go_on: Answer
    guarded: GuardedRoutes | None
    found: Mapping[str, Prepared | Answer] = field(init=False)
    heads: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        ours = {path: partial(_fall_back, self.go_on, prepared) for path, prepared in self.fallbacks.items()}
        # One look for every request.
        object.__setattr__(self, "found", {**ours, **self.doors.exact, **self.documents})
        object.__setattr__(self, "heads", self.doors.heads)


_starts: Final = count()


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Keeps a start linear: all that is made is kept, and each collection would look at all of it again.

    What the first start of a process has made counts as old afterwards, without a look at it, unless somebody has set
    objects aside for good. Not what later ones make, as in tests: much of that is garbage by then.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if next(_starts) == 0 and not gc.get_freeze_count():  # which counts them one by one
                gc.freeze()
                gc.unfreeze()
            gc.enable()


class AgentPublisher:
    """Makes an ASGI application usable by agents.

    `app.add_middleware(AgentPublisher, site=site)` inside Starlette or FastAPI, `AgentPublisher(app, site=site)`
    around any ASGI application. `protocols` are what is published. `link_headers` adds a `Link` header (RFC 8288) that
    points at the documents to the application's HTML pages. `check` logs what the checks find in the documents when
    the server starts. Raises DeclarationError at start-up for a wrong declaration.
    """

    def __init__(
        self,
        app: AsgiApp,
        site: Site,
        protocols: Sequence[Protocol] = ALL,
        *,
        link_headers: bool = False,
        check: bool = True,
    ) -> None:
        given: object = app
        if not isinstance(site, Site) or isinstance(given, Site) or not callable(app):
            wrong = "was given the site first." if isinstance(given, Site) else "needs an application and a site."
            remedy = "Write AgentPublisher(app, site=site), or app.add_middleware(AgentPublisher, site=site)."
            raise DeclarationError("AgentPublisher", wrong, remedy)
        self.app = app
        self.site = site
        self._protocols = tuple(protocols)
        self._link_headers = link_headers
        self._check = check
        self._status = StatusKeeper(site.liveness, site.probe)
        self._observer = Observer(site.settings.log_inputs, site.call_listeners, site.traffic)
        self._background: Background | None = None
        self._webhooks: Webhooks | None = None
        self._renderer: PageRenderer | None = None
        self._whole: AsgiApp = app
        self._called = CalledApplication(app, app)
        self._outside: Outside | None = None
        self._has_sessions = False
        self._state: Mapping[str, object] = {}
        self._published: tuple[_Published, ...] = ()
        self._here: _Published | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._pass_other(scope, receive, send)
            return
        if ROUTE_CALL in scope:  # on its way from a door of ours to its route, and for nothing else of ours
            await scope[ROUTE_CALL].arrive(self.app, scope, receive, send)
            return
        here = self._here or self._of_host(scope)
        path = route_path(scope) if scope.get("root_path") else scope["path"]
        found = here.found.get(path)
        if found is None:
            go_on = here.go_on
            if path.startswith(here.heads):
                go_on = here.doors.find(scope, path) or go_on
            await go_on(scope, receive, send)
        elif type(found) is Prepared:
            reply = found.answer(scope["method"], scope["headers"])
            # Headers are copied: middleware outside of us may change its copy.
            await send({"type": "http.response.start", "status": reply.status, "headers": list(reply.headers)})
            await send({"type": "http.response.body", "body": reply.body})
        else:
            await found(scope, receive, send)

    def open(self) -> None:
        """Freeze the site and prepare everything now, not at the first request. Raises DeclarationError."""
        if not self._published:
            self._open({})

    def document(self, scope: Scope) -> Reply | None:
        """The answer to a request for a document, None for any other: for adapters, and without an event loop."""
        here = self._here or self._of_host(scope)
        prepared = here.documents.get(route_path(scope))
        return None if prepared is None else prepared.answer(scope["method"], scope["headers"])

    def file(self, scope: Scope) -> NegotiatedRequest | None:
        """Return the requested format where a page's Markdown file is named that the application has not: for adapters.

        As `asked`; the path of its scope is the page's.
        """
        pages = (self._here or self._of_host(scope)).pages
        return None if pages is None else pages.read_file(scope)

    def links(self, scope: Scope, *, is_page: bool = True) -> str:
        """The `Link` header of an answer: the site's documents, and a page's own other formats; for adapters."""
        here = self._here or self._of_host(scope)
        links = link_header(self.site.catalog, self._protocols)
        if not is_page or here.pages is None or scope["method"] not in READ_METHODS:
            return links
        return f"{links}, {here.pages.alternates(scope).decode('latin-1')}"

    def fallback(self, scope: Scope) -> Reply | None:
        """The document that stands where the application answers 404, None for any other request: for adapters."""
        here = self._here or self._of_host(scope)
        prepared = here.fallbacks.get(route_path(scope))
        return None if prepared is None else prepared.answer(scope["method"], scope["headers"])

    def owns(self, scope: Scope) -> bool:
        """Return True if a request is answered here and not by the application: for adapters that pass only these on.

        Of the scope are read: `path`, `root_path`, `query_string` and the header Host.
        """
        here = self._here or self._of_host(scope)
        path = route_path(scope)
        return (
            path in here.documents
            or path in here.doors.exact
            or (path.startswith(here.heads) and here.doors.find(scope, path) is not None)
        )

    def guards(self, scope: Scope) -> bool:
        """Return True if a request that is the application's arrives at a route that is guarded: for adapters.

        They pass it on to us, for the gates, with a way to the route behind us; that it was found is in its scope then.
        """
        guarded = (self._here or self._of_host(scope)).guarded
        action = guarded.find(scope) if guarded is not None else None
        if action is not None:
            scope[ARRIVED] = action
        return action is not None

    def asked(self, scope: Scope) -> NegotiatedRequest | None:
        """Return the format that a request of the application's asks for besides HTML, None for nothing: for adapters.

        They pass `asked.scope` on to the application, and what it answers to `asked.render()`.
        """
        pages = (self._here or self._of_host(scope)).pages
        return None if pages is None else pages.read_request(scope)

    async def _pass_other(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" and not self._published:
            try:
                self._open(scope)
            except DeclarationError as error:
                await receive()
                await send({"type": "lifespan.startup.failed", "message": str(error)})
                raise
            # A reloader starts one process after the other, each with what was written meanwhile.
            if self._check and (count_workers() == 1 or is_first_worker()):
                root_path = scope.get("root_path") or root_path_of_server()
                with _collector_paused():
                    report(self.site, self._published[0].documents, find_routes(self._application(scope)), root_path)
        if scope["type"] == "lifespan":
            await run_lifespan(self.app, scope, receive, send, partial(self._running, scope))
        elif scope["type"] == "websocket":
            here = self._here or self._of_host(scope)
            await here.doors.sockets.get(route_path(scope), self.app)(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    @asynccontextmanager
    async def _running(self, scope: Scope) -> AsyncIterator[None]:
        """Run the worker of background jobs and the probes while the application runs."""
        self._state = scope.get("state", {})
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.site.store.close)
            if self._background is not None:
                scope.get("extensions", {}).get(BACKGROUNDS, []).append(self._background)
                await stack.enter_async_context(self._background.working(scope.get("state", {})))
            if self._webhooks is not None:
                await stack.enter_async_context(self._webhooks.working())
            for door in (door for published in self._published for door in published.doors.live):
                if door.running is not None:
                    await stack.enter_async_context(door.running())
            if self.site.traffic is not None:
                await stack.enter_async_context(self.site.traffic.keeping())
            if self.site.liveness.probes:
                await stack.enter_async_context(self._status.keeping())
            yield

    # --- Publishing ---

    @_collector_paused()
    def _open(self, scope: Scope) -> tuple[_Published, ...]:
        """Freeze the site against the application's routes and prepare everything that is served."""
        settings = self.site.settings
        known = {protocol.name for protocol in (*ALL, *self._protocols)}
        for name in settings.about.leave_out:
            if name not in known:
                wrong = f'about.leave_out: "{name}" is no protocol that is published.'
                raise DeclarationError("site", wrong, f"There are: {', '.join(sorted(known))}.")
        given = {protocol.name for protocol in self._protocols} - set(settings.about.leave_out)
        left_out = known - given
        documents = [document for one in self._protocols if one.name in given for document in one.documents]
        paths = [document.path for document in documents if document.condition is None]
        live = (import_door(name).describe_door(settings.paths) for name in settings.doors)
        doors = (door_of(settings.paths.invoke), *live, *describe_pages(settings))
        self.site.freeze(self._application(scope), doors, paths, left_out)
        # The application with all that stands around us: where a request of our own comes in as any other does.
        self._whole = self.app if isinstance(routed(self.app), Starlette) else scope.get("app") or self.app
        entrance = self._whole if self._is_enclosed(scope) else None
        routes = self._application(scope)
        cookies = _session_cookies(routes)
        outside = entrance or (self._whole if self._has_outer_middleware(scope) else None)
        self._called = CalledApplication(self.app, routes, entrance, outside, lambda: self._state, cookies)
        # A framework of its own way (Django) says which members of a scope lead back through all of it.
        carried: tuple[str, ...] = getattr(self.app, "awp_carried", ())
        self._outside = None
        if outside is not None or carried:
            self._outside = Outside(outside or self.app, lambda: self._state, carried)
        self._has_sessions = bool(cookies) or getattr(self.app, "awp_has_sessions", False)
        if any(action.is_background for action in self.site.catalog.actions):
            catalog, application = self.site.catalog, self._application(scope)
            guards = self._guards(catalog, None)
            sessions = self._sessions(guards, catalog)
            self._background = Background(settings, catalog, guards, self._observer, self._whole, application, sessions)
        if self.site.catalog.events or "a2a" in settings.doors:
            self._webhooks = Webhooks(lambda: self.site.store, self.site.events)
            if self._background is not None:
                self._background.announce_to(self._webhooks, self.site)
        if settings.page_formats is not None:
            self._renderer = PageRenderer()
            self._renderer.on_reading = self._count_reading if self.site.traffic is not None else None
        self.site.on_refresh(self._publish)
        self._publish(self.site)
        return self._published

    def _of_host(self, scope: Scope) -> _Published:
        """Return the configured address that a request came to, the canonical one for any other."""
        published = self._published or self._open(scope)
        host = read_fields(scope["headers"]).get(b"host", b"").decode("latin-1").lower()
        return next((one for one in published if one.host == host), published[0])

    def _application(self, scope: Scope) -> object:
        """Return the application with the routes. Inside Starlette we are given a bare router; it is in the scope."""
        wrapped = routed(self.app)
        if isinstance(wrapped, Starlette):
            return wrapped
        return scope.get("app") or wrapped

    def _is_enclosed(self, scope: Scope) -> bool:
        """Return True if middleware of the site that is to see calls' routes stands outside of us in the application.

        All of an application's does, where it does not show where among it we stand. Raises DeclarationError where we
        are mounted in an application, whose middleware cannot be told of them.
        """
        app = scope.get("app")
        listed = [one for one in getattr(app, "user_middleware", ()) if not self.site.settings.trust_outer_middleware]
        if listed and "endpoint" in scope and getattr(app, "router", None) is not routed(self.app):
            names = ", ".join(getattr(one.cls, "__name__", repr(one.cls)) for one in listed)
            raise DeclarationError(
                "site",
                f"is published from within another application, whose middleware no call of an action passes: {names}.",
                "Add AgentPublisher to that application; or, if none of it decides by the path of a request, "
                "write Site(trust_outer_middleware=True).",
            )
        return bool(listed) and self._has_outer_middleware(scope)

    def _has_outer_middleware(self, scope: Scope) -> bool:
        """Return True if middleware of the site, trusted or not, stands outside of us in the same application."""
        app = scope.get("app")
        listed = getattr(app, "user_middleware", ())
        ours = (index for index, one in enumerate(listed) if getattr(one, "kwargs", {}).get("site") is self.site)
        return app is self._whole and next(ours, len(listed)) > 0

    def _entrance(self, scope: Scope) -> AsgiApp:
        """The same for what comes in while we serve, ourselves included: who browses sees our own pages too."""
        if ENTRANCE in scope:
            given: AsgiApp = scope[ENTRANCE]
            return given
        app: AsgiApp | None = scope.get("app")
        if app is None:
            return self
        # What stands between us and the routes need not keep what it wraps as `app`: then the application lists us.
        listed = getattr(app, "user_middleware", ())
        lists_us = any(getattr(one, "kwargs", {}).get("site") is self.site for one in listed)
        return app if lists_us or getattr(app, "router", None) is routed(self.app) else self

    def _publish(self, site: Site) -> None:
        before = {published.host: published for published in self._published}
        now = datetime.now(UTC)
        published = tuple(self._prepare(catalog, before.get(_host_of(catalog)), now) for catalog in site.catalogs)
        self._published = published
        self._here = published[0] if len(published) == 1 else None

    def _prepare(self, catalog: Catalog, before: _Published | None, now: datetime) -> _Published:
        link = link_header(catalog, self._protocols, of_pages=False).encode("latin-1")
        earlier = {**before.documents, **before.fallbacks} if before else {}
        listed = [*published(self._protocols, catalog), *problem_documents(catalog)]
        documents = prepare((one for one in listed if not one.is_fallback), catalog, link, earlier, now)
        fallbacks = prepare((one for one in listed if one.is_fallback), catalog, link, earlier, now)
        if before is not None:
            before.doors.invoker.set_status(catalog.status)
            if before.guarded is not None:
                before.guarded.set_status(catalog.status)
            return replace(before, documents=documents, fallbacks=fallbacks)
        formats = self.site.settings.page_formats
        links = link_header(catalog, self._protocols).encode("latin-1") if self._link_headers else None
        pages = None
        if formats and self._renderer:
            llms = catalog.absolute(llms_txt.PATH) if catalog.publishes("llms_txt") else None
            sitemap = catalog.absolute(llms_txt.SITEMAP_MD_PATH) if has_sitemap(catalog) else None
            updated = catalog.site.updated.date().isoformat() if catalog.site.updated is not None else None
            guide = Guide(llms, sitemap, catalog.site.version, updated)
            pages = NegotiatedPages(catalog, formats, self._renderer, links, guide)
        by_site = self.site.settings.guard_routes
        actions = [one for one in catalog.actions if (by_site if one.guards_route is None else one.guards_route)]
        guarded: GuardedRoutes | None = None
        if any(action.target is not None for action in actions):
            guards, admission = self._guards(catalog, metadata_url(catalog)), read_admission_of(self.site.settings)
            routes = self._called.routes
            guarded = GuardedRoutes(self.app, routes, catalog, actions, guards, self._observer, admission)
            guarded = guarded if guarded.is_needed else None
        onward = negotiate(guarded or self.app, pages, links, self.site.settings.timeout)
        doors = self._open_doors(catalog, pages)
        return _Published(_host_of(catalog), documents, fallbacks, doors, pages, onward, guarded)

    def _open_doors(self, catalog: Catalog, pages: NegotiatedPages | None) -> Doors:
        site, settings, background, reader = self.site, self.site.settings, self._background, None
        host = _host_of(catalog)
        if self._renderer is not None:
            links = pages.links if pages is not None else lambda scope: None
            reader = PageReader(settings, catalog, self._whole, self._renderer, self.owns, lambda: self._state, links)
        guards, admission = self._guards(catalog, metadata_url(catalog)), read_admission_of(settings, catalog.actions)
        accept = background.accepting(catalog) if background is not None else None
        sessions, carry = self._sessions(guards, catalog), None
        if sessions is not None:
            carry = SessionCalls(sessions, catalog, guards, admission.trusted_proxies, self._outside)
        routes = RouteCaller(self._called, catalog)
        invoker = Invoker(catalog, routes.call, guards, accept, self._observer, carry, routes.check, routes.rehearse)
        context = DoorContext(
            settings=settings,
            catalog=catalog,
            published=lambda: next(one for one in site.catalogs if one.url == catalog.url),
            invoker=invoker,
            guards=guards,
            keys=site.keys,
            admission=admission,
            background=background,
            entrance=self._entrance,
            pages=reader,
            site=site,
            documents=lambda: next((one.documents, one.fallbacks) for one in self._published if one.host == host),
            routes=partial(find_routes, self._called.routes),
            sessions=sessions,
            carry=carry,
            webhooks=self._webhooks,
        )
        names = settings.doors
        live = [import_door(one).open_door(replace(context, catalog=catalog.exposed_at(one))) for one in names]
        if settings.has_overview:  # what is off is not even imported
            live.append(cast(DoorModule, import_module(OVERVIEW)).open_door(context))
        paths, hosts, cors = catalog.paths, admission.own_hosts, Cors(admission.allow_origins)
        below: dict[str, AnswerRest] = {}
        exact: dict[str, Answer] = {paths.status: StatusDoor(catalog, self._status, hosts)}
        if background is not None:
            renderer, identify, jobs = ProblemRenderer(catalog), identify_caller(context), catalog.absolute(paths.jobs)
            below[f"{paths.jobs}/"] = JobsDoor(
                background.jobs, jobs, renderer, cors, identify, hosts, sessions, catalog.actions
            )
        if reader is not None:
            exact[paths.som] = SomDoor(reader, hosts)
        if site.traffic is not None and settings.traffic is not None and (who := settings.traffic.metrics):
            gate = None
            if isinstance(who, str):
                known, metadata = guards.authenticators, guards.metadata_url
                gate = AuthenticationGate(known, True, (who,), guards.realm, metadata, store=guards.store)
            exact[paths.metrics] = MetricsDoor(catalog, site.traffic, hosts, gate, admission.trusted_proxies)
        said, offered = ProblemRenderer(catalog, DIALECT), catalog.exposed_at(PLAIN)
        below[f"{paths.actions}/"] = missing = UnknownActionDoor(offered, admission, said, cors)
        for action in offered.actions:
            plain = PlainDoor(action, invoker, admission, said, cors, missing.describe)
            exact[catalog.plain_path_of(action)] = plain
        woa, address = WoaDoor(catalog, invoker, admission), InvokeAddress(paths.invoke)
        for path, agent_id in address.calls(catalog.exposed_at(WOA)).items():
            if path in exact:
                remedy = "Give the agent another id, or our addresses other paths: Site(paths=...)."
                raise DeclarationError(
                    f'agent "{agent_id}"', f"is called at {path}, which is another address of ours.", remedy
                )
            exact[path] = partial(woa.answer, agent_id)
        for door in live:
            exact |= door.exact
            below |= door.below
        heads = (paths.invoke.partition("{")[0].partition("?")[0], *below)
        sockets = {path: answer for door in live for path, answer in door.sockets.items()}
        return Doors(invoker, exact, below, heads, woa, address, tuple(live), sockets)

    def _count_reading(self, url: str, requested: str, status: int, fields: Fields) -> None:
        """Count a reading of a page; of what is no page of the site without its address, which anybody may invent."""
        if (traffic := self.site.traffic) is not None:
            label: Label = "unknown"
            for one in self.site.authenticators:
                if isinstance(one, WebBotAuth):
                    label = one.label_of(Credentials({"user-agent": fields.get(b"user-agent", b"").decode("latin-1")}))
            is_page = status < 400
            path = urlsplit(url).path or "/"
            traffic.add(
                "som" if requested == "som" else "markdown",
                path if is_page else "",
                "",
                label,
                "ok" if is_page else str(status),
            )

    def _sessions(self, guards: Guards, catalog: Catalog) -> CookieSessions | None:
        """The sessions that are kept for callers without a cookie jar, None for a site that knows nobody by cookies."""
        if not self._has_sessions and not has_session_callers(guards, catalog):
            return None
        tokens = Tokens(self.site.keys, f"session:{self.site.settings.namespace}", LIFETIME)
        return CookieSessions(self.site.store, tokens)

    def _guards(self, catalog: Catalog, metadata: str | None) -> Guards:
        """Return what the guards of a catalog share. `metadata` is where RFC 9728 metadata is served, if it is."""
        site, settings, actions = self.site, self.site.settings, catalog.actions
        receipted = frozenset(needed for action in actions for needed in action.requires)
        confirm_within = float(seconds_of(settings.confirm_within))
        confirmations = Tokens(site.keys, f"confirmation:{settings.namespace}", confirm_within)
        receipts = Tokens(site.keys, f"receipt:{settings.namespace}", RECEIPT_SECONDS)
        # Processes that share a store without a key of the site's have none in common.
        has_keys = bool(settings.secret_keys) or not site.store.is_shared
        fingerprints = Tokens(site.keys, f"fingerprint:{settings.namespace}", 0.0) if has_keys else None
        return Guards(
            store=site.store,
            authenticators=tuple(
                one.bound_to(settings.urls, site.store) if isinstance(one, (WebBotAuth, JwtBearer)) else one
                for one in site.authenticators
            ),
            realm=catalog.site.name,
            metadata_url=metadata,
            codes=catalog.site.errors,
            rate_limit=catalog.site.rate_limit,
            fingerprints=fingerprints,
            confirmations=confirmations if any(action.needs_confirmation for action in actions) else None,
            receipts=receipts if receipted else None,
            receipted=receipted,
            credentials=frozenset(known for action in actions for known in action.route_credentials),
        )


async def _fall_back(go_on: Answer, prepared: Prepared, scope: Scope, receive: Receive, send: Send) -> None:
    """Ask the application first, and answer with our document where it has none."""

    async def answer(_: Receive) -> None:
        await send_reply(prepared.answer(scope["method"], scope["headers"]), send)

    await ask_first(go_on, scope, receive, send, (404,), answer)


def _session_cookies(app: object) -> frozenset[bytes]:
    """Return the names of the cookies that Starlette's own sessions write, as far as the application shows them."""
    listed = [one for one in getattr(app, "user_middleware", ()) if isinstance(one.cls, type)]
    names = (one.kwargs.get("session_cookie", "session") for one in listed if issubclass(one.cls, SessionMiddleware))
    return frozenset(str(name).encode("latin-1", "replace") for name in names)


def _host_of(catalog: Catalog) -> str:
    return catalog.url.split("://", 1)[1].split("/", 1)[0].lower()
