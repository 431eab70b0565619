"""Undoing the content coding of an answer, within a limit: a small body may unpack to a very large one."""

import zlib
from typing import Final

GZIP: Final = zlib.MAX_WBITS | 16
MOST_MEMBERS: Final = 100
"""Members of a gzip body: looking for the next one costs as much as the body is long."""

_CODINGS: Final = {"gzip": (GZIP,), "x-gzip": (GZIP,), "deflate": (zlib.MAX_WBITS, -zlib.MAX_WBITS)}
"""RFC 9110 section 8.4.1. What is called deflate has its zlib header or, from many servers, has none."""


def decode_body(body: bytes, coding: bytes, most: int) -> bytes | None:
    """The body as it was before it was encoded, at most `most` bytes; None where that cannot be had."""
    name = coding.decode("latin-1").strip().lower()
    if name in ("", "identity"):
        return body if len(body) <= most else None
    decoded = (_inflate(body, window, most) for window in _CODINGS.get(name, ()))
    return next((one for one in decoded if one is not None), None)


def is_decodable(coding: bytes) -> bool:
    """Whether `decode_body` knows a coding."""
    name = coding.decode("latin-1").strip().lower()
    return name in ("", "identity") or name in _CODINGS


def _inflate(body: bytes, window: int, most: int) -> bytes | None:
    """Members that follow one another are one body (RFC 1952 section 2.2)."""
    unpacked = bytearray()
    for _ in range(MOST_MEMBERS):
        if not body:
            break
        engine = zlib.decompressobj(window)
        try:
            unpacked += engine.decompress(body, most + 1 - len(unpacked))
        except zlib.error:
            return None
        if len(unpacked) > most or not engine.eof:
            return None
        body = engine.unused_data if window == GZIP else b""
    return None if body else bytes(unpacked)
