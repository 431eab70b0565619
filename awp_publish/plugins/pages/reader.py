"""Reads pages of this site in another format.

The page is requested anonymously: without the client's cookies and credentials, and without state that outer
middleware has derived from them. So the result is public. Other sites are never fetched, and our own documents and
doors are not pages.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final
from urllib.parse import urljoin, urlsplit

from awp_publish.browsing.addresses import REDIRECTS
from awp_publish.http.exchange import AsgiApp, Fields, RawHeaders, Receive, Reply, Scope, read_fields
from awp_publish.http.page_address import read_address
from awp_publish.http.page_request import FORWARDED, PageAnswer, PageExchange, PageRequest
from awp_publish.model import Catalog
from awp_publish.plugins.pages.formats import RequestedFormat
from awp_publish.plugins.pages.negotiation import NegotiatedPages, negotiate
from awp_publish.plugins.pages.page_request import NegotiatedRequest
from awp_publish.plugins.pages.rendering import MAX_PAGE_BYTES, PageRenderer
from awp_publish.plugins.pages.som import FRESHNESS
from awp_publish.problems import InvalidUrl, PageNotFound

logger: Final = logging.getLogger("awp_publish.pages")

CLIENT_FIELDS: Final = FORWARDED | {
    b"accept-language",
    b"cf-connecting-ip",
    b"fly-client-ip",
    b"traceparent",
    b"true-client-ip",
    b"user-agent",
    b"x-request-id",
}
"""Headers with the client's language and address, so that pages for certain addresses only stay restricted."""

PAGE_FIELDS: Final = frozenset(
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
"""Headers of the page's own answer that are passed on. Cookies are not, since everybody would share them."""

MAX_REDIRECTS: Final = 5
_ACCEPT_HTML: Final = (b"accept", b"text/html, application/xhtml+xml;q=0.9, */*;q=0.1")
_PUBLIC: Final = (b"cache-control", b"public, max-age=%d" % FRESHNESS)
_NEW_VISITOR: Final = (b"cache-control", b"no-store")
"""For pages that set a cookie: they may contain data of that one visit, such as a token in a form."""


@dataclass(frozen=True, slots=True)
class PageReader:
    """Reads the pages of one address of a site. `app` is the outermost application, `state` its lifespan state.

    `owns` returns True for requests to our own documents and doors, `links` returns the `Link` header of a page.
    """

    settings: Any
    formats: Any
    catalog: Catalog
    app: AsgiApp
    renderer: PageRenderer
    owns: Callable[[Scope], bool]
    state: Callable[[], Mapping[str, object]]
    links: Callable[[Scope], bytes | None]

    whole_markdown: ClassVar = RequestedFormat("md", "full", by_query=True, content="all")
    """All of a page as Markdown, not its main content alone."""

    def offer_formats(self, app: AsgiApp) -> AsgiApp:
        """Wrap an application of ours so that its pages are offered in other formats, too."""
        pages = NegotiatedPages(self.catalog, self.formats, self.renderer)
        return negotiate(app, pages, None, self.settings.limits.timeout)

    async def read(
        self,
        url: str,
        requested: RequestedFormat,
        scope: Scope,
        receive: Receive,
        fields: Fields,
        is_head: bool = False,
        admit: Callable[[Scope], Awaitable[None]] | None = None,
    ) -> Reply:
        """Return the page at `url`, after redirects within the site, in the requested format.

        `scope` and `receive` are the client's own request, and `fields` its headers. `admit` may refuse each request to
        the application. Raises InvalidUrl for an address of another site, PageNotFound if there is no public page.
        """
        address = read_address(url, self.settings.urls, self.catalog.url + "/")
        # A GET request to the declared origin, without credentials.
        own = urlsplit(self.catalog.url)
        forwarded = (pair for pair in scope["headers"] if pair[0] in CLIENT_FIELDS)
        headers = ((b"host", own.netloc.encode("ascii")), *forwarded, _ACCEPT_HTML)
        for _ in range(MAX_REDIRECTS + 1):
            path, query = address.path.encode("ascii"), address.query.encode("ascii")
            inner = PageRequest(own, path, query, headers, state=self.state()).scope(scope)
            if self.owns(inner):
                raise _not_found("The address is one of the documents and endpoints for agents, not a page.")
            if admit is not None:
                await admit(inner)
            answer, url = await self._fetch(inner, receive), address.below(self.catalog.url)
            location = read_fields(answer.headers).get(b"location")
            if answer.status not in REDIRECTS or location is None:
                break
            try:
                target = urljoin(url, location.decode("latin-1"))
                address = read_address(target, self.settings.urls, self.catalog.url + "/")
            except (InvalidUrl, ValueError) as error:
                raise _not_found("The page redirects to an address outside this site.") from error
        else:
            raise _not_found("Too many redirects.")

        status = answer.status
        if status in (404, 410):
            raise _not_found(f"The site answers {status}.")
        if status >= 500:
            raise PageNotFound(f"The page failed with {status}.", status=502, recovery="Retry once later.")
        if status >= 400:
            raise PageNotFound(f"The site answers {status} to an anonymous request.", status=status)
        if not answer.is_whole:
            raise _not_found(f"The page is larger than {MAX_PAGE_BYTES} bytes.")
        link = self.links(inner)
        request = NegotiatedRequest(
            requested,
            url,
            inner,
            fields,
            self.renderer,
            is_head,
            in_shared_cache=self.formats.shared_cache,
            link=link,
            whole=_WHOLE,
        )
        if not request.takes(status, answer.headers):
            raise _not_found("The address does not answer with an HTML page.")
        reply = await request.render_async(200, _public_headers(answer.headers), answer.body)
        if reply is None:
            raise _not_found("The page has a content coding or a format that is not supported.")
        return reply

    async def _fetch(self, inner: Scope, receive: Receive) -> PageAnswer:
        """Send a request, and wait until the application has finished it, including background tasks."""
        try:
            async with asyncio.timeout(self.settings.limits.timeout):
                return await PageExchange(most=MAX_PAGE_BYTES, outer=receive).run(self.app, inner)
        except TimeoutError as error:
            raise PageNotFound("The page took too long.", status=504, recovery="Retry later.") from error
        except Exception as error:
            logger.exception("the page at %s failed", inner["path"])
            raise PageNotFound("The page failed.", status=502, recovery="Retry once later.") from error


_WHOLE: Final = "`content=all` in the query requests all of it."


def _not_found(detail: str) -> PageNotFound:
    return PageNotFound(detail, members={"error": "not_found"})


def _public_headers(headers: RawHeaders) -> RawHeaders:
    """Return the headers of a public page. Of Vary, only Accept-Language is kept: other headers are not passed on."""
    lowered = [(name.lower(), value) for name, value in headers]
    public = [pair for pair in lowered if pair[0] in PAGE_FIELDS]
    if all(name not in (b"cache-control", b"expires") for name, _ in public):
        public.append(_NEW_VISITOR if any(name == b"set-cookie" for name, _ in lowered) else _PUBLIC)
    if b"accept-language" in read_fields(lowered).get(b"vary", b"").lower():
        public.append((b"vary", b"Accept-Language"))
    return tuple(public)
