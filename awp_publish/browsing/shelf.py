"""`PageCache`: parsed and compiled pages, made anew whenever they are asked for and not at hand.

Sessions share one: many of them look at the same few pages. It is bounded, so idle sessions cost their bytes only.
"""

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from threading import Lock

from awp_publish.browsing.elements import elements_of
from awp_publish.browsing.markup import Markup, Place, read_markup
from awp_publish.browsing.page import Page
from awp_publish.model import JsonObject
from awp_publish.pages.selectolax import parse
from awp_publish.pages.som import Budget, Som, compile_som
from awp_publish.pages.tree import Tree


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
