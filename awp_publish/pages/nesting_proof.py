"""Proves of most pages that their markup is within the limits of nesting, in less time than it takes to parse them.

An element whose end tag is met while it is the innermost open one leaves nothing open. Every other end tag counts as
closing nothing, so that never fewer elements count as open than a parser has open. Only the elements whose end tag may
be omitted are closed without one.
"""

import re
from collections.abc import Iterable, Mapping, Set as AbstractSet
from typing import Final

from awp_publish.pages.element_kinds import (
    BREAKOUT,
    CELLS,
    CLOSES_P,
    FOREIGN,
    FORMATTING,
    INTEGRATION,
    OPTIONS,
    ROOTS,
    ROW_GROUPS,
    ROWS,
    SPECIAL,
    TABLE,
    TABLE_PARTS,
    TERMS,
    UNCERTAIN,
    VOID,
)
from awp_publish.pages.nesting import MAX_ATTRIBUTES, MAX_FORMATTING, MAX_ROOTS
from awp_publish.pages.tokens import AFTER_NAME, ATTRIBUTE, COMMENT, RAW_TEXTS, SCRIPT_TEXT

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
    + ATTRIBUTE
    + rb"){0,%d}+[ \t\n\f\r/]*+>)" % MAX_ATTRIBUTES
)
"""What follows the name of a tag: nothing, attributes as they are usually written, or any attributes."""


def _any_of(names: Iterable[bytes]) -> bytes:
    return rb"(?:" + rb"|".join(sorted(names, reverse=True)) + rb")"


def _with_text(name: bytes, text: bytes) -> bytes:
    """Return the pattern of an element whose content is text, without its end tag if tags are in that."""
    rest = AFTER_NAME + _TAG_REST
    return name + rest + rb"[^<]*+(?:</" + name + rest + rb"|" + text + rb")"


_TAG: Final = re.compile(
    rb"<(?:"
    + rb"|".join(
        (
            COMMENT,
            _with_text(b"script", SCRIPT_TEXT),
            *(
                _with_text(name, rb"(?:<(?!/" + name + AFTER_NAME + rb")[^<]*+)*+")
                for name in sorted(RAW_TEXTS.keys() - {b"script", b"plaintext"})
            ),
            rb"svg" + AFTER_NAME + _TAG_REST + rb"(?<!/>)(?:[^<]*+<(?:/?" + _any_of(_DRAWN) + AFTER_NAME + _TAG_REST
            + rb"|!--(?!-?>)[^<-]*+(?:-(?!-!?>)[^<-]*+)*+-->"
            + rb"".join(rb"|%b" % name + AFTER_NAME + _TAG_REST + rb"[^<]*+</%b>" % name for name in _DRAWN_TEXTS)
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
_TEXT_ENDS: Final = frozenset(b"/" + name for name in RAW_TEXTS)
"""End tags that are left of elements with tags in their text."""

_ODD: Final = _DRAWN | {b"plaintext"}
"""Elements that make a page one to be counted exactly, if they are not in a drawing."""

_MAX_OPEN: Final = 450
"""Elements that may be open at one time, without those that parsers imply."""

_OMITTED: Final[Mapping[bytes, AbstractSet[bytes]]] = {
    b"/p": CLOSES_P,
    b"/li": frozenset((b"li",)),
    **dict.fromkeys((b"/dd", b"/dt"), TERMS),
    **dict.fromkeys((b"/td", b"/th"), ROW_GROUPS),
    **dict.fromkeys((b"/tbody", b"/tfoot", b"/thead"), ROW_GROUPS - ROWS),
    b"/tr": ROW_GROUPS - CELLS,
    b"/option": OPTIONS,
    b"/a": frozenset((b"a",)),
}
"""End tags that may be omitted before certain start tags (13.1.2.4)."""

_OMITTED_BEFORE: Final[Mapping[bytes, AbstractSet[bytes]]] = {
    **dict.fromkeys(
        (b"/" + name for name in SPECIAL - INTEGRATION),
        frozenset(b"/dd /dt /li /optgroup /option /p /rb /rp /rt /rtc".split()),
    ),
    **dict.fromkeys(
        (b"/" + name for name in TABLE | TABLE_PARTS),
        frozenset(b"/" + name for name in TABLE_PARTS | {b"colgroup", b"p"}),
    ),
}
"""For an end tag, those that may be omitted before it (13.2.6.1)."""

_MAX_OMITTED: Final = 8
"""End tags that may be omitted in succession."""


def may_exceed(html: bytes) -> bool:
    """Return True if markup may go beyond the limits. `bound_markup` counts exactly, and takes longer than parsing."""
    names = [name for name, is_closed in _TAG.findall(b"%b<%b>" % (html.lower(), _LAST)) if not is_closed]
    kinds = set(names)
    if names.pop() != _LAST or not kinds.isdisjoint(_ODD):
        return True
    if any(root in kinds and names.count(root) > MAX_ROOTS for root in ROOTS):
        return True
    unclosed = VOID if kinds.isdisjoint(FOREIGN) else VOID & BREAKOUT
    ends = {name: b"/" + name for name in kinds - unclosed - {b""} if name[0] != _SLASH}
    is_certain = kinds.isdisjoint(UNCERTAIN)
    opened = [b"/"]  # the end tags of open elements, outermost first, after one that is none
    formatting = 0
    for name in names:
        innermost = opened[-1]
        if name == innermost:
            del opened[-1]
            if name in _FORMATTING_ENDS:
                formatting -= 1
        elif name in ends:
            if innermost in _OMITTED and name in _OMITTED[innermost]:
                del opened[-1]
                if innermost == b"/a":
                    formatting -= 1
            opened.append(ends[name])
            if name in FORMATTING:
                formatting += 1
            if formatting > MAX_FORMATTING or len(opened) > _MAX_OPEN:
                return True
        elif name in _OMITTED_BEFORE and name in opened:
            _end_omitted(name, opened)
        elif name in _TEXT_ENDS and not is_certain and any(b"/" + outer in opened for outer in UNCERTAIN):
            return True
    return False


_SLASH: Final = ord("/")
_FORMATTING_ENDS: Final = frozenset(b"/" + name for name in FORMATTING)


def _end_omitted(name: bytes, opened: list[bytes]) -> None:
    """Take an end tag before which others are omitted."""
    for place in range(len(opened) - 2, len(opened) - 2 - _MAX_OMITTED, -1):
        if opened[place + 1] not in _OMITTED_BEFORE[name]:
            return
        if opened[place] == name:
            del opened[place:]
            return
