"""Who calls: the `Principal`, what a request shows of itself (`Credentials`), and how to tell one from the other."""

import re
from collections.abc import Awaitable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

from awp_publish.problems import InvalidCredentials

Scheme: TypeAlias = Literal["oauth2", "api_key", "bearer"]
"""How credentials are sent, as agent.json names it (section 7)."""


@dataclass(frozen=True, slots=True)
class Principal:
    """A known caller. `id` is stable and no secret: it stands in logs and keys. `claims` are what else is known."""

    id: str
    scopes: frozenset[str] = frozenset()
    claims: Mapping[str, object] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        if _NOT_TEXT.search(self.id):
            raise InvalidCredentials("The caller's id has characters that no text has.")


class Signed(NamedTuple):
    """What a caller has signed with a secret that it shares with the site: our own challenge, under its name."""

    name: str
    challenge: str
    signature: str


class Credentials(NamedTuple):
    """What a request shows of itself. Header names are lower-case.

    `session` is the application's own, `user` what its authentication middleware made of the request; both are None
    where there is no such middleware. `scopes` are what that middleware granted (Starlette keeps them beside the user).
    `address` is the client's, behind the trusted proxies. `signed` is what the caller has signed, at a door that gives
    challenges; no header says it.
    """

    headers: Mapping[str, str]
    address: str = ""
    session: Mapping[str, object] | None = None
    user: object = None
    scopes: frozenset[str] = frozenset()
    signed: Signed | None = None


class Authenticator(Protocol):
    """One way to know a caller.

    `scheme` is what agent.json may say of it (None for sessions), `method` what AWAS may (session, api_key, oauth, jwt,
    bearer), `challenge` its WWW-Authenticate challenge (RFC 9110 section 11.6.1), "" for none.
    """

    @property
    def scheme(self) -> Scheme | None: ...

    @property
    def method(self) -> str: ...

    @property
    def challenge(self) -> str: ...

    def __call__(self, credentials: Credentials) -> Awaitable[Principal | None]:
        """The caller, None if there are no credentials of this kind. Raises InvalidCredentials or AuthExpired."""


_NOT_TEXT: Final = re.compile("[\ud800-\udfff]")

_CALLER: Final[ContextVar[Principal | None]] = ContextVar("awp_publish_caller", default=None)


def current_caller() -> Principal | None:
    """Who makes the call that is being handled; None for nobody known, and outside of calls."""
    return _CALLER.get()


def set_caller(principal: Principal | None) -> None:
    """Say who makes the call that this task handles."""
    _CALLER.set(principal)
