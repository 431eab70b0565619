"""Refuses requests of a browser that a page of another site has sent.

The origins of a site are those of its configured addresses, with their scheme: a page of `http://shop.example`, which
anybody on the way may have written, is no page of `https://shop.example`. A site that runs on a developer's machine
has the origin of its loopback name or IP address as well, whatever its configured address.
"""

import re
from functools import lru_cache
from typing import Final

from awp_publish.http.client_address import read_address
from awp_publish.http.exchange import Fields
from awp_publish.problems import CrossSiteCookies, ForeignHost
from awp_publish.schema.origins import DEFAULT_PORTS

BROWSER_FIELDS: Final = frozenset(
    {b"origin", b"sec-fetch-site", b"sec-fetch-mode", b"sec-fetch-dest", b"sec-fetch-user", b"sec-fetch-storage-access"}
)
"""Headers in which browsers describe the page that sent a request. Scripts cannot set them (W3C Fetch Metadata)."""

_HOST: Final = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:,\s]+)(?::\d*)?")

_OWN_SITE: Final = frozenset({b"same-origin", b"none"})

_FORWARDING: Final = frozenset(
    {b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-real-ip", b"via"}
)


def refuse_foreign_pages(fields: Fields, own_origins: frozenset[str]) -> None:
    """Refuse a browser's request if a page of another site has sent it. Raises ForeignHost or CrossSiteCookies.

    Browsers attach cookies automatically, so a call with cookies has to come from the site's own pages. `own_origins`
    are the origins of the site's addresses, from `origin_of`. Requests without BROWSER_FIELDS are allowed.
    """
    refuse_foreign_host(fields, own_origins)
    if b"cookie" in fields and is_cross_site(fields, own_origins):
        raise CrossSiteCookies("The call has cookies, but it comes from a page of another site.")


def refuse_foreign_host(fields: Fields, own_origins: frozenset[str]) -> None:
    """Refuse a browser's request whose Host is not one of the site's. Raises ForeignHost.

    An attacker who points a domain of their own at this server has, for a browser, a page of the same origin (DNS
    rebinding). Loopback names and IP addresses cannot be rebound and are allowed. So are requests without
    BROWSER_FIELDS, which do not come from browsers. X-Forwarded-Host is not read.
    """
    if BROWSER_FIELDS.isdisjoint(fields):
        return
    host = _host_of(fields)
    if not _is_fixed(host) and _scheme_at(host, own_origins) is None:
        raise ForeignHost(
            f'A browser sent this request, and its Host "{host[:100]}" is none of this site\'s addresses.'
        )


def is_cross_site(fields: Fields, own_origins: frozenset[str]) -> bool:
    """Return True if a browser reports that a page of another origin has sent a request.

    Browsers send Sec-Fetch-Site (W3C Fetch Metadata section 2.2), older ones Origin. Other clients send neither.
    """
    fetch_site = fields.get(b"sec-fetch-site")
    if fetch_site is not None:
        return fetch_site.strip().lower() not in _OWN_SITE
    origin = fields.get(b"origin")
    return origin is not None and not is_own_page(fields, own_origins)


def is_own_page(fields: Fields, own_origins: frozenset[str]) -> bool:
    """Return True if the Origin of a request is one of the site's own, or that of its own host at another port.

    In development it may also be that of a loopback name or IP address at which the request was sent. A proxy may put
    such a name in place of the site's, so a request that has passed one has to be of a configured origin.
    """
    origin, host = origin_of(fields.get(b"origin", b"").decode("latin-1").strip()), _host_of(fields)
    if origin in own_origins:
        return True
    if _is_fixed(host):
        return _FORWARDING.isdisjoint(fields) and any(
            origin == origin_of(f"{scheme}://{host}") for scheme in DEFAULT_PORTS
        )
    scheme = _scheme_at(host, own_origins)
    return scheme is not None and origin == origin_of(f"{scheme}://{host}")


def origin_of(address: str) -> str:
    """Return the origin of an address, as browsers write it (Fetch, section 3.2): without the default port."""
    scheme, _, rest = address.lower().partition("://")
    return f"{scheme}://{rest.partition('/')[0].removesuffix(f':{DEFAULT_PORTS.get(scheme)}')}"


def _host_of(fields: Fields) -> str:
    return fields.get(b"host", b"").decode("latin-1").lower()


@lru_cache(maxsize=1024)
def _is_fixed(host: str) -> bool:
    """Return True if a Host header has a name that cannot be rebound: a loopback name or an IP address."""
    matched = _HOST.fullmatch(host)
    if matched is None:
        return False
    name = matched[1]
    return name == "localhost" or name.endswith(".localhost") or read_address(name.strip("[]")) is not None


@lru_cache(maxsize=1024)
def _scheme_at(host: str, own_origins: frozenset[str]) -> str | None:
    """Return the scheme of the site's address at the name in a Host header, at any port, None for other names."""
    matched = _HOST.fullmatch(host)
    for origin in own_origins if matched is not None else ():
        scheme, _, authority = origin.partition("://")
        own = _HOST.fullmatch(authority)
        if own is not None and matched is not None and own[1] == matched[1]:
            return scheme
    return None
