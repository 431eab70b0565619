"""Formats and encodings of texts.

A text conforms to a format if it conforms to the format's specification, or if pydantic accepts it: handlers take a
`datetime` without an offset and a `UUID` without hyphens, and nothing that a handler takes may be refused before it.
Formats that the engine does not know (`binary`, `password`, `json-string`, `path`, ...) are annotations.
"""

import base64
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from functools import partial
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final, cast
from uuid import UUID

from jsonschema_rs import Draft202012Validator as Engine
from pydantic import AnyUrl, TypeAdapter
from pydantic.networks import validate_email

from awp_publish.schema.unique import UniqueItems

MAX_LENIENT: Final = 2_000
"""Characters of a text that pydantic is given to read."""


def _is_in(strict: Callable[[object], bool], read: Callable[[str], object], text: str) -> bool:
    if strict(text):
        return True
    try:
        if len(text) <= MAX_LENIENT:
            read(text)
            return True
    except (ValueError, ImportError):  # pydantic raises ValueError; its e-mail addresses need a package
        pass
    return False


_READERS: Final[Mapping[str, Callable[[str], object]]] = {
    **{
        name: TypeAdapter(cast(Any, kind)).validate_python
        for name, kind in (
            ("date", date),
            ("date-time", datetime),
            ("time", time),
            ("duration", timedelta),
            ("uuid", UUID),
            ("uri", AnyUrl),
            ("ipv4", IPv4Address),
            ("ipv6", IPv6Address),
        )
    },
    "email": validate_email,
    "regex": str,  # a handler expects Python's syntax; a caller's pattern is never compiled here
}

FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    name: partial(_is_in, Engine({"format": name}, validate_formats=True).is_valid, read)
    for name, read in _READERS.items()
}


class _ContentEncoding:
    """The keyword `contentEncoding`, an annotation in JSON Schema. We assert it for base64, in which files are sent."""

    def __init__(self, schema: object, encoding: object, path: object) -> None:
        self._is_base64 = encoding == "base64"

    def validate(self, instance: object) -> None:
        """Raise ValueError for a text that is not base64 although the keyword says so."""
        if self._is_base64 and isinstance(instance, str):
            base64.b64decode(instance, validate=True)  # RFC 4648 section 4


UNIQUE: Final[dict[str, Any]] = {"uniqueItems": UniqueItems}

KEYWORDS: Final[dict[str, Any]] = {"contentEncoding": _ContentEncoding, **UNIQUE}
