"""Serves the application's pages as SOM or Markdown on request (proactive negotiation, RFC 9110 section 12.1).

`negotiate` wraps an ASGI application. The adapter of another gateway calls `NegotiatedPages.read_request` to get the
request for its application, and `NegotiatedRequest.render` to convert the application's HTML answer.

Answers that are not HTML pages are passed on unchanged: a redirect, an image, or an answer that the application itself
gives in the requested format. So are pages that are too large, never end, or have an unknown content coding.
"""

import string
import time
from collections.abc import Awaitable, Callable, Container
from dataclasses import replace
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from awp_publish.documents.members import som_address
from awp_publish.http.cors import Cors
from awp_publish.http.exchange import (
    AsgiApp,
    Fields,
    Message,
    Receive,
    Scope,
    Send,
    mount_of,
    read_fields,
    route_path,
    send_reply,
    without_content,
)
from awp_publish.http.page_address import PLAIN
from awp_publish.model import Catalog
from awp_publish.plugin import Context
from awp_publish.plugins.pages.formats import (
    ANYTHING,
    FILE_METHODS,
    HTML_TYPES,
    PAGE_METHODS,
    READ_METHODS,
    USUAL_BUDGET,
    WHOLE_PAGE,
    RequestedFormat,
    read_accept,
    read_content,
    read_query,
    take_content,
)
from awp_publish.plugins.pages.page_request import (
    ACCEPT,
    DROPPED_FIELDS,
    FORMAT_FIELDS,
    NegotiatedRequest,
    vary_by_accept,
)
from awp_publish.plugins.pages.rendering import MAX_PAGE_BYTES, Guide, PageRenderer

"""Methods that may be answered with a page; POST is for forms."""


class NegotiatedPages:
    """The pages of one public address. URLs are made from the site's declared address, never from a request."""

    def __init__(
        self,
        catalog: Catalog,
        formats: Any,
        renderer: PageRenderer,
        link: bytes | None = None,
        guide: Guide | None = None,
        cors: Cors | None = None,
    ) -> None:
        self._cors = cors
        self._link = link
        self._before_alternates = b"" if link is None else link + b", "
        self._guide = guide
        self._declared = {page.path: page for page in catalog.pages}
        self.in_query = formats.in_query
        in_query = " or `?content=all`" if self.in_query else ""
        self._whole = f"The header `{WHOLE_PAGE}`{in_query} requests all of it."
        self._in_shared_cache = formats.shared_cache
        self._renderer = renderer
        self._url = catalog.url
        # The parts of a `Link` header around the address of a page, which is in it twice.
        self._markdown = f"<{catalog.url}".encode("latin-1")
        self._som = f'>; rel="alternate"; type="text/markdown", <{som_address(catalog, "")}'.encode("latin-1")
        self._end = b'>; rel="alternate"; type="application/som+json"'

    def read_request(self, scope: Scope) -> NegotiatedRequest | None:
        """Return the request for a page in another format, None if HTML is requested."""
        if scope["method"] not in PAGE_METHODS:
            return None
        fields = read_fields(scope["headers"])
        query: bytes = scope["query_string"]
        requested, query = read_query(query) if self.in_query else (None, query)
        if requested is None and b"accept" in fields:
            requested = read_accept(fields[b"accept"]).requested
            if requested is not None and requested.format == "md" and self.in_query:
                content, query = take_content(query)
                requested = replace(requested, content=content)
        return None if requested is None else self._request(scope, fields, requested, query)

    def read_file(self, scope: Scope) -> NegotiatedRequest | None:
        """Return the request for the page whose Markdown is requested by the suffix `.md`, None if there is no suffix.

        `/about.md` is the Markdown of `/about`, `/index.md` that of `/`. The application's own files take precedence:
        call this only if it has none.
        """
        path: str = scope["path"]
        if scope["method"] not in FILE_METHODS.split(", ") or not path.endswith(FILE_SUFFIX):
            return None
        shorter = {**scope, "path": _without_suffix(path)}
        if raw := scope.get("raw_path"):
            shorter["raw_path"] = _without_suffix(raw.split(b"?", 1)[0].decode("latin-1")).encode("latin-1")
        requested = RequestedFormat("md", by_query=True, is_file=True)
        return self._request(shorter, read_fields(scope["headers"]), requested, scope["query_string"])

    def alternates(self, scope: Scope, before: bytes = b"") -> bytes:
        """Return the members of a `Link` header for a page's Markdown and SOM, `before` in front of them."""
        path, query, suffix = scope.get("raw_path"), scope["query_string"], b""
        if path and not query and not scope.get("root_path") and not path.strip(_UNRESERVED):
            quoted = path
        else:
            path = _path_of(scope).encode("latin-1")
            if query:
                suffix = b"?" + quote(query, safe=PLAIN + "/").encode("latin-1")
            quoted = quote(path + suffix, safe="/").encode("latin-1")
        file = b"index.md" if path.endswith(b"/") else b".md"
        return b"".join((before, self._markdown, path, file, suffix, self._som, quoted, self._end))

    def links(self, scope: Scope) -> bytes | None:
        """Return the `Link` header of a page, None if link headers are off. A form's answer has no other formats."""
        if self._link is None or scope["method"] not in READ_METHODS:
            return self._link
        return self.alternates(scope, self._before_alternates)

    def _request(self, scope: Scope, fields: Fields, requested: RequestedFormat, query: bytes) -> NegotiatedRequest:
        if requested.obeys_prefer and read_content(fields.get(b"prefer", b"")) == "all":
            requested = replace(requested, content="all")
        url = self._url + _path_of(scope)
        url += f"?{quote(query, safe=PLAIN + '/')}" if query else ""
        location = None
        if self.in_query and not requested.is_file:  # the rendering has a URL of its own (RFC 9110 section 8.7)
            part = "" if requested.budget == USUAL_BUDGET else f"&budget={requested.budget}"
            part += "&content=all" if requested.content == "all" else ""
            location = f"{url}{'&' if '?' in url else '?'}format={requested.format}{part}".encode("latin-1")

        is_form = scope["method"] == "POST"  # conditional headers of a POST are for the application
        dropped = FORMAT_FIELDS if is_form else DROPPED_FIELDS
        headers = [pair for pair in scope["headers"] if pair[0] not in dropped]
        inner = {
            **scope,
            "method": "POST" if is_form else "GET",  # the headers of a rendering depend on the content, even for HEAD
            "query_string": query,
            "headers": [*headers, (b"accept", ACCEPT[requested.format])],
            "extensions": {},  # server extensions for sending files would bypass the rendering
        }
        guide, page = self._guide, self._declared.get(_path_of(scope))
        if guide is not None and page is not None:
            guide = guide._replace(title=page.title, description=page.description or "")
        return NegotiatedRequest(
            requested,
            url,
            inner,
            fields,
            self._renderer,
            is_head=scope["method"] == "HEAD",
            location=location,
            in_shared_cache=self._in_shared_cache,
            link=self.links(scope),
            guide=guide if requested.is_file else None,
            cors=self._cors if requested.is_file else None,
            is_options=scope["method"] == "OPTIONS",
            whole=self._whole,
        )


def negotiated_pages(context: Context) -> NegotiatedPages | None:
    """Return the pages of one address in the formats that are offered, None if there is only HTML."""
    if context.service is None:
        return None
    catalog = context.catalog
    discovery = context.ask("discovery")
    llms, sitemap = discovery.guides_of(catalog) if discovery is not None else (None, None)
    updated = catalog.site.updated.date().isoformat() if catalog.site.updated is not None else None
    guide = Guide(llms, sitemap, catalog.site.version, updated)
    cors = Cors(context.admission.allow_origins)
    return NegotiatedPages(catalog, context.options, context.service, context.links, guide, cors)


FILE_SUFFIX: Final = ".md"

_UNRESERVED: Final = (string.ascii_letters + string.digits + "-._~/").encode()
"""A path of these only, as most are, is never quoted. Stripping them tells that faster than quoting."""


def _path_of(scope: Scope) -> str:
    """Return the path below the site's mount point as the client wrote it, quoted for a header."""
    raw = scope.get("raw_path")
    written = raw.split(b"?", 1)[0].decode("latin-1") if raw else quote(scope["path"])
    root = quote(mount_of(scope))
    path = written[len(root) :] if written.startswith(root) else quote(route_path(scope))
    return quote(path, safe=PLAIN.replace("?", ""))


def _without_suffix(path: str) -> str:
    shorter = path.removesuffix(FILE_SUFFIX)
    return shorter.removesuffix("index") if shorter.endswith("/index") else shorter


_HTML: Final = tuple(sorted(HTML_TYPES))
_JSON: Final = b"application/json"
_VARY: Final = (b"vary", b"Accept")


def negotiate(
    app: AsgiApp, pages: NegotiatedPages | None, link: bytes | None, timeout: float, links_json: bool = False
) -> Callable[[Scope, Receive, Send], Awaitable[None]]:
    """Wrap an application so that its pages are offered in other formats; in HTML only if `pages` is None.

    Pages with other formats get `Vary: Accept`, and HEAD is answered by way of GET if the application allows no HEAD.
    `link` is the `Link` header for HTML, and for JSON if `links_json`; None for none. `timeout` is the number of
    seconds from a page's first to its last byte after which the page is passed on unchanged. The wrappers are not
    coroutines, because every request passes them.
    """
    if pages is None and link is None:
        return app
    in_query = pages is not None and pages.in_query

    def forward(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        answer = offer_head if scope["method"] == "HEAD" and pages is not None else offer
        if pages is not None and scope["path"].endswith(FILE_SUFFIX) and (file := pages.read_file(scope)) is not None:
            responder = NegotiatedResponder(file, send, timeout)
            # 400 and 422: a route that matches, but whose parameter is not valid with the suffix.
            unknown = (400, 404, 405, 422)
            return ask_first(answer, scope, receive, send, unknown, partial(responder.respond, app))
        return answer(scope, receive, send)

    def offer_head(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        got = {**scope, "method": "GET"}
        return ask_first(offer, scope, receive, send, (405,), lambda again: offer(got, again, without_content(send)))

    def offer(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        names_html = False
        if pages is not None:
            accept = b""
            for name, value in scope["headers"]:
                if name == b"accept":
                    if accept:  # it is repeated
                        accept = read_fields(scope["headers"])[b"accept"]
                        break
                    accept = value
            requested, names_html = ANYTHING if accept == b"*/*" else read_accept(accept)
            if (requested is not None or in_query) and (request := pages.read_request(scope)) is not None:
                return NegotiatedResponder(request, send, timeout).respond(app, receive)

        def send_html(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                status, headers = message["status"], message.get("headers", ())
                content_type, has_vary = b"", False
                for name, value in headers:
                    if name == b"content-type":
                        content_type = value.lower()
                    elif name == b"vary":
                        has_vary = True
                linked = link if status == 200 else None
                if (status == 200 and content_type.startswith(_HTML)) or (
                    status == 304 and stands_for_page(names_html, scope["path"])
                ):
                    if pages is None:
                        headers = list(headers)
                    else:
                        headers = vary_by_accept(headers) if has_vary else [*headers, _VARY]
                    if linked is not None:
                        headers.append((b"link", (pages.links(scope) if pages is not None else None) or linked))
                    message = {**message, "headers": headers}
                elif links_json and linked is not None and content_type.startswith(_JSON):
                    message = {**message, "headers": [*headers, (b"link", linked)]}
            return send(message)

        return app(scope, receive, send_html)

    return forward


async def ask_first(
    app: AsgiApp,
    scope: Scope,
    receive: Receive,
    send: Send,
    missing: Container[int],
    instead: Callable[[Receive], Awaitable[None]],
) -> None:
    """Let the application answer. If its status is one of `missing`, discard that answer and call `instead`.

    `instead` gets a `receive` that replays the part of the body that the application has read, then yields the rest.
    """
    is_missing = False
    read: list[Message] = []

    async def receive_first() -> Message:
        message = await receive()
        if message["type"] == "http.request":
            read.append(message)
        return message

    async def receive_again() -> Message:
        return read.pop(0) if read else await receive()

    async def watch(message: Message) -> None:
        nonlocal is_missing
        if message["type"] == "http.response.start":
            is_missing = message["status"] in missing
        if not is_missing:
            await send(message)

    await app(scope, receive_first, watch)
    if is_missing:
        await instead(receive_again)


def stands_for_page(names_html: bool, path: str) -> bool:
    """Return True if a 304, which has no Content-Type, may stand for a page.

    It then needs the page's Vary header (RFC 9110 section 15.4.5). This is assumed if the request names HTML or the
    path has no file extension.
    """
    return names_html or "." not in path.rpartition("/")[2]


class NegotiatedResponder:
    """Buffers the application's answer until it is complete, then sends it in the requested format.

    `_buffer` begins with the start message of an answer to render. It is empty if messages are passed on unchanged.
    """

    __slots__ = ("_buffer", "_deadline", "_request", "_send", "_size", "_timeout")

    def __init__(self, request: NegotiatedRequest, send: Send, timeout: float) -> None:
        self._request = request
        self._send = send
        self._timeout = timeout
        self._deadline = 0.0
        self._buffer: list[Message] = []
        self._size = 0

    async def respond(self, app: AsgiApp, receive: Receive) -> None:
        """Let the application answer. An incomplete answer is passed on as such, so that the server notices."""
        await app(self._request.scope, receive, self._collect)
        await self._flush()

    async def _collect(self, message: Message) -> None:
        is_start = message["type"] == "http.response.start"
        if is_start and self._request.takes(message["status"], tuple(message.get("headers", ()))):
            self._buffer, self._deadline = [message], time.monotonic() + self._timeout
        elif not self._buffer or message["type"] != "http.response.body":
            await self._pass(message)
        else:
            self._buffer.append(message)
            self._size += len(message.get("body", b""))
            is_whole = not message.get("more_body", False)
            if is_whole and self._size <= MAX_PAGE_BYTES:
                start, *parts = self._buffer
                body = b"".join(part.get("body", b"") for part in parts)
                reply = await self._request.render_async(start["status"], tuple(start.get("headers", ())), body)
                if reply is not None:
                    self._buffer = []
                    await send_reply(reply, self._send)
                    return
            if is_whole or self._size > MAX_PAGE_BYTES or time.monotonic() > self._deadline:
                await self._flush()

    async def _flush(self) -> None:
        buffer, self._buffer = self._buffer, []
        for message in buffer:
            await self._pass(message)

    async def _pass(self, message: Message) -> None:
        """Pass a message on unchanged, but without content for HEAD, which the application got as GET."""
        if message["type"] == "http.response.start":
            headers = self._request.pass_headers(tuple(message.get("headers", ())), message["status"])
            message = {**message, "headers": list(headers)}
        elif message["type"] == "http.response.body" and self._request.is_head:
            message = {**message, "body": b""}
        await self._send(message)
