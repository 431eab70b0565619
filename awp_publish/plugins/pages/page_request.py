"""One request for a page in another format: what the application is asked, and how its answer is rendered."""

import hashlib
import re
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Final

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from awp_publish.http.cors import Cors
from awp_publish.http.exchange import NO_SNIFFING, Fields, Headers, Reply, Scope, read_fields
from awp_publish.plugins.pages.formats import (
    CONTENT_TYPES,
    ELEMENT,
    FILE_METHODS,
    HTML_TYPES,
    WHOLE_PAGE,
    FormatName,
    RequestedFormat,
    read_content,
)
from awp_publish.plugins.pages.rendering import INLINE_LIMIT, WINDOWS, Guide, PageRenderer, Rendering, RenderKey

DROPPED_FIELDS: Final = frozenset(
    {
        b"accept",
        b"accept-encoding",
        b"if-match",
        b"if-modified-since",
        b"if-none-match",
        b"if-range",
        b"if-unmodified-since",
        b"range",
        b"te",
    }
)
"""Request headers that apply to the rendered answer, so the application must not get them."""

FORMAT_FIELDS: Final = frozenset({b"accept", b"accept-encoding", b"range", b"te"})
"""The subset of DROPPED_FIELDS that is about the format only."""

_HTML_ONLY: Final = frozenset(
    {
        b"accept-ranges",
        b"content-digest",
        b"content-encoding",
        b"content-length",
        b"content-location",
        b"content-md5",
        b"content-range",
        b"content-type",
        b"digest",
        b"etag",
        b"repr-digest",
        b"trailer",
        b"transfer-encoding",
    }
)
"""Response headers that describe the HTML itself. All others are kept: cookies, Cache-Control, security policies."""

_NOT_IN_304: Final = frozenset(
    {b"content-language", b"content-length", b"content-type", b"last-modified", NO_SNIFFING[0]}
)
"""Headers that describe content, which a 304 does not have (RFC 9110 section 15.4.5)."""

_SHARED_DIRECTIVES: Final = frozenset({"public", "private", "s-maxage", "proxy-revalidate"})
"""Directives of Cache-Control about shared caches. All are replaced with an unqualified `private`."""

_CACHE_FIELDS: Final = frozenset({b"cache-control", b"surrogate-control", b"edge-control", b"x-accel-expires"})
"""Headers for caches in front of a site, besides targeted ones such as CDN-Cache-Control (RFC 9213)."""

ACCEPT: Final[dict[FormatName, bytes]] = {
    "som": b"application/som+json, text/html;q=0.9, application/xhtml+xml;q=0.8, */*;q=0.1",
    "md": b"text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.8, */*;q=0.1",
}
"""The Accept header for the application, which may answer with the format itself if it has it."""

_CHARSET: Final = re.compile(rb';\s*charset\s*=\s*"?([^\s";]+)', re.IGNORECASE)
_CANONICAL: Final = re.compile(rb'rel\s*=\s*"?[^",;]*\bcanonical\b', re.IGNORECASE)
_TAG: Final = re.compile(rb'(W/)?("[^"]*")')
"""An entity tag (RFC 9110 section 8.8.3)."""

BYTES_PER_TOKEN: Final = 4
"""Approximate bytes per token of English text; the header x-markdown-tokens is an estimate."""

RENDER_THREADS: Final = 2
"""How many large pages are rendered at the same time: each needs many times its size in memory."""

_render_limiter: Final[RunVar[CapacityLimiter]] = RunVar("awp_publish_render_limiter")


@dataclass(frozen=True, slots=True)
class NegotiatedRequest:
    """A request for a page in another format. `scope` requests the page itself, `fields` are the client's own headers.

    `in_shared_cache` lets shared caches store answers that were chosen by Accept: the site's caches obey Vary. `link`
    is the Link header of all of the page's representations, `guide` the content added to self-contained Markdown. For a
    file, `cors` says which other origins may read it, and `is_options` that the client only asks for that.
    `whole` is a sentence on how to get the whole page, where Markdown has only the main content.
    """

    requested: RequestedFormat
    url: str
    scope: Scope
    fields: Fields = field(repr=False)
    renderer: PageRenderer
    is_head: bool = False
    location: bytes | None = None
    in_shared_cache: bool = False
    link: bytes | None = None
    guide: Guide | None = None
    cors: Cors | None = None
    is_options: bool = False
    whole: str = f"The header `{WHOLE_PAGE}` requests all of it."

    def takes(self, status: int, headers: Headers) -> bool:
        """Return True if an answer with this status and these headers can be rendered.

        It has to be HTML, of a success or an error, in a known content coding.
        """
        fields = _read_lower(headers)
        is_whole = 200 <= status < 300 and status not in (204, 205, 206)
        is_decodable = fields.get(b"content-encoding", b"").strip().lower() in WINDOWS
        return (is_whole or status >= 400) and is_decodable and _is_html(fields)

    def pass_headers(self, headers: Headers, status: int = 200) -> Headers:
        """Return the headers of an answer that is passed on unchanged.

        A page gets `Vary: Accept`, because the same URL may be rendered the next time. A 304 has the Vary header of the
        answer that it stands for (RFC 9110 section 15.4.5).
        """
        is_page = status == 304 or (status == 200 and _is_html(_read_lower(headers)))
        is_chosen = not self.requested.by_query and is_page
        return vary_by_accept(headers) if is_chosen else headers

    def render(self, status: int, headers: Headers, body: bytes) -> Reply | None:
        """Convert the application's answer to `scope`. Returns None if that has to be passed on unchanged."""
        key = self._key(status, headers, body)
        if not isinstance(key, RenderKey):
            return key
        rendering = self.renderer.cached(key) or self.renderer.render(key, body)
        return None if rendering is None else self._reply(status, headers, rendering)

    async def render_async(self, status: int, headers: Headers, body: bytes) -> Reply | None:
        """Like `render`, but render large pages in a thread."""
        key = self._key(status, headers, body)
        if not isinstance(key, RenderKey):
            return key
        rendering = self.renderer.cached(key)
        if rendering is None and len(body) <= INLINE_LIMIT and not key.coding:
            rendering = self.renderer.render(key, body)
        elif rendering is None:
            limiter = _render_limiter.get(None)
            if limiter is None:
                limiter = CapacityLimiter(RENDER_THREADS)
                _render_limiter.set(limiter)
            rendering = await to_thread.run_sync(self.renderer.render, key, body, limiter=limiter)
        return None if rendering is None else self._reply(status, headers, rendering)

    def _key(self, status: int, headers: Headers, body: bytes) -> RenderKey | Reply | None:
        """Return the cache key of a page's rendering, or what `render` returns where nothing is to be rendered.

        Without a charset in the Content-Type, the page itself may name one.
        """
        if not self.takes(status, headers):
            return None
        if self.is_options and self.cors is not None and status < 300:
            return self.cors.preflight(self.fields, FILE_METHODS)
        fields = _read_lower(headers)
        charset = _CHARSET.search(fields.get(b"content-type", b""))
        coding = fields.get(b"content-encoding", b"").strip().lower()
        digest = hashlib.sha256(body).digest()
        name = charset[1].decode("latin-1") if charset else None
        is_main = self.requested.format == "md" and self.requested.content == "main"
        return RenderKey(self.requested, self.url, name, coding, digest, self.guide, self.whole if is_main else "")

    def _reply(self, status: int, headers: Headers, rendering: Rendering) -> Reply:
        fields = _read_lower(headers)
        varies = not self.requested.by_query
        pairs = [pair for pair in headers if pair[0].lower() not in _HTML_ONLY]
        if varies and not self.in_shared_cache:
            # Many shared caches ignore Vary and would send this to browsers, so it is private (RFC 9111 section 5.2).
            written = ELEMENT.findall(fields.get(b"cache-control", b"").decode("latin-1"))
            directives = [(part.partition("=")[0].strip().lower(), part.strip()) for part in written if part.strip()]
            control = [text for name, text in directives if name not in _SHARED_DIRECTIVES]
            if all(name != "no-store" for name, _ in directives):
                control.insert(0, "private")
            names = [(pair[0].lower(), pair) for pair in pairs]
            pairs = [
                pair for name, pair in names if name not in _CACHE_FIELDS and not name.endswith(b"cdn-cache-control")
            ]
            pairs.append((b"cache-control", ", ".join(control).encode("latin-1")))
        if varies:
            pairs = vary_by_accept(pairs)
        if self.requested.obeys_prefer:
            pairs = vary_by(pairs, b"Prefer")
            if read_content(self.fields.get(b"prefer", b"")) == "all":
                pairs.append((b"preference-applied", b"return=representation; content=all"))
        if b"x-content-type-options" not in fields:
            pairs.append(NO_SNIFFING)
        if 200 <= status < 300 and not _CANONICAL.search(fields.get(b"link", b"")):
            pairs.append((b"link", b'<%b>; rel="canonical"' % rendering.canonical))
        if self.link is not None and status == 200:
            pairs.append((b"link", self.link))
        if self.cors is not None and status == 200:
            pairs += self.cors.headers(self.fields)
        size = len(rendering.body)
        pairs += [(b"content-type", CONTENT_TYPES[self.requested.format]), (b"content-length", b"%d" % size)]
        if self.requested.format == "md":
            pairs.append((b"x-markdown-tokens", b"%d" % -(-size // BYTES_PER_TOKEN)))
        if status == 200 and self.scope["method"] != "POST":
            pairs.append((b"etag", rendering.etag))
            if self.location is not None:
                pairs.append((b"content-location", self.location))
            status = self._condition(fields.get(b"last-modified", b""), rendering.etag)
        if self.renderer.on_reading is not None:
            self.renderer.on_reading(self.url, self.requested.format, status, self.fields)
        if status in (304, 412):
            own = [pair for pair in pairs if pair[0] not in _NOT_IN_304]
            return Reply(status, tuple(own) if status == 304 else ((b"content-length", b"0"), *own))
        return Reply(status, tuple(pairs), b"" if self.is_head else rendering.body)

    def _condition(self, modified: bytes, etag: bytes) -> int:
        """Evaluate the client's conditions, which apply to the rendering, in the order of RFC 9110 section 13.2.2."""
        fields = self.fields
        if b"if-match" in fields:
            if not _lists(fields[b"if-match"], etag, weakly=False):
                return 412
        elif _is_unmodified(modified, fields.get(b"if-unmodified-since", b"")) is False:
            return 412
        if b"if-none-match" in fields:
            return 304 if _lists(fields[b"if-none-match"], etag, weakly=True) else 200
        return 304 if _is_unmodified(modified, fields.get(b"if-modified-since", b"")) else 200


def vary_by_accept(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return headers whose Vary includes Accept, so that caches keep the formats apart."""
    return vary_by(headers, b"Accept")


def vary_by(headers: Headers, name: bytes) -> list[tuple[bytes, bytes]]:
    """Return headers whose Vary includes a header of requests."""
    pairs = list(headers)
    vary = _read_lower(pairs).get(b"vary")
    if vary is None:
        return [*pairs, (b"vary", name)]
    if {item.strip().lower() for item in vary.split(b",")} & {b"*", name.lower()}:
        return pairs
    return [*(pair for pair in pairs if pair[0].lower() != b"vary"), (b"vary", vary + b", " + name)]


def _read_lower(headers: Headers) -> Fields:
    """Return headers by lower-case name, since applications may not write them so."""
    return read_fields([(name.lower(), value) for name, value in headers])


def _is_html(fields: Fields) -> bool:
    return fields.get(b"content-type", b"").split(b";", 1)[0].strip().lower() in HTML_TYPES


def _lists(listed: bytes, etag: bytes, weakly: bool) -> bool:
    """Return True if a list of entity tags includes `etag` or is "*" (RFC 9110 section 13.1.1)."""
    if listed.strip() == b"*":
        return True
    return any(tag == etag and (weakly or not weak) for weak, tag in _TAG.findall(listed))


def _is_unmodified(modified: bytes, since: bytes) -> bool | None:
    """Compare two HTTP dates. Returns None if one is missing or invalid."""
    try:
        changed, limit = (parsedate_to_datetime(text.decode("latin-1")) for text in (modified, since))
        return changed <= limit
    except (ValueError, TypeError, OverflowError):
        return None
