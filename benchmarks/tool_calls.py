"""The one tool call of MCP that is measured, as bytes, in both generations of the protocol."""

from typing import Any, Final

import orjson

from awp_publish.serve.http import RawHeaders
from benchmarks.applications import JSON, ORDER

MODERN: Final = "2026-07-28"
CLASSIC: Final = "2025-11-25"
TOOL: Final = "order_books"
PATH: Final = "/mcp"

_ACCEPT: Final = (b"accept", b"application/json, text/event-stream")


def tool_call(version: str) -> tuple[bytes, RawHeaders]:
    """Body and headers of the call in one revision. Whoever sends it adds the length."""
    meta = {"io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {}}
    params: dict[str, Any] = {"name": TOOL, "arguments": orjson.loads(ORDER)}
    params |= {"_meta": meta} if version == MODERN else {}
    body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    named: RawHeaders = ((b"mcp-method", b"tools/call"), (b"mcp-name", TOOL.encode())) if version == MODERN else ()
    return body, (*JSON, _ACCEPT, (b"mcp-protocol-version", version.encode()), *named)
