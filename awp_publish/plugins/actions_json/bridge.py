"""The bridge: the Actions Bridge Protocol of actions.json over WebSocket, between agents and pages of this site.

A connection becomes a runtime when it sends `runtime_ready`, and an agent when it sends an `action_call`. A call goes
to exactly one runtime that its caller may reach: a visitor's tab with our script (`maps/actions.js`), another runtime
that speaks the protocol, or a page in this process (if the call names it, or if no other runtime matches). The tool
`actions.site`, which covers all of this, is also an action at the other doors. Runtimes are known per process.

A runtime belongs to the owner of its connection. A caller may reach it as the same principal, or by the
`authorization_id` that the visitor has passed on. For all other callers it does not exist.
"""

import asyncio
import hashlib
import logging
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Final, cast

import orjson

from awp_publish.browsing.addresses import Origins, parse_address
from awp_publish.browsing.browser import PAGE_BYTES, SessionLimits
from awp_publish.browsing.compiled import PageCache
from awp_publish.browsing.cookies import write_set_cookie
from awp_publish.browsing.session import Session
from awp_publish.calls.call import (
    PART_OF_ANSWER,
    RECEIPT,
    SESSION_CHALLENGE,
    SESSION_HEADER,
    Call,
    Outcome,
    Principal,
    Result,
    share_of,
)
from awp_publish.calls.invoke import Invoker
from awp_publish.calls.workers import count_workers
from awp_publish.documents.members import SITE_ACTION
from awp_publish.http.client_address import client_address
from awp_publish.http.credentials import read_credentials
from awp_publish.http.documents import Encodings, Prepared, prepare_one
from awp_publish.http.doors import session_ids_of
from awp_publish.http.exchange import Receive, Reply, Scope, Send, header_members, read_fields, send_reply
from awp_publish.http.handshake import PLAIN, SocketGate, own_urls
from awp_publish.http.inner_calls import INNER_CALL, InnerCall, InnerCalls
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.http.site_client import SiteClient
from awp_publish.http.sockets import (
    ADDRESS_SHARE,
    GOING_AWAY,
    IDLE_SECONDS,
    MAX_PENDING,
    Frame,
    SocketConnection,
    room_for_unknown,
)
from awp_publish.http.streams import OpenStreams
from awp_publish.http.tasks import OwnedTasks
from awp_publish.maps.failures import RuntimeFailure
from awp_publish.maps.live_page import PrimitiveError
from awp_publish.maps.performing import errors_of
from awp_publish.maps.primitives import PRIMITIVES
from awp_publish.maps.runtime import HandlerCall, Runtime
from awp_publish.maps.script_page import ScriptPage
from awp_publish.maps.site_page import SitePage
from awp_publish.maps.trace import ToolResult
from awp_publish.model import JsonObject
from awp_publish.plugin import Context, Document, Endpoints
from awp_publish.plugins.actions_json import document as actions_json
from awp_publish.plugins.actions_json.document import SITE_TOOL
from awp_publish.plugins.actions_json.items import (
    ANSWER_HEADERS,
    ANSWERS,
    CONNECTIONS,
    IN_PROCESS,
    ITEMS,
    MAX_EVENTS,
    MAX_ID,
    MAX_MAPS,
    MAX_RUNTIMES,
    MAX_URL,
    MEMBERS,
    PROTOCOL,
    RECOVERIES,
    REFUSAL_HEADERS,
    STATUSES,
    Selectors,
    error_item,
    failure_of,
    invalid,
    read_error,
    read_item,
    read_text,
    require_object,
    require_text,
    write_item,
)
from awp_publish.plugins.actions_json.reading import ActionMap
from awp_publish.plugins.actions_json.ready import Ready, by_name
from awp_publish.plugins.actions_json.runtimes import (
    CODE_LENGTH,
    GRACE,
    KEY_LENGTH,
    MAX_OWNERS,
    BridgeCall,
    Owner,
    PairedRuntime,
    ReachableRuntime,
    SiteRuntime,
)
from awp_publish.plugins.actions_json.script import render_script
from awp_publish.plugins.actions_json.tools import HANDLER
from awp_publish.problems import (
    HandlerFailed,
    InvalidInput,
    Problem,
    RuntimeFailed,
    SessionUnknown,
    StoreUnavailable,
    Violation,
)
from awp_publish.schema import Validator, compile_schema
from awp_publish.stores.store import session_key

logger: Final = logging.getLogger("awp_publish.calls")


UPGRADE: Final = Reply(426, (PLAIN, (b"upgrade", b"websocket")), b"The bridge is spoken to over WebSocket.\n")


def open_door(context: Context) -> Endpoints:
    """Open the door of one public address of a site."""
    bridge, paths = BridgeHub(context), context.catalog.paths
    context.invoker.attach(SITE_ACTION, bridge.answer_tool)
    exact = {paths.bridge: bridge.answer_http, paths.script: bridge.answer_script}
    return Endpoints(exact=exact, running=bridge.running, sockets={paths.bridge: bridge.answer})


class BridgeHub:
    """The runtimes and agents of one public address of a site, in this process."""

    def __init__(self, door: Context) -> None:
        self.door, catalog = door, door.catalog
        self.renderer = ProblemRenderer(catalog, RECOVERIES)
        self._gate = SocketGate(door, PROTOCOL, catalog.paths.bridge, self.renderer)
        self._identify = door.guards.identify()
        self._inner = InnerCalls(door, PROTOCOL, catalog.paths.bridge, {})
        self._tasks = OwnedTasks()
        self._connections: set[BridgeConnection] = set()
        self._open = OpenStreams("connections", CONNECTIONS)
        self._owners: OrderedDict[str, Owner] = OrderedDict()
        self._authorized: dict[str, PairedRuntime] = {}
        self._keyed: dict[str, PairedRuntime] = {}
        self._visits: OrderedDict[str, SiteRuntime] = OrderedDict()
        self._cache = PageCache()
        self._origins = Origins.of(*own_urls(door))
        self._site_inputs = compile_schema(actions_json.SITE_INPUTS)
        self._validators: dict[str, Validator] = {}
        self._maps: dict[tuple[str, ...], ActionMap] = {}
        # A workflow runs in place of the handler, behind the same gates. Its result is not validated as their output.
        actions = tuple(replace(action, outputs={}, function=None, execution="sync") for action in catalog.actions)
        self._gated: dict[str, Callable[[], Awaitable[Result]]] = {}
        self._gates = Invoker(
            replace(catalog, actions=actions),
            lambda call: self._gated[call.request_id](),
            door.guards,
            sessions=door.ask("sessions"),
        )
        guards_by_site = door.settings.guard_routes
        self._actions = {action.id: action for action in actions}
        self._guarded_routes = {
            action.id for action in actions if (guards_by_site if action.guards_route is None else action.guards_route)
        }

    def map_of(self, owner: Owner) -> ActionMap:
        """Return the site's map with the actions that an owner may see; for an anonymous one, the published map."""
        catalog = self.door.catalog.visible_to(owner.scopes)
        shown = tuple(action.id for action in catalog.actions)
        known = self._maps.get(shown)
        if known is None:
            known = ActionMap.read(actions_json.render(catalog))
            if len(self._maps) < MAX_MAPS:
                self._maps[shown] = known
        return known

    def tool_of(self, owner: Owner, name: str) -> JsonObject | None:
        """Return a tool of the map by name, None if there is none or the owner may not see it."""
        action = self._actions.get(name)
        judged = action or self.door.invoker.absent  # a hidden name takes the same steps as none
        is_visible = judged is None or judged.is_for(owner.scopes)
        return self._tools.get(name) if action is None or is_visible else None

    @cached_property
    def _tools(self) -> Mapping[str, JsonObject]:
        return by_name(actions_json.render(self.door.catalog).get("tools"))

    @cached_property
    def signals(self) -> Mapping[str, JsonObject]:
        """The enabled signals of the map, by name."""
        found = by_name(actions_json.render(self.door.catalog).get("signals"))
        return {name: one for name, one in found.items() if one.get("ingestion") == "enabled"}

    async def answer_http(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that the bridge itself has sent through the application; any other has to upgrade."""
        inner = scope.get(INNER_CALL)
        if isinstance(inner, InnerCall):
            await self._inner.answer(inner, scope, receive, send)
        else:
            await send_reply(UPGRADE, send)

    @cached_property
    def _script(self) -> Prepared:
        document = Document(self.door.catalog.paths.script, "text/javascript; charset=utf-8", render_script)
        encodings = Encodings(document.render(self.door.catalog))
        return prepare_one(document, encodings, self.door.catalog.site.updated or datetime.now(UTC))

    async def answer_script(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the script of visitors' tabs, as all documents are served."""
        await send_reply(self._script.answer(scope["method"], scope["headers"]), send)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one WebSocket, from its handshake to its end."""
        address = client_address(scope, read_fields(scope["headers"]), self.door.admission.trusted_proxies)
        with ExitStack() as place:
            try:
                owner, session_key, principal = await self._owner_of(scope)
                place.enter_context(self._open.hold(principal, address))
            except Problem as problem:
                await self._gate.refuse_problem(problem, scope, receive, send)
                return
            if await self._gate.accept(scope, receive, send):
                await self._serve(scope, receive, send, owner, session_key, address)

    async def _serve(
        self, scope: Scope, receive: Receive, send: Send, owner: Owner, session_key: str, address: str
    ) -> None:
        door = self.door
        browsing = door.options
        connection = BridgeConnection(self, owner, self._client(scope, address), receive, send, session_key)
        if browsing.auth_required and not owner.key:
            connection.refusal = RuntimeFailure("permission_denied", "This site requires authentication.")
        self._connections.add(connection)
        owner.agents.add(connection)
        try:
            await connection.serve()
        finally:
            self._connections.discard(connection)

    def _client(self, scope: Scope, address: str) -> SiteClient:
        app = self.door.entrance(scope)
        return SiteClient(app, scope, self.door.catalog.prefix, PAGE_BYTES, self._tasks, address)

    async def _owner_of(self, scope: Scope) -> tuple[Owner, str, Principal | None]:
        """Return a connection's owner, the key of its session, and its caller. Raises a Problem."""
        shown, visited = read_fields(scope["headers"]).get(SESSION_HEADER, b"").strip(), scope
        if (sessions := self.door.ask("sessions")) is not None and shown:
            # Session middleware handles HTTP requests only, and the upgrade is one (RFC 6455 section 4.1).
            scheme = "https" if scope.get("scheme") == "wss" else "http"
            request = {**scope, "type": "http", "method": "GET", "scheme": scheme, "extensions": {}}
            visited = await sessions.visit(request)
        fields = read_fields(visited["headers"])
        principal = await self._identify(read_credentials(visited, fields, self.door.admission.trusted_proxies))
        session = session_key(shown.decode("latin-1")) if shown and visited is not scope else ""
        return self.owner(principal, session), session, principal

    def owner(self, principal: Principal | None, session: str = "") -> Owner:
        """Return the owner for a principal or a session, a new one for an anonymous caller."""
        if principal is not None:  # with other scopes the same principal sees other actions, and has other runtimes
            key = f"user:{principal.key}\n{' '.join(sorted(principal.scopes))}"
            owner = self._owners.setdefault(key, Owner(key, principal.key, principal.scopes))
        elif session:
            key = f"session:{session}"
            owner = self._owners.setdefault(key, Owner(key))
        else:
            return Owner()
        self._owners.move_to_end(key)
        if len(self._owners) > MAX_OWNERS:
            idle = (one for one in self._owners.values() if not one.agents and not one.runtimes and one is not owner)
            forgotten = next(idle, None)
            if forgotten is not None:
                del self._owners[forgotten.key]
        return owner

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Close all connections at shutdown."""
        try:
            yield
        finally:
            for connection in tuple(self._connections):
                connection.close(GOING_AWAY)
            for runtime in {*self._keyed.values(), *self._authorized.values()}:
                self.end(runtime)
            self._visits.clear()
            await self._tasks.cancel()

    def register(self, connection: "BridgeConnection", item: JsonObject) -> PairedRuntime:
        """Handle a runtime_ready of a new runtime, a reloaded page, or a known runtime. Raises RuntimeFailure."""
        ready = Ready.read(item)
        runtime = self._returning(connection, ready)
        if runtime is None:
            runtime = self._admit(connection, ready)
        elif runtime.peer is not connection:
            self._move(runtime, connection, ready.runtime_id)
        self._index(runtime, connection, ready)
        runtime.url, runtime.title = ready.url, ready.title
        runtime.is_ready, runtime.announced = ready.has_usable_map, ready.announced
        if isinstance(page := runtime.runtime.page if runtime.runtime is not None else None, ScriptPage):
            page.url = ready.url
        runtime.come_back(connection)
        return runtime

    def _returning(self, connection: "BridgeConnection", ready: Ready) -> PairedRuntime | None:
        """Return the known runtime that a runtime_ready is of, by its key or its id. Raises RuntimeFailure."""
        owner = connection.owner
        by_key = self._keyed.get(_keyed_as(owner, ready.key)) if ready.key is not None else None
        by_id = owner.runtimes.get(ready.runtime_id)
        if by_key is not None and by_id not in (None, by_key):
            raise invalid("The runtime_id is that of another runtime.", member="runtime_id")
        if by_id is not None and by_id.peer is not connection and by_key is not by_id:
            raise invalid("The runtime_id is taken by another connection.", member="runtime_id")
        runtime = by_key or by_id
        authorized = self._authorized.get(ready.authorization_id) if ready.authorization_id is not None else None
        if authorized is not None and authorized is not runtime:
            raise invalid("The authorization_id is taken.", member="authorization_id")
        return runtime

    def _admit(self, connection: "BridgeConnection", ready: Ready) -> PairedRuntime:
        """Return a new runtime of a connection. Raises RuntimeFailure if its owner has too many."""
        owner = connection.owner
        if max(len(connection.runtimes), len(owner.runtimes)) >= MAX_RUNTIMES:
            raise RuntimeFailure("permission_denied", "One owner has too many runtimes.", {"limit": MAX_RUNTIMES})
        runtime = PairedRuntime(ready.runtime_id, owner, connection, ready.url)
        if ready.is_driven:
            self._drive(runtime)
        return runtime

    def _index(self, runtime: PairedRuntime, connection: "BridgeConnection", ready: Ready) -> None:
        """Make a runtime known by its id, its key and its authorization, and no longer by earlier ones."""
        owner = connection.owner
        if runtime.key is not None and runtime.key != ready.key:
            self._keyed.pop(_keyed_as(owner, runtime.key), None)
        if runtime.authorization_id != ready.authorization_id and runtime.authorization_id is not None:
            self._authorized.pop(runtime.authorization_id, None)  # revoked
            runtime.listeners.clear()
        runtime.key, runtime.authorization_id = ready.key, ready.authorization_id
        connection.runtimes[ready.runtime_id] = owner.runtimes[ready.runtime_id] = runtime
        if ready.authorization_id is not None and len(ready.authorization_id) >= CODE_LENGTH:
            self._authorized[ready.authorization_id] = runtime
        if runtime.can_return and ready.key is not None:
            self._keyed[_keyed_as(owner, ready.key)] = runtime

    def _move(self, runtime: PairedRuntime, connection: "BridgeConnection", runtime_id: str) -> None:
        """Move a runtime that has reconnected by its key, even if its old connection is not closed yet."""
        if isinstance(before := runtime.peer, BridgeConnection):
            before.runtimes.pop(runtime.id, None)
            words = "The runtime has reconnected on another connection."
            before.post(error_item(RuntimeFailure("transport_failed", words), runtime_id=runtime.id))
            runtime.depart()
        if runtime.owner is not None:
            runtime.owner.runtimes.pop(runtime.id, None)
        runtime.owner, runtime.id = connection.owner, runtime_id
        call = runtime.current
        caller = call.peer if call is not None else None
        if isinstance(caller, BridgeConnection) and not (runtime.owner is caller.owner or caller in runtime.listeners):
            runtime.fail(RuntimeFailure("permission_denied", "The page now belongs to another visitor."))
        runtime.take_interrupted()

    def _drive(self, runtime: PairedRuntime) -> None:
        """Set up the runner in this process for a page whose script runs single steps."""

        async def invoke(handled: HandlerCall) -> object:
            members = runtime.current.members if runtime.current is not None else {}
            arguments = {**_agent_of(handled), "input": handled.arguments, **members}
            given = await page.ask("invoke", {"handler": HANDLER, "arguments": arguments})
            answer = given if isinstance(given, dict) else {}
            status, body = answer.get("status"), answer.get("body")
            if isinstance(status, int) and 200 <= status < 300:
                return body
            raise failure_of(status if isinstance(status, int) else 500, body if isinstance(body, dict) else {})

        page = ScriptPage(runtime.ask_script, url=runtime.url)
        ours = self.map_of(runtime.owner or Owner())
        runtime.runtime = Runtime(ours, page, handlers={HANDLER: invoke}, seconds=self.door.settings.limits.timeout)

    def leave(self, connection: "BridgeConnection") -> None:
        """Release the runtimes of a closed connection. One with a key may reconnect within GRACE seconds."""
        connection.owner.agents.discard(connection)
        for runtime in tuple(connection.runtimes.values()):
            if runtime.peer is not connection:
                continue
            if runtime.can_return:
                runtime.depart()
                runtime.leaving = asyncio.get_running_loop().call_later(GRACE, self.end, runtime)
            else:
                self.end(runtime)
        for runtime in {*self._authorized.values()}:
            runtime.listeners.discard(connection)
        visit = connection.owner.visit
        if visit is not None and not connection.owner.key:
            self._visits.pop(visit.id, None)

    def end(self, runtime: PairedRuntime) -> None:
        """Remove a runtime, and fail the calls that wait for it."""
        if runtime.leaving is not None:
            runtime.leaving.cancel()
        if runtime.owner is not None and runtime.owner.runtimes.get(runtime.id) is runtime:
            del runtime.owner.runtimes[runtime.id]
        if isinstance(runtime.peer, BridgeConnection):
            runtime.peer.runtimes.pop(runtime.id, None)
        for index in (self._authorized, self._keyed):
            for name in [name for name, one in index.items() if one is runtime]:
                del index[name]
        runtime.end()

    def _visit(self, owner: Owner, runtime_id: str | None, address: str) -> SiteRuntime | None:
        """Return a caller's page in this process, None if the id is that of another caller's.

        If no id is given and there is no page yet, open one.
        """
        if runtime_id not in (None, IN_PROCESS):
            visit = self._visits.get(runtime_id)
            # An anonymous caller proves ownership by the id, which cannot be guessed.
            is_known = visit is not None and visit.owner is not None and bool(visit.owner.key)
            return None if visit is None or (is_known and visit.owner is not owner) else visit
        if owner.visit is None or owner.visit.id not in self._visits:
            self._make_room(owner, address)
            limits = SessionLimits(pages=1)
            session = Session(self._origins, limits=limits, cache=self._cache)
            owner.visit = visit = SiteRuntime(f"{IN_PROCESS}.{secrets.token_urlsafe(18)}", owner, session, address)
            self._visits[visit.id] = visit

            async def invoke(handled: HandlerCall) -> object:
                return await self._invoke(visit, handled)

            page = SitePage(session, visit.drive)
            visit.runtime = Runtime(
                self.map_of(owner), page, handlers={HANDLER: invoke}, seconds=self.door.settings.limits.timeout
            )
        return owner.visit

    def _make_room(self, owner: Owner, address: str) -> None:
        """End pages that nobody uses, and one too many: of the caller's share, of unknown callers, of all."""
        most, now = self.door.options.sessions, asyncio.get_running_loop().time()
        while self._visits:
            oldest = next(iter(self._visits.values()))
            if oldest.current is not None or now - oldest.last_used <= IDLE_SECONDS:
                break
            del self._visits[oldest.id]
        visits = [*self._visits.values()]
        groups = [(most, visits)]
        if not owner.principal:
            groups.insert(0, (room_for_unknown(most), [visit for visit in visits if not visit.principal]))
        if owner.principal or address:
            share = share_of(owner.principal, address)
            own = [visit for visit in visits if share_of(visit.principal, visit.address) == share]
            groups.insert(0, (max(most // ADDRESS_SHARE, 1), own))
        for limit, visits in groups:
            if len(visits) >= limit:
                idle = next((visit for visit in visits if visit.current is None), visits[0])
                self._visits.pop(idle.id, None)
                break

    async def _invoke(self, visit: SiteRuntime, handled: HandlerCall) -> object:
        """Call an action for a page in this process, with the page's cookies. Raises RuntimeFailure."""
        named = _agent_of(handled)
        agent, operation = str(named["agent_id"]), named.get("operation")
        assert visit.site is not None
        members = dict(visit.current.members) if visit.current is not None else {}
        receipts = members.get("receipts")
        listed = receipts if isinstance(receipts, list) else []
        members["receipts"] = [*listed, *visit.receipts.values()]
        try:
            action = self.door.invoker.find(PROTOCOL, agent, operation if isinstance(operation, str) else None)
            if not action.requires:
                del members["receipts"]
            self.door.admission.check_size(action, len(orjson.dumps(handled.arguments)))
            inner = InnerCall(action, handled.arguments, members, secrets.token_hex(16))
            # If the call has a session, the cookies of that session are used instead of the page's.
            session = visit.session if "session" not in members else None
            result, added = await self._inner.send(inner, visit.site, None, session)
        except Problem as problem:
            result, added = problem, ()
        own = result.headers if isinstance(result, Outcome) else ()
        wanted = PART_OF_ANSWER.union(ANSWER_HEADERS, action.answer_headers) if own else ANSWER_HEADERS
        for name, value in (*added, *own):
            if name in wanted and visit.current is not None:
                visit.current.headers[name.decode("latin-1")] = value.decode("latin-1")
            if name == RECEIPT:
                visit.receipts[handled.tool] = value.decode("latin-1")
        if isinstance(result, Problem):
            raise failure_of(result.status, self._describe(result)) from result
        return result.output

    def _describe(self, problem: Problem) -> dict[str, object]:
        described = self.renderer.describe(problem)
        headers = header_members(pair for pair in problem.headers if pair[0].lower() in REFUSAL_HEADERS)
        after = headers.get("retry-after", "")
        described |= {"retry_after_ms": int(after) * 1000} if after.isdecimal() else {}
        return described | ({"headers": headers} if headers else {})

    def find(
        self, owner: Owner, selectors: Selectors, address: str, peer: "BridgeConnection | None" = None
    ) -> ReachableRuntime:
        """Return the one runtime that a call is for. Raises RuntimeFailure."""
        reachable: dict[int, PairedRuntime] = {id(runtime): runtime for runtime in owner.runtimes.values()}
        shown = [one for one in (selectors.authorization_id, selectors.runtime_id) if one is not None]
        for one in shown:
            if (paired := self._authorized.get(one)) is not None:
                reachable = {id(paired): paired}
                if peer is not None:
                    paired.listeners.add(peer)
        if selectors.authorization_id is not None and selectors.authorization_id not in self._authorized:
            reachable = {}
        fitting = [one for one in reachable.values() if selectors.fit(one)]
        present = [one for one in fitting if not one.is_away] or fitting
        if len(present) > 1:
            candidates = [one.describe() for one in present]
            words = "The call matches several runtimes. Name one by its runtime_id."
            raise RuntimeFailure("ambiguous_runtime", words, {"candidates": candidates})
        if present:
            if not present[0].is_ready:
                words = "The runtime has no usable map."
                raise RuntimeFailure("runtime_not_ready", words, {"runtime_id": present[0].id})
            return present[0]
        by_page = selectors.url_contains is not None or selectors.title_contains is not None
        if selectors.authorization_id is None and selectors.runtime_key is None:
            is_named = selectors.runtime_id is not None
            visit = owner.visit if by_page and not is_named else self._visit(owner, selectors.runtime_id, address)
            if visit is not None and selectors.fit(visit):
                return visit
        evidence: dict[str, object] = {"runtimes": [runtime.describe() for runtime in owner.runtimes.values()]}
        if count_workers() > 1:
            evidence["hint"] = (
                "A runtime is known only to the worker that holds its connection. Reconnect, or try again."
            )
        raise RuntimeFailure("runtime_not_found", "The call names no runtime of yours.", evidence)

    async def dispatch(
        self, owner: Owner, call: BridgeCall, selectors: Selectors, site: SiteClient
    ) -> tuple[ReachableRuntime, ToolResult]:
        """Run a call at the one runtime that it is for. Raises RuntimeFailure."""
        peer = call.peer if isinstance(call.peer, BridgeConnection) else None
        wanted = call.arguments.get("target_runtime_id") if call.name == SITE_TOOL else None
        if wanted is not None:
            self._check_site_inputs(call.arguments)
            if selectors.runtime_id not in (None, wanted):
                raise invalid("runtime_id and target_runtime_id name different runtimes.", member="runtime_id")
            selectors = replace(selectors, runtime_id=str(wanted))
        runtime = self.find(owner, selectors, site.address, peer)
        if call.name == SITE_TOOL:
            self._check_site_inputs(call.arguments)
        is_relayed = isinstance(runtime, PairedRuntime) and runtime.runtime is None
        if is_relayed:
            meant = call.meant
            self._check(owner, cast(PairedRuntime, runtime), meant)
            result = await runtime.run(call, lambda given: self._behind_gates(runtime, given, meant, site))
            self._check_result(meant, result, is_wrapped=call.name == SITE_TOOL)
            return runtime, result
        mode, work = call.arguments.get("mode") if call.name == SITE_TOOL else None, call.meant
        if isinstance(runtime, SiteRuntime):
            runtime.last_used = asyncio.get_running_loop().time()
            self._visits.move_to_end(runtime.id)

        async def carry_out(given: BridgeCall) -> ToolResult:
            if not isinstance(runtime, SiteRuntime):
                return await self._behind_gates(runtime, given, given, site)
            runtime.site = site
            async with self._in_session(runtime.session, owner, given):
                if not runtime.session.url and runtime.runtime is not None:
                    home = self.door.catalog.absolute("/")
                    with suppress(PrimitiveError):  # a site need not have a page there
                        await runtime.runtime.page.perform("browser.navigate", {"url": home})
                return await self._behind_gates(runtime, given, given, site)

        result = await runtime.run(work, carry_out)
        if mode is None:
            return runtime, result
        output = cast(JsonObject, result.output)
        if mode == "call":
            output = {"ok": True, "action": work.name, "result": result.output, "steps": list(result.steps)}
        elif mode == "list":
            others = [runtime.describe() for runtime in owner.runtimes.values()]
            output = {"ok": True, "url": runtime.url, **output, "runtimes": others}
            if isinstance(runtime, PairedRuntime):
                output["dropped"] = runtime.dropped
        return runtime, ToolResult({**output, "runtime_id": runtime.id}, result.steps if mode != "call" else ())

    @asynccontextmanager
    async def _in_session(self, page: Session, owner: Owner, call: BridgeCall) -> AsyncIterator[None]:
        """Load the cookies of a call's session into a page, and save the page's changes to them afterwards.

        Raises RuntimeFailure if the session is unknown or belongs to another caller.
        """
        sessions, shown = session_ids_of(self.door), call.members.get("session")
        if sessions is None or not (call.session_key or shown):
            yield
            return
        try:
            # The owner of a session from a request's headers has been checked already.
            kept = await (sessions.find(str(shown)) if shown else sessions.load(call.session_key))
            if kept is None or (shown and kept.owner and owner.principal != kept.owner):
                challenge = [("WWW-Authenticate", SESSION_CHALLENGE)]
                raise SessionUnknown("This session is unknown or has ended.", headers=challenge)
        except Problem as problem:
            raise failure_of(problem.status, self._describe(problem)) from problem
        jar, clock, before = page.browser.jar, page.browser.clock, {cookie.key: cookie for cookie in kept.jar}
        jar.remove(tuple(jar))
        for cookie in kept.jar:
            jar.store(cookie, clock())
        try:
            yield
        finally:
            jar.drop_expired(clock())
            after = {cookie.key: cookie for cookie in jar}
            gone = [replace(cookie, value="", expires=0.0) for key, cookie in before.items() if key not in after]
            changed = [cookie for key, cookie in after.items() if cookie != before.get(key)]
            if gone or changed:
                at = parse_address(self.door.catalog.absolute("/"))
                try:
                    cookies = [write_set_cookie(one, clock()) for one in (*gone, *changed)]
                    successes = self.door.guards.receipted
                    if (renewed := await sessions.update(kept, cookies, at, successes=successes)) is not None:
                        call.headers[SESSION_HEADER.decode()] = renewed
                        if isinstance(call.peer, BridgeConnection) and not shown:
                            call.peer.session_key = session_key(renewed)
                except StoreUnavailable:  # the caller gets the answer nevertheless
                    logger.exception("the cookies of a page were not kept in the session (call %s)", call.call_id)

    def gives_once(self, call: BridgeCall, item: JsonObject) -> bool:
        """Return True if an answer contains values that its action gives only once, so that it must not be kept."""
        redact, output = self.door.invoker.answer_redactors.get(call.meant.name), item.get("output")
        if redact is None or item["type"] == "action_error":
            return False
        if call.name == SITE_TOOL and isinstance(output, dict):
            output = output.get("result")
        return bool(redact(output) != output)

    def _check_site_inputs(self, arguments: JsonObject) -> None:
        wrong = self._site_inputs(arguments)
        if not wrong and arguments.get("mode") == "call" and "action" not in arguments:
            wrong = (Violation("/action", "is required for mode call"),)
        if wrong:
            raise _misfit(f"The arguments of {SITE_TOOL} do not match its input_schema", wrong)

    def _check(self, owner: Owner, runtime: PairedRuntime, call: BridgeCall) -> None:
        """Check a call before it is passed on. Raises RuntimeFailure."""
        tool = self.tool_of(owner, call.name)
        if tool is None:
            known = call.name in PRIMITIVES or call.name in runtime.announced or call.name == SITE_TOOL
            if known:
                return
            shown = call.name[:100]
            raise RuntimeFailure("unknown_action", f"There is no action {shown!r}.", {"name": shown})
        validator = self._validator(call.name, cast(JsonObject, tool["input_schema"]), asserts_formats=True)
        if violations := validator(call.arguments):
            raise _misfit(f"The arguments of {call.name} do not match its input_schema", violations)

    def _check_result(self, meant: BridgeCall, result: ToolResult, *, is_wrapped: bool) -> None:
        """Check another runtime's result of one of our tools. Raises RuntimeFailure `invalid_result`."""
        tool = self._tools.get(meant.name, {})
        x_actions = tool.get("x_actions")
        schema = x_actions.get("result_schema") if isinstance(x_actions, dict) else None
        output = result.output
        if not isinstance(schema, dict) or (is_wrapped and not (isinstance(output, dict) and "result" in output)):
            return
        given = output["result"] if is_wrapped and isinstance(output, dict) else output
        if violations := self._validator(f"result {meant.name}", schema)(given):
            failure = _misfit(f"The result of {meant.name} does not match its result_schema", violations)
            evidence = {**failure.evidence, "steps": list(result.steps)}
            raise RuntimeFailure("invalid_result", failure.message, evidence, recoverable=False)

    def _validator(self, name: str, schema: JsonObject, asserts_formats: bool = False) -> Validator:
        validator = self._validators.get(name)
        if validator is None:
            validator = self._validators[name] = compile_schema(schema, asserts_formats)
        return validator

    async def _behind_gates(
        self, runtime: ReachableRuntime, call: BridgeCall, meant: BridgeCall, site: SiteClient
    ) -> ToolResult:
        """Run a call behind the gates of its action if a workflow takes the place of the action's handler.

        Calls of the handler `agents.invoke` pass the gates anyway, and so does a form that a visitor's page submits to
        a guarded route. No gate is passed twice.
        """
        tool, action = self._tools.get(meant.name), self._actions.get(meant.name)
        is_paired = isinstance(runtime, PairedRuntime)
        if (
            tool is None
            or action is None
            or "workflow" not in tool
            or (is_paired and action.id in self._guarded_routes)
            or action.id not in self._gates.guarded
        ):
            return await runtime.carry_out(call)
        self._gates.set_status(self.door.published().status)
        done: ToolResult | RuntimeFailure | None = None

        async def work() -> Result:
            nonlocal done
            try:
                done = await runtime.carry_out(call)
            except RuntimeFailure as failure:
                done = failure
                return HandlerFailed(failure.message)
            return Outcome(b"{}", {})

        trace = secrets.token_hex(16)
        self._gated[trace] = work
        inner = InnerCall(action, meant.arguments, call.members, trace, invoker=self._gates)
        session = runtime.session if isinstance(runtime, SiteRuntime) else None
        try:
            result, _ = await self._inner.send(inner, site, None, session)
        finally:
            del self._gated[trace]
        if isinstance(done, RuntimeFailure):
            raise done
        if isinstance(result, Problem):
            raise failure_of(result.status, self._describe(result)) from result
        return done or ToolResult(result.output)

    async def answer_tool(self, call: Call) -> Result:
        """Run `actions.site` for a caller at another door. Returns a Problem if it fails."""
        scope = cast(Scope, call.context)
        owner = self.owner(call.principal, call.session_id)
        fields = read_fields(scope["headers"])
        site = self._client(scope, client_address(scope, fields, self.door.admission.trusted_proxies))
        given = {"confirmation": call.confirmation, "idempotency_key": call.idempotency_key}
        members: dict[str, object] = {name: value for name, value in given.items() if value is not None}
        if call.receipts:
            members["receipts"] = list(call.receipts)
        made = BridgeCall(
            call.request_id, SITE_TOOL, call.input, call.action.timeout, members, session_key=call.session_id
        )
        try:
            try:
                _, result = await self.dispatch(owner, made, Selectors(), site)
            finally:
                if (renewed := made.headers.get(SESSION_HEADER.decode())) is not None:
                    call.headers += ((SESSION_HEADER, renewed.encode()),)
        except RuntimeFailure as failure:
            if isinstance(failure.__cause__, Problem):
                return failure.__cause__
            members = {"error": failure.describe()}
            if failure.code == "invalid_input":
                listed = failure.evidence.get("errors")
                below = "/arguments" if call.input.get("mode") == "call" and "action" in call.input else ""
                wrong = [one for one in (listed if isinstance(listed, list) else []) if isinstance(one, dict)]
                errors = [Violation(f"{below}{one.get('pointer', '')}", str(one.get("detail", ""))) for one in wrong]
                return InvalidInput(failure.message, errors=errors, members=members)
            is_unknown = failure.evidence.get("code") in ("state_projection_not_found", "state_summary_not_found")
            status = 404 if is_unknown else STATUSES.get(failure.code, 502)
            return RuntimeFailed(failure.message, status=status, members=members)
        return Outcome(orjson.dumps(result.output), result.output)


class BridgeConnection(SocketConnection):
    """One WebSocket connection: an agent, a runtime, or both."""

    def __init__(
        self, bridge: BridgeHub, owner: Owner, site: SiteClient, receive: Receive, send: Send, session_key: str
    ) -> None:
        browsing = bridge.door.options
        largest = bridge.door.admission.max_body_bytes
        super().__init__(receive, send, largest, IDLE_SECONDS, browsing.messages_per_second)
        self.owner = owner
        self.runtimes: dict[str, PairedRuntime] = {}
        self.refusal: RuntimeFailure | None = None
        self._bridge, self._site, self.session_key = bridge, site, session_key
        self._calls = 0

    is_greeted = True

    def leave(self) -> None:
        """Release its runtimes."""
        self._bridge.leave(self)

    def post(self, item: JsonObject) -> None:
        """Send an item, in order, without waiting for its delivery."""
        self._pending.start(self._write_item(item), "awp_publish bridge item")

    async def _write_item(self, item: JsonObject) -> None:
        await self._write_text(write_item(item))

    async def _write_text(self, text: str) -> None:
        with suppress(OSError):  # disconnected: reading ends as well
            await self.write({"type": "websocket.send", "text": text})

    async def refuse_large(self, frame: Frame) -> None:
        """Answer a frame that is too large. The connection then closes, and the calls that wait for it fail."""
        await self._write_item(error_item(invalid("The message is too large.", max_bytes=self.max_bytes)))

    async def take(self, frame: Frame, retry_after_ms: int | None) -> None:
        """Handle one item. An invalid one is answered with an action_error, and the connection stays open."""
        call_id = runtime_id = None
        try:
            item = read_item(frame)
            kind = item.get("type")
            given = item.get("call_id"), item.get("runtime_id")
            call_id, about = (one if isinstance(one, str) and 0 < len(one) <= MAX_ID else None for one in given)
            runtime_id = about if kind != "action_call" else None
            waiting = self.runtimes.get(about or "")
            # Awaited answers are exempt from the rate limit: a workflow consists of many small steps.
            is_asked_for = waiting is not None and kind in ANSWERS and waiting.waits_for(call_id)
            if retry_after_ms is not None and not is_asked_for:
                details = {"retry_after_ms": retry_after_ms}
                raise RuntimeFailure("permission_denied", "There were too many messages.", details)
            if self.refusal is not None:
                raise self.refusal
            if not isinstance(kind, str) or kind not in ITEMS:
                raise invalid(f"type must be one of {', '.join(ITEMS)}.", member="type")
            if kind == "action_call":
                await self._take_call(item)
            elif kind == "runtime_ready":
                runtime = self._bridge.register(self, item)
                self.owner.agents.discard(self)
                if runtime.runtime is not None:
                    self._pending.start(self._ask_page(runtime, has_events=False), "awp_publish bridge page")
            else:
                self._take_from_runtime(kind, item)
        except RuntimeFailure as failure:
            self.post(error_item(failure, call_id, runtime_id))

    def _take_from_runtime(self, kind: str, item: JsonObject) -> None:
        if kind == "action_error" and item.get("runtime_id") is None and item.get("call_id") is not None:
            runtime_id = next(iter(self.runtimes), "") if len(self.runtimes) == 1 else ""
        elif kind == "action_error" and item.get("runtime_id") is None:
            read_error(item)
            return  # it names neither a runtime nor a call
        else:
            runtime_id = require_text(item, "runtime_id")
        runtime = self.runtimes.get(runtime_id)
        if kind in ("action_call_output", "action_error"):
            call_id = require_text(item, "call_id") if kind == "action_call_output" else read_text(item, "call_id")
            failure = read_error(item) if kind == "action_error" else None
            if kind == "action_call_output" and "output" not in item:
                raise invalid("Missing required member: output", member="output")
            if runtime is not None and call_id is not None:
                runtime.take_answer(call_id, item, failure)
            return
        if runtime is None:
            details = {"runtime_id": runtime_id}
            raise RuntimeFailure("runtime_not_ready", "This runtime has not sent runtime_ready.", details)
        if kind == "runtime_status":
            url = read_text(item, "url", MAX_URL)
            for name in ("states", "attachments"):
                if not isinstance(item.get(name, []), list):
                    raise invalid(f"{name} must be a list.", member=name)
            read_text(item, "observed_at")
            runtime.url = url or runtime.url
            if item.get("closing") is True:
                runtime.close_tab()
            if runtime.runtime is not None and item.get("events"):
                self._pending.start(self._ask_page(runtime, has_events=True), "awp_publish bridge events")
            progress, call = item.get("call"), runtime.current
            if isinstance(progress, dict) and call is not None and isinstance(step := progress.get("step_id"), str):
                call.step_id = step[:MAX_ID]
                call.has_changed = progress.get("mutating") is not False
            return
        self._take_event(runtime, item)

    def _take_event(self, runtime: PairedRuntime, item: JsonObject) -> None:
        """Forward an event to the agents that may reach its runtime. An undeclared event is dropped and counted."""
        event_id, name = require_text(item, "event_id"), require_text(item, "name")
        payload = item.get("payload")
        if "payload" not in item:
            raise invalid("Missing required member: payload", member="payload")
        bridge, signal = self._bridge, self._bridge.signals.get(name)
        if signal is None:
            runtime.dropped["events"] += 1
            return
        schema = signal.get("payload")
        if isinstance(schema, dict):
            key = f"signal {name}"
            if bridge._validator(key, schema)(payload):
                runtime.dropped["events"] += 1
                return
        else:
            payload = {}
        forwarded: dict[str, object] = {"event_id": event_id, "name": name}
        for member, longest in (("event", MAX_ID), ("url", MAX_URL), ("observed_at", MAX_ID)):
            if (text := read_text(item, member, longest)) is not None:
                forwarded[member] = text
        self._forward_event(runtime, {**forwarded, "payload": payload})

    def _forward_event(self, runtime: PairedRuntime, event: JsonObject) -> None:
        """Send an event to the agents that may reach its runtime, with the id of the agent's own call if one runs."""
        item = {"type": "dom_event", "runtime_id": runtime.id, **event}
        during = (runtime.current.call_id, runtime.current.peer) if runtime.current is not None else runtime.last
        for agent in {*(runtime.owner.agents if runtime.owner is not None else ()), *runtime.listeners}:
            if not isinstance(agent, BridgeConnection) or len(agent._pending) >= MAX_EVENTS:
                runtime.dropped["events"] += 1
                continue
            mine = during is not None and during[1] is agent
            agent.post({**item, "previous_call_id": during[0]} if mine and during is not None else item)

    async def _ask_page(self, runtime: PairedRuntime, *, has_events: bool) -> None:
        """Make our script's page listen and attach as the map declares, or fetch and forward its events."""
        assert runtime.runtime is not None
        with suppress(RuntimeFailure, PrimitiveError):  # the page has unloaded; the next one sends a runtime_ready
            if not has_events:
                await runtime.runtime.status()
                return
            for event in await runtime.runtime.signals():
                self._forward_event(runtime, event)

    async def _take_call(self, item: JsonObject) -> None:
        """Handle an action_call. A finished one with the same id gets the same answer. Raises RuntimeFailure."""
        call_id, name = require_text(item, "call_id"), require_text(item, "name")
        arguments, selectors = require_object(item, "arguments"), Selectors.read(item)
        members = {member: item[member] for member in MEMBERS if item.get(member) is not None}
        most = self._bridge.door.settings.limits.timeout
        given = item.get("timeout_ms")
        if given is not None and (isinstance(given, bool) or not isinstance(given, (int, float)) or given <= 0):
            raise invalid("timeout_ms must be a positive number.", member="timeout_ms")
        seconds = min(most, given / 1000) if isinstance(given, (int, float)) else most
        if call_id in self.owner.running:
            raise invalid("A call with this call_id is still running.", member="call_id")
        asked = orjson.dumps([name, arguments, members], option=orjson.OPT_SORT_KEYS)
        fingerprint = hashlib.sha256(asked).digest()
        if call_id in self.owner.answers:
            known, answer = self.owner.answers[call_id]
            if known != fingerprint:
                raise invalid("The call_id was used for another call.", member="call_id")
            if answer is None:
                words = "The first call of this call_id succeeded; its answer is returned only once."
                raise RuntimeFailure("handler_failed", words, {"code": "ANSWER_NOT_KEPT"}, recoverable=False)
            self._pending.start(self._write_text(answer), "awp_publish bridge item")
            return
        if self._calls >= MAX_PENDING:
            details = {"limit": MAX_PENDING, "retry_after_ms": 1_000}
            raise RuntimeFailure("permission_denied", "Too many calls are running.", details)
        call = BridgeCall(call_id, name, arguments, seconds, members, self, self.session_key)
        self.owner.running.add(call_id)
        self._calls += 1
        self._refused = 0
        self._pending.start(self._answer(call, selectors, fingerprint), f"awp_publish bridge {name[:50]}")

    async def _answer(self, call: BridgeCall, selectors: Selectors, fingerprint: bytes) -> None:
        runtime: ReachableRuntime | None = None
        try:
            try:
                runtime, result = await self._bridge.dispatch(self.owner, call, selectors, self._site)
            except RuntimeFailure as failure:
                item = {**error_item(failure, call.call_id), **({"headers": call.headers} if call.headers else {})}
            else:
                if isinstance(runtime, PairedRuntime):
                    runtime.last = call.call_id, self
                output_item = {"type": "action_call_output", "call_id": call.call_id, "runtime_id": runtime.id}
                item = {**output_item, "output": result.output, **({"headers": call.headers} if call.headers else {})}
                item |= {"steps": list(result.steps)} if result.steps else {}
            answer = write_item(item)
            is_secret = self._bridge.gives_once(call, item)
            self.owner.remember(call.call_id, fingerprint, None if is_secret else answer)
        finally:
            self.owner.running.discard(call.call_id)
            self._calls -= 1
        await self._write_text(answer)


def _keyed_as(owner: Owner, key: str) -> str:
    """Return the lookup key of a runtime. A long key works across owners, for visitors that sign in meanwhile."""
    return key if len(key) >= KEY_LENGTH else f"{owner.key} {key}"


def _agent_of(handled: HandlerCall) -> JsonObject:
    """Return the agent that the map binds a tool to. What a caller sends never decides."""
    operation = handled.bound.get("operation")
    named: dict[str, object] = {"agent_id": handled.bound.get("agent_id", handled.tool)}
    return named | ({"operation": operation} if operation is not None else {})


def _misfit(words: str, violations: Sequence[Violation]) -> RuntimeFailure:
    listed = "; ".join(f"{violation.pointer or 'they'} {violation.detail}" for violation in violations[:5])
    return invalid(f"{words}: {listed}", errors=errors_of(violations))
