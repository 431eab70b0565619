"""The cookie jar of a session (RFC 6265, with the prefixes and SameSite of its revision 6265bis).

Only this site is ever asked, so SameSite never withholds a cookie: it is kept, shown and exported.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from awp_publish.browsing.addresses import Address

# --- The date of a cookie's Expires (RFC 6265, 5.1.1): forgiving by rule, not by luck ---

_TOKENS: Final = re.compile(r"[0-9A-Za-z:\x7f-\uffff]+")
_TIME: Final = re.compile(r"(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\D.*)?", re.ASCII)
_DAY: Final = re.compile(r"(\d{1,2})(?:\D.*)?", re.ASCII)
_YEAR: Final = re.compile(r"(\d{2,4})(?:\D.*)?", re.ASCII)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def parse_cookie_date(text: str) -> float | None:
    """Unix seconds, or None for what is not a date."""
    found: dict[str, tuple[int, ...]] = {}
    for token in _TOKENS.findall(text):
        _read_token(token, found)
    if found.keys() < {"time", "day", "month", "year"}:
        return None
    (year,), (month,), (day,) = found["year"], found["month"], found["day"]
    hours, minutes, seconds = found["time"]
    year += 1900 if 70 <= year <= 99 else 2000 if year <= 69 else 0
    try:
        return datetime(year, month, day, hours, minutes, seconds, tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        return None


def _read_token(token: str, found: dict[str, tuple[int, ...]]) -> None:
    """What a token is: the first of time, day, month and year that it can be and that is still missing."""
    for name, pattern in (("time", _TIME), ("day", _DAY)):
        match = pattern.fullmatch(token)
        if match and name not in found:
            found[name] = tuple(map(int, match.groups()))
            return
    if "month" not in found and token[:3].lower() in _MONTHS:
        found["month"] = (_MONTHS.index(token[:3].lower()) + 1,)
        return
    match = _YEAR.fullmatch(token)
    if match and "year" not in found:
        found["year"] = (int(match[1]),)


_LONGEST_AGE = 400 * 86_400  # 6265bis, 5.5: user agents cap the age at 400 days


@dataclass(frozen=True, slots=True, kw_only=True)
class Cookie:
    """One cookie. `expires` is Unix seconds, None for the end of the session; `same_site` is "" where not said."""

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
        """What makes two cookies the same one (5.3, step 11)."""
        return self.domain, self.path, self.name

    def is_for(self, address: Address) -> bool:
        """Whether a request to an address carries it (5.4)."""
        return (
            self.fits_host(address.host)
            and _path_matches(address.path, self.path)
            and (not self.secure or address.is_trustworthy)
        )

    def fits_host(self, host: str) -> bool:
        """Whether a host is the cookie's, or under its domain where it is for a whole domain."""
        return host == self.domain if self.host_only else _domain_matches(host, self.domain)


class CookieJar:
    """The cookies of a session, oldest first. `most` and `largest` (bytes of name and value) bound it."""

    __slots__ = ("_cookies", "_largest", "_most")

    def __init__(self, most: int, largest: int) -> None:
        self._cookies: dict[tuple[str, str, str], Cookie] = {}
        self._most = most
        self._largest = largest

    def __iter__(self) -> Iterator[Cookie]:
        return iter(self._cookies.values())

    def __len__(self) -> int:
        return len(self._cookies)

    def store(self, cookie: Cookie, now: float) -> bool:
        """Keep a cookie in the place of the one with the same key; an expired one only removes it."""
        if len(cookie.name) + len(cookie.value) > self._largest:
            return False
        if cookie.expires is not None and cookie.expires <= now:
            self._cookies.pop(cookie.key, None)
            return False
        self._cookies[cookie.key] = cookie
        self.drop_expired(now)
        while len(self._cookies) > self._most:
            del self._cookies[next(iter(self._cookies))]
        return True

    def store_from(self, headers: Iterable[tuple[str, str]], address: Address, now: float) -> None:
        """Take every Set-Cookie of an answer that an address gave; what is not allowed is ignored, as 5.3 says."""
        for name, value in headers:
            if name.lower() == "set-cookie":
                cookie = parse_set_cookie(value, address, now)
                if cookie is not None:
                    self.store(cookie, now)

    def drop_expired(self, now: float) -> None:
        """Forget what has expired."""
        expired = [key for key, cookie in self._cookies.items() if cookie.expires is not None and cookie.expires <= now]
        for key in expired:
            del self._cookies[key]

    def remove(self, cookies: Iterable[Cookie]) -> int:
        """Forget these; how many there were."""
        return sum(self._cookies.pop(cookie.key, None) is not None for cookie in list(cookies))

    def header_for(self, address: Address, now: float) -> str:
        """The value of the field Cookie: longer paths first, then older cookies (5.4, step 2); "" for none."""
        self.drop_expired(now)
        fitting = sorted((cookie for cookie in self if cookie.is_for(address)), key=lambda cookie: -len(cookie.path))
        return "; ".join(f"{cookie.name}={cookie.value}" if cookie.name else cookie.value for cookie in fitting)


def parse_set_cookie(text: str, address: Address, now: float) -> Cookie | None:
    """The cookie that an answer of an address sets, or None for one that 5.2 and 5.3 ignore."""
    if any((ord(character) < 32 and character != "\t") or character == "\x7f" for character in text):
        return None
    pair, _, rest = text.partition(";")
    name, equals, value = pair.partition("=")
    if not equals:
        name, value = "", pair
    attributes = _read_attributes(rest)
    name, value = name.strip(), value.strip()
    domain = attributes.get("domain", "").removeprefix(".").lower()
    if not (name or value) or (domain and not _may_set(domain, address.host)):
        return None
    cookie = Cookie(
        name=name,
        value=value,
        domain=domain or address.host,
        path=_read_path(attributes.get("path", ""), address),
        host_only=not domain,
        expires=_read_expiry(attributes, now),
        secure="secure" in attributes,
        http_only="httponly" in attributes,
        same_site=attributes.get("samesite", "").capitalize(),
    )
    has_whole_path = attributes.get("path") == "/"
    return cookie if _is_allowed(cookie, address, has_whole_path=has_whole_path) else None


def _read_attributes(text: str) -> dict[str, str]:
    """The last of each name counts (5.3, steps 3 to 8)."""
    attributes = {}
    for part in text.split(";"):
        name, _, value = part.partition("=")
        attributes[name.strip().lower()] = value.strip()
    return attributes


def _read_path(path: str, address: Address) -> str:
    """The Path attribute, or the default path (5.1.4)."""
    if path.startswith("/"):
        return path
    return address.path.rpartition("/")[0] or "/"


def _read_expiry(attributes: dict[str, str], now: float) -> float | None:
    """Max-Age before Expires (5.3, step 3); what cannot be read is as if it were not there."""
    age = attributes.get("max-age", "")
    digits = age.removeprefix("-")
    if digits.isascii() and digits.isdigit():
        return now + min(int(digits[:12]), _LONGEST_AGE) if not age.startswith("-") else 0.0
    expires = parse_cookie_date(attributes.get("expires", ""))
    return None if expires is None else min(expires, now + _LONGEST_AGE)


def _is_allowed(cookie: Cookie, address: Address, *, has_whole_path: bool) -> bool:
    """Secure cookies only over a safe way, and the promises of the name prefixes (6265bis, 4.1.3 and 5.7).

    A path has to be said to be promised. Without a name, servers may take the value for one.
    """
    if cookie.secure and not address.is_trustworthy:
        return False
    name = (cookie.name or cookie.value).lower()
    if not cookie.name and name.startswith(("__host-", "__secure-")):
        return False
    if name.startswith("__host-"):
        return cookie.secure and cookie.host_only and has_whole_path
    return cookie.secure or not name.startswith("__secure-")


def _may_set(domain: str, host: str) -> bool:
    """A host may set cookies for itself and its parents, but not for a whole top-level domain."""
    return host == domain or ("." in domain and _domain_matches(host, domain))


def _domain_matches(host: str, domain: str) -> bool:
    """5.1.3; addresses in numbers have no parents."""
    is_number = host.startswith("[") or host.replace(".", "").isdigit()
    return host == domain or (host.endswith("." + domain) and not is_number)


def _path_matches(path: str, cookie_path: str) -> bool:
    """5.1.4."""
    return path == cookie_path or path.startswith(cookie_path if cookie_path.endswith("/") else cookie_path + "/")
