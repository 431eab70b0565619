"""Tells how sure it is that a page is an article, by what it says it is and by its form.

No single sign is sure: pages of services and threads say that they are articles, and articles say nothing. Each sign
adds points, as often as it is seen on articles and on other pages.
"""

import re
from collections import defaultdict
from typing import Final

from awp_publish.pages.masses import Masses, lineage
from awp_publish.pages.statements import Statements, headed_articles
from awp_publish.pages.tree import Tree
from awp_publish.pages.visibility import Visibility, text_of

CERTAIN: Final = 4.0
"""Points from which a page is an article."""

_POINTS: Final = {
    "names the type": 1.5,
    "names another type": -2.0,
    "named so by its preview": 1.0,
    "says when it was published": 0.5,
    "says who wrote it": 0.5,
    "among articles, by its address": 2.0,
    "among pages on which one acts": -2.0,
    "a title in its address": 1.5,
    "the first page of a site": -1.0,
    "a long heading": 1.0,
    "the heading in one <article>": 0.5,
    "several posts": -1.0,
    "a <time>": 0.5,
    "paragraphs": 1.0,
    "code": -0.5,
    "a list": -1.0,
    "an offer": -1.0,
    "fields or buttons in it": -1.0,
    "made of posts with times": -4.0,
}

_OF_ARTICLES: Final = re.compile(
    r"(?:articles?|blogs?|journal|magazine|news|posts?|stories|story|(?:19|20)\d\d)", re.IGNORECASE
)
_OF_ACTIONS: Final = re.compile(
    r"(?:api|browse|c|carts?|categor(?:y|ies)|collections?|community|discussions?|docs?|documentation|forums?|manual"
    r"|products?|questions?|reference|search|services?|shop|store|threads?|topics?|t|wiki)",
    re.IGNORECASE,
)
"""Parts of an address, and of the name of its host, before the last one."""

_OF_THREADS: Final = re.compile(
    r"(?:boards?|community|discussions?|forums?|questions?|threads?|topics?|t)", re.IGNORECASE
)
"""Parts of an address that only threads of posts have."""

_MANY: Final = 5
"""Posts, and times, up to which a page without a heading in one of them may be one article."""

_MIN_JOINTS: Final = 3
_JOINT: Final = re.compile("[-_]")
"""Hyphens in the last part of an address that is made of a title."""

_MIN_FIELDS: Final = 4
_MIN_BUTTONS: Final = 10
"""Fields, and buttons, with which a text is operated as much as it is read."""

_MIN_POSTS: Final = 3
_POST_LEVELS: Final = 10
_OF_POSTS: Final = 0.6
"""Posts of a thread at least, elements around a time among which its post is, and the part of a text in all posts."""

_MIN_WORDS: Final = 6
_MIN_PARAGRAPHS: Final = 8
_MIN_MARKS: Final = 2
_MIN_PARAGRAPH: Final = 80
"""Words of a long heading; paragraphs of an article, with marks of sentences and characters of each."""


def weigh_signs(
    visibility: Visibility,
    masses: Masses,
    statements: Statements,
    address: str,
    text: int,
    *,
    is_list: bool,
    is_offer: bool,
) -> float:
    """Return the points of a page at an address; `text` is the element with most of its sentences."""
    tree = visibility.tree
    end, times = tree.ends[text], len(tree.find("time"))
    articles = sum(masses.chars[at] > 0 for at in tree.find("article"))
    is_one = len(headed_articles(tree, masses.headings)) == 1
    sections, page = _parts_of(statements.address or address)
    heading = text_of(visibility, masses.headings[0]) if masses.headings else ""
    signs = {
        "names the type": statements.names_article,
        "named so by its preview": statements.preview == "article",
        "says when it was published": statements.is_dated,
        "says who wrote it": statements.has_author,
        "the heading in one <article>": is_one,
        "a <time>": times > 0,
        "among articles, by its address": any(map(_OF_ARTICLES.fullmatch, sections)),
        "among pages on which one acts": any(map(_OF_ACTIONS.fullmatch, sections)),
        "a title in its address": len(_JOINT.findall(page)) >= _MIN_JOINTS,
        "a long heading": len(heading.split()) >= _MIN_WORDS,
        "paragraphs": _paragraphs(masses, text, end) >= _MIN_PARAGRAPHS,
        "names another type": statements.names_other,
        "several posts": not is_one and (times > _MANY or articles > _MANY),
        "code": _is_in(tree, "pre", text),
        "a list": is_list,
        "an offer": is_offer,
        "the first page of a site": not page,
        "fields or buttons in it": sum(text <= at < end for at in masses.fields) >= _MIN_FIELDS
        or sum(text <= at < end for at in tree.find("button")) >= _MIN_BUTTONS,
        "made of posts with times": _post_chars(tree, masses, text) > _OF_POSTS * masses.chars[text],
    }
    return sum(_POINTS[name] for name, is_seen in signs.items() if is_seen)


def is_thread(statements: Statements, address: str) -> bool:
    """Return True if a page is a thread of posts: it says so, or its address does."""
    return statements.is_thread or any(map(_OF_THREADS.fullmatch, _parts_of(statements.address or address)[0]))


def _parts_of(address: str) -> tuple[list[str], str]:
    """Return the labels of an address's host with the parts of its path, and apart from them the last part."""
    address = address.partition("#")[0].partition("?")[0]
    _, has_host, rest = address.partition("//")
    host, _, path = rest.partition("/") if has_host else ("", "", address)
    *sections, page = path.strip("/").split("/")
    return [*host.split(".")[:-1], *sections], page


def _paragraphs(masses: Masses, text: int, end: int) -> int:
    return sum(
        text <= at < end and masses.own_marks[at] >= _MIN_MARKS and masses.own[at] >= _MIN_PARAGRAPH
        for at in masses.blocks
    )


def _post_chars(tree: Tree, masses: Masses, text: int) -> int:
    """Return the characters of the largest series of alike blocks beside each other with times and sentences."""
    posts = defaultdict[tuple[int, str, str], set[int]](set)
    for time in tree.find("time"):
        for at in lineage(tree, time, _POST_LEVELS) if text < time < tree.ends[text] else ():
            if at <= text:
                break
            if masses.marks[at]:
                posts[tree.parents[at], tree.tags[at], tree.attributes[at].get("class", "")].add(at)
    return max(
        (sum(map(masses.chars.__getitem__, members)) for members in posts.values() if len(members) >= _MIN_POSTS),
        default=0,
    )


def _is_in(tree: Tree, tag: str, element: int) -> bool:
    return any(element <= at < tree.ends[element] for at in tree.find(tag))
