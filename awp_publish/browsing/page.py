"""`Page`: an answer of the site as a session keeps it: where it came from, its HTML, nothing that can be made anew."""

import html
import re
from collections import OrderedDict
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from threading import Lock
from typing import Final, NoReturn, TypeAlias

from awp_publish.browsing.addresses import Address
from awp_publish.browsing.errors import AwpError
from awp_publish.browsing.markup import Markup, Place, read_markup
from awp_publish.model import JsonObject
from awp_publish.pages.selectolax import parse
from awp_publish.pages.som import Budget, Som, compile_som
from awp_publish.pages.tree import Tree

# --- What a session asks for and what it is given: the whole of its outside world ---


@dataclass(frozen=True, slots=True)
class Fetch:
    """One request to this site.

    `path` is the request target in origin form: path and query, percent-encoded, as the address has it (a mounted
    site's prefix included). `headers` have lower-case names, `host` first, then those of a browser, `cookie` and
    `content-type`; no `content-length`. `origin` (`https://shop.example`) says which of the site's origins is meant.
    Redirects are not to be followed: the session does it.
    """

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = field(repr=False)
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What the site answered: the status, all headers in order (`set-cookie` as often as it came), the whole body."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes = field(repr=False)


Steps: TypeAlias = Generator[Fetch, Fetched, JsonObject]
"""A method under way. Closing it (because time is up, or nobody waits) leaves the page as it was before."""


# --- Walking over the regions and elements of a SOM document ---


def regions_of(document: JsonObject) -> list[JsonObject]:
    """The regions of a document."""
    return _objects(document.get("regions"))


def elements_of(document: JsonObject) -> Iterator[JsonObject]:
    """Every element of a SOM document in document order, those of shadow roots after their hosts."""
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
_EXCERPT: Final = 500


@dataclass(frozen=True, slots=True)
class Page:
    """A loaded page. `html` is what is parsed, `html_bytes` the length of what the site sent.

    `charset` is the one of the answer's header, None where it says none. `digest` identifies the content.
    """

    address: Address
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


def read_page(fetched: Fetched, address: Address, method: str, largest: int) -> Page:
    """The page that an answer is.

    Text and JSON become a page of one preformatted text, as browsers show them.

    Raises:
        AwpError: NAVIGATION_FAILED for what is not a page: an error without an HTML body (MVP 4.4), a download, a
            picture, a body that is larger than allowed, or compressed.
    """
    content_type = header_of(fetched.headers, "content-type") or _sniff(fetched.body)
    media_type = content_type.partition(";")[0].strip().lower()
    if header_of(fetched.headers, "content-encoding").strip().lower() not in ("", "identity"):
        _fail("The answer is compressed, which nobody asked for", fetched, address, content_type)
    if len(fetched.body) > largest:
        _fail(f"The answer is larger than {largest} bytes", fetched, address, content_type)
    if header_of(fetched.headers, "content-disposition").strip().lower().startswith("attachment"):
        _fail("The answer is a download, and downloads are not kept", fetched, address, content_type)
    found = _CHARSET.search(content_type)
    charset = found[1] if found else None
    if media_type in _HTML and (fetched.body or fetched.status < 300):
        body = fetched.body
    elif fetched.status >= 300:
        _fail(f"The site answered {fetched.status} without a page", fetched, address, content_type)
    elif _TEXT.fullmatch(media_type):
        body, charset = _as_html(fetched.body, charset), "utf-8"
    else:
        _fail(f"The answer is {media_type}, which is not a page", fetched, address, content_type)
    digest = blake2b(body, digest_size=16).digest()
    return Page(address, method, fetched.status, content_type, charset, body, len(fetched.body), digest)


def header_of(headers: Sequence[tuple[str, str]], name: str) -> str:
    """The first field of a name, "" for none."""
    return next((value for said, value in headers if said.lower() == name), "")


def _sniff(body: bytes) -> str:
    """What an answer without a type is: HTML if it begins like it (MIME Sniffing 7.1, in short)."""
    start = body.lstrip(b"\xef\xbb\xbf\t\n\f\r ")
    return "text/html" if start[:1] == b"<" or not start else "text/plain"


def _as_html(body: bytes, charset: str | None) -> bytes:
    try:
        text = body.decode(charset or "utf-8", "replace")
    except (LookupError, ValueError):
        text = body.decode("utf-8", "replace")
    return f"<!doctype html><title></title><body><pre>\n{html.escape(text, quote=False)}</pre>".encode(
        "utf-8", "replace"
    )


def _fail(message: str, fetched: Fetched, address: Address, content_type: str) -> NoReturn:
    details: dict[str, object] = {"url": str(address), "status": fetched.status, "content_type": content_type}
    if fetched.status >= 400 and _TEXT.fullmatch(content_type.partition(";")[0].strip().lower()):
        details["body"] = fetched.body[:_EXCERPT].decode("utf-8", "replace")
    raise AwpError("NAVIGATION_FAILED", message, details)


# --- `PageCache`: parsed and compiled pages, made anew whenever they are asked for and not at hand ---
# Sessions share one: many of them look at the same few pages. It is bounded, so idle sessions cost their bytes only.


@dataclass(slots=True)
class Compiled:
    """What is made of a page: its tree, and on demand what a browser knows of it and its SOM in each budget."""

    url: str
    html: bytes = field(repr=False)
    tree: Tree
    soms: dict[Budget, Som] = field(default_factory=dict)
    _markup: Markup | None = None
    _elements: dict[Place, str] | None = None
    _by_id: dict[str, JsonObject] | None = None

    def som(self, budget: Budget) -> Som:
        """The page as its HTML says it. Shared: not to be changed."""
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
        """The id of the SOM element that was made of what is at a place, in the full budget."""
        if self._elements is None:
            places = self.som(Budget.FULL).places
            self._elements = {places[element_id]: element_id for element_id in reversed(list(places))}
        return self._elements

    def element(self, element_id: str | None) -> JsonObject | None:
        """The element of an id in the full budget."""
        if self._by_id is None:
            self._by_id = {str(element["id"]): element for element in elements_of(self.som(Budget.FULL).document)}
        return None if element_id is None else self._by_id.get(element_id)

    def label_of(self, element_id: str | None) -> str | None:
        """What people call an element: its label, else its text."""
        found = self.element(element_id)
        said = None if found is None else found.get("label") or found.get("text")
        return None if said is None else str(said)


class PageCache:
    """The pages last used: at most `pages` of them and about `html_bytes` of HTML, but always the last one.

    It may be used from several threads, so that large pages can be made in one of their own.
    """

    __slots__ = ("_bytes", "_html_bytes", "_kept", "_lock", "_pages")

    def __init__(self, pages: int = 64, html_bytes: int = 1_000_000) -> None:
        self._pages = pages
        self._html_bytes = html_bytes
        self._kept: OrderedDict[tuple[bytes, str, str | None], tuple[Compiled, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def compiled(self, page: Page) -> Compiled:
        """What is made of a page, from the shelf or new."""
        key = (page.digest, page.url, page.charset)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
        compiled = Compiled(page.url, page.html, parse(page.html, page.charset))
        with self._lock:
            if key not in self._kept:
                self._kept[key] = (compiled, len(page.html))
                self._bytes += len(page.html)
                self._shrink()
            return self._kept[key][0]

    def share(self, page: Page) -> Page:
        """The same page upon the bytes that are on the shelf: sessions that look at one page have its HTML once."""
        return replace(page, html=self.compiled(page).html)

    def _shrink(self) -> None:
        while len(self._kept) > 1 and (len(self._kept) > self._pages or self._bytes > self._html_bytes):
            _, (_, size) = self._kept.popitem(last=False)
            self._bytes -= size
