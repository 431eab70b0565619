"""Which elements of a page are visible (SOM 1.0, section 6), and their visible text."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Final

from awp_publish.pages.declarations import Declarations, may_hide
from awp_publish.pages.input_types import input_type
from awp_publish.pages.matching import Matcher
from awp_publish.pages.measures import MEASURES
from awp_publish.pages.media import holds_media
from awp_publish.pages.sheets import read_sheet
from awp_publish.pages.slots import FlatTree
from awp_publish.pages.styles import Styles, around
from awp_publish.pages.tree import COMMENT, Tree, shadow_mode_of, written_in

STRIPPED: Final = frozenset(
    (
        COMMENT,
        "annotation",
        "annotation-xml",
        "base",
        "canvas",
        "datalist",
        "head",
        "link",
        "meta",
        "noembed",
        "noframes",
    )
) | {"noscript", "param", "rp", "script", "source", "style", "template", "title", "track"}
"""Elements that are dropped with their content, except a `<template>` that is a shadow root, read by its host."""

_INLINE_TAGS: Final = (
    "a abbr acronym area audio b bdi bdo big br button canvas cite code data del dfn em embed font i img input "
    "ins kbd map mark math meter mfrac mi mn mo mover mpadded mroot mrow ms mspace msqrt mstyle msub msubsup msup "
    "mtext munder munderover nobr object output picture progress q rb rt rtc ruby s samp select semantics small "
    "span strike strong sub sup svg textarea time tt u var video wbr"
)
INLINE: Final = frozenset(_INLINE_TAGS.split())
"""Elements that do not separate their text from the text before them."""

_NEVER_HIDDEN: Final = ("html", "body")
"""A page that hides all of itself is shown by its scripts, as AMP's are."""

_FIELDS: Final = frozenset(("input", "select", "textarea"))
_CHOSEN: Final = ("checkbox", "file", "radio")
MAX_LABELS: Final = 10
"""Labels of one field that are looked at."""

_CLOSED: Final = {"display": ("none", False)}
"""What browsers declare of a popover."""


class Visibility:
    """The hidden elements of one page.

    `by_rule` are those that styles hide, and what is in no slot, or in a hidden one. A shadow root has rules of its own
    only. `withdrawn` are these and those that an attribute hides; a slot with content counts as hidden, because its
    content is where the page has it. `unseen` are those that are hidden from the eyes only: their text is no text of
    the page, but it names the controls that contain it. A field that is unseen, but has a label that is not, is drawn
    by the page itself, and visible; so is one that is not rendered at all, if a click on its label operates it.
    `styles` are the page's own. `tree` is that of the page, without texts that are hidden where their element is not;
    `unseen_texts` has those of them that are hidden from the eyes only.
    """

    __slots__ = ("by_rule", "flat", "styles", "tree", "unseen", "unseen_texts", "withdrawn")

    def __init__(self, tree: Tree) -> None:
        self.tree, self.flat = tree, FlatTree(tree)
        styled = {
            at for at in (0, *tree.conspicuous) if (style := tree.attributes[at].get("style")) and may_hide(style)
        }
        boxes, texts, unseen = set(self.flat.unassigned), set[int](), set[int]()
        boxes.update(child for tag in MEASURES for at in tree.find(tag) for child in tree.children(at))
        base: dict[int, Declarations] = {at: _CLOSED for at in tree.conspicuous if "popover" in tree.attributes[at]}
        for template, (start, end) in tree.contents.items():
            if shadow_mode_of(tree.attributes[template]) is not None:
                host = tree.parents[template]
                matcher = Matcher(tree, start, end, host=host, slotted=frozenset(tree.children(host)))
                inner = self._styles(matcher, range(start, end), styled, base)
                boxes |= inner.boxes
                texts |= inner.texts
                unseen |= inner.unseen
                base.update(inner.outside)
        outer = self.styles = self._styles(Matcher(tree, 0, tree.size), tree.find("style"), styled, base)
        boxes |= outer.boxes
        texts |= outer.texts
        unseen |= outer.unseen
        hidden = {at for at in (0, *tree.conspicuous) if self.is_hidden_by(tree.attributes[at])}
        self._empty_slots(boxes, hidden)
        fields = [at for at in unseen if tree.tags[at] in _FIELDS]
        fields += [at for at in tree.find("input") if (at in boxes or at in hidden) and self._is_chosen(at)]
        drawn = set(self._drawn(fields, boxes | hidden))
        boxes -= drawn
        hidden -= drawn
        self.unseen = frozenset(unseen - drawn)
        self.unseen_texts = {at: tree.texts[at] for at in unseen & texts}
        if silent := [at for at in (*boxes, *texts) if not tree.tags[at]]:
            self.tree = tree.without(silent)
        self.by_rule = frozenset(
            at for at in {*boxes, *self.flat.assigned} if tree.tags[at] not in _NEVER_HIDDEN and tree.tags[at]
        )
        self.withdrawn = self.by_rule | hidden

    def _styles(
        self, matcher: Matcher, among: Iterable[int], styled: set[int], base: Mapping[int, Declarations]
    ) -> Styles:
        """Return what the sheets among some nodes hide."""
        tree = self.tree
        sheets = [read_sheet(written_in(tree, at)) for at in among if tree.tags[at] == "style" and self._applies(at)]
        within = {at: declared for at, declared in base.items() if matcher.start <= at < matcher.end}
        own = (at for at in styled if matcher.start <= at < matcher.end)
        return Styles(tree, matcher, [sheet for sheet in sheets if sheet.blocks], own, within)

    def _empty_slots(self, boxes: set[int], hidden: set[int]) -> None:
        """Add the content of slots that are hidden, or in something that is."""
        tree = self.tree
        for slot, assigned in sorted(self.flat.assigned.items()):
            at = slot
            while at >= 0 and at not in boxes and at not in hidden and tree.tags[at] != "template":
                at = tree.parents[at]
            if at >= 0 and tree.tags[at] != "template":
                boxes.update(assigned)

    def _drawn(self, fields: Sequence[int], hidden: Set[int]) -> Iterator[int]:
        """Yield the fields that have a visible `<label>`, around them or for their id."""
        tree = self.tree
        labels = defaultdict[str, list[int]](list)
        for at in tree.find("label") if fields else ():
            labels[tree.attributes[at].get("for", "")].append(at)
        for field in fields:
            above = around(tree, field)
            enclosing = [at for at in above if tree.tags[at] == "label" and "for" not in tree.attributes[at]]
            name = tree.attributes[field].get("id")
            named = labels.get(name, ()) if name else ()
            if any(hidden.isdisjoint(around(tree, at)) for at in (*named[:MAX_LABELS], *enclosing[:1])):
                yield field

    def _is_chosen(self, field: int) -> bool:
        """Return True for a field that a click on its label operates, whether it is rendered or not."""
        attributes = self.tree.attributes[field]
        is_silent = attributes.get("aria-hidden", "").strip().lower() == "true"  # beside an element that stands for it
        return not is_silent and input_type(attributes) in _CHOSEN

    def _applies(self, style: int) -> bool:
        attributes = self.tree.attributes[style]
        kind = attributes.get("type", "").lower()
        return holds_media(attributes.get("media", "")) is True and kind in ("", "text/css")

    def hides(self, at: int) -> bool:
        """Return True if nothing of an element is visible."""
        tag, attributes = self.tree.tags[at], self.tree.attributes[at]
        if tag in STRIPPED or at in self.withdrawn:
            return True
        if not attributes:
            return tag == "svg"
        if tag == "img" or tag == "svg":  # decoration, or a drawing without a role and a name (6.1)
            roles = attributes.get("role", "").lower().split()
            if not (attributes.get("aria-label") or attributes.get("aria-labelledby")):
                if tag == "img" and (attributes.get("alt") == "" or "presentation" in roles or "none" in roles):
                    return True
                if tag == "svg" and not ("img" in roles and (attributes.get("title") or title_of(self.tree, at))):
                    return True
        return False

    def withdraws(self, at: int) -> bool:
        """Return True if the page itself hides an element: by an attribute, its style, or a rule."""
        return at in self.withdrawn

    def is_hidden_by(self, attributes: Mapping[str, str]) -> bool:
        """Return True if attributes hide their element (SOM 1.0, 6.1)."""
        return "hidden" in attributes or attributes.get("aria-hidden", "").strip().lower() == "true"


def title_of(tree: Tree, drawing: int) -> str:
    """Return the text of an `<svg>`'s `<title>`."""
    titles = (child for child in tree.children(drawing) if tree.tags[child] == "title")
    return " ".join("".join(written_in(tree, title) for title in titles).split())


_CONTROLS: Final = frozenset(("button", "form", "select", "textarea"))


def text_of(
    visibility: Visibility, node: int, without: int = -1, max_nodes: int | None = None, *, shows: bool = False
) -> str:
    """Return the visible text below a node with white space collapsed (4.6) and blocks separated by a space.

    `without` is a node to skip; nodes after the first `max_nodes` are left out. `shows` adds the alternative texts of
    images and leaves out controls and forms.
    """
    tree = visibility.tree
    tags, texts, ends = tree.tags, tree.texts, tree.ends
    if (only := tree.only(node)) is not None:
        return " ".join(only.split())
    pieces: list[str] = []
    blocks: list[int] = []  # the ends of the blocks around the present text
    left = len(tags) * 2 if max_nodes is None else max_nodes
    at, end = node + 1, ends[node]
    while left > 0:
        left -= 1
        if blocks and at >= blocks[-1]:
            blocks.pop()
            pieces.append(" ")
        elif at >= end:
            break
        elif not (tag := tags[at]):
            pieces.append(texts[at])
            at += 1
        elif at == without or visibility.hides(at) or (shows and tag in _CONTROLS):
            at = ends[at]
        else:
            if shows and tag == "img":
                pieces.append(f" {tree.attributes[at].get('alt', '')} ")
            if tag not in INLINE or tag == "br":
                pieces.append(" ")
                blocks.append(ends[at])
            if ends[at] == at + 2 and not tags[at + 1]:
                pieces.append(texts[at + 1])
                at += 1
            at += 1
    return " ".join("".join(pieces).split())
