"""JSON Patch (RFC 6902) between two JSON documents, in about linear time. Objects in lists are matched by their ids."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias, TypeGuard

import orjson

from awp_publish.schema import JsonObject
from awp_publish.schema.pointers import child

Members: TypeAlias = Sequence[Mapping[str, object]]
_MAX_DEPTH: Final = 24
"""Levels that are compared; deeper values, which only a page's own JSON-LD has, are replaced as a whole."""


def make_patch(before: object, after: object) -> list[JsonObject]:
    """Return the operations that turn `before` into `after`, in order; empty if they are equal."""
    return list(_compare(before, after, "", _MAX_DEPTH))


def _compare(before: object, after: object, path: str, depth: int) -> Iterator[JsonObject]:
    if depth and isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in before:
            if name not in after:
                yield {"op": "remove", "path": child(path, name)}
        for name, value in after.items():
            if name in before:
                yield from _compare(before[name], value, child(path, name), depth - 1)
            else:
                yield {"op": "add", "path": child(path, name), "value": value}
    elif depth and isinstance(before, list) and isinstance(after, list):
        if _has_ids(before) and _has_ids(after):
            yield from _compare_by_ids(before, after, path, depth)
        else:
            yield from _compare_by_order(before, after, path, depth)
    elif not _is_same(before, after):
        yield {"op": "replace", "path": path, "value": after}


def _is_same(before: object, after: object) -> bool:
    """Return True for values that are equal as JSON, in which true is not 1."""
    return before == after and orjson.dumps(before) == orjson.dumps(after)


def _compare_by_ids(before: Members, after: Members, path: str, depth: int) -> Iterator[JsonObject]:
    """Yield removals, from the end; then additions, from the start, at their final places; then changes of the rest."""
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


def _compare_by_order(before: Sequence[object], after: Sequence[object], path: str, depth: int) -> Iterator[JsonObject]:
    """Yield the changes between the items that both lists begin with and those that both end with."""
    shorter = min(len(before), len(after))
    start = next((at for at in range(shorter) if not _is_same(before[at], after[at])), shorter)
    rest = range(1, shorter - start + 1)
    tail = next((at for at in rest if not _is_same(before[-at], after[-at])), len(rest) + 1) - 1
    changed = shorter - tail
    for number in range(start, changed):
        yield from _compare(before[number], after[number], f"{path}/{number}", depth - 1)
    for number in range(len(before) - tail - 1, changed - 1, -1):
        yield {"op": "remove", "path": f"{path}/{number}"}
    for number in range(changed, len(after) - tail):
        yield {"op": "add", "path": f"{path}/{number}", "value": after[number]}


def _has_ids(items: list[object]) -> TypeGuard[list[Mapping[str, object]]]:
    ids = {item["id"] for item in items if isinstance(item, Mapping) and isinstance(item.get("id"), str)}
    return len(ids) == len(items)


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
    ids: set[object] = set()
    number = ends[-1] if ends else -1
    while number >= 0:
        ids.add(common[number][1])
        number = previous[number]
    return ids
