"""agent.json's notation of types."""

import pytest

from awp_publish.plugins.agent_json.notation import snake_case, spelled

ROOT = {
    "$defs": {
        "Book": {"type": "object", "properties": {"title": {"type": "string"}}},
        "Books": {"type": "array", "items": {"$ref": "#/$defs/Book"}},
        "Nest": {"type": "array", "items": {"$ref": "#/$defs/Nest"}},
        "Loop": {"$ref": "#/$defs/Loop"},
        "Knot": {"anyOf": [{"allOf": [True, {"$ref": "#/$defs/Knot"}]}, False]},
        "Coil": {"allOf": [True, {"type": "array", "items": {"allOf": [True, {"$ref": "#/$defs/Coil"}]}}]},
        "a/b": {"type": "integer"},
        "Pair": {"type": "array", "prefixItems": [{"type": "boolean"}]},
    }
}
NAMES = {"#/$defs/Book": "book"}


@pytest.mark.parametrize(
    ("schema", "notation"),
    [
        ({"type": "string"}, "string"),
        ({"type": "integer"}, "integer"),
        ({"type": "number"}, "float"),
        ({"type": "boolean"}, "boolean"),
        ({"type": "string", "format": "date"}, "ISO8601"),
        ({"type": "string", "format": "date-time"}, "ISO8601"),
        ({"type": "string", "format": "uri"}, "url"),
        ({"type": "string", "format": "email"}, "string"),
        ({"format": "date"}, "ISO8601"),
        ({"type": "string", "format": ["date"]}, "string"),
        ({"enum": ["a", "b", None]}, "enum[a, b]"),
        ({"enum": ["a", {"b": 1}]}, "any"),
        ({"type": "string", "anyOf": [{"type": "integer"}, {"type": "boolean"}]}, "string"),
        ({"enum": ["a ", "b"]}, "string"),
        ({"type": "string", "const": "a"}, "enum[a]"),
        ({"anyOf": [{"type": "string", "format": "uri"}, {"type": "string"}]}, "string"),
        ({"anyOf": [{"type": "string", "format": "uri"}, {"type": "string", "format": "date"}]}, "string"),
        ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, "float"),
        ({"anyOf": [{"type": "string"}, {"type": "string", "const": "a"}]}, "any"),
        ({"const": 1}, "enum[1]"),
        ({"enum": [True, False]}, "enum[true, false]"),
        ({"enum": ["a, b", "c"]}, "string"),
        ({"enum": ["c", "a, b"]}, "string"),
        ({"enum": ["c", ""]}, "string"),
        ({"enum": ["a]"]}, "string"),
        ({"enum": [""]}, "string"),
        ({"enum": [{"a": 1}]}, "object"),
        ({"type": "array", "items": {"type": "integer"}}, "array[integer]"),
        ({"type": "array", "items": {"type": "array", "items": {"enum": ["a"]}}}, "array[array[enum[a]]]"),
        ({"type": "array"}, "array[any]"),
        ({"type": "array", "items": False}, "array[any]"),
        ({"type": "object"}, "object"),
        ({"$ref": "#/$defs/Book"}, "object[book]"),
        ({"anyOf": [{"$ref": "#/$defs/Book"}, {"type": "null"}]}, "object[book]"),
        ({"allOf": [{"$ref": "#/$defs/Book"}], "description": "The best."}, "object[book]"),
        ({"type": "array", "items": {"$ref": "#/$defs/Book"}}, "array[book]"),
        ({"$ref": "#/$defs/Books"}, "array[book]"),
        ({"$ref": "#/$defs/a~1b"}, "integer"),
        ({"$ref": "#/$defs/a%2Fb"}, "any"),
        ({"$ref": "#/$defs/Pair/prefixItems/0"}, "boolean"),
        ({"$ref": "#/$defs/Pair/prefixItems/1"}, "any"),
        ({"type": ["integer", "number", "null"]}, "float"),
        ({"anyOf": [{"$ref": "#/$defs/Book"}, {"type": "object"}]}, "object"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "any"),
        ({"type": ["string", "array"], "items": {"type": "string"}}, "any"),
        ({"type": "null"}, "any"),
        ({}, "any"),
        (True, "any"),
        (False, "any"),
        ({"$ref": "#/$defs/Nest"}, "array[any]"),
        ({"$ref": "#/$defs/Loop"}, "any"),
        ({"$ref": "#/$defs/Knot"}, "any"),
        ({"$ref": "#/$defs/Coil"}, "array[any]"),
        ({"$ref": "#elsewhere"}, "any"),
    ],
)
def test_a_type_is_spelled(schema: object, notation: str) -> None:
    assert spelled(schema, ROOT, NAMES) == notation


@pytest.mark.parametrize(
    ("name", "spelling"),
    [
        ("Book", "book"),
        ("BookSummary", "book_summary"),
        ("HTTPError", "http_error"),
        ("Page_Book_", "page_book"),
        ("Book-Input", "book_input"),
        ("shop__models__Book", "shop_models_book"),
        ("Point2D", "point_2_d"),
        ("本", "entity"),
    ],
)
def test_the_name_of_a_model_becomes_that_of_an_entity(name: str, spelling: str) -> None:
    assert snake_case(name) == spelling
