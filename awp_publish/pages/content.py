"""Finds the main content of a page by the mass of its text and by its landmarks, never by words in class names.

A page is searched for the text that predominates (`texts`), for a list of cards (`listings`) and for a product with its
price and controls (`offers`). How sure it is that the page is an article (`certainty`) decides how sharply it is cut. A
certain article loses blocks that are mostly links, and what is beside its parts unless it is like them (`trimming`).
Anything else is also acted upon. It loses only the landmarks beside it and, if the page does not say where its `<main>`
is, menus (`pruning`): threads keep their answers, documentation its contents, services their offers.

A list is the content if its cards have prices or outweigh the text beside them. What is no text, list or product (a
form, a basket) has what its `<main>` has, or everything.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from awp_publish.pages.certainty import CERTAIN, is_thread, weigh_signs
from awp_publish.pages.listings import MIN_CARDS, CardList, find_listing
from awp_publish.pages.masses import Masses, enclose, weigh
from awp_publish.pages.offers import Offer, find_offer
from awp_publish.pages.pruning import Pruning
from awp_publish.pages.statements import read_statements
from awp_publish.pages.texts import (
    MIN_ARTICLE,
    Text,
    find_article,
    find_text,
    with_heading,
    with_posts,
    with_question,
    with_title,
)
from awp_publish.pages.tree import Tree
from awp_publish.pages.trimming import symbols_in, trim_article, with_labels
from awp_publish.pages.visibility import Visibility

_OUTSIDE: Final = frozenset(("footer", "header", "nav"))
_OUTSIDE_ROLES: Final = frozenset(("banner", "contentinfo", "navigation"))
"""Landmarks that are not part of the content of a page without a predominant text."""

_NEARLY_ALL: Final = 8
"""If the page has so many times the text of its `<main>`, its content is not there."""

_FIELD: Final = 150
"""Characters of sentences for each field up to which a text is that of a form."""

_OF_ARTICLE: Final = 0.125
_PREDOMINANT: Final = 0.5
"""The part of the sentences that a text has at least to be the content of a certain article, and of other pages."""

_MENU: Final = 10
"""If a block of links on a page without list and text has a larger part than one in so many, it is the content."""

_ITEMS: Final = 4
"""Items that a list has at least."""

_SEVERAL: Final = 6
"""Cards without prices that are a list of links at least."""

_MANY: Final = 40
"""Cards with pictures and titles that are links from which they are a list, however long the text beside it is."""

_PARAGRAPH: Final = 80
"""Characters of a paragraph below the heading of a page that introduces what follows."""

_ACTIONS: Final = 60
"""Characters beside a heading that are what one may do with the page: "Ask a question"."""

_OUTWEIGHED: Final = 0.6
"""Characters of sentences for each of a list up to which a text is about the list."""


@dataclass(frozen=True, slots=True)
class MainContent:
    """The main content of a page.

    `node` is the element that has it, the body if there is no other; `left_out` are elements in it that are no part of
    it. `is_article` is True for a predominant text, `is_certain` if the page is certainly an article; `is_chosen` also
    for a list or a product: its element is the main region. `before` are elements before it that introduce it: the way
    to the page from the first one, and the heading with a paragraph. `around` has the elements around the content and
    those with most of the page's text: none of them is only a header, a navigation or an aside, whatever its class
    says.
    """

    node: int
    left_out: frozenset[int]
    around: frozenset[int]
    is_article: bool = False
    is_chosen: bool = False
    is_certain: bool = False
    before: tuple[int, ...] = ()


def find_content(tree: Tree, visibility: Visibility, address: str = "") -> MainContent:
    """Return the main content of a page, which is never empty if the page has text."""
    masses = weigh(tree, visibility)
    pruning = Pruning(tree, masses, address)
    content = _find(tree, visibility, masses, pruning, address)
    if content.is_certain:
        return content
    before = tuple(sorted({*_trail(tree, masses, content.node, pruning), *_introduction(tree, masses, content.node)}))
    return replace(content, left_out=content.left_out.union(*map(pruning.landmarks, before)), before=before)


def _introduction(tree: Tree, masses: Masses, node: int) -> Iterator[int]:
    """Yield the element beside the content and before it that has the page's heading, if it says little or much more.

    Little is what one may do with the page, much a paragraph about it.
    """
    heading = next(iter(masses.headings), node)
    if heading >= node or any(at <= heading < tree.ends[at] for at in masses.beside):
        return
    around, block = enclose(tree, heading, node), heading
    while tree.parents[block] != around:
        block = tree.parents[block]
    end = tree.ends[block]
    is_said = any(block <= at < end and masses.own_marks[at] and masses.own[at] >= _PARAGRAPH for at in masses.blocks)
    is_small = masses.chars[block] <= masses.chars[heading] + _ACTIONS
    if is_small or (is_said and masses.links[block] * 2 < masses.chars[block]):
        yield block


def _trail(tree: Tree, masses: Masses, node: int, pruning: Pruning) -> Iterator[int]:
    """Yield the last element before the content if it is the way to the page from the first one of the site."""
    while node > tree.body_at:
        around = tree.parents[node]
        before = [at for at in tree.children(around) if at < node and masses.chars[at]]
        if before:
            if before[-1] not in masses.beside and pruning.leads_here(before[-1]):
                yield before[-1]
            return
        node = around


def _find(tree: Tree, visibility: Visibility, masses: Masses, pruning: Pruning, address: str) -> MainContent:
    statements = read_statements(tree)
    whole, text = _landmark(tree, masses), find_text(tree, masses)
    listing = find_listing(tree, masses, whole)
    offer = find_offer(tree, masses, statements, whole, listing)
    is_list = listing is not None and _is_list(tree, masses, listing, text.node)
    signs = weigh_signs(visibility, masses, statements, address, text.node, is_list=is_list, is_offer=offer is not None)
    is_certain = signs >= CERTAIN
    if is_certain:
        text = find_article(tree, masses)
    elif listing is not None and is_list and not (offer and offer.end < listing.cards[0] and statements.is_product):
        return _of_list(tree, masses, whole, listing, pruning)
    if offer is not None:
        return _of_offer(tree, masses, whole, text.node, offer, listing, pruning)
    if _is_scarce(tree, masses, whole, text.node, is_certain=is_certain):
        return _of_whole(tree, masses, whole, text.node, pruning)
    if is_certain:
        return _of_article(tree, masses, whole, text)
    node = with_posts(tree, masses, whole, text.node) if is_thread(statements, address) else text.node
    return _of_text(tree, masses, whole, node, pruning)


def _is_scarce(tree: Tree, masses: Masses, whole: int, text: int, *, is_certain: bool) -> bool:
    """Return True if a text is too short to be the content of its page: beside other texts, or for its fields."""
    page = masses.chars[whole] - masses.links[whole]
    fields = sum(text <= field < tree.ends[text] for field in masses.fields)
    least = max(MIN_ARTICLE, page * (_OF_ARTICLE if is_certain else _PREDOMINANT), fields * _FIELD)
    return masses.chars[text] - masses.links[text] < least


def _of_article(tree: Tree, masses: Masses, whole: int, text: Text) -> MainContent:
    article = with_heading(tree, masses, whole, text.node)
    left_out = trim_article(tree, masses, text, article)
    return _of_sentences(tree, masses, article, left_out, is_certain=True)


def _of_text(tree: Tree, masses: Masses, whole: int, text: int, pruning: Pruning) -> MainContent:
    text = with_heading(tree, masses, whole, with_question(tree, masses, whole, text))
    if whole != tree.body_at and whole < text < tree.ends[whole]:
        prices = sum(whole < at < tree.ends[whole] and not text < at < tree.ends[text] for at in masses.prices)
        if prices >= _ITEMS:
            text = whole  # it is about something that is sold beside it
    left_out = pruning.landmarks(text)
    if (around := with_title(tree, masses, whole, text)) != text:
        left_out |= pruning.landmarks(around, text, tree.ends[text] - 1)
        left_out |= {at for level in _beside(tree, around, text) for at in level if at > text}
        text = around
    return _of_sentences(tree, masses, text, left_out, is_certain=False)


def _of_sentences(tree: Tree, masses: Masses, node: int, left_out: set[int], *, is_certain: bool) -> MainContent:
    left_out = {at for at in left_out | symbols_in(tree, masses, node) if node < at < tree.ends[node]}
    return MainContent(
        node,
        with_labels(tree, masses, node, left_out),
        _holders(tree, masses, node),
        is_article=True,
        is_chosen=True,
        is_certain=is_certain,
    )


def _of_whole(tree: Tree, masses: Masses, whole: int, text: int, pruning: Pruning) -> MainContent:
    sentences = masses.chars[text] - masses.links[text]
    if sentences > max(MIN_ARTICLE, masses.chars[whole]) and not whole <= text < tree.ends[whole]:
        whole = tree.body_at
    heading = next(iter(masses.headings), whole)
    menu = masses.chars[whole] // _MENU if whole == tree.body_at else 0
    others = pruning.leading_elsewhere(whole, heading, heading, menu)
    return MainContent(whole, with_labels(tree, masses, whole, others), _holders(tree, masses, whole))


def _is_list(tree: Tree, masses: Masses, listing: CardList, article: int) -> bool:
    """Return True if a page is made of a list: of cards with prices, or of what outweighs the text beside them."""
    if listing.priced >= max(MIN_CARDS, len(listing.cards) / 3) or min(listing.titled, listing.shown) >= _MANY:
        return True
    if (
        len(listing.cards) < _SEVERAL
        or not listing.leads_away
        or 2 * max(listing.titled, listing.shown) < len(listing.cards)
    ):
        return False
    inner = sum(masses.chars[at] - masses.links[at] for at in listing.cards if article <= at < tree.ends[article])
    return masses.chars[article] - masses.links[article] - inner < _OUTWEIGHED * listing.chars


def _of_list(tree: Tree, masses: Masses, whole: int, listing: CardList, pruning: Pruning) -> MainContent:
    node, heading = whole, next(iter(masses.headings), listing.node)
    if whole == tree.body_at:
        node = pruning.with_filters(_clear_of_landmarks(tree, masses, enclose(tree, listing.node, heading)))
    menu = masses.chars[node] if whole == tree.body_at else 0
    left_out = pruning.leading_elsewhere(node, min(heading, listing.cards[0]), listing.cards[-1], menu)
    parts = with_labels(tree, masses, node, left_out)
    return MainContent(node, parts, is_chosen=node != tree.body_at, around=frozenset(_above(tree, node)))


def _of_offer(
    tree: Tree, masses: Masses, whole: int, article: int, offer: Offer, listing: CardList | None, pruning: Pruning
) -> MainContent:
    others = set[int]()
    if listing is not None and listing.leads_away and listing.node > offer.end and listing.priced:
        others.add(listing.node)
    is_about = masses.chars[article] >= MIN_ARTICLE and whole <= article < tree.ends[whole]
    if not is_about or any(at <= article < tree.ends[at] for at in others):
        article = offer.node
    node = enclose(tree, offer.node, article)
    if article == offer.node or node == tree.body_at:  # no text is about it
        node = whole if whole != tree.body_at else _clear_of_landmarks(tree, masses, offer.node)
    others |= pruning.landmarks(node, offer.start, offer.end)
    parts = with_labels(tree, masses, node, others)
    return MainContent(node, parts, is_chosen=node != tree.body_at, around=frozenset(_above(tree, node)))


def _clear_of_landmarks(tree: Tree, masses: Masses, node: int) -> int:
    """Return the largest element around a node in which there is no header or footer of the page."""
    outside = [at for at in masses.beside if tree.tags[at] != "nav" and _is_outside(tree, at)]
    while (around := tree.parents[node]) > tree.body_at and not any(around < at < tree.ends[around] for at in outside):
        node = around
    return node


def _above(tree: Tree, node: int) -> Iterator[int]:
    while (node := tree.parents[node]) >= 0:
        yield node


def _holders(tree: Tree, masses: Masses, node: int) -> frozenset[int]:
    """Return the elements around the content, and those that have more than half of the page's text."""
    found = set(_above(tree, node))
    inner: int | None = tree.body_at
    half = masses.chars[tree.body_at] / 2
    while inner is not None and half >= MIN_ARTICLE / 2:
        found.add(inner)
        inner = next((at for at in tree.children(inner) if masses.chars[at] > half and at not in masses.beside), None)
    return frozenset(found)


def _beside(tree: Tree, around: int, inner: int) -> Iterator[list[int]]:
    """Yield the elements beside one, and beside those around it, within an outer element."""
    while inner != around:
        parent = tree.parents[inner]
        yield [at for at in tree.children(parent) if at != inner and tree.tags[at]]
        inner = parent


def _landmark(tree: Tree, masses: Masses) -> int:
    """Return the `<main>`, or the body if there is none or it has next to nothing of the page."""
    main, chars = masses.main, masses.chars
    is_large = 0 < chars[tree.body_at] <= chars[main] * _NEARLY_ALL
    has_fields = any(main < field < tree.ends[main] for field in masses.fields)
    return main if main >= 0 and (is_large or has_fields) else tree.body_at


def _is_outside(tree: Tree, at: int) -> bool:
    role = tree.attributes[at].get("role", "").strip().lower()
    return role in _OUTSIDE_ROLES or (not role and tree.tags[at] in _OUTSIDE)
