"""The WoA document, held to the draft's own example."""

import json
import re
from dataclasses import replace
from typing import Any

import jsonschema_rs
import orjson
import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from awp_publish.checks import check_document
from awp_publish.documents.awas_schemas import SCHEMAS_PROTOCOL
from awp_publish.documents.woa import PROTOCOL
from awp_publish.model import Agent, Authentication, Catalog, DoorFacts, JsonObject, Paths
from awp_publish.schema.reading import DIALECT

from .catalogs import BOOKSHOP, WOA_DOOR, make_action, make_catalog, make_function_action, read

(DOCUMENT,) = PROTOCOL.documents


def _document(catalog: Catalog) -> Any:
    return read(DOCUMENT, catalog)


def _agent(catalog: Catalog) -> Any:
    return _document(catalog)["agents"][0]


def _text(name: str) -> JsonObject:
    return {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}


def test_it_is_served_as_the_draft_says() -> None:
    assert (DOCUMENT.path, DOCUMENT.media_type) == ("/.well-known/woa.json", "application/woa+json")
    assert DOCUMENT.max_age == 300


def test_the_example_of_appendix_b_comes_out_byte_for_byte(woa_draft: str) -> None:
    text = woa_draft.split("\nExample WoA Document\n")[1]
    example, _ = json.JSONDecoder().raw_decode(text, re.search(r"^ *\{$", text, re.MULTILINE).end() - 1)  # type: ignore[union-attr]
    assert DOCUMENT.render(_appendix_b()) == orjson.dumps(example)


def _appendix_b() -> Catalog:
    words = {
        "type": "integer",
        "minimum": 10,
        "maximum": 500,
        "description": "Maximum number of words in the summary.",
    }
    text = {"type": "string", "description": "Input document text in English."}
    summary = {"type": "string", "description": "The generated summary."}
    action = make_function_action(
        "summarizer",
        {"type": "object", "properties": {"text": text, "max_words": words}, "required": ["text"]},
        outputs={"type": "object", "properties": {"summary": summary}, "required": ["summary"]},
        description="Default summarization operation.",
    )
    agent = Agent(
        id="summarizer",
        name="Document Summarizer",
        description="Summarizes English text.",
        version="1.0.0",
        capabilities=("https://example.com/capability/summarization",),
        operations={"default": "summarizer"},
    )
    return make_catalog(action, url="https://api.example.com", agents=(agent,))


def test_a_site_without_agents_still_has_the_members_of_section_4() -> None:
    assert _document(make_catalog(doors=())) == {"woa_version": "1", "agents": [], "transports": {}}


def test_agents_come_in_the_order_of_their_declaration() -> None:
    assert [agent["id"] for agent in _document(BOOKSHOP)["agents"]] == ["search_books", "order_book", "summarize"]


def test_an_agent_tells_what_it_has_and_nothing_else() -> None:
    agent = _agent(make_catalog(make_action()))
    assert list(agent) == ["id", "name", "description", "inputs", "outputs", "transports", "operations"]


def test_schemas_name_their_dialect_first_and_are_valid() -> None:
    own = "https://json-schema.org/draft/2020-12/schema#"
    for agent in _document(BOOKSHOP)["agents"]:
        for schema in (agent["inputs"], agent["outputs"]):
            assert next(iter(schema.items())) == ("$schema", DIALECT)
            jsonschema_rs.meta.validate(schema)
    assert next(
        iter(_agent(make_catalog(make_action(inputs={"type": "object", "$schema": own})))["inputs"].items())
    ) == (
        "$schema",
        own,
    )


# --- Operations ------------------------------------------------------------------------------------------------------


def _editor(*operations: str) -> Catalog:
    actions = [
        make_function_action(f"{name}_text", _text(name), agent_id="editor", operation=name, description=f"Do {name}.")
        for name in operations
    ]
    return make_catalog(*actions)


def test_operations_are_always_listed() -> None:
    assert _agent(make_catalog(make_action()))["operations"] == [{"name": "default", "description": "Say hello."}]


def test_an_operation_overrides_the_default_only_where_it_differs() -> None:
    agent = _agent(_editor("default", "shorten"))
    assert agent["inputs"] == {"$schema": DIALECT, **_text("default")}
    assert agent["operations"] == [
        {"name": "default", "description": "Do default."},
        {"name": "shorten", "description": "Do shorten.", "inputs": {"$schema": DIALECT, **_text("shorten")}},
    ]


def test_outputs_are_overridden_like_inputs() -> None:
    first = make_function_action("a", _text("text"), agent_id="editor")
    second = make_function_action("b", _text("text"), agent_id="editor", operation="b", outputs=_text("result"))
    assert _agent(make_catalog(first, second))["operations"][1] == {
        "name": "b",
        "description": "Say hello.",
        "outputs": {"$schema": DIALECT, **_text("result")},
    }


def test_an_agent_without_a_default_is_open_and_every_operation_says_what_it_takes() -> None:
    agent = _agent(_editor("shorten", "extend"))
    assert agent["inputs"] == agent["outputs"] == {"$schema": DIALECT, "type": "object", "properties": {}}
    assert [operation["inputs"] for operation in agent["operations"]] == [
        {"$schema": DIALECT, **_text("shorten")},
        {"$schema": DIALECT, **_text("extend")},
    ]
    assert all("outputs" in operation for operation in agent["operations"])


# --- Transports ------------------------------------------------------------------------------------------------------


def test_rest_is_a_transport_while_the_door_is_open() -> None:
    catalog = make_catalog(make_action())
    assert _document(catalog)["transports"] == {
        "rest": {"base": "https://books.example", "invoke_path": "/agents/{agent_id}/invoke"}
    }
    shut = replace(catalog, doors=())
    assert (_document(shut)["transports"], _agent(shut)["transports"]) == ({}, [])


def test_base_and_path_are_concatenated_to_the_address() -> None:
    rest = _document(make_catalog(url="https://example.com/shop", paths=Paths(invoke="/invoke?agent={agent_id}")))[
        "transports"
    ]["rest"]
    assert rest["base"] + rest["invoke_path"] == "https://example.com/shop/invoke?agent={agent_id}"


def test_mcp_is_a_transport_of_agents_that_are_tools() -> None:
    doors = (WOA_DOOR, DoorFacts("mcp", "2025-11-25", "/mcp"))
    tool = make_action("ping")
    operation = make_function_action("shorten_text", _text("t"), agent_id="editor", operation="shorten")
    document = _document(make_catalog(tool, operation, doors=doors))
    assert document["transports"]["mcp"] == {
        "server": "https://books.example/mcp",
        "tool_namespace": "books.example",
        "tool_field": "agent",
    }
    assert [agent["transports"] for agent in document["agents"]] == [["rest", "mcp"], ["rest"]]


# --- Additions -------------------------------------------------------------------------------------------------------

AUTHZ = {"scheme": "south", "policy_uri": "https://authz.example/policies/ping", "token_header": "Authorization"}


def test_authorization_metadata_passes_through() -> None:
    agent = Agent(
        id="ping", name="Ping", description="Hi.", operations={"default": "ping"}, extensions={"authz": AUTHZ}
    )
    catalog = make_catalog(make_action(), agents=(agent,), site={"extensions": {"woa": {"authz": AUTHZ}}})
    assert _agent(catalog)["authz"] == _document(catalog)["authz"] == AUTHZ


@pytest.mark.parametrize("member", ["agents", "transports", "woa_version"])
def test_an_addition_never_replaces_what_the_draft_defines(member: str) -> None:
    plain = make_catalog(make_action())
    assert _document(make_catalog(make_action(), site={"extensions": {"woa": {member: "mine"}}})) == _document(plain)


def test_a_site_may_have_transports_of_its_own_and_leave_rest_out() -> None:
    queue = {"broker": "amqps://broker.example"}
    own = {"woa": {"transports": {"com.example.queue": queue, "rest": {"base": "https://elsewhere.example"}}}}
    document = _document(make_catalog(make_action(), site={"extensions": own}))
    assert document["transports"]["rest"]["base"] == "https://books.example"
    assert document["transports"]["com.example.queue"] == queue
    assert document["agents"][0]["transports"] == ["rest", "com.example.queue"]

    alone = {"woa": {"transports": {"com.example.queue": queue, "rest": None}}}
    document = _document(make_catalog(make_action(), site={"extensions": alone}))
    assert document["transports"] == {"com.example.queue": queue}
    assert document["agents"][0]["transports"] == ["com.example.queue"]


def test_without_metadata_of_its_own_a_site_says_how_callers_show_who_they_are() -> None:
    declared = Authentication("api_key", ("api_key",), api_key_header="X-Key")
    told = _document(make_catalog(make_action(), site={"authentication": declared}))["authz"]
    assert told == {"credentials": [{"method": "api_key", "in": "header", "name": "X-Key"}]}


# --- Answers that several actions give ---


def _shelf(**changes: Any) -> Catalog:
    line = {
        "type": "object",
        "properties": {"title": {"type": "string", "description": "As it stands on the cover. " * 5}},
    }
    basket = {"type": "object", "properties": {"lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}}}}
    outputs = {**basket, "$defs": {"Line": line}, "description": "What lies in the basket, and what it costs. " * 3}
    names = ("show_basket", "add_to_basket", "count_books")
    actions = [make_function_action(name, {"type": "object"}, outputs=outputs, **changes) for name in names]
    actions[2] = replace(actions[2], outputs={"type": "object", "properties": {"number": {"type": "integer"}}})
    return make_catalog(*actions)


def test_an_answer_that_several_actions_give_is_described_once() -> None:
    catalog = _shelf()
    shown, added, counted = (agent["outputs"] for agent in _document(catalog)["agents"])
    assert "$defs" in shown
    address = "https://books.example/agents/schemas.json"
    assert added == {"$schema": DIALECT, "type": "object", "$ref": f"{address}#/$defs/show_basket.out"}
    assert "$ref" not in counted
    schemas = read(SCHEMAS_PROTOCOL.documents[0], catalog)
    registry: Registry[Any] = Registry().with_resource(address, Resource.from_contents(schemas))
    validator = Draft202012Validator(added, registry=registry)
    assert validator.is_valid({"lines": [{"title": "Emma"}]})
    assert not validator.is_valid({"lines": [{"title": 1}]})
    assert [one for one in check_document(_document(catalog)) if one.check == "woa-schema-external"] == []


def test_it_is_described_where_it_is_given_if_the_other_document_has_it_not() -> None:
    for catalog in (
        replace(_shelf(), left_out=frozenset({"schemas"})),
        replace(_shelf(), documents=frozenset()),
        _shelf(expose=("woa",)),
    ):
        assert all("$ref" not in agent["outputs"] for agent in _document(catalog)["agents"])
