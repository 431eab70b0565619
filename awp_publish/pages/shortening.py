"""Texts, items and rows cut to size, and a record of what was cut (SOM 1.0, sections 4.6 and 8.2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

_LEAST_SENTENCE: Final = 0.4
"""A text is cut after a sentence when that keeps so much of what it may have (4.6)."""

_ITEM_BYTES: Final = 12
_CELL_BYTES: Final = 3
_OPTION_BYTES: Final = 30
_LEAST_CHARACTERS: Final = 20

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
    """How large one element may be: characters of a text, or of all that a list or a table says. None is no limit.

    `compact` leaves of a link only its text, or else its label, and where it leads.
    """

    characters: int | None = None
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
        if self.characters is None or sum(map(len, items)) + _ITEM_BYTES * len(items) <= self.characters:
            return list(items)
        room, kept = self.characters, list[str]()
        for item in items:
            text = shorten_text(item, max(self.characters // 2, _LEAST_CHARACTERS))
            room -= len(text) + _ITEM_BYTES
            if room < 0 and kept:
                break
            kept.append(text)
            shortened.texts += len(text) < len(item)
            shortened.characters += max(len(item) - len(text), 0)
        more = items[len(kept) :]
        shortened.items += len(more)
        shortened.characters += sum(map(len, more))
        return [*kept, f"[{len(more)} more items]"] if more else kept

    def take_rows(self, rows: Sequence[list[str]], shortened: Shortened) -> list[list[str]]:
        """As many rows of a table as there is room for."""
        if self.characters is None:
            return list(rows)
        room, kept = self.characters, list[list[str]]()
        cells = Limits(max(self.characters // 4, _LEAST_CHARACTERS))
        for row in rows:
            taken = cells.shorten_all(row, shortened)
            room -= sum(len(cell) + _CELL_BYTES for cell in taken)
            if room < 0 and kept:
                break
            kept.append(taken)
        more = rows[len(kept) :]
        shortened.rows += len(more)
        shortened.characters += sum(len(cell) for row in more for cell in row)
        return kept

    def take_options(self, options: Sequence[_OptionT], shortened: Shortened) -> list[_OptionT]:
        """As many options of a select as there is room for, and those that are selected."""
        if self.characters is None:
            return list(options)
        room, kept = max(self.characters, _OPTION_BYTES) * _OPTION_BYTES, list[_OptionT]()
        for option in options:
            room -= _OPTION_BYTES + len(str(option["text"])) + len(str(option["value"]))
            if room >= 0 or "selected" in option:
                kept.append(option)
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
