"""Public IP addresses. Whatever is fetched or sent on behalf of somebody else may only go to these."""

import socket
import time
from collections.abc import Iterable
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


class AddressNotPublic(OSError):
    """A host has an address that is not public."""


def connect_to_first(
    addresses: Iterable[str], port: int, timeout: float | None, source_address: tuple[str, int] | None = None
) -> socket.socket:
    """Connect to the first of several addresses of a host that can be reached. Raises OSError.

    All attempts together take no longer than `timeout`: each has half of what is left, the last one all of it.
    """
    distinct = [*dict.fromkeys(addresses)]
    deadline = None if timeout is None else time.monotonic() + timeout
    for number, address in enumerate(distinct, 1):
        is_last = number == len(distinct)
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            break
        try:
            connected = socket.create_connection(
                (address, port), left if left is None or is_last else left / 2, source_address
            )
        except OSError:
            if is_last:
                raise
        else:
            connected.settimeout(timeout)
            return connected
    raise TimeoutError("None of the addresses answered in time.")
