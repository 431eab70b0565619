"""The way through the gates: a `Call` goes in, an `Outcome` or a Problem comes out."""

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

if TYPE_CHECKING:  # what a store is asked for is told by the guard, and only handed on here
    from awp_publish.stores.store import Add

_NOT_TEXT: Final = re.compile("[\ud800-\udfff]")


Label: TypeAlias = Literal["verified", "forged", "unsigned impostor", "unknown"]
"""How a caller stands to the signature of its requests (Web Bot Auth).

Its signature is right, or wrong; it goes by the name of an agent that signs, without a signature; or nothing is known.
"""


@dataclass(frozen=True, slots=True)
class Principal:
    """A known caller. `id` is stable and no secret: it stands in logs and keys. `claims` are what else is known.

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
        """The software that acts for the caller, as its token says (`client_id`, RFC 9068 section 2.2; else `azp`).

        Of a client that is known by its metadata document, this is that document's https address. It is not fetched:
        who asks for tokens chooses it.
        """
        named = self.claims.get("client_id", self.claims.get("azp"))
        return named if isinstance(named, str) and named else None


class Signed(NamedTuple):
    """A caller's signature with a secret that it shares with the site: our own challenge, under its name."""

    name: str
    challenge: str
    signature: str


class Credentials(NamedTuple):
    """The credentials and marks that a request shows. Header names are lower-case.

    `session` is the application's own, `user` what its authentication middleware made of the request; both are None
    where there is no such middleware. `scopes` are what that middleware granted (Starlette keeps them beside the user).
    `address` is the client's, behind the trusted proxies. `signed` is what the caller has signed, at a door that gives
    challenges; no header says it. `query` is the request's query, in which some keys are sent. `request` is the ASGI
    scope of a request that is signed, None for others.
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
"""Headers in which an answer hands out a receipt and a session, and a later call shows them."""

KEY: Final = "idempotency_key"
"""The member in which an envelope carries its idempotency key, unless the action has a name of its own for it."""

_QUOTED: Final = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*)"')


def read_key(text: str) -> str:
    """A key as it was sent, bare or as a quoted string (draft-ietf-httpapi-idempotency-key-header section 2.1)."""
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
    """One call, whichever door it came through.

    `context` is the door's own request, from which that of a route is made. `disconnected()` returns when the caller
    has hung up. For the guard: `credentials()` reads what the request shows of its caller, `session_id` is the session
    that the site keeps for a caller without a cookie jar, `claim` is the mark under which an idempotent call is in
    flight, `spent` that of the confirmation which has admitted it, `headers` are what is added to the answer, whatever
    it is.

    While it runs: `answer` is the handler's complete one, though the handler may work on; from then on nothing
    interrupts the call. Exactly one result is delivered, before the `deadline` (perf_counter) or because of it.
    """

    # Slots, all of them set: a default of the class would cost each look at it more than setting it does.
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
        """The header Authorization, by which most known callers are known, so that nobody has to read all others."""
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
        """How this door says that there is no such action, to a caller who may not know of it."""
        self.objection: Problem | None = None
        self.places: Mapping[str, str] = _NOWHERE
        """Where this door takes what is no input, by the names under which callers put it there by mistake."""

        # For sessions: `session` is the id that the caller shows; `conversation` is the id of one that the door keeps
        # for its caller, which need not have begun. `session_id` names the session that the call has, and is no
        # secret. `on_cookies` is told every Set-Cookie of a route's answer; `is_fresh` says that the route is reached
        # from outside.
        self.session: str | None = None
        self.conversation: str | None = None
        self.has_cookie_jar = False
        self.on_cookies: Callable[[list[bytes]], None] | None = None
        self.is_fresh = False

        self.answer: Result | None = None
        self.is_delivered = False
        self.started = 0.0
        """When it came in, if it is to be counted (seconds of perf_counter); 0.0 once it is."""
        self.is_overseen = False
        """True once it has run for so long that the deadlines were looked after."""
        self.interrupted = False
        self.finisher: asyncio.Future[None] | None = None
        self.listener: asyncio.Future[None] | None = None

    def refuse(self, problem: Problem) -> None:
        """Raise what is wrong with the request of a call, or keep it for the guard, which tells whoever may know of it.

        Where not everybody may know of the action, nobody else is to learn from it that there is one.
        """
        if self.action.is_public:
            raise problem
        self.objection = self.objection or problem

    @property
    def elsewhere(self) -> Mapping[str, str]:
        """Return the places of what is no input; an idempotency key by the name that the action has for it."""
        declared = self.action.idempotency
        if declared is None or KEY not in self.places:
            return self.places
        return {**self.places, declared.key_field: self.places[KEY].replace(KEY, declared.key_field)}

    @property
    def caller_id(self) -> str:
        """The known caller's id, "" for nobody."""
        return self.principal.id if self.principal is not None else ""

    @property
    def known_as(self) -> str:
        """Return the caller's name in the store: by principal, else by session; "" for nobody known."""
        if self.principal is not None:
            return f"user:{self.principal.id}"
        return f"session:{self.session_id}" if self.session_id else ""

    @property
    def application_session(self) -> Mapping[str, object]:
        """The application's own session, empty where there is none."""
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
    """The meaning of a JSON string, where a route has answered something else: a text in a charset, "" for base64."""

    media_type: str
    charset: str

    def bytes_of(self, output: object) -> bytes:
        """The answer as the route has sent it."""
        text = str(output)
        return text.encode(self.charset) if self.charset else base64.b64decode(text)


@dataclass(slots=True)
class Outcome:
    """An action's answer: JSON text, the same decoded, and the headers worth carrying to the caller.

    `content` is there where the JSON is a string that stands for something else.
    """

    body: bytes
    output: object
    status: int = 200
    headers: RawHeaders = ()
    content: Content | None = None


Result: TypeAlias = Outcome | Problem

Deliver: TypeAlias = Callable[[Result], Awaitable[None]]
"""Gives a result to whoever waits for it."""

CallListener: TypeAlias = Callable[[Mapping[str, object]], object]
"""Is given the facts of each call, in the event loop: it must not block."""


async def never_disconnected() -> None:
    """The `disconnected` of a call that nobody's hanging up shall end."""
    await asyncio.get_running_loop().create_future()
