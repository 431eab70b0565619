"""Actions whose descriptions are judged, of a catalog or of any manifest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from awp_publish.checks.engine import JsonObject
from awp_publish.documents.members import SITE_ACTION
from awp_publish.model import Catalog


@dataclass(frozen=True, slots=True)
class JudgedAction:
    """An action as a model sees it."""

    id: str
    description: str
    inputs: JsonObject
    has_examples: bool
    pointer: str = ""


def tools_of(catalog: Catalog) -> list[JudgedAction]:
    """Return the actions of a catalog, except the one that we add ourselves."""
    declared = (one for one in catalog.actions if one.id != SITE_ACTION)
    return [JudgedAction(one.id, one.description, one.inputs, bool(one.examples)) for one in declared]


def tools_in(document: JsonObject | None) -> list[JudgedAction]:
    """Return the actions in any manifest: WoA, AWAS, agent.json, or an answer to MCP's `tools/list`."""
    if document is None:
        return []
    result = document.get("result")
    for holder, place in ((document, ""), (result, "/result")):
        if not isinstance(holder, Mapping):
            continue
        for member in ("agents", "actions", "tools"):
            listed = holder.get(member)
            if isinstance(listed, list) and listed:
                return [one for one in _read(listed, f"{place}/{member}") if one.id != SITE_ACTION]
    return []


def _read(listed: Iterable[object], place: str) -> Iterator[JudgedAction]:
    for number, one in enumerate(listed):
        if not isinstance(one, Mapping):
            continue
        schemas = [one.get(name) for name in ("inputSchema", "input_schema", "inputs")]
        schema = next((found for found in schemas if isinstance(found, Mapping)), {})
        if schema and not isinstance(schema.get("properties"), Mapping):  # agent.json: name by name
            schema = {"properties": schema} if all(isinstance(value, Mapping) for value in schema.values()) else {}
        listed_parts = one.get("parameters")
        parts = [part for part in listed_parts if isinstance(part, Mapping)] if isinstance(listed_parts, list) else []
        of_parts = any("example" in part for part in parts)
        if parts and not isinstance(schema.get("properties"), Mapping):  # AWAS: the schema may stand elsewhere
            schema = {"properties": {str(part.get("name")): part for part in parts}}
        described = isinstance(schema.get("examples"), list) or bool(one.get("examples"))
        name = str(one.get("id") or one.get("name") or "")
        yield JudgedAction(name, str(one.get("description") or ""), schema, described or of_parts, f"{place}/{number}")
