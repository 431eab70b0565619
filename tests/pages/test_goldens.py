"""Every element that the reference compiler makes, beside ours of the same place; each difference has its reason.

A golden output does not say where its elements are. Its ids do: they are hashes over a path among other things, so the
path is found by trying. That each is found shows that our paths and our formula are those of the reference.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import pytest

from awp_publish.pages import Budget, compile_som, parse
from awp_publish.pages.identifiers import Identifiers
from awp_publish.pages.tree import NodePaths
from tests.pages.conftest import FIXTURES, NEEDS_FIXTURES, read_json, read_page

pytestmark = NEEDS_FIXTURES

PAGES = read_json("INDEX.json") if FIXTURES.is_dir() else []
Element = dict[str, Any]


class Both:
    """A page compiled by both. Elements are known by their paths."""

    def __init__(self, page: dict[str, Any]) -> None:
        tree = self.tree = parse(read_page(page["html"]))
        som, paths = compile_som(tree, page["url"], Budget.FULL), NodePaths(tree)
        self.golden = [element for region in read_json(page["golden"])["regions"] for element in region["elements"]]
        by_id = {item["id"]: item for region in som.document["regions"] for item in _all(region["elements"])}
        self.ours = {path: by_id[name] for name, path in som.places.items()}
        self._paths = [path for node in tree.walk() if (path := paths.of(node.at)) is not None]
        self._url = page["url"]
        self._known = {item["id"]: som.places[item["id"]] for item in self.golden if item["id"] in som.places}

    def path(self, element: Element) -> str:
        """Where a golden element is, by its id without the number of a collision."""
        if element["id"] in self._known:
            return self._known[element["id"]]
        plain, name = element["id"][:14], element.get("label") or element.get("text", "")
        for path in self._paths:
            if Identifiers(self._url).element(element["role"], name, path) == plain:
                return path
        raise AssertionError(f"nowhere: {element}")


def _all(elements: list[Element]) -> Iterator[Element]:
    for element in elements:
        yield element
        yield from _all(element.get("shadow", {}).get("elements", []))


@lru_cache(maxsize=1)
def both(name: str) -> Both:
    return Both(next(page for page in PAGES if page["html"] == name))


def plain(text: object) -> str:
    return re.sub(r"\s+", "", str(text))


def is_start(golden: str, ours: str) -> bool:
    """Whether a golden text is the beginning of ours (4.6); we part the texts of blocks, the reference does not."""
    return plain(ours).startswith(plain(golden.removesuffix("...")))


MEMBERS = {
    "texts are whole": lambda name, golden, ours: name in ("text", "label") and is_start(str(golden), str(ours)),
    "an empty text is left out": lambda name, golden, ours: name == "text" and golden == "" and ours is None,
    "a section has no text: what it holds follows": lambda name, golden, ours: name == "text" and ours is None,
    "a control has the name of the label around it": lambda name, golden, ours: name == "label" and golden is None,
    "a link is called what its image shows": lambda name, golden, ours: name == "label" and golden is None,
    "the caption is the label of a table": lambda name, golden, ours: name == "label" and golden is None,
    "a button that says the same as another says of what": lambda name, golden, ours: name == "label" and not golden,
    "a select says its options once": lambda name, golden, ours: name == "text" and ours is None,
    "a shadow root is with its host": lambda name, golden, ours: name == "shadow" and golden is None,
}
"""Reasons why a member of an element differs."""

ROLES = {
    "a section has no text: what it holds follows": {"section"},
    "a control has the name of the label around it": {"radio", "checkbox", "text_input", "select", "textarea"},
    "a link is called what its image shows": {"link"},
    "a button that says the same as another says of what": {"button"},
    "a select says its options once": {"select"},
    "the caption is the label of a table": {"table"},
}


def attrs_explained(golden: dict[str, Any], ours: dict[str, Any]) -> bool:
    """Captions are labels; titles of links and names that are labels, and `nofollow`, are not said; lists are whole."""
    if "aria" in golden:
        states = {name: value for name, value in golden["aria"].items() if name != "label"}
        golden = {**golden, "aria": states} if states else {k: v for k, v in golden.items() if k != "aria"}
    left = {name for name in golden if name not in ours}
    changed = {name for name in golden if name in ours and golden[name] != ours[name]}
    lists = all(is_part(golden[name], ours[name]) for name in changed)
    titled = "title" not in left or "href" in golden
    return (
        left <= {"caption", "title", "rel"}
        and changed <= {"items", "rows", "headers", "legend", "summary"}
        and lists
        and titled
    )


def is_part(golden: list[Any], ours: list[Any]) -> bool:
    flat = [plain(text).removesuffix("...") for text in _texts(golden) if not re.fullmatch(r"\[\d+ more items\]", text)]
    return all(any(plain(text).startswith(item) for text in _texts(ours)) for item in flat)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(item)


def why_it_differs(golden: Element, ours: Element) -> None:
    for name in (golden.keys() | ours.keys()) - {"id"}:
        if golden.get(name) == ours.get(name):
            continue
        if name == "label" and golden.get("label", "").lower() == ours.get("text", "").lower():
            continue  # a name that is the text but for its capitals is not said twice
        if name == "attrs":
            assert attrs_explained(golden.get("attrs", {}), ours.get("attrs", {})), (golden, ours)
            continue
        reasons = [why for why, holds in MEMBERS.items() if ours["role"] in ROLES.get(why, {ours["role"]})]
        assert any(MEMBERS[why](name, golden.get(name), ours.get(name)) for why in reasons), (name, golden, ours)


def why_it_is_missing(golden: Element, path: str, page: Both) -> None:
    text = golden.get("text", "")
    if golden["role"] in ("paragraph", "list") and not re.search(r"\w", text):
        return  # nothing but what stands between links, or nothing at all
    if golden["role"] == "paragraph" and any(
        one["role"] == "paragraph" and plain(text) in plain(one["text"]) and place.rpartition("/")[0] in path
        for place, one in page.ours.items()
    ):
        return  # text with inline markup in it is one paragraph
    node = page.tree.node_at(path)
    if node is not None and node.parent is not None and "slot" in node.parent.attributes:
        return  # a child of a host whose shadow root has no slot for it is not seen
    if golden["role"] == "section" and not golden.get("label"):
        return  # a section without a name says nothing: what it holds follows
    if golden["role"] == "paragraph" and any(our.get("label") == text for our in page.ours.values()):
        return  # the label of a control is its name
    links = {plain(our.get("text", "")) for our in page.ours.values() if our["role"] == "link"}
    if golden["role"] == "list" and all(plain(item["text"]) in links for item in golden["attrs"]["items"]):
        return  # a list of nothing but links is its links
    same = [our for our in page.ours.values() if our["role"] == golden["role"] == "link"]
    assert any(item["attrs"].get("href") == golden["attrs"]["href"] and item.get("text") == text for item in same), (
        golden
    )


@pytest.mark.parametrize("name", [page["html"] for page in PAGES])
def test_an_element_of_the_reference_is_ours_too_or_there_is_a_reason(name):
    page = both(name)
    for golden in page.golden:
        if golden["id"].startswith("e_summary_"):
            continue  # how much the reference left out
        path = page.path(golden)
        ours = page.ours.get(path)
        if ours is None:
            why_it_is_missing(golden, path, page)
            continue
        assert ours["role"] == golden["role"]
        why_it_differs(golden, ours)


@pytest.mark.parametrize("name", [page["html"] for page in PAGES])
def test_an_element_that_the_reference_does_not_have_is_one_that_it_loses(name):
    page = both(name)
    if any(item["id"].startswith("e_summary_") for item in page.golden):
        return  # it says so itself
    known = {page.path(item): item["role"] for item in page.golden}
    for path, ours in page.ours.items():
        above = {known[item] for item in known if path.startswith((f"{item}/", f"{item}#"))}
        flattened = above & {"section", "group"} or ours.get("shadow") or "#shadow" in path
        is_sent = ours.get("attrs", {}).get("input_type") == "hidden"
        is_named = ours["role"] == "section" and "label" in ours
        assert path in known or flattened or is_sent or is_named, ours


@pytest.mark.parametrize("name", [page["html"] for page in PAGES])
def test_title_language_and_structured_data_are_those_of_the_reference(name):
    page = next(page for page in PAGES if page["html"] == name)
    golden, ours = read_json(page["golden"]), compile_som(read_page(name), page["url"]).document
    assert [ours.get(key) for key in ("title", "lang", "structured_data", "som_version")] == [
        golden.get(key) for key in ("title", "lang", "structured_data", "som_version")
    ]
    assert ours["meta"]["html_bytes"] == golden["meta"]["html_bytes"]
