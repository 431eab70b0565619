"""HTTP for the doors: a neutral `Reply`, headers, request bodies, problem details, strict JSON, and CORS."""

import asyncio
import json
import math
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Container, Generator, Iterable, Mapping, MutableMapping
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from itertools import chain
from typing import Any, Final, Generic, TypeAlias, TypeVar

import orjson

from awp_publish.problems import BodyTimeout, BodyTooLarge, NotJson, Problem, below, slug_of

# --- `Reply` ---

T = TypeVar("T")

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
AsgiApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers: TypeAlias = Iterable[tuple[bytes, bytes]]
Fields: TypeAlias = Mapping[bytes, bytes]
RawHeaders: TypeAlias = tuple[tuple[bytes, bytes], ...]
Pair: TypeAlias = tuple[bytes, bytes]

ANY_ORIGIN: Final = (b"access-control-allow-origin", b"*")
NO_SNIFFING: Final = (b"x-content-type-options", b"nosniff")
PREFLIGHT_MAX_AGE: Final = b"86400"

HOLDS_THREAD: Final = "awp_publish.holds_thread"
"""The scope member that a gateway sets if a server thread is blocked until the answer is complete."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Status, headers (lower-case names) and body of an answer."""

    status: int
    headers: RawHeaders
    body: bytes = b""


@lru_cache(maxsize=2048)
def content_length(size: int) -> Pair:
    """Return the Content-Length header of a body of `size` bytes."""
    return (b"content-length", b"%d" % size)


async def send_reply(reply: Reply, send: Send) -> None:
    """Answer an ASGI request. The headers are copied because outer middleware may change them in place."""
    await send({"type": "http.response.start", "status": reply.status, "headers": list(reply.headers)})
    await send({"type": "http.response.body", "body": reply.body})


async def ask_first(
    app: AsgiApp,
    scope: Scope,
    receive: Receive,
    send: Send,
    missing: Container[int],
    instead: Callable[[Receive], Awaitable[None]],
) -> None:
    """Let the application answer. If its status is one of `missing`, discard that answer and call `instead`.

    `instead` gets a `receive` that replays the part of the body that the application has read, then yields the rest.
    """
    is_missing = False
    read: list[Message] = []

    async def receive_first() -> Message:
        message = await receive()
        if message["type"] == "http.request":
            read.append(message)
        return message

    async def receive_again() -> Message:
        return read.pop(0) if read else await receive()

    async def watch(message: Message) -> None:
        nonlocal is_missing
        if message["type"] == "http.response.start":
            is_missing = message["status"] in missing
        if not is_missing:
            await send(message)

    await app(scope, receive_first, watch)
    if is_missing:
        await instead(receive_again)


def without_content(send: Send) -> Send:
    """Return a `send` that drops the content, for answers to HEAD (RFC 9110 section 9.3.2)."""

    async def send_head(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return send_head


MAX_NEGOTIATION: Final = 8192
"""Bytes of a header beyond which it expresses no preference: longer lists are of nobody who wants an answer."""


def read_fields(headers: Headers) -> Fields:
    """Return headers by name. Repeated ones are joined (RFC 9110 section 5.3; cookies: RFC 9113 section 8.2.3).

    This is the only reader of repeated headers. It takes linear time.

    So are headers that may occur only once (Authorization, Content-Type, Host), which makes them invalid: a proxy or
    the application might choose another one of the two than we do.
    """
    pairs = headers if type(headers) is list else list(headers)
    fields = dict(pairs)
    if len(fields) == len(pairs):
        return fields
    listed: dict[bytes, list[bytes]] = {}
    for name, value in pairs:
        listed.setdefault(name, []).append(value)
    return {name: (b"; " if name == b"cookie" else b", ").join(values) for name, values in listed.items()}


def header_members(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return headers of an answer as members, for doors that have no header lines. Names become lower-case.

    Several WWW-Authenticate are one list of challenges (RFC 9110 section 11.6.1). Of any other header the last counts.
    """
    members: dict[str, str] = {}
    for name, value in headers:
        key = name.lower()
        members[key] = f"{members[key]}, {value}" if key == "www-authenticate" and key in members else value
    return members


def accepts(accept: bytes, media_type: str) -> bool:
    """Return True if an `Accept` header admits `media_type` (RFC 9110 section 12.5.1). An empty one admits all."""
    return len(accept) > MAX_NEGOTIATION or _accepts(accept, media_type)


@lru_cache(maxsize=256)
def _accepts(accept: bytes, media_type: str) -> bool:
    text = accept.decode("latin-1")
    return not text.strip() or quality(text, (media_type, media_type.split("/")[0] + "/*", "*/*")) > 0


@lru_cache(maxsize=256)
def choose_coding(accept_encoding: bytes, codings: tuple[str, ...]) -> int:
    """Return the index of the coding that a client prefers (RFC 9110 section 12.5.3).

    `codings` are in our own order of preference, with identity last.
    """
    text = accept_encoding.decode("latin-1")
    weights = [quality(text, (coding, "*"), absent=float(coding == "identity")) for coding in codings]
    best = max(weights)
    return weights.index(best) if best > 0 else len(codings) - 1


def quality(field: str, names: Iterable[str], absent: float = 0.0) -> float:
    """Return the weight of the first of `names` that is in a weighted list; give the most specific name first."""
    weights: dict[str, float] = {}
    for element in field.split(","):
        name = element.split(";", 1)[0].strip().lower()
        weight = _WEIGHT.search(element)
        if name:
            weights[name] = float(weight[1]) if weight else 1.0
    return next((weights[name] for name in names if name in weights), absent)


_WEIGHT: Final = re.compile(r";\s*q\s*=\s*([01](?:\.\d{0,3})?)", re.IGNORECASE)


def preflight(methods: str, origin: bytes = b"*", extra: RawHeaders = (), headers: bytes = b"*") -> Reply:
    """Return the answer to a CORS preflight or any other OPTIONS request."""
    return Reply(
        204,
        (
            (b"allow", methods.encode()),
            (b"access-control-allow-origin", origin),
            (b"access-control-allow-methods", methods.encode()),
            (b"access-control-allow-headers", headers),
            (b"access-control-max-age", PREFLIGHT_MAX_AGE),
            *extra,
        ),
    )


def route_path(scope: Scope) -> str:
    """Return the path below the application's mount point, without the `root_path` that some servers include."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    if not root or not path.startswith(root):
        return path
    rest = path[len(root) :]
    return rest if rest == "" or rest.startswith("/") else path


def mount_of(scope: Scope) -> str:
    """Return the application's mount point, "" if the request's path does not include it."""
    path: str = scope["path"]
    return path[: len(path) - len(route_path(scope))]


# --- Problems as application/problem+json (RFC 9457) ---

PROBLEM_TYPE: Final = b"application/problem+json"
_RESERVED: Final = frozenset(
    {"type", "title", "status", "detail", "instance", "code", "recovery", "request_id", "errors"}
)


def describe_problem(
    problem: Problem,
    types: str = "",
    recoveries: Mapping[str, str] | None = None,
    instance: str = "",
    request_id: str = "",
    prefix: str = "",
) -> dict[str, object]:
    """Return the members of a problem: those of RFC 9457 section 3.1 in that order, then ours.

    `types` is the base URL of the problem types' documentation, `recoveries` are the site's own recovery texts by code,
    `prefix` is the path at which the site is mounted.
    """
    described: dict[str, object] = {
        "type": f"{types}/{slug_of(problem.code)}" if types else "about:blank",
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
    }
    if instance:
        described["instance"] = f"{instance}#{request_id}" if request_id else instance
    described["code"] = problem.code
    described["recovery"] = problem.recovery or (recoveries or {}).get(problem.code) or below(prefix, problem.advice)
    if request_id:
        described["request_id"] = request_id
    if problem.errors:
        described["errors"] = [asdict(violation) for violation in problem.errors]
    described |= {name: value for name, value in problem.members.items() if name not in _RESERVED or name in _CARRIED}
    return described


_CARRIED: Final = frozenset({"type", "title", "errors", "recovery"})
"""Members of a route's own problem+json answer that replace ours."""


def render_problem(
    problem: Problem,
    types: str = "",
    recoveries: Mapping[str, str] | None = None,
    instance: str = "",
    request_id: str = "",
    extra: RawHeaders = (),
    prefix: str = "",
) -> Reply:
    """Return the problem+json reply for a problem."""
    described = describe_problem(problem, types, recoveries, instance, request_id, prefix)
    try:
        body = orjson.dumps(described)
    except TypeError:  # text from a request may contain lone surrogates, which JSON cannot represent: replace them
        body = orjson.dumps(_printable(described))
    return Reply(
        problem.status,
        (
            (b"content-type", PROBLEM_TYPE),
            content_length(len(body)),
            (b"cache-control", b"no-store"),
            NO_SNIFFING,
            *((name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in problem.headers),
            *extra,
        ),
        body,
    )


def _printable(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {str(key): _printable(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_printable(member) for member in value]
    return value if isinstance(value, (int, float, bool)) or value is None else str(value)


# --- Strict JSON from untrusted sources ---
# JSON parsers differ on duplicate names, huge numbers and lone surrogates (RFC 8259 sections 4, 6, 8). A text that two
# parsers could understand differently is refused, as in I-JSON (RFC 7493).

MAX_DEPTH: Final = 200
"""The maximum nesting depth. RFC 8259 section 9 leaves it to the parser; encoders fail at little more."""

_INT64_LIMIT: Final = 2**63
_WHITE_SPACE: Final = b" \t\r\n"


def parse_json(body: bytes) -> object:
    """Return the value of a JSON text. Raises NotJson."""
    # A text of depth N has at least 2 * N brackets, so a short text cannot be too deep.
    if len(body) > 2 * MAX_DEPTH and body.count(b"{") + body.count(b"[") > MAX_DEPTH:
        return _parse_strictly(body)
    try:
        value: object = orjson.loads(body)
        # A text that a round trip reproduces is unambiguous: the second of two equal names would be missing. Comparing
        # without white space, even that inside strings, still shows any missing member.
        written = orjson.dumps(value, option=orjson.OPT_STRICT_INTEGER)
        if written == body or written.translate(None, _WHITE_SPACE) == body.translate(None, _WHITE_SPACE):
            return value
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        pass
    return _parse_strictly(body)


def _parse_strictly(body: bytes) -> object:
    """Parse with Python's own decoder, which checks every name and number. Raises NotJson with the cause."""
    try:
        value: object = _DECODER.decode(body.decode("utf-8"))
        if b"\\u" in body:
            orjson.dumps(value)  # raises for lone surrogates, which can only come from an escape
    except NotJson:
        raise
    except UnicodeDecodeError as error:
        raise NotJson(f"The body is not UTF-8: byte {error.start} is {error.object[error.start]:#04x}.") from error
    except json.JSONDecodeError as error:
        raise NotJson(f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from error
    except RecursionError as error:
        raise NotJson("The body is nested too deeply.") from error
    except TypeError as error:
        raise NotJson("The body holds a lone surrogate, or is nested too deeply.") from error
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH and _is_deeper(value, MAX_DEPTH):
        raise NotJson(f"The body is nested too deeply: {MAX_DEPTH} levels are taken.")
    return value


def is_rpc_id(value: object) -> bool:
    """Return True for the id of a JSON-RPC request: a string or an integer (JSON-RPC 2.0, section 4)."""
    return type(value) in (str, int)


def _is_deeper(value: object, levels: int) -> bool:
    """Return True if a value is nested more than `levels` deep. Iterative, because a body may be very deep."""
    inner = [value] if isinstance(value, (dict, list)) else []
    while inner and levels:
        members = chain.from_iterable(one.values() if isinstance(one, dict) else one for one in inner)
        inner, levels = [one for one in members if isinstance(one, (dict, list))], levels - 1
    return bool(inner)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        times = Counter(name for name, _ in pairs)
        twice = next(name for name in times if times[name] > 1)
        shown = twice[:100].encode("utf-8", "replace").decode()
        raise NotJson(f'The body has the name "{shown}" twice in one object.')
    return found


def _whole_number(text: str) -> int:
    if len(text) > 20 or not -_INT64_LIMIT <= (number := int(text)) < _INT64_LIMIT:
        raise NotJson(f"The body holds the number {text[:30]}, which is beyond 64 bits.")
    return number


def _number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise NotJson(f"The body holds the number {text[:30]}, which is beyond a double.")
    return number


def _no_constant(name: str) -> object:
    raise NotJson(f"The body holds {name}, which is not JSON.")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=_whole_number, parse_float=_number, parse_constant=_no_constant
)


_JSON_TYPE: Final = re.compile(rb'application/json\s*(;\s*charset\s*=\s*"?utf-?8"?\s*)?', re.IGNORECASE)


def is_json(content_type: bytes) -> bool:
    """Return True for application/json, with no charset but UTF-8 (RFC 8259 section 8.1)."""
    return content_type == b"application/json" or _JSON_TYPE.fullmatch(content_type.strip()) is not None


def json_kind(value: object) -> str:
    """Return the name of a JSON value's type, with an article."""
    return _KINDS.get(type(value), "a number")


_KINDS: Final = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}


# --- Request bodies: limited in size and time ---

BODY_TIMEOUT: Final = 30.0
"""Seconds within which a body has to arrive, plus one second for every MIN_BYTES_PER_SECOND bytes received."""

MIN_BYTES_PER_SECOND: Final = 16_384
"""The minimum transfer rate of request bodies, so that slow clients cannot hold connections open."""


_MAX_LENGTH_DIGITS: Final = 100
"""Digits of a Content-Length that are converted to a number; Python refuses more than 4300."""


MAX_DROPPED: Final = 8_388_608
DROP_TIMEOUT: Final = 10.0
"""Bytes and seconds up to which the rest of a too large body is read and discarded: a client that is still sending when
the connection closes would see a broken pipe instead of the answer."""


class ClientDisconnect(Exception):
    """The client disconnected before its request was complete."""


async def read_body(scope: Scope, fields: Fields, receive: Receive, most: int) -> bytes:
    """Return the body, which may have up to `most` bytes.

    Raises BodyTooLarge (after reading the rest of the body, up to MAX_DROPPED), BodyTimeout, or ClientDisconnect.
    """
    declared = fields.get(b"content-length", b"")
    if len(declared) > 3 and declared.isdigit() and (len(declared) > _MAX_LENGTH_DIGITS or int(declared) > most):
        length = MAX_DROPPED + 1 if len(declared) > _MAX_LENGTH_DIGITS else int(declared)
        # A client that expects 100 Continue has not sent the body yet.
        if length <= MAX_DROPPED and fields.get(b"expect", b"").lower() != b"100-continue":
            await _drop_rest(receive, MAX_DROPPED)
        raise too_large(most)
    begun, size = 0.0, 0
    parts: list[bytes] | None = None
    arrived: list[Message] = []
    while True:
        steps = _receive_into(arrived, receive).__await__()
        for pending in steps:  # no timer if the message is available at once
            begun = begun or asyncio.get_running_loop().time()
            await _wait_in_time(scope, steps, pending, begun, size)
            break
        message = arrived.pop()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body: bytes = message.get("body", b"")
        size += len(body)
        is_whole = not message.get("more_body")
        if size > most:
            if not is_whole:
                await _drop_rest(receive, MAX_DROPPED - size)
            raise too_large(most)
        if is_whole:
            return body if parts is None else b"".join((*parts, body))
        parts = parts or []
        parts.append(body)


async def _receive_into(arrived: list[Message], receive: Receive) -> None:
    """Append a message to a list. A coroutine without a result can be stepped in a `for`, without StopIteration."""
    arrived.append(await receive())


async def _drop_rest(receive: Receive, left: int) -> None:
    """Read and discard the rest of a body, up to `left` bytes. Raises ClientDisconnect."""
    try:
        async with asyncio.timeout(DROP_TIMEOUT):
            while left > 0:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                if not message.get("more_body", False):
                    return
                left -= len(message.get("body", b""))
    except TimeoutError:
        return


def receive_in_time(scope: Scope, receive: Receive) -> Receive:
    """Return a `receive` that raises BodyTimeout if the body arrives too slowly."""
    begun, size, is_whole = asyncio.get_running_loop().time(), 0, False

    async def receive_next() -> Message:
        nonlocal size, is_whole
        if is_whole:
            return await receive()
        steps = receive().__await__()
        try:
            pending = next(steps)
        except StopIteration as there:
            message: Message = there.value
        else:
            message = await _wait_in_time(scope, steps, pending, begun, size)
        size += len(message.get("body", b""))
        is_whole = not message.get("more_body", False)
        return message

    return receive_next


async def _wait_in_time(scope: Scope, steps: Generator[Any, Any, T], pending: Any, begun: float, size: int) -> T:
    """Wait for a message that was not available at once. `size` bytes have arrived since the time `begun`."""
    try:
        async with asyncio.timeout_at(begun + BODY_TIMEOUT + size / MIN_BYTES_PER_SECOND):
            return await _Resumed(steps, pending)
    except TimeoutError as error:
        # RFC 9110 section 15.5.9: the connection ends with this answer. HTTP/2 has no such header.
        close = [("Connection", "close")] if str(scope.get("http_version", "1.1")).startswith("1") else []
        detail = f"{size} bytes of the body have arrived, and then too little for too long."
        raise BodyTimeout(detail, headers=close) from error


class _Resumed(Generic[T]):
    """Resumes an awaitable whose first step has yielded `pending`."""

    __slots__ = ("_pending", "_steps")

    def __init__(self, steps: Generator[Any, Any, T], pending: Any) -> None:
        self._steps = steps
        self._pending = pending

    def __await__(self) -> Generator[Any, Any, T]:
        pending = self._pending
        while True:
            resume: Callable[[], Any]
            try:
                resume = partial(self._steps.send, (yield pending))
            except GeneratorExit:
                self._steps.close()
                raise
            except BaseException as error:
                resume = partial(self._steps.throw, error)
            try:
                pending = resume()
            except StopIteration as there:
                result: T = there.value
                return result


async def wait_for_disconnect(receive: Receive) -> None:
    """Return when the client has disconnected. Call this after the body was read."""
    while (await receive())["type"] != "http.disconnect":
        pass


def too_large(most: int) -> BodyTooLarge:
    """Return the problem for a body of more than `most` bytes."""
    return BodyTooLarge(f"The body is larger than {most} bytes.", members={"max_body_bytes": most})


# --- CORS for the doors: a list of origins, without credentials ---

_EXPOSED: Final = (
    b"access-control-expose-headers",
    b"X-Request-Id, Location, Retry-After, Link, WWW-Authenticate, RateLimit, RateLimit-Policy, "
    b"Idempotent-Replayed, AWP-Receipt, AWP-Session, AWP-Content-Type, ETag, Last-Modified, X-Total-Count, "
    b"Mcp-Session-Id",
)


_ALLOWED: Final = b"*, Authorization"
"""Any header, and Authorization, which "*" does not include (Fetch, section 3.2.3)."""


class Cors:
    """The CORS headers for a list of origins; "*" admits all."""

    def __init__(self, origins: Iterable[str]) -> None:
        self._origins = frozenset(origins)
        self.is_closed = not self._origins

    def headers(self, fields: Fields) -> RawHeaders:
        """Return the headers to add to the answer."""
        if not self._origins:
            return ()
        if "*" in self._origins:
            return ((b"access-control-allow-origin", b"*"), _EXPOSED)
        vary = ((b"vary", b"Origin"),)
        origin = fields.get(b"origin")
        if origin is None or origin.decode("latin-1") not in self._origins:
            return vary
        return ((b"access-control-allow-origin", origin), _EXPOSED, *vary)

    def preflight(self, fields: Fields, methods: str) -> Reply:
        """Return the answer to an OPTIONS request."""
        allowed = dict(self.headers(fields)).get(b"access-control-allow-origin")
        if allowed is None:
            return Reply(204, ((b"allow", methods.encode()),))
        return preflight(methods, allowed, ((b"vary", b"Origin"),), _ALLOWED)


class PublicCors(Cors):
    """CORS for public content: any page may read it."""

    def __init__(self) -> None:
        super().__init__("*")

    def headers(self, fields: Fields) -> RawHeaders:
        """Return the headers to add to the answer."""
        return (ANY_ORIGIN,)

    def preflight(self, fields: Fields, methods: str) -> Reply:
        """Return the answer to an OPTIONS request."""
        return preflight(methods)


def with_header(headers: list[Pair], header: Pair | None) -> list[Pair]:
    """Return headers in which `header` replaces those of its name; unchanged if it is None."""
    if header is None:
        return headers
    return [*(pair for pair in headers if pair[0] != header[0]), header]
