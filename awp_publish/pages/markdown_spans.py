"""Pieces of running text, joined to lines: white space is put in order, emphasis stands only where CommonMark sees it.

Delimiters that would be read as text (CommonMark 0.31.2, section 6.2) are left out: the words are worth more than their
weight.
"""

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, TypeAlias

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
