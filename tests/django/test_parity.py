"""gunicorn, uvicorn and Starlette answer the same bytes and headers, over real sockets."""

import re
import time
from collections.abc import Mapping
from typing import Any

import httpx2
import pytest

from awp_publish.cli import PATHS
from awp_publish.plugins.discovery import security_txt, sitemaps
from awp_publish.plugins.identity import protected_resource
from awp_publish.plugins.sign_in import metadata
from tests.django.parity import KEY, OTHER_TOKEN, TOKEN
from tests.django.servers import COMMANDS
from tests.http.test_real_server import NO_CERTIFICATES
from tests.plugins.mcp.mcp_messages import CLASSIC, MODERN, headers_of, message

pytestmark = pytest.mark.slow  # what runs is in other processes, and not measured either way

OWN = frozenset({"date", "server", "connection", "transfer-encoding"})
"""Headers that a server adds itself."""


def ask(servers: Mapping[str, str], method: str, path: str, **given: Any) -> dict[str, Any]:
    """The one answer that all give. Headers of several lines count as one, in any order."""
    answers: dict[str, dict[str, Any]] = {}
    for kind, address in servers.items():
        answer = httpx2.request(method, address + path, verify=NO_CERTIFICATES, **given)
        headers = {name: value for name, value in sorted(answer.headers.items()) if name not in OWN}
        answers[kind] = {"status": answer.status_code, "body": answer.content, "headers": headers}
    assert answers["wsgi"] == answers["starlette"]
    assert answers["asgi"] == answers["starlette"]
    return answers["starlette"]


UNDECLARED = (protected_resource.PROTOCOL, metadata.PROTOCOL, sitemaps.SITEMAP, security_txt.SECURITY)
ABSENT = {document.path for protocol in UNDECLARED for document in protocol.documents}
"""What a site without an authorization server, pages and a contact for security does not have."""

NAMED = {"/.well-known/agent-skills/site/SKILL.md"}
"""What has the name of a site in its address."""


@pytest.mark.parametrize("path", PATHS)
def test_documents_are_the_same(servers, path):
    if path in ABSENT | NAMED:
        assert all(
            httpx2.get(address + path, verify=NO_CERTIFICATES).status_code == 404 for address in servers.values()
        )
        return  # what is not ours is answered by each framework
    answer = ask(servers, "GET", path)
    for coding in ("gzip", "br", "identity"):
        ask(servers, "GET", path, headers={"accept-encoding": coding})
    ask(servers, "HEAD", path)
    ask(servers, "OPTIONS", path, headers={"origin": "https://anybody.example"})
    unchanged = ask(servers, "GET", path, headers={"if-none-match": answer["headers"]["etag"]})
    assert unchanged["status"] in (200, 304)
    ask(servers, "POST", path)


@pytest.mark.parametrize(
    "accept", ["text/html", "text/markdown", "application/som+json", "text/markdown;q=0.5, text/html"]
)
@pytest.mark.parametrize("path", ["/page", "/page?q=a%20b", "/gone", "/long", "/agents/som?url=/page"])
def test_pages_are_the_same(servers, path, accept):
    answer = ask(servers, "GET", path, headers={"accept": accept})
    head = ask(servers, "HEAD", path, headers={"accept": accept})
    assert head["body"] == b""
    if "etag" in answer["headers"]:
        unchanged = ask(servers, "GET", path, headers={"accept": accept, "if-none-match": answer["headers"]["etag"]})
        assert unchanged["status"] == 304


CALLS = {
    "a route": ("search", {"input": {"shelf": "a b", "q": "ä&c"}}),
    "a function": ("add", {"input": {"first": 1, "second": 2}}),
    "a refusal of the view": ("order", {"input": {"title": "Emma"}}),
    "a wrong input": ("search", {"input": {"shelf": "a"}}),
    "a wrong envelope": ("search", {"inputs": {}}),
    "an unknown agent": ("nobody", {"input": {}}),
    "an unknown operation": ("add", {"operation": "sub", "input": {}}),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_calls_are_answered_the_same(servers, call):
    agent, envelope = call
    headers = {"x-request-id": "one", "origin": "https://friend.example"}
    answer = ask(servers, "POST", f"/agents/{agent}/invoke", json=envelope, headers=headers)
    assert answer["headers"]["x-request-id"] == "one"
    assert answer["headers"]["access-control-allow-origin"] == "https://friend.example"


def test_requests_that_are_no_calls_are_answered_the_same(servers):
    headers = {"x-request-id": "one"}
    assert ask(servers, "GET", "/agents/add/invoke", headers=headers)["status"] == 405
    ask(servers, "OPTIONS", "/agents/add/invoke", headers={"origin": "https://friend.example"})
    ask(servers, "POST", "/agents/add/invoke", content=b"{", headers={**headers, "content-type": "application/json"})
    ask(servers, "POST", "/agents/add/invoke", content=b"a=b", headers=headers)
    large = b'"' + b"x" * 1_100_000 + b'"'
    assert (
        ask(
            servers,
            "POST",
            "/agents/add/invoke",
            content=large,
            headers={**headers, "content-type": "application/json"},
        )["status"]
        == 413
    )


MESSAGES = {
    "a list": message("tools/list"),
    "a list of older days": message("tools/list", version=CLASSIC),
    "a handshake": message(
        "initialize",
        {"protocolVersion": CLASSIC, "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}},
        version=CLASSIC,
    ),
    "a call": message("tools/call", {"name": "search", "arguments": {"shelf": "a b", "q": "ä"}}),
    "a refusal": message("tools/call", {"name": "order", "arguments": {"title": "Emma"}}),
    "an unknown tool": message("tools/call", {"name": "nothing", "arguments": {}}),
    "an unknown method": message("nothing/there"),
    "a document": message("resources/read", {"uri": "https://shop.example/agent.json"}),
}


@pytest.mark.parametrize("sent", MESSAGES.values(), ids=MESSAGES)
def test_messages_are_answered_the_same(servers, sent):
    version = MODERN if "_meta" in sent["params"] else CLASSIC
    headers = headers_of(sent, version) | {"host": "shop.example", "x-request-id": "one"}
    answer = ask(servers, "POST", "/mcp", json=sent, headers=headers)
    assert answer["headers"]["content-type"] == "application/json"
    foreign = {"origin": "https://evil.example"}
    for wrong in (foreign, foreign | {"host": "evil.example"}, {"host": "evil.example", "sec-fetch-mode": "cors"}):
        assert ask(servers, "POST", "/mcp", json=sent, headers=headers | wrong)["status"] == 403
    for method in ("GET", "DELETE"):
        assert ask(servers, method, "/mcp", headers={"x-request-id": "one"})["status"] == 405


def test_a_discovery_is_answered_the_same_but_for_listening_which_wsgi_cannot(servers):
    sent = message("server/discover")
    headers = headers_of(sent) | {"host": "shop.example", "x-request-id": "one"}
    answers = {
        kind: httpx2.post(f"{address}/mcp", json=sent, headers=headers, verify=NO_CERTIFICATES)
        for kind, address in servers.items()
    }
    assert answers["asgi"].content == answers["starlette"].content
    told, without = answers["starlette"].json(), answers["wsgi"].json()
    for offered in told["result"]["capabilities"].values():
        offered.update(dict.fromkeys(offered.keys() & {"listChanged", "subscribe"}, False))
    assert without == told
    assert without["result"]["capabilities"]["tools"] == {"listChanged": False}


def test_an_invalid_message_is_refused_the_same(servers):
    headers = {"host": "shop.example", "content-type": "application/json", "x-request-id": "one"}
    for body in (b"{", b"[]", b'{"jsonrpc": "2.0"}', b'"' + b"x" * 1_100_000 + b'"'):
        for path in ("/mcp", "/a2a", "/a2a/message:send"):
            assert ask(servers, "POST", path, content=body, headers=headers)["status"] >= 400 or path == "/a2a"
    assert ask(servers, "GET", "/a2a", headers=headers)["status"] == 405
    assert ask(servers, "GET", "/a2a/nothing", headers=headers)["status"] == 404
    ask(servers, "OPTIONS", "/a2a", headers={"origin": "https://friend.example"})


def test_a_recorded_answer_is_replayed_everywhere(servers):
    headers = {"x-request-id": "one", "idempotency-key": "k1"}
    given = {"json": {"input": {"title": "Moby-Dick"}}, "headers": headers}
    first, again = (ask(servers, "POST", "/agents/order/invoke", **given) for _ in range(2))
    assert "idempotent-replayed" not in first["headers"]
    assert again["headers"]["idempotent-replayed"] == "true"
    assert again["body"] == first["body"]


@pytest.mark.parametrize("kind", COMMANDS)
def test_background_jobs_are_done_where_nothing_was_set_up_for_them(servers, kind):
    address = servers[kind]
    accepted = httpx2.post(f"{address}/agents/later/invoke", json={"input": {"text": "soon"}})
    assert accepted.status_code == 202
    poll = address + httpx2.URL(accepted.headers["location"]).path
    until = time.monotonic() + 30
    while (job := httpx2.get(poll).json())["status"] != "done":
        assert time.monotonic() < until, job
        time.sleep(0.05)
    assert "SOON" in str(job)


# --- Wrong credentials and hostile bodies ---

GOOD = ("authorization", f"Bearer {TOKEN}")
CREDENTIALS: dict[str, list[tuple[str, str]]] = {
    "right": [GOOD],
    "nothing": [],
    "empty": [("authorization", "")],
    "a scheme alone": [("authorization", "Bearer")],
    "garbage": [("authorization", "Bearer garbage")],
    "two in one line": [("authorization", f"Bearer {TOKEN}, Bearer {TOKEN}")],
    "the right one twice": [GOOD, GOOD],
    "the right one first": [GOOD, ("authorization", "Bearer garbage")],
    "the right one last": [("authorization", "Bearer garbage"), GOOD],
    "more behind it": [("authorization", f"Bearer {TOKEN} x")],
    "another scheme": [("authorization", "Basic YW5uOmFubg==")],
    "without a scheme": [("authorization", TOKEN)],
    "another header": [("x-access-token", TOKEN)],
    "another header with an underscore": [("x_api_key", KEY)],
    "a token as a key": [("x-api-key", TOKEN)],
    "a wrong key": [("x-api-key", "wrong")],
    "two keys": [("x-api-key", KEY), ("x-api-key", KEY)],
    "a wrong key beside a right token": [GOOD, ("x-api-key", "wrong")],
    "another caller": [("authorization", f"Bearer {OTHER_TOKEN}")],
    "a cookie": [("cookie", f"authorization=Bearer {TOKEN}")],
    "cookies from another site": [GOOD, ("cookie", "a=b"), ("origin", "https://evil.example")],
    "another host": [GOOD, ("host", "evil.example"), ("origin", "http://evil.example")],
}


MAY_BUY = ("right", "a wrong key beside a right token")


@pytest.mark.parametrize("name", CREDENTIALS)
@pytest.mark.parametrize("action", ["buy", "pay", "restock", "no_such_action"])
def test_wrong_credentials_are_refused_the_same(servers, action, name):
    credentials = CREDENTIALS[name]
    headers = [("x-request-id", "one"), *credentials]
    if not any(name == "host" for name, _ in credentials):
        headers.append(("host", "shop.example"))
    asked = [f"/agents/{action}/invoke", f"/agents/actions/{action}"]
    envelopes: list[Any] = [{"input": {}, "confirmation": "a.b.c"}, {}]
    for path, envelope in zip(asked, envelopes, strict=True):
        statuses = told_of(servers, "POST", path, json=envelope, headers=headers)
        assert len(set(statuses.values())) == 1, statuses
        assert (statuses["wsgi"][0] == 200) == (action == "buy" and name in MAY_BUY), statuses
    sent = message("tools/call", {"name": action, "arguments": {}})
    statuses = told_of(servers, "POST", "/mcp", json=sent, headers=[*headers, *headers_of(sent).items()])
    assert len(set(statuses.values())) == 1, statuses
    params = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {"skill": action, "input": {}}}]}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
    statuses = told_of(servers, "POST", "/a2a", json=body, headers=[*headers, ("a2a-version", "1.0")])
    assert len(set(statuses.values())) == 1, statuses


def told_of(servers: Mapping[str, str], method: str, path: str, **given: Any) -> dict[str, tuple[int, tuple[str, ...]]]:
    """What each server says: the status and the codes of problems, which are what has to be the same."""
    values = {}
    for kind, address in servers.items():
        answer = httpx2.request(method, address + path, verify=NO_CERTIFICATES, **given)
        codes = re.findall(r'"code":\s*("[A-Z_]+"|-?\d+)', answer.text)
        values[kind] = answer.status_code, tuple(codes)
    return values


BODIES: dict[str, bytes] = {
    "nothing": b"",
    "cut off": b'{"input": {"title": "Em',
    "a list": b"[]",
    "null": b"null",
    "no number": b'{"input": {"amount": NaN}}',
    "a large number": b'{"input": {"amount": 1e999}}',
    "many digits": b'{"input": {"amount": ' + b"9" * 5_000 + b"}}",
    "a name twice": b'{"input": {"title": "a", "title": "b"}}',
    "half a surrogate": b'{"input": {"title": "\\ud800"}}',
    "no text": b'{"input": {"title": "\xff\xfe"}}',
    "a mark before it": b'\xef\xbb\xbf{"input": {}}',
    "deep": b'{"input": {"title": ' + b"[" * 5_000 + b"]" * 5_000 + b"}}",
    "wide": b'{"input": {' + b",".join(b'"n%d":0' % number for number in range(5_000)) + b"}}",
    "UTF-16": '{"input": {}}'.encode("utf-16"),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-16", "text/plain", ""])
def test_hostile_bodies_are_refused_the_same(servers, body, kind):
    headers = [GOOD, ("host", "shop.example"), ("x-request-id", "one"), *([("content-type", kind)] if kind else [])]
    for path in ("/agents/buy/invoke", "/agents/actions/buy", "/mcp", "/a2a"):
        statuses = told_of(servers, "POST", path, content=body, headers=headers)
        assert len(set(statuses.values())) == 1, (path, statuses)
        assert all(status < 500 for status, _ in statuses.values())
