"""Requests that change something must come from our own pages, or from no page at all."""

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from fastapi import Request

from demo_site.refusals import foreign_origin

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def refuse_foreign_origins(url: str | None) -> Callable[[Request], Awaitable[None]]:
    """Return a dependency that refuses what a page of another site sends in our visitor's name."""
    # A forged request is one that a browser sends, with the visitor's cookie, because a page of another site told it
    # to. Every browser states the page's origin on such a request (Sec-Fetch-Site, or Origin in older ones), and a
    # page cannot change those headers; the cookie is SameSite=Lax besides, so it stays away from cross-site posts.
    # Hence no token in each form is needed. A request with neither header comes from a program that holds its own
    # cookies: nobody's trust is borrowed there.
    our_host = urlsplit(url).netloc if url else None

    async def refuse(request: Request) -> None:
        if request.method in SAFE_METHODS:
            return
        site = request.headers.get("sec-fetch-site")
        origin = request.headers.get("origin")
        if site is not None:
            allowed = site in {"same-origin", "none"}
        else:
            allowed = origin is None or urlsplit(origin).netloc in {our_host, request.headers.get("host")}
        if not allowed:
            raise foreign_origin()

    return refuse
