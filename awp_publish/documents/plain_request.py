"""The request that a plain HTTP client, which has read one manifest and nothing else, sends for an action.

At the plain door (`Catalog.plain_path_of`) each input is one field with the name that every door uses: in the query for
methods without a body, otherwise a member of the body. At an action's own route (`Catalog.own_route`) it is the same,
but for the placeholders of the path, which are marked with `x-in`, and for names: a field has its name on the wire,
because that is what such a client sends as `name`; `x-input` is the input's name at agent doors if it differs.
"""

import json
from typing import Final, NamedTuple

from awp_publish.documents.members import present
from awp_publish.model import Action, Catalog, JsonObject
from awp_publish.schema.reading import NOTHING, members, object_facts, required_members

IDEMPOTENCY_HEADER: Final = "Idempotency-Key"


def query_fields(inputs: JsonObject) -> list[tuple[str, str]]:
    """Return an input as the fields of a query: lists are repeated, objects are JSON."""
    return [
        (name, item if isinstance(item, str) else json.dumps(item, ensure_ascii=False))
        for name, value in inputs.items()
        for item in (value if isinstance(value, list) else [value])
    ]


class Field(NamedTuple):
    """One field of the request. `schema` is as declared (see `resolved`), `marks` are its `x-` members.

    `input_name` is the action's name for it.
    """

    name: str
    schema: object
    required: bool
    examples: tuple[object, ...] = ()
    input_name: str = ""
    marks: JsonObject = NOTHING


def request_fields(catalog: Catalog, action: Action) -> list[Field]:
    """Return the fields to send to `catalog.endpoint_of(action)`, in order."""
    facts = object_facts(action.inputs, action.inputs)
    schemas, required = members(facts), required_members(facts)
    examples: dict[str, tuple[object, ...]] = {}
    for name in schemas if action.examples else ():
        examples[name] = tuple(example[name] for example in action.examples if example.get(name) is not None)
    route = catalog.own_route(action)
    if route is None:
        return [Field(name, schema, name in required, examples.get(name, ()), name) for name, schema in schemas.items()]
    fields = dict[str, Field]()
    for parameter in route.parameters:
        own, name = parameter.name, parameter.wire_name
        marks = present(
            {
                "x-in": "path" if parameter.location == "path" else None,
                "x-input": own if own != name else None,
                "x-spans-segments": parameter.spans_segments or None,
            }
        )
        is_required = own in required or parameter.location == "path"
        # Names are unique in AWAS: of inputs that an observed route takes in several places, the first is published.
        fields.setdefault(name, Field(name, schemas.get(own, NOTHING), is_required, examples.get(own, ()), own, marks))
    return list(fields.values())
