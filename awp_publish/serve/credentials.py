"""A request's caller: headers, session, user, address; and whether another site's page sent it.

The address is believed of proxies that the site names, and of nobody else, in the header that it names. All lines of
X-Forwarded-For or Forwarded (RFC 7239) are one list, which is read from the right, past those proxies, to the first
address that is none of them. Where both are there and the site names none, one is the proxy's and the other what the
caller sent along, and nobody knows which: then the address that connects counts.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final, TypeAlias

from awp_publish.policy.call import Credentials
from awp_publish.problems import CrossSiteCookies, ForeignHost
from awp_publish.serve.http import Fields, Scope

UNIX: Final = "unix"
"""How a site trusts what connects through a socket file: such a peer has no address."""

FORWARDED_FOR: Final = "x-forwarded-for"
LISTS: Final = (FORWARDED_FOR, "forwarded")
"""The headers in which each proxy adds the address that it was called from."""

MOST_HOPS: Final = 50
"""Proxies that are looked past, at most: callers write these headers too."""

CALLER_NETWORK: Final = 64
"""Bits of an IPv6 address that tell one caller from another; the others a caller chooses at will."""

BROWSER_FIELDS: Final = frozenset(
    {b"origin", b"sec-fetch-site", b"sec-fetch-mode", b"sec-fetch-dest", b"sec-fetch-user", b"sec-fetch-storage-access"}
)
"""What browsers say of the page behind a request (Fetch; W3C Fetch Metadata), and page scripts cannot change."""

_HOST: Final = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:,\s]+)(?::\d*)?")
_OWN_SITE: Final = frozenset({b"same-origin", b"none"})
_DEFAULT_PORTS: Final = {"https": ":443", "http": ":80"}

_NO_SCOPES: Final[frozenset[str]] = frozenset()

Address: TypeAlias = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class TrustedProxies:
    """Whose word on a client's address is taken, and in which header: its name in lower case, None for the usual."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    unix: bool = False
    forwarded: str | None = None

    def trust(self, address: Address | None) -> bool:
        """Return True if an address is one of them; None is a peer without an address."""
        if address is None:
            return self.unix
        return bool(self.networks) and any(address in network for network in self.networks)


def read_trusted_proxies(given: Sequence[str], forwarded: str | None = None) -> TrustedProxies:
    """Addresses, networks ("10.0.0.0/8"), or "unix", and the name of the header they use. Raises ValueError."""
    networks: list[IPv4Network | IPv6Network] = []
    for one in given:
        try:
            networks += [ip_network(one, strict=False)] if one != UNIX else []
        except ValueError:
            raise ValueError(f"{one!r} is not an address or network") from None
    return TrustedProxies(tuple(networks), UNIX in given, forwarded)


def read_credentials(scope: Scope, fields: Fields, trusted_proxies: TrustedProxies) -> Credentials:
    """Return the credentials of an ASGI request. `fields` are its headers, as `read_fields` gives them."""
    granted, scopes = scope.get("auth"), _NO_SCOPES
    if granted is not None and isinstance(given := getattr(granted, "scopes", ()), (list, tuple, set, frozenset)):
        scopes = frozenset(given)  # of Starlette's AuthCredentials
    signed = scope if b"signature-input" in fields or b"dpop" in fields else None
    address, query = client_address(scope, fields, trusted_proxies), scope.get("query_string", b"")
    # Made as its class does, without a function of Python in between: each guarded call needs one.
    shown = _Headers(fields), address, scope.get("session"), scope.get("user"), scopes, None, query, signed
    return tuple.__new__(Credentials, shown)


class _Headers(Mapping[str, str]):
    """Headers as text. Most requests have many, of which an authenticator reads one."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Fields) -> None:
        self._fields = fields

    def __getitem__(self, name: str) -> str:
        return self._fields[name.encode("latin-1")].decode("latin-1")

    def get(self, name: str, default: Any = None) -> Any:
        """As a dictionary does; Mapping's own goes through an exception."""
        value = self._fields.get(name.encode("latin-1"))
        return default if value is None else value.decode("latin-1")

    def __iter__(self) -> Iterator[str]:
        return (name.decode("latin-1") for name in self._fields)

    def __len__(self) -> int:
        return len(self._fields)


# --- The address ---


def client_address(scope: Scope, fields: Fields, trusted_proxies: TrustedProxies) -> str:
    """The client's address, "" if there is none; of IPv6 the network of CALLER_NETWORK bits ("2001:db8::/64")."""
    client = scope.get("client")
    peer, key = _read_peer(str(client[0] or "") if client else "")
    if not trusted_proxies.networks and not trusted_proxies.unix:
        return key
    if peer is None and key:
        return key  # what a server without addresses calls its peer
    if not trusted_proxies.trust(peer):
        return key
    return _key_of(_walk(peer, _hops(fields, trusted_proxies.forwarded), trusted_proxies))


@lru_cache(maxsize=4096)
def _read_peer(host: str) -> tuple[Address | None, str]:
    address = _read_address(host)
    return address, host if address is None else _key_of(address)


def _walk(peer: Address | None, hops: Iterable[str], trusted_proxies: TrustedProxies) -> Address | None:
    """From the nearest hop outwards: past trusted proxies, and no further than entries can be read."""
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
    """The hops that a request came by, the nearest first. The rest beyond MOST_HOPS cannot be read as one hop.

    Any header but the two that list hops holds one address; several in it, or several lines of it, are none.
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
    hops = reversed(text.rsplit(",", MOST_HOPS))
    yield from hops if name == FORWARDED_FOR else map(_for_of, hops)


def _for_of(element: str) -> str:
    """The parameter `for` of an element of Forwarded (RFC 7239 section 4); "" unless there is exactly one."""
    pairs = [pair.partition("=") for pair in element.split(";")]
    named = [value for name, _, value in pairs if name.strip().lower() == "for"]
    return named[0].strip().strip('"') if len(named) == 1 else ""


def _read_hop(hop: str) -> Address | None:
    """An address that may have a port, and brackets if it is IPv6."""
    text = hop.strip()
    if text.startswith("["):
        return _read_address(text[1:].partition("]")[0])
    if text.count(":") == 1:
        text = text.partition(":")[0]
    return _read_address(text)


def _read_address(text: object) -> Address | None:
    """IPv4 within IPv6 is IPv4; an interface (`%eth0`) is nobody's but ours."""
    try:
        address = ip_address(str(text).partition("%")[0])
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address


def _key_of(address: Address | None) -> str:
    if isinstance(address, IPv6Address):
        return str(IPv6Network((address, CALLER_NETWORK), strict=False))
    return "" if address is None else str(address)


# --- Other sites' pages ---


def refuse_foreign_pages(fields: Fields, own_hosts: frozenset[str]) -> None:
    """Refuse what no page of this site asks for, as far as a browser tells. Raises ForeignHost, CrossSiteCookies.

    Browsers send cookies along unasked, so a call with cookies has to come from the site's own pages. `own_hosts` are
    the hosts of the site's own addresses, with a port that is not the default. What has none of BROWSER_FIELDS passes.
    """
    refuse_foreign_host(fields, own_hosts)
    if b"cookie" in fields and is_cross_site(fields, own_hosts):
        raise CrossSiteCookies("The call has cookies, but it comes from a page of another site.")


def refuse_foreign_host(fields: Fields, own_hosts: frozenset[str]) -> None:
    """Refuse a browser that asks under a name which is not the site's. Raises ForeignHost.

    Who points a name of their own at this server has, for a browser, a page of the same origin (DNS rebinding). That
    takes a name: loopback names and IP addresses are nobody's to point elsewhere, and pass. So do programs, which say
    nothing of a page. X-Forwarded-Host is not read.
    """
    if BROWSER_FIELDS.isdisjoint(fields):
        return
    host = fields.get(b"host", b"").decode("latin-1").lower()
    if not _is_own_host(host, own_hosts):
        raise ForeignHost(
            f'A browser sent this request, and its Host "{host[:100]}" is none of this site\'s addresses.'
        )


def is_cross_site(fields: Fields, own_hosts: frozenset[str]) -> bool:
    """Return True if a page of another origin sent a request, as its browser tells; programs say nothing of the kind.

    Sec-Fetch-Site (W3C Fetch Metadata section 2.2) is what page scripts cannot set; older browsers send Origin.
    """
    fetch_site = fields.get(b"sec-fetch-site")
    if fetch_site is not None:
        return fetch_site.strip().lower() not in _OWN_SITE
    origin = fields.get(b"origin")
    if origin is None:
        return False
    host = fields.get(b"host", b"").decode("latin-1").lower()
    return not _is_origin_of(origin, (host, *own_hosts) if _is_own_host(host, own_hosts) else own_hosts)


def is_local_page(fields: Fields) -> bool:
    """Return True if a page asks its own origin, a loopback name or an IP address, as in development."""
    host = fields.get(b"host", b"").decode("latin-1").lower()
    return _is_own_host(host, frozenset()) and _is_origin_of(fields.get(b"origin", b""), (host,))


@lru_cache(maxsize=1024)
def _is_own_host(host: str, own_hosts: frozenset[str]) -> bool:
    """Return True if a Host field names one of the site's hosts, at any port, or one that cannot be rebound."""
    matched = _HOST.fullmatch(host)
    if matched is None:
        return False
    name = matched[1]
    if name == "localhost" or name.endswith(".localhost") or _read_address(name.strip("[]")) is not None:
        return True
    return any(name == own.partition(":")[0] for own in own_hosts)


def _is_origin_of(origin: bytes, hosts: Iterable[str]) -> bool:
    scheme, _, authority = origin.decode("latin-1").strip().lower().partition("://")
    port = _DEFAULT_PORTS.get(scheme, "")
    host = authority.removesuffix(port)
    return bool(host) and any(host == one.removesuffix(port) for one in hosts)
