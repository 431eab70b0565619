"""`page.observe`: the SOM as it is, or what changed since a cursor, as JSON Patch and as SomDiff (paper 5.5, 7.4)."""

import re
from collections.abc import Mapping
from typing import Final

from awp_publish.browsing.differences import describe_differences
from awp_publish.browsing.errors import AwpError, refuse
from awp_publish.browsing.history import History
from awp_publish.browsing.patching import make_patch
from awp_publish.browsing.reading import read_number, read_text
from awp_publish.browsing.shelf import PageCache
from awp_publish.browsing.showing import show
from awp_publish.model import JsonObject
from awp_publish.pages.som import Budget

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
