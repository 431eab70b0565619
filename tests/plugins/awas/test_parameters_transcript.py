"""What a plain HTTP client sends, as AWAS describes it of actions, whole: `parameters.txt`.

It is in the words of `tests/function_transcripts.py`. `route` has the inputs of an action, where each is sent (input,
place, name on the wire), and what else its schema says; `value` the schema of one input, and its definitions; `call`
the schema of an action without a route.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
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
from tests.function_transcripts import compare


def described(action: Action, **changes: Any) -> Any:
    return read(PROTOCOL.documents[0], make_catalog(action, **changes))["actions"][0]


def shown(action: Action, **changes: Any) -> Any:
    names = ("method", "path", "parameters", "inputs", "inputSchema", "x-one-of", "selector", "result", "x-page")
    answer = described(action, **changes)
    return {name: answer[name] for name in names if name in answer}


def value(schema: object, definitions: dict[str, object] | None = None) -> Any:
    more = {"$defs": definitions} if definitions else {}
    answer = described(make_route_action("find", {"value": schema}, schema=more))
    return [answer["parameters"][0], answer["inputs"][0]]


def route(method: str, path: str, properties: dict[str, Any], sent: list[Any], schema: dict[str, Any]) -> Any:
    parameters = tuple(Parameter(*message) for message in sent)
    return shown(make_route_action("act", properties, parameters, method=method, path=path, schema=schema))


def call(schema: dict[str, Any]) -> Any:
    return shown(make_function_action("act", schema))


def operation(schema: dict[str, Any]) -> Any:
    action = make_function_action(
        "shorten", schema, agent_id="editor", operation="shorten", examples=({"text": "Call me."},)
    )
    return shown(action, paths=Paths(root="/do"))


FUNCTIONS: dict[str, Callable[..., Any]] = {"value": value, "route": route, "call": call, "operation": operation}


def test_parameters_are_written_as_in_the_transcript(request):
    compare(Path(__file__).parent / "parameters.txt", FUNCTIONS, request)


def test_a_guarded_action_is_described_as_the_plain_door_takes_it() -> None:
    order = described(ORDER)
    assert (order["method"], order["path"]) == ("POST", "/agents/actions/order_book")
    assert [parameter["name"] for parameter in order["parameters"]] == ["isbn", "copies", "api_version"]
    for action in (ORDER, SEARCH):
        assert described(action, documents=frozenset())["inputSchema"] == action.inputs


def test_examples_and_selectors_are_those_of_the_action() -> None:
    search = described(SEARCH)
    assert [parameter["example"] for parameter in search["parameters"] if "example" in parameter] == ["Moby Dick", 5]
    assert search["parameters"][0]["selector"] == search["inputs"][0]["selector"] == "input[name=q]"


def test_a_renamed_schema_keeps_what_its_members_refer_to() -> None:
    action = make_route_action(
        "find",
        {"sort": {"$ref": "#/$defs/Sort"}},
        (Parameter("sort", "query", "order"),),
        schema={"$defs": {"Sort": {"enum": ["up", "down"]}}, "additionalProperties": False},
    )
    schema = described(action)["inputSchema"]
    Draft202012Validator(schema).validate({"order": "up"})
    for wrong in ({"order": "left"}, {"sort": "up"}):
        with pytest.raises(ValidationError):
            Draft202012Validator(schema).validate(wrong)


def test_selectors_without_a_page_are_left_out() -> None:
    search = make_action("find", inputs={}, selector="form.search", result={"type": "list", "selector": ".found"})
    assert {"selector", "result", "x-page"}.isdisjoint(described(search))
    seen = described(search, pages=(Page("/books", "Books", actions=("find",)),))
    assert (seen["selector"], seen["x-page"]) == ("form.search", "/books")
    named = described(replace(search, extensions={"awas": {"x-page": "/search"}}))
    assert (named["selector"], named["x-page"]) == ("form.search", "/search")
