"""Reports of calls: the access log, an OpenTelemetry span, listeners, and counts.

Each line of the log `awp_publish.access` is JSON, level INFO: door, action, principal, outcome, status, milliseconds
and request id. Inputs are included only if the site enables `log_inputs`. Listeners receive the same facts. If nobody
listens, calls skip this code.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from time import perf_counter
from types import ModuleType
from typing import Final, Protocol, TypeAlias

import orjson

from awp_publish.calls.call import Call, CallListener, Deliver, Label, Result
from awp_publish.problems import Problem
from awp_publish.schema.redaction import Redact

PREFIX: Final = "awp_publish."
"""Prefix of our attributes; OpenTelemetry's semantic conventions do not cover agent calls."""


def is_on() -> bool:
    """Return True if spans are exported. Until a provider is set, the API's proxy provider discards them."""
    api = _api()
    return api is not None and not isinstance(api.get_tracer_provider(), api.ProxyTracerProvider)


@contextmanager
def _span(call: Call) -> Iterator[Callable[[Mapping[str, object]], None]]:
    """Start a span that becomes the parent of the handler's own spans, and yield what notes the facts of its call."""
    api = _api()
    if api is None or not is_on():
        yield lambda facts: None
        return
    tracer, name = api.get_tracer("awp_publish"), f"{call.door} {call.action.id}"
    with tracer.start_as_current_span(name, kind=api.SpanKind.SERVER) as span:

        def note(facts: Mapping[str, object]) -> None:
            attributes = {PREFIX + name: value for name, value in facts.items() if isinstance(value, (str, int, float))}
            span.set_attributes(attributes)
            status = facts.get("status")
            if isinstance(status, int) and status >= 500:
                span.set_status(api.StatusCode.ERROR, str(facts.get("outcome")))

        yield note


@cache
def _api() -> ModuleType | None:
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace


UNANSWERED: Final = "UNANSWERED"
"""The outcome of a call that ended without an answer, because the caller disconnected or the server stopped."""

CallKind: TypeAlias = tuple[str, str, str, str, str]
"""Door, action, caller, label of the caller, outcome."""


class CallCounter(Protocol):
    """Counts finished calls in memory, and writes the sums when they are `due` (perf_counter).

    `pending` has the durations of the calls since the last sum, by kind, at most `max_pending` for each. A midnight
    (perf_counter) begins a new day, for which there are new lists.
    """

    pending: dict[CallKind, list[float | None]]
    midnight: float
    due: float
    max_pending: int

    def add(self, door: str, action: str, caller: str, label: str, outcome: str) -> None:
        """Count a request that never became a call."""

    def times_of(self, kind: CallKind, now: float) -> list[float | None]:
        """Return the list to which durations of a kind are appended."""

    def sum_up(self) -> None:
        """Add the pending calls to the sums."""

    async def flush(self) -> None:
        """Write the sums."""


access_logger: Final = logging.getLogger("awp_publish.access")
failures: Final = logging.getLogger("awp_publish")

Carry: TypeAlias = Callable[[Call, Deliver], Awaitable[None]]


class Observer:
    """Reports calls to the access log, to listeners and to tracing.

    `log_inputs` adds the inputs, with secrets redacted. `traffic` counts calls in memory, even if nothing else observes
    them.
    """

    def __init__(
        self, log_inputs: bool = False, listeners: Sequence[CallListener] = (), traffic: CallCounter | None = None
    ) -> None:
        self.traffic = traffic
        self._log_inputs = log_inputs
        self._listeners = listeners
        self._is_tracing = False

    def is_watching(self) -> bool:
        """Return True if calls are traced, logged or listened to. Once tracing is found, it is not looked up again."""
        self._is_tracing = self._is_tracing or is_on()
        return self._is_tracing or bool(self._listeners) or access_logger.isEnabledFor(logging.INFO)

    async def watch(self, carry: Carry, redact: Redact | None, call: Call, deliver: Deliver) -> None:
        """Run a call and report the result that is delivered, or that its caller disconnected before there was one.

        `redact` removes the secrets from its input.
        """
        started = perf_counter()
        is_noted = False
        with _span(call) as note:

            def note_end(result: Result | None) -> None:
                nonlocal is_noted
                is_noted = True
                facts = _facts(call.door, call.request_id, call.action.id, call.caller_id, result, started, call.label)
                note(facts)
                if self._log_inputs:
                    facts["input"] = call.input if redact is None else redact(call.input)
                self._report(facts)

            async def deliver_noted(result: Result) -> None:
                note_end(result)
                await deliver(result)

            try:
                await carry(call, deliver_noted)
            finally:
                if not is_noted:
                    note_end(None)

    def note_refusal(self, door: str, request_id: str, problem: Problem) -> None:
        """Report a request that a door refused before it became a call."""
        if self.traffic is not None:
            self.traffic.add(door, "", "", "unknown", problem.code)
        if self._listeners or access_logger.isEnabledFor(logging.INFO):
            self._report(_facts(door, request_id, "", "", problem, perf_counter()))

    def _report(self, facts: dict[str, object]) -> None:
        if access_logger.isEnabledFor(logging.INFO):
            # JSON escapes line breaks, so that each call stays on one line. `record.call` has the facts as a dict.
            access_logger.info("%s", orjson.dumps(facts, default=str).decode(), extra={"call": facts})
        for listener in self._listeners:
            try:
                listener(facts)
            except Exception:
                failures.exception("a listener of calls has failed")


def _facts(
    door: str,
    request_id: str,
    action: str,
    principal: str,
    result: Result | None,
    started: float,
    label: Label = "unknown",
) -> dict[str, object]:
    """Return the facts about a call. `outcome` is "ok", the code of a problem, or UNANSWERED (without a status)."""
    return {
        "door": door,
        "action": action or None,
        "principal": principal or None,
        "label": label,
        "outcome": UNANSWERED if result is None else result.code if isinstance(result, Problem) else "ok",
        "status": None if result is None else result.status,
        "ms": round((perf_counter() - started) * 1000, 3),
        "request_id": request_id,
    }
