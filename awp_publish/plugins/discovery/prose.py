"""Text for Markdown and for one line."""

import re


def one_line(text: str) -> str:
    return " ".join(text.split())


def link_text(text: str) -> str:
    """Return a text for the brackets of a Markdown link that even pattern-based readers understand."""
    return one_line(text).replace("[", "(").replace("]", ")")


def first_sentence(text: str) -> str:
    """Return the first sentence of a description, up to a semicolon, with a full stop.

    It goes on after a dot before a small letter ("e.g. this").
    """
    line = one_line(text)
    sentence = re.match(r".+?(?:(?=;\s)|[.!?](?=\s[^a-z]|$))", line)
    words = sentence[0] if sentence else line
    return words if words.endswith(("!", "?")) else words.rstrip(".") + "."
