"""Authentication: authenticators are asked in order, and a caller without the required scopes is refused."""

import asyncio
import hmac
import inspect
import logging
import math
import re
import secrets
import traceback
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from contextvars import ContextVar
from dataclasses import InitVar, dataclass, field, replace
from functools import partial
from hashlib import sha256
from itertools import groupby
from threading import Event
from typing import Any, ClassVar, Final, Literal, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

from awp_publish.calls.call import Credentials, Label, Principal
from awp_publish.calls.threads import run_in_thread
from awp_publish.model import Action
from awp_publish.problems import (
    AuthenticationRequired,
    AuthExpired,
    DeclarationError,
    HandlerFailed,
    InsufficientPermissions,
    InsufficientScope,
    InvalidBinding,
    InvalidCredentials,
    InvalidProof,
    Problem,
    RateLimited,
    StoreUnavailable,
    TemporarilyUnavailable,
)
from awp_publish.stores.store import Count, Counted, Store

# --- Who calls ---

Scheme: TypeAlias = Literal["oauth2", "api_key", "bearer"]
"""How credentials are sent, in agent.json's terms (section 7)."""


class Authenticator(Protocol):
    """One way to identify a caller.

    `scheme` is its type in agent.json (None for sessions), `method` its name in AWAS (session, api_key, oauth, jwt,
    bearer), `challenge` its WWW-Authenticate challenge (RFC 9110 section 11.6.1), "" for none.
    """

    @property
    def scheme(self) -> Scheme | None: ...

    @property
    def method(self) -> str: ...

    @property
    def challenge(self) -> str: ...

    def __call__(self, credentials: Credentials) -> Awaitable[Principal | None]:
        """Return the caller, None without credentials of this kind. Raises InvalidCredentials or AuthExpired."""


@runtime_checkable
class TokenAuthenticator(Protocol):
    """An authenticator of tokens that an authorization server issues, with what documents say of them."""

    @property
    def audience(self) -> Sequence[str]: ...
    @property
    def dpop_required(self) -> bool: ...


@runtime_checkable
class AgentAuthenticator(Protocol):
    """An authenticator that knows agents by their signatures (Web Bot Auth)."""

    def __call__(self, credentials: Credentials) -> Awaitable[Principal | None]: ...
    def label_of(self, credentials: Credentials) -> Label:
        """Return what a request's signature says of its caller."""

    def names_of(self, credentials: Credentials) -> frozenset[str]:
        """Return the labels and directories by which limits and `allow_agents` may name the caller."""


@runtime_checkable
class BoundAuthenticator(Protocol):
    """An authenticator that has to know the site's addresses, and its store for what may be used once."""

    def bound_to(self, origins: Sequence[str], store: Store) -> Authenticator:
        """Return a copy for a site."""


class KeyProofs(Protocol):
    """Checks proofs of keys in requests (RFC 9449); what the plug-in `identity` has for others."""

    async def check(
        self,
        request: MutableMapping[str, Any] | None,
        proof: str | None,
        token: str | None = None,
        bound_to: str | None = None,
    ) -> str:
        """Return the thumbprint of the key that a request proves to have. Raises InvalidProof, InvalidBinding.

        `proof` is the header DPoP, `token` the access token that is shown with it, `bound_to` the token's key.
        """


CALLER: Final[ContextVar[Principal | None]] = ContextVar("awp_publish_caller", default=None)
"""The caller of the call that this task handles."""


def current_caller() -> Principal | None:
    """Return the caller of the current call; None if the caller is unknown, and outside calls."""
    return CALLER.get()


# --- A site's own check of credentials ---

Shown = TypeVar("Shown")

Verdict: TypeAlias = Principal | str | bool | None
"""What a check may return: the caller, the caller's id, or None or False for nobody."""

Verify: TypeAlias = Callable[[Shown], Verdict | Awaitable[Verdict]]
Ask: TypeAlias = Callable[[Shown], Awaitable[Principal | None]]


# A principal is a name together with who vouches for it. An authenticator vouches for the people whom it knows: under
# the name that its site gives them (`people=`), or under one of its kind. Two authenticators of one kind could hold
# different people of the same name, so they need names: different ones, or the same one for the same people.

_PEOPLE: Final = re.compile(r"[!-~]{1,200}")
_PEOPLE_HELP: Final = 'Write people="staff": a name without spaces that never changes.'


def check_people(name: str, people: object) -> None:
    """Refuse a name for the people of an authenticator that could not stand in a key. Raises DeclarationError."""
    if people is not None and not (isinstance(people, str) and _PEOPLE.fullmatch(people)):
        raise DeclarationError("site", f"{name}: people is not a name.", _PEOPLE_HELP)


def people_of(authenticator: object) -> str:
    """Return who vouches for the callers of an authenticator: the issuer of those that name none themselves."""
    named = getattr(authenticator, "people", None)
    return named if isinstance(named, str) and named else str(getattr(authenticator, "kind", OWN))


def sole_people(authenticators: Iterable[object]) -> str | None:
    """Return the people whom a name without an issuer means: those of the only authenticator that knows persons."""
    known = {people_of(one) for one in authenticators if not isinstance(one, AgentAuthenticator)}
    return known.pop() if len(known) == 1 else None


OWN: Final = "own"
"""The people whom a check of the site's own knows, unless it names them."""


def vouched(principal: Principal | None, issuer: str) -> Principal | None:
    """Return a caller with the issuer that vouches for it, unless it has one."""
    return principal if principal is None or principal.issuer else replace(principal, issuer=issuer)


def read_verifier(verify: Verify[Shown], remedy: str, issuer: str) -> Ask[Shown]:
    """Make a check awaitable. One that is not async runs in a thread, because it may query a database.

    `issuer` vouches for callers without one. Raises DeclarationError with `remedy` if it is not callable.
    """
    if not callable(verify) or isinstance(verify, type):
        raise DeclarationError("site", f"{_described(verify)} cannot check credentials.", remedy)
    waits = any(inspect.iscoroutinefunction(one) for one in (verify, getattr(verify, "__call__", None)))  # noqa: B004

    def call(shown: Shown) -> Verdict | Awaitable[Verdict]:
        try:
            return verify(shown)
        except StopIteration as error:  # a future cannot hold it, so that the caller would wait forever
            raise RuntimeError("A check of credentials raised StopIteration.") from error

    async def ask(shown: Shown) -> Principal | None:
        answer = verify(shown) if waits else await run_in_thread(partial(call, shown), asyncio.to_thread)
        return vouched(read_verdict(await answer if inspect.isawaitable(answer) else answer), issuer)

    return ask


def read_verdict(verdict: object) -> Principal | None:
    """Return the caller that a check returned; an empty id is nobody. Raises TypeError for any other value."""
    if verdict is None or verdict is False:
        return None
    principal = Principal(verdict) if isinstance(verdict, str) else verdict
    if not isinstance(principal, Principal):
        raise TypeError(f"A check of credentials returned {_described(verdict)}, not a Principal, an id or None.")
    return principal if principal.id else None


def _described(value: object) -> str:
    """Describe a value only by its type: what is given in the wrong place may be a secret."""
    return f"The class {value.__name__}" if isinstance(value, type) else f"A value of type {type(value).__name__}"


# --- Callers who send a secret ---

BEARER: Final = "Bearer"
"""The scheme, and challenge, of bearer tokens (RFC 6750)."""

PROOF_ALGORITHMS: Final = ("ES256", "ES384", "ES512", "EdDSA", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512")
DPOP: Final = f'DPoP algs="{" ".join(PROOF_ALGORITHMS)}"'
"""The challenge for tokens that are bound to a key, with the accepted algorithms of proofs (RFC 9449 section 7.1)."""

KnownSecrets: TypeAlias = Mapping[str, Principal | str]
"""Secrets, each with its caller or the caller's id."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""RFC 6750 section 2.1, b64token."""

_BEARER: Final = re.compile(r"bearer(?:[ \t]+(.*))?", re.IGNORECASE | re.DOTALL)
_SECOND_BEARER: Final = re.compile(r",[ \t]*bearer(?:[ \t]|$)", re.IGNORECASE)
_PROVEN: Final = re.compile(r"dpop[ \t]+([A-Za-z0-9._~+/-]+=*)", re.IGNORECASE)
_KEY: Final = re.compile(r"[!-~]+")
_FIELD_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
"""RFC 9110 section 5.6.2, token."""

_NO_BARE_KEY: Final = frozenset({"authorization", "proxy-authorization", "cookie", "host"})
"""Headers with a syntax of their own, which cannot hold a bare key."""

_REMEDY: Final = (
    'Give a function (secret) -> Principal | str | None, or the secrets themselves: {example}({{"...": "partner"}}).'
)


@dataclass(frozen=True, slots=True)
class BearerToken:
    """Callers with `Authorization: Bearer <token>` (RFC 6750 section 2.1).

    `verify` is a function of the token, plain (it runs in a thread) or async, that returns a Principal, the caller's
    id, or None for an unknown token; or a mapping of tokens to callers. `people` names those whom it knows, as the
    issuer of their ids: authenticators with the same `people` know the same ones. Raises DeclarationError.
    """

    scheme: ClassVar[Scheme] = "bearer"
    method: ClassVar[str] = "bearer"
    challenge: ClassVar[str] = BEARER
    kind: ClassVar[str] = "bearer-token"

    verify: InitVar[Verify[str] | KnownSecrets]
    people: str | None = None
    is_instant: bool = field(init=False, repr=False)
    _check: "Check" = field(init=False, repr=False)

    def __post_init__(self, verify: Verify[str] | KnownSecrets) -> None:
        check_people("BearerToken", self.people)
        object.__setattr__(self, "_check", _read_check(verify, _TOKEN, "BearerToken", people_of(self), b"Bearer "))
        object.__setattr__(self, "is_instant", isinstance(verify, Mapping))

    async def __call__(self, credentials: Credentials) -> Principal | None:
        """Return the caller, None without a bearer token. Raises InvalidCredentials."""
        token = read_bearer_token(credentials)
        if token is None:
            return None
        if self.is_instant:
            principal: Principal | None = self._check(b"Bearer " + token.encode())
        else:
            principal = await self._check(token)
        if principal is None:
            raise InvalidCredentials("The bearer token is not known.")
        return principal

    @property
    def find_at_once(self) -> Callable[[bytes], Principal | None] | None:
        """Finds the caller of an Authorization header, None if that needs a closer look.

        None unless secrets are given.
        """
        return self._check if self.is_instant else None


@dataclass(frozen=True, slots=True)
class ApiKey:
    """Callers with a key in a header of its own.

    `verify` and `people` are the same as for BearerToken. There is no registered authentication scheme for such keys,
    so the challenge is our own and names the header: `ApiKey header="X-API-Key"`. Raises DeclarationError.
    """

    scheme: ClassVar[Scheme] = "api_key"
    method: ClassVar[str] = "api_key"

    verify: InitVar[Verify[str] | KnownSecrets]
    header: str = "X-API-Key"
    people: str | None = None
    is_instant: bool = field(init=False, repr=False)
    _check: "Check" = field(init=False, repr=False)

    def __post_init__(self, verify: Verify[str] | KnownSecrets) -> None:
        if not isinstance(self.header, str) or not _FIELD_NAME.fullmatch(self.header):
            raise DeclarationError("site", "ApiKey: header is not a valid header name.", 'Write header="X-API-Key".')
        if self.header.lower() in _NO_BARE_KEY:
            remedy = "Use BearerToken for Authorization, SessionUser for cookies, or a header of its own."
            raise DeclarationError("site", f"ApiKey: {self.header} cannot hold a bare API key.", remedy)
        check_people("ApiKey", self.people)
        object.__setattr__(self, "_check", _read_check(verify, _KEY, "ApiKey", people_of(self)))
        object.__setattr__(self, "is_instant", isinstance(verify, Mapping))

    @property
    def kind(self) -> str:
        return f"api-key:{self.header.lower()}"

    @property
    def challenge(self) -> str:
        return f'ApiKey header="{self.header}"'

    async def __call__(self, credentials: Credentials) -> Principal | None:
        """Return the caller, None without the header. Raises InvalidCredentials."""
        given = credentials.headers.get(self.header.lower())
        if given is None:
            return None
        key = given.strip(" \t")
        if not _KEY.fullmatch(key):
            raise InvalidCredentials(f"{self.header} must hold one key: visible ASCII characters without spaces.")
        principal: Principal | None = self._check(key.encode()) if self.is_instant else await self._check(key)
        if principal is None:
            raise InvalidCredentials(f"The key in {self.header} is not known.")
        return principal


def read_bearer_token(credentials: Credentials) -> str | None:
    """Return the token of `Authorization: Bearer`, None without that header or scheme. Raises InvalidCredentials."""
    value = credentials.headers.get("authorization", "").strip(" \t")
    if value.startswith("Bearer ") and _TOKEN.fullmatch(value, 7):
        return value[7:]
    if _SECOND_BEARER.search(value):
        raise InvalidCredentials("There is more than one Authorization header; send one.")
    bearer = _BEARER.fullmatch(value)
    if bearer is None:
        return None
    token: str | None = bearer[1]
    if not token:
        raise InvalidCredentials("Authorization has the scheme Bearer but no token.")
    if not _TOKEN.fullmatch(token):
        raise InvalidCredentials("The bearer token has characters that are not allowed (RFC 6750 section 2.1).")
    return token


def read_proven_token(credentials: Credentials) -> str | None:
    """Return the token of `Authorization: DPoP` (RFC 9449 section 7.1), None without that header or scheme."""
    proven = _PROVEN.fullmatch(credentials.headers.get("authorization", "").strip(" \t"))
    return proven[1] if proven is not None else None


# --- Looking up secrets ---

Check: TypeAlias = Callable[[Any], Any]
"""Finds the caller of a secret: synchronously, by its bytes, if secrets are given; else awaitable, by its text."""


def _read_check(
    known: Verify[str] | KnownSecrets, grammar: re.Pattern[str], name: str, issuer: str, prefix: bytes = b""
) -> Check:
    """Read a check, or secrets, which are sent after `prefix`. Only salted hashes of secrets are kept.

    `issuer` vouches for callers without one.

    Without knowing the salt of this process nobody can produce hashes that share a part, so the time of a lookup
    reveals nothing about a secret.
    """
    remedy = _REMEDY.format(example=name)
    if not isinstance(known, Mapping):
        return read_verifier(known, remedy, issuer)
    salt, callers = secrets.token_bytes(16), dict[bytes, Principal]()
    for secret, caller in known.items():  # messages never contain the secret: they end up in start-up logs
        if not isinstance(secret, str) or not grammar.fullmatch(secret):
            detail = f"{name}: a secret has characters that cannot be sent in a header."
            raise DeclarationError("site", detail, "Use letters, digits, and . _ ~ + / - without spaces.")
        principal = vouched(read_verdict(caller) if isinstance(caller, (str, Principal)) else None, issuer)
        if principal is None:
            raise DeclarationError("site", f"{name}: a secret has no caller.", remedy)
        callers[sha256(salt + prefix + secret.encode()).digest()] = principal
    if not callers:
        raise DeclarationError("site", f"{name}: there are no secrets.", remedy)
    return lambda secret: callers.get(sha256(salt + secret).digest())


# --- Callers who are known to the application ---

logger: Final = logging.getLogger("awp_publish.calls")

COOKIE: Final = "Cookie"
"""The challenge for sessions. There is no such registered scheme, but a 401 must have a challenge."""

IDENTITIES: Final = ("identity", "pk", "id", "display_name", "username")
"""Attributes that may hold a user's stable id, best first: Starlette's, Django's, most models', then display names."""

Session = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class SessionUser:
    """Callers with a session of the application: `session[key]` is their id.

    `principal`, a function of the session, may return the caller instead. `cookie` is the session's cookie and
    `endpoints` are where sessions begin and end (`{"login": "/sign-in"}`); both are published. The session middleware
    must be outside AgentPublisher; without one nobody is known, and the log says so once.

    Raises DeclarationError.
    """

    scheme: ClassVar[Scheme | None] = None
    method: ClassVar[str] = "session"
    challenge: ClassVar[str] = COOKIE
    kind: ClassVar[str] = "session"

    key: str = "user_id"
    principal: InitVar[Verify[Session] | None] = None
    cookie: str | None = None
    endpoints: Mapping[str, str] = field(default_factory=dict, hash=False)
    people: str | None = None
    _ask: Ask[Session] | None = field(init=False, repr=False)
    _is_logged: Event = field(init=False, repr=False, compare=False, default_factory=Event)

    def __post_init__(self, principal: Verify[Session] | None) -> None:
        remedy = 'Write SessionUser("user_id") or SessionUser(principal=function_of_the_session).'
        if not isinstance(self.key, str) or not self.key:
            raise DeclarationError("site", "SessionUser: key is not the name of a session value.", remedy)
        check_people("SessionUser", self.people)
        ask = None if principal is None else read_verifier(principal, remedy, people_of(self))
        object.__setattr__(self, "_ask", ask)

    async def __call__(self, credentials: Credentials) -> Principal | None:
        """Return the caller, None for a session without one."""
        session = credentials.session
        if session is None:
            remedy = "add SessionMiddleware after AgentPublisher, so that it is outside"
            _log_once(self._is_logged, "SessionUser cannot identify anybody, because there is no session: " + remedy)
            return None
        if self._ask is not None:
            return await self._ask(session)
        value = session.get(self.key)
        return None if value is None or value == "" else Principal(str(value), issuer=people_of(self))


@dataclass(frozen=True, slots=True)
class ApplicationUser:
    """Callers known to the application's authentication middleware: Starlette's, or Django's `request.user`.

    The id is the first of IDENTITIES that the user has; scopes are the user's own and those that the middleware
    granted. The middleware must be outside AgentPublisher; without one nobody is known, and the log says so once.
    """

    scheme: ClassVar[Scheme | None] = None
    method: ClassVar[str] = "session"
    challenge: ClassVar[str] = COOKIE
    kind: ClassVar[str] = "application-user"

    people: str | None = None
    _is_logged: Event = field(init=False, repr=False, compare=False, default_factory=Event)

    async def __call__(self, credentials: Credentials) -> Principal | None:
        """Return the caller, None for a user who is not authenticated. Raises LookupError for a user without an id."""
        user = credentials.user
        if user is None:
            remedy = "add AuthenticationMiddleware after AgentPublisher, so that it is outside"
            _log_once(
                self._is_logged, "ApplicationUser cannot identify anybody, because requests have no user: " + remedy
            )
            return None
        known = getattr(user, "is_authenticated", False)
        if not (known() if callable(known) else known):
            return None
        given = getattr(user, "scopes", ())
        words = given.split() if isinstance(given, str) else given if isinstance(given, Iterable) else ()
        scopes = frozenset(word for word in words if isinstance(word, str))
        for name in IDENTITIES:
            try:
                value = getattr(user, name, None)
            except NotImplementedError:  # a property of Starlette's base class that many subclasses do not implement
                continue
            if value is not None and value != "":
                return Principal(str(value), scopes | credentials.scopes, issuer=people_of(self))
        raise LookupError(f"A user of type {type(user).__name__} has none of {', '.join(IDENTITIES)}.")


@dataclass(frozen=True, slots=True)
class Custom:
    """Callers identified by the site's own function: `verify` takes the Credentials, plain or async.

    It returns a Principal, the caller's id, or None for nobody, and raises InvalidCredentials for wrong credentials. A
    site with several such functions says with `people` whom each of them knows.
    """

    scheme: ClassVar[Scheme | None] = None
    method: ClassVar[str] = "custom"
    challenge: ClassVar[str] = ""
    kind: ClassVar[str] = OWN

    verify: InitVar[Verify[Credentials]]
    people: str | None = None
    _ask: Ask[Credentials] = field(init=False, repr=False)

    def __post_init__(self, verify: Verify[Credentials]) -> None:
        remedy = "Give a function (Credentials) -> Principal | str | None."
        check_people("Custom", self.people)
        object.__setattr__(self, "_ask", read_verifier(verify, remedy, people_of(self)))

    async def __call__(self, credentials: Credentials) -> Principal | None:
        """Return the caller that the site's function finds."""
        return await self._ask(credentials)


def _log_once(is_logged: Event, text: str) -> None:
    """Log what is true of every call once only."""
    if not is_logged.is_set():
        is_logged.set()
        logger.error(text)


# --- Callers who prove that they share a secret, without sending it: `auth.hmac` of the AWP door ---
# The door issues a one-time challenge, and the caller signs it: HMAC-SHA256 (RFC 2104) of `signed_text` with its
# secret, in hexadecimal. A signature that was intercepted is of no further use.

MIN_SECRET: Final = 16
"""Characters of a shared secret; a shorter one could be guessed from a signature."""

_SHARED_SECRET_HELP: Final = 'Give the secrets by caller: SharedSecret({"warehouse": os.environ["WAREHOUSE_SECRET"]}).'


@dataclass(frozen=True, slots=True)
class SharedSecret:
    """Callers who share a secret with the site (AWP, `auth.hmac`).

    `known` maps each caller (a Principal or its id, with which the caller signs) to the secret. Only the AWP door
    issues challenges to sign; other doors know nobody in this way. Raises DeclarationError.
    """

    scheme: ClassVar[Scheme | None] = None
    method: ClassVar[str] = "custom"
    challenge: ClassVar[str] = ""
    kind: ClassVar[str] = "shared-secret"

    known: InitVar[Mapping[Principal | str, str]]
    people: str | None = None
    is_instant: bool = field(init=False, repr=False, default=True)
    _callers: Mapping[str, tuple[Principal, bytes]] = field(init=False, repr=False)

    def __post_init__(self, known: Mapping[Principal | str, str]) -> None:
        if not isinstance(known, Mapping) or not known:
            raise DeclarationError("site", "SharedSecret was given no secrets.", _SHARED_SECRET_HELP)
        check_people("SharedSecret", self.people)
        callers: dict[str, tuple[Principal, bytes]] = {}
        for caller, secret in known.items():  # messages never contain the secret: they end up in start-up logs
            principal = vouched(read_verdict(caller) if isinstance(caller, (str, Principal)) else None, people_of(self))
            if principal is None:
                raise DeclarationError("site", "A secret given to SharedSecret has no caller.", _SHARED_SECRET_HELP)
            if not isinstance(secret, str) or len(secret) < MIN_SECRET:
                detail = f"The secret of {principal.id} given to SharedSecret has fewer than {MIN_SECRET} characters."
                raise DeclarationError("site", detail, _SHARED_SECRET_HELP)
            callers[principal.id] = principal, secret.encode("utf-8", "surrogatepass")
        object.__setattr__(self, "_callers", callers)

    async def __call__(self, credentials: Credentials) -> Principal | None:
        """Return the caller, None if nothing was signed. Raises InvalidCredentials."""
        signed = credentials.signed
        if signed is None:
            return None
        nobody = Principal(signed.name), secrets.token_bytes(32)  # so that an unknown name takes as long
        principal, secret = self._callers.get(signed.name, nobody)
        expected = sign(secret, signed.name, signed.challenge)
        if not hmac.compare_digest(expected.encode(), signed.signature.lower().encode("utf-8", "replace")):
            raise InvalidCredentials("The signature is not that of this caller and this challenge.")
        return principal


def sign(secret: bytes, name: str, challenge: str) -> str:
    """Return a caller's signature of a challenge."""
    return hmac.new(secret, signed_text(name, challenge), sha256).hexdigest()


def signed_text(name: str, challenge: str) -> bytes:
    """Return the text to sign: the method, the caller's name and the challenge, each on a line of its own."""
    return f"awp.hello\n{name}\n{challenge}".encode("utf-8", "surrogatepass")


# --- WWW-Authenticate ---

FIELD: Final = "WWW-Authenticate"
MAX_ERROR_DESCRIPTION: Final = 200
"""Characters of an error_description, which is part of a header."""

_UNPRINTABLE: Final = re.compile(r"[^ -~]")
_ESCAPED: Final = re.compile(r'["\\]')


@dataclass(frozen=True, slots=True)
class Challenges:
    """The challenges of one action: one for each kind of credentials that it accepts, in the order of trying them."""

    kinds: tuple[str, ...]
    realm: str
    scopes: tuple[str, ...] = ()
    metadata_url: str | None = None

    def put_on(self, problem: Problem, refused: str | None = None) -> Problem:
        """Add the challenges to a problem; `refused` is the challenge for the credentials that were wrong, if any were.

        Earlier challenges are replaced, because a site may raise the same exception object repeatedly.
        """
        takes_proofs = refused == DPOP or isinstance(problem, InvalidBinding)
        kinds = dict.fromkeys((*self.kinds, DPOP) if takes_proofs else self.kinds)
        others = [header for header in problem.headers if header[0].lower() != FIELD.lower()]
        problem.headers = (*others, *((FIELD, self._write(kind, problem, refused)) for kind in kinds))
        return problem

    def _write(self, kind: str, problem: Problem, refused: str | None) -> str:
        """Return one challenge. Those for tokens say what is wrong (RFC 6750 section 3, RFC 9449 section 7.1)."""
        if kind not in (BEARER, DPOP):
            return kind
        parameters = {"realm": self.realm}
        if isinstance(problem, InsufficientScope):  # no error if no credentials were sent
            parameters["error"] = "insufficient_scope"
        elif not isinstance(problem, AuthenticationRequired) and refused == kind:  # without quotes and backslashes
            description = _ESCAPED.sub("'", _printable(problem.detail))[:MAX_ERROR_DESCRIPTION]
            is_proof = isinstance(problem, InvalidProof) and not isinstance(problem, InvalidBinding)
            error = "invalid_dpop_proof" if is_proof else "invalid_token"
            parameters |= {"error": error, "error_description": description}
        if "error_description" not in parameters:
            parameters["scope"] = " ".join(self.scopes)
        parameters["resource_metadata"] = self.metadata_url or ""
        # Each value is a quoted-string (RFC 9110 section 5.6.4) in ASCII.
        quoted = ((name, _ESCAPED.sub(r"\\\g<0>", _printable(value))) for name, value in parameters.items() if value)
        return kind + (" " if kind == BEARER else ", ") + ", ".join(f'{name}="{value}"' for name, value in quoted)


def challenges_of(
    authenticators: Iterable[Authenticator], realm: str, scopes: tuple[str, ...], metadata_url: str | None
) -> Challenges:
    """Return the challenges of these authenticators, without duplicates."""
    kinds = dict.fromkeys(authenticator.challenge for authenticator in authenticators)
    return Challenges(tuple(_printable(kind) for kind in kinds if kind), realm, scopes, metadata_url)


def challenges_of_route(action: Action) -> tuple[str, ...]:
    """Return challenges for a route's own security schemes, for when the route itself gives none."""
    kinds: dict[str, None] = {}
    for scheme in action.security_schemes.values():
        if scheme.get("type") in ("http", "oauth2", "openIdConnect"):
            kinds[str(scheme.get("scheme", "Bearer")).capitalize()] = None
    for known in action.route_credentials:
        if known.name != "authorization":
            kinds["Cookie" if known.place == "cookie" else f'ApiKey {known.place}="{known.name}"'] = None
        elif not kinds:
            kinds["Bearer"] = None
    return tuple(kinds) or ("Bearer",)


def _printable(value: str) -> str:
    return _UNPRINTABLE.sub("?", value)


CHECK_TIMEOUT: Final = 10.0
"""Seconds that all checks of one call's credentials may take together."""

RETRY_AFTER: Final = "10"
"""Seconds after which a caller may try again if checks take too long."""

MAX_WRONG: Final = 20
WRONG_WINDOW: Final = 60.0
"""Wrong credentials that one address may send within so many seconds: these get 401, further ones 429."""

_AUTHENTICATE_HELP: Final = (
    'Give BearerToken(...), ApiKey(...), JwtBearer(...), SessionUser("user_id"), ApplicationUser(), '
    "SharedSecret(...), a function (Credentials) -> Principal | str | None, or a list of these."
)

MAX_REDACTED_WORDS: Final = 200
MAX_TRACEBACK: Final = 100_000
"""Words of a caller's headers that are removed from a traceback, and characters of one that is searched."""

_HARMLESS: Final = re.compile(r"accept.*|connection|content-.*|host|origin|sec-.*|user-agent|x-forwarded-.*")
"""Headers that hold no secrets, but words that a log may need."""

_SCHEMES: Final = {"Basic", "Bearer", "Digest", "bearer"}


@dataclass(frozen=True, slots=True)
class AuthenticationGate:
    """Identifies the caller of an action, and refuses calls without the required caller or scopes.

    A caller is needed if one is `required` or there are `scopes`. `realm` is the site's name, `metadata_url`
    the address of its RFC 9728 document; both stand in challenges. `timeout` is in seconds. `trusts_route` says that
    the route behind the action identifies callers itself: credentials that we do not know may be valid there. Wrong
    credentials are counted in the `store` by address. Valid ones need no step of the store, and pass whatever others
    behind the same address have sent.
    """

    authenticators: tuple[Authenticator, ...]
    required: bool
    scopes: tuple[str, ...]
    realm: str
    metadata_url: str | None = None
    timeout: float = CHECK_TIMEOUT
    trusts_route: bool = False
    store: Store | None = None
    _challenges: Challenges = field(init=False, repr=False)
    _is_instant: bool = field(init=False, repr=False)
    _sole: Authenticator | None = field(init=False, repr=False)
    find_at_once: Callable[[bytes], Principal | None] | None = field(init=False, repr=False)
    """Finds the caller by the Authorization header alone, if that is possible; if None, use `identify`."""

    def __post_init__(self) -> None:
        # A timer costs more than a quick check, so checks that never wait go without one.
        is_instant = all(getattr(one, "is_instant", False) for one in self.authenticators)
        object.__setattr__(self, "_is_instant", is_instant)
        sole = self.authenticators[0] if is_instant and len(self.authenticators) == 1 else None
        object.__setattr__(self, "_sole", sole)
        # Only of this very class: a subclass may check more.
        object.__setattr__(self, "find_at_once", sole.find_at_once if type(sole) is BearerToken else None)
        challenges = challenges_of(self.authenticators, self.realm, self.scopes, self.metadata_url)
        object.__setattr__(self, "_challenges", challenges)

    async def __call__(self, credentials: Credentials) -> Principal | None:
        """Return the caller, None if unknown. Raises what `identify` and `require` raise."""
        principal = await self.identify(credentials)
        self.require(principal)
        return principal

    async def identify(self, credentials: Credentials) -> Principal | None:
        """Return the caller, whether that is sufficient or not; None if unknown.

        Raises InvalidCredentials and AuthExpired with WWW-Authenticate, RateLimited for too many wrong credentials,
        TemporarilyUnavailable if the checks take too long, HandlerFailed if one of them fails.
        """
        limit: asyncio.Timeout | None = None
        try:
            if self._sole is not None:
                return await self._sole(credentials)
            if self._is_instant:
                return await self._ask_all(credentials)
            async with asyncio.timeout(self.timeout) as limit:
                return await self._ask_all(credentials)
        except (InvalidCredentials, AuthExpired) as refusal:
            if self.trusts_route:
                return None
            if self._sole is not None:
                self._challenges.put_on(refusal, self._sole.challenge)
            # An expired token, or a valid one without its proof, is not a guess.
            if isinstance(refusal, InvalidCredentials) and not isinstance(refusal, InvalidProof):
                await self._count_wrong(credentials.address)
            raise
        except Problem:
            raise
        except Exception as error:  # neither lets the call pass nor logs what may be a secret
            if limit is not None and limit.expired():
                logger.error("checking credentials took longer than %g seconds", self.timeout)
                detail = "The site could not check the credentials in time."
                raise TemporarilyUnavailable(detail, headers=[("Retry-After", RETRY_AFTER)]) from None
            logger.error("checking credentials failed:\n%s", _without_secrets(error, credentials))
            raise HandlerFailed("The site could not check the credentials.") from None

    def require(self, principal: Principal | None) -> None:
        """Raise AuthenticationRequired or InsufficientScope, with WWW-Authenticate, unless the caller is sufficient.

        Raises InsufficientPermissions for scopes that a token has (its claim `scope`), and its person has not.
        """
        if principal is None:
            if self.required or self.scopes:
                if demand := [header for one in self.authenticators for header in getattr(one, "demands", ())]:
                    problem = AuthenticationRequired("The action requires authentication.", headers=demand)
                    if not self._challenges.kinds:  # a signature has no scheme, so it is asked for with a 403
                        problem.status = 403
                    raise self._challenges.put_on(problem)
                raise self._challenges.put_on(AuthenticationRequired("The action requires authentication."))
            return
        missing = [scope for scope in self.scopes if scope not in principal.scopes]
        if missing and set(missing) <= set(str(principal.claims.get("scope", "")).split()):  # no other token would help
            detail = f"The token allows {', '.join(missing)}, but the site does not let its person do that."
            raise InsufficientPermissions(detail, members={"missing_scopes": missing})
        if missing:
            detail = f"The credentials lack the scopes {', '.join(missing)}."
            lacking = InsufficientScope(detail, members={"missing_scopes": missing})
            # A caller with a token that is bound to a key (RFC 9449 section 6.1) needs another such token.
            bound = principal.claims.get("cnf")
            is_bound = isinstance(bound, Mapping) and "jkt" in bound and BEARER in self._challenges.kinds
            raise self._challenges.put_on(lacking, DPOP if is_bound else None)

    async def _count_wrong(self, address: str) -> None:
        if self.store is None:
            return
        try:
            ran = await self.store.run((Count(f"wrong-credentials:{address}", MAX_WRONG, WRONG_WINDOW),))
        except StoreUnavailable:
            return  # the call is refused all the same
        if ran.failed is None:
            return
        seconds = max(1, math.ceil(cast(Counted, ran.seen[0]).seconds_left))
        raise RateLimited(
            "Too many wrong credentials came from this address, these included.",
            recovery=f"Wait for {seconds} seconds, then retry with valid credentials, or none.",
            headers=[("Retry-After", str(seconds))],
            members={"retry_after": seconds},
        )

    async def _ask_all(self, credentials: Credentials) -> Principal | None:
        """Return the caller that the first authenticator finds.

        After a refusal only authenticators for the same kind of credentials are asked: somebody with a wrong token must
        not be taken for the user of a session cookie that their browser also sends.
        """
        refusal: Problem | None = None
        refused: str | None = None
        for authenticator in self.authenticators:
            if refused is not None and authenticator.challenge != refused:
                continue
            try:
                principal = await authenticator(credentials)
            except (InvalidCredentials, AuthExpired) as problem:
                if refusal is None or isinstance(problem, AuthExpired):
                    refusal, refused = problem, authenticator.challenge
                continue
            if principal is not None:
                return principal
        if refusal is None:
            return None
        if refused == BEARER and credentials.headers.get("authorization", "")[:5].lower() == "dpop ":
            refused = DPOP
        raise self._challenges.put_on(refusal, refused)


ADAPTERS: Final[list[Callable[[object], Authenticator | None]]] = []
"""Functions that adapt another framework's authentication to an authenticator; None for anything else."""


def read_authenticators(given: object) -> tuple[Authenticator, ...]:
    """Return the one or several authenticators of a site. Raises DeclarationError."""
    if given is None:
        return ()
    known: list[Authenticator] = []
    for one in given if isinstance(given, (list, tuple)) else (given,):
        adapted = next((made for adapt in ADAPTERS if (made := adapt(one)) is not None), None)
        if adapted is not None:
            known.append(adapted)
            continue
        if isinstance(one, type):
            raise DeclarationError(
                "site", f"authenticate: {one.__name__} is a class, not an instance.", _AUTHENTICATE_HELP
            )
        if not callable(one):
            detail = f"authenticate: a value of type {type(one).__name__} cannot identify callers."
            raise DeclarationError("site", detail, _AUTHENTICATE_HELP)
        known.append(one if all(hasattr(one, name) for name in ("scheme", "method", "challenge")) else Custom(one))
    for kind, several in groupby(sorted((one for one in known if _needs_name(one)), key=people_of), key=people_of):
        if len(list(several)) > 1:
            raise DeclarationError(
                "site",
                f'authenticate: several authenticators would vouch for callers as "{kind}", and the same id could be '
                "somebody else for each of them.",
                'Give each people="...": different names, or one name where they know the same people; a function is '
                'given as Custom(function, people="...").',
            )
    return tuple(one if hasattr(one, "kind") else Vouching(one) for one in known)


def _needs_name(authenticator: object) -> bool:
    """Return True if nothing says which people an authenticator knows, but its kind."""
    is_ours = isinstance(authenticator, (AgentAuthenticator, TokenAuthenticator))
    return not is_ours and getattr(authenticator, "people", None) is None


class Vouching:
    """An authenticator of the site's own, which vouches for the callers that it finds."""

    def __init__(self, authenticator: Any) -> None:
        self._authenticator = authenticator
        self.kind = people_of(authenticator)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._authenticator, name)

    async def __call__(self, credentials: Credentials) -> Principal | None:
        """Return the caller, with its issuer."""
        return vouched(await self._authenticator(credentials), self.kind)


def published_facts(authenticators: Sequence[Authenticator]) -> tuple[Scheme | None, tuple[str, ...]]:
    """Return agent.json's auth.type (the first one) and AWAS's methods, in order."""
    scheme = next((one.scheme for one in authenticators if one.scheme is not None), None)
    return scheme, tuple(dict.fromkeys(one.method for one in authenticators))


def _without_secrets(error: Exception, credentials: Credentials) -> str:
    """Return a traceback without what the caller sent: `TOKENS[token]` fails with the token as its message.

    If there are too many words to remove, or the text is too long, the message is left out altogether.
    """
    values = [value for name, value in credentials.headers.items() if not _HARMLESS.fullmatch(name)]
    words = {word for value in values for word in re.split(r"[\s,;=\"']+", value) if len(word) >= 4} - _SCHEMES
    text = "".join(traceback.format_exception(error))
    if len(words) > MAX_REDACTED_WORDS or len(text) > MAX_TRACEBACK:
        return "".join(traceback.format_tb(error.__traceback__)) + type(error).__name__
    for word in sorted(words, key=len, reverse=True):
        for spelled in (word, repr(word)[1:-1]):
            text = text.replace(spelled, "[sent by the caller]")
    return text
