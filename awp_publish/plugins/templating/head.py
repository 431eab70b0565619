"""What agents and search engines look for in the head of a page.

It is what `head_links` writes in a template, without what the page says itself. A page is passed on unchanged if the
first chunk of its answer has no end tag of a head, if it is not plain UTF-8, or if a header depends on its bytes
(`ETag`, `Accept-Ranges`, digests). No page is collected.
"""

import re
from collections.abc import Awaitable, Callable
from functools import lru_cache
from html import unescape
from typing import Any, Final

from starlette.types import ASGIApp

from awp_publish.http.exchange import Headers, Message, Receive, Scope, Send, route_path, without_content
from awp_publish.model import Catalog
from awp_publish.plugin import Context, Plugin
from awp_publish.plugins.templating import address_pattern, head_links

MAX_HEAD_BYTES: Final = 65_536

_END: Final = re.compile(rb"</head\s*>", re.IGNORECASE)
_TITLE: Final = re.compile(r"<title[^>]*>([^<]+)</title", re.IGNORECASE)
_DESCRIPTION: Final = re.compile(r"""<meta\s+name=["']?description["']?\s+content=(["'])(.*?)\1""", re.IGNORECASE)
_KEY: Final = re.compile(r"""\b(?:name|property)\s*=\s*["']?([\w:.-]+)|(canonical|ld\+json|webmcp\.tools)""")
_MARK: Final = "<!-- For agents:"
_POLICY: Final = "content-security-policy"
_OF_THESE_BYTES: Final = (b"content-encoding", b"accept-ranges", b"content-md5", b"content-digest", b"repr-digest")


class HeadWriter:
    """Writes into the heads of the pages at one address of a site."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._elements = lru_cache(maxsize=512)(self._make)
        self._paths = frozenset(page.path for page in catalog.pages)
        templates = [address_pattern(page) for page in catalog.pages if page.is_template]
        self._templates = re.compile("|".join(templates)) if templates else None

    def lists(self, path: str) -> bool:
        """Return True if the site lists the page at a path."""
        return path in self._paths or (self._templates is not None and self._templates.fullmatch(path) is not None)

    def write(self, path: str, part: bytes, *, has_policy: bool) -> bytes:
        """Return the first part of a page with its head completed. No script is added where a policy may forbid it."""
        end = _END.search(part, 0, MAX_HEAD_BYTES)
        if end is None:
            return part
        head = part[: end.start()].decode(errors="replace")
        if _MARK in head or head.rfind("<script") > head.rfind("</script") or head.rfind("<!--") > head.rfind("-->"):
            return part
        title, description = _TITLE.search(head), _DESCRIPTION.search(head)
        elements = self._elements(
            path,
            unescape(title[1]).strip() if title else None,
            unescape(description[2]).strip() if description else None,
        )
        own = {key for groups in _KEY.findall(head.lower()) for key in groups}
        if has_policy or _POLICY in head.lower():
            own.add("webmcp.tools")
        written = [element for key, element in elements if key not in own and element not in head]
        return b"%b%b\n%b" % (part[: end.start()], "\n".join(written).encode(), part[end.start() :])

    def _make(self, path: str, title: str | None, description: str | None) -> tuple[tuple[str | None, str], ...]:
        text = head_links(self._catalog, path=path, title=title, description=description)
        keys = ((_KEY.search(line), line) for line in text.split("\n"))
        return tuple((key[1] or key[2] if key else None, line) for key, line in keys)


def _around(context: Context, app: ASGIApp) -> Any:
    if not context.catalog.pages:
        return app
    writer = HeadWriter(context.catalog)

    def forward(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        # What a page says of its address holds without a query.
        if scope["method"] not in ("GET", "HEAD") or scope["query_string"] or not writer.lists(route_path(scope)):
            return app(scope, receive, send)
        if scope["method"] == "HEAD":  # whose fields are those of GET (RFC 9110 section 9.3.2), with the length
            scope, send = {**scope, "method": "GET"}, without_content(send)
        return app(scope, receive, _write_into(writer, route_path(scope), send))

    return forward


def _write_into(writer: HeadWriter, path: str, send: Send) -> Callable[[Message], Awaitable[None]]:
    start: Message | None = None

    async def write(message: Message) -> None:
        nonlocal start
        if message["type"] == "http.response.start":
            if message["status"] == 200 and _takes(message.get("headers", ())):
                start = message
                return
        elif start is not None:
            first, start = start, None
            if message["type"] == "http.response.body":
                first, message = _written(writer, path, first, message)
            await send(first)
        await send(message)

    return write


def _written(writer: HeadWriter, path: str, start: Message, first: Message) -> tuple[Message, Message]:
    """Return the beginning of an answer with the head of its page completed."""
    headers, body = start["headers"], first.get("body", b"")
    has_policy = any(name.startswith(_POLICY.encode()) for name, _ in headers)
    completed = writer.write(path, body, has_policy=has_policy)
    if completed is body:
        return start, first
    remaining = [pair for pair in headers if pair[0] != b"content-length"]
    if not first.get("more_body", False):
        remaining.append((b"content-length", b"%d" % len(completed)))
    return {**start, "headers": remaining}, {**first, "body": completed}


def _takes(headers: Headers) -> bool:
    fields = dict(headers)
    kind = fields.get(b"content-type", b"").lower()
    has_strong_tag = not fields.get(b"etag", b"W/").startswith(b"W/")
    is_plain = not has_strong_tag and not any(name in fields for name in _OF_THESE_BYTES)
    return is_plain and kind.startswith(b"text/html") and b"utf-8" in kind


PLUGIN = Plugin(name="head", is_default=True, around=_around)
