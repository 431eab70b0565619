"""The fourth pass, from a page to its Semantic Object Model: regions and elements get their ids and become a document.

SOM specification 1.0 (documents of version 0.1), `som-schema.json`. What is not in the schema is not written: the
caption of a table is its label. What differs from the reference compiler is in docs/som.md.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from awp_publish.pages.elements import Elements, SomElement, shorten_text
from awp_publish.pages.names import AccessibleNames, collapse
from awp_publish.pages.regions import Candidate, Region, survey
from awp_publish.pages.roles import ACTIONS
from awp_publish.pages.selection import STRUCTURED, Budget as Budget, add_losses, choose, describe_losses
from awp_publish.pages.selectolax import parse
from awp_publish.pages.structured import read_structured, read_title, trim_structured
from awp_publish.pages.tree import NodePaths, Tree
from awp_publish.pages.visibility import Visibility

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
    found = survey(tree, visibility)
    made, losses = choose(found, Elements(found, names), room)
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
        if label:
            facts["label"] = label
        if node.tag == "form":
            facts.update((name, attributes[given]) for given, name in _FORM.items() if attributes.get(given))
            if "method" in facts:
                facts["method"] = facts["method"].strip().upper()
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
            element["id"] = self.identifiers.element(candidate.role, name, path)
            self.places[element["id"]] = path
            if candidate.shadow is not None:
                mode = getattr(candidate.shadow.node, "shadow_mode", None) or "open"
                element["shadow"] = {"mode": mode, "elements": self.write(candidate.shadow)}
            elements.append(element)
        return elements
