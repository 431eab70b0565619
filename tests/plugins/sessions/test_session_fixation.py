"""A stranger begins a session, and has somebody else's agent sign in with it. The stranger learns nothing."""

import asyncio
import re

import pytest

from tests.doors.adapters import DOORS
from tests.guarded import invoke_agent, status_and_code
from tests.plugins.a2a.a2a_client import make_caller, output
from tests.plugins.mcp.mcp_messages import without_cookie_jar
from tests.plugins.sessions.test_sessions import in_context, make_app, running_http


@pytest.fixture
def client(open_client):
    return without_cookie_jar(open_client(make_app()[1]))


@pytest.mark.parametrize("placed", ["outside", "trusted", "inside"])
@pytest.mark.parametrize("door", DOORS)
def test_signing_in_changes_the_session_id(open_client, door, placed):
    client = without_cookie_jar(open_client(make_app(placed)[1]))
    stranger, victim = DOORS[door](client), DOORS[door](client)
    planted = stranger.call("add", {"title": "emma"}).session
    assert planted is not None
    signed_in = victim.call("sign_in", {"name": "VICTIM"}, session=planted)
    assert signed_in.output == "welcome"
    assert signed_in.session not in (None, planted)
    refused = stranger.call("whoami", session=planted)
    assert (refused.code, "VICTIM" in str(refused)) == ("SESSION_UNKNOWN", False)
    assert victim.call("whoami", session=signed_in.session).output == "VICTIM"
    assert victim.call("add", {"title": "dune"}, session=signed_in.session).output == ["emma"], "what it had is kept"


@pytest.mark.parametrize("door", DOORS)
def test_a_change_of_what_identifies_nobody_keeps_the_session(open_client, door):
    caller = DOORS[door](without_cookie_jar(open_client(make_app()[1])))
    session = caller.call("add", {"title": "emma"}).session
    assert caller.call("add", {"title": "dune"}, session=session).session is None
    assert caller.call("add", {"title": "ulysses"}, session=session).output == ["dune", "emma"]


def test_a_caller_who_lost_the_new_session_is_told_a_recovery(client):
    first = invoke_agent(client, "sign_in", {"name": "eve"}).headers["awp-session"]
    invoke_agent(client, "sign_in", {"name": "joe"}, headers={"awp-session": first})
    refused = invoke_agent(client, "whoami", headers={"awp-session": first})
    assert status_and_code(refused) == (401, "SESSION_UNKNOWN")
    assert "sign in again" in refused.json()["recovery"]


async def test_a_context_that_others_know_signs_nobody_in():
    async with running_http(make_app()[1]) as http:
        caller = make_caller(http, "https://shop.example/a2a", "1.0 JSON-RPC")
        planted = (await caller.call("whoami")).context_id
        await in_context(caller, planted, "sign_in", {"name": "VICTIM"})
        assert output(await in_context(caller, planted, "whoami")) == "nobody"


def test_the_page_to_try_an_action_takes_no_session_from_its_address(open_client):
    client = open_client(make_app(plugins=["overview"])[1])
    page = client.get("/agents/try/sign_in?awp-session=PLANTED&awp-key=k&awp-receipts=r")
    assert page.status_code == 200
    assert "PLANTED" not in page.text


async def test_calls_under_way_when_the_session_gets_a_new_id_lose_no_cookie_and_learn_nothing():
    async with running_http(make_app()[1]) as http:
        begun = await http.post("/agents/add/invoke", json={"input": {"title": "emma"}})
        session = {"awp-session": begun.headers["awp-session"]}
        titles = [f"book{number}" for number in range(10)]
        calls = [http.post("/agents/add/invoke", json={"input": {"title": title}}, headers=session) for title in titles]
        signing_in = http.post("/agents/sign_in/invoke", json={"input": {"name": "VICTIM"}}, headers=session)
        signed_in, *answers = await asyncio.gather(signing_in, *calls)
        assert all("awp-session" not in answer.headers for answer in answers)
        renewed = {"awp-session": signed_in.headers["awp-session"]}
        kept = (await http.post("/agents/add/invoke", json={"input": {"title": "last"}}, headers=renewed)).json()
        added = [title for title, answer in zip(titles, answers, strict=True) if answer.status_code == 200]
        assert set(kept) >= {"emma", *added}
        ended = await http.post("/agents/whoami/invoke", json={"input": {}}, headers=session)
        assert (ended.status_code, re.search("VICTIM", ended.text)) == (401, None)
