"""The formats themselves: a page's bytes are parsed once, rendered, and remembered by all that they were made from."""

import hashlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote, urljoin

from awp_publish.serve.negotiate_coding import decode_body
from awp_publish.serve.negotiate_memory import Memory, Rendition
from awp_publish.serve.negotiate_wish import BudgetName, FormatName, Wish

if TYPE_CHECKING:
    from awp_publish.pages.tree import Tree

logger: Final = logging.getLogger("awp_publish.pages")

LARGEST: Final = 4_194_304
"""Bytes of HTML, before and after its content coding is undone, beyond which a page passes as it is."""

QUICK: Final = 32_768
"""Bytes of HTML up to which rendering is over before anybody else on the event loop would notice."""

MEMORY: Final = 16_777_216
"""Bytes of renditions that are kept for pages that have not changed."""

PLAIN: Final = "/%:@!$&'()*+,;=?[]~"
"""Characters of an address that stay as they are."""


class Source(NamedTuple):
    """All that a rendition is made from, so that no visitor can be given what was made of another's page."""

    wish: Wish
    url: str
    charset: str | None
    coding: bytes
    digest: bytes


@dataclass(frozen=True, slots=True)
class Format:
    """How a parsed page is rendered, and what the answer says of itself; `page` is the address of the page."""

    media_type: bytes
    render: Callable[["Tree", str, BudgetName], bytes]


class Renditions:
    """Renders pages and remembers what came of it. Raises DeclarationError's cause, ImportError, without the extra."""

    def __init__(self, most: int = MEMORY) -> None:
        self._memory: Memory[Source] = Memory(most)
        self._parse: Callable[[bytes, str | None], Tree] = import_module("awp_publish.pages.selectolax").parse

    def source(self, wish: Wish, url: str, charset: str | None, coding: bytes, body: bytes) -> Source:
        """What is to be rendered, told by its content."""
        return Source(wish, url, charset, coding, hashlib.sha256(body).digest())

    def remembered(self, source: Source) -> Rendition | None:
        """What was made of the same page before."""
        return self._memory.get(source)

    def make(self, source: Source, body: bytes) -> Rendition | None:
        """Render a page; None for one that cannot be unpacked, or (which is logged) not be rendered."""
        html = decode_body(body, source.coding, LARGEST)
        if html is None:
            return None
        try:
            rendition = self._render(source, html)
        except Exception:
            logger.exception("%s could not be rendered as %s", source.url, source.wish.format)
            return None
        self._memory.keep(source, rendition)
        return rendition

    def _render(self, source: Source, html: bytes) -> Rendition:
        tree = self._parse(html, source.charset)
        body = FORMATS[source.wish.format].render(tree, source.url, source.wish.budget)
        etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        return Rendition(body, etag.encode(), canonical_of(tree, source.url).encode("latin-1"))


def canonical_of(tree: "Tree", url: str) -> str:
    """The canonical address (RFC 6596) that a page names in its head, or the one that it has."""
    for node in tree.head.children if tree.head is not None else ():
        if node.tag == "link" and "canonical" in node.attributes.get("rel", "").lower().split():
            return _address(url, node.attributes.get("href", "")) or url
    return url


def _address(url: str, href: str) -> str | None:
    """A reference resolved, fit to stand in a header; None for what is no address of a page."""
    try:
        address = urljoin(url, href.strip())
    except ValueError:
        return None
    return quote(address, safe=PLAIN) if address.startswith(("http://", "https://")) else None


def _render_som(tree: "Tree", url: str, budget: BudgetName) -> bytes:
    from awp_publish.pages.som import Budget, compile_som

    return compile_som(tree, url, Budget[budget.upper()]).dump()


def _render_markdown(tree: "Tree", url: str, budget: BudgetName) -> bytes:
    from awp_publish.pages.markdown import write_markdown

    return write_markdown(tree, url).encode("utf-8", "replace")


FORMATS: Final[Mapping[FormatName, Format]] = {
    "som": Format(b"application/som+json", _render_som),
    "md": Format(b"text/markdown; charset=utf-8", _render_markdown),
}
