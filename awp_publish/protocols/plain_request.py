"""The request that a plain HTTP client, which has read one manifest and nothing else, sends for an action.

For an action with a route that is one field for each input of the route. A field is named as it is named on the wire,
because `name` is what such a client sends; `x-input` tells the name that the agent doors take where it differs. Two
inputs that share a wire name (a path's `id` and a body's) would be told apart by nobody, so there the input's own name
is published and `x-name` tells the wire's. `x-in` says where a field goes wherever a reader would assume otherwise.

For an action without a route the truth is the WoA envelope (draft-gaikwad-woa-00, section 5.1): `agent` where the URL
does not name it, `operation` where it is not the default, and `input`.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from awp_publish.model import DEFAULT_OPERATION, Action, Catalog, JsonObject, Target
from awp_publish.protocols.members import present
from awp_publish.protocols.schema_reading import NOTHING, embedded, members, object_facts, required_members, resolved

QUERY_METHODS: Final = frozenset({"GET", "HEAD", "DELETE"})
IDEMPOTENCY_HEADER: Final = "Idempotency-Key"
OBJECT_KEYWORDS: Final = ("description", "properties", "required", "additionalProperties")


class Field(NamedTuple):
    """One thing to send. `schema` is as declared (read it with `resolved`), `marks` are its `x-` members.

    `input_name` is the action's own name for it, "" for a member of the envelope. `description` stands in where the
    schema has none.
    """

    name: str
    schema: object
    required: bool
    examples: tuple[object, ...] = ()
    input_name: str = ""
    marks: JsonObject = NOTHING
    description: str = ""


def listed_actions(catalog: Catalog) -> tuple[Action, ...]:
    """The actions that HTTP alone can reach: those with a route, and all of them while the WoA door is open."""
    if catalog.door("woa") is not None:
        return catalog.actions
    return tuple(action for action in catalog.actions if action.direct is not None)


def request_fields(catalog: Catalog, action: Action) -> list[Field]:
    """The fields to send to `catalog.endpoint_of(action)`, in order."""
    if action.direct is None:
        envelope = []
        if "{agent_id}" not in catalog.paths.invoke:
            envelope.append(Field("agent", _only(action.agent_id, "The agent to invoke."), True))
        if action.operation != DEFAULT_OPERATION:
            envelope.append(Field("operation", _only(action.operation, "The operation of the agent."), True))
        whole = "The input of the action."
        return [*envelope, Field("input", action.inputs, True, action.examples, description=whole)]
    facts = object_facts(action.inputs, action.inputs)
    schemas, required, names = members(facts), required_members(facts), published_names(action.direct)
    # A reader assumes the query for methods without a body, and else a member of the body.
    assumed = ("query",) if action.direct.method in QUERY_METHODS else ("json", "form")
    fields = []
    for parameter in action.direct.parameters:
        own, wire, name = parameter.name, parameter.wire_name, names[parameter.name]
        marks = NOTHING
        if parameter.location not in assumed or wire != own:
            marks = present(
                {
                    "x-in": None if parameter.location in assumed else parameter.location,
                    "x-name": wire if wire != name else None,
                    "x-input": own if own != name else None,
                    "x-spans-segments": parameter.spans_segments or None,
                }
            )
        is_required = own in required or parameter.location == "path"
        examples = tuple(given[own] for given in action.examples if given.get(own) is not None)
        fields.append(Field(name, schemas.get(own, NOTHING), is_required, examples, own, marks))
    return fields


def request_schema(action: Action, fields: list[Field]) -> dict[str, object]:
    """The JSON Schema of all that is sent, keyed as the fields are named."""
    if action.direct is None:
        nested, definitions = embedded(action.inputs, f"{action.id}_input")
        properties = {field.name: field.schema for field in fields} | {"input": nested}
        required = [field.name for field in fields]
        return present({"type": "object", "properties": properties, "required": required, "$defs": definitions})
    if all(field.name == field.input_name for field in fields):
        return dict(action.inputs)
    facts = resolved(action.inputs, action.inputs)
    renamed = {
        "properties": {field.name: field.schema for field in fields},
        "required": [field.name for field in fields if field.required] or None,
        "$defs": action.inputs.get("$defs"),
    }
    return present({"type": "object"} | {key: facts.get(key) for key in OBJECT_KEYWORDS} | renamed)


def published_names(target: Target) -> Mapping[str, str]:
    """Input name to the name in the manifests: the wire's, unless another input bears it or has taken it."""
    names: dict[str, str] = {}
    own_names = {parameter.name for parameter in target.parameters}
    taken: set[str] = set()
    for parameter in target.parameters:
        is_free = parameter.wire_name not in own_names and parameter.wire_name not in taken
        names[parameter.name] = parameter.wire_name if is_free else parameter.name
        taken.add(names[parameter.name])
    return names


def _only(value: str, description: str) -> JsonObject:
    return {"type": "string", "enum": [value], "description": description}
