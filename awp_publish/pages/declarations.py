"""Reads CSS declarations as far as they hide something."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, TypeAlias

from awp_publish.pages.selectors import unescape

Declarations: TypeAlias = Mapping[str, tuple[str, bool]]
"""By property: its value in lower case, and whether it is important."""


COMMENTS: Final = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_PART: Final = re.compile(r"""(?:[^;"'(]|"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?|\([^)]*\)?)+""", re.DOTALL)
_IMPORTANT: Final = re.compile(r"\s*!\s*important\s*\Z")
_DISPLAYS: Final = re.compile(
    r"(?:none|contents|block|inline|flow|flow-root|flex|grid|table|ruby|list-item|run-in|math|inherit|initial|unset|"
    r"revert|revert-layer|-webkit-(?:inline-)?(?:box|flex)|(?:inline|table|ruby)-[a-z-]+)(?: [a-z-]+)*"
)
_NUMBER: Final = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?"
_LENGTH: Final = re.compile(rf"({_NUMBER})([a-z]*|%)")
_FUNCTION: Final = re.compile(r"([a-z0-9-]+)\(([^()]*)\)")
_MAY_HIDE: Final = re.compile(
    r":(?:(?<=y:)\s*(?:none|hidden|collapse)|(?<=city:|size:|ight:|idth:|cale:)\s*(?:[-+.]*0|\S*e-)|\s*-"
    r"|(?<=clip:|path:|form:|lter:)|(?<=\s:))|\\|/\*"
)
"""Ends of properties with values that may hide; what is written in an unusual way may always."""


def may_hide(text: str) -> bool:
    """Return False if declarations cannot hide anything: a quick test, which most of them do not pass."""
    return _MAY_HIDE.search(text.lower()) is not None


FAR: Final = -900.0
"""Pixels from which something is beside every screen."""

_PIXELS: Final = {"": 1.0, "px": 1.0, "em": 16.0, "rem": 16.0, "vw": 10.0, "vh": 8.0, "%": 1.0, "pt": 1.33, "cm": 37.8}
SIZES: Final = ("height", "width", "max-height", "max-width")
SIDES: Final = ("left", "right", "top", "bottom")


def read_declarations(text: str) -> dict[str, tuple[str, bool]]:
    """Return the declarations of a block: of several for one property the last important one, or else the last."""
    found: dict[str, tuple[str, bool]] = {}
    for part in _PART.findall(COMMENTS.sub(" ", text)):
        name, colon, value = part.partition(":")
        name, value = unescape(name).strip().lower(), " ".join(unescape(value).lower().split())
        plain = _IMPORTANT.sub("", value)
        is_important = plain != value
        if not colon or (name == "display" and not _DISPLAYS.fullmatch(plain)):
            continue
        if name not in found or is_important or not found[name][1]:
            found[name] = plain, is_important
    return found


def _number(text: str) -> float | None:
    """Return a number or a length in pixels, roughly; None if it is neither."""
    found = _LENGTH.fullmatch(text.strip())
    if found is None or found[2] not in _PIXELS:
        return None
    return float(found[1]) * _PIXELS[found[2]]


def _is_zero(text: str) -> bool:
    found = _LENGTH.fullmatch(text.strip())
    return found is not None and float(found[1]) <= 0


def _functions(text: str) -> list[tuple[str, list[str]]]:
    return [(name, re.split(r"[\s,]+", inner.strip())) for name, inner in _FUNCTION.findall(text)]


def _is_flat(transform: str) -> bool:
    for name, given in _functions(transform):
        if name in ("scale", "scalex", "scaley", "scale3d") and any(map(_is_exactly_zero, given[:2])):
            return True
        if name == "matrix" and len(given) == 6 and all(map(_is_exactly_zero, given[:4])):
            return True
        if name.startswith("translate") and any((_number(one) or 0.0) <= FAR for one in given):
            return True
    return False


def _is_exactly_zero(text: str) -> bool:
    found = _LENGTH.fullmatch(text.strip())
    return found is not None and float(found[1]) == 0


def _is_clipped(path: str) -> bool:
    """Return True for a `clip-path` without an area."""
    for name, given in _functions(path):
        if name == "inset":
            edges = [one for one in given if one != "round"]
            edges = [edges[0], *(edges[1:] or edges[:1])]
            sides = [float(found[1]) for one in edges if (found := _LENGTH.fullmatch(one)) and found[2] == "%"]
            if len(sides) == len(edges) and (min(sides) >= 50 or sides[0] >= 100):
                return True
        is_point = name == "polygon" and all(map(_is_exactly_zero, given))
        if is_point or (name in ("circle", "ellipse") and _is_zero(given[0])):
            return True
    return False


def hides(given: Declarations) -> bool:
    """Return True if declarations hide their element from everybody who looks at the page (SOM 1.0, section 6.2)."""

    def of(name: str) -> str:
        return given[name][0] if name in given else ""

    if of("display") == "none" or of("visibility") in ("hidden", "collapse") or of("content-visibility") == "hidden":
        return True
    if _is_zero(of("opacity")) or _is_zero(of("font-size")):
        return True
    if of("clip-path") and _is_clipped(of("clip-path")):
        return True
    if any(name == "opacity" and _is_zero(inner[0]) for name, inner in _functions(of("filter"))):
        return True
    if any(map(_is_exactly_zero, of("scale").split())) or _is_flat(of("transform")):
        return True
    overflow = (of("overflow"), of("overflow-x"), of("overflow-y"))
    if any("hidden" in one or "clip" in one for one in overflow) and any(_is_zero(of(name)) for name in SIZES):
        return True
    if of("position") in ("absolute", "fixed"):
        for name, edges in _functions(of("clip")):
            numbers = [_number(edge) for edge in edges]
            if name == "rect" and len(numbers) == 4 and None not in numbers:
                top, right, bottom, left = (edge or 0.0 for edge in numbers)
                if top >= bottom or left >= right:
                    return True
        if any((_number(of(name)) or 0.0) <= FAR for name in SIDES):
            return True
    return (_number(of("margin-left")) or 0.0) <= FAR


@lru_cache(maxsize=1_024)
def style_hides(style: str) -> bool:
    """Return True if a `style` attribute hides its element."""
    return may_hide(style) and hides(read_declarations(style))
