"""Addresses of web pages, parsed as browsers do (WHATWG URL, sections 4.4 and 4.5) as far as a site needs.

Mistakes are repaired in the same way: backslashes become slashes, line breaks are dropped, dot segments are resolved,
invalid characters are percent-encoded as UTF-8.
"""

import re
from dataclasses import dataclass, field, replace
from ipaddress import AddressValueError, IPv6Address
from typing import Final
from urllib.parse import quote, unquote

from awp_publish.browsing.errors import AwpError, refuse
from awp_publish.schema.origins import DEFAULT_PORTS

REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
"""The statuses of responses that lead to another address."""

_EDGES: Final = "".join(map(chr, range(0x21)))
_INSIDE: Final = str.maketrans("", "", "\t\n\r")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_FORBIDDEN_IN_HOST: Final = re.compile(r"[\x00-\x20#/:<>?@\[\\\]^|%\x7f]")
_ONE_DOT: Final = frozenset({".", "%2e"})
_TWO_DOTS: Final = frozenset({"..", ".%2e", "%2e.", "%2e%2e"})
# The percent-encode sets of section 1.3: the characters that are not encoded, besides letters and digits.
_IN_PATH: Final = "!$%&'()*+,-./:;=@[\\]_|~"
_IN_QUERY: Final = "!$%&()*+,-./:;=?@[\\]^_`{|}~"
_IN_FRAGMENT: Final = "!#$%&'()*+,-./:;=?@[\\]^_{|}~"


class BadAddress(ValueError):
    """A text is not an http(s) address; the message says why."""


@dataclass(frozen=True, slots=True)
class WebAddress:
    """An absolute http(s) address. `query` and `fragment` are without `?` and `#`, or None if absent."""

    scheme: str
    host: str
    port: int | None
    path: str
    query: str | None = None
    fragment: str | None = None

    def __str__(self) -> str:
        return self.document + ("" if self.fragment is None else f"#{self.fragment}")

    @property
    def origin(self) -> str:
        """`https://shop.example`, with the port unless it is the default."""
        return f"{self.scheme}://{self.authority}"

    @property
    def authority(self) -> str:
        """The value of the header Host."""
        return self.host if self.port is None else f"{self.host}:{self.port}"

    @property
    def target(self) -> str:
        """The request target in origin form."""
        return self.path + ("" if self.query is None else f"?{self.query}")

    @property
    def document(self) -> str:
        """The whole address without its fragment."""
        return self.origin + self.target

    @property
    def is_trustworthy(self) -> bool:
        """True if Secure cookies may be sent: https or a loopback address, as in browsers."""
        return self.scheme == "https" or self.host in ("localhost", "[::1]") or self.host.startswith("127.")

    def with_query(self, query: str) -> "WebAddress":
        """Return the address with another query."""
        return replace(self, query=query)

    def with_fragment(self, fragment: str | None) -> "WebAddress":
        """Return the address with another fragment."""
        return replace(self, fragment=fragment)


def parse_address(text: str, base: WebAddress | None = None) -> WebAddress:
    """Parse an address, relative to a base if it is relative.

    Raises:
        BadAddress: it has another scheme, no host, a name or password, or is relative without a base.
    """
    text = text.encode("utf-8", "replace").decode().strip(_EDGES).translate(_INSIDE)
    rest, hash_sign, after_hash = text.partition("#")
    fragment = quote(after_hash, safe=_IN_FRAGMENT) if hash_sign else None
    if match := _SCHEME.match(rest):
        scheme, rest = match[1].lower(), rest[match.end() :]
    elif base is not None:
        scheme = base.scheme
    else:
        raise BadAddress("it is not an absolute http(s) address")
    if scheme not in DEFAULT_PORTS:
        raise BadAddress(f"{scheme}: is not a scheme of a page")
    rest, question_mark, after_mark = rest.partition("?")
    rest = rest.replace("\\", "/")
    query = quote(after_mark, safe=_IN_QUERY) if question_mark else None
    if base is not None and scheme == base.scheme and not rest.startswith("//"):
        if not rest:
            return replace(base, query=base.query if query is None else query, fragment=fragment)
        folder = "" if rest.startswith("/") else base.path.rpartition("/")[0] + "/"
        return replace(base, path=_clean_path(folder + rest), query=query, fragment=fragment)
    rest = rest.lstrip("/")
    authority = rest.partition("/")[0]
    if "@" in authority:
        raise BadAddress("it contains a user name or a password")
    host, colon, port = authority.rpartition(":")
    if not colon or "]" in port:
        host, port = authority, ""
    if port and not (port.isascii() and port.isdigit() and int(port[:9]) < 65536):
        raise BadAddress(f"{port[:20]} is not a port")
    number = int(port) if port else None
    return WebAddress(
        scheme,
        _clean_host(host),
        None if number == DEFAULT_PORTS[scheme] else number,
        _clean_path(rest[len(authority) :]),
        query,
        fragment,
    )


def _clean_host(host: str) -> str:
    if host.startswith("["):
        try:
            return f"[{IPv6Address(host.strip('[]')).compressed}]"
        except AddressValueError as error:
            raise BadAddress("its host is not an IPv6 address") from error
    try:
        ascii_host = unquote(host, errors="strict").lower().encode("idna").decode()
    except UnicodeError as error:
        raise BadAddress("its host is not a host name") from error
    if not ascii_host or _FORBIDDEN_IN_HOST.search(ascii_host):
        raise BadAddress("it has no host" if not ascii_host else "its host is not a host name")
    return ascii_host


def _clean_path(path: str) -> str:
    result: list[str] = []
    segments = path.removeprefix("/").split("/")
    for number, segment in enumerate(segments, 1):
        dots = segment.lower()
        if dots in _TWO_DOTS:
            del result[-1:]
        elif dots not in _ONE_DOT:
            result.append(quote(segment, safe=_IN_PATH))
            continue
        if number == len(segments):
            result.append("")
    return "/" + "/".join(result)


@dataclass(frozen=True, slots=True)
class Origins:
    """The site's own addresses: their origins, and the path prefix that they share. No others are ever fetched.

    `origins` are in the form of browsers (`https://shop.example`); `prefix` is "" or `/shop`.
    """

    origins: tuple[str, ...]
    prefix: str = ""

    @classmethod
    def of(cls, *urls: str) -> "Origins":
        """Read the site's configured URLs (`https://shop.example`, `http://127.0.0.1:8000/shop`).

        They have to have the same path, which is the prefix. Raises ValueError without any, and for other addresses
        than http(s).
        """
        addresses = [parse_address(url) for url in urls]
        prefixes = {address.path.rstrip("/") for address in addresses}
        if len(prefixes) != 1:
            raise ValueError("all addresses of a site must have the same path")
        return cls(tuple(dict.fromkeys(address.origin for address in addresses)), prefixes.pop())

    @property
    def home(self) -> WebAddress:
        """The base of relative addresses while no page is loaded."""
        return parse_address(self.origins[0] + self.prefix + "/")

    @property
    def hosts(self) -> set[str]:
        """The host names of the site."""
        return {parse_address(origin).host for origin in self.origins}

    def owns(self, address: WebAddress) -> bool:
        """Return True for an address of this site."""
        inside = address.path == self.prefix or address.path.startswith(self.prefix + "/")
        return inside and address.origin in self.origins

    def resolve(self, text: str, base: WebAddress | None, max_length: int) -> WebAddress:
        """Resolve a text to an address of this site.

        Raises:
            AwpError: INVALID_REQUEST if the text is too long, PERMISSION_DENIED if it is not an address of this site
                (another host, port or scheme, `javascript:`, `mailto:`): servers may limit themselves to some domains
                (the draft's Permissions).
        """
        if len(text) > max_length:
            refuse(f"The address is longer than {max_length} characters", length=len(text))
        try:
            address = parse_address(text, base or self.home)
        except BadAddress as error:
            url, reason = text, str(error)
        else:
            if self.owns(address):
                return address
            url, reason = str(address), "it is not an address of this site"
        allowed = [origin + self.prefix for origin in self.origins]
        message = f"Only pages of this site can be opened: {reason}"
        raise AwpError("PERMISSION_DENIED", message, {"url": url, "reason": reason, "allowed": allowed})


@dataclass(frozen=True, slots=True)
class Visit:
    """One request that a page makes. `referrer` is the page from which it comes, None if it comes from the agent."""

    address: WebAddress
    method: str = "GET"
    content_type: str = ""
    body: bytes = field(default=b"", repr=False)
    referrer: WebAddress | None = None
