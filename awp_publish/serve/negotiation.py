"""Pages of the application as SOM or Markdown, where a request asks for them (RFC 9110 section 12.1).

Nothing here does I/O. `Pages.asked` reads a request, `Asked.scope` is the request that the application gets in its
place, and `Asked.answer` makes of the application's HTML what was asked for. `negotiate_exchange.py` joins them for
ASGI; an adapter of another gateway calls the same three.

What is no HTML page passes as it is (a redirect, an image, an answer that the application itself gives in the format),
and so does a page that is too large, or in a content coding that cannot be undone here.
"""

import hashlib
import logging
import re
import zlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import lru_cache
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar
from urllib.parse import quote, unquote_plus, urljoin

from awp_publish.model import Catalog
from awp_publish.serve.http import (
    NO_SNIFFING,
    Fields,
    Headers,
    RawHeaders,
    Reply,
    Scope,
    mount_of,
    read_fields,
    route_path,
)
from awp_publish.settings import Offering

if TYPE_CHECKING:
    from awp_publish.pages.tree import Tree


# --- Undoing the content coding of an answer, within a limit: a small body may unpack to a very large one ---

GZIP: Final = zlib.MAX_WBITS | 16
MOST_MEMBERS: Final = 100
"""Members of a gzip body: looking for the next one costs as much as the body is long."""

_CODINGS: Final = {"gzip": (GZIP,), "x-gzip": (GZIP,), "deflate": (zlib.MAX_WBITS, -zlib.MAX_WBITS)}
"""RFC 9110 section 8.4.1. What is called deflate has its zlib header or, from many servers, has none."""


def decode_body(body: bytes, coding: bytes, most: int) -> bytes | None:
    """The body as it was before it was encoded, at most `most` bytes; None where that cannot be had."""
    name = coding.decode("latin-1").strip().lower()
    if name in ("", "identity"):
        return body if len(body) <= most else None
    decoded = (_inflate(body, window, most) for window in _CODINGS.get(name, ()))
    return next((one for one in decoded if one is not None), None)


def is_decodable(coding: bytes) -> bool:
    """Whether `decode_body` knows a coding."""
    name = coding.decode("latin-1").strip().lower()
    return name in ("", "identity") or name in _CODINGS


def _inflate(body: bytes, window: int, most: int) -> bytes | None:
    """Members that follow one another are one body (RFC 1952 section 2.2)."""
    unpacked = bytearray()
    for _ in range(MOST_MEMBERS):
        if not body:
            break
        engine = zlib.decompressobj(window)
        try:
            unpacked += engine.decompress(body, most + 1 - len(unpacked))
        except zlib.error:
            return None
        if len(unpacked) > most or not engine.eof:
            return None
        body = engine.unused_data if window == GZIP else b""
    return None if body else bytes(unpacked)


# --- What pages were turned into ---

K = TypeVar("K", bound=Hashable)

OVERHEAD: Final = 512
"""Bytes that an entry takes besides what it holds."""


@dataclass(frozen=True, slots=True)
class Rendition:
    """A page in one of the formats: its bytes, their strong ETag, and the page's canonical address."""

    body: bytes
    etag: bytes
    canonical: bytes


class Memory(Generic[K]):
    """The renditions that were used last, as many as go into `most` bytes. Safe to use from several threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._kept: OrderedDict[K, Rendition] = OrderedDict()
        self._lock = Lock()

    def get(self, key: K) -> Rendition | None:
        """The rendition kept under a key, which is then the last that was used."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def keep(self, key: K, rendition: Rendition) -> None:
        """Keep a rendition; those that were not used for the longest time make room. One that is too large is not."""
        size = _size_of(rendition)
        if size > self._most:
            return
        with self._lock:
            before = self._kept.pop(key, None)
            self._size += size - (_size_of(before) if before is not None else 0)
            self._kept[key] = rendition
            while self._size > self._most:
                self._size -= _size_of(self._kept.popitem(last=False)[1])


def _size_of(rendition: Rendition) -> int:
    return len(rendition.body) + len(rendition.canonical) + OVERHEAD


# --- Which format of a page a request asks for ---
# Only a format that is named is given: `*/*` and `text/*` are what tools send without thinking, and mean HTML.

FormatName: TypeAlias = Literal["som", "md"]
BudgetName: TypeAlias = Literal["full", "default", "tight"]

FULL: Final[BudgetName] = "full"
BUDGETS: Final[tuple[BudgetName, ...]] = ("full", "default", "tight")
REQUESTED_FORMATS: Final[dict[str, FormatName]] = {"som": "som", "md": "md"}
MEDIA_TYPES: Final[dict[str, FormatName]] = {"application/som+json": "som", "text/markdown": "md"}
HTML: Final = "text/html"
_HTML_RANGES: Final = (HTML, "text/*", "*/*")
"""The most specific first: the one that names most decides (RFC 9110 section 12.5.1)."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A format, for SOM how much of the page it holds, and whether the address asked for it."""

    format: FormatName
    budget: BudgetName = FULL
    by_query: bool = False


class Reading(NamedTuple):
    """What an Accept header says: the wish, None for HTML, and whether HTML is named, as pages' readers do."""

    wish: Wish | None
    names_html: bool


@lru_cache(maxsize=256)
def read_accept(accept: bytes) -> Reading:
    """Read an Accept header (RFC 9110 section 12.5.1).

    A named format is given if its weight is above 0 and at least that of HTML; of two, the weightier or the first.
    """
    ranges = tuple(_read_ranges(accept.decode("latin-1")))
    html = next((one.weight for name in _HTML_RANGES for one in ranges if one.name == name), 0.0)
    named = [(one.weight, wish) for one in ranges if (wish := _wish_of(one)) is not None and one.weight > 0]
    best = max(named, key=lambda pair: pair[0], default=None)
    names_html = any(one.name == HTML for one in ranges)
    return Reading(best[1] if best is not None and best[0] >= html else None, names_html)


def read_query(query: bytes) -> tuple[Wish | None, bytes]:
    """The wish in a query string, and the query without it. A `format` that is none of ours is the application's."""
    if b"format=" not in query:
        return None, query
    pairs = [(part, *_pair(part)) for part in query.split(b"&")]
    asked = next(
        (REQUESTED_FORMATS[value] for _, name, value in pairs if name == "format" and value in REQUESTED_FORMATS), None
    )
    if asked is None:
        return None, query
    budgets = (one for _, name, value in pairs if name == "budget" for one in BUDGETS if one == value)
    budget = next(budgets, FULL)
    left = [part for part, name, value in pairs if not _is_ours(name, value)]
    return Wish(asked, budget if asked == "som" else FULL, by_query=True), b"&".join(left)


def _is_ours(name: str, value: str) -> bool:
    return (name == "format" and value in REQUESTED_FORMATS) or (name == "budget" and value in BUDGETS)


def _pair(part: bytes) -> tuple[str, str]:
    name, _, value = part.decode("latin-1").partition("=")
    return unquote_plus(name), unquote_plus(value)


# --- The grammar of Accept ---


class _Range(NamedTuple):
    name: str
    parameters: dict[str, str]
    weight: float


ELEMENT: Final = re.compile(r'(?:[^,"]++|"(?:[^"\\]++|\\.?)*+(?:"|$))++', re.DOTALL)
"""What stands between the commas of a list; a comma within quotes is none. Nothing is read twice."""

_WEIGHT: Final = re.compile(r"0(?:\.\d{0,3})?|1(?:\.0{0,3})?")


def _read_ranges(accept: str) -> Iterable[_Range]:
    for element in ELEMENT.findall(accept):
        name, *rest = (part.strip() for part in element.split(";"))
        parameters = {}
        for part in rest:
            key, _, value = part.partition("=")
            parameters[key.strip().lower()] = value.strip().strip('"').lower()
        if "/" in name:
            yield _Range(name.lower(), parameters, _weight(parameters.pop("q", "1")))


def _weight(text: str) -> float:
    """A weight that is none counts for nothing, so that a broken header asks for nothing unusual."""
    return float(text) if _WEIGHT.fullmatch(text) else 0.0


def _wish_of(one: _Range) -> Wish | None:
    """A range whose parameters no answer of ours has matches none (section 12.5.1)."""
    format_name = MEDIA_TYPES.get(one.name)
    if format_name is None or one.parameters.get("charset", "utf-8") not in ("utf-8", "utf8"):
        return None
    if format_name == "md":
        return Wish(format_name)
    given = one.parameters.get("budget", FULL)
    budget = next((name for name in BUDGETS if name == given), None)
    return None if budget is None else Wish(format_name, budget)


# --- The formats themselves ---

logger: Final = logging.getLogger("awp_publish.pages")

LARGEST: Final = 4_194_304
"""Bytes of HTML, before and after its content coding is undone, beyond which a page passes as it is."""

QUICK: Final = 32_768
"""Bytes of HTML up to which rendering is over before anybody else on the event loop would notice."""

MEMORY: Final = 16_777_216
"""Bytes of renditions that are kept for pages that have not changed."""

PLAIN: Final = "/%:@!$&'()*+,;=?[]~"
"""Characters of an address that stay as they are."""


class Source(NamedTuple):
    """All that a rendition is made from, so that no visitor can be given what was made of another's page."""

    wish: Wish
    url: str
    charset: str | None
    coding: bytes
    digest: bytes


@dataclass(frozen=True, slots=True)
class Format:
    """How a parsed page is rendered, and what the answer says of itself; `page` is the address of the page."""

    media_type: bytes
    render: Callable[["Tree", str, BudgetName], bytes]


class Renditions:
    """Renders pages and remembers what came of it. Raises DeclarationError's cause, ImportError, without the extra."""

    def __init__(self, most: int = MEMORY) -> None:
        self._memory: Memory[Source] = Memory(most)
        self._parse: Callable[[bytes, str | None], Tree] = import_module("awp_publish.pages.selectolax").parse

    def source(self, wish: Wish, url: str, charset: str | None, coding: bytes, body: bytes) -> Source:
        """What is to be rendered, told by its content."""
        return Source(wish, url, charset, coding, hashlib.sha256(body).digest())

    def remembered(self, source: Source) -> Rendition | None:
        """What was made of the same page before."""
        return self._memory.get(source)

    def make(self, source: Source, body: bytes) -> Rendition | None:
        """Render a page; None for one that cannot be unpacked, or (which is logged) not be rendered."""
        html = decode_body(body, source.coding, LARGEST)
        if html is None:
            return None
        try:
            rendition = self._render(source, html)
        except Exception:
            logger.exception("%s could not be rendered as %s", source.url, source.wish.format)
            return None
        self._memory.keep(source, rendition)
        return rendition

    def _render(self, source: Source, html: bytes) -> Rendition:
        tree = self._parse(html, source.charset)
        body = FORMATS[source.wish.format].render(tree, source.url, source.wish.budget)
        etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        return Rendition(body, etag.encode(), canonical_of(tree, source.url).encode("latin-1"))


def canonical_of(tree: "Tree", url: str) -> str:
    """The canonical address (RFC 6596) that a page names in its head, or the one that it has."""
    for node in tree.head.children if tree.head is not None else ():
        if node.tag == "link" and "canonical" in node.attributes.get("rel", "").lower().split():
            return _address(url, node.attributes.get("href", "")) or url
    return url


def _address(url: str, href: str) -> str | None:
    """A reference resolved, fit to stand in a header; None for what is no address of a page."""
    try:
        address = urljoin(url, href.strip())
    except ValueError:
        return None
    return quote(address, safe=PLAIN) if address.startswith(("http://", "https://")) else None


def _render_som(tree: "Tree", url: str, budget: BudgetName) -> bytes:
    from awp_publish.pages.som import Budget, compile_som

    return compile_som(tree, url, Budget[budget.upper()]).dump()


def _render_markdown(tree: "Tree", url: str, budget: BudgetName) -> bytes:
    from awp_publish.pages.markdown import write_markdown

    return write_markdown(tree, url).encode("utf-8", "replace")


FORMATS: Final[Mapping[FormatName, Format]] = {
    "som": Format(b"application/som+json", _render_som),
    "md": Format(b"text/markdown; charset=utf-8", _render_markdown),
}


# --- Headers around a page that is made over ---

NOT_ASKED: Final = frozenset(
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
"""Headers that speak of the answer that the caller gets, which is not the one that the application gives."""

NOT_KEPT: Final = frozenset(
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
        b"vary",
    }
)
"""Headers that speak of the HTML itself. All others are kept: cookies, Cache-Control, security policies."""

NOT_IN_304: Final = frozenset({b"content-language", b"last-modified"})
"""RFC 9110 section 15.4.5: what describes content that is not sent."""

OF_SHARED_CACHES: Final = frozenset({"public", "private", "s-maxage", "proxy-revalidate"})
"""Directives of Cache-Control that speak of shared caches; `private` of some fields only is made one of all."""

CACHE_CONTROLS: Final = frozenset({b"cache-control", b"surrogate-control", b"edge-control", b"x-accel-expires"})
"""What caches in front of a site go by, and first by its own name (RFC 9213: CDN-Cache-Control and its like)."""

HTML_TYPES: Final = frozenset({b"text/html", b"application/xhtml+xml"})
VARY_BY_ACCEPT: Final = (b"vary", b"Accept")
_CHARSET: Final = re.compile(rb';\s*charset\s*=\s*"?([^\s";]+)', re.IGNORECASE)
_CANONICAL: Final = re.compile(rb'rel\s*=\s*"?[^",;]*\bcanonical\b', re.IGNORECASE)

ACCEPTED: Final = {
    "som": b"application/som+json, text/html;q=0.9, application/xhtml+xml;q=0.8, */*;q=0.1",
    "md": b"text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.8, */*;q=0.1",
}
"""An application that has the format itself may answer with it; it knows its pages best."""


def ask_application(headers: Headers, wish: Wish) -> list[tuple[bytes, bytes]]:
    """The headers of the request that the application gets: whole HTML, not encoded, under no condition."""
    return [*(pair for pair in headers if pair[0] not in NOT_ASKED), (b"accept", ACCEPTED[wish.format])]


def is_page(status: int, fields: Fields) -> bool:
    """Whether an answer is HTML to be read: a page, or a refusal in the form of a page."""
    is_whole = 200 <= status < 300 and status not in (204, 205, 206)
    return (is_whole or status >= 400) and media_type_of(fields) in HTML_TYPES


def media_type_of(fields: Fields) -> bytes:
    """The media type without its parameters."""
    return fields.get(b"content-type", b"").split(b";", 1)[0].strip().lower()


def charset_of(fields: Fields) -> str | None:
    """The charset of the Content-Type, None if it names none; then the page itself may name one."""
    found = _CHARSET.search(fields.get(b"content-type", b""))
    return found[1].decode("latin-1") if found else None


def vary_with_accept(fields: Fields) -> tuple[bytes, bytes] | None:
    """The Vary header of an answer that was chosen by Accept; None where it says so already."""
    given = fields.get(b"vary")
    if given is None:
        return VARY_BY_ACCEPT
    names = {name.strip().lower() for name in given.split(b",")}
    return None if names & {b"*", b"accept"} else (b"vary", given + b", Accept")


def keep_private(cache_control: bytes) -> bytes:
    """Cache-Control (RFC 9111 section 5.2) with which no shared cache keeps an answer; a browser does as it said."""
    directives = [part.strip() for part in ELEMENT.findall(cache_control.decode("latin-1")) if part.strip()]
    names = [directive.partition("=")[0].strip().lower() for directive in directives]
    kept = [one for one, name in zip(directives, names, strict=True) if name not in OF_SHARED_CACHES]
    return ", ".join(kept if "no-store" in names else ["private", *kept]).encode("latin-1")


def describe_rendition(
    headers: Headers,
    fields: Fields,
    status: int,
    varies: bool,
    is_private: bool,
    added: RawHeaders,
    canonical: bytes,
) -> RawHeaders:
    """The application's headers as they hold for a rendition, and `added`, which belong to it.

    `is_private` keeps it out of shared caches, of which many do not heed Vary: they would give it to a browser.
    """
    kept = [pair for pair in headers if pair[0].lower() not in NOT_KEPT]
    if is_private:
        kept = [pair for pair in kept if not _is_for_caches(pair[0].lower())]
        kept.append((b"cache-control", keep_private(fields.get(b"cache-control", b""))))
    vary = (vary_with_accept(fields) if varies else None) or ((b"vary", fields[b"vary"]) if b"vary" in fields else None)
    if vary is not None:
        kept.append(vary)
    if b"x-content-type-options" not in fields:
        kept.append(NO_SNIFFING)
    if 200 <= status < 300 and not _CANONICAL.search(fields.get(b"link", b"")):
        kept.append((b"link", b'<%b>; rel="canonical"' % canonical))
    return (*kept, *added)


def _is_for_caches(name: bytes) -> bool:
    return name in CACHE_CONTROLS or name.endswith(b"cdn-cache-control")


def of_304(headers: RawHeaders) -> RawHeaders:
    """The headers of a 304 in place of a 200 with these."""
    gone = NOT_IN_304 | {b"content-type", b"content-length", NO_SNIFFING[0]}
    return tuple(pair for pair in headers if pair[0] not in gone)


READING: Final = frozenset({"GET", "HEAD"})
_TAG: Final = re.compile(rb'(W/)?("[^"]*")')
"""An entity tag (RFC 9110 section 8.8.3)."""

BYTES_OF_A_TOKEN: Final = 4
"""Of English text, about; the header x-markdown-tokens is an estimate."""


class Pages:
    """The pages of one public address of a site, which never comes from a request."""

    def __init__(self, catalog: Catalog, offering: Offering, renditions: Renditions) -> None:
        self.in_query = offering.in_query
        self.renditions = renditions
        self._in_shared_cache = offering.in_shared_cache
        self._url = catalog.url

    def asked(self, scope: Scope) -> "Asked | None":
        """What a request for a page asks for besides HTML, None for nothing: then the request is the application's."""
        if scope["method"] not in READING:
            return None
        fields = read_fields(scope["headers"])
        query: bytes = scope["query_string"]
        wish, left = read_query(query) if self.in_query else (None, query)
        if wish is None and b"accept" in fields:
            wish = read_accept(fields[b"accept"]).wish
        if wish is None:
            return None
        inner = {
            **scope,
            "method": "GET",  # what HEAD is told of the content, only the content tells
            "query_string": left,
            "headers": ask_application(scope["headers"], wish),
            "extensions": {},  # the server's shortcuts for sending files would go round us
        }
        url = self._url + path_and_query(scope, left)
        is_head, location = scope["method"] == "HEAD", self._location(wish, url)
        return Asked(wish, url, inner, fields, self.renditions, is_head, location, self._in_shared_cache)

    def _location(self, wish: Wish, url: str) -> bytes | None:
        """RFC 9110 section 8.7: an address that is the rendition's own. Without `?format=` there is none."""
        if not self.in_query:
            return None
        budget = f"&budget={wish.budget}" if wish != Wish(wish.format, by_query=wish.by_query) else ""
        return f"{url}{'&' if '?' in url else '?'}format={wish.format}{budget}".encode("latin-1")


def path_and_query(scope: Scope, query: bytes) -> str:
    """A request's target below the site's url, as its client wrote it, fit to stand in a header."""
    raw = scope.get("raw_path")
    written = raw.split(b"?", 1)[0].decode("latin-1") if raw else quote(scope["path"])
    root = quote(mount_of(scope))
    path = written[len(root) :] if written.startswith(root) else quote(route_path(scope))
    asked = f"?{quote(query, safe=PLAIN + '/')}" if query else ""
    return quote(path, safe=PLAIN.replace("?", "")) + asked


@dataclass(frozen=True, slots=True)
class Asked:
    """One request for a page in another format. `scope` is the request for the page itself.

    `in_shared_cache` says that shared caches may keep what Accept has chosen, since they heed Vary.
    """

    wish: Wish
    url: str
    scope: Scope
    fields: Fields = field(repr=False)
    renditions: Renditions
    is_head: bool = False
    location: bytes | None = None
    in_shared_cache: bool = False

    def takes(self, status: int, headers: Headers) -> bool:
        """Whether an answer that begins like this is made over; any other passes as it is."""
        fields = read_lower(headers)
        return is_page(status, fields) and is_decodable(fields.get(b"content-encoding", b""))

    def passed(self, headers: Headers) -> Headers:
        """The headers of an answer that passes as it is. HTML was chosen: the next page here may be made over."""
        fields = read_lower(headers)
        is_chosen = media_type_of(fields) in HTML_TYPES and not self.wish.by_query
        vary = vary_with_accept(fields) if is_chosen else None
        return headers if vary is None else [*(pair for pair in headers if pair[0].lower() != b"vary"), vary]

    def source(self, headers: Headers, body: bytes) -> Source:
        """The page, told by its content."""
        fields = read_lower(headers)
        coding = fields.get(b"content-encoding", b"")
        return self.renditions.source(self.wish, self.url, charset_of(fields), coding, body)

    def is_quick(self, source: Source, body: bytes) -> bool:
        """Whether `answer` takes so little time that an event loop may wait for it."""
        return (len(body) <= QUICK and not source.coding) or self.renditions.remembered(source) is not None

    def answer(self, status: int, headers: Headers, body: bytes, source: Source | None = None) -> Reply | None:
        """The reply to the request, of the application's answer to `scope`; None where that has to pass as it is."""
        if not self.takes(status, headers):
            return None
        source = source or self.source(headers, body)
        rendition = self.renditions.remembered(source) or self.renditions.make(source, body)
        return None if rendition is None else self._reply(status, headers, rendition)

    def _reply(self, status: int, headers: Headers, rendition: Rendition) -> Reply:
        fields = read_lower(headers)
        varies = not self.wish.by_query
        is_private = varies and not self.in_shared_cache
        own = self._own(status, rendition)
        described = describe_rendition(headers, fields, status, varies, is_private, own, rendition.canonical)
        outcome = self._condition(fields, rendition.etag) if status == 200 else 200
        if outcome == 304:
            return Reply(304, of_304(described))
        if outcome == 412:
            return Reply(412, ((b"content-length", b"0"), *of_304(described)))
        return Reply(status, described, b"" if self.is_head else rendition.body)

    def _own(self, status: int, rendition: Rendition) -> RawHeaders:
        own = [
            (b"content-type", FORMATS[self.wish.format].media_type),
            (b"content-length", b"%d" % len(rendition.body)),
        ]
        if self.wish.format == "md":
            own.append((b"x-markdown-tokens", b"%d" % -(-len(rendition.body) // BYTES_OF_A_TOKEN)))
        if status == 200:
            own.append((b"etag", rendition.etag))
            if self.location is not None:
                own.append((b"content-location", self.location))
        return tuple(own)

    def _condition(self, answered: Fields, etag: bytes) -> int:
        """RFC 9110 section 13.2.2, in its order; the caller's conditions are about the rendition and not the HTML."""
        asked, modified = self.fields, answered.get(b"last-modified", b"")
        if b"if-match" in asked:
            if not _is_listed(asked[b"if-match"], etag, weakly=False):
                return 412
        elif b"if-unmodified-since" in asked and _is_since(asked[b"if-unmodified-since"], modified) is False:
            return 412
        if b"if-none-match" in asked:
            return 304 if _is_listed(asked[b"if-none-match"], etag, weakly=True) else 200
        return 304 if _is_since(asked.get(b"if-modified-since", b""), modified) else 200


def read_lower(headers: Headers) -> Fields:
    """Headers by name in lower case, which an application may have missed to write."""
    return read_fields([(name.lower(), value) for name, value in headers])


def _is_listed(listed: bytes, etag: bytes, weakly: bool) -> bool:
    """Section 13.1.1: one star, or tags. A comma or a star within quotes is part of a tag."""
    if listed.strip() == b"*":
        return True
    return any(tag == etag and (weakly or not weak) for weak, tag in _TAG.findall(listed))


def _is_since(asked: bytes, modified: bytes) -> bool | None:
    """Whether what was modified then has not changed since; None where one of the dates is none, or is not known."""
    try:
        since, last = (parsedate_to_datetime(text.decode("latin-1")) for text in (asked, modified))
        return last <= since
    except (ValueError, TypeError, OverflowError):
        return None
