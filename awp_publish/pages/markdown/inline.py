"""Running text: emphasis, links, images, code and controls."""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final
from urllib.parse import quote, urljoin, urlsplit

from awp_publish.pages.landmarks import is_permalink
from awp_publish.pages.markdown.controls import CONTROLS, Controls
from awp_publish.pages.markdown.escaping import code_span, collapse, escape_text
from awp_publish.pages.markdown.joining import BREAK, CLOSE, Mark, Piece, join_pieces
from awp_publish.pages.markdown.visible import BLOCKS, PREFORMATTED, VisibleNodes
from awp_publish.pages.names import AccessibleNames
from awp_publish.pages.tree import written_in

MAX_INLINE_DEPTH: Final = 60
"""Levels of nested elements; of deeper ones only the text is written."""

_EMPHASIS: Final[Mapping[str, str]] = {
    "b": "**",
    "strong": "**",
    "em": "_",
    "i": "_",
    "cite": "_",
    "dfn": "_",
    "var": "_",
    "del": "~~",
    "s": "~~",
    "strike": "~~",
}
_CODE: Final = frozenset({"code", "kbd", "samp", "tt"}) | PREFORMATTED
_SCRIPTS: Final = {
    "sup": str.maketrans("0123456789+-=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ"),
    "sub": str.maketrans("0123456789+-=()", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎"),
}
"""Digits and signs that have superscript and subscript characters."""

_PLAIN: Final = "!#$%&'*+,-./:;=?@_~[]()"
_FIT: Final = re.compile(r"[A-Za-z0-9!#$%&'*+,\-./:;=?@_~\[\]]*")
"""Characters of an address that are not changed in a link."""

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
        distinct: Mapping[int, str],
    ) -> None:
        self._base = base
        self.controls = Controls(url, visible, names, distinct, self.address)
        self._visible = visible
        self._formulas = formulas
        self.later: set[int] = set()
        """Nodes that are written elsewhere."""
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
        if _FIT.fullmatch(found):
            return found
        fit = quote(found, safe=_PLAIN)
        if fit.count("(") != fit.count(")") or ")" in fit.partition("(")[0]:
            fit = fit.replace("(", "%28").replace(")", "%29")
        return fit

    def pieces(self, node: int, depth: int = 0, linked: bool = False) -> list[Piece]:
        """Return the pieces for a node. `linked` means inside of a link, where there can be no other link."""
        tree = self._visible.tree
        tag, given = tree.tags[node], tree.attributes[node]
        if not tag:
            return [escape_text(collapse(tree.texts[node]), in_brackets=linked)]
        if self._formulas and node in self._formulas:
            return [Mark("markdown", code_span(self._formulas[node]))]
        if node in self.later or not self._visible.shows(node):
            return []
        if depth >= MAX_INLINE_DEPTH:
            return [escape_text(f" {self._visible.plain_text(node)} ", in_brackets=linked)]
        if tag not in _OWN_WRITING:
            before: list[Piece] = []
            if tag == "form" and not self.controls.read_form(node).is_button:
                before = [
                    Mark("control", f"[form: {', '.join((self.controls.target(node), *self.controls.hidden(node)))}]"),
                    " ",
                ]
            pieces = [*before, *self._inside(node, depth, linked)]
            return [BREAK, *pieces, BREAK] if tag in BLOCKS else pieces
        if tag == "a":
            if "href" in given and is_permalink(tree, node):
                return []
            address = self.address(given["href"]) if "href" in given and not linked else None
            if address is None:
                return self._inside(node, depth, linked)
            paragraphs = join_pieces(self._inside(node, depth, True))
            text = " ".join(line for lines in paragraphs for line in lines)
            if node in self.controls.distinct or not any(map(str.isalnum, text)):  # of a symbol its name says more
                text = escape_text(self.controls.name(node), True) or text
            if not text:
                return []
            # White space at the ends of a link's text goes around the link.
            held = tree.children(node)
            space = [" "] if held and tree.texts[held[0]][:1].isspace() else []
            after = [" "] if held and tree.texts[held[-1]][-1:].isspace() else []
            return [*space, link_to(text, address), *after]
        if tag == "br":
            return [BREAK]
        if tag in _EMPHASIS:
            return [Mark(_EMPHASIS[tag]), *self._inside(node, depth, linked), CLOSE]
        if tag == "img":  # without a description it is decoration, or its content is unknown
            described = given.get("alt") if "alt" in given else given.get("aria-label") or given.get("title")
            text = escape_text(collapse(described or "").strip(), in_brackets=True)
            source = given.get("src") or given.get("data-src") or ""
            address = self.address(source) if source else None
            return [Mark("markdown", f"![{text}]({address})" if address else text)] if text else []
        if tag in CONTROLS:
            control = self.controls.write(node)
            return [" ", *control, " "] if control else []
        if tag in _CODE or tag == "math":
            text = (
                self._visible.raw_text(node)
                if tag != "math"
                else given.get("alttext") or self._visible.plain_text(node)
            )
            span = code_span(text)
            return [Mark("markdown", span)] if span else []
        if tag in _SCRIPTS:
            text = written_in(tree, node) if len(tree.children(node)) == 1 else ""
            if text and _SCRIPTS[tag].keys() >= set(map(ord, text)):
                return [text.translate(_SCRIPTS[tag])]
            return self._inside(node, depth, linked)
        if tag == "q":
            return ["“", *self._inside(node, depth, linked), "”"]
        if tag == "svg":
            titles = (self._visible.plain_text(child) for child in tree.children(node) if tree.tags[child] == "title")
            label = given.get("aria-label") or (next(titles, "") if given.get("role") == "img" else "")
            return [escape_text(collapse(label), in_brackets=linked)]
        if linked or tag == "wbr":
            return []
        if tag == "iframe":
            address = self.address(given["src"]) if given.get("src") else None
            title = given.get("title") or given.get("name") or "embedded page"
        else:
            sources = (tree.attributes[child].get("src") for child in (node, *tree.children(node)))
            address = self.address(next(filter(None, sources), "about:blank"))
            title = given.get("aria-label") or given.get("title") or tag
        return [link_to(escape_text(collapse(title).strip(), True), address)] if address else []

    def _inside(self, node: int, depth: int, linked: bool) -> list[Piece]:
        tree, pieces = self._visible.tree, list[Piece]()
        if (only := self._visible.only(node)) is not None:
            return [escape_text(collapse(only), linked)]
        for child in self._visible.children(node):
            if tree.tags[child]:
                pieces += self.pieces(child, depth + 1, linked)
            else:
                pieces.append(escape_text(collapse(tree.texts[child]), linked))
        return pieces


_OWN_WRITING: Final = (
    {"a", "br", "img", "svg", "iframe", "video", "audio", "math", "q", "wbr"} | _EMPHASIS.keys() | _CODE | CONTROLS
) | _SCRIPTS.keys()
"""Elements for which `Inline.pieces` writes more than their content."""


def link_to(text: str, address: str) -> Mark:
    """Return a link (CommonMark 0.31.2, section 6.3) with a text in Markdown. Titles mostly repeat the text."""
    return Mark("markdown", f"[{text}]({address})")
