"""The first pass over a page: a walk over the visible part of its tree that finds the future elements and regions."""

from collections.abc import Mapping, Sequence, Set
from typing import Final

from awp_publish.pages.attributes import MAX_REFERENCES, references_of
from awp_publish.pages.content import MainContent
from awp_publish.pages.flags import (
    COVERED,
    DISABLED,
    IN_FORM,
    IN_LANDMARK,
    IN_LAYOUT,
    IN_LINK,
    IN_SECTIONING,
    INERT,
    MAX_NESTED,
    NESTED,
)
from awp_publish.pages.forms import read_form
from awp_publish.pages.formulas import read_formulas
from awp_publish.pages.joints import JOINED, stands_apart
from awp_publish.pages.landmarks import (
    BEGINNERS,
    CONTENT,
    FORM,
    MAIN,
    NAVIGATION,
    Landmark,
    Landmarks,
    is_content,
    is_link,
    is_permalink,
)
from awp_publish.pages.masses import SECTIONING
from awp_publish.pages.measures import MEASURES, measure_of
from awp_publish.pages.roles import ACTIONS, MAPPED_TAGS, role_of
from awp_publish.pages.survey import Region, Survey
from awp_publish.pages.tables import is_layout
from awp_publish.pages.tree import Tree, shadow_mode_of
from awp_publish.pages.visibility import INLINE, STRIPPED, Visibility

MAX_SHADOWS: Final = 8
"""Levels of nested shadow roots; the content of deeper ones is added to the last."""

_STRUCTURE: Final = ("h1", "h2", "h3", "h4", "h5", "h6", "table", "form", "details", "fieldset", "section", "article")
"""A list that contains one of these is not a list of lines; its content is read like other content."""

_PARTS: Final = frozenset(("caption", "legend", "li", "option", "td", "th"))
"""Elements whose text is read by the list, table, select or group around them."""

_OPAQUE: Final = frozenset(("audio", "hr", "iframe", "img", "input", "svg", "textarea", "video"))
"""Elements whose content is not text of the page."""

_DROPPED_IF_EMPTY: Final = ("list", "paragraph", "section")
_HOLDS_OTHERS: Final = frozenset(("section", "group", "details"))
_NAMING: Final = frozenset(("aria-label", "aria-labelledby", "aria-labeledby", "title"))
_NAMED: Final = frozenset(("aria-label", "aria-labelledby", "aria-labeledby"))
_NAMELESS: Final = frozenset(("caption", "dd", "dt", "label", "legend", "li", "menu", "ol", "option", "summary")) | {
    *("table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"),
}
"""Parts of other elements, and lists and tables that were split up, whose names are meaningless by themselves."""

_CLAIMING: Final = frozenset(("contenteditable", "role"))
"""Attributes that give an element a role that its tag does not have."""

_LOOKED_AT: Final = STRIPPED | {"img", "svg"}
_SIMPLE: Final = frozenset(
    ("blockquote", "dd", "div", "dl", "dt", "li", "pre", "tbody", "td", "tfoot", "th", "thead", "tr")
)
"""Blocks that, without certain attributes, only contain other elements. A `div` may begin a region."""

_PLAIN: Final = INLINE - MAPPED_TAGS - STRIPPED - MEASURES - {"audio", "br", "video"}


def survey(
    tree: Tree,
    visibility: Visibility,
    content: MainContent,
    labels: Set[int] = frozenset(),
    blocks: Set[int] = frozenset(),
) -> Survey:
    """Walk over the body of a page.

    `labels` are label elements whose text is the name of a control, `blocks` inline elements that are laid out as
    blocks.
    """
    return _Walk(tree, visibility, content, labels, blocks).survey()


class _Walk:
    """One walk, over the tree's numbers from `_at` to `_end`.

    An element is entered if its inside or its end matters. While it is open, these hold:

        _region      where its candidates go        _state   the flags of everything in it
        _candidate   the candidate to end with it   _parted  whether it separates its text from the text around

    The stack has the same values for the enclosing element, and where to continue in it. `_run` is text outside of any
    element, until one begins or a block ends, in `_run_region`; -1 if there is none.
    """

    __slots__ = (
        *("_at", "_blocks", "_candidate", "_content", "_end", "_formulas", "_hosts", "_labels", "_landmarks"),
        *("_legends", "_marked_out", "_noted", "_parted", "_region", "_run", "_run_region", "_stack", "_state"),
        *("_structured", "_summaries", "_survey", "_tree", "_visibility", "_with_shadow"),
    )

    def __init__(
        self, tree: Tree, visibility: Visibility, content: MainContent, labels: Set[int], blocks: Set[int]
    ) -> None:
        self._tree, self._visibility, self._content = tree, visibility, content
        self._labels, self._blocks = labels, blocks
        self._survey = Survey()
        self._landmarks = Landmarks(visibility, content)
        self._marked_out = self._landmarks.asides | {self._landmarks.article}
        self._formulas = read_formulas(visibility) if tree.find("math") else {}
        self._noted = tree.conspicuous | self._marked_out | visibility.by_rule | blocks | self._formulas.keys()
        """Elements that may be hidden, or something else than their tag says."""
        templates = (at for at in tree.contents if shadow_mode_of(tree.attributes[at]) is not None)
        self._with_shadow = {tree.parents[at] for at in templates}
        self._hosts: dict[int, int] = {}
        """The candidates that have a shadow root, by their elements."""
        self._structured = _around_structure(tree)
        self._legends: dict[int, int | None] = {}
        """The first legends of groups."""
        self._summaries: dict[int, int] = {}
        """The candidates of details, by their summaries."""
        self._stack: list[tuple[int, int, Region, int, int, bool]] = []
        is_all_main = self._landmarks.article == tree.body_at
        self._region = self._run_region = Region(MAIN if is_all_main else CONTENT, tree.body_at)
        self._run = self._candidate = -1
        self._state, self._parted = 0, True
        self._at, self._end = tree.body_at + 1, tree.ends[tree.body_at]

    def survey(self) -> Survey:
        """Walk to the end. Most of a page is text, links, and inline elements without meaning that are not entered."""
        tags, texts, ends, all_attributes = self._tree.tags, self._tree.texts, self._tree.ends, self._tree.attributes
        survey, noted, stack, outside = self._survey, self._noted, self._stack, self._region
        pieces, simple = survey.pieces, frozenset[str]() if self._with_shadow else _SIMPLE
        at, end = self._at, self._end
        while True:
            if at >= end:
                self._close(self._candidate, self._region, self._parted)
                if not stack:
                    break
                at, end, self._region, self._state, self._candidate, self._parted = stack.pop()
                self._end = end
                continue
            tag = tags[at]
            if not tag:
                text = texts[at]
                if self._run < 0 and not self._state & COVERED and not text.isspace():
                    self._begin_run(at)
                pieces.append(text)
                at += 1
                continue
            is_noted = at in noted
            if tag in _PLAIN and not is_noted:
                if not tags[at - 1] and tag in JOINED and not self._state & IN_LINK and stands_apart(self._tree, at):
                    self._part(pieces)
                at += 1
                continue
            attributes = all_attributes[at]
            self._at = ends[at]
            if not is_noted and tag == "a" and "href" in attributes:
                self._take_link(at, attributes)
            elif not is_noted and tag in simple and _NAMED.isdisjoint(attributes):
                self._take_block(at, tag)
            elif tag == "template":
                self._take_template(at, attributes)
            elif at in self._formulas:
                self._take_words(at, self._formulas[at])
            elif not ((is_noted or tag in _LOOKED_AT) and self._visibility.hides(at)):
                self._take_element(at, tag, attributes)
            at, end = self._at, self._end
        survey.regions.append(outside)
        survey.drop_empty()
        return survey

    def _part(self, pieces: list[str]) -> None:
        """Separate two texts, but in a heading, which is named as browsers put it together."""
        if self._candidate < 0 or self._survey.roles[self._candidate] != "heading":
            pieces.append(" ")

    def _begin_run(self, node: int) -> None:
        self._run, self._run_region = self._survey.add(node, "paragraph", self._state), self._region

    def _end_run(self) -> None:
        if self._run >= 0:
            self._survey.end_run(self._run, self._run_region)
            self._run = -1

    def _enter(
        self, start: int, end: int, region: Region, state: int, candidate: int = -1, *, parted: bool = True
    ) -> None:
        """Go on with what is in an element, or end it if that is nothing or a text."""
        if end == start + 1 and not self._tree.tags[start] and (state & COVERED or self._run >= 0):
            self._survey.pieces.append(self._tree.texts[start])
        elif start < end:
            outer = self._at, self._end, self._region, self._state, self._candidate, self._parted
            self._stack.append(outer)
            self._at, self._end, self._region, self._state = start, end, region, state
            self._candidate, self._parted = candidate, parted
            return
        self._close(candidate, region, parted)

    def _close(self, candidate: int, region: Region, parted: bool) -> None:
        survey = self._survey
        if parted:
            if self._run >= 0:
                self._end_run()
            survey.pieces.append(" ")
        if candidate >= 0:
            survey.ends[candidate] = len(survey.pieces)
            if survey.roles[candidate] in _DROPPED_IF_EMPTY and self._is_empty(candidate, region):
                survey.roles[candidate] = ""

    def _take_link(self, link: int, attributes: Mapping[str, str]) -> None:
        tags, texts, pieces = self._tree.tags, self._tree.texts, self._survey.pieces
        at, after = link + 1, self._at
        is_text = after == at + 1 and not tags[at]
        if is_text and attributes["href"][:1] == "#" and is_permalink(self._tree, link):
            return
        if self._run >= 0:
            self._end_run()
        candidate = self._survey.add(link, "link", self._state)
        self._region.candidates.append(candidate)
        if link in self._with_shadow:
            self._hosts[link] = candidate
        if is_text:
            pieces.append(texts[at])
        else:
            noted = self._noted
            while at < after and ((tag := tags[at]) in _PLAIN or not tag) and at not in noted:
                if not tag:
                    pieces.append(texts[at])
                at += 1
            if at < after:  # it contains more than text and plain inline elements
                self._enter(at, after, self._region, self._state | COVERED | IN_LINK, candidate, parted=False)
                return
        self._survey.ends[candidate] = len(pieces)

    def _take_block(self, node: int, tag: str) -> None:
        """Take a block that has no role, and only contains other elements."""
        if tag == "div":
            landmark = self._landmarks.of(node, self._state)
            if landmark is not None and not (landmark is NAVIGATION is self._region.landmark):
                self._begin_region(node, landmark, self._state)
                return
        if self._run >= 0:
            self._end_run()
        self._survey.pieces.append(" ")
        part = self._add_part(node, self._state) if tag in _PARTS else -1
        self._enter(node + 1, self._at, self._region, self._state, part)

    def _begin_region(self, node: int, landmark: Landmark, state: int, hidden: Sequence[int] = ()) -> None:
        self._end_run()
        region = Region(landmark, node, start=len(self._survey.pieces), hidden=hidden)
        self._survey.regions.append(region)
        state = state & ~COVERED | IN_LANDMARK | (IN_FORM if landmark is FORM else 0)
        tag, start = self._tree.tags[node], node + 1
        if node in self._landmarks.asides and role_of(tag, self._tree.attributes[node]) not in (None, "section"):
            self._landmarks.begun.add(node)
            start = node
        end = node + 1 if tag in _OPAQUE else self._at
        self._enter(start, end, region, state, parted=self._is_parted(node))

    def _is_parted(self, node: int) -> bool:
        return self._tree.tags[node] not in INLINE or node in self._blocks

    def _add_part(self, node: int, state: int) -> int:
        part = self._survey.parts[node] = self._survey.add(node, "", state)
        return part

    def _take_template(self, template: int, attributes: Mapping[str, str]) -> None:
        """Take the content of a shadow root, which goes to its host.

        If roots are nested too deeply, it goes to where the host itself went. A root inside of a root has no host: it
        stays a template, which is not visible.
        """
        host = self._tree.parents[template]
        if shadow_mode_of(attributes) is None or self._tree.tags[host] == "template":
            return
        self._end_run()
        region, state, shadows = self._region, self._state, self._survey.shadows
        candidate = self._hosts.get(host)
        if candidate is not None and region.shadows < MAX_SHADOWS:
            if candidate in shadows:
                return
            region = shadows[candidate] = Region(CONTENT, template, shadows=region.shadows + 1)
            state = (state | IN_FORM) & ~COVERED
        self._enter(*self._tree.contents[template], region, state)

    def _take_words(self, node: int, words: str) -> None:
        """Take words that stand for an element: a formula, or the value of a progress bar."""
        if self._run < 0 and not self._state & COVERED and words:
            self._begin_run(node)
        self._survey.pieces.append(f" {words} ")

    def _take_element(self, node: int, tag: str, attributes: Mapping[str, str]) -> None:
        """Take a visible element that may begin a region, or have a role."""
        tree, state = self._tree, self._state
        if tag in MEASURES:
            self._take_words(node, measure_of(attributes))
            return
        if tag == "a" and "href" in attributes and is_permalink(tree, node):
            return
        is_marked = node in tree.conspicuous
        if is_marked and "inert" in attributes:
            state |= INERT
        landmark: Landmark | None = None
        hidden: Sequence[int] = ()
        if tag in BEGINNERS or (is_marked and "role" in attributes) or node in self._marked_out:
            landmark = self._landmarks.of(node, state)
            if tag == "form":
                landmark, hidden = self._read_form(node, landmark, state)
            elif landmark is NAVIGATION is self._region.landmark and tag != "nav" and "role" not in attributes:
                landmark = None  # the list that a navigation is about
        if tag in SECTIONING:
            state |= IN_SECTIONING
        end = self._at if tag not in _OPAQUE else node + 1
        if landmark is not None:
            self._begin_region(node, landmark, state, hidden)
            return
        parted = self._is_parted(node)
        if tag == "summary" and node in self._summaries:
            candidate = self._survey.parts[node] = self._summaries.pop(node)
            self._end_run()
            self._survey.starts[candidate] = len(self._survey.pieces)
            self._enter(node + 1, end, self._region, state | COVERED, candidate, parted=parted)
            return
        role: str | None = None
        if tag in MAPPED_TAGS or is_marked or not _NAMED.isdisjoint(attributes):
            role = self._role(node, tag, attributes, is_marked=is_marked, parted=parted)
            if role == "section" and tag == "article" and not state & COVERED:
                state |= IN_LANDMARK
            if role is not None and not _is_element(role, attributes, state):
                role = None
        if role is None and node in self._with_shadow:
            role = "section"
        if self._run >= 0 and (parted or role is not None):
            self._end_run()
        if parted or tag == "br":
            self._survey.pieces.append(" ")
        candidate = -1
        if role is not None:
            candidate, state = self._add_element(node, tag, role, attributes, state)
        elif tag == "table":
            state |= IN_LAYOUT
        else:
            if tag == "label" and node in self._labels:  # it is the name of its control
                state |= COVERED
            if tag in _PARTS:
                candidate = self._add_part(node, state)
                if tag == "legend" and tree.tags[fieldset := tree.parents[node]] == "fieldset":
                    state |= COVERED
                    if fieldset not in self._legends:
                        self._legends[fieldset] = tree.first_child(fieldset, "legend")
                    if self._legends[fieldset] == node:  # what is in it can be operated all the same
                        state &= ~DISABLED | self._stack[-1][3]
        self._enter(node + 1, end, self._region, state, candidate, parted=parted)

    def _read_form(self, form: int, landmark: Landmark | None, state: int) -> tuple[Landmark | None, Sequence[int]]:
        """Return the landmark of a form, and its hidden inputs if it has one.

        A form that is a button stays with its item; in a shadow root a form is no region.
        """
        if landmark is not FORM and not state & IN_FORM and form not in self._content.around:
            return landmark, ()
        fields = read_form(form, self._visibility)
        if landmark is not None and not fields.is_button:
            return landmark, fields.hidden
        self._survey.forms.update(dict.fromkeys(fields.buttons, form))
        return None, ()

    def _role(self, node: int, tag: str, attributes: Mapping[str, str], *, is_marked: bool, parted: bool) -> str | None:
        """Return the role of an element, by itself or because ARIA names it."""
        role = None
        if tag in MAPPED_TAGS or (is_marked and not _CLAIMING.isdisjoint(attributes)):
            role = role_of(tag, attributes)
            if (role == "list" and node in self._structured) or (
                role == "table" and is_layout(node, self._visibility, bool(self._state & IN_LAYOUT))
            ):
                role = None
        if role is None and parted and _is_named_section(self._tree, tag, attributes):
            return "section"
        return role

    def _add_element(
        self, node: int, tag: str, role: str, attributes: Mapping[str, str], state: int
    ) -> tuple[int, int]:
        """Add an element. Return the candidate to end with it, and the flags of what is in it."""
        candidate = self._survey.add(node, role, state)
        self._region.candidates.append(candidate)
        if tag in _PARTS:
            self._survey.parts[node] = candidate
        if node in self._with_shadow:
            self._hosts[node] = candidate
        if tag == "fieldset" and "disabled" in attributes:
            state |= DISABLED
        if role in ("link", "button"):
            state |= IN_LINK
        if role not in _HOLDS_OTHERS:
            state = state + NESTED if state & COVERED else state | COVERED
        if role == "details":
            if (summary := self._tree.first_child(node, "summary")) is not None:
                self._summaries[summary] = candidate
            candidate = -1  # its text is that of its summary
        return candidate, state

    def _is_empty(self, candidate: int, region: Region) -> bool:
        """Return True if a list, a paragraph or a section has no content of its own."""
        survey, tree = self._survey, self._tree
        if candidate in survey.shadows:
            return False
        if survey.roles[candidate] == "section":
            return region.candidates[-1] == candidate
        if survey.roles[candidate] == "list" and all(
            is_link(tree, child) for child in tree.children(survey.nodes[candidate]) if is_content(tree, child)
        ):
            return True  # the links are elements themselves
        return all(map(str.isspace, survey.pieces[survey.starts[candidate] : survey.ends[candidate]]))


def _around_structure(tree: Tree) -> set[int]:
    """Return all ancestors of structural elements, each visited once."""
    structured = set[int]()
    for tag in _STRUCTURE:
        for around in tree.find(tag):
            above = tree.parents[around]
            while above >= 0 and above not in structured:
                structured.add(above)
                above = tree.parents[above]
    return structured


def _is_named_section(tree: Tree, tag: str, attributes: Mapping[str, str]) -> bool:
    """Return True if a block that has no role of its own is a section because ARIA names it."""
    if tag in _NAMELESS or attributes.get("role", "").strip().lower() in ("none", "presentation"):
        return False
    references = references_of(attributes).split()[:MAX_REFERENCES]
    return bool(attributes.get("aria-label", "").strip()) or any(tree.find_id(name) is not None for name in references)


def _is_element(role: str, attributes: Mapping[str, str], flags: int) -> bool:
    """Return True if what has a role is an element of its own, also in the text of another one."""
    if not flags & COVERED:
        return role != "section" or not _NAMING.isdisjoint(attributes)
    if role == "image":
        return not flags & IN_LINK and bool(attributes.get("alt", "").strip())
    return (role in ACTIONS or role == "heading") and flags < MAX_NESTED * NESTED
