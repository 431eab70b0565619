"""Limits of nesting, so that parsing takes linear time.

The tree construction of the HTML Standard takes quadratic time or memory if elements are nested ever deeper (each
start tag looks for a `<p>` among all open elements), if formatting elements are never closed (each paragraph reopens
all of them, 13.2.4.3), and if a tag has very many attributes (each is compared with all before it). Browsers limit
the depth, and so do we: tags beyond the limits are left out, but their content is kept. A page within the limits is
not changed. Where a parser might keep an element open that an end tag names, it counts as open.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Set as AbstractSet
from itertools import islice
from typing import Final

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
_BARRIERS: Final = _SPECIAL - _FOREIGN
"""Elements beyond which an end tag does not search (13.2.4.2), and those for the end tags of ordinary elements."""

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
                close({name}, _END_STOPS.get(name, _BARRIERS))
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


_DRAWN: Final = frozenset(
    b"animate animatemotion animatetransform circle clippath defs ellipse filter g image line lineargradient marker "
    b"mask path pattern polygon polyline radialgradient rect stop switch symbol text textpath tspan use view "
    b"feblend fecolormatrix fecomponenttransfer fecomposite feflood fefunca fefuncb fefuncg fefuncr fegaussianblur "
    b"femerge femergenode femorphology feoffset".split()
)
"""Elements of drawings, whose tags may end with "/>"."""

_DRAWN_TEXTS: Final = (b"desc", b"style", b"title")
_MAX_DRAWN: Final = 400
"""Tags in a drawing that is not looked into."""

_TAG_REST: Final = (
    rb"(?:>|(?: [a-z-]++=\"[^\"]*+\"){1,%d}+>|(?:[ \t\n\f\r/]*+" % MAX_ATTRIBUTES
    + _ATTRIBUTE
    + rb"){0,%d}+[ \t\n\f\r/]*+>)" % MAX_ATTRIBUTES
)
"""What follows the name of a tag: nothing, attributes as they are usually written, or any attributes."""


def _any_of(names: Iterable[bytes]) -> bytes:
    return rb"(?:" + rb"|".join(sorted(names, reverse=True)) + rb")"


def _with_text(name: bytes, text: bytes) -> bytes:
    """Return the pattern of an element whose content is text, without its end tag if tags are in that."""
    rest = _AFTER_NAME + _TAG_REST
    return name + rest + rb"[^<]*+(?:</" + name + rest + rb"|" + text + rb")"


_TAG: Final = re.compile(
    rb"<(?:"
    + rb"|".join(
        (
            _COMMENT,
            _with_text(b"script", _SCRIPT_TEXT),
            *(
                _with_text(name, rb"(?:<(?!/" + name + _AFTER_NAME + rb")[^<]*+)*+")
                for name in sorted(_RAW_TEXTS.keys() - {b"script", b"plaintext"})
            ),
            rb"svg" + _AFTER_NAME + _TAG_REST + rb"(?<!/>)(?:[^<]*+<(?:/?" + _any_of(_DRAWN) + _AFTER_NAME + _TAG_REST
            + rb"|!--(?!-?>)[^<-]*+(?:-(?!-!?>)[^<-]*+)*+-->"
            + rb"".join(rb"|%b" % name + _AFTER_NAME + _TAG_REST + rb"[^<]*+</%b>" % name for name in _DRAWN_TEXTS)
            + rb")){0,%d}+[^<]*+</svg>" % _MAX_DRAWN,
            rb"(/?[a-z][^ \t\n\f\r/<>]*+)" + _TAG_REST + rb"(?:[^<]*+</(?!html>|body>)\1(>))?+",
            rb"(?:/?[a-z]|!\[cdata\[).*+",
        )
    )
    + rb")",
    re.DOTALL,
)  # fmt: skip
"""In lower case: the name of a tag, and ">" if that of its end follows; "" for a drawing, a comment, and an element
whose content is text.

A tag that has too many attributes, an odd name or no end, and a character section, reach to the end of the page.
"""

_LAST: Final = b"end-of-page"
_TEXT_ENDS: Final = frozenset(b"/" + name for name in _RAW_TEXTS)
_ODD: Final = _DRAWN | {b"plaintext"}
"""Elements that make a page one to be counted exactly, if they are not in a drawing."""

_MAX_LEFT: Final = 300
_MAX_FORMATTING_LEFT: Final = 4
_MAX_FORMATTING_ROUNDS: Final = MAX_FORMATTING - _MAX_FORMATTING_LEFT
_MAX_ROUNDS: Final = 150
"""Start tags that may be left after so many rounds. Each round removes the innermost elements, with formatting ones."""

_LOOKED_THROUGH: Final = 12
"""Times the length of the tags that is looked through in all rounds."""

_PAIR: Final = re.compile(rb"<([^/>]++)></\1>")
_BLOCK_PAIR: Final = re.compile(rb"<((?!" + _any_of(_FORMATTING) + rb">)[^/>]++)></\1>")
_CLOSED_BY: Final[Mapping[bytes, AbstractSet[bytes]]] = {
    b"p": _CLOSES_P,
    b"li": frozenset((b"li",)),
    **dict.fromkeys(_TERMS, _TERMS),
    **dict.fromkeys(_CELLS, _ROW_GROUPS),
    **dict.fromkeys(_ROW_GROUPS - _CELLS, _ROW_GROUPS - _ROWS),
    b"tr": _ROW_GROUPS - _CELLS,
    b"option": _OPTIONS,
    b"a": frozenset((b"a",)),
}
"""Elements that end where such a start tag follows (13.1.2.4)."""

_UNCLOSED: Final = re.compile(
    rb"|".join(rb"<" + name + rb">(?=<" + _any_of(closing) + rb">)" for name, closing in _CLOSED_BY.items())
    + rb"|<(" + _any_of(_SPECIAL - _INTEGRATION) + rb")>(?:<(?:dd|dt|li|optgroup|option|p|rb|rp|rt|rtc)>){1,8}+</\1>"
    + rb"|<(" + _any_of(_TABLE | _TABLE_PARTS) + rb")>(?:<" + _any_of(_TABLE_PARTS | {b"colgroup", b"p"})
    + rb">){1,8}+</\2>"
)  # fmt: skip
"""Elements whose end tag is omitted, and elements that end them (13.2.6.1)."""


def may_exceed(html: bytes) -> bool:
    """Return True if markup may go beyond the limits. `bound_markup` counts exactly, and takes longer than parsing.

    An element that begins and ends leaves nothing open, so that the innermost elements are removed, again and again,
    until few are left. What is nested deeper than the number of rounds is left.
    """
    names = [name for name, is_closed in _TAG.findall(b"%b<%b>" % (html.lower(), _LAST)) if not is_closed]
    kinds = set(names)
    if names[-1] != _LAST or not kinds.isdisjoint(_ODD):
        return True
    unclosed = _VOID if kinds.isdisjoint(_FOREIGN) else _VOID & _BREAKOUT
    unclosed |= {b"/" + name for name in unclosed}  # which close nothing
    if kinds.isdisjoint(_UNCERTAIN):
        unclosed |= _TEXT_ENDS
    counted = kinds - unclosed - {b""}
    left = b"<%b>" % b"><".join([name for name in names if name in counted])
    if sum(left.count(b"<%b>" % root) for root in _ROOTS) > MAX_ROOTS:
        return True
    room = _LOOKED_THROUGH * len(left)
    for number in range(_MAX_ROUNDS):
        room -= len(left)
        left = (_PAIR if number < _MAX_FORMATTING_ROUNDS else _BLOCK_PAIR).sub(b"", left)
        if left.count(b"<") - left.count(b"</") <= _MAX_LEFT:
            starts = left[1:-1].split(b"><")
            is_clear = _TEXT_ENDS.isdisjoint(starts) or not any(name in _UNCERTAIN for name in starts)
            if is_clear and sum(name in _FORMATTING for name in starts) <= _MAX_FORMATTING_LEFT:
                return False
        if room < 0:
            break
        if number % 2:
            left = _UNCLOSED.sub(b"", left)
    return True
