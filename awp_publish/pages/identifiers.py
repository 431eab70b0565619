"""Ids of elements and regions (SOM 1.0, section 7): the same element of the same page has the same id each time."""

from collections import Counter
from hashlib import sha256
from typing import Final
from urllib.parse import urlsplit

from awp_publish.pages.tree import Node, Paths

MOST_NAME: Final = 100
"""Characters of a name that count in an id (7.1)."""

_DIGITS: Final = 12
_DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL, without the scheme's own port; "null" for one without a host (7.1).

    What is no URL is its own origin.
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
    """The ids of one document."""

    __slots__ = ("_given", "_origin", "_paths", "_regions")

    def __init__(self, url: str) -> None:
        self._origin = origin_of(url)
        self._paths = Paths()
        self._given: Counter[str] = Counter()
        self._regions: Counter[str] = Counter()

    def element(self, role: str, name: str, path: str) -> str:
        """`e_` and twelve digits of a hash; with a number behind it when the document has that id already (7.3)."""
        text = f"{self._origin}|{role}|{name.lower().strip()[:MOST_NAME]}|{path}"
        plain = "e_" + sha256(text.encode("utf-8", "replace")).hexdigest()[:_DIGITS]
        self._given[plain] += 1
        count = self._given[plain]
        return plain if count == 1 else f"{plain}_{count}"

    def region(self, base: str) -> str:
        """`r_` and the role, from the second of a role on with its number (7.2)."""
        count = self._regions[base]
        self._regions[base] += 1
        return f"r_{base}_{count}" if count else f"r_{base}"

    def path(self, node: Node) -> str:
        """The path of a node of the body."""
        return self._paths.of(node) or "0"
