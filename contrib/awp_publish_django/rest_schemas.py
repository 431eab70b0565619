"""Schemas of serializers of Django REST framework."""

from collections.abc import Mapping
from typing import Any, Final

from django.core.validators import RegexValidator, URLValidator
from rest_framework import serializers
from rest_framework.schemas.openapi import AutoSchema

from awp_publish.declare.discover.components import as_object, as_objects
from awp_publish.declare.discover.routes import Mode
from awp_publish.schema import UnusableSchema, reason_of
from awp_publish_django.form_fields import file_schema, pattern_of, plain_text, python_pattern

_HIDDEN: Final[Mapping[Mode, str]] = {"validation": "readOnly", "serialization": "writeOnly"}

_OWN: Final = frozenset({"nullable", "readOnly", "writeOnly"})


def schema_of(declared: type[Any], mode: Mode) -> dict[str, object]:
    try:
        serializer = declared(many=False)
        schema = AutoSchema().map_serializer(serializer)
        # Of a method's answer AutoSchema says that it is text, which it need not be.
        methods = (serializers.SerializerMethodField, serializers.ReadOnlyField)
        computed = {name for name, one in serializer.fields.items() if isinstance(one, methods)}
        own = {name: _own_words(one) for name, one in serializer.fields.items()} if mode == "validation" else {}
    except Exception as error:  # whatever somebody's serializer raises, it is about this schema
        raise UnusableSchema(f"{declared.__name__}: {reason_of(error)}") from error
    translated = translate(schema, mode)
    properties = dict(as_object(translated.get("properties")))
    members = {
        name: {} if name in computed else {**as_object(one), **own.get(name, {})} for name, one in properties.items()
    }
    told = {name: {word: fact for word, fact in one.items() if fact is not None} for name, one in members.items()}
    return {**translated, "properties": told}


def _own_words(field: Any) -> dict[str, object]:
    """Return what REST framework's document does not say of an input: a file, a password, what is never shown again."""
    words: dict[str, object] = {}
    if isinstance(field, serializers.FileField):
        words |= {"type": None, "format": None} | file_schema(image=isinstance(field, serializers.ImageField))
    if field.style.get("input_type") == "password":
        words["format"] = "password"
    if field.write_only:
        words["writeOnly"] = True
    if field.help_text:
        words["description"] = plain_text(field.help_text)
    expression = next((one for one in field.validators if isinstance(one, RegexValidator)), None)
    if expression is not None and not isinstance(expression, URLValidator):  # the document leaves its flags out
        words |= {"pattern": None} | pattern_of(expression)
    return words


def translate(schema: Mapping[str, object], mode: Mode) -> dict[str, object]:
    """OpenAPI 3.0 in words of JSON Schema 2020-12, without what is not for this direction."""
    found = {key: value for key, value in schema.items() if key not in _OWN}
    if "properties" in found:
        members = {name: as_object(one) for name, one in as_object(found["properties"]).items()}
        shown = {name: translate(one, mode) for name, one in members.items() if not one.get(_HIDDEN[mode])}
        required = found.get("required")
        wanted = [name for name in required if name in shown] if isinstance(required, list) else []
        found |= {"properties": shown, "required": wanted}
    if isinstance(found.get("items"), Mapping):
        found["items"] = translate(as_object(found["items"]), mode)
    for word in ("anyOf", "oneOf", "allOf"):
        if word in found:
            found[word] = [translate(one, mode) for one in as_objects(found[word])]
    if isinstance(pattern := found.pop("pattern", None), str) and "format" not in found:  # a format says it better
        found |= python_pattern(pattern)
    if found.get("format") == "decimal":
        found = {"type": ["string", "number"]}
    if schema.get("nullable"):
        kind, listed = found.get("type"), found.get("enum")
        if kind is not None:
            found["type"] = [*(kind if isinstance(kind, list) else [kind]), "null"]
        if isinstance(listed, list):
            found["enum"] = [*listed, None]
    return found
