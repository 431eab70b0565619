"""URLs in documents: syntax, placeholders, and private addresses.

Nothing here accesses the network.
"""

import re
import socket
from collections.abc import Container, Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from awp_publish.checks.engine import Finding, JsonObject, finding, shown
from awp_publish.checks.places import strings

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PLAIN_PATH = re.compile(r"/(?!/)[\w.~/{}-]*", re.ASCII)
_FORBIDDEN = re.compile(r'[\x00-\x20\x7f<>"\\^`|]')
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_LABEL = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)")
_OLD_ADDRESS = re.compile(r"[0-9a-fA-Fx.]*[0-9a-fA-F]\.?")
PLACEHOLDER = re.compile(r"\{([^{}/?]*)\}")

WEB = frozenset({"http", "https", "ws", "wss", "ftp"})
_NETWORKS = "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.168.0.0/16"
PRIVATE_NETWORKS = tuple(map(ip_network, f"{_NETWORKS} ::/128 ::1/128 fc00::/7 fe80::/10 fec0::/10".split()))
_NAT64 = ip_network("64:ff9b::/96")
PRIVATE_SUFFIXES = (".localhost", ".local", ".internal", ".home.arpa", ".lan", ".intranet")


def malformed_urls(document: JsonObject, *places: str) -> Iterator[Finding]:
    """Find texts that are not URL references."""
    for pointer, text in strings(document, *places):
        if fault := url_fault(text):
            yield finding(pointer, f"{shown(text)} {fault}.")


def dependent_paths(document: JsonObject, *places: str) -> Iterator[Finding]:
    """Find paths that depend on the page that contains them: neither an initial "/" nor an absolute URL."""
    for pointer, text in strings(document, *places):
        if not text.startswith("/") and not is_absolute(text):
            yield finding(pointer, f'{shown(text)} does not begin with "/".')


def unexplained_placeholders(pointer: str, text: str, names: Container[str]) -> Iterator[Finding]:
    """Find placeholders (`{name}`) in a URL for which there is no value."""
    for name in PLACEHOLDER.findall(text):
        if name not in names:
            yield finding(pointer, f"No input has a value for {{{name}}}.")


def is_absolute(text: str) -> bool:
    """Return True if a URL has a scheme, or begins with a host ("//host")."""
    return _SCHEME.match(text) is not None or text.startswith("//")


def url_fault(text: str) -> str | None:
    """Return why a text is not a well-formed URL reference, None if it is one. Templates (`{id}`) are allowed."""
    if _PLAIN_PATH.fullmatch(text):
        return None
    if _FORBIDDEN.search(text):
        return "contains a character that a URL cannot contain"
    if _BAD_ESCAPE.search(text):
        return 'contains a "%" that is not followed by two hexadecimal digits'
    parts = split(text)
    if parts is None:
        return "has a host or port that cannot be read"
    if parts.scheme in WEB and not parts.hostname:
        return "has no host"
    if (host := parts.hostname) and ":" not in host and "{" not in host and not is_host_name(host):
        return "has an invalid host name"
    return None


def split(text: str) -> SplitResult | None:
    """Split a URL; None if its authority is malformed."""
    try:
        parts = urlsplit(text)
        _ = parts.port, parts.hostname
    except ValueError:
        return None
    return parts


def is_host_name(text: str) -> bool:
    """Return True for a host name: labels of letters, digits and hyphens, or its international form."""
    name = text.removesuffix(".")
    try:
        ascii_name = name if name.isascii() else name.encode("idna").decode("ascii")
    except UnicodeError:
        return False
    return 0 < len(ascii_name) <= 253 and all(_LABEL.fullmatch(label) for label in ascii_name.split("."))


def is_private(host: str) -> bool:
    """Return True for a private, link-local or loopback address, or a name that is private by convention."""
    if is_loopback(host) or host.lower().rstrip(".").endswith(PRIVATE_SUFFIXES):
        return True
    address = _address(host)
    return address is not None and any(address in network for network in PRIVATE_NETWORKS)


def is_loopback(host: str) -> bool:
    """Return True for an address or name of the machine itself."""
    name = host.lower().rstrip(".")
    address = _address(host)
    return name == "localhost" or name.endswith(".localhost") or (address is not None and address.is_loopback)


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """Parse an IP address, also in the legacy forms that browsers accept (`2130706433`, `0x7f.1`)."""
    try:
        address = ip_address(host.partition("%")[0])
        if isinstance(address, IPv6Address):
            embedded = IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None
            return address.ipv4_mapped or address.sixtofour or embedded or address
        return address
    except ValueError:
        if not _OLD_ADDRESS.fullmatch(host) or not host[0].isdecimal():
            return None
    try:
        return IPv4Address(socket.inet_aton(host.rstrip(".")))
    except (OSError, ValueError):
        return None


def path_of(url: str) -> str:
    """Return the path of a whole URL, or of an address without its query and fragment."""
    parts = split(url)
    return parts.path if is_absolute(url) and parts is not None else url.partition("?")[0].partition("#")[0]
