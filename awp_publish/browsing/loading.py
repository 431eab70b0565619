"""Loading a page: the request, redirects, cookies, an immediate refresh, and the final page."""

import re
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from awp_publish.browsing.addresses import REDIRECTS, BadAddress, Visit, WebAddress, parse_address
from awp_publish.browsing.browser import Browser
from awp_publish.browsing.errors import AwpError
from awp_publish.browsing.page import NO_CONTENT, Fetch, Fetched, LoadedPage, header_of, read_page

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

    def note_redirect(self, visit: Visit, browser: Browser) -> None:
        """Record a redirect. Raises AwpError NAVIGATION_FAILED for one too many."""
        self.redirects.append(str(visit.address))
        if len(self.redirects) > browser.limits.redirects:
            details = {"url": self.redirects[-2], "redirects": self.redirects}
            raise AwpError("NAVIGATION_FAILED", f"More than {browser.limits.redirects} redirects", details)


def load(visit: Visit, browser: Browser) -> Generator[Fetch, Fetched, Loading]:
    """Visit an address and follow its redirects, and refreshes without delay.

    Raises:
        AwpError: NAVIGATION_FAILED, with what happened in its details.
    """
    loading = Loading()
    while True:
        fetched, visit = yield from _follow(visit, browser, loading)
        loading.status = fetched.status
        loading.content_type = header_of(fetched.headers, "content-type")
        if fetched.status in NO_CONTENT:
            return loading
        page = loading.page = read_page(fetched, visit.address, visit.method, browser.limits.page_bytes)
        refresh = header_of(fetched.headers, "refresh")
        if not refresh and b"refresh" in page.html.lower():
            refresh = browser.cache.compiled(page).markup.refresh or ""
        # A refresh without delay is a redirect (HTML 4.2.5.3); one to the page itself would never end.
        match = _REFRESH.match(refresh)
        if match is None or int(match[1]) > 0:
            return loading
        target = match[2].strip()
        if target[:1] in ("'", '"'):
            target = target[1:].partition(target[0])[0]
        onwards = Visit(page.address, referrer=page.address)
        address = _own_address(target, onwards, browser, fetched.status)
        if address.document == page.url:
            return loading
        visit = replace(onwards, address=address)
        loading.note_redirect(visit, browser)


def request_only(visit: Visit, browser: Browser) -> Generator[Fetch, Fetched, tuple[Fetched, WebAddress]]:
    """Request an address as a page's script would, following redirects within the site. The page does not change.

    Raises:
        AwpError: NAVIGATION_FAILED for redirects to another site, or too many.
    """
    fetched, visit = yield from _follow(visit, browser, Loading(), by_script=True)
    return fetched, visit.address


_OF_SCRIPTS: Final = {"accept": "*/*", "sec-fetch-dest": "empty", "sec-fetch-mode": "cors"}


def _follow(
    visit: Visit, browser: Browser, loading: Loading, *, by_script: bool = False
) -> Generator[Fetch, Fetched, tuple[Fetched, Visit]]:
    """Request an address, and those to which it redirects. Returns the last response and its visit."""
    while True:
        request = browser.request(visit)
        if by_script:
            headers = ((name, _OF_SCRIPTS.get(name, value)) for name, value in request.headers)
            request = replace(request, headers=tuple(pair for pair in headers if pair[0] != "sec-fetch-user"))
        started_at = browser.clock()
        fetched = yield request
        loading.seconds += max(0.0, browser.clock() - started_at)
        browser.jar.store_from(fetched.headers, visit.address, browser.clock())
        location = _location(fetched)
        if not location:
            return fetched, visit
        address = _own_address(location, visit, browser, fetched.status)
        if address.fragment is None:
            address = address.with_fragment(visit.address.fragment)
        # Only 307 and 308 keep a form's method and body (Fetch 4.4).
        becomes_get = visit.method == "POST" and fetched.status in (301, 302, 303)
        visit = Visit(address, referrer=visit.referrer) if becomes_get else replace(visit, address=address)
        loading.note_redirect(visit, browser)


def _location(fetched: Fetched) -> str:
    location = header_of(fetched.headers, "location") if fetched.status in REDIRECTS else ""
    with suppress(UnicodeError):  # browsers decode it as UTF-8 if it is valid
        location = location.encode("latin-1").decode("utf-8")
    return location


def _own_address(location: str, visit: Visit, browser: Browser, status: int) -> WebAddress:
    """Return the address of this site to which a redirect or a refresh leads."""
    try:
        address = parse_address(location, visit.address)
    except BadAddress as error:
        message, place = f"The site redirects to an invalid address: {error}", location
    else:
        if browser.origins.owns(address):
            return address
        message, place = "The site redirects to another site", str(address)
    raise AwpError("NAVIGATION_FAILED", message, {"url": str(visit.address), "location": place, "status": status})
