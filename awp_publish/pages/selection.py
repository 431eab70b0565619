"""The choice of candidates that a document has room for, and the sentences that say what of the others is left out."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import accumulate
from typing import Final

import orjson

from awp_publish.pages.elements import CHARACTERS, SHORTENED, ElementLimits, Elements, Losses, SomElement
from awp_publish.pages.regions import Candidate, Region, Survey
from awp_publish.pages.roles import CONTROLS
from awp_publish.pages.tables import rows_of

# --- How much of a page a SOM document says: the choice of the caller (SOM 1.0, sections 8 and 12.1) ---
# `FULL` leaves nothing out. The others are a number of bytes. A page that fits loses nothing; of a larger one
# 1. every heading and every control is kept, with what they need to be operated; 2. links that lead where an earlier
# one of the page leads are left out (8.2.1); 3. the rest of the bytes is shared: seventeen parts for text, three for
# links; what one does not need the other gets; 4. texts, items of lists and rows of tables are shortened to one
# common length, the largest that fits: short ones stay whole; 5. links are kept in the order of the page, with an
# equal share for each region: small regions keep all of theirs.
# What was left out is said at the end of its region, in a paragraph (8.2.4).

_TEXT_SHARE: Final = 0.85
MAX_USUAL: Final = 68_000
"""Bytes that the document of an ordinary page does not exceed."""

_MIN_LENGTH: Final = 200
"""Characters below which texts are not shortened; beyond that, whole ones are left out."""


class Budget(Enum):
    """Bytes that a document may take, about; what cannot be left out may take more. FULL has no limit."""

    FULL = None
    DEFAULT = MAX_USUAL
    TIGHT = 24_000


def share_evenly(needs: Sequence[int], room: int) -> int:
    """Return the largest share that each may have, so that all together fit: the smaller needs are met whole."""
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

_ALWAYS: Final = CONTROLS | {"heading"}
"""Roles that no budget drops."""

_MODEST: Final = ElementLimits(200)
"""The size of headings and controls in a document that has to be cut (4.6)."""

_COMPACT: Final = ElementLimits(200, compact=True)
"""The size of links in such a document."""

DUPLICATES: Final = "duplicate links"
STRUCTURED: Final = "more blocks of structured data"
_DROPPED: Final = (
    *(DUPLICATES, "more links", "more paragraphs", "more elements", "more list items", "more table rows"),
    *("more options", STRUCTURED),
)


def describe_losses(losses: Losses) -> str:
    """Return in words, in the form of 8.2.4, what is missing; "" when nothing is."""
    dropped = ", ".join(f"{losses[what]} {what}" for what in _DROPPED if losses[what])
    parts = [f"{dropped} dropped"] if dropped else []
    if losses[SHORTENED]:
        parts.append(f"{losses[SHORTENED]} {SHORTENED}")
    return f"[{', '.join(parts)}, ~{losses[CHARACTERS]} {CHARACTERS}]" if parts else ""


def add_losses(losses: Losses, others: Losses) -> None:
    """Count what is missing elsewhere too."""
    for what, count in others.items():
        losses[what] += count


def choose(survey: Survey, elements: Elements, room: int | None) -> tuple[dict[Candidate, SomElement], list[Losses]]:
    """Return the elements that fit in so many bytes, all when there is no limit, and what is missing of each region."""
    pools = [list(_candidates_of(region)) for region in survey.regions]
    losses: list[Losses] = [defaultdict(int) for _ in pools]
    lengths = list(accumulate(map(len, survey.pieces), initial=0))  # characters before each piece, and in all
    links = sum(candidate.role == "link" for pool in pools for candidate in pool)
    least = _OVERHEAD * sum(map(len, pools)) + (_LINK_OVERHEAD - _OVERHEAD) * links + lengths[-1]
    if room is not None and least > 2 * room:
        return _cut(survey, elements, pools, lengths, room)
    whole = ElementLimits()
    made = {
        candidate: elements.make(candidate, whole, lost)
        for pool, lost in zip(pools, losses, strict=True)
        for candidate in pool
    }
    # Links that say the very same as one before them go (8.2.1): before them in their region; or, when what there is
    # goes beyond the usual size of a document, in the page.
    sizes = {candidate: orjson.dumps(element) for candidate, element in made.items()}
    total = sum(map(len, sizes.values())) + _ID * len(sizes)
    seen: set[bytes] = set()
    for pool, lost in zip(pools, losses, strict=True):
        if total <= MAX_USUAL:
            seen = set()
        for candidate in pool:
            if candidate.role != "link" or candidate.shadow is not None:
                continue
            if not _leads_away(candidate.node.attributes.get("href", "")):
                continue
            said = sizes[candidate]
            if said in seen:
                lost[DUPLICATES] += 1
                total -= len(said) + _ID
                del made[candidate]
            seen.add(said)
    if room is None or total + _REGION * len(pools) <= room:
        return made, losses
    return _cut(survey, elements, pools, lengths, room)


def _candidates_of(region: Region) -> Iterator[Candidate]:
    """Yield the candidates of a region, those in shadow roots too."""
    for candidate in region.candidates:
        yield candidate
        if candidate.shadow is not None:
            yield from _candidates_of(candidate.shadow)


def _cut(
    survey: Survey, elements: Elements, pools: Sequence[Sequence[Candidate]], lengths: Sequence[int], room: int
) -> tuple[dict[Candidate, SomElement], list[Losses]]:
    """Choose by the rules above what is kept of a page that is too large. Regions are known by their numbers."""
    made: dict[Candidate, SomElement] = {}
    losses: list[Losses] = [defaultdict(int) for _ in pools]
    cut: dict[Candidate, Losses] = {}  # what is missing within elements, some of which are made twice
    begun: set[int] = set()

    def make(candidate: Candidate, limits: ElementLimits, number: int) -> int:
        """Make an element, and return how many bytes it takes, with those of its region when it is the first there."""
        lost: Losses = defaultdict(int)
        element = made[candidate] = elements.make(candidate, limits, lost)
        if lost:
            cut[candidate] = lost
        else:
            cut.pop(candidate, None)
        shell = 0 if number in begun else _REGION
        begun.add(number)
        return len(orjson.dumps(element)) + _ID + shell

    # What is always kept; and for each region the links that lead where none before them does, with their bytes, and
    # the texts: bytes of each, bytes of one of the units that it comes in, and how many those are.
    text = "".join(survey.pieces)
    width = len(text.encode()) / len(text) if text else 1.0  # bytes of a character, on average
    links, texts = (
        [list[tuple[Candidate, int]]() for _ in pools],
        [list[tuple[Candidate, int, int, int]]() for _ in pools],
    )
    left, seen = room, set[str]()
    for number, pool in enumerate(pools):
        for candidate in pool:
            role, node = candidate.role, candidate.node
            length = lengths[candidate.end] - lengths[candidate.start]
            if role in _ALWAYS or candidate.shadow is not None or (role == "link" and "href" not in node.attributes):
                left -= make(candidate, _MODEST, number)  # what a link without an address does, a script knows
            elif role == "link":
                address = normalise_address(node.attributes["href"])
                if address in seen and _leads_away(address):
                    losses[number][DUPLICATES] += 1
                else:
                    seen.add(address)
                    links[number].append((candidate, _LINK_OVERHEAD + length + len(node.attributes["href"])))
            else:
                size = int(length * width)
                if role in ("list", "table"):
                    items = (child for child in node.children if child.tag == "li")
                    units = max(sum(1 for _ in (items if role == "list" else rows_of(node))), 1)
                    texts[number].append((candidate, size, size // units + _UNIT_OVERHEAD, units))
                else:
                    texts[number].append((candidate, size, size, 1))

    for_texts = max(int(left * _TEXT_SHARE), left - sum(cost for costed in links for _, cost in costed), 0)
    count = sum(map(len, texts))
    all_units = [unit for sized in texts for _, _, unit, units in sized for _ in range(units)]
    most = max(share_evenly(all_units, for_texts - _OVERHEAD * count), _MIN_LENGTH)
    needs = [sum(_OVERHEAD + min(unit, most) * units for _, _, unit, units in sized) for sized in texts]
    each, used = share_evenly(needs, for_texts), 0
    for number, sized in enumerate(texts):
        allowed = each
        for candidate, size, unit, units in sized:
            kept = min((allowed - _OVERHEAD) // max(min(unit, most), 1), units)
            if kept < 1 or used >= for_texts:
                losses[number]["more paragraphs" if candidate.role == "paragraph" else "more elements"] += 1
                losses[number][CHARACTERS] += size
                continue
            taken = make(candidate, ElementLimits(most, kept), number)
            if taken > allowed + _OVERHEAD + _MIN_LENGTH and kept > 1:  # a list or a table larger than it seemed
                taken = make(candidate, ElementLimits(most, max(kept * allowed // taken, 1)), number)
            allowed -= taken
            used += taken

    left = max(left - used, 0)
    each = share_evenly([sum(cost for _, cost in costed) for costed in links], left)
    for number, costed in enumerate(links):
        allowed = each
        for candidate, cost in costed:
            if cost > allowed or cost + _REGION > left:
                losses[number]["more links"] += 1
                continue
            allowed -= cost
            left -= make(candidate, _COMPACT, number)
    for number, pool in enumerate(pools):
        for candidate in pool:
            if candidate in cut:
                add_losses(losses[number], cut[candidate])
    return made, losses


def _leads_away(href: str) -> bool:
    """Tell whether a link leads anywhere; others do by script what is not known, and are never the same."""
    address = href.strip().lower()
    return address not in ("", "#") and not address.startswith("javascript:")


def normalise_address(href: str) -> str:
    """Return what two links have in common that lead to the same page (8.2.1): no fragment, no last slash, lower case.

    A link within the page is its fragment.
    """
    address = href.strip()
    return address if address.startswith("#") else address.partition("#")[0].removesuffix("/").lower()
