"""Selects what is kept of a page that is too large for its document (SOM 1.0, sections 8 and 12.1).

Each shelf of elements has a share of the room. What one shelf does not need goes to the next ones, and what is left at
the end is distributed once more. Texts are shortened to one common length, the largest that fits, so that short ones
stay whole.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import orjson

from awp_publish.pages.elements import Elements, SomElement
from awp_publish.pages.shelves import MAX_LENGTH, OVERHEAD, Shelf, Shelves
from awp_publish.pages.shortening import CHARACTERS, DUPLICATES, ElementLimits, Losses, add_losses
from awp_publish.pages.survey import Survey
from awp_publish.pages.tree import Tree

_SHARES: Final = (0.15, 0.62, 0.12, 0.08, 0.01, 0.02, 0.0, 0.0)
_AMPLE: Final = 48_000
_AMPLE_SHARES: Final = (0.12, 0.25, 0.55, 0.05, 0.01, 0.02, 0.0, 0.0)
"""The share of the room that each shelf has at least, if it needs it. With ample room all controls fit; on a page that
is mostly a form they have the larger share.
"""

SCARCE: Final = 20_000
_SCARCE_SHARES: Final = (0.12, 0.4, 0.4, 0.05, 0.01, 0.02, 0.0, 0.0)
"""The same for a page of at most this size: it has to be cut because of its controls, not because of its text."""

_TEXTS: Final = (Shelf.TEXTS, Shelf.OTHER_TEXTS)
_MIN_LENGTH: Final = 200
"""Characters to which texts are shortened at least; if that is not enough, whole texts are left out."""

_WITH_ESCAPES: Final = 0.95
"""The approximate part of a room that a text may fill, because JSON escapes some of its characters."""

_MIN_ROOM: Final = 100
"""Bytes of room that are too few for any element."""

_OUTSIDE_RATIO: Final = 4
"""If text outside of regions has this many times the length of the main regions', it is main content too."""

ID_BYTES: Final = 15
"""Bytes of an id, which an element does not have yet when it is measured, and of the comma after it."""

_REGION: Final = 190
"""Approximate bytes of a region besides its elements, including the description of what was left out."""

SUMMARY_BYTES: Final = 170
"""Approximate bytes of a region's description of what was left out."""

_MODEST: Final = ElementLimits(MAX_LENGTH, compact=True)
"""Limits for headings and controls in a document that has to be cut (4.6)."""


class Cut:
    """What is kept of one page. Regions are identified by their numbers, and `pools` are their candidates.

    `lengths` are the characters before each piece of text, `of_regions` the bytes of each region besides its elements.
    """

    def __init__(
        self,
        tree: Tree,
        survey: Survey,
        elements: Elements,
        pools: Sequence[Sequence[int]],
        lengths: Sequence[int],
        of_regions: Sequence[int],
        room: int,
    ) -> None:
        self._survey, self._elements, self._pools = survey, elements, pools
        self._lengths, self._of_regions, self._room = lengths, of_regions, room
        self._left = room
        self._made: dict[int, SomElement] = {}
        self._sizes: dict[int, int] = {}
        self._lost: dict[int, Losses] = {}  # what is missing within elements
        self._begun = set[int]()
        self._region_of = {candidate: number for number, pool in enumerate(pools) for candidate in pool}
        main = self._main_regions()
        self._is_form = any(survey.regions[number].landmark.role == "form" for number in main)
        self._shelves = Shelves(tree, survey, elements, pools, main, lengths)

    def select(self) -> tuple[dict[int, SomElement], list[Losses]]:
        """Return the elements that are kept, and what is missing of each region."""
        for shelf, room in zip(Shelf, self._allot(), strict=True):
            if shelf in _TEXTS:
                self._add_texts(self._shelves.lists[shelf], room)
            else:
                self._add_others(self._shelves.lists[shelf], room)
        self._add_more()
        self._lengthen_texts()
        return self._made, [self._losses_of(pool) for pool in self._pools]

    def _main_regions(self) -> set[int]:
        """Return the regions with the main content.

        That is in the main regions, unless they are nearly empty, also in comparison with a page that is one form;
        without any, it is outside of all regions.
        """
        survey, lengths = self._survey, self._lengths
        by_role: dict[str, set[int]] = {"main": set(), "content": set(), "form": set()}
        texts = list[int]()
        for number, (region, pool) in enumerate(zip(survey.regions, self._pools, strict=True)):
            by_role.setdefault(region.landmark.role, set()).add(number)
            said = (element for element in pool if survey.roles[element] in ("paragraph", "heading", "list", "table"))
            texts.append(sum(lengths[survey.ends[element]] - lengths[survey.starts[element]] for element in said))
        main = by_role["main"]
        for role in ("content", "form"):
            if _OUTSIDE_RATIO * sum(texts[element] for element in main) < sum(
                texts[element] for element in by_role[role]
            ):
                main |= by_role[role]
        return main or set(range(len(self._pools)))

    def _allot(self) -> list[int]:
        """Return the room of each shelf."""
        shares = _AMPLE_SHARES if self._room >= _AMPLE or self._is_form else _SHARES
        if self._room < SCARCE and shares is _SHARES:
            shares = _SCARCE_SHARES
        room = self._room - _REGION * min(len(self._pools), self._room // (8 * _REGION))
        unit_of, units_of = self._shelves.unit_of, self._shelves.units_of
        needs = [
            sum(OVERHEAD + unit_of[element] * units_of[element] for element in shelf) for shelf in self._shelves.lists
        ]
        rooms = [min(need, int(room * share)) for need, share in zip(needs, shares, strict=True)]
        spare = room - sum(rooms)
        for number, need in enumerate(needs):
            more = max(min(need - rooms[number], spare), 0)
            rooms[number] += more
            spare -= more
        return rooms

    def _make(self, candidate: int, limits: ElementLimits, most: int) -> int:
        """Keep an element if it takes at most so many bytes, including its region's if it is the first one there."""
        number = self._region_of[candidate]
        lost: Losses = defaultdict(int)
        element = self._elements.make(candidate, limits, lost)
        size = len(orjson.dumps(element)) + ID_BYTES
        if number not in self._begun:
            size += self._of_regions[number] + SUMMARY_BYTES
        if size <= min(most, self._left):
            self._made[candidate], self._sizes[candidate] = element, size
            if lost:
                self._lost[candidate] = lost
            self._begun.add(number)
            self._left -= size
        return size

    def _add_others(self, shelf: Sequence[int], room: int) -> None:
        """Keep headings, controls or links."""
        for candidate in shelf:
            if self._left <= _MIN_ROOM:
                break
            if self._shelves.unit_of[candidate] + OVERHEAD <= room:
                size = self._make(candidate, _MODEST, room + OVERHEAD + _MIN_LENGTH)
                room -= size if candidate in self._made else 0

    def _add_texts(self, shelf: Sequence[int], room: int) -> None:
        """Keep texts, shortened to one length."""
        unit_of, units_of = self._shelves.unit_of, self._shelves.units_of
        units = [unit_of[element] for element in shelf for _ in range(units_of[element])]
        most = max(share_evenly(units, room - OVERHEAD * len(shelf)), _MIN_LENGTH)
        for candidate in shelf:
            kept = min((room - OVERHEAD) // max(min(unit_of[candidate], most), 1), units_of[candidate])
            if kept < 1:
                continue
            allowed = room + OVERHEAD + _MIN_LENGTH
            size = self._make(candidate, ElementLimits(most, kept, compact=True), allowed)
            if candidate not in self._made and kept > 1:  # a list or a table that is larger than estimated
                kept = max(kept * min(room, self._left) // size, 1)
                size = self._make(candidate, ElementLimits(most, kept, compact=True), allowed)
            room -= size if candidate in self._made else 0

    def _add_more(self) -> None:
        """Distribute the room that is left once more."""
        for shelf, candidates in zip(Shelf, self._shelves.lists, strict=True):
            for candidate in candidates:
                if self._left <= _MIN_ROOM:
                    break
                unit = self._shelves.unit_of[candidate]
                if unit + OVERHEAD <= self._left and candidate not in self._made:
                    kept = min((self._left - OVERHEAD) // max(unit, 1), self._shelves.units_of[candidate])
                    limits = ElementLimits(_MIN_LENGTH * 2, kept, compact=True) if shelf in _TEXTS else _MODEST
                    self._make(candidate, limits, self._left)

    def _lengthen_texts(self) -> None:
        """Give texts back in full, those that lack least first. Complete regions need no room for a description."""
        for number in self._begun:
            if all(element in self._made and element not in self._lost for element in self._pools[number]):
                self._left += SUMMARY_BYTES
        unit_of, units_of = self._shelves.unit_of, self._shelves.units_of
        short = [
            element for element in self._shelves.lists[Shelf.TEXTS] if element in self._lost and units_of[element] == 1
        ]
        for candidate in sorted(short, key=lambda element: unit_of[element] - self._sizes[element]):
            if self._left <= _MIN_ROOM:
                break
            size = self._sizes[candidate]
            element, lost = self._made.pop(candidate), self._lost.pop(candidate)
            self._left += size
            room = (self._left - OVERHEAD) * _WITH_ESCAPES
            most = max(int(min(unit_of[candidate], room) / self._shelves.width) + 1, _MIN_LENGTH)
            self._make(candidate, ElementLimits(most, compact=True), self._left - _MIN_ROOM // 2)
            if candidate not in self._made:
                self._made[candidate], self._lost[candidate] = element, lost
                self._left -= size

    def _losses_of(self, pool: Sequence[int]) -> Losses:
        losses: Losses = defaultdict(int)
        survey = self._survey
        for candidate in pool:
            role = survey.roles[candidate]
            if candidate in self._made:
                add_losses(losses, self._lost.get(candidate, {}))
            elif candidate in self._shelves.duplicates:
                losses[DUPLICATES] += 1
            elif role == "link":
                losses["more links"] += 1
            else:
                losses["more paragraphs" if role == "paragraph" else "more elements"] += 1
                losses[CHARACTERS] += self._lengths[survey.ends[candidate]] - self._lengths[survey.starts[candidate]]
        return losses


def share_evenly(needs: Sequence[int], room: int) -> int:
    """Return the largest equal share such that all needs together fit; needs below it are met in full."""
    left, count = room, len(needs)
    for need in sorted(needs):
        if need * count > left:
            return max(left // count, 0)
        left -= need
        count -= 1
    return max(needs, default=0)
