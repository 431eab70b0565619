"""From HTML to our tree with selectolax (Lexbor): the tree that the HTML Standard describes, scripting enabled.

Of a `<noscript>` nothing is kept, for a reader of the page does not see it.
"""

import codecs
import gc
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set as AbstractSet
from contextlib import contextmanager
from itertools import islice
from typing import Final, TypeAlias
from zlib import crc32

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode, SelectolaxError

from awp_publish.pages.selectors import select
from awp_publish.pages.tree import COMMENT, Comment, Element, Node, Template, Text, Tree, make_element

# --- Python's garbage collector, and why it waits while a page is read ---
# The collector looks for cycles whenever many objects were made and few dropped, and looks through the old ones again
# each time there are a quarter more. Making a tree is nothing but that: a page ten times as long took twenty times as
# long, most of it in vain, for nothing of a tree is garbage before the whole of it is. So it waits for the few
# milliseconds, and looks at everything once when it goes on.


@contextmanager
def collector_waits() -> Iterator[None]:
    """Keeps the collector from running, unless it is off already: then whoever turned it off turns it on."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


# --- Which characters the bytes of a page are, as the HTML Standard finds out (13.2.3) ---

_MARKS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))

_PRESCAN_BYTES: Final = 1024
"""Where a page must have said its encoding (13.2.3.2)."""

_DECLARED: Final = re.compile(rb"<meta\s[^>]*?charset\s*=\s*[\"']?\s*([a-z0-9_:.-]+)", re.IGNORECASE)
_SURROGATES: Final = re.compile("[\ud800-\udfff]")

_LABELS: Final[Mapping[str, str]] = {
    "ascii": "cp1252",
    "us-ascii": "cp1252",
    "iso-8859-1": "cp1252",
    "iso8859-1": "cp1252",
    "iso_8859-1": "cp1252",
    "latin1": "cp1252",
    "l1": "cp1252",
    "iso-8859-9": "cp1254",
    "latin5": "cp1254",
    "iso-8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "x-gbk": "gb18030",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "sjis": "cp932",
    "x-sjis": "cp932",
    "euc-kr": "cp949",
    "ks_c_5601-1987": "cp949",
    "utf-16": "utf-16-le",
    "utf16": "utf-16-le",
    "unicode": "utf-16-le",
    "x-user-defined": "cp1252",
}
"""Labels that mean something else on the web than to Python (Encoding Standard, 4.2)."""


def read_utf8(source: str | bytes, charset: str | None = None) -> bytes:
    """A page in UTF-8. An unknown charset counts as none; what means nothing, surrogates too, becomes U+FFFD."""
    if isinstance(source, str):
        return _encode(source)
    for mark, codec in _MARKS:
        if source.startswith(mark):
            return _recode(source[len(mark) :], codec)
    return _recode(source, _codec(charset) or _declared(source) or "utf-8")


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATES.sub("\ufffd", text).encode()


def _recode(data: bytes, codec: str) -> bytes:
    if codec != "utf-8":
        return _encode(data.decode(codec, "replace"))
    try:
        data.decode()
    except UnicodeDecodeError:
        return data.decode(codec, "replace").encode()
    return data


def _declared(source: bytes) -> str | None:
    found = _DECLARED.search(source[:_PRESCAN_BYTES])
    codec = _codec(found[1].decode("ascii")) if found else None
    return "utf-8" if codec is not None and codec.startswith("utf-16") else codec


def _codec(label: str | None) -> str | None:
    """The codec of a label, or None for one that is none, or that is no character encoding (`base64`, `rot13`)."""
    if label is None:
        return None
    name = label.strip().lower()
    try:
        found = codecs.lookup(_LABELS.get(name, name)).name
        b"text".decode(found, "replace")
    except (LookupError, ValueError):
        return None
    return found


# --- What keeps the cost of parsing in proportion to the length of a page ---
# The tree construction of the HTML Standard takes time, or memory, that grows with the square of a page's length when
# elements are nested ever deeper (each start tag looks for a `<p>` among all open elements), when formatting elements
# are never closed (each paragraph opens all of them again, 13.2.4.3), and when one tag has ever more attributes (each
# is compared with all before it). Browsers stop at a depth; so does this: tags beyond the limits are left out, and
# what they hold is kept. A page that stays within the limits is not touched.

MOST_DEPTH: Final = 512
"""Elements open at one time: what browsers take."""

MOST_FORMATTING: Final = 16
"""Formatting elements open at one time."""

MOST_TAG_BYTES: Final = 32_768
"""Of a tag longer than this, the attributes are left out beyond `MOST_ATTRIBUTES`."""

MOST_ATTRIBUTES: Final = 512

MOST_ROOTS: Final = 16
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
"""What a page is read for. These do not nest, each ends the one before it, so a few more of them do no harm."""

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

_WINDOW: Final = MOST_TAG_BYTES // 2
_PARTS: Final = 16
_LONG: Final = 131_072
SAMPLE_BYTES: Final = 2_048


def bound_markup(html: bytes, suspect: bool = False) -> bytes:
    """The markup without the tags that go beyond the limits. It is read when it may go beyond them, or is suspect.

    To find out costs a fifth of the parsing: of a short page tags are counted, of a long one the caller parses samples.
    """
    closely = suspect or _has_long_tag(html) or (len(html) < _LONG and _is_unbalanced(html))
    return b"".join(_Nesting().within(html)) if closely else html


def samples_of(html: bytes) -> Iterator[bytes]:
    """Short parts of a long page, evenly apart, from where its check sum says: nobody knows where without trying."""
    if len(html) >= _LONG:
        step = len(html) // _PARTS
        first = crc32(html) % (step - SAMPLE_BYTES)
        yield from (html[at : at + SAMPLE_BYTES] for at in range(first, len(html), step))


def has_many_roots(sample: bytes) -> bool:
    """Whether a sample has more tags of `html` and `body` than a page."""
    text = sample.lower()
    return text.count(b"<html") + text.count(b"<body") > MOST_ROOTS


def _is_unbalanced(html: bytes) -> bool:
    """Whether anywhere many more tags begin than end elements, or the other way."""
    step, unclosed = max(len(html) // _PARTS, 1), 0
    for start in range(0, len(html), step):
        part = html[start : start + step]
        unclosed += part.count(b"<") - 2 * part.count(b"</")
        if abs(unclosed) > MOST_DEPTH:
            return True
    return False


def _has_long_tag(html: bytes) -> bool:
    """Whether so much stands between two tags that it may be a tag itself."""
    return any(html.find(b"<", at, at + _WINDOW) < 0 for at in range(0, len(html) - _WINDOW, _WINDOW))


class _Nesting:
    """Which elements are open while the tags of a page are read one after another, roughly as a parser would say."""

    __slots__ = ("_counts", "_formatting", "_left_out", "_open", "_roots")

    def __init__(self) -> None:
        self._open: list[bytes] = []
        self._counts: Counter[bytes] = Counter()
        self._formatting: list[bytes] = []
        self._left_out: Counter[bytes] = Counter()
        self._roots = 0

    def within(self, html: bytes) -> Iterator[bytes]:
        """The markup in pieces, without the tags beyond the limits."""
        done = 0
        for token in _TOKEN.finditer(html):
            name = token["name"]
            if name is None:
                continue
            keep = self._end(name.lower()) if token["end"] else self._start(name.lower())
            long = token.end() - token.start() > MOST_TAG_BYTES
            if keep and not long:
                continue
            yield html[done : token.start()]
            yield _shortened(token) if keep else b""
            done = token.end()
        yield html[done:]

    def _start(self, name: bytes) -> bool:
        if name in _VOID:
            return True
        if name in _ROOTS:
            self._roots += 1
            return self._roots <= MOST_ROOTS
        self._close_before(name)
        full = len(self._open) >= MOST_DEPTH + (_SPARE if name in _MEANT else 0)
        full = full or (name in _FORMATTING and name not in _MEANT and len(self._formatting) >= MOST_FORMATTING)
        if full:
            self._left_out[name] += 1
            return False
        self._open.append(name)
        self._counts[name] += 1
        if name in _FORMATTING:
            self._formatting.append(name)
        return True

    def _close_before(self, name: bytes) -> None:
        """Ends what a start tag ends without an end tag."""
        if name in _CLOSES_P:
            self._close({b"p"}, _SCOPES)
        if name == b"select":
            self._close({name}, _SCOPES)
        if name in _CLOSES:
            self._close(_CLOSES[name], _KEEPS_OPEN.get(name, _TABLE))
        if name == b"a" and b"a" in self._formatting:
            self._formatting.remove(b"a")

    def _close(self, names: AbstractSet[bytes], beyond: AbstractSet[bytes]) -> None:
        """Closes the innermost open element of these names, unless one of `beyond` is open inside of it."""
        place = self._innermost(names, beyond)
        if place is not None:
            self._counts.subtract(self._open[place:])
            del self._open[place:]

    def _innermost(self, names: AbstractSet[bytes], beyond: AbstractSet[bytes]) -> int | None:
        if not any(self._counts[name] for name in names):
            return None
        for place in range(len(self._open) - 1, -1, -1):
            if self._open[place] in names:
                return place
            if self._open[place] in beyond:
                return None
        return None

    def _end(self, name: bytes) -> bool:
        if name in _ROOTS:
            return True
        if self._left_out[name]:
            self._left_out[name] -= 1
            return False
        if name in _FORMATTING:
            self._end_formatting(name)
        else:
            self._close({name}, frozenset() if name in _SCOPES else _SCOPES if name in _SPECIAL else _SPECIAL)
        return True

    def _end_formatting(self, name: bytes) -> None:
        """What is open inside of a formatting element stays open (13.2.6.4.7, the adoption agency algorithm)."""
        if name in self._formatting:
            del self._formatting[len(self._formatting) - 1 - self._formatting[::-1].index(name)]
        place = self._innermost({name}, _SCOPES)
        if place is not None:
            self._counts[name] -= 1
            del self._open[place]


def _shortened(token: re.Match[bytes]) -> bytes:
    """A tag with its first attributes only."""
    attributes = (found[0] for found in _ATTRIBUTE.finditer(token["rest"]))
    return b"<" + token["name"] + b"".join(islice(attributes, MOST_ATTRIBUTES)) + b">"


_TEXT: Final = 2
"""Lexbor's number for text (`LXB_TAG__TEXT`)."""

_NO_EVENTS: Final = int(LexborDocumentOptions.WO_EVENTS)
"""Else each option is compared with all others of its select, so as to fill a `<selectedcontent>`."""

_MOST_OPEN: Final = 48

_MADE: Final[Mapping[str, type[Element]]] = {"template": Template, COMMENT: Comment}

_Kind: TypeAlias = tuple[str, type[Element], list[Element]]
"""A tag's name, what is made of it, and every element of that name so far."""


def parse(html: str | bytes, charset: str | None = None) -> Tree:
    """The tree of a page, or of a part of one. Whatever is given has a tree: nothing is raised for what it says.

    `charset` is what a `Content-Type` said; a byte order mark wins over it, and it over what the page says of itself.
    Markup nested so deep that its tree would take time out of proportion is flattened (see `bounding`).
    """
    data = read_utf8(html, charset)
    suspect = any(has_many_roots(sample) or _nests_deeply(sample) for sample in samples_of(data))
    parser = LexborHTMLParser(bound_markup(data, suspect), scripting=True, options=_NO_EVENTS)
    with collector_waits():
        return _Growth(parser).tree(len(data))


def _nests_deeply(sample: bytes) -> bool:
    """Whether more elements are open at the end of a sample of a page than so short a part of an ordinary one opens."""
    node = LexborHTMLParser(sample, is_fragment=True, scripting=True, options=_NO_EVENTS).root
    depth = 0
    while node is not None and depth <= _MOST_OPEN:
        while node.next is not None:
            node = node.next
        node, depth = node.last_child, depth + 1
    return depth > _MOST_OPEN


class _Growth:
    """The making of one tree. Kinds are known by the parser's numbers for them."""

    __slots__ = ("_by_address", "_by_tag", "_kinds", "_parser", "_root")

    def __init__(self, parser: LexborHTMLParser) -> None:
        self._parser = parser
        self._kinds: dict[int, _Kind] = {}
        self._by_tag: dict[str, list[Element]] = {}
        self._by_address: dict[int, Node] = {}
        self._root = make_element("html", {}, None)

    def tree(self, html_bytes: int) -> Tree:
        top, root = self._parser.root, self._root
        if top is not None:
            root.attributes = {name: value or "" for name, value in top.attributes.items()}
            root.children = self._children(top, root)
        by_tag = self._by_tag
        self._fill_templates(self._parser.template_fragments() if "template" in by_tag else [])
        return Tree(root, by_tag, self._find, html_bytes)

    def _children(self, top: LexborNode, parent: Element) -> Sequence[Node]:
        """Everything below a node of the parser. One loop written out, for it runs for every node of a page."""
        kinds, text, siblings = self._kinds, Text, list[Node]()
        first, waiting = siblings, list[tuple[LexborNode | None, Element, list[Node]]]()
        found = top.first_child
        while True:
            while found is None:
                if not waiting:
                    return first
                found, parent, siblings = waiting.pop()
            number = found.tag_id
            if number == _TEXT:
                piece = text()
                piece.text = found.text_content or ""
                piece.parent = parent
                siblings.append(piece)
                found = found.next
                continue
            name, make, alike = kinds.get(number) or self._kind(found)
            element = make()
            element.tag = name
            element.children = ()
            element.parent = parent
            siblings.append(element)
            alike.append(element)
            given = found.attributes
            if given and None in given.values():
                given = {key: value or "" for key, value in given.items()}
            element.attributes = given  # type: ignore[assignment]
            child = found.first_child if name != "noscript" else None
            if child is None:
                found = found.next
                continue
            waiting.append((found.next, parent, siblings))
            element.children = siblings = []
            found, parent = child, element

    def _kind(self, found: LexborNode) -> _Kind:
        name = (found.tag or COMMENT).lower() if found.is_element_node else COMMENT
        kind = (name, _MADE.get(name, Element), self._by_tag.setdefault(name, []))
        self._kinds[found.tag_id] = kind
        return kind

    def _fill_templates(self, fragments: list[LexborNode]) -> None:
        """What templates hold, one in another too. It is not in the page, so `Tree.tagged` gives none of it."""
        waiting = list(zip(fragments, self._by_tag.get("template", ()), strict=False))
        while waiting:
            fragment, host = waiting.pop()
            self._kinds, self._by_tag = {}, {}
            assert isinstance(host, Template)
            host.content = self._children(fragment, host)
            inner = self._by_tag.get("template")
            waiting += zip(fragment.template_fragments(), inner, strict=False) if inner else ()

    def _find(self, css: str) -> list[Node]:
        return select(css, self._find_compound)

    def _find_compound(self, css: str) -> list[Node]:
        try:
            found = self._parser.css(css)
        except SelectolaxError as problem:
            raise ValueError(f"{css!r} is not a CSS selector.") from problem
        by_address = self._by_address or self._addresses()
        return [by_address[node.mem_id] for node in found if node.mem_id in by_address]

    def _addresses(self) -> dict[int, Node]:
        """Our node for each of the parser's, by its address: both trees are walked in step."""
        waiting: list[Node] = [self._root]
        for found in self._parser.root.traverse() if self._parser.root is not None else ():
            node = waiting.pop()
            self._by_address[found.mem_id] = node
            waiting.extend(child for child in reversed(node.children) if child.tag)
        return self._by_address
