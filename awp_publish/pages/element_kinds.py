"""Kinds of elements that the tree construction of the HTML Standard tells apart (13.2.6), by their names in bytes."""

from collections.abc import Mapping
from typing import Final

ROOTS: Final = frozenset((b"html", b"body"))
VOID: Final = frozenset(
    b"area base basefont bgsound br col embed frame hr image img input keygen link meta param source track wbr".split()
)
BREAKOUT: Final = frozenset(
    b"b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta "
    b"nobr ol p pre ruby s small span strike strong sub sup table tt u ul var".split()
)
"""Elements that end a drawing or a formula (13.2.6.5)."""

FORMATTING: Final = frozenset(b"a b big code em font i nobr s small strike strong tt u".split())
FOREIGN: Final = frozenset((b"math", b"svg"))
INTEGRATION: Final = FOREIGN | frozenset(b"annotation-xml desc foreignobject mi mn mo ms mtext title".split())
SCOPES: Final = INTEGRATION | frozenset(
    b"applet button caption frameset html marquee object select table td template th".split()
)
CLOSES_P: Final = frozenset(
    b"address article aside blockquote center details dialog dir div dl dd dt fieldset figcaption figure footer form "
    b"h1 h2 h3 h4 h5 h6 header hgroup hr li listing main menu nav ol p plaintext pre search section summary table "
    b"ul".split()
)
SPECIAL: Final = CLOSES_P | SCOPES | frozenset(b"body tbody tfoot thead tr xmp".split())
"""Elements beyond which the end tag of an ordinary element does not search (13.2.6.4.7, any other end tag)."""

OPTIONS: Final = frozenset((b"optgroup", b"option"))
P: Final = frozenset((b"p",))
TERMS: Final = frozenset((b"dd", b"dt"))
CELLS: Final = frozenset((b"td", b"th"))
ROWS: Final = CELLS | {b"tr"}
ROW_GROUPS: Final = ROWS | {b"tbody", b"thead", b"tfoot"}
TABLE: Final = frozenset((b"table",))
TABLE_PARTS: Final = ROW_GROUPS | {b"caption"}
AROUND_TABLE: Final = FOREIGN | {b"template"}

MARKERS: Final = (b"applet", b"caption", b"marquee", b"object", b"td", b"template", b"th")
"""Elements out of which no formatting element is closed (13.2.4.3)."""

UNCERTAIN: Final = (*FOREIGN, b"frameset", b"select")
"""Elements in which one whose content is text may be an ordinary one, or ignored, so that tags in it are tags."""

CLOSES: Final[Mapping[bytes, frozenset[bytes]]] = {
    b"li": frozenset((b"li",)),
    b"dd": TERMS,
    b"dt": TERMS,
    b"td": CELLS,
    b"th": CELLS,
    b"tr": frozenset((b"tr",)),
    **dict.fromkeys(ROW_GROUPS - ROWS, ROW_GROUPS - ROWS),
}
"""Start tags that end an element whose end tag may be omitted, and these elements (13.1.2.4)."""
