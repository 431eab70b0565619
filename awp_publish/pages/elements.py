"""The third pass: from an entry of the survey to an element of SOM, without its id (SOM 1.0, section 4)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from awp_publish.pages.attributes import Attrs, Value, read_common, shorten_address
from awp_publish.pages.controls import read_control
from awp_publish.pages.entries import Entry, Survey
from awp_publish.pages.hints import MOST_CHARACTERS, hints_of
from awp_publish.pages.names import Names, collapse
from awp_publish.pages.roles import ACTIONS
from awp_publish.pages.shortening import Limits, Shortened
from awp_publish.pages.states import DISABLED, INERT
from awp_publish.pages.tables import Said, read_cells
from awp_publish.pages.tree import Node

SomElement = dict[str, Any]
"""An element as its JSON will be."""

_LINK: Final = ("href", "target", "rel", "hreflang", "type", "referrerpolicy")
_FRAME: Final = ("name", "sandbox", "allow", "width", "height")
_SRCDOC_PREVIEW: Final = 200
_WITHOUT_TEXT: Final = frozenset(("group", "list", "section", "table"))
"""Roles that never carry text: what they hold follows, or is in their attributes (8.2)."""


@dataclass(slots=True)
class Made:
    """An element, and what of it was left out."""

    element: SomElement
    shortened: Shortened


class Elements:
    """The making of elements of one page."""

    __slots__ = ("_names", "_survey")

    def __init__(self, survey: Survey, names: Names) -> None:
        self._survey, self._names = survey, names

    def make(self, entry: Entry, limits: Limits) -> Made:
        """The element of an entry, in the order of members of 4.1. The id is the caller's to give."""
        shortened = Shortened()
        node, role, attributes = entry.node, entry.role, entry.node.attributes
        whole = "" if role in _WITHOUT_TEXT else self._survey.text(entry)
        text = limits.shorten(whole, shortened)
        label = self._names.label(node, whole) if node.tag else ""
        element: SomElement = {"id": "", "role": role}
        if attributes.get("id", "").strip():
            element["html_id"] = attributes["id"].strip()
        if text:
            element["text"] = text
        if label and not (limits.compact and role == "link" and text):
            element["label"] = limits.shorten(label, shortened)
        if role in ACTIONS:
            element["actions"] = list(ACTIONS[role])
        attrs = self._attrs(entry, text, label, limits, shortened)
        if attrs:
            element["attrs"] = attrs
        hints = hints_of(attributes.get("class", "")[:MOST_CHARACTERS])
        if hints:
            element["hints"] = list(hints)
        return Made(element, shortened)

    def _attrs(self, entry: Entry, text: str, label: str, limits: Limits, shortened: Shortened) -> Attrs:
        node, role = entry.node, entry.role
        if not node.tag:
            return {}
        if role == "link" and limits.compact:
            return {"href": shorten_address(node.attributes["href"])} if "href" in node.attributes else {}
        attrs = self._own(node, role, limits, shortened)
        if node.attributes:
            attrs.update((key, value) for key, value in read_common(node.attributes).items() if key not in attrs)
        if role == "link" and attrs.get("title") in (text, label):
            attrs.pop("title", None)
        self._inherit(entry, attrs)
        return attrs

    def _inherit(self, entry: Entry, attrs: Attrs) -> None:
        """What holds for an element because of others: an inert part of the page, a fieldset, a description."""
        attributes = entry.node.attributes
        if entry.state & INERT or "inert" in attributes:
            attrs["inert"] = True
        if entry.state & DISABLED and entry.role in ACTIONS and entry.role not in ("link", "details"):
            attrs["disabled"] = True
        described = self._names.referred(attributes.get("aria-describedby"))
        if described:
            attrs["description"] = described

    def _own(self, node: Node, role: str, limits: Limits, shortened: Shortened) -> Attrs:
        """What tag and role bring along. A link that is called a button still leads somewhere."""
        if node.tag in ("input", "textarea", "select", "button"):
            return read_control(node, self._survey.said, limits, shortened)
        leads = role in ACTIONS and node.tag in ("a", "area") and "href" in node.attributes
        reading = _BY_ROLE.get("link" if leads else role)
        return reading(node, self._survey.said, limits, shortened) if reading is not None else {}


def _link(node: Node, said: Said, limits: Limits, shortened: Shortened) -> Attrs:
    attributes = node.attributes
    attrs: Attrs = {name: shorten_address(attributes[name]) for name in _LINK if name in attributes}
    if attrs.get("rel") == "nofollow":  # meant for search engines; it says nothing of the link
        del attrs["rel"]
    if "download" in attributes:
        attrs["download"] = attributes["download"] or True
    return attrs


def _heading(node: Node, said: Said, limits: Limits, shortened: Shortened) -> Attrs:
    native = node.tag[1:] if node.tag in ("h1", "h2", "h3", "h4", "h5", "h6") else ""
    level = node.attributes.get("aria-level", "").strip() or native or "2"
    return {"level": int(level) if level in ("1", "2", "3", "4", "5", "6") else int(native or 2)}


def _image(node: Node, said: Said, limits: Limits, shortened: Shortened) -> Attrs:
    attributes = node.attributes
    attrs: Attrs = {"alt": collapse(attributes["alt"])} if "alt" in attributes else {}
    if "src" in attributes:
        attrs["src"] = shorten_address(attributes["src"])
    return attrs


def _list(node: Node, said: Said, limits: Limits, shortened: Shortened) -> Attrs:
    items = (said(item) for item in node.children if item.tag == "li")
    kept = limits.take([text for text in items if text], shortened)
    attrs: Attrs = {"ordered": node.tag == "ol"}
    if kept:
        attrs["items"] = [{"text": text} for text in kept]
    return attrs


def _table(node: Node, said: Said, limits: Limits, shortened: Shortened) -> Attrs:
    """Headers and rows. The schema has no place for the caption of 4.3: it is the table's label."""
    cells = read_cells(node, said)
    rows = limits.take_rows(cells.rows, shortened)
    attrs: Attrs = {}
    if cells.headers:
        attrs["headers"] = list[Value](limits.shorten_all(limits.take_columns(cells.headers, shortened), shortened))
    if rows:
        attrs["rows"] = [list[Value](row) for row in rows]
    return attrs


def _section(node: Node, said: Said, limits: Limits, shortened: Shortened) -> Attrs:
    name = collapse(node.attributes.get("aria-label"))
    return {"section_label": name} if name else {}


def _group(node: Node, said: Said, limits: Limits, shortened: Shortened) -> Attrs:
    if node.tag != "fieldset":
        return {}
    legend = next((child for child in node.children if child.tag == "legend"), None)
    attrs: Attrs = {"legend": said(legend) or ""} if legend is not None else {}
    if "disabled" in node.attributes:
        attrs["disabled"] = True
    return attrs


def _details(node: Node, said: Said, limits: Limits, shortened: Shortened) -> Attrs:
    summary = next((child for child in node.children if child.tag == "summary"), None)
    attrs: Attrs = {"open": "open" in node.attributes}
    if summary is not None:
        attrs["summary"] = limits.shorten(said(summary) or "", shortened)
    return attrs


def _iframe(node: Node, said: Said, limits: Limits, shortened: Shortened) -> Attrs:
    attributes = node.attributes
    attrs: Attrs = {"src": shorten_address(attributes["src"])} if attributes.get("src") else {}
    if "srcdoc" in attributes:
        attrs["has_srcdoc"] = True
        attrs["srcdoc_preview"] = collapse(attributes["srcdoc"])[:_SRCDOC_PREVIEW]
    attrs.update({name: attributes[name] for name in _FRAME if attributes.get(name)})
    return attrs


_BY_ROLE: Final[Mapping[str, Callable[[Node, Said, Limits, Shortened], Attrs]]] = {
    "link": _link,
    "heading": _heading,
    "image": _image,
    "list": _list,
    "table": _table,
    "section": _section,
    "group": _group,
    "details": _details,
    "iframe": _iframe,
}
