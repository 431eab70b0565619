"""What is said of guarded and of background actions, where a plain reader would otherwise be told something untrue."""

import json
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator

from awp_publish.model import Idempotency, RateLimit
from awp_publish.plugins.agent_json import document as agent_json
from awp_publish.plugins.awas import manifest as awas
from awp_publish.plugins.woa import document as woa
from tests.documents.catalogs import make_action, make_catalog

BOOK = {"type": "object", "properties": {"title": {"type": "string"}}}
OUTPUTS = {"type": "array", "items": {"$ref": "#/$defs/Book"}, "$defs": {"Book": BOOK}}
ACCEPTED = {"job_id": "abc", "status": "accepted", "poll_endpoint": "https://shop.example/agents/jobs/abc"}


def answer_schemas(action):
    catalog = make_catalog(action)
    alone = replace(catalog, documents=frozenset())  # with nothing beside it to which it could refer
    manifest = json.loads(json.dumps(awas.render(alone)))
    document = json.loads(json.dumps(woa.render(catalog)))
    return manifest["actions"][0]["outputSchema"], document["agents"][0]["outputs"]


def test_a_background_action_is_answered_with_a_job_whose_result_is_its_output():
    for schema in answer_schemas(make_action("ship", execution="async", outputs=OUTPUTS)):
        Draft202012Validator.check_schema(schema)
        validator = Draft202012Validator(schema)
        assert validator.is_valid(ACCEPTED)
        assert validator.is_valid({**ACCEPTED, "status": "done", "result": [{"title": "Emma"}]})
        assert not validator.is_valid({**ACCEPTED, "status": "done", "result": [{"title": 7}]})
        assert not validator.is_valid([{"title": "Emma"}])


def test_an_action_that_is_answered_at_once_is_answered_with_its_output():
    for schema in answer_schemas(make_action("find", outputs=OUTPUTS)):
        assert {name: schema[name] for name in OUTPUTS} == OUTPUTS


def test_a_background_action_is_called_at_the_plain_door_where_calls_become_jobs():
    described = agent_json.render(make_catalog(make_action("ship", execution="async")))["actions"][0]  # type: ignore[index]
    assert (described["method"], described["endpoint"]) == ("GET", "/agents/actions/ship")
    assert described["poll_endpoint"] == "/agents/jobs/{job_id}"


GUARDED = {
    "a limit": {"rate_limit": RateLimit(5)},
    "keys": {"idempotency": Idempotency()},
    "a confirmation": {"needs_confirmation": True},
    "receipts": {"requires": ("look",)},
    "a receipt that another one asks for": {"is_required": True},
    "authentication": {"asker": "site"},
    "no JSON": {"answers_json": False},
}


@pytest.mark.parametrize("facts", GUARDED.values(), ids=GUARDED)
def test_an_action_is_published_where_what_is_said_of_it_holds(facts):
    catalog = make_catalog(make_action("order", **facts), make_action("look"), url="https://a.example/shop")
    for render in (agent_json.render, awas.render):
        order, look = json.loads(json.dumps(render(catalog)))["actions"]
        assert (order["endpoint"], look["endpoint"]) == ("/shop/agents/actions/order", "/shop/ping")
        assert "x-invoke" not in order


def test_a_limit_of_the_site_holds_for_every_action():
    catalog = make_catalog(make_action("look"), site={"rate_limit": RateLimit(5)})
    assert agent_json.render(catalog)["actions"][0]["endpoint"] == "/agents/actions/look"  # type: ignore[index]


def test_a_route_that_authenticates_by_itself_is_published_as_it_is():
    catalog = make_catalog(make_action("look", asker="code"))
    assert agent_json.render(catalog)["actions"][0]["endpoint"] == "/ping"  # type: ignore[index]
