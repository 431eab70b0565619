"""Fields as the members of an input, whose types the action's schema determines."""

import base64
import math
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from awp_publish.http.forms import Fields, Upload
from awp_publish.http.strict_json import parse_json
from awp_publish.model import JsonObject
from awp_publish.problems import InvalidInput, NotJson, Violation
from awp_publish.schema import UnusableSchema, Validator, compile_schema, pointer_to
from awp_publish.schema.reading import branches, kinds, members, required_members, resolved

_BOOLEANS: Final = {
    **dict.fromkeys(("true", "1", "on", "yes", "t", "y"), True),
    **dict.fromkeys(("false", "0", "off", "no", "f", "n"), False),
}
"""The texts that pydantic, and therefore FastAPI, accepts as booleans."""

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,20}")
_NUMBER: Final = re.compile(r"[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,4})?")


class FieldReader:
    """Converts fields to the members of an input by the input's schema, as the route of an action would.

    Numbers and booleans are parsed from their texts, objects from JSON, as are lists of anything but texts; a repeated
    field is a list. A text that does not match the schema is kept as it is, so that input validation reports it. With
    `keeps_names`, a file keeps its name and its media type where the schema takes them.
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
        by_name: dict[str, list[str | bytes]] = {}
        for name, value in fields:
            by_name.setdefault(name, []).append(value)
        inputs: dict[str, object] = {}
        wrong: list[Violation] = []
        for name, values in by_name.items():
            member = self._members.get(name)
            try:
                if member is None:
                    texts = [_text_of(value) for value in values]
                    inputs[name] = texts[0] if len(texts) == 1 else texts
                elif (
                    not _is_left_empty(values) or name in self._required or not member.kinds or "string" in member.kinds
                ):
                    readings, validator = member.readings(values), self._validator
                    inputs[name] = readings[0]
                    if len(readings) > 1 and validator is not None:
                        inputs[name] = next(
                            (reading for reading in readings if validator.is_valid({name: reading})), readings[0]
                        )
            except _UnusableValueError as error:
                wrong.append(Violation(pointer_to([name]), str(error)))
        if wrong:
            raise InvalidInput.of(wrong)
        return inputs


def _is_left_empty(values: list[str | bytes]) -> bool:
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
        has_places = any("prefixItems" in part for part in parts)
        self._is_written_as_json = has_places or bool(
            self._item_kinds and not {"array", "string"} & {*self._item_kinds}
        )
        inner = [item, *(resolved(branch, root) for branch in branches(item))]
        self._is_base64 = any(part.get("contentEncoding") == "base64" for part in (*parts, *inner))
        named = [members(part).keys() for part in (*parts, *inner) if keeps_names]
        self._of_file = next((names for names in named if {"filename", "content"} <= names), None)

    def readings(self, values: list[str | bytes]) -> list[object]:
        """Return the possible values, the most likely first."""
        as_list = [
            self._file(value)
            if self._is_base64 and isinstance(value, bytes)
            else _readings(_text_of(value), self._item_kinds)[0]
            for value in values
        ]
        if len(values) > 1 and "array" not in self.kinds and self.kinds:
            raise _UnusableValueError(f"was sent {len(values)} times, and takes one value")
        if len(values) > 1 or self.kinds == ["array"]:
            if len(values) == 1 and self._is_written_as_json:
                written = _readings(_text_of(values[0]), ["array"])[0]
                return [written if isinstance(written, list) else as_list]
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
    values: list[object] = []
    listed = list(wanted)
    if "string" in listed or not listed:
        values.append(text)
    if "boolean" in listed and text.lower() in _BOOLEANS:
        values.append(_BOOLEANS[text.lower()])
    if ("integer" in listed or "number" in listed) and _INTEGER.fullmatch(text) and abs(int(text)) < 2**63:
        values.append(int(text))
    elif "number" in listed and _NUMBER.fullmatch(text) and math.isfinite(number := float(text)):
        values.append(number)
    elif "integer" in listed and re.fullmatch(r"[+-]?[0-9]{1,18}\.0{1,20}", text):
        values.append(int(text.partition(".")[0]))
    if ("object" in listed or "array" in listed) and text.lstrip()[:1] in ("{", "["):
        with suppress(NotJson):
            values.append(parse_json(text.encode()))
    if "integer" in listed and not values and re.fullmatch(r"[+-]?[0-9]{19,}", text):
        raise _UnusableValueError("must be an integer within 64 bits")
    return values or [text]
