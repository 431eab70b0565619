"""JSON Patch (RFC 6902) between two SOM documents: what is alike is found by id, in about linear time."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias, TypeGuard

from awp_publish.model import JsonObject

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
