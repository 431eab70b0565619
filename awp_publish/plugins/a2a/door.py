"""The A2A door: Agent2Agent protocol 1.0 through the official SDK, as JSON-RPC and as HTTP+JSON; 0.3 is understood.

The SDK reads requests and writes responses. This file decides which requests it gets, and corrects its responses to
requests that it cannot read. JSON-RPC is at the door's own path (with and without a trailing slash), HTTP+JSON below
it: `/a2a/message:send`, and for 0.3 `/a2a/v1/...`.
"""

import re
from collections.abc import Mapping
from typing import Final

import orjson
from a2a.extensions.common import HTTP_EXTENSION_HEADER, get_requested_extensions
from a2a.server.context import ServerCallContext
from a2a.server.routes import create_jsonrpc_routes, create_rest_routes
from a2a.server.routes.common import ServerCallContextBuilder
from a2a.utils.constants import A2A_JSON_MEDIA_TYPE
from a2a.utils.error_handlers import build_rest_error_payload
from a2a.utils.errors import (
    JSON_RPC_ERROR_CODE_MAP,
    A2AError,
    ContentTypeNotSupportedError,
    InternalError,
    InvalidParamsError,
    InvalidRequestError,
    JSONParseError,
    VersionNotSupportedError,
)
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route, Router

from awp_publish.http.accept import accepts
from awp_publish.http.body import ClientDisconnect, read_body
from awp_publish.http.cors import Cors
from awp_publish.http.exchange import (
    NO_SNIFFING,
    Message,
    RawHeaders,
    Receive,
    Reply,
    Scope,
    Send,
    replay,
    send_reply,
)
from awp_publish.http.origins import refuse_foreign_pages
from awp_publish.http.sdk_logs import keep_contents_out, without_contents
from awp_publish.http.strict_json import is_rpc_id, parse_json
from awp_publish.plugin import Context, Endpoints
from awp_publish.plugins.a2a import agent_card
from awp_publish.plugins.a2a.handler import A2aHandler
from awp_publish.plugins.a2a.request import DOOR, REQUEST, A2aRequest
from awp_publish.plugins.a2a.tasks import describe, with_integers
from awp_publish.problems import InvalidEnvelope, MethodNotAllowed, NotJson, Problem, UnsupportedMediaType

RPC_METHODS: Final = "POST, OPTIONS"
METHODS: Final = "GET, POST, DELETE, OPTIONS"
EXTENSIONS: Final = HTTP_EXTENSION_HEADER.lower().encode()
JSON: Final = b"application/json"
A2A_JSON: Final = A2A_JSON_MEDIA_TYPE.encode()
_JSON_TYPE: Final = re.compile(rb'application/(a2a\+)?json\s*(;\s*charset\s*=\s*"?utf-?8"?\s*)?', re.IGNORECASE)
_OTHER_VERSION: Final = re.compile("A2A version .* is not supported")
_NO_STORE: Final = (b"cache-control", b"no-store")

_ERRORS: Final[Mapping[type[Problem], type[A2AError]]] = {
    NotJson: JSONParseError,
    InvalidEnvelope: InvalidParamsError,
    UnsupportedMediaType: ContentTypeNotSupportedError,
}
"""Errors for problems of requests that could not be accepted. All others are invalid requests."""

_UNREADABLE: Final = frozenset({JSON_RPC_ERROR_CODE_MAP[InternalError], JSON_RPC_ERROR_CODE_MAP[InvalidRequestError]})
"""Codes with which the SDK answers params that it cannot read."""

_STATUSES: Final = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}
"""Statuses of HTTP+JSON (AIP-193). Other statuses from 500 are INTERNAL, the rest INVALID_ARGUMENT."""


def open_door(door: Context) -> Endpoints:
    """Make the door of one public address."""
    path = door.catalog.paths.a2a
    handler = A2aHandler(door)
    answer = A2aDoor(door, handler).answer
    keep_contents_out()
    return Endpoints(exact={path: answer}, below={f"{path}/": answer}, running=handler.running)


class A2aDoor:
    """Checks requests, and passes readable ones to the SDK."""

    def __init__(self, door: Context, handler: A2aHandler) -> None:
        self._invoker = door.invoker
        self._admission = door.admission
        self._renderer = handler.renderer
        self._cors = Cors(door.admission.allow_origins)
        self._extension = agent_card.extension_uri(door.catalog)
        contexts = _Contexts()
        unknown = {"code": 404, "status": "NOT_FOUND", "message": "There is no such method."}
        rest = create_rest_routes(handler, contexts, enable_v0_3_compat=True, path_prefix="")
        routes = [
            *create_jsonrpc_routes(handler, "/", contexts, enable_v0_3_compat=True),
            *(route for route in rest if isinstance(route, Route)),  # without the SDK's paths for tenants
        ]
        not_found = JSONResponse({"error": unknown}, status_code=404)
        self._router = Router(routes, redirect_slashes=False, default=not_found)

    async def answer(self, scope: Scope, receive: Receive, send: Send, rest: str = "") -> None:
        """Answer a request: at the door's path in JSON-RPC, at a path below it (`rest`) in HTTP+JSON.

        Some clients append a slash to the door's path.
        """
        request = A2aRequest(self._renderer, self._cors, scope, receive, send)
        fields, method, is_rpc = request.fields, scope["method"], not rest
        if method == "OPTIONS":
            await send_reply(self._cors.preflight(fields, RPC_METHODS if is_rpc else METHODS), send)
            return
        request.extensions = get_requested_extensions([fields.get(EXTENSIONS, b"").decode("latin-1")])
        if self._extension in request.extensions:
            request.headers = (*request.headers, (EXTENSIONS, self._extension.encode()))
        try:
            if request.is_of_browser:
                refuse_foreign_pages(fields, self._admission.own_origins)
            if is_rpc and method != "POST":
                detail = f"JSON-RPC requests are sent with POST, not {method[:20]}."
                raise MethodNotAllowed(detail, headers=[("Allow", RPC_METHODS)])
            request.body = await read_body(scope, fields, request.receive, self._admission.max_body_bytes)
            request.size = len(request.body)
            if is_rpc or request.body:
                content_type = fields.get(b"content-type", b"")
                if not _JSON_TYPE.fullmatch(content_type.strip()):
                    named = f'"{content_type[:100].decode("latin-1")}"' if content_type else "no Content-Type"
                    raise UnsupportedMediaType(f"The body must be application/json in UTF-8; the request has {named}.")
                if fields.get(b"content-encoding", b"identity") != b"identity":
                    raise UnsupportedMediaType("The body must not be content-encoded.")
                request.document = parse_json(request.body)
        except ClientDisconnect:
            return
        except Problem as problem:
            self._invoker.note_refusal(DOOR, request.request_id, problem)
            await send_reply(self._refuse(request, problem, is_rpc=is_rpc), send)
            return
        if is_rpc and isinstance(request.document, Mapping):
            request_id = request.document.get("id")
            if request_id is not None and not is_rpc_id(request_id):
                wrong_id = InvalidEnvelope("The id of a request must be a string, an integer or null.")
                self._invoker.note_refusal(DOOR, request.request_id, wrong_id)
                answer = self._say(request, wrong_id, is_rpc=True, code=JSON_RPC_ERROR_CODE_MAP[InvalidRequestError])
                await send_reply(_reply(200, answer, _own_headers(request, None)), send)
                return
            request.envelope, request.document = request.document, request.document.get("params")
        # The SDK reads only one line of each header, so they are joined.
        inner = {**scope, "headers": list(fields.items()), "path": f"/{rest}", "root_path": "", REQUEST: request}
        inner.pop("app", None)  # with an app, a route would raise instead of answering
        try:
            with without_contents():
                await self._pass_to_sdk(request, inner, send)
        finally:
            for error in filter(None, (request.error, request.refused)):
                error.__traceback__ = None  # its frames, also the SDK's, refer to the error

    async def _pass_to_sdk(self, request: A2aRequest, inner: Scope, send: Send) -> None:
        """Let the SDK answer. Add our headers, set the status of a refusal, and correct mistakes.

        JSON-RPC returns errors with 200, but a demand for credentials needs its HTTP status. A2A 1.0.0 has the media
        type application/json, 1.0.1 application/a2a+json: a caller gets the one that it accepts.
        """
        start: Message | None = None  # held back until the first part of the body is checked
        is_replaced = False
        accept, content_type = request.fields.get(b"accept", b""), request.fields.get(b"content-type", b"")
        is_json = not accepts(accept, A2A_JSON_MEDIA_TYPE) or (
            A2A_JSON not in accept and content_type.partition(b";")[0].strip().lower() == JSON
        )

        async def send_checked(message: Message) -> None:
            nonlocal start, is_replaced
            if message["type"] == "http.response.start":
                start = message
                return
            body, sent = message.get("body", b""), message.get("body", b"")
            if b".0" in body:
                sent = with_integers(body)
                message = {**message, "body": sent}
            if start is not None:
                held, start = start, None
                reply = self._correct(request, held, body)
                is_replaced = reply is not None
                if reply is not None:
                    await send_reply(reply, send)
                else:
                    refused, status, own = request.refused, held["status"], _own_headers(request, request.refused)
                    if refused is not None and (status != 200 or refused.status in (401, 403)):
                        status = refused.status
                    names = {name for name, _ in own}
                    headers = [
                        (name, JSON if value == A2A_JSON and is_json else value)
                        for name, value in held.get("headers", ())
                        if name not in names
                    ]
                    if len(sent) != len(body):
                        length = (b"content-length", b"%d" % len(sent))
                        headers = [length if name == b"content-length" else (name, value) for name, value in headers]
                    await send({**held, "status": status, "headers": [*headers, *own]})
            if not is_replaced:
                await send(message)

        try:
            await self._router(inner, replay(request.body, request.disconnected), send_checked)
        except Exception:  # HTTP+JSON of 0.3 does not catch errors in a stream
            if request.is_read and request.error is None:
                raise
            await send_checked({"type": "http.response.body", "body": b"", "more_body": False})

    def _correct(self, request: A2aRequest, start: Message, body: bytes) -> Reply | None:
        """Return a response to replace the SDK's, whose body begins with `body`, or None if that is right.

        The SDK answers what it cannot read with an internal error, or an invalid request, or an empty stream. A valid
        JSON-RPC call has invalid params if the response is an error and our handler was never called.
        """
        envelope = request.envelope
        if envelope is not None:
            is_call = envelope.get("jsonrpc") == "2.0" and isinstance(envelope.get("method"), str)
            if request.is_read or not is_call or b'"error"' not in body:
                return None
            error = orjson.loads(body.removeprefix(b"data:"))["error"]
            if error["code"] not in _UNREADABLE:
                return None
            found = error["data"] if isinstance(error.get("data"), str) else error["message"]
            problem = InvalidEnvelope(f"The params of {str(envelope['method'])[:100]} cannot be read: {found[:500]}")
            answer = self._say(request, problem, is_rpc=True)
            if _OTHER_VERSION.match(found):
                answer["error"] = {"code": JSON_RPC_ERROR_CODE_MAP[VersionNotSupportedError], "message": found}
            answer["id"] = envelope.get("id")
            return _reply(200, answer, _own_headers(request, None))
        is_stream = any(name == b"content-type" and value.startswith(b"text/event") for name, value in start["headers"])
        if request.error is not None and is_stream and not body:
            payload = build_rest_error_payload(request.error)
            return _reply(payload["error"]["code"], payload, _own_headers(request, request.refused))
        if not request.is_read and (is_stream or start["status"] == 500):
            return self._refuse(request, InvalidEnvelope("The request cannot be read."), is_rpc=False)
        return None

    def _refuse(self, request: A2aRequest, problem: Problem, *, is_rpc: bool) -> Reply:
        return _reply(problem.status, self._say(request, problem, is_rpc=is_rpc), _own_headers(request, problem))

    def _say(
        self, request: A2aRequest, problem: Problem, *, is_rpc: bool, code: int | None = None
    ) -> dict[str, object]:
        """Return the body for a problem, of JSON-RPC 2.0 (section 5.1; the id of the call is unknown) or AIP-193.

        `code` is that of the error if the kind of the problem does not say it.
        """
        described = describe(problem, self._renderer, request.request_id)
        info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": problem.code}
        details = [{**info, "domain": "a2a-protocol.org", "metadata": described}]
        if is_rpc:
            code = code or JSON_RPC_ERROR_CODE_MAP[_ERRORS.get(type(problem), InvalidRequestError)]
            error = {"code": code, "message": described["detail"], "data": details}
            return {"jsonrpc": "2.0", "id": None, "error": error}
        status = _STATUSES.get(problem.status, "INTERNAL" if problem.status >= 500 else "INVALID_ARGUMENT")
        return {"error": {"code": problem.status, "status": status, "message": described["detail"], "details": details}}


def _reply(status: int, answer: Mapping[str, object], own: RawHeaders) -> Reply:
    body = orjson.dumps(answer)
    return Reply(status, ((b"content-type", JSON), (b"content-length", b"%d" % len(body)), *own), body)


def _own_headers(request: A2aRequest, problem: Problem | None) -> RawHeaders:
    added = problem.headers if problem is not None else ()
    pairs = tuple((name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in added)
    request_id = (b"x-request-id", request.request_id.encode())
    return (*pairs, _NO_STORE, NO_SNIFFING, request_id, *request.cookies, *request.headers)


class _Contexts(ServerCallContextBuilder):
    """The context that the SDK passes to our handler: our request, and the headers for its check of the version."""

    def build(self, request: Request) -> ServerCallContext:
        """Return the context of one request."""
        ours: A2aRequest = request.scope[REQUEST]
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in ours.fields.items()}
        state = {"headers": headers, REQUEST: ours}
        return ServerCallContext(state=state, requested_extensions=ours.extensions)
