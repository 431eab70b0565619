"""Reads CSS declarations as far as they hide something."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Final, TypeAlias

from awp_publish.pages.selectors import unescape

Declarations: TypeAlias = Mapping[str, tuple[str, bool]]
"""By property: its value in lower case, and whether it is important."""


COMMENTS: Final = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_PART: Final = re.compile(r"""(?:[^;"'(]|"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?|\([^)]*\)?)+""", re.DOTALL)
_IMPORTANT: Final = re.compile(r"\s*!\s*important\s*\Z", re.IGNORECASE)
_SPACE: Final = re.compile(r"[ \t\r\n\f]+")
_WIDE: Final = "inherit|initial|unset|revert|revert-layer|.*var\\(.*"
_LENGTH: Final = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)([a-z]*|%)")
_NUMBER: Final = r"\+?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?"
_VALID: Final = {
    "display": re.compile(
        r"(?:none|contents|block|inline|flow|flow-root|flex|grid|table|ruby|list-item|run-in|math|-webkit-(?:inline-)?"
        r"(?:box|flex)|inline-(?:block|flex|grid|table)|ruby-text|"
        rf"table-(?:row|row-group|header-group|footer-group|column|column-group|cell|caption)|{_WIDE})(?: [a-z-]+)*"
    ),
    "visibility": re.compile(rf"visible|hidden|collapse|{_WIDE}"),
    "opacity": re.compile(rf"-?{_NUMBER}%?|(?:calc|min|max|clamp)\(.*|{_WIDE}"),
    "font-size": re.compile(
        rf"{_NUMBER}(?:[a-z]+|%)|0|[a-z-]*(?:small|medium|large|smaller|larger|math)|\w+\(.*|{_WIDE}"
    ),
}
"""What browsers take as the value of a property; anything else they drop."""

_FUNCTION: Final = re.compile(r"([a-z0-9-]+)\(((?:[^()]|\([^()]*\))*)\)")
_MAY_HIDE: Final = re.compile(
    r":(?:(?<=y:)\s*(?:none|hidden|collapse|table-)|(?<=city:|size:|ight:|idth:|cale:)\s*(?:[-+.]*0|\.\d|1px|\S*e-)|\s*-"
    r"|(?<=cale:|clip:|path:|form:|lter:|tate:|late:)|(?<=left:)\s*\d{3}|(?<=(?<!-)top:)\s*\d{3}|(?<=ight:|ttom:)\s*\d{3}"
    r"|(?<=font:)\s*\S*\b0|(?<=nset:|rgin:)[^;]{0,60}-\d{3}|(?<=dent:)\s*\d{3}|(?<=\s:)"
    r"|(?<=ity:|lay:|ale:|orm:|ize:|eft:|ght:|top:|ent:)[^;]{0,60}\b(?:var|calc|min|max|clamp)\()|\\|/\*"
)
"""Ends of properties with values that may hide; what is written in an unusual way may always."""


def may_hide(text: str) -> bool:
    """Return False if declarations cannot hide anything: a quick test, which most of them do not pass."""
    return _MAY_HIDE.search(text.lower()) is not None


FAR: Final = -900.0
"""Pixels from which something is beside every screen."""

_FAR_MOVED: Final = -5_000.0
"""The same for a `transform`, with which carousels show their later slides."""

_CLEAR: Final = 0.004
"""An opacity, or a scale, of which nothing is seen."""

_PIXELS: Final = {
    "": 1.0,
    "px": 1.0,
    "em": 16.0,
    "rem": 16.0,
    "ex": 8.0,
    "ch": 8.0,
    "vw": 12.8,
    "vh": 7.2,
    "%": 1.0,
    "pt": 4 / 3,
    "pc": 16.0,
    "cm": 37.8,
    "mm": 3.78,
    "in": 96.0,
    "q": 0.945,
}
SIZES: Final = ("height", "width", "max-height", "max-width")
SIDES: Final = ("left", "right", "top", "bottom")
_EDGES: Final = ("top", "right", "bottom", "left")
_ALIASES: Final = {
    "-webkit-transform": "transform",
    "-webkit-clip-path": "clip-path",
    "-webkit-filter": "filter",
    "block-size": "height",
    "inline-size": "width",
    "max-block-size": "max-height",
    "max-inline-size": "max-width",
    "inset-inline-start": "left",
    "inset-inline-end": "right",
    "inset-block-start": "top",
    "margin-inline-start": "margin-left",
    "margin-block-start": "margin-top",
    "-webkit-animation": "animation",
    "animation-name": "animation",
    "-webkit-transition": "transition",
    "transition-property": "transition",
    "min-block-size": "min-height",
    "min-inline-size": "min-width",
}
_GROUPS: Final = (
    ("display", "overflow", "height", "width", "padding", "block-size", "inline-size"),
    ("position", "left", "right", "top", "bottom", "inset", "margin", "width", "clip"),
    ("animation", "opacity", "filter", "rotate", "scale", "transform", "translate"),
    ("opacity", "pointer-events", "position", "transition", "transform", "translate", "visibility"),
    ("visibility", "font", "text-indent", "overflow"),
    ("clip-path",),
    ("content-visibility",),
)
"""Words of properties that together decide whether something is seen."""

_RELEVANT: Final = (
    "animation bottom clip clip-path content-visibility display filter font-size height left margin-left margin-top "
    "max-height max-width min-height min-width opacity overflow-x overflow-y padding-bottom padding-left padding-right "
    "padding-top pointer-events position right rotate scale text-indent top transform transition translate visibility "
    "width"
)
RELEVANT: Final = frozenset(_RELEVANT.split())
"""Properties that may matter to whether something is seen."""

TOGETHER: Final = {
    name: {
        other
        for group in _GROUPS
        if any(word in name for word in group)
        for other in RELEVANT
        if any(word in other for word in group)
    }
    for name in RELEVANT
}
"""For each property, those that matter together with it."""


def _expanded(name: str, value: str) -> Iterator[tuple[str, str]]:
    """Yield the properties that a declaration sets, as far as they are relevant."""
    if name in ("inset", "margin", "padding"):
        edges = _SPACE.split(value)
        edges += edges[:1] if len(edges) == 1 else []
        edges += edges[len(edges) - 2 :] if len(edges) == 2 else edges[1:2] if len(edges) == 3 else []
        for edge, length in zip(_EDGES, edges, strict=False):
            yield edge if name == "inset" else f"{name}-{edge}", length
    elif name == "overflow":
        parts = value.split()
        yield "overflow-x", parts[0] if parts else ""
        yield "overflow-y", parts[-1] if parts else ""
    elif name == "font":
        if size := re.search(rf"(?:^|\s)({_NUMBER}(?:[a-z]+|%)|0)(?:\s*/\s*\S+)?\s+\S", value):
            yield "font-size", size[1]
        elif re.search(r"(?:small|medium|large|smaller|larger)(?:\s*/\s*\S+)?\s+\S|^[a-z-]+$", value):
            yield "font-size", "medium"
    elif name == "all":
        yield from ((reset, "unset") for reset in RELEVANT)
    else:
        yield name, value


_FOREIGN: Final = re.compile(r"-(?:moz|ms|o|khtml)-")


def is_taken(name: str, value: str) -> bool:
    """Return False if browsers drop a declaration because they do not know it."""
    return value != "" and not _FOREIGN.match(name) and (name not in _VALID or bool(_VALID[name].fullmatch(value)))


def read_declarations(text: str) -> dict[str, tuple[str, bool]]:
    """Return the declarations of a block: of several for one property the last important one, or else the last.

    Shorthands stand as the properties that they set, and what browsers do not take is left out.
    """
    found: dict[str, tuple[str, bool]] = {}
    for part in _PART.findall(COMMENTS.sub(" ", text)):
        name, colon, value = part.partition(":")
        name, value = name.strip(), _SPACE.sub(" ", value).strip(" ")
        if not name.startswith("--"):  # custom properties are in upper and lower case
            name = unescape(name).lower()
            name = _ALIASES.get(name, name)
        value = value if name == "content" else unescape(value).lower()
        plain = _IMPORTANT.sub("", value)
        is_important = plain != value
        if not colon:
            continue
        for each, value in _expanded(name, plain):
            if each in _VALID and not _VALID[each].fullmatch(value):
                continue
            if each not in found or is_important or not found[each][1]:
                found[each] = value, is_important
    return found


_INNERMOST: Final = re.compile(r"(calc|min|max|clamp|)\(([^()]*)\)")
_SIGN: Final = re.compile(r"\s+([-+])\s+")
_MAX_SUM: Final = 200
"""Characters of a length that is computed."""


@lru_cache(maxsize=1_024)
def pixels(text: str) -> float | None:
    """Return a number or a length in pixels, roughly; None if it is neither."""
    text = text.strip()
    while len(text) <= _MAX_SUM and (function := _INNERMOST.search(text)) is not None:
        numbers = list(map(_sum, function[2].split(",")))
        known = [number for number in numbers if number is not None]
        if len(known) < len(numbers):
            return None
        if function[1] == "clamp":
            number = sorted(known)[len(known) // 2]
        else:
            number = min(known) if function[1] == "min" else max(known)
        text = f"{text[: function.start()]}{number:.6f}{text[function.end() :]}"
    return _sum(text)


def _sum(text: str) -> float | None:
    total, sign = 0.0, 1.0
    for place, term in enumerate(_SIGN.split(text.strip())):
        if place % 2:
            sign = -1.0 if term == "-" else 1.0
            continue
        for factor in term.split("*"):
            found = _LENGTH.fullmatch(factor.strip())
            if found is None or found[2] not in _PIXELS:
                return None
            sign *= float(found[1]) * _PIXELS[found[2]]
        total += sign
    return total


def _is_zero(text: str, most: float = 0.0) -> bool:
    number = pixels(text) if text else None
    return number is not None and number <= most


def _is_flat(text: str) -> bool:
    number = pixels(text)
    return number is not None and abs(number) <= _CLEAR


def _functions(text: str) -> Iterator[tuple[str, list[str]]]:
    for name, inner in _FUNCTION.findall(text):
        yield name, [part for part in re.split(r"[\s,]+(?![^()]*\))", inner.strip()) if part]


_MATRICES: Final = {"matrix": (0, 1, 2, 3, 4, 5), "matrix3d": (0, 1, 4, 5, 12, 13)}
"""Where six numbers of a plane are among those of a matrix."""


def _is_transformed_away(transform: str) -> bool:
    for name, params in _functions(transform):
        if name.startswith("scale") and any(map(_is_flat, params)):
            return True
        if name in ("rotatex", "rotatey") and params[:1] in (["90deg"], ["-90deg"], ["270deg"], [".25turn"]):
            return True
        if name in _MATRICES and len(params) > max(_MATRICES[name]):
            numbers = [pixels(params[place]) or 0.0 for place in _MATRICES[name]]
            if abs(numbers[0] * numbers[3] - numbers[1] * numbers[2]) <= _CLEAR**2 or min(numbers[4:]) <= _FAR_MOVED:
                return True
        if name.startswith("translate") and any((pixels(param) or 0.0) <= _FAR_MOVED for param in params):
            return True
    return False


def _is_clipped(path: str) -> bool:
    """Return True for a `clip-path` without an area."""
    for name, params in _functions(path):
        if name == "inset":
            edges = params[: params.index("round")] if "round" in params else params
            edges += edges[:1] if len(edges) == 1 else []
            edges += edges[:2] if len(edges) == 2 else edges[1:2] if len(edges) == 3 else []
            sides = [pixels(edge) if edge.endswith(("%", ")")) or edge == "0" else 0.0 for edge in edges]
            if len(sides) == 4 and max((sides[0] or 0) + (sides[2] or 0), (sides[1] or 0) + (sides[3] or 0)) >= 100:
                return True
        elif name == "polygon":
            numbers = [pixels(param) or 0.0 for param in params if param not in ("nonzero", "evenodd")]
            corners = list(zip(numbers[::2], numbers[1::2], strict=False))
            beside = corners[1:] + corners[:1]
            if abs(sum(x * b - a * y for (x, y), (a, b) in zip(corners, beside, strict=True))) <= _CLEAR:
                return True
        elif name in ("circle", "ellipse"):
            radii = params[: params.index("at")] if "at" in params else params
            if any(map(_is_zero, radii)):
                return True
        elif (name == "xywh" and any(map(_is_zero, params[2:4]))) or (
            name == "rect" and len(params) >= 4 and all(map(_is_flat, params[:4]))
        ):
            return True
    return False


def _is_cut(rectangle: str) -> bool:
    """Return True for a `clip` without an area."""
    for name, params in _functions(rectangle):
        edges = [pixels(param) for param in params]
        if name == "rect" and len(edges) == 4 and None not in edges:
            top, right, bottom, left = (edge or 0.0 for edge in edges)
            return top >= bottom or left >= right
    return False


_MOVES: Final = frozenset(("opacity", "transform", "filter", "scale", "rotate", "translate"))


_UNRENDERED: Final = ("none", "table-column", "table-column-group")


def is_rendered(declarations: Declarations) -> bool:
    """Return False if declarations take their element from everybody, also from those who hear the page."""
    declared = {
        name: declarations[name][0] for name in ("display", "content-visibility", "visibility") if name in declarations
    }
    return (
        declared.get("display") not in _UNRENDERED
        and declared.get("content-visibility") != "hidden"
        and declared.get("visibility") not in ("hidden", "collapse")
    )


FADES: Final = frozenset(("opacity", "visibility"))
"""Properties with which scripts show a page once it is loaded."""


def is_faded(declarations: Declarations) -> bool:
    """Return True if declarations make their element transparent or invisible, where it keeps its place."""
    is_transparent = "opacity" in declarations and _is_zero(declarations["opacity"][0], _CLEAR)
    return is_transparent or hides_text("visibility", declarations) is True


def hides_box(declarations: Declarations) -> bool:
    """Return True if declarations hide their element with everything in it from everybody who looks at the page.

    See SOM 1.0, section 6.2. What an animation begins with is not what is seen.
    """

    def of(name: str) -> str:
        return declarations[name][0] if name in declarations else ""

    display = of("display")
    if display in _UNRENDERED or of("content-visibility") == "hidden":
        return True
    if display == "contents":
        return False
    if of("clip-path") and _is_clipped(of("clip-path")):
        return True
    if not _MOVES.isdisjoint(declarations) and of("animation") in ("", "none", "unset", "initial"):
        if _is_transformed_away(of("transform")) or (_is_zero(of("opacity"), _CLEAR) and not _appears(of)):
            return True
        if any(name == "opacity" and _is_zero(params[0]) for name, params in _functions(of("filter")) if params):
            return True
        if any(map(_is_flat, of("scale").split())) or of("rotate") in ("x 90deg", "y 90deg", "90deg x", "90deg y"):
            return True
        if any((pixels(length) or 0.0) <= _FAR_MOVED for length in of("translate").split()):
            return True
    if display != "inline" and ("overflow-x" in declarations or "overflow-y" in declarations) and _is_closed(of):
        return True
    wide = pixels(of("width")) or 0.0  # carousels are moved, too
    position = of("position")
    if position in ("absolute", "fixed"):
        if _is_cut(of("clip")) or any(_is_beyond(of(side), FAR, wide) for side in SIDES):
            return True
        if any((pixels(of(side)) or 0.0) >= -2 * FAR for side in ("right", "bottom")):
            return True
        if position == "fixed" and any(_leaves_screen(of(side), side) for side in SIDES):
            return True
    if position == "relative" and any(_is_beyond(of(side), _FAR_MOVED, wide) for side in SIDES):
        return True
    return any(_is_beyond(of(side), FAR, wide) for side in ("margin-left", "margin-top"))


_FADES: Final = re.compile(r"(?:^|[\s,])(?:opacity|all)\b|^[\d.]+m?s")


def _appears(of: Callable[[str], str]) -> bool:
    """Return True if what is transparent is in the page's flow and moves or fades in when it is scrolled to.

    What is laid over the page or takes no clicks, such as a menu, waits for something else.
    """
    if of("position") in ("absolute", "fixed") or of("pointer-events") == "none":
        return False
    is_moved = any(of(name) not in ("", "none") for name in ("transform", "translate"))
    return is_moved or _FADES.search(of("transition")) is not None


def _is_beyond(length: str, far: float, wide: float) -> bool:
    number = pixels(length) if length else None
    return number is not None and number <= far and number + wide <= 0


def _leaves_screen(length: str, side: str) -> bool:
    number = pixels(length)
    if number is None or side in ("right", "bottom"):
        return number is not None and length.endswith("%") and number <= -100
    return abs(number) >= 100 if length.endswith("%") else number >= 1_280


_AXES: Final = (
    ("height", "overflow-y", "overflow-x", ("min-height", "padding-top", "padding-bottom")),
    ("width", "overflow-x", "overflow-y", ("min-width", "padding-left", "padding-right")),
)
"""A size, what cuts off along it, what does so along the other one, and what makes room all the same."""


def _is_closed(of: Callable[[str], str]) -> bool:
    """Return True if an element cuts off what is in it, and has no room."""
    is_dot = all(_is_zero(of(size), 1.0) or _is_zero(of(f"max-{size}"), 1.0) for size in ("height", "width"))
    for size, own, other, rooms in _AXES:
        if of(own) != "clip" and not {of(own), of(other)} & {"hidden", "auto", "scroll"}:
            continue
        sizes = (of(f"max-{size}"), "" if size == "height" and of(size).endswith("%") else of(size))
        if (is_dot or any(map(_is_zero, sizes))) and all(_is_zero(of(room) or "0", 1.0) for room in rooms):
            return True
    return False


INHERITED: Final = ("visibility", "font-size", "text-indent")
"""Properties that hide text, also that in other elements unless these declare something else."""


def hides_text(name: str, declarations: Declarations) -> bool | None:
    """Return whether one of these properties hides the text of its element; None if nothing is declared about it."""
    value = declarations[name][0] if name in declarations else "inherit"
    if value in ("inherit", "unset"):
        return None
    if name == "visibility":
        return value in ("hidden", "collapse")
    if name == "font-size":
        is_relative = value.endswith(("em", "%", "er")) and not value.endswith("rem")
        return _is_zero(value, 0.5) or (None if is_relative else False)
    if value.endswith("%"):
        is_cut = any(declarations[side][0] == "hidden" for side in ("overflow-x", "overflow-y") if side in declarations)
        return is_cut and not _is_zero(value, 99.0)
    indent = pixels(value)
    return indent is not None and not FAR < indent <= -2 * FAR
