"""What is said of a value that does not conform: of each part what it must be, and nothing of parts that do."""

import pytest

from awp_publish.schema import UnusableSchema, compile_schema, write_schema
from awp_publish.schema.files import MAX_MEDIA_TYPE, with_name
from awp_publish.schema.handlers import docstring_of


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
