"""An input to show in requests: an action's own example, or else values of the types that it requires."""

from typing import Any, Final

from awp_publish.model import Action, JsonObject
from awp_publish.schema.reading import kinds, members, object_facts, options, required_members, resolved

MAX_DEPTH: Final = 4
_BY_FORMAT: Final = {
    "date": "2026-12-24",
    "date-time": "2026-12-24T18:00:00Z",
    "time": "18:00:00",
    "email": "ann@example.com",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


def sample_input(action: Action) -> dict[str, object]:
    """Return the first example of an action, or else one value for each required input."""
    return dict(action.examples[0]) if action.examples else _members(action.inputs, action.inputs, 0)


def _members(schema: JsonObject, root: JsonObject, depth: int) -> dict[str, object]:
    facts = object_facts(schema, root)
    needed = required_members(facts)
    return {name: _value(part, root, depth + 1) for name, part in members(facts).items() if name in needed}


def _value(schema: object, root: JsonObject, depth: int) -> object:
    facts: Any = resolved(schema, root)
    if isinstance(listed := facts.get("examples"), list) and listed:
        return listed[0]
    if "default" in facts:
        return facts["default"]
    if values := options(facts, root):
        return values[0]
    kind = next(iter(kinds(facts, root)), "string")
    if kind == "object":
        return _members(facts, root, depth) if depth < MAX_DEPTH else {}
    if kind == "array":
        items = [_value(facts["items"], root, depth + 1)] if "items" in facts and depth < MAX_DEPTH else []
        return items * max(1, facts.get("minItems", 0))
    if kind in ("integer", "number"):
        least = max(1, facts.get("minimum", 1), facts.get("exclusiveMinimum", 0) + 1)
        return min(least, facts.get("maximum", least))
    if kind == "boolean":
        return True
    text = "." * max(3, facts.get("minLength", 0))
    return _BY_FORMAT.get(str(facts.get("format")), text[: facts.get("maxLength")])
