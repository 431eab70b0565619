"""JSON Schemas: violations of a document's own schema, and mistakes in the schemas inside documents.

jsonschema-rs validates in microseconds. jsonschema, which is much slower, is imported only if something is wrong, to
report the places and reasons.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib.resources import files
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeGuard, cast

import jsonschema_rs

from awp_publish.checks.engine import SchemaViolation, shown
from awp_publish.schema.pointers import child

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator
from awp_publish.checks.expressions import matches

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

    @cached_property
    def _explainer(self) -> Validator:
        from jsonschema import Draft202012Validator, validators

        dialect = validators.validator_for(self._schema, Draft202012Validator)
        # Patterns of JSON Schema follow ECMA-262; Python's `$` would accept a trailing line feed.
        extend: Callable[..., type[Validator]] = validators.extend
        return extend(dialect, {"pattern": _break_pattern})(self._schema)

    def is_valid(self, document: object) -> bool:
        """Return True if a document is valid. One that the validator cannot read, such as a lone surrogate, is not."""
        try:
            return self._validator.is_valid(document)
        except ValueError:
            return False

    def violations(self, document: object, pointer: str = "") -> Iterator[SchemaViolation]:
        """Find the places that violate the schema; `pointer` locates the document within a larger one.

        Raises RecursionError for a recursive schema and a document that is nested about a hundred deep.
        """
        if self.is_valid(document):
            return
        checked: Any = document
        for error in self._explainer.iter_errors(checked):
            place = pointer
            for token in error.absolute_path:
                place = child(place, token)
            instance, rule = cast("Any", error.instance), cast("Any", error.validator_value)
            if error.validator == "required":  # One error for each missing member, all with the same rule.
                for name in rule:
                    if name not in instance:
                        yield SchemaViolation("required", child(place, name), None, f'"{name}" is missing.')
            else:
                yield SchemaViolation(str(error.validator), place, instance, _reason(error))


def _break_pattern(validator: object, pattern: str, instance: object, schema: object) -> Iterator[ValidationError]:
    from jsonschema.exceptions import ValidationError

    if isinstance(instance, str) and not matches(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _reason(error: ValidationError) -> str:
    """Describe a violation; "" leaves that to the row of the check that claims it."""
    value, rule = shown(error.instance), cast("Any", error.validator_value)
    # Among alternatives, enumerations are the most informative.
    enums = [cast("Any", inner.validator_value) for inner in error.context or () if inner.validator == "enum"]
    if error.validator == "enum" or enums:
        options = rule if error.validator == "enum" else [option for enum in enums for option in enum]
        return f"{value} is not one of {', '.join(map(str, options))}."
    if error.validator == "type":
        types = [rule] if isinstance(rule, str) else rule
        return f"{value} is not {' or '.join(_ARTICLES.get(name, f'a {name}') for name in types)}."
    if error.validator == "minimum":
        return f"{value} is less than {rule}."
    return ""
