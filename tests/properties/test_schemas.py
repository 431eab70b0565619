"""Instances are judged as a second engine judges them, and every violation points into its instance."""

import json
from typing import Any

from hypothesis import HealthCheck, assume, given, settings, strategies as st
from jsonschema import Draft202012Validator

from awp_publish.schema import UnusableSchema, compile_schema, inline_definitions
from awp_publish.schema.pointers import part_at
from awp_publish.schema.redaction import HIDDEN, answer_redactor, input_redactor
from awp_publish.schema.writing import inline_root
from tests.examples import examples

NAMES = st.sampled_from(["a", "b", "c/d", "e~f", ""])
NUMBERS = st.integers(-3, 3) | st.sampled_from([0.5, 2.0, 1e300])
SCALARS = st.none() | st.booleans() | NUMBERS | st.text("ab é", max_size=4)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)
KINDS = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])


def keywords(inner: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    named, several = st.dictionaries(NAMES, inner, max_size=2), st.lists(inner, min_size=1, max_size=2)
    optional: dict[str, st.SearchStrategy[Any]] = {
        "type": KINDS | st.lists(KINDS, min_size=1, max_size=2, unique=True),
        "enum": st.lists(VALUES, min_size=1, max_size=3),
        "const": VALUES,
        "multipleOf": st.sampled_from([1, 2, 0.5]),
        "pattern": st.sampled_from(["^a", "b$", "[ab]{2}"]),
        "uniqueItems": st.booleans(),
        "required": st.lists(NAMES, max_size=2, unique=True),
        "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, unique=True, max_size=2), max_size=2),
        "properties": named,
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "/"]), inner, max_size=2),
        "prefixItems": several,
        "not": inner,
        **dict.fromkeys(("allOf", "anyOf", "oneOf"), several),
        **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), st.integers(0, 3)),
        **dict.fromkeys(("minProperties", "maxProperties", "minContains", "maxContains"), st.integers(0, 3)),
        **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), NUMBERS),
        **dict.fromkeys(("items", "contains", "additionalProperties", "propertyNames"), inner),
        **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties", "if", "then", "else"), inner),
    }
    return st.lists(st.sampled_from(sorted(optional)), max_size=4, unique=True).flatmap(
        lambda names: st.fixed_dictionaries({name: optional[name] for name in names})
    )


SCHEMAS = keywords(st.recursive(st.booleans() | st.just({}), keywords, max_leaves=6))
ANY = settings(suppress_health_check=list(HealthCheck), deadline=None, max_examples=examples(300))


@ANY
@given(SCHEMAS, st.lists(VALUES, min_size=1, max_size=5))
def test_instances_are_valid_where_the_reference_engine_says_so(schema, values):
    ours, theirs = compile_schema(schema), Draft202012Validator(schema)
    for value in values:
        assert ours.is_valid(value) == theirs.is_valid(value), value


@ANY
@given(SCHEMAS, st.lists(VALUES, min_size=1, max_size=5))
def test_every_violation_points_into_its_instance(schema, values):
    try:
        validator = compile_schema(schema)
    except UnusableSchema:
        assume(False)
    for value in values:
        for violation in validator(value):
            assert leads_somewhere(value, violation.pointer), (violation.pointer, value)


def leads_somewhere(value: object, pointer: str) -> bool:
    """Whether a pointer leads to a part of a value, or to a member that one of its objects lacks."""
    parent, _, last = pointer.rpartition("/")
    holder = part_at(value, parent) if pointer else value
    return not pointer or isinstance(holder, dict) or (isinstance(holder, list) and int(last) < len(holder))


REFERENCES = st.sampled_from([{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}, {"$ref": "#/$defs/A", "title": "T"}])


@ANY
@given(st.dictionaries(NAMES, REFERENCES | keywords(REFERENCES), max_size=3), keywords(REFERENCES), SCHEMAS, VALUES)
def test_a_schema_with_its_definitions_in_place_means_the_same(members, first, second, value):
    whole = {"properties": members, "items": {"$ref": "#/$defs/A"}, "$defs": {"A": first, "B": second}}
    inlined = inline_definitions(whole)
    try:
        validators = [compile_schema(schema) for schema in (whole, inlined, inline_root(whole))]
    except UnusableSchema:  # references that lead nowhere but to each other
        assume(False)
    assert len({validator.is_valid(value) for validator in validators}) == 1, inlined


SECRET = "hunter2"
MARKED = st.sampled_from([{"writeOnly": True}, {"type": "string", "format": "password"}])

NAME_OF = MARKED.map(lambda marked: ({"propertyNames": marked}, {SECRET: "open"}))
HIDDEN_PLACES: st.SearchStrategy[tuple[Any, Any]] = st.tuples(MARKED, st.just(SECRET)) | NAME_OF


def referring(schema: Any, anchor: str, reference: str) -> dict[str, object]:
    name = f"x{len(json.dumps(schema))}"  # no other one has it: what is around a schema is longer
    return {"$defs": {"A": {**schema, anchor: name}}, reference: f"#{name}"}


def around(inner: st.SearchStrategy[tuple[Any, Any]]) -> st.SearchStrategy[tuple[Any, Any]]:
    """Schemas around a marked one, with values in which a secret is at its place."""
    wrappers = [
        lambda schema, value: ({"properties": {"a": schema, "b": {}}}, {"a": value, "b": "open"}),
        lambda schema, value: ({"patternProperties": {"^s": schema}}, {"sa": value, "b": "open"}),
        lambda schema, value: ({"properties": {"b": {}}, "additionalProperties": schema}, {"a": value, "b": "open"}),
        lambda schema, value: ({"properties": {"b": {}}, "unevaluatedProperties": schema}, {"a": value, "b": "open"}),
        lambda schema, value: ({"items": schema}, [value, value]),
        lambda schema, value: ({"prefixItems": [{}, schema]}, ["open", value, "open"]),
        lambda schema, value: ({"contains": schema}, [value]),
        lambda schema, value: ({"unevaluatedItems": schema}, [value]),
        *(
            lambda schema, value, keyword=keyword: ({keyword: [{"type": "null"}, schema]}, value)
            for keyword in ("anyOf", "oneOf", "allOf")
        ),
        *(lambda schema, value, keyword=keyword: ({keyword: schema}, value) for keyword in ("if", "then", "else")),
        lambda schema, value: ({"dependentSchemas": {"b": schema}}, value),
        *(
            lambda schema, value, anchor=anchor, ref=ref: (referring(schema, anchor, ref), value)
            for anchor, ref in (("$anchor", "$ref"), ("$dynamicAnchor", "$dynamicRef"))
        ),
    ]
    return st.tuples(inner, st.sampled_from(wrappers)).map(lambda pair: pair[1](*pair[0]))


@ANY
@given(st.recursive(HIDDEN_PLACES, around, max_leaves=4))
def test_no_secret_is_left_and_nothing_else_is_hidden(made):
    schema, value = made
    redact = input_redactor(schema)
    assert redact is not None
    text = json.dumps(redact(value))
    assert SECRET not in text
    assert text.count("open") == json.dumps(value).count("open") or HIDDEN in text


@ANY
@given(SCHEMAS, VALUES)
def test_a_value_without_secrets_is_unchanged(schema, value):
    redact = answer_redactor({**schema, "$defs": {"T": {"readOnce": True}}})
    assert redact is not None
    assert redact(value) == value
