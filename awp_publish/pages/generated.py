"""What style rules make of texts: generated content, and inline elements that are blocks (CSS 2.2, 9.2 and 12.1)."""

import re
from dataclasses import dataclass
from typing import Final

from awp_publish.pages.selectors import unescape
from awp_publish.pages.tree import Tree
from awp_publish.pages.visibility import INLINE, Visibility

_PIECE: Final = re.compile(r""""((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|attr\(\s*([-\w]+)[^)]*\)|(/)""", re.DOTALL)
_ICONS: Final = re.compile("[\ue000-\uf8ff\U000f0000-\U0010ffff]")
"""Characters of icon fonts (the private use areas of Unicode)."""

_BLOCKS: Final = re.compile(
    r"(?:(?:inline-)?(?:block|flex|grid|table)|block .*|flow-root|list-item|table-[a-z-]+|-webkit-box)"
)
_DISPLAY: Final = re.compile(r"\bdisplay\s*:\s*(?!none|inline\s*(?:[;!]|\Z)|contents)", re.IGNORECASE)
_CONTENT: Final = re.compile(
    r"\bcontent\s*:(?=[^;]{0,200}?(?:[\"'](?:\\[0-9a-f]+\s?|[^\w\"'\\;]){0,60}[^\W_]|attr\())", re.IGNORECASE
)
"""Values that make a block, or a text."""

_PARTS: Final = frozenset(("cell", "columnheader", "gridcell", "listitem", "row", "rowheader", "treeitem"))
"""Roles of parts of tables and lists, which stand apart though their style may be in another file."""

_ANY: Final = re.compile(r"\bdisplay\b", re.IGNORECASE)

MAX_CONTENT: Final = 200
"""Characters of generated content before or after an element."""


@dataclass(frozen=True, slots=True)
class Generated:
    """The content before and after elements, and the inline elements that are laid out as blocks."""

    before: dict[int, str]
    after: dict[int, str]
    blocks: frozenset[int]


def read_generated(visibility: Visibility) -> Generated:
    """Return what the rules of a page's own `<style>` generate. Those of shadow roots are not read."""
    tree, styles = visibility.tree, visibility.styles
    styled = [at for at in tree.conspicuous if "display" in tree.attributes[at].get("style", "").lower()]
    displayed = styles.values("display", _DISPLAY, styled=styled, tags=INLINE)
    blocks = {at for at, display in displayed.items() if tree.tags[at] in INLINE and _BLOCKS.fullmatch(display)}
    blocks |= {at for at in tree.conspicuous if tree.tags[at] == "span" and _role_in(tree, at) in _PARTS}
    sides = list[dict[int, str]]()
    for side in ("before", "after"):
        contents = styles.values("content", _CONTENT, side)
        displays = styles.values("display", _ANY, side) if contents else {}
        texts = {at: _text(value, tree, at) for at, value in contents.items() if displays.get(at) != "none"}
        sides.append(
            {
                at: f" {text} " if _BLOCKS.fullmatch(displays.get(at, "")) else text
                for at, text in texts.items()
                if any(map(str.isalnum, text))  # not icons, quotation marks and separators
            }
        )
    before, after = sides
    return Generated(before, after, frozenset(blocks))


def _role_in(tree: Tree, at: int) -> str:
    return tree.attributes[at].get("role", "").strip().lower()


def _text(content: str, tree: Tree, at: int) -> str:
    """Return the text of a `content`: its alternative text if it has one, strings and attributes."""
    parts: list[str] = []
    for double, single, attribute, slash in _PIECE.findall(content):
        if slash:
            parts.clear()
        parts.append(tree.attributes[at].get(attribute, "") if attribute else unescape(double or single))
    return _ICONS.sub("", "".join(parts))[:MAX_CONTENT]
