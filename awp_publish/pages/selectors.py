"""CSS selectors whose combinators are followed here, so that none of them takes longer than the page is long.

The parser's own matcher goes back and tries again: `a ~ b ~ c ~ d` takes it the fourth power of a list's length, and a
stranger's selector could keep the process for hours. It is asked for compound selectors only (Selectors 4, section 3).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from awp_publish.pages.tree import COMMENT, Node

MOST_NESTED: Final = 3
"""Levels of parentheses."""

_TOKENS: Final = re.compile(r"""\\.|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|/\*.*?\*/|[ \t\r\n\f]+|.""", re.DOTALL)
_COUNTED: Final = re.compile(r"^[ \t\r\n\f]*(?:even|odd|[-+]?\d*n?(?:\s*[-+]\s*\d+)?)\s+of\s+", re.IGNORECASE)
"""What stands before the selector of `:nth-child(2n + 1 of li)`."""
_FREE: Final = re.compile(r"~(?!=)|(?<=[^\s(,>+~])\s+(?=[^\s),>+~])")
"""The combinators for which many elements have to be tried: any sibling before, any element around."""
_TEXTS: Final = re.compile(r"""\\.|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\[[^\]]*\]""", re.DOTALL)

Find: TypeAlias = Callable[[str], Sequence[Node]]
"""All elements that a compound selector matches. Raises ValueError for what is none."""


class Step(NamedTuple):
    """One compound selector, and the combinator before it; None for the first."""

    combinator: str | None
    compound: str


def select(css: str, find: Find) -> list[Node]:
    """The elements that a list of selectors matches, some of them perhaps twice.

    Raises:
        ValueError: it is no selector, or has in parentheses what takes too long.
    """
    return [node for steps in _read_list(css) for node in _follow(steps, find)]


def _follow(steps: Sequence[Step], find: Find) -> list[Node]:
    found: list[Node] = []
    for combinator, compound in steps:
        candidates = list(find(compound))
        if combinator is not None:
            related = _RELATED[combinator](found)
            candidates = [node for node in candidates if id(node) in related]
        found = candidates
    return found


# --- Reading ---


def _read_list(css: str) -> list[list[Step]]:
    selectors: list[list[Step]] = []
    tokens: list[str] = []
    for token in (*_tokens(css), ","):
        if token != ",":
            tokens.append(token)
            continue
        selectors.append(_read_complex(tokens, css))
        tokens = []
    return selectors


def _tokens(css: str) -> Iterator[str]:
    """The combinators and commas outside of parentheses, and what is between them; blanks are one blank."""
    depth = start = 0
    for match in _TOKENS.finditer(css):
        token = match[0]
        depth += (token in ("(", "[")) - (token in (")", "]"))
        if depth > MOST_NESTED:
            raise ValueError(f"A selector of more than {MOST_NESTED} levels of parentheses.")
        if depth == 0 and (token.isspace() or token in (">", "+", "~", ",")):
            yield css[start : match.start()]
            yield " " if token.isspace() else token
            start = match.end()
    yield css[start:]


def _read_complex(tokens: Iterable[str], css: str) -> list[Step]:
    steps: list[Step] = []
    combinator: str | None = None
    for token in tokens:
        if token in (">", "+", "~"):
            if combinator not in (None, " ") or not steps:
                raise ValueError(f"{css!r} is not a CSS selector.")
            combinator = token
        elif token == " ":
            combinator = combinator or (" " if steps else None)
        elif token:
            _check_nested(token)
            steps.append(Step(combinator, token))
            combinator = None
    if not steps or combinator not in (None, " "):
        raise ValueError(f"{css!r} is not a CSS selector.")
    return steps


def _check_nested(compound: str) -> None:
    """What stands in parentheses the parser follows itself: one combinator in all of them is quick enough."""
    arguments = _TEXTS.sub("x", compound).partition("(")[2].split("(")
    if sum(len(_FREE.findall(_COUNTED.sub("", argument))) for argument in arguments) > 1:
        raise ValueError("A selector with more than one combinator in parentheses.")


# --- Relations ---


def _below(nodes: Iterable[Node]) -> set[int]:
    """All that is in one of these."""
    found: set[int] = set()
    waiting = [child for node in nodes for child in node.children]
    while waiting:
        node = waiting.pop()
        if id(node) not in found:
            found.add(id(node))
            waiting.extend(node.children)
    return found


def _children(nodes: Iterable[Node]) -> set[int]:
    return {id(child) for node in nodes for child in node.children}


def _next(nodes: Iterable[Node]) -> set[int]:
    """The element after each of these."""
    marked = {id(node) for node in nodes}
    return {id(after) for before, after in _pairs(nodes) if id(before) in marked}


def _later(nodes: Iterable[Node]) -> set[int]:
    """All siblings after any of these."""
    found = {id(node) for node in nodes}
    marked = set(found)
    later: set[int] = set()
    for before, after in _pairs(nodes):
        if id(before) in marked:
            marked.add(id(after))
            later.add(id(after))
    return later


def _pairs(nodes: Iterable[Node]) -> Iterator[tuple[Node, Node]]:
    """Elements that follow each other, among the siblings of these."""
    parents = {id(node.parent): node.parent for node in nodes if node.parent is not None}
    for parent in parents.values():
        elements = [child for child in parent.children if child.tag and child.tag != COMMENT]
        yield from pairwise(elements)


_RELATED: Final[Mapping[str, Callable[[Sequence[Node]], set[int]]]] = {
    " ": _below,
    ">": _children,
    "+": _next,
    "~": _later,
}
