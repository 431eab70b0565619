"""The endpoint for pages of this site: `?url=` gives one as SOM or Markdown, without it stands the directory.

A page is fetched as somebody who is not known would see it, so its answer is public, and caches may keep it. Another
site's pages may read it only if they are among `allow_origins`: a site behind a firewall is not opened to the world.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import parse_qsl

from awp_publish.declare import Site
from awp_publish.model import Catalog, Door
from awp_publish.problems import InvalidUrl, MethodNotAllowed, PageNotFound, Problem
from awp_publish.protocols.som import DOOR, FRESHNESS, PATH, PROTOCOL, SOM_VERSION
from awp_publish.serve.cors import Cors
from awp_publish.serve.documents import Prepared, prepare
from awp_publish.serve.exchange import Exchange, Telling
from awp_publish.serve.negotiate import Asked
from awp_publish.serve.negotiate_exchange import make_reply
from awp_publish.serve.negotiate_formats import LARGEST, Renditions
from awp_publish.serve.negotiate_wish import BUDGETS, FORMATS, Wish, read_accept
from awp_publish.serve.reply import AsgiApp, Fields, RawHeaders, Receive, Reply, Scope, Send, read_fields, send_reply
from awp_publish.serve.som_address import Address, read_address
from awp_publish.serve.som_fetch import Fetched, fetch_page, redirect_of, scope_of

logger: Final = logging.getLogger("awp_publish.pages")

METHODS: Final = "GET, HEAD, OPTIONS"
MOST_REDIRECTS: Final = 5
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

_PUBLIC: Final = (b"cache-control", b"public, max-age=%d" % FRESHNESS)
_NEW_VISITOR: Final = (b"cache-control", b"no-store")
"""A page that begins a visit may hold what belongs to that visit, a token in a form for instance."""


def describe_pages(site: Site) -> tuple[Door, ...]:
    """What the documents may say about the endpoint: nothing where pages are HTML only."""
    return (Door(DOOR, SOM_VERSION, site.paths.som),) if site.offering.pages else ()


def open_som(
    site: Site,
    catalog: Catalog,
    app: AsgiApp,
    renditions: Renditions,
    owns: Callable[[Scope], bool],
    state: Callable[[], Mapping[str, object]],
) -> "SomDoor":
    """Make the door. `app` is the whole application, `state` what it keeps for its requests (ASGI, Lifespan State).

    `owns` says of a request that it is answered by us, and so for no page.
    """
    directory = prepare(PROTOCOL.documents, catalog, b"", {}, datetime.now(UTC))
    return SomDoor(site, catalog, app, renditions, owns, state, directory[PATH])


@dataclass(frozen=True, slots=True)
class SomDoor:
    """Answers at the endpoint of one address."""

    site: Site
    catalog: Catalog
    app: AsgiApp
    renditions: Renditions
    owns: Callable[[Scope], bool]
    state: Callable[[], Mapping[str, object]]
    directory: Prepared

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        fields, cors = read_fields(scope["headers"]), Cors(self.site.limits.allow_origins)
        if scope["method"] == "OPTIONS":
            await send_reply(cors.preflight(fields, METHODS), send)
            return
        try:
            reply = await self._reply(scope, fields, receive)
        except Problem as problem:
            await Exchange(Telling(self.catalog), scope, fields, cors.headers(fields), send).deliver(problem)
        else:
            await send_reply(Reply(reply.status, (*reply.headers, *cors.headers(fields)), reply.body), send)

    async def _reply(self, scope: Scope, fields: Fields, receive: Receive) -> Reply:
        if scope["method"] not in ("GET", "HEAD"):
            raise MethodNotAllowed(f"Pages are read: use one of {METHODS}.", headers=[("Allow", METHODS)])
        given = _read_query(scope["query_string"])
        if "url" not in given:
            return self.directory.answer(scope["method"], scope["headers"])
        wish = _read_wish(given, fields)
        address = read_address(given["url"], self.site.urls, self.catalog.url + "/")
        inner, fetched, address = await self._fetch(scope, address, wish, receive)
        asked = Asked(wish, address.below(self.catalog.url), inner, fields, self.renditions, scope["method"] == "HEAD")
        reply = await make_reply(asked, 200, _public_headers(fetched.headers), fetched.body)
        if reply is None:
            raise _not_found("The page is in a content coding or a form that cannot be read here.")
        return reply

    async def _fetch(
        self, scope: Scope, address: Address, wish: Wish, receive: Receive
    ) -> tuple[Scope, Fetched, Address]:
        """The page, after redirects within the site. Raises PageNotFound for what is no page that everybody may see."""
        for _ in range(MOST_REDIRECTS + 1):
            inner = scope_of(self.catalog, scope, address)
            inner["state"] = dict(self.state())
            if self.owns(inner):
                raise _not_found("The address is one of the documents and endpoints for agents, not a page.")
            fetched = await self._ask(inner, receive)
            target = redirect_of(fetched, address.below(self.catalog.url))
            if target is None:
                _check_page(Asked(wish, "", inner, {}, self.renditions), fetched)
                return inner, fetched, address
            try:
                address = read_address(target, self.site.urls, self.catalog.url + "/")
            except InvalidUrl as error:
                raise _not_found("The page leads to another site.") from error
        raise _not_found("The page leads on and on.")

    async def _ask(self, inner: Scope, receive: Receive) -> Fetched:
        try:
            async with asyncio.timeout(self.site.limits.timeout):
                return await fetch_page(self.app, inner, receive)
        except TimeoutError as error:
            raise PageNotFound("The page took too long.", status=504, recovery="Retry later.") from error
        except Exception as error:
            logger.exception("the page at %s failed", inner["path"])
            raise PageNotFound("The page failed.", status=502, recovery="Retry once later.") from error


def _read_query(query: bytes) -> dict[str, str]:
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    names = [name for name, _ in pairs]
    for name in ("url", "format", "budget"):
        if names.count(name) > 1:
            raise InvalidUrl(f"{name} is given {names.count(name)} times; percent-encode what belongs to the page.")
    return dict(pairs)


def _read_wish(given: Mapping[str, str], fields: Fields) -> Wish:
    """The format by its name, else by Accept, else SOM."""
    accepted = read_accept(fields.get(b"accept", b"")).wish
    name, budget = given.get("format"), given.get("budget")
    if (name or "som") not in FORMATS or (budget or "full") not in BUDGETS:
        raise InvalidUrl(
            f"There is no such format or budget; there are {', '.join(FORMATS)} and {', '.join(BUDGETS)}.",
            recovery="Leave format and budget out, or use one that detail names.",
        )
    chosen = FORMATS[name] if name else accepted.format if accepted else "som"
    amount = next((one for one in BUDGETS if one == budget), accepted.budget if accepted else "full")
    return Wish(chosen, amount if chosen == "som" else "full", by_query=name is not None)


def _check_page(asked: Asked, fetched: Fetched) -> None:
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
