"""Reads style sheets as far as their rules hide something (CSS 2.2, 6.4; CSS Nesting; CSS Cascade 5, layers)."""

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, islice
from typing import Final, TypeAlias

from awp_publish.pages.declarations import (
    COMMENTS,
    INHERITED,
    RELEVANT,
    Declarations,
    hides_box,
    hides_text,
    may_hide,
    read_declarations,
)
from awp_publish.pages.media import holds_media, holds_supports
from awp_publish.pages.selectors import MAX_LENGTH, Selector, SelectorError, read_selectors, split_list

MAX_RULES: Final = 20_000
MAX_NESTED: Final = 4
"""Levels of conditional rules, and of rules in rules."""

_MAX_CACHED: Final = 250_000
"""Characters of a sheet that is cached. The pages of a site share their sheets."""

Layer: TypeAlias = tuple[str, ...]
"""The names of a cascade layer, from the outermost one; empty for what is in none."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One selector with its declarations that may matter to whether something is seen."""

    selector: Selector
    declarations: Declarations
    layer: Layer


_ALONE: Final = {
    "position": ("absolute", False),
    "overflow-x": ("hidden", False),
    "overflow-y": ("hidden", False),
}
"""What may come from another rule, so that a rule alone does not hide."""

COMPUTED: Final = ("display", "visibility", "opacity", "content-visibility", "transform", "scale")
"""Properties whose value is looked up if it is a variable."""


@dataclass(frozen=True, slots=True)
class Block:
    """What stands before a block, the declarations in it, and its layer. A block may only name a layer.

    One that `depends` is for some readers only: what it hides others see.
    """

    prelude: str
    text: str
    layer: Layer
    depends: bool = False


@dataclass(frozen=True, slots=True)
class Sheet:
    """The blocks of a sheet, and the numbers of those that hide something."""

    blocks: tuple[Block, ...]
    hiding: tuple[int, ...]

    def hiding_rules(self, keys: Set[str]) -> Iterator[Rule]:
        """Yield the rules that hide something; `keys` are the classes and ids of the page, as `.class` and `#id`."""
        for order in self.hiding:
            block = self.blocks[order]
            if _KEY.search(block.prelude) is None or any(
                "\\" in part or keys >= set(_KEY.findall(part.partition(":")[0])) for part in split_list(block.prelude)
            ):
                yield from _rules(block)

    def rules(self, names: Set[str], properties: frozenset[str]) -> Iterator[Rule]:
        """Yield the rules that may declare these properties of elements with these tags, classes and ids."""
        declares = _any_of(properties).search
        for block in self.blocks:
            if (
                declares(block.text)
                and (_ANY.search(block.prelude) or not names.isdisjoint(_WORD.findall(block.prelude)))
                and not (block.depends and may_hide(block.text) and _hides(block.text))
            ):
                yield from _rules(block)

    def variables(self, names: frozenset[str]) -> Iterator[Rule]:
        """Yield the rules that declare these custom properties."""
        declares = _any_of(names).search
        for block in self.blocks:
            if "--" in block.text and declares(block.text):
                declared = {name: value for name, value in read_declarations(block.text).items() if name in names}
                if declared:
                    yield from (Rule(selector, declared, block.layer) for selector in _selectors(block.prelude))

    def declaring(self, name: str, values: re.Pattern[str], pseudo: str, keys: Set[str]) -> Iterator[Rule]:
        """Yield the rules that declare one property for all readers, of elements or of their `before` or `after`.

        Only those with one of some values are read.
        """
        for block in self.blocks:
            if block.depends or not values.search(block.text) or (pseudo and pseudo not in block.prelude):
                continue
            for part in split_list(block.prelude):
                beside = _BESIDE.search(part)
                if (beside[1] if beside else "") == pseudo and keys >= set(_KEY.findall(part.partition(":")[0])):
                    declared = {each: value for each, value in read_declarations(block.text).items() if each == name}
                    selectors = _selectors((part[: beside.start()].strip() or "*") if beside else part)
                    yield from (Rule(selector, declared, block.layer) for selector in selectors if declared)


_BESIDE: Final = re.compile(r"::?(before|after)\s*\Z")
_KEY: Final = re.compile(r"[.#](?:[-\w]|[^\x00-\x7f])+")
_ANY: Final = re.compile(
    r"[*\[\\|]|:(?:is|where|not|matches|host|-webkit-any)\b|::(?:slotted|part)|(?:^|[\s>+~,]):|(?:^|[\s>+~,(])[A-Z]"
)
"""What makes a selector one of elements of any name."""

_WORD: Final = re.compile(r"[^\s.#>+~,*:()]+")


@lru_cache(maxsize=256)
def _any_of(properties: frozenset[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(properties))) + r"|\ball\s*:|\\", re.IGNORECASE)


@lru_cache(maxsize=2_048)
def _relevant(block: str) -> Declarations:
    """Return the declarations of a block that may matter."""
    return {name: value for name, value in read_declarations(block).items() if name in RELEVANT}


@lru_cache(maxsize=2_048)
def _hides(block: str) -> bool:
    """Return True if the declarations of a block may hide something, if need be with those of other rules."""
    declared = _relevant(block)
    given = {**_ALONE, **declared}
    return bool(declared) and (
        hides_box(given)
        or any(hides_text(name, given) for name in INHERITED)
        or any("var(" in declared[name][0] for name in COMPUTED if name in declared)
    )


def _rules(block: Block) -> Iterator[Rule]:
    if declarations := _relevant(block.text):
        for selector in _selectors(block.prelude):
            yield Rule(selector, declarations, block.layer)


def _selectors(prelude: str) -> Iterator[Selector]:
    """Yield the selectors of a rule as far as they are read."""
    try:
        selectors = [one for part in split_list(prelude) for one in read_selectors(part, forgiving=True)]
    except SelectorError:
        return
    if not any(selector.is_unknown for selector in selectors):  # no browser knows it, and drops the rule (4.1)
        yield from (selector for selector in selectors if not selector.unread)


def read_sheet(sheet: str) -> Sheet:
    """Return the rules of a sheet, as far as they are needed."""
    return _read_short_sheet(sheet) if len(sheet) <= _MAX_CACHED else _read_sheet(sheet)


def _read_sheet(sheet: str) -> Sheet:
    blocks = tuple(islice(_blocks(COMMENTS.sub(" ", sheet), "", (), count(), 0), MAX_RULES))
    hiding = (
        order for order, block in enumerate(blocks) if not block.depends and may_hide(block.text) and _hides(block.text)
    )
    return Sheet(blocks, tuple(hiding))


_read_short_sheet = lru_cache(maxsize=32)(_read_sheet)
_SIGN: Final = re.compile(
    r"""\{[^{}"'\\(]*+\}|[{};]|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?|\\.|url\(\s*+[^"'()\s][^"'()\s]*+\s*+\)""",
    re.DOTALL | re.IGNORECASE,
)
"""A block without anything special in it, or what begins, ends or parts blocks, or may hide such signs."""


def _blocks(
    text: str, within: str, layer: Layer, unnamed: Iterator[int], level: int, depends: bool = False
) -> Iterator[Block]:
    """Yield the blocks of a sheet, or of a part of it, whose conditions hold; `within` are the selectors around."""
    start = opened = depth = 0
    for match in _SIGN.finditer(text):
        sign = match[0]
        if depth == 0 and sign == ";":
            prelude = text[start : match.start()].strip()
            if prelude[:6].lower() == "@layer" and not within:
                yield from (Block("", "", (*layer, *_named(name))) for name in prelude[6:].split(","))
            if within and not prelude.startswith("@"):
                yield Block(within, prelude, layer, depends)
            if within or prelude.startswith("@"):
                start = match.end()
            continue
        if sign[0] not in "{}":
            continue
        if sign[0] == "{":
            if depth == 0:
                opened = match.start()
            depth += 1
        if sign[-1] == "}" and depth:
            depth -= 1
            if depth == 0:
                yield from _block(
                    text[start:opened], text[opened + 1 : match.end() - 1], within, layer, unnamed, level, depends
                )
                start = match.end()
    if depth:
        yield from _block(text[start:opened], text[opened + 1 :], within, layer, unnamed, level, depends)
    elif within and text[start:].strip():
        yield Block(within, text[start:], layer, depends)


_BEGIN: Final = re.compile(r"(?:\s|<!--|-->)+")


def _block(
    prelude: str, inner: str, within: str, layer: Layer, unnamed: Iterator[int], level: int, depends: bool = False
) -> Iterator[Block]:
    begin = _BEGIN.match(prelude)
    prelude = prelude[begin.end() if begin else 0 :].rstrip()
    if prelude.startswith("@"):
        name, condition = prelude[1:], ""
        if (end := re.search(r"[^-\w]", name)) is not None:
            name, condition = name[: end.start()], name[end.start() :].strip()
        match name.lower():
            case "media":
                holds = holds_media(condition)
                is_read, depends = holds is not False, depends or holds is None
            case "supports":
                is_read = holds_supports(condition)
            case "layer":
                is_read, layer = True, (*layer, *(_named(condition) if condition else (f"\0{next(unnamed)}",)))
            case _:
                is_read = False
        if is_read and level < MAX_NESTED:
            yield from _blocks(inner, within, layer, unnamed, level + 1, depends)
    else:
        selectors = _nested(prelude, within) if within else prelude
        if "{" not in inner:
            yield Block(selectors, inner, layer, depends)
        elif level < MAX_NESTED and len(selectors) <= MAX_LENGTH:
            yield from _blocks(inner, selectors, layer, unnamed, level + 1, depends)


def _named(layer: str) -> Layer:
    return tuple(layer.strip().split("."))


_PARENT: Final = re.compile(r"""&|"[^"]*"|'[^']*'""")


def _nested(prelude: str, within: str) -> str:
    """Return the selectors of a rule in another one as they would stand alone."""
    around = within if _SIMPLE.fullmatch(within) else f":is({within})"
    selectors = list[str]()
    for part in split_list(prelude):
        replaced = _PARENT.sub(lambda found: around if found[0] == "&" else found[0], part.strip())
        if replaced == part.strip() or part.strip()[:1] in (">", "+", "~"):
            replaced = f"{around} {replaced}"
        selectors.append(replaced)
    return ",".join(selectors)


_SIMPLE: Final = re.compile(r"[.#](?:[-\w]|[^\x00-\x7f])+")
