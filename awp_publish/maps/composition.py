"""Composing an actions.json with the maps that it imports: names in a namespace, and no silent merge (V1, imports)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from awp_publish.maps import reading, rules
from awp_publish.maps.namespaces import NAME_MEMBERS, name_of, rename
from awp_publish.schema import JsonObject

MAX_TREE: Final = 2 * rules.MAX_TOOLS
"""Tools of all composed maps together."""

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
    whole = Composition({**document, **{section: [*reading.objects(document, section)] for section in NAME_MEMBERS}})
    composition = document.get("composition")
    policy = composition.get("default_conflict_policy", "prefer_local") if isinstance(composition, Mapping) else None
    for index, entry in enumerate(reading.objects(document, "imports")):
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
    imported = load(uri, chain[-1])
    if imported.address in chain:
        raise ImportRefused(f"The imports form a cycle: {' -> '.join((*chain, imported.address))}.")
    inner = _composed(imported.document, (*chain, imported.address), load, loaded)
    trust = entry.get("trust", "unknown")
    space = f"{namespace}." if isinstance(namespace, str) else ""
    names_by_section = {
        section: {name_of(item, section) for item in reading.objects(inner.document, section)}
        for section in NAME_MEMBERS
    }
    renamed = {section: rename(inner.document, section, space, names_by_section) for section in NAME_MEMBERS}
    left_out: list[str] = []
    accepted: dict[str, list[JsonObject]] = {}
    names_in_use: dict[str, set[str]] = {}
    for section in NAME_MEMBERS:
        own = names_in_use.setdefault(_SPACES.get(section, section), set())
        own |= {name_of(item, section) for item in reading.objects(whole.document, section)}
    for section, objects in renamed.items():
        own = names_in_use[_SPACES.get(section, section)]
        clashing = [item for item in objects if name_of(item, section) in own]
        left_out += [f"{section}/{name_of(item, section)}" for item in clashing]
        accepted[section] = [item for item in objects if name_of(item, section) not in own]
    if left_out and not prefers_local:
        raise ImportRefused(f"Names already exist, and no policy decides between them: {', '.join(left_out[:10])}.")
    if len(reading.objects(whole.document, "tools")) + len(accepted["tools"]) > MAX_TREE:
        raise ImportRefused(f"The maps have more than {MAX_TREE} tools together.")
    for section, objects in accepted.items():
        whole.document[section] = [*reading.objects(whole.document, section), *objects]
    names = {
        name_of(item, section) for section in ("tools", "state_projections", "signals") for item in accepted[section]
    }
    if trust == "private":
        whole.private |= names
    whole.private |= {space + name for name in inner.private} & names
    if trust not in ("website", "local"):
        whole.foreign |= names
    whole.foreign |= {space + name for name in inner.foreign} & names
    whole.problems += [(f"{uri}#{place}", why) for place, why in inner.problems]
    if left_out:
        raise ImportRefused(f"The map keeps its own definitions of these names: {', '.join(left_out[:10])}.")
