"""Observing a page: its SOM, or a patch of what has changed (paper 5.5, 7.4), or extracted values (5.7)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeGuard

import orjson

from awp_publish.browsing.errors import AwpError, read_flag, read_number, read_text, refuse
from awp_publish.browsing.forms import compile_pattern, find_match
from awp_publish.browsing.markup import Overlay, elements_of, options_of
from awp_publish.pages.selection import Budget
from awp_publish.pages.som import Som
from awp_publish.schema import JsonObject

if TYPE_CHECKING:
    from awp_publish.browsing.page import Compiled, History, PageCache, SessionLimits

MODES: Final = ("snapshot", "mutations")
FORMATS: Final = ("som+json", "som+msgpack")
BUDGETS: Final = {"full": Budget.FULL, "default": Budget.DEFAULT, "tight": Budget.TIGHT}
_CURSOR: Final = re.compile(r"(?:c:)?([0-9]{1,15})", re.ASCII)


def observe(history: History, cache: PageCache, params: Mapping[str, object]) -> JsonObject:
    """Return the SOM of the present page, or a JSON Patch since a cursor.

    `budget` is the amount of detail: full, default or tight. `max_bytes` limits a snapshot: a longer one is made tight,
    and refused if it is still too long. The patch turns the SOM at the cursor, in the same budget, into the present
    one. An unknown or expired cursor gives a snapshot and the reason.
    """
    mode = read_text(params, "mode") or MODES[0]
    if mode not in MODES:
        refuse(f"Invalid param: mode must be one of {', '.join(MODES)}", param="mode")
    budget = BUDGETS.get(read_text(params, "budget") or "default")
    if budget is None:
        refuse(f"Invalid param: budget must be one of {', '.join(BUDGETS)}", param="budget")
    cursor = params.get("cursor")
    if isinstance(cursor, str) and (found := _CURSOR.fullmatch(cursor)):
        cursor = int(found[1])
    if cursor is not None and (not isinstance(cursor, int) or isinstance(cursor, bool)):
        refuse("Invalid param: cursor must be one that page.observe returned", param="cursor")
    encoding = read_text(params, "format")  # the frame selects between them
    if encoding is not None and encoding not in FORMATS:
        raise AwpError("UNSUPPORTED", "The SOM is not available in this format", {"formats": list(FORMATS)})
    max_bytes = read_number(params, "max_bytes")
    if max_bytes is not None and max_bytes <= 0:
        refuse("Invalid param: max_bytes must be a positive number", param="max_bytes")

    current = history.current
    assert current is not None
    assert current.page is not None
    compiled = cache.compiled(current.page)
    som = render_som(compiled, budget, current.overlay)
    if mode == "snapshot":
        if max_bytes is not None and som["meta"]["som_bytes"] > max_bytes:
            som = render_som(compiled, Budget.TIGHT, current.overlay)
            length = som["meta"]["som_bytes"]
            if length > max_bytes:
                refuse("The page's SOM is longer than max_bytes", max_bytes=max_bytes, som_bytes=length)
        return {"mode": mode, "cursor": history.cursor, "som": som}
    if cursor is None:
        cursor = history.cursor - 1
    patch: list[JsonObject] = []
    if cursor < history.cursor:
        moment = history.since(cursor)
        if moment is None:
            reason = "no_previous_som" if history.cursor == 1 else "cursor_too_old"
            return {"mode": "snapshot", "cursor": history.cursor, "reason": reason, "som": som}
        patch = make_patch(render_som(cache.compiled(moment.page), budget, moment.overlay), som)
    return {"mode": mode, "cursor": history.cursor, "changed": bool(patch), "patch": patch}


# --- The SOM of a page in its present state: its HTML, and the changes of its controls ---
# Element ids depend on the HTML alone, so typing does not change them. Unchanged parts are shared by all sessions that
# observe the same page, so documents must not be modified.


def render_som(compiled: Compiled, budget: Budget, overlay: Overlay) -> dict[str, Any]:
    """Return the SOM document with changed values, states and choices in its attributes."""
    som = compiled.som(budget)
    if not overlay:
        return som.document
    regions = [
        {**region, "elements": _render_elements(region["elements"], som, compiled, overlay)}
        for region in som.document["regions"]
    ]
    meta = {**som.document["meta"], "som_bytes": 0}
    document = {**som.document, "regions": regions, "meta": meta}
    length = with_zero = len(orjson.dumps(document))
    while length != with_zero - 1 + len(str(length)):  # the document contains its own length
        length = with_zero - 1 + len(str(length))
    meta["som_bytes"] = length
    return document


def _render_elements(
    elements: Iterable[dict[str, Any]], som: Som, compiled: Compiled, overlay: Overlay
) -> list[dict[str, Any]]:
    rendered = []
    for element in elements:
        place = som.places.get(element["id"], "")
        state = overlay.get(place)
        node = None if state is None else compiled.tree.node_at(place)
        if state is not None and node is not None:
            attributes = dict(element.get("attrs", {}))
            given = {"value": state.value, "checked": state.checked, "open": state.open}
            attributes.update((name, value) for name, value in given.items() if value is not None)
            if state.selected is not None:
                # A small budget has only some options of a long list: these stay, and the chosen ones are added.
                whole: Mapping[str, Any] = compiled.by_id.get(element["id"], {})
                shown = {_identity(option) for option in attributes.get("options", ())}
                attributes["options"] = [
                    {**dict(_identity(option)), **({"selected": True} if number in state.selected else {})}
                    for number, option in enumerate(whole.get("attrs", {}).get("options", []))
                    if number in state.selected or _identity(option) in shown
                ]
                values = [option.value for option in options_of(node) if option.number in state.selected]
                for name in ("value", "selected_values"):
                    attributes.pop(name, None)
                if values:
                    attributes["value"] = values[0]
                if values and "multiple" in node.attributes:
                    attributes["selected_values"] = values
            element = {**element, "attrs": attributes}
        shadow = element.get("shadow")
        if shadow is not None:
            inside = _render_elements(shadow["elements"], som, compiled, overlay)
            element = {**element, "shadow": {**shadow, "elements": inside}}
        rendered.append(element)
    return rendered


def _identity(option: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return everything about an option except whether it is selected."""
    return tuple((name, value) for name, value in option.items() if name != "selected")


# --- JSON Patch (RFC 6902) between two SOM documents: elements are matched by id, in about linear time ---

Members: TypeAlias = Sequence[Mapping[str, object]]

_MAX_DEPTH: Final = 24
"""Levels that are compared; deeper values, which only a page's own JSON-LD has, are replaced as a whole."""


def make_patch(before: object, after: object) -> list[JsonObject]:
    """Return the operations that turn `before` into `after`, in order; empty if they are equal."""
    return list(_compare(before, after, "", _MAX_DEPTH))


def _compare(before: object, after: object, path: str, depth: int) -> Iterator[JsonObject]:
    if depth and isinstance(before, Mapping) and isinstance(after, Mapping):
        places = {name: f"{path}/{name.replace('~', '~0').replace('/', '~1')}" for name in (*before, *after)}
        for name in before:
            if name not in after:
                yield {"op": "remove", "path": places[name]}
        for name, value in after.items():
            if name in before:
                yield from _compare(before[name], value, places[name], depth - 1)
            else:
                yield {"op": "add", "path": places[name], "value": value}
    elif depth and isinstance(before, list) and isinstance(after, list) and _has_ids(before) and _has_ids(after):
        # First removals, from the end; then additions, from the start, at their final places; then changes of the rest.
        old = {member["id"]: member for member in before}
        staying = _longest_common_order(before, after)
        for number in range(len(before) - 1, -1, -1):
            if before[number]["id"] not in staying:
                yield {"op": "remove", "path": f"{path}/{number}"}
        for number, member in enumerate(after):
            if member["id"] not in staying:
                yield {"op": "add", "path": f"{path}/{number}", "value": member}
        for number, member in enumerate(after):
            if member["id"] in staying:
                yield from _compare(old[member["id"]], member, f"{path}/{number}", depth - 1)
    elif depth and isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _compare(one, other, f"{path}/{number}", depth - 1)
    elif type(before) is not type(after) or before != after:
        yield {"op": "replace", "path": path, "value": after}


def _has_ids(items: list[object]) -> TypeGuard[list[Mapping[str, object]]]:
    """Return True if all items are objects with unique ids."""
    known = {item["id"] for item in items if isinstance(item, Mapping) and isinstance(item.get("id"), str)}
    return len(known) == len(items)


def _longest_common_order(before: Members, after: Members) -> set[object]:
    """Return the ids that both have in the same order: a longest increasing run of their old positions."""
    positions = {member["id"]: number for number, member in enumerate(before)}
    common = [(positions[member["id"]], member["id"]) for member in after if member["id"] in positions]
    # For runs of each length: the smallest position at which one ends, and the index of that in `common`. `previous`
    # has, for each of `common`, the one before it in its run.
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


# --- Values extracted from a SOM document, each with the id of its element (paper 5.7) ---

INTERACTIVE: Final = frozenset({"link", "button", "text_input", "textarea", "select", "checkbox", "radio", "details"})
_SHOWN: Final = ("id", "role", "text", "label", "actions", "attrs", "hints")
_NO_FIELDS: Final = "Missing required param: fields (object), or use structured_data:true / interactive_elements:true"


def extract(document: JsonObject, params: Mapping[str, object], limits: SessionLimits) -> JsonObject:
    """Return fields by queries, or the structured data, or all interactive elements.

    A query returns an array with `all`, otherwise the first match, or null.
    """
    if read_flag(params, "structured_data"):
        return {"structured_data": document.get("structured_data"), "url": document["url"]}
    elements = list(elements_of(document))
    if read_flag(params, "interactive_elements"):
        found = [{name: e.get(name) for name in _SHOWN} for e in elements if e["role"] in INTERACTIVE]
        return {"interactive_elements": found, "count": len(found)}
    fields = params.get("fields", params.get("queries"))  # `queries` is the draft's name
    if not isinstance(fields, Mapping):
        refuse(_NO_FIELDS, param="fields")
    if len(fields) > limits.fields:
        refuse(f"At most {limits.fields} fields can be extracted at once", fields=len(fields))
    for name, query in fields.items():
        if not isinstance(query, Mapping):
            refuse(f"Invalid param: fields.{name} must be an object", param=f"fields.{name}")
    data: dict[str, object] = {}
    provenance: dict[str, object] = {}
    for name, query in fields.items():
        where, inner = f"fields.{name}.", query.get("query")
        query = {**inner, **query} if isinstance(inner, Mapping) else query
        props = query.get("props")
        props = [] if props is None else props
        if not isinstance(props, list) or not all(isinstance(prop, str) for prop in props):
            refuse(f"Invalid param: {where}props must be an array of strings", param=f"{where}props")
        matches = filter(_read_test(query, where, limits), elements)
        if read_flag(query, "all", where):
            chosen = list(matches)
            data[name] = [_value(element, props, query) for element in chosen]
            provenance[name] = [element["id"] for element in chosen]
        else:
            first = next(matches, None)
            data[name] = None if first is None else _value(first, props, query)
            provenance[name] = None if first is None else first["id"]
    return {"data": data, "provenance": provenance}


def _read_test(query: JsonObject, where: str, limits: SessionLimits) -> Callable[[JsonObject], bool]:
    """Return a predicate for the first of ref, role and text_match that a query has; without any, nothing matches."""
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


def _value(element: JsonObject, props: list[str], query: JsonObject) -> object:
    """Return the text (for a query by text, its match; paper 5.7), or an object of the requested properties."""
    if not props:
        text, pattern = element.get("text"), query.get("text_match") or query.get("text_regex")
        if (
            isinstance(pattern, str)
            and isinstance(text, str)
            and query.get("ref") is None
            and query.get("role") is None
        ):
            return find_match(pattern, text)
        return text
    known = {**_attributes(element), **{name: element[name] for name in ("text", "label") if name in element}}
    return {name: known[name] for name in props if name in known}


def _attributes(element: JsonObject) -> JsonObject:
    attributes = element.get("attrs")
    return attributes if isinstance(attributes, Mapping) else {}
