"""Members that are secrets by their names, although their schema does not say so: `password: str`, `pin`, `cvv`."""

import re
from typing import Final, TypeAlias

from awp_publish.model import JsonObject
from awp_publish.schema import is_secret, subschemas
from awp_publish.schema.parts import map_parts

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

    def mark(part: JsonObject, _: str = "") -> JsonObject:
        marked = map_parts(part, mark)
        if isinstance(members := marked.get("properties"), dict):
            for name, inner in members.items():
                if is_secret_name(name) and _may_be_secret(inner):
                    members[name] = {**inner, "writeOnly": True}
                    names[name] = None
        return marked

    marked = mark(schema)
    return (marked, tuple(names)) if names else (schema, ())


def _may_be_secret(schema: object) -> bool:
    """Return True for the schema of a single value that does not say itself that it is a secret."""
    if not isinstance(schema, dict) or schema.get("type") in ("boolean", "null", "object", "array"):
        return False
    return not any(map(is_secret, subschemas(schema)))
