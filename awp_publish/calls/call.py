"""A `Call`, its caller, and its result: an `Outcome` or a Problem."""

import asyncio
import base64
import re
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from starlette.requests import cookie_parser

from awp_publish.model import Action, Idempotency, JsonObject
from awp_publish.problems import InvalidCredentials, InvalidIdempotencyKey, Problem, UnknownAgent

_NOT_TEXT: Final = re.compile("[\ud800-\udfff]")
_NOT_AN_ISSUER: Final = re.compile("[\\s\x00-\x1f\x7f\ud800-\udfff]")
"""White space would let an issuer and an id read as another pair in a key."""

Scheme: TypeAlias = Literal["oauth2", "api_key", "bearer"]
"""How credentials are sent, in agent.json's terms (section 7)."""

Label: TypeAlias = Literal["verified", "forged", "unsigned impostor", "unknown"]
"""The verdict on a request's signature (Web Bot Auth).

The signature is valid, or invalid; the caller uses the name of an agent that signs, but has not signed; or neither.
"""


@dataclass(frozen=True, slots=True)
class Principal:
    """A known caller: a name, and who vouches for it. Two issuers may give the same name to different people.

    `id` is the name: stable, not secret, and shown in logs. `issuer` is the authorization server of a token, or the
    people whom an authenticator knows (`people=`); an authenticator that leaves it out vouches itself. `claims` are
    other known facts. `label` is "verified" for an agent that has signed its request, `scheme` "oauth2" for a caller
    whose `scopes` are those of an access token, which a route of the site may not see.
    """

    id: str
    scopes: frozenset[str] = frozenset()
    claims: Mapping[str, object] = field(default_factory=dict, compare=False, repr=False)
    label: Label = field(default="unknown", compare=False)
    issuer: str = ""
    scheme: Scheme | None = field(default=None, compare=False, repr=False)
    key: str = field(init=False, compare=False, repr=False)
    """The caller in keys of the store and in tokens. No two pairs of issuer and id have the same."""

    def __post_init__(self) -> None:
        if _NOT_TEXT.search(self.id):
            raise InvalidCredentials("The caller's id is not valid Unicode text.")
        if _NOT_AN_ISSUER.search(self.issuer):
            raise InvalidCredentials("The caller's issuer has white space or control characters.")
        object.__setattr__(self, "key", f"{self.issuer} {self.id}")

    @classmethod
    def of_key(cls, key: str, scopes: frozenset[str] = frozenset()) -> "Principal":
        """Return the caller with this `key`."""
        issuer, _, name = key.partition(" ")
        return cls(name, scopes, issuer=issuer)

    def has_expired(self) -> bool:
        """Return True if the token that identified the caller has expired (`exp`, in seconds since 1970)."""
        until = self.claims.get("exp")
        return isinstance(until, (int, float)) and until <= time.time()

    @property
    def client(self) -> str | None:
        """The software that acts for the caller, according to its token (`client_id`, RFC 9068 section 2.2, or `azp`).

        For a client that is identified by its metadata document, this is the document's https address. It is not
        fetched, because whoever requests tokens chooses it.
        """
        named = self.claims.get("client_id", self.claims.get("azp"))
        return named if isinstance(named, str) and named else None


def scopes_of(caller: Principal | None) -> frozenset[str] | None:
    """Return the scopes of a caller, by which it may know of actions and events; None for an unknown one."""
    return caller.scopes if caller is not None else None


def key_of(caller: Principal | None) -> str:
    """Return the key that tells a caller from all others, "" for an unknown one."""
    return caller.key if caller is not None else ""


KNOWN_SHARE: Final = "user:"
"""The prefix of the shares of known callers."""


def share_of(caller_id: str, address: str) -> str:
    """Return the key of the share that a caller has of what is limited: its own, or that of its address if unknown."""
    return f"{KNOWN_SHARE}{caller_id}" if caller_id else f"ip:{address}"


class Signed(NamedTuple):
    """A caller's signature of our challenge, made with a secret that it shares with the site."""

    name: str
    challenge: str
    signature: str


class Credentials(NamedTuple):
    """Everything in a request that may identify its caller. Header names are lower-case.

    `session` is the application's own, `user` the one that its authentication middleware found; both are None without
    such middleware. `scopes` are those that the middleware granted (Starlette keeps them beside the user). `address` is
    the client's, behind the trusted proxies. `signed` is the caller's signature, at a door that issues challenges.
    `query` is the request's query string, in which some keys are sent. `request` is the ASGI scope of a signed request,
    otherwise None.
    """

    headers: Mapping[str, str]
    address: str = ""
    session: Mapping[str, object] | None = None
    user: object = None
    scopes: frozenset[str] = frozenset()
    signed: Signed | None = None
    query: bytes = b""
    request: MutableMapping[str, Any] | None = None


def _nobody() -> Credentials:
    return Credentials({})


RawHeaders: TypeAlias = tuple[tuple[bytes, bytes], ...]

REPLAYED: Final = b"idempotent-replayed"
"""The header of an answer that is given again."""

RECEIPT: Final = b"awp-receipt"
SESSION_HEADER: Final = b"awp-session"
"""Headers in which an answer returns a receipt and a session, and a later call presents them."""

SESSION_CHALLENGE: Final = "AWP-Session"
"""The challenge of a 401 about a session (RFC 9110 section 11.6.1 requires one). The scheme is not registered."""

PART_OF_ANSWER: Final = frozenset(
    {
        b"link",
        b"etag",
        b"last-modified",
        b"content-range",
        b"x-total-count",
        b"x-total-pages",
        b"x-page",
        b"x-per-page",
        b"x-next-page",
        b"x-prev-page",
        b"deprecation",
        b"sunset",
    }
)
"""Headers of a route that belong to its answer whatever its description says, beside the action's `answer_headers`."""

KEY: Final = Idempotency().key_field
"""The member of an envelope with the idempotency key. It works even if the action has another name for it."""

_PLAIN_KEY: Final = re.compile(r"[!#-~](?:[ -~]{0,253}[!-~])?")
_QUOTED: Final = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*)"')


def read_key(text: str) -> str:
    """Parse a key, bare or as a quoted string (draft-ietf-httpapi-idempotency-key-header section 2.1)."""
    if _PLAIN_KEY.fullmatch(text):  # as most are
        return text
    key = text.strip()
    if key[:1] == '"' and (quoted := _QUOTED.fullmatch(key)):
        key = re.sub(r"\\(.)", r"\1", quoted[1])
        key = key if key == key.strip() else ""
    if not (0 < len(key) <= 255 and key.isascii() and key.isprintable()):
        raise InvalidIdempotencyKey("The idempotency key is empty, too long, or not printable ASCII.")
    return key


_NO_ACTION: Final = partial(UnknownAgent, "There is no such action.")


class Members(NamedTuple):
    """What accompanies the input of a call: in headers, or as members of the door's envelope.

    `authorization` is the Authorization header, which identifies most callers without the other headers having to be
    read. `session` is the id of the session that the caller presents.
    """

    authorization: bytes | None = None
    idempotency_key: str | None = None
    confirmation: str | None = None
    receipts: tuple[str, ...] = ()
    session: str | None = None


_NO_MEMBERS: Final = Members()


class Conversation(NamedTuple):
    """A session that a door keeps for its caller, and that may not have begun; `is_shown`: the request has named it."""

    id: str
    is_shown: bool = False


@dataclass(slots=True, eq=False, repr=False)
class CallCarrier:
    """What a plug-in that runs a call within something of its own does where the route is called.

    `on_cookies` receives every Set-Cookie of the route's answer; `is_fresh` means that the route is called from
    outside. `on_arrival` is asked at the route, with the scope that all middleware has made, whether the call may go on
    to it.
    """

    on_cookies: Callable[[list[bytes]], None]
    is_fresh: bool = False
    on_arrival: Callable[[MutableMapping[str, Any]], Awaitable[bool]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class RunningCall:
    """A call while its handler runs. Exactly one result is delivered, before the `deadline` or because of it.

    The deadline is in seconds of perf_counter. `needs_whole` says whether the whole answer has to be there before any
    of it is given to the caller. `is_overseen` is True once the call has run long enough for its deadline to be
    monitored.
    """

    deliver: "Deliver"
    deadline: float
    task: "asyncio.Task[Any] | None"
    needs_whole: bool
    is_delivered: bool = False
    is_overseen: bool = False
    interrupted: bool = False
    finisher: "asyncio.Future[None] | None" = None
    listener: "asyncio.Future[None] | None" = None

    def interrupt(self) -> None:
        """Cancel the task in which the call runs."""
        self.interrupted = True
        if self.task is not None:
            self.task.cancel()


@dataclass(slots=True, eq=False, repr=False)
class Call:
    """One call, whichever door received it. Its fields stand together by who sets them.

    The door: `context` is its own request, from which that to a route is made. `disconnected()` returns when the client
    has disconnected. `credentials()` reads what identifies the caller; where a door sets nothing, it is a call by
    nobody. `places` are the places at this door for what is no input, by the names that callers put among inputs by
    mistake. `unknown` makes this door's problem for an unknown action, for callers who must not learn that it exists,
    and `objection` is what is wrong with the request. `on_part` takes the parts of an answer that is not JSON as the
    route sends them.

    What carries the call: `identified` is the caller, if it has identified it; authenticators are not asked then.
    `session_id` names the session of the call, and is not secret.

    The gates: `principal` is the caller, `asked` are the checks that have admitted the call, each with what it asked of
    the store, and `headers` are added to the answer, whatever it is.

    Whoever runs it: `started` is when it arrived (perf_counter), 0.0 once it is counted. Once `answer` has the
    handler's complete answer, nothing interrupts the call, although the handler may go on working.
    """

    action: Action
    input: JsonObject
    request_id: str
    door: str
    context: object = None
    disconnected: Callable[[], Awaitable[None]] | None = None
    credentials: Callable[[], Credentials] = _nobody
    members: Members = _NO_MEMBERS
    places: Mapping[str, str] | None = None
    unknown: Callable[[], Problem] = _NO_ACTION
    objection: Problem | None = None
    conversation: Conversation | None = None
    has_cookie_jar: bool = False
    on_part: "Callable[[Outcome, bytes], Awaitable[bool]] | None" = None
    """Takes the status and headers of an answer, and a part of it. Returns True if the caller has got this part."""

    _presented: Credentials | None = None

    carrier: CallCarrier | None = None
    identified: Principal | None = None
    session_id: str = ""

    principal: Principal | None = None
    label: Label = "unknown"
    key_in_input: object = None
    headers: RawHeaders = ()
    asked: Mapping[Any, Any] = field(init=False)

    started: float = 0.0
    answer: "Result | None" = None
    run: RunningCall = field(init=False)

    @property
    def has_credentials(self) -> bool:
        """Return True if the door has said how the caller's credentials are read."""
        return self.credentials is not _nobody

    @property
    def presented(self) -> Credentials:
        """The credentials of the caller, read once."""
        if self._presented is None:
            self._presented = self.credentials()
        return self._presented

    def refuse(self, problem: Problem) -> None:
        """Raise a problem of the call's request, or, for an action that is not public, keep it for the guard.

        The guard raises it only for callers who may know of the action: others must not learn that it exists.
        """
        if self.action.is_public:
            raise problem
        self.objection = self.objection or problem

    @property
    def elsewhere(self) -> Mapping[str, str]:
        """Return `places`, with the idempotency key under the action's own name for it."""
        places, declared = self.places or {}, self.action.idempotency
        if declared is None or KEY not in places:
            return places
        return {**places, declared.key_field: places[KEY].replace(KEY, declared.key_field)}

    @property
    def caller_id(self) -> str:
        """The known caller's name for people and logs, "" for an unknown one. It tells callers apart with its issuer
        only: see `caller_key`.
        """
        return self.principal.id if self.principal is not None else ""

    @property
    def caller_key(self) -> str:
        """The key that tells the known caller from all others, "" for an unknown one."""
        return key_of(self.principal)

    @property
    def known_as(self) -> str:
        """Return the caller's name in the store: by principal, else by session; "" for an unknown caller."""
        if self.principal is not None:
            return f"user:{self.principal.key}"
        return f"session:{self.session_id}" if self.session_id else ""

    @property
    def application_session(self) -> Mapping[str, object]:
        """The application's own session, empty if there is none."""
        return self.credentials().session or {}

    @property
    def cookies(self) -> Mapping[str, str]:
        """The cookies that the caller has sent."""
        return cookie_parser(self.credentials().headers.get("cookie", ""))


class Content(NamedTuple):
    """How a route's answer was sent: as JSON, as a text in a charset, or as bytes (charset "", base64 in the JSON).

    `disposition` is its Content-Disposition (RFC 6266), "" if it had none.
    """

    media_type: str
    charset: str
    disposition: str = ""

    def bytes_of(self, output: object) -> bytes:
        """Return the answer as the route sent it."""
        text = str(output)
        return text.encode(self.charset) if self.charset else base64.b64decode(text)


@dataclass(slots=True)
class Outcome:
    """An action's answer: JSON text, the decoded value, and the headers to pass on to the caller.

    `content` is set if the JSON is a string that stands for something else, or was sent to be saved as a file;
    `redirect` if the route redirects there; `is_streamed` if the caller has got its parts as they came.
    """

    body: bytes
    output: object
    status: int = 200
    headers: RawHeaders = ()
    content: Content | None = None
    redirect: str = ""
    is_streamed: bool = False


Result: TypeAlias = Outcome | Problem

Deliver: TypeAlias = Callable[[Result], Awaitable[None]]
"""Delivers a result to the caller."""


async def never_disconnected() -> None:
    """The `disconnected` of a call that a disconnect must not end."""
    await asyncio.get_running_loop().create_future()
