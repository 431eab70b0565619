"""The reason that the error page of a framework gives: Flask, Quart and Django refuse with a few lines of HTML."""

import re
from html import unescape
from typing import Final

MAX_PAGE: Final = 2_000
"""Bytes of such a page; a larger one has the site's own layout."""

_BESIDE: Final = re.compile(r"<(head|h1|script|style|title)\b.*?</\1\s*>|<!--.*?-->|<[^>]*>", re.IGNORECASE | re.DOTALL)
"""What is not the reason: the status in words stands in the title and in the heading."""


def reason_on(page: bytes) -> str:
    """Return the text of a small error page, "" for other pages."""
    if len(page) > MAX_PAGE:
        return ""
    return " ".join(unescape(_BESIDE.sub(" ", page.decode("utf-8", "replace"))).split())
