"""Requests that are made to be slow to read: whoever sends four times as much costs four times as much, not sixteen.

All of it is read before anybody knows who calls. The shapes are a table of functions of a size; a door says how one is
sent to it. What is compared is steps of Python; `python -m benchmarks growing` compares the time of the same shapes.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import msgpack
import pytest
from starlette.applications import Starlette

from awp_publish import AgentPublisher, BearerToken, Pages, Proxies, SharedSecret, Site
from awp_publish.http.running import running
from tests.plugins.mcp.mcp_messages import headers_of, message
from tests.steps import LINEAR, counting

SMALL: Final = 2_000
"""Bytes of the smaller request."""

TIMES: Final = 4
"""How much larger the other one is."""

Headers: TypeAlias = list[tuple[bytes, bytes]]


# --- JSON: each a function of a size in bytes, of about that size ---


def repeated(unit: str, begin: str = "", end: str = "") -> Callable[[int], str]:
    return lambda size: begin + unit * (size // len(unit)) + end


def names(size: int) -> Iterable[str]:
    return (f'"n{number}":0' for number in range(size // 10))


JSON: Final[Mapping[str, Callable[[int], str]]] = {
    "distinct names": lambda size: "{" + ",".join(names(size)) + "}",
    "distinct names, the last twice": lambda size: "{" + ",".join([*names(size), '"last":0,"last":0']) + "}",
    "distinct names, the first twice": lambda size: '{"n0":0,' + ",".join(names(size)) + "}",
    "one name many times": repeated('"a":0,', "{", '"a":0}'),
    "objects with a name twice at the end": repeated('{"a":0,"b":0},', "[", '{"a":0,"a":0}]'),
    "deep arrays": repeated("[", "", ""),
    "deep arrays that close": lambda size: "[" * (size // 2) + "]" * (size // 2),
    "deep objects": repeated('{"a":'),
    "wide and deep": lambda size: "[" + ",".join(["[" * 190 + "]" * 190] * (size // 380)) + "]",
    "empty arrays": repeated("[],", "[", "[]]"),
    "small objects": repeated('{"a":{}},', "[", "0]"),
    "escapes": repeated("\\u00e9", '"', '"'),
    "surrogate pairs": repeated("\\ud83d\\ude00", '"', '"'),
    "half pairs": repeated("\\ud83d", '"', '"'),
    "backslashes": repeated("\\\\", '"', '"'),
    "quotes": repeated('\\"', '"', '"'),
    "a text that does not end": repeated("\\", '"'),
    "blanks": repeated(" ", "[", "]"),
    "line breaks, then an error": repeated("\n", "[", "?]"),
    "commas": repeated(",", "["),
    "numbers": repeated("1.5e3,", "[", "0]"),
    "a long number": repeated("9", "", ""),
    "a long fraction": repeated("3", "0.", ""),
    "a long exponent": repeated("0", "1e", "1"),
    "a long negative number": repeated("7", "-", ".5"),
    "a byte order mark in the end": repeated("a", '"', '\ufeff"'),
    "a long name": repeated("x", '{"', '":0}'),
    "a long name twice": lambda size: '{"%s":0,"%s":0}' % (("x" * (size // 2),) * 2),
}

# --- Headers and queries ---

HEADERS: Final[Mapping[str, Callable[[int], Headers]]] = {
    "headers": lambda size: [(b"x-%d" % number, b"1") for number in range(size // 10)],
    "headers of one name": lambda size: [(b"x-a", b"1")] * (size // 4),
    "Accept in many lines": lambda size: [(b"accept", b"text/html")] * (size // 10),
    "Accept with many ranges": lambda size: [(b"accept", b"a/b;q=0.1;c=d, " * (size // 15) + b"*/*")],
    "Accept with quotes": lambda size: [(b"accept", b'a/b;c="' * (size // 7))],
    "Accept with escapes": lambda size: [(b"accept", b'a/b;c="' + b'\\"' * (size // 2))],
    "Accept with blanks": lambda size: [(b"accept", b"a/b;q" + b" " * size + b", */*")],
    "Accept with semicolons": lambda size: [(b"accept", b"a/b" + b"; q " * (size // 4) + b", */*")],
    "Accept-Encoding": lambda size: [(b"accept-encoding", b"gzip;q=0.1, br, " * (size // 16))],
    "Accept-Encoding in many lines": lambda size: [(b"accept-encoding", b"gzip")] * (size // 5),
    "entity tags in many lines": lambda size: [(b"if-none-match", b'"a"'), (b"if-match", b"*")] * (size // 4),
    "Accept-Encoding of blanks": lambda size: [(b"accept-encoding", b"a;q" + b" " * size)],
    "cookies": lambda size: [(b"cookie", b"a=b; " * (size // 5))],
    "cookies of many names": lambda size: [(b"cookie", b"; ".join(b"c%d=1" % one for one in range(size // 9)))],
    "cookies in many lines": lambda size: [(b"cookie", b"a=b")] * (size // 4),
    "cookies with quotes": lambda size: [(b"cookie", b'a="' + b"\\" * size)],
    "Forwarded hops": lambda size: [(b"forwarded", b", ".join([b"for=10.0.0.1"] * (size // 14)))],
    "Forwarded pairs": lambda size: [(b"forwarded", b"for=10.0.0.1;" * (size // 13))],
    "Forwarded in many lines": lambda size: [(b"forwarded", b"for=10.0.0.1")] * (size // 12),
    "Forwarded quotes": lambda size: [(b"forwarded", b'for="' * (size // 5))],
    "X-Forwarded-For hops": lambda size: [(b"x-forwarded-for", b", ".join([b"10.0.0.1"] * (size // 10)))],
    "X-Forwarded-For of digits": lambda size: [(b"x-forwarded-for", b"1" * size)],
    "X-Forwarded-For of colons": lambda size: [(b"x-forwarded-for", b":" * size)],
    "X-Forwarded-For of dots": lambda size: [(b"x-forwarded-for", b"1." * (size // 2))],
    "a long token": lambda size: [(b"authorization", b"Bearer " + b"a" * size)],
    "a token of equals signs": lambda size: [(b"authorization", b"Bearer " + b"=" * size + b"!")],
    "a token after blanks": lambda size: [(b"authorization", b"Bearer" + b" " * size + b"\x01")],
    "Authorization with commas": lambda size: [(b"authorization", b"Bearer a" + b",  \t" * (size // 4))],
    "Authorization in many lines": lambda size: [(b"authorization", b"Basic a")] * (size // 7),
    "an idempotency key": lambda size: [(b"idempotency-key", b"k" * size)],
    "an idempotency key of escapes": lambda size: [(b"idempotency-key", b'"' + b"\\\\" * (size // 2))],
    "receipts": lambda size: [(b"awp-receipt", b"a.b, " * (size // 5))],
    "a long receipt": lambda size: [(b"awp-receipt", b"a" * size + b".b")],
    "a packed receipt": lambda size: [(b"awp-receipt", b"." + b"a" * size + b".b")],
    "a confirmation": lambda size: [(b"awp-confirmation", b"a." * (size // 2))],
    "a session": lambda size: [(b"awp-session", b"a." * (size // 2))],
    "a request id": lambda size: [(b"x-request-id", b"a" * size)],
    "an origin": lambda size: [(b"origin", b"https://" * (size // 8))],
    "a host": lambda size: [(b"host", b"shop.example" + b":443" * (size // 4))],
    "Sec-Fetch-Site": lambda size: [(b"sec-fetch-site", b" " * size + b"none")],
    "a content type of blanks": lambda size: [(b"content-type", b"application/json" + b" " * size + b"x")],
    "a content type of parameters": lambda size: [
        (b"content-type", b"application/json" + b"; charset " * (size // 10))
    ],
    "a content length": lambda size: [(b"content-length", b"9" * size)],
    "extensions": lambda size: [(b"a2a-extensions", b"https://a.example/x, " * (size // 21))],
    "entity tags": lambda size: [(b"if-none-match", b'W/"a", ' * (size // 7))],
    "an entity tag": lambda size: [(b"if-none-match", b'"a' * (size // 2))],
    "entity tags without quotes": lambda size: [(b"if-match", b"W/" * (size // 2))],
    "a date": lambda size: [(b"if-modified-since", b"Sun, " * (size // 5))],
    "a date of digits": lambda size: [(b"if-modified-since", b"Sun, 06 Nov " + b"9" * size + b" 08:49:37 GMT")],
    "a protocol version": lambda size: [(b"mcp-protocol-version", b"2" * size)],
    "a method": lambda size: [(b"mcp-method", b"tools/" * (size // 6)), (b"mcp-name", b"a" * (size // 2))],
    "a trace": lambda size: [(b"traceparent", b"00-" * (size // 3)), (b"tracestate", b"a=b," * (size // 4))],
}

QUERIES: Final[Mapping[str, Callable[[int], bytes]]] = {
    "pairs": lambda size: b"a=1&" * (size // 4),
    "pairs of many names": lambda size: b"&".join(b"a%d=1" % number for number in range(size // 9)),
    "escapes": lambda size: b"url=" + b"%2e" * (size // 3),
    "broken escapes": lambda size: b"url=" + b"%" * size,
    "ampersands": lambda size: b"&" * size,
    "semicolons": lambda size: b"url=/;" * (size // 6),
    "formats": lambda size: b"format=som&budget=tight&" * (size // 24),
    "plus signs": lambda size: b"format=" + b"+" * size,
    "addresses": lambda size: b"url=https://shop.example/" + b"../" * (min(size, 7000) // 3),
    "dots": lambda size: b"url=/" + b"%2e%2e/a/" * (min(size, 7000) // 9),
    "a long address": lambda size: b"url=https://shop.example/" + b"a/" * (size // 2),
}

PATHS: Final[Mapping[str, Callable[[int], str]]] = {
    "a long agent": lambda size: "/agents/" + "a" * size + "/invoke",
    "slashes": lambda size: "/agents" + "/" * size + "invoke",
    "agents": lambda size: "/agents/" + "a/invoke/" * (size // 9),
    "dots": lambda size: "/" + "../" * (size // 3),
    "A2A": lambda size: "/a2a/" + "tasks/" * (size // 6),
    "jobs": lambda size: "/agents/jobs/" + "0" * size,
    "problems": lambda size: "/agents/problems/" + "-" * size,
}

# --- How they are sent ---

ONE: Final = {"content-type": "application/json", "a2a-version": "1.0", "host": "shop.example"}
TOOL: Final = message("tools/call", {"name": "order", "arguments": {}})
LISTED: Final = message("tools/list")


def filled(document: object, text: str) -> str:
    """A document as JSON, with a text in the place of HOLE."""
    return json.dumps(document).replace(json.dumps(HOLE), text)


def to_a2a(**members: object) -> dict[str, object]:
    values = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"data": {"skill": "order"}}], **members}
    return {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": values}}


HOLE: Final = "<here>"
CALLED: Final = message("tools/call", {"name": "order", "arguments": HOLE})
WITH_META: Final = message("tools/call", {"name": "order"}, meta={"awp/receipts": HOLE})
OLD: Final = {"messageId": "m-1", "role": "user", "kind": "message", "parts": [{"kind": "data", "data": HOLE}]}
PLAIN: Final = {"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": HOLE}}

BODIES: Final[Mapping[str, tuple[str, Mapping[str, str], object]]] = {
    "woa input": ("/agents/order/invoke", {}, {"input": HOLE}),
    "woa agent": ("/agents/order/invoke", {}, {"input": {}, "agent": HOLE}),
    "woa receipts": ("/agents/order/invoke", {}, {"input": {}, "receipts": HOLE}),
    "woa key": ("/agents/order/invoke", {}, {"input": {}, "idempotency_key": HOLE}),
    "woa body": ("/agents/order/invoke", {}, HOLE),
    "mcp arguments": ("/mcp", headers_of(TOOL), CALLED),
    "mcp _meta": ("/mcp", headers_of(TOOL), WITH_META),
    "mcp params": ("/mcp", headers_of(LISTED), {**LISTED, "params": HOLE}),
    "mcp id": ("/mcp", headers_of(LISTED), {**LISTED, "id": HOLE}),
    "mcp body": ("/mcp", headers_of(LISTED), HOLE),
    "a2a input": ("/a2a", {}, to_a2a(parts=[{"data": {"skill": "order", "input": HOLE}}])),
    "a2a parts": ("/a2a", {}, to_a2a(parts=HOLE)),
    "a2a metadata": ("/a2a", {}, to_a2a(metadata=HOLE)),
    "a2a params": ("/a2a", {}, {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": HOLE}),
    "a2a body": ("/a2a", {}, HOLE),
    "a2a in HTTP": ("/a2a/message:send", {}, PLAIN),
    "a2a 0.3": (
        "/a2a",
        {"a2a-version": "0.3"},
        {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": OLD}},
    ),
}
"""Address, headers, and the body, in which a text of JSON takes the place of HOLE."""

SIGNED: Final = {"method": "auth.hmac", "key_id": "a", "signature": HOLE}
FRAMES: Final[Mapping[str, object]] = {
    "hello": {"id": "r1", "type": "request", "method": "awp.hello", "params": HOLE},
    "versions": {"id": "r1", "method": "awp.hello", "params": {"awp": {"versions": HOLE}}},
    "wants": {"id": "r1", "method": "awp.hello", "params": {"wants": {"events": HOLE}}},
    "signature": {"id": "r1", "method": "awp.hello", "params": {"auth": SIGNED}},
    "meta": {"id": "r1", "method": "awp.hello", "meta": HOLE},
    "before hello": {"id": "r1", "method": "skills.invoke", "params": HOLE},
}

PACKED: Final[Mapping[str, Callable[[int], object]]] = {
    "names": lambda size: {f"n{number}": 0 for number in range(size // 10)},
    "lists": lambda size: [[] for _ in range(size)],
    "numbers": lambda size: [1.5] * (size // 9),
    "deep lists": lambda size: [json.loads("[" * 400 + "]" * 400)] * (size // 400),
    "long text": lambda size: "\u00e9" * (size // 2),
}

SENT: Final = {"/mcp": TOOL, "/a2a": to_a2a(), "/agents/order/invoke": {"input": {}}}
ADDRESSES: Final = (
    ("POST", "/agents/order/invoke"),
    ("OPTIONS", "/agents/order/invoke"),
    ("POST", "/mcp"),
    ("POST", "/a2a"),
    ("GET", "/a2a/tasks"),
    ("GET", "/awp"),
    ("GET", "/agents/som"),
    ("GET", "/agents/status"),
    ("GET", "/agents/jobs/7f3c"),
    ("GET", "/agent.json"),
    ("GET", "/page"),
)


def make_site() -> Site:
    site = Site(
        "Shop",
        "Sells things.",
        url="https://shop.example",
        plugins=["mcp", "a2a", "awp", Pages(in_query=True)],
        authenticate=[BearerToken({"a-secret-of-ann": "ann"}), SharedSecret({"ben": "a-secret-of-ben-and-us"})],
        proxies=Proxies(trusted=["127.0.0.1", "10.0.0.0/8"]),
        secret_keys=["a-secret-key-of-this-test-and-nobody-else"],
    )

    @site.agent("look")
    async def look() -> str:
        """Look."""
        return "seen"

    @site.agent("order", auth_required=True, rate_limit="1000000/minute", requires=["look"], idempotency="1h")
    async def order(copies: int = 1) -> str:
        """Order."""
        return "ordered"

    @site.agent("slow", execution="async")
    async def slow() -> str:
        """Take long."""
        return "done"

    return site


class Front:
    """Requests to an application at its ASGI interface, where nothing but the application takes time."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def ask(self, method: str, path: str, headers: Headers, body: bytes = b"", query: bytes = b"") -> int:
        """Send a request, and give the status of its answer, which is shorter than twice the request."""
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "https",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query,
            "headers": headers,
            "client": ("127.0.0.1", 1),
            "server": ("shop.example", 443),
            "state": {},
            "extensions": {},
        }
        received, sent = [{"type": "http.request", "body": body, "more_body": False}], list[Any]()

        async def receive() -> Any:
            return received.pop() if received else await asyncio.get_running_loop().create_future()

        async def send(told: Any) -> None:
            sent.append(told)

        await self._app(scope, receive, send)
        assert sent[0]["status"] not in (500, 502, 504), sent
        return int(sent[0]["status"])

    async def say(self, *frames: str | bytes, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        """Open a WebSocket at the AWP door, and say something before the handshake."""
        scope = {
            "type": "websocket",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "wss",
            "path": "/awp",
            "raw_path": b"/awp",
            "query_string": b"",
            "headers": [(b"host", b"shop.example"), *headers],
            "client": ("127.0.0.1", 1),
            "server": ("shop.example", 443),
            "subprotocols": ["awp"] * len(headers),
            "state": {},
            "extensions": {"websocket.http.response": {}},
        }
        coming: list[Any] = [{"type": "websocket.connect"}]
        coming += [
            {"type": "websocket.receive", "text" if isinstance(frame, str) else "bytes": frame} for frame in frames
        ]
        coming.append({"type": "websocket.disconnect", "code": 1000})

        async def receive() -> Any:
            return coming.pop(0)

        async def send(told: Any) -> None:
            pass

        await self._app(scope, receive, send)


@asynccontextmanager
async def front() -> AsyncIterator["Front"]:
    app = AgentPublisher(Starlette(), site=make_site())
    async with running(app):
        yield Front(app)


# --- What is held ---

Ask: TypeAlias = Callable[[int], Awaitable[object]]
"""Sends a request of about so many bytes."""


Shapes: TypeAlias = Mapping[str, Ask]


async def find_slow(shapes: Shapes) -> dict[str, str]:
    """The shapes of which four times as much takes more than about four times as many steps, with their steps."""
    slow = {}
    for name, ask in shapes.items():
        await ask(1000)
        taken = []
        for size in (SMALL, SMALL * TIMES):
            with counting() as steps:
                await ask(size)
            taken.append(steps.count)
        small, large = taken
        if large > LINEAR * small:
            slow[name] = f"{small} steps for {SMALL} bytes, {large} for {TIMES} times as many"
    return slow


def encoded(headers: Mapping[str, str]) -> Headers:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


T = TypeVar("T")


def sending(makers: Mapping[str, Callable[[int], T]], send: Callable[[T], Awaitable[object]]) -> Shapes:
    """Return what sends the value that each maker makes of a size."""

    async def ask(make: Callable[[int], T], size: int) -> object:
        return await send(make(size))

    return {name: partial(ask, make) for name, make in makers.items()}


def in_body(place: str, at: Front) -> Shapes:
    path, own, document = BODIES[place]
    headers = encoded({**ONE, **own})
    return sending(JSON, lambda text: at.ask("POST", path, headers, filled(document, text).encode()))


def in_headers(method: str, path: str, at: Front) -> Shapes:
    def send(added: Headers) -> Awaitable[object]:
        replaced = {name for name, _ in added}
        own = [pair for pair in encoded({**ONE, **headers_of(TOOL)}) if pair[0] not in replaced]
        return at.ask(method, path, [*own, *added], json.dumps(SENT.get(path, {})).encode())

    return sending(HEADERS, send)


def in_query(path: str, at: Front) -> Shapes:
    return sending(QUERIES, lambda query: at.ask("GET", path, encoded(ONE), query=query))


def in_path(at: Front) -> Shapes:
    return sending(PATHS, lambda path: at.ask("POST", path, encoded(ONE), b"{}"))


def in_frame(place: str, at: Front) -> Shapes:
    return sending(JSON, lambda text: at.say(filled(FRAMES[place], text)))


def in_packed_frame(at: Front) -> Shapes:
    def pack(value: object) -> bytes:
        packed: bytes = msgpack.packb({"id": "r1", "method": "awp.hello", "params": {"wants": value}})
        return packed

    def repeat(size: int) -> bytes:
        """A map with many names, of which the last is there twice."""
        pairs = [*(f"n{number}" for number in range(size // 10)), "last", "last"]
        return b"\xdf" + len(pairs).to_bytes(4, "big") + b"".join(msgpack.packb(name) + b"\x00" for name in pairs)

    frames: dict[str, Callable[[int], bytes]] = {
        "names, the last twice": repeat,
        "nested": lambda size: b"\x91" * size,
        "extension types": lambda size: b"\xdc\xff\xff" + b"\xd4\x01\x00" * (size // 3),
    }
    return {**sending(PACKED, lambda value: at.say(pack(value))), **sending(frames, at.say)}


def in_upgrade(at: Front) -> Shapes:
    hello = json.dumps({"id": "r1", "method": "awp.hello", "params": {"awp_version": "0.1"}})
    return sending(HEADERS, lambda headers: at.say(hello, headers=headers))


PLACES: Final[Mapping[str, Callable[[Front], Shapes]]] = {
    **{f"JSON, {place}": partial(in_body, place) for place in BODIES},
    **{f"headers, {method} {path}": partial(in_headers, method, path) for method, path in ADDRESSES},
    **{f"queries, {path}": partial(in_query, path) for method, path in ADDRESSES if method == "GET"},
    "paths": in_path,
    **{f"frames before the handshake, {place}": partial(in_frame, place) for place in FRAMES},
    "packed frames before the handshake": in_packed_frame,
    "headers of an upgrade": in_upgrade,
}


@pytest.mark.parametrize("place", PLACES)
async def test_every_request_is_read_in_linear_time(place):
    async with front() as at:
        assert await find_slow(PLACES[place](at)) == {}
