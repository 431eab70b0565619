"""Agents that sign their requests (Web Bot Auth), with keys and directories of the tests' own."""

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from http_message_signatures import HTTPMessageSigner, MappingKeyResolver, algorithms
from http_message_signatures.digests import ContentDigest
from hypothesis import given, settings, strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from awp_publish import (
    AgentPublisher,
    ApiKey,
    BearerToken,
    DeclarationError,
    Limits,
    Mcp,
    Site,
    WebBotAuth,
    current_caller,
)
from awp_publish.http.outgoing import Deadline, connect, is_public_address
from awp_publish.plugins.identity.directories import MEDIA_TYPE, WELL_KNOWN
from tests.client import TestClient
from tests.examples import examples
from tests.plugins.awp.awp_client import AwpClient
from tests.rsa_keys import rsa_key

SIGNER = "https://signer.example"
SHOP = "https://shop.example"
ED_KEY = ed25519.Ed25519PrivateKey.generate()
EC_KEY = ec.generate_private_key(ec.SECP256R1())
RSA_KEY = rsa_key("first")


def text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value: int) -> str:
    return text(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def jwk_of(key: Any) -> dict[str, str]:
    if isinstance(key, ed25519.Ed25519PrivateKey):
        raw = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        return {"kty": "OKP", "crv": "Ed25519", "x": text(raw)}
    numbers = key.public_key().public_numbers()
    if isinstance(key, rsa.RSAPrivateKey):
        return {"kty": "RSA", "n": number(numbers.n), "e": number(numbers.e)}
    return {"kty": "EC", "crv": "P-256", "x": text(numbers.x.to_bytes(32, "big")), "y": text(numbers.y.to_bytes(32))}


def thumbprint(key: Any) -> str:
    answer = json.dumps(jwk_of(key), sort_keys=True, separators=(",", ":"))
    return text(hashlib.sha256(answer.encode()).digest())


def directory(*keys: Any) -> dict[str, object]:
    return {"keys": [jwk_of(key) for key in keys]}


OWN_KEYS = {SIGNER: directory(ED_KEY, EC_KEY, RSA_KEY)}


class Message:
    def __init__(self, method: str, url: str, headers: dict[str, str]) -> None:
        self.method, self.url, self.headers = method, url, headers


ALGORITHMS = {
    ed25519.Ed25519PrivateKey: algorithms.ED25519,
    rsa.RSAPrivateKey: algorithms.RSA_PSS_SHA512,
}
_nonces = iter(range(1_000_000))


def signed(
    path: str = "/agents/actions/word",
    *,
    key: Any = ED_KEY,
    agent: str | None = None,
    label: str = "sig1",
    bare: bool = False,
    components: list[str] | None = None,
    origin: str = SHOP,
    created: float = 0,
    lives: float = 60,
    beside: Mapping[str, str] | None = None,
    signer_class: type[HTTPMessageSigner] = HTTPMessageSigner,
    **changes: Any,
) -> dict[str, str]:
    """The headers of a signed request, with those `beside` it; `created` is in seconds from now."""
    kind = next((made for one, made in ALGORITHMS.items() if isinstance(key, one)), algorithms.ECDSA_P256_SHA256)
    named = agent or (f'"{SIGNER}"' if bare else f'{label}="{SIGNER}"')
    message = Message("POST", origin + path, {"Signature-Agent": named, **(beside or {})})
    name = thumbprint(key)
    signer = signer_class(
        signature_algorithm=kind, key_resolver=MappingKeyResolver(public_keys={}, private_keys={name: key})
    )
    begins = datetime.now(UTC) + timedelta(seconds=created)
    covered = components or ["@authority", '"signature-agent"' if bare else f'"signature-agent";key="{label}"']
    options: dict[str, Any] = {
        "nonce": f"n{next(_nonces)}",
        "tag": "web-bot-auth",
        "label": label,
        "include_alg": False,
    } | changes
    signer.sign(
        message,
        key_id=name,
        created=begins,
        expires=begins + timedelta(seconds=lives),
        covered_component_ids=covered,
        **cast(Any, options),
    )
    return message.headers


def make_client(open_client, auth: Any = None, **options: Any) -> TestClient:
    site = Site(
        "Shop",
        "Sells things.",
        url=SHOP,
        authenticate=auth
        or WebBotAuth(signers={SIGNER: "SignerBot"}, keys={SIGNER: directory(ED_KEY, EC_KEY, RSA_KEY)}),
        **options,
    )

    @site.agent("word")
    async def word() -> dict[str, str]:
        """Say who calls."""
        caller = current_caller()
        return {"id": caller.id, "label": caller.label} if caller else {"id": "", "label": ""}

    @site.agent("signed_only", allow_agents=["verified"])
    async def signed_only() -> str:
        """Only for agents that sign."""
        return "yes"

    @site.agent("one_only", allow_agents=["other.example"])
    async def one_only() -> str:
        """Only for one agent."""
        return "yes"

    @site.agent("known_only", auth_required=True)
    async def known_only() -> str:
        """Only for callers who are known."""
        return "yes"

    return open_client(AgentPublisher(Starlette(), site=site))


@pytest.fixture
def client(open_client) -> TestClient:
    return make_client(open_client)


def call(client: TestClient, headers: Mapping[str, str] | None = None, action: str = "word"):
    return client.post(f"/agents/actions/{action}", json={}, headers=dict(headers or {}))


VERIFIED = {"id": SIGNER, "label": "verified"}


@pytest.mark.parametrize("key", [ED_KEY, EC_KEY, RSA_KEY], ids=["ed25519", "p256", "rsa"])
def test_a_signed_request_is_known_by_its_directory(client, key):
    assert call(client, signed(key=key)).json() == VERIFIED


def test_the_target_uri_may_be_signed_in_place_of_the_authority(client):
    covered = ["@target-uri", '"signature-agent";key="sig1"']
    assert call(client, signed(components=covered)).json() == VERIFIED
    assert call(client, signed("/elsewhere", components=covered)).status_code == 403


def test_without_a_signature_nobody_is_known(client):
    assert call(client).json() == {"id": "", "label": ""}
    other = signed(tag="other-app", components=["@authority"])
    assert call(client, other).json() == {"id": "", "label": ""}  # another use of signatures


def test_a_request_changed_after_signing_is_refused(client):
    headers = signed()
    for name, changed in (
        ("Signature", "sig1=:AAAA:"),
        ("Signature-Input", headers["Signature-Input"].replace("created=1", "created=2")),
        ("Signature-Agent", 'sig1="https://other.example"'),
    ):
        answer = call(client, headers | {name: changed})
        assert answer.status_code == 403 or answer.json()["label"] == "", name


ORDER_OF_P256 = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def with_other_half(headers: dict[str, str]) -> dict[str, str]:
    """The same headers with the other valid signature that anybody can make of an ECDSA signature: (r, -s)."""
    label, _, value = headers["Signature"].partition("=")
    signature = base64.b64decode(value.strip(":"))
    other = (ORDER_OF_P256 - int.from_bytes(signature[32:])).to_bytes(32)
    return headers | {"Signature": f"{label}=:{base64.b64encode(signature[:32] + other).decode()}:"}


def test_a_replay_is_refused(client):
    headers = signed()
    assert call(client, headers).status_code == 200
    answer = call(client, headers)
    assert (answer.status_code, answer.json()["code"]) == (429, "RATE_LIMITED")
    assert answer.headers["Retry-After"] == "1"
    without = signed(nonce=None)
    assert "nonce" not in without["Signature-Input"]
    assert [call(client, without).status_code for _ in range(2)] == [200, 429]
    elliptic = signed(key=EC_KEY, nonce=None)
    assert [call(client, item).status_code for item in (elliptic, with_other_half(elliptic))] == [200, 429]
    assert call(client, with_other_half(signed(key=EC_KEY, nonce=None))).status_code == 200  # it is valid by itself
    nonce = signed(nonce="the same")
    assert call(client, nonce).status_code == 200
    assert call(client, signed(nonce="the same", created=1)).status_code == 429


@settings(max_examples=examples(60), deadline=None)
@given(
    st.sampled_from(["Signature", "Signature-Input", "Signature-Agent"]), st.text('sig1=();:"@,?0a-\\ ', max_size=40)
)
def test_no_header_makes_a_server_error(name, value):
    site = Site("Shop", "Sells things.", url=SHOP, authenticate=WebBotAuth(keys={SIGNER: directory(ED_KEY)}))
    site.agent("word")(word)
    headers = signed()
    headers[name] = (headers[name] + value).strip()
    client = TestClient(AgentPublisher(Starlette(), site=site, check=False), base_url=SHOP)
    assert client.post("/agents/actions/word", headers=headers).status_code in (200, 403)


async def word() -> str:
    """Say a word."""
    return "word"


def test_four_labels_stand_in_the_record_of_calls(open_client):
    facts: list[Mapping[str, object]] = []
    site = Site(
        "Shop",
        "Sells things.",
        url=SHOP,
        authenticate=[
            ApiKey({"key-of-cleo": "cleo"}),
            WebBotAuth(signers={SIGNER: "SignerBot"}, keys={SIGNER: directory(ED_KEY)}),
        ],
    )
    site.on_call(facts.append)

    @site.agent("word")
    async def word() -> str:
        """Say how the caller is known."""
        caller = current_caller()
        return caller.label if caller else ""

    client = open_client(AgentPublisher(Starlette(), site=site))
    call(client, signed())
    call(client, signed(key=EC_KEY))
    call(client, {"User-Agent": "Mozilla/5.0 (compatible; signerbot/1.0)"})
    call(client, {"User-Agent": "curl/8"})
    cleo = {"X-API-Key": "key-of-cleo", "User-Agent": "SignerBot/2"}
    assert call(client, cleo).json() == "unsigned impostor"
    assert [fact["label"] for fact in facts] == [
        "verified",
        "forged",
        "unsigned impostor",
        "unknown",
        "unsigned impostor",
    ]
    assert facts[0]["principal"] == SIGNER


def test_a_list_of_signers_goes_by_the_names_of_their_hosts(open_client):
    facts: list[Mapping[str, object]] = []
    site = Site("Shop", "Sells things.", url=SHOP, authenticate=WebBotAuth(signers=["https://chatgpt.com"]))
    site.on_call(facts.append)
    site.agent("word")(word)
    client = open_client(AgentPublisher(Starlette(), site=site))
    for agent in ("ChatGPT-User/1.0", "Mozilla/5.0"):
        call(client, {"User-Agent": agent})
    assert [fact["label"] for fact in facts] == ["unsigned impostor", "unknown"]


def test_an_action_names_the_agents_that_may_call_it(client):
    refused = call(client, action="signed_only")
    assert (refused.status_code, refused.json()["code"]) == (403, "INSUFFICIENT_PERMISSIONS")
    assert refused.headers["Accept-Signature"].startswith("sig1=(")
    assert call(client, signed(), "signed_only").json() == "yes"
    assert call(client, signed(), "one_only").status_code == 403


@pytest.mark.parametrize(("whom", "limited"), [("unknown", "curl"), ("signer.example", "signed"), (SIGNER, "signed")])
def test_a_limit_names_the_callers_that_it_holds_for(open_client, whom, limited):
    client = make_client(open_client, limits=Limits(rate_limit=f"1/hour for {whom}"))
    for who, headers in (("curl", dict), ("signed", signed)):
        statuses = [call(client, headers()).status_code for _ in range(2)]
        assert statuses == ([200, 429] if who == limited else [200, 200])


def test_a_limit_names_only_what_somebody_knows():
    site = Site("Shop", "Sells things.", url=SHOP)
    site.agent("word", rate_limit="1/hour for verified")(word)
    with pytest.raises(DeclarationError, match="no authenticator of the site identifies verified callers"):
        site.freeze(Starlette())
    with pytest.raises(DeclarationError, match="nobody-at-all"):
        site.agent("other", rate_limit="1/hour for nobody-at-all")(word)


def test_a_site_that_knows_callers_only_by_signatures_asks_for_one_with_a_403(client):
    answer = call(client, action="known_only")
    assert (answer.status_code, answer.json()["code"]) == (403, "AUTHENTICATION_REQUIRED")
    assert "Accept-Signature" in answer.headers
    assert call(client, signed(), "known_only").json() == "yes"


@pytest.mark.parametrize("token_first", [True, False])
def test_a_token_makes_nobody_one_of_the_agents_that_sign(open_client, token_first):
    both = [BearerToken({"s3cret": "ann"}), WebBotAuth(signers={SIGNER: "SignerBot"}, keys={SIGNER: directory(ED_KEY)})]
    client = make_client(open_client, auth=both if token_first else both[::-1])
    token = {"authorization": "Bearer s3cret"}
    assert call(client, token).json()["id"] == "ann"
    refused = call(client, token, "signed_only")
    assert (refused.status_code, refused.json()["code"]) == (403, "INSUFFICIENT_PERMISSIONS")
    assert call(client, signed(), "signed_only").json() == "yes"


def test_agents_are_named_only_where_somebody_knows_them():
    site = Site("Shop", "Sells things.", url=SHOP)
    site.agent("word", allow_agents=["verified"])(word)
    with pytest.raises(DeclarationError, match="allow_agents"):
        site.freeze(Starlette())
    with pytest.raises(DeclarationError, match="neither"):
        site.agent("other", allow_agents=["Verified!"])(word)


@pytest.mark.parametrize("wrong", [["signer.example"], {"http://signer.example": "x"}, "https://signer.example"])
def test_wrong_signers_are_refused_when_they_are_declared(wrong):
    with pytest.raises(DeclarationError):
        WebBotAuth(signers=wrong)


# --- Bodies ---


def digest_of(body: bytes, algorithm: str = "sha-256") -> str:
    made = hashlib.new(algorithm.replace("-", ""), body).digest()
    return f"{algorithm}=:{base64.b64encode(made).decode()}:"


def signed_with(digest: str, path: str, component: str = '"content-digest"') -> dict[str, str]:
    """The headers of a request whose signer says nothing false about the digest, whatever that is."""
    covered = ["@authority", '"signature-agent";key="sig1"', component]

    class Signer(HTTPMessageSigner):
        content_digest_class = Unchecked

    return signed(path, signer_class=Signer, components=covered, beside={"Content-Digest": digest})


class Unchecked(ContentDigest):
    @classmethod
    def prepare(cls, headers: Any, body: bytes | None, *, use_existing_digest: bool) -> None:
        return


BODIES: dict[str, tuple[str, bytes, dict[str, str]]] = {
    "woa": ("/agents/word/invoke", b'{"input": {}}', {}),
    "plain": ("/agents/actions/word", b"{}", {}),
    "mcp": (
        "/mcp",
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "word"}}',
        {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"},
    ),
    "a2a": (
        "/a2a",
        b'{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": {"messageId": "1", '
        b'"role": "ROLE_USER", "parts": [{"data": {"skill": "word", "input": {}}}]}}}',
        {"a2a-version": "1.0"},
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_signature_that_covers_the_digest_holds_for_the_body(open_client, name):
    client = make_client(open_client, plugins=["mcp", "a2a"])
    path, body, beside = BODIES[name]

    def send(digest: str, content: bytes = body) -> str:
        headers = {"content-type": "application/json", **signed_with(digest, path), **beside}
        return client.post(path, content=content, headers=headers).text

    assert SIGNER in send(digest_of(body))
    assert SIGNER in send(f"{digest_of(body, 'sha-512')}, {digest_of(body)}")
    assert SIGNER in send(f"unixsum=:AAE=:, {digest_of(body)}")
    headers = {"content-type": "application/json", **beside}
    for component in ('"content-digest";key="sha-256"', '"content-digest";sf', '"content-digest";bs'):
        for content, is_same in ((body, True), (body + b" ", False)):
            shown = signed_with(digest_of(body), path, component)
            assert (SIGNER in client.post(path, content=content, headers=headers | shown).text) is is_same, component
    # Another body under a signature that was made for this one; one of two digests; none that is secure.
    for digest, content in (
        (digest_of(body), body + b" "),
        (f"{digest_of(body)}, {digest_of(b'', 'sha-512')}", body),
        ("md5=:AAE=:", body),
        ("nonsense", body),
        ("sha-256=1", body),
    ):
        answer = send(digest, content)
        assert SIGNER not in answer
        assert "INVALID_CREDENTIALS" in answer, answer


def test_the_digest_of_a_request_without_a_body_is_that_of_an_empty_one(open_client):
    site = Site("Shop", "Sells.", url=SHOP, authenticate=WebBotAuth(keys=OWN_KEYS, signers=[SIGNER]))

    async def who(request: Request) -> JSONResponse:
        caller = current_caller()
        return JSONResponse({"id": caller.id if caller else ""})

    site.declare("who", method="GET", path="/who", description="Say who calls.")
    client = open_client(AgentPublisher(Starlette(routes=[Route("/who", who)]), site=site))
    path = "/agents/actions/who"
    for digest, status in ((digest_of(b""), 200), (digest_of(b"x"), 403)):
        headers = signed_with(digest, path)  # for POST, whose method is not covered
        assert client.get(path, headers=headers).status_code == status


# --- Directories ---


class Directory:
    """A directory on this machine, which answers as it is told."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.others: dict[str, bytes] = {}
        self.status, self.headers, self.body = 200, {"Content-Type": MEDIA_TYPE}, json.dumps(directory(ED_KEY)).encode()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append(self.path)
                self.send_response(outer.status)
                for name, value in outer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(outer.others.get(self.path, outer.body))

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def sign(self, **options: Any) -> dict[str, str]:
        return signed(agent=f'sig1="{self.address}"', **options)


@pytest.fixture
def published() -> Iterator[Directory]:
    one = Directory()
    yield one
    one.server.shutdown()
    one.server.server_close()


def test_keys_are_fetched_once_from_the_well_known_address(open_client, published):
    client = make_client(open_client, WebBotAuth(allow_private=True))
    for _ in range(3):
        assert call(client, published.sign()).json() == {"id": published.address, "label": "verified"}
    assert published.requests == [WELL_KNOWN]


@pytest.mark.parametrize("how", ["jwks", "jwks_uri"])
def test_a_client_id_metadata_document_has_the_keys_or_names_them(open_client, published, how):
    client_id = f"{published.address}/client.json"
    document: dict[str, object] = {"client_id": client_id, "client_name": "Shopper"}
    if how == "jwks":
        document["jwks"] = directory(ED_KEY)
    else:
        document["jwks_uri"] = f"{published.address}/keys"
        published.others["/keys"] = json.dumps(directory(ED_KEY)).encode()
    published.body = json.dumps(document).encode()
    published.headers = {"Content-Type": "application/json"}
    client = make_client(open_client, WebBotAuth(allow_private=True))
    for _ in range(2):
        headers = signed(agent=f'sig1="{client_id}";type=cimd')
        assert call(client, headers).json() == {"id": client_id, "label": "verified"}
    assert published.requests == ["/client.json", "/keys"][: 1 + (how == "jwks_uri")]
    # Listed by its own address, it goes by that; the directory of its origin is somebody else.
    listed = make_client(open_client, WebBotAuth(allow_private=True, signers=[client_id]))
    assert call(listed, signed(agent=f'sig1="{client_id}";type=cimd')).json()["label"] == "verified"
    assert call(listed, published.sign()).json()["label"] == ""


@pytest.mark.parametrize(
    "wrong",
    [
        {"client_id": "https://other.example/client.json", "jwks": {}},
        {"jwks": directory(ED_KEY)},
        {"client_id": "", "jwks_uri": "http://169.254.169.254/keys"},
        {"client_id": ""},
        [],
    ],
)
def test_a_client_id_metadata_document_that_is_none_counts_for_nothing(open_client, published, wrong):
    client_id = f"{published.address}/client.json"
    if isinstance(wrong, dict) and wrong.get("client_id") == "":
        wrong = {**wrong, "client_id": client_id}
    published.body, published.headers = json.dumps(wrong).encode(), {"Content-Type": "application/json"}
    client = make_client(open_client, WebBotAuth(allow_private=True))
    answer = call(client, signed(agent=f'sig1="{client_id}";type=cimd'))
    assert answer.json() == {"id": "", "label": ""}


def test_a_key_counts_only_in_its_own_directory(open_client, published):
    published.body = json.dumps(directory(EC_KEY)).encode()
    auth = WebBotAuth(allow_private=True, keys={SIGNER: directory(ED_KEY)})
    client = make_client(open_client, auth)
    assert call(client, signed()).json() == VERIFIED
    assert call(client, published.sign()).status_code == 403  # the same key, in another's name


@pytest.mark.parametrize("how", ["redirect", "too large", "not json", "no keys", "wrong type", "gone"])
def test_a_directory_that_cannot_be_read_counts_for_nothing(open_client, published, how):
    if how == "redirect":
        published.status, published.headers = 302, {"Location": f"{published.address}/other"}
    elif how == "too large":
        published.body = b" " * 100_000 + published.body
    elif how == "wrong type":
        published.headers = {"Content-Type": "text/html"}
    else:
        published.body = b'{"keys":[]}' if how == "no keys" else b"<html>"
        published.status = 410 if how == "gone" else 200
    client = make_client(open_client, WebBotAuth(allow_private=True))
    assert call(client, published.sign()).json() == {"id": "", "label": ""}
    assert call(client, published.sign(), "signed_only").status_code == 403
    assert published.requests == [WELL_KNOWN]
    listed = make_client(open_client, WebBotAuth(allow_private=True, signers=[published.address]))
    answer = call(listed, published.sign())
    assert (answer.status_code, answer.json()["code"]) == (503, "TEMPORARILY_UNAVAILABLE")


def test_no_private_address_is_asked(open_client, published):
    client = make_client(open_client, WebBotAuth())
    port = published.server.server_port
    for address in (
        f"https://127.0.0.1:{port}",
        f"https://localhost:{port}",
        "https://169.254.169.254",
        "https://[::1]",
    ):
        headers = signed(agent=f'sig1="{address}"')
        answer = call(client, headers)
        assert answer.status_code == 403 or answer.json()["label"] == ""
    assert published.requests == []
    with pytest.raises(OSError, match="address that is not public"):
        connect("localhost", port, Deadline(1.0))


def test_addresses_are_public_or_not():
    private = "127.0.0.1 10.0.0.1 169.254.169.254 0.0.0.0 ::1 ::ffff:10.0.0.1 fe80::1%eth0 64:ff9b::a00:1 224.0.0.1 x"
    assert not any(map(is_public_address, private.split()))
    assert all(map(is_public_address, ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"]))


def test_signers_that_nobody_lists_are_not_asked_for_where_a_list_is(open_client, published):
    client = make_client(
        open_client, WebBotAuth(allow_private=True, signers=[SIGNER], keys={SIGNER: directory(EC_KEY)})
    )
    assert call(client, published.sign()).json() == {"id": "", "label": ""}
    assert published.requests == []


@pytest.mark.parametrize("name", ["woa", "plain", "mcp"])
def test_every_door_knows_the_signer_and_asks_once(open_client, name):
    """A door may ask several times who makes a request; its signature counts once."""
    path = {"woa": "/agents/word/invoke", "plain": "/agents/actions/word", "mcp": "/mcp"}[name]
    client = make_client(open_client, plugins=[Mcp(list_only_allowed=True)])
    if name == "mcp":
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "word"}}
        extra = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
    else:
        body, extra = {"input": {}} if name == "woa" else {}, {}
    answer = client.post(path, json=body, headers=signed(path) | extra)
    assert SIGNER in answer.text, answer.text


def test_a_websocket_has_shown_its_signature_once_for_all_its_calls(open_client):
    client = make_client(open_client, plugins=["awp"])
    with AwpClient.greeted(client, signed("/awp")) as caller:
        for skill, output in [("word", VERIFIED), ("word", VERIFIED), ("signed_only", "yes")]:
            assert caller.do("skills.invoke", skill=skill)["output"] == output


def test_the_time_is_the_sites_own(open_client):
    later = time.time() + 7_200
    auth = WebBotAuth(keys={SIGNER: directory(ED_KEY)}, clock=lambda: later)
    assert call(make_client(open_client, auth), signed(created=7_200)).json() == VERIFIED
