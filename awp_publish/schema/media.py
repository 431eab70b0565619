"""Media types, and answers that are not JSON: images, audio, files, and texts in other formats.

Within JSON such an answer is a string: a text as it is, everything else in base64, which JSON Schema declares with
`contentEncoding` and `contentMediaType`. The media type decides which, never the bytes. The media type and the file
name travel with the answer, through records and jobs to the doors, in a header: `AWP-Content-Type`.
"""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, unquote

HEADER: Final = b"awp-content-type"
JSON: Final = "application/json"
FORM: Final = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data"
BINARY: Final = "application/octet-stream"
TEXT: Final = "text/plain"

MAX_NAME: Final = 200
"""Characters of a file's name that are kept."""

_TEXTS: Final = frozenset(
    {
        "application/ecmascript",
        "application/graphql",
        "application/javascript",
        "application/jsonl",
        "application/sql",
        "application/toml",
        "application/x-ndjson",
        FORM,
        "application/xml",
        "application/yaml",
    }
)
_CHARSET: Final = re.compile(r";\s*charset\s*=\s*\"?([^\s;\"]+)", re.IGNORECASE)
_TYPE: Final = re.compile(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+")
_MAX_HEADER: Final = 2000
_NAME: Final = re.compile(r';\s*filename\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;"\s]+))', re.IGNORECASE)
_ENCODED_NAME: Final = re.compile(r";\s*filename\*\s*=\s*(utf-8|iso-8859-1)'[^']*'([^;\s]+)", re.IGNORECASE)


def media_type_of(content_type: bytes) -> str:
    """Return the media type of a Content-Type field without its parameters, or "" if there is none or it is
    malformed.
    """
    media_type = content_type.split(b";", 1)[0].strip().decode("latin-1").lower()
    return media_type if _TYPE.fullmatch(media_type) else ""


def is_json(media_type: str) -> bool:
    """Return True for a media type whose content is one JSON document."""
    return media_type == JSON or media_type.endswith("+json")


def is_text(media_type: str) -> bool:
    """Return True if the content of a media type is text."""
    return media_type.startswith("text/") or media_type.endswith(("+xml", "+yaml")) or media_type in _TEXTS


def charset_of(content_type: str) -> str | None:
    """Return the charset that a Content-Type names, None if it names none."""
    named = _CHARSET.search(content_type)
    return named[1] if named else None


def decode(body: bytes, content_type: str) -> tuple[str, str]:
    """Return a text, and its charset: that of its Content-Type, or UTF-8 if that is missing or unknown."""
    charset = charset_of(content_type) or "utf-8"
    try:
        return body.decode(charset, "replace"), charset
    except (LookupError, ValueError):  # an unknown charset, or one that does not support "replace"
        return body.decode("utf-8", "replace"), "utf-8"


def file_name(disposition: bytes) -> str:
    """Return the file name in a Content-Disposition field (RFC 6266), without any path; "" if there is none."""
    text = disposition[:_MAX_HEADER].decode("latin-1")
    if encoded := _ENCODED_NAME.search(text):
        name = unquote(encoded[2], encoded[1], "replace")
    elif plain := _NAME.search(text):
        name = re.sub(r"\\(.)", r"\1", plain[1]) if plain[1] is not None else plain[2]
    else:
        return ""
    return plain_name(name)


def plain_name(name: str) -> str:
    """Return a file's name without any path and without control characters."""
    name = name.replace("\\", "/").rsplit("/", 1)[-1]
    return "".join(character for character in name if character.isprintable()).strip(" .")[:MAX_NAME]


def declared_type(outputs: Mapping[str, object]) -> str:
    """Return the media type of answers that a schema declares as base64, "" for any other schema."""
    media_type, encoding = outputs.get("contentMediaType"), outputs.get("contentEncoding")
    if not (isinstance(encoding, str) and encoding.lower() == "base64"):
        return ""
    return media_type_of(str(media_type).encode("utf-8", "replace")) or BINARY


def write_header(media_type: str, name: str = "") -> tuple[bytes, bytes]:
    """Return the header with an answer's media type and file name, encoded as RFC 8187 requires."""
    named = f"; name*=UTF-8''{quote(name, safe='')}" if name else ""
    return HEADER, f"{media_type}{named}".encode("ascii", "replace")


def read_header(value: bytes) -> tuple[str, str]:
    """Return the media type and file name of such a header."""
    media_type, _, name = value.decode("ascii", "replace").partition("; name*=UTF-8''")
    return media_type, unquote(name)
