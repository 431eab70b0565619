"""Schemas of serializers of Django REST framework."""

import json
from collections.abc import Mapping
from typing import Any, Final

from django.core.exceptions import FieldDoesNotExist
from django.core.validators import RegexValidator, URLValidator
from rest_framework import ISO_8601, serializers
from rest_framework.schemas.openapi import AutoSchema
from rest_framework.settings import api_settings
from rest_framework.utils.encoders import JSONEncoder

from awp_publish.declare.discover.routes import Mode
from awp_publish.schema import UnusableSchema, reason_of
from awp_publish.schema.parts import as_object, as_objects
from awp_publish_django.form_fields import file_schema, or_blank, pattern_of, plain_text, python_pattern

_HIDDEN: Final[Mapping[Mode, str]] = {"validation": "readOnly", "serialization": "writeOnly"}

_OWN: Final = frozenset({"nullable", "readOnly", "writeOnly"})


_CHECKED: Final = frozenset(
    {
        *("pattern", "minLength", "maxLength", "minItems", "maxItems"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    }
)
"""What REST framework checks in inputs only: what is stored already is given as it is."""


_TEXTS: Final = (
    *(serializers.CharField, serializers.ChoiceField, serializers.UUIDField, serializers.FileField),
    *(serializers.DateField, serializers.DateTimeField, serializers.TimeField, serializers.DurationField),
    *(serializers.StringRelatedField, serializers.SlugRelatedField, serializers.HyperlinkedRelatedField),
)


class _Schema(AutoSchema):  # type: ignore[misc]
    def map_field(self, field: Any) -> Any:
        """Return a field's schema: nothing where AutoSchema says that it is a text because it does not know.

        It takes a list of plain values for one of serializers.
        """
        if isinstance(field, serializers.ListSerializer) and not isinstance(field.child, serializers.BaseSerializer):
            return {"type": "array", "items": self.map_field(field.child)}
        if isinstance(field, serializers.ChoiceField) and not field.choices:
            return {}  # of no choices, AutoSchema says that they are booleans
        schema = super().map_field(field)
        return {} if schema == {"type": "string"} and not isinstance(field, _TEXTS) else schema


def is_of_framework(handler: object) -> bool:
    """Return True for what REST framework itself has written."""
    return str(getattr(handler, "__module__", "")).startswith("rest_framework.")


def schema_of(declared: type[Any], mode: Mode, context: Mapping[str, object]) -> dict[str, object]:
    try:
        serializer = declared(context=context)
        schema = _Schema().map_serializer(serializer)
        return _refine(serializer, translate(schema, mode), mode)
    except Exception as error:  # whatever somebody's serializer raises, it is about this schema
        raise UnusableSchema(f"{declared.__name__}: {reason_of(error)}") from error


def _refine(serializer: Any, schema: Mapping[str, object], mode: Mode) -> dict[str, object]:
    """Return the schema of a serializer with what AutoSchema does not say of its fields."""
    properties = dict(as_object(schema.get("properties")))
    for name, field in serializer.fields.items():
        if name in properties:
            facts = _refine_field(field, as_object(properties[name]), mode)
            if mode == "serialization" and _may_be_none(serializer, field):
                facts = _with_null(facts)
            properties[name] = {word: fact for word, fact in facts.items() if fact is not None}
    return {**schema, "properties": properties}


def _refine_field(field: Any, facts: Mapping[str, object], mode: Mode) -> Mapping[str, object]:
    is_own = not is_of_framework(field.to_representation) or isinstance(field, serializers.SlugRelatedField)
    if mode == "serialization" and is_own:
        return {}  # it gives what it likes
    if isinstance(field, serializers.JSONField):
        facts = {word: fact for word, fact in facts.items() if word != "type"}  # a list or a number, too
    elif isinstance(field, serializers.Serializer):
        facts = _refine(field, facts, mode)
    elif isinstance(field, (serializers.ListSerializer, serializers.ListField, serializers.DictField)):
        word = "additionalProperties" if isinstance(field, serializers.DictField) else "items"
        child = _refine_field(field.child, as_object(facts.get(word)), mode)
        if mode == "serialization" and not isinstance(field, serializers.ListSerializer):
            child = _with_null(child)
        facts = {**facts, word: {name: fact for name, fact in child.items() if fact is not None}}
    elif isinstance(field, serializers.FileField):
        is_address = getattr(field, "use_url", api_settings.UPLOADED_FILES_USE_URL)
        facts = {**facts, "format": "uri-reference" if is_address else None}  # the document says that it is the content
    elif mode == "serialization" and _is_written_otherwise(field):
        facts = {word: fact for word, fact in facts.items() if word != "format"}
    if mode == "validation":
        facts = {**facts, **_own_words(field)}
        facts = or_blank(facts) if getattr(field, "allow_blank", False) else facts
    return facts


def _is_written_otherwise(field: Any) -> bool:
    """Return True for a date or time that is not given as ISO 8601 has it."""
    kind = next((kind for kind in _TIMES if isinstance(field, kind)), None)
    return kind is not None and getattr(field, "format", getattr(api_settings, _TIMES[kind])) not in (None, ISO_8601)


_TIMES: Final[Mapping[type, str]] = {
    serializers.DateTimeField: "DATETIME_FORMAT",
    serializers.DateField: "DATE_FORMAT",
    serializers.TimeField: "TIME_FORMAT",
}


def _may_be_none(serializer: Any, field: Any) -> bool:
    """Return True for a field that may be given as null: REST framework checks no answer, a column may refuse nulls."""
    model = getattr(getattr(serializer, "Meta", None), "model", None)
    if model is None or isinstance(field, serializers.FileField):
        return True
    try:
        stored = model._meta.get_field(field.source)
    except FieldDoesNotExist:
        return True
    has_many = stored.one_to_many or stored.many_to_many
    return stored.null and not has_many


def _with_null(schema: Mapping[str, object]) -> dict[str, object]:
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    return {**schema, "type": [*kinds, "null"]} if kind is not None and "null" not in kinds else dict(schema)


def _own_words(field: Any) -> dict[str, object]:
    """Return what REST framework's document does not say of an input: a file, a password, what is never shown again."""
    words: dict[str, object] = {}
    if isinstance(field, serializers.FileField):
        words |= {"type": None, "format": None} | file_schema(image=isinstance(field, serializers.ImageField))
        if field.allow_null:
            words["anyOf"] = [*as_objects(words.get("anyOf")), {"type": "null"}]
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
    for word in translated.keys() & {"default", "enum"}:  # of values in Python, such as a set
        try:
            translated[word] = json.loads(json.dumps(translated[word], cls=JSONEncoder))
        except (TypeError, ValueError):
            del translated[word]
    if "properties" in translated:
        members = {name: as_object(member) for name, member in as_object(translated["properties"]).items()}
        visible = {name: translate(member, mode) for name, member in members.items() if not member.get(_HIDDEN[mode])}
        required = translated.get("required")
        visible_required = [name for name in required if name in visible] if isinstance(required, list) else []
        translated |= {"properties": visible, "required": visible_required}
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
        translated = _with_null(translated)
        if isinstance(listed := translated.get("enum"), list):
            translated["enum"] = [*listed, None]
    if mode == "serialization":
        translated = {word: fact for word, fact in translated.items() if word not in _CHECKED}
        if "enum" in translated:
            translated["examples"] = translated.pop("enum")
    return translated
