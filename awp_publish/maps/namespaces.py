"""Names and references of an imported map, under the namespace of its import (V1, imports)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

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


def name_of(item: JsonObject, section: str) -> str:
    return str(item.get(NAME_MEMBERS[section]))


def rename(document: JsonObject, section: str, space: str, names: Mapping[str, set[str]]) -> Sequence[JsonObject]:
    """Return the objects of a section with the namespace added to their names and references.

    `space` ends with a dot, or is "". `names` are the names that the map defines, by section; others are left alone.
    """
    if not space:
        return reading.objects(document, section)

    def prefixed(kind: str, name: object) -> object:
        if isinstance(name, list):
            return [prefixed(kind, item) for item in name]
        return space + name if isinstance(name, str) and name in names[kind] else name

    def target(value: object) -> object:
        return (
            {**value, "state": prefixed("states", value["state"])}
            if isinstance(value, Mapping) and "state" in value
            else value
        )

    def change(value: JsonObject, **changes: Callable[[object], object]) -> dict[str, object]:
        return {name: changes[name](member) if name in changes else member for name, member in value.items()}

    def each(convert: Callable[[JsonObject], object]) -> Callable[[object], object]:
        return lambda value: (
            [convert(item) if isinstance(item, Mapping) else item for item in value]
            if isinstance(value, list)
            else value
        )

    def inside(convert: Callable[[JsonObject], object]) -> Callable[[object], object]:
        return lambda value: convert(value) if isinstance(value, Mapping) else value

    def tools(value: object) -> object:
        return prefixed("tools", value)

    def states(value: object) -> object:
        return prefixed("states", value)

    def projections(value: object) -> object:
        return prefixed("state_projections", value)

    calls = each(lambda step: change(step, tool=tools))
    targeted = each(lambda item: change(item, target=target))
    changes: Mapping[str, Mapping[str, Callable[[object], object]]] = {
        "tools": {
            "target": target,
            "x_actions": inside(
                lambda item: change(item, execution=inside(lambda execution: change(execution, steps=targeted)))
            ),
        },
        "states": {"diagnostics": targeted, "observables": projections},
        "transitions": {
            "from": states,
            "to": states,
            "tool": tools,
            "signal": lambda value: prefixed("signals", value),
            "preconditions": states,
            "reveals": projections,
            "convergence": inside(lambda item: change(item, complete_when=states)),
        },
        "signals": {"target": target},
        "state_projections": {
            "postconditions": inside(
                lambda item: {
                    str(tools(tool)): inside(lambda condition: change(condition, projection=projections))(condition)
                    for tool, condition in item.items()
                }
            ),
        },
        "context": {
            "available_tools": tools,
            "next_states": states,
            "load_when": inside(
                lambda item: change(item, states=states, targets=each(lambda target: change(target, state=states)))
            ),
        },
        "attachments": {
            "target": target,
            "affordance": inside(lambda item: change(item, opens=inside(lambda opens: change(opens, tool=tools)))),
            "signals": inside(lambda item: {name: prefixed("signals", signal) for name, signal in item.items()}),
        },
        "checks": {
            "tool": tools,
            "state": states,
            "attachment": lambda value: prefixed("attachments", value),
            "target": target,
            "setup": calls,
            "steps": calls,
            "assertions": targeted,
        },
    }
    member = NAME_MEMBERS[section]
    return [
        change(item, **changes[section], **{member: lambda value: f"{space}{value}"})
        for item in reading.objects(document, section)
    ]
