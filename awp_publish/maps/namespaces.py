"""Names and references of an imported map, under the namespace of its import (V1, imports)."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from awp_publish.maps import reading
from awp_publish.schema import JsonObject

NAME_MEMBERS: Final[Mapping[str, str]] = {
    "tools": "name",
    "states": "name",
    "transitions": "name",
    "signals": "name",
    "state_projections": "name",
    "context": "id",
    "attachments": "id",
    "checks": "id",
}
"""Sections whose objects are composed, and the member with their name."""
NOUNS: Final[Mapping[str, str]] = {
    **{section: section.removesuffix("s") for section in NAME_MEMBERS},
    "state_projections": "projection",
}
"""What one of a section is called in messages."""


REFERENCES: Final[Mapping[str, Mapping[str, str]]] = {
    "tools": {"target.state": "states", "x_actions.execution.steps.[].target.state": "states"},
    "states": {"diagnostics.[].target.state": "states", "observables": "state_projections"},
    "transitions": {
        "from": "states",
        "to": "states",
        "tool": "tools",
        "signal": "signals",
        "preconditions": "states",
        "reveals": "state_projections",
        "convergence.complete_when": "states",
    },
    "signals": {"target.state": "states"},
    "state_projections": {"postconditions.{name}": "tools", "postconditions.{}.projection": "state_projections"},
    "context": {
        "available_tools": "tools",
        "next_states": "states",
        "load_when.states": "states",
        "load_when.targets.[].state": "states",
    },
    "attachments": {"target.state": "states", "affordance.opens.tool": "tools", "signals.{}": "signals"},
    "checks": {
        "tool": "tools",
        "state": "states",
        "attachment": "attachments",
        "target.state": "states",
        "setup.[].tool": "tools",
        "steps.[].tool": "tools",
        "assertions.[].target.state": "states",
    },
}
"""Where objects of a section name others, one or several, and the section of these.

`[]` stands for all items of an array, `{}` for all members of an object, `{name}` for their names.
"""


def name_of(item: JsonObject, section: str) -> str:
    return str(item.get(NAME_MEMBERS[section]))


def rename(document: JsonObject, section: str, space: str, names: Mapping[str, set[str]]) -> Sequence[JsonObject]:
    """Return the objects of a section with the namespace added to their names and references.

    `space` ends with a dot, or is "". `names` are the names that the map defines, by section; others are left alone.
    """
    objects = reading.objects(document, section)
    return [_rename(item, section, space, names) for item in objects] if space else objects


def _rename(item: JsonObject, section: str, space: str, names: Mapping[str, set[str]]) -> JsonObject:
    changed: Any = item
    for path, kind in REFERENCES[section].items():
        changed = change(changed, path.split("."), partial(_with_space, space, names[kind]))
    renamed: JsonObject = change(changed, [NAME_MEMBERS[section]], lambda name: f"{space}{name}")
    return renamed


def _with_space(space: str, names: set[str], value: object) -> object:
    if isinstance(value, list):
        return [_with_space(space, names, item) for item in value]
    return space + value if isinstance(value, str) and value in names else value


def change(value: Any, path: Sequence[str], changed: Callable[[Any], Any]) -> Any:
    """Return a value with a change of what is at a path; parts that are missing or of another type are left alone."""
    if not path:
        return changed(value)
    step, rest = path[0], path[1:]
    if step == "[]":
        return [change(item, rest, changed) for item in value] if isinstance(value, list) else value
    if not isinstance(value, Mapping):
        return value
    if step == "{}":
        return {name: change(member, rest, changed) for name, member in value.items()}
    if step == "{name}":
        return {str(changed(name)): member for name, member in value.items()}
    return {**value, step: change(value[step], rest, changed)} if step in value else value
