"""The tree of an HTML page, independent of the parser that made it, and what of it its readers see.

The tree has the shape that the HTML Standard gives, whitespace and comments included, for they count in the paths from
which SOM ids are made (SOM 1.0, section 7.1): the body is `0`, its i-th child of any kind `0/i`. What a declarative
shadow root holds is not among the children of its host; its path goes through the host: `0/2#shadow/0`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count
from typing import Final

SHADOW: Final = "#shadow"
COMMENT: Final = "!"

MAX_SELECTOR_LENGTH: Final = 1_000

NO_ATTRIBUTES: Final[Mapping[str, str]] = {}

INDEXED: Final = (
    frozenset(
        (
            "article",
            "base",
            "button",
            "details",
            "fieldset",
            "form",
            "h1",
            "h2",
            "h3",
            "h4",
            "h5",
            "h6",
            "input",
            "label",
        )
    )
    | {"link", "main", "math", "meta", "meter", "output", "progress", "script", "section", "select", "style", "table"}
    | {
        "template",
        "textarea",
        "title",
    }
)
"""Tags of which the elements are listed while a tree is made, for every page is asked for them."""


class Node:
    """One node. `tag` is in lower case, "" for text and "!" for a comment.

    `children` and `attributes` are to be read only. An attribute without a value has the value "". `only` is the text
    of an element that holds one text and nothing else, as most do; else None.
    """

    __slots__ = ("parent",)

    parent: "Node | None"
    tag: str = ""
    text: str = ""
    only: str | None = None
    attributes: Mapping[str, str] = NO_ATTRIBUTES
    children: Sequence["Node"] = ()

    def path(self) -> str | None:
        """The path of the node, or None for what is not in the body. For many nodes see `NodePaths`."""
        return NodePaths().of(self)


class Element(Node):
    """An element. See `Node`."""

    __slots__ = ("attributes", "children", "tag")

    tag: str
    attributes: Mapping[str, str]
    children: Sequence[Node]

    def __repr__(self) -> str:
        return f"<{self.tag} {dict(self.attributes)} at {self.path()}>"


class TextElement(Element):
    """An element that holds one text. The node of that is made when somebody asks for it; for most nobody does."""

    __slots__ = ("only",)

    only: str

    def __getattr__(self, name: str) -> Sequence[Node]:
        if name != "children":
            raise AttributeError(name)
        child = TextNode()
        child.text, child.parent = self.only, self
        self.children = [child]
        return self.children


class Template(Element):
    """A `<template>`: what it holds is not in the page, but in `content`."""

    __slots__ = ("content",)

    content: Sequence[Node]

    def __init__(self) -> None:
        self.content = ()

    @property
    def shadow_mode(self) -> str | None:
        """`open` or `closed` for a declarative shadow root, in the old spelling too; else None."""
        given = self.attributes.get("shadowrootmode", self.attributes.get("shadowroot", "")).strip().lower()
        return given if given in ("open", "closed") else None


class Comment(Element):
    """A comment, or whatever else takes a place among the children and says nothing."""

    __slots__ = ()


class TextNode(Node):
    """A piece of text. See `Node`."""

    __slots__ = ("text",)

    text: str


_FEW: Final = 12
"""So many siblings are looked through; of more, the places are kept."""


class NodePaths:
    """The paths of nodes of one page: for many of them, each is found in about the time of its last step."""

    __slots__ = ("_known", "_places")

    def __init__(self) -> None:
        self._known: dict[Node | None, str] = {}
        self._places: dict[Node, int] = {}

    def of(self, node: Node) -> str | None:
        """Return the path of a node, or None for what is not in the body."""
        known = self._known
        steps: list[Node] = []
        above: Node | None = node
        while above not in known:
            if above is None:
                return None
            if above.tag == "body":
                known[above] = "0"
                break
            steps.append(above)
            above = above.parent
        path = known[above]
        for step in reversed(steps):
            if step.tag == "template" and isinstance(step, Template) and step.shadow_mode is not None:
                path += SHADOW  # no step of its own: `0/1` and, for what is first in its shadow, `0/1#shadow/0`
            else:
                parent = step.parent
                assert parent is not None
                siblings = parent.content if isinstance(parent, Template) else parent.children
                if len(siblings) <= _FEW:
                    place = siblings.index(step)
                else:
                    if step not in self._places:
                        self._places.update(zip(siblings, count(), strict=False))
                    place = self._places.get(step, 0)
                path = f"{path}/{place}"
            if step is not node:
                known[step] = path
        return path


class Tree:
    """A page. `html_bytes` is the length of its source in UTF-8.

    `elements` are all of them in document order, without those inside of templates, and `by_tag` the `INDEXED` ones.
    A page without a head or a body, as one with framesets, has empty ones that are not among the children of its root.
    """

    __slots__ = ("_by_id", "_by_tag", "_elements", "_find", "body", "head", "html_bytes", "root")

    def __init__(
        self,
        root: Element,
        elements: list[Element],
        by_tag: dict[str, list[Element]],
        find: Callable[[str], list[Node]],
        html_bytes: int,
    ) -> None:
        self.root = root
        self._elements, self._by_tag = elements, by_tag
        self._by_id: dict[str, Element] | None = None
        self._find = find
        self.html_bytes = html_bytes
        children = {child.tag: child for child in reversed(root.children) if isinstance(child, Element)}
        self.head = children.get("head") or make_element("head", NO_ATTRIBUTES, root)
        self.body = children.get("body") or make_element("body", NO_ATTRIBUTES, root)

    def tagged(self, tag: str) -> Sequence[Element]:
        """Return every element of this name in document order, without those inside of templates."""
        if tag not in INDEXED and tag not in self._by_tag:
            self._by_tag[tag] = [one for one in self._elements if one.tag == tag]
        return self._by_tag.get(tag) or ()

    def with_id(self, name: str) -> Element | None:
        """Return the first element of this id, as a label or a description refers to it."""
        if self._by_id is None:
            self._by_id = {
                one.attributes["id"]: one for one in reversed(self._elements) if "id" in one.attributes
            }  # the first of several is written last
        return self._by_id.get(name) if name else None

    def select(self, css: str) -> list[str]:
        """Return the paths of what a CSS selector matches in the body, in document order; a shadow root is no element.

        Raises:
            ValueError: it is not a selector, or longer than 1,000 characters.
        """
        if len(css) > MAX_SELECTOR_LENGTH:
            raise ValueError(f"A selector of {len(css)} characters; the longest one taken has {MAX_SELECTOR_LENGTH}.")
        paths = NodePaths()
        found = {path for node in self._find(css) if (path := paths.of(node)) is not None}
        return sorted((path for path in found if not path.endswith(SHADOW)), key=_position)

    def node_at(self, path: str) -> Node | None:
        """Return the node at a path, or None when there is none, or when this is no path."""
        first, *steps = path.split("/")
        node: Node | None = {"0": self.body, "0" + SHADOW: _shadow_of(self.body)}.get(first)
        for step in steps:
            number, mark, rest = step.partition(SHADOW)
            if node is None or rest or not number.isascii() or not number.isdecimal() or len(number) > 11:
                return None
            children = node.content if isinstance(node, Template) else node.children
            if str(int(number)) != number or int(number) >= len(children):
                return None
            node = children[int(number)]
            if mark:
                node = _shadow_of(node)
        return None if isinstance(node, Template) and path.endswith(SHADOW) else node

    def walk(self) -> Iterator[Node]:
        """Yield every node of the body in document order."""
        waiting: list[Node] = [self.body]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))

    def unlink(self) -> None:
        """Free all nodes at once. Else they wait for Python's garbage collector, for each knows its parent.

        In document order, which is that of memory: in any other, a long page waits for memory again and again.
        """
        self._by_tag.clear()
        self._by_id = None
        for element in self._elements:
            element.children = ()
        self._elements.clear()
        self.root.children = self.head.children = self.body.children = ()


def make_element(tag: str, attributes: Mapping[str, str], parent: Node | None) -> Element:
    """Return an element that has no children yet."""
    element = Template() if tag == "template" else Element()
    element.tag, element.attributes, element.children = tag, attributes, ()
    element.parent = parent
    return element


def _position(path: str | None) -> list[int]:
    """Return what sorts paths in document order. What is in no body is in the head, before all others."""
    return [int(step) for step in path.replace(SHADOW, "/-1").split("/")] if path is not None else []


def _shadow_of(host: Node) -> Template | None:
    return next((node for node in host.children if isinstance(node, Template) and node.shadow_mode), None)


def read_title(tree: Tree) -> str:
    """Return the first title that says something, as it stands in the page, or "". A drawing's is not it."""
    for title in tree.tagged("title"):
        text = "".join(piece.text for piece in title.children)
        above: Node | None = title.parent
        while above is not None and above.tag != "svg":
            above = above.parent
        if text and above is None:
            return text
    return ""


# --- What is seen of a page (SOM 1.0, section 6) ---

# --- The page's own `<style>` rules (SOM 1.0, section 6.2). Stylesheets elsewhere are not read ---
# Only a rule whose selector is one tag, one class or one id, for every state of the element, is taken at its word:
# `.menu:hover` and `.a.b` say nothing about all of `.menu` or `.a`. Rules inside of `@media` and its like depend on a
# reader that is not known, so they count for nothing.

_COMMENT: Final = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_SIMPLE: Final = re.compile(r"(?!\Z)([a-z][a-z0-9-]*)?([.#](?:[\w-]|[^\x00-\x7f])+)?\Z", re.IGNORECASE)
_NEVER_HIDDEN: Final = frozenset(("html", "body"))
"""A page that hides all of itself shows itself by script, as AMP's do."""

_MAY_MATTER: Final = re.compile("none|hidden|collapse|opacity|font-size|clip", re.IGNORECASE)
_SHOWN: Final = re.compile(r"display:(?!none)|visibility:visible")
_ZERO: Final = r"0(?:\.0*)?(?:px|em|rem|%)?(?![\w.%])"
_HIDDEN: Final = re.compile(
    rf"(?:^|;)(?:display:none|visibility:(?:hidden|collapse)|opacity:{_ZERO}|font-size:{_ZERO})(?=$|;|!)"
)
_CLIPPED: Final = re.compile(r"(?:^|;)clip:rect\(0")
_BRACE: Final = re.compile("[{}]")
_FLAT: Final = re.compile(rf"(?:^|;)(?:max-)?(?:height|width):{_ZERO}")

MAX_RULES: Final = 20_000
_MAX_CACHED: Final = 10_000
"""Characters of a sheet that is kept. The pages of a site have the same short sheets in them."""


def _is_hiding(declarations: str) -> bool:
    """Tell whether declarations of CSS hide what they apply to: the list of section 6.2, each value read as a whole."""
    text = "".join(declarations.lower().split())
    if _HIDDEN.search(text) or ("position:absolute" in text and _CLIPPED.search(text)):
        return True
    return "overflow:hidden" in text and _FLAT.search(text) is not None


def _read_sheet(sheet: str) -> tuple[frozenset[tuple[str, str]], frozenset[str]]:
    """Return what the rules of a sheet hide, as tag and class or id, "" for what is not named; and what they show."""
    hidden, shown = set[tuple[str, str]](), set[str]()
    sheet = _COMMENT.sub(" ", sheet)
    at, end = 0, len(sheet)
    for _ in range(MAX_RULES):
        opened = sheet.find("{", at)
        if opened < 0:
            break
        selector = sheet[at:opened].rpartition(";")[2].strip()
        closed, inner = sheet.find("}", opened), sheet.find("{", opened + 1)
        if 0 <= inner < closed:  # rules within: what they depend on is not known
            depth, at = 0, end
            for brace in _BRACE.finditer(sheet, opened):
                depth += 1 if brace[0] == "{" else -1
                if not depth:
                    at = brace.end()
                    break
            continue
        at = end if closed < 0 else closed + 1
        if selector.startswith("@"):
            continue
        declarations = sheet[opened + 1 : end if closed < 0 else closed]
        hiding = _is_hiding(declarations)
        if hiding or _SHOWN.search("".join(declarations.lower().split())):
            simple = (found for one in selector.split(",") if (found := _SIMPLE.match(one.strip())))
            named = [((found[1] or "").lower(), found[2] or "") for found in simple]
            if hiding:
                hidden.update(named)
            else:
                shown.update(name or tag for tag, name in named)
    return frozenset(hidden), frozenset(shown)


_read_short_sheet = lru_cache(maxsize=128)(_read_sheet)


STRIPPED: Final = frozenset(
    (COMMENT, "annotation", "annotation-xml", "base", "datalist", "head", "link", "meta", "noframes", "noscript")
) | {"param", "rp", "script", "source", "style", "template", "title", "track"}
"""Elements of which nothing is kept. A `<template>` is, when it is a shadow root: its host is asked for it."""

_INLINE_TAGS: Final = (
    "a abbr acronym area audio b bdi bdo big br button canvas cite code data del dfn em embed font i img input "
    "ins kbd map mark math meter mfrac mi mn mo mover mpadded mroot mrow ms mspace msqrt mstyle msub msubsup msup "
    "mtext munder munderover nobr object output picture progress q rb rt rtc ruby s samp select semantics small "
    "span strike strong sub sup svg textarea time tt u var video wbr"
)
INLINE: Final = frozenset(_INLINE_TAGS.split())
"""Elements that do not part the text before them from the text within."""

_HIDING_ATTRIBUTES: Final = frozenset(("aria-hidden", "hidden", "style"))


class Visibility:
    """Hidden elements of one page.

    `hidden` holds every `tag`, `.class`, `#id`, `tag.class` and `tag#id` that its sheets hide, and no rule shows again.
    """

    __slots__ = ("_styles", "hidden")

    def __init__(self, tree: Tree) -> None:
        hidden, shown = set[tuple[str, str]](), set[str]()
        sheets = [
            "".join(child.text for child in style.children)
            for style in tree.tagged("style")
            if style.attributes.get("media", "").strip().lower() in ("", "all", "screen")
        ]
        for sheet in sheets if any(map(_MAY_MATTER.search, sheets)) else ():
            named = _read_short_sheet(sheet) if len(sheet) <= _MAX_CACHED else _read_sheet(sheet)
            hidden |= named[0]
            shown |= named[1]
        self.hidden = frozenset(
            tag + name for tag, name in hidden if (name or tag) not in shown and (name or tag not in _NEVER_HIDDEN)
        )
        self._styles: dict[str, bool] = {}

    def hides(self, element: Node) -> bool:
        """Tell whether nothing of an element is to be seen."""
        tag, attributes = element.tag, element.attributes
        if tag in STRIPPED:
            return True
        if not attributes and not self.hidden:
            return tag == "svg"
        if tag == "img" or tag == "svg":  # decoration, or a drawing without a role and a name (6.1)
            roles = attributes.get("role", "").lower().split()
            if not (attributes.get("aria-label") or attributes.get("aria-labelledby")):
                if tag == "img" and (attributes.get("alt") == "" or "presentation" in roles or "none" in roles):
                    return True
                if tag == "svg" and not ("img" in roles and (attributes.get("title") or title_of(element))):
                    return True
        return self.withdraws(element)

    def withdraws(self, element: Node) -> bool:
        """Tell whether the page itself hides an element: an attribute of it, its style, or a rule."""
        attributes, hidden = element.attributes, self.hidden
        if not _HIDING_ATTRIBUTES.isdisjoint(attributes):
            if "hidden" in attributes or attributes.get("aria-hidden", "").strip().lower() == "true":
                return True
            style = attributes.get("style")
            if style:
                if style not in self._styles:
                    self._styles[style] = _is_hiding(style)
                if self._styles[style]:
                    return True
        if not hidden:
            return False
        tag = element.tag
        if tag in hidden:
            return True
        names = attributes.get("class")
        if names and any(f".{name}" in hidden or f"{tag}.{name}" in hidden for name in names.split()):
            return True
        name = attributes.get("id")
        return bool(name) and (f"#{name}" in hidden or f"{tag}#{name}" in hidden)


def title_of(drawing: Node) -> str:
    """Return what the `<title>` of an `<svg>` says."""
    titles = (child for child in drawing.children if child.tag == "title")
    return " ".join("".join(piece.text for title in titles for piece in title.children).split())


def text_of(
    node: Node,
    visibility: Visibility,
    without: Node | None = None,
    max_nodes: int | None = None,
    *,
    images: bool = False,
) -> str:
    """Return the visible text below a node, whitespace collapsed (4.6), blocks parted by a space.

    `without` is a node to pass over; after `max_nodes` nodes the rest is left out. `images` say what they show.
    """
    if node.only is not None:
        return " ".join(node.only.split())
    pieces: list[str] = []
    waiting: list[Node | None] = list(reversed(node.children))
    left = -1 if max_nodes is None else max_nodes
    while waiting and left:
        left -= 1
        found = waiting.pop()
        if found is None:
            pieces.append(" ")
        elif not found.tag:
            pieces.append(found.text)
        elif found is not without and not visibility.hides(found):
            if images and found.tag == "img":
                pieces.append(f" {found.attributes.get('alt', '')} ")
            if found.tag not in INLINE or found.tag == "br":
                pieces.append(" ")
                waiting.append(None)
            if found.only is not None:
                pieces.append(found.only)
            else:
                waiting.extend(reversed(found.children))
    return " ".join("".join(pieces).split())


# --- Formulas: `<math>` for assistive technology, hidden, and beside it the picture that is seen ---

_PICTURES: Final = ("img", "svg")
_MAX_WRAPPERS: Final = 3
"""Elements around a formula of which one may hide it, itself included."""
_MAX_FORMULA_NODES: Final = 500


def formula_of(math: Node) -> str:
    """Return what a formula says in words or in TeX: its `alttext`, or its annotation in TeX (MathML Core, 2.1)."""
    said = math.attributes.get("alttext", "")
    waiting = list(reversed(math.children)) if not said.strip() else []
    for _ in range(_MAX_FORMULA_NODES):
        if not waiting:
            break
        node = waiting.pop()
        if node.tag == "annotation" and "tex" in node.attributes.get("encoding", "").lower():
            said = "".join(child.text for child in node.children)
            break
        waiting.extend(reversed(node.children))
    return " ".join(said.split())


def read_formulas(tree: Tree, visibility: Visibility) -> Mapping[Node, str]:
    """Return for each picture of a formula that says nothing itself, what the formula says.

    Encyclopedias hide the `<math>` beside its picture, and the picture from assistive technology.
    """
    found: dict[Node, str] = {}
    places: dict[Node, int] = {}  # of siblings, so that a long row of formulas is counted once
    for math in tree.tagged("math"):
        node: Node | None = math
        hidden: Node | None = None
        for _ in range(_MAX_WRAPPERS):
            if node is None or node.tag == "body":
                break
            if visibility.withdraws(node):
                hidden = node
            node = node.parent
        if hidden is None or hidden.parent is None:
            continue
        siblings = hidden.parent.children
        if hidden not in places:
            places.update(zip(siblings, count(), strict=False))
        place = places[hidden]
        for beside in (siblings[place + 1 : place + 3], siblings[max(place - 2, 0) : place][::-1]):
            picture = next((one for one in beside if one.tag or one.text.strip()), None)
            while picture is not None and picture.tag not in _PICTURES and len(picture.children) == 1:
                picture = None if visibility.withdraws(picture) else picture.children[0]
            if picture is None or picture.tag not in _PICTURES:
                continue
            alternative = " ".join(picture.attributes.get("alt", "").split())
            seen = {name: value for name, value in picture.attributes.items() if name != "aria-hidden"}
            if visibility.withdraws(make_element(picture.tag, seen, picture.parent)):
                continue
            if visibility.hides(picture) or not alternative:
                said = alternative or formula_of(math) or text_of(math, visibility, max_nodes=_MAX_FORMULA_NODES)
                if said:
                    found[picture] = said
            break
    return found
