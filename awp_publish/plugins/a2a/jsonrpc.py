"""The JSON-RPC binding of A2A (section 9), of 1.0 and 0.3."""

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.routes.common import ServerCallContextBuilder
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
from starlette.routing import BaseRoute

from awp_publish.http.exchange import Message, Reply
from awp_publish.http.strict_json import is_rpc_id
from awp_publish.plugins.a2a.door import A2aDoor
from awp_publish.plugins.a2a.handler import A2aHandler
from awp_publish.plugins.a2a.request import DOOR, A2aRequest, other_version
from awp_publish.plugins.a2a.wire import write_error_info
from awp_publish.problems import InvalidEnvelope, NotJson, Problem, UnsupportedMediaType

_ERRORS: Final[Mapping[type[Problem], type[A2AError]]] = {
    NotJson: JSONParseError,
    InvalidEnvelope: InvalidParamsError,
    UnsupportedMediaType: ContentTypeNotSupportedError,
}
"""Errors for problems of requests that could not be accepted. All others are invalid requests."""

_UNREADABLE: Final = frozenset({JSON_RPC_ERROR_CODE_MAP[InternalError], JSON_RPC_ERROR_CODE_MAP[InvalidRequestError]})
"""Codes with which the SDK answers params that it cannot read."""

_PYDANTIC: Final = re.compile(r"^(\S+)\n  (.+?) \[type=", re.MULTILINE)
"""A fault in the text of a `ValidationError`, which also repeats the input."""


class RpcRequest(A2aRequest):
    """A JSON-RPC request. `envelope` is the whole of it, whose params are the document."""

    envelope: Mapping[str, Any] | None = None

    def refusal(self, problem: Problem) -> Reply:
        return self.make_reply(problem.status, self.describe_error(problem), problem)

    def describe_error(self, problem: Problem, kind: type[A2AError] | None = None) -> dict[str, Any]:
        """Return the body for a problem (JSON-RPC 2.0 section 5.1), without the id of the request."""
        described, details = self.describe(problem)
        code = JSON_RPC_ERROR_CODE_MAP[kind or _ERRORS.get(type(problem), InvalidRequestError)]
        return {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": described["detail"], "data": details}}

    def correction(self, start: Message, body: bytes) -> Reply | None:
        """Return the response for another version, and for params that the SDK cannot read.

        It calls those an internal error, or does not say in words what is wrong with them. A valid request has invalid
        params if the response is an error and our handler was never called.
        """
        envelope = self.envelope
        is_call = envelope is not None and envelope.get("jsonrpc") == "2.0" and isinstance(envelope.get("method"), str)
        if envelope is None or self.is_read or not is_call or b'"error"' not in body:
            return None
        error = orjson.loads(body.removeprefix(b"data:"))["error"]
        method, fault = envelope["method"][:100], _fault_in(error)
        if message := other_version(f"The method {method}", fault):
            answer = self.describe_error(InvalidEnvelope(message), VersionNotSupportedError)
            answer["error"]["data"] = [write_error_info("VERSION_NOT_SUPPORTED", {})]
        elif error["code"] in _UNREADABLE or error["message"] == InvalidParamsError.message:
            answer = self.describe_error(InvalidEnvelope(f"The params of {method} cannot be read: {fault[:500]}"))
        else:
            return None
        answer["id"] = envelope.get("id")
        return self.make_reply(200, answer)


def _fault_in(error: Mapping[str, Any]) -> str:
    """Return what is wrong with params in the SDK's words, "params.message: Field required"."""
    data = error.get("data")
    if isinstance(data, str):
        return "; ".join(f"{place}: {text}" for place, text in _PYDANTIC.findall(data)) or data
    details = (detail.get("metadata", {}) for detail in data or ())
    return str(next((named["parseError"] for named in details if "parseError" in named), error["message"])).rstrip(".")


class RpcDoor(A2aDoor):
    """Answers JSON-RPC requests at the door's own path."""

    methods = "POST, OPTIONS"
    usage = "JSON-RPC requests are sent with POST"
    request_type = RpcRequest

    def routes_of(self, handler: A2aHandler, contexts: ServerCallContextBuilder) -> list[BaseRoute]:
        return [*create_jsonrpc_routes(handler, "/", contexts, enable_v0_3_compat=True)]

    async def read(self, request: A2aRequest) -> bool:
        """Read the envelope of a request, and answer one whose id is no id."""
        await self.read_document(request)
        if not isinstance(request, RpcRequest) or not isinstance(request.document, Mapping):
            return True
        request_id = request.document.get("id")
        if request_id is not None and not is_rpc_id(request_id):
            wrong_id = InvalidEnvelope("The id of a request must be a string, an integer or null.")
            self._invoker.note_refusal(DOOR, request.request_id, wrong_id)
            await request.reply(request.make_reply(200, request.describe_error(wrong_id, InvalidRequestError)))
            return False
        request.envelope, request.document = request.document, request.document.get("params")
        return True
