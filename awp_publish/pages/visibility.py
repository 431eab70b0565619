"""Elements of a page that its readers do not see (SOM 1.0, section 6), and the text of those that they do."""

import re
from functools import lru_cache
from typing import Final

from awp_publish.pages.tree import COMMENT, Node, Tree

# --- The page's own `<style>` rules (SOM 1.0, section 6.2). Stylesheets elsewhere are not read ---
# Only a rule whose selector is one tag, one class or one id, for every state of the element, is taken at its word:
# `.menu:hover` and `.a.b` say nothing about all of `.menu` or `.a`. Rules inside of `@media` and its like depend on a
# reader that is not known, so they count for nothing.

_COMMENT: Final = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_SIMPLE: Final = re.compile(r"(?!\Z)([a-z][a-z0-9-]*)?([.#](?:[\w-]|[^\x00-\x7f])+)?\Z", re.IGNORECASE)
_NEVER_HIDDEN: Final = frozenset(("html", "body"))
"""A page that hides all of itself shows itself by script, as AMP's do."""

_MAY_MATTER: Final = re.compile("none|hidden|collapse|opacity|font-size|clip", re.IGNORECASE)
_SHOWN: Final = re.compile(r"display:(?!none)|visibility:visible")
_ZERO: Final = r"0(?:\.0*)?(?:px|em|rem|%)?(?![\w.%])"
_HIDDEN: Final = re.compile(
    rf"(?:^|;)(?:display:none|visibility:(?:hidden|collapse)|opacity:{_ZERO}|font-size:{_ZERO})(?=$|;|!)"
)
_CLIPPED: Final = re.compile(r"(?:^|;)clip:rect\(0")
_BRACE: Final = re.compile("[{}]")
_FLAT: Final = re.compile(rf"(?:^|;)(?:max-)?(?:height|width):{_ZERO}")

MAX_RULES: Final = 20_000
_MAX_CACHED: Final = 10_000
"""Characters of a sheet that is kept. The pages of a site have the same short sheets in them."""


def _is_hiding(declarations: str) -> bool:
    """Tell whether declarations of CSS hide what they apply to: the list of section 6.2, each value read as a whole."""
    text = "".join(declarations.lower().split())
    if _HIDDEN.search(text) or ("position:absolute" in text and _CLIPPED.search(text)):
        return True
    return "overflow:hidden" in text and _FLAT.search(text) is not None


def _read_sheet(sheet: str) -> tuple[frozenset[tuple[str, str]], frozenset[str]]:
    """Return what the rules of a sheet hide, as tag and class or id, "" for what is not named; and what they show."""
    hidden, shown = set[tuple[str, str]](), set[str]()
    sheet = _COMMENT.sub(" ", sheet)
    at, end = 0, len(sheet)
    for _ in range(MAX_RULES):
        opened = sheet.find("{", at)
        if opened < 0:
            break
        selector = sheet[at:opened].rpartition(";")[2].strip()
        closed, inner = sheet.find("}", opened), sheet.find("{", opened + 1)
        if 0 <= inner < closed:  # rules within: what they depend on is not known
            depth, at = 0, end
            for brace in _BRACE.finditer(sheet, opened):
                depth += 1 if brace[0] == "{" else -1
                if not depth:
                    at = brace.end()
                    break
            continue
        at = end if closed < 0 else closed + 1
        if selector.startswith("@"):
            continue
        declarations = sheet[opened + 1 : end if closed < 0 else closed]
        hiding = _is_hiding(declarations)
        if hiding or _SHOWN.search("".join(declarations.lower().split())):
            simple = (found for one in selector.split(",") if (found := _SIMPLE.match(one.strip())))
            named = [((found[1] or "").lower(), found[2] or "") for found in simple]
            if hiding:
                hidden.update(named)
            else:
                shown.update(name or tag for tag, name in named)
    return frozenset(hidden), frozenset(shown)


_read_short_sheet = lru_cache(maxsize=128)(_read_sheet)


STRIPPED: Final = frozenset(
    (COMMENT, "annotation", "annotation-xml", "base", "datalist", "head", "link", "meta", "noframes", "noscript")
) | {"param", "rp", "script", "source", "style", "template", "title", "track"}
"""Elements of which nothing is kept. A `<template>` is, when it is a shadow root: its host is asked for it."""

INLINE: Final = frozenset(
    (
        *("a", "abbr", "acronym", "area", "audio", "b", "bdi", "bdo", "big", "br", "button", "canvas", "cite", "code"),
        *("data", "del", "dfn", "em", "embed", "font", "i", "img", "input", "ins", "kbd", "map", "mark", "math"),
        *(
            "meter",
            "mfrac",
            "mi",
            "mn",
            "mo",
            "mover",
            "mpadded",
            "mroot",
            "mrow",
            "ms",
            "mspace",
            "msqrt",
            "mstyle",
            "msub",
        ),
        *("msubsup", "msup", "mtext", "munder", "munderover", "nobr", "object", "output", "picture", "progress", "q"),
        *("rb", "rt", "rtc", "ruby", "s", "samp", "select", "semantics", "small", "span", "strike", "strong", "sub"),
        *("sup", "svg", "textarea", "time", "tt", "u", "var", "video", "wbr"),
    )
)
"""Elements that do not part the text before them from the text within."""

_HIDING_ATTRIBUTES: Final = frozenset(("aria-hidden", "hidden", "style"))


class Visibility:
    """Hidden elements of one page.

    `hidden` holds every `tag`, `.class`, `#id`, `tag.class` and `tag#id` that its sheets hide, and no rule shows again.
    """

    __slots__ = ("_styles", "hidden")

    def __init__(self, tree: Tree) -> None:
        hidden, shown = set[tuple[str, str]](), set[str]()
        sheets = [
            "".join(child.text for child in style.children)
            for style in tree.tagged("style")
            if style.attributes.get("media", "").strip().lower() in ("", "all", "screen")
        ]
        for sheet in sheets if any(map(_MAY_MATTER.search, sheets)) else ():
            named = _read_short_sheet(sheet) if len(sheet) <= _MAX_CACHED else _read_sheet(sheet)
            hidden |= named[0]
            shown |= named[1]
        self.hidden = frozenset(
            tag + name for tag, name in hidden if (name or tag) not in shown and (name or tag not in _NEVER_HIDDEN)
        )
        self._styles: dict[str, bool] = {}

    def hides(self, element: Node) -> bool:
        """Tell whether nothing of an element is to be seen."""
        tag, attributes = element.tag, element.attributes
        if tag in STRIPPED:
            return True
        if not attributes and not self.hidden:
            return tag == "svg"
        if tag == "img" or tag == "svg":  # decoration, or a drawing without a role and a name (6.1)
            roles = attributes.get("role", "").lower().split()
            if tag == "img" and (attributes.get("alt") == "" or "presentation" in roles or "none" in roles):
                return True
            if tag == "svg" and "img" not in roles:
                return True
            if tag == "svg" and not (attributes.get("aria-label") or attributes.get("title") or title_of(element)):
                return True
        return self.withdraws(element)

    def withdraws(self, element: Node) -> bool:
        """Tell whether the page itself hides an element: an attribute of it, its style, or a rule."""
        attributes, hidden = element.attributes, self.hidden
        if not _HIDING_ATTRIBUTES.isdisjoint(attributes):
            if "hidden" in attributes or attributes.get("aria-hidden", "").strip().lower() == "true":
                return True
            style = attributes.get("style")
            if style:
                if style not in self._styles:
                    self._styles[style] = _is_hiding(style)
                if self._styles[style]:
                    return True
        if not hidden:
            return False
        tag = element.tag
        if tag in hidden:
            return True
        names = attributes.get("class")
        if names and any(f".{name}" in hidden or f"{tag}.{name}" in hidden for name in names.split()):
            return True
        name = attributes.get("id")
        return bool(name) and (f"#{name}" in hidden or f"{tag}#{name}" in hidden)


def title_of(drawing: Node) -> str:
    """Return what the `<title>` of an `<svg>` says."""
    titles = (child for child in drawing.children if child.tag == "title")
    return " ".join("".join(piece.text for title in titles for piece in title.children).split())


def text_of(node: Node, visibility: Visibility, without: Node | None = None, max_nodes: int | None = None) -> str:
    """Return the visible text below a node, whitespace collapsed (4.6), blocks parted by a space.

    `without` is a node to pass over; after `max_nodes` nodes the rest is left out.
    """
    pieces: list[str] = []
    waiting: list[Node | None] = list(reversed(node.children))
    left = -1 if max_nodes is None else max_nodes
    while waiting and left:
        left -= 1
        found = waiting.pop()
        if found is None:
            pieces.append(" ")
        elif not found.tag:
            pieces.append(found.text)
        elif found is not without and not visibility.hides(found):
            if found.tag not in INLINE or found.tag == "br":
                pieces.append(" ")
                waiting.append(None)
            waiting.extend(reversed(found.children))
    return " ".join("".join(pieces).split())
