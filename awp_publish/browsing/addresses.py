"""`Address`: an http(s) address, read as browsers read it (WHATWG URL, sections 4.4 and 4.5) as far as a site needs.

What is written down badly is repaired in the same way: backslashes are slashes, line breaks inside are dropped, dot
segments are resolved, characters that may not stand in an address are percent-encoded as UTF-8.
"""

import re
from dataclasses import dataclass, replace
from ipaddress import AddressValueError, IPv6Address
from typing import Final
from urllib.parse import quote, unquote

from awp_publish.browsing.errors import AwpError, refuse

DEFAULT_PORTS: Final = {"http": 80, "https": 443}

_EDGES: Final = "".join(map(chr, range(0x21)))
_INSIDE: Final = str.maketrans("", "", "\t\n\r")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_FORBIDDEN_IN_HOST: Final = re.compile(r"[\x00-\x20#/:<>?@\[\\\]^|%\x7f]")
_ONE_DOT: Final = frozenset({".", "%2e"})
_TWO_DOTS: Final = frozenset({"..", ".%2e", "%2e.", "%2e%2e"})
# The percent-encode sets of section 1.3, said as what stays as it is beside letters and digits.
_IN_PATH: Final = "!$%&'()*+,-./:;=@[\\]_|~"
_IN_QUERY: Final = "!$%&()*+,-./:;=?@[\\]^_`{|}~"
_IN_FRAGMENT: Final = "!#$%&'()*+,-./:;=?@[\\]^_{|}~"


class BadAddress(ValueError):
    """A text that is no http(s) address; the message says why."""


@dataclass(frozen=True, slots=True)
class Address:
    """An absolute http(s) address. `query` and `fragment` are None where there is none, without `?` and `#`."""

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
        """`https://shop.example`, with the port where it is not the usual one."""
        return f"{self.scheme}://{self.authority}"

    @property
    def authority(self) -> str:
        """What the field Host says."""
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
        """Whether Secure cookies travel there: https, or the machine itself, as browsers have it."""
        return self.scheme == "https" or self.host in ("localhost", "[::1]") or self.host.startswith("127.")

    def with_query(self, query: str) -> "Address":
        """The same address with another query."""
        return replace(self, query=query)

    def with_fragment(self, fragment: str | None) -> "Address":
        """The same address with another fragment."""
        return replace(self, fragment=fragment)


def parse_address(text: str, base: Address | None = None) -> Address:
    """The address that a text means, relative to a base where it is relative.

    Raises:
        BadAddress: it has another scheme, no host, a name or password, or is relative to nothing.
    """
    text = text.encode("utf-8", "replace").decode().strip(_EDGES).translate(_INSIDE)
    rest, hash_sign, fragment = text.partition("#")
    address = _parse_without_fragment(rest, base)
    return address.with_fragment(_encode(fragment, _IN_FRAGMENT) if hash_sign else None)


def is_absolute_url(text: str) -> bool:
    """Whether a text is an absolute URL of any scheme; http(s) ones are looked at closely."""
    found = _SCHEME.match(text)
    if found is None or found[1].lower() not in DEFAULT_PORTS:
        return found is not None
    host = text[found.end() :].lstrip("/\\")
    try:
        parse_address(f"{found[1]}://{re.sub(r'^[^/?#]*@', '', host)}")
    except BadAddress:
        return False
    return True


def _parse_without_fragment(text: str, base: Address | None) -> Address:
    found = _SCHEME.match(text)
    if found is None:
        return _parse_relative(text, base)
    scheme, rest = found[1].lower(), text[found.end() :]
    if scheme not in DEFAULT_PORTS:
        raise BadAddress(f"{scheme}: is not a scheme of a page")
    if base is not None and scheme == base.scheme and not rest.startswith("//"):
        return _parse_relative(rest, base)
    return _parse_absolute(scheme, rest.lstrip("/\\"))


def _parse_relative(text: str, base: Address | None) -> Address:
    if base is None:
        raise BadAddress("it is not an absolute http(s) address")
    path, question_mark, query = text.partition("?")
    path = path.replace("\\", "/")
    if path.startswith("//"):
        return _parse_absolute(base.scheme, text.lstrip("/\\"))
    if not path:
        return replace(base, query=_encode(query, _IN_QUERY) if question_mark else base.query, fragment=None)
    folder = "" if path.startswith("/") else base.path.rpartition("/")[0] + "/"
    return replace(base, path=_clean_path(folder + path), query=_encode(query, _IN_QUERY) if question_mark else None)


def _parse_absolute(scheme: str, text: str) -> Address:
    authority = re.split(r"[/\\?]", text, maxsplit=1)[0]
    if "@" in authority:
        raise BadAddress("it has a user name or a password in it")
    path, question_mark, query = text[len(authority) :].partition("?")
    host, port = _split_port(authority)
    return Address(
        scheme,
        _clean_host(host),
        None if port == DEFAULT_PORTS[scheme] else port,
        _clean_path(path.replace("\\", "/")),
        _encode(query, _IN_QUERY) if question_mark else None,
    )


def _split_port(authority: str) -> tuple[str, int | None]:
    host, colon, port = authority.rpartition(":")
    if not colon or "]" in port:
        return authority, None
    if not port:
        return host, None
    if not (port.isascii() and port.isdigit() and int(port[:9]) < 65536):
        raise BadAddress(f"{port[:20]} is not a port")
    return host, int(port)


def _clean_host(host: str) -> str:
    if host.startswith("["):
        return _clean_ipv6(host)
    try:
        ascii_host = unquote(host, errors="strict").lower().encode("idna").decode()
    except UnicodeError as error:
        raise BadAddress("its host is not a host name") from error
    if not ascii_host or _FORBIDDEN_IN_HOST.search(ascii_host):
        raise BadAddress("it has no host" if not ascii_host else "its host is not a host name")
    return ascii_host


def _clean_ipv6(host: str) -> str:
    try:
        return f"[{IPv6Address(host.strip('[]')).compressed}]"
    except AddressValueError as error:
        raise BadAddress("its host is not an IPv6 address") from error


def _clean_path(path: str) -> str:
    kept: list[str] = []
    segments = path.removeprefix("/").split("/")
    for number, segment in enumerate(segments, 1):
        dots = segment.lower()
        if dots in _TWO_DOTS:
            kept = kept[:-1]
        elif dots not in _ONE_DOT:
            kept.append(_encode(segment, _IN_PATH))
            continue
        if number == len(segments):
            kept.append("")
    return "/" + "/".join(kept)


def _encode(text: str, kept: str) -> str:
    return quote(text, safe=kept)


# --- `Origins`: the addresses that are this site's own. Everything else is foreign and is never asked for ---


@dataclass(frozen=True, slots=True)
class Origins:
    """The site's own addresses: scheme, host and port of each, and the path under which all of it lives.

    `origins` are as browsers write them (`https://shop.example`); `prefix` is "" or `/shop`.
    """

    origins: tuple[str, ...]
    prefix: str = ""

    @classmethod
    def of(cls, *urls: str) -> "Origins":
        """From the site's configured URLs (`https://shop.example`, `http://127.0.0.1:8000/shop`).

        All urls need the same path, which is the prefix. ValueError for none, and for what is not an http(s) address.
        """
        addresses = [parse_address(url) for url in urls]
        prefixes = {address.path.rstrip("/") for address in addresses}
        if len(prefixes) != 1:
            raise ValueError("a site's addresses need one path, the same for all of them")
        return cls(tuple(dict.fromkeys(address.origin for address in addresses)), prefixes.pop())

    @property
    def home(self) -> Address:
        """The address that a relative one means when no page is loaded."""
        return parse_address(self.origins[0] + self.prefix + "/")

    @property
    def hosts(self) -> set[str]:
        """The host names of the site."""
        return {parse_address(origin).host for origin in self.origins}

    def owns(self, address: Address) -> bool:
        """Whether an address is one of this site's."""
        inside = address.path == self.prefix or address.path.startswith(self.prefix + "/")
        return inside and address.origin in self.origins

    def resolve(self, text: str, base: Address | None, longest: int) -> Address:
        """The own address that a text means.

        Raises:
            AwpError: INVALID_REQUEST where the text is no address, PERMISSION_DENIED where it is not this site's
                (another host, port or scheme, `javascript:`, `mailto:`): servers may keep to a list of domains
                (the draft's Permissions).
        """
        if len(text) > longest:
            refuse(f"The address is longer than {longest} characters", length=len(text))
        try:
            address = parse_address(text, base or self.home)
        except BadAddress as error:
            raise self._refusal(text, str(error)) from error
        if not self.owns(address):
            raise self._refusal(str(address), "it is not an address of this site")
        return address

    def _refusal(self, url: str, reason: str) -> AwpError:
        allowed = [origin + self.prefix for origin in self.origins]
        return AwpError(
            "PERMISSION_DENIED",
            f"Only pages of this site can be opened: {reason}",
            {"url": url, "reason": reason, "allowed": allowed},
        )
