"""Public IP addresses. Whatever is fetched or sent on behalf of somebody else may only go to these."""

from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

_TRANSLATED: Final = tuple(ip_network(one) for one in ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32"))
"""IPv6 ranges that embed an IPv4 address, which may be a private one (RFC 6052, RFC 3056, RFC 4380)."""


def is_public_address(text: str) -> bool:
    """Return True if a text is an IP address that is reachable from the whole internet."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public_address(str(address.ipv4_mapped))
        if any(address in network for network in _TRANSLATED):
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved
