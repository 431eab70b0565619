"""Fingerprints that distinguish calls: of the input, and of the credentials that were sent to the route."""

import base64
import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import parse_qsl

import orjson

from awp_publish.calls.call import Credentials
from awp_publish.model import JsonObject, RouteCredential
from awp_publish.schema.large_numbers import with_integers

_IDENTIFYING: Final = re.compile(
    r"(?!.*(csrf|xsrf|user-agent)|idempotency-|sec-|mcp-)"
    r".*(authorization|token|secret|credential|identity|api-?key|(^|-)(key|user|session)(-|$))"
)
"""Names of headers by which a route may identify callers, whether it declares them or not."""

VOLATILE_COOKIES: Final = re.compile(r"AWSALB|__cf|cf_|_g(a|id|at|cl)|_fbp|csrf|xsrf|messages$", re.IGNORECASE)
"""Names of cookies that do not identify the caller and change on their own."""


def canonical(value: JsonObject) -> bytes:
    """Return an input as JSON that does not depend on the order of its members, nor on 5 and 5.0."""
    return with_integers(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))


def shown_by(
    presented: Credentials, credentials: Iterable[RouteCredential] = (), *, cookies: bool = False, session: bool = True
) -> str:
    """Return the credentials by which a route may identify a caller whom we do not know, "" for none.

    These are headers that are identifying by their name or because the route's security scheme reads them, the cookies
    that the scheme reads, and the application's session. If the scheme names no cookie, `cookies` includes all of them
    except the session's own, which is signed anew with each answer.
    """
    headers, cookie = presented.headers, presented.headers.get("cookie") or ""
    looked_for: dict[str, set[str]] = {"header": set(), "cookie": set(), "query": set()}
    for credential in credentials:
        looked_for[credential.place].add(credential.name)
    telling = [name for name in headers if _is_identifying(name) or name in looked_for["header"]]
    words = [f"{name}: {headers[name]}" for name in sorted(telling)]
    if (keys := looked_for["query"]) and presented.query:
        pairs = parse_qsl(presented.query.decode("latin-1"))
        words += [f"query {name}={value}" for name, value in sorted(pairs) if name in keys]
    named = looked_for["cookie"]
    for pair in sorted(map(str.strip, cookie.split(";"))) if cookie and (named or cookies) else ():
        name, _, value = pair.partition("=")
        if name in named if named else not (VOLATILE_COOKIES.match(name) or _holds(value, presented.session)):
            words += [f"cookie {name}={value}"] if name else []
    if session and presented.session:
        words.append(json.dumps(dict(presented.session), default=str, skipkeys=True))
    return "\n".join(words)


@lru_cache(maxsize=256)
def _is_identifying(header: str) -> bool:
    return _IDENTIFYING.match(header) is not None


def _holds(cookie: str, session: Mapping[str, object] | None) -> bool:
    """Return True if a cookie is the session itself, as Starlette's SessionMiddleware writes it: Base64, then a dot."""
    if not session:
        return False
    try:
        return bool(json.loads(base64.b64decode(cookie.strip('"').partition(".")[0])) == dict(session))
    except (ValueError, RecursionError):
        return False
