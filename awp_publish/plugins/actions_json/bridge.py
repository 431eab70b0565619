"""The bridge: the Actions Bridge Protocol of actions.json over WebSocket, between agents and pages of this site.

A connection becomes a runtime when it sends `runtime_ready`, and an agent when it sends an `action_call`. A call goes
to exactly one runtime that its caller may reach: a visitor's tab with our script (`maps/actions.js`), another runtime
that speaks the protocol, or a page in this process (if the call names it, or if no other runtime matches). The tool
`actions.site`, which covers all of this, is also an action at the other doors. Runtimes are known per process.

A runtime belongs to the owner of its connection. A caller may reach it as the same principal, or by the
`authorization_id` that the visitor has passed on. For all other callers it does not exist.
"""

from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from datetime import UTC, datetime
from functools import cached_property
from typing import Final, cast

import orjson

from awp_publish.browsing.browser import PAGE_BYTES
from awp_publish.calls.call import SESSION_HEADER, Call, Outcome, Principal, Result
from awp_publish.http.client_address import client_address
from awp_publish.http.credentials import read_credentials
from awp_publish.http.documents import Encodings, Prepared, prepare_one
from awp_publish.http.exchange import Receive, Scope, Send, read_fields, send_reply
from awp_publish.http.handshake import SocketGate, require_upgrade
from awp_publish.http.inner_calls import INNER_CALL, InnerCall, InnerCalls
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.http.site_client import SiteClient
from awp_publish.http.sockets import GOING_AWAY
from awp_publish.http.streams import OpenStreams
from awp_publish.http.tasks import OwnedTasks
from awp_publish.maps.failures import RuntimeFailure
from awp_publish.plugin import Context, Document, Endpoints
from awp_publish.plugins.actions_json.connection import BridgeConnection, BridgeServices
from awp_publish.plugins.actions_json.dispatching import Dispatcher
from awp_publish.plugins.actions_json.document import SITE_TOOL
from awp_publish.plugins.actions_json.items import CONNECTIONS, DIALECT, PROTOCOL, STATUSES, Selectors
from awp_publish.plugins.actions_json.offers import Offers
from awp_publish.plugins.actions_json.pairing import PairedRuntimes
from awp_publish.plugins.actions_json.problems import RuntimeFailed
from awp_publish.plugins.actions_json.runtimes import MAX_OWNERS, BridgeCall, Owner
from awp_publish.plugins.actions_json.script import render_script
from awp_publish.plugins.actions_json.visits import Visits
from awp_publish.problems import InvalidInput, Problem, Violation
from awp_publish.stores.store import session_key

UPGRADE: Final = b"The bridge is spoken to over WebSocket.\n"


class BridgeDoor:
    """The bridge at one public address of a site, in this process: its connections, and who owns them."""

    def __init__(self, door: Context) -> None:
        self.door, path = door, door.catalog.paths.bridge
        renderer = ProblemRenderer(door.catalog, DIALECT.recoveries)
        self._gate = SocketGate(door, PROTOCOL, path, renderer)
        self._identify = door.guards.identify()
        self._inner = inner = InnerCalls(door, PROTOCOL, path, DIALECT)
        self._tasks = OwnedTasks()
        self._connections: set[BridgeConnection] = set()
        self._open = OpenStreams("connections", CONNECTIONS)
        self._owners: OrderedDict[str, Owner] = OrderedDict()
        offers = Offers(door)
        paired = PairedRuntimes(offers, door.settings.limits.timeout)
        visits = Visits(door, offers, inner, renderer)
        self._bridge = BridgeServices(
            door, offers, paired, visits, Dispatcher(door, offers, paired, visits, inner, renderer)
        )

    def endpoints(self) -> Endpoints:
        paths = self.door.catalog.paths
        exact = {paths.bridge: self.answer_http, paths.script: self.answer_script}
        return Endpoints(exact=exact, running=self.running, sockets={paths.bridge: self.answer})

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Close all connections at shutdown."""
        try:
            yield
        finally:
            for connection in tuple(self._connections):
                connection.close(GOING_AWAY)
            self._bridge.paired.end_all()
            self._bridge.visits.end_all()
            await self._tasks.cancel()

    async def answer_http(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that the bridge itself has sent through the application; any other has to upgrade."""
        inner = scope.get(INNER_CALL)
        if isinstance(inner, InnerCall):
            await self._inner.answer(inner, scope, receive, send)
        else:
            await require_upgrade(UPGRADE, scope, send)

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
        connection = BridgeConnection(self._bridge, owner, self._client(scope, address), receive, send, session_key)
        if browsing.auth_required and not owner.key:
            connection.refusal = RuntimeFailure("permission_denied", "This site requires authentication.")
        self._connections.add(connection)
        owner.agents.add(connection)
        try:
            await connection.serve()
        finally:
            self._connections.discard(connection)

    def _client(self, scope: Scope, address: str) -> SiteClient:
        app = self.door.application.entrance(scope)
        return SiteClient(app, scope, self.door.catalog.prefix, PAGE_BYTES, self._tasks, address)

    async def _owner_of(self, scope: Scope) -> tuple[Owner, str, Principal | None]:
        """Return a connection's owner, the key of its session, and its caller. Raises a Problem."""
        token, visited = read_fields(scope["headers"]).get(SESSION_HEADER, b"").strip(), scope
        if (sessions := self.door.ask("sessions")) is not None and token:
            # Session middleware handles HTTP requests only, and the upgrade is one (RFC 6455 section 4.1).
            scheme = "https" if scope.get("scheme") == "wss" else "http"
            request = {**scope, "type": "http", "method": "GET", "scheme": scheme, "extensions": {}}
            visited = await sessions.visit(request)
        fields = read_fields(visited["headers"])
        principal = await self._identify(read_credentials(visited, fields, self.door.admission.trusted_proxies))
        session = session_key(token.decode("latin-1")) if token and visited is not scope else ""
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
            idle = (
                candidate
                for candidate in self._owners.values()
                if not candidate.agents and not candidate.runtimes and candidate is not owner
            )
            forgotten = next(idle, None)
            if forgotten is not None:
                del self._owners[forgotten.key]
        return owner

    async def answer_tool(self, call: Call) -> Result:
        """Run `actions.site` for a caller at another door. Returns a Problem if it fails."""
        scope = cast(Scope, call.context)
        owner = self.owner(call.principal, call.session_id)
        fields = read_fields(scope["headers"])
        site = self._client(scope, client_address(scope, fields, self.door.admission.trusted_proxies))
        envelope = call.members
        optional = {"confirmation": envelope.confirmation, "idempotency_key": envelope.idempotency_key}
        members: dict[str, object] = {name: value for name, value in optional.items() if value is not None}
        if envelope.receipts:
            members["receipts"] = list(envelope.receipts)
        bridge_call = BridgeCall(
            call.request_id, SITE_TOOL, call.input, call.action.timeout, members, session_key=call.session_id
        )
        try:
            try:
                _, result = await self._bridge.dispatcher.dispatch(owner, bridge_call, Selectors(), site)
            finally:
                if (renewed := bridge_call.headers.get(SESSION_HEADER.decode())) is not None:
                    call.headers += ((SESSION_HEADER, renewed.encode()),)
        except RuntimeFailure as failure:
            if isinstance(failure.__cause__, Problem):
                return failure.__cause__
            members = {"error": failure.describe()}
            if failure.code == "invalid_input":
                listed = failure.evidence.get("errors")
                below = "/arguments" if call.input.get("mode") == "call" and "action" in call.input else ""
                wrong = [error for error in (listed if isinstance(listed, list) else []) if isinstance(error, dict)]
                errors = [
                    Violation(f"{below}{error.get('pointer', '')}", str(error.get("detail", ""))) for error in wrong
                ]
                return InvalidInput(failure.message, errors=errors, members=members)
            is_unknown = failure.evidence.get("code") in ("state_projection_not_found", "state_summary_not_found")
            status = 404 if is_unknown else STATUSES.get(failure.code, 502)
            return RuntimeFailed(failure.message, status=status, members=members)
        return Outcome(orjson.dumps(result.output), result.output)
