"""Callers whom the application knows already: by its session, by its authentication middleware, in a way of its own."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import InitVar, dataclass, field
from threading import Event
from typing import Final

from awp_publish.policy.principal import Credentials, Principal, Scheme
from awp_publish.policy.verifier import Ask, Verify, read_verifier
from awp_publish.problems import DeclarationError

logger: Final = logging.getLogger("awp_publish.calls")

COOKIE: Final = "Cookie"
"""The challenge of what browsers send unasked. No such scheme is registered, but a 401 has to carry a challenge."""

IDENTITIES: Final = ("identity", "pk", "id", "display_name", "username")
"""Where a user's stable name stands, best first: Starlette's, Django's, most models', then what people read."""

Session = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class SessionUser:
    """Callers known by the application's session: `session[key]` is their id.

    `principal`, a function of the session, may say who it is instead. The session middleware has to stand outside of
    AgentPublisher; where there is none, nobody is known and the log says so once. Raises DeclarationError.
    """

    key: str = "user_id"
    principal: InitVar[Verify[Session] | None] = None
    _ask: Ask[Session] | None = field(init=False, repr=False)
    _told: Event = field(init=False, repr=False, compare=False, default_factory=Event)

    def __post_init__(self, principal: Verify[Session] | None) -> None:
        remedy = 'Write SessionUser("user_id") or SessionUser(principal=function_of_the_session).'
        if not isinstance(self.key, str) or not self.key:
            raise DeclarationError("site", "SessionUser's key is not the name of a session value.", remedy)
        object.__setattr__(self, "_ask", None if principal is None else read_verifier(principal, remedy))

    @property
    def scheme(self) -> Scheme | None:
        return None

    @property
    def method(self) -> str:
        return "session"

    @property
    def challenge(self) -> str:
        return COOKIE

    async def __call__(self, credentials: Credentials) -> Principal | None:
        """The caller, None for a session without one."""
        session = credentials.session
        if session is None:
            remedy = "add SessionMiddleware after AgentPublisher, so that it stands outside of it"
            _tell_once(self._told, "SessionUser knows nobody, for there is no session: " + remedy)
            return None
        if self._ask is not None:
            return await self._ask(session)
        value = session.get(self.key)
        return None if value is None or value == "" else Principal(str(value))


@dataclass(frozen=True, slots=True)
class ApplicationUser:
    """Callers known by the application's authentication middleware: Starlette's, or what Django made `request.user`.

    The id is the first of IDENTITIES that the user has; scopes are the user's own and those the middleware granted. The
    middleware has to stand outside of AgentPublisher; where there is none, nobody is known and the log says so once.
    """

    _told: Event = field(init=False, repr=False, compare=False, default_factory=Event)

    @property
    def scheme(self) -> Scheme | None:
        return None

    @property
    def method(self) -> str:
        return "session"

    @property
    def challenge(self) -> str:
        return COOKIE

    async def __call__(self, credentials: Credentials) -> Principal | None:
        """The caller, None for a user who is not authenticated. Raises LookupError for a user without any name."""
        user = credentials.user
        if user is None:
            remedy = "add AuthenticationMiddleware after AgentPublisher, so that it stands outside of it"
            _tell_once(self._told, "ApplicationUser knows nobody, for no request has a user: " + remedy)
            return None
        known = getattr(user, "is_authenticated", False)
        if not (known() if callable(known) else known):
            return None
        return Principal(_identity_of(user), _words(getattr(user, "scopes", ())) | credentials.scopes)


@dataclass(frozen=True, slots=True)
class Custom:
    """Callers known in a way of the site's own: `verify` is a function of the Credentials, plain or async.

    It answers a Principal, the caller's id, or None for nobody, and raises InvalidCredentials for what is wrong.
    """

    verify: InitVar[Verify[Credentials]]
    _ask: Ask[Credentials] = field(init=False, repr=False)

    def __post_init__(self, verify: Verify[Credentials]) -> None:
        remedy = "Give a function (Credentials) -> Principal | str | None."
        object.__setattr__(self, "_ask", read_verifier(verify, remedy))

    @property
    def scheme(self) -> Scheme | None:
        return None

    @property
    def method(self) -> str:
        return "custom"

    @property
    def challenge(self) -> str:
        return ""

    async def __call__(self, credentials: Credentials) -> Principal | None:
        """Whomever the site's function makes of the credentials."""
        return await self._ask(credentials)


def _tell_once(told: Event, text: str) -> None:
    """Log what is true of every call at the first one only."""
    if not told.is_set():
        told.set()
        logger.error(text)


def _identity_of(user: object) -> str:
    for name in IDENTITIES:
        try:
            value = getattr(user, name, None)
        except NotImplementedError:  # Starlette's base class has the property, but many users do not fill it in
            continue
        if value is not None and value != "":
            return str(value)
    raise LookupError(f"A user of type {type(user).__name__} has none of {', '.join(IDENTITIES)}.")


def _words(scopes: object) -> frozenset[str]:
    """Scopes as a text with spaces, or one by one."""
    given = scopes.split() if isinstance(scopes, str) else scopes if isinstance(scopes, Iterable) else ()
    return frozenset(scope for scope in given if isinstance(scope, str))
