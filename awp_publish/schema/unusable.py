"""Why a type or a schema cannot be used."""

import re
from typing import Final

from pydantic import ValidationError


class UnusableSchema(ValueError):
    """A type has no JSON Schema, or a schema is not a valid, self-contained JSON Schema 2020-12."""


_REASONS: Final = (
    (re.compile(r"pydantic-core schema for (.+?)\. Set `arbitrary"), "{} has no JSON Schema"),
    (re.compile(r"JsonSchema for core_schema\.\w+ \((.+)\)"), "{} has no JSON Schema"),
    (re.compile(r"JsonSchema for core_schema\.(\w+?)Schema"), "a value of the kind {} has no JSON Schema"),
    (re.compile(r"[`'](\w+)[`'] is not fully defined"), "{} is not fully defined; define its types at module level"),
    (re.compile(r"name '(\w+)' is not defined"), "the type {} is not defined; define it at module level"),
)
"""pydantic's messages for its own users, and ours."""


def reason_of(error: Exception) -> str:
    """Return why a type has no JSON Schema, in one line."""
    if isinstance(error, ValidationError):  # FastAPI validates its OpenAPI document with pydantic
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    text = str(error)
    for pattern, words in _REASONS:
        match = pattern.search(text)
        if match is not None:
            return words.format(re.sub(r"<class '([^']+)'>", r"\1", match[1]))
    return first_line(error).rstrip(".")


def first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]
