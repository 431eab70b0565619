"""Running text: emphasis, links, images, code and controls."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Final
from urllib.parse import quote, urljoin, urlsplit

from awp_publish.pages.joints import JOINED, stands_apart
from awp_publish.pages.landmarks import is_permalink
from awp_publish.pages.markdown.controls import CONTROLS, Controls
from awp_publish.pages.markdown.escaping import code_span, collapse, escape_text, write_text
from awp_publish.pages.markdown.joining import BREAK, CLOSE, Mark, Piece, join_pieces
from awp_publish.pages.markdown.visible import BLOCKS, PREFORMATTED, SILENT, VisibleNodes
from awp_publish.pages.measures import MEASURES, measure_of
from awp_publish.pages.names import AccessibleNames
from awp_publish.pages.visibility import INLINE

MAX_INLINE_DEPTH: Final = 60
"""Levels of nested elements; of deeper ones only the text is written."""

_MAX_NEXT: Final = 10
"""Nodes among which the text after a measure is."""

_EMPHASIS: Final[Mapping[str, Mark]] = {
    **dict.fromkeys(("b", "strong"), Mark("**")),
    **dict.fromkeys(("em", "i", "cite", "dfn", "var"), Mark("_")),
    **dict.fromkeys(("del", "s", "strike"), Mark("~~")),
}
_CODE: Final = frozenset({"code", "kbd", "samp", "tt"}) | PREFORMATTED
_SCRIPTS: Final = {
    "sup": str.maketrans("0123456789+-=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ"),
    "sub": str.maketrans("0123456789+-=()", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎"),
}
"""Digits and signs that have superscript and subscript characters."""

_SCRIPT: Final = re.compile("\\s*javascript:", re.IGNORECASE)
"""The address of a link that acts as a button."""

_PLAIN: Final = "!#$%&'*+,-./:;=?@_~[]()"
_FIT: Final = re.compile(r"[A-Za-z0-9!#$%&'*+,\-./:;=?@_~\[\]()]*")
"""Characters of an address that are not changed in a link."""

_SOURCES: Final = ("src", "data-src", "data-lazy-src", "data-original")
"""Attributes that have the address of an image, also before a script has loaded it."""

_OWN_NAMES: Final = frozenset(("aria-label", "aria-labelledby"))
_STATED: Final = frozenset(("aria-current", "aria-disabled", "aria-expanded", "aria-pressed", "aria-selected", "inert"))
_SCHEMES: Final = ("http:", "https:", "mailto:", "tel:", "ftp:", "sms:", "geo:")


class Inline:
    """Writes running text of one page at `url`, whose relative addresses are resolved against `base`."""

    def __init__(
        self,
        url: str,
        base: str,
        visible: VisibleNodes,
        formulas: Mapping[int, str],
        names: AccessibleNames,
    ) -> None:
        self._base = base
        self.controls = Controls(url, visible, names, self.address)
        self._visible = visible
        self._formulas = formulas
        self.later: set[int] = set()
        """Nodes that are written elsewhere."""
        self._blocks = names.blocks
        self._noted = self._visible.visibility.withdrawn | self._formulas.keys() | names.blocks
        self._noted |= self.controls.widgets.keys() | self.controls.pictures.keys()
        self._noted |= self.controls.merged.keys()
        self._origin = ""
        with suppress(ValueError):
            parts = urlsplit(base)
            self._origin = f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""

    def line(self, nodes: Iterable[int], linked: bool = False, break_with: str = " ") -> str:
        """Return the text of nodes on a single line."""
        pieces = [piece for node in nodes for piece in self.pieces(node, linked=linked)]
        return break_with.join(line for lines in join_pieces(pieces) for line in lines)

    def address(self, href: str) -> str | None:
        """Return an absolute address, encoded for a link; None for one that readers cannot follow, such as a script.

        A link to a place on the page itself stays a fragment.
        """
        href = href.replace("\n", "").strip()
        if href.startswith("#"):
            found = href
        elif href.startswith("/") and not href.startswith("//") and self._origin:
            found = self._origin + href
        elif href.startswith("https://"):
            found = href
        else:
            try:
                found = urljoin(self._base, href)
            except ValueError:
                return None
            if not found.lower().startswith(_SCHEMES):
                return None
        # Characters that would end a link are percent-encoded, and so are parentheses that do not pair.
        fit = found if _FIT.fullmatch(found) else quote(found, safe=_PLAIN)
        if fit.count("(") != fit.count(")") or ")" in fit.partition("(")[0]:
            fit = fit.replace("(", "%28").replace(")", "%29")
        return fit

    def pieces(self, node: int, linked: bool = False) -> list[Piece]:
        """Return the pieces for a node. `linked` means inside of a link, where there can be no other link."""
        pieces: list[Piece] = []
        if self._visible.tags[node]:
            self._add(node, pieces, 0, linked)
        else:
            pieces.append(write_text(self._visible.tree.texts[node], linked))
        return pieces

    def _add(self, node: int, pieces: list[Piece], depth: int, linked: bool) -> None:
        """Add the pieces for an element."""
        tree = self._visible.tree
        tag, attributes = tree.tags[node], tree.attributes[node]
        if node in self._blocks or (tag in JOINED and stands_apart(tree, node)):
            pieces.append(" ")
        if self._formulas and node in self._formulas:
            pieces.append(Mark("markdown", code_span(self._formulas[node])))
        elif node in self.later or not self._visible.shows(node):
            pass
        elif depth >= MAX_INLINE_DEPTH:
            pieces.append(escape_text(f" {self._visible.plain_text(node)} ", in_brackets=linked))
        elif node in self.controls.widgets:
            pieces += (" ", *self.controls.write_widget(node), " ")
        elif node in self.controls.merged:
            if (box := self.controls.merged[node]) >= 0 and self._visible.shows(box):
                pieces += (" ", *self.controls.write(box), " ")
        elif node in self.controls.pictures:
            pieces += (" ", escape_text(self.controls.pictures[node], in_brackets=linked), " ")
        elif tag not in _OWN_WRITING:
            is_block = tag in BLOCKS
            if is_block:
                pieces.append(BREAK)
            if tag == "form" and not self.controls.read_form(node).is_button:
                facts = self.controls.target(node), *self.controls.hidden(node)
                pieces += (Mark("control", f"[form: {', '.join(facts)}]"), " ")
            self._add_content(node, pieces, depth, linked)
            if is_block:
                pieces.append(BREAK)
        elif tag == "a":
            self._add_link(node, pieces, depth, linked)
        elif tag == "br":
            pieces.append(BREAK)
        elif tag in _EMPHASIS:
            pieces.append(_EMPHASIS[tag])
            self._add_content(node, pieces, depth, linked)
            pieces.append(CLOSE)
        elif tag in CONTROLS:
            if control := self.controls.write(node):
                pieces += (" ", *control, " ")
        elif tag == "rt":  # what browsers write above the text
            pieces.append("(")
            self._add_content(node, pieces, depth, linked)
            pieces.append(")")
        elif tag == "q":
            pieces.append("“")
            self._add_content(node, pieces, depth, linked)
            pieces.append("”")
        elif tag in _SCRIPTS:
            text = tree.only(node) or ""
            if text and _SCRIPTS[tag].keys() >= set(map(ord, text)):
                pieces.append(text.translate(_SCRIPTS[tag]))
            else:
                self._add_content(node, pieces, depth, linked)
        elif tag == "svg":
            titles = (self._visible.plain_text(child) for child in tree.children(node) if tree.tags[child] == "title")
            label = attributes.get("aria-label") or (next(titles, "") if attributes.get("role") == "img" else "")
            pieces.append(escape_text(collapse(label), in_brackets=linked))
        elif text := self._embedded(node, tag, linked):
            pieces += (" ", Mark("markdown", text)) if tag in MEASURES else (Mark("markdown", text),)
            if tag in MEASURES and self._begins_word(tree.ends[node]):
                pieces.append(" ")
        if node in self._blocks:
            pieces.append(" ")

    def _begins_word(self, at: int) -> bool:
        """Return True if the next text begins with a letter or a digit."""
        following = next(filter(None, self._visible.tree.texts[at : at + _MAX_NEXT]), "")
        return following[:1].isalnum()

    def _add_content(self, node: int, pieces: list[Piece], depth: int, linked: bool) -> None:
        """Add the pieces for what is in an element; elements that mean nothing are entered like the element itself."""
        tree = self._visible.tree
        tags, texts, ends = tree.tags, tree.texts, tree.ends
        if tree.contents:  # with slots, the order is another
            for child in self._visible.children(node):
                if tags[child]:
                    self._add(child, pieces, depth + 1, linked)
                else:
                    pieces.append(write_text(texts[child], linked))
            return
        at, end = node + 1, ends[node]
        while at < end:
            tag = tags[at]
            if not tag:
                pieces.append(write_text(texts[at], linked))
                at += 1
            elif tag in _MEANINGLESS and at not in self._noted and at not in self.later:
                if tag in JOINED and stands_apart(tree, at):
                    pieces.append(" ")
                at += 1
            else:
                self._add(at, pieces, depth + 1, linked)
                at = ends[at]

    def _add_link(self, link: int, pieces: list[Piece], depth: int, linked: bool) -> None:
        tree, attributes = self._visible.tree, self._visible.attributes[link]
        if "href" in attributes and is_permalink(tree, link):
            return
        address = self.address(attributes["href"]) if "href" in attributes and not linked else None
        if address is None:
            if not linked and _SCRIPT.match(attributes.get("href", "")) and (name := self.controls.name(link)):
                pieces += (" ", Mark("control", f"[button: {escape_text(name, in_brackets=True)}]"), " ")
            else:
                self._add_content(link, pieces, depth, linked)
            return
        only = self._visible.only(link)
        if only is not None:
            text = write_text(only, True).strip(" ")
        else:
            inner: list[Piece] = []
            self._add_content(link, inner, depth, True)
            text = " ".join([line for lines in join_pieces(inner) for line in lines])
        if (
            self.named_as_control(link) or link in self.controls.distinct or not any(map(str.isalnum, text))
        ):  # or the text is a symbol
            text = escape_text(self.controls.name(link), True) or text
        elif name := self.beside_pictures(link):
            text = f"{escape_text(name, True)} {text}"
        if not text:
            return
        if not _STATED.isdisjoint(attributes):
            text += self.controls.states(link)
        # White space at the ends of a link's text goes around the link.
        children = [link + 1] if only is not None else tree.children(link)
        if children and tree.texts[children[0]][:1].isspace():
            pieces.append(" ")
        pieces.append(link_to(text, address))
        if children and tree.texts[children[-1]][-1:].isspace():
            pieces.append(" ")

    def named_as_control(self, link: int) -> str:
        """Return the name of a link with a role and a label: "Add to cart: Tent", where its text is "Add to cart"."""
        attributes = self._visible.attributes[link]
        return self.controls.name(link) if "role" in attributes and "aria-label" in attributes else ""

    def beside_pictures(self, link: int) -> str:
        """Return the name of a link that has pictures and no text, if nothing else says it; or ""."""
        attributes = self._visible.attributes[link]
        if _OWN_NAMES.isdisjoint(attributes) or self._leading[attributes["href"]] > 1:
            return ""
        texts = (self._visible.tree.texts[at] for at in self._visible.walk(link))
        if any(any(map(str.isalnum, text)) for text in texts):
            return ""
        name = self.controls.name(link)
        return "" if name.lower() in self._visible.plain_text(link).lower() or name == attributes["href"] else name

    @cached_property
    def _leading(self) -> Counter[str]:
        """The number of links that lead to each address."""
        return Counter(self._visible.attributes[at].get("href", "") for at in self._visible.tree.find("a"))

    def _embedded(self, node: int, tag: str, linked: bool) -> str:
        """Return an image, code, a formula or a link to what is embedded, as Markdown; "" if it says nothing."""
        tree, attributes = self._visible.tree, self._visible.attributes[node]
        if tag == "img":  # without a description it is decoration, or its content is unknown
            described = attributes.get("aria-label") or attributes.get("title")
            described = attributes.get("alt", described)
            text = escape_text(collapse(described or "").strip(), in_brackets=True)
            if not text:
                return ""
            of_image = [self.address(attributes[name]) for name in _SOURCES if attributes.get(name)]
            image = next(filter(None, of_image), "")
            is_text = not of_image or (linked and not image)  # nothing to look at, or the name of its link
            return text if is_text else f"![{text}]({image})"
        if tag in _CODE:
            return code_span(self._visible.raw_text(node))
        if tag in MEASURES:
            return escape_text(measure_of(attributes), in_brackets=linked)
        if tag == "math":
            return code_span(attributes.get("alttext") or self._visible.plain_text(node))
        if linked or tag == "wbr":
            return ""
        if tag == "iframe":
            address = self.address(attributes["src"]) if attributes.get("src") else None
            title = attributes.get("title") or attributes.get("name") or "embedded page"
        else:
            sources = (tree.attributes[child].get("src") for child in (node, *tree.children(node)))
            address = self.address(next(filter(None, sources), "about:blank"))
            title = attributes.get("aria-label") or attributes.get("title") or tag
        return link_to(escape_text(collapse(title).strip(), True), address).text if address else ""


_OWN_WRITING: Final = (
    {"a", "audio", "br", "iframe", "img", "math", "q", "rt", "svg", "video", "wbr"}
    | _EMPHASIS.keys()
    | _CODE
    | CONTROLS
    | _SCRIPTS.keys()
    | MEASURES
)
"""Elements of which more than their content is written."""

_MEANINGLESS: Final = INLINE - _OWN_WRITING - BLOCKS - SILENT
"""Elements that are written as what is in them."""


def link_to(text: str, address: str) -> Mark:
    """Return a link (CommonMark 0.31.2, section 6.3) with a text in Markdown. Titles mostly repeat the text."""
    return Mark("markdown", f"[{text}]({address})")
