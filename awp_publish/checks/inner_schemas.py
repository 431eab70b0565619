"""Checks for JSON Schemas inside a document."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final
from urllib.parse import unquote, urljoin

from awp_publish.checks.engine import JsonObject, SchemaViolation, shown
from awp_publish.checks.expressions import is_pattern
from awp_publish.checks.places import exists, objects
from awp_publish.checks.schemas import DocumentSchema, Schema
from awp_publish.schema.pointers import child, tokens
from awp_publish.schema.reading import DIALECT

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
        for pointer, value in objects(document, *self._places):
            schema = self._read_as(value)
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
        pattern, by_pattern, declared = inner.get("pattern"), inner.get("patternProperties"), inner.get("$schema")
        expressions = [(child(place, "pattern"), pattern)] if isinstance(pattern, str) else []
        if isinstance(by_pattern, dict):
            expressions += [(child(f"{place}/patternProperties", name), name) for name in by_pattern]
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
    ids = {DIALECT}
    anchors: dict[int, set[object]] = {}
    for _, inner, _ in subschemas(schema, ""):
        if isinstance(identifier := inner.get("$id"), str):
            ids |= {identifier, _joined(base, identifier)}
    for place, reference, resource in references:
        address, _, fragment = reference.partition("#")
        if not reference.startswith("#"):
            if address not in ids and _joined(base, address) not in ids:
                yield SchemaViolation("external", place, reference, f"{shown(reference)} refers to another document.")
            continue
        fragment = unquote(fragment)
        if not fragment or fragment.startswith("/"):
            is_there = exists(resource, fragment)
        else:
            if id(resource) not in anchors:
                anchors[id(resource)] = {
                    name
                    for _, inner, _ in subschemas(resource, "")
                    for name in (inner.get("$anchor"), inner.get("$dynamicAnchor"))
                    if isinstance(name, str)
                }
            is_there = fragment in anchors[id(resource)]
        if not is_there:
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
        parts: list[tuple[str, Schema, Schema]] = []
        for name, value in inner.items():
            if isinstance(value, dict):
                if name in _NAMED:
                    at = f"{place}/{name}"
                    parts += [(child(at, key), item, resource) for key, item in value.items() if isinstance(item, dict)]
                elif name in _SINGLE:
                    parts.append((f"{place}/{name}", value, resource))
            elif name in _ARRAYS and isinstance(value, list):
                at = f"{place}/{name}"
                parts += [(f"{at}/{i}", item, resource) for i, item in enumerate(value) if isinstance(item, dict)]
        waiting += reversed(parts)


def _joined(base: object, reference: str) -> str:
    try:
        return urljoin(base, reference) if isinstance(base, str) else reference
    except ValueError:
        return reference
