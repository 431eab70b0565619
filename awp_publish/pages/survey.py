"""The first pass: a walk over the visible part of a tree that finds the future elements and their regions.

Text is collected once, in `Survey.pieces`; a candidate has the range of its own text, so that no text is copied at
every level. Text outside of any element of the model becomes a paragraph, including inline markup in it (4.2).
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final

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
from awp_publish.pages.roles import ACTIONS, HIDDEN, MAPPED_TAGS, role_of
from awp_publish.pages.tables import is_layout
from awp_publish.pages.tree import Tree, shadow_mode_of
from awp_publish.pages.visibility import INLINE, STRIPPED, Visibility


@dataclass(slots=True, eq=False)
class Region:
    """A region, or the content of a shadow root: its element, and the numbers of its candidates.

    `hidden` are the hidden inputs of a form.
    """

    landmark: Landmark
    node: int
    candidates: list[int] = field(default_factory=list)
    shadows: int = 0
    start: int = 0
    hidden: Sequence[int] = ()


class Survey:
    """The regions in order, with a last one for everything outside of them; all text; and parts of elements.

    A candidate is a node that may become an element. It is identified by a number, the index in these lists:

        nodes         the node itself
        roles         its role, "" if it turned out to have none
        states        the flags that apply to it
        starts, ends  the range of its text in `pieces`

    `shadows` has the content of a candidate's shadow root, `parts` the candidate of an item, a cell, an option or a
    summary; `forms` has the form for each submit button of a form that is not a region.
    """

    __slots__ = (
        *("_texts", "ends", "forms", "nodes", "parts", "pieces", "regions", "roles", "shadows", "starts", "states"),
    )

    def __init__(self) -> None:
        self.regions: list[Region] = []
        self.pieces: list[str] = []
        self.nodes: list[int] = []
        self.roles: list[str] = []
        self.states: list[int] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.shadows: dict[int, Region] = {}
        self.parts: dict[int, int] = {}
        self.forms: dict[int, int] = {}
        self._texts: dict[int, str] = {}

    def add(self, node: int, role: str, state: int) -> int:
        """Add a candidate that begins here, and return its number."""
        number, start = len(self.nodes), len(self.pieces)
        self.nodes.append(node)
        self.roles.append(role)
        self.states.append(state)
        self.starts.append(start)
        self.ends.append(start)
        return number

    def end_run(self, run: int, region: Region) -> None:
        """End a run of text here: it becomes a paragraph of its region unless it consists of separators only."""
        start = self.starts[run]
        self.ends[run] = len(self.pieces)
        if self.pieces[start].strip(_SEPARATORS) or "".join(self.pieces[start:]).strip(_SEPARATORS):
            region.candidates.append(run)

    def drop_empty(self) -> None:
        """Leave out candidates without a role and regions without candidates, and add the hidden inputs of forms."""
        waiting = list(self.regions)
        while waiting:
            region = waiting.pop()
            region.candidates = [candidate for candidate in region.candidates if self.roles[candidate]]
            if region.candidates:
                region.candidates += [self.add(node, HIDDEN, IN_FORM) for node in region.hidden]
            if self.shadows:
                waiting += [self.shadows[one] for one in region.candidates if one in self.shadows]
        self.regions = [region for region in self.regions if region.candidates]

    def part_text(self, node: int) -> str | None:
        """Return the text of an item, a cell, an option or a summary, or None if it is not visible."""
        part = self.parts.get(node)
        return None if part is None else self.text(part)

    def text(self, candidate: int) -> str:
        """Return the visible text of a candidate, with white space collapsed (4.6)."""
        text = self._texts.get(candidate)
        if text is None:
            start, end = self.starts[candidate], self.ends[candidate]
            text = self.pieces[start] if end == start + 1 else "".join(self.pieces[start:end])
            text = self._texts[candidate] = " ".join(text.split())
        return text


MAX_SHADOWS: Final = 8
"""Levels of nested shadow roots; the content of deeper ones is added to the last."""

_STRUCTURE: Final = ("h1", "h2", "h3", "h4", "h5", "h6", "table", "form", "details", "fieldset", "section", "article")
"""A list that contains one of these is not a list of lines; its content is read like other content."""

_SEPARATORS: Final = " \t\r\n\f\xa0\u200b.,:;!?|/\\-_()[]{}<>\u2013\u2014\u2022\u00b7\u00ab\u00bb\u2039\u203a"
"""Characters that only separate links and fields visually. A text of nothing else is not a paragraph."""

_PARTS: Final = frozenset(("caption", "legend", "li", "option", "td", "th"))
"""Elements whose text is read by the list, table, select or group around them."""

_OPAQUE: Final = frozenset(("audio", "hr", "iframe", "img", "input", "svg", "textarea", "video"))
"""Elements whose content is not text of the page."""

_DROPPED_IF_EMPTY: Final = ("list", "paragraph", "section")
_HOLDS_OTHERS: Final = frozenset(("section", "group", "details"))
_NAMING: Final = frozenset(("aria-label", "aria-labelledby", "aria-labeledby", "title"))
_NAMED: Final = frozenset(("aria-label", "aria-labelledby", "aria-labeledby"))
MAX_REFERENCES: Final = 10
_NAMELESS: Final = frozenset(("caption", "dd", "dt", "label", "legend", "li", "menu", "ol", "option", "summary")) | {
    *("table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"),
}
"""Parts of other elements, and lists and tables that were split up, whose names are meaningless by themselves."""

_CLAIMING: Final = frozenset(("contenteditable", "role"))
"""Attributes that give an element a role that its tag does not have."""

_LOOKED_AT: Final = STRIPPED | {"img", "svg"}
_SIMPLE: Final = frozenset(("blockquote", "dd", "dl", "dt", "li", "pre", "tbody", "td", "tfoot", "th", "thead", "tr"))
"""Blocks that, without certain attributes, only contain other elements."""

_PLAIN: Final = INLINE - MAPPED_TAGS - STRIPPED - {"audio", "br", "video"}


def references_of(given: Mapping[str, str]) -> str:
    """Return the ids that name an element, also from the common misspelling of the attribute."""
    return given.get("aria-labelledby") or given.get("aria-labeledby", "")


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

    This is one loop because it runs for every node, over the tree's numbers from `at` to `end`. An element is entered
    if its inside or its end matters. While it is open, these hold:

        region      where its candidates go        state   the flags of everything in it
        opened      the candidate to end with it   block   whether it separates its text from the text around

    The stack has the same values for the enclosing element, and where to continue in it. Most of a page is inline
    elements without meaning and links: the former are not entered at all, the latter take a shorter path. `run` is text
    outside of any element, until one begins or a block ends.
    """
    found = Survey()
    add, pieces, parts, forms = found.add, found.pieces, found.parts, found.forms
    regions, roles = found.regions, found.roles
    nodes, states, text_starts, text_ends = found.nodes, found.states, found.starts, found.ends
    tags, all_attributes, texts, ends = tree.tags, tree.attributes, tree.texts, tree.ends
    conspicuous = tree.conspicuous
    landmarks = Landmarks(visibility, content)
    marked_out = landmarks.asides | {landmarks.article}
    plain = _PLAIN
    noted = conspicuous | marked_out | visibility.by_rule | blocks
    summaries: dict[int, int] = {}
    formulas = read_formulas(visibility) if tree.find("math") else {}
    with_shadow = {tree.parents[one] for one in tree.contents if shadow_mode_of(all_attributes[one]) is not None}
    simple = frozenset[str]() if with_shadow else _SIMPLE
    hosts: dict[int, int] = {}
    structured = _around_structure(tree)
    outside = Region(MAIN if landmarks.article == tree.body_at else CONTENT, tree.body_at)
    run, run_region = -1, outside

    stack: list[tuple[int, int, Region, int, int, bool]] = []
    at, end, region, state, opened, block = tree.body_at + 1, ends[tree.body_at], outside, 0, -1, True
    while True:
        if at >= end:
            if block:
                if run >= 0:
                    found.end_run(run, run_region)
                    run = -1
                pieces.append(" ")
            if opened >= 0:
                text_ends[opened] = len(pieces)
                if roles[opened] in _DROPPED_IF_EMPTY and _is_empty(tree, found, opened, region):
                    roles[opened] = ""
            if not stack:
                break
            at, end, region, state, opened, block = stack.pop()
            continue
        tag = tags[at]
        if not tag:
            text = texts[at]
            if run < 0 and not state & COVERED and not text.isspace():
                run, run_region = add(at, "paragraph", state), region
            pieces.append(text)
            at += 1
            continue
        if tag in plain and at not in noted:
            at += 1
            continue
        node, quiet, attributes = at, at not in noted, all_attributes[at]
        at = after = ends[node]
        if quiet and tag == "a" and "href" in attributes:
            is_text = after == node + 2 and not tags[node + 1]
            if is_text and attributes["href"][:1] == "#" and is_permalink(tree, node):
                continue
            if run >= 0:
                found.end_run(run, run_region)
                run = -1
            link = len(roles)
            nodes.append(node)
            roles.append("link")
            states.append(state)
            text_starts.append(len(pieces))
            region.candidates.append(link)
            if node in with_shadow:
                hosts[node] = link
            if is_text:
                pieces.append(texts[node + 1])
            elif after > node + 1:
                inner = node + 1
                while inner < after and ((tag := tags[inner]) in plain or not tag) and inner not in noted:
                    if not tag:
                        pieces.append(texts[inner])
                    inner += 1
                if inner < after:  # it contains more than text and plain inline elements
                    text_ends.append(0)
                    stack.append((after, end, region, state, opened, block))
                    at, end, state, opened, block = inner, after, state | COVERED | IN_LINK, link, False
                    continue
            text_ends.append(len(pieces))
            continue
        within, flags, candidate, parted = region, state, -1, tag not in INLINE or node in blocks
        start, stop = node + 1, after
        if quiet and tag in simple and _NAMED.isdisjoint(attributes):
            if run >= 0:
                found.end_run(run, run_region)
                run = -1
            pieces.append(" ")
            if tag in _PARTS:
                candidate = parts[node] = add(node, "", state)
        elif tag == "template":
            # The content of a shadow root goes to its host or, if they are nested too deeply, to where the host itself
            # went. A root inside of a root has no host: it stays a template, which is not visible.
            parent = tree.parents[node]
            if shadow_mode_of(attributes) is None or tags[parent] == "template":
                continue
            if run >= 0:
                found.end_run(run, run_region)
                run = -1
            start, stop = tree.contents[node]
            host = hosts.get(parent)
            if host is not None and region.shadows < MAX_SHADOWS:
                if host in found.shadows:
                    continue
                within = found.shadows[host] = Region(CONTENT, node, shadows=region.shadows + 1)
                flags = (state | IN_FORM) & ~COVERED
        elif formulas and node in formulas:
            if run < 0 and not state & COVERED:
                run, run_region = add(node, "paragraph", state), region
            pieces.append(f" {formulas[node]} ")
            continue
        elif ((not quiet or tag in _LOOKED_AT) and visibility.hides(node)) or (
            tag == "a" and "href" in attributes and is_permalink(tree, node)
        ):
            continue
        else:
            marked = node in conspicuous
            if marked and "inert" in attributes:
                flags |= INERT
            begins = tag in BEGINNERS or (marked and "role" in attributes) or node in marked_out
            landmark = landmarks.of(node, flags) if begins else None
            if landmark is NAVIGATION is region.landmark and tag != "nav" and "role" not in attributes:
                landmark = None  # the list that a navigation is about
            sent: Sequence[int] = ()
            if tag in SECTIONING:
                flags |= IN_SECTIONING
            if tag == "form" and (landmark is FORM or flags & IN_FORM or node in content.around):
                fields = read_form(node, visibility)
                sent = fields.hidden
                if fields.is_button or landmark is None:  # it stays with its item; in a shadow root it is no region
                    landmark = None
                    forms.update(dict.fromkeys(fields.buttons, node))
            if landmark is not None:
                if run >= 0:
                    found.end_run(run, run_region)
                    run = -1
                within = Region(landmark, node, start=len(pieces), hidden=sent)
                regions.append(within)
                flags = flags & ~COVERED | (IN_FORM if landmark is FORM else 0) | IN_LANDMARK
            elif node in summaries:
                candidate = parts[node] = summaries.pop(node)
                if run >= 0:
                    found.end_run(run, run_region)
                    run = -1
                text_starts[candidate] = len(pieces)
                flags |= COVERED
            else:
                has_role = tag in MAPPED_TAGS or (marked and not _CLAIMING.isdisjoint(attributes))
                role = role_of(tag, attributes) if has_role else None
                if (role == "list" and node in structured) or (
                    role == "table" and is_layout(node, visibility, bool(state & IN_LAYOUT))
                ):
                    role = None
                if role is None and parted and attributes and not _NAMED.isdisjoint(attributes):
                    role = "section" if _is_named_section(tree, tag, attributes) else None
                if role == "section" and tag == "article" and not flags & COVERED:
                    flags |= IN_LANDMARK
                if role is not None and not _is_element(role, attributes, flags):
                    role = None
                if role is None and node in with_shadow:
                    role = "section"
                if run >= 0 and (parted or role is not None):
                    found.end_run(run, run_region)
                    run = -1
                if parted or tag == "br":
                    pieces.append(" ")
                if role is None:
                    if tag == "table":
                        flags |= IN_LAYOUT
                    elif node in labels:  # it is the name of its control
                        flags |= COVERED
                    if tag in _PARTS:
                        candidate = parts[node] = add(node, "", flags)
                    if tag == "legend" and tags[tree.parents[node]] == "fieldset":
                        flags |= COVERED
                else:
                    candidate = add(node, role, flags)
                    region.candidates.append(candidate)
                    if tag in _PARTS:
                        parts[node] = candidate
                    if node in with_shadow:
                        hosts[node] = candidate
                    if tag == "fieldset" and "disabled" in attributes:
                        flags |= DISABLED
                    if role in ("link", "button"):
                        flags |= IN_LINK
                    if role not in _HOLDS_OTHERS:
                        flags = flags + NESTED if flags & COVERED else flags | COVERED
                    if role == "details":
                        if (summary := tree.first_child(node, "summary")) is not None:
                            summaries[summary] = candidate
                        candidate = -1  # its text is that of its summary
        if tag in _OPAQUE:
            stop = start
        if stop == start + 1 and not tags[start] and (flags & COVERED or run >= 0):
            pieces.append(texts[start])
        elif start < stop:
            stack.append((after, end, region, state, opened, block))
            at, end, region, state, opened, block = start, stop, within, flags, candidate, parted
            continue
        if parted:
            if run >= 0:
                found.end_run(run, run_region)
                run = -1
            pieces.append(" ")
        if candidate >= 0:
            text_ends[candidate] = len(pieces)
            if roles[candidate] in _DROPPED_IF_EMPTY and _is_empty(tree, found, candidate, within):
                roles[candidate] = ""
    regions.append(outside)
    found.drop_empty()
    return found


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


def _is_empty(tree: Tree, survey: Survey, candidate: int, region: Region) -> bool:
    """Return True if a list, a paragraph or a section has no content of its own."""
    if candidate in survey.shadows:
        return False
    if survey.roles[candidate] == "section":
        return region.candidates[-1] == candidate
    if survey.roles[candidate] == "list" and all(
        is_link(tree, child) for child in tree.children(survey.nodes[candidate]) if is_content(tree, child)
    ):
        return True  # the links are elements themselves
    return all(map(str.isspace, survey.pieces[survey.starts[candidate] : survey.ends[candidate]]))
