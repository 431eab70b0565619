"""Hints from the classes of an element, by the words of SOM 1.0, section 5, wherever in a class they are."""

import re
from functools import lru_cache
from typing import Final

_TRIGGERS: Final = {
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
_PATTERNS: Final = tuple(sorted((hint, re.compile(words)) for hint, words in _TRIGGERS.items()))
MOST_CHARACTERS: Final = 500
"""Characters of a `class` attribute that are read."""


@lru_cache(maxsize=1_024)
def hints_of(classes: str) -> tuple[str, ...]:
    """The hints of a `class` attribute, sorted. The pages of a site have the same classes, so they are kept."""
    text = classes.lower()
    return tuple(hint for hint, pattern in _PATTERNS if pattern.search(text))
