"""Conditions of style sheets, as usual readers fulfil them (Media Queries 5, CSS Conditional Rules 3).

Those are a person with a mouse and a window of 1,280 by 720 pixels, and one with a telephone of 375 by 667; neither has
particular wishes.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Final, TypeAlias

from awp_publish.pages.declarations import is_taken, pixels

MAX_DEPTH: Final = 8
"""Levels of parentheses."""

_Test: TypeAlias = Callable[[str], bool | None]
"""Returns whether a feature in parentheses is there, None if it is not known."""

_COMMON: Final = (
    "prefers-color-scheme:light scripting:enabled update:fast display-mode:browser scan:progressive color-gamut:srgb "
    "prefers-contrast:no-preference forced-colors:none prefers-reduced-transparency:no-preference inverted-colors:none "
    "prefers-reduced-data:no-preference prefers-reduced-motion:no-preference overflow-block:scroll resolution:1 "
    "-webkit-device-pixel-ratio:1 -webkit-transform-3d:1 color:8 monochrome:0 grid:0 color-index:0"
)
_WINDOW: Final = "width:1280 height:720 orientation:landscape hover:hover any-hover:hover pointer:fine"
_TELEPHONE: Final = "width:375 height:667 orientation:portrait hover:none any-hover:none pointer:coarse"
_READERS: Final = tuple(
    dict(feature.split(":") for feature in f"{_COMMON} {own}".split()) for own in (_WINDOW, _TELEPHONE)
)
_ABSENT: Final = ("none", "no-preference", "0")
_COMPARED: Final = {
    "<": float.__lt__,
    "<=": float.__le__,
    ">": float.__gt__,
    ">=": float.__ge__,
    "=": float.__eq__,
}
_RANGE: Final = re.compile(r"(?:([^<>=]+)([<>]=?|=))?\s*([-a-z]+)\s*(?:([<>]=?|=)([^<>=]+))?")
_MIRRORED: Final = str.maketrans("<>", "><")
_TYPE: Final = re.compile(r"(?:(only|not)\s+)?(?!not\b)([-a-z]+)(?:\s+and\b\s*(.*))?", re.DOTALL)


@lru_cache(maxsize=1_024)
def holds_media(media: str) -> bool | None:
    """Return whether a list of media queries holds: True for all readers, False for none, None for some."""
    if not media.strip():
        return True
    queries = [query.strip().lower() for query in re.split(r",(?![^(]*\))", media)]
    holding = [any(_holds_query(query, reader) for query in queries) for reader in _READERS]
    return all(holding) or (None if any(holding) else False)


def _holds_query(query: str, reader: Mapping[str, str]) -> bool:
    typed, test = _TYPE.fullmatch(query), partial(_has_feature, reader)
    if typed is None:
        return _holds(query, test, MAX_DEPTH) is True
    condition = _holds(typed[3], test, MAX_DEPTH) if typed[3] is not None else True
    return condition is not None and (typed[2] in ("all", "screen") and condition) != (typed[1] == "not")


@lru_cache(maxsize=256)
def holds_supports(condition: str) -> bool:
    """Return True if a browser has what `@supports` asks for."""
    return _holds(condition.strip().lower(), _is_supported, MAX_DEPTH) is True


def _holds(condition: str, test: _Test, depth: int) -> bool | None:
    """Return whether a condition with `not`, `and` and `or` holds, None if a part of it is not known."""
    parts, level, start = list[str](), 0, 0
    for sign in re.finditer(r"[()]|\b(?:and|or)\b", condition):
        level += (sign[0] == "(") - (sign[0] == ")")
        if level == 0 and sign[0].isalpha():
            parts += [condition[start : sign.start()].strip(), sign[0]]
            start = sign.end()
    last = condition[start:].strip()
    if depth == 0 or level or not last:
        return None
    if parts:
        holding = [_holds(part, test, depth - 1) for part in (*parts[::2], last)]
        return None not in holding and all(holding) if parts[1] == "and" else True in holding
    if last.startswith("not") and last[3:4] in (" ", "("):
        inner = _holds(last[3:].strip(), test, depth - 1)
        return None if inner is None else not inner
    if not last.startswith("("):
        return test(last)
    inside = last[1:-1].strip()
    return _holds(inside, test, depth - 1) if inside[:1] == "(" or inside.startswith("not") else test(inside)


def _has_feature(reader: Mapping[str, str], feature: str) -> bool | None:
    name, _, value = (part.strip() for part in feature.partition(":"))
    if value and name in reader and not reader[name][0].isdecimal():
        return value == reader[name]
    if bound := re.fullmatch(r"(-webkit-)?(min|max)-(?:device-(?!pixel))?(.+)", name):
        return _compare(reader, f"{bound[1] or ''}{bound[3]}", ">=" if bound[2] == "min" else "<=", value)
    if value:
        return _compare(reader, name, "=", value)
    ranged = _RANGE.fullmatch(feature.strip())
    if ranged is None or (ranged[2] is None and ranged[4] is None):
        return reader[name] not in _ABSENT if name in reader else None
    sides = [_compare(reader, ranged[3], ranged[2].translate(_MIRRORED), ranged[1])] if ranged[2] else []
    sides += [_compare(reader, ranged[3], ranged[4], ranged[5])] if ranged[4] else []
    return None if None in sides else all(sides)


def _compare(reader: Mapping[str, str], name: str, sign: str, value: str) -> bool | None:
    across, slash, down = value.partition("/")
    number = pixels(re.sub(r"(?<=\d)(?:dppx|x)\s*\Z", "", across))
    if name == "aspect-ratio" and number is not None:
        own = float(reader["width"]) / float(reader["height"])
        return _COMPARED[sign](own, number / ((pixels(down) if slash else 1.0) or 1.0))
    if number is None or not reader.get(name, "?")[0].isdecimal():
        return None
    return _COMPARED[sign](float(reader[name]), number)


def _is_supported(feature: str) -> bool | None:
    if feature.startswith("selector("):
        return "::" not in feature
    name, colon, value = (part.strip() for part in feature.partition(":"))
    return is_taken(name, value) if colon else False
