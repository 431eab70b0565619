"""Elements that the pages of the overview share: tables, text to copy, sizes."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from awp_publish.plugins.overview.html import Html, Pieces, tag

TOKEN_BYTES: Final = 4
"""Approximate bytes of JSON or English per token of a model."""

NO_FIGURE: Final = "\N{EN DASH}"

STATIC: Final = Path(__file__).with_name("static")
fill: Final = Pieces(STATIC / "overview.html").fill


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[object]], *, class_: str = "rows") -> Html:
    """Return a table that scrolls if it does not fit. With the class `rows`, a phone has a list of labelled cells."""
    labels = heads if "rows" in class_.split() else [None] * len(heads)

    def cells(row: Sequence[object]) -> Iterable[Html]:
        for n, (cell, label) in enumerate(zip(row, labels, strict=True)):
            yield tag("td", cell, data_label=label) if n else tag("th", cell, scope="row")

    lines = [tag("tr", cells(row)) for row in rows]
    if not lines:
        return tag("p", "None.", class_="none")
    return fill(
        "table", caption=caption, kind=class_, heads=[tag("th", name, scope="col") for name in heads], rows=lines
    )


def code(text: object) -> Html:
    return tag("code", text)


def block(text: object, label: str) -> Html:
    """Return text to copy."""
    return fill("block", text=text, label=label)


def pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def tokens_of(count: int) -> int:
    """Return the approximate number of tokens in `count` bytes."""
    return -(-count // TOKEN_BYTES)


def size_of(count: int) -> str:
    return f"{bytes_of(count)}, about {tokens_of(count):,} tokens"


def bytes_of(count: int) -> str:
    """Return a size with two or three digits: "812 bytes", "4.1 kB", "37 kB"."""
    if count < 1000:
        return f"{count} bytes" if count != 1 else "1 byte"
    size, unit = (count / 1000, "kB") if count < 1_000_000 else (count / 1_000_000, "MB")
    return f"{size:.1f} {unit}" if size < 10 else f"{size:,.0f} {unit}"


def icon(name: str) -> Html:
    """Return an icon of the page's set (`icons` in overview.html). Words beside it say what it means."""
    return fill("icon", name=name)


def count_words(count: int, noun: str) -> str:
    """Return a number with its noun: "1 error", "2 errors"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
