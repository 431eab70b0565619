"""The directory of a site's SOM documents, and the lines that robots.txt may say of them.

SOM documents are of version 0.1 of the SOM specification, whose text calls the format SOM/1.0. The directory has the
members of somspec.org's publisher; the lines are those of Plasmate's proposal "Robots.txt for the Agentic Web". The
directory stands where the proposal "SOM-first websites" has a page's own SOM, with the same media type, because a site
has many pages. Deliberately not emitted: `SOM-Token-Budget` (pages differ), `SOM-Rate-Limit`, `SOM-Attribution` (no
declaration makes any). `urls` are the pages that a site has declared, and those that its facts name.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from awp_publish.model import Catalog
from awp_publish.protocols.members import extension_members
from awp_publish.protocols.protocol import DOCUMENT_MAX_AGE, Document, Protocol, to_json

PATH: Final = "/.well-known/som.json"
MEDIA_TYPE: Final = "application/som+json"
DOOR: Final = "som"
SOM_VERSION: Final = "0.1"
FORMAT: Final = "SOM/1.0"
SCOPE: Final = "full-page"
FRESHNESS: Final = DOCUMENT_MAX_AGE
"""Seconds for which a page may be kept that does not say it itself."""


def is_published(catalog: Catalog) -> bool:
    """Whether pages are given as SOM."""
    return catalog.door(DOOR) is not None


def render(catalog: Catalog) -> dict[str, object]:
    """The directory."""
    document: dict[str, object] = {
        "som_version": SOM_VERSION,
        "endpoint": endpoint_of(catalog),
        "format": FORMAT,
        "scope": SCOPE,
        "freshness_seconds": FRESHNESS,
        "urls": _pages(catalog),
        "usage": {
            "endpoint": f"GET {endpoint_of(catalog)}?url={{percent-encoded address of a page of this site}}",
            "negotiation": f"GET any page of this site with Accept: {MEDIA_TYPE}",
            "markdown": "The same with Accept: text/markdown, or format=md at the endpoint",
            "budget": "budget=full, default or tight, at the endpoint or as a parameter of the media type",
        },
    }
    return document | extension_members(catalog.site.extensions)


def robots_lines(catalog: Catalog) -> str:
    """The lines for robots.txt, each ended; none where pages are not given as SOM."""
    return robots_lines_of(render(catalog)) if is_published(catalog) else ""


def robots_lines_of(directory: Mapping[str, object]) -> str:
    """The lines that say what a directory says. The endpoint is for everybody: nobody is known there."""
    said = {name: directory[member] for name, member in _DIRECTIVES.items() if member in directory}
    return "".join(f"{name}: {value}\n" for name, value in {**said, "SOM-Auth": "none"}.items())


_DIRECTIVES: Final = {
    "SOM-Endpoint": "endpoint",
    "SOM-Format": "format",
    "SOM-Scope": "scope",
    "SOM-Freshness": "freshness_seconds",
}


def endpoint_of(catalog: Catalog) -> str:
    """The address to which agents add `?url=`."""
    return catalog.absolute(catalog.paths.som)


def _pages(catalog: Catalog) -> list[str]:
    """The pages that are declared, then those of this site that its facts name."""
    site, declared = catalog.site, [catalog.absolute(page.path) for page in catalog.pages]
    named = (site.documentation, site.contact.url if site.contact else None)
    addresses = (catalog.absolute(one) if one.startswith("/") else one for one in named if one is not None)
    return list(dict.fromkeys([*declared, *(one for one in addresses if _is_below(catalog, one))]))


def _is_below(catalog: Catalog, address: str) -> bool:
    """Whether an address is below the site's url, which may have a path."""
    given, own = urlsplit(address), urlsplit(catalog.url)
    is_here = (given.scheme, given.netloc.lower()) == (own.scheme, own.netloc)
    return is_here and (given.path + "/").startswith(own.path + "/")


PROTOCOL = Protocol(
    "som",
    documents=(Document(PATH, MEDIA_TYPE, to_json(render), rel="alternate", title="SOM", condition=is_published),),
)
