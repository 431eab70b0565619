"""Cookies in the form for agents: `session.cookies.get` and `.set`."""

import re
from typing import Final

from awp_publish.browsing.browser import Browser
from awp_publish.browsing.cookies import Cookie
from awp_publish.browsing.errors import refuse
from awp_publish.browsing.parameters import read_flag, read_text, require_text
from awp_publish.schema import JsonObject

_COOKIE_NAME: Final = re.compile(r"[\x21-\x3a\x3c\x3e-\x7e]*")
_COOKIE_VALUE: Final = re.compile(r"[\x20-\x3a\x3c-\x7e\x80-\xff]*")
_SAME_SITE: Final = ("", "Strict", "Lax", "None")
_MAX_TIME: Final = 1e15


def describe_cookie(cookie: Cookie) -> JsonObject:
    """Return all properties of a cookie; `expires` is in Unix seconds, null for the end of the session."""
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


def read_cookie(given: JsonObject, browser: Browser) -> Cookie:
    """Read a cookie that an agent sets: a name, a value, and optionally the other members of `describe_cookie`.

    Raises:
        AwpError: INVALID_REQUEST for what no header can carry, and for a domain that is not this site's.
    """
    given = {**given, "http_only": given.get("http_only", given.get("httpOnly"))}
    given = {**given, "same_site": given.get("same_site", given.get("sameSite"))}
    url, expires = read_text(given, "url", "cookie."), given.get("expires")
    home = browser.origins.home if url is None else browser.resolve(url, None)
    if expires == -1:  # browsers' own tools write the end of the session like this
        expires = None
    is_time = isinstance(expires, int | float) and not isinstance(expires, bool) and abs(expires) < _MAX_TIME
    if expires is not None and not is_time:
        refuse("Invalid param: cookie.expires must be Unix seconds", param="cookie.expires")
    cookie = Cookie(
        name=require_text(given, "name", "cookie."),
        value=require_text(given, "value", "cookie."),
        domain=(read_text(given, "domain", "cookie.") or home.host).removeprefix(".").lower(),
        path=read_text(given, "path", "cookie.") or "/",
        host_only=read_flag(given, "host_only", "cookie.") if "host_only" in given else "domain" not in given,
        expires=float(expires) if isinstance(expires, int | float) else None,
        secure=read_flag(given, "secure", "cookie."),
        http_only=read_flag(given, "http_only", "cookie."),
        same_site=(read_text(given, "same_site", "cookie.") or "").capitalize(),
    )
    wrong = {
        "name": _COOKIE_NAME.fullmatch(cookie.name) is None,
        "value": _COOKIE_VALUE.fullmatch(cookie.value) is None or not (cookie.name or cookie.value),
        "path": _COOKIE_VALUE.fullmatch(cookie.path) is None or not cookie.path.startswith("/"),
        "same_site": cookie.same_site not in _SAME_SITE,
        "domain": not any(cookie.fits_host(host) for host in browser.origins.hosts),
        "size": len(cookie.name) + len(cookie.value) > browser.limits.cookie_bytes,
    }
    for name, is_wrong in wrong.items():
        if is_wrong:
            refuse(f"Invalid param: cookie.{name} is not one that a browser would store", param=f"cookie.{name}")
    return cookie
