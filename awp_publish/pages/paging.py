"""Finds the links that lead to the other pages of a list: `rel=next`, arrows, "Next", and numbers beside each other."""

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from awp_publish.pages.tree import Tree
from awp_publish.pages.visibility import INLINE

_RELATIONS: Final = frozenset(("next", "prev", "previous"))
_WORDS: Final = (
    "next previous prev older newer first last weiter zurück nächste vorherige suivant suivante précédent précédente "
    "siguiente anterior próxima próximo seguinte successiva precedente volgende vorige następna poprzednia далее "
    "следующая назад предыдущая 次へ 前へ 下一页 上一页 다음 이전"
)
_ARROW: Final = "[\\s<>\xab\xbb\u2039\u203a\u2190\u2192\u27e8\u27e9]"
_TURN: Final = re.compile(
    rf"{_ARROW}*(?:{'|'.join(_WORDS.split())})(?:\s+(?:page|posts|entries|results|article|seite))?{_ARROW}*|{_ARROW}+",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"[1-9]\d{0,4}")
_CELLS: Final = frozenset(("td", "th", "tr"))

MAX_TEXT: Final = 40
"""Characters of the text of a link that is compared."""

MIN_NUMBERS: Final = 3
"""Numbers in succession that are a pagination without an arrow beside them."""

MAX_PAGING: Final = 60
"""Links of paginations on one page that count as such."""


def find_paging(tree: Tree) -> Mapping[int, str]:
    """Return the links to other pages of a list, in document order, with what they say."""
    groups: dict[int, list[tuple[int, str, bool]]] = {}
    tags, attributes = tree.tags, tree.attributes
    found: dict[int, str] = {}
    for link in tree.find("a"):
        given = attributes[link]
        if "href" not in given:
            continue
        text = _text_of(tree, link) or given.get("aria-label", "").strip()
        if "rel" in given and not _RELATIONS.isdisjoint(given["rel"].lower().split()):
            groups.setdefault(_block_of(tree, link), []).append((link, text, True))
        elif text and (_NUMBER.fullmatch(text) or _TURN.fullmatch(text)):
            groups.setdefault(_block_of(tree, link), []).append((link, text, False))
    for block, links in groups.items():
        numbers = [int(text) for _, text, _ in links if text.isdecimal()]
        steps = sum(after - before == 1 for before, after in pairwise(numbers))
        turns = [text for _, text, _ in links if not text.isdecimal()]
        has_words = any(any(map(str.isalpha, text)) for text in turns)
        is_paging = any(is_named for _, _, is_named in links) or (bool(turns) and (bool(numbers) or has_words))
        if is_paging or (steps >= MIN_NUMBERS - 1 and tags[block] not in _CELLS):
            found.update((link, text) for link, text, _ in links)
    return {link: found[link] for link in sorted(found)[:MAX_PAGING]}


def _text_of(tree: Tree, link: int) -> str:
    """Return the text of a link, or "" if it is longer than that of a pagination."""
    only = tree.only(link)
    if only is not None:
        return " ".join(only.split()) if len(only.strip()) <= MAX_TEXT else ""
    texts, length = list[str](), 0
    for at in range(link + 1, tree.ends[link]):
        if not tree.tags[at]:
            texts.append(tree.texts[at])
            length += len(tree.texts[at].strip())
            if length > MAX_TEXT:
                return ""
    return " ".join("".join(texts).split())


def _block_of(tree: Tree, link: int) -> int:
    """Return the block around a link that has the other links of a pagination too."""
    at = tree.parents[link]
    while tree.parents[at] >= 0 and (tree.tags[at] in INLINE or tree.tags[at] == "li"):
        at = tree.parents[at]
    return at
