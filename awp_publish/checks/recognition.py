"""The kinds of documents that are checked, and how one is recognised."""

from collections.abc import Iterator
from functools import cache
from typing import Final

from awp_publish.announced import announced
from awp_publish.checks.engine import JsonObject, Specification
from awp_publish.documents.members import AGENT_CARD_PATHS, AI_CATALOG_PATH, ARD_PATH

ENTRY_POINTS: Final = "awp_publish.checks"
"""The group of entry points with which plug-ins announce the kinds of documents that they check."""

_OTHERS: Final = frozenset({*AGENT_CARD_PATHS, ARD_PATH, AI_CATALOG_PATH})
"""Paths of documents of other kinds, which may resemble one of ours."""


@cache
def specifications() -> tuple[Specification, ...]:
    """Return the kinds of documents that are checked: those of plug-ins."""
    specifications: list[Specification] = []
    for point in announced(ENTRY_POINTS):
        try:
            specifications.append(point.load())
        except ModuleNotFoundError as error:
            if error.name is None or not f"{point.module}.".startswith(f"{error.name}."):
                raise  # otherwise the plug-in was taken out
    return tuple(specifications)


def recognise(document: JsonObject | None, path: str = "") -> Specification | None:
    """Return the kind of a document: by distinctive members, else by its path, else by resemblance.

    `document` is None if it could not be parsed; then only the path tells its kind.
    """
    at_path = _kind_at(path)
    if document is None:
        return at_path
    most_distinctive_first = sorted(specifications(), key=lambda kind: kind.rank)
    marked = next((kind for kind in most_distinctive_first if kind.marks(document)), None)
    if marked or path.endswith(tuple(_OTHERS)):
        return marked
    return at_path or next((kind for kind in most_distinctive_first if kind.resembles(document)), None)


def _kind_at(path: str) -> Specification | None:
    exact = next((kind for kind in specifications() if path in kind.paths), None)
    below = (kind for kind in specifications() if path.endswith(tuple(kind.paths)))  # a site may be below a path
    return exact or next(below, None)


def of_kind(site: JsonObject, kind: str) -> Iterator[tuple[str, JsonObject]]:
    """Yield the documents of a site (path to document) that are of this kind."""
    for path, document in site.items():
        if isinstance(document, dict) and (recognised := recognise(document, path)) and recognised.name == kind:
            yield path, document
