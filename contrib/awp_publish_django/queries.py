"""`@site.model(Book, fields=..., search=...)`: what a model has, as actions that list, search and read.

Through the model's default manager, or the queryset that a decorated function returns; where the site knows its
callers, for those with the permission to view. Nothing is written, unless `read_only=False` says so.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from django.core.exceptions import FieldDoesNotExist, FieldError, ValidationError
from django.core.serializers.json import DjangoJSONEncoder
from django.db import DataError, IntegrityError, router, transaction
from django.db.models import Model, ProtectedError, Q, RestrictedError
from django.forms import FileField

from awp_publish import DeclarationError, Site
from awp_publish.problems import InvalidInput, Refused, Violation
from awp_publish_django.form_fields import describe_field

MOST: Final = 100
"""Rows of one page, at most."""

USUAL: Final = 20


def declare_model(
    site: Site,
    model: type,
    fields: Sequence[str],
    search: Sequence[str],
    rows: Sequence[Callable[[], Any]],
    writes: bool = False,
) -> bool:
    """Declare `list_books` and `get_book` for a model; False for what is none. `rows` may have a function of its rows.

    With `writes` there are `create_book`, `update_book` and `delete_book` too. Raises DeclarationError for a field that
    there is not or that cannot be written, and for a site that knows no callers, whose rows everybody could write.
    """
    if not issubclass(model, Model):
        return False
    options = model._meta
    subject = f"site.model({options.object_name})"
    for name in fields:
        try:
            found = options.get_field(name)
        except FieldDoesNotExist as error:
            there = ", ".join(field.name for field in options.get_fields() if hasattr(field, "attname"))
            raise DeclarationError(subject, f'fields: there is no field "{name}".', f"There are: {there}.") from error
        if not hasattr(found, "attname"):
            raise DeclarationError(subject, f'fields: "{name}" has several values.', "Name fields with one value.")
    singular, many = _word(options.verbose_name), _word(options.verbose_name_plural)
    columns = list(dict.fromkeys((options.pk.name, *fields)))
    key = options.pk.name

    written: dict[str, Any] = {}
    if writes and not site.authenticators:
        remedy = "Write Site(authenticate=ApplicationUser()): callers need the permissions to add, change and delete."
        raise DeclarationError(subject, "read_only: is False, and the site does not know its callers.", remedy)
    for name in dict.fromkeys(fields) if writes else ():
        column: Any = options.get_field(name)
        written[name] = None if name == key and column.get_internal_type().endswith("AutoField") else column.formfield()
        if isinstance(written[name], FileField):
            raise DeclarationError(subject, f'fields: "{name}" is a file, which is not written here.', "Leave it out.")
        if written[name] is None:  # a key or a value that the database makes: shown, not written
            del written[name]

    def found_rows() -> Any:
        return rows[0]() if rows else model._default_manager.all()

    def show(row: Any) -> dict[str, object]:
        columns_of_row = {name: getattr(row, options.get_field(name).attname) for name in columns}  # type: ignore[union-attr]
        plain: dict[str, object] = json.loads(json.dumps(columns_of_row, cls=DjangoJSONEncoder, default=str))
        return plain

    def list_them(inputs: Mapping[str, Any]) -> dict[str, object]:
        query = found_rows()
        text = str(inputs.get("search", "")).replace("\0", " ").strip()  # PostgreSQL has no NUL in texts
        for word in text.split()[:10] if search else ():
            condition = Q()
            for name in search:
                condition |= Q(**{f"{name}__icontains": word})
            query = query.filter(condition)
        try:
            order = inputs.get("ordering")
            query = query.order_by(order, "pk") if order else query if query.ordered else query.order_by("pk")
            count = query.count()
        except FieldError as error:
            raise InvalidInput(str(error)) from error
        size, page = int(inputs.get("page_size", USUAL)), int(inputs.get("page", 1))
        rows = [show(row) for row in query[(page - 1) * size : page * size]]
        return {"count": count, "page": page, "pages": max(1, -(-count // size)), "results": rows}

    def find(inputs: Mapping[str, Any]) -> Any:
        try:
            row = found_rows().filter(pk=inputs[key]).first()
        except (ValueError, ValidationError, OverflowError, DataError) as error:
            raise InvalidInput(f"{key} is not a valid key.", errors=[Violation(f"/{key}", "is not valid")]) from error
        if row is None:
            raise Refused(f"There is no {options.verbose_name} {inputs[key]}.", status=404)
        return row

    def get_one(inputs: Mapping[str, Any]) -> dict[str, object]:
        return show(find(inputs))

    def save(row: Any, inputs: Mapping[str, Any]) -> dict[str, object]:
        for name in inputs:
            if name in written and (name != key or row.pk is None):
                setattr(row, options.get_field(name).attname, inputs[name])  # type: ignore[union-attr]
        try:
            with transaction.atomic(using=router.db_for_write(model)):
                row.full_clean()
                row.save()
                if rows and not found_rows().filter(pk=row.pk).exists():
                    raise Refused(f"Agents may not write such a {options.verbose_name}.", status=403)
        except ValidationError as error:
            raise InvalidInput("The row is not valid.", errors=list(_violations(error, columns))) from error
        except IntegrityError as error:
            raise Refused(f"The database does not accept this {options.verbose_name}.", status=409) from error
        except (OverflowError, TypeError, ValueError, DataError) as error:
            raise InvalidInput(f"The row is not valid: {error}") from error
        row.refresh_from_db()
        return show(row)

    def create(inputs: Mapping[str, Any]) -> dict[str, object]:
        return save(model(), inputs)

    def update(inputs: Mapping[str, Any]) -> dict[str, object]:
        return save(find(inputs), inputs)

    def delete(inputs: Mapping[str, Any]) -> dict[str, object]:
        row, gone = find(inputs), {key: inputs[key]}
        try:
            with transaction.atomic(using=router.db_for_write(model)):
                row.delete()
        except (IntegrityError, ProtectedError, RestrictedError) as error:
            raise Refused(
                f"Other rows depend on this {options.verbose_name}; it was not deleted.", status=409
            ) from error
        return gone

    inputs_of_list: dict[str, object] = {
        "page": _whole(None, "Which page, starting at 1."),
        "page_size": _whole(MOST, "Rows of it."),
    }
    if search:
        inputs_of_list["search"] = {"type": "string", "maxLength": 200, "description": f"Words in {', '.join(search)}."}
    inputs_of_list["ordering"] = {
        "enum": [f"{sign}{name}" for name in columns for sign in ("", "-")],
        "description": "The field to sort by; a minus reverses the order.",
    }

    def guarded(permission: str) -> dict[str, Any]:
        return {"auth_required": True, "scopes": [f"{options.app_label}.{permission}_{options.model_name}"]}

    shared: dict[str, Any] = {"effect": "read", **(guarded("view") if site.authenticators else {})}
    row_schema = {"type": "object", "properties": {name: {} for name in columns}, "required": columns}
    answers = {"type": "object", "properties": {"results": {"type": "array", "items": row_schema}}}
    listed = {"type": "object", "properties": inputs_of_list, "additionalProperties": False}
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
        f"get_{singular}", description=f"Show one {options.verbose_name}.", inputs=asked, outputs=row_schema, **shared
    )(get_one)
    if not writes:
        return True
    subject_of = f"one {options.verbose_name}"
    properties: dict[str, Any] = {}
    for name, field in written.items():
        properties[name] = describe_field(name, field, model)
        if options.get_field(name).null:
            properties[name] = {"anyOf": [properties[name], {"type": "null"}]}
    needed = [name for name, field in written.items() if field.required and not options.get_field(name).has_default()]  # type: ignore[union-attr]
    inputs: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    facts: dict[str, Any] = {"inputs": {**inputs, "required": needed}, "outputs": row_schema}
    site.agent(f"create_{singular}", description=f"Add {subject_of}.", effect="write", **facts, **guarded("add"))(
        create
    )
    facts["inputs"] = {**inputs, "properties": {key: _schema_of(options.pk), **properties}, "required": [key]}
    about = f"Change {subject_of}: the fields that are given."
    site.agent(f"update_{singular}", description=about, effect="write", **facts, **guarded("change"))(update)
    facts = {"inputs": asked, "outputs": asked}
    site.agent(
        f"delete_{singular}", description=f"Delete {subject_of}.", effect="delete", **facts, **guarded("delete")
    )(delete)
    return True


def _violations(error: ValidationError, columns: Sequence[str]) -> Iterator[Violation]:
    for name, messages in (error.message_dict if hasattr(error, "error_dict") else {"": error.messages}).items():
        for message in messages:
            yield Violation(f"/{name}" if name in columns else "", str(message))


def _word(name: object) -> str:
    return "_".join("".join(letter if letter.isalnum() else " " for letter in str(name).lower()).split())


def _whole(most: int | None, words: str) -> dict[str, object]:
    return {"type": "integer", "minimum": 1, "maximum": most or 1_000_000, "description": words}


def _schema_of(column: Any) -> dict[str, object]:
    kind = column.get_internal_type()
    return {"type": "integer"} if kind.endswith(("AutoField", "IntegerField")) else {"type": "string", "minLength": 1}
