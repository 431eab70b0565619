"""Whether a text is a regular expression, and what it matches.

JSON documents carry expressions of JavaScript's kind (ECMA-262). The Rust engine behind jsonschema-rs reads most of
them and always answers in bounded time, so it judges first and does all matching; some valid spellings it refuses,
and for those Python's reading is asked as well. Only what neither can compile is reported.
"""

from __future__ import annotations

import re
import warnings
from functools import lru_cache

from jsonschema_rs import Draft202012Validator, FancyRegexOptions

LONGEST = 5000
BACKTRACK_LIMIT = 100_000
SPELLINGS = (("[^]", r"[\s\S]"), ("[]", "(?!)"), ("(?<", "(?P<"), ("(?P<=", "(?<="), ("(?P<!", "(?<!"))
_NAMED_BACK_REFERENCE = re.compile(r"\\k<(\w+)>")


@lru_cache(maxsize=2048)
def is_pattern(pattern: str) -> bool:
    """Say whether a text can be compiled as a regular expression."""
    return len(pattern) > LONGEST or _compiled(pattern) is not None or _python_compiles(pattern)


def matches(pattern: str, text: str) -> bool | None:
    """Say whether an expression occurs in a text; None where that cannot be told."""
    validator = _compiled(pattern) if len(pattern) <= LONGEST else None
    if validator is None:
        return None
    try:
        return validator.is_valid(text)
    except ValueError:
        return None


@lru_cache(maxsize=2048)
def _compiled(pattern: str) -> Draft202012Validator | None:
    try:
        options = FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT)
        return Draft202012Validator({"pattern": pattern}, pattern_options=options)
    except ValueError:
        return None


def _python_compiles(pattern: str) -> bool:
    for theirs, ours in SPELLINGS:
        pattern = pattern.replace(theirs, ours)
    pattern = _NAMED_BACK_REFERENCE.sub(r"(?P=\1)", pattern)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True
