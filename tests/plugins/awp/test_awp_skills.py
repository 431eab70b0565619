"""The site's own actions at the AWP door: listed, invoked on the path of every call, inside of a session or not."""

import logging

import orjson
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from awp_publish import Awp, BearerToken, Refused, SessionUser, Site
from tests.client import TestClient
from tests.plugins.awp.awp_client import AwpClient
from tests.plugins.awp.awp_site import ROUTES, make_site, publish

RUNS: list[str] = []


def make_shop(**options: object) -> Site:
    site = make_site(**options)
    books = site.agent("books")

    @books.operation("find")
    async def find(title: str) -> dict[str, str]:
        """Find a book."""
        return {"found": title}

    @site.agent("add")
    async def add(numbers: list[int]) -> int:
        """Add numbers."""
        RUNS.append("add")
        return sum(numbers)

    @site.agent("fail")
    async def fail(how: str) -> str:
        """Fail."""
        if how.isdecimal():
            raise Refused("It is so.", status=int(how))
        if how == "refuse":
            raise Refused("The book is gone.", status=410, code="GONE")
        raise RuntimeError("a secret")

    @site.agent("slow", timeout=0.05)
    async def slow() -> str:
        """Take long."""
        import asyncio

        await asyncio.sleep(60)
        return ""

    @site.agent("pack", execution="async")
    async def pack() -> str:
        """Pack a parcel."""
        return "packed"

    return site


@pytest.fixture
def client(open_client) -> TestClient:
    return open_client(publish(make_shop()))


@pytest.fixture
def caller(client):
    with AwpClient.greeted(client) as caller:
        yield caller


def test_a_key_belongs_to_one_request_reading_ones_too(caller):
    session = caller.create()
    meta = {"idempotency_key": "k-1"}
    caller.do("page.navigate", session_id=session, url="/")
    asked = {"id": "7", "type": "request", "method": "som.get", "params": {"session_id": session}, "meta": meta}
    observe = caller.ask("page.observe", {"session_id": session}, meta=meta)
    assert "result" in observe, asked
    other = caller.ask("page.act", {"session_id": session, "intent": {"action": "scroll"}}, meta=meta)
    assert other["error"]["code"] == "CONFLICT"
    assert "result" in caller.ask("page.observe", {"session_id": session}, meta=meta)


def test_an_unsupported_session_option_is_refused_and_the_supported_ones_are_reported(caller):
    for params, name in (
        ({"proxy": "http://proxy.example"}, "proxy"),
        ({"network": {"proxy": {"url": "http://proxy.example"}}}, "network.proxy"),
        ({"profile": {"impersonate": "chrome128"}}, "profile.impersonate"),
    ):
        error = caller.ask("session.create", params)["error"]
        assert (error["code"], error["details"]["param"]) == ("UNSUPPORTED", name)
    assert caller.do("session.create", ttl_ms=60_000)["ttl_ms"] == 60_000
    assert caller.do("session.create", ttl_ms=10**12)["ttl_ms"] < 10**12


def test_a_problem_is_told_whole(caller):
    details = caller.fail("skills.invoke", skill="add", args={"numbers": ["x"]})["details"]
    assert (details["code"], details["status"]) == ("INVALID_INPUT", 422)
    assert details["errors"][0]["pointer"] == "/numbers/0"


def test_numbers_stay_as_they_are(open_client):
    with AwpClient.greeted(open_client(publish(make_shop()))) as caller:
        caller.say("skills.invoke", {"skill": "add", "args": {"numbers": [2**53 + 1]}})
        assert '"output":9007199254740993' in caller.socket.receive_text()


def test_a_skill_answers_in_message_pack(client):
    with AwpClient.open(client, is_packed=True) as caller:
        caller.do("awp.hello")
        assert caller.do("skills.invoke", skill="add", args={"numbers": [1, 2]})["output"] == 3


def test_a_key_runs_a_skill_once(caller):
    RUNS.clear()
    params = {"skill": "add", "args": {"numbers": [1]}}
    first, again = (caller.ask("skills.invoke", params, key="k-1")["result"] for _ in range(2))
    assert (first["output"], first, RUNS) == (1, again, ["add"])
    other = caller.ask("skills.invoke", {**params, "args": {"numbers": [2]}}, key="k-1")
    assert other["error"]["code"] == "CONFLICT"


def test_a_background_action_is_accepted_with_where_to_look(caller, client):
    answer = caller.do("skills.invoke", skill="pack")
    assert (answer["status"], answer["output"]["status"]) == ("accepted", "accepted")
    assert client.get(answer["headers"]["location"]).status_code == 200


def test_the_record_of_calls_has_the_trace_of_the_caller(caller, caplog):
    caplog.set_level(logging.INFO, "awp_publish.access")
    caller.ask("skills.invoke", {"skill": "add", "args": {"numbers": []}}, meta={"trace_id": "trace-7"})
    caller.ask("skills.invoke", {"skill": "nothing"}, meta={"trace_id": "trace-8"})
    lines = [orjson.loads(record.message) for record in caplog.records if record.name == "awp_publish.access"]
    noted = {(line["door"], line["action"], line["outcome"], line["request_id"]) for line in lines}
    assert {("awp", "add", "ok", "trace-7"), ("awp", None, "UNKNOWN_AGENT", "trace-8")} <= noted


def test_only_what_a_caller_may_call_is_listed_if_the_site_wants_that(open_client):
    site = make_site(authenticate=BearerToken({"token": "ann"}), plugins=[Awp(list_only_allowed=True)])

    @site.agent("mine", auth_required=True)
    async def mine() -> str:
        """What is mine."""
        return "mine"

    client = open_client(publish(site))
    for headers, count in (({}, 0), ({"authorization": "Bearer token"}, 1)):
        with AwpClient.greeted(client, headers) as caller:
            assert caller.do("skills.list")["count"] == count


# --- With a session ---


async def sign_in(request: Request) -> JSONResponse:
    request.session["user_id"] = (await request.json())["name"]
    return JSONResponse({"signed_in": True})


def who(request: Request) -> JSONResponse:
    return JSONResponse({"name": request.session.get("user_id", "nobody")})


@pytest.fixture
def shop_with_sessions(open_client, monkeypatch) -> TestClient:
    routes = [Route("/sign-in", sign_in, methods=["POST"]), Route("/who", who, methods=["POST"])]
    monkeypatch.setattr("tests.plugins.awp.awp_site.ROUTES", [*ROUTES, *routes])
    site = make_site(authenticate=SessionUser())
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    answer = {"type": "object"}
    site.declare("sign_in", method="POST", path="/sign-in", inputs=schema, outputs=answer, description="Sign in.")
    site.declare("who", method="POST", path="/who", outputs=answer, description="Who am I?", auth_required=True)
    return open_client(publish(site))


def test_signing_in_on_a_page_holds_for_the_skills_of_that_session(shop_with_sessions):
    with AwpClient.greeted(shop_with_sessions) as caller:
        session, other = caller.create(), caller.create()
        caller.do("page.navigate", session_id=session, url="/enter")
        caller.do("page.act", session_id=session, intent={"action": "type", "target": {"css": "input"}, "value": "Ann"})
        caller.do("page.act", session_id=session, intent={"action": "click", "target": {"css": "button"}})
        assert caller.do("skills.invoke", session_id=session, skill="who")["output"] == {"name": "Ann"}
        for params in ({"session_id": other}, {}):
            error = caller.fail("skills.invoke", skill="who", **params)
            assert error["details"]["code"] == "AUTHENTICATION_REQUIRED"


def test_signing_in_by_a_skill_holds_for_the_pages_of_that_session(shop_with_sessions):
    with AwpClient.greeted(shop_with_sessions) as caller:
        session = caller.create()
        answer = caller.do("skills.invoke", session_id=session, skill="sign_in", args={"name": "Ann"})
        assert "set-cookie" not in str(answer)
        caller.do("page.navigate", session_id=session, url="/")
        assert "Hello Ann." in str(caller.do("page.observe", session_id=session)["som"])
        assert caller.do("skills.invoke", session_id=session, skill="who")["output"] == {"name": "Ann"}


def test_a_session_and_its_connection_are_two_visitors(shop_with_sessions):
    entered = shop_with_sessions.post("/enter", data={"name": "Bob"}, follow_redirects=False)
    cookie = entered.headers["set-cookie"].partition(";")[0]
    with AwpClient.greeted(shop_with_sessions, {"cookie": cookie}) as caller:
        session = caller.create()
        assert caller.do("skills.invoke", skill="who")["output"] == {"name": "Bob"}
        error = caller.fail("skills.invoke", session_id=session, skill="who")
        assert error["details"]["code"] == "AUTHENTICATION_REQUIRED"
        assert caller.do("session.cookies.get", session_id=session)["count"] == 0
        caller.do("skills.invoke", session_id=session, skill="sign_in", args={"name": "Ann"})
        assert caller.do("skills.invoke", session_id=session, skill="who")["output"] == {"name": "Ann"}
        assert caller.do("skills.invoke", skill="who")["output"] == {"name": "Bob"}


def test_one_time_values_are_not_kept_for_a_repeated_request(open_client):
    site = make_site()

    @site.agent("issue", outputs={"type": "object", "properties": {"token": {"type": "string", "readOnce": True}}})
    async def issue() -> dict[str, str]:
        """Issue a token."""
        return {"token": "t0p"}

    with AwpClient.greeted(open_client(publish(site))) as caller:
        first, again = (
            caller.ask("skills.invoke", {"skill": "issue"}, meta={"idempotency_key": "k-1"}) for _ in range(2)
        )
    assert first["result"]["output"] == {"token": "t0p"}
    assert (again["error"]["code"], again["error"]["details"]["code"]) == ("CONFLICT", "ANSWER_NOT_KEPT")
