"""The HTTP+JSON binding of A2A (section 11), of 1.0 and 0.3."""

from typing import Final

import orjson
from a2a.server.routes import create_rest_routes
from a2a.server.routes.common import ServerCallContextBuilder
from a2a.utils.error_handlers import build_rest_error_payload
from starlette.routing import BaseRoute, Route

from awp_publish.http.exchange import Message, Receive, Reply, Scope, Send, send_reply
from awp_publish.http.strict_json import json_kind
from awp_publish.plugins.a2a.door import A2aDoor
from awp_publish.plugins.a2a.handler import A2aHandler
from awp_publish.plugins.a2a.request import A2aRequest, other_version
from awp_publish.problems import InvalidEnvelope, MethodNotAllowed, Problem

_STATUSES: Final = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}
"""Statuses of errors (AIP-193). Other statuses from 500 are INTERNAL, the rest INVALID_ARGUMENT."""


class RestRequest(A2aRequest):
    """An HTTP+JSON request."""

    def refusal(self, problem: Problem) -> Reply:
        """Return the response for a problem (AIP-193)."""
        described, details = self.describe(problem)
        status = _STATUSES.get(problem.status, "INTERNAL" if problem.status >= 500 else "INVALID_ARGUMENT")
        error = {"code": problem.status, "status": status, "message": described["detail"], "details": details}
        return self.make_reply(problem.status, {"error": error}, problem)

    def correction(self, start: Message, body: bytes) -> Reply | None:
        """Return the response for another version, and for what the SDK cannot read.

        It answers that with 500 or with an empty stream.
        """
        if start["status"] == 400 and b"VERSION_NOT_SUPPORTED" in body:
            answer = orjson.loads(body)
            answer["error"]["message"] = other_version("This address", answer["error"]["message"])
            return self.make_reply(400, answer)
        is_stream = any(name == b"content-type" and value.startswith(b"text/event") for name, value in start["headers"])
        if self.error is not None and is_stream and not body:
            payload = build_rest_error_payload(self.error)
            return self.make_reply(payload["error"]["code"], payload, self.refused)
        if not self.is_read and (is_stream or start["status"] == 500):
            return self.refusal(InvalidEnvelope("The request cannot be read."))
        return None


class RestDoor(A2aDoor):
    """Answers HTTP+JSON requests below the door's path."""

    methods = "GET, HEAD, POST, DELETE, OPTIONS"
    usage = "Requests are sent with GET, POST or DELETE"
    request_type = RestRequest

    def routes_of(self, handler: A2aHandler, contexts: ServerCallContextBuilder) -> list[BaseRoute]:
        """Return the SDK's routes without its paths for tenants."""
        routes = create_rest_routes(handler, contexts, enable_v0_3_compat=True, path_prefix="")
        self._routes = [route for route in routes if isinstance(route, Route)]
        return [*self._routes]

    async def answer(self, named: str | None, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. `Allow` has the methods of its own path (RFC 9110 section 10.2.1)."""
        matching = (route for route in self._routes if route.path_regex.match(f"/{named or ''}"))
        methods = {"OPTIONS"}.union(*(route.methods or () for route in matching))
        if len(methods) == 1 or (scope["method"] != "OPTIONS" and scope["method"] in methods):
            await super().answer(named, scope, receive, send)
            return
        request = RestRequest(self._renderer, self._cors, scope, receive, send)
        allowed = ", ".join(method for method in self.methods.split(", ") if method in methods)
        if scope["method"] == "OPTIONS":
            await send_reply(self._cors.preflight(request.fields, allowed), send)
            return
        if scope["method"] == "HEAD":
            request.drop_content()
        detail = f"This is requested with {allowed.removesuffix(', OPTIONS')}, not {scope['method'][:20]}."
        await request.deliver(MethodNotAllowed(detail, headers=[("Allow", allowed)]))

    async def read(self, request: A2aRequest) -> bool:
        await self.read_document(request, may_be_empty=True)
        if request.body and not isinstance(request.document, dict):
            raise InvalidEnvelope(f"The body is {json_kind(request.document)}, not an object.")
        return True
