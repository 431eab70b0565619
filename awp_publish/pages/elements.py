"""The second pass: makes elements of SOM from the candidates of the survey, without ids (SOM 1.0, section 4)."""

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias
from urllib.parse import urljoin

from awp_publish.pages.regions import (
    ACTIONS,
    CONTROLS,
    DISABLED,
    HIDDEN,
    INERT,
    MAX_REFERENCES,
    Survey,
    input_type,
    is_secret,
    read_cells,
    read_form,
    references_of,
    role_of,
)
from awp_publish.pages.tree import INLINE, STRIPPED, Tree, Visibility, text_of, title_of, written_in

# --- Accessible names (4.5, label resolution) ---

MAX_NODES: Final = 500
"""Nodes that are read of an element whose content is another element's name."""

MAX_NAME_LENGTH: Final = 1_000

_NAMING: Final = frozenset(("aria-label", "aria-labelledby", "aria-labeledby", "role", "title"))
_MIXED: Final = frozenset(("a", "button", "h1", "h2", "h3", "h4", "h5", "h6"))
"""Elements whose name may differ from their text, because they may contain an image."""

_VALUED: Final = frozenset(
    ("input", "select", "meter", "progress", "listbox", "slider", "spinbutton", "progressbar", "scrollbar")
)
"""Elements and roles that contribute their value to a name that contains them."""

_BUTTON_NAMES: Final[Mapping[str, str]] = {"submit": "Submit", "reset": "Reset", "image": "Submit", "button": ""}
"""Names that browsers give to buttons without a name (HTML 4.10.5.1.18)."""

_NAMED_WITH_PARTS: Final = frozenset(("button", "heading", "link"))
_NAMED_BY_CONTENT: Final = frozenset(("a", "area", "fieldset", "svg", "table"))
_PLAIN: Final = INLINE - STRIPPED - _VALUED - {"area", "br", "iframe", "img", "svg", "textarea"}
"""Elements that, without attributes, contribute only their content."""

_OVERRIDING: Final = ("aria-label", "aria-labelledby", "aria-labeledby")
_LABELABLE: Final = frozenset(("button", "input", "meter", "output", "progress", "select", "textarea"))


class AccessibleNames:
    """Computes accessible names within one page. Referenced elements are looked up once."""

    __slots__ = ("_is_referred", "_labels", "_texts", "_texts_of_labels", "_tree", "_visibility", "told")

    def __init__(self, visibility: Visibility) -> None:
        tree = visibility.tree
        self._tree, self._visibility = tree, visibility
        self._is_referred = False
        """True while the name of a referenced element is computed: references in it are ignored (accname 1.2, 2B)."""
        self._texts: dict[int, str] = {}
        self._texts_of_labels: dict[int, str] = {}
        self._labels: dict[int | str, list[int]] = {}
        """For an id, and for an element inside of labels, its labels."""
        self.told: set[int] = set()
        """Labels that are the name of a visible control, and therefore not elements of their own."""
        for label in tree.find("label"):
            control = next(
                (
                    at
                    for at in range(label + 1, min(tree.ends[label], label + 1 + MAX_NODES))
                    if tree.tags[at] in _LABELABLE and input_type(tree.attributes[at]) != "hidden"
                ),
                None,
            )
            target = tree.attributes[label].get("for") or control
            if target is None:
                continue
            known = self._labels.setdefault(target, [])
            if len(known) < MAX_REFERENCES:
                known.append(label)
                labelled = tree.find_id(target) if isinstance(target, str) else target
                if labelled is None or tree.tags[labelled] not in _LABELABLE or visibility.hides(labelled):
                    continue
                given = tree.attributes[labelled]
                if role_of(tree.tags[labelled], given) in ACTIONS and not any(
                    given.get(name, "").strip() for name in _OVERRIDING
                ):
                    self.told.add(label)

    def label(self, element: int, text: str) -> str:
        """Return the name of an element, or "" if it has none or only its `text`."""
        tag, given = self._tree.tags[element], self._tree.attributes[element]
        if tag not in _LABELABLE and (text or tag not in _NAMED_BY_CONTENT):
            is_mixed = tag in _MIXED and self._holds_elements(element)
            if not is_mixed and (not given or _NAMING.isdisjoint(given)):
                return ""
        known = text.lower()
        # In the order of 4.5 and of HTML-AAM, section 4.1: a title comes last.
        if references := references_of(given):
            name = self.referred(references)
            if name and name.lower() != known:
                return name
        if "aria-label" in given:
            name = collapse(given["aria-label"])
            if name and name.lower() != known:
                return name
        for name in self._native(element):
            if name and name.lower() != known:
                return name
        return ""

    def _holds_elements(self, element: int) -> bool:
        return any(self._tree.tags[at] for at in range(element + 1, self._tree.ends[element]))

    def referred(self, ids: str) -> str:
        """Return the names of the elements in a list of ids, as in `aria-labelledby`."""
        nodes = [self._tree.find_id(name) for name in ids.split()[:MAX_REFERENCES]]
        before, self._is_referred = self._is_referred, True
        texts = [self.named(node) for node in nodes if node is not None]
        self._is_referred = before
        return " ".join(filter(None, texts))[:MAX_NAME_LENGTH]

    def _native(self, element: int) -> Iterator[str]:
        """Yield possible names according to HTML alone."""
        tree = self._tree
        tag, attributes = tree.tags[element], tree.attributes[element]
        if tag in _LABELABLE:
            by_id = self._labels.get(attributes["id"], []) if "id" in attributes else []
            found = sorted({*by_id, *self._labels.get(element, ())})
            for label in found:
                if label not in self._texts_of_labels:  # many elements may have the id that a label names
                    given = tree.attributes[label]
                    said = collapse(given.get("aria-label")) or self.content(label, element, self._is_hidden(label))
                    self._texts_of_labels[label] = said or collapse(given.get("title"))
            yield " ".join(filter(None, (self._texts_of_labels[label] for label in found)))
        if tag == "input":
            kind = input_type(attributes)
            if kind == "image":
                yield collapse(attributes.get("alt"))
                yield collapse(attributes.get("title"))
            if kind in _BUTTON_NAMES:
                yield collapse(attributes.get("value"))
                yield _BUTTON_NAMES[kind]
        elif tag in ("fieldset", "table"):
            wanted = "legend" if tag == "fieldset" else "caption"
            first = next((child for child in tree.children(element) if tree.tags[child] == wanted), None)
            if first is not None and not self._visibility.hides(first):
                yield self.content(first)
        elif tag == "svg":
            yield title_of(tree, element)
        elif tag == "area":
            yield collapse(attributes.get("alt"))
        elif tag == "img" and collapse(attributes.get("alt")):
            return  # `alt` is an attribute of its own
        elif (
            tag in _MIXED or ("role" in attributes and role_of(tag, attributes) in _NAMED_WITH_PARTS)
        ) and self._holds_elements(element):
            yield self.content(element)
        if "title" in attributes:
            yield collapse(attributes["title"])
        if tag in ("input", "textarea"):
            yield collapse(attributes.get("placeholder"))
        if "aria-placeholder" in attributes:
            yield collapse(attributes["aria-placeholder"])

    def content(self, element: int, without: int = -1, is_hidden: bool = False) -> str:
        """Return the name that an element has from its content (accname 1.2, steps 2C to 2I), leaving out one node.

        A part contributes its `aria-label` if it has one, an image its alternative text, a control its value. If the
        element itself is hidden, hidden parts contribute too (2B, note).
        """
        pieces: list[str] = []
        referring = length = 0
        owners = {element}
        tree, visibility = self._tree, self._visibility
        waiting: list[int | None] = [*self._owned(element, owners), *reversed(tree.children(element))]
        for _ in range(MAX_NODES):
            if not waiting or length > MAX_NAME_LENGTH * 4:
                break
            node = waiting.pop()
            if node is None:
                pieces.append(" ")
                continue
            tag, given, only = tree.tags[node], tree.attributes[node], tree.only(node)
            if not tag:
                pieces.append(tree.texts[node])
                length += len(pieces[-1])
                continue
            if not given and tag in _PLAIN and node not in visibility.by_rule:
                if only is not None:
                    pieces.append(only)
                else:
                    waiting.extend(reversed(tree.children(node)))
                continue
            # A drawing within a control is its icon, and may have a title without a role.
            if node == without or (
                tag in STRIPPED if is_hidden else visibility.withdraws(node) if tag == "svg" else visibility.hides(node)
            ):
                continue
            said = None
            if (references := references_of(given)) and not self._is_referred and referring < MAX_REFERENCES:
                referring += 1
                said = self.referred(references) or None
            if said is None and given.get("role") == "menu":
                said = ""
            if said is None and (tag in _VALUED or given.get("role") in _VALUED):
                said = self.value(node)
            if said is None:
                said = collapse(given.get("aria-label")) or None
            if said is None and tag in ("img", "area", "svg", "iframe"):
                said = given.get("alt") if tag in ("img", "area") else title_of(tree, node)
                said = collapse(said or (given.get("title") if "alt" not in given else ""))
            parted = tag not in INLINE or tag == "br" or tag == "textarea" or tag in _VALUED
            if parted:
                pieces.append(" ")
            if said is not None:
                pieces.append(f" {said} " if tag == "svg" else said)
            elif only is not None and "aria-owns" not in given:
                pieces.append(only)
            elif tree.ends[node] > node + 1 or "aria-owns" in given:
                if parted:
                    waiting.append(None)
                waiting.extend(self._owned(node, owners))
                waiting.extend(reversed(tree.children(node)))
            elif "title" in given:
                pieces.append(given["title"])
            if parted:
                pieces.append(" ")
        return collapse("".join(pieces))

    def _owned(self, owner: int, owners: set[int]) -> list[int | None]:
        """Return the elements named by `aria-owns`, last first, with separators; owners and owned ones count once."""
        found: list[int | None] = []
        given = self._tree.attributes[owner]
        if "aria-owns" in given and len(owners) <= MAX_REFERENCES:
            owners.add(owner)
            for name in given["aria-owns"].split()[:MAX_REFERENCES]:
                node = self._tree.find_id(name)
                if node is not None and node not in owners:
                    owners.add(node)
                    found = [node, None, *found]
        return found

    def _is_hidden(self, node: int) -> bool:
        return any(map(self._visibility.withdraws, (node, *_around(self._tree, node))))

    def value(self, control: int) -> str | None:
        """Return what a control contributes to a name: its value (2C). None if it contributes its content."""
        tags, attributes = self._tree.tags, self._tree.attributes
        tag, given = tags[control], attributes[control]
        role = given.get("role", "")
        if tag == "input":
            kind = input_type(given)
            if kind in ("checkbox", "radio", "hidden", "password", "file"):
                return ""
            if kind == "image":
                return collapse(given.get("alt") or given.get("title"))
            return collapse(given.get("aria-valuetext") or given.get("value")) or _BUTTON_NAMES.get(kind, "")
        if tag == "select" or role == "listbox":
            below = range(control + 1, min(self._tree.ends[control], control + 1 + MAX_NODES))
            options = [one for one in below if "option" in (tags[one], attributes[one].get("role"))]
            chosen = [
                one
                for one in options
                if "selected" in attributes[one] or attributes[one].get("aria-selected") == "true"
            ]
            if not chosen and tag == "select" and "multiple" not in given:
                chosen = options[:1]
            return " ".join(text_of(self._visibility, one, max_nodes=MAX_NODES) for one in chosen)
        if role in ("slider", "spinbutton", "progressbar", "scrollbar") or tag in ("meter", "progress"):
            return collapse(given.get("aria-valuetext") or given.get("aria-valuenow") or given.get("value"))
        return None

    def named(self, node: int) -> str:
        """Return the text that an element contributes as the name of another one, whether it is hidden or not."""
        if node not in self._texts:
            tag, given = self._tree.tags[node], self._tree.attributes[node]
            said = collapse(given.get("aria-label")) or collapse(given.get("alt") if tag == "img" else None)
            if not said and (tag in _VALUED or given.get("role") in _VALUED):
                said = self.value(node) or ""
            if not said and (tag in _LABELABLE or tag in _NAMED_BY_CONTENT):
                said = next(filter(None, self._native(node)), "")
            said = said or self.content(node, is_hidden=self._is_hidden(node))
            self._texts[node] = said or collapse(given.get("title"))
        return self._texts[node]


def collapse(text: str | None) -> str:
    """Return a text with white space collapsed (4.6), limited to the length of a name."""
    return " ".join(text[: MAX_NAME_LENGTH * 4].split())[:MAX_NAME_LENGTH] if text else ""


# --- The `attrs` that any element may have ---
# Each attribute in the page is looked up in one table, so that the time depends on the attributes that an element has.

Value: TypeAlias = "str | int | bool | list[Value] | dict[str, Value] | None"
Attrs: TypeAlias = dict[str, Value]
_Reading: TypeAlias = Callable[[str], Value]

MAX_VALUE_LENGTH: Final = 4_096
"""Characters of an attribute's value; a longer address is an embedded file."""

_INTEGER: Final = re.compile(r"\s*-?\d{1,15}\s*\Z", re.ASCII)


def base_of(tree: Tree, url: str) -> str:
    """Return the base of relative addresses that a page declares, or "" (HTML, 4.2.3)."""
    for one in tree.find("base"):
        if "href" in tree.attributes[one]:
            try:
                return urljoin(url, tree.attributes[one]["href"].strip())
            except ValueError:
                return ""
    return ""


def shorten_address(address: str) -> str:
    """Return an address, truncated if it is a file embedded in the page."""
    return address if len(address) <= MAX_VALUE_LENGTH else f"{address[:100]}..."


def _text(value: str) -> Value:
    return value[:MAX_VALUE_LENGTH] or None


def _stripped(value: str) -> Value:
    return value.strip()[:MAX_VALUE_LENGTH] or None


def _flag(value: str) -> Value:
    return True


def _only_true(value: str) -> Value:
    return True if value.strip().lower() == "true" else None


_TRUTH: Final = {"true": True, "false": False}
_TEXTS: Final = (
    *("accept", "accesskey", "autocapitalize", "autocomplete", "command", "commandfor", "dirname", "enterkeyhint"),
    *("form", "formaction", "formenctype", "formmethod", "formtarget", "inputmode", "list", "name", "pattern"),
    *("popovertarget", "popovertargetaction", "step", "title"),
)
_READINGS: Final[Mapping[str, tuple[str, _Reading]]] = {
    **{name: (name, _text) for name in _TEXTS},
    **{
        name: (name, lambda value: int(value) if _INTEGER.match(value) else _text(value))
        for name in ("max", "maxlength", "min", "minlength", "tabindex")
    },
    **{  # true without a value
        name: (name, lambda value: {"": True, **_TRUTH}.get(value.strip().lower(), value[:MAX_VALUE_LENGTH]))
        for name in ("capture", "contenteditable", "draggable", "spellcheck")
    },
    "popover": ("popover", lambda value: value or "auto"),
    "formnovalidate": ("formnovalidate", _flag),
    "readonly": ("readonly", _flag),
    "aria-readonly": ("readonly", _only_true),
    "aria-required": ("required", _only_true),
    "aria-disabled": ("disabled", _only_true),
    "role": ("source_role", _text),
    "data-testid": ("test_id", _text),
    "data-test": ("test_id", _text),
    "data-qa": ("test_id", _text),
    "aria-description": ("description", _text),
}
_ARIA_TRUTHS: Final = (
    *("atomic", "busy", "disabled", "expanded", "grabbed", "hidden", "multiline", "multiselectable", "pressed"),
    *("readonly", "selected"),
)
_ARIA_STATES: Final = ("checked", "current", "haspopup", "invalid")
_ARIA_TEXTS: Final = (
    *("autocomplete", "controls", "describedby", "details", "dropeffect", "errormessage", "flowto", "keyshortcuts"),
    *("label", "labelledby", "level", "live", "orientation", "owns", "placeholder", "posinset", "relevant"),
    *("roledescription", "setsize", "sort", "valuemax", "valuemin", "valuenow", "valuetext"),
)
_ARIA: Final[Mapping[str, tuple[str, _Reading]]] = {
    **{f"aria-{name}": (name, lambda value: _TRUTH.get(value.strip().lower())) for name in _ARIA_TRUTHS},
    **{
        f"aria-{name}": (name, lambda value: _TRUTH.get(value.strip().lower(), _stripped(value)))
        for name in _ARIA_STATES
    },
    **{f"aria-{name}": (name, _stripped) for name in _ARIA_TEXTS},
    "aria-activedescendant": ("active_descendant", _stripped),
}
"""ARIA states: those that are true or false, those that are true, false or a word, and texts."""

_KNOWN: Final = {name: (_READINGS.get(name), _ARIA.get(name)) for name in (*_READINGS, *_ARIA)}
"""For each attribute, how it is read on any element, and how as an ARIA state."""


# --- Hints from the classes of an element ---

_HINT_WORDS: Final = {
    "primary": "primary|cta",
    "secondary": "secondary",
    "danger": "danger|destructive|delete",
    "warning": "warning|caution",
    "success": "success",
    "error": "error|invalid",
    "disabled": "disabled",
    "active": "active|current",
    "selected": "selected|checked",
    "hidden": "hidden|sr-only",
    "loading": "loading|spinner|skeleton",
    "collapsed": "collapsed|is-closed",
    "expanded": "expanded|is-open|show",
    "large": "lg|large|xl",
    "small": "sm|small|xs|mini",
    "card": "(?<!dis)card",
    "hero": "hero|jumbotron|banner",
    "modal": "modal|dialog|popup|overlay",
    "notification": "toast|snackbar|notification|alert",
    "badge": "badge|chip|tag|pill",
    "sticky": "sticky|fixed|pinned",
    "required": "required|mandatory",
}
_HINTS: Final = tuple(sorted((hint, re.compile(words)) for hint, words in _HINT_WORDS.items()))
MAX_CLASS_LENGTH: Final = 500
"""Characters of a `class` attribute that are examined."""


@lru_cache(maxsize=1_024)
def _hints_of(classes: str) -> tuple[str, ...]:
    """Return the hints of a `class` attribute, sorted. Cached, because the pages of a site share their classes."""
    text = classes.lower()
    return tuple(hint for hint, pattern in _HINTS if pattern.search(text))


# --- Truncating texts, and counting what was left out (SOM 1.0, sections 4.6 and 8.2) ---

_MIN_SENTENCE: Final = 0.4
"""A text is cut after a sentence if that keeps at least this part of the limit (4.6)."""

Losses: TypeAlias = defaultdict[str, int]
"""Counts of what was left out, by the words that describe it in a document (see `som.describe_losses`)."""

SHORTENED: Final = "texts shortened"
CHARACTERS: Final = "chars"


@dataclass(frozen=True, slots=True)
class ElementLimits:
    """Limits for one element: characters of a text, an item or a row, and the number of items or rows.

    None means no limit. `compact` keeps only the text of elements that are not controls, the address of links, and what
    is needed to operate controls.
    """

    characters: int | None = None
    units: int | None = None
    compact: bool = False

    def shorten(self, text: str, losses: Losses) -> str:
        """Return the text, shortened to the limit."""
        if self.characters is None or len(text) <= self.characters:
            return text
        kept = shorten_text(text, self.characters)
        losses[SHORTENED] += 1
        losses[CHARACTERS] += max(len(text) - len(kept), 0)
        return kept


def shorten_text(text: str, most: int) -> str:
    """Return at most so many characters of a text: whole sentences if they are long enough, or else words and "..."."""
    if len(text) <= most:
        return text
    window = text[:most]
    sentence = max(window.rfind("."), window.rfind("!"), window.rfind("?")) + 1
    if sentence >= most * _MIN_SENTENCE:
        return window[:sentence]
    room = window[: max(most - 3, 0)]
    word = room.rfind(" ")
    return (room[:word] if word > 0 else room) + "..."


# --- Items: the row, card or section to which a button or a form belongs ---

_MAX_CLIMB: Final = 12
"""Ancestors of a button or a form that are searched for a name."""

MAX_ITEM_NAME: Final = 60
_LETTER: Final = re.compile(r"[^\W\d_]")
_BOUNDARIES: Final = frozenset(("aside", "body", "dialog", "footer", "header", "main", "nav"))
"""Elements beyond which no name is searched."""


class ItemNames:
    """Names of the items of one page, from its headings and rows."""

    __slots__ = ("_headings", "_heads", "_rows", "_starts", "_survey", "_tree", "_visibility")

    def __init__(self, survey: Survey, visibility: Visibility) -> None:
        self._survey, self._visibility, self._tree = survey, visibility, visibility.tree
        starts, roles = survey.starts, survey.roles
        regions = [*survey.regions, *survey.shadows.values()]
        everything = (one for region in regions for one in region.candidates if roles[one] == "heading")
        headings = [one for one in everything if survey.text(one)]
        self._headings = sorted(headings, key=starts.__getitem__)
        self._starts = [starts[one] for one in self._headings]
        self._heads: dict[int, int] = {}
        """The first heading in each ancestor of a heading."""
        for heading in self._headings:
            for around in _around(self._tree, survey.nodes[heading]):
                self._heads.setdefault(around, heading)
        self._rows: dict[int, list[tuple[int, str]]] = {}
        """For each row, the cells that may name it, with their texts: two of a kind, as one may be the item's own."""

    def of_form(self, form: int, start: int) -> str:
        """Return the heading in a form, the nearest one before it, or the name of its row."""
        for around in (form, *_around(self._tree, form)):
            name = self._named(around, form, start, or_later=around == form)
            if name or self._tree.tags[around] in _BOUNDARIES:
                return name
        return ""

    def tell_apart(self, names: Mapping[int, str]) -> dict[int, str]:
        """Return the item of each button whose name another button has too, or "" if it cannot be determined."""
        survey = self._survey
        groups: dict[str, list[int]] = {}
        for candidate, name in names.items():
            groups.setdefault(name.lower(), []).append(candidate)
        told: dict[int, str] = {}
        for alike in groups.values():
            if len(alike) > 1:
                alike.sort(key=survey.starts.__getitem__)
                told |= self.of_each([(survey.nodes[one], survey.starts[one], survey.ends[one]) for one in alike])
        return told

    def of_each(self, alike: Sequence[tuple[int, int, int]]) -> dict[int, str]:
        """Return the item of each of several nodes, given in order with the start and end of their texts."""
        told: dict[int, str] = {}
        owners: dict[int, int | None] = {}  # ancestors of exactly one of them; None for those of several
        for node, _, _ in alike:
            for around in _around(self._tree, node):
                owners[around] = node if owners.get(around, node) == node else None
        # If there is no heading between the first two, a heading before the first one belongs to all of them.
        place = bisect_right(self._starts, alike[1][1])
        has_headings, before = place > 0 and self._starts[place - 1] >= alike[0][2], 0
        for node, start, end in alike:
            told[node] = shorten_text(self._of_one(node, start, owners, before, has_headings), MAX_ITEM_NAME)
            before = end
        return told

    def _of_one(self, node: int, start: int, owners: Mapping[int, int | None], after: int, has_headings: bool) -> str:
        survey, said = self._survey, ""
        for around in _around(self._tree, node):
            if owners[around] is None:  # a common ancestor: only a heading between them can help
                before = self._preceding(start, around)
                if before is not None and survey.starts[before] >= after and (has_headings or not said):
                    return survey.text(before)
                break
            if self._tree.tags[around] in _BOUNDARIES:
                break
            if name := self._named(around, node, start):
                return name
            if not said:
                said = text_of(self._visibility, around, node, 50, shows=True)
                said = said if _LETTER.search(said) else ""
        return said or " ".join("".join(survey.pieces[max(after, start - 20) : start]).split())

    def _named(self, around: int, node: int, start: int, or_later: bool = True) -> str:
        tree, survey = self._tree, self._survey
        if tree.tags[around] == "tr" or tree.attributes[around].get("role") == "row":
            if around not in self._rows:
                cells = [cell for cell in tree.children(around) if tree.tags[cell] in ("td", "th")]
                texts = [(cell, text) for cell in cells if (text := survey.part_text(cell))]
                headers = [(cell, text) for cell, text in texts if tree.tags[cell] == "th"]
                self._rows[around] = headers[:2] + [one for one in texts if _LETTER.search(one[1])][:2]
            own = set(_around(tree, node))
            return next((shorten_text(text, MAX_ITEM_NAME) for cell, text in self._rows[around] if cell not in own), "")
        if around not in self._heads:
            return ""
        heading = self._preceding(start, around)
        if heading is None and or_later:
            heading = self._heads[around]
        return shorten_text(survey.text(heading), MAX_ITEM_NAME) if heading is not None else ""

    def _preceding(self, start: int, around: int) -> int | None:
        """Return the last heading that begins before a position, if it is inside of this element."""
        place = bisect_right(self._starts, start)
        before = self._headings[place - 1] if place else None
        is_in = before is not None and around in _around(self._tree, self._survey.nodes[before])
        return before if is_in else None


def _around(tree: Tree, node: int) -> Iterator[int]:
    above = tree.parents[node]
    for _ in range(_MAX_CLIMB):
        if above < 0:
            return
        yield above
        above = tree.parents[above]


# --- Elements ---

SomElement: TypeAlias = dict[str, Any]
"""An element in the form of its JSON."""

_LINK: Final = ("href", "target", "rel", "hreflang", "type", "referrerpolicy")
_FRAME: Final = ("name", "sandbox", "allow", "width", "height")
_MAX_SRCDOC: Final = 200
_WITHOUT_TEXT: Final = frozenset(("group", "list", "section", "select", "table"))
"""Roles that never have text: their content follows as elements, or is in their attributes (8.2)."""

SECRET: Final = "A secret of the session: take it from the page's own form."


def form_method(given: Mapping[str, str]) -> str:
    """Return the method of a form in capitals, GET for missing and unknown ones (HTML, 4.10.19.6)."""
    method = given.get("method", "").strip().upper()
    return method if method in ("POST", "DIALOG") else "GET"


_MAX_COMPACT_VALUE: Final = 1_000
"""Characters of a hidden value that a compact document may have."""

_HELPFUL: Final = frozenset(("accesskey", "autocapitalize", "draggable", "enterkeyhint", "spellcheck", "tabindex"))
"""Attributes that help who sees a page, and tell nothing of what is sent."""

_STATES: Final = frozenset(("checked", "current", "disabled", "expanded", "invalid", "pressed", "selected"))
"""ARIA states that compact documents have. The others describe how a page is made, or repeat other members."""


def _hidden_attrs(given: Mapping[str, str], is_compact: bool) -> Attrs:
    name, value = given["name"], given.get("value", "")
    attrs: Attrs = {"input_type": "hidden", "name": name[:MAX_VALUE_LENGTH]}
    if is_secret(name):
        attrs["description"] = SECRET
    elif len(value) > (_MAX_COMPACT_VALUE if is_compact else MAX_VALUE_LENGTH):
        attrs["description"] = f"{len(value)} characters: take them from the page's own form."
    else:
        attrs["value"] = value
    return attrs


_MAX_SENT: Final = 200
"""Characters of hidden fields that are described for each button of a form."""

_MIN_CELL: Final = 20
_MIN_COLUMN: Final = 8
"""The characters that each cell and each column of a row need at least."""

_MAX_OPTIONS: Final = 100
"""Options of a select that is not written in full."""

_BUTTON_TYPES: Final = ("submit", "button", "reset", "image")


class Elements:
    """Makes the elements of one page. `base` is the base of its addresses, "" for the page's own."""

    __slots__ = (
        *("_actions", "_base", "_items", "_named", "_sent", "_survey", "_told", "_tree", "_url", "_visibility"),
        "names",
    )

    def __init__(self, survey: Survey, names: AccessibleNames, visibility: Visibility, url: str) -> None:
        self._tree, self._survey, self.names = visibility.tree, survey, names
        self._url, self._base = url, base_of(self._tree, url)
        buttons, roles = dict[int, str](), survey.roles
        regions = [*survey.regions, *survey.shadows.values()]
        for button in [one for region in regions for one in region.candidates if roles[one] == "button"]:
            text = survey.text(button)
            buttons[button] = names.label(survey.nodes[button], text) or text
        self._actions = {role: list(actions) for role, actions in ACTIONS.items()}  # shared lists
        self._items: ItemNames | None = None
        self._named: set[str] | None = None
        """Forms named by controls outside of them."""
        self._sent: dict[int, tuple[str, str, int | None]] = {}
        self._told: dict[int, str] = {}
        """Names with a suffix for buttons that would otherwise have the same name."""
        self._visibility = visibility
        if len({name.lower() for name in buttons.values()}) < len(buttons):
            said = Counter[tuple[str, str]]()
            items = self.items.tell_apart(buttons)
            named = [(survey.nodes[candidate], name) for candidate, name in buttons.items()]
            for node, name in named:
                said[name.lower(), items.get(node, "")] += node in items
            for node, name in named:
                item, form = items.get(node, ""), survey.forms.get(node)
                if form is not None and node in items and (not item or said[name.lower(), item] > 1):
                    item = f"{item} {self._sent_by(form)[1]}".strip()  # they differ only in their hidden fields
                if item and item.lower() not in name.lower():
                    self._told[node] = f"{name} {item}"

    @property
    def items(self) -> ItemNames:
        """The names of the items of the page."""
        if self._items is None:
            self._items = ItemNames(self._survey, self._visibility)
        return self._items

    def name_of(self, candidate: int) -> str:
        """Return the name of an element, with a suffix if another has the same name."""
        text, node = self._survey.text(candidate), self._survey.nodes[candidate]
        return self._told.get(node) or self.names.label(node, text) or text

    def address(self, written: str) -> str:
        """Return an address, resolved if the page has a `<base href>` (HTML, 4.2.3)."""
        if self._base and not written.startswith("#"):
            with suppress(ValueError):
                written = urljoin(self._base, written.strip())
        return shorten_address(written)

    def make(self, candidate: int, limits: ElementLimits, losses: Losses) -> SomElement:
        """Return an element with its members in the order of 4.1, without an id. Counts omissions in `losses`."""
        survey = self._survey
        node, role, flags = survey.nodes[candidate], survey.roles[candidate], survey.states[candidate]
        tag, attributes = self._tree.tags[node], self._tree.attributes[node]
        if role == HIDDEN:
            return {"id": "", "role": "text_input", "attrs": _hidden_attrs(attributes, limits.compact)}
        if role == "paragraph" and tag in ("img", "svg"):  # the picture of a formula, as text
            attributes = {}
        whole = "" if role in _WITHOUT_TEXT else self._survey.text(candidate)
        text = limits.shorten(whole, losses)
        compact = limits.compact and role not in CONTROLS
        label = ""
        # In compact documents the text of a link is enough, unless it is only a symbol.
        if tag and not (compact and role == "link" and any(map(str.isalnum, text))):
            label = self._told.get(node) or self.names.label(node, whole)
            if role == "details" and not whole and not label:  # its summary is only an image, or a symbol with a name
                summary = next(
                    (child for child in self._tree.children(node) if self._tree.tags[child] == "summary"), -1
                )
                label = self.names.named(summary) if summary >= 0 else ""
        element: SomElement = {"id": "", "role": role}
        if "id" in attributes and not limits.compact and (html_id := attributes["id"].strip()):
            element["html_id"] = html_id
        if text:
            element["text"] = text
        if label:
            element["label"] = limits.shorten(label, losses)
        if role in ACTIONS:
            element["actions"] = self._actions[role]
        if role == "link" and compact:
            attrs: Attrs = {"href": self.address(attributes["href"])} if "href" in attributes else {}
        elif compact:
            attrs = self._own_attrs(node, role, limits, losses) if tag else {}
        elif tag:
            attrs = self._own_attrs(node, role, limits, losses)
            states: Attrs = {}
            common: Attrs = {}
            # Attributes that mean the same on every element (4.3, global actionability; 4.4, ARIA states).
            for name, given in attributes.items():
                if name in _KNOWN:
                    plain, state = _KNOWN[name]
                    if plain is not None and plain[0] not in attrs and (value := plain[1](given)) is not None:
                        common.setdefault(plain[0], value)
                    if state is not None and (value := state[1](given)) is not None:
                        states[state[0]] = value
            attrs.update(common)
            if (role == "link" or limits.compact) and attrs.get("title") in (text, label):
                attrs.pop("title", None)
            if limits.compact:
                attrs = {name: value for name, value in attrs.items() if name not in _HELPFUL}
                if attrs.get("button_type") == attrs.get("input_type"):
                    attrs.pop("button_type", None)
                if attrs.get("input_type") == role:
                    del attrs["input_type"]
                states = {name: value for name, value in states.items() if name in _STATES}
            described = self.names.referred(attributes["aria-describedby"]) if "aria-describedby" in attributes else ""
            if described and limits.compact and self._shows(attributes["aria-describedby"]):
                described = ""  # compact documents do not repeat a text of the page
                states.pop("describedby", None)
            if states.get("label") in (text, label):  # it is the text or the name already
                del states["label"]
            if states:
                attrs["aria"] = states
            # Properties that depend on other elements: an inert part of the page, a fieldset, a description.
            if flags & INERT or "inert" in attributes:
                attrs["inert"] = True
            if flags & DISABLED and role in ACTIONS and role not in ("link", "details"):
                attrs["disabled"] = True
            if role == "button" and (form := self._form_of(node)) is not None:
                sent, _, first = self._sent_by(form)
                if first is not None and first != node and len(sent) > _MAX_SENT:
                    sent = "Sends the same hidden fields as the first button of its form."
                attrs = {**self.form_facts(form), **attrs}
                if sent:
                    attrs["description"] = sent
            elif "formaction" in attrs:
                attrs["formaction"] = self.address(attributes["formaction"])
            if described:
                attrs["description"] = f"{described} {attrs.get('description', '')}".strip()
        else:
            attrs = {}
        if attrs:
            element["attrs"] = attrs
        if "class" in attributes and not limits.compact:
            hints = _hints_of(attributes["class"][:MAX_CLASS_LENGTH])
            if hints:
                element["hints"] = list(hints)
        return element

    def _shows(self, ids: str) -> bool:
        """Return True if all elements in a list of ids are visible, so that their texts are in the document anyway."""
        for one in ids.split()[:MAX_REFERENCES]:
            named, depth = self._tree.find_id(one), 0
            node = -1 if named is None else named
            while node >= 0 and self._tree.tags[node] != "body":
                depth += 1
                if depth > MAX_NODES or self._visibility.hides(node):
                    return False
                node = self._tree.parents[node]
        return True

    def _form_of(self, button: int) -> int | None:
        """Return the form that a button submits, unless it is the form of the button's own region."""
        given = self._tree.attributes[button]
        if "form" not in given or button in self._survey.forms:
            return self._survey.forms.get(button)
        form = self._tree.find_id(given["form"])
        kind = given.get("type", "submit").strip().lower()
        is_sent = form is not None and self._tree.tags[form] == "form" and kind not in ("button", "reset")
        return form if is_sent else None

    def _sent_by(self, form: int) -> tuple[str, str, int | None]:
        """Describe the hidden fields of a form in full and, without secrets, in short; also return its first button."""
        if form not in self._sent:
            fields, said, plain = read_form(form, self._visibility), list[str](), list[str]()
            for one in fields.hidden:
                given = self._tree.attributes[one]
                name, value = given["name"], given.get("value", "")
                said.append(f"{name} (a secret of the session)" if is_secret(name) else f"{name}={value}")
                plain += said[-1:] if not is_secret(name) else ()
            sent = f"Sends {', '.join(said)}"[:MAX_VALUE_LENGTH] if said else ""
            told = shorten_text(f"({', '.join(plain)})", MAX_ITEM_NAME) if plain else ""
            self._sent[form] = sent, told, next(iter(fields.buttons), None)
        return self._sent[form]

    def form_facts(self, form: int) -> Attrs:
        """Return method and address of a form that is not a region, as attributes of a button."""
        given = self._tree.attributes[form]
        facts: Attrs = {"formaction": self.address(given.get("action", "").strip() or self._url)}
        facts["formmethod"] = form_method(given)
        if self._named is None:
            everything = (self._tree.attributes[node] for node in self._survey.nodes)
            self._named = {one["form"] for one in everything if "form" in one}
        if given.get("id") in self._named:
            facts["form"] = given["id"]
        if facts["formmethod"] == "POST" and given.get("enctype"):
            facts["formenctype"] = given["enctype"]
        return facts

    def _own_attrs(self, node: int, role: str, limits: ElementLimits, losses: Losses) -> Attrs:
        """Return the attributes for a tag and role (4.3). A link with the role of a button keeps its address."""
        tree = self._tree
        tag, given = tree.tags[node], tree.attributes[node]
        attrs: Attrs = {}
        if tag == "select":
            return self._select_attrs(node, limits, losses)
        if role == "select":  # a select made of other elements
            value = limits.shorten(self.names.value(node) or self.names.content(node), losses)
            return {"value": value} if value else attrs
        if tag in ("input", "textarea", "button"):
            kept: tuple[str, ...] = ("value", "placeholder")
            flags: tuple[str, ...] = ("required", "disabled")
            if tag == "input":
                kind = input_type(given)
                attrs["input_type"] = kind
                if kind in _BUTTON_TYPES:
                    attrs["button_type"] = "submit" if kind == "image" else kind
                flags = ("required", "disabled", "checked", "multiple")
            elif tag == "button":
                kind = given.get("type", "").strip().lower()
                attrs["button_type"] = kind if kind in ("button", "reset") else "submit"
                kept = ("value",)
            else:
                kind = ""
                value = written_in(tree, node)
                if value:
                    attrs["value"] = value[:MAX_VALUE_LENGTH]
                kept = ("placeholder",)
            attrs.update({name: given[name][:MAX_VALUE_LENGTH] for name in kept if given.get(name)})
            if tag == "input" and kind == "image":
                if given.get("alt"):
                    attrs["alt"] = given["alt"][:MAX_VALUE_LENGTH]
                if given.get("src"):
                    attrs["src"] = self.address(given["src"])
            if tag == "input" and kind == "radio" and given.get("name"):
                attrs["group"] = given["name"]
            attrs.update({flag: True for flag in flags if flag in given})
        elif role == "link" or (role in ACTIONS and tag in ("a", "area") and "href" in given):
            attrs = {name: shorten_address(given[name]) for name in _LINK if name in given}
            if self._base and "href" in given:
                attrs["href"] = self.address(given["href"])
            if attrs.get("rel") == "nofollow":  # meant for search engines, not for readers
                del attrs["rel"]
            if "download" in given:
                attrs["download"] = given["download"] or True
        elif role == "heading":
            native = tag[1:] if tag in ("h1", "h2", "h3", "h4", "h5", "h6") else ""
            level = given.get("aria-level", "").strip() or native or "2"
            attrs["level"] = int(level) if level in ("1", "2", "3", "4", "5", "6") else int(native or 2)
        elif role == "image":
            if "alt" in given:
                attrs["alt"] = collapse(given["alt"])
            if "src" in given:
                attrs["src"] = self.address(given["src"])
        elif role == "list":
            texts = (self._survey.part_text(item) for item in tree.children(node) if tree.tags[item] == "li")
            items = [text for text in texts if text]
            shown: list[Value] = [{"text": limits.shorten(text, losses)} for text in items[: limits.units]]
            if more := items[len(shown) :]:
                losses["more list items"] += len(more)
                losses[CHARACTERS] += sum(map(len, more))
                shown.append({"text": f"[{len(more)} more items]"})
            attrs["ordered"] = tag == "ol"
            if shown:
                attrs["items"] = shown
        elif role == "table":
            # The schema has no member for the caption of 4.3: it is the label of the table.
            headers, rows = read_cells(tree, node, self._survey.part_text)
            shown_rows = rows[: limits.units]
            if more_rows := rows[len(shown_rows) :]:
                losses["more table rows"] += len(more_rows)
                losses[CHARACTERS] += sum(len(cell) for row in more_rows for cell in row)
            most = limits.characters
            if most is not None:
                # All columns stay, unless they would become too narrow; then their texts share the room.
                columns = max(most // _MIN_COLUMN, 1)
                for row in (*shown_rows, headers):
                    if len(row) > columns:
                        losses[SHORTENED] += 1
                        losses[CHARACTERS] += sum(map(len, row[columns:]))
                shown_rows = [row[:columns] for row in shown_rows]
                for number, row in enumerate(shown_rows):
                    if sum(map(len, row)) > most:
                        cell_limits = ElementLimits(max(most // len(row), _MIN_CELL))
                        shown_rows[number] = [cell_limits.shorten(cell, losses) for cell in row]
                headers = [limits.shorten(cell, losses) for cell in headers[:columns]]
            if headers:
                attrs["headers"] = list[Value](headers)
            if shown_rows:
                attrs["rows"] = [list[Value](row) for row in shown_rows]
        elif role == "section":
            name = collapse(given.get("aria-label"))
            if name:
                attrs["section_label"] = name
        elif role == "group" and tag == "fieldset":
            legend = next((child for child in tree.children(node) if tree.tags[child] == "legend"), None)
            if legend is not None:
                attrs["legend"] = self._survey.part_text(legend) or ""
            if "disabled" in given:
                attrs["disabled"] = True
        elif role == "details":
            summary = next((child for child in tree.children(node) if tree.tags[child] == "summary"), None)
            attrs["open"] = "open" in given
            if summary is not None:
                attrs["summary"] = limits.shorten(self._survey.part_text(summary) or "", losses)
        elif role == "iframe":
            if given.get("src"):
                attrs["src"] = self.address(given["src"])
            if "srcdoc" in given:
                attrs["has_srcdoc"] = True
                attrs["srcdoc_preview"] = collapse(given["srcdoc"])[:_MAX_SRCDOC]
            attrs.update({name: given[name] for name in _FRAME if given.get(name)})
        return attrs

    def _select_attrs(self, node: int, limits: ElementLimits, losses: Losses) -> Attrs:
        tree = self._tree
        given, options = tree.attributes[node], list[Attrs]()
        waiting: list[tuple[int, str, bool]] = [(node, "", False)]  # with the label and the state of the group
        while waiting:
            below, group, disabled = waiting.pop()
            own = tree.attributes[below]
            if tree.tags[below] == "option":
                text = self._survey.part_text(below) or own.get("label", "")
                option: Attrs = {"value": own.get("value", text)[:MAX_VALUE_LENGTH], "text": text}
                if group:
                    option["group"] = group
                if "selected" in own:
                    option["selected"] = True
                if disabled or "disabled" in own:
                    option["disabled"] = True
                options.append(option)
                continue
            if tree.tags[below] == "optgroup":
                group, disabled = own.get("label", ""), "disabled" in own
            waiting.extend((child, group, disabled) for child in reversed(tree.children(below)) if tree.tags[child])
        multiple = "multiple" in given
        if not multiple and not any("selected" in option for option in options):
            chosen = next((option for option in options if "disabled" not in option), None)
            if chosen is not None:
                chosen["selected"] = True
        selected = [option["value"] for option in options if "selected" in option]
        kept = list[Value](options)
        if limits.characters is not None:
            kept = [option for place, option in enumerate(options) if place < _MAX_OPTIONS or "selected" in option]
            if len(kept) < len(options):
                losses["more options"] += len(options) - len(kept)
        attrs: Attrs = {}
        if kept:
            attrs["options"] = kept
        if selected:
            attrs["value"] = selected[0] if multiple else selected[-1]
        if multiple and selected:
            attrs["selected_values"] = selected
        size = given.get("size", "").strip()
        if size:
            is_number = size.isascii() and size.isdecimal() and len(size) < 16
            attrs["size"] = int(size) if is_number else size[:MAX_VALUE_LENGTH]
        attrs.update({flag: True for flag in ("required", "disabled", "multiple") if flag in given})
        return attrs
