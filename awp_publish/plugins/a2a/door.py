"""The A2A door: Agent2Agent protocol 1.0 through the official SDK, as JSON-RPC and as HTTP+JSON; 0.3 is understood.

The SDK reads requests and writes responses. The door decides which requests it gets, and `A2aRequest` corrects its
responses to requests that it cannot read. JSON-RPC is at the door's own path (with and without a trailing slash, which
some clients append), HTTP+JSON below it: `/a2a/message:send`, and for 0.3 `/a2a/v1/...`.
"""

from abc import abstractmethod
from typing import ClassVar, Final, cast
from urllib.parse import parse_qsl, urlencode

from a2a.extensions.common import HTTP_EXTENSION_HEADER, get_requested_extensions
from a2a.server.context import ServerCallContext
from a2a.server.routes.common import ServerCallContextBuilder
from a2a.utils.constants import A2A_JSON_MEDIA_TYPE, VERSION_HEADER
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Router

from awp_publish.http.body import read_body
from awp_publish.http.calling import CallEndpoint, Dialect, require_json
from awp_publish.http.exchange import replay
from awp_publish.http.request import DoorRequest
from awp_publish.http.sdk_logs import without_contents
from awp_publish.http.strict_json import parse_json
from awp_publish.plugin import Context
from awp_publish.plugins.a2a import agent_card
from awp_publish.plugins.a2a.dialect import DIALECT
from awp_publish.plugins.a2a.handler import A2aHandler
from awp_publish.plugins.a2a.request import DOOR, REQUEST, A2aRequest

EXTENSIONS: Final = HTTP_EXTENSION_HEADER.lower().encode()
VERSION: Final = VERSION_HEADER.lower().encode()

_A2A_JSON: Final = A2A_JSON_MEDIA_TYPE.encode()

_NOT_FOUND: Final = {"error": {"code": 404, "status": "NOT_FOUND", "message": "There is no such method."}}


class A2aDoor(CallEndpoint):
    """Checks the requests of one binding, and passes readable ones to the SDK."""

    dialect: ClassVar[Dialect] = DIALECT

    def __init__(self, context: Context, handler: A2aHandler) -> None:
        super().__init__(DOOR, context, handler.renderer)
        self._extension = agent_card.extension_uri(context.catalog)
        routes = self.routes_of(handler, RequestContexts())
        self._router = Router(routes, redirect_slashes=False, default=JSONResponse(_NOT_FOUND, status_code=404))

    @abstractmethod
    def routes_of(self, handler: A2aHandler, contexts: ServerCallContextBuilder) -> list[BaseRoute]:
        """Return the SDK's routes of the binding."""

    @abstractmethod
    async def read(self, request: A2aRequest) -> bool:
        """Read a request. Returns False if that has answered it. Raises a Problem."""

    async def handle(self, request: DoorRequest, named: str | None) -> None:
        """Answer a request at the door's path, or at the path `named` below it."""
        exchange = cast(A2aRequest, request)
        exchange.extensions = get_requested_extensions([request.fields.get(EXTENSIONS, b"").decode("latin-1")])
        if self._extension in exchange.extensions:
            exchange.headers = (*exchange.headers, (EXTENSIONS, self._extension.encode()))
        if not await self.read(exchange):
            return
        query = request.scope["query_string"]
        if query and VERSION not in request.fields:
            query = _take_version(request, query)
        # The SDK reads only one line of each header, so they are joined.
        headers, path = list(request.fields.items()), f"/{named or ''}"
        inner = {**request.scope, "headers": headers, "path": path, "root_path": "", REQUEST: request}
        inner["query_string"] = query
        inner.pop("app", None)  # with an app, a route would raise instead of answering
        try:
            with without_contents():
                await self._router(inner, replay(exchange.body, request.disconnected), exchange.send)
        except Exception:  # HTTP+JSON of 0.3 does not catch errors in a stream
            if exchange.is_read and exchange.error is None:
                raise
            await exchange.send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            for error in filter(None, (exchange.error, exchange.refused)):
                error.__traceback__ = None  # its frames, also the SDK's, refer to the error

    async def read_document(self, request: A2aRequest, *, may_be_empty: bool = False) -> None:
        """Read the body of a request and parse it. Raises a Problem."""
        most = self._admission.max_body_bytes
        request.body = await read_body(request.scope, request.fields, request.receive, most)
        request.size = len(request.body)
        if request.body or not may_be_empty:
            if request.fields.get(b"content-type") != b"application/json" or b"content-encoding" in request.fields:
                require_json(request.fields, _A2A_JSON)
            request.document = parse_json(request.body)


def _take_version(request: DoorRequest, query: bytes) -> bytes:
    """Take the version from the query, where it may be instead of in the header (section 3.6.1).

    Returns the query without it.
    """
    if VERSION not in query.lower():
        return query
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    for name, value in pairs:
        if name.lower() == VERSION.decode():
            request.fields = {**request.fields, VERSION: value.encode("latin-1", "replace")}
    return urlencode([pair for pair in pairs if pair[0].lower() != VERSION.decode()]).encode()


class RequestContexts(ServerCallContextBuilder):
    """The context that the SDK passes to our handler: our request, and the headers for its check of the version."""

    def build(self, request: Request) -> ServerCallContext:
        ours: A2aRequest = request.scope[REQUEST]
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in ours.fields.items()}
        state = {"headers": headers, REQUEST: ours}
        return ServerCallContext(state=state, requested_extensions=ours.extensions)
