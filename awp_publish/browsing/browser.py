"""`Browser`: what all pages of a session share, and the requests it makes as a browser would write them."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from awp_publish.browsing.addresses import Address
from awp_publish.browsing.cookies import CookieJar
from awp_publish.browsing.fetching import Fetch
from awp_publish.browsing.limits import Limits
from awp_publish.browsing.origins import Origins
from awp_publish.browsing.shelf import PageCache

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
