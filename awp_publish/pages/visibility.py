"""What of a page is not there for a reader (SOM 1.0, section 6), and the text of what is."""

from typing import Final

from awp_publish.pages.stylesheets import hides, read_hidden
from awp_publish.pages.tree import COMMENT, Node, Tree

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
