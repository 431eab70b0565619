"""Which elements of a page are visible (SOM 1.0, section 6), and their visible text."""

from collections.abc import Mapping
from typing import Final

from awp_publish.pages.declarations import style_hides
from awp_publish.pages.sheets import reads_media
from awp_publish.pages.slots import FlatTree
from awp_publish.pages.styles import hidden_by_rules
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

_HIDING_ATTRIBUTES: Final = frozenset(("aria-hidden", "hidden", "popover", "style"))
_NEVER_HIDDEN: Final = ("html", "body")
"""A page that hides all of itself is shown by its scripts, as AMP's are."""


class Visibility:
    """The hidden elements of one page.

    `by_rule` are those that the page's own `<style>` rules hide, and the children of a host that its shadow root has no
    slot for. A shadow root has rules of its own only. `withdrawn` are these and those that an attribute hides; a slot
    with content counts as hidden, because its content is where the page has it.
    """

    __slots__ = ("by_rule", "flat", "tree", "withdrawn")

    def __init__(self, tree: Tree) -> None:
        self.tree, self.flat = tree, FlatTree(tree)
        found = {*self.flat.unassigned, *self.flat.assigned}
        if sheets := [written_in(tree, style) for style in tree.find("style") if self._applies(style)]:
            found |= hidden_by_rules(tree, sheets, 0, tree.size)
        for template, (start, end) in tree.contents.items():
            if shadow_mode_of(tree.attributes[template]) is None:
                continue
            styles = (at for at in range(start, end) if tree.tags[at] == "style" and self._applies(at))
            if sheets := [written_in(tree, style) for style in styles]:
                found |= hidden_by_rules(tree, sheets, start, end)
        self.by_rule = frozenset(at for at in found if tree.tags[at] not in _NEVER_HIDDEN)
        attributes = ((at, tree.attributes[at]) for at in (0, *tree.conspicuous))
        self.withdrawn = self.by_rule | {at for at, given in attributes if self.is_hidden_by(tree.tags[at], given)}

    def _applies(self, style: int) -> bool:
        return reads_media(self.tree.attributes[style].get("media", "").strip())

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

    def is_hidden_by(self, tag: str, attributes: Mapping[str, str]) -> bool:
        """Return True if attributes hide their element."""
        if _HIDING_ATTRIBUTES.isdisjoint(attributes):
            return False
        if (
            "hidden" in attributes
            or "popover" in attributes
            or attributes.get("aria-hidden", "").strip().lower() == "true"
        ):
            return True
        style = attributes.get("style")
        return bool(style) and tag not in _NEVER_HIDDEN and style_hides(style)


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
