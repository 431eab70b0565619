"""One HTTP request to the MCP door, and what the SDK's handlers need to know of it."""

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final, TypeAlias, cast

import mcp_types as types
import orjson
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request

from awp_publish.calls.call import SESSION_HEADER, Principal, Result
from awp_publish.http.client_address import TrustedProxies, client_address
from awp_publish.http.doors import Identify
from awp_publish.http.exchange import HOLDS_THREAD, NO_SNIFFING, Message, Pair, RawHeaders, read_fields
from awp_publish.http.request import STATIC_HEADERS, DoorRequest
from awp_publish.http.streams import OpenStreams
from awp_publish.plugins.mcp.dialect import META, SESSION
from awp_publish.problems import Problem

PROTOCOL: Final = "mcp"
CALL: Final = "tools/call"

LISTS: Final = frozenset(
    {"tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/directory/read"}
    | {"skills/list", "events/list"}
)
"""Methods that take a cursor, where there are many pages."""

RequestContext: TypeAlias = ServerRequestContext[Any, Any]
WireResult: TypeAlias = dict[str, Any]

LATEST: Final = MODERN_PROTOCOL_VERSIONS[-1]
LATEST_FIELD: Final = LATEST.encode()

EXCHANGE: Final = "awp_publish.mcp_exchange"
"""The key of the SDK's scope for the request's exchange."""

_CHALLENGE: Final = re.compile(rb"([\w!#$%&'*+.^`|~-]+)(?:\s+([\w-]+\s*=\s*[\w\"].*))?$", re.ASCII)
"""One challenge with or without parameters (RFC 9110 section 11.3), to which another parameter may be added."""

_NOT_IN_META: Final = (b"set-cookie", b"x-ratelimit-")
"""Prefixes of headers that a model must not see, or sees under another name."""


class McpExchange(DoorRequest):
    """One request and its response.

    `refusal` is the problem whose status the HTTP response takes, `result` the result of a call. `is_plain` means that
    the SDK is not involved; `is_streamed` that the response may be a stream, into which the SDK writes what the call's
    own `task` returns; `is_answered` that the response is being sent, so that the SDK's is dropped. `ended` is set, in
    a call, when its handler has returned.

    `session_id` is that of a session which begins with the response, and `questions` counts what the call's client was
    asked in its stream.

    In challenges, `addresses` replace the address of the site's metadata (RFC 9728) with the endpoint's.
    """

    addresses: tuple[bytes, bytes] | None = None
    refusal: Problem | None = None
    result: Result | None = None
    size = 0
    ended: asyncio.Event | None = None
    task: asyncio.Task[Any] | None = None
    is_answered = False
    session_id: bytes | None = None
    questions = 0
    is_plain = False
    is_streamed = False
    _added: RawHeaders = ()
    _start: Message | None = None
    _has_begun = False

    async def send(self, message: Message) -> None:
        """Pass on the SDK's response with our headers, unless the request has been answered.

        Its start is held back until the first part of its body: older streams begin before a refusal of the call is
        known.
        """
        if self.is_answered:
            return
        if message["type"] == "http.response.start":
            self._start = None if self._has_begun else message
            return
        if self._start is not None:
            start, self._start = self._start, None
            await self._begin(start["status"], start.get("headers", ()))
        await self._send(message)

    async def answer(self, body: bytes, status: int = 200) -> None:
        """Send a whole message instead of the SDK's, as the next event if a stream has begun."""
        self.is_answered = True
        if self._has_begun:
            body = b"event: message\r\ndata: " + body + b"\r\n\r\n"
        else:
            await self._begin(status, (STATIC_HEADERS[0], (b"content-length", b"%d" % len(body))))
        await self._send({"type": "http.response.body", "body": body})

    async def send_event(self, message: bytes) -> None:
        """Send a message of ours before the answer, as an event of a stream, which begins with it if need be."""
        if not self._has_begun:
            self._start = None
            await self._begin(200, [(b"content-type", b"text/event-stream")])
        body = b"event: message\r\ndata: " + message + b"\r\n\r\n"
        await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def _begin(self, status: int, headers: Iterable[Pair]) -> None:
        own = (NO_SNIFFING, *self._cors, (b"x-request-id", self.request_id.encode()))
        headers = [*headers, *own, *self._added]
        if self.session_id is not None:
            headers.append((b"mcp-session-id", self.session_id))
        if b"cache-control" not in dict(headers):
            headers.append(STATIC_HEADERS[1])
        status = status if self.refusal is None else self.refusal.status
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        self._has_begun = True

    def render(self, problem: Problem) -> bytes:
        """Render a problem as JSON text (RFC 9457)."""
        return self.renderer.reply(problem, self.renderer.instance_of(self.scope), self.request_id).body

    def describe(self, problem: Problem) -> dict[str, Any]:
        """Return the members of a problem as JSON values."""
        described: dict[str, Any] = orjson.loads(self.render(problem))
        return described

    def refuse(self, problem: Problem, code: int = types.INVALID_REQUEST) -> MCPError:
        """Return the error for a problem, whose status and headers the HTTP response takes."""
        self.refusal = problem
        self.meta_for(problem)
        return MCPError(code, problem.detail, self.describe(problem))

    def meta_for(self, result: Result, added: RawHeaders = ()) -> dict[str, object]:
        """Return the `_meta` of a result, and put its headers, after those that gates `added`, on the HTTP response."""
        meta: dict[str, object] = {f"{META}requestId": self.request_id}
        own: list[Pair] = []
        if isinstance(result, Problem):
            for name, text in result.headers:
                key, value = name.lower().encode("latin-1"), text.encode("latin-1", "replace")
                if self.addresses is not None and key == b"www-authenticate":
                    value = value.replace(*self.addresses)
                    # Whoever sends the challenge: clients learn from it which server issues tokens (RFC 9728, section
                    # 5.1).
                    challenge = _CHALLENGE.match(value.strip())
                    if challenge is not None and b"resource_metadata=" not in value:
                        changed = challenge[1], b"resource_metadata=" + self.addresses[1]
                        value = b" ".join(changed) + (b", " + challenge[2] if challenge[2] else b"")
                own.append((key, value))
        elif not (result.headers or added):
            return meta
        else:
            own += result.headers
        gates = {key for key, _ in added}
        self._added = (*added, *(pair for pair in own if pair[0] not in gates))
        texts: dict[str, str] = {}
        for key, value in self._added:
            if not key.startswith(_NOT_IN_META):
                name, text = key.decode("latin-1"), value.decode("latin-1")
                texts[name] = f"{texts[name]}, {text}" if name in texts else text
        return meta | {f"{META}headers": texts} if texts else meta


def exchange_of(context: RequestContext) -> McpExchange:
    """Return the HTTP request of a message."""
    exchange: McpExchange = cast(Request, context.request).scope[EXCHANGE]
    return exchange


def is_modern(context: RequestContext) -> bool:
    """Return True in the stateless revisions, since 2026-07-28."""
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def holds_thread(context: RequestContext) -> bool:
    """Return True if a response takes one of the server's few threads as long as it is open."""
    return HOLDS_THREAD in exchange_of(context).scope


async def find_caller(context: RequestContext, identify: Identify, session: str | None = None) -> Principal | None:
    """Return the caller, from the request or from a session in an argument or in `_meta`. Raises Problem."""
    exchange, meta = exchange_of(context), cast(Mapping[str, object], context.meta or {})
    scope, fields, token = exchange.scope, exchange.fields, session or meta.get(META + SESSION)
    if isinstance(token, str):
        scope = {**scope, "headers": [*scope["headers"], (SESSION_HEADER, token.encode("utf-8", "replace"))]}
        fields = read_fields(scope["headers"])
    return await identify(scope, fields)


async def admit_caller(context: RequestContext, identify: Identify) -> Principal | None:
    """Return the caller of a method of an extension. Raises MCPError for invalid credentials."""
    try:
        return await find_caller(context, identify)
    except Problem as problem:
        raise exchange_of(context).refuse(problem) from problem


@contextmanager
def hold_stream(
    context: RequestContext, streams: OpenStreams, caller: Principal | None, proxies: TrustedProxies, code: int
) -> Iterator[None]:
    """Take one of the places for streams while the context is open. Raises MCPError with `code` if there is none."""
    exchange = exchange_of(context)
    with ExitStack() as place:
        try:
            place.enter_context(streams.hold(caller, client_address(exchange.scope, exchange.fields, proxies)))
        except Problem as problem:
            raise exchange.refuse(problem, code) from problem
        yield


async def notify(context: RequestContext, notification: Any) -> None:
    """Send a notification in the stream that answers a message."""
    await context.session.send_notification(notification, related_request_id=context.request_id)


class Notice:
    """A notification for which the SDK has no type. Members that are null are kept."""

    def __init__(self, method: str, params: Mapping[str, object]) -> None:
        self._message: dict[str, object] = {"method": method, "params": dict(params)}

    def model_dump(self, **_: object) -> dict[str, object]:
        """Return the message, as the types of the SDK do."""
        return self._message
