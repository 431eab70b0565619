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
from awp_publish.pages.markdown.blocks import MAX_BLOCK_DEPTH, Blocks
from awp_publish.pages.markdown.controls import CONTROLS
from awp_publish.pages.markdown.escaping import collapse, escape_line, escape_text
from awp_publish.pages.markdown.inline import Inline
from awp_publish.pages.markdown.joining import Mark, Piece, join_pieces
from awp_publish.pages.markdown.lines import Lines
from awp_publish.pages.markdown.visible import VisibleNodes
from awp_publish.pages.masses import SECTIONING
from awp_publish.pages.names import AccessibleNames
from awp_publish.pages.paging import MAX_TEXT, find_paging
from awp_publish.pages.selectolax import parse
from awp_publish.pages.tree import Tree, read_title
from awp_publish.pages.walk import survey


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
        self._blocks = Blocks(self._visible, self._inline, self._lines)

    def _tell_apart(self, left_out: Sequence[int]) -> None:
        """Name controls and links that would otherwise have the same names, if some are written.

        Their rows and items are the same in whatever region they are, so no main content is searched for them.
        """
        visibility = self._visible.visibility
        if has_alike(visibility, left_out):
            content = MainContent(self._tree.body_at, frozenset(), frozenset())
            found = survey(self._tree, visibility, content, self._names.naming_labels, self._names.blocks)
            items = ItemNames(found, visibility)
            self._inline.controls.distinct = distinct_names(found, self._names, items, visibility)

    @cached_property
    def _content(self) -> MainContent:
        return find_content(self._tree, self._visible.visibility, self._url)

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
        mains = (at for at in tree.find("main") if self._is_seen(at))
        main = next(mains, None)
        if main is not None:  # preceded by the heading of the page, wherever that is
            own = next((heading for heading in tree.find("h1") if self._is_seen(heading)), None)
            if own is not None and main not in self._visible.around(own):
                self._blocks.write([own])
                later.add(own)
            self._blocks.write([main])
            later.add(main)
        self._blocks.write(self._visible.children(tree.body_at))
        later.clear()
        later.update(skipping)
        self._write_chrome(navigation, forms)
        return self._lines.text()

    def _write_chrome(self, navigation: Sequence[int], forms: Sequence[int]) -> None:
        """Write each navigation as a line, without links of earlier lines, and forms."""
        written, lines = set[str](), list[str]()
        for nav in navigation:
            pieces = list[Piece]()
            for piece in self._inline.pieces(nav):
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
            self._blocks.write(forms)

    def write_content(self, whole: str) -> str:
        """Return the main content, and a last line on what was left out."""
        content = self._content
        omitted = self._beside(content)
        navigation, forms = ([], []) if content.is_article else self._chrome_of(omitted)
        if not content.is_certain:
            forms = sorted({*forms, *self._forms_beside(omitted)})
        counts = Counter[str]()
        for block in omitted:
            counts.update(self._counts(block))
        for block in (*navigation, *forms):
            counts.subtract(self._counts(block))
        if counts["link"] <= MIN_LINKS and not counts["form"] and counts["character"] <= MIN_OMITTED:
            return self.write()
        paging = {
            self._tree.attributes[link]["href"]: link
            for link, text in find_paging(self._tree).items()
            if self._is_in(link, omitted) and self._is_seen(link) and (len(text) <= MAX_TEXT or not content.is_article)
        }
        self._tell_apart(omitted)
        self._write_main(content, omitted)
        if not content.is_certain:
            self._inline.controls.is_apart = True
            controls = islice(self._operated(omitted, (*navigation, *forms)), MAX_APART)
            self._blocks.write_text(
                [piece for control in controls for piece in (" ", *self._inline.pieces(control), " ")]
            )
            self._inline.controls.is_apart = False
        if paging:
            self._blocks.write_text([piece for link in paging.values() for piece in (*self._inline.pieces(link), " ")])
        self._write_chrome(navigation, forms)
        parts = [f"{counts[name]} {name}{'s' * (counts[name] != 1)}" for name in _COUNTED if counts[name]]
        listed = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
        self._lines.block([f"{OMISSION} {listed}. {whole}".strip()])
        return self._lines.text()

    def _write_main(self, content: MainContent, omitted: Sequence[int]) -> None:
        tree, node = self._tree, content.node
        headings = [
            heading for heading in tree.find("h1") if self._is_seen(heading) and self._visible.plain_text(heading)
        ]
        written = (node, *content.before)
        if not any(self._is_in(heading, written) and not self._is_in(heading, omitted) for heading in headings):
            if headings:
                self._blocks.write(headings[:1])
            elif title := escape_text(collapse(read_title(tree)).strip()):
                self._lines.block([f"# {title}"])
        later = self._inline.later
        later.update(omitted)
        self._blocks.write(content.before)
        self._blocks.write(self._visible.children(node) if node == tree.body_at else [node])
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
        found = [at for at in sorted(content.left_out) if self._visible.shows(at)]
        found += [at for at in self._around(content.node) if at not in content.before]
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
            self._tree.tags[above] in ("body", "html") or self._visible.shows(above) for above in around
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
            for bar in tree.find(tag)[:MAX_CHROME]:
                tags = {tree.tags[above] for above in islice(self._visible.around(bar), MAX_BLOCK_DEPTH)}
                if tag == "form" and (not tags & _CHROME or "main" in tags or "article" in tags):
                    continue
                if "nav" not in tags and not _HOLDERS & tags and self._is_seen(bar):
                    found.append(bar)
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
            if tag in _CHROME and not any(
                self._tree.tags[ancestor] in SECTIONING for ancestor in self._visible.around(above)
            ):
                return True
        return False
