"""The browser of a session: limits, cookies, and requests with the headers of a browser that navigates."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from awp_publish.browsing.addresses import Origins, Visit, WebAddress
from awp_publish.browsing.compiled import PageCache
from awp_publish.browsing.cookies import CookieJar
from awp_publish.browsing.page import Fetch

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
