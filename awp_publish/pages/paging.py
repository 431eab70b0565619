"""Finds the links that lead to the other pages of a list: `rel=next`, arrows, "Next", and numbers beside each other."""

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Final

from awp_publish.pages.tree import Tree
from awp_publish.pages.visibility import INLINE

_RELATIONS: Final = frozenset(("next", "prev", "previous"))
_WORDS: Final = (
    "next previous prev older newer oldest newest earlier later first last weiter zurück nächste nächster vorherige "
    "letzte suivant suivante précédent précédente siguiente anterior próxima próximo seguinte successiva successivo "
    "precedente volgende vorige następna następny poprzednia poprzedni далее следующая назад предыдущая nästa "
    "föregående neste forrige næste seuraava edellinen další předchozí sonraki önceki 次へ 前へ 次 前 下一页 "
    "上一页 下页 上页 다음 이전"
)
_NOUNS: Final = (
    "page pages posts post entries entry results result article articles chapter items stories story comments messages "
    "topic topics thread episode podcast lesson step "
    "products photos seite seiten página pagina strona stránka sida side sivu страница sayfa のページ "
    "ページ 页 페이지"
)
_ARROW: Final = "[\\s<>\xab\xbb\u2039\u203a\u2190\u2192\u27e8\u27e9\u2329\u232a\u25c0\u25b6\u276e\u276f\u226a\u226b]"
_MARKS: Final = "[\\s()\\[\\]|.,:]"
_NOUN: Final = f"(?:{'|'.join(_NOUNS.split())})"
_WORD: Final = f"(?:{'|'.join(_WORDS.split())})"
_TURN: Final = re.compile(
    rf"(?:{_ARROW}|{_MARKS})*(?:(?:go )?to (?:the )?)?(?:{_NOUN}\s+)?{_WORD}(?:\s+(?:{_WORD}|\d+))?"
    rf"(?:\s*(?:search )?{_NOUN})?"
    rf"(?:{_ARROW}|{_MARKS})*|{_ARROW}+",
    re.IGNORECASE,
)
_MORE: Final = re.compile(rf"(?:(?:load|show|view|see)\s+)?more(?:\s+{_NOUN})?(?:{_ARROW}|\.|\u2026)*", re.IGNORECASE)
_PAGED: Final = re.compile(
    r"[?&;](?:p|pg|page|paged|start|offset|after|from|cursor|skip|s)=|/page[/-]?\d", re.IGNORECASE
)
"""Addresses of other pages of a list, to which a link with "More" leads."""

_NUMBER: Final = re.compile(
    rf"{_MARKS}*(?:(?:go to |goto )?(?:page|seite|página|pagina)\s*)?(\d{{1,5}}|\d{{1,3}}(?:[,.]\d{{3}})+)"
    rf"(?:\s*[-\u2013]\s*\d{{1,6}})?{_MARKS}*",
    re.IGNORECASE,
)
_HINT: Final = re.compile("[a-z]+|[0-9<>]")
_HINTS: Final = frozenset(("more", *_WORDS.split(), *"0123456789<>"))
"""What a text in ASCII has at least to lead to another page: one of these words, a figure or an arrow."""

_BACK: Final = re.compile("\\s*[<\xab\u2039\u2190][^>\xbb\u203a\u2192]*")
_ON: Final = re.compile("[^<\xab\u2039\u2190]*[>\xbb\u203a\u2192]\\s*")
_PICTURES: Final = frozenset(("img", "svg"))

MAX_TEXT: Final = 40
"""Characters of the text of a link that is compared."""

MIN_NUMBERS: Final = 3
"""Numbers in succession that are a pagination without an arrow beside them."""

MAX_PAGING: Final = 60
"""Links of paginations on one page that count as such."""


def find_paging(tree: Tree) -> Mapping[int, str]:
    """Return the links to other pages of a list, in document order, with what they say."""
    groups: dict[int, list[tuple[int, str, bool, re.Match[str] | None]]] = {}
    tags, attributes, texts, ends = tree.tags, tree.attributes, tree.texts, tree.ends
    found: dict[int, str] = {}
    for link in tree.find("a"):
        given = attributes[link]
        if "href" not in given:
            continue
        if given["href"][:1] == "#" and "rel" not in given and tree.find_id(given["href"][1:]) is not None:
            continue  # another place on this page: a footnote
        if "rel" not in given and ends[link] == link + 2 and not tags[link + 1]:
            text = texts[link + 1]
            if len(text.strip()) > MAX_TEXT or _says_otherwise(text):
                continue  # as most links
        text = _text_of(tree, link)
        if "rel" not in given and (not text or _says_otherwise(text)):
            continue
        is_named = "rel" in given and not _RELATIONS.isdisjoint(given["rel"].lower().split())
        is_named = is_named or (_MORE.fullmatch(text) is not None and _PAGED.search(given["href"]) is not None)
        number = _NUMBER.fullmatch(text)
        if is_named or number or (text and (_turns(text) or _BACK.fullmatch(text) or _ON.fullmatch(text))):
            groups.setdefault(_block_of(tree, link), []).append((link, text, is_named, number))
    for block, links in groups.items():
        numbers = [int(re.sub(r"\D", "", number[1])) for *_, number in links if number]
        steps = sum(after - before == 1 for before, after in pairwise(numbers))
        ranges = sum(number is not None and len(re.findall(r"\d+", text)) == 2 for _, text, _, number in links)
        turns = [text for _, text, *_ in links if _turns(text)]
        has_words = any(any(map(str.isalpha, text)) for text in turns)
        is_between = any(_BACK.fullmatch(text) for _, text, *_ in links) and any(
            _ON.fullmatch(text) for _, text, *_ in links
        )
        is_paging = any(is_named for _, _, is_named, _ in links) or is_between
        is_paging = is_paging or (bool(turns) and (bool(numbers) or has_words or len(turns) > 1))
        is_counted = steps >= MIN_NUMBERS - 1 or ranges >= MIN_NUMBERS
        is_counted = is_counted or (steps > 0 and all(_PAGED.search(attributes[link]["href"]) for link, *_ in links))
        if is_paging or (is_counted and tree.tags[block] != "tr"):
            found.update((link, text) for link, text, *_ in links)
    return {link: found[link] for link in sorted(found)[:MAX_PAGING]}


def _says_otherwise(text: str) -> bool:
    """Return True for words in ASCII that do not lead to another page."""
    said = _HINT.findall(text.lower()) if text.isascii() else []
    return bool(said) and _HINTS.isdisjoint(said)


@lru_cache(maxsize=1_024)
def _turns(text: str) -> bool:
    """Return True for "Next" and the like, also before the title of what comes next."""
    return _TURN.fullmatch(text) is not None


def _text_of(tree: Tree, link: int) -> str:
    """Return the text of a link or else its name, "" if that is longer than that of a pagination.

    Of "Next", and in an element of its own the title of the next page, the first is returned.
    """
    attributes = tree.attributes[link]
    if (only := tree.only(link)) is not None:  # as in most links
        if len(only.strip()) > MAX_TEXT:
            return ""
        if any(map(str.isalnum, only)):
            return " ".join(only.split())
    texts: list[str] = []
    length = 0
    for at in range(link + 1, tree.ends[link]):
        text = tree.texts[at] if not tree.tags[at] else ""
        if tree.tags[at] in _PICTURES:
            text = tree.attributes[at].get("alt") or tree.attributes[at].get("aria-label", "")
        texts.append(text)
        length += len(text.strip())
        if length > MAX_TEXT:
            first = next(text for text in texts if text.strip())
            return " ".join(first.split()) if len(texts) > 1 and _turns(first) else ""
    said = " ".join("".join(texts).split())
    if any(map(str.isalnum, said)):
        first = next((text for text in texts if text.strip()), "").strip()
        return first if _turns(first) and not _turns(said) else said
    return " ".join((attributes.get("aria-label") or attributes.get("title") or said)[:MAX_TEXT].split())


def _block_of(tree: Tree, link: int) -> int:
    """Return the block around a link that has the other links of a pagination too."""
    at = tree.parents[link]
    while tree.parents[at] >= 0 and (tree.tags[at] in INLINE or tree.tags[at] in ("li", "td", "th")):
        at = tree.parents[at]
    return at
