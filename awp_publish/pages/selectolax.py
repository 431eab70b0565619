"""Parses HTML to our tree with selectolax (Lexbor), as the HTML Standard describes it with scripting enabled.

The content of `<noscript>` is dropped, because readers of the page do not see it.
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
"""The bytes in which a page has to declare its encoding (13.2.3.2)."""

_DECLARED: Final = re.compile(rb"<meta\s[^>]*?charset\s*=\s*[\"']?\s*([a-z0-9_:.-]+)", re.IGNORECASE)
_SURROGATES: Final = re.compile("[\ud800-\udfff]")

_LARGER: Final[Mapping[str, str]] = {"big5": "big5hkscs", "euc-kr": "cp949", "gbk": "gb18030", "shift_jis": "cp932"}
"""Encodings that have more characters on the web than Python's codecs of the same names (Encoding Standard, 4.2)."""

_READ_AS_ASCII: Final[Mapping[str, str]] = {
    "utf-16le": "utf-8",
    "utf-16be": "utf-8",
    "x-user-defined": "windows-1252",
}
"""Encodings that cannot be those of a page that declares them in ASCII (13.2.3.2)."""


def _to_utf8(source: str | bytes, charset: str | None) -> bytes:
    """Return a page in UTF-8.

    A charset that the Encoding Standard does not know (UTF-7, punycode) is ignored; invalid bytes and surrogates become
    U+FFFD.
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


# --- Limits of nesting, so that parsing takes linear time ---
# The tree construction of the HTML Standard takes quadratic time or memory if elements are nested ever deeper (each
# start tag looks for a `<p>` among all open elements), if formatting elements are never closed (each paragraph reopens
# all of them, 13.2.4.3), and if a tag has very many attributes (each is compared with all before it). Browsers limit
# the depth, and so do we: tags beyond the limits are left out, but their content is kept. A page within the limits is
# not changed.

MAX_DEPTH: Final = 512
"""Elements that may be open at one time, as in browsers."""

MAX_TREE_DEPTH: Final = MAX_DEPTH * 3 // 2
"""Levels of elements in the tree, including implied ones (a table's body) and enclosing templates."""

MAX_FORMATTING: Final = 16
"""Formatting elements that may be open at one time."""

MAX_TAG_BYTES: Final = 32_768
"""Length of a tag beyond which its attributes are limited to `MAX_ATTRIBUTES`."""

MAX_ATTRIBUTES: Final = 512

MAX_ROOTS: Final = 16
"""Tags of `html` and `body`, whose attributes are all added to those of the first."""

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
"""Elements beyond which the end tag of an ordinary element does not search (13.2.6.4.7, any other end tag)."""

_MEANT: Final = frozenset(b"a button h1 h2 h3 h4 h5 h6 optgroup option p select".split())
"""Elements that matter to readers. They do not nest, because each ends the one before it, so a few more are allowed."""

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
"""Start tags that end an element whose end tag may be omitted, and these elements (13.1.2.4)."""

_TABLE: Final = frozenset((b"table",))
_KEEPS_OPEN: Final = {
    b"li": frozenset(b"ul ol menu".split()),
    b"dd": frozenset((b"dl",)),
    b"dt": frozenset((b"dl",)),
    b"option": frozenset((b"select",)),
    b"optgroup": frozenset((b"select",)),
}
"""Elements beyond which such a start tag does not search; for the parts of a table that is the table."""

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
    """Return the markup without tags beyond the limits, counted approximately as a parser would."""
    kept, done, roots = list[bytes](), 0, 0
    opened: list[bytes] = []  # open elements, outermost first
    counts, left_out = Counter[bytes](), Counter[bytes]()  # by name: open elements, and start tags left out
    formatting: list[bytes] = []  # open formatting elements, including those that parsers reopen

    def innermost(names: AbstractSet[bytes], beyond: AbstractSet[bytes]) -> int | None:
        """Return the index of the innermost open element with one of `names`; None if one of `beyond` is in it."""
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
            ):  # elements open inside of it stay open (13.2.6.4.7, the adoption agency algorithm)
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
    """Return True if markup may go beyond the limits. Counting exactly costs a fifth of the parsing.

    In a short page tags are counted. In a long one short samples are parsed, at equal distances from an offset given by
    a checksum, which nobody can predict without trying. Templates are counted, because their content is not below them
    in the tree; in a sample, those that it leaves open.
    """
    if any(html.find(b"<", at, at + _WINDOW) < 0 for at in range(0, len(html) - _WINDOW, _WINDOW)):
        return True  # a piece without tags may be inside of a long tag
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
        # The depth is at most the number of start tags, two implied elements for each table, and a text. Most samples
        # have too few to be parsed.
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
"""Otherwise each option is compared with all others of its select, to fill a `<selectedcontent>`."""

_LEAST_NODES: Final = 256
"""Nodes for which space is reserved at the beginning."""

_MAX_OPEN: Final = 48
"""Elements that may be open at the end of a sample; in ordinary pages there are fewer."""


def parse(html: str | bytes, charset: str | None = None) -> Tree:
    """Return the tree of a page, or of a fragment. No input raises an exception.

    `charset` is that of the `Content-Type`; a byte order mark has precedence over it, and it over the page's
    declaration. Markup that is nested too deeply to be parsed in linear time is flattened (see `bound_markup`).
    """
    data = _to_utf8(html, charset)
    try:
        return _build(bound_markup(data) if _may_exceed(data) else data, len(data), strict=True)
    except _TooDeepError:  # between the samples, or by rules that only a parser knows
        return _build(bound_markup(data), len(data), strict=False)


class _TooDeepError(Exception):
    """A tree goes beyond `MAX_TREE_DEPTH`."""


def _build(markup: bytes, html_bytes: int, *, strict: bool) -> Tree:
    """Return the tree of markup. If it is too deep it is truncated, or `_TooDeepError` is raised if `strict`."""
    parser = LexborHTMLParser(markup, scripting=True, options=_NO_EVENTS)
    tree = Tree(html_bytes, _Matcher(parser).select)
    top, by_tag = parser.root, dict[str, list[int]]()
    tree.add("html", {name: value or "" for name, value in top.attributes.items()} if top is not None else {}, -1)
    if top is not None:
        tree.ids.update({tree.attributes[0]["id"]: 0} if "id" in tree.attributes[0] else {})
        _copy(top, tree, 0, by_tag, tree.ids, strict)
        tree.ends[0] = len(tree.tags)
    tree.complete(by_tag)
    # The contents of templates, also nested ones, are not in the page: `Tree.find` does not return them.
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
    """Append everything below a parser's node to a tree, inside of `parent`, and index elements by tags and ids.

    This is one loop because it runs for every node of a page. The stack has, for each open element, the parser's node
    after it and the parent there. A kind has, for the parser's number of a tag, its name and the list of elements with
    that name, if any. `room` is the maximal depth of the stack; enclosing templates count too.

    The lists are extended beyond `at` with "" and no attributes, so that little has to be written for a text. Elements
    that have the same class and no other attribute share one mapping.
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
        if at >= last:  # with space for two more: an element and its text
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
        if text is not None:  # usually the only child, which needs no stack entry
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


# --- CSS selectors, in time that combinators do not multiply ---
# The parser's own matcher backtracks: `a ~ b ~ c ~ d` takes the fourth power of a list's length, so an agent's selector
# could occupy the process for hours. Combinators are therefore followed here, and the parser only matches compound
# selectors (Selectors 4, section 3).

MAX_NESTED: Final = 3
"""Levels of parentheses."""

_TOKENS: Final = re.compile(r"""\\.|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|/\*.*?\*/|[ \t\r\n\f]+|.""", re.DOTALL)
_COUNTED: Final = re.compile(r"^[ \t\r\n\f]*(?:even|odd|[-+]?\d*n?(?:\s*[-+]\s*\d+)?)\s+of\s+", re.IGNORECASE)
"""The beginning of the argument of `:nth-child(2n + 1 of li)`, before its selector."""

_FREE: Final = re.compile(r"~(?!=)|(?<=[^\s(,>+~])\s+(?=[^\s),>+~])")
"""The combinators for which many elements are tried: any preceding sibling, any ancestor."""

_TEXTS: Final = re.compile(r"""\\.|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\[[^\]]*\]""", re.DOTALL)

_Steps: TypeAlias = list[tuple[str | None, str]]
"""Compound selectors, each with the combinator before it; None for the first."""


class _Matcher:
    """Matches selectors in one page."""

    __slots__ = ("_by_address", "_parser")

    def __init__(self, parser: LexborHTMLParser) -> None:
        self._parser = parser
        self._by_address: dict[int, int] = {}

    def select(self, tree: Tree, css: str) -> list[int]:
        """Return the elements that a list of selectors matches, possibly with duplicates.

        Raises:
            ValueError: the selector is invalid, or what it has in parentheses would take too long.
        """
        by_address, matched = self._by_address, list[int]()
        if not by_address and self._parser.root is not None:
            # Map the parser's nodes to our numbers by walking both trees in step, as deep as ours goes.
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
    """Yield the steps of each selector of a list until the first error."""
    depth = start = 0
    parts: list[str] = []  # combinators and commas outside of parentheses, and the pieces between
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
            # The parser matches arguments in parentheses; a single combinator in them is quick enough.
            arguments = _TEXTS.sub("x", part).partition("(")[2].split("(")
            if sum(len(_FREE.findall(_COUNTED.sub("", argument))) for argument in arguments) > 1:
                raise ValueError("A selector with more than one combinator in parentheses.")
            steps.append((combinator, part))
            combinator = None


def _related(tree: Tree, nodes: Iterable[int], combinator: str | None) -> set[int]:
    """Return the nodes to which a combinator leads from any of these nodes."""
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
