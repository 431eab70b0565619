"""One HTTP request to the MCP door: what our calls need of it, and what they add to its answer.

The SDK writes the body of an answer. Headers that gates and routes add stand in the HTTP answer, and again in the
result's `_meta`, where clients can read them that never see an HTTP header.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from awp_publish.invoke import Invoker
from awp_publish.policy.call import Call, Result
from awp_publish.problems import ConfirmationRequired, InvalidEnvelope, PrerequisiteRequired, Problem, code_of
from awp_publish.serve.exchange import Telling, read_request_id
from awp_publish.serve.problem_json import render_problem
from awp_publish.serve.reply import NO_SNIFFING, Fields, Message, RawHeaders, Receive, Reply, Scope, Send, send_reply
from awp_publish.serve.request_body import wait_for_hang_up

EXCHANGE: Final = "awp_publish.mcp_exchange"
"""The member of the scope, as the SDK sees it, under which a request's exchange is found again."""

META: Final = "awp/"
"""Prefix of our keys in `_meta` (specification, Basic/General fields)."""

RECOVERIES: Final[Mapping[str, str]] = {
    code_of(ConfirmationRequired.slug): (
        "Show confirmation.summary to your user. Only if they agree, send the same call again with confirmation.token "
        f"as {META}confirmation in the request's _meta."
    ),
    code_of(PrerequisiteRequired.slug): (
        "Call the tools that missing names, then retry. The request's _meta has to list in "
        f"{META}receipts the awp-receipt that {META}headers of each answer's _meta has."
    ),
    code_of(InvalidEnvelope.slug): (
        f"In the request's _meta send {META}confirmation and {META}idempotencyKey as strings, {META}receipts as a list "
        "of strings."
    ),
}
"""What callers of this door are told to do, where the way to do it is its own."""

Addresses: TypeAlias = tuple[bytes, bytes]
"""Where the site's metadata is (RFC 9728), which gates name in challenges, and where that of this endpoint is."""

CHALLENGE: Final = b"www-authenticate"
_NO_STORE: Final = (b"cache-control", b"no-store")
_JSON: Final = (b"content-type", b"application/json")
_NOT_IN_META: Final = (b"set-cookie", b"x-ratelimit-")
"""Beginnings of what a model must not see, or sees under another name."""


class McpExchange:
    """One request and its answer.

    `refusal` is the problem whose status the HTTP answer takes, `is_streamed` whether that answer may be a stream,
    `is_answered` whether it was given, so that what the SDK makes of the request goes nowhere.
    """

    __slots__ = (
        "_added",
        "_addresses",
        "_ended",
        "_extra",
        "_has_begun",
        "_send",
        "_start",
        "_telling",
        "fields",
        "gone",
        "is_answered",
        "is_streamed",
        "refusal",
        "request_id",
        "scope",
    )

    def __init__(
        self,
        telling: Telling,
        addresses: Addresses | None,
        scope: Scope,
        fields: Fields,
        receive: Receive,
        send: Send,
        cors: RawHeaders,
    ) -> None:
        self.scope = scope
        self.fields = fields
        self.gone = partial(wait_for_hang_up, receive)
        self.request_id = read_request_id(fields)
        self.refusal: Problem | None = None
        self._telling = telling
        self._addresses = addresses
        self._send = send
        self._extra: RawHeaders = (*cors, (b"x-request-id", self.request_id.encode()))
        self._added: RawHeaders = ()
        self._ended: asyncio.Event | None = None
        self._start: Message | None = None
        self._has_begun = False
        self.is_answered = False
        self.is_streamed = False

    # --- The HTTP answer ---

    async def send(self, message: Message) -> None:
        """An answer, with our headers; dropped if one was given before.

        Its start waits for the first of its body: older streams begin before it is known whether the call is refused.
        """
        if self.is_answered:
            return
        if message["type"] == "http.response.start":
            self._start = message
            return
        if self._start is not None:
            start, self._start = self._start, None
            headers = [*start.get("headers", ()), NO_SNIFFING, *self._extra, *self._added]
            if all(name != b"cache-control" for name, _ in headers):
                headers.append(_NO_STORE)
            status = start["status"] if self.refusal is None else self.refusal.status
            await self._send({**start, "status": status, "headers": headers})
            self._has_begun = True
        await self._send(message)

    async def refuse(self, problem: Problem) -> None:
        """Answer with a problem in place of the SDK: the request is refused before it is a message."""
        told, path = self._telling, quote(self.scope["path"])
        reply = render_problem(problem, told.types, told.recoveries, path, self.request_id, self._extra)
        await send_reply(reply, self._send)

    # --- A call ---

    async def run(self, invoker: Invoker, call: Call, answer: Callable[[Result], bytes]) -> Result | None:
        """What a call comes to, None if its caller has gone.

        The message that `answer` makes of the result is sent from here, as it is, while the SDK still waits for the
        handler: one that works on after its answer, or does not heed its deadline, must not keep its caller waiting.
        Only into a stream the SDK writes the results that it gets.
        """
        own, kept = asyncio.current_task(), list[Result]()
        self._ended = asyncio.Event()

        async def deliver(result: Result) -> None:
            kept.append(result)
            if not self.is_streamed or asyncio.current_task() is not own:
                await self._answer(answer(result))

        try:
            await invoker.run(call, deliver)
        finally:
            self._ended.set()
        return kept[0] if kept else None

    async def _answer(self, body: bytes) -> None:
        if self._has_begun:
            await self._send({"type": "http.response.body", "body": b"event: message\r\ndata: " + body + b"\r\n\r\n"})
        else:
            headers = (_JSON, (b"content-length", b"%d" % len(body)))
            await send_reply(Reply(200, headers, body), self.send)
        self.is_answered = True

    async def settle(self) -> None:
        """Wait until the handler has ended, which in older revisions runs in a task of the SDK's."""
        if self._ended is not None:
            await self._ended.wait()

    # --- What a result says ---

    def describe(self, problem: Problem) -> bytes:
        """A problem as JSON text (RFC 9457)."""
        told, path = self._telling, quote(self.scope["path"])
        return render_problem(problem, told.types, told.recoveries, path, self.request_id).body

    def meta_of(self, result: Result, call: Call | None = None) -> Mapping[str, object]:
        """The `_meta` of a result. Its headers go into the HTTP answer too."""
        added = call.headers if call is not None else ()
        names = {name for name, _ in added}
        own = self._headers_of(result)
        self._added = (*added, *(pair for pair in own if pair[0] not in names))
        shown: dict[str, str] = {}
        for name, value in self._added:
            if not name.startswith(_NOT_IN_META):
                key, text = name.decode("latin-1"), value.decode("latin-1")
                shown[key] = f"{shown[key]}, {text}" if key in shown else text
        meta: dict[str, Any] = {f"{META}requestId": self.request_id}
        return meta | {f"{META}headers": shown} if shown else meta

    def _headers_of(self, result: Result) -> RawHeaders:
        if not isinstance(result, Problem):
            return result.headers
        encoded = (
            (name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in result.headers
        )
        return tuple((name, self._challenge(value) if name == CHALLENGE else value) for name, value in encoded)

    def _challenge(self, value: bytes) -> bytes:
        """MCP clients are sent to the metadata of the endpoint that they call, not to that of the site."""
        return value if self._addresses is None else value.replace(*self._addresses)
