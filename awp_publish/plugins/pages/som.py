"""The directory of a site's SOM documents, and the lines about them for robots.txt.

SOM documents follow version 0.1 of the SOM specification, whose text calls the format SOM/1.0. The directory has the
members of somspec.org's publisher; the lines are those of Plasmate's proposal "Robots.txt for the Agentic Web". The
directory is at the address where the proposal "SOM-first websites" has the SOM of a page, with the same media type,
because a site has many pages. Deliberately not emitted: `SOM-Token-Budget` (pages differ), `SOM-Rate-Limit` and
`SOM-Attribution` (they are not declared). `urls` are the declared pages, and those that the site's facts name.
"""

from typing import Final
from urllib.parse import urlsplit

from awp_publish.documents.members import SOM_TYPE, absolute_if, extension_members
from awp_publish.documents.protocol import DOCUMENT_MAX_AGE, Document, Protocol, to_json
from awp_publish.documents.som_robots import robots_lines_of
from awp_publish.model import Catalog

PATH: Final = "/.well-known/som.json"
MEDIA_TYPE: Final = SOM_TYPE
DOOR: Final = "som"
SOM_VERSION: Final = "0.1"
FORMAT: Final = "SOM/1.0"
SCOPE: Final = "full-page"
FRESHNESS: Final = DOCUMENT_MAX_AGE
"""Seconds for which a page may be cached that says nothing about it."""


def is_published(catalog: Catalog) -> bool:
    """Return True if pages are available as SOM."""
    return catalog.door(DOOR) is not None


def render(catalog: Catalog) -> dict[str, object]:
    site, own, endpoint = catalog.site, urlsplit(catalog.url), endpoint_of(catalog)
    pages = [catalog.absolute(page.path) for page in catalog.pages if not page.is_template]
    for link in (site.documentation, site.contact.url if site.contact else None):
        address = absolute_if(catalog, link)
        parts = urlsplit(address or "")
        is_here = (parts.scheme, parts.netloc.lower()) == (own.scheme, own.netloc)
        if address is not None and is_here and (parts.path + "/").startswith(own.path + "/"):
            pages.append(address)
    document: dict[str, object] = {
        "som_version": SOM_VERSION,
        "endpoint": endpoint,
        "format": FORMAT,
        "scope": SCOPE,
        "freshness_seconds": FRESHNESS,
        "urls": list(dict.fromkeys(pages)),
        "usage": {
            "endpoint": f"GET {endpoint}?url={{percent-encoded address of a page of this site}}",
            "negotiation": f"GET any page of this site with Accept: {MEDIA_TYPE}",
            "markdown": "The same with Accept: text/markdown, or format=md at the endpoint",
            "budget": "budget=full, default or tight, at the endpoint or as a parameter of the media type",
        },
    }
    return document | extension_members(site.extensions)


def robots_lines(catalog: Catalog) -> str:
    """Return the lines for robots.txt, "" if pages are not available as SOM."""
    return robots_lines_of(render(catalog)) if is_published(catalog) else ""


def endpoint_of(catalog: Catalog) -> str:
    """Return the address to which agents append `?url=`."""
    return catalog.absolute(catalog.paths.som)


PROTOCOL = Protocol(
    "som",
    documents=(Document(PATH, MEDIA_TYPE, to_json(render), rel="describedby", title="SOM", condition=is_published),),
)
