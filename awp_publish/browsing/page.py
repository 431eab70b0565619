"""Requests as a browser makes them, responses of the site, the pages made from these, and histories."""

import html
import re
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from threading import Lock
from typing import Final, TypeAlias

from awp_publish.browsing.addresses import BadAddress, Origins, Visit, WebAddress, parse_address
from awp_publish.browsing.cookies import CookieJar
from awp_publish.browsing.errors import AwpError
from awp_publish.browsing.markup import PRISTINE, Markup, Overlay, Place, elements_of, parent_of, read_markup
from awp_publish.pages.selection import Budget
from awp_publish.pages.selectolax import parse
from awp_publish.pages.som import Som, compile_som
from awp_publish.pages.tree import Tree
from awp_publish.schema import JsonObject


@dataclass(frozen=True, slots=True)
class Fetch:
    """One request to this site.

    `path` is the request target in origin form: path and query, percent-encoded, including a mounted site's prefix.
    `headers` have lower-case names: `host` first, then a browser's, `cookie` and `content-type`, but no
    `content-length`. `origin` (`https://shop.example`) is the site's origin to which it goes. Redirects must not be
    followed: the session does that.
    """

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = field(repr=False)
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Fetched:
    """The site's response: the status, all headers in order (including every `set-cookie`), the whole body."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes = field(repr=False)


Steps: TypeAlias = Generator[Fetch, Fetched, JsonObject]
"""A running method. Closing it (at a time limit, or because nobody waits) leaves the page as it was before."""


NO_CONTENT: Final = frozenset({204, 205})
_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_TEXT: Final = re.compile(r"text/.*|application/(?:json|xml|javascript|ecmascript|x-ndjson)|.*\+(?:json|xml)")
_CHARSET: Final = re.compile(r";\s*charset\s*=\s*\"?([^\s;\"]+)", re.IGNORECASE)
_MAX_EXCERPT: Final = 500


@dataclass(frozen=True, slots=True)
class LoadedPage:
    """A loaded page. `html` is the parsed source, `html_bytes` the length of the site's body.

    `charset` is that of the Content-Type header, or None. `digest` identifies the content.
    """

    address: WebAddress
    method: str
    status: int
    content_type: str
    charset: str | None
    html: bytes = field(repr=False)
    html_bytes: int
    digest: bytes = field(repr=False)

    @property
    def url(self) -> str:
        """The address of the document, without a fragment."""
        return self.address.document


def read_page(fetched: Fetched, address: WebAddress, method: str, max_bytes: int) -> LoadedPage:
    """Make a page from a response. Text and JSON become one preformatted text, as browsers show them.

    Raises:
        AwpError: NAVIGATION_FAILED if it is not a page: an error without an HTML body (MVP 4.4), a download,
            an image, a body that is too large, or compressed.
    """
    body, status = fetched.body, fetched.status
    content_type = header_of(fetched.headers, "content-type")
    if not content_type:  # HTML if it begins like HTML (a simplified MIME Sniffing 7.1)
        start = body.lstrip(b"\xef\xbb\xbf\t\n\f\r ")
        content_type = "text/html" if start[:1] == b"<" or not start else "text/plain"
    media_type = content_type.partition(";")[0].strip().lower()
    is_text, is_html = _TEXT.fullmatch(media_type) is not None, media_type in _HTML and (body or status < 300)
    charset_found = _CHARSET.search(content_type)
    charset = charset_found[1] if charset_found else None
    problem = None
    if header_of(fetched.headers, "content-encoding").strip().lower() not in ("", "identity"):
        problem = "The answer is compressed although the request does not accept that"
    elif len(body) > max_bytes:
        problem = f"The answer is larger than {max_bytes} bytes"
    elif header_of(fetched.headers, "content-disposition").strip().lower().startswith("attachment"):
        problem = "The answer is a download, and downloads are not supported"
    elif not is_html and status >= 300:
        problem = f"The site answered {status} without a page"
    elif not is_html and not is_text:
        problem = f"The answer is {media_type}, which is not a page"
    if problem is not None:
        details: dict[str, object] = {"url": str(address), "status": status, "content_type": content_type}
        if status >= 400 and is_text:
            details["body"] = body[:_MAX_EXCERPT].decode("utf-8", "replace")
        raise AwpError("NAVIGATION_FAILED", problem, details)
    if not is_html:
        text = html.escape(decode(body, content_type), quote=False)
        shown = f"<!doctype html><title></title><body><pre>\n{text}</pre>"
        body, charset = shown.encode("utf-8", "replace"), "utf-8"
    digest = blake2b(body, digest_size=16).digest()
    return LoadedPage(address, method, status, content_type, charset, body, len(fetched.body), digest)


def decode(body: bytes, content_type: str) -> str:
    """Decode a body with the charset of its media type, or as UTF-8 if that is missing or unknown."""
    charset = _CHARSET.search(content_type)
    try:
        return body.decode(charset[1] if charset else "utf-8", "replace")
    except (LookupError, ValueError):
        return body.decode("utf-8", "replace")


def header_of(headers: Sequence[tuple[str, str]], name: str) -> str:
    """Return the first header with a name, or ""."""
    return next((value for key, value in headers if key.lower() == name), "")


# --- Parsed and compiled pages, made on demand and cached ---
# Sessions share them, because many observe the same few pages. The cache is limited, so idle sessions cost only bytes.


@dataclass
class Compiled:
    """A parsed page: its tree, and on demand its SOM in each budget and its markup."""

    url: str
    html: bytes = field(repr=False)
    tree: Tree
    soms: dict[Budget, Som] = field(default_factory=dict)

    def som(self, budget: Budget) -> Som:
        """Return the SOM of the page's HTML. It is shared and must not be modified."""
        if budget not in self.soms:
            self.soms[budget] = compile_som(self.tree, self.url, budget)
        return self.soms[budget]

    @cached_property
    def markup(self) -> Markup:
        """Controls, forms and labels."""
        return read_markup(self.tree)

    @cached_property
    def elements(self) -> dict[Place, str]:
        """The id of the element (in the full budget) made from the node at each place, the last place first."""
        places = self.som(Budget.FULL).places
        return {places[element_id]: element_id for element_id in reversed(list(places))}

    @cached_property
    def last_inside(self) -> dict[Place, Place]:
        """The place of the last element inside of each place."""
        found: dict[Place, Place] = {}
        for place in self.elements:
            outer = parent_of(place)
            while outer and outer not in found:
                found[outer] = place
                outer = parent_of(outer)
        return found

    @cached_property
    def by_id(self) -> dict[str, JsonObject]:
        """The elements by id, in the full budget."""
        return {str(element["id"]): element for element in elements_of(self.som(Budget.FULL).document)}

    def label_of(self, element_id: str | None) -> str | None:
        """Return the visible label of an element, or its text."""
        found = self.by_id.get(element_id or "", {})
        label = found.get("label") or found.get("text")
        return None if label is None else str(label)


class PageCache:
    """The most recently used pages: at most `max_pages` and about `max_bytes` of HTML, but always the last one.

    It is thread-safe, so that large pages can be compiled in another thread.
    """

    __slots__ = ("_bytes", "_lock", "_max_bytes", "_max_pages", "_pages")

    def __init__(self, max_pages: int = 64, max_bytes: int = 1_000_000) -> None:
        self._max_pages = max_pages
        self._max_bytes = max_bytes
        self._pages: OrderedDict[tuple[bytes, str, str | None], tuple[Compiled, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def compiled(self, page: LoadedPage) -> Compiled:
        """Return the compiled page, from the cache or new."""
        key = (page.digest, page.url, page.charset)
        with self._lock:
            if key in self._pages:
                self._pages.move_to_end(key)
                return self._pages[key][0]
        compiled = Compiled(page.url, page.html, parse(page.html, page.charset))
        with self._lock:
            if key not in self._pages:
                self._pages[key] = (compiled, len(page.html))
                self._bytes += len(page.html)
                while len(self._pages) > 1 and (len(self._pages) > self._max_pages or self._bytes > self._max_bytes):
                    _, (_, size) = self._pages.popitem(last=False)
                    self._bytes -= size
            return self._pages[key][0]

    def share(self, page: LoadedPage) -> LoadedPage:
        """Return the page with the HTML object in the cache, so that sessions with the same page share it."""
        return replace(page, html=self.compiled(page).html)


PAGE_BYTES: Final = 4_000_000
PAGES_PER_SESSION: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    """Limits of one session, such that five hundred fit into one process. Sizes are in bytes.

    `pages` may be open at once in a session (the paper's max_pages_per_session). `page_bytes` limits a body that is
    read as a page, `form_bytes` the body of a form. `history` is the number of addresses in a page's history.
    `kept_bytes` limits the earlier bodies that a page keeps, to go back without a request and to compute changes since
    an earlier cursor; `moments` is the maximal number of earlier cursors. `value_length` limits a typed text and
    `url_length` an address, in characters. `cookies` and `cookie_bytes` limit the cookie jar and one cookie.
    `changed_controls` limits the number of a page's controls that differ from its HTML. `fields` and `pattern_length`
    limit an extraction, `fallbacks` the alternatives of one target.
    """

    pages: int = PAGES_PER_SESSION
    page_bytes: int = PAGE_BYTES
    form_bytes: int = 4_000_000
    redirects: int = 10
    history: int = 50
    kept_bytes: int = 128_000
    moments: int = 32
    value_length: int = 100_000
    url_length: int = 8_000
    cookies: int = 180
    cookie_bytes: int = 4_096
    changed_controls: int = 2_000
    fields: int = 100
    pattern_length: int = 1_000
    fallbacks: int = 16


USER_AGENT: Final = "Mozilla/5.0 (compatible; awp_publish)"
LOCALE: Final = "en-US"
_ACCEPT: Final = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@dataclass(slots=True)
class Browser:
    """The browser of a session: the site's origins, cookies, user agent, limits, clock (Unix seconds), shared pages."""

    origins: Origins
    limits: SessionLimits
    jar: CookieJar
    user_agent: str = USER_AGENT
    locale: str = LOCALE
    clock: Callable[[], float] = time.time
    cache: PageCache = field(default_factory=PageCache)

    def resolve(self, text: str, base: WebAddress | None) -> WebAddress:
        """Resolve a text to an address of this site (`Origins.resolve`)."""
        return self.origins.resolve(text, base, self.limits.url_length)

    def request(self, visit: Visit) -> Fetch:
        """Return the request of a visit, with the headers of a browser that navigates (Fetch, sections 3 and 4.6)."""
        to, referrer = visit.address, visit.referrer
        is_same_origin = referrer is not None and referrer.origin == to.origin
        # Forms send their origin, for defences against forged requests (Fetch 3.2). The referrer follows
        # `strict-origin-when-cross-origin`, the default policy of browsers (Referrer Policy 3.7).
        origin = referer = ""
        if visit.method != "GET":
            origin = "null" if referrer is None else referrer.origin
        if referrer is not None and not (referrer.scheme == "https" and to.scheme == "http"):
            referer = referrer.document if is_same_origin else referrer.origin + "/"
        language = self.locale.partition("-")[0]
        headers = (
            ("host", to.authority),
            ("user-agent", self.user_agent),
            ("accept", _ACCEPT),
            ("accept-language", self.locale if language == self.locale else f"{self.locale},{language};q=0.9"),
            ("content-type", visit.content_type),
            ("origin", origin),
            ("referer", referer),
            ("cookie", self.jar.header_for(to, self.clock())),
            ("sec-fetch-dest", "document"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-site", "none" if referrer is None else "same-origin" if is_same_origin else "cross-site"),
            ("sec-fetch-user", "?1"),
        )
        return Fetch(visit.method, to.target, tuple(pair for pair in headers if pair[1]), visit.body, to.origin)


# --- Loading a page: the request, redirects, cookies, an immediate refresh, and the final page ---

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_REFRESH: Final = re.compile(r"\s*(\d{1,9})(?:[\d.]*)(?:\s*[;,]\s*|\s+)(?:url\s*=\s*)?(.+)", re.IGNORECASE | re.DOTALL)


@dataclass(slots=True)
class Loading:
    """The progress of a visit: the response's status, the seconds spent waiting, and the redirects followed.

    `page` stays None if the response has no content, so that the previous page stays.
    """

    page: LoadedPage | None = None
    status: int = 0
    content_type: str = ""
    seconds: float = 0.0
    redirects: list[str] = field(default_factory=list)
    compiling: float = 0.0


def load(visit: Visit, browser: Browser) -> Generator[Fetch, Fetched, Loading]:
    """Visit an address and follow its redirects.

    Raises:
        AwpError: NAVIGATION_FAILED, with what happened in its details.
    """
    loading = Loading()
    while True:
        started_at = browser.clock()
        fetched = yield browser.request(visit)
        loading.seconds += max(0.0, browser.clock() - started_at)
        loading.status = fetched.status
        loading.content_type = header_of(fetched.headers, "content-type")
        browser.jar.store_from(fetched.headers, visit.address, browser.clock())
        location, onwards = header_of(fetched.headers, "location"), None
        if fetched.status in _REDIRECTS and location:
            with suppress(UnicodeError):  # browsers decode a Location as UTF-8 if it is valid
                location = location.encode("latin-1").decode("utf-8")
            address = _own_address(location, visit, browser, fetched.status)
            if address.fragment is None:
                address = address.with_fragment(visit.address.fragment)
            # Only 307 and 308 keep a form's method and body (Fetch 4.4).
            becomes_get = visit.method == "POST" and fetched.status in (301, 302, 303)
            onwards = Visit(address, referrer=visit.referrer) if becomes_get else replace(visit, address=address)
        elif fetched.status not in NO_CONTENT:
            page = loading.page = read_page(fetched, visit.address, visit.method, browser.limits.page_bytes)
            refresh = header_of(fetched.headers, "refresh")
            if not refresh and b"refresh" in page.html.lower():
                refresh = browser.cache.compiled(page).markup.refresh or ""
            # A refresh without delay is a redirect (HTML 4.2.5.3); one to the page itself would never end.
            if (found := _REFRESH.match(refresh)) and int(found[1]) == 0:
                target = found[2].strip()
                if target[:1] in ("'", '"'):
                    target = target[1:].partition(target[0])[0]
                onwards = Visit(page.address, referrer=page.address)
                address = _own_address(target, onwards, browser, fetched.status)
                onwards = None if address.document == page.url else replace(onwards, address=address)
        if onwards is None:
            return loading
        loading.redirects.append(str(onwards.address))
        if len(loading.redirects) > browser.limits.redirects:
            details = {"url": str(visit.address), "redirects": loading.redirects}
            raise AwpError("NAVIGATION_FAILED", f"More than {browser.limits.redirects} redirects", details)
        visit = onwards


def request_only(visit: Visit, browser: Browser) -> Generator[Fetch, Fetched, tuple[Fetched, WebAddress]]:
    """Request an address as a page's script would, following redirects within the site. The page does not change.

    Raises:
        AwpError: NAVIGATION_FAILED for redirects to another site, or too many.
    """
    first = visit
    for _ in range(browser.limits.redirects + 1):
        request = browser.request(visit)
        spoken = {"accept": "*/*", "sec-fetch-dest": "empty", "sec-fetch-mode": "cors"}
        headers = ((name, spoken.get(name, value)) for name, value in request.headers if name != "sec-fetch-user")
        fetched = yield replace(request, headers=tuple(headers))
        browser.jar.store_from(fetched.headers, visit.address, browser.clock())
        location = header_of(fetched.headers, "location")
        if fetched.status not in _REDIRECTS or not location:
            return fetched, visit.address
        visit = replace(visit, address=_own_address(location, visit, browser, fetched.status))
    raise AwpError("NAVIGATION_FAILED", "Too many redirects", {"url": str(first.address)})


def _own_address(location: str, visit: Visit, browser: Browser, status: int) -> WebAddress:
    """Return the address of this site to which a redirect or a refresh leads."""
    try:
        address = parse_address(location, visit.address)
    except BadAddress as error:
        message, shown = f"The site redirects to an invalid address: {error}", location
    else:
        if browser.origins.owns(address):
            return address
        message, shown = "The site redirects to another site", str(address)
    raise AwpError("NAVIGATION_FAILED", message, {"url": str(visit.address), "location": shown, "status": status})


# --- The history of one page: its addresses, back and forward, and the bodies that are kept ---


@dataclass(slots=True)
class HistoryEntry:
    """One visited address. `page` is None if its body is no longer kept; it can be fetched again."""

    address: WebAddress
    method: str = "GET"
    title: str = ""
    page: LoadedPage | None = None
    overlay: Overlay = field(default_factory=dict, repr=False)
    scroll_y: int = 0


@dataclass(frozen=True, slots=True)
class Moment:
    """The page at one cursor, from which its SOM at that time can be made again."""

    cursor: int
    page: LoadedPage
    overlay: Overlay = field(repr=False)


class History:
    """The entries, the index of the present one, and recent moments. Cursors count navigations and changes of state."""

    __slots__ = ("_limits", "_moments", "cursor", "entries", "position")

    def __init__(self, limits: SessionLimits) -> None:
        self._limits = limits
        self._moments: deque[Moment] = deque(maxlen=max(1, limits.moments))
        self.entries: list[HistoryEntry] = []
        self.position = -1
        self.cursor = 0

    @property
    def current(self) -> HistoryEntry | None:
        """The present entry, whether its page is loaded or not."""
        return self.entries[self.position] if self.entries else None

    def at(self, delta: int) -> HistoryEntry | None:
        """Return the entry so many steps forward (negative: back)."""
        index = self.position + delta
        return self.entries[index] if 0 <= index < len(self.entries) else None

    def push(self, entry: HistoryEntry) -> None:
        """Add a new entry and show it; entries after the present one are dropped. The same document replaces itself."""
        self._remember()
        current = self.current
        replaces = current is not None and str(current.address) == str(entry.address) and entry.method == "GET"
        del self.entries[self.position + (0 if replaces else 1) :]
        self.entries.append(entry)
        del self.entries[: -self._limits.history]
        self.position = len(self.entries) - 1
        self._forget()

    def show(self, entry: HistoryEntry) -> None:
        """Show an existing entry."""
        self._remember()
        self.position = next(number for number, known in enumerate(self.entries) if known is entry)
        self._forget()

    def replace(self, entry: HistoryEntry, page: LoadedPage, title: str) -> None:
        """Show an entry with a page that was fetched again."""
        self.show(entry)
        entry.page, entry.address, entry.title, entry.overlay = page, page.address, title, PRISTINE
        self._forget()

    def change(self, overlay: Overlay) -> None:
        """Set the state of the present page's controls."""
        current = self.current
        if current is not None:
            self._remember()
            current.overlay = overlay
            self._forget()

    def since(self, cursor: int) -> Moment | None:
        """Return the page at an earlier cursor, or None if that is no longer known."""
        return next((moment for moment in self._moments if moment.cursor == cursor), None)

    def _remember(self) -> None:
        current = self.current
        if current is not None and current.page is not None:
            self._moments.append(Moment(self.cursor, current.page, current.overlay))
        self.cursor += 1

    def _forget(self) -> None:
        """Keep the bodies nearest to the present entry, and the latest moments, as far as the allowed bytes suffice."""
        shown = self.current
        room = self._limits.kept_bytes
        known = set() if shown is None or shown.page is None else {shown.page.digest}
        nearest = sorted(range(len(self.entries)), key=lambda index: abs(index - self.position))
        around = (self.entries[index] for index in nearest if index != self.position)
        holders: list[HistoryEntry | Moment] = [*around, *reversed(self._moments)]
        for holder in holders:
            page = holder.page
            if page is None or page.digest in known:
                continue
            room -= len(page.html)
            known.add(page.digest)
            if room >= 0:
                continue
            if isinstance(holder, Moment):  # drop all earlier moments too
                while self._moments and self._moments[0].cursor <= holder.cursor:
                    self._moments.popleft()
                return
            holder.page, holder.overlay = None, PRISTINE


def write_cursor(cursor: int) -> str:
    """Format a cursor as in the paper and the draft, `c:12346`."""
    return f"c:{cursor}"
