"""What is said of a value that does not conform: of each part what it must be, and nothing of parts that do."""

import json

import pytest

from awp_publish.schema import UnusableSchema, compile_schema, inline_definitions, member_names, write_schema
from awp_publish.schema.dialects import translate
from awp_publish.schema.files import MAX_MEDIA_TYPE, with_name
from awp_publish.schema.handlers import docstring_of
from awp_publish.schema.pydantic_errors import read_errors
from awp_publish.schema.secrets import mark_secrets

LONG = "x" * 61
MANY = [f"value-{number:02}" for number in range(30)]


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        *[
            ({"type": kind}, {}, f"must be {noun}, not an object")
            for kind, noun in (
                ("array", "an array"),
                ("string", "a string"),
                ("integer", "an integer"),
                ("number", "a number"),
                ("boolean", "a boolean"),
                ("null", "null"),
                (["null", "integer"], "an integer"),
                (["array", "string"], "an array or a string"),
            )
        ],
        *[
            ({"type": "null"}, value, f"must be null, not {shown}")
            for value, shown in (
                ([], "an array"),
                (True, "true"),
                (2.0, "2"),
                (1e15, "1000000000000000.0"),
                (0.5, "0.5"),
                ("é", '"é"'),
                (LONG[:60], f'"{LONG[:60]}"'),
                (LONG, "a string of 61 characters"),
            )
        ],
        ({"type": "object"}, None, "must be an object, not null"),
        ({"const": LONG}, 1, f'must be "{LONG[:60]}…", not 1'),
        ({"enum": [1]}, 2, "must be 1, not 2"),
        ({"enum": MANY[:20]}, "x", f'must be one of {", ".join(map(json.dumps, MANY[:20]))}, not "x"'),
        ({"enum": [*MANY, "emma"]}, "ema", 'must be one of 31 values, such as "emma", not "ema"'),
        ({"enum": MANY}, 7, f"must be one of 30 values, such as {', '.join(map(json.dumps, MANY[:5]))}, not 7"),
        ({"enum": ["y" * 500, "z" * 500]}, 1, f'must be one of "{"y" * 60}…", "{"z" * 60}…", not 1'),
        ({"minimum": 1.5}, 1, "must be at least 1.5"),
        ({"maximum": 2.0}, 3, "must be at most 2"),
        ({"exclusiveMinimum": 1}, 1, "must be greater than 1"),
        ({"exclusiveMaximum": 1}, 1, "must be less than 1"),
        ({"multipleOf": 2}, 1, "must be a multiple of 2"),
        *[
            ({f"{side}{what}": limit}, value, f"must {words}")
            for what, noun, many in (
                ("Length", "character", "xxx"),
                ("Items", "item", [1, 2, 3]),
                ("Properties", "member", {"a": 1, "b": 2, "c": 3}),
            )
            for side, limit, value, words in (
                ("min", 1, type(many)(), "not be empty"),
                ("min", 4, many, f"have at least 4 {noun}s"),
                ("max", 1, many, f"have at most 1 {noun}"),
                ("max", 2, many, f"have at most 2 {noun}s"),
            )
        ],
        ({"pattern": "^a"}, "b", 'must match the pattern ^a, not "b"'),
        *[
            ({"format": name}, "?", f'must be {noun}, not "?"')
            for name, noun in (
                ("date", "a date such as 2026-01-31"),
                ("date-time", "a date and time such as 2026-01-31T12:00:00Z"),
                ("time", "a time such as 12:00:00Z"),
                ("duration", "a duration such as P1DT12H"),
                ("email", "an e-mail address"),
                ("hostname", "a host name"),
                ("ipv4", "an IPv4 address"),
                ("ipv6", "an IPv6 address"),
                ("uri", "an absolute URI such as https://example.com/"),
                ("uuid", "a UUID"),
                ("json-pointer", "a JSON Pointer"),
            )
        ],
        ({"contentEncoding": "base64"}, "?", "must be base64"),
        ({"uniqueItems": True}, [1, 1.0], "must not contain the same item twice"),
        ({"not": {}}, 1, "is excluded by the schema"),
        ({"contains": {"type": "string"}}, [1], "does not contain the required number of items"),
        (False, 1, "is not allowed here"),
        ({"required": ["a"]}, {}, "is required"),
        (
            {"properties": {"a": {}, "b": {}}, "additionalProperties": False},
            {"c": 1},
            'is not a known member. Known members: "a", "b"',
        ),
    ],
)
def test_each_keyword_has_its_words(schema, value, words):
    [violation] = compile_schema({"properties": {"in": schema}}, asserts_formats=True)({"in": value})
    assert violation.detail == words


@pytest.mark.parametrize(
    ("schema", "translated"),
    [
        ({"exclusiveMinimum": True, "minimum": 1, "maximum": 3}, {"exclusiveMinimum": 1, "maximum": 3}),
        ({"exclusiveMaximum": False, "maximum": 1}, {"maximum": 1}),
        (
            {"exclusiveMaximum": 1, "id": "urn:x", "$recursiveRef": "#"},
            {"exclusiveMaximum": 1, "$id": "urn:x", "$ref": "#"},
        ),
        ({"items": [{"id": 1}], "additionalItems": False}, {"prefixItems": [{"id": 1}], "items": False}),
        ({"items": [{}]}, {"prefixItems": [{}], "items": True}),
        ({"items": {"$ref": "#", "type": "array", "definitions": {}}}, {"items": {"$ref": "#", "definitions": {}}}),
        (
            {"dependencies": {"a": ["b"], "c": {"exclusiveMinimum": True, "minimum": 1}}},
            {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"exclusiveMinimum": 1}}},
        ),
        ({"dependencies": {}, "enum": [{"id": "x"}]}, {"enum": [{"id": "x"}]}),
    ],
)
def test_an_older_dialect_is_translated(schema, translated):
    assert translate({"$schema": "http://json-schema.org/draft-04/schema#", **schema}) == translated
    assert translate(schema) == schema
    newer = {"$schema": "https://json-schema.org/draft/2019-09/schema", "items": {"$ref": "#", "type": "array"}}
    assert translate(newer) == {"items": newer["items"]}


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


def test_formats_are_checked_only_where_that_is_wanted():
    for schema in ({"format": "date"}, {"contentEncoding": "base64"}):
        assert compile_schema(schema).is_valid("?")
        assert not compile_schema(schema, asserts_formats=True).is_valid("?")


@pytest.mark.parametrize(
    ("errors", "told"),
    [
        ([(("a", 0), "no", "x")], ["/a/0 no"]),
        ([(("a", 5), "no", "missing"), (("a", 5, "b"), "nor", "x")], ["/a/5 no", "/a nor"]),
        ([(("b",), "Field required", "missing"), (("b",), "Field required", "missing")], ["/b Field required"]),
        ([(("a", "int"), "Value error, no", "x"), (("a", "str"), "Assertion failed, nor", "y")], ["/a no"]),
        ([(("a", "int"), "1", "x"), (("a", "int"), "2", "x"), (("a", "str"), "3", "x")], ["/a 3"]),
        ([(("a", "int"), "1", "x"), (("a", "str"), "2", "value_error"), (("a", "str"), "3", "x")], ["/a 2", "/a 3"]),
        (
            [(("a", "int"), "1", "x"), (("a", "str"), "2", "assertion_error"), (("a", "str"), "3", "x")],
            ["/a 2", "/a 3"],
        ),
        ([(("a", "f", "int"), "1", "x"), (("a", "f", "str"), "2", "x"), (("c",), "3", "x")], ["/a 1", " 3"]),
    ],
)
def test_of_a_union_the_errors_of_the_likeliest_alternative_are_told(errors, told):
    violations = read_errors(errors, {"a": [1]})
    assert [f"{violation.pointer} {violation.detail}" for violation in violations] == told


def test_members_named_like_secrets_are_marked_unless_they_cannot_be_or_are_already():
    text, secret = {"type": "string"}, {"type": "string", "writeOnly": True}
    marked_already = {"token": {"anyOf": [{"format": "password"}]}, "secret": secret, "cvv": True}
    for kind in ("boolean", "null", "object", "array"):
        unmarked = {"properties": {"pin": {"type": kind}}}
        assert mark_secrets(unmarked) == (unmarked, ())
    schema = {"properties": {"a": {"properties": {"api_key": text, "note": text}}, **marked_already, "pin": {}}}
    assert mark_secrets(schema) == (
        {
            "properties": {
                "a": {"properties": {"api_key": secret, "note": text}},
                **marked_already,
                "pin": {"writeOnly": True},
            }
        },
        ("api_key", "pin"),
    )
