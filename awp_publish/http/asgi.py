"""`AgentPublisher`, the ASGI middleware. It serves documents and doors; the application gets all other requests."""

import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from awp_publish.calls.callers import BoundAuthenticator
from awp_publish.calls.gates.gate import Guards
from awp_publish.calls.hooks import CallHooks
from awp_publish.calls.invoke import Invoker
from awp_publish.calls.observe import Observers
from awp_publish.declare.composition import called
from awp_publish.declare.discover import find_routes
from awp_publish.declare.plugins import doors_of, gates_of
from awp_publish.declare.site import Site
from awp_publish.documents.links import link_header
from awp_publish.documents.protocol import published
from awp_publish.http.admission import read_admission_of
from awp_publish.http.collector import collector_paused
from awp_publish.http.dispatch import RouteCaller
from awp_publish.http.documents import Prepared, prepare, refuse_shared_paths
from awp_publish.http.exchange import AsgiApp, Receive, Reply, Scope, Send, read_fields, route_path
from awp_publish.http.lifespan import LaterDoors, run_lifespan
from awp_publish.http.position import CalledApplication, Position
from awp_publish.http.served_address import ServedAddress, host_of, open_all
from awp_publish.model import ROUTE_CALL, Catalog
from awp_publish.plugin import (
    Answer,
    Context,
    Door,
    Finding,
    RunningApplication,
    Serving,
    known_protocols,
    protocols_of,
    wires_of,
)
from awp_publish.problems import DeclarationError


def sites_of(app: object) -> Iterator[Site]:
    """Yield the sites that an application publishes with all its middleware, the outermost first."""
    seen: set[int] = set()
    while app is not None and id(app) not in seen:
        seen.add(id(app))
        if isinstance(app, AgentPublisher):
            yield app.site
        for middleware in getattr(app, "user_middleware", ()):
            given = *getattr(middleware, "kwargs", {}).values(), *getattr(middleware, "args", ())
            yield from (value for value in given if isinstance(value, Site))
        app = getattr(app, "app", None)


class AgentPublisher:
    """Makes an ASGI application usable by agents.

    `app.add_middleware(AgentPublisher, site=site)` inside Starlette or FastAPI, `AgentPublisher(app, site=site)`
    around any ASGI application. The application's HTML pages get a `Link` header (RFC 8288) that points at the
    documents; with `link_headers=True` its JSON does too, with False neither. `trust_outer_middleware` says that no
    middleware outside of this one decides by the path, so that calls of routes need not pass it a second time. `check`
    logs what the checks find in the documents when the server starts. Raises DeclarationError at start-up for a wrong
    declaration.
    """

    def __init__(
        self,
        app: AsgiApp,
        site: Site,
        *,
        link_headers: bool | None = None,
        trust_outer_middleware: bool = False,
        check: bool = True,
    ) -> None:
        candidate: object = app
        if not isinstance(site, Site) or isinstance(candidate, Site) or not callable(app):
            wrong = (
                "takes the application first, then the site."
                if isinstance(candidate, Site)
                else "needs an application and a site."
            )
            remedy = "Write AgentPublisher(app, site=site), or app.add_middleware(AgentPublisher, site=site)."
            raise DeclarationError("AgentPublisher", wrong, remedy)
        self.app = app
        self.site = site
        self._protocols = protocols_of(site.plugins)
        self._link_headers = link_headers
        self._check = check
        watchers = (called(setup.plugin, "watcher", object, setup) for setup in site.plugins.values())
        counters = (called(setup.plugin, "counter", object, setup) for setup in site.plugins.values())
        self._observers = Observers(
            watcher=next((watcher for watcher in watchers if watcher is not None), None),
            counter=next((counter for counter in counters if counter is not None), None),
        )
        self._plugins: dict[str, Serving] = {}
        self._position = Position(self, app, site, trust_outer_middleware)
        self._called = CalledApplication(app, app)
        self._lifespan: Scope = {}
        self._doors: Mapping[str, Sequence[Door]] = {}
        self._opening = threading.RLock()
        self._published: tuple[ServedAddress, ...] = ()
        self._here: ServedAddress | None = None
        self._later_doors = LaterDoors()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._pass_other(scope, receive, send)
            return
        if ROUTE_CALL in scope:  # a call from one of our doors, on its way to a route of the application
            await scope[ROUTE_CALL].arrive(self.app, scope, receive, send)
            return
        here = self._here or self._of_host(scope)
        path = route_path(scope) if scope.get("root_path") else scope["path"]
        endpoint = here.answers.get(path)
        if endpoint is None:
            forward = here.forward
            if path.startswith(here.prefixes):
                forward = here.find(scope, path) or forward
            await forward(scope, receive, send)
        elif type(endpoint) is Prepared:
            reply = endpoint.answer(scope["method"], scope["headers"])
            # The headers are copied because outer middleware may change them in place.
            await send({"type": "http.response.start", "status": reply.status, "headers": list(reply.headers)})
            await send({"type": "http.response.body", "body": reply.body})
        else:
            await endpoint(scope, receive, send)

    def open(self) -> None:
        """Freeze the site and prepare everything now instead of at the first request. Raises DeclarationError."""
        if not self._published:
            self._open({})

    def document(self, scope: Scope, *, is_fallback: bool = False) -> Reply | None:
        """Return the reply to a request for a document, None for any other. For adapters; needs no event loop.

        With `is_fallback`, it is a document that is served if the application has none.
        """
        here = self._here or self._of_host(scope)
        prepared = (here.fallbacks if is_fallback else here.documents).get(route_path(scope))
        return None if prepared is None else prepared.answer(scope["method"], scope["headers"])

    def links(self, scope: Scope) -> str:
        """Return the `Link` header with the site's documents. For adapters."""
        return link_header(self.site.catalog, self._protocols)

    def context(self, scope: Scope, plugin: str) -> Context | None:
        """Return what a plug-in has at the address of a request, None without that plug-in. For adapters."""
        return (self._here or self._of_host(scope)).contexts.get(plugin)

    def owns(self, scope: Scope) -> bool:
        """Return True if a request is answered here and not by the application. For adapters, which pass only these on.

        This reads `path`, `root_path`, `query_string` and the header Host of the scope.
        """
        return (self._here or self._of_host(scope)).owns(scope, route_path(scope))

    async def _pass_other(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" and not self._published:
            try:
                self._open(scope)
            except DeclarationError as error:
                await receive()
                await send({"type": "lifespan.startup.failed", "message": str(error)})
                raise
        if scope["type"] == "lifespan":
            await run_lifespan(self.app, scope, receive, send, partial(self._running, scope))
        elif scope["type"] == "websocket":
            here = self._here or self._of_host(scope)
            await here.doors.sockets.get(route_path(scope), self.app)(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    @asynccontextmanager
    async def _running(self, scope: Scope) -> AsyncIterator[None]:
        """Run the plug-ins and the doors while the application runs."""
        self._lifespan = scope
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.site.store.close)
            for serving in self._plugins.values():
                context = called(serving.setup.plugin, "running", AbstractAsyncContextManager, serving)
                await stack.enter_async_context(context)
            for running in (running for published in self._published for running in published.running):
                await stack.enter_async_context(running())
            await stack.enter_async_context(self._later_doors.running())
            yield

    def _open(self, scope: Scope) -> tuple[ServedAddress, ...]:
        """Freeze the site and prepare everything that is served, unless another thread's event loop has done it."""
        with self._opening:
            if not self._published:
                self._prepare_site(scope)
        return self._published

    @collector_paused()
    def _prepare_site(self, scope: Scope) -> None:
        """Freeze the site against the application's routes and prepare everything that is served."""
        site, settings = self.site, self.site.settings
        known = {protocol.name for protocol in (*known_protocols(), *self._protocols)}
        for name in settings.about.leave_out:
            if name not in known:
                wrong = f'about.leave_out: "{name}" is not a protocol that is published.'
                raise DeclarationError("site", wrong, f"There are: {', '.join(sorted(known))}.")
        protocols = [protocol for protocol in self._protocols if protocol.name not in settings.about.leave_out]
        documents = (document for protocol in protocols for document in protocol.documents)
        paths = [document.path for document in documents if document.condition is None]
        self._doors = doors_of(site.plugins, settings.paths)
        doors = [door for listed in self._doors.values() for door in listed]
        called = self._called = self._position.called(scope, lambda: self._lifespan.get("state", {}))
        names = (protocol.name for protocol in protocols)
        site.freeze(called.routes, doors, paths, names)
        site.findings += tuple(_shadowed(other) for other in sites_of(self.app) if other is not site)
        application = RunningApplication(
            observers=self._observers,
            app=self._position.whole(scope),
            called=called,
            has_sessions=bool(called.session_cookies) or getattr(self.app, "awp_has_sessions", False),
            wires=wires_of(setup.plugin for setup in site.plugins.values()),
            plugins=self._plugins,
            owns=self.owns,
            guards_of=self._guards,
            lifespan=lambda: self._lifespan,
            documents=lambda: self._published[0].documents,
            is_checked=self._check,
            routes=partial(find_routes, called.routes),
            entrance=self._position.entrance,
        )
        self._plugins |= {name: Serving(setup=setup, application=application) for name, setup in site.plugins.items()}
        site.on_refresh(self._publish)
        self._publish(site)

    def _of_host(self, scope: Scope) -> ServedAddress:
        """Return what is published for the request's Host: that of the canonical address if the Host is unknown."""
        published = self._published or self._open(scope)
        host = read_fields(scope["headers"]).get(b"host", b"").decode("latin-1").lower()
        return next((address for address in published if address.host == host), published[0])

    def _publish(self, site: Site) -> None:
        before = {published.host: published for published in self._published}
        now = datetime.now(UTC)
        published = tuple(self._publish_at(catalog, before.get(host_of(catalog)), now) for catalog in site.catalogs)
        self._published = published
        self._here = published[0] if len(published) == 1 else None

    def _publish_at(self, catalog: Catalog, before: ServedAddress | None, now: datetime) -> ServedAddress:
        """Prepare the documents of one address, and open its doors unless they are open for the same actions."""
        link = link_header(catalog, self._protocols, of_pages=False).encode("latin-1")
        earlier = {**before.documents, **before.fallbacks} if before else {}
        listed = list(published(self._protocols, catalog))
        refuse_shared_paths(listed, catalog)
        documents = prepare((document for document in listed if not document.is_fallback), catalog, link, earlier, now)
        fallbacks = prepare((document for document in listed if document.is_fallback), catalog, link, earlier, now)
        if before is not None and before.actions is catalog.actions:
            before.invoker.set_status(catalog.status)
            return replace(before, documents=documents, fallbacks=fallbacks)
        guards = self._guards(catalog)
        contexts = self._contexts_at(catalog, guards)
        plugins = reversed(contexts.values())  # what a site names is outside of what every site has
        hooks = [called(context.setup.plugin, "calls", CallHooks, context) for context in plugins]
        invoker = Invoker(catalog, RouteCaller(self._called, catalog), guards, self._observers, hooks)
        for context in contexts.values():
            context.invoker = invoker

        def around(app: Answer) -> Answer:
            for context in contexts.values():
                app = called(context.setup.plugin, "around", Callable, context, app)
            return app

        doors, running = open_all((door, contexts[name]) for name, doors in self._doors.items() for door in doors)
        self._later_doors.open(running)
        return ServedAddress(
            host=host_of(catalog),
            actions=catalog.actions,
            documents=documents,
            fallbacks=fallbacks,
            doors=doors,
            running=running,
            contexts=contexts,
            invoker=invoker,
            app=self.app,
            around=around,
        )

    def _contexts_at(self, catalog: Catalog, guards: Guards) -> dict[str, Context]:
        """Return what each plug-in has at one address of the site."""
        site, host = self.site, host_of(catalog)
        links = None if self._link_headers is False else link_header(catalog, self._protocols).encode("latin-1")
        admission = read_admission_of(site.settings, catalog.actions)
        contexts: dict[str, Context] = {}
        for name, serving in self._plugins.items():
            contexts[name] = Context(
                setup=serving.setup,
                application=serving.application,
                catalog=catalog,
                guards=guards,
                admission=admission,
                links=links,
                links_json=self._link_headers is True,
                published=lambda: next(latest for latest in site.catalogs if latest.url == catalog.url),
                documents=lambda: next(
                    (address.documents, address.fallbacks) for address in self._published if address.host == host
                ),
                here=contexts,
            )
        return contexts

    def _guards(self, catalog: Catalog) -> Guards:
        """Return what the guards of a catalog share."""
        site, settings = self.site, self.site.settings
        return Guards(
            store=site.store,
            authenticators=tuple(
                authenticator.bound_to(settings.urls, site.store)
                if isinstance(authenticator, BoundAuthenticator)
                else authenticator
                for authenticator in site.authenticators
            ),
            realm=catalog.site.name if catalog.site.name.isascii() else catalog.domain,
            metadata_url=catalog.metadata_url,
            codes=catalog.site.errors,
            gates=gates_of(site.plugins),
        )


def _shadowed(other: Site) -> Finding:
    message = (
        f'The site "{other.facts.name}" of the same application is not reached: this one answers at its addresses.'
    )
    hint = "Declare the actions of both on one Site, or give each site an application of its own."
    return Finding("warning", "start-shadowed", "", message, hint, "awp_publish")
