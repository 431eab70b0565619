"""`@site.model(Book, fields=..., search=...)`: what a model has, as actions that list, search and read.

Through the model's default manager, or the queryset that a decorated function returns; where the site knows its
callers, for those with the permission to view. Nothing is written, unless `read_only=False` says so.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeAlias

from django.core.exceptions import FieldDoesNotExist, FieldError, ValidationError
from django.core.serializers.json import DjangoJSONEncoder
from django.db import DataError, IntegrityError, router, transaction
from django.db.models import Model, ProtectedError, Q, RestrictedError
from django.forms import FileField

from awp_publish import DeclarationError, Site
from awp_publish.problems import InvalidInput, Refused, Violation
from awp_publish.schema.options import TEXTS, check
from awp_publish_django.form_fields import describe_field

MOST: Final = 100
"""Rows of one page, at most."""

USUAL: Final = 20

Inputs: TypeAlias = Mapping[str, Any]


def declare_model(
    site: Site, model: type, /, *, fields: Sequence[str], search: Sequence[str] = (), read_only: bool = True
) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Declare actions that read a model: `list_books` lists and searches its rows, `get_book` gets one by its id.

    `fields` are returned, `search` are searched. Decorate a function that returns the rows that agents may see; without
    a function they are those of the model's default manager. With `read_only=False` there are `create_book`,
    `update_book` and `delete_book` too. Raises DeclarationError for a field that there is not or that cannot be
    written, and for a site that knows no callers, whose rows everybody could write.
    """
    subject = f"site.model({getattr(model, '__name__', model)})"
    site.refuse_when_frozen(subject)
    returned, searched = check(subject, TEXTS, fields, "fields"), check(subject, TEXTS, search, "search")
    if not isinstance(read_only, bool):
        raise DeclarationError(subject, f"read_only: is {read_only!r}.", "Write True or False.")
    if not isinstance(model, type) or not issubclass(model, Model):
        raise DeclarationError(subject, "is not a model that is known here.", "Give a model of Django.")
    rows: list[Callable[[], Any]] = []
    _Queries(model, returned, searched, rows).declare(site, writes=not read_only)

    def decorate(function: Callable[[], Any]) -> Callable[[], Any]:
        rows[:] = [function]
        return function

    return decorate


class _Queries:
    """The actions of agents on the rows of a model. Raises DeclarationError for a field that there is not."""

    def __init__(
        self, model: type[Model], fields: Sequence[str], search: Sequence[str], rows: Sequence[Callable[[], Any]]
    ) -> None:
        self._model, self._options, self._fields, self._search, self._rows = model, model._meta, fields, search, rows
        self.subject = f"site.model({self._options.object_name})"
        self.name, self.names = str(self._options.verbose_name), str(self._options.verbose_name_plural)
        self._key = self._options.pk.name
        self._columns = {name: self._column(name) for name in dict.fromkeys((self._key, *fields))}
        self._written: dict[str, Any] = {}
        for name in search:
            try:
                model._default_manager.filter(**{f"{name}__icontains": "a"})
            except FieldError as error:
                raise DeclarationError(self.subject, f"search: {error}.") from error

    def _column(self, name: str) -> Any:
        try:
            column = self._options.get_field(name)
        except FieldDoesNotExist as error:
            there = ", ".join(field.name for field in self._options.get_fields() if _has_one_value(field))
            raise DeclarationError(
                self.subject, f'fields: there is no field "{name}".', f"There are: {there}."
            ) from error
        if not _has_one_value(column):
            raise DeclarationError(self.subject, f'fields: "{name}" has several values.', "Name fields with one value.")
        return column

    def declare(self, site: Site, *, writes: bool) -> None:
        """Declare the actions, those that write too if it `writes`."""
        name, names, options, search = self.name, self.names, self._options, self._search
        singular, many = _word(name), _word(names)
        key, row, page = self.key_schema(), self.row_schema(), self.page_schema()
        about_list = f"List {names}{', or search for them' if search else ''}."
        actions: list[tuple[str, str, str, str, Callable[[Inputs], Any], Inputs, Inputs]] = [
            (f"list_{many}", about_list, "read", "view", self.list, self.list_schema(), page),
            (f"get_{singular}", f"Show one {name}.", "read", "view", self.get, key, row),
        ]
        if writes:
            if not site.authenticators:
                wrong = "read_only: is False, and the site does not know its callers."
                remedy = (
                    "Write Site(authenticate=ApplicationUser()): callers need permissions to add, change and delete."
                )
                raise DeclarationError(self.subject, wrong, remedy)
            new, changed = self.written_schemas()
            about_change = f"Change one {name}: the fields that are given."
            actions += [
                (f"create_{singular}", f"Add one {name}.", "write", "add", self.create, new, row),
                (f"update_{singular}", about_change, "write", "change", self.update, changed, row),
                (f"delete_{singular}", f"Delete one {name}.", "delete", "delete", self.delete, key, key),
            ]
        for action, about, effect, permission, query, inputs, outputs in actions:
            facts: dict[str, Any] = {"description": about, "effect": effect, "inputs": inputs, "outputs": outputs}
            if site.authenticators:
                scope = f"{options.app_label}.{permission}_{options.model_name}"
                facts |= {"auth_required": True, "scopes": [scope]}
            site.agent(action, **facts)(partial(query))  # a method itself cannot be marked

    def list(self, inputs: Inputs) -> dict[str, object]:
        """Return a page of rows."""
        query = self._all()
        text = str(inputs.get("search", "")).replace("\0", " ").strip()  # PostgreSQL has no NUL in texts
        for word in text.split()[:10] if self._search else ():
            condition = Q()
            for name in self._search:
                condition |= Q(**{f"{name}__icontains": word})
            query = query.filter(condition)
        order = inputs.get("ordering")
        query = query.order_by(order, "pk") if order else query if query.ordered else query.order_by("pk")
        count = query.count()
        size, page = int(inputs.get("page_size", USUAL)), int(inputs.get("page", 1))
        rows = [self._show(row) for row in query[(page - 1) * size : page * size]]
        return {"count": count, "page": page, "pages": max(1, -(-count // size)), "results": rows}

    def get(self, inputs: Inputs) -> dict[str, object]:
        """Return one row."""
        return self._show(self._find(inputs))

    def create(self, inputs: Inputs) -> dict[str, object]:
        """Add a row."""
        return self._save(self._model(), inputs, is_new=True)

    def update(self, inputs: Inputs) -> dict[str, object]:
        """Change a row."""
        return self._save(self._find(inputs), inputs, is_new=False)

    def delete(self, inputs: Inputs) -> dict[str, object]:
        """Delete a row, and return its key."""
        row = self._find(inputs)
        try:
            with transaction.atomic(using=router.db_for_write(self._model)):
                row.delete()
        except (IntegrityError, ProtectedError, RestrictedError) as error:
            raise Refused(f"Other rows depend on this {self.name}; it was not deleted.", status=409) from error
        return {self._key: inputs[self._key]}

    def _all(self) -> Any:
        return self._rows[0]() if self._rows else self._model._default_manager.all()

    def _show(self, row: Any) -> dict[str, object]:
        values = {name: getattr(row, column.attname) for name, column in self._columns.items()}
        plain: dict[str, object] = json.loads(json.dumps(values, cls=_Encoder))
        return plain

    def _find(self, inputs: Inputs) -> Any:
        key = self._key
        try:
            row = self._all().filter(pk=inputs[key]).first()
        except (ValueError, ValidationError, OverflowError, DataError) as error:
            raise InvalidInput(f"{key} is not a valid key.", errors=[Violation(f"/{key}", "is not valid")]) from error
        if row is None:
            raise Refused(f"There is no {self.name} {inputs[key]}.", status=404)
        return row

    def _save(self, row: Any, inputs: Inputs, *, is_new: bool) -> dict[str, object]:
        for name in inputs:
            if name in self._written and (name != self._key or is_new):
                setattr(row, self._columns[name].attname, inputs[name])
        with self._refusing(), transaction.atomic(using=router.db_for_write(self._model)):
            row.full_clean()
            row.save(force_insert=is_new)
            if self._rows and not self._all().filter(pk=row.pk).exists():
                raise Refused(f"Agents may not write such a {self.name}.", status=403)
        row.refresh_from_db()
        return self._show(row)

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Say what the model or the database refuses."""
        try:
            yield
        except ValidationError as error:
            raise InvalidInput("The row is not valid.", errors=list(_violations(error, self._columns))) from error
        except IntegrityError as error:
            raise Refused(f"The database does not accept this {self.name}.", status=409) from error
        except (OverflowError, TypeError, ValueError, DataError) as error:
            raise InvalidInput(f"The row is not valid: {error}") from error

    def key_schema(self) -> dict[str, object]:
        return _object({self._key: _schema_of(self._options.pk)}, [self._key])

    def row_schema(self) -> dict[str, object]:
        return {"type": "object", "properties": {name: {} for name in self._columns}, "required": [*self._columns]}

    def page_schema(self) -> dict[str, object]:
        return {"type": "object", "properties": {"results": {"type": "array", "items": self.row_schema()}}}

    def list_schema(self) -> dict[str, object]:
        words = f"Words in {', '.join(self._search)}."
        searched = {"search": {"type": "string", "maxLength": 200, "description": words}} if self._search else {}
        ordering = {
            "enum": [f"{sign}{name}" for name in self._columns for sign in ("", "-")],
            "description": "The field to sort by; a minus reverses the order.",
        }
        page, size = _whole(1_000_000, "Which page, starting at 1."), _whole(MOST, "Rows of it.")
        return _object({"page": page, "page_size": size, **searched, "ordering": ordering})

    def written_schemas(self) -> tuple[dict[str, object], dict[str, object]]:
        """Return what makes a row and what changes one. Raises DeclarationError for a file."""
        for name in dict.fromkeys(self._fields):
            column = self._columns[name]
            is_made = name == self._key and column.get_internal_type().endswith("AutoField")
            field = None if is_made else column.formfield()
            if isinstance(field, FileField):
                wrong = f'fields: "{name}" is a file, which is not written here.'
                raise DeclarationError(self.subject, wrong, "Leave it out.")
            if field is not None:  # else a value that the database makes: shown, not written
                self._written[name] = field
        properties: dict[str, dict[str, object]] = {}
        for name, field in self._written.items():
            schema = describe_field(name, field, self._model)
            properties[name] = {"anyOf": [schema, {"type": "null"}]} if self._columns[name].null else schema
        needed = [
            name for name, field in self._written.items() if field.required and not self._columns[name].has_default()
        ]
        kept = {
            name: {word: fact for word, fact in schema.items() if word != "default"}
            for name, schema in properties.items()
        }
        changed = {self._key: _schema_of(self._options.pk), **kept}
        return {**_object(properties), "required": needed}, _object(changed, [self._key])


def _violations(error: ValidationError, columns: Mapping[str, object]) -> Iterator[Violation]:
    for name, messages in (error.message_dict if hasattr(error, "error_dict") else {"": error.messages}).items():
        for message in messages:
            yield Violation(f"/{name}" if name in columns else "", str(message))


class _Encoder(DjangoJSONEncoder):
    """Writes what Django's own encoder does not know as text."""

    def default(self, o: object) -> object:
        try:
            return super().default(o)
        except TypeError:
            return str(o)


def _has_one_value(column: Any) -> bool:
    return hasattr(column, "attname") and not column.many_to_many


def _word(name: str) -> str:
    return "_".join("".join(letter if letter.isalnum() else " " for letter in name.lower()).split())


def _object(properties: dict[str, Any], required: Sequence[str] = ()) -> dict[str, object]:
    needed = {"required": [*required]} if required else {}
    return {"type": "object", "properties": properties, **needed, "additionalProperties": False}


def _whole(most: int, words: str) -> dict[str, object]:
    return {"type": "integer", "minimum": 1, "maximum": most, "description": words}


def _schema_of(column: Any) -> dict[str, object]:
    kind = column.get_internal_type()
    return {"type": "integer"} if kind.endswith(("AutoField", "IntegerField")) else {"type": "string", "minLength": 1}
