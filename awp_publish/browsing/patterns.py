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
_ANYWHERE, _IN_CLASS_ONLY, _NEVER = "\x02", "\x03", "\x04"
_KNOWN: Final = frozenset("^$\\.*+?()[]{}|/bBnrtvf0123456789ckxu")
_RESERVED: Final = frozenset("-&!#%,:;<=>@`~")
"""What may be escaped (ECMAScript, SyntaxCharacter), and what inside of a class only (ClassSetReservedPunctuator)."""
_FLAGS: Final = re.compile(r"\(\?[a-zA-Z-]+\)")
_DOUBLE: Final = r"(?!&&|!!|##|\$\$|%%|\*\*|\+\+|,,|\.\.|::|;;|<<|==|>>|\?\?|@@|\^\^|``|~~)"
_CHARACTER: Final = _DOUBLE + r"[^\[\](){}/|\-\x01\x04]"
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
    if len(pattern) > _LONGEST or not _is_read_by_browsers(pattern) or _compile(pattern) is None:
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


def _is_read_by_browsers(pattern: str) -> bool:
    """ECMAScript, flag `v`: `[\\w-]` and `[(]` need a backslash, `\\_` must have none, and `(?i)` is nothing."""
    rest = _CLASS.sub("", _ESCAPE.sub(_stand_in, pattern))
    return not {"[", "]", _IN_CLASS_ONLY, _NEVER} & set(rest) and _FLAGS.search(rest) is None


def _stand_in(escape: re.Match[str]) -> str:
    """One character for an escape: of many characters, good anywhere, good in a class, good nowhere."""
    if escape[1]:
        return _SET
    known = escape[0][1]
    return _ANYWHERE if known in _KNOWN else _IN_CLASS_ONLY if known in _RESERVED else _NEVER
