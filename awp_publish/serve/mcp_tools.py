"""Actions as MCP tools: what `tools/list` says of them, prepared once, and how their answers are shaped.

Model Context Protocol, revisions 2024-11-05 to 2026-07-28. Up to 2025-11-25 a structured result is an object, so an
action that answers with anything else is listed with an `outputSchema` whose one member is `result`. From 2026-07-28 on
any JSON value will do but null, which the SDK takes for an absent result: what may be null is wrapped there too.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import orjson

from awp_publish.model import Action, Catalog, JsonObject
from awp_publish.protocols.schema_reading import answer_schema, embedded
from awp_publish.schema import DIALECT, compile_schema

RESULT: Final = "result"
"""The member that holds an answer which is no object."""

PROBLEM: Final = "awp/problem"
"""Where a result's `_meta` has the problem."""

MIRRORED: Final = b'"x-mcp-header"'
"""What marks an input that a header of the request repeats (Streamable HTTP of 2026-07-28)."""

LIST_TTL: Final = 300_000
"""Milliseconds for which a client may keep the list: tools change when the site is started anew."""

ANY_OBJECT: Final[JsonObject] = {"type": "object"}


@dataclass(frozen=True, slots=True)
class Tool:
    """One action as one generation of the protocol knows it: the entry of the list, and whether answers are wrapped."""

    action: Action
    entry: Mapping[str, object]
    is_wrapped: bool

    def shape(self, output: object) -> object:
        """An answer as structured content."""
        return {RESULT: output} if self.is_wrapped else output


@dataclass(frozen=True, slots=True)
class Tools:
    """All tools, by name, in the order of the catalog. `mirrored` are schemas with inputs that headers repeat."""

    by_name: Mapping[str, Tool]
    mirrored: Mapping[str, JsonObject]

    def mirrored_schema(self, name: str) -> JsonObject | None:
        """The schema of a tool whose arguments are compared with headers, which takes a while; None for any other."""
        return self.mirrored.get(name)

    def listed(self, is_shown: Callable[[Action], bool] | None = None) -> dict[str, object]:
        """The result of `tools/list`. What only some are shown is theirs alone."""
        scope = "public" if is_shown is None else "private"
        entries = [tool.entry for tool in self.by_name.values() if is_shown is None or is_shown(tool.action)]
        return {"tools": entries, "ttlMs": LIST_TTL, "cacheScope": scope, "resultType": "complete"}


def make_tools(catalog: Catalog, *, only_objects: bool) -> Tools:
    """The tools of a catalog. `only_objects` is for the revisions up to 2025-11-25."""
    tools = {action.id: _make_tool(action, only_objects) for action in catalog.actions}
    mirrored = {action.id: action.inputs for action in catalog.actions if MIRRORED in orjson.dumps(action.inputs)}
    return Tools(tools, mirrored)


def _make_tool(action: Action, only_objects: bool) -> Tool:
    answered = answer_schema(action)
    is_wrapped = not _is_object(answered) if only_objects else bool(answered) and _may_be_null(answered)
    entry: dict[str, object] = {
        "name": action.id,
        "title": action.name,
        "description": action.description,
        "inputSchema": {**ANY_OBJECT, **action.inputs},
        "annotations": _annotations(action),
    }
    if answered:
        entry["outputSchema"] = _wrapped(action, answered) if is_wrapped else answered
    return Tool(action, entry, is_wrapped)


def _is_object(schema: JsonObject) -> bool:
    return schema.get("type") == "object"


def _may_be_null(schema: JsonObject) -> bool:
    return not compile_schema(schema)(None)


def _wrapped(action: Action, schema: JsonObject) -> JsonObject:
    result, definitions = embedded(schema, f"{action.id}_result")
    wrapped: dict[str, object] = {"type": "object", "properties": {RESULT: result}, "required": [RESULT]}
    dialect = {"$schema": schema["$schema"]} if schema.get("$schema", DIALECT) != DIALECT else {}
    return dialect | wrapped | ({"$defs": definitions} if definitions else {})


def _annotations(action: Action) -> dict[str, object]:
    """All of them, always: what is left out counts as destructive and open to the world."""
    return {
        "title": action.name,
        "readOnlyHint": action.intent == "read",
        "destructiveHint": action.side_effect == "destructive",
        "idempotentHint": action.repeatable,
        "openWorldHint": False,
    }


# --- Results ---


def tell_answer(tool: Tool, body: bytes, output: object, meta: Mapping[str, object]) -> dict[str, object]:
    """The result of a call that succeeded: structured, and the same JSON as text (specification, Server/Tools)."""
    shaped = tool.shape(output)
    text = orjson.dumps(shaped).decode() if tool.is_wrapped else body.decode()
    told = _tell(text, meta, is_error=False)
    if isinstance(shaped, dict) or "outputSchema" in tool.entry:
        told["structuredContent"] = shaped
    return told


def tell_problem(body: bytes, meta: Mapping[str, object]) -> dict[str, object]:
    """The result of a call that was refused or failed: the problem as text for the model, in `_meta` for programs.

    It is no structured content: some clients hold that to the tool's outputSchema in any case.
    """
    return _tell(body.decode(), {**meta, PROBLEM: orjson.loads(body)}, is_error=True)


def _tell(text: str, meta: Mapping[str, object], *, is_error: bool) -> dict[str, object]:
    return {
        "content": [{"type": "text", "text": text}],
        "isError": is_error,
        "_meta": meta,
    }
