"""Converts HTML for agents: to a tree, to the page's Semantic Object Model, and to Markdown. Pure, without I/O.

Needs the extra `pages`, except for the selectors of CSS. Modules are imported when they are first used, so that a start
need not wait.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from awp_publish.pages.selection import Budget as Budget
    from awp_publish.pages.selectolax import parse as parse
    from awp_publish.pages.som import Som as Som, compile_som as compile_som
    from awp_publish.pages.tree import Tree as Tree

_HOMES: Final = {"Budget": "selection", "Som": "som", "Tree": "tree", "compile_som": "som", "parse": "selectolax"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
