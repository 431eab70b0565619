"""WoA, the Web of Agents: draft-gaikwad-woa-00 (1 December 2025), document version "1".

Operations are always listed, so that a client sees all of them. If an agent has no operation "default", its own
`inputs` and `outputs` are open objects and every operation overrides them (section 4.1). A transport is listed while
its door is open: "rest" for the WoA door, "mcp" for agents whose `agent` field is the name of a tool. Private
transports (section 4.3.3) come from the site's `extensions["woa"]["transports"]`; null there removes one. An agent's
metadata may describe its operations for this document only, as in appendix B: `{"operations": {"default": "Default
summarization operation."}}`. Authorization metadata (section 6) is specific to the deployment: that of a site or an
agent is passed through, and without any, `authz` says how callers authenticate.
"""

from collections.abc import Mapping
from typing import Final

import orjson

from awp_publish.documents.members import (
    WOA_PATH,
    WOA_TYPE,
    are_schemas_published,
    completed,
    credentials_of,
    extension_members,
    present,
    schemas_address,
    schemes_of_routes,
)
from awp_publish.documents.protocol import Document, Protocol, to_json
from awp_publish.model import DEFAULT_OPERATION, Action, Agent, Catalog, JsonObject
from awp_publish.schema.embedding import answer_schema
from awp_publish.schema.reading import DIALECT

NAME: Final = "woa"
PATH: Final = WOA_PATH
MEDIA_TYPE: Final = WOA_TYPE
VERSION: Final = "1"
MAX_AGE: Final = 300
"""Seconds: the example of appendix B."""

OPEN_OBJECT: Final[JsonObject] = {"type": "object", "properties": {}}
"""The minimum that section 4.2 requires of a schema."""

MIN_REFERRED: Final = 240
"""Bytes of an answer's schema from which on a reference to it is much shorter."""

MCP_TOOL_FIELD: Final = "agent"


def render(catalog: Catalog) -> dict[str, object]:
    """Return the WoA document (section 4)."""
    actions = {action.id: action for action in catalog.actions}
    transports: dict[str, object] = {}
    if catalog.door("woa"):
        # Clients concatenate base and invoke_path: a site below a path has that path in the base only.
        transports["rest"] = {"base": catalog.url, "invoke_path": catalog.paths.invoke}
    if door := catalog.door("mcp"):
        transports["mcp"] = {
            "server": catalog.absolute(door.path),
            "tool_namespace": catalog.domain,
            "tool_field": MCP_TOOL_FIELD,
        }
    own = catalog.site.extensions.get(NAME)
    added = dict(own) if isinstance(own, Mapping) else {}
    if isinstance(private := added.pop("transports", None), Mapping):
        merged = {**transports, **{name: value for name, value in private.items() if name not in transports}}
        transports = {name: value for name, value in merged.items() if private.get(name, value) is not None}
    ways, schemes = credentials_of(catalog), schemes_of_routes(catalog)
    # An answer that several actions give is described once; the others refer to the document that has all schemas.
    schemas = dict[bytes, str]()
    if are_schemas_published(catalog):
        for action in reversed(catalog.actions):
            if catalog.offers("plain", action):
                schemas[orjson.dumps(answer_schema(action))] = action.id
    document: dict[str, object] = {
        "woa_version": VERSION,
        "agents": [_agent(catalog, agent, actions, transports, schemas) for agent in catalog.agents],
        "transports": transports,
    }
    if ways and "authz" not in added:
        document["authz"] = present({"credentials": ways, "securitySchemes": schemes or None})
    return completed(document | extension_members(catalog.site.extensions), added)


def _agent(
    catalog: Catalog,
    agent: Agent,
    actions: Mapping[str, Action],
    transports: Mapping[str, object],
    schemas: Mapping[bytes, str],
) -> dict[str, object]:
    """Return an agent (section 4.1), in the order of appendix B.

    An operation has only schemas that differ from the agent's.
    """
    default = actions[agent.operations[DEFAULT_OPERATION]] if DEFAULT_OPERATION in agent.operations else None
    inputs = default.inputs if default else OPEN_OBJECT
    outputs = answer_schema(default) if default else OPEN_OBJECT
    published_outputs = _schema(outputs)
    written = orjson.dumps(outputs)
    if default and schemas.get(written, default.id) != default.id and len(written) > MIN_REFERRED:
        address = catalog.absolute(schemas_address(catalog))
        published_outputs = _schema({"type": "object", "$ref": f"{address}#/$defs/{schemas[written]}.out"})
    operations, worded = [], agent.extensions.get("operations")
    words = worded if isinstance(worded, Mapping) else {}
    for name, action_id in agent.operations.items():
        action, answer = actions[action_id], answer_schema(actions[action_id])
        operation = {
            "name": name,
            "description": words.get(name, action.description),
            "inputs": _schema(action.inputs) if action.inputs != inputs else None,
            "outputs": _schema(answer) if answer != outputs else None,
        }
        operations.append(present(operation))
    is_tool = set(agent.operations.values()) == {agent.id} and actions[agent.id].is_exposed_at("mcp")
    reachable = [name for name in transports if name != "mcp" or is_tool]
    if isinstance(chosen := agent.extensions.get("transports"), list):
        reachable = [name for name in chosen if name in transports]
    described = present(
        {
            "id": agent.id,
            "name": agent.name,
            "description": agent.description,
            "version": agent.version,
            "capabilities": agent.capabilities or None,
            "inputs": _schema(inputs),
            "outputs": published_outputs,
            "transports": reachable,
            "operations": operations,
        }
    )
    return completed(described, agent.extensions)


def _schema(schema: JsonObject) -> dict[str, object]:
    return {"$schema": DIALECT, **schema}


PROTOCOL = Protocol(
    NAME,
    documents=(Document(PATH, MEDIA_TYPE, to_json(render), "service-desc", "WoA agents", MAX_AGE, door=NAME),),
)
