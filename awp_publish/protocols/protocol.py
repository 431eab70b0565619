"""The parts of a protocol file: a `Protocol` value with `Document`s, each a pure function of the catalog."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache

import orjson

from awp_publish.model import Catalog

Render = Callable[[Catalog], bytes]

DOCUMENT_MAX_AGE = 300
"""Seconds a document may be cached when its specification names no time: a degraded action is seen in five minutes."""


@dataclass(frozen=True, slots=True)
class Document:
    """One file served at one path: media type as the specification writes it, and a pure `render(catalog)`.

    `rel` is the link relation under which pages point at it (RFC 8288), None for none. `max_age` is in seconds.
    `condition` says which sites have it, None for all; `moved` where it is on a site whose paths are not the usual.
    `is_fallback` leaves the path to the application, which may have such a file of its own: ours stands where the
    application answers 404. `door` is the one whose calls it describes: it says nothing of actions that are not offered
    there.
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
        """The path below the site's url."""
        return self.path if self.moved is None else self.moved(catalog)


@dataclass(frozen=True, slots=True)
class Protocol:
    """A named family of documents. One line in `protocols.ALL` registers it.

    `further` are those of which there are as many as a site declares.
    """

    name: str
    documents: tuple[Document, ...]
    further: Callable[[Catalog], Iterable[Document]] | None = None


def views_of(catalog: Catalog) -> Callable[[Document], Catalog]:
    """Return what a document may speak of: what everybody may know, as far as its door offers it."""
    public = catalog.public
    of_doors = cache(public.exposed_at)
    return lambda document: public if document.door is None else of_doors(document.door)


def published(protocols: Iterable[Protocol], catalog: Catalog) -> Iterator[Document]:
    """Yield the documents that a site has: those of the protocols that it does not leave out."""
    view = views_of(catalog)
    for protocol in protocols:
        if catalog.publishes(protocol.name):
            yield from (one for one in protocol.documents if one.condition is None or one.condition(view(one)))
            if protocol.further is not None:
                yield from protocol.further(catalog)


def to_json(render: Callable[[Catalog], dict[str, object]]) -> Render:
    """Turn a renderer of plain dicts into one of bytes: compact UTF-8, because agents pay for every byte they read."""

    def render_bytes(catalog: Catalog) -> bytes:
        return orjson.dumps(render(catalog))

    return render_bytes
