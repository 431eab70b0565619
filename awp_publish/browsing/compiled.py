"""Parsed and compiled pages, made on demand and cached.

Sessions share them, because many observe the same few pages. The cache is limited, so idle sessions cost only bytes.
"""

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock

from awp_publish.browsing.controls import with_controls
from awp_publish.browsing.markup import Markup, Place, parent_of, read_markup
from awp_publish.browsing.page import LoadedPage
from awp_publish.browsing.som_elements import elements_of
from awp_publish.pages.selection import Budget
from awp_publish.pages.selectolax import parse
from awp_publish.pages.som import Som, compile_som
from awp_publish.pages.tree import Tree
from awp_publish.schema import JsonObject


@dataclass
class Compiled:
    """A parsed page: its tree, and on demand its SOM in each budget and its markup."""

    url: str
    html: bytes = field(repr=False)
    tree: Tree
    soms: dict[Budget, Som] = field(default_factory=dict)
    _observed: dict[Budget, Som] = field(default_factory=dict, repr=False)

    def som(self, budget: Budget) -> Som:
        """Return the SOM of the page's HTML. It is shared and must not be modified."""
        if budget not in self.soms:
            self.soms[budget] = compile_som(self.tree, self.url, budget)
        return self.soms[budget]

    def observed(self, budget: Budget) -> Som:
        """Return the SOM that agents observe: in every budget it has all controls of the page."""
        if budget not in self._observed:
            self._observed[budget] = with_controls(self.som(budget), self.som(Budget.FULL))
        return self._observed[budget]

    @cached_property
    def markup(self) -> Markup:
        """Controls, forms and labels."""
        return read_markup(self.tree)

    @cached_property
    def elements(self) -> dict[Place, str]:
        """The id of the element (in the full budget) made from the node at each place, the last place first."""
        places = self.som(Budget.FULL).places
        return {places[element_id]: element_id for element_id in reversed(list(places))}

    @cached_property
    def last_inside(self) -> dict[Place, Place]:
        """The place of the last element inside of each place."""
        labels: dict[Place, Place] = {}
        for place in self.elements:
            outer = parent_of(place)
            while outer and outer not in labels:
                labels[outer] = place
                outer = parent_of(outer)
        return labels

    @cached_property
    def by_id(self) -> dict[str, JsonObject]:
        """The elements by id, in the full budget."""
        return {str(element["id"]): element for element in elements_of(self.som(Budget.FULL).document)}

    def label_of(self, element_id: str | None) -> str | None:
        """Return the visible label of an element, or its text."""
        element = self.by_id.get(element_id or "", {})
        label = element.get("label") or element.get("text")
        return None if label is None else str(label)


class PageCache:
    """The most recently used pages: at most `max_pages` and about `max_bytes` of HTML, but always the last one.

    It is thread-safe, so that large pages can be compiled in another thread.
    """

    __slots__ = ("_bytes", "_lock", "_max_bytes", "_max_pages", "_pages")

    def __init__(self, max_pages: int = 64, max_bytes: int = 1_000_000) -> None:
        self._max_pages = max_pages
        self._max_bytes = max_bytes
        self._pages: OrderedDict[tuple[bytes, str, str | None], tuple[Compiled, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def compiled(self, page: LoadedPage) -> Compiled:
        """Return the compiled page, from the cache or new."""
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
        """Return the page with the HTML object in the cache, so that sessions with the same page share it."""
        return replace(page, html=self.compiled(page).html)
