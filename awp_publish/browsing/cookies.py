"""The cookie jar of a session (RFC 6265, with the prefixes and SameSite of its revision 6265bis).

Requests go only to this site, so that SameSite never withholds a cookie: it is only stored, shown and exported. The
standard library's jar (`http.cookiejar`) has no clock and no limits, keeps Secure cookies of plain http, and parses
paths, dates and one-word hosts differently from the RFC.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from awp_publish.browsing.addresses import WebAddress

_DATE_TOKENS: Final = re.compile(r"[0-9A-Za-z:\x7f-\uffff]+")
_TIME: Final = re.compile(r"(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\D.*)?", re.ASCII)
_DAY: Final = re.compile(r"(\d{1,2})(?:\D.*)?", re.ASCII)
_YEAR: Final = re.compile(r"(\d{2,4})(?:\D.*)?", re.ASCII)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_MAX_AGE: Final = 400 * 86_400
"""Seconds; user agents cap the age at 400 days (6265bis, 5.5)."""


def parse_cookie_date(text: str) -> float | None:
    """Parse the date of Expires (RFC 6265, 5.1.1) to Unix seconds, or None if it is not a date.

    Each token is the first of time, day, month and year that it can be and that is still missing.
    """
    time = day = month = year = None
    for token in _DATE_TOKENS.findall(text):
        if time is None and (match := _TIME.fullmatch(token)):
            time = match.groups()
        elif day is None and (match := _DAY.fullmatch(token)):
            day = int(match[1])
        elif month is None and token[:3].lower() in _MONTHS:
            month = _MONTHS.index(token[:3].lower()) + 1
        elif year is None and (match := _YEAR.fullmatch(token)):
            year = int(match[1])
    if time is None or day is None or month is None or year is None:
        return None
    year += 1900 if 70 <= year <= 99 else 2000 if year <= 69 else 0
    hours, minutes, seconds = map(int, time)
    try:
        return datetime(year, month, day, hours, minutes, seconds, tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cookie:
    """One cookie. `expires` is in Unix seconds, None for the end of the session; `same_site` is "" by default."""

    name: str
    value: str
    domain: str
    path: str = "/"
    host_only: bool = True
    expires: float | None = None
    secure: bool = False
    http_only: bool = False
    same_site: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """The identity of a cookie (5.3, step 11)."""
        return self.domain, self.path, self.name

    def is_for(self, address: WebAddress) -> bool:
        """Return True if a request to an address carries the cookie (5.4; paths match by 5.1.4)."""
        folder = self.path if self.path.endswith("/") else self.path + "/"
        return (
            self.fits_host(address.host)
            and (address.path == self.path or address.path.startswith(folder))
            and (not self.secure or address.is_trustworthy)
        )

    def fits_host(self, host: str) -> bool:
        """Return True for the cookie's host, and for the hosts under its domain if it is for a whole domain."""
        return host == self.domain if self.host_only else _domain_matches(host, self.domain)


class CookieJar:
    """The cookies of a session, oldest first: at most `max_cookies`, each with at most `max_bytes` of name and
    value.
    """

    __slots__ = ("_cookies", "_max_bytes", "_max_cookies")

    def __init__(self, max_cookies: int, max_bytes: int) -> None:
        self._cookies: dict[tuple[str, str, str], Cookie] = {}
        self._max_cookies = max_cookies
        self._max_bytes = max_bytes

    def __iter__(self) -> Iterator[Cookie]:
        return iter(self._cookies.values())

    def __len__(self) -> int:
        return len(self._cookies)

    def store(self, cookie: Cookie, now: float) -> bool:
        """Store a cookie in place of one with the same key; an expired one only removes that. Returns True if
        stored.
        """
        if len(cookie.name) + len(cookie.value) > self._max_bytes:
            return False
        if cookie.expires is not None and cookie.expires <= now:
            self._cookies.pop(cookie.key, None)
            return False
        self._cookies[cookie.key] = cookie
        self.drop_expired(now)
        while len(self._cookies) > self._max_cookies:
            del self._cookies[next(iter(self._cookies))]
        return True

    def store_from(self, headers: Iterable[tuple[str, str]], address: WebAddress, now: float) -> None:
        """Store every Set-Cookie of a response from an address; cookies that 5.3 does not allow are ignored."""
        for name, value in headers:
            if name.lower() == "set-cookie":
                cookie = parse_set_cookie(value, address, now)
                if cookie is not None:
                    self.store(cookie, now)

    def drop_expired(self, now: float) -> None:
        """Remove expired cookies."""
        expired = [key for key, cookie in self._cookies.items() if cookie.expires is not None and cookie.expires <= now]
        for key in expired:
            del self._cookies[key]

    def remove(self, cookies: Iterable[Cookie]) -> int:
        """Remove these cookies, and return how many existed."""
        return sum(self._cookies.pop(cookie.key, None) is not None for cookie in list(cookies))

    def header_for(self, address: WebAddress, now: float) -> str:
        """Return the value of the header Cookie: longer paths first, then older cookies (5.4, step 2); "" for none."""
        self.drop_expired(now)
        return cookie_header(self, address, now)


def cookie_header(cookies: Iterable[Cookie], address: WebAddress, now: float) -> str:
    """Return the value of the header Cookie of a request with those of the cookies, oldest first, that belong there."""
    valid = [cookie for cookie in cookies if cookie.expires is None or cookie.expires > now]
    fitting = [cookie for cookie in valid if cookie.is_for(address)]
    if len(fitting) > 1:
        fitting.sort(key=lambda cookie: -len(cookie.path))
    return "; ".join([f"{cookie.name}={cookie.value}" if cookie.name else cookie.value for cookie in fitting])


def parse_set_cookie(text: str, address: WebAddress, now: float) -> Cookie | None:
    """Parse a Set-Cookie of a response from an address; None for a cookie that 5.2 and 5.3 ignore."""
    if _CONTROLS.search(text):
        return None
    pair, _, rest = text.partition(";")
    name, equals, value = (part.strip() for part in pair.partition("="))
    if not equals:
        name, value = "", name
    attributes = {}
    for part in rest.split(";"):  # the last of each name counts (5.3, steps 3 to 8)
        attribute, _, attribute_value = part.partition("=")
        attributes[attribute.strip().lower()] = attribute_value.strip()

    # A host may set cookies for itself and its parents, but not for a top-level domain.
    domain = attributes.get("domain", "").removeprefix(".").lower()
    is_parent = "." in domain and _domain_matches(address.host, domain)
    if not (name or value) or not (not domain or domain == address.host or is_parent):
        return None

    # Max-Age before Expires (5.3, step 3); unreadable values are ignored.
    age = attributes.get("max-age", "")
    digits = age.removeprefix("-")
    expires = parse_cookie_date(attributes.get("expires", ""))
    if digits.isascii() and digits.isdigit():
        expires = 0.0 if age.startswith("-") else now + min(int(digits[:12]), _MAX_AGE)
    elif expires is not None:
        expires = min(expires, now + _MAX_AGE)

    # Secure cookies only over secure connections, and the requirements of the name prefixes (6265bis, 4.1.3 and 5.7),
    # including an explicit path. Without a name, servers may take the value for the name.
    secure, prefix = "secure" in attributes, (name or value).lower()
    if secure and not address.is_trustworthy:
        return None
    if prefix.startswith("__host-") and not (name and secure and not domain and attributes.get("path") == "/"):
        return None
    if prefix.startswith("__secure-") and not (name and secure):
        return None
    path = attributes.get("path", "")
    return Cookie(
        name=name,
        value=value,
        domain=domain or address.host,
        path=path if path.startswith("/") else address.path.rpartition("/")[0] or "/",
        host_only=not domain,
        expires=expires,
        secure=secure,
        http_only="httponly" in attributes,
        same_site=attributes.get("samesite", "").capitalize(),
    )


def write_set_cookie(cookie: Cookie, now: float) -> str:
    """Return a Set-Cookie that `parse_set_cookie` parses to the same cookie."""
    parts = [f"{cookie.name}={cookie.value}", f"Path={cookie.path}"]
    parts += [] if cookie.host_only else [f"Domain={cookie.domain}"]
    parts += [] if cookie.expires is None else [f"Max-Age={int(cookie.expires - now)}"]
    parts += [word for word, is_said in (("Secure", cookie.secure), ("HttpOnly", cookie.http_only)) if is_said]
    parts += [f"SameSite={cookie.same_site}"] if cookie.same_site else []
    return "; ".join(parts)


def _domain_matches(host: str, domain: str) -> bool:
    """Return True if a host matches a domain (5.1.3); IP addresses have no parents."""
    is_number = host.startswith("[") or host.replace(".", "").isdigit()
    return host == domain or (host.endswith("." + domain) and not is_number)
