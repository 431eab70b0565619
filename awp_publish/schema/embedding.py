"""Schemas to nest in other ones."""

from awp_publish.model import Action, JsonObject
from awp_publish.schema.reading import references


def embedded(schema: JsonObject, identifier: str) -> tuple[JsonObject, object]:
    """Return a schema to nest in another one, and the `$defs` to put at the outer root, where its references point.

    A schema with other references into itself ("#") becomes a resource of its own (JSON Schema core 2020-12, 8.2.1).
    """
    if "$id" in schema:
        return dict(schema), None
    inside = [reference for reference in references(schema) if reference == "#" or reference.startswith("#/")]
    if not all(reference.startswith("#/$defs/") for reference in inside):
        return {"$id": identifier, **schema}, None
    nested = dict(schema)
    nested.pop("$schema", None)
    return nested, nested.pop("$defs", None)


def answer_schema(action: Action) -> JsonObject:
    """Return the schema of the JSON with which a door answers a call, and polls of its job are answered."""
    if not action.is_background:
        return action.outputs
    result, definitions = embedded(action.outputs, f"{action.id}_output")
    schema: dict[str, object] = {
        "type": "object",
        "properties": {
            "job_id": {"type": "string"},
            "status": {"enum": ["accepted", "running", "done", "failed", "cancelled"]},
            "poll_endpoint": {"type": "string", "format": "uri", "description": "GET it until status is done."},
            "result": result,
        },
        "required": ["job_id", "status", "poll_endpoint"],
    }
    return schema | ({"$defs": definitions} if definitions else {})
