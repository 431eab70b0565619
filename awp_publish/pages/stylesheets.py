"""What the page's own `<style>` rules hide (SOM 1.0, section 6.2). Stylesheets elsewhere are not read.

Only a rule whose selector is one tag, one class or one id, for every state of the element, is taken at its word:
`.menu:hover` and `.a.b` say nothing about all of `.menu` or `.a`. Rules inside of `@media` and its like depend on a
reader that is not known, so they count for nothing.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, TypeAlias

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
_FLAT: Final = re.compile(rf"(?:^|;)(?:max-)?(?:height|width):{_ZERO}")

MOST_RULES: Final = 20_000
_MOST_KNOWN: Final = 10_000
_Simple: TypeAlias = tuple[str, str]
_Named: TypeAlias = tuple[frozenset[_Simple], frozenset[str]]


def hides(declarations: str) -> bool:
    """Whether declarations of CSS hide what they apply to: the list of section 6.2, each value read as a whole."""
    text = "".join(declarations.lower().split())
    if _HIDDEN.search(text):
        return True
    if "position:absolute" in text and _CLIPPED.search(text):
        return True
    return "overflow:hidden" in text and _FLAT.search(text) is not None


def read_hidden(sheets: list[str]) -> frozenset[str]:
    """Every `tag`, `.class`, `#id`, `tag.class` and `tag#id` that the sheets hide, and that no rule shows again."""
    hidden: set[_Simple] = set()
    shown: set[str] = set()
    for sheet in sheets if any(map(_MAY_MATTER.search, sheets)) else ():
        named = _read_known(sheet) if len(sheet) <= _MOST_KNOWN else _read(sheet)
        hidden.update(named[0])
        shown.update(named[1])
    return frozenset(
        tag + name for tag, name in hidden if (name or tag) not in shown and (name or tag not in _NEVER_HIDDEN)
    )


def _read(sheet: str) -> _Named:
    """What the rules of a sheet hide, and what they show."""
    hidden: set[_Simple] = set()
    shown: set[str] = set()
    for selector, declarations in _top_rules(_COMMENT.sub(" ", sheet)):
        if hides(declarations):
            hidden.update(_named(selector))
        elif _SHOWN.search("".join(declarations.lower().split())):
            shown.update(name or tag for tag, name in _named(selector))
    return frozenset(hidden), frozenset(shown)


_read_known = lru_cache(maxsize=128)(_read)
"""The pages of a site have the same short sheets in them, so what was read is kept."""


def _named(selector: str) -> Iterator[_Simple]:
    """The tag and the class or id of each simple selector; "" for what it does not name."""
    for one in selector.split(","):
        found = _SIMPLE.match(one.strip())
        if found is not None:
            yield (found[1] or "").lower(), found[2] or ""


def _top_rules(sheet: str) -> Iterator[tuple[str, str]]:
    """Selector and declarations of each rule that is in no other one."""
    at, end = 0, len(sheet)
    for _ in range(MOST_RULES):
        opened = sheet.find("{", at)
        if opened < 0:
            return
        selector = sheet[at:opened].rpartition(";")[2].strip()
        closed = sheet.find("}", opened)
        inner = sheet.find("{", opened + 1)
        if inner < 0 or closed < inner:
            at = end if closed < 0 else closed + 1
            if not selector.startswith("@"):
                yield selector, sheet[opened + 1 : end if closed < 0 else closed]
        else:
            at = _end_of_block(sheet, opened)


def _end_of_block(sheet: str, opened: int) -> int:
    depth = 0
    for brace in re.compile(r"[{}]").finditer(sheet, opened):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return brace.end()
    return len(sheet)
