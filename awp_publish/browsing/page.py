"""Requests of a session, the site's answers to them, and the pages that are made of answers."""

import html
import re
from collections import OrderedDict
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from threading import Lock
from typing import Final, TypeAlias

from awp_publish.browsing.addresses import WebAddress
from awp_publish.browsing.errors import AwpError
from awp_publish.browsing.markup import Markup, Place, parent_of, read_markup
from awp_publish.model import JsonObject
from awp_publish.pages.selectolax import parse
from awp_publish.pages.som import Budget, Som, compile_som
from awp_publish.pages.tree import Tree


@dataclass(frozen=True, slots=True)
class Fetch:
    """One request to this site.

    `path` is the request target in origin form: path and query, percent-encoded, as the address has it (a mounted
    site's prefix included). `headers` have lower-case names, `host` first, then those of a browser, `cookie` and
    `content-type`; no `content-length`. `origin` (`https://shop.example`) is the one of the site's that is meant.
    Redirects are not to be followed: the session does it.
    """

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = field(repr=False)
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Fetched:
    """The site's answer: the status, all headers in order (`set-cookie` as often as it came), the whole body."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes = field(repr=False)


Steps: TypeAlias = Generator[Fetch, Fetched, JsonObject]
"""A method under way. Closing it (because time is up, or nobody waits) leaves the page as it was before."""


def regions_of(document: JsonObject) -> list[JsonObject]:
    """Return the regions of a SOM document."""
    return _objects(document.get("regions"))


def elements_of(document: JsonObject) -> Iterator[JsonObject]:
    """Iterate over the elements of a SOM document in document order, those of shadow roots after their hosts."""
    for region in regions_of(document):
        waiting = list(reversed(_objects(region.get("elements"))))
        while waiting:
            element = waiting.pop()
            yield element
            shadow = element.get("shadow")
            inner = _objects(element.get("children"))
            inner += _objects(shadow.get("elements")) if isinstance(shadow, Mapping) else []
            waiting.extend(reversed(inner))


def _objects(value: object) -> list[JsonObject]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


NO_CONTENT: Final = frozenset({204, 205})
_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_TEXT: Final = re.compile(r"text/.*|application/(?:json|xml|javascript|ecmascript|x-ndjson)|.*\+(?:json|xml)")
_CHARSET: Final = re.compile(r";\s*charset\s*=\s*\"?([^\s;\"]+)", re.IGNORECASE)
_MAX_EXCERPT: Final = 500


@dataclass(frozen=True, slots=True)
class LoadedPage:
    """A loaded page. `html` is what is parsed, `html_bytes` the length of what the site sent.

    `charset` is the one of the answer's header, None where it says none. `digest` identifies the content.
    """

    address: WebAddress
    method: str
    status: int
    content_type: str
    charset: str | None
    html: bytes = field(repr=False)
    html_bytes: int
    digest: bytes = field(repr=False)

    @property
    def url(self) -> str:
        """The address of the document, without a fragment: two places of one page are one page."""
        return self.address.document


def read_page(fetched: Fetched, address: WebAddress, method: str, max_bytes: int) -> LoadedPage:
    """Make a page of an answer. Text and JSON become one preformatted text, as browsers show them.

    Raises:
        AwpError: NAVIGATION_FAILED for what is not a page: an error without an HTML body (MVP 4.4), a download, a
            picture, a body that is larger than allowed, or compressed.
    """
    body, status = fetched.body, fetched.status
    content_type = header_of(fetched.headers, "content-type")
    if not content_type:  # what begins like HTML is HTML (MIME Sniffing 7.1, in short)
        start = body.lstrip(b"\xef\xbb\xbf\t\n\f\r ")
        content_type = "text/html" if start[:1] == b"<" or not start else "text/plain"
    media_type = content_type.partition(";")[0].strip().lower()
    is_text, is_html = _TEXT.fullmatch(media_type) is not None, media_type in _HTML and (body or status < 300)
    charset_found = _CHARSET.search(content_type)
    charset = charset_found[1] if charset_found else None
    problem = None
    if header_of(fetched.headers, "content-encoding").strip().lower() not in ("", "identity"):
        problem = "The answer is compressed, which nobody asked for"
    elif len(body) > max_bytes:
        problem = f"The answer is larger than {max_bytes} bytes"
    elif header_of(fetched.headers, "content-disposition").strip().lower().startswith("attachment"):
        problem = "The answer is a download, and downloads are not kept"
    elif not is_html and status >= 300:
        problem = f"The site answered {status} without a page"
    elif not is_html and not is_text:
        problem = f"The answer is {media_type}, which is not a page"
    if problem is not None:
        details: dict[str, object] = {"url": str(address), "status": status, "content_type": content_type}
        if status >= 400 and is_text:
            details["body"] = body[:_MAX_EXCERPT].decode("utf-8", "replace")
        raise AwpError("NAVIGATION_FAILED", problem, details)
    if not is_html:
        text = html.escape(decode(body, content_type), quote=False)
        shown = f"<!doctype html><title></title><body><pre>\n{text}</pre>"
        body, charset = shown.encode("utf-8", "replace"), "utf-8"
    digest = blake2b(body, digest_size=16).digest()
    return LoadedPage(address, method, status, content_type, charset, body, len(fetched.body), digest)


def decode(body: bytes, content_type: str) -> str:
    """Return a body as text, in the charset of its media type where there is one of that name, else as UTF-8."""
    charset = _CHARSET.search(content_type)
    try:
        return body.decode(charset[1] if charset else "utf-8", "replace")
    except (LookupError, ValueError):
        return body.decode("utf-8", "replace")


def header_of(headers: Sequence[tuple[str, str]], name: str) -> str:
    """Return the first header of a name, "" for none."""
    return next((value for said, value in headers if said.lower() == name), "")


# --- Parsed and compiled pages, made anew whenever they are needed and not at hand ---
# Sessions share them: many look at the same few pages. The cache is bounded, so idle sessions cost their bytes only.


@dataclass(slots=True)
class Compiled:
    """A parsed page: its tree, and on demand its SOM in each budget and the parts that a browser acts with."""

    url: str
    html: bytes = field(repr=False)
    tree: Tree
    soms: dict[Budget, Som] = field(default_factory=dict)
    _markup: Markup | None = None
    _elements: dict[Place, str] | None = None
    _by_id: dict[str, JsonObject] | None = None
    _last_inside: dict[Place, Place] | None = None

    def som(self, budget: Budget) -> Som:
        """Return the page as its HTML says it. Shared: not to be changed."""
        if budget not in self.soms:
            self.soms[budget] = compile_som(self.tree, self.url, budget)
        return self.soms[budget]

    @property
    def markup(self) -> Markup:
        """Controls, forms and labels."""
        if self._markup is None:
            self._markup = read_markup(self.tree)
        return self._markup

    @property
    def elements(self) -> dict[Place, str]:
        """The id of the SOM element that was made of what is at a place, in the full budget; the last place first."""
        if self._elements is None:
            places = self.som(Budget.FULL).places
            self._elements = {places[element_id]: element_id for element_id in reversed(list(places))}
        return self._elements

    @property
    def last_inside(self) -> dict[Place, Place]:
        """The place of the last element inside of a place, for every place that has one."""
        if self._last_inside is None:
            self._last_inside = {}
            for place in self.elements:
                outer = parent_of(place)
                while outer and outer not in self._last_inside:
                    self._last_inside[outer] = place
                    outer = parent_of(outer)
        return self._last_inside

    def element(self, element_id: str | None) -> JsonObject | None:
        """Return the element of an id in the full budget."""
        if self._by_id is None:
            self._by_id = {str(element["id"]): element for element in elements_of(self.som(Budget.FULL).document)}
        return None if element_id is None else self._by_id.get(element_id)

    def label_of(self, element_id: str | None) -> str | None:
        """Return the label that people see of an element, else its text."""
        found = self.element(element_id)
        label = None if found is None else found.get("label") or found.get("text")
        return None if label is None else str(label)


class PageCache:
    """The pages last used: at most `max_pages` of them and about `max_bytes` of HTML, but always the last one.

    It may be used from several threads, so that large pages can be made in one of their own.
    """

    __slots__ = ("_bytes", "_lock", "_max_bytes", "_max_pages", "_pages")

    def __init__(self, max_pages: int = 64, max_bytes: int = 1_000_000) -> None:
        self._max_pages = max_pages
        self._max_bytes = max_bytes
        self._pages: OrderedDict[tuple[bytes, str, str | None], tuple[Compiled, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def compiled(self, page: LoadedPage) -> Compiled:
        """Return what is made of a page, from the cache or new."""
        key = (page.digest, page.url, page.charset)
        with self._lock:
            if key in self._pages:
                self._pages.move_to_end(key)
                return self._pages[key][0]
        compiled = Compiled(page.url, page.html, parse(page.html, page.charset))
        with self._lock:
            if key not in self._pages:
                self._pages[key] = (compiled, len(page.html))
                self._bytes += len(page.html)
                while len(self._pages) > 1 and (len(self._pages) > self._max_pages or self._bytes > self._max_bytes):
                    _, (_, size) = self._pages.popitem(last=False)
                    self._bytes -= size
            return self._pages[key][0]

    def share(self, page: LoadedPage) -> LoadedPage:
        """Return the same page upon the bytes in the cache: sessions that look at one page have its HTML once."""
        return replace(page, html=self.compiled(page).html)
