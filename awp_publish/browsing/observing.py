"""`page.observe`: the SOM of a page in its present state, or a patch of what has changed (paper 5.5, 7.4)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from awp_publish.browsing.controls import measured
from awp_publish.browsing.errors import AwpError, refuse
from awp_publish.browsing.json_patch import make_patch
from awp_publish.browsing.overlay import Overlay, options_of
from awp_publish.browsing.parameters import read_number, read_text
from awp_publish.pages.selection import Budget
from awp_publish.pages.som import Som
from awp_publish.schema import JsonObject

if TYPE_CHECKING:
    from awp_publish.browsing.compiled import Compiled, PageCache
    from awp_publish.browsing.history import History


MODES: Final = ("snapshot", "mutations")
FORMATS: Final = ("som+json", "som+msgpack")
BUDGETS: Final = {"full": Budget.FULL, "default": Budget.DEFAULT, "tight": Budget.TIGHT}
_CURSOR: Final = re.compile(r"(?:c:)?([0-9]{1,15})", re.ASCII)


def observe(history: History, cache: PageCache, params: Mapping[str, object]) -> JsonObject:
    """Return the SOM of the present page, or a JSON Patch since a cursor.

    `budget` is the amount of detail: full, default or tight; none of them drops a control. `max_bytes` limits a
    snapshot: a longer one is made tight, without some of its controls, and refused if it is still too long. The patch
    turns the SOM at the cursor, in the same budget, into the present one. An unknown or expired cursor gives a snapshot
    and the reason.
    """
    mode = read_text(params, "mode") or MODES[0]
    if mode not in MODES:
        refuse(f"Invalid param: mode must be one of {', '.join(MODES)}", param="mode")
    budget = BUDGETS.get(read_text(params, "budget") or "default")
    if budget is None:
        refuse(f"Invalid param: budget must be one of {', '.join(BUDGETS)}", param="budget")
    cursor = params.get("cursor")
    if isinstance(cursor, str) and (match := _CURSOR.fullmatch(cursor)):
        cursor = int(match[1])
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
            som = render_som(compiled, Budget.TIGHT, current.overlay, has_controls=False)
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


def render_som(compiled: Compiled, budget: Budget, overlay: Overlay, *, has_controls: bool = True) -> dict[str, Any]:
    """Return the SOM document with changed values, states and choices in its attributes.

    Element ids depend on the HTML alone, so typing does not change them. Unchanged parts are shared by all sessions
    that observe the same page, so documents must not be modified. Without `has_controls`, a budget drops controls too.
    """
    som = compiled.observed(budget) if has_controls else compiled.som(budget)
    if not overlay:
        return som.document
    regions = [
        {**region, "elements": _render_elements(region["elements"], som, compiled, overlay)}
        for region in som.document["regions"]
    ]
    return measured({**som.document, "regions": regions})


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
            facts = {"value": state.value, "checked": state.checked, "open": state.open}
            attributes.update((name, value) for name, value in facts.items() if value is not None)
            if state.selected is not None:
                # A small budget has only some options of a long list: these stay, and the chosen ones are added.
                whole: Mapping[str, Any] = compiled.by_id.get(element["id"], {})
                options = {_identity(option) for option in attributes.get("options", ())}
                attributes["options"] = [
                    {**dict(_identity(option)), **({"selected": True} if number in state.selected else {})}
                    for number, option in enumerate(whole.get("attrs", {}).get("options", []))
                    if number in state.selected or _identity(option) in options
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
