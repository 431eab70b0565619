"""One HTTP request to a door: its id and its answer."""

import os
import re
import secrets
from itertools import count
from math import inf
from typing import Final

from awp_publish.calls.call import Call, Content, Outcome, Result
from awp_publish.http.body import wait_for_disconnect
from awp_publish.http.cors import Cors
from awp_publish.http.exchange import (
    NO_SNIFFING,
    Fields,
    RawHeaders,
    Receive,
    Reply,
    Scope,
    Send,
    content_length,
    read_fields,
    send_reply,
    without_content,
)
from awp_publish.http.origins import BROWSER_FIELDS
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.http.signed import note_signature
from awp_publish.schema import media

STATIC_HEADERS: Final[RawHeaders] = (
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    NO_SNIFFING,
)

_RARE_FIELDS: Final = BROWSER_FIELDS | {b"x-request-id", b"signature-input", b"dpop"}
"""Headers that most calls lack. One set operation finds out whether any of them is present."""

_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,128}")

_process = secrets.token_hex(12)

_numbers: Final = count(10_000_000)
"""Request ids are a random process id and a counter: unique across processes, without a system call per request."""


def _after_fork() -> None:
    """Give a forked worker its own process id for request ids."""
    global _process
    _process = secrets.token_hex(12)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class DoorRequest:
    """One request to a door, and its answer. `call` is set once the request has become a call."""

    __slots__ = ("_cors", "_send", "call", "fields", "is_of_browser", "receive", "renderer", "request_id", "scope")

    def __init__(self, renderer: ProblemRenderer, cors: Cors, scope: Scope, receive: Receive, send: Send) -> None:
        self.renderer = renderer
        self.scope = scope
        self.receive = receive
        self._send = send
        headers = scope["headers"]
        fields: Fields = dict(headers)
        if len(fields) != len(headers):
            fields = read_fields(headers)
        self.fields = fields
        self.call: Call | None = None
        self.is_of_browser = False
        self._cors: RawHeaders = ()
        if _RARE_FIELDS.isdisjoint(fields):
            self.request_id = f"{_process}{next(_numbers)}"
        else:
            self.request_id = read_request_id(fields)
            self.is_of_browser = not BROWSER_FIELDS.isdisjoint(fields)
            if b"signature-input" in fields or b"dpop" in fields:
                self.receive = note_signature(scope, fields, receive)
        if not cors.is_closed:
            self._cors = cors.headers(fields)

    def drop_content(self) -> None:
        """Answer without content, as for HEAD."""
        self._send = without_content(self._send)

    async def disconnected(self) -> None:
        """Return when the client has disconnected. Call this after the body was read."""
        await wait_for_disconnect(self.receive)

    async def deliver(self, result: Result) -> None:
        added: RawHeaders = ()
        if (call := self.call) is not None:  # break the reference cycle between the request and its call
            added, self.call = call.headers, None
        request_id = (b"x-request-id", self.request_id.encode())
        if not isinstance(result, Outcome):
            if added:  # headers of the gates replace the route's own
                names = {name.decode("ascii") for name, _ in added}
                result.headers = tuple(pair for pair in result.headers if pair[0].lower() not in names)
            extra = (*added, *self._cors, request_id)
            reply = self.renderer.reply(result, self.renderer.instance_of(self.scope), self.request_id, extra)
            await send_reply(reply, self._send)
            return
        static, body, carried = STATIC_HEADERS, result.body, result.headers
        if result.content is not None:
            static, body = self.write(result, result.content)
        headers = [*static, content_length(len(body)), *self._cors, request_id]
        if added:
            headers += added
            if carried:
                replaced = {name for name, _ in added}
                carried = tuple(pair for pair in carried if pair[0] not in replaced)
        if carried:
            headers += carried
        send = self._send
        await send({"type": "http.response.start", "status": result.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def write(self, outcome: Outcome, content: Content) -> tuple[RawHeaders, bytes]:
        """Return headers and body of an answer that is not JSON itself. At most doors, JSON represents it."""
        return STATIC_HEADERS, outcome.body

    async def reply(self, reply: Reply) -> None:
        await send_reply(reply, self._send)


class PlainRequest(DoorRequest):
    """A request that is answered with the route's own body and media type, as the file that it may be."""

    __slots__ = ("_streams",)

    def __init__(self, renderer: ProblemRenderer, cors: Cors, scope: Scope, receive: Receive, send: Send) -> None:
        super().__init__(renderer, cors, scope, receive, send)
        self._streams: bool | None = None

    async def take_part(self, head: Outcome, part: bytes) -> bool:
        """Pass a part of the answer on as it comes, unless the whole of it is needed first."""
        call = self.call
        if self._streams is None:
            # The cookies of a session that we keep are changed, and its new id is handed out, once the call has ended.
            self._streams = call is not None and not (call.run.needs_whole or call.session_id)
            if self._streams and call is not None:
                call.run.deadline = inf  # it has answered in time
                await self._begin(head, call)
        if self._streams:
            await self._send({"type": "http.response.body", "body": part, "more_body": True})
        return self._streams

    async def _begin(self, head: Outcome, call: Call) -> None:
        static, _ = self.write(head, head.content or Content("", ""))
        replaced = {name for name, _ in call.headers}
        carried = (pair for pair in head.headers if pair[0] not in replaced)
        headers = [*static, *self._cors, (b"x-request-id", self.request_id.encode()), *call.headers, *carried]
        await self._send({"type": "http.response.start", "status": head.status, "headers": headers})

    async def deliver(self, result: Result) -> None:
        """Answer the request, or end its answer. One that is not whole has no end, by which its caller knows."""
        if not self._streams:
            await super().deliver(result)
        elif isinstance(result, Outcome):
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        self.call = None

    def write(self, outcome: Outcome, content: Content) -> tuple[RawHeaders, bytes]:
        """Return the route's media type, its Content-Disposition and its body."""
        headers: RawHeaders = ((b"content-type", content.media_type.encode("latin-1")), *STATIC_HEADERS[1:])
        if content.disposition:
            headers += ((b"content-disposition", content.disposition.encode("latin-1")),)
        is_json = media.is_json(media.media_type_of(content.media_type.encode("latin-1")))
        return headers, outcome.body if is_json else content.bytes_of(outcome.output)


def read_request_id(fields: Fields) -> str:
    """Return the caller's own request id if it is safe in logs and headers, otherwise a new one."""
    request_id = fields.get(b"x-request-id")
    if request_id is not None and _REQUEST_ID.fullmatch(request_id):
        return request_id.decode("ascii")
    return f"{_process}{next(_numbers)}"
