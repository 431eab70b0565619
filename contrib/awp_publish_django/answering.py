"""Django's responses, made of ASGI's messages and neutral replies."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Final, TypeVar

from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from awp_publish.http.exchange import Headers, Message, Reply

R = TypeVar("R", bound=HttpResponseBase)

_LISTED: Final = frozenset({"vary", "link", "www-authenticate", "access-control-expose-headers"})
"""Headers that an answer may have more than once; Django keeps one of each name."""

_OF_CONNECTION: Final = frozenset({"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"})
"""Headers of the connection (RFC 9110 section 7.6.1), which PEP 3333 forbids applications to set."""


def response_of(reply: Reply) -> HttpResponse:
    """A Django response with exactly the headers of a reply."""
    return with_headers(HttpResponse(reply.body, status=reply.status), reply.headers)


def response_of_messages(messages: Iterator[Message]) -> HttpResponseBase:
    """The response that ASGI messages describe; a body that comes in parts is streamed."""
    start = next(messages, None)
    first = next(messages, None)
    if start is None or first is None:
        return HttpResponse(status=400)  # the caller has disconnected; nobody reads this
    if first.get("more_body", False):
        return with_headers(StreamingHttpResponse(_bodies(first, messages), status=start["status"]), start["headers"])
    for _ in messages:  # a view may work on after its answer
        pass
    return with_headers(HttpResponse(first.get("body", b""), status=start["status"]), start["headers"])


async def response_of_stream(messages: AsyncIterator[Message]) -> HttpResponseBase:
    """The same for an application that runs on this event loop."""
    start = await anext(messages, None)
    first = await anext(messages, None)
    if start is None or first is None:
        return HttpResponse(status=400)
    if first.get("more_body", False):
        body = _bodies_async(first, messages)
        return with_headers(StreamingHttpResponse(body, status=start["status"]), start["headers"])
    async for _ in messages:
        pass
    return with_headers(HttpResponse(first.get("body", b""), status=start["status"]), start["headers"])


def _bodies(first: Message, messages: Iterator[Message]) -> Iterator[bytes]:
    yield first.get("body", b"")
    for message in messages:
        yield message.get("body", b"")


async def _bodies_async(first: Message, messages: AsyncIterator[Message]) -> AsyncIterator[bytes]:
    yield first.get("body", b"")
    async for message in messages:
        yield message.get("body", b"")


class Closers(list[Callable[[], object]]):
    """Functions to call when a response has been sent. A pickled response, as caches keep it, has none."""

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return list, ()


_CLOSERS: Final = "_resource_closers"
"""Private, and the only way to do something when a response is closed without the end of the request: its `close` sends
`request_finished`, and Django's own streaming middleware replaces the content in place."""


def closers_of(response: HttpResponseBase) -> list[Callable[[], object]]:
    """Return what is called when a response is closed."""
    closers: list[Callable[[], object]] = getattr(response, _CLOSERS)
    return closers


def when_closed(response: HttpResponseBase, *do: Callable[[], object]) -> None:
    """Call functions when a response is closed, sent or not: Django does not close asynchronous iterators."""
    setattr(response, _CLOSERS, Closers((*closers_of(response), *do)))


def with_headers(response: R, headers: Headers) -> R:
    """The response with exactly these headers."""
    del response.headers["Content-Type"]
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        if name in _OF_CONNECTION:
            continue
        if name == "set-cookie":
            response.cookies.load(value)
        elif name in _LISTED and name in response.headers:
            response.headers[name] += f", {value}"
        else:
            response.headers[name] = value
    return response
