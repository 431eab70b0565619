"""Who a caller is: a name, and who vouches for it. The same name from somebody else is another caller, everywhere."""

import asyncio
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.responses import JSONResponse
from starlette.routing import Route

from awp_publish import (
    AgentPublisher,
    ApiKey,
    BearerToken,
    Custom,
    DeclarationError,
    Principal,
    Site,
)
from awp_publish.calls.authenticators import read_authenticators
from awp_publish.calls.call import Call
from awp_publish.calls.gates.gate import Guards
from awp_publish.calls.hooks import Routes
from awp_publish.calls.invoke import Invoker
from awp_publish.calls.verifiers import people_of
from awp_publish.stores.memory import MemoryStore
from tests.doors.adapters import DOORS
from tests.guarded import KEYS, make_shop
from tests.installed import installed
from tests.plugins.mcp.mcp_messages import message, post

LEFT, RIGHT = "token-of-left", "token-of-right"
"""Tokens of two issuers, both for somebody called ann."""


def sign_in(request: Any) -> JSONResponse:
    """Sign in."""
    request.session["name"] = "VICTIM"
    return JSONResponse("signed in")


@pytest.fixture
def shop(open_client):
    """A client of a site at which two issuers vouch for their own ann."""
    site = make_shop(
        plugins=installed("mcp", "a2a", "awp"),
        secret_keys=KEYS,
        authenticate=[BearerToken({LEFT: "ann"}, people="left"), BearerToken({RIGHT: "ann"}, people="right")],
    )
    ran: list[str] = []

    @site.agent("pay", auth_required=True, confirm=True, idempotency="24h")
    async def pay() -> str:
        """Pay."""
        ran.append("pay")
        return "paid"

    @site.agent("note", auth_required=True, idempotency="24h")
    async def note() -> str:
        """Note."""
        ran.append("note")
        return f"noted {len(ran)}"

    @site.agent("first", auth_required=True)
    async def first() -> str:
        """Come first."""
        return "first"

    @site.agent("second", auth_required=True, requires=["first"])
    async def second() -> str:
        """Come second."""
        return "second"

    @site.agent("rare", auth_required=True, rate_limit="1/minute by user")
    async def rare() -> str:
        """Be rare."""
        return "rare"

    @site.agent("later", auth_required=True, execution="async")
    async def later() -> str:
        """Later."""
        return "done"

    site.action("sign_in", effect="write")(sign_in)
    routes = [Route("/sign-in", sign_in, methods=["POST"])]
    app = Starlette(routes=routes, middleware=[Middleware(SessionMiddleware, secret_key="s" * 32)])
    return open_client(AgentPublisher(app, site=site, check=False))


@pytest.mark.parametrize("door", DOORS)
def test_a_name_from_another_issuer_is_another_caller_at_every_door(shop, door):
    caller = DOORS[door](shop)

    assert caller.call("note", token=LEFT, key="k").is_replayed is False
    assert caller.call("note", token=LEFT, key="k").is_replayed is True
    assert caller.call("note", token=RIGHT, key="k").is_replayed is False

    confirmation = caller.call("pay", token=LEFT).question["token"]
    assert caller.call("pay", token=RIGHT, confirmation=confirmation).code == "CONFIRMATION_FOREIGN"
    assert caller.call("pay", token=LEFT, confirmation=confirmation).output == "paid"

    assert caller.call("first", token=LEFT).output == "first"
    assert caller.call("second", token=RIGHT).code == "PREREQUISITE_REQUIRED"
    assert caller.call("second", token=LEFT).output == "second"

    assert caller.call("rare", token=LEFT).output == "rare"
    assert caller.call("rare", token=LEFT).code == "RATE_LIMITED"
    assert caller.call("rare", token=RIGHT).output == "rare"


@pytest.mark.parametrize("door", installed("woa", "mcp", "plain"))
def test_a_job_is_for_the_caller_of_its_issuer_alone(shop, door):
    job = DOORS[door](shop).call("later", token=LEFT).output["job_id"]
    polls = {
        token: shop.get(f"/agents/jobs/{job}", headers={"authorization": f"Bearer {token}"}) for token in (LEFT, RIGHT)
    }
    assert {token: answer.status_code for token, answer in polls.items()} == {LEFT: 200, RIGHT: 404}


@pytest.mark.needs("a2a")
def test_tasks_are_listed_and_read_by_the_caller_of_their_issuer_alone(shop):
    parts = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {"skill": "note", "input": {}}}]}}

    def ask(method: str, params: Any, token: str) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"a2a-version": "1.0", "authorization": f"Bearer {token}"}
        return shop.post("/a2a", json=body, headers=headers).json()

    task = ask("SendMessage", parts, LEFT)["result"]["task"]["id"]
    assert [task["id"] for task in ask("ListTasks", {}, LEFT)["result"]["tasks"]] == [task]
    assert ask("ListTasks", {}, RIGHT)["result"]["tasks"] == []
    assert "error" in ask("GetTask", {"id": task}, RIGHT)


@pytest.mark.needs("sessions")
def test_a_session_is_for_the_caller_of_its_issuer_alone(shop):
    begun = shop.post("/agents/sign_in/invoke", json={"input": {}}, headers={"authorization": f"Bearer {LEFT}"})
    session = {"awp-session": begun.headers["awp-session"]}
    shop.cookies.clear()
    used = [
        shop.post("/agents/sign_in/invoke", json={"input": {}}, headers={**session, "authorization": f"Bearer {token}"})
        for token in (RIGHT, LEFT)
    ]
    assert [answer.status_code for answer in used] == [401, 200]


async def test_an_event_for_a_name_needs_its_issuer_where_several_vouch_for_names():
    several = make_shop(authenticate=[BearerToken({LEFT: "ann"}, people="left"), ApiKey({"key": "ann"})])
    several.event("shipped", payload=dict[str, str])
    with pytest.raises(DeclarationError, match="may mean somebody else"):
        await several.emit("shipped", {}, audience="principal:ann")
    assert await several.emit("shipped", {}, audience=Principal("ann", issuer="left"))
    single = make_shop(authenticate=BearerToken({LEFT: "ann"}))
    single.event("shipped", payload=dict[str, str])
    assert await single.emit("shipped", {}, audience="principal:ann")


# --- Authenticators and their people ---


@pytest.mark.parametrize(
    "given",
    [
        [BearerToken({LEFT: "ann"}), BearerToken({RIGHT: "ann"})],
        [lambda credentials: None, lambda credentials: "ann"],
    ],
)
def test_authenticators_of_one_kind_say_whom_they_know(given):
    with pytest.raises(DeclarationError, match="people="):
        read_authenticators(given)


def test_authenticators_with_the_same_people_name_the_same_callers(open_client):
    site = make_shop(
        authenticate=[BearerToken({LEFT: "ann"}, people="staff"), ApiKey({"key-of-ann": "ann"}, people="staff")]
    )

    @site.agent("note", auth_required=True, idempotency="24h")
    async def note() -> str:
        """Note."""
        return "noted"

    client = open_client(AgentPublisher(Starlette(), site=site, check=False))
    answers = [
        client.post("/agents/actions/note", headers={**headers, "idempotency-key": "k"})
        for headers in ({"authorization": f"Bearer {LEFT}"}, {"x-api-key": "key-of-ann"})
    ]
    assert [answer.headers.get("idempotent-replayed") for answer in answers] == [None, "true"]


@pytest.mark.parametrize("people", ["", "two words", "tab\t", 7])
def test_people_have_a_name_without_spaces(people):
    with pytest.raises(DeclarationError, match="people"):
        BearerToken({LEFT: "ann"}, people=people)


async def test_the_order_of_authenticators_changes_no_caller():
    ours: list[Any] = [BearerToken({LEFT: "ann"}), Custom(lambda credentials: "ann"), ApiKey({"k": "ann"})]
    before, after = (
        {people_of(authenticator) for authenticator in read_authenticators(listed)} for listed in (ours, ours[::-1])
    )
    assert before == after == {"bearer-token", "own", "api-key:x-api-key"}


def test_keys_of_different_pairs_differ():
    pairs = [("a", "b c"), ("a", " b"), ("", "a b"), ("", "ab"), ("ab", ""), ("a", "b\n"), ("a:b", "c"), ("a", "b:c")]
    principals = [Principal(name, issuer=issuer) for issuer, name in pairs if name]
    assert len({principal.key for principal in principals}) == len(principals)
    assert [Principal.of_key(principal.key) for principal in principals] == principals


# --- A call without credentials is a call by nobody ---


async def test_a_door_that_forgets_the_credentials_lets_nobody_in():
    site: Site = make_shop(authenticate=BearerToken({LEFT: "ann"}))
    ran: list[str] = []

    @site.agent("mine", auth_required=True)
    async def mine() -> str:
        """What is mine."""
        ran.append("mine")
        return "mine"

    catalog = site.freeze(Starlette())
    guards = Guards(store=MemoryStore(), authenticators=site.authenticators, realm="Shop")
    invoker = Invoker(catalog, Routes(None), guards)  # type: ignore[arg-type]
    results: list[Any] = []

    async def deliver(result: Any) -> None:
        results.append(result)

    await invoker.run(Call(catalog.action("mine"), {}, "r", "a door"), deliver)
    await asyncio.sleep(0)
    assert (results[0].code, ran) == ("AUTHENTICATION_REQUIRED", [])


def test_a_hidden_tool_is_not_listed_to_a_narrow_token_of_a_caller_who_has_a_wide_one(open_client):
    from awp_publish import Mcp

    wide, narrow = Principal("ann", frozenset({"operator"})), Principal("ann")
    site = make_shop(plugins=[Mcp(list_only_allowed=True)], authenticate=BearerToken({LEFT: wide, RIGHT: narrow}))

    @site.agent("close", audience="operator")
    async def close() -> str:
        """Close."""
        return "closed"

    client = open_client(AgentPublisher(Starlette(), site=site, check=False))
    listed = [
        [
            tool["name"]
            for tool in post(client, message("tools/list"), headers={"authorization": f"Bearer {token}"}).json()[
                "result"
            ]["tools"]
        ]
        for token in (LEFT, RIGHT, LEFT)
    ]
    assert ["close" in names for names in listed] == [True, False, True]


@pytest.mark.needs("bridge")
def test_the_bridge_lists_to_each_token_what_its_own_scopes_allow(open_client):
    wide, narrow = Principal("ann", frozenset({"operator"})), Principal("ann")
    site = make_shop(
        plugins=installed("bridge"), secret_keys=KEYS, authenticate=BearerToken({LEFT: wide, RIGHT: narrow})
    )

    async def close(request: Any) -> JSONResponse:
        """Close the shop."""
        return JSONResponse("closed")

    site.action("close", audience="operator")(close)
    client = open_client(
        AgentPublisher(Starlette(routes=[Route("/close", close, methods=["POST"])]), site=site, check=False)
    )
    call = {"type": "action_call", "call_id": "c", "name": "actions.site", "arguments": {"mode": "list"}}
    with (
        client.websocket_connect("/actions-bridge", headers={"authorization": f"Bearer {RIGHT}"}) as of_narrow,
        client.websocket_connect("/actions-bridge", headers={"authorization": f"Bearer {LEFT}"}) as of_wide,
    ):
        listed = []
        for number, socket in enumerate((of_wide, of_narrow, of_wide, of_narrow)):
            socket.send_json(call | {"call_id": f"c{number}"})
            listed.append("close" in str(socket.receive_json()))
    assert listed == [True, False, True, False]
