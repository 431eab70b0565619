"""Regular expressions of JSON documents.

JSON documents use JavaScript's regular expressions (ECMA-262). The Rust engine of jsonschema-rs supports most of them
and matches in bounded time, so it does all matching. For valid syntax that it rejects, Python's `re` is tried as
well; only what neither can compile is reported.
"""

import re
import warnings
from functools import lru_cache
from typing import Final

from jsonschema_rs import Draft202012Validator, FancyRegexOptions

_MAX_PATTERN: Final = 5000

_BACKTRACK_LIMIT: Final = 100_000

_PYTHON_SPELLINGS: Final = (("[^]", r"[\s\S]"), ("[]", "(?!)"), ("(?<", "(?P<"), ("(?P<=", "(?<="), ("(?P<!", "(?<!"))

_NAMED_BACK_REFERENCE: Final = re.compile(r"\\k<(\w+)>")


@lru_cache(maxsize=2048)
def is_pattern(pattern: str) -> bool:
    """Return True if a text can be compiled as a regular expression."""
    if len(pattern) > _MAX_PATTERN or _compiled(pattern) is not None:
        return True
    for theirs, ours in _PYTHON_SPELLINGS:
        pattern = pattern.replace(theirs, ours)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(_NAMED_BACK_REFERENCE.sub(r"(?P=\1)", pattern))
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def matches(pattern: str, text: str) -> bool | None:
    """Return True if an expression matches somewhere in a text; None if that cannot be decided."""
    validator = _compiled(pattern) if len(pattern) <= _MAX_PATTERN else None
    try:
        return validator.is_valid(text) if validator else None
    except ValueError:
        return None


@lru_cache(maxsize=2048)
def _compiled(pattern: str) -> Draft202012Validator | None:
    try:
        options = FancyRegexOptions(backtrack_limit=_BACKTRACK_LIMIT)
        return Draft202012Validator({"pattern": pattern}, pattern_options=options)
    except ValueError:
        return None
