"""Hints from the classes of an element."""

import re
from functools import lru_cache
from typing import Final

_HINT_WORDS: Final = {
    "primary": "primary|cta",
    "secondary": "secondary",
    "danger": "danger|destructive|delete",
    "warning": "warning|caution",
    "success": "success",
    "error": "error|invalid",
    "disabled": "disabled",
    "active": "active|current",
    "selected": "selected|checked",
    "hidden": "hidden|sr-only",
    "loading": "loading|spinner|skeleton",
    "collapsed": "collapsed|is-closed",
    "expanded": "expanded|is-open|show",
    "large": "lg|large|xl",
    "small": "sm|small|xs|mini",
    "card": "(?<!dis)card",
    "hero": "hero|jumbotron|banner",
    "modal": "modal|dialog|popup|overlay",
    "notification": "toast|snackbar|notification|alert",
    "badge": "badge|chip|tag|pill",
    "sticky": "sticky|fixed|pinned",
    "required": "required|mandatory",
}
_HINTS: Final = tuple(sorted((hint, re.compile(words)) for hint, words in _HINT_WORDS.items()))
MAX_CLASS_LENGTH: Final = 500
"""Characters of a `class` attribute that are examined."""


@lru_cache(maxsize=1_024)
def hints_of(classes: str) -> tuple[str, ...]:
    """Return the hints of a `class` attribute, sorted. Cached, because the pages of a site share their classes."""
    text = classes.lower()
    return tuple(hint for hint, pattern in _HINTS if pattern.search(text))
