"""What a session asks for and what it is given: the whole of its outside world."""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TypeAlias

from awp_publish.model import JsonObject


@dataclass(frozen=True, slots=True)
class Fetch:
    """One request to this site.

    `path` is the request target in origin form: path and query, percent-encoded, as the address has it (a mounted
    site's prefix included). `headers` have lower-case names, `host` first, then those of a browser, `cookie` and
    `content-type`; no `content-length`. `origin` (`https://shop.example`) says which of the site's origins is meant.
    Redirects are not to be followed: the session does it.
    """

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = field(repr=False)
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What the site answered: the status, all headers in order (`set-cookie` as often as it came), the whole body."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes = field(repr=False)


Steps: TypeAlias = Generator[Fetch, Fetched, JsonObject]
"""A method under way. Closing it (because time is up, or nobody waits) leaves the page as it was before."""
