"""Composing an actions.json with the maps that it imports: names in a namespace, and no silent merge (V1, imports)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from awp_publish.maps import rules
from awp_publish.schema import JsonObject

MAX_TREE: Final = 2 * rules.MAX_TOOLS
"""Tools of all composed maps together."""

_NAMED: Final[Mapping[str, str]] = {
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
_SPACES: Final[Mapping[str, str]] = {"signals": "tools"}
"""Tools and signals share a name space."""


class ImportRefused(Exception):
    """An import is left out. The message says why."""


@dataclass(frozen=True, slots=True)
class Imported:
    """A map that was loaded and checked, and its address, by which cycles are detected."""

    document: JsonObject
    address: str


Load: TypeAlias = Callable[[str, str], Imported]
"""Loads a map from the `uri` of an import and the address of the importing map. Raises ImportRefused."""


@dataclass(slots=True)
class Composition:
    """A map with everything that it imports, and what was left out: the pointer of each import, and why.

    `private` are the tools and projections of imports whose trust is `private`, `foreign` the tools of imports that are
    not the site's own, which must not use our handlers.
    """

    document: dict[str, object]
    problems: list[tuple[str, str]] = field(default_factory=list)
    private: set[str] = field(default_factory=set)
    foreign: set[str] = field(default_factory=set)


def compose(document: JsonObject, address: str, load: Load) -> Composition:
    """Return a checked map together with its imports. The names of a failed import are left out."""
    return _composed(document, (address,), load, [0])


def _composed(document: JsonObject, chain: tuple[str, ...], load: Load, loaded: list[int]) -> Composition:
    whole = Composition({**document, **{section: [*rules.objects(document, section)] for section in _NAMED}})
    composition = document.get("composition")
    policy = composition.get("default_conflict_policy", "prefer_local") if isinstance(composition, Mapping) else None
    for index, entry in enumerate(rules.objects(document, "imports")):
        if entry.get("enabled") is False:
            continue
        try:
            _add(whole, entry, chain, load, loaded, prefers_local=policy in (None, "prefer_local"))
        except ImportRefused as refused:
            whole.problems.append((f"/imports/{index}", str(refused)))
    whole.document = {name: value for name, value in whole.document.items() if value or name in document}
    return whole


def _add(
    whole: Composition,
    entry: JsonObject,
    chain: tuple[str, ...],
    load: Load,
    loaded: list[int],
    *,
    prefers_local: bool,
) -> None:
    """Load one import and add its names to a map.

    Raises ImportRefused; if only because some names exist already, the others were added.
    """
    uri, namespace = str(entry.get("uri")), entry.get("namespace")
    if len(chain) > rules.MAX_IMPORT_DEPTH:
        raise ImportRefused(
            f"Imports are followed to a depth of {rules.MAX_IMPORT_DEPTH}: {' -> '.join((*chain, uri))}."
        )
    loaded[0] += 1
    if loaded[0] > rules.MAX_IMPORTS:
        raise ImportRefused(f"More than {rules.MAX_IMPORTS} maps are imported.")
    found = load(uri, chain[-1])
    if found.address in chain:
        raise ImportRefused(f"The imports form a cycle: {' -> '.join((*chain, found.address))}.")
    inner = _composed(found.document, (*chain, found.address), load, loaded)
    trust = entry.get("trust", "unknown")
    space = f"{namespace}." if isinstance(namespace, str) else ""
    known = {section: {_name(one, section) for one in rules.objects(inner.document, section)} for section in _NAMED}
    renamed = {section: _renamed(inner.document, section, space, known) for section in _NAMED}
    left_out: list[str] = []
    kept: dict[str, list[JsonObject]] = {}
    taken: dict[str, set[str]] = {}
    for section in _NAMED:
        own = taken.setdefault(_SPACES.get(section, section), set())
        own |= {_name(one, section) for one in rules.objects(whole.document, section)}
    for section, objects in renamed.items():
        own = taken[_SPACES.get(section, section)]
        clashing = [one for one in objects if _name(one, section) in own]
        left_out += [f"{section}/{_name(one, section)}" for one in clashing]
        kept[section] = [one for one in objects if _name(one, section) not in own]
    if left_out and not prefers_local:
        raise ImportRefused(f"Names already exist, and no policy decides between them: {', '.join(left_out[:10])}.")
    if len(rules.objects(whole.document, "tools")) + len(kept["tools"]) > MAX_TREE:
        raise ImportRefused(f"The maps have more than {MAX_TREE} tools together.")
    for section, objects in kept.items():
        whole.document[section] = [*rules.objects(whole.document, section), *objects]
    names = {_name(one, section) for section in ("tools", "state_projections", "signals") for one in kept[section]}
    if trust == "private":
        whole.private |= names
    whole.private |= {space + name for name in inner.private} & names
    if trust not in ("website", "local"):
        whole.foreign |= names
    whole.foreign |= {space + name for name in inner.foreign} & names
    whole.problems += [(f"{uri}#{place}", why) for place, why in inner.problems]
    if left_out:
        raise ImportRefused(f"The map keeps its own definitions of these names: {', '.join(left_out[:10])}.")


def _name(one: JsonObject, section: str) -> str:
    return str(one.get(_NAMED[section]))


# --- Names in a namespace ---


def _renamed(document: JsonObject, section: str, space: str, known: Mapping[str, set[str]]) -> Sequence[JsonObject]:
    """Return the objects of a section with the namespace added to their names and references."""
    if not space:
        return rules.objects(document, section)

    def named(kind: str, name: object) -> object:
        if isinstance(name, list):
            return [named(kind, one) for one in name]
        return space + name if isinstance(name, str) and name in known[kind] else name

    def target(given: object) -> object:
        return (
            {**given, "state": named("states", given["state"])}
            if isinstance(given, Mapping) and "state" in given
            else given
        )

    def change(given: JsonObject, **changes: Callable[[object], object]) -> dict[str, object]:
        return {name: changes[name](value) if name in changes else value for name, value in given.items()}

    def each(one: Callable[[JsonObject], object]) -> Callable[[object], object]:
        return lambda given: (
            [one(item) if isinstance(item, Mapping) else item for item in given] if isinstance(given, list) else given
        )

    def inside(one: Callable[[JsonObject], object]) -> Callable[[object], object]:
        return lambda given: one(given) if isinstance(given, Mapping) else given

    def tools(given: object) -> object:
        return named("tools", given)

    def states(given: object) -> object:
        return named("states", given)

    def projections(given: object) -> object:
        return named("state_projections", given)

    calls = each(lambda step: change(step, tool=tools))
    targeted = each(lambda one: change(one, target=target))
    changes: Mapping[str, Mapping[str, Callable[[object], object]]] = {
        "tools": {
            "target": target,
            "x_actions": inside(
                lambda one: change(one, execution=inside(lambda execution: change(execution, steps=targeted)))
            ),
        },
        "states": {"diagnostics": targeted, "observables": projections},
        "transitions": {
            "from": states,
            "to": states,
            "tool": tools,
            "signal": lambda given: named("signals", given),
            "preconditions": states,
            "reveals": projections,
            "convergence": inside(lambda one: change(one, complete_when=states)),
        },
        "signals": {"target": target},
        "state_projections": {
            "postconditions": inside(
                lambda one: {
                    str(tools(tool)): inside(lambda condition: change(condition, projection=projections))(condition)
                    for tool, condition in one.items()
                }
            ),
        },
        "context": {
            "available_tools": tools,
            "next_states": states,
            "load_when": inside(
                lambda one: change(one, states=states, targets=each(lambda item: change(item, state=states)))
            ),
        },
        "attachments": {
            "target": target,
            "affordance": inside(lambda one: change(one, opens=inside(lambda opens: change(opens, tool=tools)))),
            "signals": inside(lambda one: {name: named("signals", signal) for name, signal in one.items()}),
        },
        "checks": {
            "tool": tools,
            "state": states,
            "attachment": lambda given: named("attachments", given),
            "target": target,
            "setup": calls,
            "steps": calls,
            "assertions": targeted,
        },
    }
    member = _NAMED[section]
    return [
        change(one, **changes[section], **{member: lambda given: f"{space}{given}"})
        for one in rules.objects(document, section)
    ]
