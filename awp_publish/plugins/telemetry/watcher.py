"""The facts of each call, for the log `awp_publish.access`, for listeners and for tracing.

Each line of the log is JSON, level INFO: door, action, principal, outcome, status, milliseconds and request id. Inputs
are included only if the site enables `log_inputs`. Listeners receive the same facts.
"""

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Final, TypeAlias

import orjson

from awp_publish.calls.call import Call, Deliver, Label, Result
from awp_publish.calls.observe import UNANSWERED, Carry
from awp_publish.plugins.telemetry.spans import is_on, span
from awp_publish.problems import DeclarationError, Problem
from awp_publish.schema.handlers import accepts
from awp_publish.schema.redaction import Redact

access_logger: Final = logging.getLogger("awp_publish.access")
failures: Final = logging.getLogger("awp_publish")


CallListener: TypeAlias = Callable[[Mapping[str, object]], object]
"""Receives the facts of each call. Runs in the event loop, so it must not block."""


def listen(listeners: list[CallListener], listener: CallListener) -> None:
    """Call `listener(facts)` after each call, with the facts that are also recorded about it. It must not block.

    Raises DeclarationError for what is no plain function of them.
    """
    if inspect.iscoroutinefunction(listener) or not (callable(listener) and accepts(listener, 1)):
        raise DeclarationError("site.on_call()", f"{listener!r} is not a plain function of the facts about a call.")
    listeners.append(listener)


class Watcher:
    """Watches calls for whoever wants to know of them. `log_inputs` adds the inputs, with secrets redacted."""

    def __init__(self, log_inputs: bool, listeners: Sequence[CallListener]) -> None:
        self.is_logging = partial(access_logger.isEnabledFor, logging.INFO)
        self._listeners = listeners
        self._log_inputs = log_inputs
        self._is_tracing = False

    def is_watching(self) -> bool:
        """Return True if calls are traced, logged or listened to. Once tracing is found, it is not looked up again."""
        self._is_tracing = self._is_tracing or is_on()
        return self._is_tracing or bool(self._listeners) or self.is_logging()

    def is_traced(self) -> bool:
        """Return True if spans are exported."""
        return is_on()

    async def watch(self, carry: Carry, redact: Redact | None, call: Call, deliver: Deliver) -> None:
        """Run a call and report the result that is delivered, or that its caller disconnected before there was one.

        `redact` removes the secrets from its input.
        """
        started = perf_counter()
        is_noted = False
        with span(call) as note:

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
        if self._listeners or self.is_logging():
            self._report(_facts(door, request_id, "", "", problem, perf_counter()))

    def _report(self, facts: dict[str, object]) -> None:
        if self.is_logging():
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
