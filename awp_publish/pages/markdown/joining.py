"""Joins pieces of running text to lines.

Delimiters that would be read as text (CommonMark 0.31.2, section 6.2) are left out: losing emphasis is better than
stray characters.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias


@dataclass(slots=True, eq=False)
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

_JOINING: Final = frozenset("`!]")
"""Characters that may form markup together with what follows."""

_ROUNDS: Final = 3
"""Leaving out one delimiter may invalidate another. After so many rounds all are left out."""


def join_pieces(pieces: Sequence[Piece]) -> list[list[str]]:
    """Return the paragraphs, each a list of lines, that pieces make; two consecutive breaks end a paragraph.

    White space moves out of emphasis, emphasis without text is dropped, and adjacent emphasis of the same kind is
    merged. A delimiter is therefore only written together with the text after it: until then it waits in `opened`,
    which has all present emphasis with its span on this line. `closed` are the spans that end at the present end of the
    line.
    """
    if len(pieces) == 1 and isinstance(pieces[0], str):
        text = pieces[0].strip(" ")
        return [[text]] if text else []
    parts: list[str] = []
    spans: list[_Span] = []
    lines = [(parts, spans)]
    opened: list[tuple[str, _Span | None]] = []
    closed: list[_Span] = []
    waits = has_space = False

    for piece in pieces:
        if isinstance(piece, str):
            text = piece.strip(" ")
            has_space = has_space or piece[:1] == " "
            if not text:
                continue
            kind, ends_with_space = "", piece[-1] == " "
        else:
            kind, text, ends_with_space = piece.kind, piece.text, False
            if piece is CLOSE:
                _close(opened.pop()[1], closed, parts)
                continue
            if piece is BREAK:
                for _, span in reversed(opened):
                    _close(span, closed, parts)
                opened = [(kind, None) for kind, _ in opened]
                waits, has_space = bool(opened), False
                parts, spans = [], []
                lines.append((parts, spans))
                closed.clear()
                continue
            if kind not in ("markdown", "control"):
                opened.append((kind, None))
                waits = True
                continue
        if has_space and parts:
            parts.append(" ")
        has_space = ends_with_space
        if waits:
            waits = False
            _open(opened, closed, parts, spans)
        if closed:
            closed.clear()
        # The text must not form new markup together with what precedes it.
        last = parts[-1] if parts else ""
        if last == _END_OF_CONTROL:
            parts[-1] = " " if text[0] in "([:" else ""
        elif last[-1:] not in _JOINING:
            pass
        elif last[-1] == "]" and text[0] in "(:":
            text = "\\" + text
        elif last[-1] == "`" and text[0] == "`" and (last[0] == "`" or not last.endswith("\\`")):
            parts.append(" ")  # otherwise both fences would merge; in code a backslash does not escape
        elif last[-1] == "!" and text[0] == "[":
            parts[-1] = last[:-1] + "\\!"
        parts.append(text)
        if kind == "control":
            parts.append(_END_OF_CONTROL)
    paragraphs: list[list[str]] = [[]]
    for parts, spans in lines:
        line = _join_line(parts, spans)
        if line:
            paragraphs[-1].append(line)
        elif paragraphs[-1]:
            paragraphs.append([])
    return [lines for lines in paragraphs if lines]


def _open(opened: list[tuple[str, _Span | None]], closed: list[_Span], parts: list[str], spans: list[_Span]) -> None:
    """Write the delimiters of emphasis that waits for a text."""
    for number, (kind, span) in enumerate(opened):
        if span is not None:
            continue
        if any(around is not None and around.kind == kind and around.closes < 0 for _, around in opened[:number]):
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


def _close(span: _Span | None, closed: list[_Span], parts: list[str]) -> None:
    if span is not None and span.closes < 0:
        span.closes = len(parts)
        parts.append("")
        closed.append(span)


def _join_line(parts: list[str], spans: list[_Span]) -> str:
    """Return a line, with the delimiters that take effect."""
    if not spans:
        return "".join(parts).replace(_END_OF_CONTROL, "").strip(" ")
    if _END_OF_CONTROL in parts:
        parts = ["" if part == _END_OF_CONTROL else part for part in parts]
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
    joined: list[str] = []
    last = ""
    for part in filter(None, parts):
        if last[-1:] in _JOINING:
            if last[-1] + part[0] in ("``", "![") and (last[-2:-1] != "\\" or last[0] == "`"):
                joined.append(" ")
            elif last[-1] + part[0] in ("](", "]:"):
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
