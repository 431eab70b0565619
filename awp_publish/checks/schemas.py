"""Whether an object is a JSON Schema of the 2020-12 dialect, wherever in a document it stands.

The meta-schema is applied by jsonschema-rs, which needs microseconds for it. What a meta-schema cannot say is looked
for here: references that lead nowhere, expressions that do not compile, and another dialect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from urllib.parse import unquote, urljoin

from jsonschema_rs import Draft202012Validator, ValidationError, ValidationErrorKind

from awp_publish.checks.engine import Flaw, child, depth_exceeds, exists, shown
from awp_publish.checks.text import is_pattern

DIALECT = "https://json-schema.org/draft/2020-12/schema"
DEEPEST = 200

ONE = frozenset(("additionalProperties", "contains", "contentSchema", "if", "then", "else", "items", "not"))
ONE |= {"propertyNames", "unevaluatedItems", "unevaluatedProperties"}
MANY = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
NAMED = frozenset(("$defs", "definitions", "dependentSchemas", "patternProperties", "properties"))

Schema = Mapping[str, object]


@lru_cache(maxsize=1)
def _meta_schema() -> Draft202012Validator:
    return Draft202012Validator({"$ref": DIALECT})


def invalid(schema: Schema, pointer: str) -> Iterator[Flaw]:
    """Find what the 2020-12 meta-schema refuses, and regular expressions that do not compile."""
    if depth_exceeds(schema, DEEPEST):
        yield Flaw(pointer, f"The schema is nested more than {DEEPEST} deep and cannot be checked.")
        return
    try:
        yield from _meta_flaws(schema, pointer)
    except ValueError as error:
        yield Flaw(pointer, f"The schema cannot be checked: {error}.")
    yield from _bad_patterns(schema, pointer)


def _meta_flaws(schema: Schema, pointer: str) -> Iterator[Flaw]:
    # The parts of the meta-schema overlap, so that one mistake is reported by several of them.
    known: set[str] = set()
    for error in _meta_schema().iter_errors(dict(schema)):
        place = pointer
        for token in error.instance_path:
            place = child(place, token)
        if place not in known:
            known.add(place)
            yield Flaw(place, f"This is no valid JSON Schema: {_in_words(error)}.")


def _in_words(error: ValidationError) -> str:
    if isinstance(error.kind, ValidationErrorKind.AnyOf):
        return f"{shown(error.instance)} is not allowed here"
    return error.message if len(error.message) <= 200 else error.message[:197] + "..."


def _bad_patterns(schema: Schema, pointer: str) -> Iterator[Flaw]:
    for place, inner, _ in subschemas(schema, pointer):
        pattern = inner.get("pattern")
        if isinstance(pattern, str) and not is_pattern(pattern):
            yield Flaw(child(place, "pattern"), f"{shown(pattern)} is not a regular expression.")
        named = inner.get("patternProperties")
        for name in named if isinstance(named, Mapping) else ():
            if not is_pattern(name):
                place_of_name = child(child(place, "patternProperties"), name)
                yield Flaw(place_of_name, f"{shown(name)} is not a regular expression.")


def other_dialect(schema: Schema, pointer: str) -> Iterator[Flaw]:
    """Find a declaration of another dialect than 2020-12."""
    for place, inner, _ in subschemas(schema, pointer):
        declared = inner.get("$schema")
        if isinstance(declared, str) and declared.rstrip("#") != DIALECT:
            yield Flaw(child(place, "$schema"), f"The schema declares the dialect {shown(declared)}.")


def unresolved(schema: Schema, pointer: str) -> Iterator[Flaw]:
    """Find references inside the schema that lead nowhere."""
    for place, reference, resource in _references(schema, pointer):
        if reference.startswith("#") and not _resolves(resource, unquote(reference[1:])):
            yield Flaw(place, f"{shown(reference)} does not lead to anything in this schema.")


def external(schema: Schema, pointer: str) -> Iterator[Flaw]:
    """Find references to other documents."""
    references = [found for found in _references(schema, pointer) if not found[1].startswith("#")]
    known = {DIALECT, *_identifiers(schema)} if references else set()
    base = schema.get("$id")
    for place, reference, _ in references:
        address = reference.partition("#")[0]
        if address not in known and _joined(base, address) not in known:
            yield Flaw(place, f"{shown(reference)} refers to another document.")


def unknown_required(schema: Schema, pointer: str) -> Iterator[Flaw]:
    """Find names that are required and not described, in objects that describe their properties."""
    for place, inner, _ in subschemas(schema, pointer):
        required, properties = inner.get("required"), inner.get("properties")
        if not isinstance(required, list) or not isinstance(properties, Mapping) or _describes_elsewhere(inner):
            continue
        for index, name in enumerate(required):
            if isinstance(name, str) and name not in properties:
                yield Flaw(child(child(place, "required"), index), f"{shown(name)} is required and not in properties.")


def _describes_elsewhere(schema: Schema) -> bool:
    return any(name in schema for name in ("$ref", "allOf", "anyOf", "oneOf", "patternProperties", "$dynamicRef"))


def subschemas(schema: Schema, pointer: str) -> Iterator[tuple[str, Schema, Schema]]:
    """Yield every schema in a schema with its pointer and the resource (nearest `$id`) its references start from."""
    waiting: list[tuple[str, Schema, Schema]] = [(pointer, schema, schema)]
    while waiting:
        place, inner, resource = waiting.pop()
        if "$id" in inner:
            resource = inner
        yield place, inner, resource
        for next_place, value in reversed(list(_inside(inner, place))):
            if isinstance(value, Mapping):
                waiting.append((next_place, value, resource))


def _inside(schema: Schema, pointer: str) -> Iterator[tuple[str, object]]:
    for name, value in schema.items():
        if name in ONE:
            yield child(pointer, name), value
        elif name in MANY and isinstance(value, list):
            yield from ((child(child(pointer, name), index), item) for index, item in enumerate(value))
        elif name in NAMED and isinstance(value, Mapping):
            yield from ((child(child(pointer, name), key), item) for key, item in value.items())


def _references(schema: Schema, pointer: str) -> Iterator[tuple[str, str, Schema]]:
    for place, inner, resource in subschemas(schema, pointer):
        for keyword in ("$ref", "$dynamicRef"):
            reference = inner.get(keyword)
            if isinstance(reference, str):
                yield child(place, keyword), reference, resource


def _resolves(resource: Schema, fragment: str) -> bool:
    if not fragment or fragment.startswith("/"):
        return exists(resource, fragment)
    anchors = (inner.get(key) for _, inner, _ in subschemas(resource, "") for key in ("$anchor", "$dynamicAnchor"))
    return fragment in anchors


def _identifiers(schema: Schema) -> Iterator[str]:
    base = schema.get("$id")
    for _, inner, _ in subschemas(schema, ""):
        identifier = inner.get("$id")
        if isinstance(identifier, str):
            yield identifier
            yield _joined(base, identifier)


def _joined(base: object, reference: str) -> str:
    try:
        return urljoin(base, reference) if isinstance(base, str) else reference
    except ValueError:
        return reference
