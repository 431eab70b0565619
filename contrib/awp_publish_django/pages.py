"""Pages as SOM and Markdown: a view is asked for its page, and what it answers is made over, as the core says it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Final

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase, StreamingHttpResponse
from django.utils.cache import patch_vary_headers

from awp_publish.serve.http import Reply, read_fields
from awp_publish.serve.negotiation import (
    DROPPED_FIELDS,
    FILE_SUFFIX,
    HTML_TYPES,
    MAX_PAGE_BYTES,
    PAGE_METHODS,
    Accept,
    NegotiatedRequest,
    read_accept,
    stands_for_page,
)
from awp_publish_django.gateway import scope_of, when_closed, with_headers
from awp_publish_django.publication import Publication
from awp_publish_django.responses import headers_of

_READ: Final = ("GET", "accepted_types", "accepted_types_by_precedence", "headers")
"""Attributes that Django reads once from META and keeps on a request."""

_HTML: Final = tuple(name.decode() for name in HTML_TYPES)


def answer_page(
    publication: Publication, request: HttpRequest, go_on: Callable[[HttpRequest], HttpResponseBase]
) -> HttpResponseBase:
    """The answer of a view, in the format that the request accepts."""
    reading = _read(request)
    asked = _asked(publication, request, reading)
    if asked is None:
        response = go_on(request)
        if _knows_get_only(publication, request, response):
            response.close()
            with _as_get(request):
                response = go_on(request)
        asked = _file(publication, request, response)
    if asked is None:
        return _varied(publication, request, response, reading)
    with _asking(request, asked):
        response = go_on(request)
        body = _body_of(asked, response)
    reply = asked.render(response.status_code, headers_of(response), body) if body is not None else None
    return _made_over(asked, response, reply)


async def answer_page_async(
    publication: Publication, request: HttpRequest, go_on: Callable[[HttpRequest], Awaitable[HttpResponseBase]]
) -> HttpResponseBase:
    """The same on an event loop."""
    reading = _read(request)
    asked = _asked(publication, request, reading)
    if asked is None:
        response = await go_on(request)
        if _knows_get_only(publication, request, response):
            response.close()
            with _as_get(request):
                response = await go_on(request)
        asked = _file(publication, request, response)
    if asked is None:
        return _varied(publication, request, response, reading)
    with _asking(request, asked):
        response = await go_on(request)
        body = await _body_of_async(asked, response)
    reply = await asked.render_async(response.status_code, headers_of(response), body) if body is not None else None
    return _made_over(asked, response, reply)


# --- What is asked ---


def _read(request: HttpRequest) -> Accept:
    return read_accept(str(request.META.get("HTTP_ACCEPT", "")).encode("latin-1", "replace"))


def _asked(publication: Publication, request: HttpRequest, reading: Accept) -> NegotiatedRequest | None:
    formats = publication.site.settings.page_formats
    is_likely = reading.requested is not None or (formats is not None and formats.in_query)
    if not is_likely or request.method not in PAGE_METHODS:
        return None
    return publication.publisher.asked(scope_of(request))


def _file(publication: Publication, request: HttpRequest, response: HttpResponseBase) -> NegotiatedRequest | None:
    """Return what a request asks for that names a page's Markdown file, where the project has no such file itself."""
    if response.status_code not in (400, 404) or not request.path.endswith(FILE_SUFFIX):
        return None
    file = publication.publisher.file(scope_of(request))
    if file is not None:
        response.close()
    return file


@contextmanager
def _asking(request: HttpRequest, asked: NegotiatedRequest) -> Iterator[None]:
    """The request as the view gets it; after that again as it came, for the middleware around us answers its caller."""
    came, method, path, path_info = dict(request.META), request.method, request.path, request.path_info
    for name in DROPPED_FIELDS.difference(name for name, _ in asked.scope["headers"]):
        request.META.pop(f"HTTP_{name.decode().upper().replace('-', '_')}", None)
    request.META.update(
        HTTP_ACCEPT=read_fields(asked.scope["headers"])[b"accept"].decode("latin-1"),
        QUERY_STRING=asked.scope["query_string"].decode("latin-1"),
        REQUEST_METHOD=asked.scope["method"],
    )
    request.method = asked.scope["method"]
    request.path = asked.scope["path"]
    request.path_info = path_info[: len(path_info) - (len(path) - len(request.path))]
    _forget_what_was_read(request)
    try:
        yield
    finally:
        request.META.clear()
        request.META.update(came)
        request.method, request.path, request.path_info = method, path, path_info
        _forget_what_was_read(request)


def _knows_get_only(publication: Publication, request: HttpRequest, response: HttpResponseBase) -> bool:
    """HEAD of a page that answers GET is answered as that, where the view refuses it (`require_GET`)."""
    is_refused = request.method == "HEAD" and response.status_code == 405 and "GET" in response.get("Allow", "")
    return is_refused and publication.site.settings.page_formats is not None


@contextmanager
def _as_get(request: HttpRequest) -> Iterator[None]:
    request.method = request.META["REQUEST_METHOD"] = "GET"
    _forget_what_was_read(request)
    try:
        yield
    finally:
        request.method = request.META["REQUEST_METHOD"] = "HEAD"
        _forget_what_was_read(request)


def _forget_what_was_read(request: HttpRequest) -> None:
    for name in _READ:
        vars(request).pop(name, None)


# --- What is answered ---


def _body_of(asked: NegotiatedRequest, response: HttpResponseBase) -> bytes | None:
    """The whole page, None for what is none or is too large; that can be sent as if it had not been read."""
    if not asked.takes(response.status_code, headers_of(response)):
        return None
    if not isinstance(response, StreamingHttpResponse):
        return _kept(response)
    if response.is_async:
        return None  # it belongs to an event loop, and there is none
    return _collect(response)


async def _body_of_async(asked: NegotiatedRequest, response: HttpResponseBase) -> bytes | None:
    if not asked.takes(response.status_code, headers_of(response)):
        return None
    if not isinstance(response, StreamingHttpResponse):
        return _kept(response)
    return await _collect_async(response) if response.is_async else await sync_to_async(_collect)(response)


def _kept(response: HttpResponseBase) -> bytes | None:
    content: bytes = response.content  # type: ignore[attr-defined]
    return content if len(content) <= MAX_PAGE_BYTES else None


def _collect(response: StreamingHttpResponse) -> bytes | None:
    parts, size, pieces = list[bytes](), 0, iter(response)
    for part in pieces:
        parts.append(part)
        size += len(part)
        if size > MAX_PAGE_BYTES:
            response.streaming_content = chain(parts, pieces)
            return None
    return b"".join(parts)


async def _collect_async(response: StreamingHttpResponse) -> bytes | None:
    parts, size, pieces = list[bytes](), 0, aiter(response)
    async for part in pieces:
        parts.append(part)
        size += len(part)
        if size > MAX_PAGE_BYTES:

            async def all_parts() -> AsyncIterator[bytes]:
                for one in parts:
                    yield one
                async for one in pieces:
                    yield one

            response.streaming_content = all_parts()
            return None
    return b"".join(parts)


def _made_over(asked: NegotiatedRequest, response: HttpResponseBase, reply: Reply | None) -> HttpResponseBase:
    """Return what was asked for; the response of the view where there is no such reply."""
    if reply is None:
        vary = read_fields(asked.pass_headers(headers_of(response), response.status_code)).get(b"vary")
        if vary is not None:
            response["Vary"] = vary.decode("latin-1")
        return response
    made = HttpResponse(reply.body, status=reply.status)
    with_headers(made, [pair for pair in reply.headers if pair[0] != b"set-cookie"])
    made.cookies = response.cookies
    when_closed(made, *response._resource_closers)  # type: ignore[attr-defined]
    return made


def _varied(
    publication: Publication, request: HttpRequest, response: HttpResponseBase, reading: Accept
) -> HttpResponseBase:
    """HTML says that it is chosen by Accept; so does a 304 that stands for a page."""
    is_page = response.get("Content-Type", "").lower().startswith(_HTML) or (
        response.status_code == 304 and stands_for_page(reading.names_html, request.path)
    )
    if is_page and publication.site.settings.page_formats is not None:
        patch_vary_headers(response, ["Accept"])
    return response
