"""Writes blocks as Markdown: headings, paragraphs, lists, tables, quotations, code and forms."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Final

from awp_publish.pages.markdown.controls import CONTROLS
from awp_publish.pages.markdown.escaping import collapse, escape_line, escape_text, fence_for
from awp_publish.pages.markdown.inline import Inline, link_to
from awp_publish.pages.markdown.joining import Piece, join_pieces
from awp_publish.pages.markdown.lines import Lines
from awp_publish.pages.markdown.tables import Tables
from awp_publish.pages.markdown.visible import BLOCKS, HEADINGS, LISTS, PREFORMATTED, VisibleNodes

_SPACIOUS: Final = frozenset({"p", "blockquote", "pre", "table", "dl", "hr", "figure", *HEADINGS})
_WRAPPERS: Final = frozenset({"article", "div", "section"})


_MEDIA: Final = frozenset({"audio", "video"})
"""Elements whose content only those see whose browser cannot play them."""

MAX_BLOCK_DEPTH: Final = 80
"""Levels of nested blocks; of deeper ones only the text is written."""

_LANGUAGE: Final = re.compile(
    r"(?:^|\s)(?:(?:\S*-)?lang(?:uage)?-|highlight-source-|brush:\s*|sourceCode\s+)([\w+#.-]+)"
)


class Blocks:
    """Writes blocks of one page to its lines, and the text between them."""

    def __init__(self, visible: VisibleNodes, inline: Inline, lines: Lines) -> None:
        self._visible, self._inline, self._lines = visible, inline, lines
        self._tree = visible.tree
        self._tables = Tables(visible, lambda cell: inline.line([cell], break_with="<br>"))
        self._is_tight = False
        """True within a list whose items are not separated by empty lines."""
        self._link: str | None = None
        """The address of a link that contains blocks, until the first block has become the link."""
        self._states = ""
        """What is said of that link."""
        self._button: int | None = None
        """The same of a button."""
        self._holders: set[int] = set()
        """Inline elements that contain blocks, such as a link around a heading."""
        self._find_holders()
        self._writers: Mapping[str, Callable[[int, int], None]] = {
            **dict.fromkeys(HEADINGS, self._write_heading),
            **dict.fromkeys(LISTS, self._write_list),
            **dict.fromkeys(PREFORMATTED, self._write_code),
            **dict.fromkeys(("legend", "summary"), self._write_strong),
            "a": self._write_link,
            "blockquote": self._write_quotation,
            "dl": self._write_terms,
            "form": self._write_form,
            "hr": self._write_rule,
            "table": self._write_table,
        }

    def _find_holders(self) -> None:
        tree = self._tree
        tags, parents, assignments = tree.tags, tree.parents, self._visible.visibility.flat.assigned.items()
        for slot, assigned in assignments:
            for node in assigned:
                if tags[node] in BLOCKS:
                    self._hold(slot)
        blocks = (node for tag in BLOCKS for node in tree.find(tag) if node >= tree.body_at)
        in_templates = (node for node in range(tree.size, len(tags)) if tags[node] in BLOCKS)
        for node in (*blocks, *in_templates):
            if tags[parents[node]] not in BLOCKS:
                self._hold(parents[node])
        for slot, assigned in assignments:
            if not self._holders.isdisjoint(assigned):
                self._hold(slot)

    def _hold(self, node: int) -> None:
        """Note that an inline element and those around it contain a block."""
        tags, parents = self._tree.tags, self._tree.parents
        while node >= 0 and tags[node] not in BLOCKS and node not in self._holders:
            self._holders.add(node)
            node = parents[node]

    @cached_property
    def _addresses(self) -> set[str]:
        """The addresses of links with a text: a box over a card leads where the title of the card does."""
        links = (at for at in self._tree.find("a") if self._visible.plain_text(at))
        return {self._tree.attributes[at].get("href", "") for at in links}

    def write(self, children: Iterable[int], depth: int = 0) -> None:
        """Write what is in an element at a depth: blocks, and text between them."""
        pieces: list[Piece] = []
        later, writers = self._inline.later, self._writers
        tags, attributes = self._tree.tags, self._tree.attributes
        for node in children:
            tag = tags[node]
            if node in later:
                continue
            if not tag or not self._is_block(node) or not self._visible.shows(node):
                pieces += self._inline.pieces(node, linked=self._is_wrapped)
                continue
            if pieces:
                self.write_text(pieces)
                pieces = []
            if depth >= MAX_BLOCK_DEPTH:
                self.write_text([escape_text(self._visible.plain_text(node))])
            elif "role" in attributes[node] and attributes[node]["role"].strip().lower() == "heading":
                self._write_heading(node, depth + 1)
            elif node in self._inline.controls.cards:
                self._write_card(node, depth + 1)
            elif tag in writers:
                writers[tag](node, depth + 1)
            else:
                self.write(self._visible.children(node), depth + 1)
        self.write_text(pieces)

    def _is_block(self, node: int) -> bool:
        """Return True if an element is a block or contains blocks. A control is always inline, whatever it contains."""
        tag = self._tree.tags[node]
        controls = self._inline.controls
        if node in controls.widgets or node in controls.pictures or node in controls.merged:
            return False
        return tag in BLOCKS or (node in self._holders and tag not in CONTROLS and tag not in _MEDIA)

    def write_text(self, pieces: Sequence[Piece]) -> None:
        """Write running text, as one paragraph or several."""
        for lines in join_pieces(pieces):
            if self._is_wrapped:
                lines = [self._wrap(" ".join(lines))]
            escaped = [escape_line(line) for line in lines]
            self._lines.block([f"{line}  " for line in escaped[:-1]] + escaped[-1:])

    def _line(self, node: int) -> str:
        """Return the text of a block on one line, as a link if the block is the first one within a link."""
        text = self._inline.line(self._visible.children(node), linked=self._is_wrapped)
        return self._wrap(text) if text and self._is_wrapped else text

    @property
    def _is_wrapped(self) -> bool:
        return self._link is not None or self._button is not None

    def _wrap(self, text: str) -> str:
        """Return the first text within a link or a button as that."""
        if self._link is not None:
            text, self._link = link_to(text + self._states, self._link).text, None
        elif self._button is not None:
            text, self._button = self._inline.controls.as_button(self._button, text), None
        return text

    def _write_heading(self, heading: int, depth: int) -> None:
        if text := self._line(heading):
            escaped = re.sub(r"(?<!#)(#+)$", r"\\\1", text)  # a closing sequence (section 4.2)
            aria = self._tree.attributes[heading].get("aria-level", "").strip()
            level = HEADINGS.get(self._tree.tags[heading]) or (int(aria) if aria in _LEVELS else 2)
            self._lines.block([f"{'#' * level} {escaped}"])

    def _write_link(self, link: int, depth: int) -> None:
        """Write a link around blocks: the first of them becomes the link."""
        attributes = self._tree.attributes[link]
        address = self._inline.address(attributes["href"]) if "href" in attributes else None
        outer, self._link = self._link, self._link or address
        if outer is None:
            self._states = self._inline.controls.states(link)
        says_all = False
        if outer is None and self._link is not None:
            name = self._inline.named_as_control(link)
            says_all = name != "" and set(self._visible.plain_text(link).lower().split()) <= set(name.lower().split())
            if name := name if says_all else self._inline.beside_pictures(link):
                self.write_text([escape_text(name, in_brackets=True)])
        if not says_all:
            self.write(self._visible.children(link), depth)
        if outer is None and self._link is not None and attributes["href"] not in self._addresses:
            self.write_text([escape_text(self._inline.controls.name(link), in_brackets=True)])
        self._link = outer if outer is not None and self._link is not None else None

    def _write_card(self, card: int, depth: int) -> None:
        """Write a button around blocks: the first of them becomes the button."""
        if not self._is_wrapped:
            self._button = card
        self.write(self._visible.children(card), depth)
        if self._button == card:
            self.write_text([escape_text(self._inline.controls.name(card), in_brackets=True)])
            self._button = None

    def _write_rule(self, rule: int, depth: int) -> None:
        if not self._lines.is_empty:  # at the beginning it would open front matter
            self._lines.block(["---"])

    def _write_quotation(self, quotation: int, depth: int) -> None:
        around, self._is_tight = self._is_tight, False
        with self._lines.within("> "):
            self.write(self._visible.children(quotation), depth)
        self._is_tight = around

    def _write_code(self, code: int, depth: int) -> None:
        """Write code in a fence, and the links in it after it."""
        text = self._visible.raw_text(code).replace("\r\n", "\n").rstrip().strip("\n")
        if not text:
            return
        fence, tree = fence_for(text, 3), self._tree
        self._lines.block([fence + self._language_of(code), *text.split("\n"), fence])
        inside = self._visible.walk(code)
        linking = [node for node in inside if tree.tags[node] == "a" and "href" in tree.attributes[node]]
        links = list(filter(None, dict.fromkeys(self._inline.line([link]) for link in linking)))
        if links:
            self._lines.block([f"Links: {', '.join(links)}"])

    def _write_form(self, form: int, depth: int) -> None:
        """Write where a form is sent, then its fields, then its hidden fields."""
        attributes, controls, hidden = self._tree.attributes[form], self._inline.controls, list[str]()
        if not (fields := controls.read_form(form)).is_button:
            name = collapse(attributes.get("aria-label") or "").strip()
            heading = f"Form “{escape_text(name)}”" if name else "Form"
            target = controls.target(form)
            if target and (attributes.get("action") or fields.has_names):
                heading += f": {target}"
            if heading != "Form":
                self._lines.block([heading])
            hidden = controls.hidden(form)
        self.write(self._visible.children(form), depth)
        if hidden:
            self._lines.block([f"[hidden: {', '.join(hidden)}]"])

    def _write_strong(self, node: int, depth: int) -> None:
        """Write the name of what follows: the legend of a group, the summary of details, the caption of a table."""
        if any(map(self._is_block, self._tree.children(node))):
            self.write(self._visible.children(node), depth)
            return
        text = self._line(node) or escape_text(self._inline.controls.name(node))
        if text:
            self._lines.block([text if text.startswith("**") else f"**{text}**"])

    def _write_list(self, node: int, depth: int) -> None:
        tree = self._tree
        tags, attributes = tree.tags, tree.attributes
        # A list directly after another one needs a different marker, or both would be one list (section 5.3).
        usual, other = (".", ")") if tags[node] == "ol" else ("-", "*")
        marker = other if self._lines.last_list == usual else usual
        # The items are separated if one of them has several blocks that need separation (section 5.3).
        is_tight = True
        for item in self._visible.children(node):
            inner = [child for child in tree.children(item) if tags[child]] if tags[item] == "li" else []
            while len(inner) == 1 and tags[inner[0]] in _WRAPPERS:
                inner = [child for child in tree.children(inner[0]) if tags[child]]
            spacious = sum(tags[child] in _SPACIOUS for child in inner)
            if spacious > 1 or (spacious == 1 and any(tags[child] in LISTS for child in inner)):
                is_tight = False
        number, is_first = _number(attributes[node].get("start", ""), 1), True
        around = self._is_tight
        # Directly after a paragraph in an item, only a list that starts with 1 is recognised (section 5.3).
        begins_tight = around and is_tight and number == 1
        self._is_tight = is_tight
        for child in self._visible.elements_in(node):
            if tags[child] == "li":
                number = _number(attributes[child].get("value", ""), number)
            sign = f"{number}{marker} " if tags[node] == "ol" else f"{marker} "
            with self._lines.item(sign, begins_tight if is_first else is_tight):
                # A child that is not an `li` is in the list by mistake; an item may be a tab, or the option of a menu.
                controls = self._inline.controls
                is_item = tags[child] == "li" and child not in controls.widgets and child not in controls.cards
                self.write(self._visible.children(child) if is_item else [child], depth)
            if self._lines.has_written:
                is_first = False
                number += 1
        self._is_tight = around
        if not is_first:
            self._lines.last_list = marker

    def _write_terms(self, node: int, depth: int) -> None:
        """Write terms and their descriptions as a list, because Markdown has no other way.

        A `div` may enclose each group of them (HTML, section 4.4.9).
        """
        parts = [
            part
            for child in self._visible.elements_in(node)
            for part in (self._visible.elements_in(child) if self._tree.tags[child] == "div" else (child,))
        ]
        groups: list[tuple[list[int], list[int]]] = []
        for part in parts:
            is_term = self._tree.tags[part] == "dt"
            if not groups or (is_term and groups[-1][1]):
                groups.append(([], []))
            groups[-1][0 if is_term else 1].append(part)
        is_first = True
        for terms, definitions in groups:
            names = ", ".join(f"**{line}**" for line in map(self._line, terms) if line)
            with self._lines.item("- ", tight=not is_first):
                if names and not any(self._is_block(child) for at in definitions for child in self._tree.children(at)):
                    definition = "; ".join(line for line in map(self._line, definitions) if line)
                    self._lines.block([f"{names}: {definition}" if definition else names])
                else:
                    if names:
                        self._lines.block([names])
                    for at in definitions:
                        self.write(self._visible.children(at), depth)
            is_first = is_first and not self._lines.has_written

    def _write_table(self, node: int, depth: int) -> None:
        """Write a table, with its caption before it; the content of one that only arranges a page as if it were not."""
        table = self._tables.read(node)
        if table is None:
            self.write(self._visible.children(node), depth)
            return
        if table.caption is not None:
            self._write_strong(table.caption, depth)
        if lines := self._tables.write(table):
            self._lines.block(lines)

    def _language_of(self, node: int) -> str:
        """Return the language of code that highlighters write into classes: on the code, around it, or within."""
        tree = self._tree
        inner = [child for child in tree.children(node) if tree.tags[child] == "code"][:1]
        for element in (*inner, node, *islice(self._visible.around(node), 1)):
            attributes = tree.attributes[element]
            if found := _LANGUAGE.search(attributes.get("class", "")):
                return found[1]
            if language := attributes.get("data-lang", attributes.get("data-language", "")).strip():
                return re.sub(r"[^\w+#.-]", "", language)
        return ""


_LEVELS: Final = ("1", "2", "3", "4", "5", "6")


def _number(text: str, usual: int) -> int:
    """Return a number that Markdown can write: not negative, at most nine digits."""
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else usual
