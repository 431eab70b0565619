"""Which elements the style rules of a page hide, by the cascade (CSS Cascade 5).

Only what a page itself says in `style` and `<style>` is read. What depends on a state such as `:hover` is left out.
Time is bounded (see `Matcher`): beyond it no further rules are applied.
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from math import inf
from typing import Final

from awp_publish.pages.declarations import (
    FADES,
    INHERITED,
    RELEVANT,
    TOGETHER,
    Declarations,
    hides_box,
    hides_text,
    is_faded,
    is_rendered,
    read_declarations,
)
from awp_publish.pages.matching import ExhaustedError, Matcher, PageNodes
from awp_publish.pages.sheets import COMPUTED, Layer, Sheet

MAX_GENERATED: Final = 300_000
"""Elements for which the rules of one property may be applied, one by one."""

NOTHING: Final[Mapping[int, Declarations]] = {}
_VARIABLE: Final = re.compile(r"var\(\s*(--[^\s,()]+)\s*(?:,([^()]*))?\)")
_NAME: Final = re.compile(r"var\(\s*(--[^\s,()]+)")
_MAX_REPLACED: Final = 8
"""Variables of one value that are looked up, with those in their values."""

_FIELDS: Final = frozenset(("button", "input", "select", "textarea"))
_PICTURES: Final = frozenset(("audio", "canvas", "embed", "iframe", "img", "object", "svg", "video"))
_OPERATED: Final = _FIELDS | {"a", "area", "summary"}
"""Elements whose icon may stand for a text beside every screen."""

_MIN_PAGE: Final = 2_000
_MOST: Final = 2 / 3
"""Characters that an element has at least, and the part of the page's, if it is the page."""

_MANY_NODES: Final = 8
"""What has less than one in so many of the nodes is not taken for the page."""

_UNREAD: Final = frozenset(("noscript", "script", "style", "title"))
"""Elements whose text is none of the page."""


class Styles:
    """What the sheets of one scope of a page hide, together with its `style` attributes.

    `boxes` are the elements that are hidden with all in them, `texts` are texts that are hidden; `unseen` are those of
    both that are hidden from the eyes only, as texts for screen readers are. `base` are elements of the scope of which
    something is declared elsewhere, by browsers or by a shadow root; `outside` is what this shadow root declares of its
    host and of what is in its slots.
    """

    def __init__(
        self,
        page: PageNodes,
        matcher: Matcher,
        sheets: Sequence[Sheet],
        styled: Iterable[int] = (),
        base: Mapping[int, Declarations] = NOTHING,
    ) -> None:
        self._page, self._matcher, self._sheets, self._base = page, matcher, sheets, base
        self._ranks = _ranks(layer for sheet in sheets for layer in sheet.layers)
        self._custom: dict[int, dict[str, tuple[str, bool]]] = {}
        self._cascaded: dict[int, Declarations] = {}
        self.boxes, self.texts, self.unseen = set[int](), set[int](), set[int]()
        concerns = {at: _together(declared) for at, declared in base.items()}
        for at in styled:
            own = _together(self._styled(at))
            concerns[at] = concerns.get(at, own) | own
        reached = set[int]()
        with suppress(ExhaustedError):
            for sheet in sheets:
                for rule, properties in sheet.hiding_rules(matcher.names):
                    for at in matcher.matching(rule.selector):
                        if rule.selector.reaches_out:
                            reached.add(at)
                        elif matcher.start <= at < matcher.end:
                            concerns[at] = concerns.get(at, properties) | properties
        declared = self._declared(sorted(reached), RELEVANT, True)
        self.outside = {at: own for at, own in declared.items() if own}
        among = sorted(concerns)
        for properties in set(concerns.values()):
            self._cascade([at for at in among if concerns[at] == properties], properties)
        self._reveal_page(among)
        self.boxes.update(at for at in among if hides_box(self._cascaded[at]))
        self.unseen.update(at for at in self.boxes if is_rendered(self._cascaded[at]))
        closed, tops, hiding = 0, list[int](), set[str]()
        for at in among:
            if at in self.boxes:
                closed = max(closed, page.ends[at])
            elif at >= closed and (names := [name for name in INHERITED if hides_text(name, self._cascaded[at])]):
                closed = page.ends[at]
                tops.append(at)
                hiding.update(names)
        inside = [at for top in tops for at in range(top, page.ends[top]) if page.tags[at]]
        self._cascade(inside, frozenset(hiding))
        for at in tops:
            self._look_into(at)

    def values(
        self,
        name: str,
        values: re.Pattern[str],
        pseudo: str = "",
        styled: Iterable[int] = (),
        tags: Container[str] | None = None,
    ) -> dict[int, str]:
        """Return what is declared of one property, by element; of `before` or `after` with that `pseudo`.

        Only rules with some `values` are read, and only those for elements with some `tags`, if given; `styled` are
        elements with a `style` of their own that may declare it.
        """
        declared: dict[int, list[tuple[float, Declarations]]] = {}
        left = MAX_GENERATED
        ranked = [
            (self._ranks[rule.layer], rule)
            for sheet in self._sheets
            for rule in sheet.declaring(name, values, pseudo, self._matcher.names)
            if tags is None or (tag := rule.selector.steps[-1][1].tag) == "" or tag in tags
        ]
        ranked.sort(key=lambda each: (each[0], each[1].selector.weight))
        with suppress(ExhaustedError):
            for rank, rule in ranked:
                elements = self._matcher.matching(rule.selector)
                left -= len(elements)
                for at in elements if left > 0 else ():
                    declared.setdefault(at, []).append((rank, rule.declarations))
        for at in styled:
            if name in (own := self._styled(at)):
                declared.setdefault(at, []).append((inf, own))
        return {at: _merge(own, (name,))[name][0] for at, own in declared.items()}

    def _styled(self, at: int) -> Declarations:
        return read_declarations(self._page.attributes[at].get("style", ""))

    def _cascade(self, among: Sequence[int], properties: frozenset[str]) -> None:
        """Compute these properties of some elements."""
        declared = self._declared(among, properties)
        if open_ := [at for at in among if any(_is_open(name, value) for name, (value, _) in declared[at].items())]:
            self._read_variables(open_, declared)
            for at in open_:
                values = ((name, self._replace(at, name, value), key) for name, (value, key) in declared[at].items())
                declared[at] = {name: (value, key) for name, value, key in values if value}
        for at, own in declared.items():
            self._cascaded[at] = {**self._cascaded.get(at, {}), **own}

    def _names(self, among: Iterable[int]) -> set[str]:
        page = self._page
        names = {page.tags[at] for at in among}
        for attributes in (page.attributes[at] for at in among):
            names.update([f".{name}" for name in attributes.get("class", "").split()])
            names.add(f"#{attributes['id']}" if "id" in attributes else "")
        return names

    def _declared(
        self, among: Sequence[int], properties: frozenset[str], is_outside: bool = False, *, custom: bool = False
    ) -> dict[int, Declarations]:
        """Return the declarations that take effect of those that apply to each element."""
        declared: dict[int, list[tuple[float, Declarations]]] = {at: [] for at in among}
        if among and self._sheets:
            names = self._names(among)
            each = (sheet.variables(properties) if custom else sheet.rules(names, properties) for sheet in self._sheets)
            ranked = [(self._ranks[rule.layer], rule) for rules in each for rule in rules]
            ranked.sort(key=lambda each: (each[0], each[1].selector.weight))  # those of one weight are in order
            with suppress(ExhaustedError):
                for rank, rule in ranked:
                    if rule.selector.reaches_out == is_outside:
                        for at in self._matcher.matching(rule.selector, among):
                            if at in declared:
                                declared[at].append((rank, rule.declarations))
        for at, own in declared.items():
            if at in self._base:
                own.insert(0, (-1.0, self._base[at]))
            if not is_outside and "style" in self._page.attributes[at]:
                own.append((inf, self._styled(at)))
        return {at: _merge(own, properties) for at, own in declared.items()}

    def _reveal_page(self, among: Iterable[int]) -> None:
        """Forget what makes nearly the whole page transparent or invisible: its scripts show it when it is loaded."""
        page = self._page
        faded = [at for at in among if is_faded(self._cascaded[at])]
        if self._matcher.start or not any((page.ends[at] - at) * _MANY_NODES > page.ends[0] for at in faded):
            return
        hidden = {at for at in among if hides_box(self._cascaded[at])}.difference(faded)
        lengths, closed = [0], 0
        for at in range(page.ends[0]):
            if at in hidden or page.tags[at] in _UNREAD:
                closed = max(closed, page.ends[at])
            lengths.append(lengths[-1] + (len(page.texts[at].strip()) if at >= closed else 0))
        for at in faded:
            if lengths[page.ends[at]] - lengths[at] >= max(_MIN_PAGE, _MOST * lengths[-1]):
                own = self._cascaded[at]
                self._cascaded[at] = {name: own[name] for name in own if name not in FADES}

    def _read_variables(self, elements: Sequence[int], declared: Mapping[int, Declarations]) -> None:
        """Compute the custom properties that what is declared of some elements uses."""
        line = set[int]()
        for at in elements:
            while at >= 0 and at not in line:
                line.add(at)
                at = self._page.parents[at]
        among = sorted(line)
        values = [value for at in elements for name, (value, _) in declared[at].items() if _is_open(name, value)]
        looked_up = frozenset[str]()
        for _ in range(_MAX_REPLACED):
            names = frozenset(_NAME.findall(" ".join(values)))
            if names <= looked_up:
                break
            for at, custom in self._declared(among, names - looked_up, custom=True).items():
                self._custom.setdefault(at, {}).update(custom)
            looked_up |= names
            values = [custom[name][0] for custom in self._custom.values() for name in names if name in custom]

    def _replace(self, at: int, name: str, value: str) -> str:
        """Return a value with its variables replaced, "" if one is not declared."""
        if not _is_open(name, value):
            return value
        for _ in range(_MAX_REPLACED):
            if (variable := _VARIABLE.search(value)) is None:
                return value.strip()
            holder = at
            while holder >= 0 and variable[1] not in self._custom.get(holder, ()):
                holder = self._page.parents[holder]
            if holder < 0 and variable[2] is None:
                return ""
            found = self._custom[holder][variable[1]][0] if holder >= 0 else variable[2]
            value = f"{value[: variable.start()]}{found}{value[variable.end() :]}"
        return ""

    def _look_into(self, top: int) -> None:
        """Find what is hidden of an element whose text is: all, or all but what declares otherwise."""
        page = self._page
        states = dict[int, tuple[bool, ...]]()
        shown = set[int]()
        is_operated = any(page.tags[at] in ("a", "button") for at in around(page, top))
        end = 0
        for at in range(top, page.ends[top]):
            tag = page.tags[at]
            if at < end:
                continue
            state = states.get(page.parents[at], (False, False, False))
            is_shown = False
            if tag:
                if at in self.boxes or hides_box(self._cascaded.get(at, {})):
                    end = page.ends[at]
                    continue
                state = states[at] = _state(tag, self._cascaded.get(at, {}), state, is_operated)
                is_shown = not state[0] and (tag in _PICTURES or tag in _FIELDS)
            elif not any(state) and not page.texts[at].isspace():
                is_shown = True
            while is_shown and at >= top and at not in shown:
                shown.add(at)
                at = page.parents[at]
        if top not in shown:
            self._hide(top, states)
            return
        for at in sorted(shown):
            child = at + 1
            while child < page.ends[at]:
                if child not in shown:
                    self._hide(child, states)
                child = page.ends[child]

    def _hide(self, at: int, states: Mapping[int, tuple[bool, ...]]) -> None:
        """Add what has no visible text, by what hides the text of the elements that are not hidden otherwise."""
        is_element = self._page.tags[at] != ""
        (self.boxes if is_element else self.texts).add(at)
        state = states.get(at if is_element else self._page.parents[at])
        if state is not None and not state[0]:
            self.unseen.add(at)


def _together(names: Iterable[str]) -> frozenset[str]:
    return frozenset(chain.from_iterable(TOGETHER.get(name, ()) for name in names))


def _is_open(name: str, value: str) -> bool:
    return name in COMPUTED and "var(" in value


def around(page: PageNodes, at: int) -> Iterator[int]:
    """Yield an element and those around it, innermost first."""
    while at >= 0:
        yield at
        at = page.parents[at]


def _state(tag: str, declarations: Declarations, state: tuple[bool, ...], is_operated: bool) -> tuple[bool, ...]:
    """Return which of the inherited properties hide the text of an element, from what they do around it."""
    declared = [hides_text(name, declarations) for name in INHERITED]
    is_hidden, is_small, is_outdented = (
        before if own is None else own for own, before in zip(declared, state, strict=True)
    )
    if tag in _FIELDS and declared[1] is None:
        is_small = False
    return is_hidden, is_small, is_outdented and not is_operated and tag not in _OPERATED


def _merge(declared: Iterable[tuple[float, Declarations]], properties: Container[str]) -> Declarations:
    """Return the declarations of some properties that take effect of several with their ranks, the strongest last.

    Important ones of a layer precede those of later ones, which precede those of none.
    """
    merged: dict[str, tuple[str, bool]] = {}
    ranks: dict[str, float] = {}
    for rank, declarations in declared:
        for name, (value, is_important) in declarations.items():
            if name not in properties:
                continue
            if name in merged and merged[name][1] and not (is_important and (rank == inf or rank <= ranks[name])):
                continue
            merged[name] = value, is_important
            ranks[name] = rank
    return merged


def _ranks(layers: Iterable[Layer]) -> Mapping[Layer, float]:
    """Return the place of each layer in the cascade: in the order of their first naming, what is in none last."""
    places: dict[Layer, tuple[float, ...]] = {(): (inf,)}
    for layer in layers:
        for length in range(1, len(layer) + 1):
            part = layer[:length]
            if part not in places:
                places[part] = (*places[part[:-1]][:-1], float(len(places)), inf)
    return {layer: float(rank) for rank, layer in enumerate(sorted(places, key=places.__getitem__))}
