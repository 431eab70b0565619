"""Members that are secrets by their names, although their schema does not say so: `password: str`, `pin`, `cvv`."""

import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from awp_publish.model import JsonObject
from awp_publish.schema import is_secret, subschemas

_NAME: Final = re.compile(
    r"(\w+_)?(password|passwd|passphrase|passcode|secret|pin|cvv|cvc)_?\d?"
    r"|token|(access|refresh|auth|api|bearer|reset|id)_token|(\w+_)?(api|private|secret)_key"
)
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

Path: TypeAlias = tuple[str, ...]


def is_secret_name(name: str) -> bool:
    """Return True if a member with this name holds a secret: `newPassword`, `card_pin`, `token`, not `page_token`."""
    return _NAME.fullmatch(_HUMP.sub("_", name).replace("-", "_").lower()) is not None


def mark_secrets(schema: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
    """Return a schema in which such members are `writeOnly`, and the names of those that it did not mark itself."""
    names: dict[str, None] = {}
    marked = _mark(schema, names)
    return (marked, tuple(names)) if names and isinstance(marked, Mapping) else (schema, ())


def _mark(part: object, names: dict[str, None]) -> object:
    if isinstance(part, list):
        return [_mark(item, names) for item in part]
    if not isinstance(part, Mapping):
        return part
    return {
        key: _mark_members(value, names)
        if key == "properties" and isinstance(value, Mapping)
        else _mark(value, names)
        if key not in _VALUES
        else value
        for key, value in part.items()
    }


_VALUES: Final = frozenset({"const", "default", "enum", "example", "examples"})


def _mark_members(members: Mapping[str, object], names: dict[str, None]) -> dict[str, object]:
    marked: dict[str, object] = {}
    for name, schema in members.items():
        marked[name] = inner = _mark(schema, names)
        if not isinstance(inner, dict) or not is_secret_name(name) or inner.get("type") in _NO_SECRET:
            continue
        if not any(map(is_secret, subschemas(inner))):
            marked[name] = {**inner, "writeOnly": True}
            names[name] = None
    return marked


_NO_SECRET: Final = ("boolean", "null", "object", "array")
