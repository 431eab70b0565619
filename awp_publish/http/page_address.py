"""Addresses of pages, which have to be pages of this site: for requests that are made in process."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urljoin, urlsplit

from awp_publish.problems import InvalidUrl
from awp_publish.schema.origins import Origin

PLAIN: Final = "/%:@!$&'()*+,;=?[]~"
"""Characters of a URL that are not quoted again."""

MAX_ADDRESS_LENGTH: Final = 8_000
"""Maximum characters of an address."""

_BROKEN: Final = re.compile(r"[\x00-\x1f\x7f\\]")
"""Characters that servers and clients interpret differently. A space, from an unencoded "+", is not among them."""

_INVALID: Final = {"error": "invalid_url"}
"""The error name of the reference publisher at somspec.org."""


@dataclass(frozen=True, slots=True)
class PageAddress:
    """The address of a page of this site. `path` is percent-encoded, and relative to the path of the site's url."""

    path: str
    query: str

    def below(self, url: str) -> str:
        """Return the full address, on a site with this url."""
        return url + self.path + (f"?{self.query}" if self.query else "")


def read_address(address: str, urls: Iterable[str], base: str) -> PageAddress:
    """Read an address, or a reference from `base`. Raises InvalidUrl unless it is below one of the site's `urls`."""
    if not address or len(address) > MAX_ADDRESS_LENGTH or _BROKEN.search(address):
        raise InvalidUrl(
            "url is empty, too long, or contains characters that are not allowed in an address.", members=_INVALID
        )
    try:
        parts = urlsplit(urljoin(base, quote(address, safe=PLAIN + "#")))
        origin = Origin.of(parts)
    except ValueError as error:
        raise InvalidUrl(f"url is not an address: {error}.", members=_INVALID) from error
    # urljoin has resolved dot segments (RFC 3986 section 5.2.4), which could lead out of the site's path. Those that
    # are percent-encoded are resolved here.
    kept: list[str] = []
    segments = parts.path.split("/")
    for number, segment in enumerate(segments):
        plain = segment.lower().replace("%2e", ".")
        if plain not in (".", ".."):
            kept.append(segment)
            continue
        if plain == ".." and len(kept) > 1:
            kept.pop()
        if number == len(segments) - 1:
            kept.append("")
    path = "/".join(kept)
    is_plain = "@" not in parts.netloc and parts.hostname is not None
    site = next((site for url in urls if is_plain and Origin.of(site := urlsplit(url)) == origin), None)
    if site is None or not (path + "/").startswith(site.path + "/"):
        raise InvalidUrl("url is not below this site's own address; other sites are never fetched.", members=_INVALID)
    return PageAddress(path[len(site.path) :] or "/", parts.query)
