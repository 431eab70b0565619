"""Addresses that a site owner writes: the site's own url, links, origins, and the paths under which we answer."""

import re
from difflib import get_close_matches
from ipaddress import ip_network
from typing import Final
from urllib.parse import SplitResult, urlsplit

from awp_publish.model import Paths

_VISIBLE: Final = re.compile(r"[!-~]+")
"""ASCII without spaces and control characters: what an address in a header or a document may hold."""

_PATH: Final = re.compile(r"/(?!/)[A-Za-z0-9._~!$&'()*+,;=:@{}/-]*")


def check_url(value: str) -> str:
    """An absolute http or https address without query and fragment; a trailing slash is dropped."""
    parts = _split(value)
    wrong = parts.query or parts.fragment or parts.username or parts.password
    if parts.scheme not in ("http", "https") or not parts.hostname or wrong or not _VISIBLE.fullmatch(value):
        raise ValueError(
            f"{value!r} is not the public address of a site; "
            'write it in ASCII, without query and fragment: "https://shop.example"'
        )
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path.rstrip('/')}"


def check_origin(value: str) -> str:
    """An origin as browsers send it, or "*" for all."""
    parts = _split(value)
    if value != "*" and (parts.scheme not in ("http", "https") or value != f"{parts.scheme}://{parts.netloc}"):
        raise ValueError(f'{value!r} is not an origin; write "https://shop.example" without a path, or "*" for all')
    return value


def check_link(value: str) -> str:
    """A path below the site's origin, or an absolute URL."""
    parts = _split(value)
    is_path = value.startswith("/") and not value.startswith("//")
    is_absolute = parts.scheme in ("http", "https") and bool(parts.hostname)
    if not _VISIBLE.fullmatch(value) or not (is_path or is_absolute):
        raise ValueError(f'{value!r} is neither a path beginning with "/" nor an absolute URL')
    return value


def check_path(value: str) -> str:
    """A path template of the application."""
    if not value.startswith("/"):
        raise ValueError(f'{value!r} must begin with "/"')
    if re.search(r"[?#\s]", value):
        raise ValueError(f'{value!r} must hold no "?", "#" or space; declare inputs for the query')
    return value


def check_paths(paths: Paths) -> Paths:
    """Where things of ours live: plain paths; `invoke` may hold {agent_id} once, in its path or in a query."""
    path, _, query = paths.invoke.partition("?")
    if not _PATH.fullmatch(path) or path == "/" or not re.fullmatch(r"[!-~]*", query) or "#" in query:
        raise ValueError(f'invoke {paths.invoke!r} must be a path such as "/agents/{{agent_id}}/invoke"')
    if paths.invoke.count("{agent_id}") > 1 or re.search(r"[{}]", paths.invoke.replace("{agent_id}", "")):
        raise ValueError(f"invoke {paths.invoke!r} may hold {{agent_id}} once and no other placeholder")
    for name in ("problems", "jobs", "status", "mcp", "a2a", "awp", "som"):
        plain = getattr(paths, name)
        if not _PATH.fullmatch(plain) or re.search(r"[{}]|/$", plain):
            raise ValueError(f'{name} {plain!r} must be a path such as "/agents/{name}"')
    return paths


def check_queue(value: str) -> str:
    """The address of the Redis behind a task queue. The refusal repeats nothing: it may hold a password."""
    if not re.match(r"(rediss?|unix)://.", value):
        raise ValueError('must be the address of a Redis, such as "redis://queue.example:6379/0"')
    return value


def check_proxy(value: str) -> str:
    """An address or network of a proxy, or "unix" for one that connects through a socket file."""
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
"""Headers in which proxies tell a client's address: two lists, and single addresses."""


def check_forwarded(value: str) -> str:
    """The name of the header in which a proxy tells who called it, in lower case; refuse what is misspelt."""
    name = value.lower()
    close = get_close_matches(name.replace("_", "-"), _FORWARDING, 1, 0.8)
    if not re.fullmatch(r"[a-z0-9!#$%&'*+.^_`|~-]+", name):
        raise ValueError(f"{value!r} is not the name of a header, such as 'x-forwarded-for' or 'cf-connecting-ip'")
    if name not in _FORWARDING and close:
        raise ValueError(f"{value!r} is no header that proxies are known to send; did you mean '{close[0]}'?")
    return name


def _split(value: str) -> SplitResult:
    """The parts of an address. Raises ValueError in words of its own for a port or an IPv6 address that is none."""
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError as error:
        raise ValueError(f"{value!r} is not an address ({error})") from error
    return parts
