"""RFC 6902, as much of it as a reader of `page.observe` needs, written against the RFC and not against our writer."""

import copy
from typing import Any


def apply_patch(document: Any, patch: Any) -> Any:
    document = copy.deepcopy(document)
    for operation in patch:
        if operation["path"] == "":
            assert operation["op"] == "replace"
            document = copy.deepcopy(operation["value"])
            continue
        *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"][1:].split("/")]
        holder = document
        for part in parents:
            holder = holder[int(part)] if isinstance(holder, list) else holder[part]
        _apply(operation, holder, last)
    return document


def _apply(operation: dict[str, Any], holder: Any, last: str) -> None:
    value = copy.deepcopy(operation.get("value"))
    if isinstance(holder, list):
        place = int(last)
        if operation["op"] == "add":
            assert place <= len(holder)
            holder.insert(place, value)
        elif operation["op"] == "remove":
            del holder[place]
        else:
            holder[place] = value
    elif operation["op"] == "remove":
        del holder[last]
    else:
        assert operation["op"] == "add" or last in holder
        holder[last] = value
