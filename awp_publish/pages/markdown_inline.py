"""Running text: emphasis, links, images, code and controls, as pieces that are joined to lines."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final
from urllib.parse import quote, urljoin, urlsplit

from awp_publish.pages.markdown_controls import CONTROLS, describe, write_control
from awp_publish.pages.markdown_kinds import BLOCKS, PREFORMATTED, Sight, children_of
from awp_publish.pages.markdown_spans import BREAK, CLOSE, Emphasis, Open, Piece, Verbatim, join_pieces
from awp_publish.pages.markdown_text import code_span, collapse, escape_text
from awp_publish.pages.tree import Node

DEEPEST: Final = 60
"""Elements inside one another; what lies deeper is given as its text alone."""

EMPHASIS: Final[Mapping[str, Emphasis]] = {
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
CODE: Final = frozenset({"code", "kbd", "samp", "tt"}) | PREFORMATTED
RAISED: Final = str.maketrans("0123456789+-=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ")
LOWERED: Final = str.maketrans("0123456789+-=()", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎")
_SCRIPTS: Final = {"sup": ("0123456789+-=()ni", RAISED), "sub": ("0123456789+-=()", LOWERED)}
_PLAIN: Final = "!#$%&'*+,-./:;=?@_~[]()"
"""Characters of an address that stay as they are in a link."""

_SCHEMES: Final = ("http:", "https:", "mailto:", "tel:", "ftp:", "sms:", "geo:")


class Inline:
    """Writes running text of one page, whose relative addresses are resolved against `base`."""

    def __init__(self, base: str, sight: Sight) -> None:
        self._base = base
        self._sight = sight
        parts = urlsplit(base)
        self._origin = f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""
        self._writers: Mapping[str, Callable[[Node, int, bool], Sequence[Piece]]] = {
            "a": self._link,
            "br": lambda node, depth, linked: (BREAK,),
            "img": self._image,
            "svg": self._picture,
            "iframe": self._frame,
            "video": self._media,
            "audio": self._media,
            "math": self._formula,
            "q": self._quotation,
            "wbr": lambda node, depth, linked: (),
            **dict.fromkeys(EMPHASIS, self._emphasis),
            **dict.fromkeys(CODE, self._code),
            **dict.fromkeys(_SCRIPTS, self._script),
            **dict.fromkeys(CONTROLS, lambda node, depth, linked: write_control(node, sight)),
        }

    def pieces(self, node: Node, depth: int = 0, linked: bool = False) -> list[Piece]:
        """The pieces that a node gives. `linked` inside of a link, where there can be no other."""
        if node.tag == "":
            return [escape_text(collapse(node.text), in_brackets=linked)]
        if not self._sight.meets(node):
            return []
        if depth >= DEEPEST:
            return [escape_text(f" {self._sight.plain_text(node)} ", in_brackets=linked)]
        writer = self._writers.get(node.tag, self._children)
        return list(writer(node, depth, linked))

    def line(self, nodes: Sequence[Node], linked: bool = False, break_with: str = " ") -> str:
        """The text of nodes on a single line."""
        pieces = [piece for node in nodes for piece in self.pieces(node, linked=linked)]
        paragraphs = join_pieces(pieces)
        return break_with.join(line for lines in paragraphs for line in lines)

    def address(self, href: str) -> str | None:
        """An absolute address, fit to stand in a link; None for what a reader cannot follow, scripts say.

        What leads to a place on the page itself stays as short as it is.
        """
        href = href.replace("\n", "").strip()
        if href.startswith("#"):
            return _fit(href)
        if href.startswith("/") and not href.startswith("//") and self._origin:
            return _fit(self._origin + href)
        try:
            found = urljoin(self._base, href)
        except ValueError:
            return None
        return _fit(found) if found.lower().startswith(_SCHEMES) else None

    # --- Elements ---

    def _children(self, node: Node, depth: int, linked: bool) -> Sequence[Piece]:
        pieces: list[Piece] = []
        for child in children_of(node):
            pieces += self.pieces(child, depth + 1, linked)
        return [BREAK, *pieces, BREAK] if node.tag in BLOCKS else pieces

    def _emphasis(self, node: Node, depth: int, linked: bool) -> Sequence[Piece]:
        return [Open(EMPHASIS[node.tag]), *self._children(node, depth, linked), CLOSE]

    def _code(self, node: Node, depth: int, linked: bool) -> Sequence[Piece]:
        span = code_span(self._sight.raw_text(node))
        return [Verbatim(span)] if span else []

    def _script(self, node: Node, depth: int, linked: bool) -> Sequence[Piece]:
        """Digits and signs have characters of their own; the rest is text."""
        text = "".join(child.text for child in node.children) if len(node.children) == 1 else ""
        known, table = _SCRIPTS[node.tag]
        if text and set(text) <= set(known):
            return [text.translate(table)]
        return self._children(node, depth, linked)

    def _quotation(self, node: Node, depth: int, linked: bool) -> Sequence[Piece]:
        return ["“", *self._children(node, depth, linked), "”"]

    def _link(self, node: Node, depth: int, linked: bool) -> Sequence[Piece]:
        href = node.attributes.get("href")
        address = self.address(href) if href is not None and not linked else None
        if address is None:
            return self._children(node, depth, linked)
        text = self.line_of_link(node, depth)
        return _around(node, write_link(text, address)) if text else []

    def line_of_link(self, node: Node, depth: int) -> str:
        """What a link is called: its text, or what those hear who do not see it."""
        paragraphs = join_pieces(self._children(node, depth, True))
        text = " ".join(line for lines in paragraphs for line in lines)
        return text or escape_text(describe(node, self._sight), True)

    def _image(self, node: Node, depth: int, linked: bool) -> Sequence[Piece]:
        """An image without a description is decoration, or nobody knows what it shows."""
        given = node.attributes
        described = given.get("alt") if "alt" in given else given.get("aria-label") or given.get("title")
        text = escape_text(collapse(described or "").strip(), in_brackets=True)
        source = given.get("src") or given.get("data-src") or ""
        address = self.address(source) if source else None
        if not text:
            return []
        return [Verbatim(f"![{text}]({address})" if address else text)]

    def _picture(self, node: Node, depth: int, linked: bool) -> Sequence[Piece]:
        titles = (self._sight.plain_text(child) for child in node.children if child.tag == "title")
        said = node.attributes.get("aria-label") or (next(titles, "") if node.attributes.get("role") == "img" else "")
        return [escape_text(collapse(said), in_brackets=linked)]

    def _frame(self, node: Node, depth: int, linked: bool) -> Sequence[Piece]:
        given = node.attributes
        address = self.address(given["src"]) if given.get("src") and not linked else None
        title = collapse(given.get("title") or given.get("name") or "embedded page").strip()
        return [Verbatim(write_link(escape_text(title, True), address))] if address else []

    def _media(self, node: Node, depth: int, linked: bool) -> Sequence[Piece]:
        sources = (child.attributes.get("src", "") for child in (node, *node.children) if child.attributes.get("src"))
        address = self.address(next(sources, "about:blank")) if not linked else None
        title = collapse(node.attributes.get("aria-label") or node.attributes.get("title") or node.tag).strip()
        return [Verbatim(write_link(escape_text(title, True), address))] if address else []

    def _formula(self, node: Node, depth: int, linked: bool) -> Sequence[Piece]:
        span = code_span(node.attributes.get("alttext") or self._sight.plain_text(node))
        return [Verbatim(span)] if span else []


def write_link(text: str, address: str) -> str:
    """A link (CommonMark 0.31.2, section 6.3); `text` is Markdown. A title would mostly say the same again."""
    return f"[{text}]({address})"


def _around(node: Node, link: str) -> Sequence[Piece]:
    """White space at the ends of a link's text is text around the link."""
    before = " " if node.children and node.children[0].text[:1].isspace() else ""
    after = " " if node.children and node.children[-1].text[-1:].isspace() else ""
    return [piece for piece in (before, Verbatim(link), after) if piece]


def _fit(address: str) -> str:
    """Characters that would end a link are percent-encoded, parentheses that do not pair as well."""
    fit = quote(address, safe=_PLAIN)
    if fit.count("(") != fit.count(")") or ")" in fit.partition("(")[0]:
        fit = fit.replace("(", "%28").replace(")", "%29")
    return fit
