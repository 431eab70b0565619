"""JSON Schemas: violations of a document's own schema, and mistakes in the schemas inside documents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib.resources import files
from types import NoneType
from typing import Any, Final, TypeAlias, TypeGuard, cast

import jsonschema_rs

from awp_publish.checks.engine import SchemaViolation, shown
from awp_publish.schema.pointers import child

Schema: TypeAlias = Mapping[str, object]

_TYPES: Final = {"string": str, "boolean": bool, "object": dict, "array": list, "null": NoneType}

_ARTICLES: Final = {"integer": "an integer", "array": "an array", "object": "an object"}


def is_number(value: object) -> TypeGuard[int | float]:
    """Return True for a number, but not for a boolean, which is an int in Python."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_type(value: object, name: str) -> bool:
    """Return True if a value has a JSON Schema type. An unknown type fits every value."""
    if name == "integer":
        return is_number(value) and (isinstance(value, int) or value.is_integer())
    if name == "number":
        return is_number(value)
    return name not in _TYPES or isinstance(value, _TYPES[name])


def read_schema(package: str, path: str) -> dict[str, Any]:
    """Load a schema from this package."""
    loaded: dict[str, Any] = json.loads(files(package).joinpath(path).read_text("utf-8"))
    return loaded


class DocumentSchema:
    """The schema of one kind of document, in any dialect, loaded when the first document is checked."""

    def __init__(self, load: Callable[[], Schema]) -> None:
        self._load = load

    @cached_property
    def _schema(self) -> Schema:
        return self._load()

    @cached_property
    def _validator(self) -> jsonschema_rs.Validator:
        return jsonschema_rs.validator_for(dict(self._schema))

    def is_valid(self, document: object) -> bool:
        """Return True if a document is valid. One that the validator cannot read, such as a lone surrogate, is not."""
        try:
            return self._validator.is_valid(document)
        except ValueError:
            return False

    def violations(self, document: object, pointer: str = "") -> Iterator[SchemaViolation]:
        """Find the places that violate the schema; `pointer` locates the document within a larger one."""
        if self.is_valid(document):
            return
        for error in self._errors(document):
            place = pointer
            for token in error.instance_path:
                place = child(place, token)
            keyword = str(error.schema_path[-1])
            if keyword == "required":
                name = cast(Any, error.kind).property
                yield SchemaViolation(keyword, child(place, name), None, f'"{name}" is missing.')
            else:
                wrong_name = getattr(error.kind, "error", None)
                value = error.instance if wrong_name is None else wrong_name.instance
                yield SchemaViolation(keyword, place, value, _reason(keyword, error))

    def _errors(self, document: object) -> Iterator[jsonschema_rs.ValidationError]:
        try:
            return iter(list(self._validator.iter_errors(document)))
        except UnicodeEncodeError:
            return self._validator.iter_errors(_readable(document))


def _readable(document: object) -> object:
    """Return a copy that the validator can read, without lone surrogates."""
    return json.loads(json.dumps(document, ensure_ascii=False, default=dict).encode("utf-8", "replace"))


def _reason(keyword: str, error: jsonschema_rs.ValidationError) -> str:
    """Describe a violation; "" leaves that to the row of the check that claims it."""
    value, kind = shown(error.instance), cast(Any, error.kind)
    if keyword == "enum":
        return f"{value} is not one of {', '.join(map(str, kind.options))}."
    # Among alternatives, enumerations are the most informative.
    branches = [inner for branch in getattr(kind, "context", ()) for inner in branch]
    if options := [option for inner in branches for option in getattr(inner.kind, "options", ())]:
        return f"{value} is not one of {', '.join(map(str, options))}."
    if keyword == "type":
        return f"{value} is not {' or '.join(_ARTICLES.get(name, f'a {name}') for name in kind.types)}."
    if keyword == "minimum":
        return f"{value} is less than {kind.limit}."
    return ""
