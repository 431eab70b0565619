"""Reaching the route behind an action: one in-process ASGI request through the wrapped application.

The request is derived from the caller's own, so that the application's dependencies, authentication and inner
middleware hold, and `state`, `session` and `user` set by outer middleware carry over.
"""

import logging
from collections.abc import Mapping
from typing import Final

from awp_publish.invoke import Answered, Call, Result
from awp_publish.model import Catalog
from awp_publish.request import Encoder, Request
from awp_publish.serve.answer import read_answer
from awp_publish.serve.reply import AsgiApp, Headers, Message, Scope, mount_of

logger: Final = logging.getLogger("awp_publish.calls")

NOT_CARRIED: Final = frozenset(
    {
        b"accept",
        b"accept-encoding",
        b"connection",
        b"content-encoding",
        b"content-length",
        b"content-type",
        b"expect",
        b"if-match",
        b"if-modified-since",
        b"if-none-match",
        b"if-range",
        b"if-unmodified-since",
        b"keep-alive",
        b"range",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""Headers that speak about the caller's own body, connection or cache, not about the call."""

_ACCEPT_JSON: Final = (b"accept", b"application/json")


class RouteReach:
    """Sends calls to the routes of one ASGI application."""

    def __init__(self, app: AsgiApp, catalog: Catalog) -> None:
        self._app = app
        self._encoders = {action.id: Encoder(action.target) for action in catalog.actions if action.target}
        self._codes = catalog.site.errors

    def check(self, call: Call) -> None:
        """Refuse at once what could not be sent to the route later. Raises InvalidInput."""
        if call.action.target is not None:
            self._encoders[call.action.id](call.input)

    async def __call__(self, call: Call, answered: Answered) -> Result:
        scope: Scope = call.context  # type: ignore[assignment]
        request = self._encoders[call.action.id](call.input)
        method = call.action.target.method if call.action.target else "POST"
        exchange = _Exchange(call, request, self._codes, answered)
        await self._app(_derive_scope(scope, method, request), exchange.receive, exchange.send)
        return exchange.conclude()


class _Exchange:
    """The two ends of one in-process request: hands out its body, collects its answer."""

    __slots__ = ("_answered", "_body", "_call", "_codes", "_headers", "_parts", "_result", "_status")

    def __init__(self, call: Call, request: Request, codes: Mapping[str, str], answered: Answered) -> None:
        self._call = call
        self._body: bytes | None = request.body
        self._codes = codes
        self._answered = answered
        self._status = 0
        self._headers: Headers = ()
        self._parts: list[bytes] = []
        self._result: Result | None = None

    async def receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        if self._call.gone is not None:
            await self._call.gone()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = message.get("headers", ())
        elif message["type"] == "http.response.body":
            self._parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                self._result = self._read()
                self._answered(self._result)

    def conclude(self) -> Result:
        if not 200 <= self._status < 500:
            logger.error(
                "action %s: its route answered %d (request_id=%s)",
                self._call.action.id,
                self._status,
                self._call.request_id,
            )
        return self._result or self._read()

    def _read(self) -> Result:
        return read_answer(self._call.action, self._status, self._headers, b"".join(self._parts), self._codes)


def _derive_scope(outer: Scope, method: str, request: Request) -> Scope:
    mounted = mount_of(outer) if outer.get("root_path") else ""
    headers = [pair for pair in outer["headers"] if pair[0] not in NOT_CARRIED]
    if request.headers or request.cookies:
        headers = _with_own(headers, request)
    headers.append(_ACCEPT_JSON)
    return {
        **outer,
        "method": method,
        "path": mounted + request.path,
        "raw_path": mounted.encode("utf-8") + request.raw_path,
        "query_string": request.query,
        "headers": headers,
        "extensions": {},  # the server's shortcuts for sending files would go round us
    }


def _with_own(headers: list[tuple[bytes, bytes]], request: Request) -> list[tuple[bytes, bytes]]:
    """The input's own headers replace the caller's of the same name; its cookies join them."""
    own = {name for name, _ in request.headers}
    kept = [pair for pair in headers if pair[0] not in own]
    if request.cookies:
        cookies = [value.decode("latin-1") for name, value in kept if name == b"cookie"] + list(request.cookies)
        kept = [pair for pair in kept if pair[0] != b"cookie"]
        kept.append((b"cookie", "; ".join(cookies).encode("latin-1")))
    return kept + list(request.headers)
