"""Reads CSS selectors (Selectors 4): those of style sheets, of agents and of declarations.

Only definite errors are refused. A selector with a name that says nothing about a page as it is read (`:hover`) matches
nothing; one with a part that is not read (`::before`, `:lang(de)`, a namespace) has that part in `unread`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

MAX_LENGTH: Final = 2_000
MAX_DEPTH: Final = 20
"""Levels of parentheses."""

ESCAPE: Final = r"\\(?>[0-9a-fA-F]{1,6}\s?|[^\n\r\f])"
_STRING: Final = r'"(?:[^"\\\n]|\\[\s\S])*+"|' + r"'(?:[^'\\\n]|\\[\s\S])*+'"
_COMMENT: Final = r"/\*[\s\S]*?\*/"
_SPACE: Final = rf"(?:\s|{_COMMENT})*+"
_NAME: Final = rf"(?>--|-?(?>[A-Za-z_]|[^\x00-\x7f]|{ESCAPE}))(?>[-0-9A-Za-z_]|[^\x00-\x7f]|{ESCAPE})*+"
_PREFIX: Final = rf"(?:(?:{_NAME}|\*)?\|(?![|=]))?"
_TOKEN: Final = re.compile(
    rf"(?P<space>(?:\s|{_COMMENT})++)|(?P<comma>,)|(?P<combinator>\|\||[>+~])|::?(?P<function>{_NAME})\("
    rf"|\#(?P<id>{_NAME})|\.(?P<class>{_NAME})|(?P<state>::?{_NAME})"
    rf"|\[{_SPACE}{_PREFIX}(?P<attribute>{_NAME}){_SPACE}(?:(?P<operator>[~|^$*]?=){_SPACE}"
    rf"(?P<value>{_NAME}|{_STRING}){_SPACE}(?:(?P<flag>[A-Za-z]){_SPACE})?)?\]"
    rf"|(?P<type>{_PREFIX}(?:{_NAME}|\*)|&)"
)
_BRACKETS: Final = re.compile(rf"(?P<skip>{_COMMENT}|{_STRING}|{ESCAPE})|(?P<open>[(\[])|(?P<close>[)\]])|(?P<comma>,)")
_SPECIAL: Final = re.compile(r"[\\\"'(\[/]")
_COUNT: Final = re.compile(
    r"\s*(?:(?P<word>odd|even)|(?P<only>[+-]?\d+)|(?P<step>[+-]?\d*)n(?:\s*(?P<sign>[+-])\s*(?P<offset>\d+))?)"
    r"\s*(?:\sof\s(?P<of>[\s\S]+))?",
    re.IGNORECASE,
)
_ESCAPED: Final = re.compile(r"\\(?:([0-9a-fA-F]{1,6})[ \t\r\n\f]?|([^\n0-9a-fA-F]))")

ANY: Final = frozenset(("is", "where", "matches", "-webkit-any", "-moz-any"))
_COUNTING: Final = frozenset(("nth-child", "nth-last-child", "nth-of-type", "nth-last-of-type"))
_WITH_SELECTORS: Final = ANY | {"not", "has", "host", "host-context", "slotted", "cue"}
NEVER: Final = frozenset(
    ("active", "autofill", "focus", "focus-visible", "focus-within", "fullscreen", "hover", "modal", "popover-open")
) | {"target", "target-within", "user-invalid", "user-valid", "visited"}
"""States that a page does not have when it is read."""

_PLACES: Final = {
    "first-child": ("nth-child",),
    "last-child": ("nth-last-child",),
    "only-child": ("nth-child", "nth-last-child"),
    "first-of-type": ("nth-of-type",),
    "last-of-type": ("nth-last-of-type",),
    "only-of-type": ("nth-of-type", "nth-last-of-type"),
}
_READ: Final = NEVER | {
    *("any-link", "checked", "defined", "disabled", "empty", "enabled", "host", "link", "optional", "required"),
    *("root", "scope"),
}
_KNOWN: Final = frozenset(
    (
        *("after", "backdrop", "before", "cue", "default", "details-content", "dir", "file-selector-button"),
        *("first-letter", "first-line", "grammar-error", "highlight", "host-context", "in-range", "indeterminate"),
        *("invalid", "lang", "marker", "open", "out-of-range", "part", "placeholder", "placeholder-shown"),
        *("read-only", "read-write", "selection", "slotted", "spelling-error", "target-text", "valid"),
    )
)
"""What browsers know and what is not read of a page."""


class SelectorError(ValueError):
    """A text that is not a CSS selector; it says why."""


@dataclass(frozen=True, slots=True)
class PseudoClass:
    """A pseudo-class: its name, the selectors in its parentheses, and for `:nth-child(3n + 1)` the 3 and the 1."""

    name: str
    selectors: tuple["Selector", ...] = ()
    step: int = 0
    offset: int = 1


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute and what its value has to be: `operator` is "" if it only has to be there."""

    name: str
    operator: str
    value: str
    ignores_case: bool


@dataclass(frozen=True, eq=False)
class Compound:
    """What one element has to be. Equal ones are the same object if they are made by `_compound`."""

    tag: str = ""
    ids: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    states: tuple[PseudoClass, ...] = ()

    @cached_property
    def names(self) -> frozenset[str]:
        """The ids and classes as `#id` and `.class`."""
        return frozenset([f"#{name}" for name in self.ids] + [f".{name}" for name in self.classes])


_compound: Final = lru_cache(maxsize=4_096)(Compound)
SCOPE: Final = Compound(states=(PseudoClass("scope"),))


@dataclass(frozen=True, eq=False)
class Selector:
    """Compounds from the outermost to the element itself, each with the combinator before it; "" for the first.

    `weight` is its specificity. `unread` is the first part of it that cannot be matched, otherwise "".
    """

    steps: tuple[tuple[str, Compound], ...]
    weight: tuple[int, int, int]
    unread: str = ""

    @property
    def is_unknown(self) -> bool:
        """Return True if no browser knows it either."""
        name = self.unread.strip(":(").lower()
        return self.unread.startswith(":") and name not in _KNOWN and not name.startswith(("-webkit-", "view-"))

    @cached_property
    def names(self) -> frozenset[str]:
        """The ids and classes of all compounds, as `#id` and `.class`."""
        return frozenset[str]().union(*(compound.names for _, compound in self.steps))

    @cached_property
    def subject(self) -> frozenset[str]:
        """The tag, the ids and the classes of the element itself."""
        compound = self.steps[-1][1]
        return compound.names | {compound.tag} if compound.tag else compound.names

    @cached_property
    def reaches_out(self) -> bool:
        """Return True if it is for the host of a shadow root, or for what is in its slots."""
        return any(state.name in ("host", "slotted") for state in self.steps[-1][1].states)


def selector_fault(text: str) -> str | None:
    """Return why a text is not a CSS selector, or None if it is or may be one."""
    try:
        read_selectors(text)
    except SelectorError as error:
        return str(error)
    return None


@lru_cache(maxsize=4_096)
def read_selectors(text: str, forgiving: bool = False) -> tuple[Selector, ...]:
    """Return the selectors of a list. If `forgiving`, invalid ones in `:is()` and `:where()` are dropped (4.1).

    Raises:
        SelectorError: the text is not a list of selectors, or too long.
    """
    if len(text) > MAX_LENGTH:
        raise SelectorError(f"it is longer than {MAX_LENGTH} characters")
    return tuple(_read_list(text, MAX_DEPTH, forgiving))


def unescape(text: str) -> str:
    """Return a text with CSS escapes replaced (CSS Syntax 3, 4.3.7)."""
    return _ESCAPED.sub(_unescaped, text) if "\\" in text else text


def _unescaped(escape: re.Match[str]) -> str:
    if escape[1] is None:
        return escape[2]
    code = int(escape[1], 16)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"


def split_list(text: str) -> list[str]:
    """Split a list of selectors at its commas outside of parentheses, brackets and quotes."""
    if _SPECIAL.search(text) is None:
        return text.split(",")
    parts: list[str] = []
    depth = start = 0
    for match in _BRACKETS.finditer(text):
        depth += (match["open"] is not None) - (match["close"] is not None)
        if match["comma"] and depth == 0:
            parts.append(text[start : match.start()])
            start = match.end()
    return [*parts, text[start:]]


class _Parts:
    """The parts of a selector while it is read."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, Compound]] = []
        self.combinator = self.unread = self.tag = ""
        self.is_filled = False
        self.ids: list[str] = []
        self.classes: list[str] = []
        self.attributes: list[Attribute] = []
        self.states: list[PseudoClass] = []
        self.weight = (0, 0, 0)

    def end_compound(self) -> None:
        """End the compound that is being read, if there is one."""
        if not self.is_filled:
            return
        compound = _compound(self.tag, tuple(self.ids), tuple(self.classes), tuple(self.attributes), tuple(self.states))
        self.steps.append((self.combinator, compound))
        self.combinator = self.tag = ""
        self.is_filled = False
        for parts in (self.ids, self.classes, self.attributes, self.states):
            parts.clear()

    def weigh(self, *more: int) -> None:
        """Add to the specificity."""
        ids, classes, tags = (own + added for own, added in zip(self.weight, more, strict=True))
        self.weight = ids, classes, tags


def _read_list(text: str, depth: int, forgiving: bool, *, relative: bool = False) -> Iterator[Selector]:
    for part in split_list(text):
        yield _read_selector(part, depth, forgiving, relative=relative)


def _read_selector(text: str, depth: int, forgiving: bool, *, relative: bool) -> Selector:
    """Return one selector. A `relative` one may begin with a combinator (3.5)."""
    if depth == 0:
        raise SelectorError("its functions are nested too deeply")
    parts, at = _Parts(), 0
    if relative:
        parts.steps.append(("", SCOPE))
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise SelectorError(_unexpected(text, at))
        at = match.end()
        kind = match.lastgroup
        if kind == "space":
            parts.end_compound()
        elif kind == "combinator":
            parts.end_compound()
            if not parts.steps or parts.combinator:
                raise SelectorError(f'nothing stands before "{match[0]}"')
            parts.combinator = match[0]
            parts.unread = parts.unread or match[0] * (match[0] == "||")
        else:
            if not parts.is_filled and parts.steps:
                parts.combinator = parts.combinator or " "
            if match["function"] is not None:
                end = _closing(text, at)
                if end is None:
                    raise SelectorError(f'the "(" of :{match["function"]}( is never closed')
                _add_function(parts, match[0], match["function"].lower(), text[at:end], depth - 1, forgiving)
                at = end + 1
            else:
                _add_simple(parts, match)
            parts.is_filled = True
    parts.end_compound()
    if parts.combinator or len(parts.steps) == relative:
        raise SelectorError("a selector is missing at its end")
    return Selector(tuple(parts.steps), parts.weight, parts.unread)


def _unexpected(text: str, at: int) -> str:
    if re.match(r"#-?\d", text[at : at + 3]):
        return 'an id after "#" cannot begin with a digit'
    if text[at] == "[":
        return 'what begins with "[" is not a complete attribute'
    return f'"{text[at]}" is not expected there'


def _add_simple(parts: _Parts, match: re.Match[str]) -> None:
    """Add a simple selector without parentheses to the compound."""
    if match["type"] is not None:
        if parts.is_filled:
            raise SelectorError(f'"{match[0]}" has to come first')
        space, bar, name = match[0].rpartition("|")
        parts.unread = parts.unread or (match[0] if (bar and space != "*") or name == "&" else "")
        parts.tag = "" if name == "*" else unescape(name).lower()
        parts.weigh(0, 0, int(name != "*"))
    elif match["id"] is not None:
        parts.ids.append(unescape(match["id"]))
        parts.weigh(1, 0, 0)
    elif match["class"] is not None:
        parts.classes.append(unescape(match["class"]))
        parts.weigh(0, 1, 0)
    elif match["attribute"] is not None:
        value = match["value"] or ""
        value = unescape(value[1:-1] if value[:1] in ("'", '"') else value)
        ignores_case = (match["flag"] or "").lower() == "i"
        parts.attributes.append(
            Attribute(unescape(match["attribute"]).lower(), match["operator"] or "", value, ignores_case)
        )
        parts.weigh(0, 1, 0)
    else:
        name = unescape(match["state"]).lower()
        if name[1:] in _PLACES:
            parts.states += map(PseudoClass, _PLACES[name[1:]])
        else:
            parts.states.append(PseudoClass(name[1:]))
            parts.unread = parts.unread or (name if name[1:] not in _READ else "")
        parts.weigh(0, 1, 0)


def _add_function(parts: _Parts, written: str, name: str, argument: str, depth: int, forgiving: bool) -> None:
    """Add a pseudo-class or pseudo-element with parentheses to the compound."""
    selectors, step, offset = tuple[Selector, ...](), 0, 1
    if name.startswith("nth-"):
        count = _COUNT.fullmatch(argument)
        if count is None:
            raise SelectorError(f'"{argument.strip()}" is not a position for :{name}()')
        step, offset = _read_count(count)
        if count["of"]:
            selectors = tuple(_read_list(count["of"], depth, forgiving))
    elif name == "lang":
        languages = (part.strip(" '\"*-").lower() for part in argument.split(","))
        selectors = tuple(Selector((("", Compound(tag=language)),), (0, 1, 0)) for language in languages)
    elif name in ANY and not argument.strip():
        pass
    elif name in _WITH_SELECTORS:
        try:
            if name in ANY and forgiving:
                selectors = tuple(_read_forgiving(argument, depth))
            else:
                selectors = tuple(_read_list(argument, depth, forgiving, relative=name == "has"))
        except SelectorError as error:
            raise SelectorError(f"in :{name}(), {error}") from None
    is_slotted = forgiving and written.lower() == "::slotted("  # only style sheets have slots
    if name not in ANY | _COUNTING | {"not", "has", "host", "lang"} or (written.startswith("::") and not is_slotted):
        parts.unread = parts.unread or written * (not is_slotted)
    parts.unread = next((selector.unread for selector in selectors if selector.unread), parts.unread)
    parts.states.append(PseudoClass(name, selectors, step, offset))
    if name in _COUNTING:
        parts.weigh(0, 1, 0)
    if name != "where" and selectors:
        parts.weigh(*max(selector.weight for selector in selectors))


def _read_forgiving(argument: str, depth: int) -> Iterator[Selector]:
    for part in split_list(argument):
        try:
            selector = _read_selector(part, depth, True, relative=False)
        except SelectorError:
            continue
        if not selector.unread:
            yield selector


def _read_count(count: re.Match[str]) -> tuple[int, int]:
    if count["word"]:
        return 2, int(count["word"].lower() == "odd")
    if count["only"]:
        return 0, int(count["only"][:9])
    step = count["step"]
    offset = int((count["sign"] or "") + (count["offset"] or "0")[:9])
    return int(step[:9] + "1" if step in ("", "+", "-") else step[:9]), offset


def _closing(text: str, start: int) -> int | None:
    """Return where the parenthesis before `start` is closed."""
    depth = 1
    for match in _BRACKETS.finditer(text, start):
        depth += (match["open"] is not None) - (match["close"] is not None)
        if depth == 0:
            return match.start()
    return None
