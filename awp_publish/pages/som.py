"""From a page to its Semantic Object Model, the fourth pass: regions and elements get their ids and become a document.

SOM specification 1.0 (documents of version 0.1), `som-schema.json`. What is not in the schema is not written: the
caption of a table is its label. What differs from the reference compiler is in docs/som.md.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from awp_publish.pages.elements import Elements, SomElement, shorten_text
from awp_publish.pages.names import Names, collapse
from awp_publish.pages.regions import Entry, Region, survey
from awp_publish.pages.roles import ACTIONS
from awp_publish.pages.selection import Budget as Budget, choose
from awp_publish.pages.selectolax import collector_waits, parse
from awp_publish.pages.structured import read_structured, read_title, trim_structured
from awp_publish.pages.tree import Node, Paths, Tree
from awp_publish.pages.visibility import Visibility

# --- Ids of elements and regions (SOM 1.0, section 7) ---

MOST_NAME: Final = 100
"""Characters of a name that count in an id (7.1)."""

_DIGITS: Final = 12
_DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL, without the scheme's own port; "null" for one without a host (7.1).

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

    __slots__ = ("_given", "_origin", "_paths", "_regions")

    def __init__(self, url: str) -> None:
        self._origin = origin_of(url)
        self._paths = Paths()
        self._given: Counter[str] = Counter()
        self._regions: Counter[str] = Counter()

    def element(self, role: str, name: str, path: str) -> str:
        """`e_` and twelve digits of a hash; with a number behind it when the document has that id already (7.3)."""
        text = f"{self._origin}|{role}|{name.lower().strip()[:MOST_NAME]}|{path}"
        plain = "e_" + sha256(text.encode("utf-8", "replace")).hexdigest()[:_DIGITS]
        self._given[plain] += 1
        count = self._given[plain]
        return plain if count == 1 else f"{plain}_{count}"

    def region(self, base: str) -> str:
        """`r_` and the role, from the second of a role on with its number (7.2)."""
        count = self._regions[base]
        self._regions[base] += 1
        return f"r_{base}_{count}" if count else f"r_{base}"

    def path(self, node: Node) -> str:
        """The path of a node of the body."""
        return self._paths.of(node) or "0"


VERSION: Final = "0.1"
MEDIA_TYPE: Final = "application/som+json"

_STRUCTURED_SHARE: Final = 8
"""Of a budget, one part in so many is for structured data."""

_MOST_TITLE: Final = 1_000
_FORM: Final = {
    "action": "action",
    "method": "method",
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
    """The SOM document of a page at `url`. Whatever the page says, there is one: nothing is raised for it.

    A tree may be compiled more than once. `charset` is what a `Content-Type` said of bytes. What `budget` means is
    said in `budget`.
    """
    place = url.encode("utf-8", "replace").decode()
    with collector_waits():
        if isinstance(source, Tree):
            return _Document(source, place, budget).compile()
        tree = parse(source, charset)
        som = _Document(tree, place, budget).compile()
        tree.take_apart()
        return som


class _Document:
    __slots__ = (
        "_budget",
        "_identifiers",
        "_names",
        "_places",
        "_selection",
        "_structured",
        "_tree",
        "_url",
        "_visibility",
    )

    def __init__(self, tree: Tree, url: str, budget: Budget) -> None:
        self._tree, self._url, self._budget = tree, url, budget
        self._visibility = Visibility(tree)
        self._identifiers = Identifiers(url)
        self._structured = read_structured(tree)
        self._places: dict[str, str] = {}

    def compile(self) -> Som:
        most = self._budget.value
        left_out = 0 if most is None else trim_structured(self._structured, most // _STRUCTURED_SHARE)
        room = None if most is None else most - len(orjson.dumps(self._head())) - len(orjson.dumps(self._structured))
        visibility = Visibility(self._tree)
        self._names = Names(self._tree, visibility)
        found = survey(self._tree, visibility)
        self._selection = choose(found, Elements(found, self._names), room)
        if left_out and self._selection.losses:
            self._selection.losses[-1].structured = left_out
        regions = list(self._regions(found.regions))
        document = {**self._head(), "regions": regions, "meta": self._meta(regions)}
        if self._structured:
            document["structured_data"] = self._structured
        _say_length(document)
        return Som(document, self._places)

    def _head(self) -> dict[str, Any]:
        title = read_title(self._tree)
        return {
            "som_version": VERSION,
            "url": self._url,
            "title": title if self._budget is Budget.FULL else shorten_text(title, _MOST_TITLE),
            "lang": self._tree.root.attributes.get("lang") or "en",
        }

    def _meta(self, regions: list[dict[str, Any]]) -> dict[str, int]:
        every = [element for region in regions for element in _each(region["elements"])]
        return {
            "html_bytes": self._tree.html_bytes,
            "som_bytes": 0,
            "element_count": len(every),
            "interactive_count": sum(1 for element in every if element["role"] in ACTIONS),
        }

    def _regions(self, regions: Sequence[Region]) -> Iterator[dict[str, Any]]:
        """Regions of which something is kept. What the others lost is said with the last of them (3.1, 8.2.4)."""
        losses = self._selection.losses
        kept = [(region, loss) for region, loss in zip(regions, losses, strict=True) if self._keeps(region)]
        for loss in losses:
            if kept and all(loss is not other for _, other in kept):
                kept[-1][1].add(loss)
        for number, (region, loss) in enumerate(kept, 1):
            facts, elements, said = self._region(region), self._elements(region), loss.sentence()
            if said:
                elements.append({"id": f"e_summary_{number}", "role": "paragraph", "text": said})
            yield {**facts, "elements": elements}

    def _keeps(self, region: Region) -> bool:
        return any(entry in self._selection.made for entry in region.entries)

    def _region(self, region: Region) -> dict[str, Any]:
        node, role = region.node, region.landmark.role
        facts: dict[str, Any] = {"id": self._identifiers.region(region.landmark.base), "role": role}
        attributes = node.attributes if role != "content" else {}
        label = self._names.label(node, "") if attributes else ""
        if role == "form":
            label = label or next((collapse(attributes[name]) for name in attributes if name in ("id", "name")), "")
        if label:
            facts["label"] = label
        if node.tag == "form":
            facts.update((name, attributes[given]) for given, name in _FORM.items() if attributes.get(given))
            if "method" in facts:
                facts["method"] = facts["method"].strip().upper()
            if "novalidate" in attributes:
                facts["novalidate"] = True
        return facts

    def _elements(self, region: Region) -> list[SomElement]:
        return [self._element(entry) for entry in region.entries if entry in self._selection.made]

    def _element(self, entry: Entry) -> SomElement:
        element = self._selection.made[entry].element
        path = self._identifiers.path(entry.node)
        element["id"] = self._identifiers.element(entry.role, element.get("label") or element.get("text", ""), path)
        self._places[element["id"]] = path
        if entry.shadow is not None:
            mode = getattr(entry.shadow.node, "shadow_mode", None) or "open"
            element["shadow"] = {"mode": mode, "elements": self._elements(entry.shadow)}
        return element


def _each(elements: list[SomElement]) -> Iterator[SomElement]:
    for element in elements:
        yield element
        if "shadow" in element:
            yield from _each(element["shadow"]["elements"])


def _say_length(document: dict[str, Any]) -> None:
    """The length of the document, with the digits of the length itself."""
    without = len(orjson.dumps(document)) - 1
    length = without + len(str(without))
    document["meta"]["som_bytes"] = without + len(str(length))
