"""Wrong credentials count against the address they come from; right ones pass, and cost nothing."""

import json
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from awp_publish import AgentPublisher, ApiKey, BearerToken, Mcp, SessionUser, SharedSecret
from awp_publish.calls.authentication import MAX_WRONG
from awp_publish.problems import AuthExpired, StoreUnavailable
from awp_publish.stores.memory import MemoryStore
from tests.doors.adapters import DOORS
from tests.guarded import ANN, Watched, invoke, make_shop, status_and_code
from tests.plugins.awp.awp_client import AwpClient
from tests.plugins.mcp.mcp_messages import message, post, without_cookie_jar

WRONG = {"authorization": "Bearer wrong"}


def check(token: str) -> str | None:
    if token == "old":
        raise AuthExpired("The token has expired.")
    return "ann" if token in ("ann", "ann-secret-token") else None


@pytest.fixture
def shop():
    """An application whose store is watched, and the store."""
    store = Watched(MemoryStore())
    secret = SharedSecret({"warehouse": "a shared secret of sixteen characters"})
    site = make_shop(
        store=store,
        plugins=["a2a", "awp", Mcp(list_only_allowed=True)],
        authenticate=[BearerToken(check), ApiKey({"key-of-cleo": "cleo"}), secret],
    )

    @site.agent("mine", auth_required=True)
    async def mine() -> str:
        """What is mine."""
        return "mine"

    @site.agent("later", execution="async")
    async def later() -> str:
        """Later."""
        return "done"

    return AgentPublisher(Starlette(), site=site), store


@pytest.mark.parametrize("door", DOORS)
def test_at_every_door_who_guesses_is_told_to_stop_and_nobody_else(shop, open_client, door):
    app, _ = shop
    guesser, neighbour = (DOORS[door](open_client(app, client=("192.0.2.1", port))) for port in (1, 2))
    told_first = [guesser.call("mine", token=f"guess-{n}").code for n in range(MAX_WRONG)]
    assert told_first == ["INVALID_CREDENTIALS"] * MAX_WRONG
    refused = guesser.call("mine", token="guess")
    assert refused.code == "RATE_LIMITED"
    assert refused.retry_after is not None
    assert 0 < refused.retry_after <= 60
    assert "credentials" in refused.detail
    assert "credentials" in refused.recovery
    assert neighbour.call("mine", token="wrong").code == "RATE_LIMITED"
    assert neighbour.call("mine", token="ann").output == "mine"
    assert neighbour.call("mine").code == "AUTHENTICATION_REQUIRED"
    assert DOORS[door](open_client(app, client=("192.0.2.2", 1))).call("mine", token="wrong").code == (
        "INVALID_CREDENTIALS"
    )


def test_all_doors_and_all_kinds_of_credentials_count_together(shop, open_client):
    app, _ = shop
    client = open_client(app)
    guesses = [
        lambda: invoke(client, "mine", headers=WRONG).json()["code"],
        lambda: invoke(client, "mine", headers={"x-api-key": "wrong"}).json()["code"],
        lambda: client.get("/agents/jobs/some", headers=WRONG).json()["code"],
        lambda: post(client, message("tools/list"), headers=WRONG).json()["error"]["data"]["code"],
        lambda: a2a(client),
        lambda: greet(client),
    ]
    codes = [guess() for guess in guesses for _ in range(3)]
    assert codes == ["INVALID_CREDENTIALS"] * 18
    last = [invoke(client, "mine", headers=WRONG).status_code for _ in range(3)]
    assert last == [401] * (MAX_WRONG - 18) + [429]
    assert {guess() for guess in guesses} == {"RATE_LIMITED"}


def a2a(client) -> str:
    """Ask the A2A door for one's tasks."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}
    error = client.post("/a2a", json=body, headers=WRONG | {"a2a-version": "1.0"}).json()["error"]
    return error["data"][0]["metadata"]["code"]


def greet(client) -> str:
    """Sign the challenge with what is no secret."""
    with AwpClient.open(client) as caller:
        auth = {"method": "auth.hmac", "key_id": "warehouse", "signature": "0" * 64}
        return caller.ask("awp.hello", {"auth": auth})["error"]["details"]["code"]


def test_right_credentials_cost_no_step_of_the_store(shop, open_client):
    app, store = shop
    client = open_client(app)
    store.runs.clear()
    for headers in (ANN, {"x-api-key": "key-of-cleo"}):
        assert invoke(client, "mine", headers=headers).json() == "mine"
    assert status_and_code(invoke(client, "mine")) == (401, "AUTHENTICATION_REQUIRED")
    assert store.runs == []
    assert status_and_code(invoke(client, "mine", headers=WRONG)) == (401, "INVALID_CREDENTIALS")
    assert store.runs == [("Count",)]


def test_an_expired_secret_does_not_count_as_a_guess(shop, open_client):
    client = open_client(shop[0])
    old = {"authorization": "Bearer old"}
    codes = {status_and_code(invoke(client, "mine", headers=old)) for _ in range(MAX_WRONG + 5)}
    assert codes == {(401, "AUTH_EXPIRED")}


def test_without_its_store_a_site_refuses_wrong_credentials_all_the_same(shop, open_client):
    app, store = shop
    client = open_client(app)

    async def lose(steps) -> None:
        raise StoreUnavailable("The site's store cannot be reached.")

    store.trouble = lose
    codes = {status_and_code(invoke(client, "mine", headers=WRONG)) for _ in range(MAX_WRONG + 5)}
    assert codes == {(401, "INVALID_CREDENTIALS")}


# --- Wherever credentials are identified ---

MCP_METHODS: dict[str, dict[str, Any]] = {
    "tools/list": {},
    "events/list": {},
    "events/poll": {"name": "sold"},
    "events/stream": {"name": "sold"},
    "subscriptions/listen": {"notifications": {"toolsListChanged": True}},
    "tasks/get": {"taskId": "some"},
    "tasks/cancel": {"taskId": "some"},
    "tools/call": {"name": "get_job", "arguments": {"job_id": "some"}},
}
TASKS: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


@pytest.fixture
def signed_in_shop(open_client):
    """A shop with sessions of callers without a cookie jar, and the session of a known one."""
    known = SessionUser("user", endpoints={"login": "/sign-in"})
    site = make_shop(
        plugins=["a2a", "awp", Mcp(list_only_allowed=True)], authenticate=[BearerToken({"ann": "ann"}), known]
    )

    @site.action("sign_in", method="POST", outputs={"type": "string"})
    async def sign_in(request: Request) -> Response:
        """Sign in."""
        request.session["user"] = "ann"
        return JSONResponse("welcome")

    @site.agent("open")
    async def everybody() -> str:
        """For everybody."""
        return "open"

    @site.agent("later", execution="async", auth_required=True)
    async def later() -> str:
        """Later."""
        return "done"

    site.event("sold", payload={"type": "object", "properties": {}}, description="Something was sold.")
    app = Starlette(routes=[Route("/sign-in", sign_in, methods=["POST"])])
    app.add_middleware(AgentPublisher, site=site)
    app.add_middleware(SessionMiddleware, secret_key="secret")
    client = without_cookie_jar(open_client(app))
    signed_in = client.post("/agents/sign_in/invoke", json={"input": {}}, headers={"authorization": "Bearer ann"})
    assert signed_in.status_code == 200
    return client, signed_in.headers["awp-session"]


@pytest.mark.needs("sessions")
@pytest.mark.parametrize("session", [None, "unknown", "own"])
@pytest.mark.parametrize("place", [*MCP_METHODS, "/agents/jobs/", "/agents/jobs/some", "call", "closed call"])
def test_guesses_are_counted_once_each_wherever_callers_are_identified(signed_in_shop, place, session):
    client, own = signed_in_shop
    headers = WRONG | ({"awp-session": own if session == "own" else "unknown"} if session else {})

    def guess() -> str:
        if place in MCP_METHODS:
            answer = post(client, message(place, MCP_METHODS[place], capabilities=TASKS), headers=headers).json()
            known = answer["error"]["data"] if "error" in answer else answer["result"]["content"][-1]["text"]
            return str((json.loads(known) if isinstance(known, str) else known)["code"])
        if place.startswith("/"):
            return str(client.get(place, headers=headers).json()["code"])
        return str(invoke(client, "open" if place == "call" else "later", headers=headers).json().get("code"))

    codes = [guess() for _ in range(MAX_WRONG)]
    if set(codes) == {"SESSION_UNKNOWN"}:
        return  # the credentials were not looked at
    assert codes == ["INVALID_CREDENTIALS"] * MAX_WRONG
    assert guess() == "RATE_LIMITED"
