"""Renders pages in the requested formats, and caches the renderings."""

import hashlib
import logging
import zlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote, urljoin

import orjson

from awp_publish.http.exchange import Fields
from awp_publish.http.page_address import PLAIN
from awp_publish.plugins.pages.formats import RequestedFormat

if TYPE_CHECKING:
    from awp_publish.pages.tree import Tree

logger: Final = logging.getLogger("awp_publish.pages")

MAX_PAGE_BYTES: Final = 4_194_304
"""Bytes of HTML, both encoded and decoded, above which a page is passed on unchanged."""

INLINE_LIMIT: Final = 32_768
"""Bytes of HTML up to which a page is rendered on the event loop instead of in a thread."""

CACHE_BYTES: Final = 16_777_216
CACHE_OVERHEAD: Final = 512
"""Estimated overhead of a cache entry in bytes."""

MAX_MEMBERS: Final = 100
"""Maximum members of a gzip body: finding each next one takes time proportional to the rest of the body."""

_GZIP: Final = zlib.MAX_WBITS | 16
WINDOWS: Final[dict[bytes, tuple[int, ...]]] = {
    b"": (),
    b"identity": (),
    b"gzip": (_GZIP,),
    b"x-gzip": (_GZIP,),
    b"deflate": (zlib.MAX_WBITS, -zlib.MAX_WBITS),
}
"""The zlib window sizes to try for each content coding (RFC 9110 section 8.4.1).

Many servers send "deflate" without the zlib header.
"""


class Guide(NamedTuple):
    """The additions of self-contained Markdown to a page: the URLs of llms.txt and sitemap.md, if they are published.

    `version` is the site's version, `updated` the date of its last change. `title` and `description` are those of the
    page's declaration, used if the page itself has none.
    """

    llms_txt: str | None
    sitemap: str | None
    version: str
    updated: str | None
    title: str = ""
    description: str = ""


class RenderKey(NamedTuple):
    """Everything that a rendering depends on, so that no visitor can get a rendering of another visitor's page."""

    requested: RequestedFormat
    url: str
    charset: str | None
    coding: bytes
    digest: bytes
    guide: Guide | None = None
    whole: str = ""


@dataclass(frozen=True, slots=True)
class Rendering:
    """A page in one of the formats: its bytes, their strong ETag, and the page's canonical address."""

    body: bytes
    etag: bytes
    canonical: bytes

    @property
    def size(self) -> int:
        """Size in the cache, in bytes."""
        return len(self.body) + len(self.canonical) + CACHE_OVERHEAD


class PageRenderer:
    """Renders pages, with an LRU cache of up to `CACHE_BYTES`. Thread-safe.

    The parser is imported with the first page. Needs the extra [pages].
    """

    def __init__(self) -> None:
        self._cache: OrderedDict[RenderKey, Rendering] = OrderedDict()
        self._size = 0
        self._lock = Lock()
        self.on_reading: Callable[[str, str, int, Fields], None] | None = None
        """Called for each page that is read, with its URL, the format, the status and the reader's headers."""

    def cached(self, key: RenderKey) -> Rendering | None:
        with self._lock:
            rendering = self._cache.get(key)
            if rendering is not None:
                self._cache.move_to_end(key)
            return rendering

    def render(self, key: RenderKey, body: bytes) -> Rendering | None:
        """Render a page. Returns None if it cannot be decoded or, which is logged, cannot be rendered."""
        html = _decode(body, key.coding)
        if html is None:
            return None
        try:
            from awp_publish.pages.selectolax import parse

            tree = parse(html, key.charset)
            canonical = _canonical_address(tree, key.url)
            if key.requested.format == "som":
                from awp_publish.pages.selection import Budget
                from awp_publish.pages.som import compile_som

                content = compile_som(tree, key.url, Budget[key.requested.budget.upper()]).dump()
            else:
                from awp_publish.pages.markdown import write_content, write_markdown

                is_all = key.requested.content == "all"
                text = write_markdown(tree, key.url) if is_all else write_content(tree, key.url, key.whole)
                if key.requested.is_file:
                    text = _as_file(text, tree, canonical, key.guide)
                content = text.encode("utf-8", "replace")
            tree.unlink()
            etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'.encode()
            rendering = Rendering(content, etag, canonical.encode("latin-1"))
        except Exception:
            logger.exception("%s could not be rendered as %s", key.url, key.requested.format)
            return None
        if rendering.size <= CACHE_BYTES:
            with self._lock:
                if self._cache.setdefault(key, rendering) is rendering:
                    self._size += rendering.size
                while self._size > CACHE_BYTES:
                    self._size -= self._cache.popitem(last=False)[1].size
        return rendering


def _decode(body: bytes, coding: bytes) -> bytes | None:
    """Decode a content coding. Returns None for an unknown or broken one, and if the result would be too large."""
    windows = WINDOWS.get(coding)
    if not windows:
        return body if windows is not None and len(body) <= MAX_PAGE_BYTES else None
    for window in windows:
        unpacked, rest = bytearray(), body
        try:
            for _ in range(MAX_MEMBERS + 1):
                if not rest:
                    return bytes(unpacked)
                engine = zlib.decompressobj(window)
                unpacked += engine.decompress(rest, MAX_PAGE_BYTES + 1 - len(unpacked))
                if len(unpacked) > MAX_PAGE_BYTES or not engine.eof:
                    break
                # A gzip body may consist of several members (RFC 1952 section 2.2).
                rest = engine.unused_data if window == _GZIP else b""
        except zlib.error:
            continue
    return None


def _as_file(text: str, tree: "Tree", canonical: str, guide: Guide | None) -> str:
    """Return self-contained Markdown: front matter, a link to llms.txt, the page, and a link to the sitemap."""
    from awp_publish.pages.tree import read_title

    metas = {node.attributes.get("name", "").lower(): node for node in tree.tagged("meta")}
    described = metas["description"].attributes.get("content", "") if "description" in metas else ""
    facts = {
        "title": " ".join((read_title(tree) or (guide.title if guide else "")).split()),
        "description": " ".join((described or (guide.description if guide else "")).split()),
        "canonical": canonical,
        "doc_version": guide.version if guide else None,
        "last_updated": guide.updated if guide else None,
    }
    lines = ["---", *(f"{name}: {_yaml(value)}" for name, value in facts.items() if value), "---", ""]
    if guide is not None and guide.llms_txt:
        lines += [f"> All actions and pages of this site: {guide.llms_txt}", ""]
    lines.append(text.rstrip("\n"))
    if guide is not None and guide.sitemap:
        lines += ["", "## Sitemap", "", f"[All pages]({guide.sitemap})"]
    return "\n".join(lines) + "\n"


def _yaml(value: str) -> str:
    return orjson.dumps(value).decode()


def _canonical_address(tree: "Tree", url: str) -> str:
    """Return the canonical URL (RFC 6596) from a page's head, quoted for a header, otherwise the page's own URL."""
    for node in tree.head.children if tree.head is not None else ():
        if node.tag == "link" and "canonical" in node.attributes.get("rel", "").lower().split():
            try:
                address = urljoin(url, node.attributes.get("href", "").strip())
            except ValueError:
                return url
            return quote(address, safe=PLAIN) if address.startswith(("http://", "https://")) else url
    return url
