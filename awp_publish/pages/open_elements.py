"""The elements that are open at a place in markup, as far as its tags say.

Where a parser might keep an element open that an end tag names, it counts as open.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set as AbstractSet
from typing import Final

from awp_publish.pages.element_kinds import (
    AROUND_TABLE,
    BREAKOUT,
    CLOSES,
    CLOSES_P,
    FOREIGN,
    FORMATTING,
    INTEGRATION,
    MARKERS,
    OPTIONS,
    ROW_GROUPS,
    SCOPES,
    SPECIAL,
    TABLE,
    TABLE_PARTS,
    P,
)

MAX_SEARCH: Final = 32
"""Innermost open elements among which that of an end tag is searched; one further out counts as open."""

_MAX_ADOPTED: Final = 8
"""Blocks out of which an end tag takes a formatting element (13.2.6.4.7, the adoption agency algorithm)."""

_IN_FOREIGN: Final = SCOPES - FOREIGN
_KEEPS_OPEN: Final[Mapping[bytes, frozenset[bytes]]] = {
    **dict.fromkeys((b"li", b"dd", b"dt"), SPECIAL - {b"address", b"div", b"p"}),
    **dict.fromkeys(ROW_GROUPS, TABLE | AROUND_TABLE),
}
"""Elements beyond which such a start tag does not search."""

_END_STOPS: Final[Mapping[bytes, frozenset[bytes]]] = {
    **dict.fromkeys(SPECIAL - INTEGRATION, SCOPES),
    **dict.fromkeys(TABLE_PARTS | TABLE, TABLE | AROUND_TABLE),
    b"li": SCOPES | {b"ol", b"ul"},
    b"template": frozenset(),
}
_BARRIERS: Final = SPECIAL - FOREIGN
"""Elements beyond which an end tag does not search (13.2.4.2), and those for the end tags of ordinary elements."""


class OpenElements:
    """The open elements, outermost first. `formatting` are those of them that parsers reopen, and those reopened."""

    __slots__ = ("_counts", "_opened", "formatting")

    def __init__(self) -> None:
        self._opened: list[bytes] = []
        self._counts: defaultdict[bytes, int] = defaultdict(int)
        self.formatting: list[bytes] = []

    def __len__(self) -> int:
        return len(self._opened)

    @property
    def is_foreign(self) -> bool:
        """True within a drawing or a formula."""
        return self._counts[b"svg"] > 0 or self._counts[b"math"] > 0

    def has_any(self, names: Iterable[bytes]) -> bool:
        """Return True if an element with one of some names is open."""
        return any(map(self._counts.__getitem__, names))

    def open(self, name: bytes) -> None:
        """Open an element."""
        self._opened.append(name)
        self._counts[name] += 1
        if name in FORMATTING:
            self.formatting.append(name)

    def close_before(self, name: bytes) -> None:
        """Close what a start tag ends."""
        if name in BREAKOUT and self.is_foreign:
            self._close(FOREIGN, _IN_FOREIGN)
        if name in CLOSES_P:
            self._close(P, SCOPES)
        if self.is_foreign:
            return
        if name in OPTIONS:
            if self._opened and self._opened[-1] == b"option":
                self._close(OPTIONS, SPECIAL)
        elif name in CLOSES and (name not in ROW_GROUPS or self._is_in_table()):
            self._close(CLOSES[name], _KEEPS_OPEN[name])
        elif name == b"a" and b"a" in self.formatting and self._remove(name):
            self.formatting.remove(b"a")  # a link ends the one before it

    def end(self, name: bytes) -> None:
        """Close what an end tag ends."""
        if name in FORMATTING:
            if self._remove(name) and name in self.formatting:
                del self.formatting[len(self.formatting) - 1 - self.formatting[::-1].index(name)]
        elif name == b"form":  # elements in it stay open
            self._remove(name)
        elif name not in TABLE_PARTS or self._is_in_table():
            self._close({name}, _END_STOPS.get(name, _BARRIERS))

    def _is_in_table(self) -> bool:
        return self._innermost(TABLE, AROUND_TABLE) is not None

    def _innermost(self, names: AbstractSet[bytes], beyond: AbstractSet[bytes]) -> int | None:
        """Return the index of the innermost open element with one of `names`; None if one of `beyond` is in it."""
        if not self.has_any(names):
            return None
        opened = self._opened
        for place in range(len(opened) - 1, max(len(opened) - MAX_SEARCH, 0) - 1, -1):
            if opened[place] in names:
                return place
            if opened[place] in beyond:
                break
        return None

    def _close(self, names: AbstractSet[bytes], beyond: AbstractSet[bytes]) -> None:
        if (place := self._innermost(names, beyond)) is not None:
            for name in self._opened[place:]:
                self._counts[name] -= 1
            del self._opened[place:]

    def _remove(self, name: bytes) -> bool:
        """Close an element, but none of those in it. Return False if it may stay open."""
        place = self._innermost({name}, SCOPES)
        if place is None:
            return not self._counts[name] and not self.has_any(MARKERS)
        if sum(inner in SPECIAL for inner in self._opened[place:]) >= _MAX_ADOPTED:
            return False
        self._counts[name] -= 1
        del self._opened[place]
        return True
