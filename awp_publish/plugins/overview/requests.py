"""The exact request of a call for each door."""

import base64
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import urlencode, urlsplit

import orjson

from awp_publish.documents.plain_request import QUERY_METHODS
from awp_publish.model import DEFAULT_OPERATION, Action, Catalog, JsonObject
from awp_publish.plugins.overview.markup import pretty
from awp_publish.schema.reading import OBJECT, members


class Wire(NamedTuple):
    """A protocol for calls: its key in URLs, its title, and the door that the site has to enable, "" for none."""

    key: str
    title: str
    door: str

    @property
    def name(self) -> str:
        """The title without a version."""
        return self.title.partition(" 20")[0]


WIRES: Final = (
    Wire("woa", "WoA", ""),
    Wire("plain", "Plain HTTP", ""),
    Wire("mcp", "MCP 2026-07-28", "mcp"),
    Wire("mcp-2025-11-25", "MCP 2025-11-25", "mcp"),
    Wire("a2a", "A2A", "a2a"),
    Wire("awp", "AWP", "awp"),
)
MODERN: Final = "2026-07-28"
CLASSIC: Final = "2025-11-25"
_MCP: Final = "io.modelcontextprotocol/"


@dataclass(frozen=True, slots=True)
class Filled:
    """A completed form: the input, and the fields besides it. `secrets` are headers whose values are not displayed."""

    given: Mapping[str, object]
    key: str = ""
    confirmation: str = ""
    receipts: tuple[str, ...] = ()
    session: str = ""
    message_id: str = ""
    secrets: tuple[tuple[str, str], ...] = ()

    def beside(self, key_field: str, receipts: object) -> dict[str, object]:
        """Return the non-empty fields besides the input."""
        found = {key_field: self.key, "confirmation": self.confirmation, "receipts": receipts, "session": self.session}
        return {name: value for name, value in found.items() if value}


@dataclass(frozen=True, slots=True)
class WireRequest:
    """One request of a protocol. `frames` are the messages of a WebSocket, in order."""

    wire: Wire
    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: object = None
    frames: tuple[JsonObject, ...] = ()

    def content(self) -> bytes:
        return b"" if self.body is None else orjson.dumps(self.body)

    def text(self, origin: str) -> str:
        """Return the request for display, without credentials."""
        parts = urlsplit(origin)
        lines = [f"{self.method} {parts.path}{self.path} HTTP/1.1", f"Host: {parts.netloc}"]
        lines += [f"{name}: {_masked(name, value)}" for name, value in self.headers]
        if self.frames:
            lines[1:] = ["Upgrade: websocket", *lines[1:]]
            return "\n".join(lines) + "".join(f"\n\n> {pretty(frame)}" for frame in self.frames)
        return "\n".join(lines) + ("" if self.body is None else f"\n\n{pretty(self.body)}")

    def curl(self, origin: str) -> str:
        """Return the request as a curl command, without credentials."""
        words = ["curl", "-i"] + (["-X", self.method] if self.method not in ("GET", "POST") else [])
        lines = [shlex.join([*words, origin + self.path])]
        lines += [f"  -H {shlex.quote(f'{name}: {_masked(name, value)}')}" for name, value in self.headers]
        if self.body is not None:
            lines.append(f"  -d {shlex.quote(orjson.dumps(self.body).decode())}")
        return " \\\n".join(lines)


_MASK: Final = "***"
_SHOWN_HEADERS: Final = ("content-type", "accept", "idempotency-key", "mcp-", "a2a-", "awp-")
"""Prefixes of headers whose values are displayed; all others are treated as credentials."""


def _masked(name: str, value: str) -> str:
    """Return a header's value with credentials masked, since pages end up in screenshots."""
    if name.lower() == "authorization":
        return f"{value.partition(' ')[0]} {_MASK}" if " " in value else _MASK
    return value if name.lower().startswith(_SHOWN_HEADERS) else _MASK


def write_request(wire: Wire, catalog: Catalog, action: Action, filled: Filled) -> WireRequest:
    """Write the request of a call for one door."""
    paths, json_type = catalog.paths, ("Content-Type", "application/json")
    key_field = action.idempotency.key_field if action.idempotency else "idempotency_key"
    given, receipts = filled.given, list(filled.receipts)
    secret = filled.secrets
    if wire.key == "woa":
        named = {} if action.operation == DEFAULT_OPERATION else {"operation": action.operation}
        agent = {} if "{agent_id}" in paths.invoke else {"agent": action.agent_id}
        body: dict[str, object] = {**agent, **named, "input": given, **filled.beside(key_field, receipts)}
        return WireRequest(wire, "POST", catalog.invoke_path_of(action), (json_type, *secret), body)
    if wire.key == "plain":
        headers = {
            "Idempotency-Key": filled.key,
            "AWP-Confirmation": filled.confirmation,
            "AWP-Receipt": ", ".join(receipts),
            "AWP-Session": filled.session,
        }
        beside = (*((name, value) for name, value in headers.items() if value), *secret)
        path = catalog.plain_path_of(action)
        if action.method not in QUERY_METHODS:
            return WireRequest(wire, action.method, path, (json_type, *beside), given)
        query = urlencode(fields_of(given))
        return WireRequest(wire, action.method, path + (f"?{query}" if query else ""), beside)
    if wire.door == "mcp":
        others = filled.beside("idempotencyKey", receipts)
        meta: dict[str, object] = {f"awp/{name}": value for name, value in others.items()}
        headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": CLASSIC}
        if wire.key == "mcp":
            meta |= {f"{_MCP}protocolVersion": MODERN, f"{_MCP}clientCapabilities": {}}
            headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": action.id}
            headers |= _repeated_inputs(action, given)
        params: dict[str, object] = {"name": action.id, "arguments": given, **({"_meta": meta} if meta else {})}
        sent = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return WireRequest(wire, "POST", paths.mcp, (json_type, *headers.items(), *secret), sent)
    if wire.key == "a2a":
        data = {"skill": action.id, "input": given, **filled.beside(key_field, receipts)}
        message = {"messageId": filled.message_id or "1", "role": "ROLE_USER", "parts": [{"data": data}]}
        sent = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
        return WireRequest(wire, "POST", paths.a2a, (json_type, ("A2A-Version", "1.0"), *secret), sent)
    hello = {"client_name": "overview", "client_version": "1", "awp_version": "0.1"}
    params = {"skill": action.id, "args": given, **filled.beside(key_field, receipts)}
    params.pop(key_field, None)
    invoke = {"id": "2", "type": "request", "method": "skills.invoke", "params": params}
    invoke |= {"meta": {"idempotency_key": filled.key}} if filled.key else {}
    greeting = {"id": "1", "type": "request", "method": "awp.hello", "params": hello}
    return WireRequest(wire, "GET", paths.awp, secret, frames=(greeting, invoke))


def _repeated_inputs(action: Action, given: Mapping[str, object]) -> dict[str, str]:
    """Return the headers that repeat inputs (MCP 2026-07-28, Streamable HTTP, `x-mcp-header`)."""
    marked = {
        name: part.get("x-mcp-header") for name, part in members(action.inputs).items() if isinstance(part, OBJECT)
    }
    found = {}
    for name, header in marked.items():
        if isinstance(header, str) and isinstance(value := given.get(name), (str, int, float)):
            text = ("true" if value else "false") if isinstance(value, bool) else str(value)
            is_plain = text.isascii() and text.isprintable() and text == text.strip()
            encoded = f"=?base64?{base64.b64encode(text.encode()).decode()}?="
            found[f"Mcp-Param-{header}"] = text if is_plain else encoded
    return found


def fields_of(given: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return an input as the fields of a query: lists are repeated, objects are JSON."""
    found = []
    for name, value in given.items():
        for one in value if isinstance(value, list) else [value]:
            found.append((name, one if isinstance(one, str) else json.dumps(one, ensure_ascii=False)))
    return found
