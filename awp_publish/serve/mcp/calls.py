"""What surrounds a call at the MCP door: its HTTP exchange, the question to a person, and its progress."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final, TypeAlias
from urllib.parse import quote

import mcp_types as types
import orjson
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request

from awp_publish.invoke import Invoker
from awp_publish.jobs import Job, Jobs, Progress
from awp_publish.jobs.worker import open_report
from awp_publish.policy.call import Call, Outcome, Result
from awp_publish.problems import (
    ConfirmationExpired,
    ConfirmationRequired,
    InvalidEnvelope,
    PrerequisiteRequired,
    Problem,
    code_of,
)
from awp_publish.serve.endpoint import Telling, read_request_id, render_problem
from awp_publish.serve.http import (
    NO_SNIFFING,
    Fields,
    Message,
    RawHeaders,
    Receive,
    Reply,
    Scope,
    Send,
    send_reply,
    wait_for_hang_up,
)
from awp_publish.serve.jobs import describe_job
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.streamable_http import check_accept_headers

# --- Confirmation by asking the person at the client (specification ---
# From 2026-07-28 on a server asks by answering a call with `input_required`: the client asks its user, then sends the
# call again with the reply and with `requestState`, in which the token travels that the question was asked with. Up
# to 2025-11-25 a server has to send a request of its own, for which a stateless endpoint has no way back; there, and
# where a client cannot ask, the problem carries the token.

QUESTION: Final = "confirmation"
"""The name of our one question among the `inputRequests`."""

ASKED: Final = (ConfirmationRequired, ConfirmationExpired)
"""The refusals after which a person is asked. Whoever brings a wrong or spent token is told so."""

NO: Final = "Do not repeat the call unless your user asks for it anew."

_NO_FIELDS: Final[Mapping[str, object]] = {"type": "object", "properties": {}}
"""The form of a question that is answered with yes or no alone."""


def ask_person(problem: Problem, context: ServerRequestContext[Any, Any]) -> dict[str, Any] | None:
    """The result that has the client ask its user; None if it cannot, or if an agreement is not all that is lacking."""
    question = problem.members.get("confirmation")
    if not isinstance(problem, ASKED) or not isinstance(question, dict) or not _can_ask(context):
        return None
    form = {"mode": "form", "message": question["summary"], "requestedSchema": _NO_FIELDS}
    return {
        "resultType": "input_required",
        "inputRequests": {QUESTION: {"method": "elicitation/create", "params": form}},
        "requestState": question["token"],
    }


def _can_ask(context: ServerRequestContext[Any, Any]) -> bool:
    """A client that names neither form nor url can show forms."""
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return False
    capabilities = context.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def read_reply(call: Call, params: Mapping[str, Any]) -> None:
    """Put the confirmation on a call that was sent again with its user's reply.

    Raises ConfirmationRequired if they did not agree, and InvalidEnvelope for a reply to something else.
    """
    if params.get("inputResponses") is None or params.get("requestState") is None:
        return
    sent = types.CallToolRequestParams.model_validate(params, by_name=False)
    reply = (sent.input_responses or {}).get(QUESTION)
    if not isinstance(reply, types.ElicitResult):
        raise InvalidEnvelope(f"inputResponses: has no reply to the question {QUESTION}.")
    if reply.action != "accept":
        raise ConfirmationRequired("The person who was asked did not agree.", recovery=NO)
    call.confirmation = sent.request_state


# --- One HTTP request to the MCP door: what our calls need of it, and what they add to its answer ---
# The SDK writes the body of an answer. Headers that gates and routes add stand in the HTTP answer, and again in the
# result's `_meta`, where clients can read them that never see an HTTP header.

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


# --- Progress ---
# Such a call is answered with a stream: notifications of what the handler reports, then the result. A background
# action's job is followed to its end, for as long as the action may take; a job that has not ended by then is
# answered as it is answered to everybody else, with the address to poll.

PAUSE: Final = 0.1
"""Seconds between two notifications, at least: receivers of many may drop the connection."""

FIRST_LOOK: Final = 0.05
LONGEST_LOOK: Final = 2.0
"""Seconds between two looks at a job."""

Context: TypeAlias = ServerRequestContext[Any, Any]
Carry: TypeAlias = Callable[[], Awaitable[Result | None]]


def wants_progress(message: Mapping[str, object], scope: Scope) -> bool:
    """Whether a message is a call that is to be told of, in a stream that its caller takes."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    if message.get("method") != "tools/call" or isinstance(token, bool) or not isinstance(token, (str, int)):
        return False
    return check_accept_headers(Request(scope)) == (True, True)


class Teller:
    """Notifies one caller. The progress of notifications has to grow, so what does not is not told."""

    def __init__(self, session: ServerSession) -> None:
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._heard = asyncio.Event()
        self._latest: Progress | None = None
        self._told = -1.0

    def note(self, progress: Progress) -> None:
        """Take note of progress, in any thread."""
        with suppress(RuntimeError):  # the loop has ended, and the call with it
            self._loop.call_soon_threadsafe(self._take, progress)

    def _take(self, progress: Progress) -> None:
        self._latest = progress
        self._heard.set()

    async def tell(self) -> None:
        """Notify of what was noted last, if it is more than the caller knows."""
        latest = self._latest
        if latest is not None and latest.fraction > self._told:
            self._told = latest.fraction
            await self._session.report_progress(latest.fraction, 1.0, latest.message or None)

    async def keep_telling(self) -> None:
        """Notify again and again."""
        while True:
            await self._heard.wait()
            self._heard.clear()
            await self.tell()
            await asyncio.sleep(PAUSE)


@asynccontextmanager
async def _telling(session: ServerSession) -> AsyncIterator[Teller]:
    """A teller of all that is reported inside."""
    teller = Teller(session)
    open_report(teller.note)
    task = asyncio.create_task(teller.keep_telling())
    try:
        yield teller
        await asyncio.sleep(0)  # what another thread noted last comes in
    finally:
        task.cancel()
        await asyncio.wait({task})
    await teller.tell()


class ProgressCalls:
    """Carries out calls whose progress is told."""

    def __init__(self, jobs: Jobs | None) -> None:
        self._jobs = jobs

    async def carry(self, context: Context, exchange: McpExchange, call: Call, carry: Carry) -> Result | None:
        """What a call comes to, and a background call's job; None if its caller has gone."""
        async with _telling(context.session) as teller:
            result = await carry()
            if (
                exchange.is_answered
                or self._jobs is None
                or not call.action.is_background
                or not isinstance(result, Outcome)
            ):
                return result
            return await self._follow(self._jobs, context, exchange, call, result, teller)

    async def _follow(
        self, jobs: Jobs, context: Context, exchange: McpExchange, call: Call, accepted: Outcome, teller: Teller
    ) -> Result | None:
        answer = orjson.loads(accepted.body)
        following = asyncio.create_task(_end_of(jobs, answer["job_id"], call.caller_id, teller.note))
        leaving = asyncio.create_task(exchange.gone())
        try:
            await asyncio.wait({following, leaving}, timeout=call.action.timeout, return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                return _answer_of(following.result(), accepted, answer["poll_endpoint"])
            if not leaving.done():
                return accepted
            await self._heed_leaving(jobs, context, call, answer["job_id"])
            return None
        finally:
            for task in (following, leaving):
                task.cancel()
            await asyncio.wait({following, leaving})

    async def _heed_leaving(self, jobs: Jobs, context: Context, call: Call, job_id: str) -> None:
        """Closing the stream cancels since 2026-07-28, and did not before. A key says that the caller comes back."""
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS and call.idempotency_key is None:
            with suppress(Problem):
                await jobs.cancel(job_id, call.caller_id)


async def _end_of(jobs: Jobs, job_id: str, caller: str, note: Callable[[Progress], None]) -> Job | None:
    """The job once it has ended; None if it is gone, or its store is away."""
    pause = FIRST_LOOK
    with suppress(Problem):
        while not (job := await jobs.show(job_id, caller)).has_ended:
            if job.progress is not None:
                note(job.progress)
            await asyncio.sleep(pause)
            pause = min(1.5 * pause, LONGEST_LOOK)
        return job
    return None


def _answer_of(job: Job | None, accepted: Outcome, endpoint: str) -> Result:
    """What a poll would answer; a job that has failed is told as the problem that it met."""
    if job is None:
        return accepted
    if job.problem is not None:
        return job.problem
    described = orjson.dumps(describe_job(job, endpoint))
    return Outcome(described, None, 200, accepted.headers)
