"""Who calls: what identifies a caller, and the caller of the call that a task handles."""

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from contextvars import ContextVar
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

from awp_publish.calls.call import Credentials, Label, Principal, Scheme as Scheme
from awp_publish.stores.store import Store


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


AssertionCheck: TypeAlias = Callable[[str, Sequence[str]], Awaitable[None]]
"""Raises InvalidCredentials unless an assertion is the client's and for one of these audiences."""


class ClientAssertions(Protocol):
    """Checks the assertions of OAuth clients (RFC 7523); what the plug-in `identity` has for others."""

    def client_of(self, assertion: str) -> str | None:
        """Return the client that an assertion names, which is not verified yet."""

    def check_with(self, client_id: str, key: object, *, is_public: bool = False) -> AssertionCheck:
        """Return a client's check, by a public JWK or JWK set, PEM, or the address of a set. Raises ValueError.

        The host of an address that `is_public` must have public addresses only: somebody else has chosen it.
        """


CALLER: Final[ContextVar[Principal | None]] = ContextVar("awp_publish_caller", default=None)
"""The caller of the call that this task handles."""


def current_caller() -> Principal | None:
    """Return the caller of the current call; None if the caller is unknown, and outside calls."""
    return CALLER.get()
