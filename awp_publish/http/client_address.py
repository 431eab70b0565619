"""The address of the client that has sent a request.

Forwarding headers are trusted only from the proxies that the site names, and only the header that it names. All lines
of X-Forwarded-For or Forwarded (RFC 7239) form one list. It is read from the right, skipping trusted proxies, up to the
first other address. If a request has both headers and the site names neither, one of them may come from the caller, so
the address of the connection is used.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

from awp_publish.http.exchange import Fields, Scope

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


def read_trusted_proxies(names: Sequence[str], forwarded: str | None = None) -> TrustedProxies:
    """Parse addresses, networks ("10.0.0.0/8") and "unix". `forwarded` is the trusted header. Raises ValueError."""
    networks = tuple(ip_network(name, strict=False) for name in names if name != UNIX)
    return TrustedProxies(networks, UNIX in names, forwarded)


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
    address = read_address(host)
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
    present = [(name, value) for name in names if (value := fields.get(name.encode("latin-1"))) is not None]
    if len(present) != 1:
        return
    [(name, value)] = present
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
        return read_address(text[1:].partition("]")[0])
    if text.count(":") == 1:
        text = text.partition(":")[0]
    return read_address(text)


def read_address(text: object) -> Address | None:
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
