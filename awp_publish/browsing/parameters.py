"""Parameters of AWP's methods: text, objects, numbers and flags, each refused in words if it is of another type."""

from collections.abc import Mapping
from typing import Final, TypeVar

from awp_publish.browsing.errors import missing, refuse
from awp_publish.schema import JsonObject

Kind = TypeVar("Kind")
_NAMES: Final = {str: "a string", dict: "an object", list: "an array", bool: "true or false", int: "an integer"}


def read_text(params: Mapping[str, object], name: str, where: str = "") -> str | None:
    """Return a string, or None if it is missing or null."""
    return _read(params, name, where, str)


def read_object(params: Mapping[str, object], name: str, where: str = "") -> JsonObject | None:
    """Return an object, or None if it is missing or null."""
    return _read(params, name, where, dict)


def read_flag(params: Mapping[str, object], name: str, where: str = "") -> bool:
    """Return a boolean, False if it is missing."""
    return bool(_read(params, name, where, bool))


def read_number(params: Mapping[str, object], name: str, where: str = "") -> int | None:
    """Return an integer (booleans are refused), or None if it is missing or null."""
    return _read(params, name, where, int)


def require_text(params: Mapping[str, object], name: str, where: str = "") -> str:
    """Return a required string."""
    value = read_text(params, name, where)
    if value is None:
        raise missing(where + name)
    return value


def _read(params: Mapping[str, object], name: str, where: str, kind: type[Kind]) -> Kind | None:
    value = params.get(name)
    if value is None:
        return None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        refuse(f"Invalid param: {where}{name} must be {_NAMES[kind]}", param=where + name)
    return value
