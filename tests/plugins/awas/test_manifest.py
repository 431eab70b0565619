"""AWAS 1.0 and 1.1 in one manifest."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from urllib.parse import urljoin

import jsonschema_rs
import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from awp_publish.model import Authentication, Catalog, Idempotency, OpenApi, RateLimit, RouteCredential
from awp_publish.plugins.awas.manifest import PROTOCOL
from awp_publish.plugins.awas.schemas import SCHEMAS_PROTOCOL
from tests.documents.catalogs import BOOKSHOP, make_action, make_catalog, make_route_action, read
from tests.documents.conftest import Check

MANIFEST, ALIAS, SCHEMA = PROTOCOL.documents


def _manifest(catalog: Catalog) -> Any:
    return read(MANIFEST, catalog)


def _action(catalog: Catalog, index: int = 0) -> Any:
    return _manifest(catalog)["actions"][index]


# --- Serving ---------------------------------------------------------------------------------------------------------


def test_the_manifest_is_served_as_the_text_says() -> None:
    assert [document.path for document in PROTOCOL.documents] == [
        "/.well-known/ai-actions.json",
        "/.well-known/awas.json",
        "/schema/awas-schema.json",
    ]
    for document in PROTOCOL.documents:
        assert document.media_type == "application/json; charset=utf-8"
        assert document.max_age == 3600
        assert ("AWAS-Version", "1.1") in document.headers
    assert MANIFEST.rel == "ai-actions"


def test_the_alias_is_the_same_document() -> None:
    assert ALIAS.render is MANIFEST.render


def test_the_manifest_is_valid_against_the_schema_it_refers_to() -> None:
    for catalog in (BOOKSHOP, make_catalog()):
        jsonschema_rs.validate(read(SCHEMA, catalog), _manifest(catalog))


# --- Both versions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("catalog", [make_catalog(), make_catalog(make_action()), BOOKSHOP])
def test_the_published_schema_of_1_1_accepts_it(catalog: Catalog, matches_awas: Check) -> None:
    matches_awas(_manifest(catalog))


# --- The site --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("updated", "written"),
    [
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02T03:04:05Z"),
        (datetime(2026, 1, 2, 3, 4, 5, 678), "2026-01-02T03:04:05Z"),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=2))), "2026-01-02T01:04:05Z"),
    ],
)
def test_the_last_update_is_a_date_time_in_utc(updated: datetime, written: str) -> None:
    assert _manifest(make_catalog(site={"updated": updated}))["lastUpdated"] == written


@pytest.mark.parametrize(
    ("limit", "rates"),
    [
        (RateLimit(10), {"requests_per_minute": 10}),
        (RateLimit(10, 60, "s"), {"requests_per_minute": 10}),
        (RateLimit(10, unit="h"), {"requests_per_hour": 10}),
        (RateLimit(10, unit="d"), None),
    ],
)
def test_the_rates_of_1_1_are_told_for_minutes_and_hours_only(limit: RateLimit, rates: object) -> None:
    manifest = _manifest(make_catalog(site={"rate_limit": limit}))
    assert manifest.get("rate_limits") == rates
    assert manifest["rateLimit"] == {"requests": 10, "window": limit.window}


def test_a_site_below_a_path_is_reached_however_a_client_resolves() -> None:
    catalog = make_catalog(
        make_route_action("search", {"q": {"type": "string"}}, preview_url="/preview", operation_id="search_get"),
        make_action("elsewhere", preview_url="https://other.example/preview"),
        url="https://example.com:8443/shop",
        openapi=OpenApi("/openapi.json", "3.1.0"),
        site={"authentication": Authentication("bearer", endpoints={"login": "/login", "sso": "https://sso.example"})},
    )
    manifest = _manifest(catalog)
    action, elsewhere = manifest["actions"]
    assert manifest["baseUrl"] + action["path"] == "https://example.com:8443/shop/search"
    assert action["endpoint"] == "/shop/search"
    assert action["previewUrl"] == "/shop/preview"
    assert elsewhere["previewUrl"] == "https://other.example/preview"
    assert action["openapi"]["documentUrl"] == "/shop/openapi.json"
    assert manifest["authentication"]["endpoints"] == {"login": "/shop/login", "sso": "https://sso.example"}
    assert manifest["$schema"] == "https://example.com:8443/shop/schema/awas-schema.json"


# --- Authentication --------------------------------------------------------------------------------------------------


def test_authentication_is_required_when_every_action_requires_it() -> None:
    catalog = make_catalog(make_action(asker="site"))
    assert _manifest(catalog)["authentication"] == {"required": True, "optional_for": []}
    assert _action(catalog)["authentication"] == {"required": True}


def test_methods_are_spelled_as_1_1_does_and_others_are_marked(matches_awas: Check) -> None:
    authentication = _manifest(BOOKSHOP)["authentication"]
    assert authentication["methods"] == ["session", "oauth"]
    assert authentication["x-methods"] == ["mtls"]
    matches_awas(_manifest(BOOKSHOP))


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        (("session", "api_key", "oauth", "jwt", "bearer"), ["session", "api_key", "oauth", "jwt", "bearer"]),
        (("oauth2", "api-key", "oauth"), ["oauth", "api_key"]),
    ],
)
def test_methods_of_either_version_are_known(declared: tuple[str, ...], told: list[str]) -> None:
    authentication = _manifest(make_catalog(site={"authentication": Authentication("bearer", declared)}))[
        "authentication"
    ]
    assert authentication["methods"] == told


@pytest.mark.parametrize(
    ("kind", "methods"), [("oauth2", ["oauth"]), ("api_key", ["api_key"]), ("none", None), (None, None)]
)
def test_methods_follow_from_the_type_where_none_are_named(kind: Any, methods: object) -> None:
    manifest = _manifest(make_catalog(site={"authentication": Authentication(kind)}))
    assert manifest["authentication"].get("methods") == methods
    assert "x-methods" not in manifest["authentication"]


def test_an_action_whose_route_knows_callers_in_its_own_way_names_that() -> None:
    own = make_action(
        asker="scheme",
        route_credentials=(RouteCredential("header", "x-api-key"), RouteCredential("cookie", "session")),
    )
    answer = _action(make_catalog(own, site={"authentication": Authentication("bearer")}))["authentication"]
    assert answer == {"required": True, "methods": ["api_key", "session"]}


def test_the_manifest_says_what_shows_who_calls_and_where_that_is_had() -> None:
    declared = Authentication(
        "bearer",
        ("session", "bearer", "api_key", "mtls"),
        endpoints={"login": "/sign-in"},
        api_key_header="X-Key",
        session_cookie="sid",
    )
    sign_in = make_route_action("sign_in", {}, method="POST", path="/sign-in", effect="write")
    answer = _manifest(make_catalog(sign_in, site={"authentication": declared}))["authentication"]
    assert answer["x-credentials"] == [
        {"method": "session", "in": "cookie", "name": "sid", "sign_in": "sign_in", "or_header": "AWP-Session"},
        {"method": "bearer", "in": "header", "name": "Authorization", "scheme": "Bearer"},
        {"method": "api_key", "in": "header", "name": "X-Key"},
    ]


def test_members_of_a_site_are_added_and_replace_nothing() -> None:
    own = {
        "awas": {"name": "Other", "payment": {"scheme": "x402"}, "security": {"sameSite": "Lax"}},
        "woa": {"authz": {}},
    }
    catalog = make_catalog(
        make_action(asker="site", extensions={"awas": {"authentication": {"methods": ["mtls"], "required": False}}}),
        site={"extensions": own, "allowed_origins": ("https://books.example",)},
    )
    manifest = _manifest(catalog)
    assert (manifest["name"], manifest["payment"]) == ("Bookshop", {"scheme": "x402"})
    assert manifest["security"] == {
        "csrfRequired": False,
        "allowedOrigins": ["https://books.example"],
        "sameSite": "Lax",
    }
    assert "authz" not in manifest
    assert "x-woa" not in manifest
    assert manifest["actions"][0]["authentication"] == {"required": True, "methods": ["mtls"]}


# --- An action -------------------------------------------------------------------------------------------------------


def test_preconditions_name_the_actions_that_come_first() -> None:
    action = make_action("pay", preconditions=("The basket is not empty.",), depends_on=("sign_in", "fill_basket"))
    assert _action(make_catalog(action))["preconditions"] == [
        "The basket is not empty.",
        "sign_in has been called successfully.",
        "fill_basket has been called successfully.",
    ]


def test_empty_facts_are_absent_too() -> None:
    result = {"type": "single", "selector": ".book"}
    catalog = make_catalog(make_action(result=result, page="/book"))
    assert _action(catalog)["result"] == {"type": "single", "selector": ".book"}
    assert "security" not in _manifest(catalog)


def test_an_action_tells_what_it_answers() -> None:
    search = _action(replace(BOOKSHOP, documents=frozenset()))
    assert search["outputSchema"]["examples"] == [{"books": [], "total": 0}]
    assert search["outputSchema"]["required"] == ["books", "total"]


def test_an_action_refers_to_its_openapi_operation_if_both_are_known() -> None:
    described = OpenApi("/openapi.json", "3.1.0")
    known = make_catalog(make_action(operation_id="ping"), openapi=described)
    assert _action(known)["openapi"] == {"documentUrl": "/openapi.json", "operationId": "ping"}
    assert "openapi" not in _action(BOOKSHOP)  # its calls are taken at an address of ours
    assert "openapi" not in _action(make_catalog(make_action(), openapi=described))
    assert "openapi" not in _action(make_catalog(make_action(operation_id="ping")))
    job = make_action(operation_id="ping", execution="async")  # what OpenAPI describes is another request
    assert "openapi" not in _action(make_catalog(job, openapi=OpenApi("/openapi.json", "3.1.0")))


def test_tags_and_extensions_are_marked_as_such() -> None:
    assert _action(BOOKSHOP)["x-tags"] == ["books", "reading"]
    assert _action(BOOKSHOP)["x-team"] == "catalogue"
    assert _action(make_catalog(make_action(extensions={"team": 1})))["x-team"] == 1


def test_the_page_where_selectors_hold_is_named_beside_the_address_that_is_called() -> None:
    form = make_action("order", effect="write", rate_limit=RateLimit(5), selector="form", page="/checkout")
    assert _action(make_catalog(form, url="https://a.example/shop"))["x-page"] == "/shop/checkout"
    assert "x-page" not in _action(make_catalog(replace(form, selector=None)))
    assert "x-page" not in _action(make_catalog(make_action(selector="form", page="/ping")))


# --- Conformance -----------------------------------------------------------------------------------------------------

SECURITY = {"allowed_origins": ("https://books.example",)}
WRITE: dict[str, Any] = {"method": "POST", "effect": "write"}
TRANSACTIONAL: dict[str, Any] = {
    "scopes": ("write",),
    "preconditions": ("Signed in.",),
    "rate_limit": RateLimit(10),
    "outputs": {"type": "object"},
}


def _level(catalog: Catalog) -> object:
    return _manifest(catalog).get("conformanceLevel")


def test_a_site_that_only_reads_is_level_1() -> None:
    assert _level(make_catalog(make_action())) == "L1"


def test_a_site_without_actions_has_no_level() -> None:
    assert _level(make_catalog()) is None


def test_reading_by_post_is_no_level() -> None:
    catalog = make_catalog(make_route_action("find", {}, method="POST"))
    assert _level(catalog) is None
    assert "conformanceLevel" not in _action(catalog)


@pytest.mark.parametrize("preview", [{"dry_run": True}, {"preview_url": "/preview"}])
def test_writing_with_a_preview_and_documented_csrf_is_level_2(preview: Any) -> None:
    write = make_route_action("order", {}, **WRITE, **preview)
    assert _level(make_catalog(make_action(), write, site=SECURITY)) == "L2"
    assert _level(make_catalog(make_action(), write)) is None
    assert [
        action["conformanceLevel"] for action in _manifest(make_catalog(make_action(), write, site=SECURITY))["actions"]
    ] == [
        "L1",
        "L2",
    ]


def test_writing_without_a_preview_is_no_level() -> None:
    catalog = make_catalog(make_action(), make_route_action("order", {}, **WRITE), site=SECURITY)
    assert _level(catalog) is None


def test_level_3_asks_it_all_of_every_action() -> None:
    read_books = make_action("read_books", **TRANSACTIONAL)
    write: dict[str, Any] = {**WRITE, **TRANSACTIONAL, "dry_run": True, "idempotency": Idempotency()}
    assert _level(make_catalog(read_books, make_route_action("order", {}, **write), site=SECURITY)) == "L3"
    for missing in ("scopes", "preconditions", "rate_limit", "idempotency", "outputs"):
        weaker = make_route_action("order", {}, **{name: value for name, value in write.items() if name != missing})
        assert _level(make_catalog(read_books, weaker, site=SECURITY)) == "L2", missing
    assert _level(make_catalog(read_books)) == "L1"


def test_longer_schemas_stand_in_a_document_of_their_own_where_any_reader_of_schemas_finds_them() -> None:
    document = read(SCHEMAS_PROTOCOL.documents[0], BOOKSHOP)
    address = "https://books.example/agents/schemas.json"
    assert document["$id"] == address
    registry: Registry[Any] = Registry().with_resource(address, Resource.from_contents(document))
    whole = _manifest(replace(BOOKSHOP, documents=frozenset()))["actions"]
    referred = 0
    for action, alone in zip(_manifest(BOOKSHOP)["actions"], whole, strict=True):
        for member in ("inputSchema", "outputSchema"):
            schema = action.get(member, {})
            if "$ref" not in schema:
                assert schema == alone.get(member, {})
                continue
            referred += 1
            path, _, name = schema["$ref"].partition("#/$defs/")
            assert path == "/agents/schemas.json"
            assert {**document["$defs"][name]} == alone[member] | {
                key: value for key, value in document["$defs"][name].items() if key == "$id"
            }
            # Every reference inside leads somewhere, wherever the schema is read.
            absolute = {"$ref": "https://books.example" + schema["$ref"]}
            list(Draft202012Validator(absolute, registry=registry).iter_errors({"books": [{"title": 1}], "x": [1, {}]}))
    assert referred


def test_references_inside_a_schema_are_its_own() -> None:
    word = {"type": "string", "description": "What stands there. " * 5}
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "word": word}}
    tree = {"$ref": "#/$defs/Node", "$defs": {"Node": node}}
    catalog = make_catalog(make_action(outputs=tree), documents=BOOKSHOP.documents)
    (action,) = _manifest(catalog)["actions"]
    document = read(SCHEMAS_PROTOCOL.documents[0], catalog)
    registry: Registry[Any] = Registry().with_resource(document["$id"], Resource.from_contents(document))
    absolute = {"$ref": urljoin(document["$id"], action["outputSchema"]["$ref"])}
    validator = Draft202012Validator(absolute, registry=registry)
    assert validator.is_valid({"next": {"next": {"word": "a"}}})
    assert not validator.is_valid({"next": {"next": {"word": 1}}})
