"""Files in inputs, and the multipart/form-data body that sends them (RFC 7578)."""

import base64
import mimetypes
import re
import secrets
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from awp_publish.problems import InvalidInput, Violation
from awp_publish.schema import media
from awp_publish.schema.files import MAX_MEDIA_TYPE, MEDIA_TYPE


def unsendable(pointer: str, detail: str) -> InvalidInput:
    return InvalidInput(
        f"The input cannot be sent to the action: {pointer or 'it'} {detail}.", errors=[Violation(pointer, detail)]
    )


class File(NamedTuple):
    """A file in an input."""

    name: str
    media_type: str
    content: bytes


def read_file(field_name: str, value: object, pointer: str) -> File:
    """Read a file given as base64, as a data URL (RFC 2397), or as an object with either as its `content`.

    The object has a `filename` and may have a `content_type`.

    A file without a name gets that of its field, with the extension of its media type, which forms may check. Raises
    InvalidInput.
    """
    filename, media_type, text = "", "", value
    if isinstance(value, Mapping):
        media_type, text = str(value.get("content_type") or ""), value.get("content")
        filename = media.plain_name(str(value.get("filename", "")))
        if media_type and (len(media_type) > MAX_MEDIA_TYPE or not re.fullmatch(MEDIA_TYPE, media_type)):
            raise unsendable(f"{pointer}/content_type", "must be a media type, such as image/png")
        if not filename:
            raise unsendable(f"{pointer}/filename", "must name a file")
    if not isinstance(text, str):
        raise unsendable(pointer, "must be base64, a data URL, or an object with filename and content")
    if match := _DATA_URL.match(text):
        media_type, text = media_type or (match[1] or "").lower(), text[match.end() :]
    try:
        content = base64.b64decode(text, validate=True)
    except ValueError as error:
        raise unsendable(pointer, "must be base64") from error
    if not media_type:
        by_name = mimetypes.guess_type(filename)[0] if filename else None
        media_type = by_name or next((kind for start, kind in _SIGNATURES if start.match(content)), "")
    extension = _EXTENSIONS.get(media_type) or mimetypes.guess_extension(media_type or media.BINARY) or ""
    kept = "" if media_type in ("", media.BINARY) else extension
    return File(filename or f"{field_name}{kept}", media_type or media.BINARY, content)


_DATA_URL: Final = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w.+-]+=[^;,]*)*;base64,", re.IGNORECASE)

_EXTENSIONS: Final[Mapping[str, str]] = {"image/jpeg": ".jpg", "image/webp": ".webp", "text/plain": ".txt"}

_SIGNATURES: Final = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF.{4}WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"%PDF-"), "application/pdf"),
)
"""Signatures of files whose media type is not given (WHATWG MIME Sniffing, section 6)."""


def write_multipart(fields: Iterable[tuple[str, str]], files: Iterable[tuple[str, File]]) -> tuple[str, bytes]:
    """Return the content type and the body of a multipart/form-data request (RFC 7578)."""
    boundary = secrets.token_hex(16)
    pieces: list[bytes] = []
    for name, text in fields:
        pieces += [_part_head(boundary, name), b"\r\n\r\n", text.encode(), b"\r\n"]
    for name, file in files:
        kind = f'; filename="{_quoted(file.name)}"\r\nContent-Type: {file.media_type}'.encode()
        pieces += [_part_head(boundary, name) + kind, b"\r\n\r\n", file.content, b"\r\n"]
    return f"{media.MULTIPART}; boundary={boundary}", b"".join([*pieces, f"--{boundary}--\r\n".encode()])


def _part_head(boundary: str, name: str) -> bytes:
    return f'--{boundary}\r\nContent-Disposition: form-data; name="{_quoted(name)}"'.encode()


def _quoted(name: str) -> str:
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
