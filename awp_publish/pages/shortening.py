"""Truncates texts, and counts what was left out (SOM 1.0, sections 4.6 and 8.2)."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

_MIN_SENTENCE: Final = 0.4
"""A text is cut after a sentence if that keeps at least this part of the limit (4.6)."""

Losses: TypeAlias = defaultdict[str, int]
"""Counts of what was left out, by the words that describe it in a document (see `som.describe_losses`)."""

SHORTENED: Final = "texts shortened"
CHARACTERS: Final = "chars"


@dataclass(frozen=True, slots=True)
class ElementLimits:
    """Limits for one element: characters of a text, an item or a row, and the number of items or rows.

    None means no limit. `compact` keeps only the text of elements that are not controls, the address of links, and what
    is needed to operate controls.
    """

    characters: int | None = None
    units: int | None = None
    compact: bool = False

    def shorten(self, text: str, losses: Losses) -> str:
        """Return the text, shortened to the limit."""
        if self.characters is None or len(text) <= self.characters:
            return text
        kept = shorten_text(text, self.characters)
        losses[SHORTENED] += 1
        losses[CHARACTERS] += max(len(text) - len(kept), 0)
        return kept


def shorten_text(text: str, most: int) -> str:
    """Return at most so many characters of a text: whole sentences if they are long enough, or else words and "..."."""
    if len(text) <= most:
        return text
    window = text[:most]
    sentence = max(window.rfind("."), window.rfind("!"), window.rfind("?")) + 1
    if sentence >= most * _MIN_SENTENCE:
        return window[:sentence]
    room = window[: max(most - 3, 0)]
    word = room.rfind(" ")
    return (room[:word] if word > 0 else room) + "..."


DUPLICATES: Final = "duplicate links"
STRUCTURED: Final = "more blocks of structured data"
_DROPPED: Final = (
    *(DUPLICATES, "more links", "more paragraphs", "more elements", "more list items", "more table rows"),
    *("more options", STRUCTURED),
)


def describe_losses(losses: Losses) -> str:
    """Describe what is missing, in the form of 8.2.4; "" if nothing is."""
    dropped = ", ".join(f"{losses[what]} {what}" for what in _DROPPED if losses[what])
    parts = [f"{dropped} dropped"] if dropped else []
    if losses[SHORTENED]:
        parts.append(f"{losses[SHORTENED]} {SHORTENED}")
    return f"[{', '.join(parts)}, ~{losses[CHARACTERS]} {CHARACTERS}]" if parts else ""


def add_losses(losses: Losses, others: Mapping[str, int]) -> None:
    """Add the counts of `others` to `losses`."""
    for what, count in others.items():
        losses[what] += count
