"""Links to a site's documents, for a `Link` header and for the head of a page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from awp_publish.documents.members import located
from awp_publish.documents.protocol import Protocol, published
from awp_publish.model import Catalog

ALTERNATE: Final = "alternate"
"""The relation of documents that can be read instead of a page."""

OPENAPI_TYPE: Final = "application/json"
"""The type with which frameworks serve their OpenAPI document."""


@dataclass(frozen=True, slots=True)
class Link:
    """A link to a document, for a header or a page's head."""

    href: str
    rel: str
    type: str
    title: str | None


def links_of(catalog: Catalog, protocols: Sequence[Protocol]) -> Iterator[Link]:
    """Yield links to the site's documents."""
    for document in published(protocols, catalog):
        if document.rel is not None:
            media_type = document.media_type.split(";", 1)[0]
            yield Link(catalog.prefix + document.path, document.rel, media_type, document.title)
    if catalog.openapi is not None:
        yield Link(located(catalog, catalog.openapi.path), "service-desc", OPENAPI_TYPE, "OpenAPI")


def link_header(catalog: Catalog, protocols: Sequence[Protocol], *, of_pages: bool = True) -> str:
    """Return the value of a `Link` header (RFC 8288) that points at the site's documents.

    Alternates of pages are left out unless `of_pages`.
    """
    written: list[str] = []
    for link in links_of(catalog, protocols):
        if of_pages or link.rel != ALTERNATE:
            written.append(f'<{link.href}>; rel="{link.rel}"; type="{link.type}"')
    return ", ".join(written)
