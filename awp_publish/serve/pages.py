"""Pages of the site for agents: read in process, and served as SOM and Markdown at an address of their own."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import SplitResult, parse_qsl, quote, urljoin, urlsplit

from awp_publish.model import Catalog, Door
from awp_publish.problems import InvalidUrl, PageNotFound
from awp_publish.protocols.som import DOOR, FRESHNESS, PATH, PROTOCOL, SOM_VERSION
from awp_publish.serve.credentials import refuse_foreign_host
from awp_publish.serve.documents import prepare
from awp_publish.serve.endpoint import DoorRequest, Endpoint, ProblemRenderer
from awp_publish.serve.http import (
    AsgiApp,
    Cors,
    Fields,
    RawHeaders,
    Receive,
    Reply,
    Scope,
    read_fields,
)
from awp_publish.serve.in_process import DEFAULT_PORTS, FORWARDED, PageAnswer, PageExchange, PageRequest
from awp_publish.serve.negotiation import (
    BUDGETS,
    FORMATS,
    MAX_PAGE_BYTES,
    PLAIN,
    USUAL_BUDGET,
    NegotiatedRequest,
    PageRenderer,
    RequestedFormat,
    read_accept,
)
from awp_publish.settings import SiteSettings

# --- The address of a page of this site, and of no other ---

MAX_ADDRESS_LENGTH: Final = 8_000
"""Characters of an address; more is no page of anybody's."""

_BROKEN: Final = re.compile(r"[\x00-\x1f\x7f\\]")
"""Characters that servers and clients read differently. A space is a "+" that was not encoded."""

_INVALID: Final = {"error": "invalid_url"}
"""The name that the reference publisher of somspec.org has for it."""


@dataclass(frozen=True, slots=True)
class PageAddress:
    """A page of this site. `path` is percent-encoded, and below the path of the site's url."""

    path: str
    query: str

    def below(self, url: str) -> str:
        """Return the address of the page on a site with this url."""
        return url + self.path + (f"?{self.query}" if self.query else "")


def read_address(given: str, urls: Iterable[str], base: str) -> PageAddress:
    """Read an address, or a reference from `base`. Raises InvalidUrl unless it is below one of the site's `urls`."""
    if not given or len(given) > MAX_ADDRESS_LENGTH or _BROKEN.search(given):
        raise InvalidUrl("url is empty, too long, or holds characters that no address has.", members=_INVALID)
    try:
        parts = urlsplit(urljoin(base, quote(given, safe=PLAIN + "#")))
        origin = _origin(parts)
    except ValueError as error:
        raise InvalidUrl(f"url is not an address: {error}.", members=_INVALID) from error
    # Joining has resolved dot segments (RFC 3986 section 5.2.4), with which a path could leave the site's; those that
    # were written percent-encoded are resolved here.
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
    site = next((site for url in urls if is_plain and _origin(site := urlsplit(url)) == origin), None)
    if site is None or not (path + "/").startswith(site.path + "/"):
        raise InvalidUrl("url is not below this site's own address; other sites are never fetched.", members=_INVALID)
    return PageAddress(path[len(site.path) :] or "/", parts.query)


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port or DEFAULT_PORTS.get(parts.scheme)


# --- A page of this site in another format ---
# Nothing of the client is taken along by which a site could know it: no cookie, no credentials, none of the state that
# middleware in front of us has made of these. So the page may be given to everybody. Other sites are never fetched, and
# what is answered by us is no page.

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
"""The client's language, and where its request is from: a page that only some addresses see stays theirs."""

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
"""Headers of the page's own answer that are passed on. No cookie: it would be everybody's."""

MAX_REDIRECTS: Final = 5
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_ACCEPT_HTML: Final = (b"accept", b"text/html, application/xhtml+xml;q=0.9, */*;q=0.1")
_PUBLIC: Final = (b"cache-control", b"public, max-age=%d" % FRESHNESS)
_NEW_VISITOR: Final = (b"cache-control", b"no-store")
"""A page that begins a visit may hold what belongs to that visit, a token in a form for instance."""


@dataclass(frozen=True, slots=True)
class PageReader:
    """Reads pages of one address of a site. `app` is the whole application, `state` what it keeps for its requests.

    `owns` says of a request that it is answered by us, and so for no page; `links` gives the `Link` header of a page.
    """

    settings: SiteSettings
    catalog: Catalog
    app: AsgiApp
    renderer: PageRenderer
    owns: Callable[[Scope], bool]
    state: Callable[[], Mapping[str, object]]
    links: Callable[[Scope], bytes | None]

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

        `scope` and `receive` are the request behind it, `fields` hold its conditions; `admit` may refuse each request
        that is made for it. Raises InvalidUrl for what is no
        address of this site, PageNotFound for what is no page that everybody may see.
        """
        address = read_address(url, self.settings.urls, self.catalog.url + "/")
        # GET, at the declared origin, without credentials.
        own = urlsplit(self.catalog.url)
        carried = (pair for pair in scope["headers"] if pair[0] in CLIENT_FIELDS)
        headers = ((b"host", own.netloc.encode("ascii")), *carried, _ACCEPT_HTML)
        for _ in range(MAX_REDIRECTS + 1):
            path, query = address.path.encode("ascii"), address.query.encode("ascii")
            inner = PageRequest(own, path, query, headers, state=self.state()).scope(scope)
            if self.owns(inner):
                raise _not_found("The address is one of the documents and endpoints for agents, not a page.")
            if admit is not None:
                await admit(inner)
            answer, url = await self._fetch(inner, receive), address.below(self.catalog.url)
            location = read_fields(answer.headers).get(b"location")
            if answer.status not in _REDIRECTS or location is None:
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
        shared = self.settings.page_formats is not None and self.settings.page_formats.shared_cache
        link = self.links(inner)
        request = NegotiatedRequest(
            requested, url, inner, fields, self.renderer, is_head, in_shared_cache=shared, link=link
        )
        if not request.takes(status, answer.headers):
            raise _not_found("The address does not answer with an HTML page.")
        reply = await request.render_async(200, _public_headers(answer.headers), answer.body)
        if reply is None:
            raise _not_found("The page is in a content coding or a form that cannot be read here.")
        return reply

    async def _fetch(self, inner: Scope, receive: Receive) -> PageAnswer:
        """All that the application does for the request is waited for, so that nothing is left over."""
        exchange = PageExchange(b"", MAX_PAGE_BYTES, receive)
        try:
            async with asyncio.timeout(self.settings.timeout):
                await self.app(inner, exchange.receive, exchange.send)
        except TimeoutError as error:
            raise PageNotFound("The page took too long.", status=504, recovery="Retry later.") from error
        except Exception as error:
            logger.exception("the page at %s failed", inner["path"])
            raise PageNotFound("The page failed.", status=502, recovery="Retry once later.") from error
        return exchange.collected()


def _not_found(detail: str) -> PageNotFound:
    return PageNotFound(detail, members={"error": "not_found"})


def _public_headers(headers: RawHeaders) -> RawHeaders:
    """The headers of a page that everybody may see. Nothing varies by what was not sent."""
    named = [(name.lower(), value) for name, value in headers]
    kept = [pair for pair in named if pair[0] in PAGE_FIELDS]
    if all(name not in (b"cache-control", b"expires") for name, _ in kept):
        kept.append(_NEW_VISITOR if any(name == b"set-cookie" for name, _ in named) else _PUBLIC)
    if any(name == b"vary" and b"accept-language" in value.lower() for name, value in named):
        kept.append((b"vary", b"Accept-Language"))
    return tuple(kept)


# --- The endpoint for pages of this site ---
# A page is fetched as an anonymous visitor would see it, so its answer is public, and caches may keep it. Another
# site's pages may read it only if they are among `allow_origins`: a site behind a firewall is not opened to the world.


def describe_pages(settings: SiteSettings) -> tuple[Door, ...]:
    """Return what the documents may say about the endpoint: nothing where pages are HTML only."""
    return (Door(DOOR, SOM_VERSION, settings.paths.som),) if settings.page_formats is not None else ()


class SomDoor(Endpoint):
    """Answers at the endpoint of one address with its directory, or with the page that a request names."""

    methods = "GET, HEAD, OPTIONS"
    usage = "Pages are read with GET or HEAD"

    def __init__(self, reader: PageReader, own_hosts: frozenset[str]) -> None:
        super().__init__(ProblemRenderer(reader.catalog), Cors(tuple(reader.settings.allow_origins)), own_hosts)
        self._reader = reader
        self._directory = prepare(PROTOCOL.documents, reader.catalog, b"", {}, datetime.now(UTC))[PATH]

    def refuse_foreign(self, fields: Fields) -> None:
        """Refuse pages of rebound hosts only: what those of other sites may read is up to CORS."""
        refuse_foreign_host(fields, self._own_hosts)

    async def handle(self, request: DoorRequest, named: str | None) -> None:
        """Answer with the directory, or with the page at `url` in the format that is named, else accepted, else SOM."""
        scope, fields = request.scope, request.fields
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        names, given = [name for name, _ in pairs], dict(pairs)
        for one in ("url", "format", "budget"):
            if names.count(one) > 1:
                raise InvalidUrl(f"{one} is given {names.count(one)} times; percent-encode what belongs to the page.")
        if "url" not in given:
            await self._tell(request, self._directory.answer(scope["method"], scope["headers"]))
            return
        name, budget = given.get("format"), given.get("budget")
        if (name or "som") not in FORMATS or (budget or USUAL_BUDGET) not in BUDGETS:
            raise InvalidUrl(
                f"There is no such format or budget; there are {', '.join(FORMATS)} and {', '.join(BUDGETS)}.",
                recovery="Leave format and budget out, or use one that detail names.",
            )
        accepted = read_accept(fields.get(b"accept", b"")).requested or RequestedFormat("som")
        chosen = FORMATS[name] if name else accepted.format
        amount = BUDGETS[budget] if budget else accepted.budget
        requested = RequestedFormat(chosen, amount if chosen == "som" else USUAL_BUDGET, by_query=name is not None)
        is_head = scope["method"] == "HEAD"
        reply = await self._reader.read(given["url"], requested, scope, request.receive, fields, is_head)
        await self._tell(request, reply)

    async def _tell(self, request: DoorRequest, reply: Reply) -> None:
        headers = (*reply.headers, *self._cors.headers(request.fields))
        await request.reply(Reply(reply.status, headers, reply.body))
