"""Cookies as agents see and give them: `session.cookies.get`, `.set` and `.clear`."""

import re
from collections.abc import Mapping
from typing import Final

from awp_publish.browsing.addresses import Address
from awp_publish.browsing.browser import Browser
from awp_publish.browsing.cookies import Cookie
from awp_publish.browsing.errors import refuse
from awp_publish.browsing.reading import read_flag, read_text, require_text
from awp_publish.model import JsonObject

_NAME: Final = re.compile(r"[\x21-\x3a\x3c\x3e-\x7e]*")
_VALUE: Final = re.compile(r"[\x20-\x3a\x3c-\x7e\x80-\xff]*")
_LATEST: Final = 1e15
_SAME_SITE: Final = ("", "Strict", "Lax", "None")


def describe_cookie(cookie: Cookie) -> JsonObject:
    """One cookie with all that is known of it; `expires` is Unix seconds, null for the end of the session."""
    return {
        "name": cookie.name,
        "value": cookie.value,
        "domain": cookie.domain,
        "path": cookie.path,
        "host_only": cookie.host_only,
        "expires": cookie.expires,
        "secure": cookie.secure,
        "http_only": cookie.http_only,
        "same_site": cookie.same_site,
        "size": len(cookie.name) + len(cookie.value),
    }


def read_cookie(said: Mapping[str, object], browser: Browser) -> Cookie:
    """A cookie that an agent gives: a name, a value, and for the rest what `describe_cookie` says.

    Raises:
        AwpError: INVALID_REQUEST for what no header could carry, and for a domain that is not this site's.
    """
    said = {**said, "http_only": said.get("http_only", said.get("httpOnly"))}
    said = {**said, "same_site": said.get("same_site", said.get("sameSite"))}
    home = _home_of(said, browser)
    domain = (read_text(said, "domain", "cookie.") or home.host).removeprefix(".").lower()
    cookie = Cookie(
        name=require_text(said, "name", "cookie."),
        value=require_text(said, "value", "cookie."),
        domain=domain,
        path=read_text(said, "path", "cookie.") or "/",
        host_only=read_flag(said, "host_only", "cookie.") if "host_only" in said else "domain" not in said,
        expires=_read_expiry(said.get("expires")),
        secure=read_flag(said, "secure", "cookie."),
        http_only=read_flag(said, "http_only", "cookie."),
        same_site=(read_text(said, "same_site", "cookie.") or "").capitalize(),
    )
    _require_sound(cookie, browser)
    return cookie


def _home_of(said: Mapping[str, object], browser: Browser) -> Address:
    url = read_text(said, "url", "cookie.")
    return browser.origins.home if url is None else browser.resolve(url, None)


def _read_expiry(expires: object) -> float | None:
    """Unix seconds; nothing, or -1 as browsers' own tools write it, is the end of the session."""
    if expires is None or expires == -1:
        return None
    if not isinstance(expires, int | float) or isinstance(expires, bool) or not abs(expires) < _LATEST:
        refuse("Invalid param: cookie.expires must be Unix seconds", param="cookie.expires")
    return float(expires)


def _require_sound(cookie: Cookie, browser: Browser) -> None:
    wrong = {
        "name": _NAME.fullmatch(cookie.name) is None,
        "value": _VALUE.fullmatch(cookie.value) is None or not (cookie.name or cookie.value),
        "path": _VALUE.fullmatch(cookie.path) is None or not cookie.path.startswith("/"),
        "same_site": cookie.same_site not in _SAME_SITE,
        "domain": not any(cookie.fits_host(host) for host in browser.origins.hosts),
        "size": len(cookie.name) + len(cookie.value) > browser.limits.cookie_bytes,
    }
    for name, is_wrong in wrong.items():
        if is_wrong:
            refuse(f"Invalid param: cookie.{name} is not one that a browser would keep", param=f"cookie.{name}")


def get_cookies(params: Mapping[str, object], browser: Browser) -> JsonObject:
    """The cookies of the session, of a name or for an address where one is given."""
    browser.jar.drop_expired(browser.clock())
    found = [describe_cookie(cookie) for cookie in _chosen(params, browser)]
    return {"cookies": found, "count": len(found)}


def set_cookies(params: Mapping[str, object], browser: Browser) -> JsonObject:
    """Keep every cookie of `cookies`, or none where one of them is not sound."""
    given = params.get("cookies")
    if not isinstance(given, list) or not all(isinstance(cookie, Mapping) for cookie in given):
        refuse("Missing or invalid 'cookies' array", param="cookies")
    cookies = [read_cookie(cookie, browser) for cookie in given]
    return {"set": sum(browser.jar.store(cookie, browser.clock()) for cookie in cookies)}


def clear_cookies(params: Mapping[str, object], browser: Browser) -> JsonObject:
    """Forget all cookies, or those of a name, a domain or an address where one is given."""
    return {"cleared": browser.jar.remove(_chosen(params, browser))}


def _chosen(params: Mapping[str, object], browser: Browser) -> list[Cookie]:
    name, domain, url = (read_text(params, member) for member in ("name", "domain", "url"))
    address = None if url is None else browser.resolve(url, None)
    return [
        cookie
        for cookie in browser.jar
        if name in (None, cookie.name)
        and (domain is None or cookie.domain == domain.removeprefix(".").lower())
        and (address is None or cookie.is_for(address))
    ]
