"""HTML from a file of templates with placeholders, and single elements."""

import re
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import cast


class Html(str):
    """Text that is HTML, and is not escaped again."""

    __slots__ = ()


class Pieces:
    """The pieces of a template file, by name.

    Each begins with its name in a comment. Its lines are stripped and joined.
    """

    def __init__(self, file: Path) -> None:
        _, *pieces = re.split(r"<!-- (\w+) -->", file.read_text("utf-8"))
        lines = ([re.split(r"\$(\w+)", line.strip()) for line in piece.splitlines()] for piece in pieces[1::2])
        self._pieces = dict(zip(pieces[::2], lines, strict=True))

    def fill(self, piece: str, /, **values: object) -> Html:
        """Fill in a piece. Lines with a value of None are left out, and values other than `Html` are escaped."""
        written: list[str] = []
        for line in self._pieces[piece]:
            held = [values.get(name) for name in line[1::2]]
            if None not in held:
                texts = line.copy()
                texts[1::2] = map(inner, held)
                written += texts
        return Html("".join(written))


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """Return an element. Attributes that are None or False are left out."""
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{name}{written}>{inner(children)}" + ("" if name == "input" else f"</{name}>"))


def inner(children: object) -> Html:
    """Return a child or an iterable of children as HTML, escaped unless it is `Html`; nothing for None."""
    if isinstance(children, Html):
        return children
    if children is None:
        return Html()
    if isinstance(children, (str, int, float)):
        return Html(escape(str(children)))
    return Html("".join(inner(child) for child in cast(Iterable[object], children)))
