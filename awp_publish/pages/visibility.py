"""What of a page is not there for a reader (SOM 1.0, section 6), and the text of what is."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, TypeAlias

from awp_publish.pages.tree import COMMENT, Node, Tree

# --- What the page's own `<style>` rules hide (SOM 1.0, section 6.2). Stylesheets elsewhere are not read ---
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
_FLAT: Final = re.compile(rf"(?:^|;)(?:max-)?(?:height|width):{_ZERO}")

MOST_RULES: Final = 20_000
_MOST_KNOWN: Final = 10_000
_Simple: TypeAlias = tuple[str, str]
_Named: TypeAlias = tuple[frozenset[_Simple], frozenset[str]]


def hides(declarations: str) -> bool:
    """Whether declarations of CSS hide what they apply to: the list of section 6.2, each value read as a whole."""
    text = "".join(declarations.lower().split())
    if _HIDDEN.search(text):
        return True
    if "position:absolute" in text and _CLIPPED.search(text):
        return True
    return "overflow:hidden" in text and _FLAT.search(text) is not None


def read_hidden(sheets: list[str]) -> frozenset[str]:
    """Every `tag`, `.class`, `#id`, `tag.class` and `tag#id` that the sheets hide, and that no rule shows again."""
    hidden: set[_Simple] = set()
    shown: set[str] = set()
    for sheet in sheets if any(map(_MAY_MATTER.search, sheets)) else ():
        named = _read_known(sheet) if len(sheet) <= _MOST_KNOWN else _read(sheet)
        hidden.update(named[0])
        shown.update(named[1])
    return frozenset(
        tag + name for tag, name in hidden if (name or tag) not in shown and (name or tag not in _NEVER_HIDDEN)
    )


def _read(sheet: str) -> _Named:
    """What the rules of a sheet hide, and what they show."""
    hidden: set[_Simple] = set()
    shown: set[str] = set()
    for selector, declarations in _top_rules(_COMMENT.sub(" ", sheet)):
        if hides(declarations):
            hidden.update(_named(selector))
        elif _SHOWN.search("".join(declarations.lower().split())):
            shown.update(name or tag for tag, name in _named(selector))
    return frozenset(hidden), frozenset(shown)


_read_known = lru_cache(maxsize=128)(_read)
"""The pages of a site have the same short sheets in them, so what was read is kept."""


def _named(selector: str) -> Iterator[_Simple]:
    """The tag and the class or id of each simple selector; "" for what it does not name."""
    for one in selector.split(","):
        found = _SIMPLE.match(one.strip())
        if found is not None:
            yield (found[1] or "").lower(), found[2] or ""


def _top_rules(sheet: str) -> Iterator[tuple[str, str]]:
    """Selector and declarations of each rule that is in no other one."""
    at, end = 0, len(sheet)
    for _ in range(MOST_RULES):
        opened = sheet.find("{", at)
        if opened < 0:
            return
        selector = sheet[at:opened].rpartition(";")[2].strip()
        closed = sheet.find("}", opened)
        inner = sheet.find("{", opened + 1)
        if inner < 0 or closed < inner:
            at = end if closed < 0 else closed + 1
            if not selector.startswith("@"):
                yield selector, sheet[opened + 1 : end if closed < 0 else closed]
        else:
            at = _end_of_block(sheet, opened)


def _end_of_block(sheet: str, opened: int) -> int:
    depth = 0
    for brace in re.compile(r"[{}]").finditer(sheet, opened):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return brace.end()
    return len(sheet)


STRIPPED: Final = frozenset(
    (COMMENT, "annotation", "annotation-xml", "base", "datalist", "head", "link", "meta", "noframes", "noscript")
) | {"param", "rp", "script", "source", "style", "template", "title", "track"}
"""Elements of which nothing is kept. A `<template>` is, when it is a shadow root: its host is asked for it."""

INLINE: Final = frozenset(
    (
        *(
            "a",
            "abbr",
            "acronym",
            "area",
            "audio",
            "b",
            "bdi",
            "bdo",
            "big",
            "br",
            "button",
            "canvas",
            "cite",
            "code",
            "data",
        ),
        *("del", "dfn", "em", "embed", "font", "i", "img", "input", "ins", "kbd", "map", "mark", "math", "meter"),
        *("mfrac", "mi", "mn", "mo", "mover", "mpadded", "mroot", "mrow", "ms", "mspace", "msqrt", "mstyle", "msub"),
        *("msubsup", "msup", "mtext", "munder", "munderover", "nobr", "object", "output", "picture", "progress", "q"),
        *("rb", "rt", "rtc", "ruby", "s", "samp", "select", "semantics", "small", "span", "strike", "strong", "sub"),
        *("sup", "svg", "textarea", "time", "tt", "u", "var", "video", "wbr"),
    )
)
"""Elements that do not part the text before them from the text within."""

_SAYS_SO: Final = frozenset(("aria-hidden", "hidden", "style"))


class Visibility:
    """Which elements of one page are hidden."""

    __slots__ = ("_hidden", "_styles")

    def __init__(self, tree: Tree) -> None:
        sheets = ["".join(child.text for child in style.children) for style in tree.tagged("style") if _for_all(style)]
        self._hidden = read_hidden(sheets) if sheets else frozenset()
        self._styles: dict[str, bool] = {}

    @property
    def hidden(self) -> frozenset[str]:
        """What the rules of the page hide: tags among others (see `read_hidden`)."""
        return self._hidden

    @property
    def reads_classes(self) -> bool:
        """Whether a class or an id may hide an element of this page."""
        return bool(self._hidden)

    def conceals(self, element: Node) -> bool:
        """Whether a page says that an element is not for its readers: an attribute of it, its style, a rule."""
        attributes = element.attributes
        if not attributes:
            return False
        if not _SAYS_SO.isdisjoint(attributes) and self._says_so(element):
            return True
        return bool(self._hidden) and self._is_hidden_by_sheet(element)

    def hides(self, element: Node) -> bool:
        """Whether nothing of an element is to be seen."""
        tag, attributes = element.tag, element.attributes
        if tag in STRIPPED:
            return True
        if not attributes and not self._hidden:
            return tag == "svg"
        return ((tag == "img" or tag == "svg") and _is_decoration(element)) or self.withdraws(element)

    def withdraws(self, element: Node) -> bool:
        """Whether the page itself hides an element: an attribute of it, or a rule."""
        attributes = element.attributes
        if not _SAYS_SO.isdisjoint(attributes) and self._says_so(element):
            return True
        return bool(self._hidden) and self._is_hidden_by_sheet(element)

    def _says_so(self, element: Node) -> bool:
        attributes = element.attributes
        if "hidden" in attributes or attributes.get("aria-hidden", "").strip().lower() == "true":
            return True
        style = attributes.get("style")
        if not style:
            return False
        known = self._styles.get(style)
        if known is None:
            known = self._styles[style] = hides(style)
        return known

    def _is_hidden_by_sheet(self, element: Node) -> bool:
        tag, hidden = element.tag, self._hidden
        if tag in hidden:
            return True
        names = element.attributes.get("class")
        if names and any(f".{name}" in hidden or f"{tag}.{name}" in hidden for name in names.split()):
            return True
        name = element.attributes.get("id")
        return bool(name) and (f"#{name}" in hidden or f"{tag}#{name}" in hidden)


def _for_all(style: Node) -> bool:
    return style.attributes.get("media", "").strip().lower() in ("", "all", "screen")


def _is_decoration(image: Node) -> bool:
    """An image that its page calls decoration, and a drawing without a role and a name (6.1)."""
    attributes = image.attributes
    roles = attributes.get("role", "").lower().split()
    if image.tag == "img":
        return attributes.get("alt") == "" or "presentation" in roles or "none" in roles
    return "img" not in roles or not (attributes.get("aria-label") or attributes.get("title") or title_of(image))


def title_of(drawing: Node) -> str:
    """What the `<title>` of an `<svg>` says."""
    titles = (child for child in drawing.children if child.tag == "title")
    return " ".join("".join(piece.text for title in titles for piece in title.children).split())


def text_of(node: Node, visibility: Visibility, without: Node | None = None, most_nodes: int | None = None) -> str:
    """The visible text below a node, whitespace collapsed (4.6), blocks parted by a space.

    `without` is a node to pass over; after `most_nodes` nodes the rest is left out.
    """
    pieces: list[str] = []
    waiting: list[Node | None] = list(reversed(node.children))
    left = -1 if most_nodes is None else most_nodes
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
