"""Whole numbers that not every reader of JSON keeps."""

import re
import sys
from collections.abc import Mapping
from typing import Final, cast

import orjson

from awp_publish.model import JsonObject

EXACT: Final = 2**53
"""Below it, a double has every whole number (RFC 8259, section 6)."""

_LARGEST: Final = 2**64 - 1
_SMALLEST: Final = -(2**63)
_MOST: Final = int(sys.float_info.max)


_WHOLE: Final = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")|(-?[0-9]++)\.0(?![0-9eE])')
"""A string, or a number that is written as a double and equals an integer."""


def with_integers(text: bytes) -> bytes:
    """Return a JSON text without the fractions of numbers that equal integers, 5 for 5.0 (JSON Schema, 4.2.2)."""
    if b".0" not in text:
        return text
    return b"".join(filter(None, _WHOLE.split(text)))  # without the b".0", which is in no group


def in_doubles(schema: JsonObject) -> JsonObject:
    """Return a schema with whole numbers of more than 64 bits as doubles, which is how most readers take them."""
    try:
        orjson.dumps(schema)
    except TypeError:
        return cast(JsonObject, _in_doubles(schema))
    return schema


def _in_doubles(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _in_doubles(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_in_doubles(item) for item in value]
    if isinstance(value, int) and not _SMALLEST <= value <= _LARGEST:
        return float(max(-_MOST, min(value, _MOST)))
    return value
