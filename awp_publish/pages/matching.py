"""Finds the elements that a CSS selector matches, in time that combinators do not multiply.

A selector is followed from its outermost compound inwards, each time for all elements at once. Nothing is tried twice,
so the time is the length of the selector times that of the page, whatever stands before what.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property, partial
from itertools import chain
from typing import Final, Protocol

from awp_publish.pages.selectors import ANY, NEVER, Attribute, Compound, PseudoClass, Selector

MAX_STEPS: Final = 1_000_000
"""Elements that are looked at for the selectors of one page."""

_NO_ELEMENT: Final = ("", "!")
"""The tags of texts and comments."""

_FIELDS: Final = frozenset(("input", "select", "textarea"))
_MAY_BE_DISABLED: Final = _FIELDS | {"button", "fieldset", "optgroup", "option"}


class PageNodes(Protocol):
    """What is read of a page: its nodes by numbers, see `Tree`."""

    tags: list[str]
    attributes: list[Mapping[str, str]]
    texts: list[str]
    parents: list[int]
    ends: list[int]
    selectable: list[int]

    def find(self, tag: str) -> Sequence[int]: ...


class ExhaustedError(ValueError):
    """Selectors of which the page would take too long."""


class Matcher:
    """Matches selectors in one scope of a page: its nodes from `start` to `end`.

    `is_checked` says which boxes are checked now; without it the page's own attributes do. A shadow root has a `host`
    and `slotted` elements outside of it, which `:host` and `::slotted()` mean: they are matched too, see
    `Selector.reaches_out`. `steps` counts the elements that were looked at.
    """

    def __init__(
        self,
        page: PageNodes,
        start: int,
        end: int,
        is_checked: Callable[[int], bool] | None = None,
        scope: int = 0,
        host: int = -1,
        slotted: Set[int] = frozenset(),
    ) -> None:
        self._page, self.start, self.end, self._scope = page, start, end, scope
        self._host, self._slotted = host, slotted
        self._outside = sorted({*slotted, *((host,) if host >= 0 else ())})
        self._is_checked = is_checked or self._has_check
        self.steps = 0
        self._matches: dict[Selector, list[int]] = {}
        self._outer: dict[tuple[tuple[str, Compound], ...], list[int]] = {}
        self._places: dict[tuple[str, tuple[Selector, ...]], dict[int, int]] = {}
        self._by_tag: dict[str, Sequence[int]] = {}

    @cached_property
    def _listed(self) -> dict[str, list[list[int]]]:
        """By class or id, lists of the elements that have it."""
        listed: dict[str, list[list[int]]] = {}
        by_classes = defaultdict[str, list[int]](list)
        attributes, selectable = self._page.attributes, self._page.selectable
        inside = selectable[bisect_left(selectable, self.start) : bisect_left(selectable, self.end)]
        elements = [*self._outside, *inside]
        for at, names in zip(elements, [attributes[at].get("class", "") for at in elements], strict=True):
            by_classes[names].append(at)
        for names, alike in by_classes.items():
            for name in dict.fromkeys(names.split()):
                listed.setdefault(f".{name}", []).append(alike)
        for at in [at for at in elements if "id" in attributes[at]]:
            listed.setdefault(f"#{attributes[at]['id']}", [[]])[0].append(at)
        return listed

    @property
    def names(self) -> Set[str]:
        """The classes and ids of the elements, as `.class` and `#id`."""
        return self._listed.keys()

    @cached_property
    def _all(self) -> list[int]:
        return [at for at in (*self._outside, *range(self.start, self.end)) if self._page.tags[at] not in _NO_ELEMENT]

    def _named(self, name: str) -> list[int]:
        """Return the elements with a class or an id, `.class` or `#id`."""
        lists = self._listed.get(name, [])
        if len(lists) != 1:
            lists = self._listed[name] = [sorted(chain.from_iterable(lists))]
        return lists[0]

    def _tagged(self, tag: str) -> Sequence[int]:
        if tag not in self._by_tag:
            tags = self._page.tags
            if self.start == 0 and not self._outside:
                self._by_tag[tag] = self._page.find(tag)
            else:
                self._by_tag[tag] = [at for at in (*self._outside, *range(self.start, self.end)) if tags[at] == tag]
        return self._by_tag[tag]

    def matching(self, selector: Selector, among: Sequence[int] | None = None) -> list[int]:
        """Return the elements that a selector matches, in document order.

        If only those `among` some matter, others may be missing. Raises ExhaustedError.
        """
        if among is None and selector in self._matches:
            return self._matches[selector]
        elements: list[int] = []
        if self.names >= selector.names:
            around, (combinator, compound) = selector.steps[:-1], selector.steps[-1]
            elements = self._only(self._candidates(compound, among), compound)
            if around and elements:
                if around not in self._outer:
                    self._outer[around] = self._within(around)
                elements = list(self._related(self._outer[around], elements, combinator))
        if among is None:
            self._matches[selector] = elements
        return elements

    def _within(self, steps: tuple[tuple[str, Compound], ...]) -> list[int]:
        """Return the elements that the beginning of a selector matches."""
        elements: list[int] = []
        for combinator, compound in steps:
            candidates = self._candidates(compound)
            related = list(self._related(elements, candidates, combinator)) if combinator else candidates
            elements = self._only(related, compound)
            if not elements:
                break
        return elements

    def among(self, selectors: Iterable[Selector]) -> set[int]:
        """Return the elements that any of these selectors matches."""
        return {at for selector in selectors for at in self.matching(selector)}

    def _candidates(self, compound: Compound, among: Sequence[int] | None = None) -> Sequence[int]:
        """Return the elements with the rarest of a compound's classes and ids, or with its tag."""
        lists = [*map(self._named, compound.names), *(() if among is None else (among,))]
        if not lists:
            lists = [self._tagged(compound.tag) if compound.tag else self._all]
        return self._counted(min(lists, key=len))

    def _counted(self, candidates: Sequence[int]) -> Sequence[int]:
        self.steps += len(candidates)
        if self.steps > MAX_STEPS:
            raise ExhaustedError("The selector would take too long on this page.")
        return candidates

    def _only(self, elements: Sequence[int], compound: Compound) -> list[int]:
        """Return those of some elements that a compound describes."""
        tags, attributes = self._page.tags, self._page.attributes
        if compound.tag:
            elements = [at for at in elements if tags[at] == compound.tag]
        for name in compound.ids:
            elements = [at for at in elements if attributes[at].get("id") == name]
        if compound.classes:
            names = frozenset(compound.classes)
            elements = [at for at in elements if names.issubset(attributes[at].get("class", "").split())]
        for attribute in compound.attributes:
            elements = [at for at in elements if _has(attributes[at], attribute)]
        for state in compound.states:
            holds = self._test(state)
            elements = [at for at in elements if holds(at)]
        return list(elements)

    def _related(self, elements: list[int], candidates: Sequence[int], combinator: str) -> Iterator[int]:
        """Yield those of the candidates to which a combinator leads from any of these elements.

        Both are in document order.
        """
        parents, ends = self._page.parents, self._page.ends
        if self._host >= 0 and self._host in elements and combinator in (" ", ">"):
            inside = (at for at in candidates if at >= self.start)
            yield from (at for at in inside if combinator == " " or parents[parents[at]] == self._host)
        elif combinator == " ":
            place = reach = 0
            for at in candidates:
                while place < len(elements) and elements[place] < at:
                    reach, place = max(reach, ends[elements[place]]), place + 1
                if at < reach:
                    yield at
        elif combinator == ">":
            marked = set(elements)
            yield from (at for at in candidates if parents[at] in marked)
        elif combinator == "~":
            first: dict[int, int] = {}
            for at in elements:
                first.setdefault(parents[at], at)
            yield from (at for at in candidates if first.get(parents[at], at) < at)
        else:
            following = set(filter(None, map(self._next, elements)))
            yield from (at for at in candidates if at in following)

    def _next(self, at: int) -> int:
        """Return the next element beside one, 0 if there is none."""
        tags, parents, ends = self._page.tags, self._page.parents, self._page.ends
        beside = ends[at]
        while beside < self.end and parents[beside] == parents[at]:
            if tags[beside] not in _NO_ELEMENT:
                return beside
            beside = ends[beside]
        return 0

    def _test(self, state: PseudoClass) -> Callable[[int], bool]:
        """Return whether an element is in a state, as a function of its number."""
        page, name = self._page, state.name
        if name in ANY:
            return self.among(state.selectors).__contains__
        if name == "not":
            matched = self.among(state.selectors)
            return lambda at: at not in matched
        if name == "has":
            return {at for selector in state.selectors for at in self._holders(selector)}.__contains__
        if name == "slotted":
            slotted = sorted(self._slotted)
            return {at for each in state.selectors for at in self._only(slotted, each.steps[-1][1])}.__contains__
        if name == "host":
            own = [self._host] if self._host >= 0 else []
            is_host = not state.selectors or any(self._only(own, each.steps[-1][1]) for each in state.selectors)
            return lambda at: at == self._host and is_host
        if name == "lang":
            languages = tuple(selector.steps[0][1].tag for selector in state.selectors)
            return lambda at: self._language(at).startswith(languages)
        if name.startswith("nth-"):
            places = self._places.setdefault((name, state.selectors), {})
            counted = self.among(state.selectors) if state.selectors else None
            number = partial(self._number, places, name, counted)
            return lambda at: bool(places.get(at) or number(at)) and _counts(places[at] - state.offset, state.step)
        tests: Mapping[str, Callable[[int], bool]] = {
            "any-link": lambda at: page.tags[at] in ("a", "area") and "href" in page.attributes[at],
            "checked": self._is_checked,
            "defined": lambda at: True,  # scripts define the elements of a page
            "disabled": lambda at: page.tags[at] in _MAY_BE_DISABLED and "disabled" in page.attributes[at],
            "empty": lambda at: not any(page.tags[inner] != "!" for inner in range(at + 1, page.ends[at])),
            "enabled": lambda at: page.tags[at] in _MAY_BE_DISABLED and "disabled" not in page.attributes[at],
            "optional": lambda at: page.tags[at] in _FIELDS and "required" not in page.attributes[at],
            "required": lambda at: page.tags[at] in _FIELDS and "required" in page.attributes[at],
            "root": lambda at: at == 0,
            "scope": lambda at: at == self._scope,
        }
        if name in NEVER:
            return lambda at: False
        return tests["any-link" if name == "link" else name]

    def _language(self, at: int) -> str:
        while at >= 0:
            if language := self._page.attributes[at].get("lang"):
                return language.lower()
            at = self._page.parents[at]
        return ""

    def _has_check(self, at: int) -> bool:
        attributes = self._page.attributes[at]
        return "checked" in attributes or "selected" in attributes

    def _holders(self, selector: Selector) -> Iterable[int]:
        """Return the elements from which a relative selector leads somewhere: the way back from its last compound."""
        elements: Iterable[int] = self._all
        for combinator, compound in reversed(selector.steps[1:]):
            candidates = self._candidates(compound)
            wanted = set(elements)
            elements = set(self._leading(self._only([at for at in candidates if at in wanted], compound), combinator))
        return elements

    def _leading(self, elements: list[int], combinator: str) -> Iterator[int]:
        """Yield the elements from which a combinator leads to any of these."""
        parents = self._page.parents
        if combinator in (" ", ">"):
            seen = set[int]()
            for at in elements:
                above = parents[at]
                while above >= self.start and above not in seen:
                    seen.add(above)
                    yield above
                    above = parents[above] if combinator == " " else -1
            return
        last: dict[int, int] = {}
        for at in elements:
            last[parents[at]] = at
        marked = {*elements} - {0}  # nothing stands before the root
        for at in self._all:
            if self._next(at) in marked if combinator == "+" else at < last.get(parents[at], -1):
                yield at

    def _number(self, places: dict[int, int], name: str, among: Set[int] | None, at: int) -> int:
        """Note the positions of an element and those beside it: among all, those of its tag, or some."""
        tags, parents, ends = self._page.tags, self._page.parents, self._page.ends
        is_top = parents[at] < self.start <= at
        beside, end = (self.start, self.end) if is_top else (parents[at] + 1, ends[parents[at]])
        siblings = list[int]()
        while beside < end:
            if tags[beside] not in _NO_ELEMENT and (among is None or beside in among):
                siblings.append(beside)
            beside = ends[beside]
        self.steps += len(siblings)
        counts: dict[str, int] = {}
        for sibling in reversed(siblings) if "last" in name else siblings:
            kind = tags[sibling] if name.endswith("of-type") else ""
            places[sibling] = counts[kind] = counts.get(kind, 0) + 1
        return places.setdefault(at, 0)


def _counts(distance: int, step: int) -> bool:
    """Return True if a position that is so far from the first one is among every `step` positions."""
    return distance == 0 if step == 0 else distance % step == 0 and distance // step >= 0


def _has(attributes: Mapping[str, str], attribute: Attribute) -> bool:
    actual, value, operator = attributes.get(attribute.name), attribute.value, attribute.operator
    if actual is None:
        return False
    if attribute.ignores_case or attribute.name == "type":
        actual, value = actual.lower(), value.lower()
    match operator:
        case "":
            return True
        case "=":
            return actual == value
        case "~=":
            return value in actual.split()
        case "|=":
            return actual == value or actual.startswith(f"{value}-")
        case "^=":
            return value != "" and actual.startswith(value)
        case "$=":
            return value != "" and actual.endswith(value)
    return value != "" and value in actual
