"""Text as Markdown: what would mean something there is escaped.

References are to CommonMark 0.31.2. Text is escaped no more than it has to be, because people and models read it raw.
"""

import re
from typing import Final

SPACES: Final = re.compile("[ \\t\\n\\f\\r\xa0]+")
_UNSEEN: Final = str.maketrans(dict.fromkeys("\xad\u200b\u2060\ufeff", None) | {"\x00": "\ufffd"})
"""Soft hyphens and what has no width: layout, not text."""

_SPECIAL: Final = re.compile(
    r"""[`~]|\\(?=[!-/:-@\[-`{-~]|\ ?$)"""
    r"""|\*(?!\ )|(?<!\ )\*"""
    r"""|(?<![^\W_])_|_(?![^\W_])"""  # within a word it means nothing (section 6.2, rules 3 and 4)
    r"""|<(?=[A-Za-z/!?]|$)"""
    r"""|&(?=\#|[A-Za-z][A-Za-z0-9]*(?:;|$)|$)"""
    r"""|\](?=[(\[:])"""
    r"""|(?<!\S)\[(?=[ xX]\](?!\S))"""  # the box of a task
)
_BRACKETS: Final = re.compile(r"[\[\]]")

_LINE_START: Final = re.compile(r"\#{1,6}(?= |$)|[-+*](?= |$)|>|[=-]+ *$|[|:-](?=[|: -]*$)")
_NUMBER: Final = re.compile(r"(\d{1,9})([.)])(?= |$)")


def collapse(text: str) -> str:
    """White space as HTML shows it."""
    return SPACES.sub(" ", text.translate(_UNSEEN))


def escape_text(text: str, in_brackets: bool = False) -> str:
    """A piece of running text. `in_brackets`, as in the text of a link, brackets have to be escaped as well."""
    escaped = _SPECIAL.sub(r"\\\g<0>", text)
    return _BRACKETS.sub(_escape_once, escaped) if in_brackets else escaped


def _escape_once(bracket: re.Match[str]) -> str:
    at = first = bracket.start()
    while first and bracket.string[first - 1] == "\\":
        first -= 1
    return bracket[0] if (at - first) % 2 else "\\" + bracket[0]


def escape_line(line: str) -> str:
    """A line of a paragraph, so that it begins no heading, list, quotation, rule or table (chapters 4 and 5)."""
    if found := _NUMBER.match(line):
        return f"{found[1]}\\{found[2]}{line[found.end() :]}"
    return "\\" + line if _LINE_START.match(line) else line


def code_span(text: str) -> str:
    """Text as code: fenced by more backticks than it has in a row (section 6.1)."""
    text = collapse(text).strip()
    if not text:
        return ""
    fence = "`" * (longest_run(text) + 1)
    pad = " " if text[0] == "`" or text[-1] == "`" else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def longest_run(text: str) -> int:
    """How many backticks follow one another at most."""
    return max((len(run) for run in re.findall("`+", text)), default=0)
