"""Sessions of the AWP door: how many, how long, whose; found again after a reconnect, carried elsewhere."""

import time

import pytest

from awp_publish import Awp, BearerToken, Proxies
from awp_publish.calls.tokens import Tokens
from awp_publish.plugins.awp import sessions as limits
from tests.client import TestClient
from tests.guarded import KEYS
from tests.plugins.awp.awp_client import AwpClient
from tests.plugins.awp.awp_site import make_site, publish

ANN = {"authorization": "Bearer ann-token"}
BEN = {"authorization": "Bearer ben-token"}


def known(open_client, **options: object) -> TestClient:
    """A site that knows Ann and Ben."""
    callers = BearerToken({"ann-token": "ann", "ben-token": "ben"})
    return open_client(publish(make_site(authenticate=callers, secret_keys=KEYS, **options)))


@pytest.fixture
def client(open_client) -> TestClient:
    return open_client(publish(make_site(secret_keys=KEYS)))


# --- Life ---


def test_one_connection_has_several_sessions_each_with_its_own_cookies(client):
    with AwpClient.greeted(client) as caller:
        one, other = caller.create(), caller.create()
        cookie = {"name": "n", "value": "1"}
        caller.do("session.cookies.set", session_id=one, cookies=[cookie])
        assert caller.do("session.cookies.get", session_id=one)["count"] == 1
        assert caller.do("session.cookies.get", session_id=other)["count"] == 0
        caller.do("session.cookies.clear", session_id=one)
        assert caller.do("session.cookies.get", session_id=one)["count"] == 0


def test_a_session_says_of_itself_what_it_was_told(client):
    with AwpClient.greeted(client) as caller:
        session = caller.create(user_agent="my-agent/1.0", profile={"locale": "de-DE"})
        caller.do("page.navigate", session_id=session, url="/echo")
        said = str(caller.do("page.observe", session_id=session)["som"])
    assert "[user-agent=my-agent/1.0]" in said
    assert "[accept-language=de-DE" in said


def test_all_connections_of_an_address_have_a_share_and_others_find_room(open_client, monkeypatch):
    monkeypatch.setattr(limits, "SMALLEST_SHARE", 2)
    monkeypatch.setattr(limits, "ADDRESS_SHARE", 2)
    site = make_site(plugins=[Awp(sessions=6)], proxies=Proxies(trusted=["127.0.0.1"]))
    app = publish(site)

    async def from_home(scope, receive, send):
        await app(scope if scope["type"] == "lifespan" else {**scope, "client": ("127.0.0.1", 1)}, receive, send)

    client = open_client(from_home)
    crowd, other = {"x-forwarded-for": "203.0.113.7"}, {"x-forwarded-for": "203.0.113.8"}
    with AwpClient.greeted(client, crowd) as one, AwpClient.greeted(client, crowd) as two:
        made = [one.create(), one.create(), two.create()]
        assert two.fail("session.create")["details"] == {
            "max_sessions": 3,
            "per": "address",
            "recovery": "Close a session with session.close, or come back later.",
        }
        with AwpClient.greeted(client, other) as somebody:
            waits = somebody.do("session.create")
        with AwpClient.greeted(client, crowd) as three:
            assert three.fail("session.create")["details"]["per"] == "address"
        with AwpClient.greeted(client, other) as somebody:
            asked = {name: waits[name] for name in ("session_id", "resume_token")}
            assert somebody.do("session.resume", **asked)
        one.do("session.close", session_id=made[0])
        assert two.create()


def test_there_are_no_more_pages_than_a_session_may_have(open_client, monkeypatch):
    monkeypatch.setattr(limits, "PAGES_PER_SESSION", 2)
    client = open_client(publish(make_site()))
    with AwpClient.greeted(client) as caller:
        session = caller.create()
        caller.do("page.create", session_id=session)
        assert caller.fail("page.create", session_id=session)["code"] == "RATE_LIMITED"


# --- Somebody else's ---


def test_somebody_elses_session_is_not_there(client):
    with AwpClient.greeted(client) as owner, AwpClient.greeted(client) as stranger:
        session = owner.create()
        for method in ("page.observe", "page.list", "session.close", "session.export", "session.cookies.get"):
            assert stranger.fail(method, session_id=session)["code"] == "NOT_FOUND"
        wrong = {"session_id": session, "resume_token": "x" * 32}
        assert stranger.fail("session.resume", **wrong)["code"] == "NOT_FOUND"
        assert stranger.do("session.list")["count"] == 0
        assert owner.do("page.list", session_id=session)["count"] == 1


def test_a_session_is_resumed_with_its_token(client):
    with AwpClient.greeted(client) as caller:
        made = caller.do("session.create")
        session, token = made["session_id"], made["resume_token"]
        caller.do("page.navigate", session_id=session, url="/next")
    with AwpClient.greeted(client) as caller:
        assert caller.fail("page.observe", session_id=session)["code"] == "NOT_FOUND"
        assert caller.fail("session.resume", session_id=session)["message"] == "Missing required param: resume_token"
        assert caller.fail("session.resume", session_id=session, resume_token="")["code"] == "NOT_FOUND"
        resumed = caller.do("session.resume", session_id=session, resume_token=token)
        assert resumed["url"] == "https://shop.example/next"
        assert caller.do("page.observe", session_id=session)["som"]["title"] == "Next"


def test_a_token_takes_a_session_from_a_connection_that_hangs(client):
    with AwpClient.greeted(client) as hanging, AwpClient.greeted(client) as caller:
        made = hanging.do("session.create")
        session, token = made["session_id"], made["resume_token"]
        caller.do("session.resume", session_id=session, resume_token=token)
        assert hanging.fail("page.list", session_id=session)["code"] == "NOT_FOUND"
        assert caller.do("page.list", session_id=session)["count"] == 1


def test_a_known_caller_finds_its_session_again_and_nobody_else_does(open_client):
    client = known(open_client)
    with AwpClient.greeted(client, ANN) as caller:
        made = caller.do("session.create")
    with AwpClient.greeted(client, BEN) as stranger:
        assert stranger.fail("page.list", session_id=made["session_id"])["code"] == "NOT_FOUND"
        wanted = {"session_id": made["session_id"], "resume_token": made["resume_token"]}
        assert stranger.fail("session.resume", **wanted)["code"] == "NOT_FOUND"
    with AwpClient.greeted(client, ANN) as caller:
        assert caller.do("page.list", session_id=made["session_id"])["count"] == 1


# --- Export and import ---


def test_an_exported_session_goes_on_elsewhere(open_client, client):
    with AwpClient.greeted(client) as caller:
        session = caller.create(user_agent="my-agent/1.0")
        caller.do("session.cookies.set", session_id=session, cookies=[{"name": "n", "value": "1"}])
        caller.do("page.navigate", session_id=session, url="/next")
        state = caller.do("session.export", session_id=session)["state"]
    elsewhere = open_client(publish(make_site(secret_keys=KEYS)))
    with AwpClient.greeted(elsewhere) as caller:
        imported = caller.do("session.import", state=state)
        session = imported["session_id"]
        assert imported["url"] == "https://shop.example/next"
        assert caller.do("session.cookies.get", session_id=session)["cookies"][0]["value"] == "1"
        assert caller.do("page.reload", session_id=session)["url"] == "https://shop.example/next"


def test_an_export_is_its_callers_alone(open_client):
    client = known(open_client)
    with AwpClient.greeted(client, ANN) as ann, AwpClient.greeted(client, BEN) as ben:
        state = ann.do("session.export", session_id=ann.create())["state"]
        assert ben.fail("session.import", state=state)["code"] == "PERMISSION_DENIED"
        assert ann.do("session.import", state=state)["session_id"]


def test_an_export_of_somebody_else_or_long_ago_is_refused(client):
    past = Tokens(KEYS, "awp_session:shop.example", 60, clock=lambda: time.time() - 61)
    forged = Tokens(["another-key-of-somebody-else"], "awp_session:shop.example", 60)
    confirmation = Tokens(KEYS, "confirmation:shop.example", 60)
    with AwpClient.greeted(client) as caller:
        state = caller.do("session.export", session_id=caller.create())["state"]
        facts = Tokens(KEYS, "awp_session:shop.example", 60).read(state)
        for wrong in (past, forged, confirmation):
            assert caller.fail("session.import", state=wrong.write(facts)[0])["code"] == "INVALID_REQUEST"
        for wrong_state in ("", "x", state + "x", state[:-1], 7, None):
            assert caller.fail("session.import", state=wrong_state)["code"] == "INVALID_REQUEST"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("session.list", "session.create"),
        ("skills.list", "session.list"),
        ("session.create", "page.navigate"),
        ("page.observe", "session.export"),
        ("page.list", "page.create"),
        ("session.list", "page.history"),
    ],
)
def test_a_key_is_for_one_method_reading_ones_too(client, first, second):
    with AwpClient.greeted(client) as caller:
        session = caller.create()
        caller.do("page.navigate", session_id=session, url="/next")
        params = {
            name: {}
            if name in ("session.list", "session.create", "skills.list")
            else {"session_id": session, "url": "/"}
            for name in (first, second)
        }
        assert "result" in caller.ask(first, params[first], key="k")
        assert "result" in caller.ask(first, params[first], key="k")
        assert caller.ask(second, params[second], key="k")["error"]["code"] == "CONFLICT"
        assert "result" in caller.ask(second, params[second], key="other")


def test_a_key_of_what_failed_is_free(client):
    with AwpClient.greeted(client) as caller:
        assert caller.ask("session.close", {"session_id": "s_none"}, key="k")["error"]["code"] == "NOT_FOUND"
        assert "result" in caller.ask("session.list", {}, key="k")


@pytest.mark.parametrize("wrong", [{"network": "proxy"}, {"profile": 3}, {"network": []}])
def test_session_options_have_to_be_an_object(client, wrong):
    with AwpClient.greeted(client) as caller:
        assert caller.fail("session.create", **wrong)["code"] == "INVALID_REQUEST"
