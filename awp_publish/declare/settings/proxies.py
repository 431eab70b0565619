"""`Proxies`: which proxies are trusted to name the address of a caller."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from ipaddress import ip_network
from typing import Annotated, Final

from pydantic import AfterValidator

from awp_publish.schema.options import strict


def check_proxy(value: str) -> str:
    """Check the address or network of a proxy, or "unix" for a proxy that connects through a Unix socket."""
    if value != "unix":
        try:
            ip_network(value, strict=False)
        except ValueError as error:
            raise ValueError(f"{value!r} is not an address, a network such as '10.0.0.0/8', or 'unix'") from error
    return value


_FORWARDING: Final = (
    "x-forwarded-for",
    "forwarded",
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "x-real-ip",
    "true-client-ip",
    "x-client-ip",
    "fastly-client-ip",
    "fly-client-ip",
    "do-connecting-ip",
    "x-envoy-external-address",
    "x-azure-clientip",
    "x-azure-socketip",
    "x-appengine-user-ip",
    "x-nf-client-connection-ip",
    "x-vercel-forwarded-for",
)
"""Headers in which proxies send a client's address: two with lists, and others with single addresses."""


def check_proxies(value: "Proxies") -> "Proxies":
    if value.header is not None and not value.trusted:
        raise ValueError('header is believed from trusted proxies only; give Proxies(trusted=["10.0.0.0/8"]) too')
    return value


def check_forwarded(value: str) -> str:
    """Check the name of the header in which a proxy sends the client's address, and return it in lower case."""
    name = value.lower()
    close = get_close_matches(name.replace("_", "-"), _FORWARDING, 1, 0.8)
    if not re.fullmatch(r"[a-z0-9!#$%&'*+.^_`|~-]+", name):
        raise ValueError(f"{value!r} is not the name of a header, such as 'x-forwarded-for' or 'cf-connecting-ip'")
    if name not in _FORWARDING and close:
        raise ValueError(f"{value!r} is not a header that proxies are known to send; did you mean '{close[0]}'?")
    return name


@strict
@dataclass(frozen=True, slots=True)
class Proxies:
    """Proxies trusted to name a caller's address, and the header in which they do; None for the two usual ones."""

    trusted: Sequence[Annotated[str, AfterValidator(check_proxy)]] = ()
    header: Annotated[str, AfterValidator(check_forwarded)] | None = None
