"""Decodes pages (HTML Standard, 13.2.3)."""

import codecs
import re
from collections.abc import Mapping
from typing import Final

import webencodings

_MARKS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16le"), (codecs.BOM_UTF16_BE, "utf-16be"))

_PRESCAN_BYTES: Final = 1024
"""The bytes in which a page has to declare its encoding (13.2.3.2)."""

_DECLARED: Final = re.compile(rb"<meta\s[^>]*?charset\s*=\s*[\"']?\s*([a-z0-9_:.-]+)", re.IGNORECASE)
_SURROGATES: Final = re.compile("[\ud800-\udfff]")

_LARGER: Final[Mapping[str, str]] = {"big5": "big5hkscs", "euc-kr": "cp949", "gbk": "gb18030", "shift_jis": "cp932"}
"""Encodings that have more characters on the web than Python's codecs of the same names (Encoding Standard, 4.2)."""

_READ_AS_ASCII: Final[Mapping[str, str]] = {
    "utf-16le": "utf-8",
    "utf-16be": "utf-8",
    "x-user-defined": "windows-1252",
}
"""Encodings that cannot be those of a page that declares them in ASCII (13.2.3.2)."""


def to_utf8(source: str | bytes, charset: str | None) -> bytes:
    """Return a page in UTF-8.

    A charset that the Encoding Standard does not know (UTF-7, punycode) is ignored; invalid bytes and surrogates become
    U+FFFD.
    """
    if isinstance(source, bytes):
        mark, name = next((known for known in _MARKS if source.startswith(known[0])), (b"", charset or ""))
        source = source[len(mark) :]
        encoding = webencodings.lookup(name)
        if encoding is None and (declared := _DECLARED.search(source[:_PRESCAN_BYTES])):
            encoding = webencodings.lookup(declared[1].decode("ascii"))
            if encoding is not None and encoding.name in _READ_AS_ASCII:
                encoding = webencodings.lookup(_READ_AS_ASCII[encoding.name])
        if encoding is None or encoding.name == "utf-8":
            try:
                source.decode()
            except UnicodeDecodeError:
                text = source.decode("utf-8", "replace")
            else:
                return source
        elif encoding.name in _LARGER:
            text = source.decode(_LARGER[encoding.name], "replace")
        else:
            text = encoding.codec_info.decode(source, "replace")[0]
    else:
        text = source
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATES.sub("\ufffd", text).encode()
