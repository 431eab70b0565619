"""The A2A door: Agent2Agent protocol 1.0 through the official SDK, as JSON-RPC and as HTTP+JSON, 0.3 understood.

The SDK reads requests and writes answers; this file decides which requests it gets to see. JSON-RPC is spoken at the
door's own path (with and without a slash at its end), HTTP+JSON below it: `/a2a/message:send`, of 0.3 `/a2a/v1/...`.
"""

import re
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route, Router

from a2a.extensions.common import HTTP_EXTENSION_HEADER, get_requested_extensions
from a2a.server.context import ServerCallContext
from a2a.server.routes import create_jsonrpc_routes, create_rest_routes
from a2a.server.routes.common import ServerCallContextBuilder
from awp_publish.model import Door
from awp_publish.problems import MethodNotAllowed, Problem, UnsupportedMediaType
from awp_publish.protocols import agent_card
from awp_publish.serve.a2a.handler import (
    EXCHANGE,
    A2aExchange,
    A2aHandler,
    Dialect,
    Runs,
    say_in_http_json,
    say_in_json_rpc,
)
from awp_publish.serve.a2a.tasks import telling_of
from awp_publish.serve.credentials import refuse_foreign_pages
from awp_publish.serve.doors import LiveDoor, Surroundings
from awp_publish.serve.http import (
    Cors,
    Fields,
    HungUp,
    RawHeaders,
    Receive,
    Scope,
    Send,
    parse_json,
    read_body,
    read_fields,
    send_reply,
)
from awp_publish.serve.sdk_logs import keep_contents_out, without_contents
from awp_publish.site import Site

PROTOCOL: Final = "a2a"
VERSION: Final = "1.0"
RPC_METHODS: Final = "POST, OPTIONS"
METHODS: Final = "GET, POST, DELETE, OPTIONS"
EXTENSIONS: Final = HTTP_EXTENSION_HEADER.lower().encode()
_JSON_TYPE: Final = re.compile(rb'application/(a2a\+)?json\s*(;\s*charset\s*=\s*"?utf-?8"?\s*)?', re.IGNORECASE)

EXTENSION_TEXT: Final = """\
# Selecting a skill

A message to this agent selects a skill with one data part:

    {"skill": "<id of a skill of the agent card>", "input": {...}}

The id may stand in the message's metadata instead; then the data part is the input. The schemas of each skill's input
and output are in the params of this extension on the agent card. Beside `input` may stand `idempotency_key`,
`confirmation` (the token that an input-required task hands out, once a person has agreed) and `receipts`.
A text alone is the input where it can be nothing else.
"""


def describe_door(site: Site) -> Door:
    """What the documents may say about this door."""
    return Door(PROTOCOL, VERSION, site.paths.a2a)


def open_door(surroundings: Surroundings) -> LiveDoor:
    """The door of one public address."""
    path = surroundings.catalog.paths.a2a
    runs = Runs(surroundings.invoker)
    door = A2aDoor(surroundings, runs)
    keep_contents_out()
    return LiveDoor({path: door.answer}, {f"{path}/": door.answer_below}, runs.running)


class A2aDoor:
    """Takes requests, and hands those that can be read to the SDK."""

    def __init__(self, surroundings: Surroundings, runs: Runs) -> None:
        self._invoker = surroundings.invoker
        self._admission = surroundings.admission
        self._telling = telling_of(surroundings.catalog)
        self._cors = Cors(surroundings.admission.allow_origins)
        self._extension = agent_card.extension_uri(surroundings.catalog)
        self._router = _make_router(A2aHandler(surroundings, runs))

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a JSON-RPC request."""
        await self._answer(scope, receive, send, "/", say_in_json_rpc)

    async def answer_below(self, scope: Scope, receive: Receive, send: Send, rest: str) -> None:
        """Answer a request below the door's path; some clients put a slash at the end of the path itself."""
        await self._answer(scope, receive, send, f"/{rest}", say_in_http_json if rest else say_in_json_rpc)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, path: str, dialect: Dialect) -> None:
        fields = read_fields(scope["headers"])
        if scope["method"] == "OPTIONS":
            await send_reply(self._cors.preflight(fields, METHODS if path != "/" else RPC_METHODS), send)
            return
        exchange = A2aExchange(scope, receive, fields, (*self._cors.headers(fields), *self._activated(fields)))
        try:
            await self._read(exchange, receive, dialect)
        except HungUp:
            return
        except Problem as problem:
            self._invoker.note_refusal(PROTOCOL, exchange.request_id, problem)
            await send_reply(exchange.render(problem, self._telling, dialect), send)
            return
        # The SDK reads one line of each header, so they are joined.
        inner = {**scope, "headers": list(fields.items()), "path": path, "root_path": "", EXCHANGE: exchange}
        inner.pop("app", None)  # else a route raises where it should answer
        with without_contents():
            await exchange.run(self._router, inner, send, self._telling)

    def _activated(self, fields: Fields) -> RawHeaders:
        """Of the extensions that a caller asks for, the one that there is."""
        asked = get_requested_extensions([fields.get(EXTENSIONS, b"").decode("latin-1")])
        return ((EXTENSIONS, self._extension.encode()),) if self._extension in asked else ()

    async def _read(self, exchange: A2aExchange, receive: Receive, dialect: Dialect) -> None:
        """Take the request's body, and its parameters. Raises a Problem."""
        refuse_foreign_pages(exchange.fields, self._admission.own_hosts)
        is_rpc, method = dialect is say_in_json_rpc, exchange.scope["method"]
        if is_rpc and method != "POST":
            detail = f"JSON-RPC is spoken with POST, not {method[:20]}."
            raise MethodNotAllowed(detail, headers=[("Allow", RPC_METHODS)])
        body = await read_body(exchange.scope, exchange.fields, receive, self._admission.max_body_bytes)
        if not is_rpc and not body:
            exchange.take(body, None, is_rpc=False)
            return
        _check_type(exchange.fields)
        exchange.take(body, parse_json(body), is_rpc=is_rpc)


def _check_type(fields: Fields) -> None:
    content_type = fields.get(b"content-type", b"")
    if not _JSON_TYPE.fullmatch(content_type.strip()):
        named = f'"{content_type[:100].decode("latin-1")}"' if content_type else "no Content-Type"
        raise UnsupportedMediaType(f"The body must be application/json in UTF-8; the request has {named}.")
    if fields.get(b"content-encoding", b"identity") != b"identity":
        raise UnsupportedMediaType("The body must not be content-encoded.")


# --- The SDK's side ---


class _Contexts(ServerCallContextBuilder):
    """What the SDK passes on to our handler: our exchange, and the headers for its own check of the version."""

    def build(self, request: Request) -> ServerCallContext:
        """The context of one request."""
        # Starlette looks through all headers for each name; of several of one name it gives the first.
        state = {"headers": dict(reversed(request.headers.items())), EXCHANGE: request.scope[EXCHANGE]}
        asked = get_requested_extensions(request.headers.getlist(HTTP_EXTENSION_HEADER))
        return ServerCallContext(state=state, requested_extensions=asked)


def _make_router(handler: A2aHandler) -> Router:
    contexts = _Contexts()
    rpc = create_jsonrpc_routes(handler, "/", contexts, enable_v0_3_compat=True)
    rest = create_rest_routes(handler, contexts, enable_v0_3_compat=True, path_prefix="")
    explained = Route(f"/{agent_card.EXTENSION}", _explain, methods=["GET"])
    plain = [route for route in rest if isinstance(route, Route)]  # without the SDK's paths of tenants: a site has none
    return Router([*rpc, explained, *plain], redirect_slashes=False, default=_answer_unknown)


async def _explain(request: Request) -> PlainTextResponse:
    return PlainTextResponse(EXTENSION_TEXT, media_type="text/markdown")


async def _answer_unknown(scope: Scope, receive: Receive, send: Send) -> None:
    error = {"code": 404, "status": "NOT_FOUND", "message": "There is no such method."}
    await JSONResponse({"error": error}, status_code=404)(scope, receive, send)
