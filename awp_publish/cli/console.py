"""The output of a command: JSON for programs, tables and progress bars at a terminal, plain lines for a pipe.

Output at a terminal is formatted with the package rich (extra `cli`) if it is installed.
"""

import getpass
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import orjson

T = TypeVar("T")


class Console:
    """The standard output of one command. With `as_json` only `json` prints."""

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
        """Print lines."""
        if not self.as_json:
            for line in lines:
                print(_printable(line))

    def heading(self, text: str) -> None:
        """Print a heading, at a terminal only."""
        if self._rich is not None:
            self._rich.rule(f"[bold]{_escape(text)}", align="left")

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print rows: as a table at a terminal, otherwise aligned, one a line. Columns named "#..." are numbers."""
        cells = [[_printable(str(cell)) for cell in row] for row in rows]
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
            print("  ".join(aligned).rstrip())

    def json(self, value: object) -> None:
        """Print a value as JSON if JSON was requested."""
        if self.as_json:
            print(orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode())

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
        return getpass.getpass(_printable(question) + " ")
    sys.stderr.write(_printable(question) + " ")
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        raise KeyboardInterrupt
    return line.strip()


def _printable(text: str) -> str:
    """Replace characters that a terminal would interpret."""
    clean = "".join(sign if sign.isprintable() or sign in "\t\n" else "\N{REPLACEMENT CHARACTER}" for sign in text)
    return clean.encode("utf-8", "backslashreplace").decode("utf-8")


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)
