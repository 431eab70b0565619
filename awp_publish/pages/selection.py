"""Which entries of a survey a document has room for, and what it says of the others. The rules are in `budget`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urldefrag

import orjson

from awp_publish.pages.budget import LEAST_LENGTH, TEXT_SHARE, share_evenly
from awp_publish.pages.elements import Elements, Made
from awp_publish.pages.regions import Entry, Region, Survey
from awp_publish.pages.roles import CONTROLS
from awp_publish.pages.shortening import Limits, Shortened

_OVERHEAD: Final = 75
"""Bytes of an element beside its text, about."""

_LINK_OVERHEAD: Final = 85
_SUMMARY: Final = 150
_KEPT_CHARACTERS: Final = 200
"""What headings and controls may say in a document that has to be cut (4.6)."""


@dataclass(slots=True)
class Loss:
    """What is missing from a region."""

    duplicates: int = 0
    links: int = 0
    paragraphs: int = 0
    elements: int = 0
    structured: int = 0
    shortened: Shortened = field(default_factory=Shortened)

    def drop(self, entry: Entry, characters: int) -> None:
        """Counts an entry that is left out. What a link says is in the text around it."""
        if entry.role == "link":
            self.links += 1
            return
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
    if room is None or _roughly(pools) <= 2 * room:
        made = {entry: elements.make(entry, Limits()) for pool in pools for entry in pool}
        if room is None or sum(map(_bytes, made.values())) + _SUMMARY * len(pools) <= room:
            return Selection(made, [Loss() for _ in pools])
    return _Cut(survey, elements, pools).select(room)


def _entries(region: Region) -> Iterator[Entry]:
    """The entries of a region, those in shadow roots too."""
    for entry in region.entries:
        yield entry
        if entry.shadow is not None:
            yield from _entries(entry.shadow)


def _roughly(pools: Sequence[Sequence[Entry]]) -> int:
    return sum(_OVERHEAD * len(pool) for pool in pools)


def _bytes(made: Made) -> int:
    return len(orjson.dumps(made.element)) + 15


class _Cut:
    __slots__ = ("_elements", "_losses", "_made", "_pools", "_survey", "_texts")

    def __init__(self, survey: Survey, elements: Elements, pools: Sequence[Sequence[Entry]]) -> None:
        self._survey, self._elements, self._pools = survey, elements, pools
        self._made: dict[Entry, Made] = {}
        self._losses = [Loss() for _ in pools]
        self._texts: dict[Entry, str] = {}

    def select(self, room: int) -> Selection:
        left = room - _SUMMARY * len(self._pools) - self._keep_always()
        links = [list(pool) for pool in self._links()]
        texts = [[entry for entry in pool if not _always(entry) and entry.role != "link"] for pool in self._pools]
        wanted_links = sum(map(self._link_cost, _flat(links)))
        wanted_text = sum(map(self._text_cost, _flat(texts)))
        for_text = max(int(left * TEXT_SHARE), left - wanted_links)
        left -= self._keep(texts, max(min(for_text, wanted_text), 0))
        self._keep_links(links, max(left, 0))
        for loss, pool in zip(self._losses, self._pools, strict=True):
            for entry in pool:
                if entry in self._made:
                    loss.shortened.add(self._made[entry].shortened)
        return Selection(self._made, self._losses)

    def _keep_always(self) -> int:
        limits = Limits(_KEPT_CHARACTERS)
        return sum(self._make(entry, limits) for entry in _flat(self._pools) if _always(entry))

    def _make(self, entry: Entry, limits: Limits) -> int:
        made = self._made[entry] = self._elements.make(entry, limits)
        return _bytes(made)

    def _links(self) -> Iterator[list[Entry]]:
        """For each region its links, without those that lead where one before them leads."""
        seen: set[str] = set()
        for pool, loss in zip(self._pools, self._losses, strict=True):
            kept: list[Entry] = []
            for entry in pool:
                if entry.role == "link" and not _always(entry):
                    address = normalise_address(entry.node.attributes["href"])
                    if address in seen:
                        loss.duplicates += 1
                        continue
                    seen.add(address)
                    kept.append(entry)
            yield kept

    def _text(self, entry: Entry) -> str:
        if entry not in self._texts:
            self._texts[entry] = self._survey.text(entry)
        return self._texts[entry]

    def _link_cost(self, entry: Entry) -> int:
        return _LINK_OVERHEAD + len(self._text(entry).encode()) + len(entry.node.attributes["href"])

    def _text_cost(self, entry: Entry) -> int:
        said = len(self._text(entry).encode())
        return _OVERHEAD + said + (said // 3 if entry.role in ("list", "table") else 0)

    def _keep(self, pools: Sequence[Sequence[Entry]], room: int) -> int:
        """Keeps texts, shortened to one length, and says how many bytes they take."""
        costs = {entry: self._text_cost(entry) for entry in _flat(pools)}
        most = max(share_evenly(list(costs.values()), room), _OVERHEAD + LEAST_LENGTH)
        shares = [sum(min(costs[entry], most) for entry in pool) for pool in pools]
        each, used = share_evenly(shares, room), 0
        limits = Limits(most - _OVERHEAD)
        for pool, loss in zip(pools, self._losses, strict=True):
            allowed = each
            for entry in pool:
                if allowed < min(costs[entry], most) or used >= room:
                    loss.drop(entry, len(self._text(entry)))
                    continue
                taken = self._make(entry, limits)
                allowed -= min(costs[entry], most)
                used += taken
        return used

    def _keep_links(self, pools: Sequence[Sequence[Entry]], room: int) -> None:
        each = share_evenly([sum(map(self._link_cost, pool)) for pool in pools], room)
        limits = Limits(_KEPT_CHARACTERS, compact=True)
        for pool, loss in zip(pools, self._losses, strict=True):
            allowed = each
            for entry in pool:
                allowed -= self._link_cost(entry)
                if allowed < 0:
                    loss.drop(entry, 0)
                    continue
                self._make(entry, limits)


def _always(entry: Entry) -> bool:
    """What no budget drops: headings and what can be operated; a link is only when it leads nowhere but to a script."""
    return (
        entry.role in CONTROLS
        or entry.role == "heading"
        or entry.shadow is not None
        or (entry.role == "link" and "href" not in entry.node.attributes)
    )


def _flat(pools: Iterable[Iterable[Entry]]) -> Iterator[Entry]:
    return (entry for pool in pools for entry in pool)


def normalise_address(href: str) -> str:
    """What two links have in common that lead to the same page (8.2.1): no fragment, no last slash, in lower case.

    A link within the page is its fragment.
    """
    address = href.strip()
    if address.startswith("#"):
        return address
    return urldefrag(address).url.removesuffix("/").lower() if "#" in address else address.removesuffix("/").lower()
