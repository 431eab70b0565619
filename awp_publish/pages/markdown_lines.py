"""Lines of Markdown inside of quotations and lists: each with the prefixes of all that it stands in."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

DEEPEST: Final = 8
"""Quotations and lists inside one another; what is nested deeper is written as if it were at this depth."""


@dataclass(slots=True)
class Item:
    """An item of a list while it is written."""

    is_written: bool = False


class Lines:
    """Collects lines. Blocks are separated by an empty line, the items of a tight list are not.

    `last_list` is the marker of the list that was the block before, "" if it was none.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._prefix = ""
        self._around = ""
        """The prefix of all in which both the block before and the next one stand."""
        self._depth = 0
        self._marker: str | None = None
        self._is_tight = False
        self.last_list = ""

    def block(self, lines: list[str], tight: bool = False) -> None:
        """Write a block. A `tight` one follows the line before directly."""
        if self._lines and not (tight or self._is_tight):
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
        """Write all lines behind a prefix."""
        outer = self._prefix, self._depth
        if self._depth < DEEPEST:
            self._prefix += prefix
            self._depth += 1
            if self._marker is not None:
                self._marker += prefix
        self.last_list = ""
        try:
            yield
        finally:
            self._prefix, self._depth = outer
            self._around = self._common(self._prefix)
            self.last_list = ""

    @contextmanager
    def item(self, sign: str, tight: bool) -> Iterator[Item]:
        """Write all lines as an item of a list: the first behind its sign, the others below that."""
        item, count = Item(), len(self._lines)
        outer = self._prefix, self._depth, self._marker
        if self._depth < DEEPEST:
            self._marker = (self._prefix if self._marker is None else self._marker) + sign
            self._prefix += " " * len(sign)
            self._depth += 1
        self._is_tight = tight or (self._is_tight and count > 0) or outer[2] is not None
        self.last_list = ""
        try:
            yield item
        finally:
            item.is_written = len(self._lines) > count
            self._prefix, self._depth = outer[:2]
            self._marker = None if item.is_written else outer[2]
            self._around = self._common(self._prefix)
            self.last_list = ""

    def _common(self, prefix: str) -> str:
        """Nothing may have been written since the shorter of the two was left."""
        return min(prefix, self._around, key=len)

    @property
    def is_empty(self) -> bool:
        return not self._lines

    def text(self) -> str:
        """The document, ended by a line end; the empty text without lines."""
        return "\n".join(self._lines).rstrip("\n") + "\n" if self._lines else ""
