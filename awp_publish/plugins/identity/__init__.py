"""Identity: tokens of authorization servers (JWT, DPoP), signed agents (Web Bot Auth), and where tokens come from."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING

from awp_publish.model import Catalog
from awp_publish.plugin import Finding, Plugin, Setup
from awp_publish.plugins.identity.protected_resource import PATH, PROTOCOL, is_published, is_published_of_mcp

if TYPE_CHECKING:
    from awp_publish.plugins.identity.assertions import Assertions
    from awp_publish.plugins.identity.proofs import Proofs


class IdentitySite:
    """The state that other plug-ins of one site get from this one."""

    def __init__(self, setup: Setup) -> None:
        self._site = setup.site

    @cached_property
    def proofs(self) -> "Proofs | None":
        """The checker of proofs of keys, None without PyJWT."""
        if find_spec("jwt") is None or find_spec("cryptography") is None:
            return None
        from awp_publish.plugins.identity.proofs import Proofs

        return Proofs(tuple(self._site.settings.urls), self._site.store)

    @cached_property
    def assertions(self) -> "Assertions | None":
        """The checker of assertions of clients, None without PyJWT."""
        if self.proofs is None:
            return None
        from awp_publish.plugins.identity.assertions import Assertions

        return Assertions(self._site.store)


def _check(setup: Setup, catalog: Catalog) -> Iterator[Finding]:
    """Find metadata that has clients ask for tokens which the site does not take (RFC 9728 section 3.3)."""
    declared = catalog.site.authentication
    resources = {catalog.url: is_published(catalog), catalog.absolute(catalog.paths.mcp): is_published_of_mcp(catalog)}
    audiences = declared.audiences if declared is not None else ()
    foreign = [resource for resource, is_told in resources.items() if is_told and resource not in audiences]
    if audiences and foreign:
        yield Finding(
            "warning",
            "start-audience",
            "",
            f"The metadata of this site (RFC 9728) makes clients ask for tokens for {' and '.join(foreign)}, but "
            f"JwtBearer accepts only tokens for {', '.join(audiences)}.",
            f"Write JwtBearer(audience={[*audiences, *foreign]!r}, ...).",
            "awp_publish",
        )


PLUGIN = Plugin(
    name="identity",
    is_default=True,
    start=IdentitySite,
    derive=lambda setup, catalog: replace(catalog, metadata_path=PATH) if is_published(catalog) else catalog,
    check=_check,
    documents=(PROTOCOL,),
)
