"""What keeps the cost of parsing in proportion to the length of a page.

The tree construction of the HTML Standard takes time, or memory, that grows with the square of a page's length when
elements are nested ever deeper (each start tag looks for a `<p>` among all open elements), when formatting elements are
never closed (each paragraph opens all of them again, 13.2.4.3), and when one tag has ever more attributes (each is
compared with all before it). Browsers stop at a depth; so does this: tags beyond the limits are left out, and what
they hold is kept. A page that stays within the limits is not touched.
"""

import re
from collections import Counter
from collections.abc import Iterator, Set as AbstractSet
from itertools import islice
from typing import Final
from zlib import crc32

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
