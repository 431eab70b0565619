"""Who a session is, as its cookies say: what has to change for a session to get a new id.

A stranger may begin a session and have somebody else's agent sign in with it (session fixation). So a session gets a
new id whenever a cookie of identity changes, and the old one ends. These are the cookies by which the site or its
routes are known to identify callers, and those whose names say so; if none is known, every cookie but those of proxies,
analytics and CSRF checks. Of a cookie that holds the application's session as JSON (Starlette's SessionMiddleware) the
members count that are about somebody, by what the site says or by their names: a basket may change without a new id. A
session without such a member is told by its simple values.
"""

import base64
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final, TypeAlias

import orjson

from awp_publish.browsing.cookies import Cookie
from awp_publish.calls.fingerprints import VOLATILE_COOKIES

Identity: TypeAlias = Mapping[tuple[str, str, str], object]
"""The value that identifies somebody in each cookie, by the cookie's key."""

_ABOUT_SOMEBODY: Final = re.compile(
    r"user|account|auth|login|logged|sign|name|mail|identity|customer|member|person|profile|token|sub|uid|role|scope",
    re.IGNORECASE,
)


_IDENTIFYING: Final = re.compile(r"sess|sid$|auth|token|jwt|login|user|account|remember|identity", re.IGNORECASE)


def identity_of(cookies: Iterable[Cookie], names: Collection[str]) -> Identity:
    """Return what identifies somebody in cookies. `names` are those of cookies, or of
    members of a session, that do, as far as the site says."""
    return {
        cookie.key: _of_value(cookie.value, names)
        for cookie in cookies
        if not VOLATILE_COOKIES.match(cookie.name)
        and (not names or cookie.name in names or _IDENTIFYING.search(cookie.name))
    }


def _of_value(value: str, names: Collection[str]) -> object:
    """Return what identifies somebody in a cookie's value: of a session in JSON only a part of it."""
    encoded, dot, _ = value.strip('"').partition(".")
    if not dot:
        return value
    try:
        facts = orjson.loads(base64.b64decode(encoded, validate=True))
    except ValueError:
        return value
    if not isinstance(facts, dict):
        return value
    about = {name: fact for name, fact in facts.items() if name in names or _ABOUT_SOMEBODY.search(name)}
    simple = (str, int, float, bool, type(None))
    return about or {name: fact for name, fact in facts.items() if isinstance(fact, simple)}
