"""Which characters the bytes of a page are, as the HTML Standard finds out (13.2.3): the mark, the caller, the page."""

import codecs
import re
from collections.abc import Mapping
from typing import Final

_MARKS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))

_PRESCAN_BYTES: Final = 1024
"""Where a page must have said its encoding (13.2.3.2)."""

_DECLARED: Final = re.compile(rb"<meta\s[^>]*?charset\s*=\s*[\"']?\s*([a-z0-9_:.-]+)", re.IGNORECASE)
_SURROGATES: Final = re.compile("[\ud800-\udfff]")

_LABELS: Final[Mapping[str, str]] = {
    "ascii": "cp1252",
    "us-ascii": "cp1252",
    "iso-8859-1": "cp1252",
    "iso8859-1": "cp1252",
    "iso_8859-1": "cp1252",
    "latin1": "cp1252",
    "l1": "cp1252",
    "iso-8859-9": "cp1254",
    "latin5": "cp1254",
    "iso-8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "x-gbk": "gb18030",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "sjis": "cp932",
    "x-sjis": "cp932",
    "euc-kr": "cp949",
    "ks_c_5601-1987": "cp949",
    "utf-16": "utf-16-le",
    "utf16": "utf-16-le",
    "unicode": "utf-16-le",
    "x-user-defined": "cp1252",
}
"""Labels that mean something else on the web than to Python (Encoding Standard, 4.2)."""


def read_utf8(source: str | bytes, charset: str | None = None) -> bytes:
    """A page in UTF-8. An unknown charset counts as none; what means nothing, surrogates too, becomes U+FFFD."""
    if isinstance(source, str):
        return _encode(source)
    for mark, codec in _MARKS:
        if source.startswith(mark):
            return _recode(source[len(mark) :], codec)
    return _recode(source, _codec(charset) or _declared(source) or "utf-8")


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATES.sub("\ufffd", text).encode()


def _recode(data: bytes, codec: str) -> bytes:
    if codec != "utf-8":
        return _encode(data.decode(codec, "replace"))
    try:
        data.decode()
    except UnicodeDecodeError:
        return data.decode(codec, "replace").encode()
    return data


def _declared(source: bytes) -> str | None:
    found = _DECLARED.search(source[:_PRESCAN_BYTES])
    codec = _codec(found[1].decode("ascii")) if found else None
    return "utf-8" if codec is not None and codec.startswith("utf-16") else codec


def _codec(label: str | None) -> str | None:
    """The codec of a label, or None for one that is none, or that is no character encoding (`base64`, `rot13`)."""
    if label is None:
        return None
    name = label.strip().lower()
    try:
        found = codecs.lookup(_LABELS.get(name, name)).name
        b"text".decode(found, "replace")
    except (LookupError, ValueError):
        return None
    return found
