"""The overview at `/agents`: how a site is doing, what it publishes, a form for every door, how to connect.

It is for the site's owner, and served only if the site enables it. It works without scripts: its forms post to it, and
it sends their inputs through the whole application in this process, as a client would. Of the visitor's own request,
only the cookies and the address are passed on.
"""

import asyncio
import logging
from datetime import UTC, datetime
from functools import partial
from typing import Final, cast

from awp_publish.calls.authentication import AuthenticationGate
from awp_publish.calls.call import Principal, scopes_of
from awp_publish.calls.threads import run_in_thread
from awp_publish.calls.tokens import Tokens
from awp_publish.checks import Finding
from awp_publish.http.body import read_body
from awp_publish.http.cors import Cors
from awp_publish.http.credentials import read_credentials
from awp_publish.http.documents import Encodings, Prepared
from awp_publish.http.endpoint import Endpoint
from awp_publish.http.exchange import (
    NO_SNIFFING,
    RawHeaders,
    Receive,
    Reply,
    Scope,
    Send,
    route_path,
    send_reply,
)
from awp_publish.http.forms import is_form, read_form, read_query
from awp_publish.http.origins import is_cross_site, refuse_foreign_host
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.http.request import DoorRequest
from awp_publish.plugin import Answer, Context, Endpoints
from awp_publish.plugins.overview.approval import APPROVABLE_FOR, approve
from awp_publish.plugins.overview.dashboard import dashboard
from awp_publish.plugins.overview.figures import DAYS
from awp_publish.plugins.overview.html import Html
from awp_publish.plugins.overview.markup import STATIC, fill
from awp_publish.plugins.overview.panels import FIELD, act, read_panels
from awp_publish.plugins.overview.trial import Trial
from awp_publish.plugins.overview.view import Traffic, View
from awp_publish.problems import (
    CrossSiteCookies,
    DeclarationError,
    Problem,
    StoreUnavailable,
    UnknownAction,
    UnsupportedMediaType,
)

logger: Final = logging.getLogger("awp_publish.overview")

FILES: Final = {"overview.css": "text/css", "overview.js": "text/javascript", "overview.svg": "image/svg+xml"}

SECURITY: Final = (
    (b"content-security-policy", b"default-src 'self'; frame-ancestors 'none'; form-action 'self'; base-uri 'none'"),
    (b"referrer-policy", b"same-origin"),
    (b"x-robots-tag", b"noindex"),
    (b"cache-control", b"no-store"),
    NO_SNIFFING,
)

MAX_FORM_BYTES: Final = 4_194_304


def open_door(door: Context) -> Endpoints:
    """Create the overview of one public address of a site.

    Raises DeclarationError if it requires a scope but the site authenticates nobody.
    """
    if door.options.audience is not None and not door.guards.authenticators:
        wrong = f'overview: requires the scope "{door.options.audience}", but the site authenticates nobody.'
        raise DeclarationError("site", wrong, 'Give Site(authenticate=...), or plugins=["overview"] for everybody.')
    root = door.catalog.paths.root
    answer: Answer = OverviewDoor(door)
    if (pages := door.ask("pages")) is not None:
        answer = pages.offer_formats(answer)

    async def answer_below(scope: Scope, receive: Receive, send: Send, rest: str) -> None:
        await answer(scope, receive, send)

    def serve_file(name: str, media_type: str) -> Answer:
        headers = ((b"content-type", f"{media_type}; charset=utf-8".encode()), (b"cache-control", b"no-cache"))
        encodings = Encodings((STATIC / name).read_bytes())
        file = Prepared(
            encodings, (*headers, (b"vary", b"Accept-Encoding"), NO_SNIFFING), datetime.now(UTC), media_type
        )

        async def answer_file(scope: Scope, receive: Receive, send: Send) -> None:
            await send_reply(file.answer(scope["method"], scope["headers"]), send)

        return answer_file

    for route in door.application.routes():
        if route.path == root and not route.is_opaque:
            logger.warning(
                "The application's own route %s is never reached, because the overview is at the same address. Give "
                'Site(paths=Paths(root="...")) another address, or Site(plugins=["no:overview"]).',
                root,
            )
    exact: dict[str, Answer] = {root: answer, f"{root}/": answer}
    exact |= {f"{root}/{name}": serve_file(name, media_type) for name, media_type in FILES.items()}
    exact |= {f"{root}.md": answer} if pages is not None else {}
    return Endpoints(exact=exact, below={f"{root}/try/": answer_below})


class OverviewDoor(Endpoint):
    """Shows one public address of a site to its owner, and sends the calls of its forms."""

    methods = "GET, HEAD, POST, OPTIONS"
    usage = "The overview is read with GET, and its forms are sent with POST"
    refuse_foreign = staticmethod(refuse_foreign_host)  # forms from pages of other sites are refused in `_page`

    def __init__(self, door: Context) -> None:
        super().__init__(ProblemRenderer(door.catalog), Cors(()), door.admission.own_origins)
        self.door, self.root = door, door.catalog.prefix + door.catalog.paths.root
        guards, scope = door.guards, door.options.audience
        needed = (scope,) if scope is not None else ()
        self._gate = AuthenticationGate(
            guards.authenticators, bool(needed), needed, guards.realm, guards.metadata_url, store=guards.store
        )
        self._tokens = Tokens(door.site.keys, f"approval:{door.settings.namespace}", APPROVABLE_FOR)
        self._found: tuple[object, tuple[Finding, ...]] = (None, ())
        self.wires = tuple(wire for wire in door.application.wires.values() if wire.path_of(door.catalog) is not None)

    async def handle(self, request: DoorRequest, named: str | None) -> None:
        """Answer with a page. Refusals are pages too if the client accepts HTML."""
        status, extra = 200, cast(RawHeaders, ())
        try:
            title, content, extra = await self._page(request)
        except Problem as problem:
            if b"text/html" not in request.fields.get(b"accept", b""):
                raise
            title, status, described = problem.title, problem.status, self._renderer.describe(problem)
            content = fill("refusal", title=title, detail=described["detail"], recovery=described["recovery"])
            extra = tuple(
                (name.lower().encode(), value.encode("latin-1", "replace")) for name, value in problem.headers
            )
        page = fill(
            "page", title=title, site=self.door.catalog.site.name, root=self.root, icons=fill("icons"), content=content
        )
        body = page.encode("utf-8", "replace")
        headers = ((b"content-type", b"text/html; charset=utf-8"), (b"content-length", b"%d" % len(body)), *SECURITY)
        await request.reply(Reply(status, (*headers, *extra), body))

    async def _page(self, request: DoorRequest) -> tuple[str, Html, RawHeaders]:
        """Return the title, the content and additional headers of the requested page. Raises a Problem."""
        scope, fields, catalog = request.scope, request.fields, self.door.catalog
        if scope["method"] == "POST" and is_cross_site(fields, self._own_origins):
            raise CrossSiteCookies("The form was sent from a page of another site and was ignored.")
        caller: Principal | None = None
        try:
            caller = await self._gate(read_credentials(scope, fields, self.door.admission.trusted_proxies))
        except Problem:
            if self._gate.required:
                raise
        path = route_path(scope).removeprefix(catalog.paths.root)
        if path.startswith("/try/"):
            return await self._try(request, caller, path.removeprefix("/try/"))
        if path not in ("", "/"):
            raise UnknownAction("The overview has no such page.")
        notices: dict[str, Html] = {}
        if scope["method"] == "POST":
            fields_of_form = dict(await self._read_form(request))
            take = act if FIELD in fields_of_form else approve
            section, notice = await take(self._view(caller), fields_of_form)
            notices[section] = notice
        documents, _ = self.door.documents()
        if self._found[0] is not documents:  # the checks run once after each publication
            findings: tuple[Finding, ...] = ()
            if (check := self.door.ask("findings")) is not None:
                read = partial(check, self.door.site, catalog.public, documents, self.door.application.routes(), "")
                findings = await run_in_thread(read, asyncio.to_thread)
            self._found = (documents, findings)
        view = self._view(caller, await self._read_traffic())
        panels = await read_panels(view)
        make = partial(dashboard, view, dict(read_query(scope["query_string"])), notices, panels)
        return f"{catalog.site.name} for agents", await run_in_thread(make, asyncio.to_thread), ()

    async def _try(
        self, request: DoorRequest, caller: Principal | None, action_id: str
    ) -> tuple[str, Html, RawHeaders]:
        """Return the page of one action, after the call that its form asks for."""
        scope, view = request.scope, self._view(caller)
        action = next((action for action in view.catalog.actions if action.id == action_id), None)
        if action is None:
            wrong = f'This site has no action "{action_id[:100]}".'
            raise UnknownAction(wrong, recovery="Choose one in the overview.")
        is_sent = scope["method"] == "POST"
        pairs = await self._read_form(request) if is_sent else read_query(scope["query_string"])
        trial = Trial(view, action, pairs, scope)
        if is_sent and trial.wrong is None:
            await trial.send()
        traffic = None if trial.is_only_shown else await self._read_traffic()
        make = partial(trial.page, traffic)
        return action.name, await run_in_thread(make, asyncio.to_thread), tuple(trial.cookies.values())

    def _view(self, caller: Principal | None, traffic: Traffic = None) -> View:
        """Return what this caller is shown."""
        catalog = self.door.published().visible_to(scopes_of(caller))
        documents, fallbacks = self.door.documents()
        problems = f"{catalog.paths.problems}/"  # the pages of single problems are not listed
        listed = {**documents, **fallbacks}
        if traffic is not None and not isinstance(traffic, str):
            traffic = traffic.of_actions({action.id for action in catalog.actions})
        return View(
            self.door,
            self.root,
            self.wires,
            caller,
            self._gate.required,
            self._tokens,
            catalog,
            {path: document for path, document in listed.items() if not f"{path}/".startswith(problems)},
            self._found[1],
            traffic,
        )

    async def _read_traffic(self) -> Traffic:
        """Return the traffic of the last days, the reason why it cannot be read, or None if it is not kept."""
        record = self.door.ask("traffic")
        if record is None:
            return None
        try:
            return cast(Traffic, await record.read(days=DAYS))
        except StoreUnavailable as problem:
            return f"Traffic cannot be read at the moment: {problem.detail}"
        except Exception:
            logger.exception("traffic could not be read")
            return "Traffic cannot be read at the moment: the store failed. The log has the details."

    async def _read_form(self, request: DoorRequest) -> list[tuple[str, str | bytes]]:
        body = await read_body(request.scope, request.fields, request.receive, MAX_FORM_BYTES)
        content_type = request.fields.get(b"content-type", b"")
        if not is_form(content_type):
            raise UnsupportedMediaType("Send the form as application/x-www-form-urlencoded.")
        return read_form(content_type, body)
