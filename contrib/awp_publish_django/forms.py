"""Django forms as inputs: their fields as JSON Schema, sent as the form fields that the view expects."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, cast

from django import forms
from django.forms.models import modelform_factory
from django.http import HttpRequest

from awp_publish.declare.discover.routes import FORM_TYPES, NO_BODY_METHODS, Operation
from awp_publish.model import Location, Parameter
from awp_publish.schema import UnusableSchema
from awp_publish_django.callers import make_stranger
from awp_publish_django.filling import FormParameter
from awp_publish_django.form_fields import Schema, choices_of, describe_field, when_left_out

URLENCODED, MULTIPART = FORM_TYPES


def read_form(declared: object, method: str, *, on_page: bool = False, changes: bool = False) -> Operation | None:
    """Return what a form takes, None for anything else. Raises UnusableSchema for a field that has no JSON Schema.

    `on_page` says that the form is shown at the address to which it is sent, `changes` that it may be about something
    that is there already, so that its page shows that one's values instead of the initial ones.

    A class is asked through an instance, since its fields or their choices may be made in `__init__`; one that cannot
    be made without arguments or the database is read as far as the class tells, and noted in UNREAD if that is not all.
    Several that a view reads from one request are read together.
    """
    if isinstance(declared, tuple):
        return _read_several(declared, method, on_page, changes)
    kind = declared if isinstance(declared, type) else type(declared)
    if issubclass(kind, forms.BaseFormSet):
        return _read_formset(_make_formset(kind) if isinstance(declared, type) else declared, method)  # type: ignore[arg-type]
    if not issubclass(kind, forms.BaseForm):
        return None
    instance = _make(kind) if isinstance(declared, type) else declared
    base: Mapping[str, forms.Field] = getattr(kind, "base_fields", {})
    declared_fields: Mapping[str, forms.Field] = base if instance is None else instance.fields  # type: ignore[attr-defined]
    fields = {name: field for name, field in declared_fields.items() if not field.disabled}
    if instance is None and (not fields or any(map(_is_without_choices, fields.values()))):
        UNREAD.add(kind)
    model = getattr(getattr(kind, "_meta", None), "model", None)
    properties: Schema = {}
    for name, field in fields.items():
        schema = describe_field(name, field, model)
        properties[name] = (
            when_left_out(field, schema, on_page) if changes and method not in NO_BODY_METHODS else schema
        )
    is_filled_in = changes and on_page
    required = [
        name
        for name, field in fields.items()
        if field.required and (method in NO_BODY_METHODS or not _is_shown_filled_in(field, is_filled_in))
    ]
    inputs: Schema = {"type": "object", "properties": properties}
    inputs |= {"required": required} if required else {}
    if instance is not None:
        inputs["additionalProperties"] = False
    has_files = any(isinstance(field, forms.FileField) for field in fields.values())
    body_type = None if method in NO_BODY_METHODS else MULTIPART if has_files else URLENCODED
    prefix = getattr(kind if instance is None else instance, "prefix", None)
    parameters: list[Parameter] = []
    for name, field in fields.items():
        in_body: Location = "file" if isinstance(field, forms.FileField) else "form"
        location: Location = "query" if body_type is None else in_body
        wire_name = f"{prefix}-{name}" if prefix else name
        if body_type is None:
            parameters.append(Parameter(name, location, wire_name))
        else:
            is_box = isinstance(field.widget, forms.CheckboxInput)
            parameters.append(FormParameter(name, location, wire_name, is_box=is_box, declared=field, on_page=on_page))
    return Operation(inputs, {}, tuple(parameters), body_type)


def _is_shown_filled_in(field: forms.Field, is_of_object: bool) -> bool:
    """Return True if a browser sends a value for a field that nobody touches: its page shows one."""
    is_blank = isinstance(field, (forms.FileField, forms.BooleanField)) or isinstance(field.widget, forms.PasswordInput)
    return not is_blank and (is_of_object or field.initial is not None)


def _read_several(kinds: tuple[object, ...], method: str, on_page: bool, changes: bool) -> Operation:
    """Return what forms and formsets take together, a field as it is sent if another form has one of its name.

    Raises UnusableSchema for other classes, and for names that are equal even so.
    """
    properties: Schema = {}
    required: list[object] = []
    parameters: list[Parameter] = []
    is_closed, content_type = True, None if method in NO_BODY_METHODS else URLENCODED
    for kind in kinds:
        read = read_form(kind, method, on_page=on_page, changes=changes)
        if read is None:
            raise UnusableSchema(f"its inputs have {getattr(kind, '__name__', kind)} beside forms, which is not a form")
        own: Any = read.inputs["properties"]
        names = {each.name: each.wire_name if each.name in properties else each.name for each in read.parameters}
        if twice := sorted(name for name in names.values() if name in properties):
            raise UnusableSchema(
                f"two of its forms have the field {twice[0]}; give one of them a prefix, or declare a raw schema"
            )
        properties |= {names[name]: schema for name, schema in own.items()}
        required += [names[name] for name in cast("list[str]", read.inputs.get("required") or [])]
        parameters += [replace(each, name=names[each.name]) for each in read.parameters]
        is_closed &= read.inputs.get("additionalProperties") is False
        content_type = MULTIPART if read.content_type == MULTIPART else content_type
    inputs: Schema = {"type": "object", "properties": properties} | ({"required": required} if required else {})
    inputs |= {"additionalProperties": False} if is_closed else {}
    return Operation(inputs, {}, tuple(parameters), content_type)


def _make_formset(kind: Any) -> Any:
    model = getattr(kind, "model", None)
    return kind() if model is None else kind(queryset=model._default_manager.none())


def _read_formset(formset: "forms.BaseFormSet[Any]", method: str) -> Operation:
    """Return what a formset takes: a list of rows, named by its prefix. Raises UnusableSchema for files in it."""
    if method in NO_BODY_METHODS:
        raise UnusableSchema(f"its formset {type(formset).__name__} is sent in a body, and {method} has none")
    row = formset.empty_form
    model = getattr(getattr(row, "_meta", None), "model", None)
    fields = {
        name: field
        for name, field in row.fields.items()
        if not field.disabled and not isinstance(field, forms.models.InlineForeignKeyField)
    }
    properties: Schema = {}
    for name, field in fields.items():
        if isinstance(field, forms.FileField):
            raise UnusableSchema(f"its formset {type(formset).__name__} has a file, {name}; declare a raw schema")
        properties[name] = describe_field(name, field, model)
    rows: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    needed = [name for name, field in fields.items() if field.required]
    rows |= {"required": needed} if needed and not formset.can_delete else {}
    prefix, most = str(formset.prefix), formset.max_num if formset.validate_max else formset.absolute_max
    listed: Schema = {"type": "array", "items": rows, "maxItems": most}
    listed |= {"minItems": formset.min_num} if formset.validate_min and formset.min_num else {}
    inputs: Schema = {"type": "object", "properties": {prefix: listed}, "required": [prefix]}
    inputs["additionalProperties"] = False
    return Operation(inputs, {}, (Parameter(prefix, "rows", prefix),), URLENCODED)


UNREAD: Final[set[type]] = set()
"""Forms that cannot be made without a request or the database and whose class does not say what they take; classes of
views whose form is such a one."""


def _make(kind: type[forms.BaseForm]) -> forms.BaseForm | None:
    """Return an instance of a form, None if its class makes none without a request or the database."""
    stranger = make_stranger()
    ways: list[dict[str, Any]] = [{}, {"request": None}, {"user": stranger}, {"user": stranger, "request": None}]
    for arguments in ways:
        with suppress(Exception):
            return kind(**arguments)
    return None


def _is_without_choices(field: forms.Field) -> bool:
    is_closed = isinstance(field, forms.ChoiceField) and not isinstance(field, forms.ModelChoiceField)
    return is_closed and not choices_of(field)


def form_of_view(cls: type | None, options: Mapping[str, object]) -> object:
    """The form of Django's generic editing views: what `get_form` makes, else `form_class`, or the model's `fields`.

    Of a wizard (django-formtools), the forms of all its steps, unless some may be skipped.
    """
    steps = options.get("form_list")
    if isinstance(steps, Mapping) and not options.get("condition_dict"):
        return tuple(form(prefix=step) for step, form in steps.items())
    if cls is None or not hasattr(cls, "get_form_class"):
        return None
    request = HttpRequest()
    request.method = "GET"
    request.user = make_stranger()  # type: ignore[assignment]
    request.session = {}  # type: ignore[assignment]
    try:
        view: Any = cls(**options)
        view.request, view.args, view.kwargs, view.object = request, (), {}, None
        kind = view.get_form_class()
        with suppress(Exception):  # it needs something of a real request
            return view.get_form(kind)
        if isinstance(kind, type) and issubclass(kind, forms.BaseForm):
            return kind
    except Exception:
        pass

    def option(name: str) -> Any:
        return options.get(name) or getattr(cls, name, None)

    form, model, fields = option("form_class"), option("model"), option("fields")
    if isinstance(form, type) and issubclass(form, forms.BaseForm):
        return form
    return modelform_factory(model, fields=fields) if model is not None and fields is not None else None
