"""The three encodings of a form's entry list (HTML 4.10.21.7 and 4.10.21.8, URL 5.2)."""

import hashlib
import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote_plus

from awp_publish.browsing.entries import Entry

URLENCODED: Final = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data"
PLAIN: Final = "text/plain"
ENCTYPES: Final = (URLENCODED, MULTIPART, PLAIN)

_BREAKS: Final = re.compile(r"\r\n|\r|\n")
_IN_NAMES: Final = str.maketrans({"\n": "%0A", "\r": "%0D", '"': "%22"})
# What labels of encodings mean in HTML (Encoding, section 4.2) where Python thinks otherwise.
_LABELS: Final = dict.fromkeys(("iso-8859-1", "latin1", "us-ascii", "ascii"), "windows-1252")
_LEGACY: Final = re.compile(
    r"windows-125[0-8]|iso-8859-(?:[2-9]|1[013-6])|koi8-[ru]|gbk|gb18030|big5|euc-jp|euc-kr|shift_jis"
    r"|iso-2022-jp|ibm866|macintosh"
)


def pick_charset(*labels: str | None) -> str:
    """The first label that is a known encoding; UTF-8 for none, and instead of UTF-16, which forms never send."""
    for label in labels:
        name = (label or "").strip().lower()
        name = _LABELS.get(name, name)
        if _LEGACY.fullmatch(name):
            return name
        if name.startswith(("utf-", "utf8")):
            break
    return "UTF-8"


def encode_urlencoded(entries: Sequence[Entry], charset: str) -> str:
    """`name=value&...`, of a query or of a body."""
    return "&".join(f"{_quote(entry.name, charset)}={_quote(entry.value, charset)}" for entry in entries)


def encode_multipart(entries: Sequence[Entry], charset: str) -> tuple[str, bytes]:
    """The media type with its boundary, and the body (RFC 7578)."""
    parts = [_part(entry, charset) for entry in entries]
    boundary = _boundary(parts)
    marked = b"".join(b"--%b\r\n%b\r\n" % (boundary, part) for part in parts)
    return f"{MULTIPART}; boundary={boundary.decode()}", marked + b"--%b--\r\n" % boundary


def encode_plain(entries: Sequence[Entry], charset: str) -> bytes:
    """Lines of `name=value`, for people rather than for programs (4.10.21.8)."""
    return b"".join(_encode(f"{_crlf(entry.name)}={_crlf(entry.value)}", charset) + b"\r\n" for entry in entries)


def _quote(text: str, charset: str) -> str:
    return quote_plus(_encode(_crlf(text), charset), safe="*").replace("~", "%7E")


def _part(entry: Entry, charset: str) -> bytes:
    name = _encode(_crlf(entry.name).translate(_IN_NAMES), charset)
    head = b'Content-Disposition: form-data; name="%b"' % name
    if entry.is_file:
        return head + b'; filename=""\r\nContent-Type: application/octet-stream\r\n\r\n'
    return head + b"\r\n\r\n" + _encode(_crlf(entry.value), charset)


def _boundary(parts: Sequence[bytes]) -> bytes:
    """A line that no part has in it, made of the parts, so that the same form has the same bytes."""
    joined = b"".join(parts)
    digest = hashlib.sha256(joined).hexdigest()
    while (boundary := f"----form{digest[:32]}".encode()) in joined:
        digest = hashlib.sha256(digest.encode()).hexdigest()
    return boundary


def _crlf(text: str) -> str:
    return _BREAKS.sub("\r\n", text)


def _encode(text: str, charset: str) -> bytes:
    """Characters that the encoding lacks become `&#8364;` (Encoding, the error mode "html")."""
    return text.encode(charset, "xmlcharrefreplace")
