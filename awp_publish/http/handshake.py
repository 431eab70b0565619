"""The handshake of a WebSocket: who may connect to a door of the site."""

from typing import Final
from urllib.parse import urlsplit

from awp_publish.http.exchange import Fields, Receive, Reply, Scope, Send, read_fields, send_reply
from awp_publish.http.origins import is_own_page, refuse_foreign_host
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.http.request import read_request_id
from awp_publish.plugin import Context
from awp_publish.problems import CrossSiteCookies, ForeignHost, Problem

PLAIN: Final = (b"content-type", b"text/plain; charset=utf-8")

_FOREIGN: Final = Reply(403, (PLAIN,), b"Pages of this origin may not connect: allow_origins does not list it.\n")


class SocketGate:
    """Completes or refuses the handshakes at one WebSocket path of a site."""

    def __init__(self, door: Context, protocol: str, path: str, renderer: ProblemRenderer) -> None:
        self._door, self._protocol, self._path, self._renderer = door, protocol, path, renderer
        self._allowed = frozenset(door.admission.allow_origins)

    async def accept(self, scope: Scope, receive: Receive, send: Send, subprotocols: tuple[str, ...] = ()) -> bool:
        """Complete the handshake (RFC 6455 section 4), or refuse it."""
        await receive()
        denial = self._deny(read_fields(scope["headers"]))
        if denial is None:
            offered = scope.get("subprotocols") or ()
            chosen = next((name for name in offered if name in subprotocols), None)
            await send({"type": "websocket.accept", "subprotocol": chosen})
            return True
        await self.refuse(denial, scope, send)
        return False

    async def refuse(self, denial: Reply, scope: Scope, send: Send) -> None:
        """Refuse a handshake, with an HTTP response if the server supports one."""
        if "websocket.http.response" in scope.get("extensions", {}):
            headers = list(denial.headers)
            await send({"type": "websocket.http.response.start", "status": denial.status, "headers": headers})
            await send({"type": "websocket.http.response.body", "body": denial.body})
        else:
            await send({"type": "websocket.close", "code": 1008, "reason": ""})

    async def refuse_problem(self, problem: Problem, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a handshake with a problem, which is recorded."""
        await receive()
        request_id = read_request_id(read_fields(scope["headers"]))
        self._door.invoker.note_refusal(self._protocol, request_id, problem)
        await self.refuse(self._renderer.reply(problem, self._path, request_id), scope, send)

    def _deny(self, fields: Fields) -> Reply | None:
        """Return the refusal if a browser's page may not connect, otherwise None.

        CORS does not apply to WebSockets: a browser opens one for any page, with cookies. So the Origin has to be one
        of the site's own or of `allow_origins`, and the Host one of the site's.
        """
        own_origins = self._door.admission.own_origins
        try:
            refuse_foreign_host(fields, own_origins)
            origin = fields.get(b"origin")
            if origin is None or is_own_page(fields, own_origins):
                return None
            if b"cookie" in fields:
                raise CrossSiteCookies("The connection has cookies, but it comes from a page of another site.")
        except (ForeignHost, CrossSiteCookies) as problem:
            request_id = read_request_id(fields)
            self._door.invoker.note_refusal(self._protocol, request_id, problem)
            return self._renderer.reply(problem, self._path, request_id)
        return None if self._allowed & {"*", origin.decode("latin-1").strip().lower()} else _FOREIGN


def own_urls(door: Context) -> tuple[str, ...]:
    """Return the site's public URLs with the same path prefix as the door's catalog."""
    return tuple(url for url in door.settings.urls if urlsplit(url).path == door.catalog.prefix)


async def require_upgrade(words: bytes, scope: Scope, send: Send) -> None:
    """Answer a request that is no handshake with 426, and both headers that it needs (RFC 9110 section 7.8).

    HTTP/2 has neither of them (RFC 9113 section 8.2.2).
    """
    upgrade = ((b"connection", b"Upgrade"), (b"upgrade", b"websocket"))
    is_http_1 = str(scope.get("http_version", "1.1")).startswith("1")
    await send_reply(Reply(426, (PLAIN, *(upgrade if is_http_1 else ())), words), send)
