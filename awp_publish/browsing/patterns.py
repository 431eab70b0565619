"""Regular expressions of agents and pages.

jsonschema-rs includes an engine that runs in linear time (Rust's `regex`, as in the reference implementation). It has
no lookaround and no back references; patterns with those are not compiled. Python's `re` could hang for hours.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeAlias

import jsonschema_rs

Matches: TypeAlias = Callable[[str], bool]
_OPTIONS: Final = jsonschema_rs.RegexOptions(size_limit=1_000_000)
_MAX_PATTERN: Final = 1_000
_PART: Final = re.compile(r"\\.|[\[\]]", re.DOTALL)
_WORD: Final = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}"
_IN_CLASS: Final = {r"\d": r"\p{Nd}", r"\D": r"\P{Nd}", r"\w": _WORD}
_OUTSIDE: Final = {**_IN_CLASS, r"\w": f"[{_WORD}]", r"\W": f"[^{_WORD}]"}
# The syntax of ECMAScript with the flag `v`: each escape is first replaced by one character.
_ESCAPE: Final = re.compile(r"\\(?:([dDwWsS]|[pP]\{[^}]*\})|u\{[^}]*\}|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|.)", re.DOTALL)
_SET, _ANYWHERE, _IN_CLASS_ONLY, _NEVER = "\x01", "\x02", "\x03", "\x04"
"""An escape for several characters (`\\d`); for one that may be escaped anywhere; only in a class; nowhere."""
_KNOWN: Final = frozenset("^$\\.*+?()[]{}|/bBnrtvf0123456789ckxu")
_RESERVED: Final = frozenset("-&!#%,:;<=>@`~")
"""Characters that may be escaped (SyntaxCharacter), and those only in a class (ClassSetReservedPunctuator)."""
_FLAGS: Final = re.compile(r"\(\?[a-zA-Z-]+\)")
_DOUBLE: Final = r"(?!&&|!!|##|\$\$|%%|\*\*|\+\+|,,|\.\.|::|;;|<<|==|>>|\?\?|@@|\^\^|``|~~)"
_CHARACTER: Final = _DOUBLE + r"[^\[\](){}/|\-\x01\x04]"
_CLASS: Final = re.compile(rf"\[\^?(?:{_CHARACTER}-{_CHARACTER}|{_CHARACTER}|{_SET})*\]")


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> Matches | None:
    """Return a function that searches a text for a pattern, or None if the pattern is invalid or unsupported.

    As in Rust and Python, `\\d` and `\\w` are digits and letters of any script.
    """
    parts: list[str] = []
    end = depth = 0
    for match in _PART.finditer(pattern):
        part = match[0]
        parts += pattern[end : match.start()], (_IN_CLASS if depth else _OUTSIDE).get(part, part)
        depth = max(0, depth + (part == "[") - (part == "]"))
        end = match.end()
    return _compile("".join(parts) + pattern[end:])


def find_match(pattern: str, text: str) -> str | None:
    """Return the first match of a pattern (see `compile_pattern`) in a text, or None.

    The engine only reports whether there is a match. The end of the match is found by bisection; the match is then
    extended to the left step by step, and to the right by at most `_MOST_GROWTH` characters.
    """
    somewhere, begins, is_whole = (
        compile_pattern(variant) for variant in (pattern, f"^(?:{pattern})", f"^(?:{pattern})$")
    )
    if somewhere is None or begins is None or is_whole is None or not somewhere(text):
        return None
    low, high = 0, len(text)
    while low < high:  # the shortest prefix of the text that has a match
        middle = (low + high) // 2
        low, high = (low, middle) if somewhere(text[:middle]) else (middle + 1, high)
    end, start, high = low, 0, low
    while start < high:  # and the last position in it from which the pattern matches
        middle = (start + high + 1) // 2
        start, high = (middle, high) if somewhere(text[middle:end]) else (start, middle - 1)
    while start > 0 and begins(text[start - 1 :]):
        start -= 1
    most = min(len(text), end + _MOST_GROWTH)
    end = next((place for place in range(most, end, -1) if is_whole(text[start:place])), end)
    return text[start:end]


_MOST_GROWTH: Final = 200


@lru_cache(maxsize=256)
def compile_constraint(pattern: str) -> Matches | None:
    """Return a function that matches the `pattern` of an input to a whole text (HTML 4.10.5.3.6), or None if invalid.

    Browsers use the flag `v`, with which many older patterns are invalid: `[\\w-]` and `[(]` need a backslash, `\\_`
    must not have one, and `(?i)` is not allowed. Nested classes, which the flag introduced, are not checked.
    """

    def stand_in(escape: re.Match[str]) -> str:
        sign = escape[0][1]
        return _SET if escape[1] else _ANYWHERE if sign in _KNOWN else _IN_CLASS_ONLY if sign in _RESERVED else _NEVER

    if len(pattern) > _MAX_PATTERN:
        return None
    rest = _CLASS.sub("", _ESCAPE.sub(stand_in, pattern))
    if {"[", "]", _IN_CLASS_ONLY, _NEVER} & set(rest) or _FLAGS.search(rest) or _compile(pattern) is None:
        return None
    return _compile(f"^(?:{pattern})$")


def _compile(pattern: str) -> Matches | None:
    try:
        return jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=_OPTIONS).is_valid
    except ValueError:  # not a pattern, too large, or not valid Unicode
        return None
