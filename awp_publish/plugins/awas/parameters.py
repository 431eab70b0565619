"""The parameters of an action in AWAS: 1.0's `parameters` and 1.1's `inputs`, made from the same facts."""

import math
from contextlib import suppress
from typing import Final

from awp_publish.documents.members import present, whole
from awp_publish.documents.plain_request import Field
from awp_publish.model import Action, JsonObject
from awp_publish.schema.reading import encoding_of, kinds, members, object_facts, options, required_members, resolved

INPUT_MEMBERS: Final = ("name", "type", "format", "required", "default", "selector", "validation")
"""The members of an input in 1.1 (definitions/input), without description and examples, which are in `parameters`.

`format` is no member of 1.1, which allows others, and has the name that JSON Schema gives it.
"""

TYPES_OF_1_0: Final = {"integer": "number"}
"""1.0 (Data Types) has one type for integers and floats."""

FORMATS: Final = {"date-time": "datetime"}
"""JSON Schema formats that have another name in 1.0 (String Formats)."""

FORMAT_NAMES: Final = {name: shape for shape, name in FORMATS.items()}

VALIDATION: Final[tuple[tuple[str, str, tuple[type, ...]], ...]] = (
    ("pattern", "pattern", (str,)),
    ("minimum", "min", (int, float)),
    ("maximum", "max", (int, float)),
    ("minLength", "minLength", (int,)),
    ("maxLength", "maxLength", (int,)),
)
"""JSON Schema keyword, member of `validation`, types it may have."""

EXCLUSIVE_BOUNDS: Final = (("exclusiveMinimum", "min", 1), ("exclusiveMaximum", "max", -1))
"""JSON Schema keyword, member of `validation`, and how far inside the nearest whole number is."""

BOUNDS: Final = frozenset({keyword for keyword, *_ in (*VALIDATION, *EXCLUSIVE_BOUNDS)})

FALLBACK_TYPE: Final = "string"
"""Both versions require a type; if any value is valid, a text is."""


def describe_parameter(action: Action, field: Field) -> dict[str, object]:
    """Return all facts about a parameter for both versions, in the order of 1.0 (Parameter Object)."""
    facts = resolved(field.schema, action.inputs)
    values = options(facts, action.inputs)
    kind = next(iter(kinds(facts, action.inputs)), FALLBACK_TYPE)
    rules: dict[str, object] = {}
    if not BOUNDS.isdisjoint(facts):
        if kind == "integer":  # for other numbers AWAS cannot express exclusive bounds
            for keyword, name, inside in EXCLUSIVE_BOUNDS:
                if isinstance(bound := facts.get(keyword), int):
                    rules[name] = bound + inside
        for keyword, name, types in VALIDATION:
            rule = facts.get(keyword)
            if isinstance(rule, types) and not isinstance(rule, bool):
                rules[name] = whole(rule)
    if values:
        rules["enum"] = values
    described = facts.get("description")
    if not isinstance(described, str) or not described:  # 1.0 requires one: use the title or the name in words
        title = facts.get("title")
        in_words = field.name.replace("_", " ").replace("-", " ").strip().capitalize()
        described = title if isinstance(title, str) and title else in_words
    shape, examples = facts.get("format"), field.examples or examples_in(facts)
    return present(
        {
            "name": field.name,
            "type": kind,
            "format": FORMATS.get(shape, shape) if isinstance(shape, str) else None,
            "required": field.required,
            "description": described,
            "selector": action.selectors.get(field.input_name),
            "validation": rules or None,
            "default": _as_kind(facts.get("default"), kind),
            "example": _as_kind(examples[0], kind) if examples else None,
            "enum": values or None,
            "x-types": union if len(union := kinds(facts, action.inputs)) > 1 else None,
            "x-encoding": encoding_of(facts),
            "x-items": describe_items(facts, action.inputs) if kind == "array" else None,
        }
    )


def describe_items(facts: JsonObject, root: JsonObject) -> dict[str, object] | None:
    """Return what the items of an array are: their type, format, encoding and values, and the members of objects."""
    item = resolved(facts.get("items"), root)
    item_kinds, shape = kinds(item, root), item.get("format")
    inside = object_facts(item, root)
    types = {
        name: next(iter(kinds(resolved(part, root), root)), FALLBACK_TYPE) for name, part in members(inside).items()
    }
    described: dict[str, object] = {
        "type": item_kinds[0] if len(item_kinds) == 1 else item_kinds or None,
        "format": FORMATS.get(shape, shape) if isinstance(shape, str) else None,
        "x-encoding": encoding_of(item),
        "enum": options(item, root) or None,
        "properties": types or None,
        "required": sorted(required_members(inside)) or None,
    }
    return present(described) or None


def _as_kind(value: object, kind: str) -> object:
    """Return a number for a text if the published type is numeric; models write Decimals as texts."""
    if isinstance(value, str) and kind in ("number", "integer"):
        with suppress(ValueError):
            number = float(value)
            return whole(number) if math.isfinite(number) else value
    return value


def examples_in(facts: JsonObject) -> list[object]:
    """Return the examples of a resolved schema, without null."""
    examples = facts.get("examples")
    return [value for value in examples if value is not None] if isinstance(examples, list) else []
