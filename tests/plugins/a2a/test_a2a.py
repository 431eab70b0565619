"""The A2A door in front of the official client: each message becomes a task, over both bindings, in 1.0 and in 0.3."""

import asyncio
from typing import Any

import fastapi
import httpx
import orjson
import pytest
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types.a2a_pb2 import AgentCard
from a2a.utils.proto_utils import validate_proto_required_fields
from fastapi import FastAPI, Response
from google.protobuf.json_format import MessageToDict, ParseDict
from starlette.applications import Starlette

from awp_publish import AgentPublisher, ApiKey, DeclarationError, Refused, Site
from awp_publish.http.exchange import AsgiApp
from tests.client import TestClient
from tests.guarded import known_callers, make_shop
from tests.plugins.a2a.a2a_client import Caller, open_caller, output, problem, serving, state


def make_bookshop(**options) -> Site:
    site = make_shop(plugins=["a2a"], **options)

    @site.agent("find")
    async def find(title: str, copies: int = 1) -> dict[str, object]:
        """Find a book."""
        return {"title": title, "copies": copies, "kind": type(copies).__name__}

    @site.agent("add")
    async def add(numbers: list[int]) -> int:
        """Add numbers."""
        return sum(numbers)

    @site.agent("fail")
    async def fail() -> str:
        """Never succeed."""
        raise RuntimeError("a secret of the site")

    @site.agent("lie")
    async def lie() -> int:
        """Break the schema."""
        return "no number"  # type: ignore[return-value]

    return site


def publish(site: Site) -> AsgiApp:
    return AgentPublisher(Starlette(), site=site)


async def test_an_input_that_does_not_match_may_be_corrected_in_the_same_task():
    async with open_caller(publish(make_bookshop())) as caller:
        asked = await caller.call("find", {"title": 7})
        assert (state(asked), problem(asked)["errors"][0]["pointer"]) == ("input_required", "/title")
        task = await caller.send({"input": {"title": "Emma"}}, task=asked)
    assert output(task)["title"] == "Emma"


@pytest.mark.parametrize("path", ["/a2a", "/a2a/"])
def test_the_exact_integers_of_a_request_reach_the_action(open_client, path):
    client = open_client(publish(make_bookshop()))
    part = {"data": {"skill": "add", "input": {"numbers": [9007199254740993, 1]}}}
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [part]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    answer = client.post(path, json=call, headers={"a2a-version": "1.0"}).json()
    assert answer["result"]["task"]["artifacts"][0]["parts"] == [
        {"text": "9007199254740994", "mediaType": "application/json"}  # a double would be another number
    ]


def test_the_card_is_served_while_the_door_is_on(open_client):
    card = open_client(publish(make_bookshop())).get("/.well-known/agent-card.json")
    assert [skill["id"] for skill in card.json()["skills"]] == ["find", "add", "fail", "lie"]
    assert card.headers["etag"]
    assert card.headers["access-control-allow-origin"] == "*"
    assert open_client(publish(make_shop())).get("/.well-known/agent-card.json").status_code == 404


async def test_the_official_client_finds_its_way_from_the_card():
    transport = httpx.ASGITransport(publish(make_bookshop(authenticate=known_callers())))
    async with httpx.AsyncClient(transport=transport) as http:
        card = await A2ACardResolver(http, "https://shop.example").get_agent_card()
        validate_proto_required_fields(card)
        config = ClientConfig(streaming=False, httpx_client=http)
        caller = Caller(ClientFactory(config).create(card))
        assert output(await caller.call("add", {"numbers": [1, 2]})) == 3


def test_the_card_is_one_of_1_0_and_nothing_else(open_client):
    site = make_bookshop(authenticate=[known_callers(), ApiKey({"a-secret-key": "ann"})])

    @site.agent("pay", auth_required=True, scopes=["buy"], examples=[{"copies": 1}], tags=["money"])
    async def pay(copies: int = 1) -> int:
        """Pay."""
        return copies

    card = open_client(publish(site)).get("/.well-known/agent-card.json").json()
    read = ParseDict(card, AgentCard())  # refuses members that 1.0 does not have
    validate_proto_required_fields(read)
    assert MessageToDict(read)["securitySchemes"].keys() == {"bearer", "api_key"}
    assert read.security_schemes["api_key"].api_key_security_scheme.name == "X-API-Key"
    assert read.skills[-1].security_requirements[0].schemes["bearer"].list == ["buy"]


def test_a_cookie_that_an_action_sets_reaches_the_http_client_and_no_agent(open_client):
    site, app = make_shop(plugins=["a2a"]), FastAPI()

    @app.post("/sign-in")
    @site.action("sign_in", effect="write")
    async def sign_in(response: Response) -> str:
        """Sign in."""
        response.set_cookie("sid", "a-secret")
        return "welcome"

    app.add_middleware(AgentPublisher, site=site)
    answer = open_client(app).post("/a2a", json=SIGN_IN, headers={"a2a-version": "1.0"})
    assert answer.json()["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert answer.headers["set-cookie"].startswith("sid=a-secret")
    assert "a-secret" not in answer.text


SIGN_IN = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "SendMessage",
    "params": {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {"skill": "sign_in"}}]}},
}


def test_the_checks_have_nothing_to_say_about_the_card(open_client, caplog):
    open_client(publish(make_bookshop()))
    assert not [record for record in caplog.records if "agent-card" in record.getMessage()]


def test_a_route_behind_a_skill_gets_the_callers_own_request(open_client):
    site, app = make_shop(plugins=["a2a"]), FastAPI()

    @app.get("/books/{slug}")
    @site.action("read_book")
    async def read_book(slug: str, page: int, request: fastapi.Request) -> list[object]:
        """Read a page."""
        return [slug, page, request.headers["authorization"], request.url.path]

    app.add_middleware(AgentPublisher, site=site)
    data = {"skill": "read_book", "input": {"slug": "emma", "page": 2.0}}
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": data}]}
    headers = {"a2a-version": "1.0", "authorization": "Bearer x"}
    answer = open_client(app).post("/a2a/message:send", json={"message": message}, headers=headers).json()
    assert answer["task"]["artifacts"][0]["parts"][0]["data"] == [
        "emma",
        2,
        "Bearer x",
        "/books/emma",
    ]


async def test_a_stream_over_a_real_connection_tells_each_thing_when_it_happens():
    site = make_bookshop()
    go = asyncio.Event()

    @site.agent("wait")
    async def wait() -> str:
        """Wait."""
        await asyncio.wait_for(go.wait(), 30)
        return "done"

    async with serving(publish(site)) as url, httpx.AsyncClient(base_url=url) as http:
        part = {"data": {"skill": "wait", "input": {}}}
        message = {"messageId": "m", "role": "ROLE_USER", "parts": [part]}
        body, headers = {"message": message}, {"a2a-version": "1.0"}
        async with http.stream("POST", "/a2a/message:stream", json=body, headers=headers) as answer:
            told = (line async for line in answer.aiter_lines() if line.startswith("data:"))
            assert "TASK_STATE_WORKING" in await anext(told)
            go.set()
            assert orjson.loads((await anext(told))[5:])["artifactUpdate"]["artifact"]["parts"][0]["text"] == "done"
            assert "TASK_STATE_COMPLETED" in await anext(told)


def test_a_door_behind_which_nothing_can_be_called_is_refused_at_the_start():
    site = make_shop(plugins=["a2a"])
    with pytest.raises(DeclarationError, match='plugins: "a2a" has nothing to offer'):
        AgentPublisher(FastAPI(), site=site).open()


def test_the_refusal_lists_routes_that_were_left_out_where_those_are_all():
    site, app = make_shop(plugins=["a2a"]), FastAPI()
    app.post("/orders")(lambda: None)
    site.include()
    with pytest.raises(DeclarationError) as refused:
        AgentPublisher(app, site=site).open()
    [error] = refused.value.errors
    assert "site.include() made an action of no route: " in error.detail
    assert "POST /orders (it writes; name it: " in error.detail
    assert "operations=" in error.remedy


def test_the_examples_of_the_card_call_their_skills_as_texts(open_client):
    site = make_shop(plugins=["a2a"])

    @site.agent("add", examples=[{"numbers": [1, 2]}])
    async def add(numbers: list[int]) -> int:
        """Add numbers."""
        return sum(numbers)

    @site.agent("shout", examples=[{"text": "{no json}"}])
    async def shout(text: str) -> str:
        """Shout a text."""
        return text.upper()

    client = open_client(publish(site))
    skills = client.get("/.well-known/agent-card.json").json()["skills"]
    examples = [skill["examples"][0] for skill in skills]
    assert [say(client, text) for text in examples] == [{"data": 3}, {"text": "{NO JSON}", "mediaType": "text/plain"}]


def test_a_text_alone_calls_the_skill_of_a_site_that_has_no_other(open_client):
    site = make_shop(plugins=["a2a"])

    @site.agent("shout")
    async def shout(text: str) -> str:
        """Shout a text."""
        return text.upper()

    client = open_client(publish(site))
    assert [say(client, text)["text"] for text in ("hello", '{"a": 1}')] == ["HELLO", '{"A": 1}']


def test_a_text_alone_calls_none_of_several_skills(open_client):
    site = make_shop(plugins=["a2a"])

    @site.agent("forget")
    async def forget(name: str) -> str:
        """Forget somebody."""
        raise Refused("Nobody is forgotten.")

    @site.agent("search")
    async def search(words: str = "") -> str:
        """Search for words."""
        return words

    client = open_client(publish(site))
    status = send(client, "search for Emma")["status"]
    assert status["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert "names no skill. There are: forget, search." in status["message"]["parts"][0]["text"]
    named = send(client, "Emma", metadata={"skill": "forget"})
    assert named["status"]["state"] == "TASK_STATE_FAILED"


def test_numbers_come_back_as_they_were(open_client):
    numbers = {"a": 3, "b": [0, -7, 1.5], "c": 2**53, "d": '4.0, \\"5.0\\"', "e": 1e-7, "4.0": None}
    site = make_shop(plugins=["a2a"])

    @site.agent("give")
    async def give() -> dict[str, object]:
        """Give numbers."""
        return numbers

    client = open_client(publish(site))
    sent = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {"skill": "give"}}]}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": sent}
    version = {"a2a-version": "1.0"}
    answers = [
        client.post("/a2a", json=call, headers=version).json()["result"]["task"]["artifacts"][0],
        client.post("/a2a/message:send", json=sent, headers=version).json()["task"]["artifacts"][0],
        # the version as a parameter (section 3.6.1)
        client.post("/a2a?A2A-Version=1.0", json=call).json()["result"]["task"]["artifacts"][0],
        client.post("/a2a/message:send?a=b&A2A-Version=1.0", json=sent).json()["task"]["artifacts"][0],
    ]
    events = client.post("/a2a/message:stream", json=sent, headers=version).text.split("data: ")[1:]
    answers += [
        response["artifactUpdate"]["artifact"]
        for event in events
        if "artifactUpdate" in (response := orjson.loads(event))
    ]
    written = orjson.dumps(numbers, option=orjson.OPT_SORT_KEYS)
    assert [orjson.dumps(answer["parts"][0]["data"], option=orjson.OPT_SORT_KEYS) for answer in answers] == [
        written
    ] * 5


def send(client: TestClient, text: str, **members: Any) -> dict[str, Any]:
    """The task that a text comes to."""
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}], **members}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    task: dict[str, Any] = client.post("/a2a", json=call, headers={"a2a-version": "1.0"}).json()["result"]["task"]
    return task


def say(client: TestClient, text: str) -> dict[str, Any]:
    """The one part that a text is answered with."""
    [artifact] = send(client, text)["artifacts"]
    [part] = artifact["parts"]
    return {name: value for name, value in part.items() if name != "mediaType" or "text" in part}
