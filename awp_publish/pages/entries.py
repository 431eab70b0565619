"""What the second pass finds: regions, entries that become their elements, and the text of all in one row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from awp_publish.pages.landmarks import Landmark
from awp_publish.pages.tree import Node


@dataclass(slots=True, eq=False)
class Entry:
    """What becomes an element: its node, and from where to where its text goes."""

    node: Node
    role: str
    state: int
    start: int = 0
    end: int = 0
    shadow: "Region | None" = None


@dataclass(slots=True, eq=False)
class Region:
    """A region, or what a shadow root holds."""

    landmark: Landmark
    node: Node
    entries: list[Entry] = field(default_factory=list)
    shadows: int = 0


@dataclass(frozen=True, slots=True)
class Survey:
    """The outcome: regions in the order in which they begin, what is in none of them last."""

    regions: Sequence[Region]
    pieces: Sequence[str]
    parts: Mapping[Node, Entry]

    def said(self, node: Node) -> str | None:
        """The text of a part of an element: an item, a cell, an option, a summary. None when it is not to be seen."""
        part = self.parts.get(node)
        return None if part is None else self.text(part)

    def lengths(self) -> list[int]:
        """How many characters there are before each piece, and in all."""
        return list(accumulate(map(len, self.pieces), initial=0))

    def width(self) -> float:
        """How many bytes of UTF-8 a character of this page takes, on average."""
        text = "".join(self.pieces)
        return len(text.encode()) / len(text) if text else 1.0

    def text(self, entry: Entry) -> str:
        """The visible text of an entry, whitespace collapsed (4.6)."""
        return " ".join("".join(self.pieces[entry.start : entry.end]).split())
