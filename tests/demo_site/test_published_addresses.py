"""Every action of every document, called at the address and with the inputs that the document gives.

What a document promises of an action is there: the guard, the kind of answer, the recorded answer.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
from fastapi import FastAPI, Form, Response
from fastapi.responses import HTMLResponse

from awp_publish import AgentPublisher
from demo_site.app import create_app
from tests.client import TestClient
from tests.demo_site.bookshop import get_token
from tests.doors.callers import DoorCaller, Told
from tests.guarded import KEYS, known_callers, make_shop
from tests.installed import installed
from tests.plugins.a2a.door_caller import A2aCaller
from tests.plugins.mcp.door_caller import McpCaller
from tests.plugins.mcp.mcp_messages import message, post
from tests.plugins.woa.door_caller import WoaCaller

JSON = "application/json"

VALUES: dict[str, object] = {
    "string": "Emma",
    "integer": 12,
    "float": 1.5,
    "number": 1.5,
    "boolean": True,
    "array[string]": ["Emma"],
}
"""A value of each kind; what is known of an application comes before."""


@dataclass
class Published:
    """An action as a document tells it. `call(key)` calls it as the document says, under an idempotency key or none."""

    id: str
    call: Callable[[str | None], Told]
    facts: Mapping[str, Any] = field(default_factory=dict)


def _sample(schema: Mapping[str, Any], known: Mapping[str, object]) -> dict[str, object]:
    """An input of a JSON Schema: all that it requires."""
    properties = schema.get("properties", {})
    return {name: _value(name, properties[name], known) for name in schema.get("required", [])}


def _followed(client: TestClient, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema, read in the document in which it stands."""
    if list(schema) != ["$ref"]:
        return schema
    place, _, pointer = schema["$ref"].partition("#/")
    found = client.get(place).json()
    for step in pointer.split("/"):
        found = found[int(step)] if isinstance(found, list) else found[step]
    return found


def _value(name: str, schema: Mapping[str, Any], known: Mapping[str, object]) -> object:
    if name in known:
        return known[name]
    if "$ref" in schema or "enum" in schema:
        return next(iter(schema.get("enum", ["title"])))
    return VALUES[schema["type"]]


def _over_http(client: TestClient, method: str, address: str, given: Mapping[str, object], media_type: str) -> Any:
    """The request of a client that knows nothing but HTTP and one manifest."""

    def call(key: str | None) -> Told:
        headers = {"idempotency-key": key} if key is not None else {}
        url, rest = address, dict(given)
        for name in given:  # a path's own placeholders
            if f"{{{name}}}" in url:
                url = url.replace(f"{{{name}}}", str(rest.pop(name)))
        how = "params" if method in ("GET", "DELETE") else "json"
        sent: dict[str, Any] = {"headers": headers, how: rest}
        answer = client.request(method, url, **sent)
        content_type = answer.headers["content-type"].partition(";")[0]
        if content_type == media_type != JSON:
            return Told(None, answer.text)
        assert content_type in (JSON, "application/problem+json"), (url, answer.text)
        response = answer.json()
        if answer.status_code >= 400:
            return Told(response.get("code") or str(response), question=response.get("confirmation", {}))
        replayed = answer.headers.get("idempotent-replayed") == "true"
        return Told(None, response, is_replayed=replayed, receipt=answer.headers.get("awp-receipt"))

    return call


def in_awas(client: TestClient, known: Mapping[str, object]) -> Iterator[Published]:
    """AWAS: `path` and `parameters`, whose schema is `inputSchema`."""
    manifest = client.get("/.well-known/ai-actions.json").json()
    for action in manifest["actions"]:
        assert action["path"] == action["endpoint"]
        given = _sample(_followed(client, action["inputSchema"]), known)
        assert {
            parameter["name"] for parameter in action.get("parameters", []) if parameter["required"]
        } == given.keys()
        media_type = action["outputs"].get("type", JSON)
        call = _over_http(client, action["method"], action["path"], given, media_type)
        facts = {"auth": action["authentication_required"], "limit": action.get("rateLimit", {}).get("requests")}
        yield Published(action["id"], call, facts | {"keys": action.get("idempotencyKeySupported", False)})


def in_agent_json(client: TestClient, known: Mapping[str, object]) -> Iterator[Published]:
    """agent.json: `endpoint` and `inputs`; its key is a field beside them."""
    for action in client.get("/agent.json").json()["actions"]:
        given = {}
        for name, one in action["inputs"].items():
            if one["required"]:
                given[name] = known.get(name) or (one["options"][0] if "options" in one else VALUES[one["type"]])
        limit = action.get("rate_limit")
        field_name = action.get("idempotency", {}).get("key_field")

        def call(key: str | None, action=action, given=given, named=field_name) -> Told:
            beside = {named: key} if key is not None else {}
            media_type = "text/html" if action["id"] == "page" else JSON  # of which agent.json has no word
            return _over_http(client, action["method"], action["endpoint"], given | beside, media_type)(None)

        facts = {
            "auth": action["auth_required"],
            "limit": int(limit.partition("/")[0]) if limit else None,
            "keys": action.get("idempotency", {}).get("supported", False),
            "asks": action.get("requires_human_confirmation", False),
        }
        yield Published(action["id"], call, facts)


def in_woa(client: TestClient, known: Mapping[str, object]) -> Iterator[Published]:
    """WoA: the invocation path, an operation's or an agent's `inputs` in the envelope."""
    document, door = client.get("/.well-known/woa.json").json(), WoaCaller(client)
    assert document["transports"]["rest"]["invoke_path"] == "/agents/{agent_id}/invoke"
    for agent in document["agents"]:
        [operation] = agent["operations"]
        given = _sample(operation.get("inputs", agent["inputs"]), known)
        yield Published(agent["id"], _through(door, agent["id"], given))


def in_mcp(client: TestClient, known: Mapping[str, object]) -> Iterator[Published]:
    """MCP: the tools and their `inputSchema`."""
    door = McpCaller(client)
    for tool in post(client, message("tools/list")).json()["result"]["tools"]:
        if tool["name"] == "get_job":  # no action of the site's, but how its jobs are polled
            continue
        given = _sample(tool["inputSchema"], known)
        yield Published(tool["name"], _through(door, tool["name"], given))


def in_agent_card(client: TestClient, known: Mapping[str, object]) -> Iterator[Published]:
    """A2A: the skills of the card; what they take is in the card's extension."""
    card = client.get("/.well-known/agent-card.json").json()
    [contracts] = [extension["params"]["skills"] for extension in card["capabilities"]["extensions"]]
    for skill in card["skills"]:
        contract, door = contracts[skill["id"]], A2aCaller(client)
        given, door.key_field = _sample(contract["inputSchema"], known), contract.get("idempotencyKey", "")
        yield Published(skill["id"], _through(door, skill["id"], given))


def _through(door: DoorCaller, name: str, given: Mapping[str, object]) -> Callable[[str | None], Told]:
    return lambda key: door.call(name, given, key=key)


DOCUMENTS = {
    "AWAS": in_awas,
    "agent.json": in_agent_json,
    "WoA": in_woa,
    "MCP": in_mcp,
    "A2A": in_agent_card,
}
MANIFESTS = {name: DOCUMENTS[name] for name in ("AWAS", "agent.json")}


# --- A shop with every kind of gate, behind routes of every kind and without any ---


def _shop(open_client) -> TestClient:
    site, app = make_shop(authenticate=known_callers(), secret_keys=KEYS, plugins=installed("mcp", "a2a")), FastAPI()
    runs: list[int] = []

    @app.get("/free/{title}")
    @site.action("free")
    async def free(title: str) -> str:
        """Take what is free."""
        return title

    @app.get("/page", response_class=HTMLResponse)
    @site.action("page")
    async def page() -> str:
        """Read a page."""
        return "<p>A page</p>"

    @app.get("/either", responses={200: {"content": {"text/html": {}}}})
    @site.action("either", outputs=str)
    async def either(response: Response) -> str:
        """Read what is a page for some."""
        return "either"

    @app.get("/limited/{title}")
    @site.action("limited", rate_limit="2/minute")
    async def limited(title: str) -> str:
        """Look at books, not too often."""
        return title

    @app.post("/mine")
    @site.action("mine", auth_required=True)
    async def mine(title: Annotated[str, Form()]) -> str:
        """Keep what is mine."""
        return title

    @app.post("/keyed")
    @site.action("keyed", idempotency={"window": "24h", "key_field": "order_key"})
    async def keyed(title: Annotated[str, Form()]) -> int:
        """Order once."""
        runs.append(1)
        return len(runs)

    @app.delete("/asked/{number}")
    @site.action("asked", confirm=True)
    async def asked(number: int) -> str:
        """Delete when somebody agrees."""
        return "deleted"

    @app.put("/after/{number}")
    @site.action("after", requires=["limited"])
    async def after(number: int, title: str) -> str:
        """Come after another."""
        return title

    @site.agent("think", idempotency="24h")
    async def think(title: str) -> int:
        """Think once."""
        runs.append(1)
        return len(runs)

    app.add_middleware(AgentPublisher, site=site)
    return open_client(app)


REFUSED = {"mine": "AUTHENTICATION_REQUIRED", "asked": "CONFIRMATION_REQUIRED", "after": "PREREQUISITE_REQUIRED"}
ACTIONS = {"free", "page", "either", "limited", "keyed", "think", *REFUSED}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_action_of_every_document_is_guarded_where_it_is_published(open_client, name):
    published = {item.id: item for item in DOCUMENTS[name](_shop(open_client), {})}
    assert set(published) == ACTIONS
    for action_id, one in published.items():
        first = one.call(None)
        assert first.code == REFUSED.get(action_id), action_id
        assert bool(first.question) == (action_id == "asked")
        if one.facts:
            assert one.facts["auth"] == (action_id == "mine")
            assert one.facts["limit"] == (2 if action_id == "limited" else None)
            assert one.facts["keys"] == (action_id in ("keyed", "think"))
            assert one.facts.get("asks", action_id == "asked") == (action_id == "asked")
    assert [published["limited"].call(None).code for _ in range(2)] == [None, "RATE_LIMITED"]
    for action_id in ("keyed", "think"):
        first, again = (published[action_id].call("k-1") for _ in range(2))
        assert (first.is_replayed, again.is_replayed, first.output) == (False, True, again.output)


@pytest.mark.parametrize("name", MANIFESTS)
def test_an_action_that_nothing_guards_is_published_with_its_own_route(open_client, name):
    client = _shop(open_client)
    path = {"AWAS": "/.well-known/ai-actions.json", "agent.json": "/agent.json"}[name]
    addresses = {action["id"]: action["endpoint"] for action in client.get(path).json()["actions"]}
    assert addresses.pop("free") == "/free/{title}"
    assert addresses == {action_id: f"/agents/actions/{action_id}" for action_id in ACTIONS - {"free"}}


# --- The demo site ---

KNOWN = {
    "slug": "moby-dick",
    "quantity": 1,
    "text": "Call me Ishmael. Some years ago.",
    "name": "ada",
    "address": "1 Quiet Lane",
    "order_id": "none",
}
NEEDS_AN_ACCOUNT = {
    *("show_basket", "add_to_basket", "change_quantity", "remove_from_basket"),
    *("check_out", "show_order", "ship_order"),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_action_of_the_demo_site_is_guarded_where_it_is_published(open_client, name, tmp_path):
    client = open_client(create_app("https://shop.example", tmp_path / "books.db", 0, ["mcp", "a2a"]))
    published = {item.id: item for item in DOCUMENTS[name](client, KNOWN)}
    assert published.keys() >= {*NEEDS_AN_ACCOUNT, "search_books", "show_book", "summarizer"}
    for action_id, one in published.items():
        assert one.call(None).code == ("AUTHENTICATION_REQUIRED" if action_id in NEEDS_AN_ACCOUNT else None), action_id
    codes = [published["search_books"].call(None).code for _ in range(30)]
    assert (codes[28], codes[29]) == (None, "RATE_LIMITED")


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_book_is_bought_at_the_addresses_of_a_manifest(open_client, name, tmp_path):
    client = open_client(create_app("https://shop.example", tmp_path / "books.db", 0))
    path = {"AWAS": "/.well-known/ai-actions.json", "agent.json": "/agent.json"}[name]
    actions = {action["id"]: action for action in client.get(path).json()["actions"]}

    def call(action_id: str, given: Mapping[str, object], **headers: str) -> Any:
        method, address = actions[action_id]["method"], actions[action_id]["endpoint"]
        how = "params" if method == "GET" else "json"
        return client.request(method, address, headers=headers, **{how: given})

    client.headers["authorization"] = f"Bearer {get_token(client)}"
    receipt = call("add_to_basket", {"slug": "moby-dick", "quantity": 2}).headers["awp-receipt"]
    parcel, headers = {"name": "Ada", "address": "1 Quiet Lane"}, {"awp-receipt": receipt, "idempotency-key": "k-1"}
    assert call("check_out", parcel).json()["code"] in ("PREREQUISITE_REQUIRED", "CONFIRMATION_REQUIRED")
    token = call("check_out", parcel, **headers).json()["confirmation"]["token"]
    headers["awp-confirmation"] = token
    first, again = (call("check_out", parcel, **headers) for _ in range(2))
    assert (first.status_code, again.status_code, again.headers["idempotent-replayed"]) == (201, 201, "true")
    assert first.json() == again.json()
    job = call("ship_order", {"order_id": first.json()["order_id"]})
    assert (job.status_code, job.json()["status"]) == (202, "accepted")
