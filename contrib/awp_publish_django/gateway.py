"""Between Django's requests and responses and the core's ASGI scopes, replies and messages."""

import asyncio
from urllib.parse import quote

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest

from awp_publish.http.exchange import HOLDS_THREAD, Message, Scope
from awp_publish.model import SAFE_IN_PATH


def scope_of(request: HttpRequest) -> Scope:
    """The ASGI scope of a request, as a server would have made it."""
    scope: Scope = dict(request.scope) if isinstance(request, ASGIRequest) else _scope_of_wsgi(request)
    meta = request.META
    address = meta.get("REMOTE_ADDR")
    scope.update(
        path=request.path,
        root_path=script_name_of(request),
        query_string=str(meta.get("QUERY_STRING", "")).encode("latin-1", "replace"),
        scheme=request.scheme,  # that of the client, if the project trusts its proxy to say so
        client=(address, int(meta.get("REMOTE_PORT") or 0)) if address else None,
    )
    return scope


def script_name_of(request: HttpRequest) -> str:
    """The prefix below which the project is mounted: "" or "/shop"."""
    path, below = request.path, request.path_info
    return path.removesuffix(below) if path.endswith(below) else ""


def _scope_of_wsgi(request: HttpRequest) -> Scope:
    meta = request.META
    pairs = ((name.lower(), str(value)) for name, value in request.headers.items() if value != "")
    fields = {"host": host_of(request), **dict(pairs)}
    version = str(meta.get("SERVER_PROTOCOL", "HTTP/1.1")).removeprefix("HTTP/")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": version,
        "method": request.method or "GET",
        "raw_path": quote(request.path, safe=SAFE_IN_PATH.replace("%", "")).encode(),  # PEP 3333: it is decoded
        "headers": [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in fields.items()],
        "server": (meta.get("SERVER_NAME", ""), int(meta.get("SERVER_PORT") or 0)),
        "state": {},
        "extensions": {},
        HOLDS_THREAD: True,
    }


def host_of(request: HttpRequest) -> str:
    """The requested host; an HTTP/1.0 request need not name one (PEP 3333, URL Reconstruction)."""
    return str(request.META.get("HTTP_HOST") or request.META.get("SERVER_NAME", ""))


def read_body(request: HttpRequest, most: int) -> bytes:
    """The body, cut one byte after `most`: that byte shows the core that it is too large."""
    return request.read(most + 1)


class Sent:
    """A caller's ASGI messages: the body, which is here already, and later the disconnect."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self._disconnected = asyncio.Event()

    async def receive(self) -> Message:
        """The next message, as from an ASGI server."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._disconnected.wait()
        return {"type": "http.disconnect"}

    def disconnect(self) -> None:
        """The caller waits no longer. Called on the loop."""
        self._disconnected.set()
