"""The prologue of every door: a request's id, the answer to it, and the rendering of problems."""

import os
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import ClassVar, Final
from urllib.parse import quote

from awp_publish.model import Action, Catalog, Idempotency
from awp_publish.policy.botauth import note_signature
from awp_publish.policy.call import RECEIPT, SESSION_HEADER, Call, Content, Outcome, Result, read_key
from awp_publish.problems import (
    AuthenticationRequired,
    InvalidEnvelope,
    InvalidIdempotencyKey,
    MethodNotAllowed,
    Problem,
    code_of,
)
from awp_publish.serve.credentials import BROWSER_FIELDS, TrustedProxies, read_trusted_proxies, refuse_foreign_pages
from awp_publish.serve.http import (
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
from awp_publish.settings import SiteSettings

# --- One HTTP request to a door of ours: its id, and how its result is told ---

STATIC_HEADERS: Final[RawHeaders] = (
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    NO_SNIFFING,
)
_TELLING: Final = BROWSER_FIELDS | {b"x-request-id", b"signature-input", b"dpop"}
"""Headers that most calls come without, so that they are looked for once and together."""

_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,128}")
_process = secrets.token_hex(12)
_numbers: Final = count(10_000_000)
"""Request ids are the process and a number: unlike between processes, and without a system call for each request."""


def _after_fork() -> None:
    """Give a worker ids of its own that was forked from a process which has loaded the application."""
    global _process
    _process = secrets.token_hex(12)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class ProblemRenderer:
    """The doors' one renderer of problems: where their types are explained, and what the site says of them.

    `dialect` are recoveries by code for a door at which a caller has to say things otherwise than at the WoA door.
    """

    __slots__ = ("_prefix", "recoveries", "types")

    def __init__(self, catalog: Catalog, dialect: Mapping[str, str] | None = None) -> None:
        self.types = catalog.absolute(catalog.paths.problems)
        self._prefix = catalog.prefix
        own = {}
        if (action := catalog.sign_in) is not None:
            told = f"Call {action.id}, then call again with the session that its answer hands out."
            own[code_of(AuthenticationRequired.slug)] = told
        self.recoveries: Mapping[str, str] = {**own, **(dialect or {}), **catalog.site.errors}

    def instance_of(self, scope: Scope) -> str:
        """Return the path of a request as its caller knows it, whatever part of it the server has taken away."""
        return quote(self._prefix + route_path(scope))

    def describe(self, problem: Problem, instance: str = "", request_id: str = "") -> dict[str, object]:
        """Return the members of a problem."""
        return describe_problem(problem, self.types, self.recoveries, instance, request_id, self._prefix)

    def reply(self, problem: Problem, instance: str = "", request_id: str = "", extra: RawHeaders = ()) -> Reply:
        """Return the reply for a problem."""
        return render_problem(problem, self.types, self.recoveries, instance, request_id, extra, self._prefix)


class DoorRequest:
    """One request to a door of ours and its answer. `call` is set as soon as the request is known to be one."""

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
        if _TELLING.isdisjoint(fields):
            self.request_id = f"{_process}{next(_numbers)}"
        else:
            self.request_id = read_request_id(fields)
            self.is_of_browser = not BROWSER_FIELDS.isdisjoint(fields)
            if b"signature-input" in fields or b"dpop" in fields:
                self.receive = note_signature(scope, fields, receive)
        if not cors.is_closed:
            self._cors = cors.headers(fields)

    def drop_content(self) -> None:
        """Answer without content, as HEAD asks."""
        self._send = without_content(self._send)

    async def disconnected(self) -> None:
        """Return when the caller of a request whose body was read has gone."""
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def deliver(self, result: Result) -> None:
        """Answer the request."""
        added: RawHeaders = ()
        if (call := self.call) is not None:  # each holds the other, and only the garbage collector would part them
            added, self.call = call.headers, None
        request_id = (b"x-request-id", self.request_id.encode())
        if not isinstance(result, Outcome):
            if added:  # what a gate has set stands in place of a route's own
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
        """The headers and the body of a success whose JSON stands for something else: here it stays JSON."""
        return STATIC_HEADERS, outcome.body

    async def reply(self, reply: Reply) -> None:
        """Answer the request with what is rendered already."""
        await send_reply(reply, self._send)


class PlainRequest(DoorRequest):
    """A request whose answer is given as the route has given it, if that is not JSON."""

    __slots__ = ()

    def write(self, outcome: Outcome, content: Content) -> tuple[RawHeaders, bytes]:
        """The headers and the body of what the route has given."""
        content_type = (b"content-type", content.media_type.encode("latin-1"))
        return (content_type, *STATIC_HEADERS[1:]), content.bytes_of(outcome.output)


def read_request_id(fields: Fields) -> str:
    """The caller's own id, if it is fit to stand in a log and a header; else a new one."""
    given = fields.get(b"x-request-id")
    if given is not None and _REQUEST_ID.fullmatch(given):
        return given.decode("ascii")
    return f"{_process}{next(_numbers)}"


# --- What every HTTP door of one site holds its requests to, before they are calls ---


@dataclass(frozen=True, slots=True)
class Admission:
    """A size in bytes; other origins whose pages may call; the hosts of the site itself; proxies that are believed.

    `max_body_bytes` is what a door reads before it knows the action: the most that any takes. Then `check_size`.
    """

    max_body_bytes: int
    allow_origins: tuple[str, ...]
    own_hosts: frozenset[str]
    trusted_proxies: TrustedProxies
    usual_body_bytes: int

    def check_size(self, action: Action, size: int) -> None:
        """Raise BodyTooLarge for a call of an action with a larger body than that takes."""
        most = action.max_body_bytes or self.usual_body_bytes
        if size > most:
            raise too_large(most)

    def smallest_limit(self, actions: Iterable[Action]) -> int:
        """Return the size in bytes up to which no action refuses a body."""
        return min([self.usual_body_bytes, *filter(None, (one.max_body_bytes for one in actions))])


def largest_body(settings: SiteSettings, actions: Iterable[Action]) -> int:
    """Return the bytes of the largest body that any action takes."""
    return max([settings.max_body_bytes, *(action.max_body_bytes or 0 for action in actions)])


def read_admission_of(settings: SiteSettings, actions: Iterable[Action] = ()) -> Admission:
    """Return what is admitted: the largest body, the origins and the hosts that the site declares."""
    return Admission(
        largest_body(settings, actions),
        tuple(settings.allow_origins),
        settings.hosts,
        read_trusted_proxies(settings.proxies.trusted, settings.proxies.header),
        settings.max_body_bytes,
    )


# --- What the gates want to know ---

CONFIRMATION: Final = (b"awp-confirmation", "confirmation")
RECEIPTS: Final = (RECEIPT, "receipts")
SESSION: Final = (SESSION_HEADER, "session")
"""Header and member of the envelope, of which either is enough."""

KEY_FIELD: Final = Idempotency().key_field
"""The member that holds an idempotency key, understood beside the name that an action declares for it."""


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
"""The members of an envelope that are no concern of any gate."""


def _text(members: Mapping[str, object], name: str) -> str | None:
    value = members.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidEnvelope(f"{name}: must be a string, not {json_kind(value)}.")
    return value


# --- One HTTP door ---


class Endpoint(ABC):
    """One HTTP door: what all of them do before and after what is their own.

    Before: preflights, the request's id, CORS, pages of other sites, methods. After: problems, each with its headers.
    """

    methods: str
    """What an `Allow` field says; OPTIONS is answered here."""

    usage: str
    """What a request with another method is told, up to the method."""

    request_type: ClassVar[type[DoorRequest]] = DoorRequest
    """What `handle` gets: the requests of a door may know more than others."""

    def __init__(self, renderer: ProblemRenderer, cors: Cors, own_hosts: frozenset[str]) -> None:
        self._renderer = renderer
        self._cors = cors
        self._own_hosts = own_hosts
        methods = frozenset(self.methods.split(", "))
        self._make_request = self.request_type
        self._allowed, self._takes_head = methods - {"HEAD", "OPTIONS"}, "HEAD" in methods

    @abstractmethod
    async def handle(self, request: DoorRequest, named: str | None) -> None:
        """Answer a request of the right kind. Raises a Problem that is to be its answer, or ClientDisconnect."""

    def refuse_foreign(self, fields: Fields) -> None:
        """Refuse what another site's page sends. Called only for requests with one of BROWSER_FIELDS."""
        refuse_foreign_pages(fields, self._own_hosts)

    def note_refusal(self, request: DoorRequest, problem: Problem) -> None:
        """Note that `handle` has raised a problem."""  # of which most doors keep no record
        return

    def __call__(self, scope: Scope, receive: Receive, send: Send, named: str | None = None) -> Awaitable[None]:
        """Answer one request; `named` is what its address names: an agent, a job."""
        return self.answer(named, scope, receive, send)

    async def answer(self, named: str | None, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request to the address of what is `named`."""
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
