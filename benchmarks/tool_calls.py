"""Messages of MCP that are measured, as bytes: one tool call in both generations, others in the newest."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from awp_publish.http.exchange import AsgiApp, RawHeaders
from benchmarks.measure import Case
from benchmarks.shop import JSON, ORDER

MODERN: Final = "2026-07-28"
CLASSIC: Final = "2025-11-25"
TOOL: Final = "order_books"
PATH: Final = "/mcp"

_ACCEPT: Final = (b"accept", b"application/json, text/event-stream")

_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameter that the header Mcp-Name repeats, by method."""


def tool_call(version: str) -> tuple[bytes, RawHeaders]:
    """Body and headers of the call in one revision. Whoever sends it adds the length."""
    meta = {"io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {}}
    params: dict[str, Any] = {"name": TOOL, "arguments": orjson.loads(ORDER)}
    params |= {"_meta": meta} if version == MODERN else {}
    body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    named: RawHeaders = ((b"mcp-method", b"tools/call"), (b"mcp-name", TOOL.encode())) if version == MODERN else ()
    return body, (*JSON, _ACCEPT, (b"mcp-protocol-version", version.encode()), *named)


def mcp_message(
    name: str, app: AsgiApp, method: str, params: Mapping[str, Any], extensions: Mapping[str, object] | None = None
) -> Case:
    """Return a message of the newest revision as a case, from a client with these extensions."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {"extensions": extensions} if extensions else {},
    }
    body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}})
    headers = (*JSON, _ACCEPT, (b"mcp-protocol-version", MODERN.encode()), (b"mcp-method", method.encode()))
    named = params.get(_NAMED.get(method, ""))
    headers += ((b"mcp-name", named.encode()),) if named is not None else ()
    return Case(name, app, PATH, "POST", (*headers, (b"content-length", b"%d" % len(body))), body)
