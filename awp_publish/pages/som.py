"""The third pass, which makes a page's Semantic Object Model: it selects what fits, assigns ids and writes a document.

SOM specification 1.0 (documents of version 0.1), `som-schema.json`. Only what the schema has is written: the caption of
a table is its label. Differences from the reference compiler are listed in docs/som.md.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from awp_publish.pages.content import find_content
from awp_publish.pages.cutting import SCARCE, SUMMARY_BYTES
from awp_publish.pages.elements import Elements, SomElement
from awp_publish.pages.forms import form_method
from awp_publish.pages.identifiers import Identifiers
from awp_publish.pages.metadata import read_structured, trim_structured
from awp_publish.pages.name_content import collapse
from awp_publish.pages.names import AccessibleNames
from awp_publish.pages.roles import ACTIONS
from awp_publish.pages.selection import MIN_BOUND, UNUSED_SHARE, Budget, choose
from awp_publish.pages.selectolax import parse
from awp_publish.pages.shortening import DUPLICATES, STRUCTURED, Losses, add_losses, describe_losses, shorten_text
from awp_publish.pages.survey import Region, Survey
from awp_publish.pages.tree import NodePaths, Tree, read_title, shadow_mode_of
from awp_publish.pages.visibility import Visibility
from awp_publish.pages.walk import survey

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
    tree = visibility.tree
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
    found = survey(tree, visibility, find_content(tree, visibility, url), names.naming_labels, names.blocks)
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
            if spare <= most // UNUSED_SHARE or not lacks or most >= SCARCE:
                break
        if most < (budget.value or 0) and "meta" in structured:
            kept = {name: value for name, value in structured["meta"].items() if name not in _PRESENTATION}
            without = {part: kept if part == "meta" else members for part, members in structured.items()}
            without = {part: members for part, members in without.items() if members}
            room += len(orjson.dumps(structured)) - len(orjson.dumps(without))
            structured = without
        room = (enough + too_much) // 2 if enough and too_much else room + spare - (SUMMARY_BYTES if spare < 0 else 0)
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
            items = elements.items.of_each(
                [(regions[number].node, regions[number].start, regions[number].start) for number in alike]
            )
            for number in alike:
                if item := items[regions[number].node]:
                    described[number]["label"] = item
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
