"""Plain calls of the stateless generation: answered without the SDK, and in the same bytes as with it."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Response
from hypothesis import given, settings, strategies as st
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from awp_publish import AgentPublisher, OAuth
from awp_publish.plugins.mcp.door import McpDoor
from awp_publish.problems import Refused
from tests.examples import examples
from tests.guarded import known_callers, make_shop
from tests.plugins.mcp.mcp_messages import MODERN, headers_of, message

ELICITS: dict[str, Any] = {"elicitation": {}}


def make_app():
    oauth = OAuth(authorization_servers=("https://login.example",))
    site = make_shop(plugins=["mcp"], authenticate=known_callers(), oauth=oauth)

    @site.agent("echo", effect="read")
    async def echo(text: str, times: int = 1) -> dict[str, Any]:
        """Say it again."""
        if text == "refuse":
            raise Refused("No.")
        if text == "crash":
            raise RuntimeError("secret")
        return {"said": [text] * min(times, 3)}

    @site.agent("word", effect="read")
    async def word() -> str:
        """Say a word."""
        return "häß\u2028"

    @site.agent("nothing", effect="read")
    async def nothing():
        """Say nothing."""

    @site.agent("burn", confirm="Burn {title}?", effect="irreversible")
    async def burn(title: str) -> str:
        """Burn a book."""
        return title

    @site.agent("buy", scopes=["buy"])
    async def buy() -> str:
        """Buy."""
        return "bought"

    app = FastAPI()

    @app.get("/raw")
    @site.action("raw")
    async def raw() -> dict[str, Any]:
        """Answer in JSON of the route's own writing."""
        written: Any = Response(b'{"n": 1.0e5,\n "h": "h\\u00e4", "l": [1, 2.50]}', media_type="application/json")
        return written

    return AgentPublisher(app, site=site)


APP = make_app()


async def send(sent: Any, headers: Mapping[str, str], *, direct: bool) -> tuple[int, dict[str, str], bytes]:
    """The answer, without what differs from one request to the next; and whether the SDK was asked."""
    before = McpDoor.takes_plain_calls
    McpDoor.takes_plain_calls = direct
    try:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=APP), base_url="https://shop.example") as client:
            answer = await client.post(
                "/mcp", content=sent if isinstance(sent, bytes) else json.dumps(sent), headers=headers
            )
    finally:
        McpDoor.takes_plain_calls = before
    own = answer.headers["x-request-id"].encode()
    body = answer.content.replace(own, b"ID")
    body = re.sub(rb'"(requestState|token|expires_at)":"[^"]*"|\\"(token|expires_at)\\":\\"[^"]*\\"', b"", body)
    shown = {name: value for name, value in answer.headers.items() if name not in ("x-request-id", "content-length")}
    return answer.status_code, shown, body


names = st.sampled_from(["echo", "word", "nothing", "raw", "burn", "buy", "unknown", ""])
arguments = st.one_of(
    st.none(),
    st.dictionaries(
        st.sampled_from(["text", "times", "title", "confirmation", "x"]),
        st.one_of(st.sampled_from(["refuse", "crash", "Emma"]), st.text(max_size=5), st.integers(-3, 3), st.none()),
        max_size=3,
    ),
)
metas = st.dictionaries(
    st.sampled_from(["awp/idempotencyKey", "awp/receipts", "awp/confirmation", "traceparent", "x"]),
    st.one_of(st.text(max_size=4), st.integers(), st.lists(st.text(max_size=2), max_size=2)),
    max_size=2,
)
capabilities = st.sampled_from([{}, ELICITS, {"elicitation": 5}, {"extensions": {"x/y": {}}}])
tokens = st.sampled_from([{}, {"authorization": "Bearer ann-secret-token"}, {"authorization": "Bearer wrong"}])
oddities = st.sampled_from(
    [{}] * 4
    + [
        {"mcp-name": "other"},
        {"mcp-method": "tools/list"},
        {"accept": "text/html"},
        {"accept": "application/json;q=0.5, text/*"},
        {"content-type": "text/plain"},
        {"mcp-protocol-version": "2025-11-25"},
        {"origin": "https://evil.example"},
        {"origin": "https://shop.example"},
        {"mcp-name": " echo "},
    ]
)
extras = st.sampled_from([{}] * 4 + [{"task": {}}, {"input": {}}, {"requestState": "x"}, {"inputResponses": {}}])
ids: st.SearchStrategy[Any] = st.one_of(st.integers(), st.text(max_size=4), st.sampled_from([None, True, 1.5, []]))


@settings(max_examples=examples(150), deadline=None)
@given(names, arguments, metas, capabilities, tokens, oddities, extras, ids)
async def test_a_call_is_answered_alike_with_and_without_the_sdk(name, given_, meta, can, token, odd, extra, own_id):
    params = {"name": name, **({} if given_ is None else {"arguments": given_}), **extra}
    sent = {**message("tools/call", params, meta=meta, capabilities=can), "id": own_id}
    headers = {"content-type": "application/json", **headers_of(sent), **token, **odd}
    plain, through_sdk = [await send(sent, headers, direct=direct) for direct in (True, False)]
    assert plain[:2] == through_sdk[:2]
    assert plain[2] == through_sdk[2]


GOOD = message("tools/call", {"name": "echo", "arguments": {"text": "a"}})
WRITTEN = json.dumps(GOOD)
VALUES = (
    *("null", "true", "1", "-0", "1.0", "1e2", "1e400", "NaN", "9007199254740993", "9" * 40, '""', '"x"', "[]", "{}"),
    *('"2026-07-28"', '"\\ud800"', '"\\u0000"', '"' + "x" * 5_000 + '"', '{"a":{}}', "[" * 60 + "]" * 60),
    "[" * 5_000 + "]" * 5_000,
)


def wild_bodies() -> Iterator[bytes]:
    """Bytes that are nearly a call: one thing in each is odd."""
    # A member twice, a member that nobody knows, and one with another value: at each level, first or last.
    levels = {
        "message": (("jsonrpc", "id", "method", "params", "result", "x"), WRITTEN),
        "params": (("name", "arguments", "_meta", "task", "inputResponses", "x"), json.dumps(GOOD["params"])),
        "_meta": ((*GOOD["params"]["_meta"], "progressToken", "x/y"), json.dumps(GOOD["params"]["_meta"])),
        "arguments": (("text", "times", "x"), '{"text": "a"}'),
    }
    for names, text in levels.values():
        for name in names:
            for place, value in enumerate(VALUES):
                member = f"{json.dumps(name)}:{value}"
                odd = f"{{{member},{text[1:]}" if place % 2 else f"{text[:-1]},{member}}}"
                yield WRITTEN.replace(text, odd).encode()
    for start in ("\ufeff", " \r\n\t", "\0", "\x0b", "\u00a0", "[", '"', "//"):
        yield f"{start}{WRITTEN}".encode()
    for end in (" \n", "}", "]", "x", "\0", WRITTEN, f"\n{WRITTEN}"):
        yield f"{WRITTEN}{end}".encode()
    yield from (f"[{WRITTEN}]".encode(), f"[{WRITTEN},{WRITTEN}]".encode(), b"", b"{}", b"[]", b"null")
    yield from (WRITTEN.encode(item) for item in ("utf-8-sig", "utf-16", "utf-32-le"))
    for wrong in (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\n", b"\\x"):
        yield WRITTEN.replace('"a"', '"a\0"').encode().replace(b"\\u0000", wrong).replace(b"\0", wrong)
    for own, other in (("tools/call", "tools\\/call"), ('"method"', '"m\\u0065thod"'), ("echo", "ech\\u006f")):
        yield WRITTEN.replace(own, other).encode()


async def test_bytes_that_are_nearly_a_call_are_answered_alike_and_never_as_a_failure():
    headers = {"content-type": "application/json", **headers_of(GOOD)}
    for body in wild_bodies():
        plain, through_sdk = [await send(body, headers, direct=direct) for direct in (True, False)]
        assert plain == through_sdk, body[:500]
        assert plain[0] in (200, 202, 400, 404), body[:500]


@pytest.mark.parametrize(
    ("changed", "is_direct"),
    [
        ({}, True),
        ({"accept": "application/json"}, True),
        ({"accept": "*/*"}, False),
        ({"mcp-name": "other"}, False),
        ({"origin": "https://shop.example"}, True),
    ],
)
async def test_plain_calls_do_not_reach_the_sdk_and_all_others_do(changed, is_direct, monkeypatch):
    reached = []

    through = StreamableHTTPSessionManager.handle_request

    async def handle(self, *given):
        reached.append(given)
        await through(self, *given)

    monkeypatch.setattr(StreamableHTTPSessionManager, "handle_request", handle)
    sent = message("tools/call", {"name": "echo", "arguments": {"text": "a"}})
    headers = {"content-type": "application/json", **headers_of(sent, MODERN), **changed}
    await send(sent, headers, direct=True)
    assert bool(reached) is not is_direct


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
async def test_the_json_of_a_route_is_the_structured_content_as_it_stands(version):
    sent = message("tools/call", {"name": "raw", "arguments": {}}, version=version)
    answer = await send(sent, {"content-type": "application/json", **headers_of(sent, version)}, direct=True)
    assert b'"structuredContent":{"n": 1.0e5,\n "h": "h\\u00e4", "l": [1, 2.50]}' in answer[2]
    assert json.loads(answer[2])["result"]["structuredContent"] == {"n": 100000.0, "h": "hä", "l": [1, 2.5]}
