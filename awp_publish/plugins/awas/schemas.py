"""The schemas of an AWAS manifest, each once in a document of their own, and the schema of the manifest itself."""

from importlib.resources import files
from typing import Final

import orjson

from awp_publish.documents.members import SCHEMAS, present, schemas_address
from awp_publish.documents.plain_request import Field
from awp_publish.documents.protocol import Document, Protocol, to_json
from awp_publish.model import Action, Catalog, JsonObject
from awp_publish.schema.embedding import answer_schema
from awp_publish.schema.reading import DIALECT, references, resolved

NAME: Final = "awas"

SCHEMA_PATH: Final = "/schema/awas-schema.json"

MEDIA_TYPE: Final = "application/json; charset=utf-8"

MAX_AGE: Final = 3600

OBJECT_KEYWORDS: Final = ("description", "properties", "required", "additionalProperties")

SCHEMAS_TYPE: Final = "application/schema+json"


def has_schemas(catalog: Catalog) -> bool:
    """Return True if the manifest may refer to schemas."""
    return catalog.publishes(NAME) and bool(catalog.actions)


def render_schemas(catalog: Catalog) -> dict[str, object]:
    """Return the schemas of all actions' inputs and answers.

    One with references into itself is a schema resource of its own (JSON Schema core 2020-12, section 8.2.1).
    """
    definitions = dict[str, object]()
    for name, schema in schemas_by_name(catalog).items():
        is_resource = b'"$ref"' in orjson.dumps(schema) and any(references(schema)) and "$id" not in schema
        definitions[name] = {"$id": f"{SCHEMAS[1:]}?{name}", **schema} if is_resource else schema
    return {"$schema": DIALECT, "$id": catalog.absolute(schemas_address(catalog)), "$defs": definitions}


def schemas_by_name(catalog: Catalog) -> dict[str, JsonObject]:
    both = ((action, {"in": action.inputs, "out": answer_schema(action)}) for action in catalog.actions)
    return {f"{action.id}.{member}": schema for action, schemas in both for member, schema in schemas.items() if schema}


def render_schema(catalog: Catalog) -> dict[str, object]:
    """Return the JSON Schema that the manifest's `$schema` names, with its own address as `$id`."""
    schema: dict[str, object] = orjson.loads(
        files("awp_publish.plugins.awas").joinpath("awas.schema.json").read_bytes()
    )
    dialect = schema.pop("$schema")
    schema.pop("$id", None)
    return {"$schema": dialect, "$id": catalog.absolute(SCHEMA_PATH), **schema}


def request_schema(catalog: Catalog, action: Action, fields: list[Field]) -> dict[str, object]:
    """Return the JSON Schema of the whole request, with the names of the fields."""
    if catalog.own_route(action) is None or all(field.name == field.input_name for field in fields):
        return dict(action.inputs)
    facts = resolved(action.inputs, action.inputs)
    renamed = {
        "properties": {field.name: field.schema for field in fields},
        "required": [field.name for field in fields if field.required] or None,
        "$defs": action.inputs.get("$defs"),
    }
    return present({"type": "object"} | {key: facts.get(key) for key in OBJECT_KEYWORDS} | renamed)


SCHEMAS_PROTOCOL = Protocol(
    "schemas",
    documents=(
        Document(
            "/agents" + SCHEMAS,
            SCHEMAS_TYPE,
            to_json(render_schemas),
            max_age=MAX_AGE,
            condition=has_schemas,
            moved=schemas_address,
            door="plain",
        ),
    ),
)
