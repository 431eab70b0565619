"""Every sample document of the texts of AWAS, agent.json and WoA, made of declarations and compared member by member.

What differs is decided, and listed with its reason.
"""

import json
from collections.abc import Iterator
from datetime import date, datetime
from typing import Annotated, Any, Literal

import pytest
from fastapi import FastAPI
from pydantic import BaseModel, Field, WithJsonSchema

from awp_publish import About, AgentJson, AgentPublisher, ApiKey, BearerToken, Limits, OAuth, Site
from awp_publish.model import Paths
from tests.client import TestClient
from tests.installed import installed

from .conftest import shared_file

AWAS_TEXT, AGENT_TEXT, WOA_TEXT = "specs/awas-1.0.txt", "specs/agent-json-0.1.txt", "specs/woa-draft-00.txt"
ABSENT = "(absent)"

OURS = "an id is snake_case, which is all that AWAS 1.1, MCP and actions.json take"


def samples(text: str, *names: str) -> list[Any]:
    """The JSON objects in a text that have these members."""
    words, found, decoder = shared_file(text).read_text("utf-8"), [], json.JSONDecoder()
    at = words.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(words, at)
        except ValueError:
            end = at + 1
        else:
            found += [value] if all(name in value for name in names) else []
        at = words.find("{", end)
    assert found, names
    return found


def differences(sample: object, published: object, place: str = "") -> Iterator[tuple[str, object, object]]:
    """Where a published value does not say what a sample says: place, the sample's word and ours."""
    if isinstance(sample, dict) and isinstance(published, dict):
        for name, value in sample.items():
            yield from differences(value, published.get(name, ABSENT), f"{place}/{name}")
    elif isinstance(sample, list) and isinstance(published, list) and _are_objects(sample, published):
        for index, (one, other) in enumerate(zip(sample, published, strict=True)):
            yield from differences(one, other, f"{place}/{index}")
    elif sample != published or isinstance(sample, bool) != isinstance(published, bool):
        yield place, sample, published


def _are_objects(sample: list[object], published: list[object]) -> bool:
    return len(sample) == len(published) and all(isinstance(item, dict) for item in (*sample, *published))


def publish(site: Site, app: FastAPI, path: str) -> Any:
    app.add_middleware(AgentPublisher, site=site)
    with TestClient(app, base_url="https://example.com") as client:
        answer = client.get(path)
    assert answer.status_code == 200
    return answer.json()


# --- AWAS 1.0 --------------------------------------------------------------------------------------------------------


def test_the_basic_structure_of_awas() -> None:
    (sample,) = (sample for sample in samples(AWAS_TEXT, "version", "actions") if sample["name"] == "My Website")
    site = Site("My Website", "A brief description of your site", url="https://example.com")
    assert list(differences(sample, publish(site, FastAPI(), "/.well-known/ai-actions.json"))) == []


def test_the_top_level_properties_of_awas() -> None:
    (sample,) = (sample for sample in samples(AWAS_TEXT, "version", "actions") if sample["name"] == "Example Site")
    site = Site(
        "Example Site",
        "Human-readable site description",
        url="https://example.com",
        about=About(email="support@example.com", contact="/contact"),
        oauth=OAuth(authorization_servers=("https://sso.example.com",)),
        authenticate=[BearerToken({"token-of-nobody-16": "nobody"}), ApiKey({"key-of-nobody-1234": "nobody"})],
        limits=Limits(rate_limit="100/hour by ip"),
    )
    published = publish(site, FastAPI(), "/.well-known/ai-actions.json")
    assert list(differences(sample, published)) == [
        # 1.1 has an enumeration of its own: session, api_key, oauth, jwt, bearer.
        ("/authentication/methods", ["oauth2", "api-key"], ["bearer", "api_key"]),
    ]


@pytest.mark.needs("plain")
def test_the_complete_example_of_awas() -> None:
    (sample,) = (sample for sample in samples(AWAS_TEXT, "version", "actions") if sample["name"] == "BookStore API")
    app, site = (
        FastAPI(),
        Site(
            "BookStore API",
            "Online bookstore with search and purchase capabilities",
            url="https://bookstore.example.com",
            about=About(email="api@bookstore.example.com"),
            limits=Limits(rate_limit="100/hour"),
        ),
    )
    properties = {"title": ".book-title", "author": ".book-author", "price": ".book-price", "isbn": "[data-isbn]"}
    inputs = {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Search query"},
            "sort": {"enum": ["relevance", "price-low", "price-high", "newest"], "default": "relevance"},
        },
        "required": ["query"],
    }

    @app.get("/search")
    @site.action(
        "search_books",
        name="Search Books",
        description="Search for books by title, author, or ISBN",
        inputs=inputs,
        awas={
            "selectors": {"query": "input[name='q']", "sort": "select[name='sort']"},
            "result": {
                "type": "list",
                "selector": ".book-results",
                "itemSelector": ".book-item",
                "properties": properties,
            },
        },
    )
    def search(query: str, sort: str = "relevance") -> list[str]:
        return []

    found = list(differences(sample, publish(site, app, "/.well-known/ai-actions.json")))
    assert ignoring_address(found) == [("/actions/0/id", "search-books", "search_books")], OURS


def ignoring_address(found: list[tuple[str, object, object]]) -> list[tuple[str, object, object]]:
    """Without the address of an action, which is the plain door's where a gate of ours has to stand in front."""
    places = ("/path", "/endpoint")
    return [
        finding
        for finding in found
        if not (finding[0].endswith(places) and str(finding[2]).startswith(("/agents/", "/api/actions/")))
    ]


@pytest.mark.needs("plain")
def test_the_action_parameter_and_result_of_awas() -> None:
    (action,) = samples(AWAS_TEXT, "id", "parameters", "result")
    (email,) = samples(AWAS_TEXT, "name", "validation", "example")
    (result,) = samples(AWAS_TEXT, "selector", "pagination")
    (extended,) = samples(AWAS_TEXT, "x-internal-id")
    app, site = FastAPI(), Site("Shop", "Sells things.", url="https://example.com")
    categories = ["electronics", "clothing", "books"]
    rules = email["validation"]
    inputs = {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Search query text"},
            "category": {"type": "string", "enum": categories},
        },
        "required": ["query"],
    }
    address = {
        "type": "string",
        "format": "email",
        "description": "User email address",
        "pattern": rules["pattern"],
        "minLength": rules["minLength"],
        "maxLength": rules["maxLength"],
        "examples": ["user@example.com"],
    }

    @app.get("/search")
    @site.action(
        "search_products",
        name="Search Products",
        description="Search our product catalog",
        inputs=inputs,
        rate_limit="20/minute",
        awas={
            "selectors": {
                "query": "input[data-awas-param='query']",
                "category": "select[data-awas-param='category']",
            },
            "result": {"type": "list", "selector": ".product-list", "itemSelector": ".product-item"},
        },
    )
    def search(query: str, category: str = "books") -> list[str]:
        return []

    @app.get("/subscribe")
    @site.action(
        "custom_action",
        name="Custom Action",
        description="Subscribe.",
        inputs={"type": "object", "properties": {"email": address}, "required": ["email"]},
        extensions={"x-internal-id": "legacy-123", "x-analytics-category": "user-actions"},
        awas={
            "selectors": {"email": "input[name='email']"},
            "result": result,
        },
    )
    def subscribe(email: str) -> None:
        return None

    searching, subscribing = publish(site, app, "/.well-known/ai-actions.json")["actions"]
    found = ignoring_address(list(differences(action, searching)))
    assert found == [("/id", "search-products", "search_products")], OURS
    # An absent default is an absent member, as everywhere.
    assert list(differences(email, subscribing["parameters"][0])) == [("/default", None, ABSENT)]
    assert list(differences(result, subscribing["result"])) == []
    assert list(differences(extended, subscribing)) == [("/id", "custom-action", "custom_action")], OURS


def test_the_bridge_manifests_of_awas() -> None:
    name = "AWAS - AI-readable Web Actions Standard"
    mcp, a2a = samples(AWAS_TEXT, "$schema", "endpoints")
    app, site = (
        FastAPI(),
        Site(
            name, "Actions.", url="https://example.com", about=About(version="1.0.0"), plugins=installed("mcp", "a2a")
        ),
    )

    @app.get("/search")
    @site.action("search")
    def search() -> str:
        """Search."""
        return ""

    @site.prompt("ask")
    def ask() -> str:
        """Ask."""
        return "?"

    app.add_middleware(AgentPublisher, site=site)
    with TestClient(app, base_url="https://example.com") as client:
        ours = {path: client.get(f"/.well-known/{path}-manifest.json").json() for path in ("mcp", "a2a")}
    assert list(differences(mcp, ours["mcp"])) == [
        # The address belongs to nobody, and clients MUST validate referenced schemas.
        ("/$schema", "https://modelcontextprotocol.io/schema/manifest.json", ABSENT),
        ("/integration/version", "1.0", ours["mcp"]["integration"]["version"]),  # the protocol's own revision
    ]
    assert list(differences(a2a, ours["a2a"])) == [
        ("/$schema", "https://a2a.dev/schema/manifest.json", ABSENT),
        ("/capabilities/workflows", True, False),  # this site has none
        ("/capabilities/state_management", True, ABSENT),  # nothing here tells what that is
        # What this site speaks, and it has no GraphQL.
        ("/interoperability/compatible_with", ["MCP", "OpenAPI", "GraphQL"], ["MCP", "WoA", "OpenAPI"]),
    ]


# --- agent.json ------------------------------------------------------------------------------------------------------

Airport = Annotated[str, WithJsonSchema({"type": "string", "x-type": "airport_code"})]
Cabin = Literal["economy", "business", "first"]


class Flight(BaseModel):
    flight_number: str
    origin: Airport
    destination: Airport
    departure_time: datetime
    price_usd: float
    cabin_class: Cabin


class Found(BaseModel):
    flights: list[Flight]
    search_token: str


class Wish(BaseModel):
    origin: Airport
    destination: Airport
    date: date
    cabin_class: Cabin = "economy"


def part(name: str) -> Any:
    """The value of a member that the text shows by itself."""
    text = shared_file(AGENT_TEXT).read_text("utf-8")
    return json.JSONDecoder().raw_decode(text, text.index(f'"{name}": ', text.index("5. Top-Level")) + len(name) + 4)[0]


@pytest.mark.needs("plain")
def test_every_part_that_agent_json_shows() -> None:
    names = ("capabilities", "auth", "entities", "actions", "errors", "dependencies", "agent_hints", "agent_status")
    sample = {name: part(name) for name in names}
    sample |= {"source": "synthetic", "generated_by": "synthetic-agent-json-generator", "confidence": 0.87}
    sample |= {"last_verified": "2026-03-15T10:00:00Z"}
    own = {name: sample[name] for name in ("source", "generated_by", "confidence", "last_verified")}
    app, site = (
        FastAPI(),
        Site(
            "Flights",
            "Search and book flights.",
            url="https://example.com",
            authenticate=BearerToken({"token-of-nobody-16": "nobody"}),
            oauth=OAuth(token_expiry="24h", refresh_endpoint="/api/auth/refresh"),
            about=About(
                hints=sample["agent_hints"],
                # What nothing here tells, a site may tell itself (sections 6 and 15).
                extensions={"agent_json": {"capabilities": {"batch_actions": True, "webhooks": True}, **own}},
            ),
            errors={code: error["recovery"] for code, error in sample["errors"].items()},
            paths=Paths(root="/api"),
            plugins=[AgentJson(entities={"flight": Flight})],
        ),
    )

    @app.post("/api/flights/search")
    @site.action("search_flights", rate_limit="30/minute", idempotency="24h")
    def search_flights(wish: Wish, cursor: str = "") -> Found:
        """Search available flights between two airports"""
        return Found(flights=[], search_token="t")

    for action, needed in (
        ("book_flight", "search_flights"),
        ("check_in", "book_flight"),
        ("select_seat", "book_flight"),
    ):
        path = f"/api/{action}"
        app.add_api_route(path, lambda: None, methods=["POST"], name=action)
        site.declare(
            action,
            method="POST",
            path=path,
            description=action,
            depends_on=[needed],
            auth_required=action != "check_in",
        )
    site.set_status(degraded_actions=["book_flight"])

    @site.status("check_in")
    def works() -> bool:
        return True

    published = publish(site, app, "/agent.json")
    published["actions"] = published["actions"][:1]
    found = list(differences(sample, published))
    assert ignoring_address(found) == [
        ("/capabilities/streaming", False, ABSENT),  # nobody knows
        ("/capabilities/pagination", "cursor", ABSENT),  # only what reads is turned, and this search is a POST
        # The lists are those of the actions, which the text names otherwise in every section.
        ("/auth/required_for", ["book", "manage_trip"], ["book_flight", "select_seat"]),
        ("/auth/optional_for", ["search"], ["search_flights", "check_in"]),
    ]


# --- WoA -------------------------------------------------------------------------------------------------------------


class Summary(BaseModel):
    summary: str = Field(description="The generated summary.")


def test_the_documents_of_the_appendices_of_woa() -> None:
    with_authz, complete = samples(WOA_TEXT, "woa_version")
    site = Site("Agents", "Summarises.", url="https://api.example.com")

    @site.agent(
        "summarizer",
        name="Document Summarizer",
        description="Summarizes English text.",
        version="1.0.0",
        capabilities=["https://example.com/capability/summarization"],
        metadata={
            "authz": with_authz["agents"][0]["authz"],
            "operations": {"default": "Default summarization operation."},
        },
    )
    async def summarizer(
        text: Annotated[str, Field(description="Input document text in English.")],
        max_words: Annotated[int, Field(ge=10, le=500, description="Maximum number of words in the summary.")] = 100,
    ) -> Summary:
        return Summary(summary=text[:max_words])

    published = publish(site, FastAPI(), "/.well-known/woa.json")
    elided = [
        ("/agents/0/inputs/...", "JSON Schema elided", ABSENT),
        ("/agents/0/outputs/...", "JSON Schema elided", ABSENT),
    ]
    assert list(differences(with_authz, published)) == elided
    assert list(differences(complete, published)) == []
