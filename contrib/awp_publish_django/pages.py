"""Pages as SOM and Markdown: a view is called for its HTML page, and its answer is converted by the core."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers

from awp_publish.http.exchange import Reply, Scope, read_fields
from awp_publish.plugins.pages.formats import HTML_TYPES, PAGE_METHODS, READ_METHODS, Accept, read_accept
from awp_publish.plugins.pages.negotiation import FILE_SUFFIX, NegotiatedPages, negotiated_pages, stands_for_page
from awp_publish.plugins.pages.page_request import DROPPED_FIELDS, NegotiatedRequest
from awp_publish_django.answering import closers_of, when_closed, with_headers
from awp_publish_django.gateway import scope_of
from awp_publish_django.page_bodies import body_of, body_of_async
from awp_publish_django.publication import Publication
from awp_publish_django.responses import close_response, headers_of

_CACHED: Final = ("GET", "accepted_types", "accepted_types_by_precedence", "headers")
"""Attributes that Django computes once from META and caches on a request."""

_HTML: Final = tuple(name.decode() for name in HTML_TYPES)


def answer_page(
    publication: Publication, request: HttpRequest, get_response: Callable[[HttpRequest], HttpResponseBase]
) -> HttpResponseBase:
    """The view's answer, in the format that the request accepts; a page's Markdown file where there is no view."""

    def ask(asked: NegotiatedRequest) -> tuple[HttpResponseBase, Reply | None]:
        with _as_negotiated(request, asked):
            page = get_response(request)
            body = body_of(asked, page)
        return page, asked.render(page.status_code, headers_of(page), body) if body is not None else None

    accept = _accept_of(request)
    negotiated = _negotiate(publication, request, accept)
    if negotiated is None:
        response = _with_vary(publication, request, get_response(request), accept)
    else:
        response = _render_response(negotiated, *ask(negotiated))
    file = _markdown_file(publication, request, response)
    return response if file is None else _file_or(response, file, *ask(file))


async def answer_page_async(
    publication: Publication, request: HttpRequest, get_response: Callable[[HttpRequest], Awaitable[HttpResponseBase]]
) -> HttpResponseBase:
    """The same on an event loop."""

    async def ask(asked: NegotiatedRequest) -> tuple[HttpResponseBase, Reply | None]:
        with _as_negotiated(request, asked):
            page = await get_response(request)
            body = await body_of_async(asked, page)
        return page, await asked.render_async(page.status_code, headers_of(page), body) if body is not None else None

    accept = _accept_of(request)
    negotiated = _negotiate(publication, request, accept)
    if negotiated is None:
        response = _with_vary(publication, request, await get_response(request), accept)
    else:
        response = _render_response(negotiated, *await ask(negotiated))
    file = _markdown_file(publication, request, response)
    return response if file is None else _file_or(response, file, *await ask(file))


def _accept_of(request: HttpRequest) -> Accept:
    return read_accept(str(request.META.get("HTTP_ACCEPT", "")).encode("latin-1", "replace"))


def _is_at_home(publication: Publication, request: HttpRequest) -> bool:
    """Return True if a request is for one of the site's own hosts: a project may have others."""
    try:
        return publication.is_own_host(request.get_host())
    except DisallowedHost:
        return False


def _pages_at(publication: Publication, request: HttpRequest, scope: Scope) -> NegotiatedPages | None:
    """Return the formats of pages at the address of a request, None at hosts that are not the site's own."""
    if not _is_at_home(publication, request):
        return None
    context = publication.publisher.context(scope, "pages")
    return None if context is None else negotiated_pages(context)


def alternates_of(publication: Publication, request: HttpRequest, scope: Scope) -> str:
    """Return the members of a `Link` header for a page's other formats, "" if it has none."""
    pages = _pages_at(publication, request, scope)
    return pages.alternates(scope).decode("latin-1") if pages is not None and scope["method"] in READ_METHODS else ""


def _negotiate(publication: Publication, request: HttpRequest, accept: Accept) -> NegotiatedRequest | None:
    formats = publication.site.ask("pages")
    is_likely = accept.requested is not None or (formats is not None and formats.in_query)
    if not is_likely or request.method not in PAGE_METHODS:
        return None
    scope = scope_of(request)
    pages = _pages_at(publication, request, scope)
    return None if pages is None else pages.read_request(scope)


def _markdown_file(
    publication: Publication, request: HttpRequest, response: HttpResponseBase
) -> NegotiatedRequest | None:
    """Return the page whose Markdown file a request names, unless the project has such a file itself."""
    if response.status_code not in (400, 404) or not request.path.endswith(FILE_SUFFIX):
        return None
    scope = scope_of(request)
    pages = _pages_at(publication, request, scope)
    return None if pages is None else pages.read_file(scope)


def _file_or(
    response: HttpResponseBase, file: NegotiatedRequest, page: HttpResponseBase, reply: Reply | None
) -> HttpResponseBase:
    """Return the Markdown file, or the project's own answer where there is no page of which it could be one."""
    if reply is None or reply.status not in (200, 204, 304):
        close_response(page)
        return response
    close_response(response)
    return _render_response(file, page, reply)


@contextmanager
def _as_negotiated(request: HttpRequest, negotiated: NegotiatedRequest) -> Iterator[None]:
    """Present the negotiated request to the view, and restore the original one for the middleware around ours."""
    original, method, path, path_info = dict(request.META), request.method, request.path, request.path_info
    for name in DROPPED_FIELDS.difference(name for name, _ in negotiated.scope["headers"]):
        request.META.pop(f"HTTP_{name.decode().upper().replace('-', '_')}", None)
    request.META.update(
        HTTP_ACCEPT=read_fields(negotiated.scope["headers"])[b"accept"].decode("latin-1"),
        QUERY_STRING=negotiated.scope["query_string"].decode("latin-1"),
        REQUEST_METHOD=negotiated.scope["method"],
    )
    request.method = negotiated.scope["method"]
    request.path = negotiated.scope["path"]
    request.path_info = path_info[: len(path_info) - (len(path) - len(request.path))]
    _clear_cached(request)
    try:
        yield
    finally:
        request.META.clear()
        request.META.update(original)
        request.method, request.path, request.path_info = method, path, path_info
        _clear_cached(request)


def _clear_cached(request: HttpRequest) -> None:
    for name in _CACHED:
        vars(request).pop(name, None)


def _render_response(
    negotiated: NegotiatedRequest, response: HttpResponseBase, reply: Reply | None
) -> HttpResponseBase:
    """Return the reply as a response, or the view's own response if there is none."""
    if reply is None:
        if response.status_code not in (200, 304):
            return response
        vary = read_fields(negotiated.pass_headers(headers_of(response), response.status_code)).get(b"vary")
        if vary is not None:
            response["Vary"] = vary.decode("latin-1")
        return response
    rendered = HttpResponse(reply.body, status=reply.status)
    with_headers(rendered, [pair for pair in reply.headers if pair[0] != b"set-cookie"])
    rendered.cookies = response.cookies
    when_closed(rendered, *closers_of(response))
    return rendered


def _with_vary(
    publication: Publication, request: HttpRequest, response: HttpResponseBase, accept: Accept
) -> HttpResponseBase:
    """Add `Vary: Accept` to HTML pages of the site's own hosts, and to a 304 in place of one."""
    if response.status_code == 200:
        is_page = response.get("Content-Type", "").lower().startswith(_HTML)
    else:
        is_page = response.status_code == 304 and stands_for_page(accept.names_html, request.path)
    if is_page and publication.site.ask("pages") is not None and _is_at_home(publication, request):
        patch_vary_headers(response, ["Accept"])
    return response
