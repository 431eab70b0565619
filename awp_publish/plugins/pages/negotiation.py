"""Serves the application's pages as SOM or Markdown on request (proactive negotiation, RFC 9110 section 12.1).

`negotiate` wraps an ASGI application. The adapter of another gateway calls `NegotiatedPages.read_request` to get the
request for its application, and `NegotiatedRequest.render` to convert the application's HTML answer.

Answers that are not HTML pages are passed on unchanged: a redirect, an image, or an answer that the application itself
gives in the requested format. So are pages that are too large, never end, or have an unknown content coding.
"""

import hashlib
import logging
import re
import time
import zlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from functools import lru_cache, partial
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias
from urllib.parse import quote, unquote_plus, urljoin

import orjson
from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from awp_publish.http.accept import MAX_NEGOTIATION
from awp_publish.http.cors import Cors
from awp_publish.http.exchange import (
    NO_SNIFFING,
    AsgiApp,
    Fields,
    Headers,
    Message,
    Receive,
    Reply,
    Scope,
    Send,
    ask_first,
    mount_of,
    read_fields,
    route_path,
    send_reply,
    without_content,
)
from awp_publish.http.page_address import PLAIN
from awp_publish.model import Catalog

if TYPE_CHECKING:
    from awp_publish.pages.tree import Tree

from awp_publish.plugin import Context

logger: Final = logging.getLogger("awp_publish.pages")

# --- Requested formats ---
# A format is only sent if the request names it: `*/*` and `text/*` are defaults of many tools, and mean HTML.

FormatName: TypeAlias = Literal["som", "md"]
BudgetName: TypeAlias = Literal["full", "default", "tight"]
ContentName: TypeAlias = Literal["main", "all"]

USUAL_BUDGET: Final[BudgetName] = "default"
BUDGETS: Final[dict[str, BudgetName]] = {"full": "full", "default": "default", "tight": "tight"}
CONTENTS: Final[dict[str, ContentName]] = {"main": "main", "all": "all"}
FORMATS: Final[dict[str, FormatName]] = {"som": "som", "md": "md"}
CONTENT_TYPES: Final[dict[FormatName, bytes]] = {"som": b"application/som+json", "md": b"text/markdown; charset=utf-8"}
READ_METHODS: Final = frozenset({"GET", "HEAD"})
FILE_METHODS: Final = "GET, HEAD, OPTIONS"
PAGE_METHODS: Final = READ_METHODS | {"POST"}
"""Methods that may be answered with a page; POST is for forms."""

HTML_TYPES: Final = frozenset({b"text/html", b"application/xhtml+xml"})

_FORMATS_BY_TYPE: Final[dict[str, FormatName]] = {"application/som+json": "som", "text/markdown": "md"}
_HTML_RANGES: Final = ("text/html", "text/*", "*/*")
"""Media ranges that include HTML. The most specific one, which is first here, decides (RFC 9110 section 12.5.1)."""

_ELEMENT: Final = re.compile(r'(?:[^,"]++|"(?:[^"\\]++|\\.?)*+(?:"|$))++', re.DOTALL)
"""An element of a comma-separated list, which may contain quoted commas. The pattern never backtracks."""

_WEIGHT: Final = re.compile(r"0(?:\.\d{0,3})?|1(?:\.0{0,3})?")


@dataclass(frozen=True, slots=True)
class RequestedFormat:
    """A format, and for SOM the budget (how much of the page it contains).

    `content` is how much of the page Markdown has: its main content, or all of it. `by_query` is True if the query
    string has requested the format, not the Accept header. `is_file` requests self-contained Markdown, with front
    matter and links to llms.txt and the sitemap.
    """

    format: FormatName
    budget: BudgetName = USUAL_BUDGET
    by_query: bool = False
    is_file: bool = False
    content: ContentName = "main"

    @property
    def obeys_prefer(self) -> bool:
        """True for Markdown, unless the query string names the format: then it names the content too."""
        return self.format == "md" and (self.is_file or not self.by_query)


class Accept(NamedTuple):
    """An Accept header: the format that it requests (None for HTML), and whether it names HTML, as in browsers."""

    requested: RequestedFormat | None
    names_html: bool


def read_accept(accept: bytes) -> Accept:
    """Read an Accept header (RFC 9110 section 12.5.1).

    A named format is chosen if its weight is above 0 and at least that of HTML. Of two, the one with the higher weight
    is chosen, or the first. An invalid weight counts as 0, so that a broken header means HTML, as does a very long one.
    """
    return _ANYTHING if len(accept) > MAX_NEGOTIATION else _read_accept(accept)


@lru_cache(maxsize=256)
def _read_accept(accept: bytes) -> Accept:
    html: dict[str, float] = {}
    requested, best = None, 0.0
    for element in _ELEMENT.findall(accept.decode("latin-1")):
        name, *rest = (part.strip() for part in element.split(";"))
        name, parameters = name.lower(), dict[str, str]()
        for part in rest:
            key, _, value = part.partition("=")
            parameters[key.strip().lower()] = value.strip().strip('"').lower()
        written = parameters.get("q", "1")
        weight = float(written) if _WEIGHT.fullmatch(written) else 0.0
        if name in _HTML_RANGES:
            html.setdefault(name, weight)
        # A media range with parameters that our answers do not have does not match (section 12.5.1).
        format_name = _FORMATS_BY_TYPE.get(name)
        budget = BUDGETS.get(parameters.get("budget", USUAL_BUDGET)) if format_name == "som" else USUAL_BUDGET
        is_utf8 = parameters.get("charset", "utf-8") in ("utf-8", "utf8")
        if format_name is not None and budget is not None and is_utf8 and weight > best:
            requested, best = RequestedFormat(format_name, budget), weight
    needed = next((html[name] for name in _HTML_RANGES if name in html), 0.0)
    return Accept(requested if best >= needed else None, "text/html" in html)


WHOLE_PAGE: Final = "Prefer: return=representation; content=all"
"""The header that requests a whole page in Markdown (RFC 7240)."""

_PREFERENCE: Final = re.compile(
    r'return\s*=\s*"?representation"?\s*;(?:[^,]*;)?\s*content\s*=\s*"?all"?\s*(?:[;,]|$)', re.I
)


def read_content(prefer: bytes) -> ContentName:
    """Read how much of a page a Prefer header requests (RFC 7240, section 2): its main content unless it says `all`."""
    if len(prefer) > MAX_NEGOTIATION or not prefer:
        return "main"
    elements = _ELEMENT.findall(prefer.decode("latin-1"))
    return "all" if any(_PREFERENCE.match(element.strip()) for element in elements) else "main"


def _read_query(query: bytes) -> tuple[RequestedFormat | None, bytes]:
    """Return the format that a query string requests, and the rest of the query. Unknown formats stay in the query."""
    formats, budgets, rest = list[FormatName](), list[BudgetName](), list[bytes]()
    contents = list[ContentName]()
    for part in query.split(b"&") if b"format=" in query else ():
        name, value = (unquote_plus(text) for text in part.decode("latin-1").partition("=")[::2])
        if name == "format" and value in FORMATS:
            formats.append(FORMATS[value])
        elif name == "budget" and value in BUDGETS:
            budgets.append(BUDGETS[value])
        elif name == "content" and value in CONTENTS:
            contents.append(CONTENTS[value])
        else:
            rest.append(part)
    if not formats:
        return None, query
    budget = budgets[0] if budgets and formats[0] == "som" else USUAL_BUDGET
    content = contents[0] if contents and formats[0] == "md" else "main"
    return RequestedFormat(formats[0], budget, by_query=True, content=content), b"&".join(rest)


def _take_content(query: bytes) -> tuple[ContentName, bytes]:
    """Return the content that a query string requests of a page, and the rest of the query."""
    parts = query.split(b"&")
    rest = [part for part in parts if part not in (b"content=all", b"content=main")]
    return "all" if b"content=all" in parts else "main", b"&".join(rest)


# --- Rendering, and the cache of renderings ---

MAX_PAGE_BYTES: Final = 4_194_304
"""Bytes of HTML, both encoded and decoded, above which a page is passed on unchanged."""

INLINE_LIMIT: Final = 32_768
"""Bytes of HTML up to which a page is rendered on the event loop instead of in a thread."""

CACHE_BYTES: Final = 16_777_216
CACHE_OVERHEAD: Final = 512
"""Estimated overhead of a cache entry in bytes."""

MAX_MEMBERS: Final = 100
"""Maximum members of a gzip body: finding each next one takes time proportional to the rest of the body."""

_GZIP: Final = zlib.MAX_WBITS | 16
_WINDOWS: Final[dict[bytes, tuple[int, ...]]] = {
    b"": (),
    b"identity": (),
    b"gzip": (_GZIP,),
    b"x-gzip": (_GZIP,),
    b"deflate": (zlib.MAX_WBITS, -zlib.MAX_WBITS),
}
"""The zlib window sizes to try for each content coding (RFC 9110 section 8.4.1).

Many servers send "deflate" without the zlib header.
"""


class Guide(NamedTuple):
    """What self-contained Markdown adds to a page: the URLs of llms.txt and sitemap.md, if they are published.

    `version` is the site's version, `updated` the date of its last change. `title` and `description` are those of the
    page's declaration, used if the page itself has none.
    """

    llms_txt: str | None
    sitemap: str | None
    version: str
    updated: str | None
    title: str = ""
    description: str = ""


class RenderKey(NamedTuple):
    """Everything that a rendering depends on, so that no visitor can get a rendering of another visitor's page."""

    requested: RequestedFormat
    url: str
    charset: str | None
    coding: bytes
    digest: bytes
    guide: Guide | None = None
    whole: str = ""


@dataclass(frozen=True, slots=True)
class Rendering:
    """A page in one of the formats: its bytes, their strong ETag, and the page's canonical address."""

    body: bytes
    etag: bytes
    canonical: bytes

    @property
    def size(self) -> int:
        """Size in the cache, in bytes."""
        return len(self.body) + len(self.canonical) + CACHE_OVERHEAD


class PageRenderer:
    """Renders pages, with an LRU cache of up to `CACHE_BYTES`. Thread-safe.

    Raises ImportError if the extra [pages] is not installed.
    """

    def __init__(self) -> None:
        self._parse: Callable[[bytes, str | None], Tree] = import_module("awp_publish.pages.selectolax").parse
        self._cache: OrderedDict[RenderKey, Rendering] = OrderedDict()
        self._size = 0
        self._lock = Lock()
        self.on_reading: Callable[[str, str, int, Fields], None] | None = None
        """Called for each page that is read, with its URL, the format, the status and the reader's headers."""

    def cached(self, key: RenderKey) -> Rendering | None:
        """Return the cached rendering of a page, None if there is none."""
        with self._lock:
            found = self._cache.get(key)
            if found is not None:
                self._cache.move_to_end(key)
            return found

    def render(self, key: RenderKey, body: bytes) -> Rendering | None:
        """Render a page. Returns None if it cannot be decoded or, which is logged, cannot be rendered."""
        html = _decode(body, key.coding)
        if html is None:
            return None
        try:
            tree = self._parse(html, key.charset)
            canonical = _canonical_address(tree, key.url)
            if key.requested.format == "som":
                from awp_publish.pages.som import Budget, compile_som

                content = compile_som(tree, key.url, Budget[key.requested.budget.upper()]).dump()
            else:
                from awp_publish.pages.markdown import write_content, write_markdown

                is_all = key.requested.content == "all"
                text = write_markdown(tree, key.url) if is_all else write_content(tree, key.url, key.whole)
                if key.requested.is_file:
                    text = _as_file(text, tree, canonical, key.guide)
                content = text.encode("utf-8", "replace")
            tree.unlink()
            etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'.encode()
            rendering = Rendering(content, etag, canonical.encode("latin-1"))
        except Exception:
            logger.exception("%s could not be rendered as %s", key.url, key.requested.format)
            return None
        if rendering.size <= CACHE_BYTES:
            with self._lock:
                replaced = self._cache.pop(key, None)
                self._cache[key] = rendering
                self._size += rendering.size - (replaced.size if replaced is not None else 0)
                while self._size > CACHE_BYTES:
                    self._size -= self._cache.popitem(last=False)[1].size
        return rendering


def _decode(body: bytes, coding: bytes) -> bytes | None:
    """Decode a content coding. Returns None for an unknown or broken one, and if the result would be too large."""
    windows = _WINDOWS.get(coding)
    if not windows:
        return body if windows is not None and len(body) <= MAX_PAGE_BYTES else None
    for window in windows:
        unpacked, rest = bytearray(), body
        try:
            for _ in range(MAX_MEMBERS + 1):
                if not rest:
                    return bytes(unpacked)
                engine = zlib.decompressobj(window)
                unpacked += engine.decompress(rest, MAX_PAGE_BYTES + 1 - len(unpacked))
                if len(unpacked) > MAX_PAGE_BYTES or not engine.eof:
                    break
                # A gzip body may consist of several members (RFC 1952 section 2.2).
                rest = engine.unused_data if window == _GZIP else b""
        except zlib.error:
            continue
    return None


def _as_file(text: str, tree: "Tree", canonical: str, guide: Guide | None) -> str:
    """Return self-contained Markdown: front matter, a link to llms.txt, the page, and a link to the sitemap."""
    from awp_publish.pages.tree import read_title

    metas = {node.attributes.get("name", "").lower(): node for node in tree.tagged("meta")}
    described = metas["description"].attributes.get("content", "") if "description" in metas else ""
    facts = {
        "title": " ".join((read_title(tree) or (guide.title if guide else "")).split()),
        "description": " ".join((described or (guide.description if guide else "")).split()),
        "canonical": canonical,
        "doc_version": guide.version if guide else None,
        "last_updated": guide.updated if guide else None,
    }
    lines = ["---", *(f"{name}: {_yaml(value)}" for name, value in facts.items() if value), "---", ""]
    if guide is not None and guide.llms_txt:
        lines += [f"> All actions and pages of this site: {guide.llms_txt}", ""]
    lines.append(text.rstrip("\n"))
    if guide is not None and guide.sitemap:
        lines += ["", "## Sitemap", "", f"[All pages]({guide.sitemap})"]
    return "\n".join(lines) + "\n"


def _yaml(value: str) -> str:
    """Return a text as a YAML scalar. A JSON string is one."""
    return orjson.dumps(value).decode()


def _canonical_address(tree: "Tree", url: str) -> str:
    """Return the canonical URL (RFC 6596) from a page's head, quoted for a header, otherwise the page's own URL."""
    for node in tree.head.children if tree.head is not None else ():
        if node.tag == "link" and "canonical" in node.attributes.get("rel", "").lower().split():
            try:
                address = urljoin(url, node.attributes.get("href", "").strip())
            except ValueError:
                return url
            return quote(address, safe=PLAIN) if address.startswith(("http://", "https://")) else url
    return url


# --- One request for a page in another format ---

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

_FORMAT_FIELDS: Final = frozenset({b"accept", b"accept-encoding", b"range", b"te"})
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

_ACCEPT: Final[dict[FormatName, bytes]] = {
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
        is_decodable = fields.get(b"content-encoding", b"").strip().lower() in _WINDOWS
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
        if not self.takes(status, headers):
            return None
        if self.is_options and self.cors is not None and status < 300:
            return self.cors.preflight(self.fields, FILE_METHODS)
        fields = _read_lower(headers)
        key = self._key(fields, body)
        rendering = self.renderer.cached(key) or self.renderer.render(key, body)
        return None if rendering is None else self._reply(status, headers, fields, rendering)

    async def render_async(self, status: int, headers: Headers, body: bytes) -> Reply | None:
        """Like `render`, but render large pages in a thread."""
        if not self.takes(status, headers):
            return None
        if self.is_options and self.cors is not None and status < 300:
            return self.cors.preflight(self.fields, FILE_METHODS)
        fields = _read_lower(headers)
        key = self._key(fields, body)
        rendering = self.renderer.cached(key)
        if rendering is None and len(body) <= INLINE_LIMIT and not key.coding:
            rendering = self.renderer.render(key, body)
        elif rendering is None:
            limiter = _render_limiter.get(None)
            if limiter is None:
                limiter = CapacityLimiter(RENDER_THREADS)
                _render_limiter.set(limiter)
            rendering = await to_thread.run_sync(self.renderer.render, key, body, limiter=limiter)
        return None if rendering is None else self._reply(status, headers, fields, rendering)

    def _key(self, fields: Fields, body: bytes) -> RenderKey:
        """Return the cache key. Without a charset in the Content-Type, the page itself may name one."""
        charset = _CHARSET.search(fields.get(b"content-type", b""))
        coding = fields.get(b"content-encoding", b"").strip().lower()
        digest = hashlib.sha256(body).digest()
        name = charset[1].decode("latin-1") if charset else None
        is_main = self.requested.format == "md" and self.requested.content == "main"
        return RenderKey(self.requested, self.url, name, coding, digest, self.guide, self.whole if is_main else "")

    def _reply(self, status: int, headers: Headers, fields: Fields, rendering: Rendering) -> Reply:
        varies = not self.requested.by_query
        kept = [pair for pair in headers if pair[0].lower() not in _HTML_ONLY]
        if varies and not self.in_shared_cache:
            # Many shared caches ignore Vary and would send this to browsers, so it is private (RFC 9111 section 5.2).
            written = _ELEMENT.findall(fields.get(b"cache-control", b"").decode("latin-1"))
            directives = [(one.partition("=")[0].strip().lower(), one.strip()) for one in written if one.strip()]
            control = [one for name, one in directives if name not in _SHARED_DIRECTIVES]
            if all(name != "no-store" for name, _ in directives):
                control.insert(0, "private")
            names = [(pair[0].lower(), pair) for pair in kept]
            kept = [
                pair for name, pair in names if name not in _CACHE_FIELDS and not name.endswith(b"cdn-cache-control")
            ]
            kept.append((b"cache-control", ", ".join(control).encode("latin-1")))
        if varies:
            kept = vary_by_accept(kept)
        if self.requested.obeys_prefer:
            kept = vary_by(kept, b"Prefer")
            if read_content(self.fields.get(b"prefer", b"")) == "all":
                kept.append((b"preference-applied", b"return=representation; content=all"))
        if b"x-content-type-options" not in fields:
            kept.append(NO_SNIFFING)
        if 200 <= status < 300 and not _CANONICAL.search(fields.get(b"link", b"")):
            kept.append((b"link", b'<%b>; rel="canonical"' % rendering.canonical))
        if self.link is not None and status == 200:
            kept.append((b"link", self.link))
        if self.cors is not None and status == 200:
            kept += self.cors.headers(self.fields)
        size = len(rendering.body)
        kept += [(b"content-type", CONTENT_TYPES[self.requested.format]), (b"content-length", b"%d" % size)]
        if self.requested.format == "md":
            kept.append((b"x-markdown-tokens", b"%d" % -(-size // BYTES_PER_TOKEN)))
        if status == 200 and self.scope["method"] != "POST":
            kept.append((b"etag", rendering.etag))
            if self.location is not None:
                kept.append((b"content-location", self.location))
            status = self._condition(fields.get(b"last-modified", b""), rendering.etag)
        if self.renderer.on_reading is not None:
            self.renderer.on_reading(self.url, self.requested.format, status, self.fields)
        if status in (304, 412):
            own = [pair for pair in kept if pair[0] not in _NOT_IN_304]
            return Reply(status, tuple(own) if status == 304 else ((b"content-length", b"0"), *own))
        return Reply(status, tuple(kept), b"" if self.is_head else rendering.body)

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
    kept = list(headers)
    vary = _read_lower(kept).get(b"vary")
    if vary is None:
        return [*kept, (b"vary", name)]
    if {one.strip().lower() for one in vary.split(b",")} & {b"*", name.lower()}:
        return kept
    return [*(pair for pair in kept if pair[0].lower() != b"vary"), (b"vary", vary + b", " + name)]


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


# --- Around an application ---


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
        self._guide = guide
        self._declared = {page.path: page for page in catalog.pages}
        self.in_query = formats.in_query
        in_query = " or `?content=all`" if self.in_query else ""
        self._whole = f"The header `{WHOLE_PAGE}`{in_query} requests all of it."
        self._in_shared_cache = formats.shared_cache
        self._renderer = renderer
        self._url = catalog.url
        self._som = catalog.absolute(catalog.paths.som)

    def read_request(self, scope: Scope) -> NegotiatedRequest | None:
        """Return the request for a page in another format, None if HTML is requested."""
        if scope["method"] not in PAGE_METHODS:
            return None
        fields = read_fields(scope["headers"])
        query: bytes = scope["query_string"]
        requested, query = _read_query(query) if self.in_query else (None, query)
        if requested is None and b"accept" in fields:
            requested = read_accept(fields[b"accept"]).requested
            if requested is not None and requested.format == "md" and self.in_query:
                content, query = _take_content(query)
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

    def alternates(self, scope: Scope) -> bytes:
        """Return the members of a `Link` header for a page's Markdown and SOM."""
        path, query = _path_of(scope), quote(scope["query_string"], safe=PLAIN + "/")
        suffix = f"?{query}" if query else ""
        file = f"{self._url}{path}{'index' if path.endswith('/') else ''}{FILE_SUFFIX}{suffix}"
        som = f"{self._som}?url={quote(path + suffix, safe='/')}"
        alternate = '<{}>; rel="alternate"; type="{}"'
        listed = (alternate.format(file, "text/markdown"), alternate.format(som, "application/som+json"))
        return ", ".join(listed).encode("latin-1")

    def links(self, scope: Scope) -> bytes | None:
        """Return the `Link` header of a page, None if link headers are off. A form's answer has no other formats."""
        if self._link is None or scope["method"] not in READ_METHODS:
            return self._link
        return b"%b, %b" % (self._link, self.alternates(scope))

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
        dropped = _FORMAT_FIELDS if is_form else DROPPED_FIELDS
        kept = [pair for pair in scope["headers"] if pair[0] not in dropped]
        inner = {
            **scope,
            "method": "POST" if is_form else "GET",  # the headers of a rendering depend on the content, even for HEAD
            "query_string": query,
            "headers": [*kept, (b"accept", _ACCEPT[requested.format])],
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
    formats, catalog = context.settings.page_formats, context.catalog
    if context.service is None or formats is None:
        return None
    discovery = context.ask("discovery")
    llms, sitemap = discovery.guides_of(catalog) if discovery is not None else (None, None)
    updated = catalog.site.updated.date().isoformat() if catalog.site.updated is not None else None
    guide = Guide(llms, sitemap, catalog.site.version, updated)
    cors = Cors(context.admission.allow_origins)
    return NegotiatedPages(catalog, formats, context.service, context.links, guide, cors)


FILE_SUFFIX: Final = ".md"


def _path_of(scope: Scope) -> str:
    """Return the path below the site's mount point as the client wrote it, quoted for a header."""
    raw = scope.get("raw_path")
    written = raw.split(b"?", 1)[0].decode("latin-1") if raw else quote(scope["path"])
    root = quote(mount_of(scope))
    path = written[len(root) :] if written.startswith(root) else quote(route_path(scope))
    return quote(path, safe=PLAIN.replace("?", ""))


def _without_suffix(path: str) -> str:
    """Return the path of the page that a `.md` path belongs to."""
    shorter = path.removesuffix(FILE_SUFFIX)
    return shorter.removesuffix("index") if shorter.endswith("/index") else shorter


_HTML: Final = tuple(sorted(HTML_TYPES))
_JSON: Final = b"application/json"
_VARY: Final = (b"vary", b"Accept")
_ANYTHING: Final = Accept(None, names_html=False)


_HEAD_TRIED: Final = "awp_publish.head_asked"
"""The scope member that marks a HEAD request which is tried on the application first, before it is sent as GET."""


def negotiate(
    app: AsgiApp, pages: NegotiatedPages | None, link: bytes | None, timeout: float, links_json: bool = False
) -> Callable[[Scope, Receive, Send], Awaitable[None]]:
    """Wrap an application so that its pages are offered in other formats; in HTML only if `pages` is None.

    All of its pages then get `Vary: Accept`, and HEAD is answered by way of GET if the application does not allow HEAD.
    `link` is the `Link` header for HTML, and for JSON if `links_json`; None for none. `timeout` is the number of
    seconds from a page's first to its last byte after which the page is passed on unchanged. The wrappers are not
    coroutines, because every request passes them.
    """
    if pages is None and link is None:
        return app
    in_query = pages is not None and pages.in_query

    def forward(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if pages is not None and scope["path"].endswith(FILE_SUFFIX) and (file := pages.read_file(scope)) is not None:
            responder = NegotiatedResponder(file, send, timeout)
            # 400 and 422: a route that matches, but whose parameter is not valid with the suffix.
            unknown = (400, 404, 405, 422)
            return ask_first(offer, scope, receive, send, unknown, partial(responder.respond, app))
        return offer(scope, receive, send)

    def offer(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        names_html = False
        if pages is not None:
            if scope["method"] == "HEAD" and _HEAD_TRIED not in scope:
                tried, got = {**scope, _HEAD_TRIED: True}, {**scope, "method": "GET"}
                return ask_first(
                    offer, tried, receive, send, (405,), lambda again: offer(got, again, without_content(send))
                )
            accept = read_fields(scope["headers"]).get(b"accept", b"")
            requested, names_html = _ANYTHING if accept == b"*/*" else read_accept(accept)
            if requested is not None or in_query:
                request = pages.read_request(scope)
                if request is not None:
                    return NegotiatedResponder(request, send, timeout).respond(app, receive)

        def send_html(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                content_type, has_vary, headers = b"", False, message.get("headers", ())
                for name, value in headers:
                    if name == b"content-type":
                        content_type = value.lower()
                    elif name == b"vary":
                        has_vary = True
                linked = link if message["status"] == 200 else None
                if (message["status"] == 200 and content_type.startswith(_HTML)) or (
                    message["status"] == 304 and not content_type and stands_for_page(names_html, scope["path"])
                ):
                    headers = vary_by_accept(headers) if has_vary else [*headers, _VARY]
                    if linked is not None:
                        headers.append((b"link", (pages.links(scope) if pages is not None else None) or linked))
                    message = {**message, "headers": headers}
                elif links_json and linked is not None and content_type.startswith(_JSON):
                    message = {**message, "headers": [*headers, (b"link", linked)]}
            return send(message)

        return app(scope, receive, send_html)

    return forward


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
        """Send the buffered messages unchanged, and stop buffering."""
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
