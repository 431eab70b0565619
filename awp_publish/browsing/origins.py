"""`Origins`: the addresses that are this site's own. Everything else is foreign and is never asked for."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Origins:
    """The site's own addresses: scheme, host and port of each, and the path under which all of it lives."""

    origins: tuple[str, ...]
    prefix: str = ""

    @classmethod
    def of(cls, *urls: str) -> "Origins":
        """From the site's configured URLs (`https://shop.example`, `http://127.0.0.1:8000/shop`).

        All urls need the same path, which is the prefix. ValueError for what is not an http(s) address.
        """
        raise NotImplementedError
