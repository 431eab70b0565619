"""Reads the style rules of a page as far as they hide something: declarations, selectors, the cascade (CSS 2.2, 6.4).

Only what a page itself says in `style` and `<style>` is read. A condition that depends on the reader (a width, a state
such as `:hover`) is taken as unknown, and its rules are left out. Time is bounded by `MAX_STEPS`: beyond it no further
rules are applied.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Final, Protocol, TypeAlias

MAX_RULES: Final = 20_000
MAX_STEPS: Final = 200_000
"""Comparisons of an element with a part of a selector, in one page."""

MAX_NESTED: Final = 4
"""Levels of parentheses, and of conditional rules."""

_MAX_CACHED: Final = 50_000
"""Characters of a sheet that is cached. The pages of a site share their short sheets."""

Declarations: TypeAlias = Mapping[str, tuple[str, bool]]
"""By property: its value in lower case, and whether it is important."""

_NO_ELEMENT: Final = ("", "!")
"""The tags of texts and comments."""


class PageNodes(Protocol):
    """What is read of a page: its nodes by numbers, see `Tree`."""

    tags: list[str]
    attributes: list[Mapping[str, str]]
    parents: list[int]
    ends: list[int]


# --- Declarations ---

_SKIPPED: Final = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:([0-9a-fA-F]{1,6})[ \t\r\n\f]?|([^\n0-9a-fA-F]))")
_PART: Final = re.compile(r"""(?:[^;"'(]|"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?|\([^)]*\)?)+""", re.DOTALL)
_IMPORTANT: Final = re.compile(r"\s*!\s*important\s*\Z")
_DISPLAYS: Final = re.compile(
    r"(?:none|contents|block|inline|flow|flow-root|flex|grid|table|ruby|list-item|run-in|math|inherit|initial|unset|"
    r"revert|revert-layer|-webkit-(?:inline-)?(?:box|flex)|(?:inline|table|ruby)-[a-z-]+)(?: [a-z-]+)*"
)
_NUMBER: Final = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?"
_LENGTH: Final = re.compile(rf"({_NUMBER})([a-z]*|%)")
_FUNCTION: Final = re.compile(r"([a-z0-9-]+)\(([^()]*)\)")
_HIDING_WORDS: Final = (
    *("none", "hidden", "collapse", "opacity", "clip", "scale", "matrix", "translate", "\\", "/*", ":-", ": -"),
    *("font-size:", "font-size "),
)
_SIZED: Final = re.compile(r"(?:height|width)\s*:\s*[-+.]?0")


def may_hide(text: str) -> bool:
    """Return False if declarations cannot hide anything: a quick test, which most of them do not pass."""
    text = text.lower()
    return any(word in text for word in _HIDING_WORDS) or ("0" in text and _SIZED.search(text) is not None)


FAR: Final = -900.0
"""Pixels from which something is beside every screen."""

_PIXELS: Final = {"": 1.0, "px": 1.0, "em": 16.0, "rem": 16.0, "vw": 10.0, "vh": 8.0, "%": 1.0, "pt": 1.33, "cm": 37.8}
_SIZES: Final = ("height", "width", "max-height", "max-width")
_SIDES: Final = ("left", "right", "top", "bottom")


def unescape(text: str) -> str:
    """Return a text with CSS escapes replaced (CSS Syntax 3, 4.3.7)."""
    return _ESCAPE.sub(_unescaped, text) if "\\" in text else text


def _unescaped(found: re.Match[str]) -> str:
    if found[1] is None:
        return found[2]
    code = int(found[1], 16)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"


def read_declarations(text: str) -> dict[str, tuple[str, bool]]:
    """Return the declarations of a block: of several for one property the last important one, or else the last."""
    found: dict[str, tuple[str, bool]] = {}
    for part in _PART.findall(_SKIPPED.sub(" ", text)):
        name, colon, value = part.partition(":")
        name, value = unescape(name).strip().lower(), " ".join(unescape(value).lower().split())
        plain = _IMPORTANT.sub("", value)
        is_important = plain != value
        if not colon or (name == "display" and not _DISPLAYS.fullmatch(plain)):
            continue
        if name not in found or is_important or not found[name][1]:
            found[name] = plain, is_important
    return found


def _number(text: str) -> float | None:
    """Return a number or a length in pixels, roughly; None if it is neither."""
    found = _LENGTH.fullmatch(text.strip())
    if found is None or found[2] not in _PIXELS:
        return None
    return float(found[1]) * _PIXELS[found[2]]


def _is_zero(text: str) -> bool:
    found = _LENGTH.fullmatch(text.strip())
    return found is not None and float(found[1]) <= 0


def _functions(text: str) -> list[tuple[str, list[str]]]:
    return [(name, re.split(r"[\s,]+", inner.strip())) for name, inner in _FUNCTION.findall(text)]


def _is_flat(transform: str) -> bool:
    for name, given in _functions(transform):
        if name in ("scale", "scalex", "scaley", "scale3d") and any(map(_is_exactly_zero, given[:2])):
            return True
        if name == "matrix" and len(given) == 6 and all(map(_is_exactly_zero, given[:4])):
            return True
        if name.startswith("translate") and any((_number(one) or 0.0) <= FAR for one in given):
            return True
    return False


def _is_exactly_zero(text: str) -> bool:
    found = _LENGTH.fullmatch(text.strip())
    return found is not None and float(found[1]) == 0


def _is_clipped(path: str) -> bool:
    """Return True for a `clip-path` without an area."""
    for name, given in _functions(path):
        if name == "inset":
            edges = [one for one in given if one != "round"]
            edges = [edges[0], *(edges[1:] or edges[:1])]
            sides = [float(found[1]) for one in edges if (found := _LENGTH.fullmatch(one)) and found[2] == "%"]
            if len(sides) == len(edges) and (min(sides) >= 50 or sides[0] >= 100):
                return True
        is_point = name == "polygon" and all(map(_is_exactly_zero, given))
        if is_point or (name in ("circle", "ellipse") and _is_zero(given[0])):
            return True
    return False


def hides(given: Declarations) -> bool:
    """Return True if declarations hide their element from everybody who looks at the page (SOM 1.0, section 6.2)."""

    def of(name: str) -> str:
        return given[name][0] if name in given else ""

    if of("display") == "none" or of("visibility") in ("hidden", "collapse") or of("content-visibility") == "hidden":
        return True
    if _is_zero(of("opacity")) or _is_zero(of("font-size")):
        return True
    if of("clip-path") and _is_clipped(of("clip-path")):
        return True
    if any(name == "opacity" and _is_zero(inner[0]) for name, inner in _functions(of("filter"))):
        return True
    if any(map(_is_exactly_zero, of("scale").split())) or _is_flat(of("transform")):
        return True
    overflow = (of("overflow"), of("overflow-x"), of("overflow-y"))
    if any("hidden" in one or "clip" in one for one in overflow) and any(_is_zero(of(name)) for name in _SIZES):
        return True
    if of("position") in ("absolute", "fixed"):
        for name, edges in _functions(of("clip")):
            numbers = [_number(edge) for edge in edges]
            if name == "rect" and len(numbers) == 4 and None not in numbers:
                top, right, bottom, left = (edge or 0.0 for edge in numbers)
                if top >= bottom or left >= right:
                    return True
        if any((_number(of(name)) or 0.0) <= FAR for name in _SIDES):
            return True
    return (_number(of("margin-left")) or 0.0) <= FAR


@lru_cache(maxsize=1_024)
def style_hides(style: str) -> bool:
    """Return True if a `style` attribute hides its element."""
    return may_hide(style) and hides(read_declarations(style))


# --- Selectors (Selectors 4) ---

_IDENT: Final = r"(?:[-\w]|[^\x00-\x7f]|\\(?:[0-9a-fA-F]{1,6}[ \t\r\n\f]?|[^\n0-9a-fA-F]))+"
_SIMPLE: Final = re.compile(
    rf"(?P<tag>\*|{_IDENT})|\#(?P<id>{_IDENT})|\.(?P<class>{_IDENT})"
    rf"|\[\s*(?P<name>{_IDENT})\s*(?:(?P<operator>[~|^$*]?=)\s*"
    rf"(?P<value>\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|{_IDENT})\s*(?P<flag>[iIsS])?\s*)?\]"
    rf"|:(?P<pseudo>{_IDENT})(?P<open>\()?",
    re.DOTALL,
)
_COMBINATOR: Final = re.compile(r"\s*([>+~])\s*|\s+")
_STATES: Final = frozenset(
    ("active", "focus", "focus-visible", "focus-within", "fullscreen", "hover", "target", "target-within", "visited")
)
"""States that a page does not have when it is read."""


@dataclass(frozen=True, slots=True)
class Compound:
    """What one element has to be: a tag, an id, classes, attributes, and what functions and states demand."""

    tag: str = ""
    id: str = ""
    classes: tuple[str, ...] = ()
    attributes: tuple[tuple[str, str, str, bool], ...] = ()
    states: tuple[tuple[str, tuple["Selector", ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Selector:
    """A compound and, innermost first, the compounds it stands in or after, each with its combinator."""

    last: Compound
    before: tuple[tuple[str, Compound], ...] = ()
    weight: tuple[int, int, int] = (0, 0, 0)


class _UnknownError(ValueError):
    """A selector that says what is not known of a page, such as a part that is no element of it."""


class _ExhaustedError(Exception):
    """`MAX_STEPS` comparisons were made."""


class _InvalidError(ValueError):
    """A selector that no browser reads."""


def read_selectors(text: str) -> list[Selector]:
    """Return those selectors of a list that can be matched; none if one of them is invalid (Selectors 4, 4.1)."""
    found = list[Selector]()
    for part in islice(_split(text), MAX_RULES):
        try:
            found.append(_read_selector(part.strip(), 0))
        except _UnknownError:
            continue
        except _InvalidError:
            return []
    return found


_NESTING: Final = re.compile(r"""[(\["'\\]""")


def _split(text: str) -> Iterator[str]:
    """Split a list at its commas outside of parentheses, brackets and quotes."""
    if _NESTING.search(text) is None:  # as most are
        yield from text.split(",")
        return
    depth = start = at = 0
    quote = ""
    while at < len(text):
        sign = text[at]
        if sign == "\\":
            at += 1
        elif quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign in "([":
            depth += 1
        elif sign in ")]":
            depth -= 1
        elif sign == "," and depth == 0:
            yield text[start:at]
            start = at + 1
        at += 1
    yield text[start:]


def _closing(text: str, at: int) -> int:
    """Return where the parenthesis before `at` is closed."""
    depth = 1
    while at < len(text):
        depth += (text[at] == "(") - (text[at] == ")")
        if not depth:
            return at
        at += 2 if text[at] == "\\" else 1
    raise _UnknownError


def _read_selector(text: str, level: int) -> Selector:
    if level > MAX_NESTED:
        raise _UnknownError
    if not text:
        raise _InvalidError
    parts: list[tuple[str, Compound]] = []
    combinator, at = "", 0
    ids = classes = tags = 0
    while at < len(text):
        compound, weight, at = _read_compound(text, at, level)
        parts.append((combinator, compound))
        ids, classes, tags = ids + weight[0], classes + weight[1], tags + weight[2]
        if at < len(text):
            found = _COMBINATOR.match(text, at)
            if found is None:
                raise _InvalidError
            combinator, at = found[1] or " ", found.end()
            if at >= len(text):
                raise _InvalidError
    before = [(parts[place][0], parts[place - 1][1]) for place in range(len(parts) - 1, 0, -1)]
    return Selector(parts[-1][1], tuple(before), (ids, classes, tags))


def _read_compound(text: str, at: int, level: int) -> tuple[Compound, tuple[int, int, int], int]:
    tag = id_ = ""
    classes, attributes, states = (
        list[str](),
        list[tuple[str, str, str, bool]](),
        list[tuple[str, tuple[Selector, ...]]](),
    )
    start, added = at, [0, 0, 0]
    while found := _SIMPLE.match(text, at):
        at = found.end()
        if text.startswith("::", at):  # a part that is no element
            raise _UnknownError
        if found["tag"] is not None:
            if found.start() != start:
                raise _InvalidError
            tag = "" if found["tag"] == "*" else unescape(found["tag"]).lower()
            added[2] += bool(tag)
        elif found["id"] is not None:
            name = unescape(found["id"])
            if id_ not in ("", name):
                raise _UnknownError
            id_ = name
            added[0] += 1
        elif found["class"] is not None:
            classes.append(unescape(found["class"]))
            added[1] += 1
        elif found["name"] is not None:
            value = found["value"] or ""
            value = unescape(value[1:-1] if value[:1] in ("'", '"') else value)
            ignores_case = (found["flag"] or "").lower() == "i"
            attributes.append((unescape(found["name"]).lower(), found["operator"] or "", value, ignores_case))
            added[1] += 1
        else:
            state, inner = unescape(found["pseudo"]).lower(), tuple[Selector, ...]()
            if found["open"]:
                end = _closing(text, at)
                if state not in ("is", "where", "not", "matches", "-webkit-any"):
                    raise _UnknownError if state in _UNREAD else _InvalidError
                inner = tuple(_read_inner(text[at:end], level, forgiving=state != "not"))
                at = end + 1
                if state != "where" and inner:
                    heaviest = max(one.weight for one in inner)
                    added = [one + other for one, other in zip(added, heaviest, strict=True)]
            else:
                if state not in _STATES and state not in _PLACES:
                    raise _UnknownError if state in _UNREAD or state.startswith("-") else _InvalidError
                added[1] += 1
            states.append((state, inner))
    if at == start:
        raise _UnknownError if text.startswith(("&", "::"), at) else _InvalidError
    return Compound(tag, id_, tuple(classes), tuple(attributes), tuple(states)), (added[0], added[1], added[2]), at


def _read_inner(text: str, level: int, *, forgiving: bool) -> Iterator[Selector]:
    for part in _split(text):
        try:
            yield _read_selector(part.strip(), level + 1)
        except (_InvalidError, _UnknownError):
            if not forgiving:
                raise


_UNREAD: Final = frozenset(
    (
        *("after", "autofill", "before", "default", "defined", "dir", "empty", "first-letter", "first-line"),
        *("first-of-type", "has", "host", "host-context", "in-range", "indeterminate", "invalid", "lang", "modal"),
        *("last-of-type", "nth-child", "nth-last-child", "nth-last-of-type", "nth-of-type", "only-of-type"),
        *("open", "optional", "out-of-range", "part", "placeholder-shown", "popover-open", "read-only", "read-write"),
        *("required", "slotted", "user-invalid", "user-valid", "valid"),
    )
)
"""What is not read of a page."""

_PLACES: Final = frozenset(
    ("checked", "disabled", "enabled", "first-child", "last-child", "link", "any-link", "only-child", "root", "scope")
)


# --- Sheets ---


@dataclass(frozen=True, slots=True)
class Rule:
    """One selector with its declarations that may matter to whether something is seen."""

    selector: Selector
    given: Declarations
    is_hiding: bool
    order: int


_NAMES: Final = frozenset(
    (*_SIZES, *_SIDES, "clip", "clip-path", "content-visibility", "display", "filter", "font-size", "margin-left")
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

    def hiding_rules(self, names: Set[str]) -> Iterator[Rule]:
        """Yield the rules that hide something, but for classes and ids that are not among `names`."""
        for order in self.hiding:
            prelude, block = self.blocks[order]
            if _PLAIN_NAME.search(prelude) is None or any(
                "\\" in part or all(name in names for name in _PLAIN_NAME.findall(part.partition(":")[0]))
                for part in _split(prelude)
            ):
                yield from (rule for rule in _rules(prelude, block, order) if rule.is_hiding)

    def rules(self, names: Set[str]) -> Iterator[Rule]:
        """Yield the rules that may be about elements with these tags, classes and ids."""
        for order, (prelude, block) in enumerate(self.blocks):
            if _ANY.search(prelude) or not names.isdisjoint(_WORD.findall(prelude)):
                yield from _rules(prelude, block, order)


_PLAIN_NAME: Final = re.compile(r"[.#]((?:[-\w]|[^\x00-\x7f])+)")
_ANY: Final = re.compile(r"[*\[\\]|:(?:is|where|not|matches|-webkit-any)\b|(?:^|[\s>+~,]):")
"""What makes a selector one of elements of any name."""

_WORD: Final = re.compile(r"[^\s.#>+~,*:]+")


@lru_cache(maxsize=2_048)
def _relevant(block: str) -> tuple[dict[str, tuple[str, bool]], bool]:
    """Return the declarations of a block that may matter, and whether they hide."""
    given = {name: value for name, value in read_declarations(block).items() if name in _NAMES}
    return given, bool(given) and hides({**_ALONE, **given})


def _rules(prelude: str, block: str, order: int) -> Iterator[Rule]:
    given, is_hiding = _relevant(block)
    if given:
        for selector in read_selectors(prelude):
            yield Rule(selector, given, is_hiding, order)


def read_sheet(sheet: str) -> Sheet:
    """Return the rules of a sheet, as far as they are needed."""
    blocks = tuple(islice(_blocks(_SKIPPED.sub(" ", sheet), 0), MAX_RULES))
    hiding = (order for order, (_, block) in enumerate(blocks) if may_hide(block) and _relevant(block)[1])
    return Sheet(blocks, tuple(hiding))


_read_short_sheet = lru_cache(maxsize=64)(read_sheet)
_SIGN: Final = re.compile(r"""[{};]|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?|\\.""", re.DOTALL)


def _blocks(sheet: str, level: int) -> Iterator[tuple[str, str]]:
    """Yield the prelude and the declarations of each rule, also of those under conditions that hold for all readers."""
    depth, start, opened, count, last = 0, 0, 0, 0, 0
    nested = -1
    for found in _SIGN.finditer(sheet):
        sign = found[0]
        if sign == "{":
            if depth == 0:
                opened = last = found.end()
            elif depth == 1 and nested < 0:
                nested = last
            depth += 1
        elif sign == "}":
            if depth == 0:
                start = found.end()
                continue
            depth -= 1
            if depth == 0:
                prelude, block = sheet[start : opened - 1].strip(), sheet[opened : found.start()]
                start = found.end()
                count += 1
                if count > MAX_RULES:
                    return
                if prelude.startswith("@"):
                    if level < MAX_NESTED and _holds(prelude):
                        yield from _blocks(block, level + 1)
                else:
                    yield prelude, block if nested < 0 else sheet[opened:nested]
                nested = -1
        elif sign == ";":
            if depth == 0:
                start = found.end()
            elif depth == 1:
                last = found.end()
    if depth == 1 and nested < 0:
        yield sheet[start : opened - 1].strip(), sheet[opened:]


def _holds(prelude: str) -> bool:
    name, _, condition = prelude[1:].partition(" ")
    if name.lower() == "media":
        return reads_media(condition)
    return name.lower() == "layer" or (name.lower() == "supports" and "(" in condition[:1])


# --- Matching ---


@dataclass(slots=True)
class Matcher:
    """Matches the rules of one scope of a page: its elements from `start` to `end`."""

    tree: PageNodes
    start: int
    end: int
    steps: int = 0
    _siblings: dict[int, tuple[list[int], dict[int, int]]] = field(default_factory=dict)

    def hidden(self, sheets: Sequence[Sheet]) -> set[int]:
        """Return the elements that the sheets hide, together with their `style`, by the cascade."""
        hidden = set[int]()
        if not any(sheet.hiding for sheet in sheets):
            return hidden
        known, classes = set[str](), set[str]()
        for given in self.tree.attributes[self.start : self.end]:
            if given:
                if "class" in given:
                    classes.add(given["class"])
                if "id" in given:
                    known.add(given["id"])
        known.update(name for names in classes for name in names.split())
        hiding = _Index((number, rule) for number, sheet in enumerate(sheets) for rule in sheet.hiding_rules(known))
        if not hiding.is_filled:
            return hidden
        found = list[int]()
        with suppress(_ExhaustedError):
            tags, attributes = self.tree.tags, self.tree.attributes
            for at in range(self.start, self.end):
                if not attributes[at] and not hiding.has(tags[at]):
                    continue
                if (rules := hiding.of(self.tree, at)) and self._is_matched(at, rules):
                    found.append(at)
        names = {self.tree.tags[at] for at in found}
        for at in found:
            names.update(_names(self.tree.attributes[at]))
        index = _Index((number, rule) for number, sheet in enumerate(sheets) for rule in sheet.rules(names))
        with suppress(_ExhaustedError):
            hidden.update(at for at in found if self._is_hidden(at, index))
        return hidden

    def _is_hidden(self, at: int, index: "_Index") -> bool:
        matching = [pair for pair in index.of(self.tree, at) if self.matches(at, pair[1].selector)]
        matching.sort(key=lambda pair: (pair[1].selector.weight, pair[0], pair[1].order))
        merged: dict[str, tuple[str, bool]] = {}
        own = read_declarations(self.tree.attributes[at].get("style", ""))
        for given in (*(rule.given for _, rule in matching), own):
            for name, (value, is_important) in given.items():
                if name not in merged or is_important or not merged[name][1]:
                    merged[name] = value, is_important
        return hides(merged)

    def _is_matched(self, at: int, rules: Sequence[tuple[int, Rule]]) -> bool:
        return any(self.matches(at, rule.selector) for _, rule in rules)

    def matches(self, at: int, selector: Selector) -> bool:
        """Return True if an element is what a selector describes."""
        return self._is(at, selector.last) and self._stands(at, selector.before, 0)

    def _stands(self, at: int, before: Sequence[tuple[str, Compound]], place: int) -> bool:
        if place == len(before):
            return True
        combinator, compound = before[place]
        if combinator in (">", " "):
            above = self._above(at)
            while above >= 0:
                if self._is(above, compound) and self._stands(above, before, place + 1):
                    return True
                if combinator == ">":
                    return False
                above = self._above(above)
            return False
        siblings, places = self._beside(at)
        for other in range(places[at] - 1, -1, -1):
            if self._is(siblings[other], compound) and self._stands(siblings[other], before, place + 1):
                return True
            if combinator == "+":
                return False
        return False

    def _above(self, at: int) -> int:
        above = self.tree.parents[at]
        return above if above >= self.start or self.start == 0 else -1

    def _beside(self, at: int) -> tuple[list[int], dict[int, int]]:
        parent = self.tree.parents[at]
        if parent not in self._siblings:
            tags, ends = self.tree.tags, self.tree.ends
            child, end = (self.start, self.end) if parent < self.start else (parent + 1, ends[parent])
            elements = list[int]()
            while child < end:
                if tags[child] not in _NO_ELEMENT:
                    elements.append(child)
                child = ends[child]
            self._siblings[parent] = elements, {one: place for place, one in enumerate(elements)}
        return self._siblings[parent]

    def _is(self, at: int, compound: Compound) -> bool:
        self.steps += 1
        tag, given = self.tree.tags[at], self.tree.attributes[at]
        if self.steps > MAX_STEPS:
            raise _ExhaustedError
        if compound.tag and compound.tag != tag:
            return False
        if compound.id and given.get("id") != compound.id:
            return False
        if compound.classes:
            names = given.get("class", "")
            if compound.classes[0] not in names or not set(names.split()).issuperset(compound.classes):
                return False
        if not compound.attributes and not compound.states:
            return True
        return all(_has(given, *one) for one in compound.attributes) and all(
            self._state(at, state, inner) for state, inner in compound.states
        )

    def _state(self, at: int, state: str, inner: Sequence[Selector]) -> bool:
        tag, given = self.tree.tags[at], self.tree.attributes[at]
        if state == "not":
            return not any(self.matches(at, one) for one in inner)
        if inner or state in ("is", "where", "matches", "-webkit-any"):
            return any(self.matches(at, one) for one in inner)
        if state in ("root", "scope"):
            return at == 0
        if state in ("link", "any-link"):
            return tag in ("a", "area") and "href" in given
        if state == "checked":
            return "checked" in given or "selected" in given
        if state in ("disabled", "enabled"):
            return tag in ("button", "fieldset", "input", "select", "textarea") and (
                ("disabled" in given) == (state == "disabled")
            )
        if state in ("first-child", "last-child", "only-child") and at:
            siblings, places = self._beside(at)
            is_first, is_last = places[at] == 0, places[at] == len(siblings) - 1
            return (is_first or state == "last-child") and (is_last or state == "first-child")
        return False


def _names(given: Mapping[str, str]) -> Iterator[str]:
    """Yield the classes and the id of an element."""
    if "class" in given:
        yield from given["class"].split()
    if "id" in given:
        yield given["id"]


def _has(given: Mapping[str, str], name: str, operator: str, value: str, ignores_case: bool) -> bool:
    if name not in given:
        return False
    actual = given[name]
    if ignores_case or name == "type":
        actual, value = actual.lower(), value.lower()
    if operator == "":
        return True
    if operator == "=":
        return actual == value
    if operator == "~=":
        return value in actual.split()
    if operator == "|=":
        return actual == value or actual.startswith(f"{value}-")
    if not value:
        return False
    if operator == "^=":
        return actual.startswith(value)
    return actual.endswith(value) if operator == "$=" else value in actual


class _Index:
    """Rules by what the last compound of their selectors demands: an id, a class, a tag, or nothing of these."""

    def __init__(self, rules: Iterable[tuple[int, Rule]]) -> None:
        self._by: dict[str, list[tuple[int, Rule]]] = {}
        self._named: dict[str, list[tuple[int, Rule]]] = {}
        self._others: list[tuple[int, Rule]] = []
        for pair in rules:
            last = pair[1].selector.last
            key = f"#{last.id}" if last.id else f".{last.classes[0]}" if last.classes else last.tag
            (self._by.setdefault(key, []) if key else self._others).append(pair)
        self.is_filled = bool(self._by or self._others)

    def has(self, tag: str) -> bool:
        """Return True if a rule may match an element with this tag and no attributes."""
        return tag in self._by or bool(self._others)

    def of(self, tree: PageNodes, at: int) -> Sequence[tuple[int, Rule]]:
        """Return the rules that may match an element, each with the number of its sheet."""
        tag, given, by = tree.tags[at], tree.attributes[at], self._by
        if tag in _NO_ELEMENT:
            return ()
        found: Sequence[tuple[int, Rule]] = by.get(tag, ())
        if given:
            if names := given.get("class"):
                named = self._named.get(names)
                if named is None:
                    named = self._named[names] = [
                        pair for name in dict.fromkeys(names.split()) for pair in by.get(f".{name}", ())
                    ]
                found = [*found, *named] if found and named else found or named
            if (name := given.get("id")) and (named := by.get(f"#{name}")):
                found = [*found, *named]
        return [*found, *self._others] if self._others else found


def hidden_by_rules(tree: PageNodes, sheets: Iterable[str], start: int, end: int) -> set[int]:
    """Return the elements of a scope that its sheets hide."""
    read = [_read_short_sheet(sheet) if len(sheet) <= _MAX_CACHED else read_sheet(sheet) for sheet in sheets]
    return Matcher(tree, start, end).hidden(read)
