"""Running text: emphasis, links, images, code and controls, as pieces that are joined to lines."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final, Literal, TypeAlias
from urllib.parse import quote, urljoin, urlsplit

from awp_publish.pages.tree import Node, Template, Tree
from awp_publish.pages.visibility import STRIPPED, Visibility

# --- What the elements of a page are to Markdown ---

HEADINGS: Final[Mapping[str, int]] = {f"h{level}": level for level in range(1, 7)}
LISTS: Final = frozenset({"ul", "ol", "menu", "dir"})
SILENT: Final = STRIPPED - {"template"} | {"area"}
"""Elements of which nothing is seen. What a template holds is, if it is a shadow root."""

_BLOCKS: Final = (
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure "
    "footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr html legend li listing main menu nav ol p "
    "plaintext pre search section summary table tbody td tfoot th thead tr ul xmp dir"
)
BLOCKS: Final = frozenset(_BLOCKS.split())
"""Elements that begin a block of their own (HTML Standard, section 15.3), and what tables are made of."""

PREFORMATTED: Final = frozenset({"pre", "listing", "plaintext", "xmp"})


def children_of(node: Node) -> Iterable[Node]:
    """What is seen inside of an element: of a declarative shadow root, what it holds."""
    if isinstance(node, Template):
        return node.content if node.shadow_mode else ()
    return node.children


def holders_of_blocks(tree: Tree) -> frozenset[int]:
    """Ids of the objects of elements that are no blocks and hold some: a link around a heading, say. In linear time."""
    found: set[int] = set()
    for node in tree.walk():
        if node.tag not in BLOCKS:
            continue
        above = node.parent
        while above is not None and above.tag not in BLOCKS and id(above) not in found:
            found.add(id(above))
            above = above.parent
    return frozenset(found)


class Sight:
    """What a reader of one page meets, as far as the page itself says."""

    __slots__ = ("_visibility",)

    def __init__(self, tree: Tree) -> None:
        self._visibility = Visibility(tree)

    def meets(self, node: Node) -> bool:
        """Whether an element is met where what is around it is."""
        if node.tag in SILENT or (node.tag == "dialog" and "open" not in node.attributes):
            return False
        return not node.attributes or not self._visibility.withdraws(node)

    def reaches(self, node: Node) -> bool:
        """Whether an element is met, and all that is around it in the body."""
        above: Node | None = node
        while above is not None and above.tag != "body":
            if not self.meets(above):
                return False
            above = above.parent
        return True

    def elements_in(self, node: Node) -> Iterator[Node]:
        """The elements that are met directly inside of one."""
        return (child for child in children_of(node) if child.tag and self.meets(child))

    def walk(self, top: Node) -> Iterator[Node]:
        """Everything that is met below a node, in document order, however deep it lies."""
        waiting = list(reversed(list(children_of(top))))
        while waiting:
            node = waiting.pop()
            if node.tag == "":
                yield node
            elif self.meets(node):
                yield node
                waiting.extend(reversed(list(children_of(node))))

    def plain_text(self, top: Node) -> str:
        """The text below a node on one line, blocks apart."""
        parts: list[str] = []
        for node in self.walk(top):
            if node.tag == "":
                parts.append(node.text)
            elif node.tag in BLOCKS or node.tag == "br":
                parts.append(" ")
            elif node.tag == "img":
                parts.append(node.attributes.get("alt", ""))
        return " ".join("".join(parts).split())

    def raw_text(self, top: Node) -> str:
        """The text below a node as it is written, for code."""
        return "".join("\n" if node.tag == "br" else node.text for node in self.walk(top))


# --- Text as Markdown: what would mean something there is escaped ---
# References are to CommonMark 0.31.2. Text is escaped no more than it has to be, because people and models read it
# raw.

SPACES: Final = re.compile("[ \\t\\n\\f\\r\xa0]+")
_UNSEEN: Final = str.maketrans(dict.fromkeys("\xad\u200b\u2060\ufeff", None) | {"\x00": "\ufffd"})
"""Soft hyphens and what has no width: layout, not text."""

_SPECIAL: Final = re.compile(
    r"""[`~]|\\(?=[!-/:-@\[-`{-~]|\ ?$)"""
    r"""|\*(?!\ )|(?<!\ )\*"""
    r"""|(?<![^\W_])_|_(?![^\W_])"""  # within a word it means nothing (section 6.2, rules 3 and 4)
    r"""|<(?=[A-Za-z/!?]|$)"""
    r"""|&(?=\#|[A-Za-z][A-Za-z0-9]*(?:;|$)|$)"""
    r"""|\](?=[(\[:])"""
    r"""|(?<!\S)\[(?=[ xX]\](?!\S))"""  # the box of a task
)
_BRACKETS: Final = re.compile(r"[\[\]]")

_LINE_START: Final = re.compile(r"\#{1,6}(?= |$)|[-+*](?= |$)|>|[=-]+ *$|[|:-](?=[|: -]*$)")
_NUMBER: Final = re.compile(r"(\d{1,9})([.)])(?= |$)")


def collapse(text: str) -> str:
    """White space as HTML shows it."""
    return SPACES.sub(" ", text.translate(_UNSEEN))


def escape_text(text: str, in_brackets: bool = False) -> str:
    """A piece of running text. `in_brackets`, as in the text of a link, brackets have to be escaped as well."""
    escaped = _SPECIAL.sub(r"\\\g<0>", text)
    return _BRACKETS.sub(_escape_once, escaped) if in_brackets else escaped


def _escape_once(bracket: re.Match[str]) -> str:
    at = first = bracket.start()
    while first and bracket.string[first - 1] == "\\":
        first -= 1
    return bracket[0] if (at - first) % 2 else "\\" + bracket[0]


def escape_line(line: str) -> str:
    """A line of a paragraph, so that it begins no heading, list, quotation, rule or table (chapters 4 and 5)."""
    if found := _NUMBER.match(line):
        return f"{found[1]}\\{found[2]}{line[found.end() :]}"
    return "\\" + line if _LINE_START.match(line) else line


def code_span(text: str) -> str:
    """Text as code: fenced by more backticks than it has in a row (section 6.1)."""
    text = collapse(text).strip()
    if not text:
        return ""
    fence = "`" * (longest_run(text) + 1)
    pad = " " if text[0] == "`" or text[-1] == "`" else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def longest_run(text: str) -> int:
    """How many backticks follow one another at most."""
    return max((len(run) for run in re.findall("`+", text)), default=0)


# --- Pieces of running text, joined to lines ---
# Delimiters that would be read as text (CommonMark 0.31.2, section 6.2) are left out: the words are worth more than
# their weight.

Emphasis: TypeAlias = Literal["**", "_", "~~"]


@dataclass(frozen=True, slots=True)
class Open:
    """Emphasis begins."""

    kind: Emphasis


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Markdown that is finished: a link, an image, code. A control ends in a bracket that is no link's."""

    text: str
    is_control: bool = False


class _Sign:
    """A piece without text."""


CLOSE: Final = _Sign()
BREAK: Final = _Sign()
Piece: TypeAlias = str | Open | Verbatim | _Sign


def join_pieces(pieces: Iterable[Piece]) -> list[list[str]]:
    """The paragraphs, each a list of lines, that pieces of text make; two breaks in a row end a paragraph."""
    assembly = _Assembly()
    for piece in pieces:
        assembly.add(piece)
    paragraphs: list[list[str]] = [[]]
    for line in assembly.lines():
        if line:
            paragraphs[-1].append(line)
        elif paragraphs[-1]:
            paragraphs.append([])
    return [lines for lines in paragraphs if lines]


@dataclass(slots=True, eq=False)
class _Span:
    """Emphasis on one line. `opens` and `closes` are places in the line, `delimiter` is empty when it is left out."""

    kind: Emphasis
    delimiter: str
    opens: int
    closes: int = -1


class _Assembly:
    """White space moves out of emphasis, emphasis without text goes, and like emphasis that touches becomes one."""

    def __init__(self) -> None:
        self._lines: list[tuple[list[str], list[_Span]]] = [([], [])]
        self._open: list[tuple[Emphasis, _Span | None]] = []
        self._closed: list[_Span] = []
        self._waits = False
        self._has_space = False

    def add(self, piece: Piece) -> None:
        if isinstance(piece, str):
            self._add_text(piece)
        elif isinstance(piece, Verbatim):
            self._put(piece.text, piece.is_control)
        elif isinstance(piece, Open):
            self._open.append((piece.kind, None))
            self._waits = True
        elif piece is CLOSE:
            self._close(self._open.pop()[1])
        else:
            self._break()

    def lines(self) -> list[str]:
        return [_join_line(parts, spans) for parts, spans in self._lines]

    def _add_text(self, text: str) -> None:
        inner = text.strip(" ")
        self._has_space = self._has_space or text.startswith(" ")
        if inner:
            self._put(inner)
            self._has_space = text.endswith(" ")

    def _put(self, text: str, is_control: bool = False) -> None:
        parts, spans = self._lines[-1]
        if self._has_space and parts:
            parts.append(" ")
        self._has_space = False
        if self._waits:
            self._waits = False
            for number, (kind, span) in enumerate(self._open):
                if span is None:
                    self._open[number] = kind, self._begin(parts, spans, kind, self._open[:number])
        self._closed = []
        _append(parts, text)
        if is_control:
            parts.append(_END_OF_CONTROL)

    def _begin(
        self, parts: list[str], spans: list[_Span], kind: Emphasis, around: Iterable[tuple[Emphasis, _Span | None]]
    ) -> _Span | None:
        """A span, the one before if it is of the same kind and ends here, none within one of the same kind."""
        if any(span is not None and span.kind == kind and span.closes < 0 for _, span in around):
            return None
        before = self._closed[-1] if self._closed else None
        if before is not None and before.kind == kind and before.closes == len(parts) - 1:
            self._closed.pop()
            parts.pop()
            before.closes = -1
            return before
        span = _Span(kind, kind, len(parts))
        parts.append("")
        spans.append(span)
        return span

    def _close(self, span: _Span | None) -> None:
        if span is not None and span.closes < 0:
            parts = self._lines[-1][0]
            span.closes = len(parts)
            parts.append("")
            self._closed.append(span)

    def _break(self) -> None:
        for _, span in reversed(self._open):
            self._close(span)
        self._open = [(kind, None) for kind, _ in self._open]
        self._waits = bool(self._open)
        self._lines.append(([], []))
        self._closed = []
        self._has_space = False


_END_OF_CONTROL: Final = "\N{ZERO WIDTH NO-BREAK SPACE}"
"""A sign between parts, of which text has none; it is taken out again."""


def _append(parts: list[str], text: str) -> None:
    """Add text so that together with what stands before it means nothing new."""
    last = parts[-1] if parts else ""
    if last == _END_OF_CONTROL:
        parts[-1] = " " if text[0] in "([:" else ""
    elif last.endswith("]") and text[0] in "(:":
        text = "\\" + text
    elif last.endswith("`") and text[0] == "`" and not last.endswith("\\`"):
        parts.append(" ")  # or the fences of both would be one
    elif last.endswith("!") and text[0] == "[":
        parts[-1] = last[:-1] + "\\!"
    parts.append(text)


# --- Where delimiters count ----------------------------------------------------------------------------------------


def _join_line(parts: list[str], spans: list[_Span]) -> str:
    for number, part in enumerate(parts):
        if part == _END_OF_CONTROL:
            parts[number] = ""
    for _ in range(_ROUNDS):
        _write(parts, spans)
        wrong = [span for span in spans if span.delimiter and not _counts(parts, span)]
        if not wrong:
            break
        for span in wrong:
            span.delimiter = ""
    else:
        for span in spans:
            span.delimiter = ""
        _write(parts, spans)
    return "".join(_kept_apart(parts)).strip(" ")


def _kept_apart(parts: Iterable[str]) -> Iterator[str]:
    """What stood apart by a delimiter that was left out, and would mean something else together."""
    last = ""
    for part in filter(None, parts):
        if last[-1:] + part[0] in ("``", "![") and last[-2:-1] != "\\":
            yield " "
        elif last[-1:] + part[0] in ("](", "]:"):
            yield "\\"
        yield part
        last = part


_ROUNDS: Final = 3
"""Leaving out one delimiter may spoil another. After so many rounds all go."""


def _write(parts: list[str], spans: list[_Span]) -> None:
    for span in spans:
        parts[span.opens] = parts[span.closes] = span.delimiter


def _counts(parts: list[str], span: _Span) -> bool:
    """Whether both delimiters are seen. An underscore within a word is not, there a star has to stand."""
    before, first = _character(parts, span.opens, -1), _character(parts, span.opens, 1)
    last, after = _character(parts, span.closes, -1), _character(parts, span.closes, 1)
    if not (_flanks(first, before) and _flanks(last, after)):
        return False
    if span.kind == "_" and span.delimiter == "_" and (before.isalnum() or after.isalnum()):
        span.delimiter = parts[span.opens] = parts[span.closes] = "*"
    return span.delimiter != "*" or "*" not in (before, first, last, after)


def _flanks(inside: str, outside: str) -> bool:
    """Whether a delimiter run is left-flanking, or from the other side right-flanking (section 6.2)."""
    return inside != " " and (not _is_punctuation(inside) or outside == " " or _is_punctuation(outside))


def _character(parts: list[str], place: int, step: int) -> str:
    """The nearest character before or after a place; a space at the ends of the line."""
    place += step
    while 0 <= place < len(parts):
        if parts[place]:
            return parts[place][0 if step > 0 else -1]
        place += step
    return " "


@lru_cache(maxsize=1024)
def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


# --- Controls of forms as a reader is told of them: what kind, under which name, and what is in them ---

MOST_OPTIONS: Final = 40
"""Options of a choice that are listed."""

MOST_LOOKS: Final = 100
"""Within a link or a button without text, so many nodes are asked for a name."""

_BUTTONS: Final = frozenset({"submit", "button", "reset", "image"})
_DEFAULTS: Final = {"submit": "Submit", "reset": "Reset"}
"""What browsers write on buttons that say nothing (HTML Standard, section 4.10.5.1.18)."""


def write_control(node: Node, sight: Sight) -> Sequence[Piece]:
    """The pieces for a control, none for a hidden one."""
    pieces = CONTROLS[node.tag](node, sight)
    return (" ", *pieces, " ") if pieces else ()


def _input(node: Node, sight: Sight) -> Sequence[Piece]:
    kind = (node.attributes.get("type") or "text").strip().lower()
    if kind == "hidden":
        return ()
    if kind in _BUTTONS:
        return _input_button(node, kind)
    if kind in ("checkbox", "radio"):
        return _tick(node, kind)
    return [_told(f"{kind} field" if kind != "file" else "file", node, _quoted(node.attributes.get("value", "")))]


def _input_button(node: Node, kind: str) -> Sequence[Piece]:
    given = node.attributes
    said = given.get("alt") if kind == "image" else given.get("value")
    said = said or given.get("aria-label") or given.get("title") or _DEFAULTS.get(kind, "")
    return _button_called(said, node)


def _tick(node: Node, kind: str) -> Sequence[Piece]:
    is_on = "checked" in node.attributes
    sign = ("[x]" if is_on else "[ ]") if kind == "checkbox" else ("(x)" if is_on else "( )")
    label = collapse(node.attributes.get("aria-label", "")).strip()
    return [" ", Verbatim(sign, is_control=kind == "checkbox"), f" {escape_text(label)} " if label else " "]


def _button(node: Node, sight: Sight) -> Sequence[Piece]:
    return _button_called(sight.plain_text(node) or describe(node, sight), node)


def _button_called(said: str, node: Node) -> Sequence[Piece]:
    off = " (disabled)" if "disabled" in node.attributes else ""
    text = escape_text(collapse(said).strip(), in_brackets=True)
    return [Verbatim(f"[button: {text}{off}]" if text else f"[button{off}]", is_control=True)]


def _textarea(node: Node, sight: Sight) -> Sequence[Piece]:
    return [_told("text area", node, _quoted(sight.plain_text(node)))]


def _select(node: Node, sight: Sight) -> Sequence[Piece]:
    options = [one for one in sight.walk(node) if one.tag == "option"]
    chosen = {id(one) for one in options if "selected" in one.attributes}
    if not chosen and options and "multiple" not in node.attributes:
        chosen = {id(options[0])}
    listed = [_option(one, sight, id(one) in chosen) for one in options[:MOST_OPTIONS]]
    if len(options) > MOST_OPTIONS:
        listed.append(f"and {len(options) - MOST_OPTIONS} more")
    kind = "choice of several" if "multiple" in node.attributes else "choice"
    return [_told(kind, node, ", ".join(one for one in listed if one))]


def _option(node: Node, sight: Sight, is_chosen: bool) -> str:
    text = escape_text(collapse(node.attributes.get("label") or sight.plain_text(node)).strip(), in_brackets=True)
    return f"{text} (selected)" if text and is_chosen else text


def _told(kind: str, node: Node, content: str) -> Verbatim:
    given = node.attributes
    name = code_span(given.get("name", ""))
    label = collapse(given.get("aria-label") or given.get("placeholder") or "").strip()
    facts = (
        f"{escape_text(kind, in_brackets=True)} {name}".strip(),
        f"“{escape_text(label, in_brackets=True)}”" if label else "",
        "required" if "required" in given else "",
        "disabled" if "disabled" in given else "",
    )
    told = ", ".join(fact for fact in facts if fact)
    return Verbatim(f"[{told}: {content}]" if content else f"[{told}]", is_control=True)


def _quoted(value: str) -> str:
    text = escape_text(collapse(value).strip(), in_brackets=True)
    return f"“{text}”" if text else ""


def describe(node: Node, sight: Sight) -> str:
    """The name of a button or a link that shows a picture only: its own, or the first one within."""
    names = (_name_of(one, sight) for one in (node, *islice(sight.walk(node), MOST_LOOKS)) if one.tag)
    return next((name for name in names if name), "")


def _name_of(node: Node, sight: Sight) -> str:
    given = node.attributes
    if said := collapse(given.get("aria-label") or given.get("title") or "").strip():
        return said
    is_picture = node.tag == "svg"
    titles = (sight.plain_text(child) for child in node.children if child.tag == "title") if is_picture else ()
    return next(iter(titles), "")


CONTROLS: Final[Mapping[str, Callable[[Node, Sight], Sequence[Piece]]]] = {
    "input": _input,
    "button": _button,
    "textarea": _textarea,
    "select": _select,
}


MAX_INLINE_DEPTH: Final = 60
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
        if depth >= MAX_INLINE_DEPTH:
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
