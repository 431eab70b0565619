"""A page as Markdown (CommonMark 0.31.2 with GFM's tables, task lists and strikethrough) for people and models.

Everything visible in the page is included, in its order, also the fields of forms. Addresses are absolute, so that the
text stands alone. The page's title becomes the first heading unless the page has one of that level. Every HTML has a
Markdown, made in time and size proportional to it: deep nesting is flattened where it no longer matters to a reader.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final, TypeAlias
from urllib.parse import quote, urljoin, urlsplit

from awp_publish.pages.content import MainContent, find_content
from awp_publish.pages.elements import base_of, form_method
from awp_publish.pages.paging import find_paging
from awp_publish.pages.regions import FormFields, is_layout, is_permalink, is_secret, read_form
from awp_publish.pages.selectolax import parse
from awp_publish.pages.tree import STRIPPED, Tree, Visibility, read_formulas, read_title, shadow_mode_of, written_in

# --- Elements of a page, from the point of view of Markdown ---

HEADINGS: Final[Mapping[str, int]] = {f"h{level}": level for level in range(1, 7)}
LISTS: Final = frozenset({"ul", "ol", "menu", "dir"})
SILENT: Final = STRIPPED - {"template"} | {"area"}
"""Elements without visible content. A template has some if it is a shadow root."""

_BLOCKS: Final = (
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure "
    "footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr html legend li listing main menu nav ol p "
    "plaintext pre search section summary table tbody td tfoot th thead tr ul xmp dir"
)
BLOCKS: Final = frozenset(_BLOCKS.split())
"""Elements that begin a block of their own (HTML Standard, section 15.3), and the parts of tables."""

PREFORMATTED: Final = frozenset({"pre", "listing", "plaintext", "xmp"})


class VisibleNodes:
    """The visible nodes of one page, as far as the page itself determines that, by their numbers in the tree."""

    __slots__ = ("attributes", "tags", "tree", "visibility")

    def __init__(self, tree: Tree) -> None:
        self.tree, self.visibility = tree, Visibility(tree)
        self.tags, self.attributes = tree.tags, tree.attributes

    def children(self, node: int) -> Sequence[int]:
        """Return the children of an element, or the content of a template that is a declarative shadow root."""
        if self.tags[node] == "template":
            return self.tree.content(node) if shadow_mode_of(self.attributes[node]) else ()
        return self.tree.children(node)

    def shows(self, node: int) -> bool:
        """Return True if an element is visible, provided that its parent is."""
        tag, given = self.tags[node], self.attributes[node]
        if tag in SILENT or (tag == "dialog" and "open" not in given):
            return False
        return not self.visibility.withdraws(node)

    def elements_in(self, node: int) -> Iterator[int]:
        """Yield the visible elements directly inside of one."""
        return (child for child in self.children(node) if self.tags[child] and self.shows(child))

    def walk(self, top: int) -> Iterator[int]:
        """Yield everything visible below a node in document order, at any depth."""
        waiting = list(reversed(self.children(top)))
        while waiting:
            node = waiting.pop()
            if not self.tags[node]:
                yield node
            elif self.shows(node):
                yield node
                waiting.extend(reversed(self.children(node)))

    def plain_text(self, top: int) -> str:
        """Return the text below a node on one line, with blocks separated."""
        parts: list[str] = []
        for node in self.walk(top):
            tag = self.tags[node]
            if not tag:
                parts.append(self.tree.texts[node])
            elif tag in BLOCKS or tag == "br":
                parts.append(" ")
            elif tag == "img":
                parts.append(self.attributes[node].get("alt", ""))
        return " ".join("".join(parts).split())

    def raw_text(self, top: int) -> str:
        """Return the text below a node unchanged, for code."""
        return "".join("\n" if self.tags[node] == "br" else self.tree.texts[node] for node in self.walk(top))

    def around(self, node: int) -> Iterator[int]:
        """Yield the ancestors of a node, innermost first."""
        above = self.tree.parents[node]
        while above >= 0:
            yield above
            above = self.tree.parents[above]


# --- Text as Markdown: escaping characters that are markup ---
# References are to CommonMark 0.31.2. No more than necessary is escaped, because people and models read the source.

_SPACES: Final = re.compile("[ \\t\\n\\f\\r\xa0]+")
_UNSEEN: Final = str.maketrans(dict.fromkeys("\xad\u200b\u2060\ufeff", None) | {"\x00": "\ufffd"})
"""Soft hyphens and characters without width, which are layout and not text."""

_UNUSUAL: Final = re.compile("[\x00\t\f\r\xa0\xad\u200b\u2060\ufeff]|[ \n][ \n]")

_SPECIAL: Final = re.compile(
    r"""[`~]|\\(?=[!-/:-@\[-`{-~]|\ ?$)"""
    r"""|\*(?!\ )|(?<!\ )\*"""
    r"""|(?<![^\W_])_|_(?![^\W_])"""  # not within a word, where it is text (section 6.2, rules 3 and 4)
    r"""|<(?=[A-Za-z/!?]|$)"""
    r"""|&(?=\#|[A-Za-z][A-Za-z0-9]*(?:;|$)|$)"""
    r"""|\](?=[(\[:])"""
    r"""|(?<!\S)\[(?=[ xX]\](?!\S))"""  # the box of a task
)
_MAY_BE_SPECIAL: Final = re.compile(r"[`~\\*_<&\[\]]")
_BRACKETS: Final = re.compile(r"(?<!\\)\\*+[\[\]]")
"""A bracket with the backslashes before it; an odd number of them escapes it already."""


_LINE_START: Final = re.compile(r"\#{1,6}(?= |$)|[-+*](?= |$)|>|[=-]+ *$|[|:-](?=[|: -]*$)")
_NUMBER: Final = re.compile(r"(\d{1,9})([.)])(?= |$)")


def collapse(text: str) -> str:
    """Return a text with white space collapsed as HTML does."""
    if _UNUSUAL.search(text) is None:  # as most texts are
        return text.replace("\n", " ")
    return _SPACES.sub(" ", text.translate(_UNSEEN))


def escape_text(text: str, in_brackets: bool = False) -> str:
    """Escape running text. `in_brackets`, as in the text of a link, brackets are escaped as well."""
    if _MAY_BE_SPECIAL.search(text) is None:
        return text
    escaped = _SPECIAL.sub(r"\\\g<0>", text)
    if not in_brackets:
        return escaped
    return _BRACKETS.sub(lambda found: found[0] if len(found[0]) % 2 == 0 else "\\" + found[0], escaped)


def escape_line(line: str) -> str:
    """Escape a line of a paragraph that would begin a heading, list, quotation, rule or table (chapters 4 and 5)."""
    if found := _NUMBER.match(line):
        return f"{found[1]}\\{found[2]}{line[found.end() :]}"
    return "\\" + line if _LINE_START.match(line) else line


def code_span(text: str) -> str:
    """Return text as a code span, with a fence longer than any run of backticks in it (section 6.1)."""
    text = collapse(text).strip()
    if not text:
        return ""
    fence = _fence(text, 1)
    pad = " " if text[0] == "`" or text[-1] == "`" else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _fence(text: str, least: int) -> str:
    """Return a fence longer than any run of backticks in a text."""
    return "`" * max(least, 1 + max((len(run) for run in re.findall("`+", text)), default=0))


# --- Joining pieces of running text to lines ---
# Delimiters that would be read as text (CommonMark 0.31.2, section 6.2) are left out: losing emphasis is better than
# stray characters.


@dataclass(frozen=True, slots=True)
class Mark:
    """A piece that is not text to be escaped: a delimiter that begins emphasis, or one of the constants below.

    "markdown" is finished Markdown: a link, an image, code. "control" too, but its last bracket does not end a link.
    """

    kind: str
    text: str = ""


CLOSE: Final = Mark("close")
BREAK: Final = Mark("break")
Piece: TypeAlias = str | Mark


@dataclass(slots=True, eq=False)
class _Span:
    """Emphasis on one line. `opens` and `closes` are positions in the line; `delimiter` is empty if it is left out."""

    kind: str
    delimiter: str
    opens: int
    closes: int = -1


_END_OF_CONTROL: Final = "\N{ZERO WIDTH NO-BREAK SPACE}"
"""A marker between parts, which texts never contain; it is removed again."""

_ROUNDS: Final = 3
"""Leaving out one delimiter may invalidate another. After so many rounds all are left out."""


def join_pieces(pieces: Iterable[Piece]) -> list[list[str]]:
    """Return the paragraphs, each a list of lines, that pieces make; two consecutive breaks end a paragraph.

    White space moves out of emphasis, emphasis without text is dropped, and adjacent emphasis of the same kind is
    merged. A delimiter is therefore only written together with the text after it: until then it waits in `opened`,
    which has all present emphasis with its span on this line. `closed` are the spans that end at the present end of the
    line.
    """
    if isinstance(pieces, list) and len(pieces) == 1 and isinstance(pieces[0], str):
        text = pieces[0].strip(" ")
        return [[text]] if text else []
    lines: list[tuple[list[str], list[_Span]]] = [([], [])]
    opened: list[tuple[str, _Span | None]] = []
    closed: list[_Span] = []
    waits = has_space = False

    def close(span: _Span | None) -> None:
        if span is not None and span.closes < 0:
            parts = lines[-1][0]
            span.closes = len(parts)
            parts.append("")
            closed.append(span)

    for piece in pieces:
        if isinstance(piece, str):
            text = piece.strip(" ")
            has_space = has_space or piece.startswith(" ")
            if not text:
                continue
        elif piece.kind in ("markdown", "control"):
            text = piece.text
        elif piece is CLOSE:
            close(opened.pop()[1])
            continue
        elif piece is BREAK:
            for _, span in reversed(opened):
                close(span)
            opened = [(kind, None) for kind, _ in opened]
            waits, has_space = bool(opened), False
            lines.append(([], []))
            closed.clear()
            continue
        else:
            opened.append((piece.kind, None))
            waits = True
            continue
        parts, spans = lines[-1]
        if has_space and parts:
            parts.append(" ")
        has_space = isinstance(piece, str) and piece.endswith(" ")
        if waits:
            waits = False
            for number, (kind, span) in enumerate(opened):
                if span is not None:
                    continue
                if any(
                    around is not None and around.kind == kind and around.closes < 0 for _, around in opened[:number]
                ):
                    continue  # it has no effect within emphasis of the same kind
                if closed and closed[-1].kind == kind and closed[-1].closes == len(parts) - 1:
                    span = closed.pop()
                    parts.pop()
                    span.closes = -1
                else:
                    span = _Span(kind, kind, len(parts))
                    parts.append("")
                    spans.append(span)
                opened[number] = kind, span
        closed.clear()
        # The text must not form new markup together with what precedes it.
        last = parts[-1] if parts else ""
        if last == _END_OF_CONTROL:
            parts[-1] = " " if text[0] in "([:" else ""
        elif last.endswith("]") and text[0] in "(:":
            text = "\\" + text
        elif last.endswith("`") and text[0] == "`" and (last[0] == "`" or not last.endswith("\\`")):
            parts.append(" ")  # otherwise both fences would merge; in code a backslash does not escape
        elif last.endswith("!") and text[0] == "[":
            parts[-1] = last[:-1] + "\\!"
        parts.append(text)
        if not isinstance(piece, str) and piece.kind == "control":
            parts.append(_END_OF_CONTROL)
    paragraphs: list[list[str]] = [[]]
    for parts, spans in lines:
        line = _join_line(parts, spans)
        if line:
            paragraphs[-1].append(line)
        elif paragraphs[-1]:
            paragraphs.append([])
    return [lines for lines in paragraphs if lines]


def _join_line(parts: list[str], spans: list[_Span]) -> str:
    """Return a line, with the delimiters that take effect."""
    for number, part in enumerate(parts):
        if part == _END_OF_CONTROL:
            parts[number] = ""
    for number in range(_ROUNDS + 1):
        for span in spans:
            if number == _ROUNDS:
                span.delimiter = ""
            parts[span.opens] = parts[span.closes] = span.delimiter
        wrong = [span for span in spans if span.delimiter and not _is_seen(parts, span)]
        if not wrong:
            break
        for span in wrong:
            span.delimiter = ""
    # Separate parts that would form markup after the delimiter between them was left out.
    joined, last = list[str](), ""
    for part in filter(None, parts):
        if last[-1:] + part[0] in ("``", "![") and (last[-2:-1] != "\\" or last[0] == "`"):
            joined.append(" ")
        elif last[-1:] + part[0] in ("](", "]:"):
            joined.append("\\")
        joined.append(part)
        last = part
    return "".join(joined).strip(" ")


def _is_seen(parts: list[str], span: _Span) -> bool:
    """Return True if both delimiters flank (section 6.2). Within a word an underscore does not, but a star does."""
    sides: list[str] = []  # before and after the first, before and after the last; a space at the ends of the line
    for place in (span.opens, span.closes):
        before = next((parts[at][-1] for at in range(place - 1, -1, -1) if parts[at]), " ")
        sides += before, next((parts[at][0] for at in range(place + 1, len(parts)) if parts[at]), " ")
    before, first, last, after = sides
    for inside, outside in ((first, before), (last, after)):
        if inside == " " or (_is_punctuation(inside) and outside != " " and not _is_punctuation(outside)):
            return False
    if span.kind == "_" and span.delimiter == "_" and (before.isalnum() or after.isalnum()):
        span.delimiter = parts[span.opens] = parts[span.closes] = "*"
    return span.delimiter != "*" or "*" not in sides


@lru_cache(maxsize=1024)
def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


# --- Running text: emphasis, links, images, code and controls ---

MAX_OPTIONS: Final = 40
"""Options of a choice that are listed."""

MAX_VALUE: Final = 1_000
"""Characters of a value that is shown."""

_LIMITS: Final = ("min", "max", "step", "minlength", "maxlength", "pattern", "accept")
_MAX_REPEATED: Final = 3
"""Hidden fields that are repeated for each button of a form."""

_ENCTYPES: Final = ("multipart/form-data", "text/plain")

MAX_NAMING_NODES: Final = 100
"""Nodes that are searched for a name within a link or a button without text."""

CONTROLS: Final = frozenset({"input", "button", "textarea", "select"})
_BUTTON_LABELS: Final = {"submit": "Submit", "reset": "Reset", "button": "", "image": ""}
"""Labels that browsers give to buttons without one (HTML Standard, section 4.10.5.1.18)."""

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

    def __init__(self, url: str, base: str, visible: VisibleNodes, formulas: Mapping[int, str]) -> None:
        self._url, self._base = url, base
        self._visible = visible
        self._formulas = formulas
        self.later: set[int] = set()
        """Nodes that are written elsewhere."""
        self._forms: dict[int, FormFields] = {}
        self._submits: dict[int, int] = {}
        """For a button that is the only visible part of its form, that form."""
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
            if tag == "form" and not self.read_form(node).is_button:
                before = [Mark("control", f"[form: {', '.join((self.target(node), *self.hidden(node)))}]"), " "]
            pieces = [*before, *self._inside(node, depth, linked)]
            return [BREAK, *pieces, BREAK] if tag in BLOCKS else pieces
        if tag == "a":
            if "href" in given and is_permalink(tree, node):
                return []
            address = self.address(given["href"]) if "href" in given and not linked else None
            if address is None:
                return self._inside(node, depth, linked)
            paragraphs = join_pieces(self._inside(node, depth, True))
            text = " ".join(line for lines in paragraphs for line in lines) or escape_text(self.name(node), True)
            if not any(map(str.isalnum, text)):  # only a symbol: its name says more
                text = escape_text(collapse(given.get("aria-label") or given.get("title") or "").strip(), True) or text
            if not text:
                return []
            # White space at the ends of a link's text goes around the link.
            held = tree.children(node)
            space = [" "] if held and tree.texts[held[0]][:1].isspace() else []
            after = [" "] if held and tree.texts[held[-1]][-1:].isspace() else []
            return [*space, _link(text, address), *after]
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
            control = self._control(node)
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
        return [_link(escape_text(collapse(title).strip(), True), address)] if address else []

    def _inside(self, node: int, depth: int, linked: bool) -> list[Piece]:
        tree, pieces = self._visible.tree, list[Piece]()
        for child in self._visible.children(node):
            if tree.tags[child]:
                pieces += self.pieces(child, depth + 1, linked)
            else:
                pieces.append(escape_text(collapse(tree.texts[child]), linked))
        return pieces

    def read_form(self, form: int) -> FormFields:
        """Return the parts of a form. If it is no more than a button, the button will describe it."""
        found = self._forms.get(form)
        if found is None:
            found = self._forms[form] = read_form(form, self._visible.visibility)
            if found.is_button:
                self._submits.update(dict.fromkeys(found.buttons, form))
        return found

    def target(self, form: int) -> str:
        """Return method and address of a form as code, with its content type if that matters."""
        given = self._visible.attributes[form]
        method = form_method(given)
        address = self.address(given.get("action", "").strip() or self._url) or self._url
        code = code_span(f"{method} {address}")
        kind = given.get("enctype", "").strip().lower()
        return f"{code} as {code_span(kind)}" if method == "POST" and kind in _ENCTYPES else code

    def hidden(self, form: int) -> list[str]:
        """Return the hidden fields of a form: names and values, but only the names of session secrets."""
        listed = []
        for one in self.read_form(form).hidden:
            given = self._visible.attributes[one]
            name, value = given["name"], given.get("value", "")
            shown = "a secret of the session" if is_secret(name) else self._value(value)
            listed.append(f"{code_span(name)}: {shown}")
        return listed

    def _value(self, value: str) -> str:
        if len(value) > MAX_VALUE:
            return f"{len(value)} characters"
        return code_span(value) or "“”"

    def _control(self, node: int) -> list[Piece]:
        """Return the description of a control: its kind, its name and its value. Empty for a hidden one."""
        tags, attributes = self._visible.tags, self._visible.attributes
        tag, given = tags[node], attributes[node]
        kind = (given.get("type") or "text").strip().lower() if tag == "input" else tag
        label = collapse(given.get("aria-label", "")).strip()
        if kind == "hidden":
            return []
        if kind in _BUTTON_LABELS:
            if tag == "button":
                name = self._visible.plain_text(node) or self.name(node)
            else:
                name = given.get("alt" if kind == "image" else "value") or ""
                name = name or given.get("aria-label") or given.get("title") or _BUTTON_LABELS[kind]
            text = escape_text(collapse(name).strip(), in_brackets=True)
            off = " (disabled)" if "disabled" in given else ""
            own = f" {self._pair(given, '')}" if given.get("name") and kind != "reset" else ""
            parts = [f"button{own}: {text}{off}" if text or own else f"button{off}"]
            form = self._submits.get(node)
            if form is not None:
                fields = self.read_form(form)  # if there are many hidden fields, only the first button lists them
                is_listed = fields.buttons[0] == node or len(fields.hidden) <= _MAX_REPEATED
                parts += (self.target(form), *(self.hidden(form) if is_listed else ["the same hidden fields"]))
            elif given.get("formaction") and (address := self.address(given["formaction"])) is not None:
                form = self._named_form(given)
                if form is None:
                    around = islice(self._visible.around(node), MAX_INLINE_DEPTH)
                    form = next((one for one in around if tags[one] == "form"), node)
                method = given.get("formmethod", "").strip().upper() or form_method(attributes[form])
                parts.append(code_span(f"{method} {address}"))
            elif (form := self._named_form(given)) is not None:
                parts.append(f"of the form {self.target(form)}")
            return [Mark("control", f"[{', '.join(parts)}]")]
        if kind in ("checkbox", "radio"):
            is_on = "checked" in given
            sign = ("[x]" if is_on else "[ ]") if kind == "checkbox" else ("(x)" if is_on else "( )")
            mark = Mark("control" if kind == "checkbox" else "markdown", sign)
            pair: list[Piece] = [Mark("markdown", self._pair(given, "on")), " "] if given.get("name") else []
            if (form := self._named_form(given)) is not None:
                pair += [Mark("control", f"[of the form {self.target(form)}]"), " "]
            return [" ", mark, " ", *pair, f"{escape_text(label)} " if label else ""]
        if tag == "select":
            options = [one for one in self._visible.walk(node) if tags[one] == "option"]
            chosen = [one for one in options if "selected" in attributes[one]]
            if not chosen and "multiple" not in given:
                chosen = options[:1]
            marked, listed = set(chosen), list[str]()
            for one in options[:MAX_OPTIONS]:
                name = collapse(attributes[one].get("label") or self._visible.plain_text(one)).strip()
                value = attributes[one].get("value", name)
                notes = ([code_span(value) or "“”"] if value != name else []) + (["selected"] if one in marked else [])
                if "disabled" in attributes[one]:
                    notes.append("disabled")
                if name or value:
                    listed.append(escape_text(name, in_brackets=True) + (f" ({', '.join(notes)})" if notes else ""))
            if len(options) > MAX_OPTIONS:
                listed.append(f"and {len(options) - MAX_OPTIONS} more")
            kind = "choice of several" if "multiple" in given else "choice"
            content = ", ".join(listed)
        else:
            value = given.get("value", "") if tag == "input" else self._visible.plain_text(node)
            text = escape_text(collapse(value).strip(), in_brackets=True)
            content = f"“{text}”" if text else ""
            kind = "text area" if tag == "textarea" else kind if kind == "file" else f"{kind} field"
        label = collapse(given.get("aria-label") or given.get("placeholder") or "").strip()
        facts = (
            f"{escape_text(kind, in_brackets=True)} {code_span(given.get('name', ''))}".strip(),
            f"“{escape_text(label, in_brackets=True)}”" if label else "",
            "required" if "required" in given else "",
            "disabled" if "disabled" in given else "",
            "read-only" if "readonly" in given else "",
            f"of the form {self.target(form)}" if (form := self._named_form(given)) is not None else "",
            *(f"{limit} {code_span(given[limit])}" for limit in _LIMITS if given.get(limit)),
        )
        facts_text = ", ".join(fact for fact in facts if fact)
        return [Mark("control", f"[{facts_text}: {content}]" if content else f"[{facts_text}]")]

    def _named_form(self, given: Mapping[str, str]) -> int | None:
        """Return the form that a control names in its attribute `form`."""
        form = self._visible.tree.find_id(given["form"]) if given.get("form") else None
        return form if form is not None and self._visible.tags[form] == "form" else None

    def _pair(self, given: Mapping[str, str], usual: str) -> str:
        """Return the name of a control, and the value that it sends unless it is the usual one."""
        value = given.get("value", usual)
        return f"{code_span(given['name'])}={self._value(value)}" if value != usual else code_span(given["name"])

    def name(self, node: int) -> str:
        """Return the name of a node that contains only an image: its own, or the first one within."""
        tree = self._visible.tree
        for one in (node, *islice(self._visible.walk(node), MAX_NAMING_NODES)):
            given = tree.attributes[one]
            label = collapse(given.get("aria-label") or given.get("title") or "").strip()
            if not label and tree.tags[one] == "svg":
                titles = (child for child in tree.children(one) if tree.tags[child] == "title")
                label = next(map(self._visible.plain_text, titles), "")
            if label:
                return label
        return ""


_OWN_WRITING: Final = (
    {"a", "br", "img", "svg", "iframe", "video", "audio", "math", "q", "wbr"} | _EMPHASIS.keys() | _CODE | CONTROLS
) | _SCRIPTS.keys()
"""Elements for which `Inline.pieces` writes more than their content."""


def _link(text: str, address: str) -> Mark:
    """Return a link (CommonMark 0.31.2, section 6.3) with a text in Markdown. Titles mostly repeat the text."""
    return Mark("markdown", f"[{text}]({address})")


# --- Lines, each with the prefixes of all enclosing quotations and lists ---

MAX_PREFIXES: Final = 8
"""Levels of nested quotations and lists; deeper ones are written at this level."""


class Lines:
    """Collects lines. Blocks are separated by an empty line, the items of a tight list are not.

    `last_list` is the marker of the list that was the preceding block, "" if that was not a list; `has_written` means
    that the item that ended last has content.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._prefix = ""
        self._around = ""
        """The common prefix of the preceding block and the next one: the shortest since something was written."""
        self._depth = 0
        self._marker: str | None = None
        self._is_tight = False
        self.last_list = ""
        self.has_written = False

    def block(self, lines: list[str]) -> None:
        """Write a block."""
        if self._lines and not self._is_tight:
            self._lines.append(self._around.rstrip())
        self._is_tight = False
        for line in lines:
            prefix = self._prefix if self._marker is None else self._marker
            self._marker = None
            self._lines.append(prefix + line if line else prefix.rstrip())
        self._around = self._prefix
        self.last_list = ""

    @contextmanager
    def within(self, prefix: str) -> Iterator[None]:
        """Write all lines with a prefix."""
        outer = self._prefix, self._depth
        if self._depth < MAX_PREFIXES:
            self._prefix += prefix
            self._depth += 1
            if self._marker is not None:
                self._marker += prefix
        self.last_list = ""
        try:
            yield
        finally:
            self._prefix, self._depth = outer
            self._around = min(self._prefix, self._around, key=len)
            self.last_list = ""

    @contextmanager
    def item(self, sign: str, tight: bool) -> Iterator[None]:
        """Write all lines as an item of a list: the first after its sign, the others indented."""
        count = len(self._lines)
        outer = self._prefix, self._depth, self._marker
        if self._depth < MAX_PREFIXES:
            self._marker = (self._prefix if self._marker is None else self._marker) + sign
            self._prefix += " " * len(sign)
            self._depth += 1
        self._is_tight = tight or (self._is_tight and count > 0) or outer[2] is not None
        self.last_list = ""
        try:
            yield
        finally:
            self.has_written = len(self._lines) > count
            self._prefix, self._depth = outer[:2]
            self._marker = None if self.has_written else outer[2]
            self._around = min(self._prefix, self._around, key=len)
            self.last_list = ""

    @property
    def is_empty(self) -> bool:
        return not self._lines

    def text(self) -> str:
        """Return the document with a final line break, or "" without lines."""
        return "\n".join(self._lines).rstrip("\n") + "\n" if self._lines else ""


# --- Blocks ---

_SPACIOUS: Final = frozenset({"p", "blockquote", "pre", "table", "dl", "hr", "figure", *HEADINGS})
_WRAPPERS: Final = frozenset({"article", "div", "section"})

MAX_SPANNED: Final = 40
"""Columns that one cell may span; browsers allow up to 1,000."""

MAX_FILLED: Final = 20_000
"""Empty cells that may stand for spans in a page, so that a small page cannot make a large document."""

_IN_CELLS: Final = frozenset({"p", "div", "li", "ul", "ol", "dl", "dd", "dt", "address", "center", "form"})
"""Blocks that may be in a cell of a data table, each on a line of its own."""

_TABLE_PARTS: Final = frozenset({"thead", "tbody", "tfoot", "tr", "td", "th", "caption"})
_ALIGNED: Final = {"left": ":--", "center": ":-:", "right": "--:"}
_STYLE: Final = re.compile(r"text-align\s*:\s*(left|center|right)", re.IGNORECASE)


_MEDIA: Final = frozenset({"audio", "video"})
"""Elements whose content only those see whose browser cannot play them."""

MAX_BLOCK_DEPTH: Final = 80
"""Levels of nested blocks; of deeper ones only the text is written."""

_LANGUAGE: Final = re.compile(
    r"(?:^|\s)(?:(?:\S*-)?lang(?:uage)?-|highlight-source-|brush:\s*|sourceCode\s+)([\w+#.-]+)"
)


def write_markdown(source: Tree | str | bytes, url: str, charset: str | None = None) -> str:
    """Return the page at `url` as Markdown. No input raises an exception.

    `charset` is that of the `Content-Type`, if `source` is bytes.
    """
    if isinstance(source, Tree):
        return _Page(source, url).write()
    tree = parse(source, charset)
    written = _Page(tree, url).write()
    tree.unlink()
    return written


def write_content(source: Tree | str | bytes, url: str, whole: str = "", charset: str | None = None) -> str:
    """Return the main content of the page at `url` as Markdown, with the title and the links to the next pages.

    A last line says how much was left out; `whole` is added to it, a sentence on how to get the whole page. A page from
    which little would be left out is written as a whole. No input raises an exception.
    """
    if isinstance(source, Tree):
        return _Page(source, url).write_content(whole)
    tree = parse(source, charset)
    written = _Page(tree, url).write_content(whole)
    tree.unlink()
    return written


OMISSION: Final = "Left out beside the main content:"
"""The first words of the line that says what is not in a page's main content."""

MIN_OMITTED: Final = 200
"""Characters up to which a text is not left out: to say so would take as long."""

MIN_LINKS: Final = 3
"""Links up to which they are not left out."""

MAX_NAVIGATION: Final = 25
"""Links up to which a navigation is a part of a page on which one acts."""

_CHROME: Final = frozenset({"header", "footer", "aside", "search"})
_HOLDERS: Final = frozenset({"td", "th", "li", "dd", "blockquote"})
"""Elements from which nothing is moved elsewhere, because their text would be torn apart."""

_SKIPS: Final = re.compile(r"\s*(?:skip|jump)\b", re.IGNORECASE)
MAX_CHROME: Final = 100
"""Navigations and forms that are moved to the end of the text; further ones stay in their places."""


class _Page:
    """Writes one page: its main content, the rest, and finally its navigation and the forms of header and footer."""

    def __init__(self, tree: Tree, url: str) -> None:
        self._tree = tree
        self._visible = VisibleNodes(tree)
        formulas = read_formulas(self._visible.visibility)
        self._inline = Inline(url, base_of(tree, url) or url, self._visible, formulas)
        self._lines = Lines()
        self._filled = 0
        """The number of empty cells."""
        self._is_tight = False
        """True within a list whose items are not separated by empty lines."""
        self._link: str | None = None
        """The address of a link that contains blocks, until the first block has become the link."""
        self._holders: set[int] = set()
        """Inline elements that contain blocks, such as a link around a heading."""
        tags, parents = tree.tags, tree.parents
        for node in range(tree.body_at, tree.ends[tree.body_at]):
            above = parents[node] if tags[node] in BLOCKS else -1
            while above >= 0 and tags[above] not in BLOCKS and above not in self._holders:
                self._holders.add(above)
                above = parents[above]

    def write(self, omitted: Sequence[int] = ()) -> str:
        """Return the text, without the elements `omitted` but with the forms in them.

        It begins with the page's title if the page has no heading of its own.
        """
        self._write(omitted)
        return self._lines.text()

    def _write(self, omitted: Sequence[int]) -> None:
        tree = self._tree
        for heading in tree.find("h1"):
            above = heading
            while above >= 0 and tree.tags[above] != "body" and self._visible.shows(above):
                above = tree.parents[above]
            if (above < 0 or tree.tags[above] == "body") and self._visible.plain_text(heading):
                break
        else:
            title = escape_text(collapse(read_title(self._tree)).strip())
            if title:
                self._lines.block([f"# {title}"])
        later = self._inline.later
        navigation, forms = self._chrome()
        navigation = [one for one in navigation if not any(at <= one < tree.ends[at] for at in omitted)]
        later.update(omitted)
        skipping = set(later)
        later.update(navigation, forms)
        mains = (one for one in tree.find("main") if self._is_seen(one))
        main = next(mains, None)
        if main is not None:  # preceded by the heading of the page, wherever that is
            own = next((one for one in tree.find("h1") if self._is_seen(one)), None)
            if own is not None and main not in self._visible.around(own):
                self._blocks([own], 0)
                later.add(own)
            self._blocks([main], 0)
            later.add(main)
        self._blocks(self._visible.children(tree.body_at), 0)
        later.clear()
        later.update(skipping)
        if navigation:
            # Each is a line; links of earlier lines are not repeated.
            written, lines = set[str](), list[str]()
            for one in navigation:
                pieces = list[Piece]()
                for piece in self._inline.pieces(one):
                    if isinstance(piece, Mark) and piece.kind == "markdown":
                        if piece.text in written:
                            continue
                        written.add(piece.text)
                    pieces.append(piece)
                lines.append(" · ".join(line for paragraph in join_pieces(pieces) for line in paragraph))
            if any(lines) and not self._lines.is_empty:
                self._lines.block(["## Navigation"])
            for line in filter(None, lines):
                self._lines.block([escape_line(line)])
        if forms:
            if not self._lines.is_empty:
                self._lines.block(["## Forms"])
            self._blocks(forms, 0)

    def write_content(self, whole: str) -> str:
        """Return the main content, and a last line on what was left out.

        Only an article stands alone. On other pages (a list, a form, a basket) small navigations are needed to act, so
        only large ones are left out.
        """
        content = find_content(self._tree, self._visible.visibility)
        omitted = self._beside(content) if content.is_article else self._large_chrome(content)
        links, forms, characters = map(sum, zip((0, 0, 0), *map(self._counts, omitted), strict=True))
        if links <= MIN_LINKS and not forms and characters <= MIN_OMITTED:
            return self.write()
        paging = [link for link in find_paging(self._tree) if self._is_seen(link) and self._is_in(link, omitted)]
        if content.is_article:
            self._write_article(content.node, omitted)
        else:
            forms = 0  # they are written in any case
            self._write(omitted)
        if paging:
            self._text([piece for link in paging for piece in (*self._inline.pieces(link), " ")])
        counts = ((links, "link"), (forms, "form"), (characters, "character"))
        parts = [f"{count} {name}{'s' * (count != 1)}" for count, name in counts if count]
        listed = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
        self._lines.block([f"{OMISSION} {listed}. {whole}".strip()])
        return self._lines.text()

    def _write_article(self, node: int, omitted: Sequence[int]) -> None:
        tree = self._tree
        headings = [one for one in tree.find("h1") if self._is_seen(one) and self._visible.plain_text(one)]
        if not any(node <= one < tree.ends[node] and not self._is_in(one, omitted) for one in headings):
            if headings:
                self._blocks(headings[:1], 0)
            elif title := escape_text(collapse(read_title(tree)).strip()):
                self._lines.block([f"# {title}"])
        later = self._inline.later
        later.update(omitted)
        self._blocks(self._visible.children(node) if node == tree.body_at else [node], 0)
        later.clear()

    def _is_in(self, node: int, others: Iterable[int]) -> bool:
        return any(at <= node < self._tree.ends[at] for at in others)

    def _beside(self, content: MainContent) -> list[int]:
        """Return the largest visible elements of the page that are no part of an article."""
        tree = self._tree
        found = [at for at in sorted(content.left_out) if self._visible.shows(at)]
        inner, node = content.node, tree.parents[content.node]
        while inner != tree.body_at:
            found += [child for child in self._visible.elements_in(node) if child != inner]
            inner, node = node, tree.parents[node]
        outer, end = list[int](), -1
        for at in sorted(found):
            if at >= end:
                outer.append(at)
                end = tree.ends[at]
        return outer

    def _large_chrome(self, content: MainContent) -> list[int]:
        """Return the navigations, headers, footers and asides with many links that do not have the content."""
        tree, found, end = self._tree, list[int](), -1
        chrome = sorted(at for tag in (*_CHROME, "nav") for at in tree.find(tag))
        for at in chrome:
            if (
                at < end
                or at in content.around
                or (content.node < at and content.node != tree.body_at and self._is_in(at, [content.node]))
            ):
                continue
            if not self._is_seen(at) or any(tag in ("h1", "main", "article") for tag in tree.tags[at : tree.ends[at]]):
                continue
            end = tree.ends[at]
            if self._counts(at)[0] > MAX_NAVIGATION:
                found.append(at)
        return found

    def _counts(self, top: int) -> tuple[int, int, int]:
        """Return the numbers of visible links, forms and characters in a node."""
        links = forms = characters = 0
        tags, attributes = self._tree.tags, self._tree.attributes
        for node in (top, *self._visible.walk(top)):
            tag = tags[node]
            if not tag:
                characters += len(self._tree.texts[node].strip())
            elif tag == "a":
                links += "href" in attributes[node]
            elif tag == "form":
                forms += 1
        return links, forms, characters

    def _is_seen(self, node: int) -> bool:
        around = islice(self._visible.around(node), MAX_BLOCK_DEPTH)
        return self._visible.shows(node) and all(
            self._tree.tags[one] in ("body", "html") or self._visible.shows(one) for one in around
        )

    def _chrome(self) -> tuple[list[int], list[int]]:
        """Return the navigation elements, and the forms of header and footer.

        A link that skips the navigation is left out, because here the content comes first anyway.
        """
        navigation, forms, tree = list[int](), list[int](), self._tree
        first = next((at for at in range(tree.size) if tree.tags[at] == "a"), None)
        if first is not None and tree.attributes[first].get("href", "").startswith("#"):
            self._inline.later.update([first] if _SKIPS.match(self._visible.plain_text(first)) else [])
        for tag, found in (("nav", navigation), ("form", forms)):
            for one in tree.find(tag)[:MAX_CHROME]:
                tags = {tree.tags[above] for above in islice(self._visible.around(one), MAX_BLOCK_DEPTH)}
                if tag == "form" and (not tags & _CHROME or "main" in tags or "article" in tags):
                    continue
                if "nav" not in tags and not _HOLDERS & tags and self._is_seen(one):
                    found.append(one)
        return navigation, forms

    def _blocks(self, children: Iterable[int], depth: int) -> None:
        """Write the content of an element: blocks, and text between them."""
        lines, pieces, later = self._lines, list[Piece](), self._inline.later
        tags, attributes, children_of = self._tree.tags, self._tree.attributes, self._visible.children
        for node in children:
            tag, given = tags[node], attributes[node]
            if node in later:
                continue
            if not tag or not self._is_block(node) or not self._visible.shows(node):
                pieces += self._inline.pieces(node, linked=self._link is not None)
                continue
            self._text(pieces)
            pieces = []
            if depth >= MAX_BLOCK_DEPTH:
                self._text([escape_text(self._visible.plain_text(node))])
            elif tag in HEADINGS or given.get("role", "").strip().lower() == "heading":
                text = self._line(node)
                if text:
                    escaped = re.sub(r"(?<!#)(#+)$", r"\\\1", text)  # a closing sequence (section 4.2)
                    aria = given.get("aria-level", "").strip()
                    level = HEADINGS.get(tag) or (int(aria) if aria in ("1", "2", "3", "4", "5", "6") else 2)
                    lines.block([f"{'#' * level} {escaped}"])
            elif tag in LISTS:
                self._list(node, depth + 1)
            elif tag == "table":
                self._table(node, depth + 1)
            elif tag in ("legend", "summary"):
                self._strong(node, depth + 1)
            elif tag == "a":
                address = self._inline.address(given["href"]) if "href" in given else None
                outer, self._link = self._link, self._link or address
                self._blocks(children_of(node), depth + 1)
                self._link = outer if outer is not None and self._link is not None else None
            elif tag == "hr":
                if not lines.is_empty:  # at the beginning it would open front matter
                    lines.block(["---"])
            elif tag == "blockquote":
                around, self._is_tight = self._is_tight, False
                with lines.within("> "):
                    self._blocks(children_of(node), depth + 1)
                self._is_tight = around
            elif tag in PREFORMATTED:
                text = self._visible.raw_text(node).replace("\r\n", "\n").rstrip().strip("\n")
                if text:
                    fence = _fence(text, 3)
                    lines.block([fence + self._language_of(node), *text.split("\n"), fence])
                    found = (one for one in self._visible.walk(node) if tags[one] == "a" and "href" in attributes[one])
                    links = list(filter(None, dict.fromkeys(self._inline.line([one]) for one in found)))
                    if links:
                        lines.block([f"Links: {', '.join(links)}"])
            elif tag == "dl":
                self._terms(node, depth + 1)
            else:
                hidden: list[str] = []
                if tag == "form" and not (fields := self._inline.read_form(node)).is_button:
                    # Where the form is sent, then its fields, then its hidden fields.
                    name = collapse(given.get("aria-label") or "").strip()
                    says = f"Form “{escape_text(name)}”" if name else "Form"
                    if given.get("action") or fields.has_names:
                        says += f": {self._inline.target(node)}"
                    if name or says != "Form":
                        lines.block([says])
                    hidden = self._inline.hidden(node)
                self._blocks(children_of(node), depth + 1)
                if hidden:
                    lines.block([f"[hidden: {', '.join(hidden)}]"])
        self._text(pieces)

    def _is_block(self, node: int) -> bool:
        """Return True if an element is a block or contains blocks. A control is always inline, whatever it contains."""
        tag = self._tree.tags[node]
        return tag in BLOCKS or (node in self._holders and tag not in CONTROLS and tag not in _MEDIA)

    def _text(self, pieces: Iterable[Piece]) -> None:
        """Write running text, as one paragraph or several."""
        for lines in join_pieces(pieces):
            if self._link is not None:
                lines, self._link = [_link(" ".join(lines), self._link).text], None
            escaped = [escape_line(line) for line in lines]
            self._lines.block([f"{line}  " for line in escaped[:-1]] + escaped[-1:])

    def _line(self, node: int) -> str:
        """Return the text of a block on one line, as a link if the block is the first one within a link."""
        text = self._inline.line(self._visible.children(node), linked=self._link is not None)
        if text and self._link is not None:
            text, self._link = _link(text, self._link).text, None
        return text

    def _strong(self, node: int, depth: int) -> None:
        """Write the name of what follows: the legend of a group, the summary of details, the caption of a table."""
        if any(map(self._is_block, self._tree.children(node))):
            self._blocks(self._visible.children(node), depth)
            return
        text = self._line(node) or escape_text(self._inline.name(node))
        if text:
            self._lines.block([text if text.startswith("**") else f"**{text}**"])

    def _list(self, node: int, depth: int) -> None:
        tree = self._tree
        tags, attributes = tree.tags, tree.attributes
        # A list directly after another one needs a different marker, or both would be one list (section 5.3).
        usual, other = (".", ")") if tags[node] == "ol" else ("-", "*")
        marker = other if self._lines.last_list == usual else usual
        # The items are separated if one of them has several blocks that need separation (section 5.3).
        is_tight = True
        for item in self._visible.children(node):
            inner = [child for child in tree.children(item) if tags[child]] if tags[item] == "li" else []
            while len(inner) == 1 and tags[inner[0]] in _WRAPPERS:
                inner = [child for child in tree.children(inner[0]) if tags[child]]
            spacious = sum(tags[child] in _SPACIOUS for child in inner)
            if spacious > 1 or (spacious == 1 and any(tags[child] in LISTS for child in inner)):
                is_tight = False
        number, is_first = _number(attributes[node].get("start", ""), 1), True
        around = self._is_tight
        # Directly after a paragraph in an item, only a list that starts with 1 is recognised (section 5.3).
        begins_tight = around and is_tight and number == 1
        self._is_tight = is_tight
        for child in self._visible.elements_in(node):
            if tags[child] == "li":
                number = _number(attributes[child].get("value", ""), number)
            sign = f"{number}{marker} " if tags[node] == "ol" else f"{marker} "
            with self._lines.item(sign, begins_tight if is_first else is_tight):
                # A child that is not an `li` is in the list by mistake.
                self._blocks(self._visible.children(child) if tags[child] == "li" else [child], depth)
            if self._lines.has_written:
                is_first = False
                number += 1
        self._is_tight = around
        if not is_first:
            self._lines.last_list = marker

    def _terms(self, node: int, depth: int) -> None:
        """Write terms and their descriptions as a list, because Markdown has no other way.

        A `div` may enclose each group of them (HTML, section 4.4.9).
        """
        parts = [
            part
            for child in self._visible.elements_in(node)
            for part in (self._visible.elements_in(child) if self._tree.tags[child] == "div" else (child,))
        ]
        groups: list[tuple[list[int], list[int]]] = []
        for part in parts:
            is_term = self._tree.tags[part] == "dt"
            if not groups or (is_term and groups[-1][1]):
                groups.append(([], []))
            groups[-1][0 if is_term else 1].append(part)
        is_first = True
        for terms, definitions in groups:
            names = ", ".join(f"**{line}**" for line in map(self._line, terms) if line)
            with self._lines.item("- ", tight=not is_first):
                if names and not any(
                    self._is_block(child) for one in definitions for child in self._tree.children(one)
                ):
                    definition = "; ".join(line for line in map(self._line, definitions) if line)
                    self._lines.block([f"{names}: {definition}" if definition else names])
                else:
                    if names:
                        self._lines.block([names])
                    for one in definitions:
                        self._blocks(self._visible.children(one), depth)
            is_first = is_first and not self._lines.has_written

    def _table(self, table: int, depth: int) -> None:
        """Write a table of GitHub Flavored Markdown (GFM 0.29, section 4.10), with its caption before it.

        A table that only arranges a page is ignored: its content is written as if the table were not there.
        """
        tags, attributes, seen_in = self._tree.tags, self._tree.attributes, self._visible.elements_in
        head, body, foot, caption = list[int](), list[int](), list[int](), None
        for part in seen_in(table):
            tag = tags[part]
            if tag == "caption" and caption is None:
                caption = part
            rows = [part] if tag == "tr" else [row for row in seen_in(part) if tags[row] == "tr"]
            {"thead": head, "tfoot": foot}.get(tag, body).extend(rows)
        cells = [[cell for cell in seen_in(row) if tags[cell] in ("td", "th")] for row in (*head, *body, *foot)]
        has_heading = bool(head) or (bool(body and cells[0]) and all(tags[cell] == "th" for cell in cells[0]))
        blocks: set[str] = set()  # within the cells, except in nested tables
        for cell in (cell for row in cells for cell in row):
            at = cell + 1
            while at < self._tree.ends[cell]:
                tag = tags[at]
                if tag in BLOCKS:
                    blocks.add(tag)
                at = self._tree.ends[at] if tag == "table" else at + 1
        if has_heading or caption is not None or any(tags[cell] == "th" for row in cells for cell in row):
            is_data = blocks <= _IN_CELLS
        else:
            is_data = max(map(len, cells), default=0) > 1 and blocks <= {"p", "div", "form"}
            is_data = is_data and not ("form" in blocks and is_layout(table, self._visible.visibility))
        role = attributes[table].get("role", "").strip().lower()
        if "table" in blocks or not is_data or role in ("presentation", "none"):
            self._blocks(self._visible.children(table), depth)
            return
        if caption is not None:
            self._strong(caption, depth)
        written: list[list[str]] = []
        reaching: dict[int, int] = {}  # for a column, the remaining rows that a cell spans, this one included
        for row in cells:
            line: list[str] = []
            for cell in row:
                column = len(line)
                while column in reaching:
                    column += 1
                line += self._empty_cells(column - len(line))
                columns = _span(attributes[cell], "colspan", MAX_SPANNED)
                if (below := _span(attributes[cell], "rowspan", len(cells)) - 1) > 0 and len(reaching) < MAX_SPANNED:
                    reaching |= {len(line) + column: below + 1 for column in range(columns)}
                # A pipe would begin the next cell, even within code (GFM, example 200).
                line.append(self._inline.line([cell], break_with="<br>").replace("|", "\\|"))
                line += self._empty_cells(columns - 1)
            reaching = {column: left - 1 for column, left in reaching.items() if left > 1}
            if line:
                written.append(line)
        if not any(map(any, written)):
            return
        width = max(map(len, written))
        aligned: list[str] = []
        heading = list[str]()  # a table has to have one
        if has_heading:
            heading = written.pop(0)
            for cell in cells[0][:width]:
                alignment = attributes[cell].get("align", "").strip().lower()
                if not alignment and (found := _STYLE.search(attributes[cell].get("style", ""))):
                    alignment = found[1].lower()
                aligned.append(_ALIGNED.get(alignment, "---"))
        heading += [""] * (width - len(heading))
        aligned += ["---"] * (width - len(aligned))
        self._lines.block([f"| {' | '.join(line)} |" for line in (heading, aligned, *written)])

    def _language_of(self, node: int) -> str:
        """Return the language of code that highlighters write into classes: on the code, around it, or within."""
        tree = self._tree
        inner = [child for child in tree.children(node) if tree.tags[child] == "code"][:1]
        for one in (*inner, node, *islice(self._visible.around(node), 1)):
            given = tree.attributes[one]
            if found := _LANGUAGE.search(given.get("class", "")):
                return found[1]
            if language := given.get("data-lang", given.get("data-language", "")).strip():
                return re.sub(r"[^\w+#.-]", "", language)
        return ""

    def _empty_cells(self, wanted: int) -> list[str]:
        given = min(wanted, MAX_FILLED - self._filled)
        self._filled += given
        return [""] * given


def _number(text: str, usual: int) -> int:
    """Return a number that Markdown can write: not negative, at most nine digits."""
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else usual


def _span(given: Mapping[str, str], name: str, most: int) -> int:
    text = given.get(name, "1").strip()
    if not text.isascii() or not text.isdigit() or len(text) > 5:
        return 1
    number = int(text)
    return most if number == 0 and name == "rowspan" else max(1, min(number, most))
