"""One HTTP request to the A2A door: what the SDK is given of it, and how the SDK's answer goes out.

What is wrong with the request itself is told in the dialect of its binding: JSON-RPC 2.0 errors at the address of the
door, `google.rpc.Status` (AIP-193) of HTTP+JSON below it. So is what the SDK cannot read: it calls that an error of its
own, or a bad envelope, or begins a stream in which nothing comes.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import orjson
from a2a.utils.error_handlers import build_rest_error_payload
from a2a.utils.errors import A2AError

from awp_publish import problems
from awp_publish.problems import InvalidEnvelope, Problem
from awp_publish.serve.exchange import Telling, read_request_id
from awp_publish.serve.problem_json import render_problem
from awp_publish.serve.reply import (
    NO_SNIFFING,
    AsgiApp,
    Fields,
    Message,
    RawHeaders,
    Receive,
    Reply,
    Scope,
    Send,
    accepts,
    send_reply,
)
from awp_publish.serve.request_body import wait_for_hang_up

JSON: Final = b"application/json"
A2A_JSON: Final = b"application/a2a+json"
EXCHANGE: Final = "awp_publish.a2a"
"""Where an exchange stands in the scope that the SDK is given."""

_NO_STORE: Final = (b"cache-control", b"no-store")
_OTHER_VERSION: Final = re.compile("A2A version .* is not supported")
_ERROR_INFO: Final = "type.googleapis.com/google.rpc.ErrorInfo"
_ASKING: Final = (401, 403)
_INVALID_REQUEST: Final = -32600
_INTERNAL_ERROR: Final = -32603
_VERSION_NOT_SUPPORTED: Final = -32009
_CODES: Final[Mapping[type[Problem], int]] = {
    problems.NotJson: -32700,
    problems.InvalidEnvelope: -32602,
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

    `document` is what it says, read strictly: its parameters; `call` is all of it if it is a call of JSON-RPC.
    `is_read` is set once the SDK has understood it, `refused` where HTTP itself has to tell a refusal, `error` when our
    handler refuses. `cookies` are those that the action has set: no agent is told of them, but a caller's HTTP client
    keeps them.
    """

    __slots__ = (
        "_body",
        "_cors",
        "_leaving",
        "_receive",
        "call",
        "cookies",
        "document",
        "error",
        "fields",
        "has_left",
        "is_read",
        "refused",
        "request_id",
        "scope",
    )

    def __init__(self, scope: Scope, receive: Receive, fields: Fields, cors: RawHeaders) -> None:
        self.scope = scope
        self.fields = fields
        self.request_id = read_request_id(fields)
        self.document: object = None
        self.call: Mapping[str, object] | None = None
        self.is_read = False
        self.error: A2AError | None = None
        self.refused: Problem | None = None
        self.has_left = False
        self.cookies: RawHeaders = ()
        self._receive = receive
        self._cors = cors
        self._body: bytes | None = None
        self._leaving = asyncio.Lock()

    def take(self, body: bytes, document: object, *, is_rpc: bool) -> None:
        """Keep the body, to hand it on."""
        self._body, self.document = body, document
        if is_rpc and isinstance(document, Mapping):
            self.call, self.document = document, document.get("params")

    def describe(self, problem: Problem, telling: Telling) -> dict[str, object]:
        """The members of a problem of this request."""
        rendered = render_problem(problem, telling.types, telling.recoveries, "", self.request_id)
        described: dict[str, object] = orjson.loads(rendered.body)
        return described

    def render(self, problem: Problem, telling: Telling, dialect: Dialect) -> Reply:
        """The answer to a request that could not be taken."""
        return self._reply(problem.status, dialect(problem, self.describe(problem, telling)), problem)

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

    async def run(self, sdk: AsgiApp, scope: Scope, send: Send, telling: Telling) -> None:
        """Have the SDK answer. Our headers are added, the status is that of a refusal, its mistakes are put right."""
        start: Message | None = None
        is_corrected = False

        async def begin(body: bytes) -> None:
            nonlocal start, is_corrected
            if start is None:
                return
            held, start = start, None
            reply = self._correction(held, body, telling)
            is_corrected = reply is not None
            if reply is not None:
                await send_reply(reply, send)
            else:
                await send({**held, **self._start(held)})

        async def send_checked(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message  # until it is seen of what
                return
            await begin(message.get("body", b""))
            if not is_corrected:
                await send(message)

        try:
            await sdk(scope, self.receive, send_checked)
        except Exception:  # HTTP+JSON of 0.3 lets through what is wrong with a stream
            if self.is_read and self.error is None:
                raise
            await begin(b"")
            if not is_corrected:
                await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _correction(self, start: Message, body: bytes, telling: Telling) -> Reply | None:
        """What is answered in place of an answer of the SDK that begins with `body`; None if that is right."""
        is_stream = any(pair[0] == b"content-type" and pair[1].startswith(b"text/event") for pair in start["headers"])
        if self.call is not None:
            return None if self.is_read else self._correct_call(self.call, body, telling)
        if self.error is not None and is_stream and not body:
            told = build_rest_error_payload(self.error)
            return self._reply(told["error"]["code"], told, self.refused)
        if not self.is_read and (is_stream or start["status"] == 500):
            return self.render(InvalidEnvelope("The request cannot be read."), telling, say_in_http_json)
        return None

    def _correct_call(self, call: Mapping[str, object], body: bytes, telling: Telling) -> Reply | None:
        """A call of JSON-RPC that is one has invalid params, if it has an error and our handler never saw it."""
        if call.get("jsonrpc") != "2.0" or not isinstance(call.get("method"), str) or b'"error"' not in body:
            return None
        error = orjson.loads(body.removeprefix(b"data:"))["error"]
        if error["code"] not in (_INTERNAL_ERROR, _INVALID_REQUEST):
            return None
        found = error["data"] if isinstance(error.get("data"), str) else error["message"]
        problem = InvalidEnvelope(f"The params of {str(call['method'])[:100]} cannot be read: {found[:500]}")
        answer = say_in_json_rpc(problem, self.describe(problem, telling))
        if _OTHER_VERSION.match(found):
            answer["error"] = {"code": _VERSION_NOT_SUPPORTED, "message": found}
        answer["id"] = given if isinstance(given := call.get("id"), str | int) else None
        return self._reply(200, answer, None)

    def _reply(self, status: int, answer: dict[str, object], problem: Problem | None) -> Reply:
        body = orjson.dumps(answer)
        length = (b"content-length", b"%d" % len(body))
        return Reply(status, ((b"content-type", JSON), length, *self._own_headers(problem)), body)

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
