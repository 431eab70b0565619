"""Finds the text that predominates on a page.

Each block of sentences scores for the elements around it, the nearest ones most. The element with the best score is the
text, or a part of one that is made of several blocks; then the elements around it are tried while they add sentences
and few links. The heading of the page and the question of a thread belong to the text near them.
"""

from dataclasses import dataclass
from typing import Final

from awp_publish.pages.masses import HEADINGS, Masses, enclose, lineage
from awp_publish.pages.statements import headed_articles
from awp_publish.pages.tree import Tree

MIN_ARTICLE: Final = 400
"""Characters of sentences that an article has at least."""

_MIN_BLOCK: Final = 25
"""Characters from which the text of a block counts."""

_UNCOUNTED: Final = HEADINGS | {"dt", "figcaption", "li"}
"""Blocks whose text says little about where the article is."""

_PARAGRAPHS: Final = frozenset(("blockquote", "p", "pre", "td"))
"""Blocks that score for what is around them, not for themselves."""

_LISTS: Final = frozenset(("dl", "menu", "ol", "table", "tbody", "ul"))

_SHARES: Final = (1.0, 0.5, 0.17)
"""What a block scores for the three elements around it, the nearest first."""

_HEADED: Final = 2.0
_LISTED: Final = 0.3
"""Factors of the score: beside the page's only `h1`, a list."""

_HEADING_LEVELS: Final = 3
_HEADED_LEVELS: Final = 12
_OUT_LEVELS: Final = 2
"""Levels of elements that are looked at: around the `h1`, up to these, and up to an `h1`."""

_ENOUGH: Final = 0.75
"""The part of a page's text with which an element is the whole article, if it is certain that the page is one."""

_ADDED: Final = 0.2
"""What an element around has to add to what was found, as a part of that."""

_MAX_LINKS: Final = 0.3
"""The part of an added text that may be links."""

_PARAGRAPH: Final = 80
"""Characters that a paragraph has at least, and the half of what stands between a heading and its text."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text: the element that has all of it, and the one with its best part."""

    node: int
    best: int


def find_text(tree: Tree, masses: Masses) -> Text:
    """Return the text that predominates on a page, whatever that is."""
    best = _best(tree, masses, tree.body_at)
    return Text(_around(tree, masses, best, tree.body_at, is_certain=False), best)


def find_article(tree: Tree, masses: Masses) -> Text:
    """Return the article of a page that is one. It is in the only `<article>` with an `h1`; comments are beside it."""
    top = _marked(tree, masses)
    best = _best(tree, masses, top)
    return Text(_around(tree, masses, best, top, is_certain=True), best)


def _marked(tree: Tree, masses: Masses) -> int:
    """Return the only `<article>` with an `h1`, if it has a text; otherwise the body."""
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
        if not body <= at < ends[body] or masses.own[at] < _MIN_BLOCK or tags[at] in _UNCOUNTED:
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
        headed.update(lineage(tree, masses.headings[0], _HEADING_LEVELS)[1:])
    best, most = body, -1.0
    for at, score in scores.items():
        score *= 1 - masses.links[at] / max(1, masses.chars[at])
        if tags[at] in _LISTS:
            score *= _LISTED
        if headed and not headed.isdisjoint(lineage(tree, at, _HEADED_LEVELS)):
            score *= _HEADED
        if score > most:
            best, most = at, score
    return best


def _around(tree: Tree, masses: Masses, found: int, top: int, *, is_certain: bool) -> int:
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
        elif is_certain and chars[found] - links[found] > enough:
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


def with_heading(tree: Tree, masses: Masses, whole: int, article: int) -> int:
    """Return the element that has an article and the only `h1`, if that is near, small and not mostly links."""
    if len(masses.headings) != 1 or not whole < masses.headings[0] < tree.ends[whole]:
        return article
    heading, above = masses.headings[0], article
    for _ in range(_OUT_LEVELS):
        if not above <= heading < tree.ends[above]:
            above = tree.parents[above]
    if not above <= heading < tree.ends[above] or above == article:
        return article
    branch = heading
    while tree.parents[branch] != above and branch not in masses.beside:
        branch = tree.parents[branch]
    is_small = masses.chars[branch] * 2 <= masses.chars[article] and masses.links[branch] * 2 <= masses.chars[branch]
    return above if is_small and branch not in masses.beside else article


def with_question(tree: Tree, masses: Masses, whole: int, article: int) -> int:
    """Return the element that has a text and the paragraphs between the heading and it: the question of a thread.

    The heading may be before the main landmark, which then begins with the question.
    """
    ends = tree.ends
    heading = next((at for at in masses.headings if whole <= at < article), None)
    if heading is None and whole == tree.body_at:
        return article
    start = ends[heading] if heading is not None else whole
    paragraphs = [
        at
        for at in masses.blocks
        if start <= at
        and ends[at] <= article
        and masses.own_marks[at] > 1
        and masses.own[at] >= _PARAGRAPH
        and not any(beside <= at < ends[beside] for beside in masses.beside)
    ]
    if sum(masses.own[at] for at in paragraphs) < 2 * _PARAGRAPH:
        return article
    around = enclose(tree, paragraphs[0], article)
    return around if whole <= around and masses.links[around] * 2 < masses.chars[around] else article


def with_posts(tree: Tree, masses: Masses, whole: int, post: int) -> int:
    """Return the element that has a text and all that are marked up like it: the posts of a thread."""
    tag, words = tree.tags[post], tree.attributes[post].get("class", "").split()
    posts = [
        at
        for at in masses.blocks
        if tree.tags[at] == tag
        and tree.attributes[at].get("class", "").split() == words
        and masses.marks[at]
        and masses.chars[at] - masses.links[at] >= _PARAGRAPH
    ]
    around = enclose(tree, min((post, *posts)), max((post, *posts)))
    return around if words and whole <= around else post


def with_title(tree: Tree, masses: Masses, whole: int, article: int) -> int:
    """Return the element that has a text and the heading of the page, unless that is twice as large."""
    heading = next((at for at in masses.headings if whole <= at < article), article)
    around = enclose(tree, heading, article)
    is_near = masses.chars[around] < 2 * masses.chars[article] and around != tree.body_at
    return around if is_near and whole <= around else article
