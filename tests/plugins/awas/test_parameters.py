"""The parameters of AWAS actions: what a plain HTTP client sends."""

from dataclasses import replace
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator, ValidationError

from awp_publish.model import Action, Page, Parameter, Paths
from awp_publish.plugins.awas.manifest import PROTOCOL
from tests.documents.catalogs import (
    ORDER,
    SEARCH,
    make_action,
    make_catalog,
    make_function_action,
    make_route_action,
    read,
)


def _described(action: Action, **changes: Any) -> Any:
    return read(PROTOCOL.documents[0], make_catalog(action, **changes))["actions"][0]


def _parameter(value: object, **changes: Any) -> Any:
    return _described(make_route_action("find", {"value": value}, **changes))["parameters"][0]


def _input(value: object, **changes: Any) -> Any:
    return _described(make_route_action("find", {"value": value}, **changes))["inputs"][0]


def _marks(parameter: Any) -> dict[str, object]:
    return {name: value for name, value in parameter.items() if name.startswith("x-")}


# --- Types -----------------------------------------------------------------------------------------------------------

ALIAS = {"$ref": "#/$defs/Value"}


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "integer"}, "integer"),
        ({"type": ["null", "boolean"]}, "boolean"),
        ({"anyOf": [{"type": "null"}, {"type": "number"}]}, "number"),
        ({"oneOf": [{"const": None}, {"type": "number"}]}, "number"),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "integer"),
        ({"const": 3}, "integer"),
        ({"const": True}, "boolean"),
        ({"enum": [0.5, 1.5]}, "number"),
        ({"enum": ["a", None]}, "string"),
        ({"allOf": [{"type": "array"}]}, "array"),
        ({"allOf": [{"title": "One"}, {"type": "array"}]}, "array"),
        ({"properties": {}}, "object"),
        ({"items": {}}, "array"),
        ({"minimum": 1}, "number"),
        ({"type": "null"}, "string"),
        ({}, "string"),
        (True, "string"),
        (False, "string"),
        ({"$ref": "#/$defs/Elsewhere"}, "string"),
        ({"$ref": "https://elsewhere.example/schema"}, "string"),
        ({"$ref": "#"}, "object"),
        ({"$ref": "#/properties/value"}, "string"),
        ({"allOf": [ALIAS]}, "array"),
        ({"anyOf": [ALIAS, {"type": "null"}]}, "array"),
    ],
)
def test_a_type_is_one_that_both_versions_know(schema: object, kind: str) -> None:
    definitions = {"Value": {"type": "array", "items": {"type": "string"}}}
    action = _described(make_route_action("find", {"value": schema}, schema={"$defs": definitions}))
    assert action["inputs"][0]["type"] == kind
    assert action["parameters"][0]["type"] == {"integer": "number"}.get(kind, kind)  # 1.0 knows one kind of number


def test_definitions_that_go_round_in_circles_end() -> None:
    definitions = {
        "One": {"$ref": "#/$defs/Two"},
        "Two": {"anyOf": [{"$ref": "#/$defs/One"}, {"$ref": "#/$defs/Three"}]},
        "Three": {"allOf": [{"$ref": "#/$defs/One"}, {"$ref": "#/$defs/Two"}]},
    }
    assert _parameter({"$ref": "#/$defs/One"}, schema={"$defs": definitions})["type"] == "string"


def test_inputs_that_are_a_reference_or_a_composition_have_their_members_as_parameters() -> None:
    person = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    by_reference = {"$ref": "#/$defs/Person", "$defs": {"Person": person}}
    composed = {"allOf": [person, {"properties": {"age": {"type": "integer"}}, "required": ["age"]}]}
    parameters = (Parameter("name", "query", "name"), Parameter("age", "query", "age"))
    first = _described(make_route_action("a", {}, parameters[:1], schema=by_reference))["parameters"]
    both = _described(make_route_action("b", {}, parameters, schema=composed))["parameters"]
    assert [(one["name"], one["type"], one["required"]) for one in first] == [("name", "string", True)]
    assert [(one["name"], one["type"], one["required"]) for one in both] == [
        ("name", "string", True),
        ("age", "number", True),
    ]


@pytest.mark.parametrize("keyword", ["oneOf", "anyOf"])
def test_inputs_that_are_a_union_have_the_members_of_all_its_branches(keyword: str) -> None:
    card = {"properties": {"kind": {"const": "card"}, "number": {"type": "string"}}, "required": ["kind", "number"]}
    bank = {"properties": {"kind": {"const": "bank"}, "iban": {"type": "string"}}, "required": ["kind", "iban"]}
    schema = {keyword: [{"$ref": "#/$defs/Card"}, bank], "required": ["amount"], "$defs": {"Card": card}}
    names = ("amount", "kind", "number", "iban")
    parameters = tuple(Parameter(name, "json", name) for name in names)
    amount = {"amount": {"type": "integer"}}
    action = make_route_action("pay", amount, parameters, schema=schema, method="POST", effect="write")
    told = {one["name"]: one for one in _described(action)["parameters"]}
    assert {name: one["required"] for name, one in told.items()} == {
        "amount": True,
        "kind": True,
        "number": False,
        "iban": False,
    }
    assert told["kind"]["enum"] == ["card", "bank"]


# --- Facts -----------------------------------------------------------------------------------------------------------


def test_validation_rules_come_from_the_schema() -> None:
    schema = {"type": "string", "pattern": "^a", "minLength": 1, "maxLength": 9}
    assert _parameter(schema)["validation"] == {"pattern": "^a", "minLength": 1, "maxLength": 9}
    assert _input({"type": "number", "minimum": 0.5, "maximum": 9})["validation"] == {"min": 0.5, "max": 9}
    assert "validation" not in _parameter({"type": "string", "description": "Free."})


def test_exclusive_bounds_are_told_for_whole_numbers_only() -> None:
    bounds = {"exclusiveMinimum": 0, "exclusiveMaximum": 10}
    assert _parameter({"type": "integer", **bounds})["validation"] == {"min": 1, "max": 9}
    assert "validation" not in _parameter({"type": "number", **bounds})


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        ({"enum": ["a", "b"]}, ["a", "b"]),
        ({"enum": ["a", None]}, ["a"]),
        ({"const": 1}, [1]),
        ({"oneOf": [{"const": "a"}, {"enum": ["b"]}, {"type": "null"}]}, ["a", "b"]),
        ({"oneOf": [{"const": "a"}, {"type": "string"}]}, None),
        ({"enum": []}, None),
        ({"enum": [None]}, None),
    ],
)
def test_permitted_values_are_listed_for_both_versions(schema: object, values: object) -> None:
    assert _parameter(schema).get("enum") == values
    assert _input(schema).get("validation", {}).get("enum") == values


@pytest.mark.parametrize(("written", "told"), [("date-time", "datetime"), ("email", "email"), ("binary", "binary")])
def test_a_format_is_spelled_as_1_0_does(written: str, told: str) -> None:
    assert _parameter({"type": "string", "format": written})["format"] == told


def test_a_default_is_told_unless_it_is_null() -> None:
    assert _parameter({"type": "integer", "default": 0})["default"] == 0
    assert _input({"type": "boolean", "default": False})["default"] is False
    assert "default" not in _parameter({"type": ["string", "null"], "default": None})


def test_a_default_beside_a_reference_is_the_parameters_own() -> None:
    definitions = {"Value": {"type": "string", "default": "theirs", "description": "Theirs."}}
    parameter = _parameter({"$ref": "#/$defs/Value", "default": "own"}, schema={"$defs": definitions})
    assert (parameter["default"], parameter["description"]) == ("own", "Theirs.")


def test_examples_come_from_the_action_and_from_the_schema() -> None:
    assert [one["example"] for one in _described(SEARCH)["parameters"] if "example" in one] == ["Moby Dick", 5]


@pytest.mark.parametrize(
    ("schema", "description"),
    [
        ({"description": "How many.", "title": "Count"}, "How many."),
        ({"title": "Count"}, "Count"),
        ({"description": ""}, "Value"),
        (True, "Value"),
    ],
)
def test_the_description_that_1_0_requires_is_always_there(schema: object, description: str) -> None:
    assert _parameter(schema)["description"] == description


def test_selectors_are_those_of_the_input() -> None:
    search = _described(SEARCH)
    assert search["parameters"][0]["selector"] == search["inputs"][0]["selector"] == "input[name=q]"
    renamed = make_route_action(
        "find", {"words": {}}, (Parameter("words", "query", "q"),), selectors={"words": "input[name=q]"}, page="/find"
    )
    assert _described(renamed)["parameters"][0]["selector"] == "input[name=q]"


# --- Where a parameter goes ------------------------------------------------------------------------------------------


def test_a_parameter_is_named_as_on_the_wire() -> None:
    action = make_route_action("find", {"sort": {}}, (Parameter("sort", "query", "order-by"),))
    find = _described(action)
    assert [(one["name"], _marks(one)) for one in find["parameters"]] == [("order-by", {"x-input": "sort"})]
    assert list(find["inputSchema"]["properties"]) == ["order-by"]


def test_a_guarded_action_is_described_as_the_plain_door_takes_it() -> None:
    order = _described(ORDER)
    assert (order["method"], order["path"]) == ("POST", "/agents/actions/order_book")
    assert [(one["name"], _marks(one)) for one in order["parameters"]] == [
        ("isbn", {}),
        ("copies", {}),
        ("api_version", {}),
    ]
    assert _described(ORDER, documents=frozenset())["inputSchema"] == ORDER.inputs


def test_the_schema_of_inputs_named_as_on_the_wire_is_left_alone() -> None:
    assert _described(SEARCH, documents=frozenset())["inputSchema"] == SEARCH.inputs


def test_a_renamed_schema_keeps_what_its_members_refer_to() -> None:
    action = make_route_action(
        "find",
        {"sort": {"$ref": "#/$defs/Sort"}},
        (Parameter("sort", "query", "order"),),
        schema={"$defs": {"Sort": {"enum": ["up", "down"]}}, "additionalProperties": False},
    )
    schema = _described(action)["inputSchema"]
    Draft202012Validator(schema).validate({"order": "up"})
    for wrong in ({"order": "left"}, {"sort": "up"}):
        with pytest.raises(ValidationError):
            Draft202012Validator(schema).validate(wrong)


@pytest.mark.parametrize(
    ("method", "locations", "is_own"),
    [
        ("GET", ["query"], True),
        ("DELETE", ["path", "query"], True),
        ("POST", ["json", "path"], True),
        ("PUT", ["form"], False),
        ("POST", ["json", "query"], False),
        ("POST", ["body"], False),
        ("DELETE", ["json"], False),
        ("GET", ["query", "cookie"], False),
        ("GET", ["header"], False),
    ],
)
def test_a_route_is_named_only_if_a_client_that_knows_no_extension_sends_each_input_to_its_place(
    method: str, locations: list[Any], is_own: bool
) -> None:
    names = [f"value_{place}" for place in locations]
    sent = tuple(Parameter(name, place, name) for name, place in zip(names, locations, strict=True))
    action = make_route_action("act", {name: {} for name in names}, sent, method=method, path="/act")
    described = _described(action)
    assert described["path"] == ("/act" if is_own else "/agents/actions/act")
    marks = [{"x-in": "path"} if is_own and place == "path" else {} for place in locations]
    assert [_marks(one) for one in (*described["parameters"], *described["inputs"])] == marks + marks


def test_a_path_parameter_is_required_and_may_span_segments() -> None:
    action = make_route_action("open", {"file": {}}, (Parameter("file", "path", "file", True),), path="/files/{file}")
    parameter = _described(action)["parameters"][0]
    assert parameter["required"] is True
    assert _marks(parameter) == {"x-in": "path", "x-spans-segments": True}


def test_two_inputs_with_one_name_on_the_wire_have_their_own_at_the_plain_door() -> None:
    sent = (Parameter("id", "path", "id"), Parameter("body_id", "json", "id"))
    action = make_route_action("act", {"id": {}, "body_id": {}}, sent, method="POST", path="/{id}")
    described = _described(action)
    assert described["path"] == "/agents/actions/act"
    assert [(one["name"], _marks(one)) for one in described["parameters"]] == [("id", {}), ("body_id", {})]


# --- Without a route -------------------------------------------------------------------------------------------------

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def test_an_action_without_a_route_takes_its_inputs_at_the_plain_door() -> None:
    action = _described(make_function_action("summarize", TEXT, examples=({"text": "Call me Ishmael."},)))
    assert (action["method"], action["path"]) == ("POST", "/agents/actions/summarize")
    assert action["parameters"] == [
        {
            "name": "text",
            "type": "string",
            "required": True,
            "description": "Text",
            "example": "Call me Ishmael.",
        }
    ]
    assert action["inputSchema"] == TEXT


def test_an_operation_of_an_agent_has_an_address_of_its_own() -> None:
    action = _described(make_function_action("shorten", TEXT, agent_id="editor", operation="shorten"))
    assert action["path"] == "/agents/actions/shorten"


def test_the_plain_door_stands_where_the_site_says() -> None:
    action = _described(make_function_action("summarize", TEXT), paths=Paths(root="/do"))
    assert action["path"] == "/do/actions/summarize"


# --- What a parameter's one type cannot say ---


def test_formats_are_in_parameters_and_inputs() -> None:
    for shape, of_1_0 in {"email": "email", "uuid": "uuid", "time": "time", "date-time": "datetime"}.items():
        described = _described(make_route_action("find", {"value": {"type": "string", "format": shape}}))
        assert (described["parameters"][0]["format"], described["inputs"][0]["format"]) == (of_1_0, shape)


def test_a_file_and_a_list_of_files_say_how_they_are_written() -> None:
    file = {"type": "string", "contentEncoding": "base64"}
    assert _parameter(file)["x-encoding"] == "base64"
    assert _parameter({"type": "array", "items": file})["x-items"] == {"type": "string", "x-encoding": "base64"}


def test_the_items_of_a_list_are_described() -> None:
    assert _parameter({"type": "array", "items": {"type": "string", "format": "email"}})["x-items"] == {
        "type": "string",
        "format": "email",
    }
    line = {"type": "object", "properties": {"slug": {"type": "string"}, "n": {"type": "integer"}}, "required": ["n"]}
    assert _parameter({"type": "array", "items": line})["x-items"] == {
        "type": "object",
        "properties": {"slug": "string", "n": "integer"},
        "required": ["n"],
    }
    assert "x-items" not in _parameter({"type": "array"})


def test_a_union_of_types_names_all_of_them() -> None:
    assert _parameter({"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]})["x-types"] == [
        "integer",
        "string",
    ]
    assert "x-types" not in _parameter({"anyOf": [{"type": "integer"}, {"type": "null"}]})


def test_a_union_of_bodies_says_which_parameters_go_together() -> None:
    def one(**properties: object) -> dict[str, object]:
        return {"type": "object", "properties": properties, "required": sorted(properties)}

    text, number = {"type": "string"}, {"type": "integer"}
    union = {"oneOf": [one(card=text), one(iban=text, days=number)]}
    described = _described(make_function_action("pay", {"type": "object", **union}))
    assert described["x-one-of"] == [["card"], ["iban", "days"]]
    assert [parameter["required"] for parameter in described["parameters"]] == [False, False, False]


def test_selectors_without_a_page_are_left_out() -> None:
    search = make_action("find", inputs={}, selector="form.search", result={"type": "list", "selector": ".found"})
    assert {"selector", "result", "x-page"}.isdisjoint(_described(search))
    shown = _described(search, pages=(Page("/books", "Books", actions=("find",)),))
    assert (shown["selector"], shown["x-page"]) == ("form.search", "/books")
    named = _described(replace(search, extensions={"awas": {"x-page": "/search"}}))
    assert (named["selector"], named["x-page"]) == ("form.search", "/search")
