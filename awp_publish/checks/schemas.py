"""JSON Schemas: violations of a document's own schema, and mistakes in the schemas inside documents.

jsonschema-rs validates in microseconds. jsonschema, which is much slower, is imported only if something is wrong, to
report the places and reasons.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from importlib.resources import files
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeGuard, cast
from urllib.parse import unquote, urljoin

import jsonschema_rs
from jsonschema_rs import Draft202012Validator, FancyRegexOptions

from awp_publish.checks.engine import JsonObject, SchemaViolation, child, exists, objects, shown, tokens
from awp_publish.schema.reading import DIALECT

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

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


# --- Schemas inside a document ---------------------------------------------------------------------------------------

_META_SCHEMA: Final = DocumentSchema(lambda: {"$ref": DIALECT})
_SINGLE = frozenset(("additionalProperties", "contains", "contentSchema", "if", "then", "else", "items", "not"))
_SINGLE |= {"propertyNames", "unevaluatedItems", "unevaluatedProperties"}
_ARRAYS: Final = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_NAMED: Final = frozenset(("$defs", "definitions", "dependentSchemas", "patternProperties", "properties"))
_HOLDING: Final = _SINGLE | _ARRAYS | _NAMED
_INSPECTED: Final = frozenset(("pattern", "patternProperties", "$schema", "$ref", "$dynamicRef", "required"))
_ELSEWHERE: Final = frozenset(("$ref", "allOf", "anyOf", "oneOf", "patternProperties", "$dynamicRef"))


class InnerSchemas:
    """The schemas inside a kind of document, in the 2020-12 dialect or translated to it by `read`."""

    def __init__(self, *places: str, read: Callable[[Schema], Schema] = lambda schema: schema) -> None:
        self._places, self._read_as = places, read
        self._all = DocumentSchema(self._load)

    def _load(self) -> Schema:
        schemas: list[Schema] = []
        for place in self._places:
            schema: Schema = {"$ref": DIALECT}
            for token in reversed(tokens(place)):
                schema = {"items": schema} if token == "[]" else {"properties": {token: schema}}
            schemas.append(schema)
        return {"allOf": schemas}

    def violations(self, document: JsonObject) -> Iterator[SchemaViolation]:
        """Find mistakes in the schemas.

        The keywords are `schema` for an invalid schema, `dialect` for the declaration of another dialect, `reference`
        for unresolvable references, `external` for those to other documents, and `undescribed` for required names that
        are not among the properties.
        """
        all_are_valid = self._all.is_valid(document)
        for pointer, given in objects(document, *self._places):
            schema = self._read_as(given)
            try:
                for wrong in () if all_are_valid else _META_SCHEMA.violations(schema, pointer):
                    reason = wrong.message or f"{shown(wrong.value)} is not allowed here."
                    message = f"This is not a valid JSON Schema: {reason}"
                    yield SchemaViolation("schema", wrong.pointer, wrong.value, message)
            except RecursionError:
                yield SchemaViolation(
                    "schema", pointer, None, "This is not a valid JSON Schema, somewhere deep inside."
                )
            yield from _beyond_the_meta_schema(schema, pointer)


def _beyond_the_meta_schema(schema: Schema, pointer: str) -> Iterator[SchemaViolation]:
    references: list[tuple[str, str, Schema]] = []
    for place, inner, resource in subschemas(schema, pointer):
        if _INSPECTED.isdisjoint(inner):
            continue
        pattern, named, declared = inner.get("pattern"), inner.get("patternProperties"), inner.get("$schema")
        expressions = [(child(place, "pattern"), pattern)] if isinstance(pattern, str) else []
        if isinstance(named, dict):
            expressions += [(child(f"{place}/patternProperties", name), name) for name in named]
        for at, expression in expressions:
            if not is_pattern(expression):
                yield SchemaViolation("schema", at, expression, f"{shown(expression)} is not a regular expression.")
        if isinstance(declared, str) and declared.rstrip("#") != DIALECT:
            message = f"The schema declares the dialect {shown(declared)}."
            yield SchemaViolation("dialect", child(place, "$schema"), declared, message)
        for keyword in ("$ref", "$dynamicRef"):
            if isinstance(reference := inner.get(keyword), str):
                references.append((child(place, keyword), reference, resource))
        required, properties = inner.get("required"), inner.get("properties")
        if isinstance(required, list) and isinstance(properties, dict) and _ELSEWHERE.isdisjoint(inner):
            for index, name in enumerate(required):
                if isinstance(name, str) and name not in properties:
                    message = f"{shown(name)} is required and not in properties."
                    yield SchemaViolation("undescribed", f"{place}/required/{index}", name, message)
    if references:
        yield from _lost_references(schema, references)


def _lost_references(schema: Schema, references: Iterable[tuple[str, str, Schema]]) -> Iterator[SchemaViolation]:
    base = schema.get("$id")
    known = {DIALECT}
    anchors: dict[int, set[object]] = {}
    for _, inner, _ in subschemas(schema, ""):
        if isinstance(identifier := inner.get("$id"), str):
            known |= {identifier, _joined(base, identifier)}
    for place, reference, resource in references:
        address, _, fragment = reference.partition("#")
        if not reference.startswith("#"):
            if address not in known and _joined(base, address) not in known:
                yield SchemaViolation("external", place, reference, f"{shown(reference)} refers to another document.")
            continue
        fragment = unquote(fragment)
        if not fragment or fragment.startswith("/"):
            found = exists(resource, fragment)
        else:
            if id(resource) not in anchors:
                anchors[id(resource)] = {
                    name
                    for _, inner, _ in subschemas(resource, "")
                    for name in (inner.get("$anchor"), inner.get("$dynamicAnchor"))
                    if isinstance(name, str)
                }
            found = fragment in anchors[id(resource)]
        if not found:
            message = f"{shown(reference)} does not lead to anything in this schema."
            yield SchemaViolation("reference", place, reference, message)


def subschemas(schema: Schema, pointer: str) -> Iterator[tuple[str, Schema, Schema]]:
    """Yield every subschema with its pointer and the resource (nearest `$id`) to which its references are relative."""
    waiting: list[tuple[str, Schema, Schema]] = [(pointer, schema, schema)]
    while waiting:
        place, inner, resource = waiting.pop()
        if "$id" in inner:
            resource = inner
        yield place, inner, resource
        if _HOLDING.isdisjoint(inner):
            continue
        found: list[tuple[str, Schema, Schema]] = []
        for name, value in inner.items():
            if isinstance(value, dict):
                if name in _NAMED:
                    at = f"{place}/{name}"
                    found += [(child(at, key), item, resource) for key, item in value.items() if isinstance(item, dict)]
                elif name in _SINGLE:
                    found.append((f"{place}/{name}", value, resource))
            elif name in _ARRAYS and isinstance(value, list):
                at = f"{place}/{name}"
                found += [(f"{at}/{i}", item, resource) for i, item in enumerate(value) if isinstance(item, dict)]
        waiting += reversed(found)


def _joined(base: object, reference: str) -> str:
    try:
        return urljoin(base, reference) if isinstance(base, str) else reference
    except ValueError:
        return reference


# --- Regular expressions ---
#
# JSON documents use JavaScript's regular expressions (ECMA-262). The Rust engine of jsonschema-rs supports most of them
# and matches in bounded time, so it does all matching. For valid syntax that it rejects, Python's `re` is tried as
# well; only what neither can compile is reported.

_MAX_PATTERN: Final = 5000
_BACKTRACK_LIMIT: Final = 100_000
_PYTHON_SPELLINGS: Final = (("[^]", r"[\s\S]"), ("[]", "(?!)"), ("(?<", "(?P<"), ("(?P<=", "(?<="), ("(?P<!", "(?<!"))
_NAMED_BACK_REFERENCE: Final = re.compile(r"\\k<(\w+)>")


@lru_cache(maxsize=2048)
def is_pattern(pattern: str) -> bool:
    """Return True if a text can be compiled as a regular expression."""
    if len(pattern) > _MAX_PATTERN or _compiled(pattern) is not None:
        return True
    for theirs, ours in _PYTHON_SPELLINGS:
        pattern = pattern.replace(theirs, ours)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(_NAMED_BACK_REFERENCE.sub(r"(?P=\1)", pattern))
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def matches(pattern: str, text: str) -> bool | None:
    """Return True if an expression matches somewhere in a text; None if that cannot be decided."""
    validator = _compiled(pattern) if len(pattern) <= _MAX_PATTERN else None
    try:
        return validator.is_valid(text) if validator else None
    except ValueError:
        return None


@lru_cache(maxsize=2048)
def _compiled(pattern: str) -> Draft202012Validator | None:
    try:
        options = FancyRegexOptions(backtrack_limit=_BACKTRACK_LIMIT)
        return Draft202012Validator({"pattern": pattern}, pattern_options=options)
    except ValueError:
        return None
