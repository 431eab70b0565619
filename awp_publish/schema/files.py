"""Files in inputs: base64, or an object with the file's name, media type and content."""

from collections.abc import Iterator, Mapping
from typing import Final

from awp_publish.model import JsonObject
from awp_publish.schema.reading import branches, encoding_of, members, object_facts, resolved

MEDIA_TYPE: Final = r"[A-Za-z0-9!#$&^_.+\-]+/[A-Za-z0-9!#$&^_.+\-]+(?:; ?[A-Za-z0-9_\-]+=[A-Za-z0-9_.+\-]+)*"
"""A media type with its parameters, such as `text/csv; charset=utf-8`."""

MAX_MEDIA_TYPE: Final = 200


def with_name(content: Mapping[str, object]) -> dict[str, object]:
    """Return the schema of a file whose content has this schema: the content alone, or an object with name and type."""
    facts = {key: value for key, value in content.items() if key != "type"}
    name = {"type": "string", "minLength": 1, "description": "With its extension: cover.png."}
    kind = {"type": "string", "maxLength": MAX_MEDIA_TYPE, "pattern": f"^{MEDIA_TYPE}$", "description": "image/png"}
    named = {
        "type": "object",
        "properties": {
            "filename": name,
            "content_type": kind,
            "content": {"type": "string", "contentEncoding": "base64"},
        },
        "required": ["filename", "content"],
        "additionalProperties": False,
    }
    return {**facts, "contentEncoding": "base64", "anyOf": [{"type": "string"}, named]}


def with_named_files(inputs: JsonObject) -> JsonObject:
    """Return the schema of a form in which files may have names.

    A file is declared as a string that is base64, or `format: binary`, as OpenAPI 3.0 writes it; or as a list of these.
    """
    properties = inputs.get("properties")
    if not isinstance(properties, Mapping):
        return inputs
    return {**inputs, "properties": {name: _with_named_file(schema) for name, schema in properties.items()}}


def _with_named_file(schema: object) -> object:
    if not isinstance(schema, Mapping):
        return schema
    if schema.get("type") == "array" and "items" in schema:
        return {**schema, "items": _with_named_file(schema["items"])}
    is_file = schema.get("contentEncoding") == "base64" or schema.get("format") == "binary"
    if schema.get("type") != "string" or not is_file:
        return schema
    return with_name({key: value for key, value in schema.items() if key != "format"})


def file_inputs(inputs: Mapping[str, object]) -> Iterator[tuple[str, bool, bool]]:
    """Yield the inputs of an action that take files: name, whether it is a list, and whether a file may have a name."""
    for name, schema in members(object_facts(inputs, inputs)).items():
        facts = resolved(schema, inputs)
        is_list = facts.get("type") == "array"
        file = resolved(facts.get("items"), inputs) if is_list else facts
        if encoding_of(file) == "base64":
            yield (
                name,
                is_list,
                any(isinstance(branch, Mapping) and branch.get("type") == "object" for branch in branches(file)),
            )
