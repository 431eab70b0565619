"""Small rules that every manifest of ours follows.

Absent facts are absent members; paths that a client resolves against the origin carry the path of the site's url;
what a site adds of its own is marked `x-`.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

from awp_publish.model import Catalog, JsonObject

EXTENSION_PREFIX = "x-"


def present(members: Mapping[str, object]) -> dict[str, object]:
    """The members that have a value: an absent fact is an absent member, not null."""
    return {name: value for name, value in members.items() if value is not None}


def extension_members(extensions: JsonObject) -> dict[str, object]:
    """A site's own members, marked as the AWAS text (section Extensions) asks: `x-`."""
    return {EXTENSION_PREFIX + name.removeprefix(EXTENSION_PREFIX): value for name, value in extensions.items()}


def origin(catalog: Catalog) -> str:
    """Scheme and authority of the site: what origin-relative paths are resolved against."""
    parts = urlsplit(catalog.url)
    return f"{parts.scheme}://{parts.netloc}"


def located(catalog: Catalog, address: str) -> str:
    """An address below the site as an origin-relative path; an absolute URL stays as it is."""
    return catalog.prefix + address if address.startswith("/") else address


def located_if(catalog: Catalog, address: str | None) -> str | None:
    return None if address is None else located(catalog, address)


def absolute_if(catalog: Catalog, address: str | None) -> str | None:
    """The whole URL of an address below the site; an absolute URL stays as it is."""
    return catalog.absolute(address) if address is not None and address.startswith("/") else address


def metadata(catalog: Catalog) -> dict[str, object]:
    """The `metadata` object of AWAS's MCP and A2A manifests, as far as the site has told it."""
    site = catalog.site
    return present(
        {
            "homepage": catalog.url,
            "documentation": located_if(catalog, site.documentation),
            "license": site.license,
        }
    )


def door_addresses(catalog: Catalog) -> dict[str, object]:
    """The live endpoints, and the OpenAPI document, by name: what AWAS's MCP and A2A manifests add to `endpoints`."""
    addresses: dict[str, object] = {door.protocol: located(catalog, door.path) for door in catalog.doors}
    if catalog.openapi:
        addresses["openapi"] = located(catalog, catalog.openapi.path)
    return addresses
