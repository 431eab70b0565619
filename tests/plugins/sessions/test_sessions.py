"""Callers without a cookie jar: what actions set in cookies is kept under an id that the answer hands out."""

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from a2a.types.a2a_pb2 import Task
from fastapi import Depends, FastAPI, HTTPException
from fastapi.security import APIKeyCookie
from starlette.applications import Starlette
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from awp_publish import AgentPublisher, BearerToken, SessionUser, Site
from awp_publish.http.running import running
from awp_publish.plugins.sessions import cookies as sessions
from awp_publish.stores.memory import MemoryStore
from tests.doors.adapters import DOORS
from tests.guarded import Watched, invoke_agent, make_shop, poll, status_and_code
from tests.plugins.a2a.a2a_client import Caller, make_caller, make_request, output
from tests.plugins.awp.awp_client import AwpClient
from tests.plugins.mcp.mcp_messages import MODES, connect_to, message, post, without_cookie_jar

DOOR_NAMES = ["mcp", "a2a", "awp"]
BEARERS = BearerToken({"ann-secret": "ann", "ben-secret": "ben"})


class PerRequest(BaseHTTPMiddleware):
    async def dispatch(self, request, call_next):
        return await call_next(request)


def make_app(placed: str = "outside", **options) -> tuple[Site, Starlette]:
    """A shop that knows its visitors by Starlette's session, which is placed outside of us or inside."""
    known = SessionUser("user", endpoints={"login": "/sign-in"})
    given = {"plugins": DOOR_NAMES, "authenticate": [BEARERS, known], **options}
    site = make_shop(**given)

    text: Any = {"outputs": {"type": "string"}}

    @site.action(
        "sign_in", **text, inputs={"type": "object", "properties": {"name": {"type": "string"}}}, method="POST"
    )
    async def sign_in(request: Request) -> Response:
        """Sign in."""
        request.session["user"] = (await request.json()).get("name", "eve")
        return JSONResponse("welcome")

    @site.action("sign_out", **text, method="POST")
    async def sign_out(request: Request) -> Response:
        """Sign out."""
        request.session.clear()
        return JSONResponse("bye")

    @site.action("whoami", **text, method="GET")
    async def whoami(request: Request) -> Response:
        """Say who it is."""
        return JSONResponse(request.session.get("user", "nobody"))

    @site.action(
        "add",
        method="POST",
        inputs={"type": "object", "properties": {"title": {"type": "string"}}},
        outputs={"type": "array"},
    )
    async def add(request: Request) -> Response:
        """Put a book aside, in a cookie of its own."""
        title = (await request.json())["title"]
        answer = JSONResponse(sorted(cooky for cooky in request.cookies if cooky != "session"))
        answer.set_cookie(title, "1")
        return answer

    @site.action("later", method="POST", execution="async")
    async def later(request: Request) -> Response:
        """Say who it is, later."""
        return JSONResponse([request.session.get("user", "nobody"), request.headers.get("awp-session")])

    @site.action("sign_in_later", method="POST", execution="async")
    async def sign_in_later(request: Request) -> Response:
        """Sign in, later."""
        request.session["user"] = "eve"
        request.session["times"] = request.session.get("times", 0) + 1
        return JSONResponse(request.session["times"])

    @site.action("count", method="POST")
    async def count(request: Request) -> Response:
        """Count, in a member of the session that identifies nobody."""
        request.session["times"] = request.session.get("times", 0) + 1
        return JSONResponse([request.session.get("user", "nobody"), request.session["times"]])

    @site.action("refuse", method="POST")
    async def refuse(request: Request) -> Response:
        """Refuse, with a cookie."""
        answer = JSONResponse({"detail": "Not today."}, 409)
        answer.set_cookie("refused", "1")
        return answer

    @site.action("go", method="POST")
    async def go(request: Request) -> Response:
        """Go elsewhere, with two cookies."""
        answer = Response(status_code=303, headers={"location": "/me"})
        answer.set_cookie("gone", "1")
        answer.set_cookie("theme", "dark", path="/go")
        return answer

    @site.action("broken", method="POST")
    async def broken(request: Request) -> Response:
        """Fail."""
        raise RuntimeError(f"headers: {request.headers!r}")

    @site.agent("mine", auth_required=placed != "inside")
    async def mine() -> str:
        """What is mine."""
        return "mine"

    handlers = [("/sign-in", sign_in), ("/sign-out", sign_out), ("/add", add), ("/later", later), ("/broken", broken)]
    handlers += [("/sign-in-later", sign_in_later), ("/refuse", refuse), ("/go", go), ("/count", count)]
    routes = [Route(path, handler, methods=["POST"]) for path, handler in handlers]
    app = Starlette(routes=[*routes, Route("/me", whoami)])
    if placed == "inside":
        app.add_middleware(SessionMiddleware, secret_key="secret")
    app.add_middleware(AgentPublisher, site=site)
    if placed != "inside":
        app.add_middleware(SessionMiddleware, secret_key="secret", max_age=1000)
        app.add_middleware(PerRequest)
    return site, app


@pytest.fixture
def client(open_client):
    return without_cookie_jar(open_client(make_app()[1]))


@asynccontextmanager
async def running_http(app) -> AsyncIterator[Any]:
    """A client that keeps no cookies, in front of an application that runs."""
    async with running(app), httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as http:
        yield without_cookie_jar(http)


async def in_context(caller: Caller, context_id: str, skill: str, given: object = None) -> Task:
    """The task of a message in a context."""
    request = make_request({"skill": skill, "input": given or {}})
    request.message.context_id = context_id
    async for answer in caller.client.send_message(request):
        task = answer.task
    return task


def sign_in(client) -> str:
    return invoke_agent(client, "sign_in", {"name": "eve"}).headers["awp-session"]


# --- Signing in, being known, signing out ---


@pytest.mark.parametrize("door", DOORS)
def test_an_anonymous_caller_is_told_which_action_signs_in(open_client, door):
    caller = DOORS[door](without_cookie_jar(open_client(make_app()[1])))
    recovery = caller.call("mine").recovery
    assert all(
        words in recovery for words in ("Call sign_in", "cookies", "the header AWP-Session", "as session beside")
    )


OWN_COOKIE = Depends(APIKeyCookie(name="user", auto_error=False))


@pytest.mark.parametrize("is_own", [False, True], ids=["of a middleware", "in a cookie of its own"])
def test_sessions_of_the_application_itself_are_explained_where_an_action_begins_them(open_client, is_own):
    site, app = make_shop(), FastAPI()

    @app.post("/auth/log-in")
    @site.action("enter")
    async def enter(request: Request, response: Response, name: str) -> str:
        """Log in."""
        if is_own:
            response.set_cookie("user", name)
        else:
            request.session["user"] = name
        return "welcome"

    async def of_middleware(request: Request) -> str:
        """Say who I am."""
        if "user" not in request.session:
            raise HTTPException(401)
        return request.session["user"]

    async def of_cookie(user: str | None = OWN_COOKIE) -> str:
        """Say who I am."""
        if user is None:
            raise HTTPException(401)
        return user

    app.get("/me")(site.action("whoami")(of_cookie if is_own else of_middleware))
    app.add_middleware(AgentPublisher, site=site)
    if not is_own:
        app.add_middleware(SessionMiddleware, secret_key="of the site")
    client = without_cookie_jar(open_client(app))
    for path in ("/agent.json", "/.well-known/ai-actions.json", "/.well-known/woa.json", "/llms.txt"):
        assert "AWP-Session" in client.get(path).text, path
    refused = invoke_agent(client, "whoami")
    assert refused.status_code == 401
    assert refused.json()["recovery"].startswith("Call enter, then")
    session = invoke_agent(client, "enter", {"name": "eve"}).headers["awp-session"]
    assert invoke_agent(client, "whoami", session=session).json() == "eve"


@pytest.mark.parametrize("placed", ["outside", "trusted", "inside"])
@pytest.mark.parametrize("door", DOORS)
def test_a_signed_in_person_is_known_until_they_sign_out_in_every_kind_of_session(open_client, door, placed):
    caller = DOORS[door](without_cookie_jar(open_client(make_app(placed)[1])))
    begun = caller.call("sign_in", {"name": "eve"})
    session = begun.session
    assert (begun.output, session is not None) == ("welcome", True)
    assert caller.call("whoami").output == "nobody"
    assert caller.call("whoami", session=session).output == "eve"
    assert caller.call("mine", session=session).output == "mine"
    assert caller.call("mine").code == (None if placed == "inside" else "AUTHENTICATION_REQUIRED")
    assert caller.call("add", {"title": "emma"}, session=session).output == []
    assert caller.call("add", {"title": "dune"}, session=session).output == ["emma"]
    begun = caller.call("sign_in", {"name": "joe"}, session=session)
    assert caller.call("whoami", session=session).code == "SESSION_UNKNOWN", "somebody else is signed in now"
    session = begun.session
    assert caller.call("whoami", session=session).output == "joe"
    ended = caller.call("sign_out", session=session)
    assert ended.output == "bye"
    assert caller.call("whoami", session=ended.session).output == "nobody"
    assert caller.call("add", {"title": "ulysses"}, session=ended.session).output == ["dune", "emma"]


@pytest.mark.parametrize("door", DOORS)
def test_a_session_whose_cookies_are_cleared_is_over_and_the_way_back_is_told(open_client, door):
    caller = DOORS[door](without_cookie_jar(open_client(make_app()[1])))
    session = str(caller.call("sign_in", {"name": "eve"}).session)
    assert caller.call("sign_out", session=session).code is None
    over = caller.call("whoami", session=session)
    assert (over.code, over.challenge) == ("SESSION_UNKNOWN", "AWP-Session")
    assert over.recovery.startswith("Leave the session out and call sign_in,")
    assert session not in f"{over}"


def test_pages_of_other_origins_may_read_the_session(open_client):
    client = without_cookie_jar(open_client(make_app(allow_origins=["https://other.example"])[1]))
    answer = invoke_agent(client, "sign_in", headers={"origin": "https://other.example"})
    assert "AWP-Session" in answer.headers["access-control-expose-headers"]


# --- Whose it is ---


def test_a_job_is_read_with_a_session_by_those_alone_whose_session_it_is(client):
    readers = {"ann": {"authorization": "Bearer ann-secret"}, "ben": {"authorization": "Bearer ben-secret"}, "": {}}
    for owner in ("ann", ""):
        session = invoke_agent(client, "sign_in", {"name": "eve"}, headers=readers[owner]).headers["awp-session"]
        job = invoke_agent(client, "later", session=session, headers=readers[owner]).headers["location"]
        for reader, credentials in readers.items():
            answer = client.get(job, headers={**credentials, "awp-session": session})
            refusal = None if answer.status_code == 200 else status_and_code(answer)
            assert refusal == (None if reader == owner else (401, "SESSION_UNKNOWN")), (owner, reader)


def test_a_site_may_know_the_users_of_its_session_by_a_function_of_its_own(open_client):
    app = make_app(authenticate=lambda credentials: (credentials.session or {}).get("user"))[1]
    client = without_cookie_jar(open_client(app))
    session = sign_in(client)
    assert status_and_code(invoke_agent(client, "mine")) == (401, "AUTHENTICATION_REQUIRED")
    assert invoke_agent(client, "mine", session=session).json() == "mine"


def test_unknown_callers_of_one_address_begin_only_so_many_sessions(open_client, monkeypatch, caplog):
    monkeypatch.setattr(sessions, "MAX_ANONYMOUS", 2)
    client = without_cookie_jar(open_client(make_app()[1]))
    begun = [invoke_agent(client, "sign_in") for _ in range(3)]
    assert [answer.status_code for answer in begun] == [200, 200, 200]
    assert ["awp-session" in answer.headers for answer in begun] == [True, True, False]
    assert "a session was refused" in caplog.text
    ann = {"authorization": "Bearer ann-secret"}
    assert "awp-session" in invoke_agent(client, "sign_in", headers=ann).headers


def test_a_site_without_cookies_keeps_no_sessions_and_asks_for_none(open_client):
    store = Watched(MemoryStore())
    site = make_shop(plugins=["mcp"], store=store)

    @site.action("set")
    async def set_cookie(request: Request) -> Response:
        """Set a cookie."""
        answer = PlainTextResponse("set")
        answer.set_cookie("theme", "dark")
        return answer

    app = Starlette(routes=[Route("/set", set_cookie, methods=["POST"])])
    client = open_client(AgentPublisher(app, site=site))
    assert "awp-session" not in invoke_agent(client, "set").headers
    [tool] = post(client, message("tools/list")).json()["result"]["tools"]
    assert "session" not in tool["inputSchema"].get("properties", {})
    assert store.runs == []


def test_cookies_of_proxies_and_statistics_begin_no_session(open_client):
    site = make_shop(authenticate=SessionUser())

    @site.action("look", method="GET")
    async def look(request: Request) -> Response:
        """Look."""
        answer = PlainTextResponse("books")
        for name in ("_ga", "csrftoken", "AWSALB"):
            answer.set_cookie(name, "1")
        answer.delete_cookie("old")
        return answer

    app = Starlette(routes=[Route("/look", look)])
    app.add_middleware(AgentPublisher, site=site)
    answer = invoke_agent(without_cookie_jar(open_client(app)), "look")
    assert (answer.status_code, "awp-session" in answer.headers) == (200, False)


# --- What stands outside of us, and what takes long ---


@pytest.mark.parametrize("slow", ["sleeps", "blocks a thread"])
def test_a_deadline_holds_in_a_session(open_client, slow):
    go = threading.Event()
    site, app = make_app()

    async def sleep(request: Request) -> Response:
        """Sleep."""
        await asyncio.sleep(60)
        return JSONResponse("slept")

    def block(request: Request) -> Response:
        """Sleep."""
        go.wait(30)
        return JSONResponse("slept")

    handler = site.action("nap", method="POST", timeout=0.2)(sleep if slow == "sleeps" else block)
    app.add_route("/nap", handler, methods=["POST"])
    client = without_cookie_jar(open_client(app))
    session = sign_in(client)
    timer = threading.Timer(1, go.set)  # only then the answer's connection ends
    timer.start()
    assert status_and_code(invoke_agent(client, "nap", session=session)) == (504, "HANDLER_TIMEOUT")
    timer.join()
    assert invoke_agent(client, "whoami", session=session).json() == "eve"


@pytest.mark.parametrize(
    ("how", "answered"),
    [
        ("refuses", (403, "INSUFFICIENT_PERMISSIONS")),
        ("fails", (500, "HANDLER_FAILED")),
        ("answers", (500, "HANDLER_FAILED")),
    ],
)
def test_middleware_may_keep_a_session_from_its_action(open_client, how, answered):
    class Keeper:
        def __init__(self, app):
            self.app = app

        async def __call__(self, scope, receive, send):
            if scope["type"] == "http" and any(name == b"cookie" for name, _ in scope["headers"]):
                if how == "fails":
                    raise RuntimeError("a bug")
                await PlainTextResponse("no", 403 if how == "refuses" else 200)(scope, receive, send)
                return
            await self.app(scope, receive, send)

    app = make_app()[1]
    app.add_middleware(Keeper)
    client = without_cookie_jar(open_client(app))
    assert status_and_code(invoke_agent(client, "whoami", session=sign_in(client))) == answered


# --- A secret ---


def test_a_session_is_in_no_log_no_record_of_a_call_no_job_and_no_request_of_a_route(open_client, caplog):
    caplog.set_level(logging.DEBUG)
    kept = Watched(MemoryStore())
    steps = []

    async def note(given):
        steps.extend(given)

    kept.trouble = note
    site, app = make_app(store=kept, log_inputs=True)
    facts: list[Any] = []
    site.on_call(facts.append)
    client = without_cookie_jar(open_client(app))
    session = sign_in(client)
    for headers, members in (({"awp-session": session}, {}), ({}, {"session": session})):
        assert status_and_code(invoke_agent(client, "broken", headers=headers, **members)) == (500, "HANDLER_FAILED")
        job = invoke_agent(client, "later", headers=headers, **members).headers["location"]
        assert status_and_code(client.get(job)) == (404, "UNKNOWN_JOB")
        assert poll(client, job, {"awp-session": session}).json()["result"] == ["eve", None]
    sent = message("tools/call", {"name": "whoami", "arguments": {"session": session}})
    assert post(client, sent).json()["result"]["isError"] is False
    assert session not in caplog.text
    assert session not in repr(facts)
    assert [fact["input"] for fact in facts if fact["action"] == "whoami"] == [{}]
    assert session not in repr(steps)
    assert any(getattr(step, "key", "").startswith("session:") for step in steps)


@pytest.mark.parametrize("placed", ["outside", "trusted", "inside"])
def test_the_cookies_of_a_background_action_are_its_sessions(open_client, placed):
    kept = Watched(MemoryStore())
    steps = []

    async def note(given):
        steps.extend(given)

    kept.trouble = note
    client = without_cookie_jar(open_client(make_app(placed, store=kept)[1]))
    accepted = invoke_agent(client, "sign_in_later")
    assert "awp-session" not in accepted.headers  # none has begun
    ended = poll(client, accepted.headers["location"])
    session = ended.headers["awp-session"]
    assert "set-cookie" not in ended.headers
    assert invoke_agent(client, "whoami", headers={"awp-session": session}).json() == "eve"
    assert session not in repr(steps)

    # A session that there is has what its jobs set.
    for times in (2, 3):
        accepted = invoke_agent(client, "sign_in_later", headers={"awp-session": session})
        ended = poll(client, accepted.headers["location"], {"awp-session": session})
        assert ended.json()["result"] == times
        assert "awp-session" not in ended.headers
    invoke_agent(client, "sign_out", headers={"awp-session": session})
    assert status_and_code(invoke_agent(client, "whoami", headers={"awp-session": session})) == (401, "SESSION_UNKNOWN")
    assert "awp-session" not in poll(client, invoke_agent(client, "later").headers["location"]).headers


async def test_a_background_skill_signs_in_for_its_a2a_context():
    async with running_http(make_app()[1]) as http:
        caller = make_caller(http, "https://shop.example/a2a", "1.0 JSON-RPC")
        assert output(await caller.call("sign_in_later")) == 1
        task = await in_context(caller, (await caller.call("whoami")).context_id, "sign_in_later")
        assert output(task) == 1
        assert output(await in_context(caller, task.context_id, "whoami")) == "eve"


def test_a_task_of_a2a_does_not_keep_the_session_that_its_message_showed(open_client):
    client = without_cookie_jar(open_client(make_app()[1]))
    session = sign_in(client)
    for data, metadata in (
        ({"skill": "whoami", "input": {}, "session": session}, {}),
        ({"skill": "whoami", "input": {}}, {"session": session}),
    ):
        sent = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"data": data}], "metadata": metadata}
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": sent}}
        task = client.post("/a2a", json=body, headers={"a2a-version": "1.0"}).json()["result"]["task"]
        assert task["artifacts"][0]["parts"][0]["text"] == "eve"
        got = {**body, "method": "GetTask", "params": {"id": task["id"]}}
        answer = client.post("/a2a", json=got, headers={"a2a-version": "1.0"})
        assert "COMPLETED" in answer.text
        assert session not in answer.text


# --- Several calls at a time ---


async def test_calls_of_one_session_at_the_same_time_lose_no_cookie():
    transport = httpx2.ASGITransport(make_app()[1])
    async with httpx2.AsyncClient(transport=transport, base_url="https://shop.example") as http:
        without_cookie_jar(http)

        async def add(title, session=None):
            given = {"input": {"title": title}, "session": session}
            return await http.post("/agents/add/invoke", json=given)

        session = (await add("first")).headers["awp-session"]
        titles = [f"book{number}" for number in range(12)]
        await asyncio.gather(*(add(title, session) for title in titles))
        assert (await add("last", session)).json() == sorted(["first", *titles])


# --- What is the door's own ---


@pytest.mark.parametrize("mode", MODES)
async def test_the_official_mcp_client_without_a_jar_signs_in_and_out_by_an_argument(mode):
    _, app = make_app()
    async with running_http(app) as http, connect_to("https://shop.example/mcp", http, mode) as client:
        [tool] = [tool for tool in (await client.list_tools()).tools if tool.name == "whoami"]
        assert tool.input_schema["properties"]["session"]["type"] == "string"
        assert "session" not in tool.input_schema.get("required", [])
        begun = await client.call_tool("sign_in", {"name": "eve"})
        session = begun.meta["awp/headers"]["awp-session"]
        assert begun.content[1].text.splitlines()[0] == f"session: {session}"
        again = await client.call_tool("whoami", {"session": session})
        assert again.content[0].text == "eve"
        by_meta = await client.call_tool("whoami", {}, meta={"awp/session": session})
        assert by_meta.content == again.content
        await client.call_tool("sign_out", {"session": session})
        over = await client.call_tool("whoami", {"session": session})
    assert (over.is_error, over.meta["awp/problem"]["code"]) == (True, "SESSION_UNKNOWN")


def test_a_tool_whose_input_has_a_session_of_its_own_keeps_it(open_client):
    site, app = make_app()

    @site.agent("book")
    async def book(session: str) -> str:
        """Book a session in the cinema."""
        return session

    client = without_cookie_jar(open_client(app))
    known = sign_in(client)
    tools = {tool["name"]: tool for tool in post(client, message("tools/list")).json()["result"]["tools"]}
    assert "earlier answer" not in json.dumps(tools["book"]["inputSchema"])
    sent = message("tools/call", {"name": "book", "arguments": {"session": "9 pm"}}, meta={"awp/session": known})
    assert post(client, sent).json()["result"]["structuredContent"] == "9 pm"


def test_calls_of_skills_on_one_connection_have_one_session(open_client):
    client = without_cookie_jar(open_client(make_app()[1]))
    with AwpClient.greeted(client) as first, AwpClient.greeted(client) as second:
        assert first.do("skills.invoke", skill="whoami")["output"] == "nobody"
        first.do("skills.invoke", skill="sign_in", args={"name": "eve"})
        assert first.do("skills.invoke", skill="whoami")["output"] == "eve"
        assert second.do("skills.invoke", skill="whoami")["output"] == "nobody"
        first.do("skills.invoke", skill="sign_out")
        assert first.do("skills.invoke", skill="whoami")["output"] == "nobody"
        first.do("skills.invoke", skill="sign_in", args={"name": "joe"})
        assert first.do("skills.invoke", skill="whoami")["output"] == "joe"


def test_a_session_of_pages_has_cookies_of_its_own(open_client):
    client = without_cookie_jar(open_client(make_app()[1]))
    with AwpClient.greeted(client) as caller:
        pages = caller.create()
        caller.do("skills.invoke", skill="sign_in", args={"name": "eve"})
        assert caller.do("skills.invoke", skill="whoami", session_id=pages)["output"] == "nobody"
        told_ = caller.do("skills.invoke", skill="sign_in", args={"name": "joe"}, session_id=pages)
        assert "awp-session" not in told_.get("headers", {})
        assert caller.do("skills.invoke", skill="whoami", session_id=pages)["output"] == "joe"
        assert caller.do("skills.invoke", skill="whoami")["output"] == "eve"
