"""Texts, items and rows cut to size, and a record of what was cut (SOM 1.0, sections 4.6 and 8.2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

_LEAST_SENTENCE: Final = 0.4
"""A text is cut after a sentence when that keeps so much of what it may have (4.6)."""

_LEAST_CELL: Final = 20
_LEAST_COLUMN: Final = 8
"""A row has so many times fewer cells than it may have characters."""

_OPTIONS: Final = 100
"""Options of a select that is not said whole."""

_OptionT = TypeVar("_OptionT", bound=Mapping[str, object])


@dataclass(slots=True)
class Shortened:
    """How many texts were cut, how many items, rows and options of an element left out, and of how many characters."""

    texts: int = 0
    items: int = 0
    rows: int = 0
    options: int = 0
    characters: int = 0

    def add(self, other: "Shortened") -> None:
        """Counts what was left out of another element too."""
        self.texts += other.texts
        self.items += other.items
        self.rows += other.rows
        self.options += other.options
        self.characters += other.characters


@dataclass(frozen=True, slots=True)
class Limits:
    """How large one element may be: characters of a text, an item or a row, and how many items or rows.

    None is no limit. `compact` leaves of a link only its text, or else its label, and where it leads.
    """

    characters: int | None = None
    units: int | None = None
    compact: bool = False

    def shorten(self, text: str, shortened: Shortened) -> str:
        """The text, or the beginning of it."""
        if self.characters is None or len(text) <= self.characters:
            return text
        kept = shorten_text(text, self.characters)
        shortened.texts += 1
        shortened.characters += max(len(text) - len(kept), 0)
        return kept

    def shorten_all(self, texts: Sequence[str], shortened: Shortened) -> list[str]:
        """Each text, or the beginning of it."""
        return [self.shorten(text, shortened) for text in texts]

    def take(self, items: Sequence[str], shortened: Shortened) -> list[str]:
        """As many items of a list as there is room for, and in words how many more there are (8.2)."""
        kept, more = self.shorten_all(items[: self.units], shortened), items[len(items[: self.units]) :]
        shortened.items += len(more)
        shortened.characters += sum(map(len, more))
        return [*kept, f"[{len(more)} more items]"] if more else kept

    def take_rows(self, rows: Sequence[list[str]], shortened: Shortened) -> list[list[str]]:
        """As many rows of a table as there is room for."""
        kept = [self._cells(self.take_columns(row, shortened), shortened) for row in rows[: self.units]]
        more = rows[len(kept) :]
        shortened.rows += len(more)
        shortened.characters += sum(len(cell) for row in more for cell in row)
        return kept

    def take_columns(self, cells: list[str], shortened: Shortened) -> list[str]:
        """As many cells of a row as there is room for: all, unless nearly nothing could be said in each."""
        if self.characters is None:
            return cells
        most = max(self.characters // _LEAST_COLUMN, 1)
        more = cells[most:]
        shortened.texts += bool(more)
        shortened.characters += sum(map(len, more))
        return cells[:most] if more else cells

    def _cells(self, row: list[str], shortened: Shortened) -> list[str]:
        if self.characters is None or sum(map(len, row)) <= self.characters:
            return row
        return Limits(max(self.characters // len(row), _LEAST_CELL)).shorten_all(row, shortened)

    def take_options(self, options: Sequence[_OptionT], shortened: Shortened) -> list[_OptionT]:
        """As many options of a select as there is room for, and those that are selected."""
        if self.characters is None:
            return list(options)
        kept = [option for place, option in enumerate(options) if place < _OPTIONS or "selected" in option]
        shortened.options += len(options) - len(kept)
        return kept


def shorten_text(text: str, most: int) -> str:
    """At most so many characters of a text: whole sentences when they are enough of it, else whole words and "..."."""
    if len(text) <= most:
        return text
    window = text[:most]
    sentence = max(window.rfind(mark) for mark in ".!?") + 1
    if sentence >= most * _LEAST_SENTENCE:
        return window[:sentence]
    room = window[: max(most - 3, 0)]
    word = room.rfind(" ")
    return (room[:word] if word > 0 else room) + "..."
