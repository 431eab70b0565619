"""Patterns of tags, and of what can hide tags, as a tokenizer reads them (13.2.5): any depth could be in it."""

import re
from collections.abc import Mapping
from typing import Final

AFTER_NAME: Final = rb"(?=[ \t\n\f\r/>])"
_NAME: Final = rb"[a-z][^ \t\n\f\r/>]*+"
_VALUE: Final = rb"\"[^\"]*+\"?|'[^']*+'?|[^ \t\n\f\r>]*+"
ATTRIBUTE: Final = rb"[^ \t\n\f\r/>][^ \t\n\f\r/>=]*+(?:[ \t\n\f\r]*+=[ \t\n\f\r]*+(?:" + _VALUE + rb"))?+"
_REST: Final = rb"[ \t\n\f\r]++|/(?!>)|" + ATTRIBUTE
COMMENT: Final = rb"!--(?:-?>|.*?(?:--!?>|\Z))|\?[^>]*+>?|!(?!--|\[cdata\[)[^>]*+>?|/(?=[^a-z])[^>]*+>?"
_SCRIPT_ENDS: Final = rb"/script" + AFTER_NAME
SCRIPT_TEXT: Final = (
    # A script may have a whole other script in a comment (13.2.5.20, script data double escaped state).
    rb"(?:[^<]++|<(?!!--|" + _SCRIPT_ENDS + rb")"
    rb"|<!(?=--)(?:(?!-->|</?script" + AFTER_NAME + rb").)*+"
    rb"(?:<script" + AFTER_NAME + rb"(?:(?!-->|<" + _SCRIPT_ENDS + rb").)*+"
    rb"(?:<" + _SCRIPT_ENDS + rb"(?:(?!-->|</?script" + AFTER_NAME + rb").)*+)?+)*+(?:-->)?+)*+"
)
_RAW_NAMES: Final = rb"iframe|noembed|noframes|noscript|style|textarea|title|xmp"
RAW_TEXTS: Final[Mapping[bytes, re.Pattern[bytes]]] = {
    b"plaintext": re.compile(rb".*", re.DOTALL),
    b"script": re.compile(SCRIPT_TEXT, re.DOTALL | re.IGNORECASE),
    **{
        name: re.compile(rb".*?(?=</" + name + AFTER_NAME + rb"|\Z)", re.DOTALL | re.IGNORECASE)
        for name in _RAW_NAMES.split(b"|")
    },
}
"""The elements whose content is text, and that content."""

TOKEN: Final = re.compile(
    rb"<(?:" + COMMENT + rb"|(?P<end>/?)(?P<name>" + _NAME + rb")"
    rb"(?P<rest>(?:" + _REST + rb")*+)/?>?|(?P<cdata>!\[cdata\[))",
    re.DOTALL | re.IGNORECASE,
)
"""A tag, a comment (without groups), or the beginning of a character section."""

SEPARATE: Final = re.compile(rb"[ \t\n\f\r/]*+" + ATTRIBUTE)
"""One attribute, with what is before it."""
