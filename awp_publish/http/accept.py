"""The preferences of a client in its Accept and Accept-Encoding headers (RFC 9110 section 12.5)."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

MAX_NEGOTIATION: Final = 8192
"""Bytes of a header beyond which it expresses no preference: longer lists are of nobody who wants an answer."""


def accepts(accept: bytes, media_type: str) -> bool:
    """Return True if an `Accept` header admits `media_type` (RFC 9110 section 12.5.1). An empty one admits all."""
    return len(accept) > MAX_NEGOTIATION or _accepts(accept, media_type)


@lru_cache(maxsize=256)
def _accepts(accept: bytes, media_type: str) -> bool:
    text = accept.decode("latin-1")
    return not text.strip() or quality(text, (media_type, media_type.split("/")[0] + "/*", "*/*")) > 0


@lru_cache(maxsize=256)
def choose_coding(accept_encoding: bytes, codings: tuple[str, ...]) -> int:
    """Return the index of the coding that a client prefers (RFC 9110 section 12.5.3).

    `codings` are in our own order of preference, with identity last.
    """
    text = accept_encoding.decode("latin-1")
    weights = [quality(text, (coding, "*"), absent=float(coding == "identity")) for coding in codings]
    best = max(weights)
    return weights.index(best) if best > 0 else len(codings) - 1


def quality(field: str, names: Iterable[str], absent: float = 0.0) -> float:
    """Return the weight of the first of `names` that is in a weighted list; give the most specific name first."""
    weights: dict[str, float] = {}
    for element in field.split(","):
        name = element.split(";", 1)[0].strip().lower()
        weight = _WEIGHT.search(element)
        if name:
            weights[name] = float(weight[1]) if weight else 1.0
    return next((weights[name] for name in names if name in weights), absent)


_WEIGHT: Final = re.compile(r";\s*q\s*=\s*([01](?:\.\d{0,3})?)", re.IGNORECASE)
