"""A `Call`, as the gates and the handler receive it, and its result: an `Outcome` or a Problem."""

import asyncio
import base64
import re
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from starlette.requests import cookie_parser

from awp_publish.model import Action, JsonObject
from awp_publish.problems import InvalidCredentials, InvalidIdempotencyKey, Problem, UnknownAgent

if TYPE_CHECKING:  # the guard makes the steps of the store; they are only stored here
    from awp_publish.stores.store import Add

_NOT_TEXT: Final = re.compile("[\ud800-\udfff]")


Label: TypeAlias = Literal["verified", "forged", "unsigned impostor", "unknown"]
"""The result of checking a request's signature (Web Bot Auth).

The signature is valid; it is invalid; the request claims to be from an agent that signs, but is not signed; or there is
no evidence either way.
"""


@dataclass(frozen=True, slots=True)
class Principal:
    """A known caller. `id` is stable and not a secret: it appears in logs and keys. `claims` are further known facts.

    `label` is "verified" for an agent that has signed its request.
    """

    id: str
    scopes: frozenset[str] = frozenset()
    claims: Mapping[str, object] = field(default_factory=dict, compare=False, repr=False)
    label: Label = field(default="unknown", compare=False)

    def __post_init__(self) -> None:
        if _NOT_TEXT.search(self.id):
            raise InvalidCredentials("The caller's id has characters that no text has.")

    def has_expired(self) -> bool:
        """Say whether the time of the token is over that told of the caller (`exp`, seconds since 1970)."""
        until = self.claims.get("exp")
        return isinstance(until, (int, float)) and until <= time.time()

    @property
    def client(self) -> str | None:
        """The software that acts for the caller, according to the token (`client_id`, RFC 9068 section 2.2, or `azp`).

        For a client identified by a metadata document this is the document's https address. It is not fetched, because
        whoever requests tokens chooses it.
        """
        named = self.claims.get("client_id", self.claims.get("azp"))
        return named if isinstance(named, str) and named else None


class Signed(NamedTuple):
    """A caller's signature over our own challenge, made with a secret that it shares with the site."""

    name: str
    challenge: str
    signature: str


class Credentials(NamedTuple):
    """The credentials of a request, and what else identifies its caller. Header names are lower-case.

    `session` is the application's own session, `user` what its authentication middleware set; both are None without
    such a middleware. `scopes` are those that the middleware granted (Starlette keeps them beside the user). `address`
    is the client's, behind the trusted proxies. `signed` is the caller's signature at a door that gives challenges; it
    is not in a header. `query` is the request's query, in which some keys are sent. `request` is the ASGI scope of a
    signed request, None for others.
    """

    headers: Mapping[str, str]
    address: str = ""
    session: Mapping[str, object] | None = None
    user: object = None
    scopes: frozenset[str] = frozenset()
    signed: Signed | None = None
    query: bytes = b""
    request: MutableMapping[str, Any] | None = None


RawHeaders: TypeAlias = tuple[tuple[bytes, bytes], ...]


RECEIPT: Final = b"awp-receipt"
SESSION_HEADER: Final = b"awp-session"
"""Headers with which a response issues a receipt or a session, and a later call presents it."""

KEY: Final = "idempotency_key"
"""The envelope's member for the idempotency key, unless the action declares another name."""

_QUOTED: Final = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*)"')


def read_key(text: str) -> str:
    """Parse a key, bare or as a quoted string (draft-ietf-httpapi-idempotency-key-header section 2.1)."""
    key = text.strip()
    if key[:1] == '"' and (quoted := _QUOTED.fullmatch(key)):
        key = re.sub(r"\\(.)", r"\1", quoted[1])
        key = key if key == key.strip() else ""
    if not (0 < len(key) <= 255 and key.isascii() and key.isprintable()):
        raise InvalidIdempotencyKey("The idempotency key is empty, too long, or not printable ASCII.")
    return key


_NOWHERE: Final[Mapping[str, str]] = MappingProxyType({})
_NO_ACTION: Final = partial(UnknownAgent, "There is no such action here.")


class Call:
    """One call, whichever door received it.

    `context` is the door's own request, from which the request to a route is derived. `disconnected()` returns once the
    caller has disconnected. For the guard: `credentials()` reads the request's credentials, `session_id` identifies the
    session that the site keeps for a caller without a cookie jar, `claim` is the store's record that an idempotent call
    is in flight, `spent` that of the confirmation that was used, and `headers` are added to the response whatever it
    is.

    While it runs: `answer` is set when the handler's answer is complete, even if the handler continues; after that
    nothing interrupts the call. Exactly one result is delivered, before the `deadline` (perf_counter) or because of it.
    """

    # Slots, all set in the constructor: a class default would cost more at each access than setting the slot does.
    __slots__ = (
        "action",
        "answer",
        "authorization",
        "claim",
        "confirmation",
        "context",
        "conversation",
        "credentials",
        "deadline",
        "deliver",
        "disconnected",
        "door",
        "fingerprints",
        "finisher",
        "has_cookie_jar",
        "headers",
        "idempotency_key",
        "input",
        "interrupted",
        "is_delivered",
        "is_fresh",
        "is_overseen",
        "key_in_input",
        "label",
        "listener",
        "objection",
        "on_cookies",
        "places",
        "principal",
        "receipts",
        "request_id",
        "session",
        "session_id",
        "spent",
        "started",
        "task",
        "unknown",
    )
    deliver: "Deliver"
    deadline: float
    task: "asyncio.Task[Any] | None"

    def __init__(
        self,
        action: Action,
        given: JsonObject,
        request_id: str,
        door: str,
        context: object = None,
        disconnected: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.action = action
        self.input = given
        self.request_id = request_id
        self.door = door
        self.context = context
        self.disconnected = disconnected

        self.credentials: Callable[[], Credentials] | None = None
        self.authorization: bytes | None = None
        """The header Authorization, which identifies most callers, so that the other headers need not be parsed."""
        self.idempotency_key: str | None = None
        self.key_in_input: object = None
        self.confirmation: str | None = None
        self.receipts: tuple[str, ...] = ()
        self.principal: Principal | None = None
        self.label: Label = "unknown"
        self.session_id = ""
        self.headers: RawHeaders = ()
        self.claim: Add | None = None
        self.fingerprints: tuple[str, ...] = ()
        self.spent: Add | None = None
        self.unknown: Callable[[], Problem] = _NO_ACTION
        """Makes this door's problem for an unknown action, for callers who may not see the action."""
        self.objection: Problem | None = None
        self.places: Mapping[str, str] = _NOWHERE
        """Where this door accepts members that are not inputs, by the names under which callers misplace them."""

        # For sessions: `session` is the id that the caller sent; `conversation` is the id of a session that the door
        # keeps for its caller and that may not have begun. `session_id` identifies the call's session and is not
        # secret. `on_cookies` receives every Set-Cookie of a route's response; `is_fresh` means that the route is
        # reached from outside.
        self.session: str | None = None
        self.conversation: str | None = None
        self.has_cookie_jar = False
        self.on_cookies: Callable[[list[bytes]], None] | None = None
        self.is_fresh = False

        self.answer: Result | None = None
        self.is_delivered = False
        self.started = 0.0
        """The time (perf_counter) at which the call came in, if it is to be counted; 0.0 once it has been."""
        self.is_overseen = False
        """True once the call has run for so long that its deadline was checked."""
        self.interrupted = False
        self.finisher: asyncio.Future[None] | None = None
        self.listener: asyncio.Future[None] | None = None

    def refuse(self, problem: Problem) -> None:
        """Raise a problem with the request, or keep it for the guard if the action is not public.

        The guard raises it for callers who may see the action. Others must not learn from it that the action exists.
        """
        if self.action.is_public:
            raise problem
        self.objection = self.objection or problem

    @property
    def elsewhere(self) -> Mapping[str, str]:
        """Return `places`, with the idempotency key under the name that the action declares for it."""
        declared = self.action.idempotency
        if declared is None or KEY not in self.places:
            return self.places
        return {**self.places, declared.key_field: self.places[KEY].replace(KEY, declared.key_field)}

    @property
    def caller_id(self) -> str:
        """The known caller's id, or "" if the caller is unknown."""
        return self.principal.id if self.principal is not None else ""

    @property
    def known_as(self) -> str:
        """Return the caller's name in the store, from the principal or else the session; "" for an unknown caller."""
        if self.principal is not None:
            return f"user:{self.principal.id}"
        return f"session:{self.session_id}" if self.session_id else ""

    @property
    def application_session(self) -> Mapping[str, object]:
        """The application's own session, empty if there is none."""
        return (self.credentials().session if self.credentials is not None else None) or {}

    @property
    def cookies(self) -> Mapping[str, str]:
        """The cookies that the caller has sent."""
        return cookie_parser(self.credentials().headers.get("cookie", "")) if self.credentials is not None else {}

    def interrupt(self) -> None:
        """Cancel the task in which the call runs."""
        self.interrupted = True
        if self.task is not None:
            self.task.cancel()


class Content(NamedTuple):
    """What a JSON string represents if the route did not answer JSON: text in a charset, or base64 if that is empty."""

    media_type: str
    charset: str

    def bytes_of(self, output: object) -> bytes:
        """Return the bytes as the route sent them."""
        text = str(output)
        return text.encode(self.charset) if self.charset else base64.b64decode(text)


@dataclass(slots=True)
class Outcome:
    """An action's answer: JSON text, its decoded value, and the headers that are passed on to the caller.

    `content` is set if the JSON is a string that represents something else.
    """

    body: bytes
    output: object
    status: int = 200
    headers: RawHeaders = ()
    content: Content | None = None


Result: TypeAlias = Outcome | Problem

Deliver: TypeAlias = Callable[[Result], Awaitable[None]]
"""Delivers a result to the caller."""

CallListener: TypeAlias = Callable[[Mapping[str, object]], object]
"""Receives the facts of each call, on the event loop, and must not block."""


async def never_disconnected() -> None:
    """The `disconnected` of a call that a disconnect must not end."""
    await asyncio.get_running_loop().create_future()
