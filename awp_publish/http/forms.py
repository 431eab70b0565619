"""The fields of queries and forms: texts and files, by their names."""

import re
from typing import Final, Self, TypeAlias
from urllib.parse import parse_qsl

from awp_publish.problems import InvalidInput, UnsupportedMediaType
from awp_publish.schema import media


class Upload(bytes):
    """The content of a file in a form, with its name and its media type as they were sent, "" if they were not."""

    filename: str
    media_type: str

    def __new__(cls, content: bytes, filename: str = "", media_type: str = "") -> Self:
        file = super().__new__(cls, content)
        file.filename, file.media_type = filename, media_type
        return file

    @property
    def is_empty(self) -> bool:
        """True if no file was chosen: browsers then send an empty one without a name."""
        return not self and not self.filename


Fields: TypeAlias = list[tuple[str, str | bytes]]
"""Names and values in their original order; a file is an Upload."""

MAX_FIELDS: Final = 1000
"""Maximum fields of a query or a form, as in Starlette."""

MAX_PART_HEAD: Final = 8192
"""Maximum bytes of the headers of one part of a form."""

_BOUNDARY: Final = re.compile(
    rb'multipart/form-data\s*;\s*boundary\s*=\s*(?:"([^"\\]{1,70})"|([^\s";,]{1,70}))\s*', re.I
)

_PARAMETER: Final = re.compile(rb'\s*;\s*([A-Za-z*]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))')


def read_query(text: bytes, name: str = "query") -> Fields:
    """Return the fields of a query or of an urlencoded form. Raises InvalidInput."""
    try:
        return list(parse_qsl(text.decode(), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS))
    except UnicodeDecodeError:
        raise InvalidInput(f"The {name} is not UTF-8.") from None
    except ValueError:
        raise InvalidInput(f"The {name} has more than {MAX_FIELDS} fields.") from None


def is_form(content_type: bytes) -> bool:
    """Return True for the media type of an urlencoded or multipart form."""
    return media.media_type_of(content_type) in (media.FORM, media.MULTIPART)


def read_form(content_type: bytes, body: bytes) -> Fields:
    """Return the fields of an urlencoded or multipart form. Raises InvalidInput, UnsupportedMediaType."""
    if media.media_type_of(content_type) == media.FORM:
        return read_query(body, "form")
    boundary = _BOUNDARY.fullmatch(content_type.strip())
    if boundary is None:
        raise UnsupportedMediaType("The Content-Type multipart/form-data has no usable boundary.")
    # RFC 2046 section 5.1.1: a part is between two delimiters, each at the beginning of a line.
    pieces = (b"\r\n" + body).split(b"\r\n--" + (boundary[1] or boundary[2]), MAX_FIELDS + 2)
    if len(pieces) > MAX_FIELDS + 2:
        raise InvalidInput(f"The form has more than {MAX_FIELDS} fields.")
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        raise InvalidInput("The form does not end with its boundary.")
    return [_read_part(piece) for piece in pieces[1:-1]]


def _read_part(part: bytes) -> tuple[str, str | bytes]:
    """Return the name of a part (RFC 7578 section 4), and its text or the content of its file."""
    # The delimiter's line may end in white space, and a part without headers begins with the empty line.
    head, separator, content = part.partition(b"\r\n\r\n")
    if len(head) > MAX_PART_HEAD:
        raise InvalidInput(f"A part of the form has more than {MAX_PART_HEAD} bytes of headers.")
    parameters: dict[bytes, bytes] = {}
    media_type = b""
    for line in head.split(b"\r\n")[1:]:
        field, _, value = line.partition(b":")
        if field.strip().lower() == b"content-type":
            media_type = value.strip()
        kind = re.match(rb"\s*form-data(?=\s*(;|$))", value, re.I)
        if field.strip().lower() != b"content-disposition" or kind is None:
            continue
        position = kind.end()
        while match := _PARAMETER.match(value, position):
            parameters.setdefault(match[1].lower(), match[3] if match[2] is None else match[2])
            position = match.end()
    try:
        if not separator or b"name" not in parameters:
            raise InvalidInput("A part of the form has no name.")
        # Browsers write a quotation mark in a name as %22 (HTML, multipart form data).
        name = parameters[b"name"].decode().replace("%22", '"')
        if not parameters.keys() & {b"filename", b"filename*"}:
            return name, content.decode()
        filename = parameters.get(b"filename", b"").decode().replace("%22", '"').replace('\\"', '"')
        return name, Upload(content, media.plain_name(filename), media_type.decode("latin-1"))
    except UnicodeDecodeError:
        raise InvalidInput("A field of the form is not UTF-8.") from None
