"""Reading what an agent sent: each member of the type that it should have, or INVALID_REQUEST saying which is not."""

from collections.abc import Mapping
from typing import Final, NoReturn, TypeVar

from awp_publish.browsing.errors import missing, refuse
from awp_publish.model import JsonObject

Kind = TypeVar("Kind")

_NAMES: Final = {str: "a string", dict: "an object", list: "an array", bool: "true or false", int: "an integer"}


def read_text(params: Mapping[str, object], name: str, where: str = "") -> str | None:
    """A string, None where it is left out or null."""
    return _read(params, name, where, str)


def read_object(params: Mapping[str, object], name: str, where: str = "") -> JsonObject | None:
    """An object, None where it is left out or null."""
    return _read(params, name, where, dict)


def read_flag(params: Mapping[str, object], name: str, where: str = "") -> bool:
    """True or false; false where it is left out."""
    return bool(_read(params, name, where, bool))


def read_number(params: Mapping[str, object], name: str, where: str = "") -> int | None:
    """An integer (true is none), None where it is left out or null."""
    if isinstance(params.get(name), bool):
        _refuse_type(name, where, int)
    return _read(params, name, where, int)


def require_text(params: Mapping[str, object], name: str, where: str = "") -> str:
    """A string that must be there."""
    value = read_text(params, name, where)
    if value is None:
        raise missing(where + name)
    return value


def require_object(params: Mapping[str, object], name: str, where: str = "") -> JsonObject:
    """An object that must be there."""
    value = read_object(params, name, where)
    if value is None:
        raise missing(where + name)
    return value


def _read(params: Mapping[str, object], name: str, where: str, kind: type[Kind]) -> Kind | None:
    value = params.get(name)
    if value is not None and not isinstance(value, kind):
        _refuse_type(name, where, kind)
    return value


def _refuse_type(name: str, where: str, kind: type[object]) -> NoReturn:
    refuse(f"Invalid param: {where}{name} must be {_NAMES[kind]}", param=where + name)
