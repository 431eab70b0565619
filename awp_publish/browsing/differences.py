"""SomDiff: what changed between two SOM documents in the words of the reference implementation (SOM-SPEC 9)."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from awp_publish.model import JsonObject

_Part: TypeAlias = Mapping[str, Any]
"""A document, a region, an element, or what changed of one."""
_Compare: TypeAlias = Callable[[_Part, _Part], dict[str, Any]]

_PRICE: Final = re.compile(r"[$€£¥]\s*[\d,]+\.?\d*")
_CHANGES: Final = {"text": "text_change", "role": "role_change", "label": "label_change"}
_OTHERS: Final = {
    "actions": "actions_change",
    "hints": "hints_change",
    "children": "children_changes",
    "shadow": "shadow_changes",
}


def describe_differences(before: JsonObject, after: JsonObject) -> JsonObject:
    """The SomDiff of two documents: page, meta, regions with their elements by id, and a summary."""
    return _describe(before, after)


def _describe(before: _Part, after: _Part) -> _Part:
    regions = list(_match(before["regions"], after["regions"], _compare_regions))
    meta = _deltas(before["meta"], after["meta"], ("html_bytes", "som_bytes"))
    return {
        "page": _compare_pages(before, after),
        **({"meta": meta} if meta else {}),
        "regions": regions,
        "summary": _summarise(regions, after),
    }


def _compare_pages(before: _Part, after: _Part) -> _Part:
    changed = {
        f"{name}_change": {"old": before[name], "new": after[name]}
        for name in ("title", "url", "lang")
        if before[name] != after[name]
    }
    return {**changed, **_deltas(before["meta"], after["meta"], ("element_count", "interactive_count"))}


def _deltas(before: Mapping[str, int], after: Mapping[str, int], names: Sequence[str]) -> _Part:
    return {f"{name}_delta": after[name] - before[name] for name in names if after[name] != before[name]}


def _match(before: Sequence[_Part], after: Sequence[_Part], compare: _Compare) -> Iterator[_Part]:
    """What of two lists went, came, and stayed under its id but changed."""
    old = {member["id"]: member for member in before}
    new = {member["id"] for member in after}
    yield from (_whole(member, "removed") for member in before if member["id"] not in new)
    for member in after:
        if member["id"] not in old:
            yield _whole(member, "added")
        else:
            changes = compare(old[member["id"]], member)
            if changes:
                yield {"id": member["id"], "change_type": "modified", **changes}


def _whole(member: _Part, change: str) -> _Part:
    """A region or an element that came or went; a region's elements came or went with it."""
    said = {"id": member["id"], "change_type": change, "role": member["role"]}
    if "elements" in member:
        return {**said, "element_changes": [_whole(element, change) for element in member["elements"]]}
    return {**said, **{name: member[name] for name in ("text", "attrs") if name in member}}


def _compare_regions(before: _Part, after: _Part) -> dict[str, Any]:
    changes = {
        f"{name}_change": {"old": before.get(name), "new": after.get(name)}
        for name in ("role", "label")
        if before.get(name) != after.get(name)
    }
    elements = list(_match(before["elements"], after["elements"], _compare_elements))
    return {**changes, **({"element_changes": elements} if elements else {})}


def _compare_elements(before: _Part, after: _Part) -> dict[str, Any]:
    changes: dict[str, Any] = {
        said: {"old": before.get(name), "new": after.get(name)}
        for name, said in {**_CHANGES, **_OTHERS}.items()
        if before.get(name) != after.get(name)
    }
    attributes = list(_compare_attributes(before.get("attrs", {}), after.get("attrs", {})))
    if attributes:
        changes["attr_changes"] = attributes
    return {"role": after["role"], **changes} if changes else {}


def _compare_attributes(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[_Part]:
    for key in dict.fromkeys([*before, *after]):
        old = {"old": before[key]} if key in before else {}
        new = {"new": after[key]} if key in after else {}
        if not old or not new or before[key] != after[key]:
            yield {"key": key, **old, **new}


def _summarise(regions: list[_Part], after: _Part) -> _Part:
    elements = [element for region in regions for element in region.get("element_changes", ())]
    main = {region["id"] for region in after["regions"] if region["role"] == "main"}
    counts = {f"elements_{kind}": _count(elements, kind) for kind in ("added", "removed", "modified")}
    counts |= {f"regions_{kind}": _count(regions, kind) for kind in ("added", "removed")}
    moved = counts["elements_added"] + counts["elements_removed"] + counts["regions_added"] + counts["regions_removed"]
    return {
        "total_changes": sum(counts.values()),
        **counts,
        "has_price_changes": any(_PRICE.search(text) for element in elements for text in _texts(element)),
        "has_content_changes": any(_changes_text(region) for region in regions if region["id"] in main),
        "has_structural_changes": moved > 0,
    }


def _count(changes: list[_Part], kind: str) -> int:
    return sum(change["change_type"] == kind for change in changes)


def _texts(element: _Part) -> Iterator[str]:
    change = element.get("text_change", {})
    yield from (text for text in (element.get("text"), change.get("old"), change.get("new")) if text)


def _changes_text(region: _Part) -> bool:
    """An element's id is made of its text, so a changed text is mostly one that went and one that came."""
    changes = region.get("element_changes", ())
    return any("text_change" in element or element.get("text") for element in changes)
