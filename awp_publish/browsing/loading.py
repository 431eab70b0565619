"""Loading a page: the request, redirects, cookies, an immediate refresh, and the page at the end of it."""

import re
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Final

from awp_publish.browsing.addresses import Address, BadAddress, parse_address
from awp_publish.browsing.browser import Browser, Visit
from awp_publish.browsing.errors import AwpError
from awp_publish.browsing.fetching import Fetch, Fetched
from awp_publish.browsing.page import NO_CONTENT, Page, header_of, read_page

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
