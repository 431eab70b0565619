"""Django forms as inputs: their fields as JSON Schema, sent as the form fields that the view expects."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from django import forms
from django.core import validators
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import AutoField, IntegerField as IntegerModelField, UUIDField as UuidModelField
from django.forms.models import modelform_factory
from django.utils.encoding import force_str

from awp_publish.discover.routes import FORM_TYPES, NO_BODY_METHODS, Operation
from awp_publish.model import Location, Parameter
from awp_publish.schema import UnusableSchema, compile_schema

Schema = dict[str, object]
URLENCODED, MULTIPART = FORM_TYPES
MOST_LABELS: Final = 20
"""Choices up to which their labels are written out."""


def read_form(declared: object, method: str) -> Operation | None:
    """What a form class takes, None for anything else. Raises UnusableSchema for a field that has no JSON Schema."""
    if not isinstance(declared, type) or not issubclass(declared, forms.BaseForm):
        return None
    fields = {name: one for name, one in _fields_of(declared).items() if not one.disabled}
    required = [name for name, one in fields.items() if one.required]
    inputs: Schema = {"type": "object", "properties": {name: _describe(name, one) for name, one in fields.items()}}
    inputs |= {"required": required} if required else {}
    inputs["additionalProperties"] = False
    has_files = any(isinstance(one, forms.FileField) for one in fields.values())
    body_type = None if method in NO_BODY_METHODS else MULTIPART if has_files else URLENCODED
    parameters = (
        Parameter(name, _location(one, body_type), _wire_name(declared, name)) for name, one in fields.items()
    )
    return Operation(inputs, {}, tuple(parameters), body_type)


def form_of_view(cls: type | None, options: Mapping[str, object]) -> type[forms.BaseForm] | None:
    """The form of Django's generic editing views: `form_class`, or the model's with `fields`."""

    def given(name: str) -> Any:
        return options.get(name) or getattr(cls, name, None)

    form, model, fields = given("form_class"), given("model"), given("fields")
    if isinstance(form, type) and issubclass(form, forms.BaseForm):
        return form
    if model is not None and fields is not None and hasattr(cls, "get_form_class"):
        return modelform_factory(model, fields=fields)
    return None


def _fields_of(form: type[forms.BaseForm]) -> Mapping[str, forms.Field]:
    fields: Mapping[str, forms.Field] = form.base_fields  # type: ignore[attr-defined]
    return fields


def _wire_name(form: type[forms.BaseForm], name: str) -> str:
    prefix = getattr(form, "prefix", None)
    return f"{prefix}-{name}" if prefix else name


def _location(field: forms.Field, body_type: str | None) -> Location:
    if body_type is None:
        return "query"
    return "file" if isinstance(field, forms.FileField) else "form"


# --- One field ---


def _describe(name: str, field: forms.Field) -> Schema:
    for kind, describe in _KINDS:
        if isinstance(field, kind):
            schema = describe(field)
            break
    else:
        raise UnusableSchema(f"its field {name} ({type(field).__name__}) has several parts; declare a raw schema")
    return {**schema, **_bounds(field, schema), **_words(field, schema), **_initial(field, schema)}


def _words(field: forms.Field, schema: Schema) -> Schema:
    """Help text and label; labels of choices where they say more than the values."""
    told = [force_str(one) for one in (field.help_text or field.label,) if one]
    labels = _labels(field)
    if labels:
        told.append("; ".join(f"{value}: {label}" for value, label in labels))
    title = {"title": force_str(field.label)} if field.label and field.help_text else {}
    return {**title, "description": " ".join(told)} if told else {}


def _initial(field: forms.Field, schema: Schema) -> Schema:
    """The initial value, unless it is made anew for each page or would be refused."""
    if field.initial is None or callable(field.initial):
        return {}
    try:
        value = _plain(field.initial)
        return {} if compile_schema(schema)(value) else {"default": value}
    except (ValueError, TypeError, UnusableSchema):
        return {}


def _plain(value: object) -> object:
    return json.loads(json.dumps(value, cls=DjangoJSONEncoder))


def _bounds(field: forms.Field, schema: Schema) -> Schema:
    """What validators refuse, in words of JSON Schema; what has none stays with the form."""
    bounds: Schema = {}
    words = _LIMITS_OF.get(str(schema.get("type")), {})
    listed: list[Any] = field.validators
    for one in listed:
        word = next((word for kind, word in words.items() if isinstance(one, kind)), None)
        if word is not None:
            limit = one.limit_value() if callable(one.limit_value) else one.limit_value
            bounds[word] = limit if isinstance(limit, int) else float(limit)
        elif isinstance(one, validators.RegexValidator) and "pattern" not in bounds and "format" not in schema:
            bounds |= _pattern(one)
    if schema.get("type") == "string" and field.required and "enum" not in schema:
        bounds.setdefault("minLength", 1)
    return bounds


def _pattern(validator: validators.RegexValidator) -> Schema:
    expression: re.Pattern[str] = validator.regex  # type: ignore[assignment]
    if validator.inverse_match or expression.flags & ~re.UNICODE:
        return {}
    schema: Schema = {"pattern": expression.pattern.replace(r"\Z", "$").replace(r"\A", "^")}
    try:
        compile_schema(schema)
    except UnusableSchema:
        return {}
    return schema


_LIMITS_OF: Final[Mapping[str, Mapping[type, str]]] = {
    "string": {validators.MinLengthValidator: "minLength", validators.MaxLengthValidator: "maxLength"},
    "integer": {validators.MinValueValidator: "minimum", validators.MaxValueValidator: "maximum"},
    "number": {validators.MinValueValidator: "minimum", validators.MaxValueValidator: "maximum"},
}


# --- Kinds of fields ---


def _text(form: str | None, field: forms.Field) -> Schema:
    return {"type": "string"} if form is None else {"type": "string", "format": form}


def _boolean(field: forms.Field) -> Schema:
    """A box that has to be ticked is one that is ticked."""
    return {"type": "boolean", "const": True} if field.required else {"type": "boolean"}


def _choice(field: forms.Field) -> Schema:
    values = [value for value, _ in _choices(field)]
    return (
        {"enum": values} if any(not isinstance(value, str) for value in values) else {"type": "string", "enum": values}
    )


def _choices(field: forms.Field) -> list[tuple[object, str]]:
    """Values and labels, out of their groups, without the empty one."""
    found: list[tuple[object, str]] = []
    for value, label in field.choices:  # type: ignore[attr-defined]
        group = label if isinstance(label, (list, tuple)) else [(value, label)]
        found += [(_json_value(one), force_str(text)) for one, text in group if one not in ("", None)]
    return found


def _json_value(value: object) -> object:
    return value if isinstance(value, int) and not isinstance(value, bool) else force_str(value)


def _labels(field: forms.Field) -> list[tuple[object, str]]:
    if not isinstance(field, forms.ChoiceField) or isinstance(field, forms.ModelChoiceField):
        return []
    pairs = _choices(field)
    differ = any(str(value).lower() != label.lower() for value, label in pairs)
    return pairs if differ and len(pairs) <= MOST_LABELS else []


def _several(describe: Callable[[forms.Field], Schema], field: forms.Field) -> Schema:
    least = {"minItems": 1} if field.required else {}
    return {"type": "array", "items": describe(field), "uniqueItems": True, **least}


def _reference(field: forms.Field) -> Schema:
    """A row of the database, by the value that the form knows it by; which there are changes, so none are listed."""
    queryset = field.queryset  # type: ignore[attr-defined]
    options = queryset.model._meta
    named: str | None = field.to_field_name  # type: ignore[attr-defined]
    column = options.get_field(named) if named else options.pk
    if isinstance(column, (AutoField, IntegerModelField)):
        return {"type": "integer"}
    return {"type": "string", "format": "uuid"} if isinstance(column, UuidModelField) else {"type": "string"}


def _fixed(schema: Schema, field: forms.Field) -> Schema:
    return dict(schema)


def _kinds() -> Iterable[tuple[type[forms.Field], Callable[[Any], Schema]]]:
    """The first that fits; subclasses before their parents."""
    yield forms.ModelMultipleChoiceField, partial(_several, _reference)
    yield forms.ModelChoiceField, _reference
    yield forms.MultipleChoiceField, partial(_several, _choice)
    yield forms.ChoiceField, _choice
    yield forms.NullBooleanField, partial(_fixed, {"type": ["boolean", "null"]})
    yield forms.BooleanField, _boolean
    yield forms.FileField, partial(_fixed, {"type": "string", "contentEncoding": "base64"})
    yield forms.FloatField, partial(_fixed, {"type": "number"})
    yield forms.DecimalField, partial(_fixed, {"type": "number"})
    yield forms.IntegerField, partial(_fixed, {"type": "integer"})
    yield forms.DateTimeField, partial(_text, "date-time")
    yield forms.DateField, partial(_text, "date")
    yield forms.TimeField, partial(_fixed, {"type": "string", "pattern": r"^\d{1,2}:\d{2}(:\d{2}(\.\d{1,6})?)?$"})
    yield forms.DurationField, partial(_text, None)
    yield forms.EmailField, partial(_text, "email")
    yield forms.URLField, partial(_text, "uri")
    yield forms.UUIDField, partial(_text, "uuid")
    yield forms.JSONField, partial(_fixed, {"type": ["object", "array", "number", "boolean"]})
    yield forms.CharField, partial(_text, None)


_KINDS: Final = tuple(_kinds())
