"""`page.observe`: the SOM as it is, or what changed since a cursor, as JSON Patch and as SomDiff (paper 5.5, 7.4)."""

import re
from collections.abc import Mapping
from typing import Final

from awp_publish.browsing.differences import describe_differences
from awp_publish.browsing.errors import refuse
from awp_publish.browsing.history import History
from awp_publish.browsing.patching import make_patch
from awp_publish.browsing.reading import read_text
from awp_publish.browsing.shelf import PageCache
from awp_publish.browsing.showing import show
from awp_publish.model import JsonObject
from awp_publish.pages.som import Budget

MODES: Final = ("snapshot", "mutations")
BUDGETS: Final = {"full": Budget.FULL, "default": Budget.DEFAULT, "tight": Budget.TIGHT}
_CURSOR: Final = re.compile(r"(?:c:)?([0-9]{1,15})", re.ASCII)


def observe(history: History, cache: PageCache, params: Mapping[str, object]) -> JsonObject:
    """The answer for the page that is shown. `budget` says how much of it: full, default or tight.

    With the same budget, the patch makes today's SOM of the one at the cursor. A cursor that is not known any more
    gives a snapshot and the reason.
    """
    mode = read_text(params, "mode") or MODES[0]
    if mode not in MODES:
        refuse(f"Invalid param: mode must be one of {', '.join(MODES)}", param="mode")
    budget = BUDGETS.get(read_text(params, "budget") or "default")
    if budget is None:
        refuse(f"Invalid param: budget must be one of {', '.join(BUDGETS)}", param="budget")
    cursor = read_cursor(params.get("cursor"))
    current = history.current
    assert current is not None
    assert current.page is not None
    som = show(cache.compiled(current.page), budget, current.overlay)
    if mode == "snapshot":
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
