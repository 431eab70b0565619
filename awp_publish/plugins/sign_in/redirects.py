"""The addresses to which people are sent back (RFC 6749 section 3.1.2, RFC 8252 section 7, RFC 9700 section 2.1)."""

import re
from typing import Final
from urllib.parse import SplitResult, urlencode, urlsplit

MAX_ADDRESS: Final = 2000
"""Characters of an address."""

LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
"""Hosts of programs on the person's own machine. Each start of theirs may listen at another port."""

_VISIBLE: Final = re.compile(r"[!-~]+")
_HOST: Final = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")
_REFUSED_SCHEMES: Final = frozenset(
    {
        "about",
        "blob",
        "chrome",
        "data",
        "file",
        "filesystem",
        "ftp",
        "intent",
        "javascript",
        "mailto",
        "tel",
        "vbscript",
        "view-source",
        "ws",
        "wss",
    }
)
"""Schemes that no program registers for itself: a browser would run, open or send what the address holds."""


def why_refused(address: str) -> str | None:
    """Return why a client may not have an address, None if it may.

    A scheme of a program's own need not be a domain name backwards (RFC 8252 section 8.4): those of Cursor and VS Code
    are not. People are warned of all of them, and asked each time.
    """
    if len(address) > MAX_ADDRESS or not _VISIBLE.fullmatch(address) or "\\" in address:
        return f"must be at most {MAX_ADDRESS} visible ASCII characters, without backslashes"
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        return "is not an address"
    if "#" in address:
        return "must have no fragment"
    if parts.username is not None or parts.password is not None:
        return "must have no user name or password"
    if parts.scheme in ("https", "http") and not _HOST.fullmatch(parts.hostname or ""):
        return "has no host, or one that browsers read in another way"
    if parts.scheme == "https":
        return None
    if parts.scheme == "http":
        return None if parts.hostname in LOOPBACK else "must begin with https, unless it is a loopback address"
    if not parts.scheme or parts.scheme in _REFUSED_SCHEMES or address == f"{parts.scheme}:":
        return "must begin with https, or with a scheme of the program's own and a path"
    return None


def is_local(address: str) -> bool:
    """Return True for an address of which any program on the person's own machine may take over the answers.

    Such a client cannot prove who it is, so nobody's earlier consent counts for it (RFC 8252 section 8.6).
    """
    return is_loopback(address) or urlsplit(address).scheme != "https"


def is_loopback(address: str) -> bool:
    """Return True for the address of a program on the person's own machine."""
    parts = urlsplit(address)
    return parts.scheme in ("http", "https") and parts.hostname in LOOPBACK


def matches(registered: str, address: str) -> bool:
    """Return True if an address is the registered one: exactly, but for the port of a loopback address (RFC 8252
    section 7.3).
    """
    if registered == address:
        return True
    if why_refused(address) is not None or not is_loopback(registered) or not is_loopback(address):
        return False
    return _without_port(urlsplit(registered)) == _without_port(urlsplit(address))


def _without_port(parts: SplitResult) -> tuple[str, str | None, str, str]:
    return parts.scheme, parts.hostname, parts.path or "/", parts.query


def with_parameters(address: str, **parameters: str | None) -> str:
    """Return an address with further query parameters; those that are None are left out."""
    added = urlencode({name: value for name, value in parameters.items() if value is not None})
    return address + ("&" if "?" in address else "?") + added


def shown_host(address: str) -> str:
    """Return what a person is told of an address: its host, or its scheme if a program has one of its own.

    In small letters: a capital I looks like an l.
    """
    parts = urlsplit(address)
    return parts.netloc.lower() if parts.scheme in ("http", "https") else f"{parts.scheme}:"
