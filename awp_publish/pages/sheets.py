"""Reads style sheets as far as their rules hide something (CSS 2.2, 6.4)."""

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final

from awp_publish.pages.declarations import COMMENTS, SIDES, SIZES, Declarations, hides, may_hide, read_declarations
from awp_publish.pages.selectors import Selector, SelectorError, read_selectors, split_list

MAX_RULES: Final = 20_000
MAX_NESTED: Final = 4
"""Levels of conditional rules."""

_MAX_CACHED: Final = 250_000
"""Characters of a sheet that is cached. The pages of a site share their sheets."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One selector with its declarations that may matter to whether something is seen."""

    selector: Selector
    declarations: Declarations
    is_hiding: bool


_NAMES: Final = frozenset(
    (*SIZES, *SIDES, "clip", "clip-path", "content-visibility", "display", "filter", "font-size", "margin-left")
) | {"opacity", "overflow", "overflow-x", "overflow-y", "position", "scale", "transform", "visibility"}
_ALONE: Final = {"position": ("absolute", False), "overflow": ("hidden", False)}
"""What may come from another rule, so that a rule alone does not hide."""

_MEDIA: Final = re.compile(r"(?:only\s+)?(?:screen|all)|not\s+(?:print|speech)", re.IGNORECASE)


def reads_media(media: str) -> bool:
    """Return True for media that every screen is: a list with `screen` or `all`, or nothing."""
    parts = [part.strip() for part in media.split(",")]
    return parts == [""] or any(_MEDIA.fullmatch(part) for part in parts)


@dataclass(frozen=True, slots=True)
class Sheet:
    """The blocks of a sheet, each with what stands before it, and the numbers of those that hide something."""

    blocks: tuple[tuple[str, str], ...]
    hiding: tuple[int, ...]

    def hiding_rules(self, keys: Set[str]) -> Iterator[Rule]:
        """Yield the rules that hide something; `keys` are the classes and ids of the page, as `.class` and `#id`."""
        for order in self.hiding:
            prelude, block = self.blocks[order]
            if _KEY.search(prelude) is None or any(
                "\\" in part or keys >= set(_KEY.findall(part.partition(":")[0])) for part in split_list(prelude)
            ):
                yield from (rule for rule in _rules(prelude, block) if rule.is_hiding)

    def rules(self, names: Set[str]) -> Iterator[Rule]:
        """Yield the rules that may be about elements with these tags, classes and ids."""
        for prelude, block in self.blocks:
            if _ANY.search(prelude) or not names.isdisjoint(_WORD.findall(prelude)):
                yield from _rules(prelude, block)


_KEY: Final = re.compile(r"[.#](?:[-\w]|[^\x00-\x7f])+")
_ANY: Final = re.compile(r"[*\[\\]|:(?:is|where|not|matches|-webkit-any)\b|(?:^|[\s>+~,]):")
"""What makes a selector one of elements of any name."""

_WORD: Final = re.compile(r"[^\s.#>+~,*:]+")


@lru_cache(maxsize=2_048)
def _relevant(block: str) -> tuple[dict[str, tuple[str, bool]], bool]:
    """Return the declarations of a block that may matter, and whether they hide."""
    given = {name: value for name, value in read_declarations(block).items() if name in _NAMES}
    return given, bool(given) and hides({**_ALONE, **given})


def _rules(prelude: str, block: str) -> Iterator[Rule]:
    declarations, is_hiding = _relevant(block)
    if not declarations:
        return
    try:
        selectors = [one for part in split_list(prelude) for one in read_selectors(part, forgiving=True)]
    except SelectorError:
        return
    if any(selector.is_unknown for selector in selectors):  # no browser knows it, and drops the rule (4.1)
        return
    for selector in selectors:
        if not selector.unread:
            yield Rule(selector, declarations, is_hiding)


def read_sheet(sheet: str) -> Sheet:
    """Return the rules of a sheet, as far as they are needed."""
    return _read_short_sheet(sheet) if len(sheet) <= _MAX_CACHED else _read_sheet(sheet)


def _read_sheet(sheet: str) -> Sheet:
    blocks = tuple(islice(_blocks(COMMENTS.sub(" ", sheet), 0), MAX_RULES))
    hiding = (order for order, (_, block) in enumerate(blocks) if may_hide(block) and _relevant(block)[1])
    return Sheet(blocks, tuple(hiding))


_read_short_sheet = lru_cache(maxsize=32)(_read_sheet)
_SIGN: Final = re.compile(r"""\{[^{}"'\\]*+\}|[{};]|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?|\\.""", re.DOTALL)
"""A block without anything special in it, or what begins, ends or parts blocks, or may hide such signs."""


def _blocks(sheet: str, level: int) -> Iterator[tuple[str, str]]:
    """Yield the prelude and the declarations of each rule, also of those under conditions that hold for all readers.

    Of a block with rules in it (CSS Nesting), the declarations before the first rule are read.
    """
    depth = start = opened = last = 0
    nested = -1  # where the first rule in the present block begins
    for match in _SIGN.finditer(sheet):
        sign = match[0]
        if depth == 0 and sign[0] == "{" and sign[-1] == "}":  # as most are
            opened = match.start()
            prelude = sheet[start:opened].strip()
            if not prelude.startswith("@"):
                yield prelude, sign[1:-1]
            start = match.end()
            continue
        if sign == ";":
            if depth == 0:
                start = match.end()
            elif depth == 1:
                last = match.end()
            continue
        if sign[0] not in "{}":
            continue
        if sign[0] == "{":
            if depth == 0:
                opened = last = match.start() + 1
            elif depth == 1 and nested < 0:
                nested = last
            depth += 1
        if sign[-1] == "}":
            depth = max(depth - 1, 0)
            if depth == 0:
                prelude, end = sheet[start : opened - 1].strip(), match.end() - 1
                if start >= opened:
                    pass  # it ends nothing
                elif not prelude.startswith("@"):
                    yield prelude, sheet[opened : end if nested < 0 else nested]
                elif level < MAX_NESTED and _holds(prelude):
                    yield from _blocks(sheet[opened:end], level + 1)
                start, nested = match.end(), -1
    if depth == 1 and nested < 0:
        yield sheet[start : opened - 1].strip(), sheet[opened:]


def _holds(prelude: str) -> bool:
    name, _, condition = prelude[1:].partition(" ")
    if name.lower() == "media":
        return reads_media(condition)
    return name.lower() == "layer" or (name.lower() == "supports" and "(" in condition[:1])
