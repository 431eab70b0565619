"""The parts of a protocol file: a `Protocol` value with `Document`s, each a pure function of the catalog."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache

import orjson

from awp_publish.model import Catalog

Render = Callable[[Catalog], bytes]

DOCUMENT_MAX_AGE = 300
"""Seconds for which a document may be cached unless its specification says otherwise: a new status is seen in time."""


@dataclass(frozen=True, slots=True)
class Document:
    """One document at one path: its media type as the specification writes it, and a pure `render(catalog)`.

    `rel` is the relation with which pages link to it (RFC 8288), if they do. `max_age` is in seconds. `condition` tells
    which sites have it (None: all), `moved` returns its path on a site with other paths. `is_fallback` gives precedence
    to the application, which may have such a file itself: ours is served if it answers 404. `door` is the one whose
    calls it describes; actions that are not offered there are left out.
    """

    path: str
    media_type: str
    render: Render
    rel: str | None = None
    title: str | None = None
    max_age: int = DOCUMENT_MAX_AGE
    headers: tuple[tuple[str, str], ...] = ()
    condition: Callable[[Catalog], bool] | None = None
    moved: Callable[[Catalog], str] | None = None
    is_fallback: bool = False
    door: str | None = None

    def path_in(self, catalog: Catalog) -> str:
        """Return the path below the site's url."""
        return self.path if self.moved is None else self.moved(catalog)


@dataclass(frozen=True, slots=True)
class Protocol:
    """A named family of documents, which a plug-in lists among its own.

    `further` returns documents whose number depends on the site's declarations.
    """

    name: str
    documents: tuple[Document, ...]
    further: Callable[[Catalog], Iterable[Document]] | None = None


def views_of(catalog: Catalog) -> Callable[[Document], Catalog]:
    """Return a function that restricts the catalog to what a document may show: public actions offered at its door."""
    public = catalog.public
    of_doors = cache(public.exposed_at)
    return lambda document: public if document.door is None else of_doors(document.door)


def published(protocols: Iterable[Protocol], catalog: Catalog) -> Iterator[Document]:
    """Yield the documents of a site, without the protocols that it leaves out."""
    view = views_of(catalog)
    for protocol in protocols:
        if catalog.publishes(protocol.name):
            yield from (
                document
                for document in protocol.documents
                if document.condition is None or document.condition(view(document))
            )
            if protocol.further is not None:
                yield from protocol.further(catalog)


def to_json(render: Callable[[Catalog], dict[str, object]]) -> Render:
    """Turn a renderer of dicts into one of bytes: compact UTF-8, because agents pay for every byte."""
    return lambda catalog: orjson.dumps(render(catalog))
