"""The parameters of an AWAS action: 1.0's `parameters` and 1.1's `inputs`, picked from the same facts."""

from collections.abc import Sequence
from typing import Final

from awp_publish.model import Action, JsonObject
from awp_publish.protocols.plain_request import Field
from awp_publish.protocols.schema_reading import kinds, options, resolved

PARAMETER_MEMBERS: Final = (
    "name",
    "type",
    "format",
    "required",
    "description",
    "selector",
    "validation",
    "default",
    "example",
    "enum",
)
"""What 1.0 says about a parameter (Parameter Object Structure)."""

INPUT_MEMBERS: Final = ("name", "type", "required", "default", "selector", "description", "examples", "validation")
"""What 1.1 says about an input (definitions/input)."""

FORMATS: Final = {"date-time": "datetime"}
"""JSON Schema formats that 1.0 (String Formats) spells otherwise."""

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
"""Both versions require a type. Where any value will do, a text will."""


def parameters(action: Action, fields: Sequence[Field]) -> dict[str, object]:
    """The members `parameters` and `inputs`; None without fields."""
    facts = [_facts(action, field) for field in fields]
    return {
        "parameters": [_pick(fact, PARAMETER_MEMBERS) for fact in facts] or None,
        "inputs": [_pick(fact, INPUT_MEMBERS) for fact in facts] or None,
    }


def examples_in(facts: JsonObject) -> list[object]:
    """The examples a resolved schema gives, without null."""
    examples = facts.get("examples")
    return [value for value in examples if value is not None] if isinstance(examples, list) else []


def _pick(facts: JsonObject, names: Sequence[str]) -> dict[str, object]:
    marks = facts["marks"]
    picked = {name: facts[name] for name in names if facts[name] is not None}
    return picked | marks if isinstance(marks, dict) else picked


def _facts(action: Action, field: Field) -> dict[str, object]:
    """All that either version says about a parameter, None where it has nothing to say."""
    facts = resolved(field.schema, action.inputs)
    values = options(facts, action.inputs)
    examples = [*field.examples, *examples_in(facts)]
    shape = facts.get("format")
    kind = next(iter(kinds(facts, action.inputs)), FALLBACK_TYPE)
    return {
        "name": field.name,
        "type": kind,
        "format": FORMATS.get(shape, shape) if isinstance(shape, str) else None,
        "required": field.required,
        "description": _description(facts, field),
        "selector": action.selectors.get(field.input_name),
        "validation": _validation(facts, kind, values),
        "default": facts.get("default"),
        "example": examples[0] if examples else None,
        "examples": examples or None,
        "enum": values or None,
        "marks": field.marks,
    }


def _description(facts: JsonObject, field: Field) -> str:
    """1.0 requires a description: a title or the name in words stands in for one."""
    for told in (facts.get("description"), facts.get("title"), field.description):
        if isinstance(told, str) and told:
            return told
    return field.name.replace("_", " ").replace("-", " ").strip().capitalize()


def _validation(facts: JsonObject, kind: str, values: list[object]) -> dict[str, object] | None:
    if not values and BOUNDS.isdisjoint(facts):
        return None
    rules: dict[str, object] = {}
    for keyword, name, types in VALIDATION:
        rule = facts.get(keyword)
        if isinstance(rule, types) and not isinstance(rule, bool):
            rules[name] = rule
    if kind == "integer":
        rules = _whole_bounds(facts) | rules
    if values:
        rules["enum"] = values
    return rules or None


def _whole_bounds(facts: JsonObject) -> dict[str, object]:
    """Exclusive bounds of whole numbers; of other numbers AWAS cannot say them."""
    found = ((facts.get(keyword), name, inside) for keyword, name, inside in EXCLUSIVE_BOUNDS)
    return {name: bound + inside for bound, name, inside in found if isinstance(bound, int)}
