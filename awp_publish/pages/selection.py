"""Which entries of a survey a document has room for, and what it says of the others. The rules are in `budget`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

import orjson

from awp_publish.pages.elements import Elements, Limits, Made, Shortened
from awp_publish.pages.regions import Entry, Region, Survey
from awp_publish.pages.roles import CONTROLS
from awp_publish.pages.tables import count_items, count_rows
from awp_publish.pages.tree import Node

# --- How much of a page a SOM document says: the choice of the caller (SOM 1.0, sections 8 and 12.1) ---
# `FULL` leaves nothing out. The others are a number of bytes. A page that fits loses nothing; of a larger one
# 1. every heading and every control is kept, with what they need to be operated; 2. links that lead where an earlier
# one of the page leads are left out (8.2.1); 3. the rest of the bytes is shared: seventeen parts for text, three for
# links; what one does not need the other gets; 4. texts, items of lists and rows of tables are shortened to one
# common length, the largest that fits: short ones stay    whole; 5. links are kept in the order of the page, with an
# equal share for each region: small regions keep all of theirs.
# What was left out is said at the end of its region, in a paragraph (8.2.4).

TEXT_SHARE: Final = 0.85
MOST_WHOLE: Final = 68_000
"""Bytes that the document of an ordinary page does not exceed."""

LEAST_LENGTH: Final = 200
"""Characters below which texts are not shortened; beyond that, whole ones are left out."""


class Budget(Enum):
    """How many bytes a document may take, about; what cannot be left out may take more. FULL has no limit."""

    FULL = None
    DEFAULT = MOST_WHOLE
    TIGHT = 24_000


def share_evenly(needs: Sequence[int], room: int) -> int:
    """The largest share that each may have, so that all together fit: the smaller needs are met whole."""
    left, count = room, len(needs)
    for need in sorted(needs):
        if need * count > left:
            return max(left // count, 0)
        left -= need
        count -= 1
    return max(needs, default=0)


_OVERHEAD: Final = 60
"""Bytes of an element beside its text, about."""

_LINK_OVERHEAD: Final = 85
_UNIT_OVERHEAD: Final = 12
"""Bytes of an item of a list, or of a row of a table, beside its text, about."""

_ID: Final = 15
"""Bytes of an id, which an element does not have while it is measured, and of the comma behind it."""

_REGION: Final = 150
"""Bytes of a region beside its elements, with what is said of what is left out."""

_UNITS: Final[Mapping[str, Callable[[Node], int]]] = {"list": count_items, "table": count_rows}
"""What is shortened unit by unit: items of lists, rows of tables."""

_ALWAYS: Final = CONTROLS | {"heading"}
"""Roles that no budget drops."""

_MODEST: Final = Limits(200)
"""What headings and controls may say in a document that has to be cut (4.6)."""

_COMPACT: Final = Limits(200, compact=True)
"""What links may say in such a document."""


@dataclass(slots=True)
class Loss:
    """What is missing from a region."""

    duplicates: int = 0
    links: int = 0
    paragraphs: int = 0
    elements: int = 0
    structured: int = 0
    shortened: Shortened = field(default_factory=Shortened)

    def add(self, other: "Loss") -> None:
        """Counts what is missing from another region too."""
        self.duplicates += other.duplicates
        self.links += other.links
        self.paragraphs += other.paragraphs
        self.elements += other.elements
        self.structured += other.structured
        self.shortened.add(other.shortened)

    def drop(self, entry: Entry, characters: int) -> None:
        """Counts a text that is left out."""
        if entry.role == "paragraph":
            self.paragraphs += 1
        else:
            self.elements += 1
        self.shortened.characters += characters

    def sentence(self) -> str:
        """In words, in the form of 8.2.4; "" when nothing is missing."""
        dropped = _counted(
            (self.duplicates, "duplicate links"),
            (self.links, "more links"),
            (self.paragraphs, "more paragraphs"),
            (self.elements, "more elements"),
            (self.shortened.items, "more list items"),
            (self.shortened.rows, "more table rows"),
            (self.shortened.options, "more options"),
            (self.structured, "more blocks of structured data"),
        )
        cut = _counted((self.shortened.texts, "texts shortened"))
        parts = [f"{dropped} dropped" if dropped else "", cut]
        said = ", ".join(part for part in parts if part)
        return f"[{said}, ~{self.shortened.characters} chars]" if said else ""


def _counted(*counts: tuple[int, str]) -> str:
    return ", ".join(f"{count} {what}" for count, what in counts if count)


@dataclass(frozen=True, slots=True)
class Selection:
    """The elements of the entries that are kept, and for each region what is missing."""

    made: dict[Entry, Made]
    losses: Sequence[Loss]


def choose(survey: Survey, elements: Elements, room: int | None) -> Selection:
    """The entries that fit in so many bytes; all of them when there is no limit."""
    pools = [list(_entries(region)) for region in survey.regions]
    losses = [Loss() for _ in pools]
    lengths = survey.lengths()
    if room is None or _roughly(pools, lengths[-1]) <= 2 * room:
        made = {entry: elements.make(entry, Limits()) for pool in pools for entry in pool}
        taken = _merge_links(pools, made, losses)
        if room is None or taken + _REGION * len(pools) <= room:
            return Selection(made, losses)
    return _Cut(elements, pools, lengths, survey.width()).select(room)


def _roughly(pools: Sequence[Sequence[Entry]], characters: int) -> int:
    """Bytes of a document that says everything, at the least."""
    links = sum(1 for _, entry in _numbered(pools) if entry.role == "link")
    return _OVERHEAD * sum(map(len, pools)) + (_LINK_OVERHEAD - _OVERHEAD) * links + characters


def _merge_links(pools: Sequence[Sequence[Entry]], made: dict[Entry, Made], losses: Sequence[Loss]) -> int:
    """Takes out links that say the very same as one before them (8.2.1), and says how many bytes the others take.

    Before them in their region; or, when what there is goes beyond the usual size of a document, in the page.
    """
    said = {entry: orjson.dumps(one.element) for entry, one in made.items()}
    total = sum(map(len, said.values())) + _ID * len(said)
    seen: set[bytes] = set()
    for pool, loss in zip(pools, losses, strict=True):
        if total <= MOST_WHOLE:
            seen = set()
        for entry in pool:
            if not _is_repeatable(entry):
                continue
            if said[entry] in seen:
                loss.duplicates += 1
                total -= len(said[entry]) + _ID
                del made[entry]
            seen.add(said[entry])
    return total


def _is_repeatable(entry: Entry) -> bool:
    return entry.role == "link" and entry.shadow is None and _leads_away(entry.node.attributes.get("href", ""))


def _leads_away(href: str) -> bool:
    """Whether a link leads anywhere; others do by script what is not known, and are never the same."""
    address = href.strip().lower()
    return address not in ("", "#") and not address.startswith("javascript:")


def _entries(region: Region) -> Iterator[Entry]:
    """The entries of a region, those in shadow roots too."""
    for entry in region.entries:
        yield entry
        if entry.shadow is not None:
            yield from _entries(entry.shadow)


class _Cost(NamedTuple):
    """Bytes of a text, bytes of one of the units that it comes in, and how many those are."""

    said: int
    unit: int
    units: int


class _Cut:
    """The making of a selection that does not keep everything. Regions are known by their numbers."""

    __slots__ = ("_begun", "_elements", "_lengths", "_losses", "_made", "_pools", "_width")

    def __init__(
        self, elements: Elements, pools: Sequence[Sequence[Entry]], lengths: Sequence[int], width: float
    ) -> None:
        self._elements, self._pools, self._width = elements, pools, width
        self._made: dict[Entry, Made] = {}
        self._losses = [Loss() for _ in pools]
        self._begun: set[int] = set()
        self._lengths = lengths

    def select(self, room: int) -> Selection:
        always, texts, links = self._sorted()
        left = room - sum(self._make(entry, _MODEST, number) for number, entry in _numbered(always))
        costs = [[self._link_cost(entry) for entry in pool] for pool in links]
        left -= self._keep_texts(texts, max(int(left * TEXT_SHARE), left - sum(map(sum, costs)), 0))
        self._keep_links(links, costs, max(left, 0))
        for number, entry in _numbered(self._pools):
            if entry in self._made:
                self._losses[number].shortened.add(self._made[entry].shortened)
        return Selection(self._made, self._losses)

    def _sorted(self) -> tuple[list[list[Entry]], list[list[Entry]], list[list[Entry]]]:
        """For each region what is always kept, its texts, and its links: none leads where one before it leads."""
        always, texts, links = ([list[Entry]() for _ in self._pools] for _ in range(3))
        seen: set[str] = set()
        for number, pool in enumerate(self._pools):
            for entry in pool:
                if entry.role in _ALWAYS or entry.shadow is not None:
                    always[number].append(entry)
                elif entry.role != "link":
                    texts[number].append(entry)
                elif "href" not in entry.node.attributes:  # what it does, a script knows
                    always[number].append(entry)
                elif self._is_new(entry, seen):
                    links[number].append(entry)
                else:
                    self._losses[number].duplicates += 1
        return always, texts, links

    def _is_new(self, link: Entry, seen: set[str]) -> bool:
        address = normalise_address(link.node.attributes["href"])
        if address in seen and _leads_away(address):
            return False
        seen.add(address)
        return True

    def _make(self, entry: Entry, limits: Limits, number: int) -> int:
        """Makes an element, and says how many bytes it takes, with those of its region when it is the first there."""
        made = self._made[entry] = self._elements.make(entry, limits)
        shell = 0 if number in self._begun else _REGION
        self._begun.add(number)
        return len(orjson.dumps(made.element)) + _ID + shell

    def _link_cost(self, entry: Entry) -> int:
        said = self._lengths[entry.end] - self._lengths[entry.start]
        return _LINK_OVERHEAD + said + len(entry.node.attributes["href"])

    def _keep_texts(self, pools: Sequence[Sequence[Entry]], room: int) -> int:
        """Keeps texts, shortened to one length, and says how many bytes they take."""
        costs = [[self._cost(entry) for entry in pool] for pool in pools]
        units = [cost.unit for pool in costs for cost in pool for _ in range(cost.units)]
        most = max(share_evenly(units, room - _OVERHEAD * sum(map(len, pools))), LEAST_LENGTH)
        needs = [sum(_OVERHEAD + min(cost.unit, most) * cost.units for cost in pool) for pool in costs]
        each, used = share_evenly(needs, room), 0
        for number, pool in enumerate(pools):
            allowed = each
            for entry, cost in zip(pool, costs[number], strict=True):
                kept = min((allowed - _OVERHEAD) // max(min(cost.unit, most), 1), cost.units)
                if kept < 1 or used >= room:
                    self._losses[number].drop(entry, cost.said)
                    continue
                taken = self._make_within(entry, Limits(most, kept), number, allowed)
                allowed -= taken
                used += taken
        return used

    def _cost(self, entry: Entry) -> _Cost:
        said = int((self._lengths[entry.end] - self._lengths[entry.start]) * self._width)
        count = _UNITS.get(entry.role)
        if count is None:
            return _Cost(said, said, 1)
        units = max(count(entry.node), 1)
        return _Cost(said, said // units + _UNIT_OVERHEAD, units)

    def _make_within(self, entry: Entry, limits: Limits, number: int, allowed: int) -> int:
        """Makes a list or a table anew with fewer parts when it is larger than it seemed; one part is always taken."""
        taken = self._make(entry, limits, number)
        if taken <= allowed + _OVERHEAD + LEAST_LENGTH or limits.units == 1:
            return taken
        fewer = max((limits.units or 1) * allowed // taken, 1)
        return self._make(entry, Limits(limits.characters, fewer), number)

    def _keep_links(self, pools: Sequence[Sequence[Entry]], costs: Sequence[Sequence[int]], room: int) -> None:
        each, left = share_evenly([sum(pool) for pool in costs], room), room
        for number, pool in enumerate(pools):
            allowed = each
            for entry, cost in zip(pool, costs[number], strict=True):
                if cost > allowed or cost + _REGION > left:
                    self._losses[number].links += 1
                    continue
                allowed -= cost
                left -= self._make(entry, _COMPACT, number)


def _numbered(pools: Iterable[Iterable[Entry]]) -> Iterator[tuple[int, Entry]]:
    return ((number, entry) for number, pool in enumerate(pools) for entry in pool)


def normalise_address(href: str) -> str:
    """What two links have in common that lead to the same page (8.2.1): no fragment, no last slash, in lower case.

    A link within the page is its fragment.
    """
    address = href.strip()
    return address if address.startswith("#") else address.partition("#")[0].removesuffix("/").lower()
