"""The third pass, which makes a page's Semantic Object Model: it selects what fits, assigns ids and writes a document.

SOM specification 1.0 (documents of version 0.1), `som-schema.json`. Only what the schema has is written: the caption of
a table is its label. Differences from the reference compiler are listed in docs/som.md.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from itertools import accumulate
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from awp_publish.pages.content import find_content
from awp_publish.pages.elements import (
    CHARACTERS,
    SHORTENED,
    AccessibleNames,
    ElementLimits,
    Elements,
    Losses,
    SomElement,
    collapse,
    form_method,
    shorten_text,
)
from awp_publish.pages.paging import find_paging
from awp_publish.pages.regions import ACTIONS, CONTROLS, HIDDEN, IN_FORM, Region, Survey, rows_of, survey
from awp_publish.pages.selectolax import parse
from awp_publish.pages.tree import NodePaths, Tree, Visibility, read_title, shadow_mode_of, written_in

# --- Selecting the elements for which a document has room, and describing what was left out ---

# --- Budgets: how much of a page a document has, as the caller chooses (SOM 1.0, sections 8 and 12.1) ---
# `FULL` leaves nothing out. The others are a number of bytes, and never more than the page itself has. A page that fits
# loses nothing. The elements of a larger one are sorted into shelves, the most important first: 1. links to the next
# pages of a list, and headings; 2. texts of the main content, shortened to one common length, the largest that fits,
# so that short ones stay whole; 3.
# controls, with what is needed to operate them, but only the first few with the same name; 4. links of the main
# content, those with informative texts first, and one link for each address (8.2.1); 5. other headings and texts; 6.
# other links; 7. further controls with the same name; 8. further links to the same address. Each shelf has a share of
# the room. What one shelf does not need goes to the next ones, and what is left at the end is distributed once more. A
# paragraph at the end of each region describes what was left out (8.2.4).

_SHARES: Final = (0.15, 0.62, 0.12, 0.08, 0.01, 0.02, 0.0, 0.0)
_AMPLE: Final = 48_000
_AMPLE_SHARES: Final = (0.12, 0.25, 0.55, 0.05, 0.01, 0.02, 0.0, 0.0)
"""The share of the room that each shelf has at least, if it needs it. With ample room all controls fit; on a page that
is mostly a form they have the larger share.
"""

_SCARCE: Final = 20_000
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

_SUMMARY: Final = 170
"""Approximate bytes of a region's description of what was left out."""

_MEMBER: Final = 20
"""Bytes of a region besides its facts and its elements: its number, and the member that holds the elements."""

_ESTIMATE_ERROR: Final = 40
"""Bytes by which the estimated size of a page may be too large. Writing it shows whether it fits."""

_UNUSED_SHARE: Final = 32
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
        size = len(orjson.dumps(element)) + _ID + (0 if number in begun else of_regions[number] + _SUMMARY)
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
    if room < _SCARCE and shares is _SHARES:
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
            left += _SUMMARY
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


# --- Metadata of a page: JSON-LD, Open Graph, Twitter cards, meta and link (SOM 1.0, section 2.2) ---

_META: Final = frozenset(("author", "description", "generator", "keywords", "robots", "theme-color", "viewport"))
_RELATIONS: Final = frozenset(
    ("alternate", "amphtml", "apple-touch-icon", "author", "canonical", "dns-prefetch", "icon", "license", "manifest")
) | {"preconnect", "search", "shortcut icon"}


def read_structured(tree: Tree) -> dict[str, Any]:
    """Return the parts that are not empty, in the order of 2.2."""
    json_ld: list[dict[str, Any]] = []
    for script in tree.find("script"):
        if tree.attributes[script].get("type", "").strip().lower() != "application/ld+json":
            continue
        try:
            found = orjson.loads(written_in(tree, script).strip())
            orjson.dumps([[[found]]])
        except (orjson.JSONDecodeError, TypeError):  # not JSON, or nested too deeply to be written
            continue
        json_ld += (block for block in (found if isinstance(found, list) else [found]) if isinstance(block, dict))
    by_property: dict[str, str] = {}
    by_name: dict[str, str] = {}
    facts: dict[str, str] = {}
    for meta in tree.find("meta"):
        attributes = tree.attributes[meta]
        content = attributes.get("content")
        if content is not None:
            if attributes.get("property", "").startswith("og:"):
                by_property[attributes["property"]] = content
            if attributes.get("name", "").startswith("twitter:"):
                by_name[attributes["name"]] = content
            name = attributes.get("name", "").strip().lower()
            if name in _META:
                facts[name] = content
        if attributes.get("charset"):
            facts["charset"] = attributes["charset"]
    links: list[dict[str, str]] = []
    for link in tree.find("link"):
        attributes = tree.attributes[link]
        relation = attributes.get("rel", "").strip().lower()
        if relation in _RELATIONS and "href" in attributes:
            also = {name: attributes[name] for name in ("type", "hreflang") if attributes.get(name)}
            links.append({"rel": relation, "href": attributes["href"], **also})
    parts = {"json_ld": json_ld, "open_graph": by_property, "twitter_card": by_name, "meta": facts, "links": links}
    return {name: part for name, part in parts.items() if part}


def trim_structured(parts: dict[str, Any], room: int) -> int:
    """Remove the largest members (a block, a name, a link) until the rest fits. Returns the number of removed ones."""
    sizes: list[tuple[int, str, Any]] = []
    for part, members in parts.items():
        keyed = members.items() if isinstance(members, dict) else enumerate(members)
        sizes += ((len(orjson.dumps(member)), part, key) for key, member in keyed)
    total, taken = sum(size + len(str(key)) for size, _, key in sizes), list[tuple[str, Any]]()
    for size, part, key in sorted(sizes, key=lambda one: one[0], reverse=True):
        if total <= room:
            break
        total -= size + len(str(key))
        taken.append((part, key))
    for part, key in sorted(taken, key=lambda one: one[1] if isinstance(one[1], int) else 0, reverse=True):
        del parts[part][key]
    for part in [name for name, members in parts.items() if not members]:
        del parts[part]
    return len(taken)


# --- Ids (SOM 1.0, section 7) ---

MAX_NAME: Final = 100
"""Characters of a name that count in an id (7.1)."""

_DIGITS: Final = 12
_DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL, without the scheme's default port; "null" without a host (7.1).

    A malformed URL is returned unchanged.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return url
    if not parts.scheme:
        return url
    if parts.scheme not in _DEFAULT_PORTS or not host:
        return "null"
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}" + ("" if port in (None, _DEFAULT_PORTS[parts.scheme]) else f":{port}")


class Identifiers:
    """Assigns the ids of one document."""

    __slots__ = ("_elements", "_origin", "_regions")

    def __init__(self, url: str) -> None:
        self._origin = origin_of(url)
        self._elements: dict[str, int] = {}
        self._regions: Counter[str] = Counter()

    def element(self, role: str, name: str, path: str) -> str:
        """Return `e_` and twelve digits of a hash, with a number if the document has that id already (7.3)."""
        text = f"{self._origin}|{role}|{name.lower().strip()[:MAX_NAME]}|{path}"
        plain = "e_" + sha256(text.encode("utf-8", "replace")).hexdigest()[:_DIGITS]
        count = self._elements[plain] = self._elements.get(plain, 0) + 1
        return plain if count == 1 else f"{plain}_{count}"

    def region(self, base: str) -> str:
        """Return `r_` and the role, with a number from the second region of that role on (7.2)."""
        count = self._regions[base]
        self._regions[base] += 1
        return f"r_{base}_{count}" if count else f"r_{base}"


# --- Documents ---

VERSION: Final = "0.1"
MEDIA_TYPE: Final = "application/som+json"

_STRUCTURED_SHARE: Final = 8
"""Structured data may use one part in so many of a budget."""

_PRESENTATION: Final = ("charset", "theme-color", "viewport")
"""Facts that matter less than any control: they are left out first if a small page has to be cut."""

_MAX_TITLE: Final = 1_000
_META_BYTES: Final = 130
"""Bytes of `meta` and of the members around it."""

_ATTEMPTS: Final = 4
_FORM: Final = {
    "target": "target",
    "enctype": "enctype",
    "accept-charset": "accept_charset",
    "autocomplete": "autocomplete",
}


@dataclass(frozen=True, slots=True)
class Som:
    """A compiled page.

    `document` is the SOM document; `places` has, for each element's id, the path of the node from which it was made
    (see `Tree.node_at`). The paragraphs that describe what was left out have no place.
    """

    document: dict[str, Any]
    places: Mapping[str, str]

    def dump(self) -> bytes:
        """Return the document as compact JSON; `meta.som_bytes` is its length."""
        return orjson.dumps(self.document)


def compile_som(
    source: Tree | str | bytes, url: str, budget: Budget = Budget.DEFAULT, charset: str | None = None
) -> Som:
    """Return the SOM document of a page at `url`. No input raises an exception.

    A tree may be compiled more than once. `charset` is that of the `Content-Type`, if `source` is bytes.
    """
    url = url.encode("utf-8", "replace").decode()
    if isinstance(source, Tree):
        return _compile(source, url, budget)
    tree = parse(source, charset)
    som = _compile(tree, url, budget)
    tree.unlink()
    return som


def _compile(tree: Tree, url: str, budget: Budget) -> Som:
    structured, visibility = read_structured(tree), Visibility(tree)
    most = budget.value
    left_out = 0 if most is None else trim_structured(structured, most // _STRUCTURED_SHARE)
    if most is not None and tree.html_bytes > MIN_BOUND:
        most = min(most, tree.html_bytes)
        if len(orjson.dumps(structured)) > most // 2:
            left_out += trim_structured(structured, most // _STRUCTURED_SHARE)
    title = read_title(tree)
    head: dict[str, Any] = {
        "som_version": VERSION,
        "url": url,
        "title": title if budget is Budget.FULL else shorten_text(title, _MAX_TITLE),
        "lang": tree.attributes[0].get("lang") or "en",
    }
    names = AccessibleNames(visibility)
    found = survey(tree, visibility, find_content(tree, visibility), names.told)
    elements = Elements(found, names, visibility, url)
    facts = _describe(found.regions, tree, elements, url)
    room = None if most is None else most - len(orjson.dumps(head)) - len(orjson.dumps(structured)) - _META_BYTES
    best, enough, too_much = None, 0, 0
    for _ in range(_ATTEMPTS):
        made, losses = choose(tree, found, elements, facts, room)
        if left_out and losses:
            losses[-1][STRUCTURED] = left_out
        som = _assemble(tree, head, structured, found, facts, made, losses)
        if most is None or room is None:
            return som
        # The size of the descriptions of what was left out is only known now.
        spare = most - som.document["meta"]["som_bytes"]
        if spare < 0:
            too_much = room
        else:
            enough = room
            if best is not None and som.document["meta"]["som_bytes"] <= best.document["meta"]["som_bytes"]:
                break
            best = som
            lacks = any(lost[what] for lost in losses for what in lost if what not in (DUPLICATES, STRUCTURED))
            if spare <= most // _UNUSED_SHARE or not lacks or most >= _SCARCE:
                break
        if most < (budget.value or 0) and "meta" in structured:
            kept = {name: value for name, value in structured["meta"].items() if name not in _PRESENTATION}
            without = {part: kept if part == "meta" else members for part, members in structured.items()}
            without = {part: members for part, members in without.items() if members}
            room += len(orjson.dumps(structured)) - len(orjson.dumps(without))
            structured = without
        room = (enough + too_much) // 2 if enough and too_much else room + spare - (_SUMMARY if spare < 0 else 0)
    return best or som


def _describe(regions: Sequence[Region], tree: Tree, elements: Elements, url: str) -> list[dict[str, Any]]:
    """Return the members of each region, without its id and its elements."""
    described = list[dict[str, Any]]()
    unnamed = defaultdict[str, list[int]](list)  # forms by the heading or row that names them
    for number, region in enumerate(regions):
        node, role = region.node, region.landmark.role
        facts: dict[str, Any] = {"id": "", "role": role}
        attributes = tree.attributes[node] if role != "content" else {}
        label = elements.names.label(node, "") if attributes else ""
        if role == "form":
            label = label or next((collapse(attributes[name]) for name in attributes if name in ("id", "name")), "")
            if not label:
                label = elements.items.of_form(node, region.start)
                unnamed[label].append(number)
        if label:
            facts["label"] = label
        if tree.tags[node] == "form":
            facts["action"] = elements.address(attributes.get("action", "").strip() or url)
            facts["method"] = form_method(attributes)
            facts.update((name, attributes[given]) for given, name in _FORM.items() if attributes.get(given))
            if "novalidate" in attributes:
                facts["novalidate"] = True
        described.append(facts)
    for alike in unnamed.values():  # several in one list are named after their items
        if len(alike) > 1:
            told = elements.items.of_each(
                [(regions[one].node, regions[one].start, regions[one].start) for one in alike]
            )
            for one in alike:
                if item := told[regions[one].node]:
                    described[one]["label"] = item
    return described


def _assemble(
    tree: Tree,
    head: Mapping[str, Any],
    structured: Mapping[str, Any],
    found: Survey,
    of_regions: Sequence[Mapping[str, Any]],
    made: Mapping[int, SomElement],
    losses: Sequence[Losses],
) -> Som:
    """Return the document of what is kept, in the order of the page."""
    document = dict(head)
    writer = _ElementWriter(head["url"], tree, found, made)
    regions: list[dict[str, Any]] = []
    kept = [any(candidate in made for candidate in region.candidates) for region in found.regions]
    if any(kept):  # losses of regions left out entirely go to the last region (3.1, 8.2.4)
        last = max(number for number, is_kept in enumerate(kept) if is_kept)
        for is_kept, lost in zip(kept, losses, strict=True):
            if not is_kept:
                add_losses(losses[last], lost)
    for region, known, lost, is_kept in zip(found.regions, of_regions, losses, kept, strict=True):
        if not is_kept:
            continue
        facts = {**known, "id": writer.identifiers.region(region.landmark.base), "elements": writer.write(region)}
        regions.append(facts)
        said = describe_losses(lost)
        if said:
            writer.count += 1
            facts["elements"].append({"id": f"e_summary_{len(regions)}", "role": "paragraph", "text": said})
    document["regions"] = regions
    meta = document["meta"] = {
        "html_bytes": tree.html_bytes,
        "som_bytes": 0,
        "element_count": writer.count,
        "interactive_count": writer.interactive,
    }
    if structured:
        document["structured_data"] = structured
    without = len(orjson.dumps(document)) - 1  # without the length itself
    meta["som_bytes"] = without + len(str(without + len(str(without))))
    return Som(document, writer.places)


class _ElementWriter:
    """Assigns ids to the elements of a document, in its order."""

    __slots__ = ("_made", "_paths", "_survey", "_tree", "count", "identifiers", "interactive", "places")

    def __init__(self, url: str, tree: Tree, survey: Survey, made: Mapping[int, SomElement]) -> None:
        self.identifiers = Identifiers(url)
        self.places: dict[str, str] = {}
        self.count = self.interactive = 0
        self._tree, self._survey, self._made, self._paths = tree, survey, made, NodePaths(tree)

    def write(self, region: Region) -> list[SomElement]:
        """Return the kept elements of a region."""
        elements: list[SomElement] = []
        survey, made = self._survey, self._made
        for candidate in region.candidates:
            if candidate not in made:
                continue
            element = made[candidate]
            self.count += 1
            self.interactive += survey.roles[candidate] in ACTIONS
            path = self._paths.of(survey.nodes[candidate]) or "0"
            name = element.get("label") or element.get("text", "")
            element["id"] = self.identifiers.element(element["role"], name, path)
            self.places[element["id"]] = path
            if candidate in survey.shadows:
                root = survey.shadows[candidate]
                mode = shadow_mode_of(self._tree.attributes[root.node]) or "open"
                element["shadow"] = {"mode": mode, "elements": self.write(root)}
            elements.append(element)
        return elements
