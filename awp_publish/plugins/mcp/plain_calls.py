"""Plain calls of the latest revision, answered without the SDK, with the same result but in less time."""

import json
from collections.abc import Mapping
from typing import Any, Final, cast

import mcp_types as types
import orjson
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS
from mcp_types.methods import validate_client_request

from awp_publish.http.exchange import Fields
from awp_publish.plugins.mcp.exchange import CALL, EXCHANGE, LATEST, McpExchange, RequestContext, WireResult
from awp_publish.plugins.mcp.tools import Tools

_CALL_MEMBERS: Final = ("jsonrpc", "id", "method", "params")
_PLAIN_FIELDS: Final = frozenset(
    (CALL.encode(), content_type, accept)
    for content_type in (b"application/json", b"application/json; charset=utf-8")
    for accept in (b"application/json, text/event-stream", b"application/json,text/event-stream", b"application/json")
)
"""Method, Content-Type and Accept of a plain call."""

MAX_ID: Final = 2**53
MAX_KNOWN_META: Final = 64
"""Descriptions of clients that are cached, so that they are not validated at each call."""


class PlainCalls:
    """Calls that are valid in the revision's own types, whose headers agree with their body, and which neither request
    progress nor bring a reply to a question. All others, and every mistake, are left to the SDK.
    """

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._last_meta: object = None
        self._known_meta: set[bytes] = set()

    async def answer(self, exchange: McpExchange, message: Mapping[str, Any], fields: Fields) -> bool:
        """Answer a call if it is plain. Returns False if it is not."""
        params, request_id = message.get("params"), message.get("id")
        if type(params) is not dict or len(message) != len(_CALL_MEMBERS) or message.get("jsonrpc") != "2.0":
            return False
        if type(request_id) is not str and not (type(request_id) is int and abs(request_id) < MAX_ID):
            return False
        name, meta, arguments = params.get("name"), params.get("_meta"), params.get("arguments")
        if type(name) is not str or type(meta) is not dict or "progressToken" in meta:
            return False
        if len(params) != (2 if arguments is None else 3) or (arguments is not None and type(arguments) is not dict):
            return False
        tool = self._tools.find(self._tools.modern, name)
        if tool is None or name in self._tools.mirrored:
            return False
        form = fields.get(b"mcp-method"), fields.get(b"content-type"), fields.get(b"accept")
        if form not in _PLAIN_FIELDS or fields.get(b"mcp-name") != name.encode():
            return False
        if not self._knows(meta):
            return False
        answer: WireResult = {"jsonrpc": "2.0", "id": request_id}
        try:
            exchange.is_plain, context = True, cast(RequestContext, PlainContext(exchange, params, meta, request_id))
            answer["result"] = await self._tools.call(exchange, tool, params, context)
        except MCPError as refused:
            answer["error"] = refused.error.model_dump(by_alias=True, exclude_none=True)
        if not exchange.is_answered:
            code = answer["error"]["code"] if "error" in answer else 0
            body = json.dumps(answer, separators=(",", ":")).encode()  # as the SDK serialises it
            await exchange.answer(body, ERROR_CODE_HTTP_STATUS.get(code, 200))
        return True

    def _knows(self, meta: Mapping[str, Any]) -> bool:
        """Return True if a client's description of itself is valid: it is the same in all of its calls."""
        if meta == self._last_meta:
            return True
        if meta.get(types.PROTOCOL_VERSION_META_KEY) != LATEST:
            return False
        written = orjson.dumps(meta)
        if written not in self._known_meta:
            try:
                validate_client_request(CALL, LATEST, {"name": "any", "_meta": meta})
            except (ValueError, MCPError):  # pydantic's ValidationError is a ValueError
                return False
            if len(self._known_meta) >= MAX_KNOWN_META:
                self._known_meta.clear()
            self._known_meta.add(written)
        self._last_meta = meta
        return True


class PlainContext:
    """The members of the SDK's context that `Tools` reads, for a call that bypasses the SDK."""

    method = CALL
    protocol_version = LATEST

    def __init__(
        self, exchange: McpExchange, params: Mapping[str, Any], meta: Mapping[str, Any], request_id: str | int
    ) -> None:
        self.scope = {EXCHANGE: exchange}
        self.params = params
        self.meta = meta
        self.request_id = request_id

    @property
    def request(self) -> "PlainContext":
        """The request, whose scope has the exchange."""
        return self

    @property
    def session(self) -> "PlainContext":
        """The session, which has the client's capabilities."""
        return self

    @property
    def client_capabilities(self) -> types.ClientCapabilities:
        return types.ClientCapabilities.model_validate(self.meta[types.CLIENT_CAPABILITIES_META_KEY], by_name=False)
