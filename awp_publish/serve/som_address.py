"""From the `url` of a request to a page of this site, and nowhere else: addresses of others are never fetched."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, quote, unquote_to_bytes, urljoin, urlsplit

from awp_publish.problems import InvalidUrl
from awp_publish.serve.negotiate_formats import PLAIN

LONGEST: Final = 8_000
"""Characters of an address; more is no page of anybody's."""

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_BROKEN: Final = re.compile(r"[\x00-\x1f\x7f\\]")
"""What servers and clients read differently: controls, backslashes. A space is a "+" that was not encoded."""


@dataclass(frozen=True, slots=True)
class Address:
    """A page of this site. `path` is percent-encoded, and below the path of the site's url."""

    path: str
    query: str

    @property
    def decoded_path(self) -> str:
        return unquote_to_bytes(self.path).decode("utf-8", "replace")

    def below(self, url: str) -> str:
        """The address of the page on a site with this url."""
        return url + self.path + (f"?{self.query}" if self.query else "")


def read_address(given: str, urls: Iterable[str], base: str) -> Address:
    """Read an address, or a reference from `base`. Raises InvalidUrl unless it is below one of the site's `urls`."""
    own = [urlsplit(url) for url in urls]
    if not given or len(given) > LONGEST or _BROKEN.search(given):
        raise InvalidUrl("url is empty, too long, or holds characters that no address has.", members=_NAMED)
    try:
        # Joining also resolves dot segments, with which a path could leave the site's.
        parts = urlsplit(urljoin(base, quote(given, safe=PLAIN + "#")))
        found = next((_below(site, parts) for site in own if _is_same_origin(site, parts)), None)
    except ValueError as error:
        raise InvalidUrl(f"url is not an address: {error}.", members=_NAMED) from error
    if found is None:
        raise InvalidUrl("url is not below this site's own address; other sites are never fetched.", members=_NAMED)
    return Address(found or "/", parts.query)


_NAMED: Final = {"error": "invalid_url"}
"""How the reference publisher of somspec.org names it."""


def _is_same_origin(one: SplitResult, other: SplitResult) -> bool:
    has_user = "@" in other.netloc
    return not has_user and other.hostname is not None and _origin(one) == _origin(other)


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port or _DEFAULT_PORTS.get(parts.scheme)


def _below(site: SplitResult, parts: SplitResult) -> str | None:
    """The path below the site's own, None for one above."""
    path = _without_dots(parts.path)
    if not (path + "/").startswith(site.path + "/"):
        return None
    return path[len(site.path) :]


def _without_dots(path: str) -> str:
    """Dot segments resolved (RFC 3986 section 5.2.4), also those that were written percent-encoded."""
    kept: list[str] = []
    segments = path.split("/")
    for number, segment in enumerate(segments):
        plain = segment.lower().replace("%2e", ".")
        if plain not in (".", ".."):
            kept.append(segment)
            continue
        if plain == ".." and len(kept) > 1:
            kept.pop()
        if number == len(segments) - 1:
            kept.append("")
    return "/".join(kept)
