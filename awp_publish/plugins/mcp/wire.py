"""The client's side of the MCP door: `tools/call` in the stateless revision, and as clients of 2025-11-25 send it."""

import base64
from collections.abc import Mapping
from functools import partial
from typing import Final

from awp_publish.calls.wire import (
    Answer,
    CallFailed,
    ReadDocument,
    Wire,
    WireCall,
    WireRequest,
    WireResponse,
    file_name,
    header_members,
    mapping,
    protocol_in,
    with_content,
)
from awp_publish.model import Action, Paths
from awp_publish.plugins.mcp.server_card import ALIASES
from awp_publish.schema.reading import OBJECT, members

STATELESS: Final = "2026-07-28"
WITH_OBJECTS: Final = "2025-11-25"
"""A revision in which structured results are objects."""

_OWN: Final = "io.modelcontextprotocol/"


def _write(revision: str, call: WireCall, path: str) -> WireRequest:
    meta: dict[str, object] = {f"awp/{name}": value for name, value in call.members("idempotencyKey").items()}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": revision}
    if revision == STATELESS:
        meta |= {f"{_OWN}protocolVersion": revision, f"{_OWN}clientCapabilities": {}}
        headers |= {"Mcp-Method": "tools/call", "Mcp-Name": call.action}
        headers |= _repeated_inputs(call.declared, call.inputs) if call.declared is not None else {}
    params = {"name": call.action, "arguments": call.inputs, **({"_meta": meta} if meta else {})}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return WireRequest("POST", path, tuple(headers.items()), message)


def _repeated_inputs(action: Action, inputs: Mapping[str, object]) -> dict[str, str]:
    """Return the headers that repeat inputs (MCP 2026-07-28, Streamable HTTP, `x-mcp-header`)."""
    headers = {}
    for name, part in members(action.inputs).items():
        header, value = part.get("x-mcp-header") if isinstance(part, OBJECT) else None, inputs.get(name)
        if isinstance(header, str) and isinstance(value, (str, int, float)):
            text = ("true" if value else "false") if isinstance(value, bool) else str(value)
            is_plain = text.isascii() and text.isprintable() and text == text.strip()
            encoded = f"=?base64?{base64.b64encode(text.encode()).decode()}?="
            headers[f"Mcp-Param-{header}"] = text if is_plain else encoded
    return headers


def _read(call: WireCall, request: WireRequest, response: WireResponse) -> Answer:
    message = response.json()
    if "error" in message or "result" not in message:
        error = message.get("error", {})
        problem = error.get("data") if isinstance(error.get("data"), Mapping) else message
        if "detail" not in problem:
            detail = error.get("message") or f"The MCP door does not answer (HTTP {response.status})."
            problem = {"detail": detail, "status": response.status}
        raise CallFailed(call.action, problem, response.headers)
    result = message["result"]
    meta = mapping(result.get("_meta"))
    headers = header_members(meta.get("awp/headers"))
    if "awp/answer" in meta:  # not of the form that the tool promises
        return with_content(meta["awp/answer"], headers)
    if result.get("isError"):
        raise CallFailed(call.action, meta.get("awp/problem") or {"detail": result["content"][0].get("text")}, headers)
    if "structuredContent" in result:
        output = result["structuredContent"]
        return with_content(output["result"] if meta.get("awp/wrapped") is True else output, headers)
    block = result["content"][0]
    if block["type"] == "text":  # a string, or null, which is no structured content
        return with_content(None if block["text"] == "null" else block["text"], headers)
    resource = block.get("resource", block)
    media_type = str(resource.get("mimeType", ""))
    if "text" in resource:
        return Answer(resource["text"], headers, media_type, file_name(headers))
    content = base64.b64decode(resource.get("blob") or resource["data"])
    return Answer(content, headers, media_type, file_name(headers))


def _find(read: ReadDocument) -> object:
    if endpoint := protocol_in(read, "mcp").get("endpoint"):
        return endpoint
    remotes = read(ALIASES[0]).get("remotes")
    return mapping(remotes[0] if isinstance(remotes, list) and remotes else None).get("url")


WIRES: Final = tuple(
    Wire(
        name=name,
        title="MCP",
        version=revision,
        door="mcp",
        path=Paths().mcp,
        write=partial(_write, revision),
        read=_read,
        find=_find,
    )
    for name, revision in (("mcp", STATELESS), (f"mcp-{WITH_OBJECTS}", WITH_OBJECTS))
)
