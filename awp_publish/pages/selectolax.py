"""From HTML to our tree with selectolax (Lexbor): the tree that the HTML Standard describes, scripting enabled.

Of a `<noscript>` nothing is kept, for a reader of the page does not see it.
"""

import codecs
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set as AbstractSet
from itertools import islice, pairwise
from typing import Final, TypeAlias
from zlib import crc32

import webencodings
from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode, SelectolaxError

from awp_publish.pages.tree import COMMENT, CONSPICUOUS, INDEXED, NO_ATTRIBUTES, Tree

# --- Encodings (HTML Standard, 13.2.3) ---

_MARKS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16le"), (codecs.BOM_UTF16_BE, "utf-16be"))

_PRESCAN_BYTES: Final = 1024
"""A page must have said its encoding in these (13.2.3.2)."""

_DECLARED: Final = re.compile(rb"<meta\s[^>]*?charset\s*=\s*[\"']?\s*([a-z0-9_:.-]+)", re.IGNORECASE)
_SURROGATES: Final = re.compile("[\ud800-\udfff]")

_LARGER: Final[Mapping[str, str]] = {"big5": "big5hkscs", "euc-kr": "cp949", "gbk": "gb18030", "shift_jis": "cp932"}
"""Encodings that hold more on the web than Python's codecs of the same names (Encoding Standard, 4.2)."""

_READ_AS_ASCII: Final[Mapping[str, str]] = {
    "utf-16le": "utf-8",
    "utf-16be": "utf-8",
    "x-user-defined": "windows-1252",
}
"""Encodings that cannot be those of a page in which they were found (13.2.3.2)."""


def _to_utf8(source: str | bytes, charset: str | None) -> bytes:
    """Return a page in UTF-8.

    A charset that the Encoding Standard does not know (UTF-7, punycode) counts as none; what means nothing, surrogates
    too, becomes U+FFFD.
    """
    if isinstance(source, bytes):
        mark, name = next((known for known in _MARKS if source.startswith(known[0])), (b"", charset or ""))
        source = source[len(mark) :]
        encoding = webencodings.lookup(name)
        if encoding is None and (declared := _DECLARED.search(source[:_PRESCAN_BYTES])):
            encoding = webencodings.lookup(declared[1].decode("ascii"))
            if encoding is not None and encoding.name in _READ_AS_ASCII:
                encoding = webencodings.lookup(_READ_AS_ASCII[encoding.name])
        if encoding is None or encoding.name == "utf-8":
            try:
                source.decode()
            except UnicodeDecodeError:
                text = source.decode("utf-8", "replace")
            else:
                return source
        elif encoding.name in _LARGER:
            text = source.decode(_LARGER[encoding.name], "replace")
        else:
            text = encoding.codec_info.decode(source, "replace")[0]
    else:
        text = source
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATES.sub("\ufffd", text).encode()


# --- Bounds of nesting: parsing in proportion to the length of a page ---
# The tree construction of the HTML Standard takes time, or memory, that grows with the square of a page's length when
# elements are nested ever deeper (each start tag looks for a `<p>` among all open elements), when formatting elements
# are never closed (each paragraph opens all of them again, 13.2.4.3), and when one tag has ever more attributes (each
# is compared with all before it). Browsers stop at a depth; so does this: tags beyond the limits are left out, and
# what they hold is kept. A page that stays within the limits is not touched.

MAX_DEPTH: Final = 512
"""Elements open at one time: what browsers take."""

MAX_TREE_DEPTH: Final = MAX_DEPTH * 3 // 2
"""Elements in one another, with those that no tag says (the body of a table) and the templates that they are in."""

MAX_FORMATTING: Final = 16
"""Formatting elements open at one time."""

MAX_TAG_BYTES: Final = 32_768
"""Of a tag longer than this, the attributes are left out beyond `MAX_ATTRIBUTES`."""

MAX_ATTRIBUTES: Final = 512

MAX_ROOTS: Final = 16
"""Tags of `html` and `body`: the attributes of all of them are those of the first."""

_ROOTS: Final = (b"html", b"body")
_VOID: Final = frozenset(
    b"area base basefont bgsound br col embed frame hr image img input keygen link meta param source track wbr".split()
)
_FORMATTING: Final = frozenset(b"a b big code em font i nobr s small strike strong tt u".split())
_SCOPES: Final = frozenset(b"applet button caption html marquee object table td template th".split())
_CLOSES_P: Final = frozenset(
    b"address article aside blockquote center details dialog dir div dl dd dt fieldset figcaption figure footer form "
    b"h1 h2 h3 h4 h5 h6 header hgroup hr li listing main menu nav ol p plaintext pre search section summary table "
    b"ul".split()
)
_SPECIAL: Final = _CLOSES_P | _SCOPES | frozenset(b"body select tbody tfoot thead tr xmp".split())
"""Elements that the end tag of an ordinary element does not look beyond (13.2.6.4.7, any other end tag)."""

_MEANT: Final = frozenset(b"a button h1 h2 h3 h4 h5 h6 optgroup option p select".split())
"""Elements that pages are read for. These do not nest, each ends the one before it, so a few more do no harm."""

_SPARE: Final = 32
_CLOSES: Final = {
    b"li": {b"li"},
    b"dd": {b"dd", b"dt"},
    b"dt": {b"dd", b"dt"},
    b"td": {b"td", b"th"},
    b"th": {b"td", b"th"},
    b"tr": {b"tr"},
    b"tbody": {b"tbody", b"thead", b"tfoot"},
    b"tfoot": {b"tbody", b"thead", b"tfoot"},
    b"option": {b"option"},
    b"optgroup": {b"optgroup"},
}
"""Start tags that end an element whose end tag may be left out, and which (13.1.2.4)."""

_TABLE: Final = frozenset((b"table",))
_KEEPS_OPEN: Final = {
    b"li": frozenset(b"ul ol menu".split()),
    b"dd": frozenset((b"dl",)),
    b"dt": frozenset((b"dl",)),
    b"option": frozenset((b"select",)),
    b"optgroup": frozenset((b"select",)),
}
"""Beyond which such a start tag does not look; for the parts of a table that is the table."""

_ATTRIBUTES: Final = rb"(?:[^>=]++|=\s*+(?:\"[^\"]*+\"?|'[^']*+'?)?+)*+>?"
_RAW: Final = rb"script|style|textarea|title|xmp|iframe|noembed|noframes|noscript|plaintext"
_TOKEN: Final = re.compile(
    rb"<!--.*?(?:--!?>|\Z)"
    rb"|<(?P<raw>" + _RAW + rb")(?=[\s/>])" + _ATTRIBUTES + rb".*?(?:</(?P=raw)(?=[\s/>])|\Z)"
    rb"|<(?P<end>/?)(?P<name>[a-z][^\s/>]*+)(?P<rest>" + _ATTRIBUTES + rb")",
    re.DOTALL | re.IGNORECASE,
)
_ATTRIBUTE: Final = re.compile(rb"[\s/]*+[^\s/>=][^\s/>=]*+(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>]*+))?+")

_TEMPLATE: Final = re.compile(rb"<template", re.IGNORECASE)
_WINDOW: Final = MAX_TAG_BYTES // 2
_PARTS: Final = 16
_LONG: Final = 131_072
_SAMPLE_BYTES: Final = 2_048


def bound_markup(html: bytes) -> bytes:
    """Return the markup without the tags that go beyond the limits, roughly as a parser would count them."""
    kept, done, roots = list[bytes](), 0, 0
    opened: list[bytes] = []  # the open elements, outermost first
    counts, left_out = Counter[bytes](), Counter[bytes]()  # by name: those that are open, and start tags left out
    formatting: list[bytes] = []  # open formatting elements, also those that parsers would open again

    def innermost(names: AbstractSet[bytes], beyond: AbstractSet[bytes]) -> int | None:
        """Return the place of the innermost open element of these names, None if one of `beyond` is inside of it."""
        if any(counts[name] for name in names):
            for place in range(len(opened) - 1, -1, -1):
                if opened[place] in names:
                    return place
                if opened[place] in beyond:
                    break
        return None

    def close(names: AbstractSet[bytes], beyond: AbstractSet[bytes]) -> None:
        if (place := innermost(names, beyond)) is not None:
            counts.subtract(opened[place:])
            del opened[place:]

    for token in _TOKEN.finditer(html):
        if token["name"] is None:
            continue
        name, keep = token["name"].lower(), True
        if token["end"]:
            if name in _ROOTS:
                pass
            elif left_out[name]:
                left_out[name] -= 1
                keep = False
            elif (
                name in _FORMATTING
            ):  # what is open inside of it stays open (13.2.6.4.7, the adoption agency algorithm)
                if name in formatting:
                    del formatting[len(formatting) - 1 - formatting[::-1].index(name)]
                if (place := innermost({name}, _SCOPES)) is not None:
                    counts[name] -= 1
                    del opened[place]
            else:
                close({name}, frozenset() if name in _SCOPES else _SCOPES if name in _SPECIAL else _SPECIAL)
        elif name in _ROOTS:
            roots += 1
            keep = roots <= MAX_ROOTS
        elif name not in _VOID:
            if name in _CLOSES_P:
                close({b"p"}, _SCOPES)
            if name == b"select":
                close({name}, _SCOPES)
            if name in _CLOSES:
                close(_CLOSES[name], _KEEPS_OPEN.get(name, _TABLE))
            if name == b"a" and b"a" in formatting:  # a link ends the one before it
                formatting.remove(b"a")
                if (place := innermost({name}, _SCOPES)) is not None:
                    counts[name] -= 1
                    del opened[place]
            keep = len(opened) < MAX_DEPTH + (_SPARE if name in _MEANT else 0)
            keep = keep and (name not in _FORMATTING or name in _MEANT or len(formatting) < MAX_FORMATTING)
            if keep:
                opened.append(name)
                counts[name] += 1
                if name in _FORMATTING:
                    formatting.append(name)
            else:
                left_out[name] += 1
        if not keep:
            kept.append(html[done : token.start()])
            done = token.end()
        elif token.end() - token.start() > MAX_TAG_BYTES:
            attributes = (found[0] for found in _ATTRIBUTE.finditer(token["rest"]))
            kept += (
                html[done : token.start()],
                b"<",
                token["end"],
                token["name"],
                *islice(attributes, MAX_ATTRIBUTES),
                b">",
            )
            done = token.end()
    return b"".join((*kept, html[done:]))


def _may_exceed(html: bytes) -> bool:
    """Tell whether markup may go beyond the limits, for to read it closely costs a fifth of the parsing.

    Of a short page tags are counted. Of a long one short parts are parsed, evenly apart, from where a check sum
    says: nobody knows where without trying. Templates are counted, for what they hold is not below them: in a part,
    those that it leaves open.
    """
    if any(html.find(b"<", at, at + _WINDOW) < 0 for at in range(0, len(html) - _WINDOW, _WINDOW)):
        return True  # so much between two tags may be a tag itself
    step = max(len(html) // _PARTS, 1)
    if len(html) < _LONG:
        if len(_TEMPLATE.findall(html)) > _MAX_OPEN:
            return True
        unclosed = 0
        for start in range(0, len(html), step):
            unclosed += html.count(b"<", start, start + step) - 2 * html.count(b"</", start, start + step)
            if abs(unclosed) > MAX_DEPTH:
                return True
        return False
    for start in range(crc32(html[::_PARTS]) % (step - _SAMPLE_BYTES), len(html), step):
        sample = html[start : start + _SAMPLE_BYTES]
        text = sample.lower()
        if text.count(b"<html") + text.count(b"<body") > MAX_ROOTS:
            return True
        if text.count(b"<template") > text.count(b"</template"):
            return True
        # As deep as there are start tags, with the two elements that a table may have around a cell and no tag says,
        # and a text at the bottom: most samples have too few to be parsed.
        if text.count(b"<") - text.count(b"</") + 2 * text.count(b"<table") < _MAX_OPEN:
            continue
        node = LexborHTMLParser(sample, is_fragment=True, scripting=True, options=_NO_EVENTS).root
        depth = 0
        while node is not None and depth <= _MAX_OPEN:
            while node.next is not None:
                node = node.next
            node, depth = node.last_child, depth + 1
        if depth > _MAX_OPEN:
            return True
    return False


# --- The tree ---

_TEXT: Final = 2
"""Lexbor's number for text (`LXB_TAG__TEXT`)."""

_NOTED: Final = CONSPICUOUS | {"id"}
_NO_EVENTS: Final = int(LexborDocumentOptions.WO_EVENTS)
"""Else each option is compared with all others of its select, so as to fill a `<selectedcontent>`."""

_LEAST_NODES: Final = 256
"""Nodes for which there is place from the beginning on."""

_MAX_OPEN: Final = 48
"""Elements that are open at the end of a sample of a page; in ordinary pages there are fewer."""


def parse(html: str | bytes, charset: str | None = None) -> Tree:
    """Return the tree of a page, or of a part of one. Nothing is raised for what it says.

    `charset` is what a `Content-Type` said; a byte order mark wins over it, and it over what the page says of itself.
    Markup nested so deep that its tree would take time out of proportion is flattened (see `bound_markup`).
    """
    data = _to_utf8(html, charset)
    try:
        return _build(bound_markup(data) if _may_exceed(data) else data, len(data), strict=True)
    except _TooDeepError:  # where no sample was taken, or in a way that only a parser knows
        return _build(bound_markup(data), len(data), strict=False)


class _TooDeepError(Exception):
    """A tree goes beyond `MAX_TREE_DEPTH`."""


def _build(markup: bytes, html_bytes: int, *, strict: bool) -> Tree:
    """Return the tree of markup. If that is too deep it ends there; `strict`, `_TooDeepError` is raised."""
    parser = LexborHTMLParser(markup, scripting=True, options=_NO_EVENTS)
    tree = Tree(html_bytes, _Matcher(parser).select)
    top, by_tag = parser.root, dict[str, list[int]]()
    tree.add("html", {name: value or "" for name, value in top.attributes.items()} if top is not None else {}, -1)
    if top is not None:
        tree.ids.update({tree.attributes[0]["id"]: 0} if "id" in tree.attributes[0] else {})
        _copy(top, tree, 0, by_tag, tree.ids, strict)
        tree.ends[0] = len(tree.tags)
    tree.complete(by_tag)
    # What templates hold, one in another too, is not in the page: `Tree.find` gives none of it.
    templates = by_tag.get("template", [])
    waiting = list(zip(parser.template_fragments(), templates, strict=False)) if templates else []
    tree.contents.update(dict.fromkeys(templates, (0, 0)))
    while waiting:
        fragment, host = waiting.pop()
        inner: dict[str, list[int]] = {}
        start = len(tree.tags)
        _copy(fragment, tree, host, inner, {}, strict)
        tree.contents[host] = start, len(tree.tags)
        if "template" in inner:
            tree.contents.update(dict.fromkeys(inner["template"], (0, 0)))
            waiting += zip(fragment.template_fragments(), inner["template"], strict=False)
    return tree


def _copy(
    top: LexborNode, tree: Tree, parent: int, by_tag: dict[str, list[int]], ids: dict[str, int], strict: bool
) -> None:
    """Append everything below a node of the parser to a tree, as inside of `parent`; list elements by tags and by ids.

    One loop, for it runs for every node of a page. On the stack: where to go on after an element's children (the
    parser's next node), and the parent there. A kind is, for the parser's number of a tag: its name, and what lists the
    elements of that name, if anything does. `room` is how deep the stack may be; the templates around count too.

    The lists reach beyond `at`, with "" and no attributes in them, so of a text little is to be written. Elements that
    have the same class and no other attribute share one mapping.
    """
    tags, attributes, texts, parents, ends = tree.tags, tree.attributes, tree.texts, tree.parents, tree.ends
    room, above = MAX_TREE_DEPTH, parents[parent]
    while above >= 0:
        room, above = room - 1, parents[above]
    if room <= 0:
        if strict:
            raise _TooDeepError
        return
    waiting = list[tuple[LexborNode | None, int]]()
    kinds: dict[int, tuple[str, Callable[[int], None] | None]] = {}
    classes: dict[str, dict[str, str | None]] = {}
    start = at = last = len(tags)
    found = top.first_child
    while True:
        while found is None:
            if not waiting:
                del tags[at:], attributes[at:], texts[at:], parents[at:], ends[at:]
                return
            ends[parent] = at
            found, parent = waiting.pop()
        if at >= last:  # with place for two more: an element and a text in it
            more = (at - start) // 2 + _LEAST_NODES
            tags += [""] * more
            attributes += [NO_ATTRIBUTES] * more
            texts += [""] * more
            parents += [0] * more
            ends += [0] * more
            last = len(tags) - 1
        number = found.tag_id
        parents[at] = parent
        if number == _TEXT:
            texts[at] = found.text_content or ""
            ends[at] = at = at + 1
            found = found.next
            continue
        try:
            name, also = kinds[number]
        except KeyError:
            name = (found.tag or COMMENT).lower() if found.is_element_node else COMMENT
            also = by_tag.setdefault(name, []).append if name in INDEXED else None
            kinds[number] = name, also
        tags[at] = name
        if also is not None:
            also(at)
        given = found.attributes
        if given:
            if len(given) == 1 and (only := given.get("class")):
                given = classes.setdefault(only, given)
            else:
                if not all(given.values()):
                    given = {key: value or "" for key, value in given.items()}
                if not _NOTED.isdisjoint(given):
                    if "id" in given:
                        ids.setdefault(given["id"], at)  # type: ignore[arg-type]
                    if not CONSPICUOUS.isdisjoint(given):
                        tree.conspicuous.add(at)
            attributes[at] = given  # type: ignore[assignment]
        child = found.first_child if name != "noscript" else None
        if child is None or len(waiting) >= room:
            if child is not None and strict:
                raise _TooDeepError
            ends[at] = at = at + 1
            found = found.next
            continue
        element = at
        at += 1
        text = child.text_content
        if text is not None:  # in most elements the only child: then the stack is not needed
            texts[at] = text
            parents[at] = element
            ends[at] = at = at + 1
            child = child.next
            if child is None:
                ends[element] = at
                found = found.next
                continue
        waiting.append((found.next, parent))
        found, parent = child, element


# --- CSS selectors, in time that no combinator multiplies ---
# The parser's own matcher goes back and tries again: `a ~ b ~ c ~ d` takes it the fourth power of a list's length, and
# an agent's selector could keep the process for hours. So combinators are followed here, and the parser is asked for
# compound selectors only (Selectors 4, section 3).

MAX_NESTED: Final = 3
"""Levels of parentheses."""

_TOKENS: Final = re.compile(r"""\\.|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|/\*.*?\*/|[ \t\r\n\f]+|.""", re.DOTALL)
_COUNTED: Final = re.compile(r"^[ \t\r\n\f]*(?:even|odd|[-+]?\d*n?(?:\s*[-+]\s*\d+)?)\s+of\s+", re.IGNORECASE)
"""The beginning of the argument of `:nth-child(2n + 1 of li)`, before its selector."""

_FREE: Final = re.compile(r"~(?!=)|(?<=[^\s(,>+~])\s+(?=[^\s),>+~])")
"""The combinators for which many elements have to be tried: any sibling before, any element around."""

_TEXTS: Final = re.compile(r"""\\.|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\[[^\]]*\]""", re.DOTALL)

_Steps: TypeAlias = list[tuple[str | None, str]]
"""Compound selectors, each with the combinator before it; None for the first."""


class _Matcher:
    """Selectors of one page."""

    __slots__ = ("_by_address", "_parser")

    def __init__(self, parser: LexborHTMLParser) -> None:
        self._parser = parser
        self._by_address: dict[int, int] = {}

    def select(self, tree: Tree, css: str) -> list[int]:
        """Return the elements that a list of selectors matches, some of them perhaps twice.

        Raises:
            ValueError: it is no selector, or has in parentheses what takes too long.
        """
        by_address, matched = self._by_address, list[int]()
        if not by_address and self._parser.root is not None:
            # Our number for each of the parser's nodes: both trees are walked in step, as far down as ours goes.
            waiting: list[tuple[LexborNode, int]] = [(self._parser.root, 0)]
            while waiting:
                one, ours = waiting.pop()
                by_address[one.mem_id] = ours
                inner = one.first_child
                for child in tree.children(ours):
                    assert inner is not None
                    if tree.tags[child]:
                        waiting.append((inner, child))
                    inner = inner.next
        for steps in _read_selectors(css):
            found: list[int] = []
            for combinator, compound in steps:
                related = _related(tree, found, combinator)
                try:
                    given = self._parser.css(compound)
                except SelectolaxError as problem:
                    raise ValueError(f"{compound!r} is not a CSS selector.") from problem
                nodes = [by_address[one.mem_id] for one in given if one.mem_id in by_address]
                found = [node for node in nodes if combinator is None or node in related]
            matched += found
        return matched


def _read_selectors(css: str) -> Iterator[_Steps]:
    """Yield the steps of each selector of a list; the first error ends it."""
    depth = start = 0
    parts: list[str] = []  # combinators and commas outside of parentheses, and what is between them
    for match in _TOKENS.finditer(css):
        token = match[0]
        depth += (token in ("(", "[")) - (token in (")", "]"))
        if depth > MAX_NESTED:
            raise ValueError(f"A selector of more than {MAX_NESTED} levels of parentheses.")
        if depth == 0 and (token.isspace() or token in (">", "+", "~", ",")):
            parts += (css[start : match.start()], " " if token.isspace() else token)
            start = match.end()
    steps: _Steps = []
    combinator: str | None = None
    for part in (*parts, css[start:], ","):
        if part == ",":
            if not steps or combinator not in (None, " "):
                raise ValueError(f"{css!r} is not a CSS selector.")
            yield steps
            steps, combinator = [], None
        elif part in (">", "+", "~"):
            if combinator not in (None, " ") or not steps:
                raise ValueError(f"{css!r} is not a CSS selector.")
            combinator = part
        elif part == " ":
            combinator = combinator or (" " if steps else None)
        elif part:
            # What stands in parentheses the parser follows itself: one combinator in all of them is quick enough.
            arguments = _TEXTS.sub("x", part).partition("(")[2].split("(")
            if sum(len(_FREE.findall(_COUNTED.sub("", argument))) for argument in arguments) > 1:
                raise ValueError("A selector with more than one combinator in parentheses.")
            steps.append((combinator, part))
            combinator = None


def _related(tree: Tree, nodes: Iterable[int], combinator: str | None) -> set[int]:
    """Return the nodes that a combinator leads to from any of these."""
    found, reached = set[int](), 0
    if combinator == " ":
        for node in sorted(nodes):
            found.update(range(max(node + 1, reached), tree.ends[node]))
            reached = max(reached, tree.ends[node])
    elif combinator == ">":
        found.update(child for node in nodes for child in tree.children(node))
    else:
        marked = set(nodes)
        for parent in {tree.parents[node] for node in nodes} - {-1}:
            elements = [child for child in tree.children(parent) if tree.tags[child] not in ("", COMMENT)]
            for before, following in pairwise(elements):
                if before in marked or (combinator == "~" and before in found):
                    found.add(following)
    return found
