"""A request of a door, for people to read and to copy."""

import shlex
from typing import Final
from urllib.parse import urlsplit

import orjson

from awp_publish.calls.wire import WireRequest
from awp_publish.plugins.overview.markup import pretty

_MASK: Final = "***"
_SHOWN_HEADERS: Final = ("content-type", "accept", "idempotency-key", "mcp-", "a2a-", "awp-")
"""Prefixes of headers whose values are displayed; all others are treated as credentials."""


def request_text(request: WireRequest, origin: str) -> str:
    """Return a request for display, without credentials."""
    parts = urlsplit(origin)
    lines = [f"{request.method} {parts.path}{request.path} HTTP/1.1", f"Host: {parts.netloc}"]
    lines += [f"{name}: {_masked(name, value)}" for name, value in request.headers]
    if request.frames:
        lines[1:] = ["Upgrade: websocket", *lines[1:]]
        return "\n".join(lines) + "".join(f"\n\n> {pretty(frame)}" for frame in request.frames)
    return "\n".join(lines) + ("" if request.body is None else f"\n\n{pretty(request.body)}")


def curl_command(request: WireRequest, origin: str) -> str:
    """Return a request as a curl command, without credentials."""
    words = ["curl", "-i"] + (["-X", request.method] if request.method not in ("GET", "POST") else [])
    lines = [shlex.join([*words, origin + request.path])]
    lines += [f"  -H {shlex.quote(f'{name}: {_masked(name, value)}')}" for name, value in request.headers]
    if request.body is not None:
        lines.append(f"  -d {shlex.quote(orjson.dumps(request.body).decode())}")
    return " \\\n".join(lines)


def _masked(name: str, value: str) -> str:
    """Return a header's value with credentials masked, since pages end up in screenshots."""
    if name.lower() == "authorization":
        return f"{value.partition(' ')[0]} {_MASK}" if " " in value else _MASK
    return value if name.lower().startswith(_SHOWN_HEADERS) else _MASK
