"""One HTTP request to the MCP door: what our calls need of it, and what they add to its answer.

The SDK writes the body of an answer. Headers that gates and routes add stand in the HTTP answer, and again in the
result's `_meta`, where clients can read them that never see an HTTP header.
"""

import asyncio
from collections.abc import Awaitable, Mapping
from contextvars import copy_context
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from awp_publish.invoke import Call, Invoker, Result
from awp_publish.problems import Problem
from awp_publish.serve.exchange import Telling, read_request_id
from awp_publish.serve.problem_json import render_problem
from awp_publish.serve.reply import NO_SNIFFING, Fields, Message, RawHeaders, Receive, Scope, Send, send_reply
from awp_publish.serve.request_body import wait_for_hang_up

EXCHANGE: Final = "awp_publish.mcp_exchange"
"""The member of the scope, as the SDK sees it, under which a request's exchange is found again."""

META: Final = "awp/"
"""Prefix of our keys in `_meta` (specification, Basic/General fields)."""

_NOT_IN_META: Final = (b"set-cookie", b"x-ratelimit-")
"""Beginnings of what a model must not see, or sees under another name."""


class McpExchange:
    """One request and its answer. `refusal` is the problem whose status the HTTP answer takes."""

    def __init__(
        self, telling: Telling, scope: Scope, fields: Fields, receive: Receive, send: Send, cors: RawHeaders
    ) -> None:
        self.scope = scope
        self.fields = fields
        self.gone = partial(wait_for_hang_up, receive)
        self.request_id = read_request_id(fields)
        self.refusal: Problem | None = None
        self._telling = telling
        self._context = copy_context()
        self._send = send
        self._extra: RawHeaders = (*cors, (b"x-request-id", self.request_id.encode()))
        self._added: RawHeaders = ()
        self._run: asyncio.Task[None] | None = None

    # --- The HTTP answer ---

    async def send(self, message: Message) -> None:
        """The SDK's answer, with our headers."""
        if message["type"] == "http.response.start":
            headers = [*message.get("headers", ()), NO_SNIFFING, *self._extra, *self._added]
            status = message["status"] if self.refusal is None else self.refusal.status
            message = {**message, "status": status, "headers": headers}
        await self._send(message)

    async def refuse(self, problem: Problem) -> None:
        """Answer with a problem in place of the SDK: the request is refused before it is a message."""
        told, path = self._telling, quote(self.scope["path"])
        reply = render_problem(problem, told.types, told.recoveries, path, self.request_id, self._extra)
        await send_reply(reply, self._send)

    # --- A call ---

    async def run(self, invoker: Invoker, call: Call) -> Result | None:
        """What a call comes to, None if its caller has gone. The handler may work on: `settle` waits for it."""
        delivered: asyncio.Future[Result | None] = asyncio.get_running_loop().create_future()

        async def deliver(result: Result) -> None:
            if not delivered.done():
                delivered.set_result(result)

        # As at other doors: in the context of the request, which the SDK's own tasks may have left.
        loop = asyncio.get_running_loop()
        self._run = loop.create_task(_await(invoker.run(call, deliver)), context=self._context)
        self._run.add_done_callback(partial(_conclude, delivered))
        try:
            return await delivered
        except asyncio.CancelledError:
            self._run.cancel()
            raise

    async def settle(self) -> None:
        """Wait until the handler has ended, whose answer may have been given before."""
        if self._run is None or self._run.done():
            return
        try:
            await asyncio.wait({self._run})
        except asyncio.CancelledError:
            self._run.cancel()
            await asyncio.wait({self._run})
            raise

    # --- What a result says ---

    def describe(self, problem: Problem) -> bytes:
        """A problem as JSON text (RFC 9457)."""
        told, path = self._telling, quote(self.scope["path"])
        return render_problem(problem, told.types, told.recoveries, path, self.request_id).body

    def meta_of(self, result: Result, call: Call | None = None) -> Mapping[str, object]:
        """The `_meta` of a result. Its headers go into the HTTP answer too."""
        added = call.headers if call is not None else ()
        names = {name for name, _ in added}
        own = _headers_of(result)
        self._added = (*added, *(pair for pair in own if pair[0] not in names))
        shown: dict[str, str] = {}
        for name, value in self._added:
            if not name.startswith(_NOT_IN_META):
                key, text = name.decode("latin-1"), value.decode("latin-1")
                shown[key] = f"{shown[key]}, {text}" if key in shown else text
        meta: dict[str, Any] = {f"{META}requestId": self.request_id}
        return meta | {f"{META}headers": shown} if shown else meta


def _headers_of(result: Result) -> RawHeaders:
    if not isinstance(result, Problem):
        return result.headers
    return tuple((name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in result.headers)


async def _await(work: Awaitable[None]) -> None:
    await work


def _conclude(delivered: "asyncio.Future[Result | None]", run: "asyncio.Task[None]") -> None:
    """Whoever waits for a call that ends without a result learns how it ended."""
    error = None if run.cancelled() else run.exception()
    if delivered.done():
        return
    if error is not None:
        delivered.set_exception(error)
    elif run.cancelled():
        delivered.cancel()
    else:
        delivered.set_result(None)
