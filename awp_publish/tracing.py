"""OpenTelemetry spans of calls, where its API is installed and the application has set up a tracer provider."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Final, Protocol

PREFIX: Final = "awp_publish."
"""Attributes of ours; the conventions of OpenTelemetry know no agent calls."""


class Span(Protocol):
    """A span that takes note of what came of its call."""

    def note(self, facts: Mapping[str, object]) -> None: ...


def is_on() -> bool:
    """Whether spans go anywhere. Until an application sets a provider, the API's own stands in and records nothing."""
    api = _api()
    return api is not None and not isinstance(api.get_tracer_provider(), api.ProxyTracerProvider)


@contextmanager
def start_span(name: str) -> Iterator[Span]:
    """A span around what is done inside of it, which makes it the parent of the handler's own spans."""
    api = _api()
    assert api is not None
    with api.get_tracer("awp_publish").start_as_current_span(name, kind=api.SpanKind.SERVER) as span:
        yield _Noting(span, api)


class _Noting:
    def __init__(self, span: object, api: ModuleType) -> None:
        self._span = span
        self._api = api

    def note(self, facts: Mapping[str, object]) -> None:
        told = {PREFIX + name: value for name, value in facts.items() if isinstance(value, (str, int, float))}
        self._span.set_attributes(told)  # type: ignore[attr-defined]
        status = facts.get("status")
        if isinstance(status, int) and status >= 500:
            self._span.set_status(self._api.StatusCode.ERROR, str(facts.get("outcome")))  # type: ignore[attr-defined]


@cache
def _api() -> ModuleType | None:
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace
