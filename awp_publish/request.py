"""An action's input as the HTTP request that its route understands: path, query, headers, body.

Pure: nothing is sent from here. Values that would change which route is reached (a slash in a single path segment, a
line break in a header) are refused as invalid input.
"""

import base64
import binascii
import mimetypes
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode

import orjson

from awp_publish.model import JsonObject, Location, Parameter, Target
from awp_publish.problems import InvalidInput, Violation
from awp_publish.schema import pointer_to

JSON: Final = "application/json"
FORM: Final = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data"
_REST: Final[Mapping[str, Location]] = {JSON: "json", FORM: "form", MULTIPART: "form"}
"""Where members go that a schema admits without naming them, by the body's media type; into the query otherwise."""


MAX_PATH_VALUE: Final = 8_000
"""Characters of a path parameter: as long as request lines may be (RFC 9110, section 4.1), longer than servers take."""

_OTHER_METHODS: Final = frozenset({"_method", "_http_method", "x-http-method-override"})
"""Members of a query or form in which some middleware reads another method; sent only where a route has them."""


class Request(NamedTuple):
    """A request without its connection. `headers` hold what the input itself says, `cookies` go beside the caller's."""

    method: str
    path: str
    raw_path: bytes
    query: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    cookies: tuple[str, ...] = ()
    body: bytes = b""


@dataclass(slots=True)
class _Parts:
    """Values of one input, sorted by where they travel."""

    path: dict[str, tuple[str, str]] = field(default_factory=dict)
    query: list[tuple[str, str]] = field(default_factory=list)
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    cookies: list[str] = field(default_factory=list)
    json: dict[str, object] = field(default_factory=dict)
    form: list[tuple[str, str]] = field(default_factory=list)
    files: list[tuple[str, "File"]] = field(default_factory=list)
    whole: object = None


class Encoder:
    """Makes requests for one route; what does not depend on the input is worked out once."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._content_type = (b"content-type", (target.content_type or "").encode("latin-1"))
        self._parameters = {parameter.name: parameter for parameter in target.parameters}
        self._rest: Location = _REST.get(target.content_type or "", "query")
        self._whole = next((p for p in target.parameters if p.location == "body"), None)
        self._is_plain_json = target.content_type == JSON and all(p.location == "json" for p in target.parameters)
        self._pieces = re.split(r"({\w+})", target.path)
        self._raw_path = _quote_template(target.path).encode("ascii")

    def __call__(self, given: JsonObject) -> Request:
        """The request for an input that has passed its schema. Raises InvalidInput for what no request can carry."""
        target, path, raw_path = self._target, self._target.path, self._raw_path
        if self._is_plain_json:
            body = _json_text(given, "")
            length = (b"content-length", b"%d" % len(body))
            return Request(target.method, path, raw_path, b"", (self._content_type, length), (), body)
        parts = _Parts()
        for name, value in given.items():
            parameter = self._parameters.get(name)
            if parameter is None:
                if self._rest != "json" and name.lower() in _OTHER_METHODS:
                    raise _refuse(pointer_to([name]), "is not an input of this action")
                parameter = Parameter(name, self._rest, name)
            if parameter.location == "query" and type(value) is str:
                parts.query.append((parameter.wire_name, value))
            else:
                _place(parts, parameter, value)
        if parts.path:
            plain = {"{" + name + "}": text for name, (text, _) in parts.path.items()}
            quoted = {"{" + name + "}": text for name, (_, text) in parts.path.items()}
            path = "".join(plain.get(piece, piece) for piece in self._pieces)
            raw_path = "".join(quoted.get(piece, _quote_template(piece)) for piece in self._pieces).encode("ascii")
        query = urlencode(parts.query).encode("ascii") if parts.query else b""
        if target.content_type is None:
            return Request(target.method, path, raw_path, query, tuple(parts.headers), tuple(parts.cookies))
        body, content_type = self._write_body(parts)
        headers = (*parts.headers, content_type, (b"content-length", b"%d" % len(body)))
        return Request(target.method, path, raw_path, query, headers, tuple(parts.cookies), body)

    def _write_body(self, parts: _Parts) -> tuple[bytes, tuple[bytes, bytes]]:
        content_type = self._target.content_type or ""
        if content_type == MULTIPART:
            named, body = _multipart(parts.form, parts.files)
            return body, (b"content-type", named.encode("latin-1"))
        if content_type == FORM:
            body = urlencode(parts.form).encode("ascii")
        elif self._whole is None:
            body = _json_text(parts.json, "")
        elif parts.whole is None:
            body = b""
        # A body that is one input: JSON, or for any other media type its text.
        elif content_type == JSON or content_type.endswith("+json") or not isinstance(parts.whole, str):
            body = _json_text(parts.whole, pointer_to([self._whole.name]))
        else:
            body = parts.whole.encode()
        return body, self._content_type


def _quote_template(text: str) -> str:
    return quote(text, safe="/%:@!$&'()*+,;=~")


def _json_text(value: object, pointer: str) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError as error:  # orjson refuses to go deeper than 254 levels
        raise _refuse(pointer, "is nested too deeply") from error


def _refuse(pointer: str, detail: str) -> InvalidInput:
    return InvalidInput(
        f"The input cannot be sent to the action: {pointer or 'it'} {detail}.", errors=[Violation(pointer, detail)]
    )


# --- Where a value goes ---


def _texts(value: object) -> Iterator[str]:
    """A value as the texts of a query, a form or a header: lists repeat, null is left out, objects are JSON."""
    if value is None:
        return
    if isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, float) and value.is_integer():
        yield str(int(value))  # JSON Schema counts 5.0 as an integer; a query's reader may not
    else:
        yield orjson.dumps(value).decode()


def _place(parts: _Parts, parameter: Parameter, value: object) -> None:
    """Put a value where its parameter travels. Raises InvalidInput for what cannot stand there."""
    name = parameter.wire_name
    match parameter.location:
        case "json":
            parts.json[name] = value
        case "query":
            parts.query += [(name, text) for text in _texts(value)]
        case "form":
            parts.form += [(name, text) for text in _texts(value)]
        case "path":
            text = next(_texts(value), "")
            segments = text.split("/") if parameter.spans_segments else [text]
            if not text or any(segment in (".", "..") for segment in segments):
                raise _refuse(pointer_to([parameter.name]), "must not be empty, . or ..")
            if "/" in text and not parameter.spans_segments:
                raise _refuse(pointer_to([parameter.name]), 'must not contain "/"')
            if len(text) > MAX_PATH_VALUE:
                raise _refuse(pointer_to([parameter.name]), f"must not be longer than {MAX_PATH_VALUE} characters")
            if "\0" in text:
                raise _refuse(pointer_to([parameter.name]), "must not contain a null character")
            parts.path[name] = (text, quote(text, safe="/" if parameter.spans_segments else ""))
        case "header" | "cookie" as place:
            for text in _texts(value):
                if any(character in text for character in "\r\n\0"):
                    raise _refuse(pointer_to([parameter.name]), "must not contain line breaks or null characters")
                try:
                    written = text.encode("latin-1")
                except UnicodeEncodeError as error:
                    raise _refuse(pointer_to([parameter.name]), "must contain Latin-1 characters only") from error
                if place == "header":
                    parts.headers.append((name.lower().encode("latin-1"), written))
                else:
                    cookie: SimpleCookie = SimpleCookie()
                    cookie[name] = text
                    parts.cookies.append(cookie[name].OutputString())
        case "rows":
            parts.form += _rows(name, value)
        case "file":
            for index, one in enumerate(value if isinstance(value, list) else [value]):
                if one is not None:
                    where = pointer_to([parameter.name, index] if isinstance(value, list) else [parameter.name])
                    parts.files.append((name, _read_file(name, one, where)))
        case "body":
            parts.whole = value


def _rows(prefix: str, value: object) -> Iterator[tuple[str, str]]:
    """The fields of several forms, numbered as Django's formsets do; rows that are there already come first."""
    rows = [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []
    there = next((index for index, row in enumerate(rows) if row.get("id") is None), len(rows))
    yield f"{prefix}-TOTAL_FORMS", str(len(rows))
    yield f"{prefix}-INITIAL_FORMS", str(there)
    for index, row in enumerate(rows):
        for name, inner in row.items():
            if inner is not False:  # a box that is not ticked is not sent
                yield from ((f"{prefix}-{index}-{name}", text) for text in _texts(inner))


class File(NamedTuple):
    """A file of an input."""

    name: str
    media_type: str
    content: bytes


def _read_file(field_name: str, value: object, pointer: str) -> File:
    """A file as base64, as a data URL (RFC 2397), or as `{"filename", "content"}` of which the content is one of these.

    One without a name is called after its field, with the extension of its media type: forms judge files by that.
    Raises InvalidInput.
    """
    filename, text = "", value
    if isinstance(value, Mapping):
        filename, text = str(value.get("filename", "")), value.get("content")
        filename = re.split(r"[/\\]", filename)[-1].strip()
        if not filename:
            raise _refuse(f"{pointer}/filename", "must name a file")
    if not isinstance(text, str):
        raise _refuse(pointer, "must be base64, a data URL, or an object with filename and content")
    media_type = ""
    if found := _DATA_URL.match(text):
        media_type, text = (found[1] or "").lower(), text[found.end() :]
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _refuse(pointer, "must be base64") from error
    if not media_type:
        by_name = mimetypes.guess_type(filename)[0] if filename else None
        media_type = by_name or next((kind for start, kind in _SIGNATURES if start.match(content)), "")
    extension = _EXTENSIONS.get(media_type) or mimetypes.guess_extension(media_type or OCTETS) or ""
    kept = "" if media_type in ("", OCTETS) else extension
    return File(filename or f"{field_name}{kept}", media_type or OCTETS, content)


OCTETS: Final = "application/octet-stream"
_DATA_URL: Final = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w.+-]+=[^;,]*)*;base64,", re.IGNORECASE)
_EXTENSIONS: Final[Mapping[str, str]] = {"image/jpeg": ".jpg", "image/webp": ".webp", "text/plain": ".txt"}
_SIGNATURES: Final = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF.{4}WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"%PDF-"), "application/pdf"),
)
"""How files begin whose media type nobody has told (WHATWG, MIME Sniffing, section 6)."""


def _multipart(fields: Iterable[tuple[str, str]], files: Iterable[tuple[str, File]]) -> tuple[str, bytes]:
    """A body of RFC 7578."""
    boundary = secrets.token_hex(16)
    pieces: list[bytes] = []
    for name, text in fields:
        pieces += [_part_head(boundary, name), b"\r\n\r\n", text.encode(), b"\r\n"]
    for name, file in files:
        kind = f'; filename="{_quoted(file.name)}"\r\nContent-Type: {file.media_type}'.encode()
        pieces += [_part_head(boundary, name) + kind, b"\r\n\r\n", file.content, b"\r\n"]
    return f"{MULTIPART}; boundary={boundary}", b"".join([*pieces, f"--{boundary}--\r\n".encode()])


def _part_head(boundary: str, name: str) -> bytes:
    return f'--{boundary}\r\nContent-Disposition: form-data; name="{_quoted(name)}"'.encode()


def _quoted(name: str) -> str:
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
