"""JSON Web Tokens, signed with real keys, and a real server that publishes them."""

import asyncio
import base64
import hashlib
import hmac
import json
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, strategies as st
from jwt.algorithms import RSAAlgorithm

from awp_publish.calls.authentication import AuthenticationGate
from awp_publish.calls.authenticators import published_facts
from awp_publish.calls.call import Credentials, Principal
from awp_publish.plugins.identity.jwt import JwtBearer
from awp_publish.problems import DeclarationError, InvalidCredentials, Problem, TemporarilyUnavailable
from tests.rsa_keys import rsa_key

ISSUER = "https://login.example"
AUDIENCE = "https://shop.example"


CURVES = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}
EC_KEYS = {name: ec.generate_private_key(curve) for name, curve in CURVES.items()}
ED_KEY = ed25519.Ed25519PrivateKey.generate()


def published(*names: str) -> dict[str, object]:
    """The JWK set with the public RSA keys of these names."""
    return {"keys": [jwk_of(name) for name in names]}


def jwk_of(name: str, **more: object) -> dict[str, object]:
    public = RSAAlgorithm.to_jwk(rsa_key(name).public_key(), as_dict=True)
    return {**public, "kid": name, "use": "sig", "alg": "RS256"} | more


def claims(**changes: Any) -> dict[str, Any]:
    """The claims of a good token; a change to None leaves one out."""
    values = {"iss": ISSUER, "aud": AUDIENCE, "sub": "anna", "exp": int(time.time()) + 600, "scope": "read write"}
    return {name: value for name, value in (values | changes).items() if value is not None}


def token(key: Any = None, algorithm: str = "RS256", kid: str | None = "first", **changes: Any) -> str:
    headers = {} if kid is None else {"kid": kid}
    return jwt.encode(claims(**changes), key or rsa_key("first"), algorithm, headers)


def part(value: object) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def bearer(**changes: Any) -> JwtBearer:
    return JwtBearer(**({"issuer": ISSUER, "audience": AUDIENCE, "jwks": published("first")} | changes))


def shown(text: str) -> Credentials:
    return Credentials({"authorization": f"Bearer {text}"})


async def refusal_of(authenticator: JwtBearer, text: str) -> Problem:
    with pytest.raises(Problem) as refusal:
        await authenticator(shown(text))
    return refusal.value


# --- Tokens ---


WRONG = {
    "signature": (lambda: token(rsa_key("stranger")), "signature"),
    "opaque": (lambda: "8f14e45fceea167a5a36dedd4bea2543", "not a signed"),
    "unsigned": (lambda: part({"alg": "none", "kid": "first"}) + "." + part(claims()) + ".", "algorithm"),
    "unsigned with a capital": (lambda: part({"alg": "None"}) + "." + part(claims()) + ".", "algorithm"),
    "algorithm of another type": (lambda: part({"alg": ["RS256"]}) + "." + part(claims()) + ".c2ln", "algorithm"),
    "public key as a shared secret": (lambda: signed_with_the_public_key(), "algorithm"),
    "critical extension": (lambda: part({"alg": "RS256", "crit": ["x"], "x": 1}) + ".e30.c2ln", ""),
    "infinite exp": (lambda: with_payload(b'{"exp": 1e999}'), ""),
    "deep": (lambda: with_payload(b"[" * 5000), ""),
    "a list": (lambda: with_payload(b"[]"), ""),
}


def signed_with_the_public_key() -> str:
    """HS256 with the published key as the secret: what a decoder that believes the header's `alg` accepts."""
    secret = rsa_key("first").public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    text = part({"alg": "HS256", "typ": "JWT", "kid": "first"}) + "." + part(claims())
    return text + "." + part(hmac.digest(secret, text.encode(), hashlib.sha256))


def with_payload(payload: bytes) -> str:
    return str(jwt.PyJWS().encode(payload, rsa_key("first"), "RS256", {"kid": "first"}))


@pytest.mark.parametrize("name", WRONG)
async def test_a_wrong_token_is_refused_in_words_and_never_shown(name, caplog):
    make, said = WRONG[name]
    text = make()
    refusal = await refusal_of(bearer(), text)
    assert isinstance(refusal, InvalidCredentials)
    assert said in refusal.detail
    assert text not in str(refusal) + caplog.text
    assert refusal.__suppress_context__ or refusal.__context__ is None


@given(st.binary().map(lambda raw: raw.decode("latin-1")), st.booleans(), st.dictionaries(st.text(), st.integers()))
def test_any_header_holds_no_credentials_or_wrong_ones(value, is_bearer, header):
    texts = [
        f"Bearer {value}" if is_bearer else value,
        f"Bearer {part({'alg': 'RS256', **header})}.{part(claims())}.c2ln",
    ]

    async def ask() -> None:
        for text in texts:
            with suppress(InvalidCredentials):
                assert await AUTHENTICATOR(Credentials({"authorization": text})) is None

    asyncio.run(ask())


AUTHENTICATOR = bearer()


def test_manifests_call_it_oauth_and_challenges_bearer():
    assert published_facts([AUTHENTICATOR]) == ("oauth2", ("jwt",))
    assert AUTHENTICATOR.challenge == "Bearer"


# --- Declaring ---


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "jwt", None)
    with pytest.raises(DeclarationError, match=r'pip install "awp-publish\[jwt\]"'):
        JwtBearer(issuer=ISSUER, audience=AUDIENCE, jwks_url="https://login.example/jwks")


# --- Keys from a server ---


class KeyServer:
    """An authorization server as far as its keys go: what it answers, and how often it was asked."""

    def __init__(self) -> None:
        self.document: object = published("first")
        self.status = 200
        self.delay = 0.0
        self.answers = threading.Event()
        self.answers.set()
        self.headers: Mapping[str, str] = {}
        self.asked = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked += 1
                time.sleep(outer.delay)
                outer.answers.wait(30)
                self.send_response(outer.status)
                for name, value in outer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(json.dumps(outer.document).encode())

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/jwks.json"


@pytest.fixture
def key_server() -> Iterator[KeyServer]:
    made = KeyServer()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def fetching(key_server: KeyServer, clock: Clock) -> JwtBearer:
    return bearer(jwks=None, jwks_url=key_server.url, clock=clock)


async def test_keys_are_fetched_once_for_many_calls(key_server, fetching):
    key_server.delay = 0.05
    assert key_server.asked == 0
    callers = await asyncio.gather(*(fetching(shown(token())) for _ in range(50)))
    assert {caller.id for caller in callers} == {"anna"}
    assert await fetching(shown(token())) is not None
    assert key_server.asked == 1


async def test_the_event_loop_goes_on_while_keys_are_fetched(key_server, fetching):
    key_server.answers.clear()
    call = asyncio.create_task(fetching(shown(token())))
    async with asyncio.timeout(50):
        while not key_server.asked:  # noqa: ASYNC110, a thread asks
            await asyncio.sleep(0.005)
    assert not call.done()
    key_server.answers.set()
    assert await call is not None


async def test_a_caller_who_leaves_does_not_stop_the_fetch_for_the_others(key_server, fetching):
    key_server.answers.clear()
    calls = [asyncio.create_task(fetching(shown(token()))) for _ in range(3)]
    await asyncio.sleep(0.02)
    calls[0].cancel()
    key_server.answers.set()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert all(isinstance(result, Principal) for result in results[1:])


async def test_a_key_that_is_new_is_found_at_once(key_server, fetching):
    assert await fetching(shown(token())) is not None
    key_server.document = published("second")
    assert await fetching(shown(token(rsa_key("second"), kid="second"))) is not None
    assert isinstance(await refusal_of(fetching, token()), InvalidCredentials)
    assert key_server.asked == 2


async def test_a_flood_of_invented_keys_makes_one_further_fetch_at_most(key_server, fetching, clock):
    assert await fetching(shown(token())) is not None
    flood = (refusal_of(fetching, token(kid=f"invented-{number}")) for number in range(100))
    refusals = await asyncio.gather(*flood)
    refusals += [await refusal_of(fetching, token(kid=f"later-{number}")) for number in range(20)]
    assert {type(refusal) for refusal in refusals} == {InvalidCredentials}
    assert key_server.asked == 2
    clock.now += 10
    await refusal_of(fetching, token(kid="again"))
    assert key_server.asked == 3


async def test_tokens_that_are_no_jwt_make_no_fetch_at_all(key_server, fetching):
    for text in ("opaque", part({"alg": "none"}) + ".e30.", signed_with_the_public_key()):
        await refusal_of(fetching, text)
    assert key_server.asked == 0


async def test_keys_are_fetched_anew_when_they_are_old(key_server, fetching, clock):
    await fetching(shown(token()))
    key_server.document = published("second")
    clock.now += 599
    assert await fetching(shown(token())) is not None
    clock.now += 1
    assert isinstance(await refusal_of(fetching, token()), InvalidCredentials)


async def test_known_keys_serve_for_an_hour_while_the_server_is_down(key_server, fetching, clock):
    await fetching(shown(token()))
    key_server.status = 500
    clock.now += 3599
    assert await fetching(shown(token())) is not None
    assert await fetching(shown(token())) is not None
    assert key_server.asked == 2
    clock.now += 10
    assert isinstance(await refusal_of(fetching, token()), TemporarilyUnavailable)


async def test_while_keys_cannot_be_read_nobody_says_that_an_unknown_one_is_wrong(key_server, fetching):
    await fetching(shown(token()))
    key_server.status = 500
    for _ in range(2):
        assert isinstance(await refusal_of(fetching, token(kid="perhaps-new")), TemporarilyUnavailable)
    assert await fetching(shown(token())) is not None
    assert key_server.asked == 2


def break_status(server: KeyServer) -> None:
    server.status = 503


def redirect(server: KeyServer) -> None:
    server.status, server.headers = 302, {"Location": "/elsewhere.json"}


def answer_no_keys(server: KeyServer) -> None:
    server.document = {"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "first"}]}


def answer_nonsense(server: KeyServer) -> None:
    server.document = ["nonsense"]


def answer_too_much(server: KeyServer) -> None:
    server.document = {**published("first"), "padding": "x" * 1_100_000}


@pytest.mark.parametrize("spoil", [break_status, redirect, answer_no_keys, answer_nonsense, answer_too_much])
async def test_a_server_without_keys_is_asked_again_only_after_a_while(key_server, fetching, clock, spoil, caplog):
    spoil(key_server)
    for _ in range(3):
        refusal = await refusal_of(fetching, token())
        assert isinstance(refusal, TemporarilyUnavailable)
        assert ("Retry-After", "10") in refusal.headers
    assert key_server.asked == 1
    assert len(caplog.records) == 1
    key_server.status, key_server.headers, key_server.document = 200, {}, published("first")
    clock.now += 10
    assert await fetching(shown(token())) is not None


async def test_a_server_that_is_not_there_is_no_reason_to_fail(caplog):
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as closed:
        port = closed.server_port
    gate = AuthenticationGate((bearer(jwks=None, jwks_url=f"http://127.0.0.1:{port}/jwks"),), False, (), "Shop")
    text = token()
    with pytest.raises(TemporarilyUnavailable):
        await gate(shown(text))
    assert text not in caplog.text


def test_several_event_loops_share_the_keys(key_server, fetching):
    def call(_: int) -> object:
        return asyncio.run(fetching(shown(token())))

    key_server.delay = 0.05
    with ThreadPoolExecutor(4) as threads:
        callers = list(threads.map(call, range(8)))
    assert callers == [Principal("anna", frozenset({"read", "write"}), issuer=ISSUER)] * 8
    assert key_server.asked == 1
