"""Lines of Markdown, each with the prefixes of all enclosing quotations and lists."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

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
