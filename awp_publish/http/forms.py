"""Inputs in queries and forms, for calls without an envelope, and the recovery texts for their callers.

Fields are texts and files; the action's schema determines their types.
"""

import base64
import math
import re
from collections.abc import Iterable
from contextlib import suppress
from itertools import repeat
from typing import Final, Self, TypeAlias
from urllib.parse import parse_qsl

from awp_publish.http.exchange import parse_json
from awp_publish.model import JsonObject
from awp_publish.problems import InvalidInput, NotJson, UnsupportedMediaType, Violation
from awp_publish.schema import UnusableSchema, Validator, compile_schema, media, pointer_to
from awp_publish.schema.reading import branches, kinds, members, required_members, resolved


class Upload(bytes):
    """The content of a file in a form, with its name and its media type as they were sent, "" if they were not."""

    filename: str
    media_type: str

    def __new__(cls, content: bytes, filename: str = "", media_type: str = "") -> Self:
        """Create it."""
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

FORM: Final = b"application/x-www-form-urlencoded"
MULTIPART: Final = b"multipart/form-data"

_BOUNDARY: Final = re.compile(
    rb'multipart/form-data\s*;\s*boundary\s*=\s*(?:"([^"\\]{1,70})"|([^\s";,]{1,70}))\s*', re.I
)
_PARAMETER: Final = re.compile(rb'\s*;\s*([A-Za-z*]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))')
_BOOLEANS: Final = {
    **dict.fromkeys(("true", "1", "on", "yes", "t", "y"), True),
    **dict.fromkeys(("false", "0", "off", "no", "f", "n"), False),
}
"""The texts that pydantic, and therefore FastAPI, accepts as booleans."""

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,20}")
_NUMBER: Final = re.compile(r"[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,4})?")


# --- Recovery texts ---

DIALECT: Final = {
    "CONFIRMATION_REQUIRED": "Show confirmation.summary to your user. Only if they agree, send the same request again "
    "with confirmation.token in the header AWP-Confirmation.",
    "PREREQUISITE_REQUIRED": "Call the actions that missing names, unless they have already succeeded, then send this "
    "request again; if the site does not know who calls, with the AWP-Receipt header of each of their answers, "
    "separated by commas, in the header AWP-Receipt. Do not repeat a call only to get its receipt.",
    "INVALID_ENVELOPE": "Send the idempotency key and the confirmation as strings, and receipts as a list of strings.",
    "UNSUPPORTED_MEDIA_TYPE": "Send the inputs as application/json in UTF-8, or as a form, without a content encoding.",
}
"""Recovery texts by code, for doors without an envelope."""


# --- Parsing queries and forms ---


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
    return content_type.split(b";", 1)[0].strip().lower() in (FORM, MULTIPART)


def read_form(content_type: bytes, body: bytes) -> Fields:
    """Return the fields of an urlencoded or multipart form. Raises InvalidInput, UnsupportedMediaType."""
    if content_type.split(b";", 1)[0].strip().lower() == FORM:
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
    given: dict[bytes, bytes] = {}
    media_type = b""
    for line in head.split(b"\r\n")[1:]:
        field, _, value = line.partition(b":")
        if field.strip().lower() == b"content-type":
            media_type = value.strip()
        kind = re.match(rb"\s*form-data(?=\s*(;|$))", value, re.I)
        if field.strip().lower() != b"content-disposition" or kind is None:
            continue
        position = kind.end()
        while found := _PARAMETER.match(value, position):
            given.setdefault(found[1].lower(), found[3] if found[2] is None else found[2])
            position = found.end()
    try:
        if not separator or b"name" not in given:
            raise InvalidInput("A part of the form has no name.")
        # Browsers write a quotation mark in a name as %22 (HTML, multipart form data).
        name = given[b"name"].decode().replace("%22", '"')
        if not given.keys() & {b"filename", b"filename*"}:
            return name, content.decode()
        filename = given.get(b"filename", b"").decode().replace("%22", '"').replace('\\"', '"')
        return name, Upload(content, media.plain_name(filename), media_type.decode("latin-1"))
    except UnicodeDecodeError:
        raise InvalidInput("A field of the form is not UTF-8.") from None


# --- Converting fields by schema ---


class FieldReader:
    """Converts fields to the members of an input by the input's schema, as the route of an action would.

    Numbers and booleans are parsed from their texts, objects from JSON; a repeated field is a list. A text that does
    not match the schema is kept as it is, so that input validation reports it. With `keeps_names`, a file keeps its
    name and its media type where the schema takes them.
    """

    def __init__(self, schema: JsonObject, *, keeps_names: bool = False) -> None:
        facts = resolved(schema, schema)
        self._members = {name: _Member(part, schema, keeps_names) for name, part in members(facts).items()}
        self._required = required_members(facts)
        self._validator: Validator | None = None
        if any(len(member.kinds) > 1 for member in self._members.values()):
            with suppress(UnusableSchema):  # chooses between the readings of a union type
                self._validator = compile_schema({**schema, "properties": members(facts), "required": []})

    def read(self, fields: Fields) -> dict[str, object]:
        """Return the members. Raises InvalidInput for a repeated field or a file that the schema does not allow."""
        found: dict[str, list[str | bytes]] = {}
        for name, value in fields:
            found.setdefault(name, []).append(value)
        given: dict[str, object] = {}
        wrong: list[Violation] = []
        for name, values in found.items():
            member = self._members.get(name)
            try:
                if member is None:
                    texts = [_text_of(value) for value in values]
                    given[name] = texts[0] if len(texts) == 1 else texts
                elif (
                    not _is_left_empty(values) or name in self._required or not member.kinds or "string" in member.kinds
                ):
                    readings, validator = member.readings(values), self._validator
                    given[name] = readings[0]
                    if len(readings) > 1 and validator is not None:
                        given[name] = next((one for one in readings if validator.is_valid({name: one})), readings[0])
            except _UnusableValueError as error:
                wrong.append(Violation(pointer_to([name]), str(error)))
        if wrong:
            raise InvalidInput.of(wrong)
        return given


def _is_left_empty(values: list[str | bytes]) -> bool:
    """Return True for the only value of a field that was not filled in."""
    return values == [""] or (len(values) == 1 and isinstance(values[0], Upload) and values[0].is_empty)


class _UnusableValueError(ValueError):
    pass


class _Member:
    """The types of a member, as far as they matter for parsing it."""

    def __init__(self, schema: object, root: JsonObject, keeps_names: bool) -> None:
        facts = resolved(schema, root)
        self.kinds = kinds(facts, root)
        parts = [facts, *(resolved(branch, root) for branch in branches(facts))]
        item = next((resolved(part["items"], root) for part in parts if "items" in part), {})
        self._item_kinds = kinds(item, root)
        inner = [item, *(resolved(branch, root) for branch in branches(item))]
        self._is_base64 = any(part.get("contentEncoding") == "base64" for part in (*parts, *inner))
        named = [members(part).keys() for part in (*parts, *inner) if keeps_names]
        self._of_file = next((names for names in named if {"filename", "content"} <= names), None)

    def readings(self, values: list[str | bytes]) -> list[object]:
        """Return the possible values, the most likely first."""
        as_list = [
            self._file(value) if self._is_base64 and isinstance(value, bytes) else _readings(_text_of(value), kinds)[0]
            for value, kinds in zip(values, repeat(self._item_kinds))
        ]
        if len(values) > 1 and "array" not in self.kinds and self.kinds:
            raise _UnusableValueError(f"was sent {len(values)} times, and takes one value")
        if len(values) > 1 or self.kinds == ["array"]:
            return [as_list]
        several: list[object] = [as_list] if "array" in self.kinds else []
        if self._is_base64 and isinstance(values[0], bytes):
            return [self._file(values[0]), *several]
        return [*_readings(_text_of(values[0]), self.kinds), *several]

    def _file(self, content: bytes) -> object:
        """Return a file as base64, with its name and media type if it has a name and the schema takes them."""
        text = base64.b64encode(content).decode()
        if self._of_file is None or not isinstance(content, Upload) or not content.filename:
            return text
        kind = {"content_type": content.media_type} if content.media_type and "content_type" in self._of_file else {}
        return {"filename": content.filename, **kind, "content": text}


def _text_of(value: str | bytes) -> str:
    if isinstance(value, str):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise _UnusableValueError("must be a text, not a file") from None


def _readings(text: str, wanted: Iterable[str]) -> list[object]:
    """Return a text's values in the wanted types; the text itself if it has none."""
    found: list[object] = []
    listed = list(wanted)
    if "string" in listed or not listed:
        found.append(text)
    if "boolean" in listed and text.lower() in _BOOLEANS:
        found.append(_BOOLEANS[text.lower()])
    if ("integer" in listed or "number" in listed) and _INTEGER.fullmatch(text) and abs(int(text)) < 2**63:
        found.append(int(text))
    elif "number" in listed and _NUMBER.fullmatch(text) and math.isfinite(number := float(text)):
        found.append(number)
    elif "integer" in listed and re.fullmatch(r"[+-]?[0-9]{1,18}\.0{1,20}", text):
        found.append(int(text.partition(".")[0]))
    if ("object" in listed or "array" in listed) and text.lstrip()[:1] in ("{", "["):
        with suppress(NotJson):
            found.append(parse_json(text.encode()))
    return found or [text]
