"""Checks of the primitives of steps, and of their arguments."""

from collections.abc import Iterator
from typing import Final

from awp_publish.checks.engine import ERROR, Finding, JsonObject, finding, shown
from awp_publish.checks.places import members, objects, strings
from awp_publish.checks.schemas import DocumentSchema, Schema
from awp_publish.maps import rules
from awp_publish.maps.expressions import has_slots
from awp_publish.maps.primitives import PRIMITIVES, arguments_of
from awp_publish.plugins.actions_json.checks.places import STEPS
from awp_publish.plugins.actions_json.checks.specification import check, unknown_words
from awp_publish.plugins.actions_json.checks.workflows import Step, all_steps
from awp_publish.schema.pointers import child


@check("actions-primitive", ERROR, "workflow", hint="Name a primitive of the dictionary: pointer.click, text.insert.")
def unknown_primitives(document: JsonObject) -> Iterator[Finding]:
    """The primitives of steps are known; between attempts only those that do not change the page."""
    if all(str(step.get("primitive")) in PRIMITIVES and "after_each" not in step for step in all_steps(document)):
        return
    yield from unknown_words(document, PRIMITIVES, "The primitive", f"{STEPS}/primitive")
    for pointer, after in objects(document, f"{STEPS}/after_each"):
        primitive = after.get("primitive")
        is_allowed = isinstance(primitive, str) and primitive in rules.AFTER_EACH
        if after.keys() - {"primitive", "args"} or not is_allowed:
            allowed = ", ".join(sorted(rules.AFTER_EACH))
            yield finding(pointer, f"after_each may only have args and a primitive: {allowed}.")


@check("actions-arguments", ERROR, "workflow", hint="Correct the argument.")
def bad_arguments(document: JsonObject) -> Iterator[Finding]:
    """The arguments of primitives are those that the dictionary knows, as far as no expression stands for them."""
    if all(_has_arguments(step) and "after_each" not in step for step in all_steps(document)):
        return
    for pattern in (STEPS, f"{STEPS}/after_each"):
        for pointer, step in objects(document, pattern):
            primitive, arguments = step.get("primitive"), step.get("args", {})
            if not isinstance(primitive, str) or primitive not in PRIMITIVES or not isinstance(arguments, dict):
                continue
            schema = arguments_of(primitive)
            properties = members(schema["properties"])
            for name in arguments.keys() - properties.keys():
                yield finding(child(f"{pointer}/args", name), f"{primitive} has no argument {shown(name)}.")
            for _, name in strings(schema, "/required/[]"):
                if name not in arguments:
                    place = child(f"{pointer}/args", name) if "args" in step else f"{pointer}/args"
                    yield finding(place, f"{primitive} needs the argument {shown(name)}.")
                    if "args" not in step:
                        break
            for name in arguments.keys() & properties.keys():
                if not has_slots(arguments[name]):
                    for wrong in _arguments(primitive).violations({name: arguments[name]}):
                        if wrong.keyword != "required" and wrong.pointer:
                            message = wrong.message or f"{shown(wrong.value)} is not allowed here."
                            yield finding(f"{pointer}/args{wrong.pointer}", message)


def _has_arguments(step: Step) -> bool:
    """Return True if a step's arguments are known to be correct, as those of most steps are."""
    primitive, arguments = step.get("primitive"), step.get("args", {})
    if not isinstance(arguments, dict) or not isinstance(primitive, str) or primitive not in PRIMITIVES:
        return False
    argument_names = _argument_names.get(primitive)
    if argument_names is None:
        schema = arguments_of(primitive)
        needed = schema["required"]
        assert isinstance(needed, list)
        argument_names = _argument_names[primitive] = (frozenset(members(schema["properties"])), frozenset(needed))
    names = arguments.keys()
    if not (argument_names[1] <= names <= argument_names[0]):
        return False
    plain = {name: value for name, value in arguments.items() if not (isinstance(value, str) and "{%" in value)}
    return not plain or _arguments(primitive, frozenset(argument_names[1] - plain.keys())).is_valid(plain)


_argument_names: Final[dict[str, tuple[frozenset[str], frozenset[str]]]] = {}
_argument_schemas: Final[dict[tuple[str, frozenset[str]], DocumentSchema]] = {}


def _arguments(primitive: str, filled: frozenset[str] = frozenset()) -> DocumentSchema:
    """Return the schema of a primitive's arguments, not requiring those that an expression fills."""
    key = (primitive, filled)
    if key not in _argument_schemas:

        def load() -> Schema:
            schema = arguments_of(primitive)
            needed = schema["required"]
            return {**schema, "required": [name for name in needed if name not in filled]}  # type: ignore[attr-defined]

        _argument_schemas[key] = DocumentSchema(load)
    return _argument_schemas[key]
