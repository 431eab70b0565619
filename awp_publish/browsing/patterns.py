"""Regular expressions from strangers, by an engine that cannot be made slow.

jsonschema-rs brings one that runs in linear time (Rust's `regex`, the engine of the reference implementation too). It
has no lookaround and no back references: a pattern with those is not compiled. Python's `re` could hang for hours.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeAlias

import jsonschema_rs

_OPTIONS: Final = jsonschema_rs.RegexOptions(size_limit=1_000_000)
_LONGEST: Final = 1_000
_ESCAPE: Final = re.compile(r"\\(?:([dDwWsS]|[pP]\{[^}]*\})|u\{[^}]*\}|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|.)", re.DOTALL)
_SET: Final = "\x01"
"""Stands for an escape that means many characters, such as `\\d`."""
_DOUBLE: Final = r"(?!&&|!!|##|\$\$|%%|\*\*|\+\+|,,|\.\.|::|;;|<<|==|>>|\?\?|@@|\^\^|``|~~)"
_CHARACTER: Final = _DOUBLE + r"[^\[\](){}/|\-\x01]"
_CLASS: Final = re.compile(rf"\[\^?(?:{_CHARACTER}-{_CHARACTER}|{_CHARACTER}|{_SET})*\]")
_PART: Final = re.compile(r"\\.|[\[\]]", re.DOTALL)
_WORD: Final = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}"
_IN_CLASS: Final = {r"\d": r"\p{Nd}", r"\D": r"\P{Nd}", r"\w": _WORD}
_OUTSIDE: Final = {**_IN_CLASS, r"\w": f"[{_WORD}]", r"\W": f"[^{_WORD}]"}

Matches: TypeAlias = Callable[[str], bool]


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> Matches | None:
    """Whether a text has a match anywhere in it, as a function; None for what is not such a pattern.

    As in Rust and Python, `\\d` and `\\w` are digits and letters of any script.
    """
    return _compile(_widen(pattern))


@lru_cache(maxsize=256)
def compile_constraint(pattern: str) -> Matches | None:
    """Whether a text is matched as a whole by the `pattern` of an input (HTML 4.10.5.3.6); None where there is none.

    Browsers read it with the flag `v`, under which many a pattern that was good before is none. Classes inside of
    classes, which that flag brought, are not judged.
    """
    if len(pattern) > _LONGEST or not _has_sound_classes(pattern) or _compile(pattern) is None:
        return None
    return _compile(f"^(?:{pattern})$")


def _compile(pattern: str) -> Matches | None:
    try:
        validator = jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=_OPTIONS)
    except ValueError:  # not a pattern, too large, or not even text
        return None
    return validator.is_valid


def _widen(pattern: str) -> str:
    parts: list[str] = []
    end = depth = 0
    for match in _PART.finditer(pattern):
        part = match[0]
        parts += pattern[end : match.start()], (_IN_CLASS if depth else _OUTSIDE).get(part, part)
        depth = max(0, depth + (part == "[") - (part == "]"))
        end = match.end()
    return "".join(parts) + pattern[end:]


def _has_sound_classes(pattern: str) -> bool:
    """ECMAScript, ClassSetSyntaxCharacter and ClassSetReservedDoublePunctuator: `[\\w-]` and `[(]` need a backslash."""
    rest = _CLASS.sub("", _ESCAPE.sub(lambda escape: _SET if escape[1] else "\x02", pattern))
    return "[" not in rest and "]" not in rest
