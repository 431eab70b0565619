"""Credentials of a request: headers, session, user, address; and whether another site's page has sent it.

Forwarding headers are trusted only from the proxies that the site names, and only the header that it names. All lines
of X-Forwarded-For or Forwarded (RFC 7239) form one list. It is read from the right, skipping trusted proxies, up to the
first other address. If a request has both headers and the site names neither, one of them may come from the caller, so
the address of the connection is used.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final, TypeAlias

from awp_publish.calls.call import Credentials
from awp_publish.http.exchange import Fields, Scope
from awp_publish.problems import CrossSiteCookies, ForeignHost

UNIX: Final = "unix"
"""The setting that trusts peers on a Unix domain socket, which have no address."""

FORWARDED_FOR: Final = "x-forwarded-for"
LISTS: Final = (FORWARDED_FOR, "forwarded")
"""The headers to which each proxy appends the address of its client."""

MAX_HOPS: Final = 50
"""The maximum number of hops that are read, since callers can send these headers too."""

CALLER_NETWORK: Final = 64
"""Bits of an IPv6 address that identify a caller, who can choose the others freely."""

SITE_NETWORK: Final = 48
"""Bits of the IPv6 network that a site may be assigned (RFC 6177), with 65,536 networks of callers in it."""

BROWSER_FIELDS: Final = frozenset(
    {b"origin", b"sec-fetch-site", b"sec-fetch-mode", b"sec-fetch-dest", b"sec-fetch-user", b"sec-fetch-storage-access"}
)
"""Headers in which browsers describe the page that sent a request. Scripts cannot set them (W3C Fetch Metadata)."""

_HOST: Final = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:,\s]+)(?::\d*)?")
_OWN_SITE: Final = frozenset({b"same-origin", b"none"})
_DEFAULT_PORTS: Final = {"https": ":443", "http": ":80"}
_FORWARDING: Final = frozenset(
    {b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-real-ip", b"via"}
)

_NO_SCOPES: Final[frozenset[str]] = frozenset()

Address: TypeAlias = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class TrustedProxies:
    """The proxies whose forwarding header is trusted. `forwarded` is its lower-case name, None for the usual two."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    unix: bool = False
    forwarded: str | None = None

    def trust(self, address: Address | None) -> bool:
        """Return True if an address is that of a trusted proxy. None is a peer on a Unix domain socket."""
        if address is None:
            return self.unix
        return bool(self.networks) and any(address in network for network in self.networks)


def read_trusted_proxies(given: Sequence[str], forwarded: str | None = None) -> TrustedProxies:
    """Parse addresses, networks ("10.0.0.0/8") and "unix". `forwarded` is the trusted header. Raises ValueError."""
    networks: list[IPv4Network | IPv6Network] = []
    for one in given:
        try:
            networks += [ip_network(one, strict=False)] if one != UNIX else []
        except ValueError:
            raise ValueError(f"{one!r} is not an address or network") from None
    return TrustedProxies(tuple(networks), UNIX in given, forwarded)


def read_credentials(scope: Scope, fields: Fields, trusted_proxies: TrustedProxies) -> Credentials:
    """Return the credentials of an ASGI request. `fields` are its headers, as returned by `read_fields`."""
    granted, scopes = scope.get("auth"), _NO_SCOPES
    if granted is not None and isinstance(given := getattr(granted, "scopes", ()), (list, tuple, set, frozenset)):
        scopes = frozenset(given)  # from Starlette's AuthCredentials
    signed = scope if b"signature-input" in fields or b"dpop" in fields else None
    address, query = client_address(scope, fields, trusted_proxies), scope.get("query_string", b"")
    # Every guarded call needs one, so this skips the Python function that a NamedTuple's constructor is.
    shown = _Headers(fields), address, scope.get("session"), scope.get("user"), scopes, None, query, signed
    return tuple.__new__(Credentials, shown)


class _Headers(Mapping[str, str]):
    """Headers as text, decoded on access: authenticators read only one of many."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Fields) -> None:
        self._fields = fields

    def __getitem__(self, name: str) -> str:
        return self._fields[name.encode("latin-1")].decode("latin-1")

    def get(self, name: str, default: Any = None) -> Any:
        """Return a header or the default. Unlike `Mapping.get`, this needs no exception."""
        value = self._fields.get(name.encode("latin-1"))
        return default if value is None else value.decode("latin-1")

    def __iter__(self) -> Iterator[str]:
        return (name.decode("latin-1") for name in self._fields)

    def __len__(self) -> int:
        return len(self._fields)


# --- The address ---


def client_address(scope: Scope, fields: Fields, trusted_proxies: TrustedProxies) -> str:
    """Return the client's address, "" if there is none. For IPv6 it is the network of CALLER_NETWORK bits."""
    client = scope.get("client")
    peer, key = _read_peer(str(client[0] or "") if client else "")
    if not trusted_proxies.networks and not trusted_proxies.unix:
        return key
    if peer is None and key:
        return key  # a peer name that is not an address, as some servers give
    if not trusted_proxies.trust(peer):
        return key
    return _key_of(_walk(peer, _hops(fields, trusted_proxies.forwarded), trusted_proxies))


@lru_cache(maxsize=4096)
def _read_peer(host: str) -> tuple[Address | None, str]:
    address = _read_address(host)
    return address, host if address is None else _key_of(address)


def _walk(peer: Address | None, hops: Iterable[str], trusted_proxies: TrustedProxies) -> Address | None:
    """Return the first untrusted address, nearest hop first; stop before the first entry that is not an address."""
    last = peer
    for hop in hops:
        address = _read_hop(hop)
        if address is None:
            return last
        last = address
        if not trusted_proxies.trust(address):
            return last
    return last


def _hops(fields: Fields, believed: str | None) -> Iterator[str]:
    """Yield the hops of a request, the nearest first. What is beyond MAX_HOPS is one entry that cannot be parsed.

    A custom header contains one address; if it has several, or occurs several times, it cannot be parsed either.
    """
    names = LISTS if believed is None else (believed,)
    found = [(name, value) for name in names if (value := fields.get(name.encode("latin-1"))) is not None]
    if len(found) != 1:
        return
    [(name, value)] = found
    text = value.decode("latin-1")
    if name not in LISTS:
        yield text
        return
    hops = reversed(text.rsplit(",", MAX_HOPS))
    yield from hops if name == FORWARDED_FOR else map(_for_of, hops)


def _for_of(element: str) -> str:
    """Return the parameter `for` of a Forwarded element (RFC 7239 section 4), "" unless it occurs exactly once."""
    pairs = [pair.partition("=") for pair in element.split(";")]
    named = [value for name, _, value in pairs if name.strip().lower() == "for"]
    return named[0].strip().strip('"') if len(named) == 1 else ""


def _read_hop(hop: str) -> Address | None:
    """Parse an address with an optional port, and brackets if it is IPv6."""
    text = hop.strip()
    if text.startswith("["):
        return _read_address(text[1:].partition("]")[0])
    if text.count(":") == 1:
        text = text.partition(":")[0]
    return _read_address(text)


def _read_address(text: object) -> Address | None:
    """Parse an address without its interface (`%eth0`). An IPv4-mapped IPv6 address becomes IPv4."""
    try:
        address = ip_address(str(text).partition("%")[0])
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address


def _key_of(address: Address | None) -> str:
    if isinstance(address, IPv6Address):
        return str(IPv6Network((address, CALLER_NETWORK), strict=False))
    return "" if address is None else str(address)


@lru_cache(maxsize=4096)
def network_around(address: str) -> str:
    """Return the IPv6 network of SITE_NETWORK bits around a client's address, "" for any other address."""
    if ":" not in address:
        return ""
    try:
        return str(IPv6Network(address, strict=False).supernet(new_prefix=SITE_NETWORK))
    except ValueError:
        return ""


# --- Other sites' pages ---
# The origins of a site are those of its configured addresses, with their scheme: a page of `http://shop.example`, which
# anybody on the way may have written, is no page of `https://shop.example`. A site that runs on a developer's machine
# has the origin of its loopback name or IP address as well, whatever its configured address.


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
        return _FORWARDING.isdisjoint(fields) and any(origin == origin_of(f"{one}://{host}") for one in _DEFAULT_PORTS)
    scheme = _scheme_at(host, own_origins)
    return scheme is not None and origin == origin_of(f"{scheme}://{host}")


def origin_of(address: str) -> str:
    """Return the origin of an address, as browsers write it (Fetch, section 3.2): without the default port."""
    scheme, _, rest = address.lower().partition("://")
    return f"{scheme}://{rest.partition('/')[0].removesuffix(_DEFAULT_PORTS.get(scheme, ' '))}"


def _host_of(fields: Fields) -> str:
    return fields.get(b"host", b"").decode("latin-1").lower()


@lru_cache(maxsize=1024)
def _is_fixed(host: str) -> bool:
    """Return True if a Host header has a name that cannot be rebound: a loopback name or an IP address."""
    matched = _HOST.fullmatch(host)
    if matched is None:
        return False
    name = matched[1]
    return name == "localhost" or name.endswith(".localhost") or _read_address(name.strip("[]")) is not None


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
