"""Finds the main content of a page by the mass of its text and by its landmarks, never by words in class names.

Most of the text of an article is sentences that are not links. Each block of such text scores for the elements around
it, the nearest ones most. The element with the best score is the article, or a part of one that is made of several
blocks; then the elements around it are tried while they add sentences and few links. Blocks that are mostly links are
left out of it, and what is beside its parts, unless it is like them: the posts of a thread.

That is so of a page that says that it is an article. Of any other text only menus are left out (`pruning`), and if it
has less than most of the `<main>`, it is a part of that: a thread or a service is also acted upon. Other pages are
searched first for a list of cards that have prices or outweigh the text beside them, then for a product with its price
and controls. What is none of these (a form, a basket) has what its `<main>` has, or everything, without menus.
"""

from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Final

from awp_publish.pages.listings import MIN_CARDS, CardList, find_listing
from awp_publish.pages.masses import Masses, enclose, lineage, weigh
from awp_publish.pages.offers import Offer, find_offer, headed_articles, says_article, says_product
from awp_publish.pages.pruning import Pruning
from awp_publish.pages.tree import Tree
from awp_publish.pages.visibility import Visibility

MIN_ARTICLE: Final = 400
"""Characters of sentences that an article has at least."""

MIN_BLOCK: Final = 25
"""Characters from which the text of a block counts."""

_OUTSIDE: Final = frozenset(("footer", "header", "nav"))
_OUTSIDE_ROLES: Final = frozenset(("banner", "contentinfo", "navigation"))
"""Landmarks that are not part of the content of a page without a predominant text."""

HEADINGS: Final = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_UNCOUNTED: Final = HEADINGS | {"dt", "figcaption", "li"}
"""Blocks whose text says little about where the article is."""

_PARAGRAPHS: Final = frozenset(("blockquote", "p", "pre", "td"))
"""Blocks that score for what is around them, not for themselves."""

_LISTS: Final = frozenset(("dl", "menu", "ol", "table", "tbody", "ul"))
_KEPT: Final = frozenset(
    (
        "blockquote",
        "caption",
        "dd",
        "dl",
        "dt",
        "figcaption",
        "figure",
        "p",
        "pre",
        "table",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "tr",
    )
)
"""Blocks and parts of blocks that stay with what they are beside of."""

_LINKED: Final = frozenset(("article", "div", "dl", "ol", "p", "section", "ul"))
"""Blocks that are left out of an article if they are mostly links."""

_SHARES: Final = (1.0, 0.5, 0.17)
"""What a block scores for the three elements around it, the nearest first."""

_NEARLY_ALL: Final = 8
"""If the page has so many times the text of its `<main>`, its content is not there."""

_FIELD: Final = 150
"""Characters of sentences for each field up to which a text is that of a form."""

_ENOUGH: Final = 0.6
"""The part of a page's text with which an element is the whole article, if the page says that it is one."""

_PARAGRAPH: Final = 80
"""Characters that a paragraph has at least, and the half of what stands between a heading and its text."""

_ADDED: Final = 0.2
"""What an element around has to add to what was found, as a part of that."""

_MAX_LINKS: Final = 0.3
"""The part of an added text that may be links."""

_SAID: Final = 0.125
_PREDOMINANT: Final = 0.5
"""The part of the sentences that a text has at least to be the content of a page that says it is one, and of others."""

_MENU: Final = 10
"""If a block of links on a page without list and text has a larger part than one in so many, it is the content."""

_PART: Final = 30
"""If a block of links among paragraphs has a larger part of the page than one in so many, it belongs to them."""

_ITEMS: Final = 4
"""Items that a list has at least."""

_SEVERAL: Final = 6
"""Cards without prices that are a list of links at least."""

_MANY: Final = 40
"""Cards with pictures and titles that are links from which they are a list, however long the text beside it is."""

_OUTWEIGHED: Final = 0.6
"""Characters of sentences for each of a list up to which a text is about the list."""

_SMALL: Final = 0.12
"""The part of the text before it up to which a block unlike it is no part of an article."""

_APPENDED: Final = frozenset(("aside", "div", "section"))
_MAX_LABEL: Final = 30
"""Characters of a text that is no more than the label of what is beside it: "Share"."""

_MAX_HEADINGS: Final = 3
"""Headings whose sections are left out; more of them are what an article is made of."""

_SAYS: Final = HEADINGS | {
    *("audio", "button", "canvas", "iframe", "img", "input", "math", "object", "picture", "select"),
    *("table", "textarea", "video"),
}
"""Elements that say something without text."""

_MOSTLY_LINKS: Final = 0.33
_MOSTLY_LINKS_P: Final = 0.6
_HELD: Final = 0.5
"""The part of an article's sentences with which a block is the article, however many links are in it."""

_MARKED: Final = 40
"""Characters for each mark up to which a text is sentences."""

_HEADED: Final = 2.0
_LISTED: Final = 0.3
"""Factors of the score: beside the page's only `h1`, a list."""


class _Levels:
    """Levels of elements that are looked at: around the `h1`, up to these, to an `h1`, around what is left out."""

    heading: Final = 3
    headed: Final = 12
    out: Final = 2
    near: Final = 3


@dataclass(frozen=True, slots=True)
class MainContent:
    """The main content of a page.

    `node` is the element that has it, the body if there is no other; `left_out` are elements in it that are no part of
    it. `is_article` is True for a predominant text, `is_chosen` also for a list or a product: its element is the main
    region. `around` has the elements around the content and those with most of the page's text: none of them is only a
    header, a navigation or an aside, whatever its class says.
    """

    node: int
    left_out: frozenset[int]
    around: frozenset[int]
    is_article: bool = False
    is_chosen: bool = False


def find_content(tree: Tree, visibility: Visibility, address: str = "") -> MainContent:
    """Return the main content of a page, which is never empty if the page has text."""
    body = tree.body_at
    masses = weigh(tree, visibility)
    pruning = Pruning(tree, masses, address)
    whole = _landmark(tree, masses)
    is_said = says_article(tree)
    top = _marked(tree, masses) if is_said else body
    found = _best(tree, masses, top)
    article = _around(tree, masses, found, top, is_said)
    listing = find_listing(tree, masses, whole)
    offer = find_offer(tree, masses, whole, listing)
    if (
        listing is not None
        and not is_said
        and _is_list(tree, masses, listing, article)
        and not (offer is not None and offer.end < listing.cards[0] and says_product(tree))
    ):
        return _of_list(tree, masses, whole, listing, pruning)
    sentences = masses.chars[article] - masses.links[article]
    page = masses.chars[whole] - masses.links[whole]
    fields = sum(article <= field < tree.ends[article] for field in masses.fields)
    is_scarce = sentences < max(MIN_ARTICLE, page * (_SAID if is_said else _PREDOMINANT), fields * _FIELD)
    if offer is not None:
        return _of_offer(tree, masses, whole, article, offer, listing, pruning)
    if is_scarce:
        if sentences > max(MIN_ARTICLE, masses.chars[whole]) and not whole <= article < tree.ends[whole]:
            whole = body
        heading = next(iter(masses.headings), whole)
        others = pruning.leading_elsewhere(whole, heading, heading, masses.chars[whole] // _MENU)
        return MainContent(whole, _with_labels(tree, masses, whole, others), around=_holders(tree, masses, whole))
    article = article if is_said else _with_question(tree, masses, whole, article)
    article = _with_heading(tree, masses, whole, article)
    if not is_said and whole != body and whole < article < tree.ends[whole]:
        prices = sum(whole < at < tree.ends[whole] and not article < at < tree.ends[article] for at in masses.prices)
        if prices >= _ITEMS:
            article = whole  # a text about something that is sold beside it
    if is_said:
        left_out = _mostly_links(tree, masses, article)
        left_out |= {at for at in masses.beside if tree.tags[at] != "form" or masses.chars[at] < MIN_ARTICLE}
        left_out |= _siblings(tree, masses, found, article)
    else:
        left_out = pruning.leading_elsewhere(article, -1, -1, None)
        left_out -= _among(tree, masses, article, left_out, masses.chars[whole] // _PART)
        if (around := _with_title(tree, masses, whole, article)) != article:
            left_out |= pruning.leading_elsewhere(around, article, tree.ends[article] - 1, None)
            left_out |= {at for level in _beside(tree, around, article) for at in level if at > article}
            article = around
    left_out |= _symbols(tree, masses, article)
    parts = {at for at in left_out if article < at < tree.ends[article]}
    return MainContent(
        article,
        _with_labels(tree, masses, article, parts),
        is_article=True,
        is_chosen=True,
        around=_holders(tree, masses, article),
    )


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
    left_out = pruning.leading_elsewhere(node, min(heading, listing.cards[0]), listing.cards[-1], masses.chars[node])
    parts = _with_labels(tree, masses, node, left_out)
    return MainContent(node, parts, is_chosen=node != tree.body_at, around=frozenset(_above(tree, node)))


def _of_offer(
    tree: Tree, masses: Masses, whole: int, article: int, offer: Offer, listing: CardList | None, pruning: Pruning
) -> MainContent:
    others = set[int]()
    if listing is not None and listing.leads_away and listing.node > offer.end:
        others.add(listing.node)
    is_about = masses.chars[article] >= MIN_ARTICLE and whole <= article < tree.ends[whole]
    if not is_about or any(at <= article < tree.ends[at] for at in others):
        article = offer.node
    node = enclose(tree, offer.node, article)
    if article == offer.node or node == tree.body_at:  # no text is about it
        node = whole if whole != tree.body_at else _clear_of_landmarks(tree, masses, offer.node)
    others |= pruning.leading_elsewhere(node, offer.start, offer.end, None)
    parts = _with_labels(tree, masses, node, others)
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


def _with_question(tree: Tree, masses: Masses, whole: int, article: int) -> int:
    """Return the element that has a text and the paragraphs between the heading and it: the question of a thread."""
    ends = tree.ends
    heading = next((at for at in masses.headings if whole <= at < article), article)
    paragraphs = [
        at
        for at in masses.blocks
        if ends[heading] <= at
        and ends[at] <= article
        and masses.own_marks[at] > 1
        and masses.own[at] >= _PARAGRAPH
        and not any(beside <= at < ends[beside] for beside in masses.beside)
    ]
    if sum(masses.own[at] for at in paragraphs) < 2 * _PARAGRAPH:
        return article
    around = enclose(tree, paragraphs[0], article)
    return around if whole <= around and masses.links[around] * 2 < masses.chars[around] else article


def _with_heading(tree: Tree, masses: Masses, whole: int, article: int) -> int:
    """Return the element that has an article and the only `h1`, if that is near, small and not mostly links."""
    if len(masses.headings) != 1 or not whole < masses.headings[0] < tree.ends[whole]:
        return article
    heading, above = masses.headings[0], article
    for _ in range(_Levels.out):
        if not above <= heading < tree.ends[above]:
            above = tree.parents[above]
    if not above <= heading < tree.ends[above] or above == article:
        return article
    branch = heading
    while tree.parents[branch] != above and branch not in masses.beside:
        branch = tree.parents[branch]
    is_small = masses.chars[branch] * 2 <= masses.chars[article] and masses.links[branch] * 2 <= masses.chars[branch]
    return above if is_small and branch not in masses.beside else article


def _with_title(tree: Tree, masses: Masses, whole: int, article: int) -> int:
    """Return the element that has a text and the heading of the page, unless that is twice as large."""
    heading = next((at for at in masses.headings if whole <= at < article), article)
    around = enclose(tree, heading, article)
    is_near = masses.chars[around] < 2 * masses.chars[article] and around != tree.body_at
    return around if is_near and whole <= around else article


def _among(tree: Tree, masses: Masses, article: int, blocks: Set[int], least: int) -> set[int]:
    """Return those blocks of links that are large and stand between the paragraphs of a text."""
    large = {at for at in blocks if masses.chars[at] > least}
    if not large:
        return large
    paragraphs = [
        at
        for at in masses.blocks
        if article <= at < tree.ends[article] and masses.own_marks[at] > 1 and masses.own[at] >= _PARAGRAPH
    ]
    return {at for at in large if paragraphs and paragraphs[0] < at < paragraphs[-1]}


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


def _marked(tree: Tree, masses: Masses) -> int:
    """Return the only `<article>` with an `h1`, if it has a text; otherwise the body. Comments are beside it."""
    headed = headed_articles(tree, masses.headings)
    is_text = len(headed) == 1 and masses.chars[headed[0]] - masses.links[headed[0]] >= MIN_ARTICLE
    return headed[0] if is_text else tree.body_at


def _best(tree: Tree, masses: Masses, top: int) -> int:
    """Return the element with the best score, `top` if nothing in it has one."""
    tags, parents, ends, body = tree.tags, tree.parents, tree.ends, top
    scores: dict[int, float] = {}
    skip = -1
    for at in masses.blocks:
        if at < skip:
            continue
        if at in masses.beside:
            skip = ends[at]
            continue
        if not body <= at < ends[body] or masses.own[at] < MIN_BLOCK or tags[at] in _UNCOUNTED:
            continue
        score = 1 + masses.own_marks[at] + min(masses.own[at] / 100, 3)
        around = parents[at] if tags[at] in _PARAGRAPHS else at
        for share in _SHARES:
            if around < body:
                break
            scores[around] = scores.get(around, 0) + score * share
            around = parents[around]
    headed = set[int]()
    if len(masses.headings) == 1:
        headed.update(lineage(tree, masses.headings[0], _Levels.heading)[1:])
    best, most = body, -1.0
    for at, score in scores.items():
        score *= 1 - masses.links[at] / max(1, masses.chars[at])
        if tags[at] in _LISTS:
            score *= _LISTED
        if headed and not headed.isdisjoint(lineage(tree, at, _Levels.headed)):
            score *= _HEADED
        if score > most:
            best, most = at, score
    return best


def _around(tree: Tree, masses: Masses, found: int, top: int, is_said: bool) -> int:
    """Return the largest element around the best one that adds sentences and few links."""
    tags, parents, chars, links, marks = tree.tags, tree.parents, masses.chars, masses.links, masses.marks
    body = tree.body_at
    enough = _ENOUGH * (chars[body] - links[body])
    at = found
    while at not in (body, top) and parents[at] != body:
        above = parents[at]
        added, added_links = chars[above] - chars[found], links[above] - links[found]
        if not added or tags[above] in _LISTS or tags[above] == "li":
            at = above
        elif is_said and chars[found] - links[found] > enough:
            break
        elif (
            added - added_links >= _ADDED * chars[found]
            and added_links < _MAX_LINKS * added
            and marks[above] - marks[found] > added / 100
        ):
            found = at = above
        elif top != body or added_links <= added / 2 or added < chars[found] / 10:
            at = above
        else:
            break
    return found


def _siblings(tree: Tree, masses: Masses, found: int, article: int) -> set[int]:
    """Return what is beside the way from an article to its best part, and is none of it.

    These are comments, other articles, and after the text small blocks unlike it: about the author, an offer.
    """
    tags, parents, ends = tree.tags, tree.parents, tree.ends
    others = set[int]()
    while found != article:
        parent = parents[found]
        posts = _posts(tree, masses, found)
        for child in tree.children(parent):
            if child == found or not tags[child] or not masses.chars[child] or child in masses.beside or child in posts:
                continue
            tag, inner = tags[child], set(tags[child : ends[child]])
            if tag in HEADINGS or tag in _KEPT or "h1" in inner:
                continue
            if (
                "article" in inner
                or "textarea" in inner
                or (tag in ("ul", "ol") and not inner.isdisjoint(("article", "div", "p")))
                or masses.links[child] > _MAX_LINKS * masses.chars[child]
                or masses.marks[child] < masses.chars[child] / 200
                or (child > found and _is_appended(tree, masses, found, child))
            ):
                others.add(child)
        found = parent
    return others


def _is_appended(tree: Tree, masses: Masses, text: int, block: int) -> bool:
    """Return True if a block is small beside the text before it, and unlike it."""
    if tree.tags[block] not in _APPENDED:
        return False
    words, others = (set(tree.attributes[at].get("class", "").split()) for at in (text, block))
    is_alike = tree.tags[text] == tree.tags[block] and (not words.isdisjoint(others) or not (words or others))
    return not is_alike and masses.chars[block] < _SMALL * masses.chars[text]


def _symbols(tree: Tree, masses: Masses, article: int) -> set[int]:
    """Return the blocks in an article that are links without any text or picture, such as those that share a page."""
    tags, ends, found, skip = tree.tags, tree.ends, set[int](), -1
    for at in masses.blocks:
        if at < skip or masses.chars[at] or tags[at] not in _LINKED or not article < at < ends[article]:
            continue
        skip = ends[at]
        leads_away = (
            tree.attributes[link].get("href", "")[:1] not in ("", "#") for link in range(at, skip) if tags[link] == "a"
        )
        if at not in masses.beside and any(leads_away) and _SAYS.isdisjoint(tags[at:skip]):
            found.add(at)
    return found


def _with_labels(tree: Tree, masses: Masses, node: int, parts: Set[int]) -> frozenset[int]:
    """Return parts that are left out, with the blocks and the headings that have nothing else."""
    parts |= _wrappers(tree, masses, node, parts)
    return frozenset(parts | _headings_of(tree, masses, parts))


def _wrappers(tree: Tree, masses: Masses, article: int, parts: Set[int]) -> set[int]:
    """Return the blocks that have nothing but a label besides parts of an article that are left out."""
    found, rest = set[int](), dict[int, int]()
    waiting = [(at, 0) for at in sorted(parts, reverse=True)]
    for at, level in waiting:
        block = tree.parents[at]
        rest.setdefault(block, masses.chars[block])
        rest[block] -= 0 if at in masses.beside else masses.chars[at]
        if (
            rest[block] <= _MAX_LABEL
            and level < _Levels.near
            and block != article
            and block not in parts
            and block not in found
            and tree.tags[block] in _LINKED
            and _SAYS.isdisjoint(tree.tags[block : tree.ends[block]])
        ):
            found.add(block)
            waiting.append((block, level + 1))
    return found


def _headings_of(tree: Tree, masses: Masses, parts: Set[int]) -> set[int]:
    """Return the headings of sections of which nothing is left."""
    found = set[int]()
    for parent in {tree.parents[at] for at in parts}:
        siblings = [at for at in tree.children(parent) if tree.tags[at] and (masses.chars[at] or at in parts)]
        for before, at, after in zip(siblings, siblings[1:], [*siblings[2:], -1], strict=False):
            heading = tree.tags[before]
            if at in parts and heading in HEADINGS and heading != "h1":
                ends = after < 0 or (tree.tags[after] in HEADINGS and tree.tags[after] <= heading)
                found |= {before} if ends else set()
    return found if len(found) <= _MAX_HEADINGS else set()


def _posts(tree: Tree, masses: Masses, branch: int) -> set[int]:
    """Return what is beside a part of an article and is alike, if all that says as much: the posts of a thread."""
    tag, words = tree.tags[branch], set(tree.attributes[branch].get("class", "").split())
    alike = {
        child
        for child in tree.children(tree.parents[branch])
        if child != branch
        and tree.tags[child] == tag
        and (not words or not words.isdisjoint(tree.attributes[child].get("class", "").split()))
        and masses.marks[child]
    }
    said = sum(masses.chars[child] - masses.links[child] for child in alike)
    return alike if said >= masses.chars[branch] - masses.links[branch] else set()


def _mostly_links(tree: Tree, masses: Masses, article: int) -> set[int]:
    """Return the blocks in an article that are mostly links, and not sentences."""
    tags, ends, chars, links, marks = tree.tags, tree.ends, masses.chars, masses.links, masses.marks
    most = chars[article] - links[article]
    found = set[int]()
    skip = -1
    for at in masses.blocks:
        if at >= skip and article < at < ends[article] and chars[at] and tags[at] in _LINKED:
            share = _MOSTLY_LINKS_P if tags[at] == "p" else _MOSTLY_LINKS
            is_text = chars[at] - links[at] > _HELD * most
            if links[at] > share * chars[at] and marks[at] < chars[at] / _MARKED and not is_text:
                found.add(at)
                skip = ends[at]
    return found
