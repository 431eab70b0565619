"""What signing in asks of the plug-in `identity`, where the site has it."""

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Protocol, TypeAlias


class KeyProofs(Protocol):
    """Checks proofs of keys in requests (RFC 9449)."""

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
    """Checks the assertions of OAuth clients (RFC 7523)."""

    def client_of(self, assertion: str) -> str | None:
        """Return the client that an assertion names, which is not verified yet."""

    def check_with(self, client_id: str, key: object, *, is_public: bool = False) -> AssertionCheck:
        """Return a client's check, by a public JWK or JWK set, PEM, or the address of a set. Raises ValueError.

        The host of an address that `is_public` must have public addresses only: somebody else has chosen it.
        """
