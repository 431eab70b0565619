"""`page.observe`: the SOM as it is, or what changed since a cursor, as JSON Patch and as SomDiff (paper 5.5, 7.4)."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeGuard

import orjson

from awp_publish.browsing.browser import History, Limits
from awp_publish.browsing.errors import AwpError, read_flag, read_number, read_text, refuse
from awp_publish.browsing.forms import compile_pattern
from awp_publish.browsing.page import Compiled, PageCache, elements_of
from awp_publish.browsing.state import Changed, Overlay, options_of
from awp_publish.model import JsonObject
from awp_publish.pages.som import Budget
from awp_publish.pages.tree import Node

# --- SomDiff ---

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


# --- JSON Patch (RFC 6902) between two SOM documents: what is alike is found by id, in about linear time ---

Operation: TypeAlias = JsonObject
Members: TypeAlias = Sequence[Mapping[str, object]]

_DEEPEST: Final = 24
"""Below this depth (only a page's own JSON-LD goes there) what differs is replaced as a whole."""


def make_patch(before: object, after: object) -> list[Operation]:
    """The operations that, applied in order to `before`, give `after`. Empty where nothing changed."""
    return list(_compare(before, after, "", _DEEPEST))


def _compare(before: object, after: object, path: str, depth: int) -> Iterator[Operation]:
    if depth == 0:
        if before != after:
            yield {"op": "replace", "path": path, "value": after}
    elif isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from _compare_members(before, after, path, depth - 1)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _compare_lists(before, after, path, depth - 1)
    elif type(before) is not type(after) or before != after:
        yield {"op": "replace", "path": path, "value": after}


def _compare_members(
    before: Mapping[str, object], after: Mapping[str, object], path: str, depth: int
) -> Iterator[Operation]:
    for name in before:
        if name not in after:
            yield {"op": "remove", "path": f"{path}/{_escape(name)}"}
    for name, value in after.items():
        inner = f"{path}/{_escape(name)}"
        if name in before:
            yield from _compare(before[name], value, inner, depth)
        else:
            yield {"op": "add", "path": inner, "value": value}


def _compare_lists(before: list[object], after: list[object], path: str, depth: int) -> Iterator[Operation]:
    if _has_ids(before) and _has_ids(after):
        yield from _compare_by_id(before, after, path, depth)
    elif len(before) == len(after):
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _compare(old, new, f"{path}/{number}", depth)
    else:
        yield {"op": "replace", "path": path, "value": after}


def _has_ids(items: list[object]) -> TypeGuard[list[Mapping[str, object]]]:
    """Whether all are objects with ids, each its own."""
    known = {item["id"] for item in items if isinstance(item, Mapping) and isinstance(item.get("id"), str)}
    return len(known) == len(items)


def _compare_by_id(before: Members, after: Members, path: str, depth: int) -> Iterator[Operation]:
    """First what goes, from the end; then what comes, from the start, at its final place; then what stays changes."""
    old = {member["id"]: member for member in before}
    staying = _staying(before, after)
    for number in range(len(before) - 1, -1, -1):
        if before[number]["id"] not in staying:
            yield {"op": "remove", "path": f"{path}/{number}"}
    for number, member in enumerate(after):
        if member["id"] not in staying:
            yield {"op": "add", "path": f"{path}/{number}", "value": member}
    for number, member in enumerate(after):
        if member["id"] in staying:
            yield from _compare(old[member["id"]], member, f"{path}/{number}", depth)


def _staying(before: Members, after: Members) -> set[object]:
    """The ids that both have in the same order: a longest increasing run of their old positions."""
    positions = {member["id"]: number for number, member in enumerate(before)}
    common = [(positions[member["id"]], member["id"]) for member in after if member["id"] in positions]
    smallest: list[int] = []
    ends: list[int] = []
    previous: list[int] = []
    for number, (position, _) in enumerate(common):
        slot = bisect_left(smallest, position)
        previous.append(ends[slot - 1] if slot else -1)
        smallest[slot : slot + 1] = [position]
        ends[slot : slot + 1] = [number]
    kept: set[object] = set()
    number = ends[-1] if ends else -1
    while number >= 0:
        kept.add(common[number][1])
        number = previous[number]
    return kept


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


# --- A page's SOM as it is now: what its HTML says, and what was done to its controls since ---
# Element ids are made of the HTML alone, so they stay as they are whatever is typed. What is untouched is shared with
# every session that looks at the same page: documents are not to be changed.


@dataclass(frozen=True, slots=True)
class _Change:
    """What was done to one element, the node it is made of, and its options where it is a select."""

    state: Changed
    node: Node
    options: list[dict[str, Any]]


Changes: TypeAlias = Mapping[str, _Change]


def show(compiled: Compiled, budget: Budget, overlay: Overlay) -> JsonObject:
    """The SOM document with the changed values, states and choices in its attributes."""
    som = compiled.som(budget)
    if not overlay:
        return som.document
    touched = {element_id: place for element_id, place in som.places.items() if place in overlay}
    changes = {
        element_id: _Change(overlay[place], node, _all_options(compiled, element_id))
        for element_id, place in touched.items()
        if (node := compiled.tree.node_at(place)) is not None
    }
    regions = [{**region, "elements": _show_all(region["elements"], changes)} for region in som.document["regions"]]
    meta = {**som.document["meta"], "som_bytes": 0}
    document = {**som.document, "regions": regions, "meta": meta}
    meta["som_bytes"] = _own_length(len(orjson.dumps(document)))
    return document


def _own_length(length_with_zero: int) -> int:
    """The length of a document that says its own length."""
    length = length_with_zero
    while length != length_with_zero - 1 + len(str(length)):
        length = length_with_zero - 1 + len(str(length))
    return length


def _show_all(elements: Iterable[dict[str, Any]], changes: Changes) -> list[dict[str, Any]]:
    return [_show_inside(_show_one(element, changes), changes) for element in elements]


def _show_inside(element: dict[str, Any], changes: Changes) -> dict[str, Any]:
    shadow = element.get("shadow")
    if shadow is None:
        return element
    return {**element, "shadow": {**shadow, "elements": _show_all(shadow["elements"], changes)}}


def _show_one(element: dict[str, Any], changes: Changes) -> dict[str, Any]:
    if element["id"] not in changes:
        return element
    change = changes[element["id"]]
    state = change.state
    attributes = dict(element.get("attrs", {}))
    said = {"value": state.value, "checked": state.checked, "open": state.open}
    attributes.update((name, value) for name, value in said.items() if value is not None)
    if state.selected is not None:
        _show_choice(attributes, state.selected, change)
    return {**element, "attrs": attributes}


def _show_choice(attributes: dict[str, Any], chosen: frozenset[int], change: _Change) -> None:
    """What a select shows of its choice: marks at its options, `value` for the first, `selected_values` for several.

    Of a long list a small budget shows a part: what it showed stays, and what is chosen is shown.
    """
    values = [option.value for option in options_of(change.node) if option.number in chosen]
    shown = {_key(option) for option in attributes.get("options", ())}
    attributes["options"] = [
        _mark(option, number in chosen)
        for number, option in enumerate(change.options)
        if number in chosen or _key(option) in shown
    ]
    for name in ("value", "selected_values"):
        attributes.pop(name, None)
    if values:
        attributes["value"] = values[0]
    if values and "multiple" in change.node.attributes:
        attributes["selected_values"] = values


def _all_options(compiled: Compiled, element_id: str) -> list[dict[str, Any]]:
    """The options of a select in the full budget, one for each option of the page."""
    whole: Mapping[str, Any] = compiled.element(element_id) or {}
    options: list[dict[str, Any]] = whole.get("attrs", {}).get("options", [])
    return options


def _key(option: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((name, value) for name, value in option.items() if name != "selected"))


def _mark(option: dict[str, Any], selected: bool) -> dict[str, Any]:
    plain = {name: value for name, value in option.items() if name != "selected"}
    return {**plain, "selected": True} if selected else plain


MODES: Final = ("snapshot", "mutations")
FORMATS: Final = ("som+json", "som+msgpack")
BUDGETS: Final = {"full": Budget.FULL, "default": Budget.DEFAULT, "tight": Budget.TIGHT}
_CURSOR: Final = re.compile(r"(?:c:)?([0-9]{1,15})", re.ASCII)


def observe(history: History, cache: PageCache, params: Mapping[str, object]) -> JsonObject:
    """The answer for the page that is shown. `budget` says how much of it: full, default or tight,
    and `max_bytes` how long a snapshot may be: one that is longer is made tight, and refused where that is not enough.

    With the same budget, the patch makes today's SOM of the one at the cursor. A cursor that is not known any more
    gives a snapshot and the reason.
    """
    mode = read_text(params, "mode") or MODES[0]
    if mode not in MODES:
        refuse(f"Invalid param: mode must be one of {', '.join(MODES)}", param="mode")
    budget = BUDGETS.get(read_text(params, "budget") or "default")
    if budget is None:
        refuse(f"Invalid param: budget must be one of {', '.join(BUDGETS)}", param="budget")
    cursor, most = read_cursor(params.get("cursor")), _read_most_bytes(params)
    current = history.current
    assert current is not None
    assert current.page is not None
    compiled = cache.compiled(current.page)
    som = show(compiled, budget, current.overlay)
    if mode == "snapshot":
        if _is_longer(som, most):
            som = show(compiled, Budget.TIGHT, current.overlay)
        if _is_longer(som, most):
            refuse("The page's SOM is longer than max_bytes", max_bytes=most, **_meta_of(som))
        return {"mode": mode, "cursor": history.cursor, "som": som}
    return _observe_changes(history, cache, history.cursor - 1 if cursor is None else cursor, som, budget)


def _observe_changes(history: History, cache: PageCache, cursor: int, som: JsonObject, budget: Budget) -> JsonObject:
    unchanged = {"mode": "mutations", "cursor": history.cursor, "changed": False, "diff": None, "patch": []}
    if cursor >= history.cursor:
        return unchanged
    moment = history.since(cursor)
    if moment is None:
        reason = "no_previous_som" if history.cursor == 1 else "cursor_too_old"
        return {"mode": "snapshot", "cursor": history.cursor, "reason": reason, "som": som}
    before = show(cache.compiled(moment.page), budget, moment.overlay)
    patch = make_patch(before, som)
    if not patch:
        return unchanged
    diff = describe_differences(before, som)
    return {**unchanged, "changed": True, "diff": diff, "patch": patch, "summary": diff["summary"]}


def _read_most_bytes(params: Mapping[str, object]) -> int | None:
    """`max_bytes` of the draft, beside `format`, which is told by the frame."""
    said = read_text(params, "format")
    if said is not None and said not in FORMATS:
        raise AwpError("UNSUPPORTED", "The SOM is not written in this format", {"formats": list(FORMATS)})
    most = read_number(params, "max_bytes")
    if most is not None and most <= 0:
        refuse("Invalid param: max_bytes must be a positive number", param="max_bytes")
    return most


def _is_longer(som: JsonObject, most: int | None) -> bool:
    length = _meta_of(som)["som_bytes"]
    return most is not None and isinstance(length, int) and length > most


def _meta_of(som: JsonObject) -> JsonObject:
    meta = som["meta"]
    assert isinstance(meta, Mapping)
    return {"som_bytes": meta["som_bytes"]}


def write_cursor(cursor: int) -> str:
    """A cursor as the paper and the draft write it."""
    return f"c:{cursor}"


def read_cursor(cursor: object) -> int | None:
    """A cursor as a number, or as the paper writes it, `c:12346`."""
    if cursor is None:
        return None
    if isinstance(cursor, int) and not isinstance(cursor, bool):
        return cursor
    found = _CURSOR.fullmatch(cursor) if isinstance(cursor, str) else None
    if found is None:
        refuse("Invalid param: cursor must be one that page.observe gave", param="cursor")
    return int(found[1])


# --- `page.extract`: values out of a SOM document, each with the id of the element it is from (paper 5.7) ---

INTERACTIVE: Final = frozenset({"link", "button", "text_input", "textarea", "select", "checkbox", "radio", "details"})
_SHOWN: Final = ("id", "role", "text", "label", "actions", "attrs", "hints")
_NO_FIELDS: Final = "Missing required param: fields (object), or use structured_data:true / interactive_elements:true"

Test: TypeAlias = Callable[[JsonObject], bool]


def extract(document: JsonObject, params: Mapping[str, object], limits: Limits) -> JsonObject:
    """What is asked for: fields by queries, or the structured data, or all that can be acted upon."""
    if read_flag(params, "structured_data"):
        return {"structured_data": document.get("structured_data"), "url": document["url"]}
    elements = list(elements_of(document))
    if read_flag(params, "interactive_elements"):
        return _list_interactive(elements)
    fields = read_fields(params, limits)
    found = {name: _answer(query, elements, f"fields.{name}.", limits) for name, query in fields.items()}
    return {
        "data": {name: value for name, (value, _) in found.items()},
        "provenance": {name: source for name, (_, source) in found.items()},
    }


def read_fields(params: Mapping[str, object], limits: Limits) -> Mapping[str, JsonObject]:
    """The queries by name: the member `fields`, or `queries` as the draft has it."""
    fields = params.get("fields", params.get("queries"))
    if not isinstance(fields, Mapping):
        raise AwpError("INVALID_REQUEST", _NO_FIELDS, {"param": "fields"})
    if len(fields) > limits.fields:
        refuse(f"At most {limits.fields} fields can be extracted at once", fields=len(fields))
    for name, query in fields.items():
        if not isinstance(query, Mapping):
            refuse(f"Invalid param: fields.{name} must be an object", param=f"fields.{name}")
    return fields


def _list_interactive(elements: Sequence[JsonObject]) -> JsonObject:
    found = [{name: e.get(name) for name in _SHOWN} for e in elements if e["role"] in INTERACTIVE]
    return {"interactive_elements": found, "count": len(found)}


def _answer(query: JsonObject, elements: Sequence[JsonObject], where: str, limits: Limits) -> tuple[object, object]:
    """The value and where it is from: arrays for `all`, else of the first match; null for none."""
    inner = query.get("query")
    said = {**inner, **query} if isinstance(inner, Mapping) else query
    props = _read_props(said, where)
    test = _read_test(said, where, limits)
    matches = (element for element in elements if test(element))
    if read_flag(said, "all", where):
        found = list(matches)
        return [_value(element, props) for element in found], [element["id"] for element in found]
    first = next(matches, None)
    return (None, None) if first is None else (_value(first, props), first["id"])


def _read_test(query: JsonObject, where: str, limits: Limits) -> Test:
    """The first of ref, role and text_match that a query has says what matches; with none of them nothing does."""
    ref, role = read_text(query, "ref", where), read_text(query, "role", where)
    if ref is not None:
        return lambda element: element["id"] == ref
    if role is not None:
        level = read_number(query, "level", where)
        return lambda element: element["role"] == role and level in (None, _attributes(element).get("level"))
    pattern = read_text(query, "text_match", where) or read_text(query, "text_regex", where)
    matches = compile_pattern(pattern) if pattern is not None and len(pattern) <= limits.pattern_length else None
    if matches is None:
        return lambda _: False
    return lambda element: element.get("text") is not None and matches(str(element["text"]))


def _read_props(query: JsonObject, where: str) -> list[str]:
    props = query.get("props")
    if props is None:
        return []
    if not isinstance(props, list) or not all(isinstance(name, str) for name in props):
        refuse(f"Invalid param: {where}props must be an array of strings", param=f"{where}props")
    return props


def _value(element: JsonObject, props: list[str]) -> object:
    """The text, or an object of those properties that the element has."""
    if not props:
        return element.get("text")
    known = {**_attributes(element), **{name: element[name] for name in ("text", "label") if name in element}}
    return {name: known[name] for name in props if name in known}


def _attributes(element: JsonObject) -> JsonObject:
    attributes = element.get("attrs")
    return attributes if isinstance(attributes, Mapping) else {}
