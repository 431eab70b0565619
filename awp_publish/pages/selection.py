"""Selects the elements for which a document has room, and describes what was left out (SOM 1.0, sections 8 and 12.1).

`FULL` leaves nothing out. The other budgets are a number of bytes, and never more than the page itself has. A page that
fits loses nothing. The elements of a larger one are sorted into shelves, the most important first: 1. links to the next
pages of a list, and headings; 2. texts of the main content, shortened to one common length, the largest that fits, so
that short ones stay whole; 3. controls, with what is needed to operate them, but only the first few with the same name;
4. links of the main content, those with informative texts first, and one link for each address (8.2.1); 5. other
headings and texts; 6. other links; 7. further controls with the same name; 8. further links to the same address. Each
shelf has a share of the room. What one shelf does not need goes to the next ones, and what is left at the end is
distributed once more. A paragraph at the end of each region describes what was left out (8.2.4).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from itertools import accumulate
from typing import Any, Final

import orjson

from awp_publish.pages.elements import Elements, SomElement
from awp_publish.pages.flags import IN_FORM
from awp_publish.pages.paging import find_paging
from awp_publish.pages.roles import CONTROLS, HIDDEN
from awp_publish.pages.shortening import CHARACTERS, SHORTENED, ElementLimits, Losses
from awp_publish.pages.survey import Region, Survey
from awp_publish.pages.tables import rows_of
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

MAX_TURNING: Final = 20
"""Links to other pages of a list that are kept before everything else: "Next" and arrows, then numbers."""

_TEXTS: Final = (1, 4)
"""The shelves of texts."""

_ALIKE: Final = 3
"""Controls with the same name; further ones are on shelf 7."""

_TELLING: Final = 16
"""Characters from which the text of a link counts as a title, and a text as more than a caption."""

_GENERIC: Final = re.compile(
    r"(?:(?:read|learn|see|view|show) )?(?:more|here|details|link|permalink|this|continue reading|click here|yesterday)"
    r"|(?:an?|\d+) (?:second|minute|hour|day|week|month|year)s? ago",
    re.IGNORECASE,
)
MIN_BOUND: Final = 2_048
"""Bytes of a page from which its document is not larger than the page."""

MAX_USUAL: Final = 68_000
"""Bytes that the document of an ordinary page does not exceed."""

_MIN_LENGTH: Final = 200
"""Characters to which texts are shortened at least; if that is not enough, whole texts are left out."""


class Budget(Enum):
    """The approximate size of a document in bytes; parts that cannot be left out may exceed it. FULL has no limit."""

    FULL = None
    DEFAULT = MAX_USUAL
    TIGHT = 24_000


def share_evenly(needs: Sequence[int], room: int) -> int:
    """Return the largest equal share such that all needs together fit; needs below it are met in full."""
    left, count = room, len(needs)
    for need in sorted(needs):
        if need * count > left:
            return max(left // count, 0)
        left -= need
        count -= 1
    return max(needs, default=0)


_OVERHEAD: Final = 60
"""Approximate bytes of an element besides its text."""

_LINK_OVERHEAD: Final = 85
_UNIT_OVERHEAD: Final = 12
"""Approximate bytes of an item of a list, or of a row of a table, besides its text."""

_CONTROL: Final = 100
"""Approximate bytes of a control besides the overhead of any element."""

_WITH_ESCAPES: Final = 0.95
"""The approximate part of a room that a text may fill, because JSON escapes some of its characters."""

_MIN_ROOM: Final = 100
"""Bytes of room that are too few for any element."""

_OUTSIDE_RATIO: Final = 4
"""If text outside of regions has this many times the length of the main regions', it is main content too."""

_ID: Final = 15
"""Bytes of an id, which an element does not have yet when it is measured, and of the comma after it."""

_REGION: Final = 190
"""Approximate bytes of a region besides its elements, including the description of what was left out."""

SUMMARY_BYTES: Final = 170
"""Approximate bytes of a region's description of what was left out."""

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

_OPERATED: Final = CONTROLS | {HIDDEN}

_MODEST: Final = ElementLimits(200, compact=True)
"""Limits for headings and controls in a document that has to be cut (4.6)."""

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


def add_losses(losses: Losses, others: Losses) -> None:
    """Add the counts of `others` to `losses`."""
    for what, count in others.items():
        losses[what] += count


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
    least = _OVERHEAD * sum(map(len, pools)) + (_LINK_OVERHEAD - _OVERHEAD) * roles.count("link") + lengths[-1]
    of_regions = [len(orjson.dumps(one)) + _MEMBER for one in facts]
    if room is not None and least > 2 * room:
        return _cut(tree, survey, elements, pools, lengths, of_regions, room)
    whole, condensed = ElementLimits(), ElementLimits(compact=True)
    made = {
        candidate: elements.make(candidate, whole, lost)
        for pool, lost in zip(pools, losses, strict=True)
        for candidate in pool
    }
    # Links that are identical to an earlier one are dropped (8.2.1): to one in the same region or, if the document
    # would exceed its usual size, in the page.
    said_by, total, seen = dict[int, str](), 0, set[str]()
    for candidate, element in made.items():
        dumped = orjson.dumps(element)
        total += len(dumped) + _ID
        if roles[candidate] == "link":
            said_by[candidate] = dumped.decode()  # bytes objects made by orjson keep 4 KB each
    for pool, lost in zip(pools, losses, strict=True):
        if total <= MAX_USUAL:
            seen.clear()
        for candidate in pool:
            if roles[candidate] != "link" or candidate in survey.shadows:
                continue
            if not _leads_away(tree.attributes[survey.nodes[candidate]].get("href", "")):
                continue
            said = said_by[candidate]
            if said in seen:
                lost[DUPLICATES] += 1
                total -= len(said) + _ID
                del made[candidate]
            seen.add(said)
    around = sum(of_regions) - _ESTIMATE_ERROR
    if room is None or total + around <= room:
        return made, losses
    if total <= _MAX_CONDENSED * room:
        made = {candidate: elements.make(candidate, condensed, losses[0]) for candidate in made}
        made = {candidate: element for candidate, element in made.items() if len(element) > _BARE_MEMBERS}
        if sum(len(orjson.dumps(element)) + _ID for element in made.values()) + around <= room:
            return made, losses
    return _cut(tree, survey, elements, pools, lengths, of_regions, room)


def _candidates_of(survey: Survey, region: Region) -> Iterator[int]:
    """Yield the candidates of a region, including those in shadow roots."""
    for candidate in region.candidates:
        yield candidate
        if candidate in survey.shadows:
            yield from _candidates_of(survey, survey.shadows[candidate])


def _cut(
    tree: Tree,
    survey: Survey,
    elements: Elements,
    pools: Sequence[Sequence[int]],
    lengths: Sequence[int],
    of_regions: Sequence[int],
    room: int,
) -> tuple[dict[int, SomElement], list[Losses]]:
    """Select, by the rules above, what is kept of a page that is too large. Regions are identified by their numbers.

    `of_regions` are the bytes of each region besides its elements.
    """
    made: dict[int, SomElement] = {}
    losses: list[Losses] = [defaultdict(int) for _ in pools]
    cut: dict[int, Losses] = {}  # what is missing within elements
    begun, left = set[int](), room
    sizes: dict[int, int] = {}
    nodes, roles, states, starts, ends = survey.nodes, survey.roles, survey.states, survey.starts, survey.ends

    def make(candidate: int, limits: ElementLimits, most: int) -> int:
        """Keep an element if it takes at most so many bytes, including its region's if it is the first one there."""
        nonlocal left
        number, lost = region_of[candidate], defaultdict[str, int](int)
        element = elements.make(candidate, limits, lost)
        size = len(orjson.dumps(element)) + _ID + (0 if number in begun else of_regions[number] + SUMMARY_BYTES)
        if size <= min(most, left):
            made[candidate], sizes[candidate] = element, size
            if lost:
                cut[candidate] = lost
            begun.add(number)
            left -= size
        return size

    # The main content is in the main regions, unless they are nearly empty; without any, it is outside of all regions.
    # They also count as nearly empty if the whole page is a form.
    texts_of = [
        sum(
            lengths[ends[one]] - lengths[starts[one]]
            for one in pool
            if roles[one] in ("paragraph", "heading", "list", "table")
        )
        for pool in pools
    ]
    by_role = {
        role: {number for number, region in enumerate(survey.regions) if region.landmark.role == role}
        for role in ("main", "content", "form")
    }
    main = by_role["main"]
    for role in ("content", "form"):  # some pages are one form
        if _OUTSIDE_RATIO * sum(texts_of[number] for number in main) < sum(
            texts_of[number] for number in by_role[role]
        ):
            main |= by_role[role]
    main = main or set(range(len(pools)))

    # Shelves of candidates. For each candidate: the number of its region, the bytes of one unit, and the number of
    # units.
    shelves: list[list[int]] = [[] for _ in _SHARES]
    region_of, unit_of, units_of = [0] * len(nodes), [0] * len(nodes), [1] * len(nodes)
    pieces, text = survey.pieces, "".join(survey.pieces)
    width = len(text.encode()) / len(text) if text else 1.0  # average bytes of a character
    alike, addresses = Counter[str](), dict[str, str]()
    by_address, captions = dict[str, int](), dict[str, str]()  # the link to an address, and its text
    duplicates, titles = set[int](), set[int]()
    scores: dict[str, tuple[int, int]] = {}  # how informative the texts of links are
    short_texts: dict[int, str] = {}  # of links in the main content

    def score(text: str) -> tuple[int, int]:
        found = scores.get(text)
        if found is None:
            said = " ".join(text.split())
            telling = any(map(str.isalpha, said)) + (_GENERIC.fullmatch(said) is None)
            found = scores[text] = telling if said else 0, min(len(said), _MIN_LENGTH) if telling == 2 else 0
        return found

    paging, turning = find_paging(tree), list[int]()
    all_attributes, link_overhead = tree.attributes, _LINK_OVERHEAD - _OVERHEAD
    for number, pool in enumerate(pools):
        is_main = number in main
        add_link = shelves[3 if is_main else 5].append
        for candidate in pool:
            region_of[candidate] = number
            role, attributes = roles[candidate], all_attributes[nodes[candidate]]
            start, end = starts[candidate], ends[candidate]
            size = int((lengths[end] - lengths[start]) * width)
            if role == "link" and "href" in attributes:  # most candidates of most large pages
                href = attributes["href"]
                if nodes[candidate] in paging:
                    unit_of[candidate] = link_overhead + min(size, 200) + len(href)
                    turning.append(candidate)
                    continue
                address = addresses.get(href)
                if address is None:
                    address = addresses[href] = normalise_address(href)
                first = address[:1]
                said = pieces[start] if end == start + 1 else "".join(pieces[start:end])
                if first and address != "#" and (first != "j" or address[:11] != "javascript:"):
                    other = by_address.setdefault(address, candidate)
                    if other == candidate:
                        captions[address] = said
                    else:
                        less = candidate
                        if other not in titles and said != captions[address] and score(said) > score(captions[address]):
                            by_address[address], captions[address], less = candidate, said, other
                        duplicates.add(less)
                if size >= _TELLING and first != "#":  # texts such as "12 minutes ago" are shorter
                    titles.add(candidate)
                elif is_main:
                    short_texts[candidate] = said.strip()
                unit_of[candidate] = link_overhead + (size if size < 200 else 200) + len(href)
                add_link(candidate)
            elif role in _OPERATED:
                said = f"{number} {role} {elements.name_of(candidate)} {attributes.get('name', '')}".lower()
                alike[said] += role != HIDDEN
                unit_of[candidate] = min(size, 200) + _CONTROL
                shelves[2 if alike[said] <= _ALIKE else 6].append(candidate)
            elif role == "heading" or candidate in survey.shadows:
                unit_of[candidate] = min(size, 200)
                shelves[0].append(candidate)
            else:
                units = 1
                if role == "list":
                    units = max(sum([tree.tags[child] == "li" for child in tree.children(nodes[candidate])]), 1)
                elif role == "table":
                    units = max(sum(1 for _ in rows_of(tree, nodes[candidate])), 1)
                if role in ("list", "table"):
                    size = size // units + _UNIT_OVERHEAD
                unit_of[candidate], units_of[candidate] = size, units
                shelves[1 if is_main and size >= _TELLING else 4].append(candidate)
    for number in (3, 5) if duplicates else ():
        shelves[7] += [one for one in shelves[number] if one in duplicates]
        shelves[number] = [one for one in shelves[number] if one not in duplicates]
    turning.sort(key=lambda one: paging[nodes[one]].isdecimal())
    headings = sorted(shelves[0], key=lambda one: region_of[one] not in main)
    shelves[0] = [*turning[:MAX_TURNING], *headings]
    shelves[3] = turning[MAX_TURNING:] + shelves[3]

    def rank(control: int) -> int:  # submit buttons first, then fields, other controls, and controls for scripts
        if all_attributes[nodes[control]].get("type", "").lower() in ("button", "reset"):
            return 3
        return (0 if roles[control] in ("button", HIDDEN) else 1) if states[control] & IN_FORM else 2

    shelves[2].sort(key=rank)
    shelves[6].sort(key=rank)
    # Titles first, then texts of several words, then single words such as user names, and last texts that occur often.
    times = Counter([said for one, said in short_texts.items() if one not in duplicates])
    ranked: list[list[int]] = [[], [], [], []]
    for one in shelves[3]:
        caption = short_texts.get(one)
        ranked[0 if caption is None else 3 if times[caption] > _ALIKE else 1 if " " in caption else 2].append(one)
    shelves[3] = [one for rank in ranked for one in rank]

    shares = _AMPLE_SHARES if room >= _AMPLE or main & by_role["form"] else _SHARES
    if room < SCARCE and shares is _SHARES:
        shares = _SCARCE_SHARES
    room_left = room - _REGION * min(len(pools), room // (8 * _REGION))
    needs = [_OVERHEAD * len(shelf) + sum([unit_of[one] * units_of[one] for one in shelf]) for shelf in shelves]
    given = [min(need, int(room_left * share)) for need, share in zip(needs, shares, strict=True)]
    spare = room_left - sum(given)
    for number, need in enumerate(needs):
        more = max(min(need - given[number], spare), 0)
        given[number] += more
        spare -= more
    for place, (shelf, allowed) in enumerate(zip(shelves, given, strict=True)):
        if place not in _TEXTS:
            for candidate in shelf:
                if left <= _MIN_ROOM:
                    break
                if unit_of[candidate] + _OVERHEAD <= allowed:
                    taken = make(candidate, _MODEST, allowed + _OVERHEAD + _MIN_LENGTH)
                    allowed -= taken if candidate in made else 0
            continue
        all_units = [unit_of[one] for one in shelf for _ in range(units_of[one])]
        most = max(share_evenly(all_units, allowed - _OVERHEAD * len(shelf)), _MIN_LENGTH)
        of_one = ElementLimits(most, 1, compact=True)
        for candidate in shelf:
            kept = min((allowed - _OVERHEAD) // max(min(unit_of[candidate], most), 1), units_of[candidate])
            if kept < 1:
                continue
            limits = of_one if kept == 1 else ElementLimits(most, kept, compact=True)
            taken = make(candidate, limits, allowed + _OVERHEAD + _MIN_LENGTH)
            if candidate not in made and kept > 1:  # a list or a table that is larger than estimated
                limits = ElementLimits(most, max(kept * min(allowed, left) // taken, 1), compact=True)
                taken = make(candidate, limits, allowed + _OVERHEAD + _MIN_LENGTH)
            allowed -= taken if candidate in made else 0
    for place, shelf in enumerate(shelves):  # a second round, with the room that is left
        for candidate in shelf:
            if left <= _MIN_ROOM:
                break
            unit = unit_of[candidate]
            if unit + _OVERHEAD <= left and candidate not in made:
                kept = min((left - _OVERHEAD) // max(unit, 1), units_of[candidate])
                limits = ElementLimits(_MIN_LENGTH * 2, kept, compact=True) if place in _TEXTS else _MODEST
                make(candidate, limits, left)
    # Complete regions need no description. The room is used to give texts back in full, those that lack least first.
    for number in begun:
        if all(one in made and one not in cut for one in pools[number]):
            left += SUMMARY_BYTES
    short = [one for one in shelves[1] if one in cut and units_of[one] == 1]
    for candidate in sorted(short, key=lambda one: unit_of[one] - sizes[one]):
        if left <= _MIN_ROOM:
            break
        size, element, lost = sizes[candidate], made.pop(candidate), cut.pop(candidate)
        left += size
        most = int(min(unit_of[candidate], (left - _OVERHEAD) * _WITH_ESCAPES) / width) + 1
        make(candidate, ElementLimits(max(most, _MIN_LENGTH), compact=True), left - _MIN_ROOM // 2)
        if candidate not in made:
            made[candidate], cut[candidate] = element, lost
            left -= size

    for lost, pool in zip(losses, pools, strict=True):
        links = 0
        for candidate in pool:
            if candidate in made:
                if candidate in cut:
                    add_losses(lost, cut[candidate])
            elif candidate in duplicates:
                lost[DUPLICATES] += 1
            elif roles[candidate] == "link":
                links += 1
            else:
                lost["more paragraphs" if roles[candidate] == "paragraph" else "more elements"] += 1
                lost[CHARACTERS] += lengths[ends[candidate]] - lengths[starts[candidate]]
        if links:
            lost["more links"] += links
    return made, losses


def _leads_away(href: str) -> bool:
    """Return True if a link has an address. Others act by script, in an unknown way, and are never duplicates."""
    address = href.strip().lower()
    return address not in ("", "#") and not address.startswith("javascript:")


def normalise_address(href: str) -> str:
    """Normalise an address so that links to the same page are equal (8.2.1): no fragment, no last slash, lower case.

    A link within the page is its fragment.
    """
    address = href.strip()
    if "#" in address:
        if address[0] == "#":
            return address
        address = address.partition("#")[0]
    return (address[:-1] if address[-1:] == "/" else address).lower()
