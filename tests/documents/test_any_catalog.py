"""Whatever a site declares: every document is valid, deterministic JSON."""

from dataclasses import replace
from typing import Any

import jsonschema_rs
import orjson
import pytest
from a2a.types.a2a_pb2 import AgentCard
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf.json_format import ParseDict
from hypothesis import HealthCheck, given, settings, strategies as st

from awp_publish.model import (
    Action,
    Authentication,
    Catalog,
    DoorFacts,
    Idempotency,
    OpenApi,
    Parameter,
    Paths,
    RateLimit,
    Target,
)
from awp_publish.plugins.a2a import agent_card
from awp_publish.plugins.agent_json import document as agent_json
from awp_publish.plugins.awas import manifest as awas
from awp_publish.plugins.woa import document as woa
from tests.documents.known import ALL
from tests.examples import examples

from .catalogs import WOA_DOOR, make_action, make_catalog, read
from .conftest import Check

pytestmark = pytest.mark.slow

NAMES = st.sampled_from(["a", "b", "c_d", "X-Tok", "id"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-9, 9),
    st.floats(allow_nan=False, allow_infinity=False, width=16),
    st.text(max_size=4),
)
KINDS = st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null"])
REFERENCES = st.sampled_from(["#", "#/$defs/A", "#/$defs/B", "#/$defs/C", "#/properties/a", "#/$defs/A/items"])
LEAVES = st.one_of(
    st.booleans(),
    st.builds(lambda reference: {"$ref": reference}, REFERENCES),
    st.builds(lambda value: {"const": value}, SCALARS),
    st.builds(lambda values: {"enum": values}, st.lists(SCALARS, max_size=3, unique_by=repr)),
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.one_of(KINDS, st.lists(KINDS, min_size=1, max_size=3, unique=True)),
            "format": st.sampled_from(["date", "date-time", "uri", "email", "odd"]),
            "description": st.text(max_size=5),
            "title": st.text(max_size=5),
            "default": SCALARS,
            "examples": st.lists(SCALARS, max_size=2),
            "minimum": st.integers(-5, 5),
            "exclusiveMaximum": st.integers(-5, 5),
            "minLength": st.integers(0, 5),
            "pattern": st.just("^a"),
        },
    ),
)


def _combined(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "anyOf": some,
            "oneOf": some,
            "allOf": some,
            "items": inner,
            "prefixItems": some,
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "required": st.lists(NAMES, max_size=2, unique=True),
            "additionalProperties": inner,
            "$ref": REFERENCES,
            "default": SCALARS,
        },
    )


SCHEMAS = st.recursive(LEAVES, _combined, max_leaves=6)
ROOTS = st.fixed_dictionaries(
    {"$defs": st.fixed_dictionaries({"A": SCHEMAS, "B": SCHEMAS, "C": SCHEMAS})},
    optional={
        "type": st.just("object"),
        "properties": st.dictionaries(NAMES, SCHEMAS, max_size=4),
        "required": st.lists(NAMES, max_size=2, unique=True),
        "$ref": REFERENCES,
        "anyOf": st.lists(SCHEMAS, min_size=1, max_size=2),
    },
)
PARAMETERS = st.builds(
    Parameter,
    NAMES,
    st.sampled_from(["path", "query", "header", "cookie", "json", "form", "file", "body"]),
    NAMES,
    st.booleans(),
)
TARGETS = st.builds(
    Target,
    st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]),
    st.sampled_from(["/", "/books/{id}"]),
    st.lists(PARAMETERS, max_size=4, unique_by=lambda parameter: parameter.name).map(tuple),
    st.sampled_from([None, "application/json", "multipart/form-data"]),
)


@st.composite
def _actions(draw: st.DrawFn, fewest: int) -> list[Action]:
    return [_one_action(draw, f"act_{index}") for index in range(draw(st.integers(fewest, 3)))]


def _one_action(draw: st.DrawFn, action_id: str) -> Action:
    target = draw(st.none() | TARGETS)
    grouped = draw(st.booleans())
    return make_action(
        action_id,
        inputs=draw(ROOTS),
        outputs=draw(st.just({}) | ROOTS),
        target=target,
        agent_id="group" if grouped else action_id,
        operation=action_id if grouped else "default",
        effect=draw(st.sampled_from(["read", "idempotent", "write", "delete", "irreversible"])),
        asker=draw(st.sampled_from([None, "site", "scheme", "code"])),
        examples=tuple(draw(st.lists(st.dictionaries(NAMES, SCALARS, max_size=2), max_size=2))),
        rate_limit=draw(st.sampled_from([None, RateLimit(3, 2, "d", "ip")])),
        idempotency=draw(st.sampled_from([None, Idempotency()])),
        dry_run=draw(st.booleans()),
        extensions=draw(st.dictionaries(st.sampled_from(["x-a", "b"]), SCALARS, max_size=2)),
    )


@st.composite
def catalogs(draw: st.DrawFn, fewest_actions: int = 0) -> Catalog:
    return make_catalog(
        *draw(_actions(fewest_actions)),
        url=draw(st.sampled_from(["https://example.com", "https://example.com:8443/shop"])),
        doors=draw(
            st.sampled_from([(), (WOA_DOOR,), (WOA_DOOR, DoorFacts("mcp", "1", "/mcp"), DoorFacts("own", "1", "/own"))])
        ),
        openapi=draw(st.sampled_from([None, OpenApi("/openapi.json", "3.1.0")])),
        paths=draw(st.sampled_from([Paths(), Paths(invoke="/invoke?v=1")])),
        site={
            "authentication": draw(st.sampled_from([None, Authentication("none"), Authentication("bearer", ("jwt",))])),
            "allowed_origins": draw(st.sampled_from([(), ("https://a.example",)])),
            "entities": draw(st.sampled_from([{}, {"a": {"x": "string"}}])),
            "entity_schemas": draw(st.just({}) | st.fixed_dictionaries({"thing": ROOTS})),
            "extensions": draw(st.dictionaries(st.sampled_from(["x-a", "authz"]), SCALARS, max_size=2)),
        },
    )


GENEROUS = settings(deadline=None, max_examples=examples(40), suppress_health_check=list(HealthCheck))


@GENEROUS
@given(catalogs())
def test_every_document_of_any_site_is_deterministic_json(catalog: Catalog) -> None:
    for document in (document for protocol in ALL for document in protocol.documents):
        assert document.render(catalog) == document.render(catalog)
        assert "json" not in document.media_type or isinstance(read(document, catalog), dict)


@GENEROUS
@given(catalog=catalogs())
def test_the_published_schemas_accept_any_site(
    catalog: Catalog, matches_awas: Check, matches_agent_json: Check
) -> None:
    manifest, schema = awas.PROTOCOL.documents[0], awas.PROTOCOL.documents[2]
    matches_awas(read(manifest, catalog))
    jsonschema_rs.validate(read(schema, catalog), read(manifest, catalog))
    matches_agent_json(read(agent_json.PROTOCOL.documents[0], catalog))


@GENEROUS
@given(catalogs())
def test_every_schema_in_the_documents_of_any_site_is_a_schema(catalog: Catalog) -> None:
    for action in read(awas.PROTOCOL.documents[0], catalog)["actions"]:
        jsonschema_rs.meta.validate(action["inputSchema"])
    for agent in read(woa.PROTOCOL.documents[0], catalog)["agents"]:
        for described in (agent, *agent["operations"]):
            for schema in (described[name] for name in ("inputs", "outputs") if name in described):
                jsonschema_rs.meta.validate(schema)


@settings(GENEROUS, max_examples=40)  # with fewer, a type that takes the place of another is missed
@given(catalogs())
def test_any_parameter_has_a_name_of_its_own_and_a_type_that_both_versions_know(catalog: Catalog) -> None:
    known = {"string", "integer", "number", "boolean", "array", "object"}
    for action in read(awas.PROTOCOL.documents[0], catalog)["actions"]:
        names = [parameter["name"] for parameter in action.get("parameters", [])]
        assert len(names) == len(set(names))
        assert {parameter["type"] for parameter in action.get("parameters", [])} <= known


@GENEROUS
@given(catalogs())
def test_any_entity_that_is_referred_to_is_there(catalog: Catalog) -> None:
    document = read(agent_json.PROTOCOL.documents[0], catalog)
    spellings = [one["type"] for action in document["actions"] for one in action["inputs"].values()]
    spellings += [output for action in document["actions"] for output in action["outputs"].values()]
    for entity in document.get("entities", {}).values():
        spellings += entity["fields"].values()
    referred = {spelling[7:-1] for spelling in spellings if spelling.startswith("object[")}
    assert referred <= document.get("entities", {}).keys()


@GENEROUS
@given(catalogs(fewest_actions=1))
def test_the_agent_card_of_any_site_that_can_do_anything_is_one_of_the_published_message(catalog: Catalog) -> None:
    door = DoorFacts("a2a", "1.0", "/a2a")
    card = orjson.loads(orjson.dumps(agent_card.render(replace(catalog, doors=(*catalog.doors, door)))))
    validate_proto_required_fields(ParseDict(card, AgentCard()))  # it refuses members that the message does not have
