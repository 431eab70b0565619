"""`site.page(map={...})`: what belongs to a page of the site's actions.json, in the specification's own words.

One member is ours: `targets`, target descriptors by name. Their names stand for them wherever V1 has a target, and some
names make a workflow of an action (`plugins.actions_json.tools`). A descriptor that is only a CSS selector may be
written as this text there, and nowhere else, so that a misspelt name is not taken for an element.

Names are local to the page. Each part is completed by what has one value only or follows from the page: versions and
languages, the braces of expressions, the method of a transition and, once it is published, the page's address.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any, Final

from awp_publish.checks.engine import ERROR, in_order, shown
from awp_publish.checks.places import select, strings
from awp_publish.maps import reading, rules
from awp_publish.maps.namespaces import NAME_MEMBERS, NOUNS
from awp_publish.maps.primitives import PRIMITIVES
from awp_publish.model import Catalog, JsonObject
from awp_publish.plugins.actions_json.checks import ACTIONS_JSON
from awp_publish.plugins.actions_json.checks.places import SCHEMAS, TARGETS
from awp_publish.plugins.actions_json.checks.references import references
from awp_publish.plugins.actions_json.checks.specification import document_schema
from awp_publish.plugins.actions_json.page_map import OWN_PARTS, imports_of, map_of, names_of
from awp_publish.plugins.actions_json.targets import slot
from awp_publish.problems import DeclarationError, did_you_mean, end_sentence
from awp_publish.schema import UnusableSchema, inline_definitions, write_schema
from awp_publish.schema.options import listing, plain_json
from awp_publish.schema.pointers import child, part_at

_PARTS: Final = ("targets", "imports", *OWN_PARTS)
_ELSEWHERE: Final[Mapping[str, str]] = {
    "tools": "a tool is an action: declare it with site.action",
    "surface": "it follows from the site's name and url",
    "provenance": "give it to the site: About(provenance=...)",
    "prompt": "declare it with site.prompt",
}


_MEANT: Final = {"css": "selector", "attr": "attribute", "prop": "property", "where": "target"}
"""Words of other tools, and those of V1."""


def _pattern(places: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(place.replace("[]", r"\d+") for place in places))


_AT_TARGETS: Final = _pattern(TARGETS)
_AT_SCHEMAS: Final = _pattern(SCHEMAS)


def read_map(value: object) -> JsonObject:
    """Read and check a page's map. Raises ValueError for a mistake, with the JSON Pointer to it."""
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a dictionary with the page's parts of actions.json: {', '.join(_PARTS)}")
    for name in map(str, value):
        if name not in _PARTS:
            reason = _ELSEWHERE.get(name) or _lost("part of a page", name, _PARTS)
            raise ValueError(f"{child('', name)}: {reason}")
    targets = _read_targets(value.get("targets", {}))
    document = {"targets": targets}
    for name, part in value.items():
        if name != "targets":
            document[name] = _plain(part, f"/{name}", targets)
    _complete(document)
    _refuse_mistakes(document)
    local = names_of(document)
    of_targets = [(pointer, name, "states") for pointer, name in strings(document, "/targets/{}/state")]
    for pointer, name, section in (*of_targets, *references(document)):
        # Tools are actions, which may be declared later, and a name with a dot may be another page's.
        if section != "tools" and name not in local[section] and "." not in name:
            raise ValueError(f"{pointer}: {_lost(section, name, local[section])}")
    return document


def _read_targets(value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("/targets: must be a dictionary of target descriptors by name")
    written: object = {
        name: {"selector": target} if isinstance(target, str) else target for name, target in value.items()
    }
    targets: dict[str, Any] = _plain(written, "/targets", {})
    for name, target in targets.items():
        if not rules.is_identifier(name):
            raise ValueError(f"{child('/targets', name)}: {shown(name)} is not a safe identifier")
        if not isinstance(target, dict) or not target:
            raise ValueError(f"{child('/targets', name)}: must be a CSS selector or a target descriptor")
    return targets


def _plain(value: object, pointer: str, targets: Mapping[str, Any]) -> Any:
    """Return a copy of a part in JSON, with targets in place of their names, and JSON Schemas in place of types."""
    if isinstance(value, str) and _AT_TARGETS.fullmatch(pointer):
        if value in targets:
            return dict(targets[value])
        if not pointer.startswith("/context/"):  # maps have selectors in `load_when.targets`
            raise ValueError(f"{pointer}: {_lost('target', value, targets)}")
    if _AT_SCHEMAS.fullmatch(pointer) and value is not None and not isinstance(value, (str, int, float, list)):
        return _schema(value, pointer)
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: _plain(member, child(pointer, name), targets) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{pointer}/{index}", targets) for index, item in enumerate(value)]
    try:
        return plain_json(value)
    except ValueError as error:
        raise ValueError(f"{pointer}: {error}") from error


def _schema(declared: object, pointer: str) -> JsonObject:
    """Return the JSON Schema at a pointer: itself, or that of a type. The payload of an event is an object."""
    is_payload, schema = pointer.endswith("/payload"), declared
    if not isinstance(declared, Mapping):
        try:
            schema = inline_definitions(write_schema(declared, "serialization"))
        except UnusableSchema as error:
            raise ValueError(f"{pointer}: {error}") from error
        if is_payload:  # members that the type does not declare are not passed on to agents
            schema = {**schema, "additionalProperties": False}
    plain: JsonObject = plain_json(schema)  # type: ignore[assignment]
    if is_payload and plain.get("type", "object") != "object":
        raise ValueError(f"{pointer}: the detail of an event must be an object; give a model")
    return plain


def _complete(document: dict[str, Any]) -> None:
    """Add what has one value only, and what follows from other parts of a page's map."""
    states = {str(state.get("name")): state for state in _objects(document, "states")}
    for entry in _objects(document, "imports"):
        entry.setdefault("namespace", entry.get("id"))
    for transition in _objects(document, "transitions"):
        tool, end = transition.get("tool"), transition.get("to")
        method = "tool_call" if tool else "signal" if transition.get("signal") else "navigation"
        transition.setdefault("method", method)
        if isinstance(end, str):
            shows = reading.texts(states.get(end, {}), "observables")
            if shows:
                transition.setdefault("reveals", shows)
            if tool:
                transition.setdefault("convergence", {"complete_when": end, "max_attempts": 1})
    for signal in _objects(document, "signals"):
        signal.setdefault("direction", "html_to_agent")
        signal.setdefault("ingestion", "enabled")
    for attachment in _objects(document, "attachments"):
        lifecycle = {"install": "when_target_matches", "remove": "when_context_mismatch"}
        attachment.setdefault("lifecycle", {**lifecycle, "reattach": "on_url_or_dom_change"})
    for projection in _objects(document, "state_projections"):
        snapshot = projection.get("snapshot")
        if isinstance(snapshot, dict):
            projection["snapshot"] = snapshot = {"version": 1, "source": "dom", **snapshot}
            if isinstance(snapshot.get("projection"), dict):
                snapshot["projection"] = {"language": "jsonata", **snapshot["projection"]}
        for condition in reading.part(projection, "postconditions").values():
            if isinstance(condition, dict) and isinstance(condition.get("verify"), dict):
                condition["verify"] = {"language": "jsonata", **condition["verify"]}
                condition.setdefault("projection", projection.get("name"))
    for place in ("snapshot/projection", "summaries/[]", "postconditions/{}/verify"):
        for _, owner in select(document, f"/state_projections/[]/{place}"):
            text = owner.get("expression") if isinstance(owner, dict) else None
            if isinstance(text, str) and "{%" not in text and "%}" not in text:
                owner["expression"] = slot(text)  # type: ignore[index]


def _objects(document: JsonObject, section: str) -> list[dict[str, Any]]:
    return reading.objects(document, section)  # type: ignore[return-value]


def _refuse_mistakes(document: Mapping[str, Any]) -> None:
    """Raise ValueError for the first mistake that a map with these parts would have."""
    if wrong := next(_misspelt(document, _schema_of_maps(), ""), None):
        raise ValueError(wrong)
    targets, states = document["targets"], document.get("states", [])
    diagnostics = [{"name": f"t{number}", "target": target} for number, target in enumerate(targets.values())]
    inside = f"/states/{len(states)}/diagnostics/" if isinstance(states, list) else ""
    if isinstance(states, list):  # targets are checked as those of one more state
        states = [*states, {"name": "targets.of.this.page", "diagnostics": diagnostics}]
    whole = {"protocol": rules.PROTOCOL, "version": rules.VERSION, "tools": [], **document, "states": states}
    errors = [finding for finding in ACTIONS_JSON.judge(whole) if finding.level == ERROR]
    for finding in in_order(errors, whole, ""):
        pointer, is_reference = finding.pointer, finding.check in ("actions-transition", "actions-check-reference")
        if is_reference and isinstance(part_at(whole, pointer), str):
            continue  # a page cannot know the names of others; its own are looked for afterwards
        if inside and pointer.startswith(inside):
            number, _, rest = pointer.removeprefix(inside).partition("/target")
            pointer = child("/targets", list(targets)[int(number)]) + rest
        raise ValueError(f"{pointer}: {finding.message} {finding.hint}".removesuffix("."))


@cache
def _schema_of_maps() -> Mapping[str, Any]:
    properties: Mapping[str, Any] = document_schema()["properties"]  # type: ignore[assignment]
    target = properties["signals"]["items"]["properties"]["target"]
    return {"properties": {**properties, "targets": {"additionalProperties": target}}}


def _misspelt(value: object, schema: Mapping[str, Any], pointer: str) -> Iterator[str]:
    """Yield members that nearly have the name of one of V1. Others are allowed: V1 closes only workflows."""
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        for name, member in value.items():
            inner = properties.get(name, schema.get("additionalProperties"))
            if inner is not None:
                yield from _misspelt(member, inner, child(pointer, name))
            elif properties and (
                near := get_close_matches(_MEANT.get(name, name), properties.keys() - value.keys(), 1, 0.8)
            ):
                yield f'{child(pointer, name)}: there is no such member; did you mean "{near[0]}"?'
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _misspelt(item, schema.get("items", {}), f"{pointer}/{index}")


def _lost(section: str, name: str, names: Iterable[str]) -> str:
    advice = did_you_mean(name, names) or f"There are {listing(names)}"
    return f"there is no {NOUNS.get(section, section)} {shown(name)}. {advice}"


def check_references(catalog: Catalog) -> None:
    """Refuse names in the maps of pages that no page, action or import has. Raises DeclarationError."""
    pages = [page for page in catalog.pages if map_of(page)]
    by_section: dict[str, set[str]] = {section: set() for section in NAME_MEMBERS}
    by_section["tools"] |= PRIMITIVES.keys() | {action.id for action in catalog.actions}
    spaces = tuple(f"{entry['namespace']}." for entry in imports_of(catalog))
    for page in pages:
        for section, names in names_of(map_of(page)).items():
            by_section[section] |= {f"{page.id}.{name}" for name in names}
    for page in pages:
        local = names_of(map_of(page))
        for pointer, name, section in references(map_of(page)):
            if name not in local[section] and name not in by_section[section] and not name.startswith(spaces):
                wrong = _lost(section, name, local[section] | by_section[section])
                raise DeclarationError(f'page "{page.path}"', end_sentence(f"map: {pointer}: {wrong}"))
