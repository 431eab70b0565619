"""What all HTTP doors share: request ids, answers, the rendering of problems, and the checks before a call."""

import os
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import ClassVar, Final
from urllib.parse import quote

from awp_publish.calls.call import RECEIPT, SESSION_HEADER, Call, Content, Outcome, Result, read_key
from awp_publish.declare.settings import SiteSettings
from awp_publish.documents.members import SESSION_HEADER as SESSION_NAME, unlinked_recoveries
from awp_publish.http.credentials import (
    BROWSER_FIELDS,
    TrustedProxies,
    origin_of,
    read_trusted_proxies,
    refuse_foreign_pages,
)
from awp_publish.http.exchange import (
    NO_SNIFFING,
    ClientDisconnect,
    Cors,
    Fields,
    RawHeaders,
    Receive,
    Reply,
    Scope,
    Send,
    content_length,
    describe_problem,
    json_kind,
    read_fields,
    render_problem,
    route_path,
    send_reply,
    too_large,
    without_content,
)
from awp_publish.http.signed import note_signature
from awp_publish.model import Action, Catalog, Idempotency
from awp_publish.problems import (
    AuthenticationRequired,
    InvalidCredentials,
    InvalidEnvelope,
    InvalidIdempotencyKey,
    MethodNotAllowed,
    Problem,
    code_of,
)
from awp_publish.schema import media

# --- One HTTP request to a door: its id and its answer ---

STATIC_HEADERS: Final[RawHeaders] = (
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    NO_SNIFFING,
)
_RARE_FIELDS: Final = BROWSER_FIELDS | {b"x-request-id", b"signature-input", b"dpop"}
"""Headers that most calls lack. One set operation finds out whether any of them is present."""

_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,128}")
_process = secrets.token_hex(12)
_numbers: Final = count(10_000_000)
"""Request ids are a random process id and a counter: unique across processes, without a system call per request."""


def _after_fork() -> None:
    """Give a forked worker its own process id for request ids."""
    global _process
    _process = secrets.token_hex(12)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class ProblemRenderer:
    """Renders problems for all doors, with the URLs of their types and the site's own recovery texts.

    `dialect` replaces recovery texts, by code, at a door whose callers send keys and the like in another way than at
    the WoA door.
    """

    __slots__ = ("_prefix", "recoveries", "types")

    def __init__(self, catalog: Catalog, dialect: Mapping[str, str] | None = None) -> None:
        self.types = catalog.absolute(catalog.paths.problems)
        self._prefix = catalog.prefix
        own = unlinked_recoveries(catalog)
        if (source := catalog.token_source) is not None:
            recovery = f"Call {source.id}, then call again with the token of its answer: Authorization: Bearer ..."
            own[code_of(AuthenticationRequired.slug)] = own[code_of(InvalidCredentials.slug)] = recovery
        known = catalog.site.authentication
        if known is not None and known.is_own_server:
            recovery = (
                "Let the person whom you act for sign in: get a token from the server that resource_metadata in "
                "WWW-Authenticate names (OAuth 2 with PKCE), then call again with Authorization: Bearer ..."
            )
            own[code_of(AuthenticationRequired.slug)] = own[code_of(InvalidCredentials.slug)] = recovery
        elif (action := catalog.sign_in) is not None:
            recovery = (
                f"Call {action.id}, then call again with the cookies that its answer sets, or without cookies with the "
                f"{SESSION_NAME} that it has: in the header {SESSION_NAME}, or as session beside the input."
            )
            own[code_of(AuthenticationRequired.slug)] = recovery
        self.recoveries: Mapping[str, str] = {**own, **(dialect or {}), **catalog.site.errors}

    def instance_of(self, scope: Scope) -> str:
        """Return the path of a request as its caller sent it, with a prefix that a proxy may have removed."""
        return quote(self._prefix + route_path(scope))

    def describe(self, problem: Problem, instance: str = "", request_id: str = "") -> dict[str, object]:
        """Return the members of a problem details object."""
        return describe_problem(problem, self.types, self.recoveries, instance, request_id, self._prefix)

    def reply(self, problem: Problem, instance: str = "", request_id: str = "", extra: RawHeaders = ()) -> Reply:
        """Return the reply for a problem."""
        return render_problem(problem, self.types, self.recoveries, instance, request_id, extra, self._prefix)


class DoorRequest:
    """One request to a door, and its answer. `call` is set once the request has become a call."""

    __slots__ = ("_cors", "_send", "call", "fields", "is_of_browser", "receive", "renderer", "request_id", "scope")

    def __init__(
        self,
        renderer: ProblemRenderer,
        cors: Cors,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        self.renderer = renderer
        self.scope = scope
        self.receive = receive
        self._send = send
        headers = scope["headers"]
        fields: Fields = dict(headers)
        if len(fields) != len(headers):
            fields = read_fields(headers)
        self.fields = fields
        self.call: Call | None = None
        self.is_of_browser = False
        self._cors: RawHeaders = ()
        if _RARE_FIELDS.isdisjoint(fields):
            self.request_id = f"{_process}{next(_numbers)}"
        else:
            self.request_id = read_request_id(fields)
            self.is_of_browser = not BROWSER_FIELDS.isdisjoint(fields)
            if b"signature-input" in fields or b"dpop" in fields:
                self.receive = note_signature(scope, fields, receive)
        if not cors.is_closed:
            self._cors = cors.headers(fields)

    def drop_content(self) -> None:
        """Answer without content, as for HEAD."""
        self._send = without_content(self._send)

    async def disconnected(self) -> None:
        """Return when the client has disconnected. Call this after the body was read."""
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def deliver(self, result: Result) -> None:
        """Answer the request."""
        added: RawHeaders = ()
        if (call := self.call) is not None:  # break the reference cycle between the request and its call
            added, self.call = call.headers, None
        request_id = (b"x-request-id", self.request_id.encode())
        if not isinstance(result, Outcome):
            if added:  # headers of the gates replace the route's own
                names = {name.decode("ascii") for name, _ in added}
                result.headers = tuple(pair for pair in result.headers if pair[0].lower() not in names)
            extra = (*added, *self._cors, request_id)
            reply = self.renderer.reply(result, self.renderer.instance_of(self.scope), self.request_id, extra)
            await send_reply(reply, self._send)
            return
        static, body, carried = STATIC_HEADERS, result.body, result.headers
        if result.content is not None:
            static, body = self.write(result, result.content)
        headers = [*static, content_length(len(body)), *self._cors, request_id]
        if added:
            headers += added
            if carried:
                replaced = {name for name, _ in added}
                carried = tuple(pair for pair in carried if pair[0] not in replaced)
        if carried:
            headers += carried
        send = self._send
        await send({"type": "http.response.start", "status": result.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def write(self, outcome: Outcome, content: Content) -> tuple[RawHeaders, bytes]:
        """Return headers and body of an answer that is not JSON itself. At most doors, JSON represents it."""
        return STATIC_HEADERS, outcome.body

    async def reply(self, reply: Reply) -> None:
        """Answer the request with a prepared reply."""
        await send_reply(reply, self._send)


class PlainRequest(DoorRequest):
    """A request that is answered with the route's own body and media type, as the file that it may be."""

    __slots__ = ()

    def write(self, outcome: Outcome, content: Content) -> tuple[RawHeaders, bytes]:
        """Return the route's media type, its Content-Disposition and its body."""
        headers: RawHeaders = ((b"content-type", content.media_type.encode("latin-1")), *STATIC_HEADERS[1:])
        if content.disposition:
            headers += ((b"content-disposition", content.disposition.encode("latin-1")),)
        is_json = media.is_json(media.media_type_of(content.media_type.encode("latin-1")))
        return headers, outcome.body if is_json else content.bytes_of(outcome.output)


def read_request_id(fields: Fields) -> str:
    """Return the caller's own request id if it is safe in logs and headers, otherwise a new one."""
    given = fields.get(b"x-request-id")
    if given is not None and _REQUEST_ID.fullmatch(given):
        return given.decode("ascii")
    return f"{_process}{next(_numbers)}"


# --- Limits that apply to requests at every HTTP door of a site ---


@dataclass(frozen=True, slots=True)
class Admission:
    """Limits of all doors: body sizes in bytes, origins whose pages may call, the site's own origins, trusted proxies.

    A door reads up to `max_body_bytes`, the largest limit of any action, and calls `check_size` once it knows the
    action. `usual_body_bytes` is the limit of actions that declare none.
    """

    max_body_bytes: int
    allow_origins: tuple[str, ...]
    own_origins: frozenset[str]
    trusted_proxies: TrustedProxies
    usual_body_bytes: int

    def check_size(self, action: Action, size: int) -> None:
        """Raise BodyTooLarge if a body of `size` bytes exceeds the action's limit."""
        most = action.max_body_bytes or self.usual_body_bytes
        if size > most:
            raise too_large(most)

    def smallest_limit(self, actions: Iterable[Action]) -> int:
        """Return the smallest limit of any action, in bytes."""
        return min([self.usual_body_bytes, *filter(None, (one.max_body_bytes for one in actions))])


def largest_body(settings: SiteSettings, actions: Iterable[Action]) -> int:
    """Return the largest limit of any action, in bytes."""
    return max([settings.max_body_bytes, *(action.max_body_bytes or 0 for action in actions)])


def read_admission_of(settings: SiteSettings, actions: Iterable[Action] = ()) -> Admission:
    """Return the limits that a site declares."""
    return Admission(
        largest_body(settings, actions),
        tuple(settings.allow_origins),
        frozenset(map(origin_of, settings.urls)),
        read_trusted_proxies(settings.proxies.trusted, settings.proxies.header),
        settings.max_body_bytes,
    )


# --- Idempotency key, confirmation, receipts and session of a call ---

CONFIRMATION: Final = (b"awp-confirmation", "confirmation")
RECEIPTS: Final = (RECEIPT, "receipts")
SESSION: Final = (SESSION_HEADER, "session")
"""Pairs of a header and an envelope member; a caller may use either."""

KEY_FIELD: Final = Idempotency().key_field
"""The member for the idempotency key. It works even if the action declares a name of its own."""


def read_admission(call: Call, members: Mapping[str, object], fields: Fields) -> None:
    """Put key, confirmation, receipts and session on a call, from headers or envelope. Raises a Problem."""
    call.authorization = fields.get(b"authorization")
    if (header := fields.get(b"idempotency-key")) is not None:
        call.idempotency_key = header.decode("latin-1")
    if (header := fields.get(CONFIRMATION[0])) is not None:
        call.confirmation = header.decode("latin-1").strip()
    if (header := fields.get(SESSION[0])) is not None:
        call.session = header.decode("latin-1").strip() or None
    receipts = fields.get(RECEIPTS[0])
    if receipts is None and _ENVELOPE.issuperset(members):
        return

    declared = call.action.idempotency
    name = declared.key_field if declared is not None else KEY_FIELD
    name = name if name in members else KEY_FIELD
    if (member := _text(members, name)) is not None:
        if call.idempotency_key is None:
            call.idempotency_key = member
        elif read_key(member) != read_key(call.idempotency_key):
            raise InvalidIdempotencyKey(f"The header Idempotency-Key and the envelope's member {name} differ.")

    if CONFIRMATION[0] not in fields and CONFIRMATION[1] in members:
        call.confirmation = _text(members, CONFIRMATION[1])

    member = _text(members, SESSION[1]) or None
    if member is not None and call.session not in (None, member):
        raise InvalidEnvelope("The header AWP-Session and the envelope's member session differ.")
    call.session = call.session or member

    if receipts is not None or RECEIPTS[1] in members:
        sent = [part.strip() for part in (receipts or b"").decode("latin-1").split(",")]
        listed = members.get(RECEIPTS[1], [])
        if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
            raise InvalidEnvelope(f"{RECEIPTS[1]}: must be a list of strings.")
        call.receipts = tuple(receipt for receipt in (*sent, *listed) if receipt)


_ENVELOPE: Final = frozenset({"agent", "operation", "input"})
"""The members of an envelope that `read_admission` does not read."""


def _text(members: Mapping[str, object], name: str) -> str | None:
    value = members.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidEnvelope(f"{name}: must be a string, not {json_kind(value)}.")
    return value


# --- One HTTP door ---


class Endpoint(ABC):
    """Base class of the HTTP doors.

    Before `handle`, it answers preflights, assigns the request id, and checks the method and the origin of a browser's
    page. Afterwards it renders a problem that `handle` has raised.
    """

    methods: str
    """The value of the `Allow` header. OPTIONS is answered here."""

    usage: str
    """The beginning of the error text for other methods: "<usage>, not PUT."."""

    request_type: ClassVar[type[DoorRequest]] = DoorRequest
    """The class of the requests that `handle` gets."""

    def __init__(self, renderer: ProblemRenderer, cors: Cors, own_origins: frozenset[str]) -> None:
        self._renderer = renderer
        self._cors = cors
        self._own_origins = own_origins
        methods = frozenset(self.methods.split(", "))
        self._make_request = self.request_type
        self._allowed, self._takes_head = methods - {"HEAD", "OPTIONS"}, "HEAD" in methods

    @abstractmethod
    async def handle(self, request: DoorRequest, named: str | None) -> None:
        """Answer a request with an allowed method. Raises a Problem, which becomes the answer, or ClientDisconnect."""

    def refuse_foreign(self, fields: Fields) -> None:
        """Refuse a request from another site's page. Called only for requests with one of BROWSER_FIELDS."""
        refuse_foreign_pages(fields, self._own_origins)

    def note_refusal(self, request: DoorRequest, problem: Problem) -> None:
        """Record that `handle` has raised a problem. Most doors do not."""
        return

    def __call__(self, scope: Scope, receive: Receive, send: Send, named: str | None = None) -> Awaitable[None]:
        """Answer one request. `named` is the agent or job that its URL names, if any."""
        return self.answer(named, scope, receive, send)

    async def answer(self, named: str | None, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, with `named` first so that doors can bind it."""
        make = self._make_request
        request, method = make(self._renderer, self._cors, scope, receive, send), scope["method"]
        try:
            if method not in self._allowed:
                if method == "OPTIONS":
                    await send_reply(self._cors.preflight(request.fields, self.methods), send)
                    return
                if method == "HEAD":
                    request.drop_content()
                if method != "HEAD" or not self._takes_head:
                    raise MethodNotAllowed(f"{self.usage}, not {method[:20]}.", headers=[("Allow", self.methods)])
            if request.is_of_browser:
                self.refuse_foreign(request.fields)
            await self.handle(request, named)
        except ClientDisconnect:
            return
        except Problem as problem:
            self.note_refusal(request, problem)
            await request.deliver(problem)
