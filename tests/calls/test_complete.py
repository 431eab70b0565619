"""The values of an input that may be offered: all that its schema allows, or none."""

import pytest

from awp_publish.calls.complete import choices_of, read_complete
from awp_publish.problems import DeclarationError

ROOT = {"$defs": {"Sort": {"enum": ["year", "price"]}}}


@pytest.mark.parametrize(
    ("schema", "choices"),
    [
        ({"enum": ["a", "b"]}, ("a", "b")),
        ({"const": "a"}, ("a",)),
        ({"$ref": "#/$defs/Sort"}, ("year", "price")),
        ({"anyOf": [{"enum": ["a"]}, {"const": "b"}]}, ("a", "b")),
        ({"anyOf": [{"enum": ["a"]}, {"type": "string"}]}, ()),
        ({"type": "string"}, ()),
        ({}, ()),
    ],
)
def test_values_are_offered_where_there_are_no_others(schema, choices):
    assert choices_of(schema, ROOT) == choices


@pytest.mark.parametrize(
    ("declared", "names", "words"),
    [
        (len, [], "there are no arguments"),
        ({"b": len}, ["a"], "complete"),
        ({"a": 7}, ["a"], "complete"),
        (7, ["a"], "complete"),
    ],
)
def test_a_completion_that_completes_nothing_is_refused(declared, names, words):
    with pytest.raises(DeclarationError, match=words):
        read_complete("prompt", declared, names)
