"""What is said of a value that does not conform: of each part what it must be, and nothing of parts that do."""

import pytest

from awp_publish.schema import UnusableSchema, compile_schema, inline_definitions, member_names, write_schema
from awp_publish.schema.files import MAX_MEDIA_TYPE, with_name
from awp_publish.schema.handlers import docstring_of


@pytest.mark.parametrize(
    ("schema", "value", "violations"),
    [
        ({"anyOf": [{"type": "object"}, {"type": "integer"}]}, "x", ['must be an object or an integer, not "x"']),
        (
            {"anyOf": [{"type": "object", "required": ["a", "b"]}, {"type": "integer"}]},
            "x",
            ['must be an object with "a", "b" or an integer, not "x"'],
        ),
        (
            {"anyOf": [{"type": "object", "properties": {name: {"type": "integer"}}} for name in "ab"]},
            {"a": "x", "b": "y"},
            ['/a must be an integer, not "x"'],
        ),
        (
            {
                "discriminator": {"propertyName": "kind"},
                "anyOf": [
                    {"type": "object", "properties": {"kind": {"type": "string"}, name: {"type": "integer"}}}
                    for name in "ab"
                ],
            },
            {"kind": "a", "a": "x", "b": "y"},
            ['/a must be an integer, not "x"'],
        ),
        (
            {"propertyNames": {"pattern": "^a"}, "additionalProperties": {"type": "integer"}},
            {"ab": "x", "b": 1},
            ['/ab must be an integer, not "x"', "/b is not an allowed name"],
        ),
        (
            {"additionalProperties": {"type": "integer"}},
            {"ab": "x", "b": 1},
            ['/ab must be an integer, not "x"'],
        ),
        (
            {"prefixItems": [{"type": "integer"}], "items": {"type": "string"}},
            [1, 2, "x"],
            ["/1 must be a string, not 2"],
        ),
        (
            {"prefixItems": [{"type": "integer"}], "oneOf": [{"minItems": 2}, {"maxItems": 3}]},
            ["x", 2],
            ['/0 must be an integer, not "x"', "matches several of the alternatives and must match exactly one"],
        ),
    ],
)
def test_each_part_that_does_not_conform_is_described(schema, value, violations):
    told = compile_schema(schema)(value)
    assert [f"{violation.pointer} {violation.detail}".strip() for violation in told] == violations


REFERENCE = {"$ref": "#/$defs/A"}
NAMED = {"type": "object", "properties": {"a": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("members", "definition", "inlined"),
    [
        ({"x": REFERENCE}, NAMED, {"properties": {"x": NAMED}}),
        ({"x": {**REFERENCE, "title": "X"}}, NAMED, {"properties": {"x": {**NAMED, "title": "X"}}}),
        ({"x": REFERENCE, "y": REFERENCE}, NAMED, None),
        ({"x": {**REFERENCE, "minProperties": 1}}, NAMED, None),
        ({"x": REFERENCE}, {"type": "array", "items": REFERENCE}, None),
        ({"x": {"type": "array", "items": REFERENCE}}, NAMED, {"properties": {"x": {"type": "array", "items": NAMED}}}),
    ],
)
def test_a_definition_with_one_reference_stands_in_its_place(members, definition, inlined):
    schema = {"properties": members, "$defs": {"A": definition}}
    assert inline_definitions(schema) == (schema if inlined is None else inlined)


def test_members_are_those_of_all_parts_whatever_these_are():
    schema = {"properties": {"a": {}}, "allOf": [True, {"anyOf": [{"properties": {"b": {}}}, False]}]}
    assert member_names(schema) == ["a", "b"]


@pytest.mark.parametrize("error", [NameError, TypeError, AttributeError])
def test_a_type_that_cannot_be_described_is_unusable_whatever_it_raises(error):
    class Odd:
        @classmethod
        def __get_pydantic_core_schema__(cls, source: object, handler: object) -> object:
            raise error("It has no schema.")

    with pytest.raises(UnusableSchema, match="It has no schema"):
        write_schema(Odd)


def test_only_a_member_of_the_whole_input_is_sent_elsewhere():
    inner = {"type": "object", "properties": {"title": {}}, "additionalProperties": False}
    schema = {**inner, "properties": {"order": inner}}
    elsewhere = {"session": "send it beside input"}
    (of_all, of_order), _ = compile_schema(schema).describe({"session": 1, "order": {"session": 1}}, elsewhere)
    assert (of_all.pointer, of_all.detail) == ("/session", "is not an input: send it beside input")
    assert (of_order.pointer, of_order.detail) == (
        "/order/session",
        'is not a known member. Known members: "title"',
    )


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_lists_that_can_be_read_in_too_many_ways_are_refused(keyword):
    branch = {"type": "array", "items": {"$ref": "#/$defs/Tree"}}
    branches = [{**branch, "minItems": 1}, {**branch, "maxItems": 0}]
    validator = compile_schema({"$ref": "#/$defs/Tree", "$defs": {"Tree": {keyword: branches}}})
    nested: list[object] = []
    for _ in range(5):
        nested = [nested]
    assert validator.is_valid(nested)
    for _ in range(25):
        nested = [nested]
    assert not validator.is_valid(nested)
    assert [violation.detail for violation in validator(nested)] == ["is too deeply nested to be read unambiguously"]


@pytest.mark.parametrize("length", [MAX_MEDIA_TYPE, MAX_MEDIA_TYPE + 1])
def test_the_media_type_of_a_file_has_a_limit(length):
    media_type = "text/" + "x" * (length - len("text/"))
    file = {"filename": "a.txt", "content_type": media_type, "content": "YQ=="}
    assert compile_schema(with_name({"type": "string"})).is_valid(file) is (length == MAX_MEDIA_TYPE)


def test_a_description_ends_where_a_form_feed_hides_the_rest():
    def search() -> None:
        """Search books. \f For the developers of this site."""

    assert docstring_of(search) == "Search books."
