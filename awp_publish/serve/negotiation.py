"""Pages of the application as SOM or Markdown, where a request asks for them (RFC 9110 section 12.1).

`negotiate` wraps an ASGI application. An adapter of another gateway asks `NegotiatedPages.read_request` for the request
that its application is to get, and turns the HTML that it answers into the reply with `NegotiatedRequest.render`.

What is no HTML page passes as it is (a redirect, an image, an answer that the application itself gives in the format),
and so does a page that is too large, comes without end, or is in a content coding that cannot be undone here.
"""

import hashlib
import logging
import re
import time
import zlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import lru_cache, partial
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias
from urllib.parse import quote, unquote_plus, urljoin

import orjson
from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from awp_publish.model import Catalog
from awp_publish.serve.http import (
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
from awp_publish.settings import Pages

if TYPE_CHECKING:
    from awp_publish.pages.tree import Tree

logger: Final = logging.getLogger("awp_publish.pages")

# --- Requested formats ---
# Only a format that is named is given: `*/*` and `text/*` are what tools send without thinking, and mean HTML.

FormatName: TypeAlias = Literal["som", "md"]
BudgetName: TypeAlias = Literal["full", "default", "tight"]

USUAL_BUDGET: Final[BudgetName] = "default"
BUDGETS: Final[dict[str, BudgetName]] = {"full": "full", "default": "default", "tight": "tight"}
FORMATS: Final[dict[str, FormatName]] = {"som": "som", "md": "md"}
CONTENT_TYPES: Final[dict[FormatName, bytes]] = {"som": b"application/som+json", "md": b"text/markdown; charset=utf-8"}
READ_METHODS: Final = frozenset({"GET", "HEAD"})
PAGE_METHODS: Final = READ_METHODS | {"POST"}
"""Methods that are answered with pages: what a form was sent with too."""

HTML_TYPES: Final = frozenset({b"text/html", b"application/xhtml+xml"})

_FORMATS_BY_TYPE: Final[dict[str, FormatName]] = {"application/som+json": "som", "text/markdown": "md"}
_HTML_RANGES: Final = ("text/html", "text/*", "*/*")
"""The most specific first: the one that names most decides (RFC 9110 section 12.5.1)."""

_ELEMENT: Final = re.compile(r'(?:[^,"]++|"(?:[^"\\]++|\\.?)*+(?:"|$))++', re.DOTALL)
"""An element of a list, between its commas; a comma within quotes is none. Nothing is read twice."""

_WEIGHT: Final = re.compile(r"0(?:\.\d{0,3})?|1(?:\.0{0,3})?")


@dataclass(frozen=True, slots=True)
class RequestedFormat:
    """A format, for SOM how much of the page it holds, and whether the address asked for it.

    `is_file` asks for Markdown that can stand alone: with front matter, and with a way on.
    """

    format: FormatName
    budget: BudgetName = USUAL_BUDGET
    by_query: bool = False
    is_file: bool = False


class Accept(NamedTuple):
    """An Accept header: the format it asks for, None for HTML, and whether it names HTML, as browsers do."""

    requested: RequestedFormat | None
    names_html: bool


@lru_cache(maxsize=256)
def read_accept(accept: bytes) -> Accept:
    """Read an Accept header (RFC 9110 section 12.5.1).

    A named format is given if its weight is above 0 and at least that of HTML; of two, the weightier or the first. A
    weight that is none counts as 0, so that a broken header asks for nothing unusual.
    """
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
        # A range whose parameters no answer of ours has matches none (section 12.5.1).
        format_name = _FORMATS_BY_TYPE.get(name)
        budget = BUDGETS.get(parameters.get("budget", USUAL_BUDGET)) if format_name == "som" else USUAL_BUDGET
        is_utf8 = parameters.get("charset", "utf-8") in ("utf-8", "utf8")
        if format_name is not None and budget is not None and is_utf8 and weight > best:
            requested, best = RequestedFormat(format_name, budget), weight
    needed = next((html[name] for name in _HTML_RANGES if name in html), 0.0)
    return Accept(requested if best >= needed else None, "text/html" in html)


def _read_query(query: bytes) -> tuple[RequestedFormat | None, bytes]:
    """The format that a query string asks for, and the query without it. Other formats are the application's."""
    formats, budgets, rest = list[FormatName](), list[BudgetName](), list[bytes]()
    for part in query.split(b"&") if b"format=" in query else ():
        name, value = (unquote_plus(text) for text in part.decode("latin-1").partition("=")[::2])
        if name == "format" and value in FORMATS:
            formats.append(FORMATS[value])
        elif name == "budget" and value in BUDGETS:
            budgets.append(BUDGETS[value])
        else:
            rest.append(part)
    if not formats:
        return None, query
    budget = budgets[0] if budgets and formats[0] == "som" else USUAL_BUDGET
    return RequestedFormat(formats[0], budget, by_query=True), b"&".join(rest)


# --- Rendering, and the cache of renderings ---

MAX_PAGE_BYTES: Final = 4_194_304
"""Bytes of HTML, before and after its content coding is undone, beyond which a page passes as it is."""

INLINE_LIMIT: Final = 32_768
"""Bytes of HTML up to which a page is rendered on the event loop, which does not notice."""

CACHE_BYTES: Final = 16_777_216
CACHE_OVERHEAD: Final = 512
"""Bytes that an entry takes besides what it holds."""

MAX_MEMBERS: Final = 100
"""Members of a gzip body: looking for the next one costs as much as the body is long."""

PLAIN: Final = "/%:@!$&'()*+,;=?[]~"
"""Characters of an address that stay as they are."""

_GZIP: Final = zlib.MAX_WBITS | 16
_WINDOWS: Final[dict[bytes, tuple[int, ...]]] = {
    b"": (),
    b"identity": (),
    b"gzip": (_GZIP,),
    b"x-gzip": (_GZIP,),
    b"deflate": (zlib.MAX_WBITS, -zlib.MAX_WBITS),
}
"""RFC 9110 section 8.4.1. What is called deflate has its zlib header or, from many servers, has none."""


class Guide(NamedTuple):
    """The way from one page to the others: the addresses of llms.txt and sitemap.md, as far as they are.

    `version` is the site's, and `updated` the day when it last changed; `title` and `description` are those that the
    page was declared with, for what it does not say itself.
    """

    llms_txt: str | None
    sitemap: str | None
    version: str
    updated: str | None
    title: str = ""
    description: str = ""


class RenderKey(NamedTuple):
    """Everything that a rendering depends on, so that no visitor can be given what was made of another's page."""

    requested: RequestedFormat
    url: str
    charset: str | None
    coding: bytes
    digest: bytes
    guide: Guide | None = None


@dataclass(frozen=True, slots=True)
class Rendering:
    """A page in one of the formats: its bytes, their strong ETag, and the page's canonical address."""

    body: bytes
    etag: bytes
    canonical: bytes

    @property
    def size(self) -> int:
        """Bytes that it takes in the cache."""
        return len(self.body) + len(self.canonical) + CACHE_OVERHEAD


class PageRenderer:
    """Renders pages, and caches the renderings that were used last, up to `CACHE_BYTES`. Safe to use from threads.

    Raises ImportError where the extra [pages] is missing.
    """

    def __init__(self) -> None:
        self._parse: Callable[[bytes, str | None], Tree] = import_module("awp_publish.pages.selectolax").parse
        self._cache: OrderedDict[RenderKey, Rendering] = OrderedDict()
        self._size = 0
        self._lock = Lock()
        self.on_reading: Callable[[str, str, int, Fields], None] | None = None
        """Is told of every reading: the page's address, the format, the status and the reader's headers."""

    def cached(self, key: RenderKey) -> Rendering | None:
        """The rendering of the same page, made before."""
        with self._lock:
            found = self._cache.get(key)
            if found is not None:
                self._cache.move_to_end(key)
            return found

    def render(self, key: RenderKey, body: bytes) -> Rendering | None:
        """Render a page; None for one that cannot be decoded, or (which is logged) cannot be rendered."""
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
                from awp_publish.pages.markdown import write_markdown

                text = write_markdown(tree, key.url)
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
    """Undo a content coding; None for what cannot be undone, or is too large: a small body may unpack to a huge one."""
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
                # Members that follow one another are one body (RFC 1952 section 2.2).
                rest = engine.unused_data if window == _GZIP else b""
        except zlib.error:
            continue
    return None


def _as_file(text: str, tree: "Tree", canonical: str, guide: Guide | None) -> str:
    """Markdown that stands alone: front matter, where all else is told, the page, and where further pages are."""
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
    """A scalar that YAML reads as this text: in double quotes, as JSON has it."""
    return orjson.dumps(value).decode()


def _canonical_address(tree: "Tree", url: str) -> str:
    """The canonical address (RFC 6596) that a page names in its head, fit to stand in a header; else its own."""
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
"""Request headers about the answer that the client gets, which is not the one that the application gives."""

_FORMAT_FIELDS: Final = frozenset({b"accept", b"accept-encoding", b"range", b"te"})
"""Those of them that are about the format only."""

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
"""Headers that describe the HTML itself. All others are kept: cookies, Cache-Control, security policies."""

_NOT_IN_304: Final = frozenset(
    {b"content-language", b"content-length", b"content-type", b"last-modified", NO_SNIFFING[0]}
)
"""RFC 9110 section 15.4.5: what describes content that is not sent."""

_SHARED_DIRECTIVES: Final = frozenset({"public", "private", "s-maxage", "proxy-revalidate"})
"""Directives of Cache-Control about shared caches; `private` of some fields only is made one of all."""

_CACHE_FIELDS: Final = frozenset({b"cache-control", b"surrogate-control", b"edge-control", b"x-accel-expires"})
"""Headers that caches in front of a site obey, besides those of their own (RFC 9213: CDN-Cache-Control)."""

_ACCEPT: Final[dict[FormatName, bytes]] = {
    "som": b"application/som+json, text/html;q=0.9, application/xhtml+xml;q=0.8, */*;q=0.1",
    "md": b"text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.8, */*;q=0.1",
}
"""An application that has the format itself may answer with it; it knows its pages best."""

_CHARSET: Final = re.compile(rb';\s*charset\s*=\s*"?([^\s";]+)', re.IGNORECASE)
_CANONICAL: Final = re.compile(rb'rel\s*=\s*"?[^",;]*\bcanonical\b', re.IGNORECASE)
_TAG: Final = re.compile(rb'(W/)?("[^"]*")')
"""An entity tag (RFC 9110 section 8.8.3)."""

BYTES_PER_TOKEN: Final = 4
"""Of English text, about; the header x-markdown-tokens is an estimate."""

RENDER_THREADS: Final = 2
"""Large pages that are rendered at a time: each needs memory many times its size."""

_render_limiter: Final[RunVar[CapacityLimiter]] = RunVar("awp_publish_render_limiter")


@dataclass(frozen=True, slots=True)
class NegotiatedRequest:
    """A request for a page in another format. `scope` is the request for the page itself, `fields` the client's own.

    `in_shared_cache` lets shared caches keep what Accept has chosen, since they obey Vary. `link` is the header that
    every representation of a page has, `guide` what Markdown names that stands alone.
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

    def takes(self, status: int, headers: Headers) -> bool:
        """Return whether an answer that begins like this can be rendered; any other passes as it is.

        That is HTML in a coding that can be undone: a page, or an error in the form of a page.
        """
        fields = _read_lower(headers)
        is_whole = 200 <= status < 300 and status not in (204, 205, 206)
        is_decodable = fields.get(b"content-encoding", b"").strip().lower() in _WINDOWS
        return (is_whole or status >= 400) and is_decodable and _is_html(fields)

    def pass_headers(self, headers: Headers, status: int = 200) -> Headers:
        """Return the headers of an answer that passes as it is. HTML was chosen: the next page here may be rendered.

        A 304 has the Vary of the answer that it stands for (RFC 9110 section 15.4.5).
        """
        is_chosen = not self.requested.by_query and (status == 304 or _is_html(_read_lower(headers)))
        return vary_by_accept(headers) if is_chosen else headers

    def render(self, status: int, headers: Headers, body: bytes) -> Reply | None:
        """Return the reply, made of the application's answer to `scope`; None where that has to pass as it is."""
        if not self.takes(status, headers):
            return None
        fields = _read_lower(headers)
        key = self._key(fields, body)
        rendering = self.renderer.cached(key) or self.renderer.render(key, body)
        return None if rendering is None else self._reply(status, headers, fields, rendering)

    async def render_async(self, status: int, headers: Headers, body: bytes) -> Reply | None:
        """Do the same, in a thread where it would take longer than an event loop should wait."""
        if not self.takes(status, headers):
            return None
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
        """Without a charset in the Content-Type, the page itself may name one."""
        charset = _CHARSET.search(fields.get(b"content-type", b""))
        coding = fields.get(b"content-encoding", b"").strip().lower()
        digest = hashlib.sha256(body).digest()
        name = charset[1].decode("latin-1") if charset else None
        return RenderKey(self.requested, self.url, name, coding, digest, self.guide)

    def _reply(self, status: int, headers: Headers, fields: Fields, rendering: Rendering) -> Reply:
        varies = not self.requested.by_query
        kept = [pair for pair in headers if pair[0].lower() not in _HTML_ONLY]
        if varies and not self.in_shared_cache:
            # Many shared caches ignore Vary and would give this to a browser: none may keep it (RFC 9111 section 5.2).
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
        if b"x-content-type-options" not in fields:
            kept.append(NO_SNIFFING)
        if 200 <= status < 300 and not _CANONICAL.search(fields.get(b"link", b"")):
            kept.append((b"link", b'<%b>; rel="canonical"' % rendering.canonical))
        if self.link is not None and status == 200:
            kept.append((b"link", self.link))
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
        """RFC 9110 section 13.2.2, in its order; the client's conditions are about the rendering and not the HTML."""
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
    """Return headers whose Vary names Accept, so that no cache gives the answer to who wants another format."""
    kept = list(headers)
    given = [value for name, value in kept if name.lower() == b"vary"]
    if not given:
        return [*kept, _VARY]
    vary = b", ".join(given)
    if {name.strip().lower() for name in vary.split(b",")} & {b"*", b"accept"}:
        return kept
    return [*(pair for pair in kept if pair[0].lower() != b"vary"), (b"vary", vary + b", Accept")]


def _read_lower(headers: Headers) -> Fields:
    """Headers by name in lower case, which an application may have missed to write."""
    return read_fields([(name.lower(), value) for name, value in headers])


def _is_html(fields: Fields) -> bool:
    return fields.get(b"content-type", b"").split(b";", 1)[0].strip().lower() in HTML_TYPES


def _lists(listed: bytes, etag: bytes, weakly: bool) -> bool:
    """RFC 9110 section 13.1.1: one star, or tags. A comma or a star within quotes is part of a tag."""
    if listed.strip() == b"*":
        return True
    return any(tag == etag and (weakly or not weak) for weak, tag in _TAG.findall(listed))


def _is_unmodified(modified: bytes, since: bytes) -> bool | None:
    """None where one of the dates is none, or is not known."""
    try:
        last, asked = (parsedate_to_datetime(text.decode("latin-1")) for text in (modified, since))
        return last <= asked
    except (ValueError, TypeError, OverflowError):
        return None


# --- Around an application ---


class NegotiatedPages:
    """The pages of one public address of a site, which never comes from a request."""

    def __init__(
        self,
        catalog: Catalog,
        formats: Pages,
        renderer: PageRenderer,
        link: bytes | None = None,
        guide: Guide | None = None,
    ) -> None:
        self._link = link
        self._guide = guide
        self._declared = {page.path: page for page in catalog.pages}
        self.in_query = formats.in_query
        self._in_shared_cache = formats.shared_cache
        self._renderer = renderer
        self._url = catalog.url
        self._som = catalog.absolute(catalog.paths.som)

    def read_request(self, scope: Scope) -> NegotiatedRequest | None:
        """Return what a request asks for, None for HTML: then the request is the application's as it is."""
        if scope["method"] not in PAGE_METHODS:
            return None
        fields = read_fields(scope["headers"])
        query: bytes = scope["query_string"]
        requested, query = _read_query(query) if self.in_query else (None, query)
        if requested is None and b"accept" in fields:
            requested = read_accept(fields[b"accept"]).requested
        return None if requested is None else self._request(scope, fields, requested, query)

    def read_file(self, scope: Scope) -> NegotiatedRequest | None:
        """Return the request for the page whose Markdown an address with `.md` behind it means; None for any other.

        `/about.md` is that of `/about`, `/index.md` that of the site's first page. The application's own files come
        first: this is for what it does not know.
        """
        path: str = scope["path"]
        if scope["method"] not in READ_METHODS or not path.endswith(FILE_SUFFIX):
            return None
        shorter = {**scope, "path": _without_suffix(path)}
        if raw := scope.get("raw_path"):
            shorter["raw_path"] = _without_suffix(raw.split(b"?", 1)[0].decode("latin-1")).encode("latin-1")
        requested = RequestedFormat("md", by_query=True, is_file=True)
        return self._request(shorter, read_fields(scope["headers"]), requested, scope["query_string"])

    def alternates(self, scope: Scope) -> bytes:
        """Return members of a `Link` header that lead to a page's own Markdown and SOM."""
        path, query = _path_of(scope), quote(scope["query_string"], safe=PLAIN + "/")
        asked = f"?{query}" if query else ""
        file = f"{self._url}{path}{'index' if path.endswith('/') else ''}{FILE_SUFFIX}{asked}"
        som = f"{self._som}?url={quote(path + asked, safe='/')}"
        alternate = '<{}>; rel="alternate"; type="{}"'
        listed = (alternate.format(file, "text/markdown"), alternate.format(som, "application/som+json"))
        return ", ".join(listed).encode("latin-1")

    def links(self, scope: Scope) -> bytes | None:
        """Return the `Link` header of every representation of a page, None for none; a form's answer has no file."""
        if self._link is None or scope["method"] not in READ_METHODS:
            return self._link
        return b"%b, %b" % (self._link, self.alternates(scope))

    def _request(self, scope: Scope, fields: Fields, requested: RequestedFormat, query: bytes) -> NegotiatedRequest:
        url = self._url + _path_of(scope)
        url += f"?{quote(query, safe=PLAIN + '/')}" if query else ""
        location = None
        if self.in_query and not requested.is_file:  # an address that is the rendering's own (RFC 9110 section 8.7)
            budget = "" if requested.budget == USUAL_BUDGET else f"&budget={requested.budget}"
            location = f"{url}{'&' if '?' in url else '?'}format={requested.format}{budget}".encode("latin-1")

        is_form = scope["method"] == "POST"  # its conditions are the application's: they are about what it changes
        dropped = _FORMAT_FIELDS if is_form else DROPPED_FIELDS
        kept = [pair for pair in scope["headers"] if pair[0] not in dropped]
        inner = {
            **scope,
            "method": "POST" if is_form else "GET",  # what HEAD is told of the content, only the content tells
            "query_string": query,
            "headers": [*kept, (b"accept", _ACCEPT[requested.format])],
            "extensions": {},  # the server's shortcuts for sending files would go round us
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
        )


FILE_SUFFIX: Final = ".md"


def _path_of(scope: Scope) -> str:
    """The path below the site as the client wrote it, fit to stand in a header."""
    raw = scope.get("raw_path")
    written = raw.split(b"?", 1)[0].decode("latin-1") if raw else quote(scope["path"])
    root = quote(mount_of(scope))
    path = written[len(root) :] if written.startswith(root) else quote(route_path(scope))
    return quote(path, safe=PLAIN.replace("?", ""))


def _without_suffix(path: str) -> str:
    """The page that a file is made of."""
    shorter = path.removesuffix(FILE_SUFFIX)
    return shorter.removesuffix("index") if shorter.endswith("/index") else shorter


_HTML: Final = tuple(sorted(HTML_TYPES))
_JSON: Final = b"application/json"
_VARY: Final = (b"vary", b"Accept")
_ANYTHING: Final = Accept(None, names_html=False)


_HEAD_ASKED: Final = "awp_publish.head_asked"
"""The member of a scope that tells a HEAD of which the application is asked itself, before it is asked with GET."""


def negotiate(
    app: AsgiApp, pages: NegotiatedPages | None, link: bytes | None, timeout: float
) -> Callable[[Scope, Receive, Send], Awaitable[None]]:
    """Wrap an application so that its pages are offered in other formats.

    All of its HTML then says that it is chosen by Accept, and HEAD is answered where the application only knows GET;
    with `pages` None there is HTML only. HTML and JSON also get a `link` header, None for none. `timeout` is how many
    seconds a page may take from its first to its last byte before it passes as it is. Every request comes by here, so
    nothing here is a coroutine itself.
    """
    if pages is None and link is None:
        return app
    in_query = pages is not None and pages.in_query

    def forward(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if pages is not None and scope["path"].endswith(FILE_SUFFIX) and (file := pages.read_file(scope)) is not None:
            responder = NegotiatedResponder(file, send, timeout)
            # 400 and 422: a route whose parameter may be "green", but is not "green.md".
            unknown = (400, 404, 405, 422)
            return ask_first(offer, scope, receive, send, unknown, partial(responder.respond, app))
        return offer(scope, receive, send)

    def offer(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        names_html = False
        if pages is not None:
            if scope["method"] == "HEAD" and _HEAD_ASKED not in scope:
                asked, got = {**scope, _HEAD_ASKED: True}, {**scope, "method": "GET"}
                return ask_first(
                    offer, asked, receive, send, (405,), lambda again: offer(got, again, without_content(send))
                )
            accept = b""
            for name, value in scope["headers"]:
                if name == b"accept":
                    accept = accept + b", " + value if accept else value
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
                if content_type.startswith(_HTML) or (
                    message["status"] == 304 and not content_type and stands_for_page(names_html, scope["path"])
                ):
                    headers = vary_by_accept(headers) if has_vary else [*headers, _VARY]
                    if linked is not None:
                        headers.append((b"link", (pages.links(scope) if pages is not None else None) or linked))
                    message = {**message, "headers": headers}
                elif linked is not None and content_type.startswith(_JSON):
                    message = {**message, "headers": [*headers, (b"link", linked)]}
            return send(message)

        return app(scope, receive, send_html)

    return forward


def stands_for_page(names_html: bool, path: str) -> bool:
    """Tell whether a 304 may be that of a page, whose Vary it has to have (RFC 9110 section 15.4.5): it tells no type.

    It is, if its request names HTML, or if its path is no file's: who takes anything says nothing of it.
    """
    return names_html or "." not in path.rpartition("/")[2]


class NegotiatedResponder:
    """Buffers what the application answers until it is whole, then sends the requested format in its place.

    `_buffer` begins with the start of an answer that is to be rendered; it is empty while messages pass as they are.
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
        """Let the application answer. What it leaves unfinished stays unfinished, as its server would see it."""
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
        """Send the page as it came; what is still to come goes straight on."""
        buffer, self._buffer = self._buffer, []
        for message in buffer:
            await self._pass(message)

    async def _pass(self, message: Message) -> None:
        """HEAD gets no content; the application was asked with GET."""
        if message["type"] == "http.response.start":
            headers = self._request.pass_headers(tuple(message.get("headers", ())), message["status"])
            message = {**message, "headers": list(headers)}
        elif message["type"] == "http.response.body" and self._request.is_head:
            message = {**message, "body": b""}
        await self._send(message)
