"""`@site.model(Book, fields=..., search=...)`: what a model has, as actions that list, search and read.

Through the model's default manager, or the queryset that a decorated function returns; where the site knows its
callers, for those with the permission to view. Nothing is written here.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from django.core.exceptions import FieldDoesNotExist, FieldError, ValidationError
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Model, Q

from awp_publish import DeclarationError, Site
from awp_publish.problems import InvalidInput, Refused, Violation

MOST: Final = 100
"""Rows of one page, at most."""

USUAL: Final = 20


def declare_model(
    site: Site,
    model: type,
    fields: Sequence[str],
    search: Sequence[str],
    rows: Sequence[Callable[[], Any]],
) -> bool:
    """Declare `list_books` and `get_book` for a model; False for what is none. `rows` may have a function of its rows.

    Raises DeclarationError for a field that there is not.
    """
    if not issubclass(model, Model):
        return False
    options = model._meta
    subject = f"site.model({options.object_name})"
    for name in fields:
        try:
            found = options.get_field(name)
        except FieldDoesNotExist as error:
            there = ", ".join(one.name for one in options.get_fields() if hasattr(one, "attname"))
            raise DeclarationError(subject, f'fields: there is no field "{name}".', f"There are: {there}.") from error
        if not hasattr(found, "attname"):
            raise DeclarationError(subject, f'fields: "{name}" has several values.', "Name fields with one value.")
    one, many = _word(options.verbose_name), _word(options.verbose_name_plural)
    columns = list(dict.fromkeys((options.pk.name, *fields)))
    key = options.pk.name

    def found_rows() -> Any:
        return rows[0]() if rows else model._default_manager.all()

    def show(row: Any) -> dict[str, object]:
        shown = {name: getattr(row, options.get_field(name).attname) for name in columns}  # type: ignore[union-attr]
        plain: dict[str, object] = json.loads(json.dumps(shown, cls=DjangoJSONEncoder, default=str))
        return plain

    def list_them(given: Mapping[str, Any]) -> dict[str, object]:
        query = found_rows()
        text = str(given.get("search", "")).strip()
        for word in text.split()[:10] if search else ():
            condition = Q()
            for name in search:
                condition |= Q(**{f"{name}__icontains": word})
            query = query.filter(condition)
        try:
            order = given.get("ordering")
            query = query.order_by(order, "pk") if order else query if query.ordered else query.order_by("pk")
            count = query.count()
        except FieldError as error:
            raise InvalidInput(str(error)) from error
        size, page = int(given.get("page_size", USUAL)), int(given.get("page", 1))
        shown = [show(row) for row in query[(page - 1) * size : page * size]]
        return {"count": count, "page": page, "pages": max(1, -(-count // size)), "results": shown}

    def get_one(given: Mapping[str, Any]) -> dict[str, object]:
        try:
            row = found_rows().filter(pk=given[key]).first()
        except (ValueError, ValidationError, OverflowError) as error:
            raise InvalidInput(f"{key} is none of these.", errors=[Violation(f"/{key}", "is not valid")]) from error
        if row is None:
            raise Refused(f"There is no {options.verbose_name} {given[key]}.", status=404)
        return show(row)

    known: dict[str, object] = {
        "page": _whole(None, "Which page, from 1 on."),
        "page_size": _whole(MOST, "Rows of it."),
    }
    if search:
        known["search"] = {"type": "string", "maxLength": 200, "description": f"Words in {', '.join(search)}."}
    known["ordering"] = {
        "enum": [f"{sign}{name}" for name in columns for sign in ("", "-")],
        "description": "What to order by; a minus turns it around.",
    }
    guarded = {"auth_required": True, "scopes": [f"{options.app_label}.view_{options.model_name}"]}
    shared: dict[str, Any] = {"effect": "read", **(guarded if site.authenticators else {})}
    row_schema = {"type": "object", "properties": {name: {} for name in columns}, "required": columns}
    answers = {"type": "object", "properties": {"results": {"type": "array", "items": row_schema}}}
    listed = {"type": "object", "properties": known, "additionalProperties": False}
    asked = {
        "type": "object",
        "properties": {key: _schema_of(options.pk)},
        "required": [key],
        "additionalProperties": False,
    }
    about = f"List {options.verbose_name_plural}{', or search for them' if search else ''}."
    for name in search:
        try:
            model._default_manager.filter(**{f"{name}__icontains": "a"})
        except FieldError as error:
            raise DeclarationError(subject, f"search: {error}.") from error
    site.agent(f"list_{many}", description=about, inputs=listed, outputs=answers, **shared)(list_them)
    site.agent(
        f"get_{one}", description=f"Show one {options.verbose_name}.", inputs=asked, outputs=row_schema, **shared
    )(get_one)
    return True


def _word(name: object) -> str:
    return "_".join("".join(letter if letter.isalnum() else " " for letter in str(name).lower()).split())


def _whole(most: int | None, words: str) -> dict[str, object]:
    return {"type": "integer", "minimum": 1, "maximum": most or 1_000_000, "description": words}


def _schema_of(column: Any) -> dict[str, object]:
    kind = column.get_internal_type()
    return {"type": "integer"} if kind.endswith(("AutoField", "IntegerField")) else {"type": "string", "minLength": 1}
