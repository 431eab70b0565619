"""Writes one page as Markdown: its blocks, its main content, its navigation and its forms."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import Final

from awp_publish.pages.attributes import base_of
from awp_publish.pages.content import MainContent, find_content
from awp_publish.pages.distinct import distinct_names, has_alike
from awp_publish.pages.formulas import read_formulas
from awp_publish.pages.items import ItemNames
from awp_publish.pages.markdown.controls import CONTROLS
from awp_publish.pages.markdown.escaping import collapse, escape_line, escape_text, fence_for
from awp_publish.pages.markdown.inline import Inline, link_to
from awp_publish.pages.markdown.joining import Mark, Piece, join_pieces
from awp_publish.pages.markdown.lines import Lines
from awp_publish.pages.markdown.tables import Tables
from awp_publish.pages.markdown.visible import BLOCKS, HEADINGS, LISTS, PREFORMATTED, VisibleNodes
from awp_publish.pages.masses import SECTIONING
from awp_publish.pages.names import AccessibleNames
from awp_publish.pages.paging import MAX_TEXT, find_paging
from awp_publish.pages.selectolax import parse
from awp_publish.pages.tree import Tree, read_title
from awp_publish.pages.walk import survey

_SPACIOUS: Final = frozenset({"p", "blockquote", "pre", "table", "dl", "hr", "figure", *HEADINGS})
_WRAPPERS: Final = frozenset({"article", "div", "section"})


_MEDIA: Final = frozenset({"audio", "video"})
"""Elements whose content only those see whose browser cannot play them."""

MAX_BLOCK_DEPTH: Final = 80
"""Levels of nested blocks; of deeper ones only the text is written."""

_LANGUAGE: Final = re.compile(
    r"(?:^|\s)(?:(?:\S*-)?lang(?:uage)?-|highlight-source-|brush:\s*|sourceCode\s+)([\w+#.-]+)"
)


def write_markdown(source: Tree | str | bytes, url: str, charset: str | None = None) -> str:
    """Return the page at `url` as Markdown. No input raises an exception.

    `charset` is that of the `Content-Type`, if `source` is bytes.
    """
    if isinstance(source, Tree):
        return _Page(source, url).write()
    tree = parse(source, charset)
    written = _Page(tree, url).write()
    tree.unlink()
    return written


def write_content(source: Tree | str | bytes, url: str, whole: str = "", charset: str | None = None) -> str:
    """Return the main content of the page at `url` as Markdown, with the title and the links to the next pages.

    A last line says how much was left out; `whole` is added to it, a sentence on how to get the whole page. A page from
    which little would be left out is written as a whole. No input raises an exception.
    """
    if isinstance(source, Tree):
        return _Page(source, url).write_content(whole)
    tree = parse(source, charset)
    written = _Page(tree, url).write_content(whole)
    tree.unlink()
    return written


OMISSION: Final = "Left out beside the main content:"
"""The first words of the line that says what is not in a page's main content."""

MIN_OMITTED: Final = 200
"""Characters up to which a text is not left out: to say so would take as long."""

_COUNTED: Final = ("link", "form", "character")
MAX_NAVIGATION: Final = 10
"""Links up to which a navigation of the site is kept on a page on which one acts: to the basket, to sign in."""

MIN_LINKS: Final = 3
"""Links up to which they are not left out."""

_CHROME: Final = frozenset({"header", "footer", "aside", "search"})
_CHROME_ROLES: Final = frozenset(
    ("alertdialog", "banner", "complementary", "contentinfo", "dialog", "menu", "menubar", "navigation")
)
"""Elements of the page, and roles, whose controls are not about its main content."""

_HOLDERS: Final = frozenset({"td", "th", "li", "dd", "blockquote"})
"""Elements from which nothing is moved elsewhere, because their text would be torn apart."""

_SKIPS: Final = re.compile(r"\s*(?:skip|jump)\b", re.IGNORECASE)
MAX_SKIPS: Final = 5
"""The first links of a page, among which some may skip its navigation."""

MAX_APART: Final = 200
"""Fields and buttons that are written though what is around them is left out."""

MAX_CHROME: Final = 100
"""Navigations and forms that are moved to the end of the text; further ones stay in their places."""


class _Page:
    """Writes one page: its main content, the rest, and finally its navigation and the forms of header and footer."""

    def __init__(self, tree: Tree, url: str) -> None:
        self._url = url.partition("#")[0]
        self._visible = VisibleNodes(tree)
        visibility = self._visible.visibility
        tree = self._tree = visibility.tree
        self._names = AccessibleNames(visibility)
        base, formulas = base_of(tree, url) or url, read_formulas(visibility)
        self._inline = Inline(url, base, self._visible, formulas, self._names)
        self._lines = Lines()
        self._tables = Tables(self._visible, lambda cell: self._inline.line([cell], break_with="<br>"))
        self._is_tight = False
        """True within a list whose items are not separated by empty lines."""
        self._link: str | None = None
        """The address of a link that contains blocks, until the first block has become the link."""
        self._holders: set[int] = set()
        """Inline elements that contain blocks, such as a link around a heading."""
        tags, parents = tree.tags, tree.parents
        for slot, assigned in visibility.flat.assigned.items():
            for node in assigned:
                if tags[node] in BLOCKS:
                    self._hold(slot)
        blocks = (node for tag in BLOCKS for node in tree.find(tag) if node >= tree.body_at)
        in_templates = (node for node in range(tree.size, len(tags)) if tags[node] in BLOCKS)
        for node in (*blocks, *in_templates):
            if tags[parents[node]] not in BLOCKS:
                self._hold(parents[node])
        for slot, assigned in visibility.flat.assigned.items():
            if not self._holders.isdisjoint(assigned):
                self._hold(slot)

    def _hold(self, node: int) -> None:
        """Note that an inline element and those around it contain a block."""
        tags, parents = self._tree.tags, self._tree.parents
        while node >= 0 and tags[node] not in BLOCKS and node not in self._holders:
            self._holders.add(node)
            node = parents[node]

    def _tell_apart(self, left_out: Sequence[int]) -> None:
        """Name controls and links that would otherwise have the same names, if some are written.

        Their rows and items are the same in whatever region they are, so no main content is searched for them.
        """
        visibility = self._visible.visibility
        if has_alike(visibility, left_out):
            content = MainContent(self._tree.body_at, frozenset(), frozenset())
            found = survey(self._tree, visibility, content, self._names.told, self._names.blocks)
            items = ItemNames(found, visibility)
            self._inline.controls.distinct = distinct_names(found, self._names, items, visibility)

    @cached_property
    def _content(self) -> MainContent:
        return find_content(self._tree, self._visible.visibility, self._url)

    @cached_property
    def _addresses(self) -> set[str]:
        """The addresses of links with a text: a box over a card leads where the title of the card does."""
        links = (at for at in self._tree.find("a") if self._visible.plain_text(at))
        return {self._tree.attributes[at].get("href", "") for at in links}

    def write(self) -> str:
        """Return the whole text. It begins with the page's title if the page has no heading of its own."""
        tree = self._tree
        self._tell_apart(())
        for heading in tree.find("h1"):
            above = heading
            while above >= 0 and tree.tags[above] != "body" and self._visible.shows(above):
                above = tree.parents[above]
            if (above < 0 or tree.tags[above] == "body") and self._visible.plain_text(heading):
                break
        else:
            title = escape_text(collapse(read_title(self._tree)).strip())
            if title:
                self._lines.block([f"# {title}"])
        later = self._inline.later
        navigation, forms = self._chrome()
        skipping = set(later)
        later.update(navigation, forms)
        mains = (one for one in tree.find("main") if self._is_seen(one))
        main = next(mains, None)
        if main is not None:  # preceded by the heading of the page, wherever that is
            own = next((one for one in tree.find("h1") if self._is_seen(one)), None)
            if own is not None and main not in self._visible.around(own):
                self._blocks([own], 0)
                later.add(own)
            self._blocks([main], 0)
            later.add(main)
        self._blocks(self._visible.children(tree.body_at), 0)
        later.clear()
        later.update(skipping)
        self._write_chrome(navigation, forms)
        return self._lines.text()

    def _write_chrome(self, navigation: Sequence[int], forms: Sequence[int]) -> None:
        """Write each navigation as a line, without links of earlier lines, and forms."""
        written, lines = set[str](), list[str]()
        for one in navigation:
            pieces = list[Piece]()
            for piece in self._inline.pieces(one):
                if isinstance(piece, Mark) and piece.kind == "markdown":
                    if piece.text in written:
                        continue
                    written.add(piece.text)
                pieces.append(piece)
            lines.append(" · ".join(line for paragraph in join_pieces(pieces) for line in paragraph))
        if any(lines) and not self._lines.is_empty:
            self._lines.block(["## Navigation"])
        for line in filter(None, lines):
            self._lines.block([escape_line(line)])
        if forms:
            if not self._lines.is_empty:
                self._lines.block(["## Forms"])
            self._blocks(forms, 0)

    def write_content(self, whole: str) -> str:
        """Return the main content, and a last line on what was left out."""
        content = self._content
        omitted = self._beside(content)
        navigation, forms = ([], []) if content.is_article else self._chrome_of(omitted)
        if not content.is_certain:
            forms = sorted({*forms, *self._forms_beside(omitted)})
        counts = Counter[str]()
        for one in omitted:
            counts.update(self._counts(one))
        for one in (*navigation, *forms):
            counts.subtract(self._counts(one))
        if counts["link"] <= MIN_LINKS and not counts["form"] and counts["character"] <= MIN_OMITTED:
            return self.write()
        paging = {
            self._tree.attributes[link]["href"]: link
            for link, text in find_paging(self._tree).items()
            if self._is_in(link, omitted) and self._is_seen(link) and (len(text) <= MAX_TEXT or not content.is_article)
        }
        self._tell_apart(omitted)
        self._write_main(content.node, omitted)
        if not content.is_certain:
            self._inline.controls.is_apart = True
            controls = islice(self._operated(omitted, (*navigation, *forms)), MAX_APART)
            self._text([piece for control in controls for piece in (" ", *self._inline.pieces(control), " ")])
            self._inline.controls.is_apart = False
        if paging:
            self._text([piece for link in paging.values() for piece in (*self._inline.pieces(link), " ")])
        self._write_chrome(navigation, forms)
        parts = [f"{counts[name]} {name}{'s' * (counts[name] != 1)}" for name in _COUNTED if counts[name]]
        listed = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
        self._lines.block([f"{OMISSION} {listed}. {whole}".strip()])
        return self._lines.text()

    def _write_main(self, node: int, omitted: Sequence[int]) -> None:
        tree = self._tree
        headings = [one for one in tree.find("h1") if self._is_seen(one) and self._visible.plain_text(one)]
        if not any(node <= one < tree.ends[node] and not self._is_in(one, omitted) for one in headings):
            if headings:
                self._blocks(headings[:1], 0)
            elif title := escape_text(collapse(read_title(tree)).strip()):
                self._lines.block([f"# {title}"])
        later = self._inline.later
        later.update(omitted)
        self._blocks(self._visible.children(node) if node == tree.body_at else [node], 0)
        later.clear()

    def _is_in(self, node: int, others: Iterable[int]) -> bool:
        return any(at <= node < self._tree.ends[at] for at in others)

    def _around(self, inner: int) -> Iterator[int]:
        """Yield the largest visible elements that neither contain an element nor are in it."""
        while inner != self._tree.body_at:
            node = self._tree.parents[inner]
            yield from (child for child in self._visible.elements_in(node) if child != inner)
            inner = node

    def _beside(self, content: MainContent) -> list[int]:
        """Return the largest visible elements of the page that are no part of its main content."""
        tree = self._tree
        found = [at for at in sorted(content.left_out) if self._visible.shows(at)] + list(self._around(content.node))
        outer, end = list[int](), -1
        for at in sorted(found):
            if at >= end:
                outer.append(at)
                end = tree.ends[at]
        return outer

    def _counts(self, top: int) -> Counter[str]:
        """Return the numbers of visible links, forms and characters in a node."""
        tags, texts, links, forms, characters = self._tree.tags, self._tree.texts, 0, 0, 0
        for node in chain((top,), self._visible.walk(top)):
            tag = tags[node]
            if not tag:
                characters += len(texts[node].strip())
            elif tag == "a":
                links += "href" in self._tree.attributes[node]
            elif tag == "form":
                forms += 1
        return Counter(link=links, form=forms, character=characters)

    def _is_seen(self, node: int) -> bool:
        around = islice(self._visible.around(node), MAX_BLOCK_DEPTH)
        return self._visible.shows(node) and all(
            self._tree.tags[one] in ("body", "html") or self._visible.shows(one) for one in around
        )

    def _chrome(self) -> tuple[list[int], list[int]]:
        """Return the navigation elements, and the forms of header and footer.

        Links that skip the navigation are left out, because here the content comes first anyway.
        """
        navigation, forms, tree = list[int](), list[int](), self._tree
        for link in tree.find("a")[:MAX_SKIPS]:
            is_inner = tree.attributes[link].get("href", "").startswith("#")
            self._inline.later.update([link] if is_inner and _SKIPS.match(self._visible.plain_text(link)) else [])
        for tag, found in (("nav", navigation), ("form", forms)):
            for one in tree.find(tag)[:MAX_CHROME]:
                tags = {tree.tags[above] for above in islice(self._visible.around(one), MAX_BLOCK_DEPTH)}
                if tag == "form" and (not tags & _CHROME or "main" in tags or "article" in tags):
                    continue
                if "nav" not in tags and not _HOLDERS & tags and self._is_seen(one):
                    found.append(one)
        return navigation, forms

    def _chrome_of(self, omitted: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return what of the elements beside the content is needed to act: small navigations, and searches."""
        navigation, forms = self._chrome()
        attributes = self._tree.attributes
        return (
            [at for at in navigation if self._is_in(at, omitted) and self._counts(at)["link"] <= MAX_NAVIGATION],
            [at for at in forms if self._is_in(at, omitted) and attributes[at].get("method", "").lower() != "post"],
        )

    def _forms_beside(self, omitted: Sequence[int]) -> Iterator[int]:
        """Yield the forms left out that are no part of a header, a footer or a menu of the page: answers, orders."""
        for form in islice((at for at in self._tree.find("form") if self._is_in(at, omitted)), MAX_CHROME):
            tags = {self._tree.tags[above] for above in islice(self._visible.around(form), MAX_BLOCK_DEPTH)}
            if "nav" not in tags and ("main" in tags or not tags & _CHROME) and self._is_seen(form):
                yield form

    def _operated(self, omitted: Sequence[int], written: Sequence[int]) -> Iterator[int]:
        """Yield fields and buttons that are left out with what is around them, but for those of menus and chrome."""
        tags, names = self._tree.tags, set[tuple[str, str]]()
        controls = {at for tag in CONTROLS for at in self._tree.find(tag)} | self._inline.controls.widgets.keys()
        for node in sorted(controls):
            if not self._is_in(node, omitted) or self._is_in(node, written) or not self._is_seen(node):
                continue
            key = tags[node], self._inline.controls.name(node)
            if key[1] and key not in names and not self._is_chrome(node):
                names.add(key)
                yield node

    def _is_chrome(self, node: int) -> bool:
        """Return True for what is in a menu, or in a landmark of the page beside its main one."""
        for above in self._visible.around(node):
            tag, role = self._tree.tags[above], self._tree.attributes[above].get("role", "").strip().lower()
            if tag == "main" or role == "main":
                return False
            if tag == "nav" or role in _CHROME_ROLES:
                return True
            if tag in _CHROME and not any(self._tree.tags[one] in SECTIONING for one in self._visible.around(above)):
                return True
        return False

    def _blocks(self, children: Iterable[int], depth: int) -> None:
        """Write the content of an element: blocks, and text between them."""
        pieces: list[Piece] = []
        lines, later = self._lines, self._inline.later
        tags, attributes, children_of = self._tree.tags, self._tree.attributes, self._visible.children
        for node in children:
            tag, given = tags[node], attributes[node]
            if node in later:
                continue
            if not tag or not self._is_block(node) or not self._visible.shows(node):
                pieces += self._inline.pieces(node, linked=self._link is not None)
                continue
            if pieces:
                self._text(pieces)
                pieces = []
            if depth >= MAX_BLOCK_DEPTH:
                self._text([escape_text(self._visible.plain_text(node))])
            elif tag in HEADINGS or given.get("role", "").strip().lower() == "heading":
                text = self._line(node)
                if text:
                    escaped = re.sub(r"(?<!#)(#+)$", r"\\\1", text)  # a closing sequence (section 4.2)
                    aria = given.get("aria-level", "").strip()
                    level = HEADINGS.get(tag) or (int(aria) if aria in ("1", "2", "3", "4", "5", "6") else 2)
                    lines.block([f"{'#' * level} {escaped}"])
            elif tag in LISTS:
                self._list(node, depth + 1)
            elif tag == "table":
                self._table(node, depth + 1)
            elif tag in ("legend", "summary"):
                self._strong(node, depth + 1)
            elif tag == "a":
                address = self._inline.address(given["href"]) if "href" in given else None
                outer, self._link = self._link, self._link or address
                self._blocks(children_of(node), depth + 1)
                if outer is None and self._link is not None and given["href"] not in self._addresses:
                    self._text([escape_text(self._inline.controls.name(node), in_brackets=True)])
                self._link = outer if outer is not None and self._link is not None else None
            elif tag == "hr":
                if not lines.is_empty:  # at the beginning it would open front matter
                    lines.block(["---"])
            elif tag == "blockquote":
                around, self._is_tight = self._is_tight, False
                with lines.within("> "):
                    self._blocks(children_of(node), depth + 1)
                self._is_tight = around
            elif tag in PREFORMATTED:
                text = self._visible.raw_text(node).replace("\r\n", "\n").rstrip().strip("\n")
                if text:
                    fence = fence_for(text, 3)
                    lines.block([fence + self._language_of(node), *text.split("\n"), fence])
                    found = (one for one in self._visible.walk(node) if tags[one] == "a" and "href" in attributes[one])
                    links = list(filter(None, dict.fromkeys(self._inline.line([one]) for one in found)))
                    if links:
                        lines.block([f"Links: {', '.join(links)}"])
            elif tag == "dl":
                self._terms(node, depth + 1)
            else:
                hidden: list[str] = []
                if tag == "form" and not (fields := self._inline.controls.read_form(node)).is_button:
                    # Where the form is sent, then its fields, then its hidden fields.
                    name = collapse(given.get("aria-label") or "").strip()
                    says = f"Form “{escape_text(name)}”" if name else "Form"
                    if given.get("action") or fields.has_names:
                        says += f": {self._inline.controls.target(node)}"
                    if name or says != "Form":
                        lines.block([says])
                    hidden = self._inline.controls.hidden(node)
                self._blocks(children_of(node), depth + 1)
                if hidden:
                    lines.block([f"[hidden: {', '.join(hidden)}]"])
        self._text(pieces)

    def _is_block(self, node: int) -> bool:
        """Return True if an element is a block or contains blocks. A control is always inline, whatever it contains."""
        tag = self._tree.tags[node]
        if node in self._inline.controls.widgets:
            return False
        return tag in BLOCKS or (node in self._holders and tag not in CONTROLS and tag not in _MEDIA)

    def _text(self, pieces: Sequence[Piece]) -> None:
        """Write running text, as one paragraph or several."""
        for lines in join_pieces(pieces):
            if self._link is not None:
                lines, self._link = [link_to(" ".join(lines), self._link).text], None
            escaped = [escape_line(line) for line in lines]
            self._lines.block([f"{line}  " for line in escaped[:-1]] + escaped[-1:])

    def _line(self, node: int) -> str:
        """Return the text of a block on one line, as a link if the block is the first one within a link."""
        text = self._inline.line(self._visible.children(node), linked=self._link is not None)
        if text and self._link is not None:
            text, self._link = link_to(text, self._link).text, None
        return text

    def _strong(self, node: int, depth: int) -> None:
        """Write the name of what follows: the legend of a group, the summary of details, the caption of a table."""
        if any(map(self._is_block, self._tree.children(node))):
            self._blocks(self._visible.children(node), depth)
            return
        text = self._line(node) or escape_text(self._inline.controls.name(node))
        if text:
            self._lines.block([text if text.startswith("**") else f"**{text}**"])

    def _list(self, node: int, depth: int) -> None:
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
                # A child that is not an `li` is in the list by mistake.
                self._blocks(self._visible.children(child) if tags[child] == "li" else [child], depth)
            if self._lines.has_written:
                is_first = False
                number += 1
        self._is_tight = around
        if not is_first:
            self._lines.last_list = marker

    def _terms(self, node: int, depth: int) -> None:
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
                if names and not any(
                    self._is_block(child) for one in definitions for child in self._tree.children(one)
                ):
                    definition = "; ".join(line for line in map(self._line, definitions) if line)
                    self._lines.block([f"{names}: {definition}" if definition else names])
                else:
                    if names:
                        self._lines.block([names])
                    for one in definitions:
                        self._blocks(self._visible.children(one), depth)
            is_first = is_first and not self._lines.has_written

    def _table(self, node: int, depth: int) -> None:
        """Write a table, with its caption before it; the content of one that only arranges a page as if it were not."""
        table = self._tables.read(node)
        if table is None:
            self._blocks(self._visible.children(node), depth)
            return
        if table.caption is not None:
            self._strong(table.caption, depth)
        if lines := self._tables.write(table):
            self._lines.block(lines)

    def _language_of(self, node: int) -> str:
        """Return the language of code that highlighters write into classes: on the code, around it, or within."""
        tree = self._tree
        inner = [child for child in tree.children(node) if tree.tags[child] == "code"][:1]
        for one in (*inner, node, *islice(self._visible.around(node), 1)):
            given = tree.attributes[one]
            if found := _LANGUAGE.search(given.get("class", "")):
                return found[1]
            if language := given.get("data-lang", given.get("data-language", "")).strip():
                return re.sub(r"[^\w+#.-]", "", language)
        return ""


def _number(text: str, usual: int) -> int:
    """Return a number that Markdown can write: not negative, at most nine digits."""
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else usual
