"""Who calls: what identifies a caller, and the caller of the call that a task handles."""

from collections.abc import Awaitable, Sequence
from contextvars import ContextVar
from typing import Final, Protocol, runtime_checkable

from awp_publish.calls.call import Credentials, Label, Principal, Scheme as Scheme
from awp_publish.stores.store import Store


@runtime_checkable
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


CALLER: Final[ContextVar[Principal | None]] = ContextVar("awp_publish_caller", default=None)
"""The caller of the call that this task handles."""


def current_caller() -> Principal | None:
    """Return the caller of the current call; None if the caller is unknown, and outside calls."""
    return CALLER.get()
