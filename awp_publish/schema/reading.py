"""The content of a JSON Schema, reduced to the few facts that a manifest can express: type, options, members.

A manifest gives a value one type, one list of options, one default; JSON Schema 2020-12 expresses the same with `$ref`,
`allOf`, unions with null, `const` and type lists. These functions read any valid schema, including `true`, `false` and
recursive ones. They always terminate, never raise, and return nothing for what the schema leaves open. References are
followed inside the schema only.
"""

from collections.abc import Mapping
from itertools import chain
from typing import Final

from awp_publish.model import JsonObject
from awp_publish.schema.parts import list_of, subschemas, table_of
from awp_publish.schema.pointers import local_pointer, part_at

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

NOTHING: Final[JsonObject] = {}
"""The facts of a schema that constrains nothing: `true`, `false`, and the end of a recursion."""

OBJECT: Final = (dict, Mapping)
"""The types of a JSON object. Dicts come first because nearly all are dicts."""

UNIONS: Final = ("anyOf", "oneOf")
SPENT: Final = frozenset({"$ref", "allOf"})
COMBINING: Final = SPENT | frozenset(UNIONS)

IMPLIED_KINDS: Final = {
    "properties": "object",
    "required": "object",
    "additionalProperties": "object",
    "items": "array",
    "prefixItems": "array",
    "pattern": "string",
    "format": "string",
    "minLength": "string",
    "maxLength": "string",
    "minimum": "number",
    "maximum": "number",
}
"""The type to which a keyword applies, for schemas without `type`. The first keyword found decides."""

VALUE_KINDS: Final[tuple[tuple[type, str], ...]] = (
    (bool, "boolean"),  # before int, of which it is a subclass
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (Mapping, "object"),
    (list, "array"),
)


def resolved(schema: object, root: JsonObject, seen: set[str] | None = None) -> JsonObject:
    """Return the keywords that apply to a value: the schema's own, merged over those that it includes.

    A schema includes the target of its `$ref`, the members of its `allOf` and the only branch of a union beside null.
    Every reference is followed once (`seen`), so that recursion ends. References are resolved in `root`.
    """
    if not isinstance(schema, OBJECT):
        return NOTHING
    if COMBINING.isdisjoint(schema):
        return schema
    followed = set() if seen is None else seen
    parts = list_of(schema, "allOf")
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference not in followed:
        followed.add(reference)
        parts = [follow(reference, root), *parts]
    spent = set(SPENT)
    for keyword in UNIONS:  # a union of several branches stays as it is
        if len(listed := _branches(schema, keyword)) == 1:
            spent.add(keyword)
            parts = [*parts, listed[0]]
    merged: dict[str, object] = {}
    for part in parts:
        _merge(merged, resolved(part, root, followed))
    _merge(merged, {name: value for name, value in schema.items() if name not in spent})
    return merged


def object_facts(schema: JsonObject, root: JsonObject, seen: set[str] | None = None) -> JsonObject:
    """Return the keywords that apply to an object, with the members of all branches of its unions.

    A member that several branches describe may match any of them, and is required if every branch requires it. Which
    members belong together is lost: manifests cannot express it, but the schema published beside them does.
    """
    followed = set() if seen is None else seen
    facts = resolved(schema, root, followed)
    if "anyOf" not in facts and "oneOf" not in facts:
        return facts
    alternatives = [object_facts(branch, root, followed) for branch in branches(facts) if isinstance(branch, OBJECT)]
    if not any(members(alternative) for alternative in alternatives):
        return facts
    described: dict[str, list[object]] = {}
    for alternative in alternatives:
        for name, member in members(alternative).items():
            schemas = described.setdefault(name, [])
            schemas += [member] if member not in schemas else []
    of_branches = {name: schemas[0] if len(schemas) == 1 else {"anyOf": schemas} for name, schemas in described.items()}
    everywhere = frozenset[str].intersection(*(required_members(alternative) for alternative in alternatives))
    required = [*required_members(facts), *sorted(everywhere - required_members(facts))]
    return {**facts, "properties": {**of_branches, **members(facts)}, "required": required}


def members(facts: JsonObject) -> Mapping[str, object]:
    """Return the `properties` of a resolved object schema: name to schema."""
    return table_of(facts, "properties")


def required_members(facts: JsonObject) -> frozenset[str]:
    """Return the names that a resolved object schema requires."""
    required = facts.get("required")
    return frozenset([name for name in required if isinstance(name, str)]) if isinstance(required, list) else _NONE


_NONE: Final = frozenset[str]()


def options(facts: JsonObject, root: JsonObject, seen: set[str] | None = None) -> list[object]:
    """Return the values that a resolved schema allows, without null: its `enum`, its `const`, or those of its
    branches.
    """
    listed = facts.get("enum")
    if isinstance(listed, list):
        return [value for value in listed if value is not None]
    if "const" in facts:
        return [] if facts["const"] is None else [facts["const"]]
    alternatives = branches(facts)
    if not alternatives:
        return []
    followed = set() if seen is None else seen
    choices = [options(resolved(branch, root, followed), root, followed) for branch in alternatives]
    return [value for choice in choices for value in choice] if all(choices) else []


def kinds(facts: JsonObject, root: JsonObject, seen: set[str] | None = None) -> list[str]:
    """Return the JSON types that a resolved schema allows, without null and duplicates; empty if it does not say."""
    declared = facts.get("type")
    if isinstance(declared, str):
        return [] if declared == "null" else [declared]
    if isinstance(declared, list):
        return [kind for kind in declared if kind != "null"]
    if values := options(facts, root):
        return list(dict.fromkeys(kind_of(value) for value in values))
    if followed_branches := branches(facts):
        followed = set() if seen is None else seen
        kinds_of_branches = [kinds(resolved(branch, root, followed), root, followed) for branch in followed_branches]
        return list(dict.fromkeys(kind for of_branch in kinds_of_branches for kind in of_branch))
    return [kind for keyword, kind in IMPLIED_KINDS.items() if keyword in facts][:1]


def kind_of(value: object) -> str:
    """Return the JSON type of a value."""
    return next((kind for type_, kind in VALUE_KINDS if isinstance(value, type_)), "null")


def branches(schema: JsonObject) -> list[object]:
    """Return the branches of a schema's unions, without null."""
    if "anyOf" not in schema and "oneOf" not in schema:
        return []
    return [branch for keyword in UNIONS for branch in _branches(schema, keyword)]


def encoding_of(facts: JsonObject) -> str | None:
    """Return the `contentEncoding` of a resolved schema, or that of the first branch of its unions that has one."""
    for part in (facts, *branches(facts)):
        if isinstance(part, OBJECT) and isinstance(encoding := part.get("contentEncoding"), str):
            return encoding
    return None


def reference_of(schema: object) -> str | None:
    """Return a schema's `$ref`, or that of its only branch beside null or its only `allOf` member."""
    if not isinstance(schema, OBJECT) or COMBINING.isdisjoint(schema):
        return None
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return reference
    parts = [*list_of(schema, "allOf"), *branches(schema)]
    return reference_of(parts[0]) if len(parts) == 1 else None


def references(schema: object) -> list[str]:
    """Return every `$ref` in a schema, in a stable order."""
    return [reference for part in subschemas(schema) if isinstance(reference := part.get("$ref"), str)]


def follow(reference: str, root: JsonObject) -> object:
    """Return the part of `root` at a local reference (a JSON Pointer in a fragment, RFC 6901), None for other
    references.
    """
    pointer = local_pointer(reference)
    return part_at(root, pointer) if pointer is not None else None


def _merge(into: dict[str, object], part: JsonObject) -> None:
    """Merge a part's keywords over those collected; properties and required names add up, as `allOf` demands."""
    together: dict[str, object] = {}
    if "properties" in into and "properties" in part:
        together["properties"] = {**members(into), **members(part)}
    if "required" in into and "required" in part:
        together["required"] = [*list_of(into, "required"), *list_of(part, "required")]
    into |= part
    into |= together


def _branches(schema: JsonObject, keyword: str) -> list[object]:
    values: list[object] = []
    for branch in list_of(schema, keyword):
        is_null = isinstance(branch, OBJECT) and (
            branch.get("type") == "null" or ("const" in branch and branch["const"] is None)
        )
        if not is_null:
            values.append(branch)
    return values


_CONTAINERS: Final = frozenset((dict, list))


def depth_exceeds(value: object, limit: int) -> bool:
    """Return True if arrays and objects are nested more than `limit` deep. Does not recurse."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(limit):
        inside = chain.from_iterable([item.values() if isinstance(item, dict) else item for item in level])
        level = [item for item in inside if type(item) in _CONTAINERS]  # documents are plain dicts and lists
        if not level:
            return False
    return bool(level)
