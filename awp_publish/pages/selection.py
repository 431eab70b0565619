"""Selects the elements for which a document has room (SOM 1.0, sections 8 and 12.1).

`FULL` leaves nothing out. The other budgets are a number of bytes, and never more than the page itself has. A page that
fits loses nothing, one that nearly fits is condensed, and a larger one is cut (see `Cut`).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from itertools import accumulate
from typing import Any, Final

import orjson

from awp_publish.pages.cutting import ID_BYTES, Cut
from awp_publish.pages.elements import Elements, SomElement
from awp_publish.pages.shelves import LINK_OVERHEAD, OVERHEAD
from awp_publish.pages.shortening import DUPLICATES, ElementLimits, Losses
from awp_publish.pages.survey import Region, Survey
from awp_publish.pages.tree import Tree

MIN_BOUND: Final = 2_048
"""Bytes of a page from which its document is not larger than the page."""

MAX_USUAL: Final = 68_000
"""Bytes that the document of an ordinary page does not exceed."""


class Budget(Enum):
    """The approximate size of a document in bytes; parts that cannot be left out may exceed it. FULL has no limit."""

    FULL = None
    DEFAULT = MAX_USUAL
    TIGHT = 24_000


_MEMBER: Final = 20
"""Bytes of a region besides its facts and its elements: its number, and the member that holds the elements."""

_ESTIMATE_ERROR: Final = 40
"""Bytes by which the estimated size of a page may be too large. Writing it shows whether it fits."""

UNUSED_SHARE: Final = 32
"""If more than one part in so many of a scarce room is unused, a larger selection is tried."""

_BARE_MEMBERS: Final = 2
"""Members of an element that has only a role: a rule, a group without a name."""

_MAX_CONDENSED: Final = 1.5
"""A page up to this many times larger than the room is condensed first, so that nothing may have to be left out."""


def choose(
    tree: Tree, survey: Survey, elements: Elements, facts: Sequence[Mapping[str, Any]], room: int | None
) -> tuple[dict[int, SomElement], list[Losses]]:
    """Return the elements that fit into `room` bytes (all if None), and what is missing of each region.

    `facts` are the members of each region besides its elements.
    """
    pools = [list(_candidates_of(survey, region)) if survey.shadows else region.candidates for region in survey.regions]
    losses: list[Losses] = [defaultdict(int) for _ in pools]
    lengths = list(accumulate(map(len, survey.pieces), initial=0))  # characters before each piece, and the total
    roles = survey.roles
    least = OVERHEAD * sum(map(len, pools)) + (LINK_OVERHEAD - OVERHEAD) * roles.count("link") + lengths[-1]
    of_regions = [len(orjson.dumps(region)) + _MEMBER for region in facts]
    if room is not None and least > 2 * room:
        return Cut(tree, survey, elements, pools, lengths, of_regions, room).select()
    whole, condensed = ElementLimits(), ElementLimits(compact=True)
    made = {
        candidate: elements.make(candidate, whole, lost)
        for pool, lost in zip(pools, losses, strict=True)
        for candidate in pool
    }
    # Links that are identical to an earlier one are dropped (8.2.1): to one in the same region or, if the document
    # would exceed its usual size, in the page.
    total = _size_of(made)
    first_ones, seen = dict[tuple[str, str], SomElement](), set[str]()
    for pool, lost in zip(pools, losses, strict=True):
        if total <= MAX_USUAL:
            first_ones.clear()
            seen.clear()
        for candidate in pool:
            if roles[candidate] != "link" or candidate in survey.shadows:
                continue
            href = tree.attributes[survey.nodes[candidate]].get("href", "")
            if not _leads_away(href):
                continue
            link = made[candidate]
            first = first_ones.setdefault((href, link.get("text", "")), link)
            if first is link:
                continue
            said = orjson.dumps(link).decode()  # bytes objects made by orjson keep 4 KB each
            if link == first or said in seen:
                lost[DUPLICATES] += 1
                total -= len(said) + ID_BYTES
                del made[candidate]
            seen.add(said)
    around = sum(of_regions) - _ESTIMATE_ERROR
    if room is None or total + around <= room:
        return made, losses
    if total <= _MAX_CONDENSED * room:
        made = {candidate: elements.make(candidate, condensed, losses[0]) for candidate in made}
        made = {candidate: element for candidate, element in made.items() if len(element) > _BARE_MEMBERS}
        if _size_of(made) + around <= room:
            return made, losses
    return Cut(tree, survey, elements, pools, lengths, of_regions, room).select()


def _size_of(made: Mapping[int, SomElement]) -> int:
    """Return the bytes of elements with their ids and the commas between them."""
    return len(orjson.dumps(list(made.values()))) - 1 + (ID_BYTES - 1) * len(made) if made else 0


def _candidates_of(survey: Survey, region: Region) -> Iterator[int]:
    """Yield the candidates of a region, including those in shadow roots."""
    for candidate in region.candidates:
        yield candidate
        if candidate in survey.shadows:
            yield from _candidates_of(survey, survey.shadows[candidate])


def _leads_away(href: str) -> bool:
    """Return True if a link has an address. Others act by script, in an unknown way, and are never duplicates."""
    address = href.strip().lower()
    return address not in ("", "#") and not address.startswith("javascript:")
