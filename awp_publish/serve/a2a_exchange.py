"""One HTTP request to the A2A door: what the SDK is given of it, and how the SDK's answer goes out.

What is wrong with the request itself is told in the dialect of its binding: JSON-RPC 2.0 errors at the address of the
door, `google.rpc.Status` (AIP-193) of HTTP+JSON below it.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import orjson

from awp_publish import problems
from awp_publish.problems import Problem
from awp_publish.serve.exchange import Telling, read_request_id
from awp_publish.serve.problem_json import render_problem
from awp_publish.serve.reply import (
    NO_SNIFFING,
    Fields,
    Message,
    RawHeaders,
    Receive,
    Reply,
    Scope,
    Send,
    accepts,
)
from awp_publish.serve.request_body import wait_for_hang_up

JSON: Final = b"application/json"
A2A_JSON: Final = b"application/a2a+json"
EXCHANGE: Final = "awp_publish.a2a"
"""Where an exchange stands in the scope that the SDK is given."""

_NO_STORE: Final = (b"cache-control", b"no-store")
_ERROR_INFO: Final = "type.googleapis.com/google.rpc.ErrorInfo"
_ASKING: Final = (401, 403)
_INVALID_REQUEST: Final = -32600
_CODES: Final[Mapping[type[Problem], int]] = {
    problems.NotJson: -32700,
    problems.UnsupportedMediaType: -32005,
}
_STATUSES: Final = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}

Dialect: TypeAlias = Callable[[Problem, dict[str, object]], dict[str, object]]
"""The body of an answer to a request that could not be taken: of a problem, and of its members."""


def say_in_json_rpc(problem: Problem, described: dict[str, object]) -> dict[str, object]:
    """JSON-RPC 2.0 section 5.1. Whose request it was is not known."""
    code = _CODES.get(type(problem), _INVALID_REQUEST)
    error = {"code": code, "message": described["detail"], "data": [_error_info(problem, described)]}
    return {"jsonrpc": "2.0", "id": None, "error": error}


def say_in_http_json(problem: Problem, described: dict[str, object]) -> dict[str, object]:
    """AIP-193, as the HTTP+JSON binding asks."""
    fallback = "INTERNAL" if problem.status >= 500 else "INVALID_ARGUMENT"
    error = {"code": problem.status, "status": _STATUSES.get(problem.status, fallback), "message": described["detail"]}
    return {"error": {**error, "details": [_error_info(problem, described)]}}


def _error_info(problem: Problem, described: dict[str, object]) -> dict[str, object]:
    return {"@type": _ERROR_INFO, "reason": problem.code, "domain": "a2a-protocol.org", "metadata": described}


class A2aExchange:
    """One request.

    `document` is its body, read strictly; `refused` is set where HTTP itself has to tell a refusal. `cookies` are those
    that the action has set: no agent is told of them, but a caller's HTTP client keeps them.
    """

    __slots__ = (
        "_body",
        "_cors",
        "_leaving",
        "_receive",
        "cookies",
        "document",
        "fields",
        "has_left",
        "refused",
        "request_id",
        "scope",
    )

    def __init__(self, scope: Scope, receive: Receive, fields: Fields, cors: RawHeaders) -> None:
        self.scope = scope
        self.fields = fields
        self.request_id = read_request_id(fields)
        self.document: object = None
        self.refused: Problem | None = None
        self.has_left = False
        self.cookies: RawHeaders = ()
        self._receive = receive
        self._cors = cors
        self._body: bytes | None = None
        self._leaving = asyncio.Lock()

    def take(self, body: bytes, document: object) -> None:
        """Keep the body, to hand it on."""
        self._body, self.document = body, document

    def describe(self, problem: Problem, telling: Telling) -> dict[str, object]:
        """The members of a problem of this request."""
        rendered = render_problem(problem, telling.types, telling.recoveries, "", self.request_id)
        described: dict[str, object] = orjson.loads(rendered.body)
        return described

    def render(self, problem: Problem, telling: Telling, dialect: Dialect) -> Reply:
        """The answer to a request that could not be taken."""
        body = orjson.dumps(dialect(problem, self.describe(problem, telling)))
        length = (b"content-length", b"%d" % len(body))
        return Reply(problem.status, ((b"content-type", JSON), length, *self._own_headers(problem)), body)

    async def receive(self) -> Message:
        """What the SDK receives: the body, and later that the caller has left."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self.hang_up()
        return {"type": "http.disconnect"}

    async def hang_up(self) -> None:
        """Returns when the caller has left. Several may wait: only one of them reads."""
        async with self._leaving:
            if not self.has_left:
                await wait_for_hang_up(self._receive)
                self.has_left = True

    def sending(self, send: Send) -> Send:
        """`send` for the SDK: our headers are added, and the status is that of a refusal if there is one."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, **self._start(message)}
            await send(message)

        return send_with_headers

    def _start(self, message: Message) -> dict[str, object]:
        own = self._own_headers(self.refused)
        names = {name for name, _ in own}
        headers = [self._accepted(pair) for pair in message.get("headers", ()) if pair[0] not in names]
        return {"status": self._status(message["status"]), "headers": [*headers, *own]}

    def _status(self, status: int) -> int:
        """JSON-RPC tells its errors with 200, but HTTP has to tell when it asks for credentials."""
        if self.refused is None or (status == 200 and self.refused.status not in _ASKING):
            return status
        return self.refused.status

    def _accepted(self, pair: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
        """1.0.0 calls the media type application/json, 1.0.1 application/a2a+json; a caller may know one of them."""
        accept = self.fields.get(b"accept", b"")
        if pair != (b"content-type", A2A_JSON) or accepts(accept, A2A_JSON.decode()):
            return pair
        return (b"content-type", JSON)

    def _own_headers(self, problem: Problem | None) -> RawHeaders:
        told = problem.headers if problem is not None else ()
        pairs = tuple((name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in told)
        request_id = (b"x-request-id", self.request_id.encode())
        return (*pairs, _NO_STORE, NO_SNIFFING, request_id, *self.cookies, *self._cors)
