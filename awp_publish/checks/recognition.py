"""The kinds of documents that are checked, and how one is recognised."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Final

from awp_publish.announced import announced
from awp_publish.checks.agent_json import AGENT_JSON
from awp_publish.checks.awas import AWAS
from awp_publish.checks.awas_manifests import A2A, MCP
from awp_publish.checks.engine import JsonObject, Specification
from awp_publish.checks.woa import WOA
from awp_publish.documents.members import AGENT_CARD_PATHS, AI_CATALOG_PATH, ARD_PATH

ENTRY_POINTS: Final = "awp_publish.checks"
"""The group of entry points with which plug-ins announce the kinds of documents that they check."""

_OWN: Final = (AWAS, AGENT_JSON, WOA, MCP, A2A)

_OTHERS: Final = frozenset({*AGENT_CARD_PATHS, ARD_PATH, AI_CATALOG_PATH})
"""Paths of documents of other kinds, which may resemble one of ours."""


@cache
def specifications() -> tuple[Specification, ...]:
    """Return the kinds of documents that are checked: our own, then those of plug-ins."""
    return (*_OWN, *specifications_of_plugins())


@cache
def specifications_of_plugins() -> tuple[Specification, ...]:
    specifications: list[Specification] = []
    for point in announced(ENTRY_POINTS):
        try:
            specifications.append(point.load())
        except ModuleNotFoundError as error:
            if error.name is None or not f"{point.module}.".startswith(f"{error.name}."):
                raise  # otherwise the plug-in was taken out
    return tuple(specifications)


@cache
def _most_distinctive_first() -> tuple[Specification, ...]:
    return (*specifications_of_plugins(), AGENT_JSON, WOA, A2A, MCP, AWAS)


def recognise(document: JsonObject | None, path: str = "") -> Specification | None:
    """Return the kind of a document: by distinctive members, else by its path, else by resemblance.

    `document` is None if it could not be parsed; then only the path tells its kind.
    """
    at_path = _kind_at(path)
    if document is None:
        return at_path
    marked = next((kind for kind in _most_distinctive_first() if kind.marks(document)), None)
    if marked or path.endswith(tuple(_OTHERS)):
        return marked
    return at_path or next((kind for kind in _most_distinctive_first() if kind.resembles(document)), None)


@lru_cache(maxsize=512)  # checking a site asks for the same paths repeatedly
def _kind_at(path: str) -> Specification | None:
    exact = next((kind for kind in specifications() if path in kind.paths), None)
    below = (kind for kind in specifications() if path.endswith(tuple(kind.paths)))  # a site may be below a path
    return exact or next(below, None)
