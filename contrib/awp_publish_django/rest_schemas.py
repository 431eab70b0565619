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
        computed = {name for name, field in serializer.fields.items() if isinstance(field, methods)}
        own = {name: _own_words(field) for name, field in serializer.fields.items()} if mode == "validation" else {}
    except Exception as error:  # whatever somebody's serializer raises, it is about this schema
        raise UnusableSchema(f"{declared.__name__}: {reason_of(error)}") from error
    translated = translate(schema, mode)
    properties = dict(as_object(translated.get("properties")))
    members = {
        name: {} if name in computed else {**as_object(fact), **own.get(name, {})} for name, fact in properties.items()
    }
    told = {name: {word: fact for word, fact in facts.items() if fact is not None} for name, facts in members.items()}
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
    expression = next((validator for validator in field.validators if isinstance(validator, RegexValidator)), None)
    if expression is not None and not isinstance(expression, URLValidator):  # the document leaves its flags out
        words |= {"pattern": None} | pattern_of(expression)
    return words


def translate(schema: Mapping[str, object], mode: Mode) -> dict[str, object]:
    """OpenAPI 3.0 in words of JSON Schema 2020-12, without what is not for this direction."""
    translated = {key: value for key, value in schema.items() if key not in _OWN}
    if "properties" in translated:
        members = {name: as_object(member) for name, member in as_object(translated["properties"]).items()}
        visible = {name: translate(member, mode) for name, member in members.items() if not member.get(_HIDDEN[mode])}
        required = translated.get("required")
        wanted = [name for name in required if name in visible] if isinstance(required, list) else []
        translated |= {"properties": visible, "required": wanted}
    if isinstance(translated.get("items"), Mapping):
        translated["items"] = translate(as_object(translated["items"]), mode)
    for word in ("anyOf", "oneOf", "allOf"):
        if word in translated:
            translated[word] = [translate(part, mode) for part in as_objects(translated[word])]
    pattern = translated.pop("pattern", None)
    if isinstance(pattern, str) and "format" not in translated:  # a format says it better
        translated |= python_pattern(pattern)
    if translated.get("format") == "decimal":
        translated = {"type": ["string", "number"]}
    if schema.get("nullable"):
        kind, listed = translated.get("type"), translated.get("enum")
        if kind is not None:
            translated["type"] = [*(kind if isinstance(kind, list) else [kind]), "null"]
        if isinstance(listed, list):
            translated["enum"] = [*listed, None]
    return translated
