"""Ids of elements and regions (SOM 1.0, section 7)."""

from collections import Counter
from hashlib import sha256
from typing import Final
from urllib.parse import urlsplit

MAX_NAME: Final = 100
"""Characters of a name that count in an id (7.1)."""

_DIGITS: Final = 12
_DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL, without the scheme's default port; "null" without a host (7.1).

    A malformed URL is returned unchanged.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return url
    if not parts.scheme:
        return url
    if parts.scheme not in _DEFAULT_PORTS or not host:
        return "null"
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}" + ("" if port in (None, _DEFAULT_PORTS[parts.scheme]) else f":{port}")


class Identifiers:
    """Assigns the ids of one document."""

    __slots__ = ("_elements", "_origin", "_regions")

    def __init__(self, url: str) -> None:
        self._origin = origin_of(url)
        self._elements: dict[str, int] = {}
        self._regions: Counter[str] = Counter()

    def element(self, role: str, name: str, path: str) -> str:
        """Return `e_` and twelve digits of a hash, with a number if the document has that id already (7.3)."""
        text = f"{self._origin}|{role}|{name.lower().strip()[:MAX_NAME]}|{path}"
        plain = "e_" + sha256(text.encode("utf-8", "replace")).hexdigest()[:_DIGITS]
        count = self._elements[plain] = self._elements.get(plain, 0) + 1
        return plain if count == 1 else f"{plain}_{count}"

    def region(self, base: str) -> str:
        """Return `r_` and the role, with a number from the second region of that role on (7.2)."""
        count = self._regions[base]
        self._regions[base] += 1
        return f"r_{base}_{count}" if count else f"r_{base}"
