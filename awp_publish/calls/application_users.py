"""Callers who are known to the application: by its session, or by its authentication middleware."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import InitVar, dataclass, field
from functools import lru_cache
from threading import Event
from typing import ClassVar, Final

from awp_publish.calls.call import Credentials, Principal
from awp_publish.calls.callers import Scheme
from awp_publish.calls.challenges import COOKIE
from awp_publish.calls.verifiers import Ask, Verify, check_people, people_of, read_verifier
from awp_publish.problems import DeclarationError

logger: Final = logging.getLogger("awp_publish.calls")

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
        return None if value is None or value == "" else _principal(str(value), people_of(self))


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
        is_authenticated = getattr(user, "is_authenticated", False)
        if not (is_authenticated() if callable(is_authenticated) else is_authenticated):
            return None
        granted = getattr(user, "scopes", ())
        words = granted.split() if isinstance(granted, str) else granted if isinstance(granted, Iterable) else ()
        scopes = frozenset(word for word in words if isinstance(word, str))
        for name in IDENTITIES:
            try:
                value = getattr(user, name, None)
            except NotImplementedError:  # a property of Starlette's base class that many subclasses do not implement
                continue
            if value is not None and value != "":
                return Principal(str(value), scopes | credentials.scopes, issuer=people_of(self))
        raise LookupError(f"A user of type {type(user).__name__} has none of {', '.join(IDENTITIES)}.")


@lru_cache(1000)
def _principal(name: str, issuer: str) -> Principal:
    return Principal(name, issuer=issuer)


def _log_once(is_logged: Event, text: str) -> None:
    if not is_logged.is_set():
        is_logged.set()
        logger.error(text)
