"""Requests that change something must come from our own pages, or from no page at all."""

from collections.abc import Awaitable, Callable
from urllib.parse import SplitResult, urlsplit

from fastapi import Request

from demo_site.refusals import foreign_origin

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def split(address: str) -> SplitResult:
    """Take an address apart that somebody else wrote; one that is none has only empty parts."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


def own_path(address: str | None) -> str | None:
    """Return an address if it is a path of ours, None for any other: it came from outside."""
    if address is None or not address.startswith("/") or address.startswith(("//", "/\\")):
        return None
    return address


def page_before(request: Request) -> str | None:
    """Return path and query of the page of ours that a request came from, as far as the browser tells."""
    before = split(request.headers.get("referer", ""))
    if before.netloc != request.headers.get("host"):
        return None
    path = "/" + before.path.lstrip("/")  # with two slashes it would be the address of another site
    return f"{path}?{before.query}" if before.query else path


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
            allowed = origin is None or split(origin).netloc in {our_host, request.headers.get("host")}
        if not allowed:
            raise foreign_origin()

    return refuse
