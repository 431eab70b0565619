"""What operations of OpenAPI documents become: `transcripts/openapi.txt`. --golden writes it anew; read the change."""

from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any

from awp_publish_openapi.components import Components
from awp_publish_openapi.operations import read_operation

from awp_publish.declare.discover.routes import Operation
from tests.function_transcripts import compare

COMPONENTS: Any = {
    "parameters": {"Page": {"name": "page", "in": "query", "schema": {"type": "integer", "title": "Page"}}},
    "requestBodies": {
        "Book": {"required": True, "content": {"application/json": {"schema": {"$ref": "#/$defs/Book"}}}}
    },
    "responses": {
        "Book": {
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Book"}}},
            "headers": {"etag": {}},
        }
    },
    "schemas": {
        "Book": {
            "title": "Book",
            "type": "object",
            "properties": {
                "title": {"title": "Title", "type": "string", "default": {"title": "none"}},
                "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Part"}},
                "price": {
                    "minimum": 0.0,
                    "exclusiveMinimum": -1.0,
                    "exclusiveMaximum": 99.0,
                    "maximum": 98.5,
                    "default": 1.0,
                },
                "kind": {
                    "oneOf": [{"$ref": "#/components/schemas/Kind"}, True],
                    "discriminator": {"propertyName": "title"},
                },
            },
            "required": ["title"],
        },
        "Part": {"type": "object", "properties": {"within": {"$ref": "#/components/schemas/Book"}}},
        "Kind": {
            "enum": ["a", {"title": "b", "$ref": "#/components/schemas/Book"}],
            "title": "Kind",
            "multipleOf": 2.0,
        },
    },
    "securitySchemes": {
        "bearer": {"type": "http", "scheme": "bearer"},
        "oauth": {"type": "oauth2", "flows": {}},
        "openid": {"type": "openIdConnect"},
        "header": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "cookie": {"type": "apiKey", "in": "cookie", "name": "Sid"},
        "query": {"type": "apiKey", "in": "query", "name": "Key"},
        "body": {"type": "apiKey", "in": "body", "name": "key"},
        "certificate": {"type": "mutualTLS"},
        "again": {"$ref": "#/components/securitySchemes/bearer"},
    },
}


def read(operation: Any, path: str = "/", options: Any = None) -> dict[str, object]:
    """Return what differs from the defaults; parameters as LABEL in PLACE, with the name on the wire and `spans`."""
    known = read_operation(operation, Components({"components": COMPONENTS}), path, **(options or {}))
    parameters = [
        f"{each.name} in {each.location} as {each.wire_name}" + " spans" * each.spans_segments
        for each in known.parameters
    ]
    defaults = {
        each.name: each.default if each.default_factory is MISSING else each.default_factory()
        for each in fields(Operation)
    }
    facts = {**asdict(known), "parameters": parameters}
    return {name: value for name, value in facts.items() if value not in (defaults[name], [])}


def test_operations_become_what_the_transcript_says(request):
    compare(Path(__file__).parent / "transcripts" / "openapi.txt", {"read": read}, request)
