"""Who speaks at the AWP door: by the upgrade request, by a token, by a shared secret."""

import hashlib
import hmac
from typing import Any

import pytest

from awp_publish import (
    ApiKey,
    Awp,
    BearerToken,
    Credentials,
    DeclarationError,
    Principal,
    SessionUser,
    SharedSecret,
    current_caller,
)
from awp_publish.calls.authenticators import read_authenticators
from tests.client import TestClient
from tests.plugins.awp.awp_client import HELLO, AwpClient
from tests.plugins.awp.awp_site import make_site, publish

SECRET = "the-secret-of-the-warehouse"
TOKENS = BearerToken({"ann-token": Principal("ann", frozenset({"buy"})), "ben-token": "ben"})


def open_site(open_client, *authenticate: object, **options: object) -> TestClient:
    site = make_site(authenticate=list(authenticate), **options)

    @site.agent("who", auth_required=True)
    async def who() -> str:
        """Who calls."""
        caller = current_caller()
        return caller.id if caller else ""

    @site.agent("buy", scopes=["buy"])
    async def buy() -> str:
        """Buy."""
        return "bought"

    return open_client(publish(site))


def greet(client: TestClient, auth: Any = None, headers: dict[str, str] | None = None) -> Any:
    with AwpClient.open(client, headers) as caller:
        return caller.ask("awp.hello", {**HELLO, "auth": auth})


def sign(challenge: str, name: str = "warehouse", secret: str = SECRET) -> dict[str, str]:
    """As the documentation says it, from first principles."""
    text = f"awp.hello\n{name}\n{challenge}"
    signature = hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()
    return {"method": "auth.hmac", "key_id": name, "signature": signature}


# --- Nobody, tokens, keys ---


def test_a_site_that_knows_nobody_asks_for_nothing(open_client):
    auth = greet(open_client(publish()))["result"]["auth"]
    assert (auth["method"], auth["principal"], auth["methods"]) == ("auth.none", None, ["auth.none"])


@pytest.mark.parametrize("how", ["header", "hello", "type"])
def test_a_bearer_token_tells_who_speaks(open_client, how):
    client = open_site(open_client, TOKENS)
    token = {"method": "auth.bearer", "token": "ann-token"}
    auth = {"header": None, "hello": token, "type": {"type": "auth.bearer", "token": "ann-token"}}[how]
    headers = {"authorization": "Bearer ann-token"} if how == "header" else {}
    with AwpClient.open(client, headers) as caller:
        assert caller.do("awp.hello", auth=auth)["auth"]["principal"] == "ann"
        assert caller.do("skills.invoke", skill="who")["output"] == "ann"
        assert caller.do("skills.invoke", skill="buy")["output"] == "bought"


def test_a_token_in_the_handshake_goes_before_that_of_the_upgrade(open_client):
    client = open_site(open_client, TOKENS)
    with AwpClient.open(client, {"authorization": "Bearer ann-token"}) as caller:
        caller.do("awp.hello", auth={"method": "auth.bearer", "token": "ben-token"})
        assert caller.do("skills.invoke", skill="who")["output"] == "ben"
        assert caller.fail("skills.invoke", skill="buy")["details"]["code"] == "INSUFFICIENT_SCOPE"


def test_a_token_may_be_an_api_key(open_client):
    client = open_site(open_client, ApiKey({"key-of-ann": "ann"}))
    with AwpClient.open(client) as caller:
        assert (
            caller.do("awp.hello", auth={"method": "auth.bearer", "token": "key-of-ann"})["auth"]["principal"] == "ann"
        )
        assert caller.do("skills.invoke", skill="who")["output"] == "ann"


def test_a_session_of_the_application_tells_who_speaks(open_client):
    client = open_site(open_client, SessionUser())
    signed_in = client.post("/enter", data={"name": "Ann"}, follow_redirects=False)
    with AwpClient.open(client, {"cookie": signed_in.headers["set-cookie"].partition(";")[0]}) as caller:
        assert caller.do("awp.hello")["auth"]["principal"] == "Ann"
        assert caller.do("skills.invoke", skill="who")["output"] == "Ann"


def test_a_wrong_token_is_no_handshake(open_client):
    client = open_site(open_client, TOKENS)
    with AwpClient.open(client) as caller:
        error = caller.fail("awp.hello", auth={"method": "auth.bearer", "token": "wrong"})
        assert (error["code"], error["details"]["code"]) == ("PERMISSION_DENIED", "INVALID_CREDENTIALS")
        assert "www_authenticate" in error["details"]["headers"]
        assert caller.fail("session.create")["code"] == "INVALID_REQUEST"
        assert caller.do("awp.hello", auth={"method": "auth.bearer", "token": "ann-token"})


@pytest.mark.parametrize(
    "auth",
    [
        7,
        {},
        {"method": "auth.magic"},
        {"method": ["auth.none"]},
        {"method": "auth.bearer"},
        {"method": "auth.bearer", "token": ""},
        {"method": "auth.bearer", "token": 7},
        {"method": "auth.bearer", "token": "a\r\nx-evil: 1"},
        {"method": "auth.hmac", "key_id": "warehouse"},
    ],
)
def test_an_invalid_authentication_is_refused(open_client, auth):
    client = open_site(open_client, TOKENS, SharedSecret({"warehouse": SECRET}))
    assert greet(client, auth)["error"]["code"] == "INVALID_REQUEST"


def test_ways_that_a_site_does_not_take_are_unsupported(open_client):
    for auth in ({"method": "auth.bearer", "token": "x"}, sign("challenge")):
        assert greet(open_client(publish()), auth)["error"]["code"] == "UNSUPPORTED"


def test_a_site_may_ask_everybody_who_they_are(open_client):
    client = open_site(open_client, TOKENS, plugins=[Awp(auth_required=True)])
    assert greet(client)["error"]["code"] == "PERMISSION_DENIED"
    assert greet(client)["error"]["details"]["methods"] == ["auth.none", "auth.bearer"]
    assert greet(client, {"method": "auth.bearer", "token": "ann-token"})["result"]["auth"]["principal"] == "ann"


def test_a_connection_stays_with_its_caller(open_client):
    ann, ben = ({"method": "auth.bearer", "token": token} for token in ("ann-token", "ben-token"))
    with AwpClient.open(open_site(open_client, TOKENS)) as caller:
        caller.do("awp.hello")
        caller.do("awp.hello", auth=ann)
        assert caller.fail("awp.hello", auth=ben)["code"] == "CONFLICT"
        assert caller.do("awp.hello", auth=ann)["auth"]["principal"] == "ann"
        assert caller.do("awp.hello")["auth"]["principal"] == "ann"
    with AwpClient.open(open_site(open_client, TOKENS)) as caller:
        caller.do("awp.hello")
        caller.create()
        assert caller.fail("awp.hello", auth=ann)["code"] == "CONFLICT"


# --- Shared secrets ---


@pytest.fixture
def shared(open_client) -> TestClient:
    warehouse = Principal("warehouse", frozenset({"buy"}))
    return open_site(open_client, SharedSecret({warehouse: SECRET, "desk": "the-secret-of-the-desk"}))


def test_a_signed_challenge_tells_who_speaks(shared):
    with AwpClient.open(shared) as caller:
        answer = caller.do("awp.hello")["auth"]
        assert (answer["method"], answer["methods"]) == ("auth.none", ["auth.none", "auth.hmac"])
        assert caller.fail("skills.invoke", skill="who")["details"]["code"] == "AUTHENTICATION_REQUIRED"
        assert caller.do("awp.hello", auth=sign(answer["challenge"]))["auth"]["principal"] == "warehouse"
        assert caller.do("skills.invoke", skill="who")["output"] == "warehouse"
        assert caller.do("skills.invoke", skill="buy")["output"] == "bought"


def test_a_signature_is_good_once_and_on_its_own_connection(shared):
    with AwpClient.open(shared) as caller, AwpClient.open(shared) as thief:
        signed = sign(caller.do("awp.hello")["auth"]["challenge"])
        assert thief.fail("awp.hello", auth=signed)["code"] == "PERMISSION_DENIED"
        assert caller.do("awp.hello", auth=signed)
        assert caller.fail("awp.hello", auth=signed)["code"] == "PERMISSION_DENIED"


def test_a_refused_signature_is_told_what_to_sign_next(shared):
    with AwpClient.open(shared) as caller:
        wrong = {"method": "auth.hmac", "key_id": "warehouse", "signature": "0" * 64}
        challenge = caller.fail("awp.hello", auth=wrong)["details"]["challenge"]
        assert caller.do("awp.hello", auth=sign(challenge))["auth"]["principal"] == "warehouse"


def test_secrets_are_not_exchanged(shared):
    with AwpClient.open(shared) as caller:
        for name, secret in (("desk", SECRET), ("nobody", SECRET), ("warehouse", SECRET + "x")):
            challenge = caller.do("awp.hello")["auth"]["challenge"]
            auth = {"method": "auth.hmac", "key_id": name, "signature": sign(challenge, name, secret)["signature"]}
            assert caller.fail("awp.hello", auth=auth)["code"] == "PERMISSION_DENIED"


async def test_no_header_is_a_signature():
    shared = SharedSecret({"warehouse": SECRET})
    assert await shared(Credentials({"authorization": f"HMAC {sign('x')}"})) is None


@pytest.mark.parametrize("known", [{}, None, {"warehouse": "short"}, {"": SECRET}, {"warehouse": 7}, {7: SECRET}])
def test_an_unusable_shared_secret_is_refused(known):
    with pytest.raises(DeclarationError) as refused:
        SharedSecret(known)
    assert "short" not in str(refused.value)


def test_people_of_shared_secrets_have_a_name():
    with pytest.raises(DeclarationError, match=r"\bSharedSecret: people is not a name"):
        SharedSecret({"warehouse": SECRET}, people="a b")


# --- For how long ---


def open_held(open_client, tokens: dict[str, Principal]) -> tuple[TestClient, list[str]]:
    """A site that knows these tokens, and how often it was asked for one."""
    asked: list[str] = []

    def known(shown: Credentials) -> Principal | None:
        asked.append(shown.headers.get("authorization", ""))
        return tokens.get(asked[-1])

    return open_site(open_client, known), asked


@pytest.mark.parametrize("how", ["it expires", "it is withdrawn"])
def test_a_connection_is_known_for_as_long_as_its_token_is_good(open_client, monkeypatch, how):
    values: dict[str, object] = {"exp": 1} if how == "it expires" else {}
    ann = Principal("ann", frozenset({"page:act", "session:write"}), values)
    tokens = {"Bearer one": ann, "Bearer two": ann}
    client, asked = open_held(open_client, tokens)
    with AwpClient.greeted(client, auth={"method": "auth.bearer", "token": "one"}) as caller:
        if how == "it is withdrawn":
            caller.do("session.list")
            assert len(asked) == 1, "nobody is asked about each message"
            monkeypatch.setattr("awp_publish.plugins.awp.callers.VERIFY_SECONDS", 0.0)
        session = caller.do("session.create")["session_id"]
        del tokens["Bearer one"]
        refused = caller.fail("page.navigate", session_id=session, url="/")
        assert refused["code"] == "PERMISSION_DENIED"
        assert caller.fail("skills.list")["message"] == refused["message"]
        # Of the same caller another token will do, and the sessions are theirs as before.
        caller.do("awp.hello", **HELLO, auth={"method": "auth.bearer", "token": "two"})
        assert caller.do("page.navigate", session_id=session, url="/")["status"] == 200


def test_changed_scopes_of_a_caller_apply_at_once(open_client, monkeypatch):
    monkeypatch.setattr("awp_publish.plugins.awp.callers.VERIFY_SECONDS", 0.0)
    tokens = {"Bearer one": Principal("ann", frozenset({"som:read", "session:write"}))}
    client, _ = open_held(open_client, tokens)
    with AwpClient.greeted(client, {"authorization": "Bearer one"}) as caller:
        caller.do("session.create")
        tokens["Bearer one"] = Principal("ann", frozenset({"som:read"}))
        assert caller.fail("session.create")["details"]["required_scope"] == "session:write"


def test_two_tables_of_shared_secrets_say_whom_they_know():
    with pytest.raises(DeclarationError, match="people="):
        read_authenticators([SharedSecret({"ann": "a" * 16}), SharedSecret({"ann": "b" * 16})])
