"""Reads a site's own pages in process, as somebody sees them who is not signed in.

A request has no cookies and no credentials, and comes from an address that no network has, so that pages for some
visitors only are not read. The pages are those that the site declares and those of its sitemaps. Left out are what
robots may not read, what redirects, what is not HTML, our own documents, and routes of actions that not everybody may
call.
"""

import asyncio
import hashlib
import html
import logging
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import unquote, urlsplit

from awp_publish.http.exchange import RawHeaders, read_fields
from awp_publish.http.page_address import PageAddress, read_address
from awp_publish.http.page_request import PageAnswer, PageExchange, PageRequest
from awp_publish.plugin import Context
from awp_publish.plugins.search.page_index import IndexedPage
from awp_publish.plugins.search.robots import RobotsRules, keeps_out
from awp_publish.problems import InvalidUrl

logger: Final = logging.getLogger("awp_publish.search")

MAX_PAGE_BYTES: Final = 4_194_304
MAX_SITEMAP_BYTES: Final = 16_777_216
MAX_SITEMAPS: Final = 50
MAX_TEXT: Final = 200_000
"""Characters of a page that are kept."""

MAX_TITLE: Final = 300

ROBOTS_PATH: Final = "/robots.txt"
SITEMAP_PATH: Final = "/sitemap.xml"

CLIENT: Final = ("192.0.2.1", 0)
"""An address for documentation (RFC 5737), which no rule of a site trusts as it may trust its own machine."""

_FIELDS: Final = ((b"user-agent", b"awp-publish-search"), (b"accept", b"text/html, application/xhtml+xml;q=0.9"))
_HTML: Final = (b"text/html", b"application/xhtml+xml")
_CHARSET: Final = re.compile(rb';\s*charset\s*=\s*"?([^\s";]+)', re.IGNORECASE)
_LOCATION: Final = re.compile(r"<(?:\w+:)?loc>([^<]*)</")
_IS_INDEX: Final = re.compile(r"<(?:\w+:)?sitemapindex[\s>]")

Gone = Literal["gone", "failed", "unchanged"]
"""What became of a page that has no text: there is none for everybody, it could not be read now, or it is the same."""


class RobotsUnknown(Exception):
    """robots.txt failed, and what robots may read is not known (RFC 9309 section 2.3.1.4)."""


@dataclass(frozen=True, slots=True)
class SitePages:
    """The pages at one address of a site."""

    context: Context

    async def robots(self) -> RobotsRules:
        """Return what robots may read. Raises RobotsUnknown."""
        answer = await self._get(PageAddress(ROBOTS_PATH, ""), 1_048_576)
        if answer is None or answer.status >= 500:
            raise RobotsUnknown
        text = answer.body.decode("utf-8", "replace") if answer.status == 200 else ""
        return RobotsRules.read(text)

    async def addresses(self, rules: RobotsRules, sitemaps: Sequence[str], most: int) -> dict[str, str]:
        """Return the addresses of pages below the site's url that robots may read, each with its declared title."""
        titles = dict[str, str]()
        discovery, catalog = self.context.ask("discovery"), self.context.published()
        declared = catalog.pages if discovery is None else discovery.pages_of(catalog)
        for page in declared:
            if not page.is_template and self.is_open(page.path, rules):
                titles.setdefault(page.path, page.title)
        foreign = 0
        async for location in self._locations([SITEMAP_PATH, *rules.sitemaps, *sitemaps]):
            if len(titles) > most:  # one more than are indexed tells that there are more
                break
            address = self.address_of(location)
            if address is None:
                foreign += 1
            elif self.is_open(path := _path_of(address), rules):
                titles.setdefault(path, "")
        if foreign:
            logger.info("%d addresses in sitemaps are not below the site's url; other sites are not read", foreign)
        return titles

    async def _locations(self, sitemaps: Sequence[str]) -> AsyncIterator[str]:
        """Yield the addresses in sitemaps, and in those that they list."""
        waiting, seen = list(dict.fromkeys(sitemaps)), set[str]()
        while waiting and len(seen) < MAX_SITEMAPS:
            address = self.address_of(waiting.pop(0))
            if address is None or (path := _path_of(address)) in seen:
                continue
            seen.add(path)
            answer = await self._get(address, MAX_SITEMAP_BYTES)
            if answer is None or answer.status != 200:
                continue
            text = answer.body.decode("utf-8", "replace")
            is_index = _IS_INDEX.search(text[:10_000]) is not None
            for number, match in enumerate(_LOCATION.finditer(text)):
                if number % 1_000 == 999:
                    await asyncio.sleep(0)
                location = html.unescape(match[1]).strip()
                if is_index:
                    waiting.append(location)
                else:
                    yield location

    def address_of(self, address: str) -> PageAddress | None:
        """Return the address of a page of this site, None for any other. A path is below the site's url."""
        catalog = self.context.catalog
        whole = catalog.absolute(address) if address.startswith("/") else address
        try:
            return read_address(whole, self.context.settings.urls, catalog.url + "/")
        except InvalidUrl:
            return None

    def is_open(self, path: str, rules: RobotsRules) -> bool:
        """Return True for a page that robots may read, and no route of an action that not everybody may call."""
        catalog = self.context.catalog
        kept_out = tuple(catalog.site.robots.disallow)
        plain = unquote(urlsplit(path).path)
        limited = (
            action.target
            for action in catalog.actions
            if action.method == "GET" and (action.auth_required or not action.is_public) and action.target is not None
        )
        if path.startswith(kept_out) or not rules.allow(catalog.prefix + path):
            return False
        return not any(target.pattern().fullmatch(plain) for target in limited)

    async def read(
        self, path: str, title: str = "", validators: tuple[str, str, bytes] = ("", "", b"")
    ) -> IndexedPage | Gone:
        """Read a page. `title` is its declared title, `validators` the ETag, the date and the digest that it had."""
        etag, modified, digest = validators
        address = self.address_of(path)
        if address is None:
            return "gone"
        conditions = [(b"if-none-match", etag.encode("latin-1", "replace"))] if etag else []
        conditions += [(b"if-modified-since", modified.encode("latin-1", "replace"))] if modified else []
        answer = await self._get(address, MAX_PAGE_BYTES, tuple(conditions))
        if answer is None or answer.status >= 500:
            return "failed"
        if answer.status == 304 and (etag or modified):
            return "unchanged"
        fields = read_fields([(name.lower(), value) for name, value in answer.headers])
        kind = fields.get(b"content-type", b"")
        is_page = answer.status == 200 and kind.split(b";", 1)[0].strip().lower() in _HTML
        is_coded = fields.get(b"content-encoding", b"identity").strip().lower() != b"identity"
        if not is_page or is_coded or keeps_out([fields.get(b"x-robots-tag", b"").decode("latin-1")]):
            return "gone"
        now = hashlib.sha256(answer.body).digest()
        if now == digest:
            return "unchanged"
        charset = _CHARSET.search(kind)
        name = charset[1].decode("latin-1") if charset is not None else None
        url = address.below(self.context.catalog.url)
        extracted = await asyncio.to_thread(_extract, answer.body, name, url)
        if extracted is None:
            return "gone"
        own_title, description, text = extracted
        return IndexedPage(
            path=path,
            title=own_title or title or path,
            text=text,
            description=description,
            modified=fields.get(b"last-modified", b"").decode("latin-1"),
            etag=fields.get(b"etag", b"").decode("latin-1"),
            digest=now,
        )

    async def _get(self, address: PageAddress, most: int, fields: RawHeaders = ()) -> PageAnswer | None:
        """Request an address without following redirects. Returns None if the application fails or takes too long."""
        context = self.context
        own = urlsplit(context.catalog.url)
        headers = ((b"host", own.netloc.encode("ascii")), *_FIELDS, *fields)
        path, query = address.path.encode("ascii"), address.query.encode("ascii")
        request = PageRequest(own, path, query, headers, state=context.application.lifespan_state())
        scope = request.scope({"path": "/", "client": CLIENT})
        if context.application.owns(scope):
            return PageAnswer(404, (), b"")
        try:
            async with asyncio.timeout(context.settings.limits.timeout):
                answer = await PageExchange(most=most).run(context.application.app, scope)
        except Exception as error:
            logger.warning("%s could not be read: %s", address.path, type(error).__name__)
            return None
        if answer.status == 404 and (fallback := context.documents()[1].get(address.path)) is not None:
            return PageAnswer(200, (), fallback.body)  # outside of us, the application does not have our documents
        return answer


def _path_of(address: PageAddress) -> str:
    return address.path + (f"?{address.query}" if address.query else "")


def _extract(body: bytes, charset: str | None, url: str) -> tuple[str, str, str] | None:
    """Return a page's title, description and main content as Markdown, None if it is not to be indexed."""
    from awp_publish.pages.markdown import OMISSION, write_content
    from awp_publish.pages.selectolax import parse
    from awp_publish.pages.tree import Tree, read_title

    def metas(tree: Tree, name: str) -> Iterator[str]:
        for node in tree.tagged("meta"):
            if node.attributes.get("name", "").strip().lower() == name:
                yield node.attributes.get("content", "")

    tree = parse(body, charset)
    try:
        if keeps_out(metas(tree, "robots")):
            return None
        title = " ".join(read_title(tree).split())[:MAX_TITLE]
        description = " ".join(next(metas(tree, "description"), "").split())[:MAX_TITLE]
        text = write_content(tree, url).strip()
    finally:
        tree.unlink()
    rest, _, last = text.rpartition("\n\n")
    return title, description, (rest if last.startswith(OMISSION) else text)[:MAX_TEXT]
