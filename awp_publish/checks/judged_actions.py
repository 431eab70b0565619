"""Actions whose descriptions are judged, of a catalog or of any manifest."""

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
    declared = (action for action in catalog.actions if action.id != SITE_ACTION)
    return [JudgedAction(action.id, action.description, action.inputs, bool(action.examples)) for action in declared]


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
                return [action for action in _read(listed, f"{place}/{member}") if action.id != SITE_ACTION]
    return []


def _read(listed: Iterable[object], place: str) -> Iterator[JudgedAction]:
    for number, tool in enumerate(listed):
        if not isinstance(tool, Mapping):
            continue
        schemas = [tool.get(name) for name in ("inputSchema", "input_schema", "inputs")]
        schema = next((candidate for candidate in schemas if isinstance(candidate, Mapping)), {})
        if schema and not isinstance(schema.get("properties"), Mapping):  # agent.json: name by name
            schema = {"properties": schema} if all(isinstance(value, Mapping) for value in schema.values()) else {}
        listed_parts = tool.get("parameters")
        parts = [part for part in listed_parts if isinstance(part, Mapping)] if isinstance(listed_parts, list) else []
        of_parts = any("example" in part for part in parts)
        if parts and not isinstance(schema.get("properties"), Mapping):  # AWAS: the schema may stand elsewhere
            schema = {"properties": {str(part.get("name")): part for part in parts}}
        described = isinstance(schema.get("examples"), list) or bool(tool.get("examples"))
        name = str(tool.get("id") or tool.get("name") or "")
        yield JudgedAction(name, str(tool.get("description") or ""), schema, described or of_parts, f"{place}/{number}")
