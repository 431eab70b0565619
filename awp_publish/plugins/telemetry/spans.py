"""OpenTelemetry spans of calls."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Final

from awp_publish.calls.call import Call

PREFIX: Final = "awp_publish."
"""Prefix of our attributes; OpenTelemetry's semantic conventions do not cover agent calls."""


def is_on() -> bool:
    """Return True if spans are exported. Until a provider is set, the API's proxy provider discards them."""
    api = _api()
    return api is not None and not isinstance(api.get_tracer_provider(), api.ProxyTracerProvider)


@contextmanager
def span(call: Call) -> Iterator[Callable[[Mapping[str, object]], None]]:
    """Start a span that becomes the parent of the handler's own spans, and yield what notes the facts of its call."""
    api = _api()
    if api is None or not is_on():
        yield lambda facts: None
        return
    tracer, name = api.get_tracer("awp_publish"), f"{call.door} {call.action.id}"
    with tracer.start_as_current_span(name, kind=api.SpanKind.SERVER) as current:

        def note(facts: Mapping[str, object]) -> None:
            attributes = {PREFIX + name: value for name, value in facts.items() if isinstance(value, (str, int, float))}
            current.set_attributes(attributes)
            status = facts.get("status")
            if isinstance(status, int) and status >= 500:
                current.set_status(api.StatusCode.ERROR, str(facts.get("outcome")))

        yield note


@cache
def _api() -> ModuleType | None:
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace
