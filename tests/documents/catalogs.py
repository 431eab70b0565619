"""Catalogs for tests: the smallest, and one in which every fact is told."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from awp_publish.documents.protocol import Document
from awp_publish.model import (
    Action,
    Agent,
    Authentication,
    Catalog,
    Contact,
    DoorFacts,
    Idempotency,
    JsonObject,
    Location,
    OpenApi,
    Page,
    Parameter,
    Paths,
    RateLimit,
    SiteFacts,
    Status,
    Target,
    Workflow,
)
from tests.documents.known import ALL, PROBLEMS

URL: Final = "https://books.example"
WOA_DOOR: Final = DoorFacts("woa", "1", "/agents/{agent_id}/invoke")
ALL_PATHS: Final = frozenset(document.path for protocol in ALL for document in protocol.documents)
NO_INPUTS: Final[JsonObject] = {"type": "object", "properties": {}}

_SMALLEST: Final = Action(
    id="ping",
    name="Ping",
    description="Say hello.",
    inputs=NO_INPUTS,
    outputs={},
    agent_id="ping",
    target=Target("GET", "/ping"),
    type="data_retrieval",
    effect="read",
)


def make_action(action_id: str = "ping", **changes: Any) -> Action:
    """A reading action without inputs, or what `changes` make of it."""
    return replace(_SMALLEST, **({"id": action_id, "agent_id": action_id} | changes))


def make_route_action(
    action_id: str, properties: Mapping[str, object], parameters: tuple[Parameter, ...] = (), **changes: Any
) -> Action:
    """An action whose inputs are `properties`, sent where `parameters` say: in the query if they do not."""
    method = changes.pop("method", "GET")
    path = changes.pop("path", f"/{action_id}")
    content_type = changes.pop("content_type", None)
    inputs = {"type": "object", "properties": properties} | changes.pop("schema", {})
    location: Location = "query" if method == "GET" else "json"
    sent = parameters or tuple(Parameter(name, location, name) for name in properties)
    return make_action(action_id, inputs=inputs, target=Target(method, path, sent, content_type), **changes)


def make_function_action(action_id: str, inputs: JsonObject, **changes: Any) -> Action:
    """An action without a route."""
    return make_action(action_id, inputs=inputs, target=None, **({"effect": "write"} | changes))


def make_catalog(*actions: Action, site: Mapping[str, Any] | None = None, **changes: Any) -> Catalog:
    """A catalog of these actions, each its own agent, with the WoA door open."""
    facts = SiteFacts(**({"name": "Bookshop", "description": "Find and order books."} | dict(site or {})))
    values: dict[str, Any] = {
        "url": URL,
        "doors": (WOA_DOOR,),
        "agents": _agents(actions),
        "documents": ALL_PATHS,
        "problems": PROBLEMS,
    } | changes
    return Catalog(site=facts, actions=actions, **values)


def _agents(actions: tuple[Action, ...]) -> tuple[Agent, ...]:
    grouped: dict[str, dict[str, Action]] = {}
    for action in actions:
        grouped.setdefault(action.agent_id, {})[action.operation] = action
    return tuple(
        Agent(
            id=agent_id,
            name=first.name,
            description=first.description,
            operations={name: action.id for name, action in operations.items()},
        )
        for agent_id, operations in grouped.items()
        for first in [next(iter(operations.values()))]
    )


def read(document: Document, catalog: Catalog) -> Any:
    """The document of a catalog, parsed."""
    return orjson.loads(document.render(catalog))


# --- The bookshop, where every fact is told --------------------------------------------------------------------------

BOOK: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "isbn": {"type": "string"},
        "price": {"type": "number"},
        "published": {"type": "string", "format": "date"},
        "cover": {"type": "string", "format": "uri"},
        "binding": {"enum": ["paper", "cloth"]},
        "author": {"$ref": "#/$defs/Author"},
        "sequels": {"type": "array", "items": {"$ref": "#/$defs/Book"}},
    },
    "required": ["isbn", "price"],
}
AUTHOR: Final[JsonObject] = {"type": "object", "properties": {"name": {"type": "string"}, "alive": {"type": "boolean"}}}
MODELS: Final[JsonObject] = {"Book": BOOK, "Author": AUTHOR}
SHELF: Final[JsonObject] = {
    "type": "object",
    "properties": {"books": {"type": "array", "items": {"$ref": "#/$defs/Book"}}},
    "$defs": MODELS,
}

SEARCH: Final = make_route_action(
    "search_books",
    {
        "q": {"type": "string", "minLength": 1, "maxLength": 80, "pattern": r"\S", "description": "What to look for."},
        "sort": {"$ref": "#/$defs/Sort", "default": "relevance"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 20, "examples": [10]},
        "since": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}], "default": None},
    },
    schema={"required": ["q"], "$defs": {"Sort": {"type": "string", "enum": ["relevance", "price"]}}},
    path="/search",
    name="Search books",
    description="Search books by title or author.",
    outputs={
        "type": "object",
        "properties": {
            "books": {"type": "array", "items": {"$ref": "#/$defs/Book"}},
            "best": {"anyOf": [{"$ref": "#/$defs/Book"}, {"type": "null"}]},
            "total": {"type": "integer"},
        },
        "required": ["books", "total"],
        "examples": [{"books": [], "total": 0}],
        "$defs": MODELS,
    },
    type="search",
    tags=("books", "reading"),
    examples=({"q": "Moby Dick", "limit": 5}, {"q": "Emma"}),
    page="/search",
    selector="form[role=search]",
    selectors={"q": "input[name=q]", "sort": "select[name=sort]"},
    result={
        "type": "list",
        "selector": ".books",
        "itemSelector": ".book",
        "properties": {"title": ".title"},
        "pagination": {"selector": ".pages", "nextButton": "a[rel=next]", "currentPage": ".pages strong"},
    },
    scopes=("books:read",),
    rate_limit=RateLimit(30, scope="ip"),
    preconditions=("The shop is open.",),
    operation_id="search_search_get",
    extensions={"x-team": "catalogue"},
)

ORDER: Final = make_route_action(
    "order_book",
    {
        "isbn": {"type": "string"},
        "copies": {"type": "integer", "exclusiveMinimum": 0},
        "api_version": {"const": "2"},
    },
    (
        Parameter("isbn", "path", "isbn"),
        Parameter("copies", "json", "copies"),
        Parameter("api_version", "header", "X-Api-Version"),
    ),
    schema={"required": ["copies"]},
    method="POST",
    path="/books/{isbn}/orders",
    name="Order a book",
    description="Order copies of a book.",
    outputs={"type": "object", "properties": {"number": {"type": "string"}}, "required": ["number"]},
    type="state_change",
    effect="irreversible",
    asker="site",
    scopes=("orders:write",),
    rate_limit=RateLimit(5, unit="h"),
    idempotency=Idempotency("48h"),
    needs_confirmation=True,
    depends_on=("search_books",),
    preview_url="/orders/preview",
    dry_run=True,
    success_status=201,
)

UNGUARDED_ORDER: Final = replace(
    ORDER, asker=None, scopes=(), rate_limit=None, idempotency=None, needs_confirmation=False
)
"""Published with its own route."""

SUMMARIZE: Final = make_function_action(
    "summarize",
    {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "What to summarise."},
            "max_words": {"type": "integer", "default": 100},
        },
        "required": ["text"],
    },
    name="Summarize",
    description="Summarise English text.",
    outputs={"type": "object", "properties": {"summary": {"type": "string"}}, "required": ["summary"]},
    type="custom",
    idempotency=Idempotency(key_field="key"),
    examples=({"text": "Call me Ishmael."},),
)

BOOKSHOP: Final = make_catalog(
    SEARCH,
    ORDER,
    SUMMARIZE,
    site={
        "version": "2.1",
        "contact": Contact("help@books.example", "https://books.example/help"),
        "authentication": Authentication(
            "oauth2", ("session", "oauth2", "mtls"), "24h", "/auth/refresh", {"login": "/auth/login"}
        ),
        "rate_limit": RateLimit(600, unit="h", scope="user"),
        "entities": {"receipt": {"number": "string", "paid": "float"}},
        "entity_schemas": {"shelf": SHELF},
        "errors": {"SOLD_OUT": "Call search_books for another edition.", "INVALID_INPUT": "Read errors."},
        "hints": {"prices": "Prices change at midnight UTC."},
        "allowed_origins": ("https://books.example",),
        "workflows": (Workflow("buy", "Buy a book", ("search_books", "order_book"), "From wish to order."),),
        "documentation": "/help",
        "license": "MIT",
        "updated": datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC),
        "extensions": {"x-region": "EU"},
    },
    status=Status(True, frozenset({"summarize", "order_book"}), "/agents/status"),
    openapi=OpenApi("/openapi.json", "3.1.0"),
    doors=(
        WOA_DOOR,
        DoorFacts("mcp", "2025-11-25", "/mcp"),
        DoorFacts("a2a", "1.0", "/a2a"),
        DoorFacts("awp", "1", "/awp"),
    ),
)


def _text(name: str) -> JsonObject:
    return {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}


def _operations(*names: str, **changes: Any) -> tuple[Action, ...]:
    return tuple(
        make_function_action(f"{name}_text", _text(name), agent_id="editor", operation=name, description=f"Do {name}.")
        for name in names
    )


_LINE: Final[JsonObject] = {
    "type": "object",
    "properties": {"title": {"type": "string", "description": "As it is. " * 12}},
}
_BASKET: Final[JsonObject] = {
    "type": "object",
    "description": "What lies in the basket, and what it costs. " * 3,
    "properties": {"lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}}},
    "$defs": {"Line": _LINE},
}
_BASKETS: Final = [make_function_action(name, {"type": "object"}, outputs=_BASKET) for name in ("show", "add")]
_SERVERS: Final = ("https://login.example", "https://sso.example/tenant")
_MCP: Final = DoorFacts("mcp", "2025-11-25", "/ai/mcp")
_A2A: Final = DoorFacts("a2a", "1.0", "/a2a")
_QUEUE: Final = {"broker": "amqps://broker.example"}

_FLOW: Final = {"tokenUrl": "/token", "scopes": {"books": "Read books."}}
_SCHEMES: Final[dict[str, JsonObject]] = {
    "key": {"type": "apiKey", "in": "header", "name": "X-Key", "description": "Ask us for one."},
    "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
    "login": {
        "type": "oauth2",
        "flows": {"authorizationCode": {**_FLOW, "authorizationUrl": "/login"}, "password": _FLOW},
    },
}

CATALOGS: Final[Mapping[str, Catalog]] = {
    "bookshop": BOOKSHOP,
    "nothing": make_catalog(doors=()),
    "ping": make_catalog(make_action(), site={"authentication": Authentication("none")}),
    "below": make_catalog(
        make_action(scopes=("orders:write", "books:read")),
        make_action("pong", scopes=("books:read",), needs_confirmation=True, tags=("games",)),
        url="https://example.com/shop",
        paths=Paths(mcp="/ai/mcp", invoke="/invoke?agent={agent_id}"),
        doors=(WOA_DOOR, _MCP),
        openapi=OpenApi("/openapi.json", "3.1.0"),
        site={
            "authentication": Authentication("oauth2", authorization_servers=_SERVERS, proof_algorithms=("ES256",)),
            "documentation": "https://docs.example/",
        },
    ),
    "a2a": make_catalog(
        make_action(idempotency=Idempotency(), execution="async"),
        doors=(_A2A,),
        site={"authentication": Authentication("api_key", ("api_key",), api_key_header="X-Key")},
    ),
    "tokens": make_catalog(
        make_action(asker="site", scopes=("orders",)),
        doors=(WOA_DOOR, _A2A),
        site={
            "authentication": Authentication(
                "oauth2",
                ("jwt", "session"),
                refresh_endpoint="/refresh",
                endpoints={"token": "/token", "authorize": "https://login.example/authorize"},
                session_cookie="sid",
                scopes={"buy": "order books"},
            ),
            "contact": Contact(email="a@books.example"),
        },
    ),
    "tokens for machines": make_catalog(
        make_action(asker="site"),
        doors=(_A2A,),
        site={"authentication": Authentication("oauth2", endpoints={"token": "/token"})},
    ),
    "tokens of others": make_catalog(
        make_action(asker="site"),
        doors=(_A2A,),
        site={"authentication": Authentication("oauth2", authorization_servers=_SERVERS[1:])},
    ),
    "routes that ask": make_catalog(
        make_action(
            "read",
            asker="scheme",
            security=({"key": ()}, {"login": ("books",), "bearer": ()}),
            security_schemes={**_SCHEMES, "unknown": {"type": "own"}},
        ),
        make_action(
            "write",
            asker="code",
            security=({"key": ()}, {"connect": ("all",)}),
            security_schemes={
                "key": {"type": "apiKey", "in": "cookie", "name": "sid"},
                "connect": {"type": "openIdConnect", "openIdConnectUrl": "/.well-known/openid-configuration"},
            },
        ),
        make_action("nothing", asker="code"),
        doors=(WOA_DOOR, _A2A),
        site={"authentication": Authentication("bearer", ("bearer",))},
    ),
    "editor": make_catalog(*_operations("default", "shorten"), doors=(WOA_DOOR, _MCP)),
    "editor without default": make_catalog(*_operations("shorten", "extend"), url="http://localhost:8000"),
    "own transports": make_catalog(
        make_action(expose=("woa",)),
        site={
            "extensions": {
                "woa": {"transports": {"com.example.queue": _QUEUE, "rest": None}, "authz": {"scheme": "own"}}
            },
            "authentication": Authentication(
                "bearer",
                ("session", "bearer"),
                endpoints={"login": "/login"},
                session_cookie="sid",
                authorization_servers=_SERVERS[:1],
                proof_required=True,
                audiences=("shop",),
                scopes={"buy": "order books"},
            ),
        },
    ),
    "replaced members": make_catalog(
        make_action(),
        site={"extensions": {"woa": {"agents": 1, "transports": {"rest": {"base": "https://elsewhere.example"}}}}},
    ),
    "alike answers": make_catalog(*_BASKETS),
    "pages": make_catalog(
        doors=(DoorFacts("som", "0.1", "/agents/som"),),
        pages=(
            Page("/shelves/{shelf}", "Shelf", choices={"shelf": ("a/b", "c d")}),
            Page("/", "Front [page](/x) \n# of May", "What is new; and more. Here."),
            Page("/orders/{number}", "Yours"),
            *(Page(f"/page-{number}", f"Page {number}") for number in range(20)),
        ),
    ),
}
"""What a site may declare of itself, in few combinations."""
