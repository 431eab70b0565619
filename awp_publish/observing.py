"""A record of calls: one log line for each, and an OpenTelemetry span where a tracer is set up.

The line is JSON in the log `awp_publish.access`, level INFO: door, action, principal, outcome, status, milliseconds and
request id. Inputs are in it only if the site asked for that. Listeners of the site are given the same facts. While
nobody listens, a call costs nothing here.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeAlias

import orjson

from awp_publish import tracing
from awp_publish.policy.call import Call, CallListener, Result
from awp_publish.problems import Problem

logger: Final = logging.getLogger("awp_publish.access")
failures: Final = logging.getLogger("awp_publish")

UNANSWERED: Final = "UNANSWERED"
"""The outcome of a call that ended without an answer, because its caller hung up or the server stops."""

Deliver: TypeAlias = Callable[[Result], Awaitable[None]]
Carry: TypeAlias = Callable[[Call, Deliver], Awaitable[None]]


class Observer:
    """Watches calls, if anybody wants to know. `log_inputs` adds their inputs to the facts, whatever they hold."""

    def __init__(self, log_inputs: bool = False, listeners: Sequence[CallListener] = ()) -> None:
        self._log_inputs = log_inputs
        self._listeners = listeners
        self._is_tracing = False
        self._look_again = 0.0

    def is_watching(self) -> bool:
        """Whether anybody wants to know. Tracing is set up once, so it is looked for once a second until it is."""
        if self._is_tracing or self._listeners or logger.isEnabledFor(logging.INFO):
            return True
        now = time.monotonic()
        if now >= self._look_again:
            self._look_again = now + 1.0
            self._is_tracing = tracing.is_on()
        return self._is_tracing

    async def watch(self, call: Call, deliver: Deliver, carry: Carry) -> None:
        """Carry a call on its way, and note what is delivered for it, or that nothing was: its caller hung up."""
        started = time.perf_counter()
        is_noted = False
        with _span(call) as note:

            def note_end(result: Result | None) -> None:
                nonlocal is_noted
                is_noted = True
                facts = _facts(call.door, call.request_id, call.action.id, call.caller_id, result, started)
                note(facts)
                self._tell({**facts, "input": call.input} if self._log_inputs else facts)

            async def deliver_noted(result: Result) -> None:
                note_end(result)
                await deliver(result)

            try:
                await carry(call, deliver_noted)
            finally:
                if not is_noted:
                    note_end(None)

    def note_refusal(self, door: str, request_id: str, problem: Problem) -> None:
        """Note a request that a door refused before it was a call of any action."""
        if self._listeners or logger.isEnabledFor(logging.INFO):
            self._tell(_facts(door, request_id, "", "", problem, time.perf_counter()))

    def _tell(self, facts: dict[str, object]) -> None:
        _write(facts)
        for listener in self._listeners:
            try:
                listener(facts)
            except Exception:
                failures.exception("a listener of calls has failed")


def _facts(
    door: str, request_id: str, action: str, principal: str, result: Result | None, started: float
) -> dict[str, object]:
    """What is noted. `outcome` is "ok", the code of a problem, or UNANSWERED; then there is no status."""
    return {
        "door": door,
        "action": action or None,
        "principal": principal or None,
        "outcome": UNANSWERED if result is None else result.code if isinstance(result, Problem) else "ok",
        "status": None if result is None else result.status,
        "ms": round((time.perf_counter() - started) * 1000, 3),
        "request_id": request_id,
    }


def _write(facts: dict[str, object]) -> None:
    """JSON keeps one call on one line, whatever a caller's id or input holds. The facts are in `record.call` too."""
    if logger.isEnabledFor(logging.INFO):
        logger.info("%s", orjson.dumps(facts, default=str).decode(), extra={"call": facts})


@contextmanager
def _span(call: Call) -> Iterator[Callable[[dict[str, object]], None]]:
    if not tracing.is_on():
        yield lambda facts: None
        return
    with tracing.start_span(f"{call.door} {call.action.id}") as span:
        yield span.note
