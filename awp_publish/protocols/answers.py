"""What a call is answered with, as a schema: the action's outputs, or a job that has them as its result in the end."""

from awp_publish.model import Action, Catalog, JsonObject
from awp_publish.protocols.members import located
from awp_publish.protocols.schema_reading import embedded


def answer_schema(action: Action) -> JsonObject:
    """The schema of the JSON that a call through a door is answered with, and that polls of its job give."""
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


def guarded_endpoint(catalog: Catalog, action: Action) -> str | None:
    """Where an action's limits, keys, confirmations and receipts hold, if that is not its own endpoint."""
    if action.direct is None or not action.is_guarded or catalog.door("woa") is None:
        return None
    return located(catalog, catalog.invoke_path_of(action))
