"""Reads style sheets as far as their rules hide something (CSS 2.2, 6.4; CSS Nesting; CSS Cascade 5, layers)."""

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import count, islice
from threading import Lock
from typing import Final, TypeAlias

from awp_publish.pages.declarations import (
    COMMENTS,
    INHERITED,
    RELEVANT,
    TOGETHER,
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

MAX_CACHED: Final = 2_000_000
"""Characters of sheets that are cached. The pages of a site share their sheets, and a page may have a hundred."""

_cached: OrderedDict[str, "Sheet"] = OrderedDict()
_cache_lock: Final = Lock()

Layer: TypeAlias = tuple[str, ...]
"""The names of a cascade layer, from the outermost one; empty for what is in none."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One selector with its declarations that may matter to whether something is seen."""

    selector: Selector
    declarations: Declarations
    layer: Layer


_ALONE: Final = ("display", "visibility")
"""Properties that hide whatever else is declared."""

_ASSUMED: Final = {
    "position": ("fixed", False),
    "overflow-x": ("hidden", False),
    "overflow-y": ("hidden", False),
}
"""What may come from another rule, so that a rule alone does not hide."""

COMPUTED: Final = ("display", "visibility", "opacity", "content-visibility", "transform", "scale")
"""Properties whose value is looked up if it is a variable."""


class Block:
    """What stands before a block, the declarations in it, and its layer. A block may only name a layer.

    One that `depends` is for some readers only: what it hides others see. What is read of a block is kept with it.
    """

    def __init__(self, prelude: str, text: str, layer: Layer, depends: bool = False) -> None:
        self.prelude, self.text, self.layer, self.depends = prelude, text, layer, depends

    @cached_property
    def declarations(self) -> Declarations:
        """The declarations that may matter."""
        return {name: value for name, value in read_declarations(self.text).items() if name in RELEVANT}

    @cached_property
    def concerns(self) -> frozenset[str]:
        """The properties that together decide whether the block hides something; none if it cannot."""
        declared = self.declarations if may_hide(self.text) else {}
        concerns = {name for name in _ALONE if name in declared and _hides({name: declared[name]})}
        rest = {name: value for name, value in declared.items() if name not in _ALONE}
        if rest and _hides({**_ASSUMED, **rest}):
            concerns.update(*(TOGETHER[name] for name in rest))
        return frozenset(concerns)

    @cached_property
    def parts(self) -> Sequence[tuple[Set[str], Set[str]]]:
        """For each selector, the classes and ids that it needs, and what names of the element itself it needs."""
        return list(map(_needs, split_list(self.prelude)))

    @cached_property
    def rules(self) -> Sequence[Rule]:
        """The rules with the declarations that may matter."""
        declared = self.declarations
        return [Rule(selector, declared, self.layer) for selector in _selectors(self.prelude)] if declared else ()


class Sheet:
    """The blocks of a sheet."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = blocks
        self._declaring: dict[tuple[str, str], Sequence[tuple[Set[str], Rule]]] = {}

    @cached_property
    def layers(self) -> Sequence[Layer]:
        """The layers in the order of their first naming."""
        return list(dict.fromkeys(block.layer for block in self.blocks))

    @cached_property
    def _hiding(self) -> Sequence[Block]:
        return [block for block in self.blocks if not block.depends and may_hide(block.text)]

    @cached_property
    def _by_subject(self) -> Mapping[str, Sequence[int]]:
        """The numbers of the blocks by a name that their elements have; "" has those for elements of any name."""
        numbers: dict[str, list[int]] = {}
        for number, block in enumerate(self.blocks):
            for name in {next(iter(subject), "") for _, subject in block.parts}:
                numbers.setdefault(name, []).append(number)
        return numbers

    def hiding_rules(self, keys: Set[str]) -> Iterator[tuple[Rule, frozenset[str]]]:
        """Yield the rules that hide something, each with the properties that decide about it.

        `keys` are the classes and ids of the page, as `.class` and `#id`.
        """
        for block in self._hiding:
            if any(keys >= needed for needed, _ in block.parts) and block.concerns:
                yield from ((rule, block.concerns) for rule in block.rules)

    def rules(self, names: Set[str], properties: Set[str]) -> Iterator[Rule]:
        """Yield the rules that may declare these properties of elements with these tags, `.class`es and `#id`s."""
        for number in sorted({number for name in ("", *names) for number in self._by_subject.get(name, ())}):
            block = self.blocks[number]
            if (
                any(names >= subject for _, subject in block.parts)
                and not properties.isdisjoint(block.declarations)
                and not (block.depends and block.concerns)
            ):
                yield from (rule for rule in block.rules if names >= rule.selector.subject)

    def variables(self, names: Set[str]) -> Iterator[Rule]:
        """Yield the rules that declare these custom properties."""
        for block in self.blocks:
            if "--" in block.text and any(name in block.text for name in names):
                declared = {name: value for name, value in read_declarations(block.text).items() if name in names}
                if declared:
                    yield from (Rule(selector, declared, block.layer) for selector in _selectors(block.prelude))

    def declaring(self, name: str, values: re.Pattern[str], pseudo: str, keys: Set[str]) -> Iterator[Rule]:
        """Yield the rules that declare one property for all readers, of elements or of their `before` or `after`.

        Only those with one of some values are read.
        """
        if (name, pseudo) not in self._declaring:
            blocks = (block for block in self.blocks if not block.depends and pseudo in block.prelude)
            declaring = (block for block in blocks if values.search(block.text))
            self._declaring[name, pseudo] = [each for block in declaring for each in _declares(block, name, pseudo)]
        return (rule for needed, rule in self._declaring[name, pseudo] if keys >= needed)


def _hides(declared: Declarations) -> bool:
    return (
        hides_box(declared)
        or any(hides_text(name, declared) for name in INHERITED)
        or any("var(" in declared[name][0] for name in COMPUTED if name in declared)
    )


def _declares(block: Block, name: str, pseudo: str) -> Iterator[tuple[Set[str], Rule]]:
    """Yield the rules of a block that declare a property, each with the classes and ids that it needs."""
    declared = {each: value for each, value in read_declarations(block.text).items() if each == name}
    for part, (needed, _) in zip(split_list(block.prelude), block.parts, strict=True) if declared else ():
        beside = _BESIDE.search(part)
        if (beside[1] if beside else "") == pseudo:
            for selector in _selectors((part[: beside.start()].strip() or "*") if beside else part):
                yield needed, Rule(selector, declared, block.layer)


_BESIDE: Final = re.compile(r"::?(before|after)\s*\Z")
_NAME: Final = re.compile(r"[.#]?(?:[-\w]|[^\x00-\x7f])+")
_COMBINATOR: Final = re.compile(r"[\s>+~]+")
_STATE: Final = re.compile(r"[:\[(\\|&]")


def _needs(part: str) -> tuple[Set[str], Set[str]]:
    """Return the classes and ids that a selector needs, and the names of the element itself, as far as is certain."""
    plain, *rest = _STATE.split(part, maxsplit=1)
    if "\\" in part:
        return frozenset(), frozenset()
    pieces = _COMBINATOR.split(plain.strip())
    subject: frozenset[str] = frozenset()
    if not rest or not (_STATE.search(rest[0]) or _COMBINATOR.search(rest[0].strip())):
        subject = frozenset(name if name[0] in ".#" else name.lower() for name in _NAME.findall(pieces[-1]))
    return frozenset(name for piece in pieces for name in _NAME.findall(piece) if name[0] in ".#"), subject


def _selectors(prelude: str) -> Iterator[Selector]:
    """Yield the selectors of a rule as far as they are read."""
    try:
        selectors = [selector for part in split_list(prelude) for selector in read_selectors(part, forgiving=True)]
    except SelectorError:
        return
    if not any(selector.is_unknown for selector in selectors):  # no browser knows it, and drops the rule (4.1)
        yield from (selector for selector in selectors if not selector.unread)


def read_sheet(text: str) -> Sheet:
    """Return the rules of a sheet, as far as they are needed."""
    with _cache_lock:
        if text in _cached:
            _cached.move_to_end(text)
            return _cached[text]
    sheet = Sheet(list(islice(_blocks(COMMENTS.sub(" ", text), "", (), count(), 0), MAX_RULES)))
    with _cache_lock:
        _cached[text] = sheet
        while sum(map(len, _cached)) > MAX_CACHED:
            _cached.popitem(last=False)
    return sheet


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
            case "scope" if root := _ROOT.fullmatch(condition):
                within, inner = _nested(root[1], within) if within else root[1], inner.replace(":scope", "&")
                is_read = True
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


_ROOT: Final = re.compile(r"\(([^()]+)\)")
"""The root of a scope that has no limit."""

_SIMPLE: Final = re.compile(r"[.#](?:[-\w]|[^\x00-\x7f])+")
