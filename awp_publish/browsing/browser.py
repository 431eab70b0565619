"""`Browser`: what all pages of a session share, and the requests it makes as a browser would write them."""

import re
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from awp_publish.browsing.addresses import Address, BadAddress, Origins, parse_address
from awp_publish.browsing.cookies import CookieJar
from awp_publish.browsing.errors import AwpError
from awp_publish.browsing.page import NO_CONTENT, Fetch, Fetched, Page, PageCache, header_of, read_page
from awp_publish.browsing.state import PRISTINE, Overlay

# --- `Limits`: how much one browsing session may hold, so that five hundred of them fit into one process ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one session. Sizes are in bytes, times in seconds.

    `pages` are open at once in a session (the paper's max_pages_per_session). `page_bytes` is the largest body that is
    read as a page, `form_bytes` the largest body of a form. `history` is the number of addresses that a page can go
    back and forward to. `kept_bytes` is what a page keeps of earlier bodies, to go back without a fetch and to tell
    changes since an earlier cursor; `moments` is how many earlier cursors it knows at most. `value_length` bounds a
    typed text and `url_length` an address, in characters. `cookies` and `cookie_bytes` bound the cookie jar and one
    cookie. `changed_controls` bounds the number of form controls of one page that differ from its HTML. `fields` and
    `pattern_length` bound an extraction, `fallbacks` the alternatives of one target.
    """

    pages: int = 16
    page_bytes: int = 4_000_000
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


@dataclass(frozen=True, slots=True)
class Visit:
    """One request that a page wants to make. `referrer` is the page it comes from, None for an address from outside."""

    address: Address
    method: str = "GET"
    content_type: str = ""
    body: bytes = field(default=b"", repr=False)
    referrer: Address | None = None


@dataclass(slots=True)
class Browser:
    """The site it may see, its cookies, who it says it is, its bounds, its clock (Unix seconds), the shared pages."""

    origins: Origins
    limits: Limits
    jar: CookieJar
    user_agent: str = USER_AGENT
    locale: str = LOCALE
    clock: Callable[[], float] = time.time
    cache: PageCache = field(default_factory=PageCache)

    def resolve(self, text: str, base: Address | None) -> Address:
        """The own address that a text means (`Origins.resolve`)."""
        return self.origins.resolve(text, base, self.limits.url_length)

    def request(self, visit: Visit) -> Fetch:
        """The request of a visit, with the headers that a browser sends for a page (Fetch, sections 3 and 4.6)."""
        said = [
            ("host", visit.address.authority),
            ("user-agent", self.user_agent),
            ("accept", _ACCEPT),
            ("accept-language", _accept_language(self.locale)),
            ("content-type", visit.content_type),
            ("origin", _origin_of(visit)),
            ("referer", _referrer_of(visit)),
            ("cookie", self.jar.header_for(visit.address, self.clock())),
            ("sec-fetch-dest", "document"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-site", _relation(visit)),
            ("sec-fetch-user", "?1"),
        ]
        headers = tuple((name, value) for name, value in said if value)
        return Fetch(visit.method, visit.address.target, headers, visit.body, visit.address.origin)


def _accept_language(locale: str) -> str:
    language = locale.partition("-")[0]
    return locale if language == locale else f"{locale},{language};q=0.9"


def _origin_of(visit: Visit) -> str:
    """Browsers say where a form comes from, for defences against forged requests (Fetch 3.2)."""
    if visit.method == "GET":
        return ""
    return "null" if visit.referrer is None else visit.referrer.origin


def _referrer_of(visit: Visit) -> str:
    """`strict-origin-when-cross-origin`, the policy of browsers when a page says nothing (Referrer Policy 3.7)."""
    referrer = visit.referrer
    if referrer is None or (referrer.scheme == "https" and visit.address.scheme == "http"):
        return ""
    return referrer.document if referrer.origin == visit.address.origin else referrer.origin + "/"


def _relation(visit: Visit) -> str:
    if visit.referrer is None:
        return "none"
    return "same-origin" if visit.referrer.origin == visit.address.origin else "cross-site"


# --- Loading a page: the request, redirects, cookies, an immediate refresh, and the page at the end of it ---

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_REFRESH: Final = re.compile(r"\s*(\d{1,9})(?:[\d.]*)(?:\s*[;,]\s*|\s+)(?:url\s*=\s*)?(.+)", re.IGNORECASE | re.DOTALL)


@dataclass(slots=True)
class Loading:
    """How a visit goes: the answer's status, the time spent waiting in seconds, and the redirects followed so far.

    `page` stays None where the answer has no content and the page before it stays.
    """

    page: Page | None = None
    status: int = 0
    content_type: str = ""
    seconds: float = 0.0
    redirects: list[str] = field(default_factory=list)
    compiling: float = 0.0


def load(visit: Visit, browser: Browser) -> Generator[Fetch, Fetched, Loading]:
    """Visit an address and follow where it leads.

    Raises:
        AwpError: NAVIGATION_FAILED, with what happened in its details.
    """
    loading = Loading()
    while True:
        asked_at = browser.clock()
        fetched = yield browser.request(visit)
        loading.seconds += max(0.0, browser.clock() - asked_at)
        loading.status = fetched.status
        loading.content_type = header_of(fetched.headers, "content-type")
        browser.jar.store_from(fetched.headers, visit.address, browser.clock())
        onwards = _redirect(fetched, visit, browser)
        if onwards is None and fetched.status not in NO_CONTENT:
            loading.page = read_page(fetched, visit.address, visit.method, browser.limits.page_bytes)
            onwards = _refresh(fetched, loading.page, browser)
        if onwards is None:
            return loading
        loading.redirects.append(str(onwards.address))
        if len(loading.redirects) > browser.limits.redirects:
            raise _failure(f"More than {browser.limits.redirects} redirects", visit, redirects=loading.redirects)
        visit = onwards


def _redirect(fetched: Fetched, visit: Visit, browser: Browser) -> Visit | None:
    """Where an answer sends its reader (Fetch 4.4): a form's method and body go along with 307 and 308 only."""
    location = header_of(fetched.headers, "location")
    if fetched.status not in _REDIRECTS or not location:
        return None
    address = _own_address(_as_utf8(location), visit, browser, fetched.status)
    if address.fragment is None:
        address = address.with_fragment(visit.address.fragment)
    becomes_get = visit.method == "POST" and fetched.status in (301, 302, 303)
    if becomes_get:
        return Visit(address, referrer=visit.referrer)
    return replace(visit, address=address)


def _as_utf8(value: str) -> str:
    """Browsers take the bytes of a Location for UTF-8 where they are."""
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value


def _refresh(fetched: Fetched, page: Page, browser: Browser) -> Visit | None:
    """A refresh without delay is a redirect (HTML 4.2.5.3); one to the page itself would never end."""
    content = header_of(fetched.headers, "refresh")
    if not content and b"refresh" in page.html.lower():
        content = browser.cache.compiled(page).markup.refresh or ""
    found = _REFRESH.match(content)
    if found is None or int(found[1]) > 0:
        return None
    visit = Visit(page.address, referrer=page.address)
    address = _own_address(_unquote(found[2]), visit, browser, fetched.status)
    return None if address.document == page.url else Visit(address, referrer=page.address)


def _unquote(text: str) -> str:
    text = text.strip()
    if text[:1] in ("'", '"'):
        return text[1:].partition(text[0])[0]
    return text


def _own_address(location: str, visit: Visit, browser: Browser, status: int) -> Address:
    try:
        address = parse_address(location, visit.address)
    except BadAddress as error:
        raise _failure(
            f"The site redirects to a bad address: {error}", visit, location=location, status=status
        ) from error
    if not browser.origins.owns(address):
        raise _failure("The site redirects to another site", visit, location=str(address), status=status)
    return address


def _failure(message: str, visit: Visit, **details: object) -> AwpError:
    return AwpError("NAVIGATION_FAILED", message, {"url": str(visit.address), **details})


# --- `History`: the addresses of one page, back and forward, and the bodies it keeps of them ---


@dataclass(slots=True)
class Entry:
    """One visited address. `page` is None when its body is not kept any more; it can then be fetched again."""

    address: Address
    method: str = "GET"
    title: str = ""
    page: Page | None = None
    overlay: Overlay = field(default_factory=dict, repr=False)
    scroll_y: int = 0


@dataclass(frozen=True, slots=True)
class Moment:
    """What a page was at one cursor; the SOM of then can be made of it again."""

    cursor: int
    page: Page
    overlay: Overlay = field(repr=False)


class History:
    """The entries, which one is shown, and the last moments. Cursors count navigations and changes of state."""

    __slots__ = ("_limits", "_moments", "cursor", "entries", "position")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._moments: deque[Moment] = deque(maxlen=max(1, limits.moments))
        self.entries: list[Entry] = []
        self.position = -1
        self.cursor = 0

    @property
    def current(self) -> Entry | None:
        """The entry that is shown, or would be when it is loaded again."""
        return self.entries[self.position] if self.entries else None

    def at(self, delta: int) -> Entry | None:
        """The entry so many steps forward (below zero: back)."""
        index = self.position + delta
        return self.entries[index] if 0 <= index < len(self.entries) else None

    def push(self, entry: Entry) -> None:
        """Show a new entry: what was forward is gone. The same document again takes the place of itself."""
        self._remember()
        current = self.current
        replaces = current is not None and str(current.address) == str(entry.address) and entry.method == "GET"
        del self.entries[self.position + (0 if replaces else 1) :]
        self.entries.append(entry)
        del self.entries[: -self._limits.history]
        self.position = len(self.entries) - 1
        self._forget()

    def show(self, entry: Entry) -> None:
        """Show an entry that is there already, as it is now."""
        self._remember()
        self.position = next(number for number, known in enumerate(self.entries) if known is entry)
        self._forget()

    def replace(self, entry: Entry, page: Page, title: str) -> None:
        """Show an entry with a page that was fetched again."""
        self.show(entry)
        entry.page, entry.address, entry.title, entry.overlay = page, page.address, title, PRISTINE
        self._forget()

    def change(self, overlay: Overlay) -> None:
        """The state of the shown page's controls is another one."""
        current = self.current
        if current is not None:
            self._remember()
            current.overlay = overlay
            self._forget()

    def since(self, cursor: int) -> Moment | None:
        """What the page was at an earlier cursor, None where that is not known any more."""
        return next((moment for moment in self._moments if moment.cursor == cursor), None)

    def _remember(self) -> None:
        current = self.current
        if current is not None and current.page is not None:
            self._moments.append(Moment(self.cursor, current.page, current.overlay))
        self.cursor += 1

    def _forget(self) -> None:
        """Keep the bodies nearest to the shown one, and the last moments, within the allowed bytes together."""
        shown = self.current
        room = self._limits.kept_bytes
        known = set() if shown is None or shown.page is None else {shown.page.digest}
        for holder in self._nearest_first():
            page = holder.page
            if page is None or page.digest in known:
                continue
            room -= len(page.html)
            known.add(page.digest)
            if room >= 0:
                continue
            if isinstance(holder, Moment):
                self._drop_until(holder)
                return
            holder.page, holder.overlay = None, PRISTINE

    def _nearest_first(self) -> Iterator[Entry | Moment]:
        around = sorted(range(len(self.entries)), key=lambda index: abs(index - self.position))
        yield from (self.entries[index] for index in around if index != self.position)
        yield from list(reversed(self._moments))

    def _drop_until(self, last: Moment) -> None:
        while self._moments and self._moments[0].cursor <= last.cursor:
            self._moments.popleft()
