"""The fields of Django forms as JSON Schema."""

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from html import unescape
from typing import Any, Final

from django import forms
from django.core import validators
from django.core.exceptions import FieldDoesNotExist
from django.core.serializers.json import DjangoJSONEncoder
from django.db import DatabaseError
from django.db.models import IntegerField as IntegerModelField, Model, UUIDField as UuidModelField
from django.utils.encoding import force_str
from django.utils.html import strip_tags

from awp_publish.plugins.patterns.ecma import UntranslatablePattern, to_ecma
from awp_publish.plugins.patterns.portable import LEFT_OUT
from awp_publish.schema import UnusableSchema, compile_schema
from awp_publish.schema.files import MAX_MEDIA_TYPE, MEDIA_TYPE
from awp_publish.schema.parts import as_object, as_objects

Schema = dict[str, object]


MAX_LABELS: Final = 20
"""The labels of more choices are left out of a description."""


def when_left_out(field: forms.Field, schema: Schema, on_page: bool) -> Schema:
    """Return the schema of a field of something that is there already, with what becomes of it if it is left out.

    Its page shows the value that it has, so no initial value is a default; null empties what is not required.
    """
    if not on_page and field.initial is not None:
        return schema
    if not on_page:
        is_text = not field.required and isinstance(field.widget, (forms.TextInput, forms.Textarea))
        return _with_words(schema, "Left out, it is sent empty, which clears it.") if is_text else schema
    described = {name: fact for name, fact in schema.items() if name != "default"}
    if field.required:
        return described
    words = "Left out, it stays as it is."
    if described.get("type") not in ("boolean", "array"):
        described, words = _or_null(described), "Left out, it stays as it is; null empties it."
    return _with_words(described, words)


def _with_words(schema: Schema, words: str) -> Schema:
    described = str(schema.get("description", ""))
    end = "" if not described or described[-1] in ".!?" else "."
    return {**schema, "description": f"{described}{end} {words}".strip()}


def _or_null(schema: Schema) -> Schema:
    changed = dict(schema)
    if isinstance(several := schema.get("anyOf"), list) and "type" not in schema:
        changed["anyOf"] = [*several, {"type": "null"}]
    if isinstance(kind := schema.get("type"), (str, list)):
        kinds = [kind] if isinstance(kind, str) else kind
        changed["type"] = kinds if "null" in kinds else [*kinds, "null"]
    if isinstance(listed := schema.get("enum"), list):
        changed["enum"] = [*listed, None]
    return changed


def or_blank(schema: Mapping[str, object]) -> Schema:
    """Return the schema of a text that may be empty whatever else it is checked for."""
    checked = {word: schema[word] for word in ("pattern", "minLength", "format") if schema.get(word) is not None}
    if not checked or schema.get("format") == "password":
        return dict(schema)
    if set(checked) == {"pattern"}:
        return {**schema, "pattern": f"^$|{schema['pattern']}"}
    rest = {word: fact for word, fact in schema.items() if word not in checked}
    return {**rest, "anyOf": [checked, {"const": ""}]}


def describe_field(name: str, field: forms.Field, model: type[Model] | None = None) -> Schema:
    """The schema of a field, of a form of `model`. Raises UnusableSchema for one of several parts."""
    schema = next((describe(field) for kind, describe in _KINDS if isinstance(field, kind)), None)
    if schema is None:
        raise UnusableSchema(f"its field {name} ({type(field).__name__}) has several parts; declare a raw schema")
    if isinstance(field.widget, forms.PasswordInput):
        schema["format"] = "password"
    schema |= _bounds(name, field, schema, model)
    if not field.required and "enum" not in schema:
        schema = or_blank(schema)
    return {**schema, **_words(field, schema), **_initial(field, schema)}


def plain_text(text: object) -> str:
    """Text without markup."""
    return " ".join(unescape(strip_tags(force_str(text))).split())


def _words(field: forms.Field, schema: Schema) -> Schema:
    """Help text and label, and the labels of choices if they say more than the values."""
    text = field.help_text or field.label
    words = [plain_text(text)] if text else []
    labels = choices_of(field) if "enum" in as_object(schema.get("items", schema)) else []
    if len(labels) <= MAX_LABELS and any(str(value).lower() != label.lower() for value, label in labels):
        words.append("; ".join(f"{value}: {label}" for value, label in labels))
    title = {"title": plain_text(field.label)} if field.label and field.help_text else {}
    return {**title, "description": " ".join(words)} if words else {}


def _initial(field: forms.Field, schema: Schema) -> Schema:
    """The initial value, unless it is computed for each page, has no JSON or would be refused."""
    if field.initial is None:
        return {}
    try:
        value = json.loads(json.dumps(field.initial, cls=DjangoJSONEncoder))
        return {} if compile_schema(schema)(value) else {"default": value}
    except (ValueError, TypeError):
        return {}


def _bounds(name: str, field: forms.Field, schema: Schema, model: type[Model] | None) -> Schema:
    """Return the limits of the field's and the model's validators, as far as JSON Schema has keywords for them."""
    bounds: Schema = {}
    words = _LIMITS_OF.get(str(schema.get("type")), {})
    listed: list[Any] = list(field.validators)
    if model is not None:
        with suppress(FieldDoesNotExist):
            listed += getattr(model._meta.get_field(name), "validators", [])
    for validator in listed:
        word = next((word for kind, word in words.items() if isinstance(validator, kind)), None)
        if word is not None:
            limit = validator.limit_value() if callable(validator.limit_value) else validator.limit_value
            bounds[word] = limit if isinstance(limit, int) else float(limit)
        elif isinstance(validator, validators.RegexValidator) and "pattern" not in bounds and "format" not in schema:
            bounds |= pattern_of(validator)
    if schema.get("type") == "string" and field.required and "enum" not in schema:
        bounds.setdefault("minLength", 1)
    return bounds


def pattern_of(validator: validators.RegexValidator) -> Schema:
    """Return a validator's expression as a `pattern`, or why it is left out."""
    expression: re.Pattern[str] = validator.regex  # type: ignore[assignment]
    return python_pattern(expression.pattern, expression.flags, is_excluded=bool(validator.inverse_match))


def python_pattern(expression: str, flags: int = 0, *, is_excluded: bool = False) -> Schema:
    """Return an expression of Python as a `pattern`, or why it is left out."""
    try:
        if is_excluded:
            raise UntranslatablePattern("what matches it is refused")
        schema: Schema = {"pattern": to_ecma(expression, flags=flags, is_unicode=True)}
        compile_schema(schema)
    except (UntranslatablePattern, UnusableSchema) as error:
        return {LEFT_OUT: f"{expression}: {error}"}
    return schema


_LIMITS_OF: Final[Mapping[str, Mapping[type, str]]] = {
    "string": {validators.MinLengthValidator: "minLength", validators.MaxLengthValidator: "maxLength"},
    "integer": {validators.MinValueValidator: "minimum", validators.MaxValueValidator: "maximum"},
    "number": {validators.MinValueValidator: "minimum", validators.MaxValueValidator: "maximum"},
}


def _text(form: str | None, field: forms.Field) -> Schema:
    return {"type": "string"} if form is None else {"type": "string", "format": form}


def _choice(field: forms.Field) -> Schema:
    values = [value for value, _ in choices_of(field)]
    if not values:
        return {"type": ["string", "integer"]}  # there are none yet, so none are ruled out
    return (
        {"enum": values} if any(not isinstance(value, str) for value in values) else {"type": "string", "enum": values}
    )


def choices_of(field: forms.Field) -> list[tuple[object, str]]:
    """Values and labels, without groups and the empty choice; none of those that are in the database."""
    choices: list[tuple[object, str]] = []
    try:
        listed = list(field.choices)  # type: ignore[attr-defined]
    except DatabaseError:
        return choices
    for value, label in listed:
        group = label if isinstance(label, (list, tuple)) else [(value, label)]
        for choice, text in group:
            if choice not in ("", None):
                is_number = isinstance(choice, int) and not isinstance(choice, bool)
                choices.append((choice if is_number else force_str(choice), force_str(text)))
    return choices


def _several(describe: Callable[[forms.Field], Schema], field: forms.Field) -> Schema:
    least = {"minItems": 1} if field.required else {}
    return {"type": "array", "items": describe(field), "uniqueItems": True, **least}


def _reference(field: forms.Field) -> Schema:
    """A row of the database, by the value with which the form refers to it. Rows change, so none are listed."""
    queryset = field.queryset  # type: ignore[attr-defined]
    options = queryset.model._meta
    to_field: str | None = field.to_field_name  # type: ignore[attr-defined]
    try:
        column = options.get_field(to_field) if to_field else options.pk
    except FieldDoesNotExist:  # a lookup through other rows, which the form takes as well
        return {"type": ["string", "integer"]}
    if isinstance(column, IntegerModelField):
        return {"type": "integer"}
    return {"type": "string", "format": "uuid"} if isinstance(column, UuidModelField) else {"type": "string"}


def _fixed(schema: Schema, field: forms.Field) -> Schema:
    return dict(schema)


def file_schema(*, image: bool = False) -> Schema:
    """A file: its content in base64, with a name if the site looks at the extension, or as a data URL."""
    content: Schema = {"type": "string", "contentEncoding": "base64"}
    name = {"type": "string", "minLength": 1, "description": "With its extension: cover.png."}
    kind = {"type": "string", "maxLength": MAX_MEDIA_TYPE, "pattern": f"^{MEDIA_TYPE}$", "description": "image/png"}
    properties = {"filename": name, "content_type": kind, "content": content}
    url = r"^data:image/[^,]*;base64,." if image else r"^data:[^,]*;base64,."
    return {
        "anyOf": [
            content,
            {"type": "string", "pattern": url, "description": "A data URL."},
            {
                "type": "object",
                "properties": properties,
                "required": ["filename", "content"],
                "additionalProperties": False,
            },
        ]
    }


def _file(field: forms.Field) -> Schema:
    """A file, or several (Django, uploading multiple files)."""
    several = getattr(field.widget, "allow_multiple_selected", False)
    return {"type": "array", "items": file_schema()} if several else file_schema()


def is_file(schema: Schema | Mapping[str, object]) -> bool:
    """Return True if a schema is that of a file or of several."""
    kinds = as_objects(as_object(schema.get("items", schema)).get("anyOf"))
    return any("contentEncoding" in kind for kind in kinds[:1])


_KINDS: Final[tuple[tuple[type[forms.Field] | tuple[type[forms.Field], ...], Callable[[Any], Schema]], ...]] = (
    (forms.ModelMultipleChoiceField, partial(_several, _reference)),
    (forms.ModelChoiceField, _reference),
    (forms.MultipleChoiceField, partial(_several, _choice)),
    (forms.ChoiceField, _choice),
    (forms.NullBooleanField, partial(_fixed, {"type": ["boolean", "null"]})),
    # A required checkbox must be checked.
    (forms.BooleanField, lambda field: {"type": "boolean", **({"const": True} if field.required else {})}),
    (forms.ImageField, lambda field: file_schema(image=True)),
    (forms.FileField, _file),
    (forms.FloatField, partial(_fixed, {"type": "number"})),
    (forms.DecimalField, partial(_fixed, {"type": "number"})),
    (forms.IntegerField, partial(_fixed, {"type": "integer"})),
    (forms.DateTimeField, partial(_text, "date-time")),
    (forms.DateField, partial(_text, "date")),
    (forms.TimeField, partial(_fixed, {"type": "string", "pattern": r"^\d{1,2}:\d{2}(:\d{2}(\.\d{1,6})?)?$"})),
    (forms.DurationField, partial(_text, None)),
    (forms.EmailField, partial(_text, "email")),
    (forms.URLField, partial(_text, "uri")),
    (forms.UUIDField, partial(_text, "uuid")),
    (forms.JSONField, partial(_fixed, {"type": ["object", "array", "number", "boolean"]})),
    ((forms.CharField, forms.ComboField), partial(_text, None)),
)
"""The first that fits; subclasses before their parents."""
