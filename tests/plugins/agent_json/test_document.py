"""agent.json 0.2, which 0.1 readers understand too."""

from dataclasses import replace
from typing import Any

import pytest

from awp_publish import problems
from awp_publish.model import (
    Action,
    Authentication,
    Catalog,
    DoorFacts,
    Idempotency,
    JsonObject,
    OpenApi,
    Parameter,
    RateLimit,
    Status,
)
from awp_publish.plugins.agent_json.document import PROTOCOL
from awp_publish.plugins.awas import manifest as awas
from tests.documents.catalogs import (
    BOOKSHOP,
    UNGUARDED_ORDER,
    make_action,
    make_catalog,
    make_function_action,
    make_route_action,
    read,
)
from tests.documents.conftest import Check
from tests.documents.known import PROBLEMS

(DOCUMENT,) = PROTOCOL.documents


def _document(catalog: Catalog) -> Any:
    return read(DOCUMENT, catalog)


def _described(action: Action, **changes: Any) -> Any:
    return _document(make_catalog(action, **changes))["actions"][0]


def _outputs(outputs: JsonObject) -> Any:
    return _described(make_action(outputs=outputs))["outputs"]


# --- The document ----------------------------------------------------------------------------------------------------


def test_agent_json_is_served_as_the_specification_says() -> None:
    assert (DOCUMENT.path, DOCUMENT.media_type) == ("/agent.json", "application/json")


@pytest.mark.parametrize("catalog", [make_catalog(), make_catalog(make_action()), BOOKSHOP])
def test_the_published_schema_accepts_it(catalog: Catalog, matches_agent_json: Check) -> None:
    matches_agent_json(_document(catalog))


def test_the_site_introduces_itself() -> None:
    document = _document(make_catalog(url="https://example.com:8443/shop"))
    assert document["awp_version"] == "0.2"
    assert document["domain"] == "example.com:8443"  # endpoints are resolved against it
    assert _document(make_catalog(url="https://example.com/shop"))["domain"] == "example.com"
    assert document["intent"] == "Find and order books."


def test_addresses_of_a_site_below_a_path_are_complete() -> None:
    catalog = make_catalog(
        make_action("wait", execution="async"),
        url="https://example.com/shop",
        openapi=OpenApi("/openapi.json", "3.1.0"),
        status=Status(status_endpoint="/status"),
        site={"authentication": Authentication("bearer", refresh_endpoint="https://sso.example/refresh")},
    )
    document = _document(catalog)
    assert document["protocols"]["openapi"]["endpoint"] == "https://example.com/shop/openapi.json"
    assert document["actions"][0]["endpoint"] == "/shop/agents/actions/wait"
    assert document["actions"][0]["poll_endpoint"] == "/shop/agents/jobs/{job_id}"
    assert document["agent_status"]["status_endpoint"] == "/shop/status"
    assert document["auth"]["refresh_endpoint"] == "https://sso.example/refresh"


def test_only_capabilities_that_are_known_are_told() -> None:
    assert "capabilities" not in _document(make_catalog(make_action()))
    assert _document(BOOKSHOP)["capabilities"] == {"streaming": True, "idempotency": True}
    turned = make_route_action("list", {"cursor": {"type": "string"}})
    own = {"extensions": {"agent_json": {"capabilities": {"webhooks": True, "pagination": "page"}, "source": "native"}}}
    document = _document(make_catalog(turned, site=own))
    assert document["capabilities"] == {"pagination": "cursor", "webhooks": True}
    assert document["source"] == "native"


@pytest.mark.parametrize(
    ("scheme", "kind"),
    [
        ({"type": "oauth2", "flows": {}}, "oauth2"),
        ({"type": "apiKey", "in": "header", "name": "X-Key"}, "api_key"),
        ({"type": "http", "scheme": "bearer"}, "bearer"),
    ],
)
def test_the_security_of_routes_is_the_kind_of_authentication_where_the_site_has_none(
    scheme: dict[str, object], kind: str
) -> None:
    catalog = make_catalog(make_action(asker="site", security_schemes={"own": scheme}))
    assert _document(catalog)["auth"]["type"] == kind


def test_a_kind_of_authentication_that_nobody_told_is_not_made_up() -> None:
    catalog = make_catalog(make_action(), site={"authentication": Authentication(methods=("session",))})
    assert _document(catalog)["auth"] == {"required_for": [], "optional_for": ["ping"]}


def test_errors_are_the_problems_of_a_call_under_the_sites_own_words() -> None:
    everything = make_action("job", execution="async", requires=("search_books",), idempotency=Idempotency())
    bridge = DoorFacts("bridge", "1", "/actions-bridge")
    shop = replace(BOOKSHOP, actions=(*BOOKSHOP.actions, everything), doors=(*BOOKSHOP.doors, bridge))
    errors = _document(shop)["errors"]
    of_no_action = {"INVALID_URL", "PAGE_NOT_FOUND"}  # the endpoint of pages as SOM answers them
    of_no_action |= {"ENVELOPE_NOT_AN_OBJECT", "INVALID_ENVELOPE", "MISSING_INPUT"}  # and WoA's door these
    of_no_action |= {"AGENT_MISMATCH", "UNKNOWN_AGENT", "UNKNOWN_OPERATION"}
    assert ({problems.code_of(problem.slug) for problem in PROBLEMS} - of_no_action) | {"SOLD_OUT"} == errors.keys()
    assert errors["BODY_TOO_LARGE"] == {"recovery": problems.BodyTooLarge.default_recovery}
    assert errors["INVALID_INPUT"] == {"recovery": "Read errors."}
    assert errors["SOLD_OUT"] == {"recovery": "Call search_books for another edition."}


def test_errors_of_gates_and_jobs_are_told_where_an_action_has_them() -> None:
    few = _document(make_catalog(make_action()))["errors"]
    of_callers = ("AUTHENTICATION_REQUIRED", "INVALID_CREDENTIALS", "INSUFFICIENT_SCOPE", "RATE_LIMITED")
    for code in ("OUTCOME_UNKNOWN", "CONFIRMATION_SPENT", "PREREQUISITE_REQUIRED", "UNKNOWN_JOB", *of_callers):
        assert code not in few
    of_jobs = _document(make_catalog(make_action(execution="async")))["errors"].keys() - few.keys()
    assert {"JOB_CANCELLED", "JOB_ENDED", "UNKNOWN_JOB", "TOO_MANY_JOBS"} <= of_jobs
    assert "INVALID_IDEMPOTENCY_KEY" in _document(make_catalog(make_action(idempotency=Idempotency())))["errors"]
    assert "CONFIRMATION_SPENT" in _document(make_catalog(make_action(needs_confirmation=True)))["errors"]
    limited = make_catalog(make_action(), make_action("other", rate_limit=RateLimit(100, 5)))
    assert "RATE_LIMITED" in _document(limited)["errors"]
    known = _document(make_catalog(make_action(asker="site")))["errors"]
    assert {"AUTHENTICATION_REQUIRED", "RATE_LIMITED"} <= known.keys()
    assert "INSUFFICIENT_SCOPE" not in known


def test_recoveries_name_addresses_that_can_be_followed_from_the_origin() -> None:
    errors = _document(make_catalog(make_action(), url="https://books.example/shop"))["errors"]
    assert "/shop/agent.json" in errors["UNKNOWN_ACTION"]["recovery"]
    assert "/shop/agent.json" in errors["TEMPORARILY_UNAVAILABLE"]["recovery"]


def test_the_status_lists_degraded_actions_in_order() -> None:
    assert _document(BOOKSHOP)["agent_status"] == {
        "operational": True,
        "degraded_actions": ["order_book", "summarize"],
        "status_endpoint": "/agents/status",
    }
    assert _document(make_catalog(make_action(), status=Status(operational=False)))["agent_status"] == {
        "operational": False,
        "degraded_actions": ["ping"],
    }


# --- An action -------------------------------------------------------------------------------------------------------


def test_a_limit_over_several_units_is_told() -> None:
    assert _described(make_action(rate_limit=RateLimit(100, 5)))["rate_limit"] == "100/5 minutes"


def test_the_field_of_the_idempotency_key_is_the_declared_one() -> None:
    supported = Idempotency("48h", "key")
    values = {"supported": True, "key_field": "key", "window": "48h", "x-header": "Idempotency-Key"}
    assert _described(make_action(idempotency=supported))["idempotency"] == values
    assert _described(make_function_action("think", {}, idempotency=supported))["idempotency"] == values


def test_both_documents_derive_the_kind_of_a_call_from_its_effect() -> None:
    awas_manifest = awas.PROTOCOL.documents[0]
    for effect, sensitivity, side_effect in (
        ("read", None, "safe"),
        ("idempotent", "standard", "idempotent"),
        ("write", "standard", "destructive"),  # AWAS 1.1 has no other word for what adds something each time
        ("delete", "destructive", "destructive"),
        ("irreversible", "irreversible", "destructive"),
    ):
        for idempotency in (None, Idempotency()):
            catalog = make_catalog(make_action(effect=effect, idempotency=idempotency))
            action = _document(catalog)["actions"][0]
            assert action.get("sensitivity") == sensitivity
            assert action.get("reversible") == (False if effect == "irreversible" else None)
            softened = "idempotent" if effect == "write" and idempotency else side_effect
            assert read(awas_manifest, catalog)["actions"][0]["sideEffect"] == softened


def test_a_type_of_the_sites_own_is_told_by_its_name() -> None:
    airport = {"type": "string", "pattern": "^[A-Z]{3}$", "x-type": "airport_code"}
    action = make_route_action("fly", {"origin": airport, "via": {"type": "array", "items": airport}})
    inputs = _described(action)["inputs"]
    assert (inputs["origin"]["type"], inputs["via"]["type"]) == ("airport_code", "array[airport_code]")
    assert inputs["origin"]["pattern"] == "^[A-Z]{3}$"


def test_a_background_action_answers_with_its_job_as_in_awas() -> None:
    job = make_function_action("print_book", {"type": "object"}, execution="async", outputs={"type": "object"})
    catalog = make_catalog(job)
    assert set(_document(catalog)["actions"][0]["outputs"]) == {"job_id", "status", "poll_endpoint", "result"}
    answer = read(awas.PROTOCOL.documents[0], replace(catalog, documents=frozenset()))["actions"][0]["outputSchema"][
        "properties"
    ]
    assert set(answer) == {"job_id", "status", "poll_endpoint", "result"}


def test_inputs_are_what_a_plain_client_sends() -> None:
    sent = (Parameter("isbn", "path", "isbn"), Parameter("api_version", "query", "api-version"))
    show = _described(make_route_action("show", {"isbn": {}, "api_version": {}}, sent, path="/books/{isbn}"))
    assert show["endpoint"] == "/books/{isbn}"
    assert [(name, one.get("x-in"), one.get("x-input")) for name, one in show["inputs"].items()] == [
        ("isbn", "path", None),
        ("api-version", None, "api_version"),
    ]
    for order in (_described(UNGUARDED_ORDER), _document(BOOKSHOP)["actions"][1]):  # the first has an input in a header
        assert order["endpoint"] == "/agents/actions/order_book"
        assert order["inputs"]["isbn"] == {"type": "string", "required": False}
        assert order["inputs"]["api_version"] == {"type": "enum", "required": False, "options": ["2"]}


# --- Outputs and entities --------------------------------------------------------------------------------------------

BOOK = {"type": "object", "properties": {"title": {"type": "string"}}}
TOY = {"type": "object", "properties": {"age": {"type": "integer"}}}


def _holding(model: str, **definitions: JsonObject) -> JsonObject:
    return {"type": "object", "properties": {"one": {"$ref": f"#/$defs/{model}"}}, "$defs": definitions}


def _told(*outputs: JsonObject, **site: Any) -> Any:
    actions = [make_action(f"read_{index}", outputs=schema) for index, schema in enumerate(outputs)]
    document = _document(make_catalog(*actions, site=site))
    return document.get("entities"), [action["outputs"] for action in document["actions"]]


def test_an_answer_that_is_no_object_is_one_output() -> None:
    assert _outputs({"type": "array", "items": {"type": "string"}}) == {"$": "array[string]"}
    assert _outputs({"type": ["object", "null"], "properties": {"a": {"type": "string"}}}) == {"a": "string"}
    assert _outputs({"type": "object"}) == {}


def test_a_model_that_several_actions_share_is_one_entity() -> None:
    validated = BOOK | {"required": ["title"], "description": "As it is written."}
    entities, outputs = _told(_holding("Book", Book=BOOK), _holding("Book", Book=validated))
    assert entities == {"book": {"fields": {"title": "string"}}}
    assert outputs == [{"one": "object[book]"}] * 2


def test_different_models_of_one_name_are_told_apart() -> None:
    entities, outputs = _told(_holding("Item", Item=BOOK), _holding("Item", Item=TOY), _holding("Item", Item=BOOK))
    assert entities == {"item": {"fields": {"title": "string"}}, "item_2": {"fields": {"age": "integer"}}}
    assert [output["one"] for output in outputs] == ["object[item]", "object[item_2]", "object[item]"]


def test_models_that_differ_only_in_what_they_refer_to_are_told_apart() -> None:
    order = {"type": "object", "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/Item"}}}}
    entities, outputs = _told(_holding("Order", Order=order, Item=BOOK), _holding("Order", Order=order, Item=TOY))
    assert entities["order"] == {"fields": {"items": "array[item]"}}
    assert entities["order_2"] == {"fields": {"items": "array[item_2]"}}
    assert [output["one"] for output in outputs] == ["object[order]", "object[order_2]"]


def test_a_model_that_is_reached_through_another_definition_is_found() -> None:
    books = {"type": "array", "items": {"$ref": "#/$defs/Book"}}
    shelf = {"type": "object", "properties": {"content": {"$ref": "#/$defs/Books"}}}
    entities, _ = _told(_holding("Shelf", Shelf=shelf, Books=books, Book=BOOK), _holding("Book", Book=TOY))
    assert entities["shelf"] == {"fields": {"content": "array[book]"}}
    assert entities["book_2"] == {"fields": {"age": "integer"}}


def test_a_declared_entity_speaks_for_the_models_of_its_name() -> None:
    entities, outputs = _told(_holding("Book", Book=BOOK), entities={"book": {"isbn": "string"}})
    assert entities == {"book": {"fields": {"isbn": "string"}}}
    assert outputs == [{"one": "object[book]"}]


def test_an_entity_is_never_called_like_a_type() -> None:
    entities, outputs = _told(_holding("Url", Url=BOOK))
    assert entities == {"url_2": {"fields": {"title": "string"}}}
    assert outputs == [{"one": "object[url_2]"}]


def test_formats_encodings_and_nested_objects_are_told_as_far_as_types_go() -> None:
    line = {"type": "object", "properties": {"slug": {"type": "string"}, "copies": {"type": "integer"}}}
    properties = {
        "mail": {"type": "string", "format": "email"},
        "at": {"type": "string", "format": "time"},
        "photo": {"type": "string", "contentEncoding": "base64"},
        "address": {"type": "object", "properties": {"street": {"type": "string"}}},
        "lines": {"type": "array", "items": line},
        "free": {"type": "object"},
    }
    document = _document(make_catalog(make_function_action("order", {"type": "object", "properties": properties})))
    inputs = document["actions"][0]["inputs"]
    assert {name: one["type"] for name, one in inputs.items()} == {
        "mail": "string",
        "at": "ISO8601",
        "photo": "string",
        "address": "object[order_address]",
        "lines": "array[order_lines]",
        "free": "object",
    }
    assert (inputs["mail"]["format"], inputs["photo"]["x-encoding"]) == ("email", "base64")
    assert document["entities"]["order_lines"] == {"fields": {"slug": "string", "copies": "integer"}}
