"""Text as Markdown: escapes characters that are markup (CommonMark 0.31.2).

No more than necessary is escaped, because people and models read the source.
"""

import re
from typing import Final

_WHITE: Final = " \t\n\f\r\xa0"
_SPACES: Final = re.compile("[ \\t\\n\\f\\r\xa0]+")
_UNSEEN: Final = str.maketrans(dict.fromkeys("\xad\u200b\u2060\ufeff", None) | {"\x00": "\ufffd"})
"""Soft hyphens and characters without width, which are layout and not text."""

_UNUSUAL: Final = re.compile("[\x00\t\f\r\xa0\xad\u200b\u2060\ufeff]|[ \n][ \n]")

_SPECIAL: Final = re.compile(
    r"""[`~]|\\(?=[!-/:-@\[-`{-~]|\ ?$)"""
    r"""|\*(?!\ [^ ])|(?<![^ ]\ )\*"""  # unless words stand on both sides, apart from it
    r"""|(?<![^\W_])_|_(?![^\W_])"""  # not within a word, where it is text (section 6.2, rules 3 and 4)
    r"""|<(?=[A-Za-z/!?]|\ ?$)"""  # what follows the white space at an end is not known here
    r"""|&(?=\#|[A-Za-z][A-Za-z0-9]*(?:;|\ ?$)|\ ?$)"""
    r"""|\](?=[(\[:])"""
    r"""|(?<!\S)\[(?=[ xX]\](?!\S))"""  # the box of a task
)
_ORDINARY: Final = re.compile("(?: ?[^\x00-\x20\xa0\xad\u200b\u2060\ufeff`~\\\\*_<&\\[\\]]++)*+ ?")
"""A text that is written as it is."""

_MAY_BE_SPECIAL: Final = re.compile(r"[`~\\*_<&\[\]]")
_BRACKETS: Final = re.compile(r"(?<!\\)\\*+[\[\]]")
"""A bracket with the backslashes before it; an odd number of them escapes it already."""


_LINE_START: Final = re.compile(r"\#{1,6}(?= |$)|[-+*](?= |$)|>|[=-]+ *$|[|:-](?=[|: -]*$)")
_NUMBER: Final = re.compile(r"(\d{1,9})([.)])(?= |$)")


def collapse(text: str) -> str:
    """Return a text with white space collapsed as HTML does."""
    if _UNUSUAL.search(text) is None:
        return text.replace("\n", " ")
    return _SPACES.sub(" ", text.translate(_UNSEEN))


def write_text(text: str, in_brackets: bool = False) -> str:
    """Return a text of the page as running text: collapsed and escaped."""
    if _ORDINARY.fullmatch(text) is not None:  # as most texts are
        return text
    if not text.strip(_WHITE):
        return " " if text else ""
    return escape_text(collapse(text), in_brackets)


def escape_text(text: str, in_brackets: bool = False) -> str:
    """Escape running text. `in_brackets`, as in the text of a link, brackets are escaped as well."""
    if _MAY_BE_SPECIAL.search(text) is None:
        return text
    escaped = _SPECIAL.sub(lambda found: "\\" + found[0], text)
    if not in_brackets:
        return escaped
    return _BRACKETS.sub(lambda found: found[0] if len(found[0]) % 2 == 0 else "\\" + found[0], escaped)


def escape_line(line: str) -> str:
    """Escape a line of a paragraph that would begin a heading, list, quotation, rule or table (chapters 4 and 5)."""
    if found := _NUMBER.match(line):
        return f"{found[1]}\\{found[2]}{line[found.end() :]}"
    return "\\" + line if _LINE_START.match(line) else line


def code_span(text: str) -> str:
    """Return text as a code span, with a fence longer than any run of backticks in it (section 6.1)."""
    text = collapse(text).strip()
    if not text:
        return ""
    fence = fence_for(text, 1)
    pad = " " if text[0] == "`" or text[-1] == "`" else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def fence_for(text: str, least: int) -> str:
    """Return a fence longer than any run of backticks in a text."""
    return "`" * max(least, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
