"""agent.json's notation of types: `string`, `enum[a, b]`, `array[flight]`, `object[flight]`, own names."""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

PRIMITIVES: Final = ("string", "integer", "float", "boolean", "ISO8601", "url")

_MAX_NESTING: Final = 10

_CONTAINER: Final = re.compile(r"(enum|array|object)\s*\[(.*)\]", re.DOTALL)

_NAME: Final = re.compile(r"[^\W\d][\w.:-]*")


@dataclass(slots=True)
class FieldType:
    """A parsed type: its fault, or the options of an enum, the entity of an object, the item type of an array."""

    fault: str | None = None
    options: list[str] = field(default_factory=list)
    entity: str | None = None
    item: str | None = None


@lru_cache(maxsize=1024)
def read_type(text: str) -> FieldType:
    """Parse a type. The result is cached and must not be changed."""
    text = text.strip()
    for _ in range(_MAX_NESTING):
        match = _CONTAINER.fullmatch(text)
        if match is None:
            if _NAME.fullmatch(text):
                return FieldType()
            fault = "is neither the name of a type nor enum[...], array[...] or object[...]" if text else "is empty"
            return FieldType(fault)
        kind, text = match[1], match[2].strip()
        if not text:
            return FieldType(f"has nothing between the brackets of {kind}[]")
        if kind == "enum":
            options = [option.strip() for option in text.split(",")]
            return FieldType("has an empty value between its commas" if "" in options else None, options)
        if kind == "object":
            return FieldType(entity=text)
        if _NAME.fullmatch(text):
            return FieldType(item=None if text in PRIMITIVES else text)
    return FieldType("is nested too deeply")
