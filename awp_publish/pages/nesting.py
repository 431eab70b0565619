"""Limits of nesting, so that parsing takes linear time.

The tree construction of the HTML Standard takes quadratic time or memory if elements are nested ever deeper (each
start tag looks for a `<p>` among all open elements), if formatting elements are never closed (each paragraph reopens
all of them, 13.2.4.3), and if a tag has very many attributes (each is compared with all before it). Browsers limit
the depth, and so do we: tags beyond the limits are left out, but their content is kept. A page within the limits is
not changed.
"""

from collections import defaultdict
from itertools import islice
from typing import Final

from awp_publish.pages.element_kinds import BREAKOUT, FORMATTING, ROOTS, UNCERTAIN, VOID
from awp_publish.pages.open_elements import OpenElements
from awp_publish.pages.tokens import RAW_TEXTS, SEPARATE, TOKEN

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

_MEANT: Final = frozenset(b"a button h1 h2 h3 h4 h5 h6 optgroup option p select".split())
"""Elements that matter to readers. They do not nest, because each ends the one before it, so a few more are allowed."""

_SPARE: Final = 32


def bound_markup(html: bytes, max_formatting: int = MAX_FORMATTING) -> bytes:
    """Return the markup without tags beyond the limits, counted approximately as a parser would."""
    tags = _Tags(html, max_formatting)
    kept, done = list[bytes](), 0
    tokens = TOKEN.finditer(html)
    while (token := next(tokens, None)) is not None:
        if token["name"] is None:
            if token["cdata"]:
                tags.take_section(token.end())
            continue
        name = token["name"].lower()
        if token["end"]:
            keep = tags.take_end(name, token.start())
        elif (end := tags.take_text(name, token.end())) is None:
            keep = tags.take_start(name)
        else:
            keep, tokens = True, TOKEN.finditer(html, end)
            tags.take_start(name, has_text=True)
        if not keep:
            kept.append(html[done : token.start()])
            done = token.end()
        elif len(token["rest"]) > 2 * MAX_ATTRIBUTES:
            attributes = [match[0] for match in islice(SEPARATE.finditer(token["rest"]), MAX_ATTRIBUTES + 1)]
            if len(attributes) > MAX_ATTRIBUTES:
                kept += (html[done : token.start()], b"<", token["end"], token["name"], *attributes[:-1], b">")
                done = token.end()
    return b"".join((*kept, html[done:]))


class _Tags:
    """The tags of a page up to a place in it: what is open there, and what was left out."""

    __slots__ = ("_html", "_left_out", "_max_formatting", "_opened", "_roots", "_text_end", "_text_ends")

    def __init__(self, html: bytes, max_formatting: int) -> None:
        self._html, self._max_formatting = html, max_formatting
        self._opened = OpenElements()
        self._left_out: defaultdict[bytes, int] = defaultdict(int)
        self._roots = 0
        self._text_ends: dict[bytes, int] = {}
        """By name, where the text of the last element ends that may have a text or tags."""
        self._text_end = 0
        """Before this offset end tags may be text, and close nothing."""

    def take_end(self, name: bytes, start: int) -> bool:
        """Take an end tag. Return False if its start tag was left out."""
        if name in ROOTS or start < self._text_end:
            return True
        if self._left_out[name]:
            self._left_out[name] -= 1
            return False
        self._opened.end(name)
        return True

    def take_start(self, name: bytes, *, has_text: bool = False) -> bool:
        """Take a start tag. Return False if it is beyond the limits. What `has_text` ends with its text."""
        if name in ROOTS:
            self._roots += 1
            return self._roots <= MAX_ROOTS
        opened = self._opened
        if name in VOID and (name in BREAKOUT or not opened.is_foreign):
            return True
        if name in FORMATTING and name not in _MEANT and len(opened.formatting) >= self._max_formatting:
            is_within = False  # and it closes nothing
        else:
            opened.close_before(name)
            is_within = len(opened) < MAX_DEPTH + (_SPARE if name in _MEANT else 0)
        if has_text:
            return True
        if is_within:
            opened.open(name)
        else:
            self._left_out[name] += 1
        return is_within

    def take_text(self, name: bytes, start: int) -> int | None:
        """Return where the text ends that certainly is the content of an element, whose start tag ends at `start`."""
        if name not in RAW_TEXTS or start <= self._text_ends.get(name, 0):
            return None
        text = RAW_TEXTS[name].match(self._html, start)
        end = len(self._html) if text is None else text.end()
        if not self._opened.has_any(UNCERTAIN):
            return end
        is_escaped = name == b"script" and b"<!--" in self._html[start:end]
        self._note_text(name, len(self._html) if is_escaped else end)
        return None

    def take_section(self, start: int) -> None:
        """Take a character section: text in a drawing; elsewhere a comment, which ends at the next ">"."""
        if start > self._text_ends.get(_SECTION, 0):
            end = self._html.find(b"]]>", start)
            self._note_text(_SECTION, len(self._html) if end < 0 else end)

    def _note_text(self, name: bytes, end: int) -> None:
        self._text_ends[name] = end
        self._text_end = max(self._text_end, end)


_SECTION: Final = b"![cdata["
