"""Converts HTML for agents: to a tree, to the page's Semantic Object Model, and to Markdown. Pure, without I/O.

Needs the extra `pages`. The compiler of the model is imported when it is first used, so that a start need not wait.
"""

from typing import TYPE_CHECKING

from awp_publish.pages.selectolax import parse as parse
from awp_publish.pages.tree import Tree as Tree

if TYPE_CHECKING:
    from awp_publish.pages.som import Budget as Budget, Som as Som, compile_som as compile_som


def __getattr__(name: str) -> object:
    if name not in ("Budget", "Som", "compile_som"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from awp_publish.pages import som

    return getattr(som, name)
