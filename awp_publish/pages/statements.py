"""Reads what a page says it is: by types of schema.org, for previews of links, by date and author. It may be wrong."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from awp_publish.pages.tree import Tree, written_in

_TYPE: Final = re.compile(r"\"@type\"\s*:\s*\[?\s*\"(\w+)\"")
_ARTICLES: Final = ("Article", "BlogPosting")
_MANUAL: Final = "TechArticle"
"""The article of schema.org that is documentation."""

_PUBLISHED: Final = re.compile(r"(?i)published|\bpub\w*date|(?<![a-z])date(?!modified)")
_AUTHORS: Final = frozenset(("author", "article:author"))
_SEVERAL: Final = frozenset(("CollectionPage", "ItemList", "OfferCatalog", "SearchResultsPage"))
"""Types of schema.org that a page of several products has."""

_THREADS: Final = frozenset(("DiscussionForumPosting", "QAPage"))
_ELSE: Final = frozenset(
    (
        *("APIReference", "Book", "CollectionPage", "ContactPage", "Course", "Event", "ItemPage"),
        *("JobPosting", "OfferCatalog", "Product", "ProductGroup", "ProfessionalService"),
        *("SearchResultsPage", "Service", "SoftwareApplication", "TechArticle", "VideoGame", "WebApplication"),
    )
)
"""Types of schema.org that a page has on which one acts."""


@dataclass(frozen=True, slots=True)
class Statements:
    """The types of schema.org that a page names, that for previews (Open Graph), and whether date and author are there.

    `is_dated` is True if the page says in its head when it was published. `address` is its canonical one, or "".
    """

    types: Sequence[str]
    preview: str
    is_dated: bool
    has_author: bool
    address: str

    @property
    def names_article(self) -> bool:
        return any(kind.endswith(_ARTICLES) and kind != _MANUAL for kind in self.types)

    @property
    def is_article(self) -> bool:
        """True if the page says that it is an article: some say so of any page, but not when it was published."""
        return self.names_article or (self.preview == "article" and self.is_dated)

    @property
    def names_other(self) -> bool:
        """True for the types of a page on which one acts: a thread; a product or a service that no article is about."""
        if "product" in self.preview or self.is_thread:
            return True
        return not self.names_article and not _ELSE.isdisjoint(self.types)

    @property
    def is_thread(self) -> bool:
        """True if the page says that it is a thread of posts."""
        return not _THREADS.isdisjoint(self.types)

    @property
    def is_product(self) -> bool:
        """True if the page describes one product: some shops describe anything."""
        return "ProductGroup" in self.types or (self.types.count("Product") == 1 and _SEVERAL.isdisjoint(self.types))


def read_statements(tree: Tree) -> Statements:
    """Return what a page says it is."""
    metas = [tree.attributes[at] for at in tree.find("meta")]
    names = [meta.get("property") or meta.get("name", "") for meta in metas]
    links = [tree.attributes[at] for at in (*tree.find("link"), *tree.find("a"))]
    return Statements(
        types=_types_of(tree),
        preview=next(
            (meta.get("content", "").lower().strip() for meta in metas if meta.get("property") == "og:type"), ""
        ),
        is_dated=any(map(_PUBLISHED.search, names)),
        has_author=not _AUTHORS.isdisjoint(names) or any("author" in link.get("rel", "").split() for link in links),
        address=next((link.get("href", "") for link in links if "canonical" in link.get("rel", "").split()), ""),
    )


def headed_articles(tree: Tree, headings: Sequence[int]) -> list[int]:
    """Return the `<article>` elements in which there is one of the headings."""
    ends = tree.ends
    return [at for at in tree.find("article") if bisect_left(headings, at) < bisect_left(headings, ends[at])]


def _types_of(tree: Tree) -> list[str]:
    marked = (tree.attributes[at].get("itemtype", "").rstrip("/") for at in (0, tree.body_at, *tree.find("article")))
    return [name.rpartition("/")[2] for name in marked if name] + [
        found
        for at in tree.find("script")
        if tree.attributes[at].get("type", "").strip().lower() == "application/ld+json"
        for found in _TYPE.findall(written_in(tree, at))
    ]
