"""Templates of paths."""

import re
from typing import Final


def pattern_of(path: str) -> str:
    """Return a regular expression for the paths, and path templates, that a template matches."""
    pieces = PLACEHOLDER.split(path)  # text, name, convertor, text, name, convertor, ..., text
    convertors = [".*" if convertor == "path" else "[^/]+" for convertor in pieces[2::3]]
    texts = [re.escape(text) for text in pieces[::3]]
    return texts[0] + "".join(convertor + text for convertor, text in zip(convertors, texts[1:], strict=True))


PLACEHOLDER: Final = re.compile(r"{([A-Za-z_][A-Za-z0-9_]*)(?::([A-Za-z_]\w*))?}")
