"""The output of a command: JSON for programs, tables and progress bars at a terminal, plain lines for a pipe.

Output at a terminal is formatted with the package rich (extra `cli`) if it is installed. Much of it comes from sites
that nobody vouches for, so everything is printed by `write`, which escapes what a terminal would obey.
"""

import getpass
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TextIO, TypeVar

import orjson

T = TypeVar("T")

HARMLESS: Final = frozenset("\u00a0\u2007\u202f\u3000\u200c\u200d\ufe0f")
"""Spaces and joiners of ordinary writing, which `str.isprintable` does not count as printable."""


def visible(text: str, *, is_block: bool = False) -> str:
    """Return a text with everything escaped that a terminal would obey or hide, as JSON escapes it.

    These are control characters (C0, C1, DEL), what changes the direction of writing, other invisible characters, and
    line ends of all kinds. A block keeps its line feeds and tabs.
    """
    if text.isprintable():
        return text
    if is_block:
        text = text.replace("\r\n", "\n")
    allowed = "\n\t" if is_block else ""
    return "".join(
        sign if sign.isprintable() or sign in HARMLESS or sign in allowed else _escape_of(sign) for sign in text
    )


def _escape_of(sign: str) -> str:
    units = sign.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def write(text: str, *, is_block: bool = False, to: TextIO | None = None, end: str = "\n") -> None:
    """Print a text, on standard output unless `to` is given. All that commands print passes here."""
    file = sys.stdout if to is None else to
    file.write(visible(text, is_block=is_block) + end)


def write_json(value: object, *, is_indented: bool = True) -> None:
    try:
        text = orjson.dumps(value, option=orjson.OPT_INDENT_2 if is_indented else 0, default=str).decode()
    except TypeError:  # half a surrogate pair, or an integer of more than 64 bits
        text = json.dumps(value, indent=2 if is_indented else None, default=str)
    write(text, is_block=True)


def warn(text: str) -> None:
    """Print a line on standard error, under the name of the program; further lines of the text are indented."""
    write(f"awp-publish: {text}".replace("\n", "\n  "), is_block=True, to=sys.stderr)


class Console:
    """The standard output of one command. With `as_json` only `json` prints."""

    warn = staticmethod(warn)

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self._rich: Any = None
        if not as_json and sys.stdout.isatty() and "NO_COLOR" not in os.environ:
            try:
                from rich.console import Console as RichConsole
            except ModuleNotFoundError:
                return
            self._rich = RichConsole(highlight=False)

    def say(self, *lines: str) -> None:
        if not self.as_json:
            for line in lines:
                write(line)

    def block(self, text: str) -> None:
        """Print text that has line breaks of its own."""
        if not self.as_json:
            write(text, is_block=True)

    def heading(self, text: str) -> None:
        """Print a heading, at a terminal only."""
        if self._rich is not None:
            self._rich.rule(f"[bold]{_escape(visible(text))}", align="left")

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print rows: as a table at a terminal, otherwise aligned, one a line. Columns named "#..." are numbers."""
        cells = [[visible(str(cell)) for cell in row] for row in rows]
        if self.as_json or not cells:
            return
        if self._rich is not None:
            from rich.table import Table

            drawn = Table(box=None, pad_edge=False, header_style="bold")
            for name in columns:
                drawn.add_column(
                    _escape(name.lstrip("#")), justify="right" if name.startswith("#") else "left", overflow="fold"
                )
            for row in cells:
                drawn.add_row(*map(_escape, row))
            self._rich.print(drawn)
            return
        widths = [max(len(row[place]) for row in cells) for place in range(len(columns))]
        for row in cells:
            aligned = (
                text.rjust(width) if name.startswith("#") else text.ljust(width)
                for name, text, width in zip(columns, row, widths, strict=True)
            )
            write("  ".join(aligned).rstrip())

    def json(self, value: object) -> None:
        """Print a value as JSON if JSON was requested."""
        if self.as_json:
            write_json(value)

    def json_lines(self, values: Iterable[object]) -> None:
        """Print each value as a line of JSON if JSON was requested."""
        for value in values if self.as_json else ():
            write_json(value, is_indented=False)

    def progress(self, items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
        """Yield items, with a progress bar at a terminal."""
        if self._rich is None:
            yield from items
            return
        from rich.progress import track

        yield from track(items, description=what, total=total, console=self._rich, transient=True)


def is_asking() -> bool:
    """Return True if a person can be asked: input and standard error are terminals."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(question: str, *, secret: bool = False) -> str:
    """Ask a person at the terminal, on standard error. Returns the answer without surrounding white space.

    A `secret` is not echoed.
    """
    if secret:
        return getpass.getpass(visible(question) + " ")
    write(question, to=sys.stderr, end=" ")
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        raise KeyboardInterrupt
    return line.strip()


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)
