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
from awp_publish.model import Agent, Catalog
from awp_publish.plugin import known_protocols
from awp_publish.plugins.woa.document import PROTOCOL
from awp_publish.schema.reading import DIALECT
from tests.documents.catalogs import BOOKSHOP, make_action, make_catalog, make_function_action, read

(DOCUMENT,) = PROTOCOL.documents


def _document(catalog: Catalog) -> Any:
    return read(DOCUMENT, catalog)


def _agent(catalog: Catalog) -> Any:
    return _document(catalog)["agents"][0]


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


@pytest.mark.needs("awas")
def test_an_answer_that_several_actions_give_is_described_once() -> None:
    catalog = _shelf()
    shown, added, counted = (agent["outputs"] for agent in _document(catalog)["agents"])
    assert "$defs" in shown
    address = "https://books.example/agents/schemas.json"
    assert added == {"$schema": DIALECT, "type": "object", "$ref": f"{address}#/$defs/show_basket.out"}
    assert "$ref" not in counted
    schemas = next(read(each.documents[0], catalog) for each in known_protocols() if each.name == "schemas")
    registry: Registry[Any] = Registry().with_resource(address, Resource.from_contents(schemas))
    validator = Draft202012Validator(added, registry=registry)
    assert validator.is_valid({"lines": [{"title": "Emma"}]})
    assert not validator.is_valid({"lines": [{"title": 1}]})
    assert [item for item in check_document(_document(catalog)) if item.check == "woa-schema-external"] == []


def test_a_format_is_described_in_place_if_the_other_document_lacks_it() -> None:
    for catalog in (
        replace(_shelf(), protocols=frozenset({"awas", "woa"})),
        replace(_shelf(), documents=frozenset()),
        _shelf(expose=("woa",)),
    ):
        assert all("$ref" not in agent["outputs"] for agent in _document(catalog)["agents"])
