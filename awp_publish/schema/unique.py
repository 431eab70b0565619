"""The keyword `uniqueItems`, in linear work.

The engine's own hashes integers as floating-point numbers, so that hundreds of neighbours near 2**62 have one hash: a
body of a megabyte took four seconds. Items are therefore compared by a canonical text, which Python hashes with a key
that callers do not know.
"""

from typing import Any

from awp_publish.schema.large_numbers import EXACT


class UniqueItems:
    """The keyword as the engine calls it."""

    def __init__(self, schema: object, is_on: object, path: object) -> None:
        self._is_on = is_on is True

    def validate(self, instance: object) -> None:
        """Raise ValueError for a list that has the same item twice although the keyword says so."""
        if self._is_on and isinstance(instance, list) and len(set(map(_canonical, instance))) < len(instance):
            raise ValueError("not unique")


def _canonical(value: object) -> str:
    """Return a text that only values have which are equal in the sense of JSON Schema: 1 is 1.0, and true is not 1.

    Values may be nested as deeply as they like.
    """
    if isinstance(value, str):
        return repr(value)
    parts: list[str] = []
    waiting: list[Any] = [value]
    while waiting:
        part = waiting.pop()
        match part:
            case tuple():  # text of ours: JSON has no tuples
                parts += part
            case dict():
                waiting.append(("}",))
                for name in sorted(part, reverse=True):
                    waiting += (part[name], (repr(name), ":"))
                parts.append("{")
            case list():
                waiting.append(("]",))
                waiting += reversed(part)
                parts.append("[")
            case bool() | str() | None:
                parts += (repr(part), ",")
            case _:
                parts += (_number(part), ",")
    return "".join(parts)


def _number(value: float) -> str:
    if isinstance(value, int):
        if -EXACT < value < EXACT:
            return str(value)
        try:
            near = float(value)
        except OverflowError:
            return hex(value)
        return repr(near) if near == value else hex(value)  # Python compares the two exactly
    return str(int(value)) if -EXACT < value < EXACT and value.is_integer() else repr(value)
