"""Parses HTML to our tree with selectolax (Lexbor), as the HTML Standard describes it with scripting enabled.

The content of `<noscript>` is dropped, because readers of the page do not see it.
"""

import codecs
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Set as AbstractSet
from itertools import islice, pairwise
from typing import Final, TypeAlias

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
# not changed. Where a parser might keep an element open that an end tag names, it counts as open.

MAX_DEPTH: Final = 512
"""Elements that may be open at one time, as in browsers."""

MAX_TREE_DEPTH: Final = MAX_DEPTH * 3 // 2
"""Levels of elements in the tree, including implied ones (a table's body) and enclosing templates."""

MAX_FORMATTING: Final = 16
"""Formatting elements that may be open at one time."""

MAX_ATTRIBUTES: Final = 512
"""Attributes of a tag."""

MAX_ROOTS: Final = 16
"""Tags of `html` and `body`, whose attributes are all added to those of the first."""

MAX_SEARCH: Final = 32
"""Innermost open elements among which that of an end tag is searched; one further out counts as open."""

_MAX_ADOPTED: Final = 8
"""Blocks out of which an end tag takes a formatting element (13.2.6.4.7, the adoption agency algorithm)."""

_ROOTS: Final = frozenset((b"html", b"body"))
_VOID: Final = frozenset(
    b"area base basefont bgsound br col embed frame hr image img input keygen link meta param source track wbr".split()
)
_BREAKOUT: Final = frozenset(
    b"b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta "
    b"nobr ol p pre ruby s small span strike strong sub sup table tt u ul var".split()
)
"""Elements that end a drawing or a formula (13.2.6.5)."""

_FORMATTING: Final = frozenset(b"a b big code em font i nobr s small strike strong tt u".split())
_FOREIGN: Final = frozenset((b"math", b"svg"))
_INTEGRATION: Final = _FOREIGN | frozenset(b"annotation-xml desc foreignobject mi mn mo ms mtext title".split())
_SCOPES: Final = _INTEGRATION | frozenset(
    b"applet button caption frameset html marquee object select table td template th".split()
)
_IN_FOREIGN: Final = _SCOPES - _FOREIGN
_CLOSES_P: Final = frozenset(
    b"address article aside blockquote center details dialog dir div dl dd dt fieldset figcaption figure footer form "
    b"h1 h2 h3 h4 h5 h6 header hgroup hr li listing main menu nav ol p plaintext pre search section summary table "
    b"ul".split()
)
_SPECIAL: Final = _CLOSES_P | _SCOPES | frozenset(b"body tbody tfoot thead tr xmp".split())
"""Elements beyond which the end tag of an ordinary element does not search (13.2.6.4.7, any other end tag)."""

_MEANT: Final = frozenset(b"a button h1 h2 h3 h4 h5 h6 optgroup option p select".split())
"""Elements that matter to readers. They do not nest, because each ends the one before it, so a few more are allowed."""

_SPARE: Final = 32
_OPTIONS: Final = frozenset((b"optgroup", b"option"))
_P: Final = frozenset((b"p",))
_TERMS: Final = frozenset((b"dd", b"dt"))
_CELLS: Final = frozenset((b"td", b"th"))
_ROWS: Final = _CELLS | {b"tr"}
_ROW_GROUPS: Final = _ROWS | {b"tbody", b"thead", b"tfoot"}
_CLOSES: Final[Mapping[bytes, frozenset[bytes]]] = {
    b"li": frozenset((b"li",)),
    b"dd": _TERMS,
    b"dt": _TERMS,
    b"td": _CELLS,
    b"th": _CELLS,
    b"tr": frozenset((b"tr",)),
    **dict.fromkeys(_ROW_GROUPS - _ROWS, _ROW_GROUPS - _ROWS),
}
"""Start tags that end an element whose end tag may be omitted, and these elements (13.1.2.4)."""

_TABLE: Final = frozenset((b"table",))
_TABLE_PARTS: Final = _ROW_GROUPS | {b"caption"}
_AROUND_TABLE: Final = _FOREIGN | {b"template"}
_KEEPS_OPEN: Final[Mapping[bytes, frozenset[bytes]]] = {
    **dict.fromkeys((b"li", b"dd", b"dt"), _SPECIAL - {b"address", b"div", b"p"}),
    **dict.fromkeys(_ROW_GROUPS, _TABLE | _AROUND_TABLE),
}
"""Elements beyond which such a start tag does not search."""

_END_STOPS: Final[Mapping[bytes, frozenset[bytes]]] = {
    **dict.fromkeys(_SPECIAL - _INTEGRATION, _SCOPES),
    **dict.fromkeys(_TABLE_PARTS | _TABLE, _TABLE | _AROUND_TABLE),
    b"li": _SCOPES | {b"ol", b"ul"},
    b"template": frozenset(),
}
"""Elements beyond which an end tag does not search (13.2.4.2); `_SPECIAL` for those of ordinary elements."""

_MARKERS: Final = (b"applet", b"caption", b"marquee", b"object", b"td", b"template", b"th")
"""Elements out of which no formatting element is closed (13.2.4.3)."""

# What can hide tags is read as a tokenizer does (13.2.5), since any depth could be in it.
_AFTER_NAME: Final = rb"(?=[ \t\n\f\r/>])"
_NAME: Final = rb"[a-z][^ \t\n\f\r/>]*+"
_VALUE: Final = rb"\"[^\"]*+\"?|'[^']*+'?|[^ \t\n\f\r>]*+"
_ATTRIBUTE: Final = rb"[^ \t\n\f\r/>][^ \t\n\f\r/>=]*+(?:[ \t\n\f\r]*+=[ \t\n\f\r]*+(?:" + _VALUE + rb"))?+"
_REST: Final = rb"[ \t\n\f\r]++|/(?!>)|" + _ATTRIBUTE
_COMMENT: Final = rb"!--(?:-?>|.*?(?:--!?>|\Z))|(?:\?|!(?!--|\[cdata\[)|/(?=[^a-z]))[^>]*+>?"
_SCRIPT_ENDS: Final = rb"/script" + _AFTER_NAME
_SCRIPT_TEXT: Final = (
    # A script may have a whole other script in a comment (13.2.5.20, script data double escaped state).
    rb"(?:[^<]++|<(?!!--|" + _SCRIPT_ENDS + rb")"
    rb"|<!(?=--)(?:(?!-->|</?script" + _AFTER_NAME + rb").)*+"
    rb"(?:<script" + _AFTER_NAME + rb"(?:(?!-->|<" + _SCRIPT_ENDS + rb").)*+"
    rb"(?:<" + _SCRIPT_ENDS + rb"(?:(?!-->|</?script" + _AFTER_NAME + rb").)*+)?+)*+(?:-->)?+)*+"
)
_RAW_NAMES: Final = rb"iframe|noembed|noframes|noscript|style|textarea|title|xmp"
_RAW_TEXTS: Final[Mapping[bytes, re.Pattern[bytes]]] = {
    b"plaintext": re.compile(rb".*", re.DOTALL),
    b"script": re.compile(_SCRIPT_TEXT, re.DOTALL | re.IGNORECASE),
    **{
        name: re.compile(rb".*?(?=</" + name + _AFTER_NAME + rb"|\Z)", re.DOTALL | re.IGNORECASE)
        for name in _RAW_NAMES.split(b"|")
    },
}
"""The elements whose content is text, and that content."""

_UNCERTAIN: Final = (*_FOREIGN, b"frameset", b"select")
"""Elements in which such an element may be an ordinary one, or ignored, so that tags in it are tags."""

_CDATA: Final = b"![cdata["
_TOKEN: Final = re.compile(
    rb"<(?:" + _COMMENT + rb"|(?P<end>/?)(?P<name>" + _NAME + rb")"
    rb"(?P<rest>(?:" + _REST + rb")*+)/?>?|(?P<cdata>!\[cdata\[))",
    re.DOTALL | re.IGNORECASE,
)
_SEPARATE: Final = re.compile(rb"[ \t\n\f\r/]*+" + _ATTRIBUTE)


def bound_markup(html: bytes, max_formatting: int = MAX_FORMATTING) -> bytes:
    """Return the markup without tags beyond the limits, counted approximately as a parser would."""
    kept, done, roots = list[bytes](), 0, 0
    opened: list[bytes] = []  # open elements, outermost first
    counts: defaultdict[bytes, int] = defaultdict(int)  # open elements by name
    left_out: defaultdict[bytes, int] = defaultdict(int)  # start tags left out by name
    formatting: list[bytes] = []  # open formatting elements, including those that parsers reopen
    text_ends = dict[bytes, int]()  # by name: where the text of the last uncertain one ends
    resume: int | None = None  # where the text ends that is in an element
    text_end = 0  # before this offset end tags may be text, and close nothing

    def innermost(names: AbstractSet[bytes], beyond: AbstractSet[bytes]) -> int | None:
        """Return the index of the innermost open element with one of `names`; None if one of `beyond` is in it."""
        for name in names:
            if counts[name]:
                break
        else:
            return None
        for place in range(len(opened) - 1, max(len(opened) - MAX_SEARCH, 0) - 1, -1):
            if opened[place] in names:
                return place
            if opened[place] in beyond:
                break
        return None

    def is_foreign() -> bool:
        return counts[b"svg"] > 0 or counts[b"math"] > 0

    def close(names: AbstractSet[bytes], beyond: AbstractSet[bytes]) -> None:
        if (place := innermost(names, beyond)) is not None:
            for name in opened[place:]:
                counts[name] -= 1
            del opened[place:]

    def remove(name: bytes) -> bool:
        """Close an element, but none of those in it. Return False if it may stay open."""
        place = innermost({name}, _SCOPES)
        if place is None:
            return not counts[name] and not any(counts[marker] for marker in _MARKERS)
        if sum(inner in _SPECIAL for inner in opened[place:]) >= _MAX_ADOPTED:
            return False
        counts[name] -= 1
        del opened[place]
        return True

    tokens = _TOKEN.finditer(html)
    while (token := next(tokens, None)) is not None:
        if token["name"] is None:
            if token["cdata"] and token.end() > text_ends.get(_CDATA, 0):
                # In a drawing this is text; elsewhere it is a comment, which ends at the next ">".
                found = html.find(b"]]>", token.end())
                text_ends[_CDATA] = len(html) if found < 0 else found
                text_end = max(text_end, text_ends[_CDATA])
            continue
        name, keep = token["name"].lower(), True
        if token["end"]:
            if name in _ROOTS or token.start() < text_end:
                pass
            elif left_out[name]:
                left_out[name] -= 1
                keep = False
            elif name in _FORMATTING:
                if remove(name) and name in formatting:
                    del formatting[len(formatting) - 1 - formatting[::-1].index(name)]
            elif name == b"form":  # elements in it stay open
                remove(name)
            elif name not in _TABLE_PARTS or innermost(_TABLE, _AROUND_TABLE) is not None:
                close({name}, _END_STOPS.get(name, _SPECIAL))
        elif name in _ROOTS:
            roots += 1
            keep = roots <= MAX_ROOTS
        elif name not in _VOID or (name not in _BREAKOUT and is_foreign()):
            if name in _RAW_TEXTS and token.end() > text_ends.get(name, 0):
                text = _RAW_TEXTS[name].match(html, token.end())
                end = len(html) if text is None else text.end()
                if not any(counts[outer] for outer in _UNCERTAIN):
                    resume = end
                else:
                    escaped = name == b"script" and b"<!--" in html[token.end() : end]
                    text_ends[name] = len(html) if escaped else end
                    text_end = max(text_end, text_ends[name])
            if name in _FORMATTING and name not in _MEANT and len(formatting) >= max_formatting:
                keep = False  # and it closes nothing
            else:
                if name in _BREAKOUT and is_foreign():
                    close(_FOREIGN, _IN_FOREIGN)
                if name in _CLOSES_P:
                    close(_P, _SCOPES)
                if is_foreign():
                    pass
                elif name in _OPTIONS:
                    if opened and opened[-1] == b"option":
                        close(_OPTIONS, _SPECIAL)
                elif name in _CLOSES and (name not in _ROW_GROUPS or innermost(_TABLE, _AROUND_TABLE) is not None):
                    close(_CLOSES[name], _KEEPS_OPEN[name])
                elif name == b"a" and b"a" in formatting and remove(name):
                    formatting.remove(b"a")  # a link ends the one before it
                keep = len(opened) < MAX_DEPTH + (_SPARE if name in _MEANT else 0)
            if resume is not None:
                keep = True
            elif keep:
                opened.append(name)
                counts[name] += 1
                if name in _FORMATTING:
                    formatting.append(name)
            else:
                left_out[name] += 1
        if not keep:
            kept.append(html[done : token.start()])
            done = token.end()
        elif len(token["rest"]) > 2 * MAX_ATTRIBUTES:
            attributes = [match[0] for match in islice(_SEPARATE.finditer(token["rest"]), MAX_ATTRIBUTES + 1)]
            if len(attributes) > MAX_ATTRIBUTES:
                kept += (html[done : token.start()], b"<", token["end"], token["name"], *attributes[:-1], b">")
                done = token.end()
        if resume is not None:
            tokens, resume = _TOKEN.finditer(html, resume), None
    return b"".join((*kept, html[done:]))


_CLOSED_AT_ONCE: Final[Mapping[bytes, frozenset[bytes]]] = {
    **dict.fromkeys(_CLOSES_P, _P),
    **{name: names | {b"p"} for name, names in _CLOSES.items()},
    b"tr": _ROWS | {b"p"},
    **dict.fromkeys(_ROW_GROUPS - _ROWS, _ROW_GROUPS | {b"p"}),
    **dict.fromkeys(_OPTIONS, frozenset((b"option",))),
    b"a": frozenset((b"a",)),
}
"""Start tags that close the innermost open element, if it is one of these."""

_IMPLIED: Final = frozenset(b"dd dt li optgroup option p rb rp rt rtc".split())
"""Elements that the end tag of one around them closes (13.2.6.1)."""

_MAX_IMPLIED: Final = 8
_DRAWN: Final = frozenset(
    b"animate animatemotion animatetransform circle clippath defs ellipse filter g image line lineargradient marker "
    b"mask path pattern polygon polyline radialgradient rect stop switch symbol text textpath tspan use view".split()
)
"""Elements of drawings, whose tags may end with "/>"."""

_LIMITED: Final = rb"(?:" + _REST + rb"){0,%d}+" % (2 * MAX_ATTRIBUTES)
_NO_END: Final = rb"<(?!/\1" + _AFTER_NAME + rb")"
_TAG: Final = re.compile(
    rb"<(?:" + _COMMENT + rb"|(" + _RAW_NAMES + rb"|plaintext)" + _AFTER_NAME + _LIMITED + rb"/?>[^<]*+"
    rb"(?:(?=(<))" + _NO_END + rb"[^<]*+(?:" + _NO_END + rb"[^<]*+)*+)?+(?:</\1" + _AFTER_NAME + rb")?+"
    rb"|script" + _AFTER_NAME + _LIMITED + rb"/?>[^<]*+"
    rb"(?:(?=(<)(?!" + _SCRIPT_ENDS + rb"))" + _SCRIPT_TEXT + rb")?+(?:<" + _SCRIPT_ENDS + rb")?+"
    rb"|(/?" + _NAME + rb"|!\[cdata\[)(?:" + _LIMITED + rb"(/?>))?+)",
    re.DOTALL,
)
"""In lower case: an element whose content is text, and whether there are tags in it; or a tag's name, and its end."""

_ENDS_IMPLIED: Final = _SPECIAL - _INTEGRATION
_OF_TABLES: Final = _TABLE | _TABLE_PARTS
_IMPLIED_IN_TABLE: Final = _IMPLIED | _TABLE_PARTS | {b"colgroup"}
_SLASH: Final = ord("/")


def _may_exceed(html: bytes) -> bool:
    """Return True if markup may go beyond the limits. `bound_markup` counts exactly, and takes longer than parsing.

    An element counts as open until its own end tag comes while it is the innermost one, except for those whose end tag
    may be omitted. That is at least what a parser has open, and in ordinary pages not much more.
    """
    opened: list[bytes] = []
    formatting = roots = foreign = uncertain = 0
    is_drawing = False  # whether the innermost elements are a drawing
    for _, inner, script, name, end in _TAG.findall(html.lower()):
        if not name:
            if uncertain and (inner or script):
                return True
        elif not end:  # more attributes than a tag may have, or text that looks like tags
            return True
        elif name[0] == _SLASH:
            name, at = name[1:], len(opened) - 1
            if at < 0:
                continue
            if opened[at] != name:
                is_drawing = False
                if foreign or name not in _ENDS_IMPLIED:
                    continue
                implied = _IMPLIED_IN_TABLE if name in _OF_TABLES else _IMPLIED
                last = max(at - _MAX_IMPLIED, 0)
                while at > last and opened[at] in implied:
                    at -= 1
                if opened[at] != name:
                    continue
            del opened[at:]
            if name in _FORMATTING:
                formatting -= 1
            elif name in _UNCERTAIN:
                uncertain, foreign, is_drawing = uncertain - 1, foreign - (name in _FOREIGN), False
        elif name in _VOID and (not foreign or name in _BREAKOUT):
            continue
        elif name in _ROOTS:
            roots += 1
            if roots > MAX_ROOTS:
                return True
        else:
            if is_drawing:
                if name in _DRAWN:
                    if end == b"/>":
                        continue
                else:
                    is_drawing = False
            if not foreign and name in _CLOSED_AT_ONCE:
                closed = _CLOSED_AT_ONCE[name]
                while opened and opened[-1] in closed:
                    formatting -= opened.pop() == b"a"
            if name in _FORMATTING:
                formatting += 1
            elif name in _UNCERTAIN:
                uncertain, foreign = uncertain + 1, foreign + (name in _FOREIGN)
                is_drawing = name == b"svg" and end == b">"
            opened.append(name)
            if len(opened) > MAX_DEPTH or formatting > MAX_FORMATTING:
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


def parse(html: str | bytes, charset: str | None = None) -> Tree:
    """Return the tree of a page, or of a fragment. No input raises an exception.

    `charset` is that of the `Content-Type`; a byte order mark has precedence over it, and it over the page's
    declaration. Markup that is nested too deeply to be parsed in linear time is flattened (see `bound_markup`).
    """
    data = _to_utf8(html, charset)
    try:
        return _build(bound_markup(data) if _may_exceed(data) else data, len(data), strict=True)
    except _TooDeepError:  # by rules that only a parser knows
        return _build(bound_markup(data), len(data), strict=False)
    except _TooLargeError:
        return _build(bound_markup(data, max_formatting=1), len(data), strict=False)


class _TooDeepError(Exception):
    """A tree goes beyond `MAX_TREE_DEPTH`."""


class _TooLargeError(Exception):
    """A tree has more nodes than its page can say: formatting elements are reopened in very many blocks."""


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
            if strict and at > tree.html_bytes // 2 + _LEAST_NODES:
                raise _TooLargeError
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
