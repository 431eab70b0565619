"""A call sent through the whole application in this process, and how long its parts took."""

import asyncio
import base64
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import SplitResult

import orjson

from awp_publish.calls.call import Call, Deliver, Result
from awp_publish.calls.hooks import Handle
from awp_publish.calls.observe import Carry
from awp_publish.calls.wire import Answer, CallFailed, NotYet, WireRequest, WireResponse
from awp_publish.http.exchange import AsgiApp, Scope
from awp_publish.http.page_request import FORWARDED, PageExchange, PageRequest
from awp_publish.http.talk import TalkFailed, talk
from awp_publish.plugins.overview.answers import ReceivedAnswer

logger: Final = logging.getLogger("awp_publish.overview")

MAX_ANSWER_BYTES: Final = 1_048_576


Decode: TypeAlias = Callable[[WireResponse], Answer | NotYet]
"""Reads the answer in a response. Raises CallFailed."""


async def send_request(
    request: WireRequest, decode: Decode, origin: SplitResult, app: AsgiApp, outer: Scope, seconds: float
) -> ReceivedAnswer:
    """Send a request through the whole application, with the cookies and the address of the visitor of `outer`."""
    forwarded = tuple(pair for pair in outer["headers"] if pair[0] in FORWARDED or pair[0] == b"cookie")
    own = (
        (name.lower().encode("latin-1", "replace"), value.encode("latin-1", "replace"))
        for name, value in request.headers
    )
    path, _, query = request.path.partition("?")
    headers = ((b"host", origin.netloc.encode()), *forwarded, *own)
    inside = PageRequest(
        origin, path.encode(), query.encode(), headers, request.method, request.content(), outer.get("state", {})
    )
    answer_headers: tuple[tuple[str, str], ...] = ()
    started, status, body = time.perf_counter(), 0, b""
    scope, failed = inside.scope(outer), ""
    exchange = PageExchange(inside.body, MAX_ANSWER_BYTES)
    steps = Steps()
    timing = _STEPS.set(steps)
    try:
        async with asyncio.timeout(seconds):
            if request.frames:
                answers = await talk(app, inside.websocket(outer), request.frames)
                status, body = 101, orjson.dumps(answers[-1])
            else:
                await app(scope, exchange.receive, exchange.send)
    except TimeoutError:
        failed = f"There was no answer within {seconds:g} seconds."
    except TalkFailed as refused:
        status, body, failed = refused.status, refused.body, "" if refused.status else str(refused)
    except Exception as error:
        logger.exception("a call from the overview failed at %s", request.path)
        failed = f"The application failed with {type(error).__name__}; its log has the details."
    finally:
        _STEPS.reset(timing)
    if exchange.answered.done():  # a failure after the answer does not matter
        answer, failed = exchange.collected(), ""
        status, body = answer.status, answer.body
        answer_headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.headers)
        # The application's session is the visitor's own: copy the changes that the call has made to it.
        now, before = scope.get("session"), outer.get("session")
        if isinstance(now, dict) and isinstance(before, dict):
            for name in before.keys() - now.keys():
                del before[name]
            for name, value in now.items():  # one by one, because a session may track its changes
                if name not in before or before[name] != value:
                    before[name] = value
    output: object = None
    problem: Mapping[str, Any] | None = {"detail": failed} if failed else None
    if problem is None:
        try:
            output = decode(WireResponse(status, {name.lower(): value for name, value in answer_headers}, body)).output
        except CallFailed as refused:
            problem = refused.problem
    if isinstance(output, bytes):
        output = base64.b64encode(output).decode()  # as at the JSON doors
    passed = (time.perf_counter() - started) * 1000
    text = body.decode("utf-8", "replace")
    return ReceivedAnswer(status, answer_headers, text, passed, steps.words(passed), output, problem)


_STEPS: Final[ContextVar["Steps | None"]] = ContextVar("awp_publish_steps", default=None)
"""The timing of a call that the overview sends, None for all other calls."""


@dataclass(slots=True)
class Steps:
    """The times at which a call and its handler began and ended, in seconds of perf_counter; 0 if they did not."""

    begun: float = 0.0
    handled: float = 0.0
    answered: float = 0.0
    ended: float = 0.0

    def words(self, milliseconds: float) -> str:
        """Describe how the time of a call was spent."""
        if not self.ended:
            return ""
        gates = (self.handled or self.ended) - self.begun
        parts = {"gates": gates}
        if self.handled:
            parts |= {"handler": self.answered - self.handled, "validation": self.ended - self.answered}
        parts["door"] = milliseconds / 1000 - (self.ended - self.begun)
        return ", ".join(f"{name} {max(0.0, seconds) * 1000:.1f} ms" for name, seconds in parts.items())


def time_call(carry: Carry) -> Carry:
    """Wrap the path of calls, to record when the overview's own calls begin and are answered."""

    def carry_timed(call: Call, deliver: Deliver) -> Awaitable[None]:
        steps = _STEPS.get()
        if steps is None:
            return carry(call, deliver)
        steps.begun = time.perf_counter()

        async def deliver_timed(result: Result) -> None:
            steps.ended = time.perf_counter()
            await deliver(result)

        return carry(call, deliver_timed)

    return carry_timed


def time_handler(handle: Handle) -> Handle:
    """Wrap a handler, to record when it begins and ends in the overview's own calls."""

    async def handle_timed(inputs: Any) -> Any:
        steps = _STEPS.get()
        if steps is None:
            return await handle(inputs)
        steps.handled = time.perf_counter()
        try:
            return await handle(inputs)
        finally:
            steps.answered = time.perf_counter()

    return handle_timed
