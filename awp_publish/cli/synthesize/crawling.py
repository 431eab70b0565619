"""Reading a site: pages that link to each other, then its OpenAPI document, with GET and as robots.txt allows."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import urldefrag, urljoin, urlsplit
from urllib.robotparser import RobotFileParser

from awp_publish.browsing.markup import Control, read_markup
from awp_publish.cli.console import Console
from awp_publish.cli.fetching import FetchedDocument, FetchRefused
from awp_publish.cli.synthesize.forms import read_form
from awp_publish.cli.synthesize.observed import AGENT, InspectedSite, Seen, escaped, id_of, is_here, short
from awp_publish.cli.synthesize.openapi import PATHS, read_openapi
from awp_publish.cli.synthesize.text import text_of
from awp_publish.model import Action, Target
from awp_publish.pages.attributes import base_of
from awp_publish.pages.selectolax import parse
from awp_publish.pages.tree import Node, Tree, read_title
from awp_publish.problems import DeclarationError

OF_LINK: Final = 0.6
"""Confidence in a link that was followed."""

_FILES: Final = re.compile(r"\.(?:css|js|mjs|png|jpe?g|gif|svg|webp|ico|pdf|zip|gz|xml|txt|json|woff2?|mp[34])$", re.I)

_LEAVING: Final = re.compile(r"(?:log|sign)[-_]?(?:out|off)|delete|remove|unsubscribe", re.IGNORECASE)


def read_site(console: Console, get: Callable[[str, str], FetchedDocument], url: str, max_pages: int) -> InspectedSite:
    """Read pages, breadth first from the given one, then the OpenAPI document."""
    first = get(url, "text/html")
    if "html" not in first.media_type:
        raise DeclarationError(
            url, f"is {first.media_type or 'of unknown type'}, not HTML.", "Name a page of the site."
        )
    crawl = _Crawl(get, first, max_pages)
    for address in console.progress(crawl.addresses(), "Reading pages", max_pages):
        if (page := crawl.fetch(address)) is not None:
            crawl.read(page, address)
    site = crawl.site
    addresses = [*site.openapi_addresses, *(urljoin(site.url, path) for path in PATHS)]
    for address in dict.fromkeys(addresses):
        if not is_here(address, site.url):
            site.left_out.append((address, "it is on another site"))
        elif read_openapi(site, get, address):
            break
    site.seen.sort(key=lambda seen: -seen.confidence)
    return site


class _Crawl:
    """Pages that are waiting, and where they were linked."""

    def __init__(self, get: Callable[[str, str], FetchedDocument], first: FetchedDocument, max_pages: int) -> None:
        self.site = InspectedSite(url=first.url)
        self._get, self._first, self._max_pages = get, first, max_pages
        self._waiting, self._known = [first.url], {urldefrag(first.url)[0]}
        if not urlsplit(first.url).path:  # links lead to the same page with a slash
            self._known.add(urljoin(first.url, "/"))
        self._linked: dict[str, str] = {}
        """The texts of links, by the address that they lead to."""
        self._robots = RobotFileParser()
        try:
            lines = get(urljoin(first.url, "/robots.txt"), "text/plain").body.decode("utf-8", "replace").splitlines()
        except FetchRefused:
            lines = []
        self._robots.parse(lines)

    def addresses(self) -> Iterator[str]:
        """Yield the addresses of pages to read, as long as there are any."""
        while self._waiting and len(self.site.pages) < self._max_pages:
            yield self._waiting.pop(0)

    def fetch(self, address: str) -> FetchedDocument | None:
        """Return a page, None if it is left out."""
        if address == self._first.url:
            return self._first
        if not self._robots.can_fetch(AGENT, address):
            self.site.left_out.append((address, "robots.txt does not allow it"))
            return None
        try:
            page = self._get(address, "text/html")
        except FetchRefused as error:
            self.site.left_out.append((address, str(error)))
            return None
        return page if "html" in page.media_type else None

    def read(self, page: FetchedDocument, address: str) -> None:
        """Note what a page shows; `address` is the one under which it was linked."""
        tree = parse(page.body, page.charset or None)
        title = short(read_title(tree))
        base = base_of(tree, page.url) or page.url
        self.site.pages[page.url] = title
        if len(self.site.pages) == 1:
            self._describe(tree, title)
        for link in tree.tagged("link"):
            rel, href = link.attributes.get("rel", "").lower().split(), link.attributes.get("href", "")
            if "service-desc" in rel and href:
                self.site.openapi_addresses.append(urljoin(base, href))
        self._read_forms(tree, page.url, base, title)
        if address in self._linked:
            path = urlsplit(page.url).path or "/"
            self._add_link(path, title or self._linked[address] or path, page.url)
        for link in tree.tagged("a"):
            self._follow(link, base)
        tree.unlink()

    def _describe(self, tree: Tree, title: str) -> None:
        metas = {
            (attributes.get("name") or attributes.get("property") or "").lower(): attributes.get("content", "")
            for attributes in (meta.attributes for meta in tree.tagged("meta"))
        }
        self.site.title = short(metas.get("og:site_name") or title)
        self.site.description = short(metas.get("description") or metas.get("og:description") or "")

    def _read_forms(self, tree: Tree, url: str, base: str, title: str) -> None:
        labels = {
            label.attributes.get("for"): text_of(label) for label in tree.tagged("label") if label.attributes.get("for")
        }
        markup, owned = read_markup(tree), defaultdict[str | None, list[Control]](list)
        for control in markup.controls.values():
            owned[control.form].append(control)
        for place, form in markup.forms.items():
            seen = read_form(form, owned[place], labels, url, base, title)
            if isinstance(seen, str):
                self.site.left_out.append((url, seen))
            else:
                self.site.add(seen)

    def _add_link(self, path: str, name: str, url: str) -> None:
        """Add the target of a link, which has answered."""
        action = Action(
            id=f"open_{id_of(path, 'page')}",
            agent_id="",
            name=name,
            description=f'Open the page "{name}".',
            inputs={"type": "object", "properties": {}},
            target=Target("GET", escaped(path)),
            type="navigation",
            effect="read",
            outputs={"type": "string", "contentMediaType": "text/html"},
        )
        self.site.add(Seen(action, url, OF_LINK, "link"))

    def _follow(self, link: Node, base: str) -> None:
        """Let the page wait to which a link leads."""
        attributes = link.attributes
        href = attributes.get("href", "").strip()
        if not href or "download" in attributes or "nofollow" in attributes.get("rel", "").lower().split():
            return
        try:
            there = urldefrag(urljoin(base, href))[0]
            parts = urlsplit(there)
        except ValueError:
            return
        if parts.scheme not in ("http", "https") or parts.query or _FILES.search(parts.path):
            return
        if there in self._known or not is_here(there, self.site.url):
            return
        self._known.add(there)
        if _LEAVING.search(parts.path):
            self.site.left_out.append((there, "it may do something when it is opened"))
            return
        self._waiting.append(there)
        self._linked[there] = text_of(link)
