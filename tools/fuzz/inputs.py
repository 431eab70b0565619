"""Hostile requests from a seed: what a good client says at each door, and then what is done to it.

    make_input(seed, index)      always the same, whatever came before

An input is a short talk: HTTP requests one after the other, or the frames of one WebSocket. Where it says `@job@`,
`@confirmation@` and the like, the one who sends it puts in what an earlier answer of the same talk has handed out.
The first inputs are REGRESSIONS, what has once been found; all others are made at random.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from random import Random
from typing import Any, Final, TypeAlias
from urllib.parse import quote, urlencode

import msgpack

from tools.fuzz.site import API_KEY, HOST, TOKENS

Given: TypeAlias = dict[str, Any]
Headers: TypeAlias = list[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Http:
    """One request. `target` is what the request line says; `sent` bytes of the body come before the caller leaves."""

    method: str
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes = b""
    chunks: int = 1
    sent: int | None = None
    client: str = "203.0.113.7"


@dataclass(frozen=True)
class Socket:
    """One WebSocket. With `waits` each frame is sent when the one before has been answered, else all at once."""

    headers: tuple[tuple[bytes, bytes], ...]
    frames: tuple[bytes | str, ...]
    waits: bool = True
    client: str = "203.0.113.7"


@dataclass(frozen=True)
class Input:
    """A talk with one door."""

    door: str
    steps: tuple[Http | Socket, ...]

    @property
    def is_browsing(self) -> bool:
        """Whether it asks for pages, as a browser does: then it reaches every route that a browser does."""
        return self.door in ("pages", "som") or b"page." in self.text or b"resources/read" in self.text

    @property
    def text(self) -> bytes:
        """All that is sent."""
        return b"\n".join(b"".join(_bytes_of(step)) for step in self.steps)

    @property
    def size(self) -> int:
        """How many bytes are sent."""
        return len(self.text)


def _bytes_of(step: Http | Socket) -> Iterator[bytes]:
    for name, value in step.headers:
        yield from (name, value)
    if isinstance(step, Http):
        yield from (step.target, step.body)
    else:
        yield from (frame if isinstance(frame, bytes) else frame.encode("utf-8", "replace") for frame in step.frames)


def make_input(seed: int, index: int) -> Input:
    """The input with this number."""
    if index < len(REGRESSIONS):
        return REGRESSIONS[index]()
    rng = Random(f"{seed}:{index}")
    door = rng.choices(_DOOR_NAMES, _WEIGHTS)[0]
    return Input(door, tuple(_wire(rng, draft) for draft in DOORS[door](rng)))


# --- Values that somebody may send ---

WORDS: Final = (
    "whale",
    "",
    " ",
    "0",
    "-1",
    "null",
    "true",
    ".",
    "..",
    "../../etc/passwd",
    "a/b",
    "%2e%2e%2f",
    "%00",
    "\x00",
    "\r\nset-cookie: x=1",
    "\u202etxt.exe\u2066",
    "\u0085\u2028\u2029\ufeff",
    "\ud800",
    "\udfff\ud800",
    "😀" * 20,
    "<script>alert(1)</script>",
    "{amount}{0.__class__}",
    "${7*7}{{7*7}}",
    "' OR 1=1 --",
    "cancel_all",
    "export",
    "purge",
    "secret/keys",
    "@confirmation@",
    "@job@",
    "x" * 300,
    "ä" * 5_000,
    "x" * 70_000,
    "9" * 400,
    "1e999",
    "2026-13-45T99:99:99Z",
    "__proto__",
    "constructor",
    "http://127.0.0.1/",
    "file:///etc/passwd",
    "javascript:alert(1)",
)
NUMBERS: Final = (
    0,
    -1,
    1,
    2,
    100,
    101,
    0.5,
    -0.0,
    1e308,
    5e-324,
    2**31,
    -(2**31) - 1,
    2**53 + 1,
    2**63 - 1,
    2**63,
    1e22,
)
RAW: Final = (
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"-0",
    b"01",
    b"1.",
    b"18446744073709551616",
    b"9" * 5_000,
    b"0." + b"1" * 5_000,
    b'"\\ud800"',
    b'"\\ud83d\\ude00"',
    b'"\\u0000"',
    b'"\xff\xfe"',
    b'"\xed\xa0\x80"',
    b'"unclosed',
    b"'single'",
    b"undefined",
    b"/* comment */ 1",
    b"[1,]",
    b"{,}",
    b'{"a":1,"a":2}',
    b'{"a":1,"\\u0061":2}',
    b'{"":1,"":1}',
    b"[" * 150 + b"]" * 150,
    b"[" * 199 + b"]" * 199,
    b"[" * 300 + b"]" * 300,
    b"[" * 20_000,
    b'{"a":' * 60 + b"1" + b"}" * 60,
    b'{"a":' * 260 + b"1" + b"}" * 260,
    b"[" + b"0," * 20_000 + b"0]",
    b"[" + b"[]," * 5_000 + b"[]]",
    b"{" + b",".join(b'"n%d":0' % number for number in range(3_000)) + b"}",
    b"{" + b",".join(b'"n%d":0' % number for number in range(1_000)) + b',"n999":0}',
    b'"' + b"\\u0041" * 5_000 + b'"',
    b'"' + b"\\\\" * 5_000 + b'"',
    b"\xef\xbb\xbf1",
)
"""What stands where a JSON value should; much of it is none."""

NAMES: Final = (
    "a",
    "",
    "x" * 2_000,
    "__proto__",
    "\u202e",
    "input",
    "skill",
    "id",
    "~1/",
    "xyxyxyxyxyxyxyxyxyxyxyxyz",
    "\ud800",
)


def _value(rng: Random, depth: int = 0) -> Any:
    kind = rng.random()
    if kind < 0.45:
        return rng.choice(WORDS)
    if kind < 0.67:
        return rng.choice(NUMBERS)
    if kind < 0.73:
        return f"@raw:{rng.randrange(len(RAW))}@"
    if kind < 0.8 or depth > 2:
        return rng.choice((None, True, False, [], {}))
    if kind < 0.9:
        return [_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice(NAMES): _value(rng, depth + 1) for _ in range(rng.randrange(4))}


def filter_tree(rng: Random, depth: int, leaf: Any = None) -> Given:
    """A tree of conditions."""
    if depth <= 0:
        return leaf if leaf is not None else {"field": "title", "value": rng.choice(("Emma", 1, None, 2.5))}
    inner = filter_tree(rng, depth - 1 - rng.randrange(2), leaf)
    if rng.random() < 0.3:
        return {"negated": inner}
    return {"op": rng.choice(("and", "or")), "parts": [inner, inner] if depth < 4 else [inner]}


def _tree(rng: Random, depth: int) -> Given:
    return {"name": "oak", "children": [_tree(rng, depth - 1) for _ in range(rng.randrange(3))] if depth else []}


def _order(rng: Random) -> Given:
    lines = [{"sku": f"book-{rng.randrange(99)}", "copies": rng.randint(1, 20)} for _ in range(rng.randrange(4))]
    return {"lines": lines, "email": "ann@mail.example", "tags": {"gift": "yes"}, "express": rng.random() < 0.5}


def _texts(*names: str) -> Callable[[Random], Given]:
    return lambda rng: {name: rng.choice(("emma", "whale", "7", "a-b_c")) for name in names}


GIVEN: Final[Mapping[str, Callable[[Random], Given]]] = {
    "search_books": lambda rng: {"q": "whale", "limit": rng.randint(1, 100), "sort": "price", "tags": ["a", "b"]},
    "put_label": lambda rng: {
        "label_id": rng.randrange(99),
        "text": "t",
        "color": "red",
        "x_shop": "s",
        "theme": "dark",
    },
    "contact": _texts("name", "message"),
    "upload_cover": lambda rng: {"title": "t", "cover": "aGVsbG8="},
    "cancel_all_orders": lambda rng: {},
    "show_order": _texts("order_id"),
    "write_note": _texts("note_id", "text"),
    "read_file": lambda rng: {"path": rng.choice(("a/b.txt", "a", "a/../b", "%2e%2e/a"))},
    "filter_books": lambda rng: {"where": filter_tree(rng, rng.randrange(8)), "limit": 5},
    "plant_tree": lambda rng: _tree(rng, 4),
    "order_books": _order,
    "sum_up": lambda rng: {"body": [rng.choice(NUMBERS[:8]) for _ in range(rng.randrange(5))]},
    "echo": lambda rng: {"a": _value(rng), "b": [1, 2.5, "x"]},
    "strict": lambda rng: {"a": _value(rng)},
    "patterned": lambda rng: {"x" * rng.randrange(1, 40): 1, "y" * rng.randrange(40) + "!": "free"},
    "close_account": _texts("name"),
    "pay": lambda rng: {"amount": rng.choice((1, 5)), "payee": rng.choice(WORDS[:30]), "memo": "m"},
    "erase": lambda rng: {"names": {rng.choice(NAMES): rng.choice(WORDS)}},
    "send": _texts("to"),
    "scarce": _texts("text"),
    "desk_lend": _texts("title"),
    "desk_give_back": _texts("title"),
    "ship_order": _texts("number"),
    "crunch": _texts("text"),
    "explode": lambda rng: {"how": rng.choice(("raise", "redirect", "unavailable", "sold_out"))},
    "fall_over": lambda rng: {"how": rng.choice(("refuse", "raise", "lie", "deep"))},
}
"""A good input of each action."""

_ACTIONS: Final = tuple(GIVEN)
_OPERATIONS: Final = {"desk_lend": ("desk", "lend"), "desk_give_back": ("desk", "give_back")}
_ASKING: Final = ("pay", "erase", "cancel_all_orders")
"""Actions that a person has to confirm."""

_GUARDED: Final = ("pay", "close_account", "send", "desk_lend", "desk_give_back", "crunch", "cancel_all_orders")


# --- What is done to a document ---


def mutate(rng: Random, document: Any, times: int) -> Any:
    """A document with this many things wrong, at places of any depth."""
    box = [document]
    for _ in range(times):
        holder: Any = box
        key: Any = 0
        while isinstance(holder[key], (dict, list)) and holder[key] and rng.random() < 0.75:
            holder = holder[key]
            key = rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
        rng.choice(_CHANGES)(rng, holder, key)
    return box[0]


def _replace(rng: Random, holder: Any, key: Any) -> None:
    holder[key] = _value(rng)


def _leave_out(rng: Random, holder: Any, key: Any) -> None:
    if isinstance(holder, dict):
        del holder[key]
    else:
        holder[key] = None


def _rename(rng: Random, holder: Any, key: Any) -> None:
    if isinstance(holder, dict):
        holder[rng.choice(NAMES)] = holder.pop(key)


def _say_twice(rng: Random, holder: Any, key: Any) -> None:
    if isinstance(holder, dict):
        holder[f"@twice:{json.dumps(key)[1:-1]}@"] = holder[key]


def _add_members(rng: Random, holder: Any, key: Any) -> None:
    if isinstance(holder, dict):
        for number in range(rng.choice((1, 3, 100))):
            holder[rng.choice(NAMES) + str(number)] = _value(rng, 2)


def _wrap(rng: Random, holder: Any, key: Any) -> None:
    holder[key] = rng.choice((lambda it: [it], lambda it: {"a": it}, lambda it: [it] * 30, str, lambda it: [it, it]))(
        holder[key]
    )


def _nest(rng: Random, holder: Any, key: Any) -> None:
    inner = holder[key]
    for _ in range(rng.choice((5, 60, 120))):
        inner = [inner]
    holder[key] = inner


_CHANGES: Final = (_replace, _replace, _replace, _leave_out, _rename, _say_twice, _add_members, _wrap, _nest)
_MARK: Final = re.compile(rb'"@raw:(\d+)@"|"@twice:((?:[^"\\]|\\.)*?)@"')


def write_json(document: Any, *, ascii_only: bool = True) -> bytes:
    """A document as JSON text, or as something like it."""
    body = json.dumps(document, ensure_ascii=ascii_only, separators=(",", ":")).encode("utf-8", "surrogatepass")
    if b"@raw:" not in body and b"@twice:" not in body:
        return body
    return _MARK.sub(lambda found: RAW[int(found[1])] if found[1] else b'"' + found[2] + b'"', body)


PACKED: Final = (
    b"\xc1",
    b"\xdd\xff\xff\xff\xff",
    b"\xdf\xff\xff\xff\xff",
    b"\xc6\xff\xff\xff\xff",
    b"\x91" * 2_000,
    b"\x81\xa1a" * 1_500,
    b"\x82\xa2id\xa1r\xa2id\xa1r",
    b"\x82\xa2id\xa1r\xa6method\xc4\x04page",
    b"\x81\xa2id\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00",
    b"\x81\x01\x02",
    b"\x81\xc0\xc0",
    b"\x81\x90\xc0",
    b"\xd6\xff\x00\x00\x00\x01",
    b"\xc7\x0c\xff" + b"\x00" * 12,
    b"\x81\xa2id\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x81\xa2\xff\xfe\xc0",
    b"\xdc\xff\xff" + b"\xc0" * 65_535,
    b"\x80\x80",
    b"",
)
"""MessagePack that says what JSON cannot, or nothing."""


def _pack(rng: Random, document: Any) -> bytes:
    if rng.random() < 0.1:
        return rng.choice(PACKED)
    try:
        packed: bytes = msgpack.packb(document, unicode_errors="surrogatepass")
    except (ValueError, OverflowError, RecursionError):
        return rng.choice(PACKED)
    return packed


# --- A request before it is on the wire ---


@dataclass
class Draft:
    """A request that may still be changed. `document` is what its body says."""

    method: str
    target: str
    headers: Headers = field(default_factory=list)
    document: Any = None
    body: bytes = b""
    changes: int = 0


@dataclass
class SocketDraft:
    """A WebSocket whose messages may still be changed."""

    headers: Headers
    documents: list[Any]
    is_packed: bool
    changes: int = 0


_JSON: Final = (b"content-type", b"application/json")
_CLIENTS: Final = (*(f"203.0.113.{number}" for number in range(100)), "192.0.2.1", "192.0.2.9", "2001:db8::1", "")


def _how_many(rng: Random) -> int:
    return rng.choices((0, 1, 2, 5), (45, 35, 13, 7))[0]


def _bearer(token: str) -> tuple[bytes, bytes]:
    return b"authorization", b"Bearer " + token.encode()


def _add_credentials(rng: Random, headers: Headers, action: str = "") -> None:
    """Good ones, or bad ones, or none; mostly good ones where an action asks for them."""
    kind = rng.random()
    if action in _GUARDED and rng.random() < 0.6:
        headers.append(_bearer(next(iter(TOKENS))))
    elif kind < 0.35:
        headers.append(_bearer(rng.choice(tuple(TOKENS))))
    elif kind < 0.45:
        headers.append((b"x-api-key", API_KEY.encode()))
    elif kind < 0.55:
        headers.append(rng.choice(_BAD_CREDENTIALS))


_BAD_CREDENTIALS: Final[tuple[tuple[bytes, bytes], ...]] = (
    (b"authorization", b""),
    (b"authorization", b"Bearer"),
    (b"authorization", b"Bearer "),
    (b"authorization", b"bearer wrong"),
    (b"authorization", b"Bearer a-valid-token-of-ann2"),
    (b"authorization", b"Bearer a-valid-token-of-an"),
    (b"authorization", b"Bearer A-VALID-TOKEN-OF-ANN"),
    (b"authorization", b"Basic YW5uOmFubg=="),
    (b"authorization", b"Bearer \xff\xfe\x80"),
    (b"authorization", b"Bearer " + b"x" * 10_000),
    (b"authorization", b"Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4ifQ."),
    (b"x-api-key", b""),
    (b"x-api-key", b"ann"),
    (b"cookie", b"user=ann; session=1"),
    (b"x-forwarded-user", b"ann"),
)

_ODD_HEADERS: Final[tuple[tuple[bytes, bytes], ...]] = (
    *_BAD_CREDENTIALS,
    (b"accept", b""),
    (b"accept", b"text/html;q=0"),
    (b"accept", b"application/json;q=abc, */*;q=9"),
    (b"accept", b"," * 3_000),
    (b"accept", b"text/" + b"x" * 9_000),
    (b"accept", b"application/som+json"),
    (b"accept", b"text/markdown;budget=small"),
    (b"accept", b"text/event-stream"),
    (b"accept-encoding", b"gzip, br;q=0, *;q=0"),
    (b"accept-encoding", b"\xff"),
    (b"accept-language", b"*" * 2_000),
    (b"content-type", b""),
    (b"content-type", b"application/json; charset=utf-16"),
    (b"content-type", b"text/plain"),
    (b"content-type", b"multipart/form-data"),
    (b"content-type", b"application/x-www-form-urlencoded"),
    (b"content-encoding", b"gzip"),
    (b"content-encoding", b"identity, br"),
    (b"content-length", b"99999999999999999999999"),
    (b"content-length", b"-1"),
    (b"content-length", b"\xb2"),
    (b"content-length", b"0"),
    (b"transfer-encoding", b"chunked"),
    (b"host", b"evil.example"),
    (b"host", b""),
    (b"host", b"shop.example:99999"),
    (b"host", b"[::1"),
    (b"origin", b"https://evil.example"),
    (b"origin", b"null"),
    (b"origin", b"https://friend.example"),
    (b"origin", b"https://shop.example\xff"),
    (b"sec-fetch-site", b"cross-site"),
    (b"sec-fetch-mode", b"navigate"),
    (b"cookie", b"a=b; a=c; =; ;;"),
    (b"cookie", b"x=" + b"y" * 9_000),
    (b"forwarded", b'for="[2001:db8::1]:99";proto=https, for=unknown, for=_x'),
    (b"forwarded", b"for=" * 500),
    (b"x-forwarded-for", b"1.2.3.4, , 999.1.1.1, ::1%eth0"),
    (b"x-forwarded-for", b"192.0.2.1," * 500),
    (b"x-forwarded-host", b"evil.example"),
    (b"x-forwarded-prefix", b"/evil"),
    (b"x-http-method-override", b"DELETE"),
    (b"x-original-url", b"/orders/cancel_all"),
    (b"x-request-id", b"x" * 500),
    (b"x-request-id", b"\x01\x02<script>"),
    (b"idempotency-key", b""),
    (b"idempotency-key", b"k" * 300),
    (b"idempotency-key", b"\xe4\x00"),
    (b"idempotency-key", b"the-key-of-everybody"),
    (b"awp-confirmation", b"@confirmation@"),
    (b"awp-confirmation", b"a.b.c"),
    (b"awp-confirmation", b"x" * 20_000),
    (b"awp-receipt", b"," * 2_000),
    (b"awp-receipt", b"@receipt@"),
    (b"awp-session", b"@session@"),
    (b"if-none-match", b'"' * 999),
    (b"if-none-match", b"*"),
    (b"if-modified-since", b"Sat, 99 Xxx 99999 99:99:99 GMT"),
    (b"if-modified-since", b"Mon, 01 Jan 0001 00:00:00 +2400"),
    (b"range", b"bytes=0-0,-1,5-"),
    (b"expect", b"100-continue"),
    (b"upgrade", b"websocket"),
    (b"connection", b"close, te, x"),
    (b"mcp-protocol-version", b"2024-11-05"),
    (b"mcp-protocol-version", b"1999-01-01\xff"),
    (b"mcp-method", b"tools/list"),
    (b"mcp-name", b"=?base64?w6Q=?="),
    (b"mcp-session-id", b"x"),
    (b"last-event-id", b"99"),
    (b"a2a-version", b"0.3"),
    (b"a2a-version", b"9.9.9"),
    (b"a2a-extensions", b"," * 2_000),
    (b"traceparent", b"00-zz-zz-01"),
)

_METHODS: Final = (
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "PROPFIND",
    "get",
    "X" * 300,
)
_PATH_CHANGES: Final[tuple[Callable[[str], str], ...]] = (
    lambda target: target + "/",
    lambda target: target.replace("/", "//", 2),
    lambda target: target.replace("/", "/./", 1),
    lambda target: "/x/.." + target,
    lambda target: target.replace("/agents", "/%61gents"),
    lambda target: target.replace("_", "%5f"),
    lambda target: target.replace("/", "%2f").replace("%2f", "/", 1),
    lambda target: target.upper(),
    lambda target: target + "%00",
    lambda target: target + "%ff%fe",
    lambda target: target + "%",
    lambda target: target + "\\..\\",
    lambda target: target + ";a=b",
    lambda target: target + "?" + "a=b&" * 2_000,
    lambda target: target + "?a=%zz&a[]=1&=&&format=som&format=md",
    lambda target: target + "?url=/&url=//evil.example",
    lambda target: target + "#fragment",
    lambda target: target + "/" + "a" * 10_000,
    lambda target: target + "/.." * 50,
    lambda target: target.rsplit("/", 1)[0],
    lambda target: "https://evil.example" + target,
    lambda target: "*",
    lambda target: "",
)


def _wire(rng: Random, draft: Draft | SocketDraft) -> Http | Socket:
    """A draft as it is sent: its document changed and written, then its headers, its address and its bytes."""
    if isinstance(draft, SocketDraft):
        return _wire_socket(rng, draft)
    body = draft.body
    if draft.document is not None:
        document = mutate(rng, draft.document, draft.changes) if draft.changes else draft.document
        body = write_json(document, ascii_only=rng.random() < 0.8)
    if rng.random() < 0.06:
        body = _damage(rng, body)
    headers, method, target = [(b"host", HOST), *draft.headers], draft.method, draft.target
    if rng.random() < 0.3:
        _change_headers(rng, headers)
    if rng.random() < 0.06:
        method = rng.choice(_METHODS)
    if rng.random() < 0.1:
        target = rng.choice(_PATH_CHANGES)(target)
    sent = rng.choice((0, len(body) // 2, len(body))) if rng.random() < 0.02 else None
    raw = quote(target, safe="/%?&=:@!$'()*+,;[]~\\\"<>{}|^`").encode()
    return Http(method, raw, tuple(headers), body, rng.choice((1, 1, 1, 2, 7)), sent, rng.choice(_CLIENTS))


def _wire_socket(rng: Random, draft: SocketDraft) -> Socket:
    frames: list[bytes | str] = []
    for number, document in enumerate(draft.documents):
        is_changed = draft.changes and rng.random() < (0.1 if number == 0 else 0.35)
        said = mutate(rng, document, draft.changes) if is_changed else document
        if draft.is_packed:
            frames.append(_pack(rng, said))
        else:
            body = write_json(said, ascii_only=rng.random() < 0.8)
            body = _damage(rng, body) if rng.random() < 0.06 else body
            frames.append(body.decode("utf-8", "replace"))
    headers = [(b"host", HOST), *draft.headers]
    if rng.random() < 0.2:
        _change_headers(rng, headers)
    return Socket(tuple(headers), tuple(frames), rng.random() < 0.85, rng.choice(_CLIENTS))


def _change_headers(rng: Random, headers: Headers) -> None:
    for _ in range(rng.choice((1, 1, 2, 6))):
        kind = rng.random()
        if kind < 0.75:
            headers.append(rng.choice(_ODD_HEADERS))
        elif kind < 0.85 and headers:
            headers.append(rng.choice(headers))
        elif kind < 0.92 and headers:
            headers.pop(rng.randrange(len(headers)))
        elif headers:
            number = rng.randrange(len(headers))
            name, value = headers[number]
            headers[number] = (name, rng.choice((value + b" ", value.upper(), value[:-1], value * 3, b"\t" + value)))


def _damage(rng: Random, body: bytes) -> bytes:
    """Bytes that are not those which were meant."""
    kind = rng.randrange(5)
    if not body or kind == 0:
        return body[: rng.randrange(len(body) + 1)]
    place = rng.randrange(len(body))
    if kind == 1:
        changed = bytearray(body)
        for _ in range(rng.choice((1, 3, 20))):
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        return bytes(changed)
    if kind == 2:
        return body[:place] + rng.randbytes(rng.randrange(1, 9)) + body[place:]
    if kind == 3:
        return body[:place] + body[place : place + 40] * 3 + body[place + 40 :]
    return body + rng.choice((b"{}", b"\x00", b",", b" " * 500, body[:100]))


# --- What a good client says at each door ---


def _members_beside(rng: Random, action: str) -> Given:
    """What stands beside an input."""
    members: Given = {}
    if rng.random() < 0.25:
        members["idempotency_key"] = rng.choice(
            (*[f"k-{rng.randrange(10**9)}"] * 8, "the-key-of-everybody", "", 7, "ä", "k" * 300)
        )
    if rng.random() < 0.04:
        members["confirmation"] = rng.choice(("@confirmation@", "a.b.c", "", 7, None))
    if rng.random() < 0.04:
        members["receipts"] = rng.choice((["@receipt@"], [], ["x"] * 100, "x", [7], [None]))
    return members


def _choose(rng: Random) -> tuple[str, Given]:
    action = rng.choice(_ASKING if rng.random() < 0.1 else _ACTIONS)
    return action, GIVEN[action](rng)


def _copy(document: Any) -> Any:
    return json.loads(json.dumps(document))


def _earlier(action: str, rng: Random) -> str | None:
    """What has to be called before an action, so that it may be called at all."""
    return "search_books" if action == "send" and rng.random() < 0.8 else action if action in _ASKING else None


def _woa(rng: Random) -> Iterator[Draft]:
    action, given = _choose(rng)
    headers: Headers = [_JSON]
    _add_credentials(rng, headers, action)
    agent, operation = _OPERATIONS.get(action, (action, "default"))
    agent = rng.choice(WORDS) if rng.random() < 0.02 else agent
    envelope: Given = {"input": given, **_members_beside(rng, action)}
    envelope |= {"agent": agent, "operation": operation} if rng.random() < 0.5 or operation != "default" else {}
    target = f"/agents/{quote(agent, safe='', errors='replace')}/invoke"
    earlier = _earlier(action, rng)
    if earlier == action:
        yield Draft("POST", target, list(headers), _copy(envelope), changes=rng.choice((0, 0, 0, 1)))
        envelope["confirmation"] = "@confirmation@"
        for _ in range(rng.choice((0, 0, 1))):  # a confirmation is good once
            yield Draft("POST", target, list(headers), _copy(envelope), changes=rng.choice((0, 0, 1)))
    elif earlier:
        given = GIVEN[earlier](rng)
        yield Draft("POST", f"/agents/{earlier}/invoke", list(headers), {"input": given})
        envelope["receipts"] = ["@receipt@"]
    yield Draft("POST", target, headers, envelope, changes=_how_many(rng))


_METHOD_OF: Final[Mapping[str, str]] = {
    "search_books": "GET",
    "put_label": "PUT",
    "cancel_all_orders": "GET",
    "show_order": "GET",
    "read_file": "GET",
    "close_account": "DELETE",
}
"""Methods of actions at their plain addresses; all others take POST."""


def _plain(rng: Random) -> Iterator[Draft]:
    """A call at an action's plain address: inputs side by side, in the query, a form or JSON."""
    action, given = _choose(rng)
    headers: Headers = []
    _add_credentials(rng, headers, action)
    given |= {name: it for name, it in _members_beside(rng, action).items() if rng.random() < 0.5}
    earlier = _earlier(action, rng)
    if earlier == action:
        for _ in range(rng.choice((1, 1, 2))):
            yield _flat(rng, action, _copy(given), headers, rng.choice((0, 0, 0, 1)))
        headers = [*headers, (b"awp-confirmation", b"@confirmation@")]
    elif earlier:
        yield _flat(rng, earlier, GIVEN[earlier](rng), headers, 0)
        headers = [*headers, (b"awp-receipt", b"@receipt@")]
    yield _flat(rng, action, given, headers, _how_many(rng))


def _flat(rng: Random, action: str, given: Given, headers: Headers, changes: int) -> Draft:
    name = rng.choice(WORDS) if rng.random() < 0.02 else action
    target = f"/agents/actions/{quote(name, safe='', errors='replace')}"
    method = _METHOD_OF.get(action, "POST")
    how = rng.choices(("query", "form", "multipart", "json"), (60, 5, 5, 30) if method == "GET" else (15, 30, 15, 40))[
        0
    ]
    if how == "json":
        return Draft(method, target, [_JSON, *headers], given, changes=changes)
    fields = []
    changed = mutate(rng, given, changes) if changes else given
    for key, value in changed.items() if isinstance(changed, dict) else (("body", changed),):
        for item in value if isinstance(value, list) and value else [value]:
            fields.append((key, item if isinstance(item, str) else json.dumps(item)))
    encoded = urlencode(fields, safe="@", errors="surrogatepass")
    if how == "query":
        return Draft(method, f"{target}?{encoded}", list(headers))
    if how == "form":
        kind = b"application/x-www-form-urlencoded"
        return Draft(method, target, [(b"content-type", kind), *headers], body=encoded.encode())
    parts = []
    for key, text in fields:
        said = key.replace('"', "%22").replace("\r", "").replace("\n", "")
        file = '; filename="a.txt"\r\ncontent-type: text/plain' if rng.random() < 0.2 else ""
        parts.append(f'--b\r\ncontent-disposition: form-data; name="{said}"{file}\r\n\r\n{text}\r\n')
    body = ("".join(parts) + "--b--\r\n").encode("utf-8", "surrogatepass")
    return Draft(method, target, [(b"content-type", b"multipart/form-data; boundary=b"), *headers], body=body)


def _jobs(rng: Random) -> Iterator[Draft]:
    headers: Headers = []
    _add_credentials(rng, headers)
    action = rng.choice(("ship_order", "crunch"))
    yield Draft("POST", f"/agents/{action}/invoke", [_JSON, *headers], {"input": GIVEN[action](rng)})
    for _ in range(rng.randrange(1, 4)):
        others = [] if rng.random() < 0.2 else headers
        job = rng.choice(("@job@", "@job@", "@job@x", "A" * 22, "..", "%00", "x" * 5_000))
        yield Draft(rng.choice(("GET", "GET", "DELETE")), f"/agents/jobs/{job}", list(others))


def _status(rng: Random) -> Iterator[Draft]:
    yield Draft(
        "GET", rng.choice(("/agents/status", "/agents/problems", "/agents/problems/not-json", "/agents/problems/x"))
    )


_DOCUMENTS: Final = (
    "/agent.json",
    "/.well-known/agent.json",
    "/.well-known/woa.json",
    "/.well-known/ai-actions.json",
    "/.well-known/agent-card.json",
    "/.well-known/som.json",
    "/.well-known/mcp.json",
    "/mcp/server-card",
    "/llms.txt",
    "/agents",
    "/agents/",
    "/robots.txt",
)


def _documents(rng: Random) -> Iterator[Draft]:
    yield Draft(
        rng.choice(("GET", "GET", "HEAD", "OPTIONS")), rng.choice(_DOCUMENTS), [(b"accept-encoding", b"gzip, br")]
    )


_PAGES: Final = (
    "/",
    "/about",
    "/odd",
    "/moved",
    "/fail",
    "/none",
    "/enter",
    "/about.md",
    "/odd?format=som",
    "/?format=md",
)
_ACCEPTED: Final = (
    b"text/html",
    b"text/markdown",
    b"application/som+json",
    b"application/som+json;budget=small",
    b"*/*",
    b"text/html;q=0.1, text/markdown",
    b"application/json, text/*;q=0.2",
)


def _pages(rng: Random) -> Iterator[Draft]:
    yield Draft(rng.choice(("GET", "GET", "GET", "HEAD")), rng.choice(_PAGES), [(b"accept", rng.choice(_ACCEPTED))])


def _som(rng: Random) -> Iterator[Draft]:
    url = rng.choice(
        (*_PAGES, "https://shop.example/about", "https://shop.example:443/", *WORDS, "//evil.example", "/agents/som")
    )
    query: dict[str, str | bytes] = {"url": url.encode("utf-8", "replace")}
    query |= {"format": rng.choice(("som", "md", "html", ""))} if rng.random() < 0.4 else {}
    query |= {"budget": rng.choice(("full", "small", "medium", "9"))} if rng.random() < 0.3 else {}
    yield Draft("GET", "/agents/som?" + urlencode(query), [(b"accept", rng.choice(_ACCEPTED))])


_MODERN: Final = "2026-07-28"
_MCP_METHODS: Final = (
    "tools/list",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "prompts/list",
    "prompts/get",
    "ping",
    "initialize",
    "logging/setLevel",
    "completion/complete",
    "notifications/cancelled",
    "notifications/initialized",
    "server/discover",
    "tasks/get",
    "x",
)


def _mcp(rng: Random) -> Iterator[Draft]:
    version = rng.choice((_MODERN, "2025-11-25"))
    headers: Headers = [
        _JSON,
        (b"accept", b"application/json, text/event-stream"),
        (b"mcp-protocol-version", version.encode()),
    ]
    is_call = rng.random() < 0.75
    method = "tools/call" if is_call else rng.choice(_MCP_METHODS)
    params: Given = {}
    name = ""
    if is_call:
        name, given = _choose(rng)
        params = {"name": name, "arguments": given}
    elif method == "resources/read":
        name = rng.choice(
            ("https://shop.example/about", "https://shop.example/agent.json", "https://evil.example/", "x:")
        )
        params = {"uri": name}
    elif method == "prompts/get":
        name = "recommend"
        params = {"name": name, "arguments": {"genre": "old", "count": "3"}}
    elif method == "initialize":
        client = {"name": "fuzz", "version": "1"}
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
    _add_credentials(rng, headers, name)
    meta: Given = {_MCP_NAMES[key]: value for key, value in _members_beside(rng, name).items()}
    if version == _MODERN:
        capabilities: Given = rng.choice(({}, {"elicitation": {}}))
        meta |= {"io.modelcontextprotocol/protocolVersion": version}
        meta |= {"io.modelcontextprotocol/clientCapabilities": capabilities}
        headers += [(b"mcp-method", method.encode()), *([(b"mcp-name", name.encode())] if name else [])]
    if rng.random() < 0.1:
        meta["progressToken"] = rng.choice((1, "p", None, {}, 2**70))
    if meta:
        params["_meta"] = meta
    message: Given = {"jsonrpc": "2.0", "id": rng.choice((1, "a", 2**53)), "method": method, "params": params}
    earlier = _earlier(name, rng) if is_call else None
    if earlier:
        first = _copy(message)
        first["params"] |= {
            "name": earlier,
            "arguments": params["arguments"] if earlier == name else GIVEN[earlier](rng),
        }
        named = [pair if pair[0] != b"mcp-name" else (b"mcp-name", earlier.encode()) for pair in headers]
        yield Draft("POST", "/mcp", named, first, changes=rng.choice((0, 0, 0, 1)))
        beside = {"awp/confirmation": "@confirmation@"} if earlier == name else {"awp/receipts": ["@receipt@"]}
        params["_meta"] = {**params.get("_meta", {}), **beside}
    yield Draft("POST", "/mcp", headers, message, changes=_how_many(rng))


_MCP_NAMES: Final = {
    "idempotency_key": "awp/idempotencyKey",
    "confirmation": "awp/confirmation",
    "receipts": "awp/receipts",
}

_A2A_1: Final = (
    "SendMessage",
    "SendMessage",
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
)
_A2A_1_ODD: Final = (
    "SubscribeToTask",
    "GetExtendedAgentCard",
    "CreateTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "x",
)
_A2A_0: Final = ("message/send", "message/send", "message/send", "message/stream", "tasks/get", "tasks/cancel")
_A2A_0_ODD: Final = (
    "tasks/resubscribe",
    "tasks/pushNotificationConfig/set",
    "agent/getAuthenticatedExtendedCard",
    "tasks/list",
)


def _a2a(rng: Random) -> Iterator[Draft]:
    is_old = rng.random() < 0.4
    action, given = _choose(rng)
    headers: Headers = [_JSON, *([] if is_old else [(b"a2a-version", b"1.0")])]
    _add_credentials(rng, headers, action)
    say = partial(_a2a_message, rng, headers, is_old=is_old)
    call: Given = {"skill": action, "input": given, **_members_beside(rng, action)}
    earlier = _earlier(action, rng)
    if earlier == action:
        yield say(data=call, is_good=rng.random() < 0.7)
        yield say(data={"confirmation": "@confirmation@"}, task="@task@")
    elif earlier:
        yield say(data={"skill": earlier, "input": GIVEN[earlier](rng)}, is_good=True)
        yield say(data={**call, "receipts": ["@receipt@"]})
    else:
        yield say(data=call if rng.random() < 0.75 else None)
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        yield say(data=call if rng.random() < 0.3 else None, task="@task@")


def _a2a_message(
    rng: Random, headers: Headers, *, is_old: bool, data: Given | None, task: str = "", is_good: bool = False
) -> Draft:
    """One request, as JSON-RPC or as HTTP+JSON: a message of this data, or something about a task."""
    changes = 0 if is_good else _how_many(rng)
    task = task or rng.choice(("@task@", "no-such-task", "", "x" * 3_000))
    is_rpc = rng.random() < 0.6
    if data is not None:
        method = rng.choice((_A2A_0 if is_old else _A2A_1)[:4])
        params = _a2a_params(rng, data or {}, "@task@" if task == "@task@" else "", is_old=is_old, is_rpc=is_rpc)
    else:
        odd = _A2A_0_ODD if is_old else _A2A_1_ODD
        method = rng.choice(((_A2A_0 if is_old else _A2A_1)[4:] * 2) + odd)
        params = {"id": task, "historyLength": rng.choice((0, 1, -1, 2**31, 2**31 - 1, "x", 1.5, None))}
        if rng.random() < 0.5:
            del params["historyLength"]
        if method == "ListTasks":
            params = {"pageSize": rng.choice((1, 0, -1, 50, 2**40, "x")), "pageToken": rng.choice(("", "x", "ä"))}
    if is_rpc:
        call = {
            "jsonrpc": "2.0",
            "id": rng.choices((1, "a", None, 2**70), (20, 20, 1, 1))[0],
            "method": method,
            "params": params,
        }
        return Draft("POST", rng.choice(("/a2a", "/a2a", "/a2a/")), list(headers), call, changes=changes)
    prefix = "/a2a/v1" if is_old else "/a2a"
    if data is not None:
        verb = "stream" if "tream" in method else "send"
        return Draft("POST", f"{prefix}/message:{verb}", list(headers), params, changes=changes)
    task = quote(task, safe="@")
    target = rng.choice(
        (
            f"{prefix}/tasks/{task}",
            f"{prefix}/tasks/{task}?historyLength={rng.choice(('0', '-1', 'x', str(2**31), '1e9', ''))}",
            f"{prefix}/tasks?pageSize={rng.choice(('1', '-1', 'x', str(2**40)))}&pageToken=x",
            f"{prefix}/tasks/{task}:subscribe",
            f"{prefix}/tasks/{task}/pushNotificationConfigs",
            f"{prefix}/card",
            f"{prefix}/extendedAgentCard",
            "/a2a/skills",
            "/a2a/x/y",
        )
    )
    if rng.random() < 0.3:
        return Draft("POST", f"{prefix}/tasks/{task}:cancel", list(headers), {"id": task}, changes=changes)
    return Draft("GET", target, list(headers[1:]))


def _a2a_params(rng: Random, data: Given, task: str, *, is_old: bool, is_rpc: bool) -> Given:
    kind = rng.random()
    wrapped = data if is_rpc or not is_old else {"data": data}
    part: Given = {"kind": "data", "data": wrapped} if is_old and is_rpc else {"data": wrapped}
    if kind < 0.05:
        part = {"kind": "text", "text": rng.choice(WORDS)} if is_old and is_rpc else {"text": rng.choice(WORDS)}
    elif kind < 0.09:
        part = rng.choice(_ODD_PARTS)
    parts = [dict(part)] * rng.choices((1, 2, 0, 200), (40, 1, 1, 1))[0]
    role = ("user" if is_rpc else "ROLE_USER") if is_old else "ROLE_USER"
    named = "content" if is_old and not is_rpc else "parts"
    message: Given = {"messageId": f"m-{rng.randrange(99)}", "role": role, named: parts}
    message |= {"kind": "message"} if is_old and is_rpc else {}
    message |= {"taskId": task} if task and rng.random() < 0.8 else {}
    message |= {"metadata": {"skill": rng.choice(_ACTIONS)}} if rng.random() < 0.1 else {}
    params: Given = {("request" if is_old and not is_rpc else "message"): message}
    if rng.random() < 0.15:
        length = rng.choice((0, 1, -1, 2**31, 2**63, "x", 0.5))
        at_once = {"blocking": False} if is_old else {"returnImmediately": True}
        params["configuration"] = {"historyLength": length, **at_once} if rng.random() < 0.5 else at_once
    return params


_ODD_PARTS: Final[tuple[Given, ...]] = (
    {},
    {"kind": "file", "file": {"bytes": "!", "mimeType": "x/y"}},
    {"kind": "file", "file": {"uri": "file:///etc/passwd"}},
    {"kind": "data", "data": [1]},
    {"kind": "data", "data": "x"},
    {"kind": "data", "data": None},
    {"kind": "x"},
    {"raw": "!!", "mediaType": "x"},
    {"url": "http://127.0.0.1/"},
    {"data": {"data": {"data": {}}}},
    {"text": "a", "data": {}},
    {"text": {"a": 1}},
)

_ACTS: Final = ("click", "type", "fill", "select", "submit", "check", "scroll", "clear", "hover", "x")
_HELLO: Final[Given] = {"client_name": "fuzz", "client_version": "1", "awp_version": "0.1"}
_AWP_METHODS: Final[tuple[tuple[str, Callable[[Random], Given]], ...]] = (
    ("page.navigate", lambda rng: {"url": rng.choice((*_PAGES, "https://evil.example/", *WORDS))}),
    (
        "page.observe",
        lambda rng: {"mode": rng.choice(("full", "delta", "x")), "cursor": rng.choice((0, 1, -1, "c:1", None))},
    ),
    (
        "page.act",
        lambda rng: {"intent": {"action": rng.choice(_ACTS), "target": _target(rng), "value": rng.choice(WORDS)}},
    ),
    ("page.extract", lambda rng: {"fields": {"links": {"role": rng.choice(("link", "x", "")), "all": True}}}),
    ("page.extract", lambda rng: {"structured_data": True, "interactive_elements": True}),
    ("page.back", lambda rng: {}),
    ("page.reload", lambda rng: {"timeout_ms": rng.choice((1, 500, -1, 2**60, "x"))}),
    ("page.create", lambda rng: {}),
    ("page.close", lambda rng: {"page_id": rng.choice(("p_1", "p_2", "x"))}),
    ("page.list", lambda rng: {}),
    ("page.history", lambda rng: {}),
    ("session.list", lambda rng: {}),
    ("session.export", lambda rng: {}),
    ("session.import", lambda rng: {"state": rng.choice(("@state@", "a.b.c", ""))}),
    ("session.resume", lambda rng: {"resume_token": rng.choice(("@resume@", "x"))}),
    ("session.close", lambda rng: {}),
    (
        "session.cookies.set",
        lambda rng: {"cookies": [{"name": rng.choice(WORDS), "value": rng.choice(WORDS), "domain": "shop.example"}]},
    ),
    ("session.cookies.get", lambda rng: {"name": rng.choice((None, "a", "")), "url": rng.choice(_PAGES)}),
    ("session.cookies.clear", lambda rng: {"domain": rng.choice(("shop.example", "evil.example", ""))}),
    ("page.evaluate", lambda rng: {"script": "1"}),
    ("skills.list", lambda rng: {}),
    ("x", lambda rng: {}),
)


def _target(rng: Random) -> Any:
    return rng.choice(
        (
            {"text": "About"},
            {"role": "button", "name": "Go"},
            {"ref": "e_1"},
            {"css": "a" * 500},
            {},
            "x",
            {"text": "Name"},
        )
    )


def _awp(rng: Random) -> Iterator[SocketDraft]:
    headers: Headers = []
    _add_credentials(rng, headers, "pay")
    documents: list[Any] = []
    if rng.random() < 0.93:
        hello = dict(_HELLO)
        if rng.random() < 0.08:
            hello["auth"] = rng.choice(_AUTHS)
        if rng.random() < 0.1:
            hello["wants"] = {"events": ["page.som_mutation"], "encoding": ["msgpack"]}
        documents.append({"id": "h", "type": "request", "method": "awp.hello", "params": hello})
    has_session = rng.random() < 0.6
    if has_session:
        lifetime = rng.choice((10_000, 10_000, 1, 2**70))
        documents.append({"id": "s", "method": "session.create", "params": {"locale": "en", "ttl_ms": lifetime}})
        if rng.random() < 0.8:
            going = {"session_id": "@session@", "url": rng.choice(_PAGES[:4])}
            documents.append(_awp_request(0, "page.navigate", going))
    for number in range(1, rng.randrange(2, 5)):
        if not has_session or rng.random() < 0.4:
            documents += _awp_calls(rng, number, has_session=has_session)
        else:
            method, make = rng.choice(_AWP_METHODS)
            documents.append(_awp_request(number, method, {"session_id": "@session@", **make(rng)}))
        if rng.random() < 0.15:
            key, trace = rng.choice(("k", "k", "", 7)), rng.choice(("t" * 32, "\n", 7))
            documents[-1]["meta"] = {"idempotency_key": key, "trace_id": trace}
    yield SocketDraft(headers, documents, rng.random() < 0.35, _how_many(rng))


def _awp_calls(rng: Random, number: int, *, has_session: bool) -> Iterator[Given]:
    """A call of a skill, and before it what that needs."""
    action, given = _choose(rng)
    skill, operation = _OPERATIONS.get(action, (action, None))
    params: Given = {"skill": skill, "args": given, **({"action": operation} if operation else {})}
    params |= {"session_id": "@session@"} if has_session and rng.random() < 0.4 else {}
    params |= {name: it for name, it in _members_beside(rng, action).items() if name != "idempotency_key"}
    earlier = _earlier(action, rng)
    if earlier:
        args = params["args"] if earlier == action else GIVEN[earlier](rng)
        yield _awp_request(number + 10, "skills.invoke", _copy({**params, "skill": earlier, "args": args}))
        params |= {"confirmation": "@confirmation@"} if earlier == action else {"receipts": ["@receipt@"]}
    yield _awp_request(number, "skills.invoke", params)


def _awp_request(number: int, method: str, params: Given) -> Given:
    return {"id": f"r{number}", "type": "request", "method": method, "params": params}


_AUTHS: Final[tuple[Any, ...]] = (
    {"method": "auth.none"},
    {"method": "auth.bearer", "token": "a-valid-token-of-ben"},
    {"method": "auth.bearer", "token": "wrong"},
    {"method": "auth.bearer", "token": 7},
    {"method": "auth.hmac", "key_id": "x", "signature": "0" * 64},
    {"method": "x" * 999},
    [],
    7,
)

DOORS: Final[Mapping[str, Callable[[Random], Iterator[Draft | SocketDraft]]]] = {
    "woa": _woa,
    "plain": _plain,
    "jobs": _jobs,
    "status": _status,
    "documents": _documents,
    "pages": _pages,
    "som": _som,
    "mcp": _mcp,
    "a2a": _a2a,
    "awp": _awp,
}
_DOOR_NAMES: Final = tuple(DOORS)
_WEIGHTS: Final = (22, 14, 4, 2, 8, 7, 7, 15, 14, 13)


# --- What has once been found ---


def _call(door: str, action: str, given: bytes, token: str | None = None) -> Input:
    """One call with this input, as bytes, through a door."""
    name = action.encode()
    credentials = [_bearer(token)] if token else []
    plain: Headers = [(b"host", HOST), _JSON, *credentials]
    call = b'{"skill":"%s","input":%s}' % (name, given)
    if door == "woa":
        return Input(door, (Http("POST", b"/agents/%s/invoke" % name, tuple(plain), b'{"input":%s}' % given),))
    if door == "plain":
        target, method = b"/agents/actions/%s" % name, _METHOD_OF.get(action, "POST")
        if method == "GET":
            return Input(door, (Http(method, target + b"?" + urlencode(json.loads(given)).encode(), tuple(plain)),))
        return Input(door, (Http(method, target, tuple(plain), given),))
    if door == "mcp":
        headers = [*plain, (b"accept", b"application/json"), (b"mcp-protocol-version", b"2025-11-25")]
        body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":%s}}' % (name, given)
        return Input(door, (Http("POST", b"/mcp", tuple(headers), body),))
    if door == "a2a":
        message = b'{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":%s}]}}' % call
        body = b'{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":%s}' % message
        return Input(door, (Http("POST", b"/a2a", (*plain, (b"a2a-version", b"1.0")), body),))
    if door == "a2a 0.3":
        message = (
            b'{"message":{"messageId":"m","role":"user","kind":"message","parts":[{"kind":"data","data":%s}]}}' % call
        )
        body = b'{"jsonrpc":"2.0","id":1,"method":"message/send","params":%s}' % message
        return Input("a2a", (Http("POST", b"/a2a", tuple(plain), body),))
    hello = '{"id":"h","method":"awp.hello","params":{}}'
    frame = b'{"id":"r","method":"skills.invoke","params":{"skill":"%s","args":%s}}' % (name, given)
    return Input("awp", (Socket(((b"host", HOST), *credentials), (hello, frame.decode())),))


_CALLED: Final = ("woa", "plain", "mcp", "a2a", "a2a 0.3", "awp")


@cache
def _names(count: int, *, last_twice: bool) -> bytes:
    names = [b'"n%d":0' % number for number in range(count)]
    return b"{" + b",".join([*names, names[-1]] if last_twice else names) + b"}"


def _deep_filter(depth: int) -> bytes:
    return b'{"where":' + b'{"op":"and","parts":[' * depth + b'{"field":7}' + b"]}" * depth + b"}"


_SIBLINGS: Final = (
    ("show_order", b'{"order_id":"cancel_all"}'),
    ("show_order", b'{"order_id":"export"}'),
    ("write_note", b'{"note_id":"purge","text":"x"}'),
    ("read_file", b'{"path":"secret/keys"}'),
)


def _before_hello(frame: str | bytes) -> Input:
    return Input("awp", (Socket(((b"host", HOST),), (frame,)),))


def _packed_names(count: int) -> bytes:
    names = [f"n{number}" for number in range(count)]
    pairs = b"".join(msgpack.packb(name) + b"\x00" for name in [*names, names[-1]])
    return b"\xdf" + (count + 1).to_bytes(4, "big") + pairs


def _a2a_call(body: bytes, target: bytes = b"/a2a", version: bytes | None = None) -> Input:
    headers: Headers = [(b"host", HOST), _JSON, *([(b"a2a-version", version)] if version else [])]
    return Input("a2a", (Http("POST", target, tuple(headers), body),))


def _regressions() -> Iterator[Callable[[], Input]]:
    for door in _CALLED:
        yield partial(_call, door, "echo", _names(60_000, last_twice=True))  # quadratic search for the name
        yield partial(_call, door, "filter_books", _deep_filter(12))  # violations of recursive unions
        yield partial(_call, door, "filter_books", _deep_filter(40))
        yield partial(_call, door, "strict", _names(5_000, last_twice=False))  # a violation for each unknown member
        yield partial(_call, door, "strict", _names(80_000, last_twice=False))
        for action, given in _SIBLINGS:
            yield partial(_call, door, action, given)  # a path parameter that names another route
    yield partial(_before_hello, _names(60_000, last_twice=True).decode())
    yield partial(_before_hello, _packed_names(60_000))
    for part in (b"7", b'{"kind":"x"}', b'{"kind":"file"}', b'{"kind":"data","data":[1]}', b"{}"):
        message = b'{"message":{"messageId":"m","role":"user","parts":[%s]}}' % part
        yield partial(_a2a_call, b'{"jsonrpc":"2.0","id":1,"method":"message/send","params":%s}' % message)
        yield partial(
            _a2a_call,
            message.replace(b"parts", b"content").replace(b'"message"', b'"request"', 1),
            b"/a2a/v1/message:send",
        )
    for length in (b"2147483648", b"-2147483649", b"9223372036854775807"):
        get = b'{"jsonrpc":"2.0","id":1,"method":"%s","params":{"id":"t","historyLength":%s}}'
        yield partial(_a2a_call, get % (b"tasks/get", length))
        yield partial(_a2a_call, get % (b"GetTask", length), b"/a2a", b"1.0")
    send = b'{"jsonrpc":"2.0","id":1,"method":"message/send","params":%s}'
    send %= b'{"message":{"messageId":"m","role":"user","parts":[%s]}}'
    yield partial(_a2a_call, send % b",".join([b"{}"] * 200))  # three errors for each part
    yield partial(_a2a_call, send % b'{"kind":"text","text":"x"}', b"/a2a", b"9.9.9")
    for body in (b'{"request":{"messageId":["m"],"content":[]}}', b"[]", b'{"request":{"content":[{"data":[]}]}}'):
        yield partial(_a2a_call, body, b"/a2a/v1/message:stream")  # refused when the stream had begun
    for task in (b"/a2a/v1/tasks/x:subscribe", b"/a2a/tasks/x:subscribe", b"/a2a/v1/tasks/x?historyLength=1e9"):
        yield partial(Input, "a2a", (Http("GET", task, ((b"host", HOST),)),))


REGRESSIONS: Final[Sequence[Callable[[], Input]]] = tuple(_regressions())
