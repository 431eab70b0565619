"""The third pass, from a page to its Semantic Object Model: what fits is chosen, gets its ids, and becomes a document.

SOM specification 1.0 (documents of version 0.1), `som-schema.json`. What is not in the schema is not written: the
caption of a table is its label. What differs from the reference compiler is in docs/som.md.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from itertools import accumulate
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

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
from awp_publish.pages.regions import ACTIONS, CONTROLS, HIDDEN, Candidate, Region, Survey, rows_of, survey
from awp_publish.pages.selectolax import parse
from awp_publish.pages.tree import NodePaths, Tree, Visibility, read_title

# --- The choice of what a document has room for, and the sentences that say what of the rest is left out ---

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

_ALWAYS: Final = CONTROLS | {"heading", HIDDEN}
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
    said_by, total, seen = dict[Candidate, str](), 0, set[str]()
    for candidate, element in made.items():
        dumped = orjson.dumps(element)
        total += len(dumped) + _ID
        if candidate.role == "link":
            said_by[candidate] = dumped.decode()  # bytes that orjson has made keep 4 KB each
    for pool, lost in zip(pools, losses, strict=True):
        if total <= MAX_USUAL:
            seen.clear()
        for candidate in pool:
            if candidate.role != "link" or candidate.shadow is not None:
                continue
            if not _leads_away(candidate.node.attributes.get("href", "")):
                continue
            said = said_by[candidate]
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


# --- Metadata of a page: JSON-LD, Open Graph, Twitter cards, meta and link (SOM 1.0, section 2.2) ---

_META: Final = frozenset(("author", "description", "generator", "keywords", "robots", "theme-color", "viewport"))
_RELATIONS: Final = frozenset(
    ("alternate", "amphtml", "apple-touch-icon", "author", "canonical", "dns-prefetch", "icon", "license", "manifest")
) | {"preconnect", "search", "shortcut icon"}


def read_structured(tree: Tree) -> dict[str, Any]:
    """Return the parts that are not empty, in the order of 2.2."""
    json_ld: list[dict[str, Any]] = []
    for script in tree.tagged("script"):
        if script.attributes.get("type", "").strip().lower() != "application/ld+json":
            continue
        try:
            found = orjson.loads("".join(piece.text for piece in script.children).strip())
            orjson.dumps([[[found]]])
        except (orjson.JSONDecodeError, TypeError):  # not JSON, or nested deeper than can be written
            continue
        json_ld += (block for block in (found if isinstance(found, list) else [found]) if isinstance(block, dict))
    by_property: dict[str, str] = {}
    by_name: dict[str, str] = {}
    facts: dict[str, str] = {}
    for meta in tree.tagged("meta"):
        attributes, content = meta.attributes, meta.attributes.get("content")
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
    for link in tree.tagged("link"):
        attributes, relation = link.attributes, link.attributes.get("rel", "").strip().lower()
        if relation in _RELATIONS and "href" in attributes:
            also = {name: attributes[name] for name in ("type", "hreflang") if attributes.get(name)}
            links.append({"rel": relation, "href": attributes["href"], **also})
    parts = {"json_ld": json_ld, "open_graph": by_property, "twitter_card": by_name, "meta": facts, "links": links}
    return {name: part for name, part in parts.items() if part}


def trim_structured(parts: dict[str, Any], room: int) -> int:
    """Take the largest members out (a block, a name, a link) until the rest fits, and return how many they are."""
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
    """Return scheme, host and port of a URL, without the scheme's own port; "null" for one without a host (7.1).

    What is no URL is its own origin.
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
    """The ids of one document."""

    __slots__ = ("_elements", "_origin", "_regions")

    def __init__(self, url: str) -> None:
        self._origin = origin_of(url)
        self._elements: Counter[str] = Counter()
        self._regions: Counter[str] = Counter()

    def element(self, role: str, name: str, path: str) -> str:
        """Return `e_` and twelve digits of a hash, and a number if the document has that id already (7.3)."""
        text = f"{self._origin}|{role}|{name.lower().strip()[:MAX_NAME]}|{path}"
        plain = "e_" + sha256(text.encode("utf-8", "replace")).hexdigest()[:_DIGITS]
        count = self._elements[plain] = self._elements[plain] + 1
        return plain if count == 1 else f"{plain}_{count}"

    def region(self, base: str) -> str:
        """Return `r_` and the role, from the second of a role on with its number (7.2)."""
        count = self._regions[base]
        self._regions[base] += 1
        return f"r_{base}_{count}" if count else f"r_{base}"


# --- Documents ---

VERSION: Final = "0.1"
MEDIA_TYPE: Final = "application/som+json"

_STRUCTURED_SHARE: Final = 8
"""Of a budget, one part in so many is for structured data."""

_MAX_TITLE: Final = 1_000
_FORM: Final = {
    "target": "target",
    "enctype": "enctype",
    "accept-charset": "accept_charset",
    "autocomplete": "autocomplete",
}


@dataclass(frozen=True, slots=True)
class Som:
    """A compiled page.

    `document` is the SOM document, `places` says for each element's id the path of what it was made from (see
    `Tree.node_at`). The paragraphs that say what was left out were made from nothing, so they have no place.
    """

    document: dict[str, Any]
    places: Mapping[str, str]

    def dump(self) -> bytes:
        """The document as compact JSON; `meta.som_bytes` is its length."""
        return orjson.dumps(self.document)


def compile_som(
    source: Tree | str | bytes, url: str, budget: Budget = Budget.DEFAULT, charset: str | None = None
) -> Som:
    """Return the SOM document of a page at `url`. Whatever the page says, there is one: nothing is raised for it.

    A tree may be compiled more than once. `charset` is what a `Content-Type` said of bytes.
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
    left_out = 0 if budget.value is None else trim_structured(structured, budget.value // _STRUCTURED_SHARE)
    title = read_title(tree)
    document: dict[str, Any] = {
        "som_version": VERSION,
        "url": url,
        "title": title if budget is Budget.FULL else shorten_text(title, _MAX_TITLE),
        "lang": tree.root.attributes.get("lang") or "en",
    }
    room = None if budget.value is None else budget.value - len(orjson.dumps(document)) - len(orjson.dumps(structured))
    names = AccessibleNames(tree, visibility)
    found = survey(tree, visibility, names.told)
    elements = Elements(tree, found, names, visibility, url)
    made, losses = choose(found, elements, room)
    if left_out and losses:
        losses[-1][STRUCTURED] = left_out

    writer = _ElementWriter(url, made)
    regions: list[dict[str, Any]] = []
    kept = [any(candidate in made for candidate in region.candidates) for region in found.regions]
    if any(kept):  # what regions lost of which nothing is kept is said with the last of the others (3.1, 8.2.4)
        last = max(number for number, is_kept in enumerate(kept) if is_kept)
        for is_kept, lost in zip(kept, losses, strict=True):
            if not is_kept:
                add_losses(losses[last], lost)
    for region, lost, is_kept in zip(found.regions, losses, kept, strict=True):
        if not is_kept:
            continue
        node, role = region.node, region.landmark.role
        facts: dict[str, Any] = {"id": writer.identifiers.region(region.landmark.base), "role": role}
        attributes = node.attributes if role != "content" else {}
        label = names.label(node, "") if attributes else ""
        if role == "form":
            label = label or next((collapse(attributes[name]) for name in attributes if name in ("id", "name")), "")
            label = label or elements.items.of_form(node, region.start)
        if label:
            facts["label"] = label
        if node.tag == "form":
            facts["action"] = elements.address(attributes.get("action", "").strip() or url)
            facts["method"] = form_method(node)
            facts.update((name, attributes[given]) for given, name in _FORM.items() if attributes.get(given))
            if "novalidate" in attributes:
                facts["novalidate"] = True
        facts["elements"] = writer.write(region)
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
    without = len(orjson.dumps(document)) - 1  # of the length itself
    meta["som_bytes"] = without + len(str(without + len(str(without))))
    return Som(document, writer.places)


class _ElementWriter:
    """Gives the elements of a document their ids, in its order."""

    __slots__ = ("_made", "_paths", "count", "identifiers", "interactive", "places")

    def __init__(self, url: str, made: Mapping[Candidate, SomElement]) -> None:
        self.identifiers = Identifiers(url)
        self.places: dict[str, str] = {}
        self.count = self.interactive = 0
        self._made, self._paths = made, NodePaths()

    def write(self, region: Region) -> list[SomElement]:
        """Return the elements of a region that are kept."""
        elements: list[SomElement] = []
        for candidate in region.candidates:
            element = self._made.get(candidate)
            if element is None:
                continue
            self.count += 1
            self.interactive += candidate.role in ACTIONS
            path = self._paths.of(candidate.node) or "0"
            name = element.get("label") or element.get("text", "")
            element["id"] = self.identifiers.element(element["role"], name, path)
            self.places[element["id"]] = path
            if candidate.shadow is not None:
                mode = getattr(candidate.shadow.node, "shadow_mode", None) or "open"
                element["shadow"] = {"mode": mode, "elements": self.write(candidate.shadow)}
            elements.append(element)
        return elements
