"""Reading a page of this site in another format, as a stranger would see it who comes by the front door.

Nothing of the caller is taken along by which a site could know them: no cookie, no credentials, none of the state that
middleware in front of us has made of these. So what comes back may be told to everybody. Other sites are never fetched,
and what is answered by us is no page.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin, urlsplit

from awp_publish.model import Catalog
from awp_publish.problems import InvalidUrl, PageNotFound
from awp_publish.protocols.som import FRESHNESS
from awp_publish.serve.negotiate import Asked
from awp_publish.serve.negotiate_exchange import make_reply
from awp_publish.serve.negotiate_formats import LARGEST, Renditions
from awp_publish.serve.negotiate_wish import Wish
from awp_publish.serve.page_fetch import FORWARDED, PageAnswer, PageExchange, PageRequest
from awp_publish.serve.reply import AsgiApp, Fields, RawHeaders, Receive, Reply, Scope, read_fields
from awp_publish.serve.som_address import Address, read_address
from awp_publish.site import Site

logger: Final = logging.getLogger("awp_publish.pages")

CARRIED: Final = FORWARDED | {
    b"accept-language",
    b"cf-connecting-ip",
    b"fly-client-ip",
    b"traceparent",
    b"true-client-ip",
    b"user-agent",
    b"x-request-id",
}
"""The language that is wanted, and where the request is from: a page that only some addresses see stays theirs."""

KEPT: Final = frozenset(
    {
        b"cache-control",
        b"content-encoding",
        b"content-language",
        b"content-type",
        b"expires",
        b"last-modified",
        b"x-robots-tag",
    }
)
"""What is told of the page's own answer. No cookie: it would be everybody's."""

MOST_REDIRECTS: Final = 5
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_ACCEPT_HTML: Final = (b"accept", b"text/html, application/xhtml+xml;q=0.9, */*;q=0.1")
_PUBLIC: Final = (b"cache-control", b"public, max-age=%d" % FRESHNESS)
_NEW_VISITOR: Final = (b"cache-control", b"no-store")
"""A page that begins a visit may hold what belongs to that visit, a token in a form for instance."""


@dataclass(frozen=True, slots=True)
class PageReader:
    """Reads pages of one address of a site. `app` is the whole application, `state` what it keeps for its requests.

    `owns` says of a request that it is answered by us, and so for no page.
    """

    site: Site
    catalog: Catalog
    app: AsgiApp
    renditions: Renditions
    owns: Callable[[Scope], bool]
    state: Callable[[], Mapping[str, object]]

    async def read(
        self, url: str, wish: Wish, scope: Scope, receive: Receive, fields: Fields, is_head: bool = False
    ) -> Reply:
        """The page at `url` as `wish` says, for the request of `scope`; its conditions are in `fields`.

        Raises InvalidUrl for what is no address of this site, PageNotFound for what is no page that everybody may see.
        """
        address = read_address(url, self.site.urls, self.catalog.url + "/")
        inner, fetched, address = await self._fetch(scope, address, wish, receive)
        url, shared = address.below(self.catalog.url), self.site.offering.in_shared_cache
        asked = Asked(wish, url, inner, fields, self.renditions, is_head, in_shared_cache=shared)
        reply = await make_reply(asked, 200, _public_headers(fetched.headers), fetched.body)
        if reply is None:
            raise _not_found("The page is in a content coding or a form that cannot be read here.")
        return reply

    async def _fetch(
        self, outer: Scope, address: Address, wish: Wish, receive: Receive
    ) -> tuple[Scope, PageAnswer, Address]:
        """The page, after redirects within the site."""
        for _ in range(MOST_REDIRECTS + 1):
            inner = self._request_of(outer, address).scope(outer)
            if self.owns(inner):
                raise _not_found("The address is one of the documents and endpoints for agents, not a page.")
            fetched = await self._ask(inner, receive)
            target = _target_of(fetched, address.below(self.catalog.url))
            if target is None:
                _check_page(Asked(wish, "", inner, {}, self.renditions), fetched)
                return inner, fetched, address
            try:
                address = read_address(target, self.site.urls, self.catalog.url + "/")
            except InvalidUrl as error:
                raise _not_found("The page leads to another site.") from error
        raise _not_found("The page leads on and on.")

    def _request_of(self, outer: Scope, address: Address) -> PageRequest:
        """GET, at the declared origin, from nobody in particular."""
        own = urlsplit(self.catalog.url)
        carried = (pair for pair in outer["headers"] if pair[0] in CARRIED)
        headers = ((b"host", own.netloc.encode("ascii")), *carried, _ACCEPT_HTML)
        path, query = address.path.encode("ascii"), address.query.encode("ascii")
        return PageRequest(own, path, query, headers, state=self.state())

    async def _ask(self, inner: Scope, receive: Receive) -> PageAnswer:
        """All that the application does for the request is waited for, so that nothing is left over."""
        exchange = PageExchange(b"", LARGEST, receive)
        try:
            async with asyncio.timeout(self.site.limits.timeout):
                await self.app(inner, exchange.receive, exchange.send)
        except TimeoutError as error:
            raise PageNotFound("The page took too long.", status=504, recovery="Retry later.") from error
        except Exception as error:
            logger.exception("the page at %s failed", inner["path"])
            raise PageNotFound("The page failed.", status=502, recovery="Retry once later.") from error
        return exchange.collected()


def _target_of(fetched: PageAnswer, url: str) -> str | None:
    """Where a redirect leads, None for any other answer."""
    location = read_fields(fetched.headers).get(b"location")
    if fetched.status not in _REDIRECTS or location is None:
        return None
    return urljoin(url, location.decode("latin-1"))


def _check_page(asked: Asked, fetched: PageAnswer) -> None:
    if fetched.status >= 400:
        raise _refused(fetched.status)
    if not fetched.is_whole:
        raise _not_found(f"The page is larger than {LARGEST} bytes.")
    if not asked.takes(fetched.status, fetched.headers):
        raise _not_found("What stands there is no HTML page.")


def _refused(status: int) -> PageNotFound:
    if status in (404, 410):
        return _not_found(f"The site answers {status}.")
    if status >= 500:
        return PageNotFound(f"The page failed with {status}.", status=502, recovery="Retry once later.")
    return PageNotFound(f"The site answers {status} to somebody it does not know.", status=status)


def _not_found(detail: str) -> PageNotFound:
    return PageNotFound(detail, members={"error": "not_found"})


def _public_headers(headers: RawHeaders) -> RawHeaders:
    """Nothing varies by what was not sent."""
    kept = [(name.lower(), value) for name, value in headers if name.lower() in KEPT]
    if all(name not in (b"cache-control", b"expires") for name, _ in kept):
        begins_visit = any(name.lower() == b"set-cookie" for name, _ in headers)
        kept.append(_NEW_VISITOR if begins_visit else _PUBLIC)
    if any(name.lower() == b"vary" and b"accept-language" in value.lower() for name, value in headers):
        kept.append((b"vary", b"Accept-Language"))
    return tuple(kept)
