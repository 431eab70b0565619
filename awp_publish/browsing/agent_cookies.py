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


def read_cookie(members: JsonObject, browser: Browser) -> Cookie:
    """Read a cookie that an agent sets: a name, a value, and optionally the other members of `describe_cookie`.

    Raises:
        AwpError: INVALID_REQUEST for what no header can carry, and for a domain that is not this site's.
    """
    members = {**members, "http_only": members.get("http_only", members.get("httpOnly"))}
    members = {**members, "same_site": members.get("same_site", members.get("sameSite"))}
    url, expires = read_text(members, "url", "cookie."), members.get("expires")
    home = browser.origins.home if url is None else browser.resolve(url, None)
    if expires == -1:  # browsers' own tools write the end of the session like this
        expires = None
    is_time = isinstance(expires, int | float) and not isinstance(expires, bool) and abs(expires) < _MAX_TIME
    if expires is not None and not is_time:
        refuse("Invalid param: cookie.expires must be Unix seconds", param="cookie.expires")
    cookie = Cookie(
        name=require_text(members, "name", "cookie."),
        value=require_text(members, "value", "cookie."),
        domain=(read_text(members, "domain", "cookie.") or home.host).removeprefix(".").lower(),
        path=read_text(members, "path", "cookie.") or "/",
        host_only=read_flag(members, "host_only", "cookie.") if "host_only" in members else "domain" not in members,
        expires=float(expires) if isinstance(expires, int | float) else None,
        secure=read_flag(members, "secure", "cookie."),
        http_only=read_flag(members, "http_only", "cookie."),
        same_site=(read_text(members, "same_site", "cookie.") or "").capitalize(),
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
