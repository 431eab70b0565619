"""Sign-in of one site, at whatever address: what people have allowed, and who may ask them."""

from collections.abc import Awaitable, Callable
from functools import cached_property, lru_cache
from typing import Final

from awp_publish.calls.call import Principal
from awp_publish.calls.tokens import Tokens
from awp_publish.model import Catalog
from awp_publish.plugin import Setup
from awp_publish.plugins.sign_in.clients import Clients
from awp_publish.plugins.sign_in.framework import Framework, framework_of
from awp_publish.plugins.sign_in.grants import MAX_FOUND, Access, Grant, Grants, digest_of
from awp_publish.plugins.sign_in.identity import KeyProofs
from awp_publish.plugins.sign_in.options import SignIn
from awp_publish.stores.values import change_value

CLIENT: Final = "client:"
"""What stands before the id of a client that acts for itself."""


class SignInSite:
    """Sign-in of one site, from its declaration on."""

    def __init__(self, setup: Setup) -> None:
        self.options: SignIn = setup.options
        self._site = setup.site
        self.still_knows: Callable[[Grant, str], Awaitable[bool]] | None = None
        """Asks at the first address whether a grant's person is still known to the site, once it is published."""

    @property
    def framework(self) -> Framework:
        """The framework's knowledge of the site's users."""
        return framework_of(self._site)

    @property
    def permissions(self) -> frozenset[str]:
        return self.permissions_of(self._site.catalog)

    def permissions_of(self, catalog: Catalog) -> frozenset[str]:
        """Return the scopes of actions that every token stands for, because the site alone decides if they hold."""
        if self.options.scopes:
            return frozenset()
        needed = (scope for action in catalog.actions for scope in action.scopes)
        return frozenset(filter(self.framework.is_permission, needed))

    @property
    def proofs(self) -> KeyProofs | None:
        """The checker of proofs of clients' keys, None where that is not possible."""
        identity = self._site.ask("identity")
        return identity.proofs if identity is not None else None

    @cached_property
    def principal_of(self) -> Callable[[Access], Principal]:
        """Return the caller with an access token, with what a person has allowed as its scopes."""
        return lru_cache(MAX_FOUND)(self._principal_of)

    def _principal_of(self, access: Access) -> Principal:
        grant, granted = access.grant, access.scopes
        claims: dict[str, object] = {"client_id": grant.client, "exp": access.until}
        if grant.key:
            claims["cnf"] = {"jkt": grant.key}
        if grant.person is None:
            return Principal(CLIENT + grant.client, granted, claims, issuer=CLIENT, scheme="oauth2")
        granted |= self.permissions
        claims["scope"] = " ".join(sorted(granted))
        issuer, _, name = grant.person.partition(" ")
        return Principal(name, granted, claims, issuer=issuer, scheme="oauth2")

    def tokens(self, purpose: str, seconds: float = 0.0) -> Tokens:
        """Return what signs for one purpose with the site's keys."""
        return Tokens(self._site.keys, f"sign-in {purpose}:{self._site.settings.namespace}", seconds)

    @cached_property
    def grants(self) -> Grants:
        seconds = 60 * self.options.minutes
        return Grants(self._site.store, self.tokens("grant"), seconds, end_session=self.framework.end_session)

    @cached_property
    def clients(self) -> Clients:
        """The clients that may ask for access. Raises DeclarationError."""
        identity = self._site.ask("identity")
        return Clients(self.options, self._site.store, identity.assertions if identity is not None else None)

    async def disconnect(self, grant_id: str) -> Grant | None:
        """End a grant as `Grants.end` does, and forget that its client was allowed: it is asked about again."""
        ended = await self.grants.end(grant_id)
        if ended is not None and ended.person is not None:

            async def forget(_: bytes | None) -> None:
                return None

            await change_value(self._site.store, consent_key(ended.person, ended.client), forget, 0.0)
        return ended


def consent_key(person: str, client: str) -> str:
    """Return the key under which the store has what a person has allowed a client."""
    members = f"{person}\n{client}"
    return f"sign-in:consent:{digest_of(members)}"
