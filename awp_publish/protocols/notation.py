"""agent.json's notation of types (section 8), and the entities that the models of JSON Schemas become.

    string, integer, float, boolean, ISO8601, url, enum[a, b], array[type], object[entity]

`any` stands for a value that may be of several types, `object` for an object without a model: like the specification's
own `airport_code` they are words of this file, and say less rather than something wrong.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from awp_publish.model import JsonObject
from awp_publish.protocols.schema_reading import (
    branches,
    follow,
    kinds,
    members,
    options,
    reference_of,
    references,
    resolved,
)

Names: TypeAlias = Mapping[str, str]
"""Reference to a model ("#/$defs/Book") to the name of its entity ("book")."""

ANY: Final = "any"
PRIMITIVES: Final = {
    "string": "string",
    "integer": "integer",
    "number": "float",
    "boolean": "boolean",
    "object": "object",
}
FORMATS: Final = {"date": "ISO8601", "date-time": "ISO8601", "uri": "url", "iri": "url"}
WIDER: Final = {"integer": "float", "float": "float", "ISO8601": "string", "url": "string", "string": "string"}
"""What a value of several types is called when all of them widen to the same."""

RESERVED: Final = frozenset({*PRIMITIVES, *PRIMITIVES.values(), "iso8601", "url", "enum", "array", ANY})
"""Words that an entity may not be called, because `array[url]` has a meaning already."""

DEFINITIONS: Final = "#/$defs/"
WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
UNSPELLABLE: Final = re.compile(r"[,\[\]]")


def spelled(schema: object, root: JsonObject, names: Names, seen: set[str] | None = None) -> str:
    """The type of a value in agent.json's notation.

    Every reference to something that is no entity is followed once (`seen`), so that recursion ends.
    """
    followed = set() if seen is None else seen
    reference = reference_of(schema)
    if reference is not None and reference in names:
        return f"object[{names[reference]}]"
    if reference in followed:
        return ANY
    facts = resolved(schema, root, followed)
    return _spelled_options(options(facts, root)) or _spelled_facts(facts, root, names, followed)


def spelled_members(facts: JsonObject, root: JsonObject, names: Names) -> dict[str, str]:
    """The members of a resolved object schema: name to type."""
    return {name: spelled(schema, root, names) for name, schema in members(facts).items()}


def snake_case(name: str) -> str:
    """The name of a model as that of an entity: `BookSummary` is `book_summary`."""
    return "_".join(WORD.findall(name)).lower() or "entity"


def _spelled_facts(facts: JsonObject, root: JsonObject, names: Names, seen: set[str]) -> str:
    declared = facts.get("type")
    if isinstance(declared, str):
        return _spelled_kind(declared, facts, root, names, seen)
    if declared is None and (alternatives := branches(facts)):
        return _widest(spelled(branch, root, names, seen) for branch in alternatives)
    return _widest(_spelled_kind(kind, facts, root, names, seen) for kind in kinds(facts, root))


def _spelled_kind(kind: str, facts: JsonObject, root: JsonObject, names: Names, seen: set[str]) -> str:
    if kind == "array":
        return f"array[{_item(spelled(facts.get('items'), root, names, seen))}]"
    shape = facts.get("format")
    if kind == "string" and isinstance(shape, str):
        return FORMATS.get(shape, "string")
    return PRIMITIVES.get(kind, ANY)


def _item(notation: str) -> str:
    """A list of entities is `array[book]`, not `array[object[book]]` (section 8)."""
    return notation[len("object[") : -1] if notation.startswith("object[") else notation


def _spelled_options(values: list[object]) -> str | None:
    """`enum[a, b]`, if the values can be told apart in that notation."""
    if not values or not all(isinstance(value, str | int | float) for value in values):
        return None
    texts = ["true" if value is True else "false" if value is False else str(value) for value in values]
    if any(UNSPELLABLE.search(text) or text != text.strip() or not text for text in texts):
        return None
    return f"enum[{', '.join(texts)}]"


def _widest(spellings: Iterable[str]) -> str:
    unique = set(spellings)
    if len(unique) == 1:
        return unique.pop()
    wider = {"object" if text.startswith("object") else WIDER.get(text, ANY) for text in unique}
    return wider.pop() if len(wider) == 1 else ANY


# --- Entities --------------------------------------------------------------------------------------------------------


class _Model(NamedTuple):
    """An object model of a schema: its members in the notation, with the models' own names, and what it refers to."""

    name: str
    facts: JsonObject
    shape: tuple[tuple[str, str], ...]
    uses: tuple[str, ...]


class Entities:
    """The entities of a document: those declared, and one for each object model learnt from the actions' schemas.

    Models that look alike in the notation are one entity; a different one of the same name gets a number. A declared
    entity, whether spelled out or given as the schema of a model, speaks for every model of its name.
    """

    def __init__(self, declared: Mapping[str, Mapping[str, str]], schemas: Mapping[str, JsonObject]) -> None:
        self._fields: dict[str, dict[str, str]] = {name: dict(fields) for name, fields in declared.items()}
        self._declared = frozenset({*declared, *schemas})
        self._known: dict[object, str] = {}
        self._numbers: dict[str, int] = {}
        self._taken = {*RESERVED, *self._declared}
        for name, schema in schemas.items():
            self._fields[name] = spelled_members(resolved(schema, schema), schema, self.learn(schema))

    def learn(self, schema: JsonObject) -> Names:
        """Take in the models of a schema, and tell what its references are called from now on."""
        models = _models_in(schema)
        names = {
            reference: self._name_of(model.name, _shape_of(reference, models)) for reference, model in models.items()
        }
        for reference, name in names.items():
            if name not in self._fields:
                self._fields[name] = _fields_of(models[reference], schema, names)
        return names

    def add(self, name: str, fields: dict[str, str]) -> str:
        """Take in one entity, and tell what it is called."""
        name_given = self._name_of(name, tuple(fields.items()))
        self._fields.setdefault(name_given, fields)
        return name_given

    def render(self) -> dict[str, object]:
        """The member `entities`."""
        return {name: {"fields": fields} for name, fields in self._fields.items()}

    def _name_of(self, name: str, shape: object) -> str:
        wanted = snake_case(name)
        if wanted in self._declared:
            return wanted
        if (wanted, shape) not in self._known:
            self._known[wanted, shape] = self._free_name(wanted)
        return self._known[wanted, shape]

    def _free_name(self, wanted: str) -> str:
        """`book`, then `book_2`, `book_3`, ... Numbers already given are never tried again."""
        number = self._numbers.get(wanted, 0)
        while True:
            number += 1
            name = wanted if number == 1 else f"{wanted}_{number}"
            if name not in self._taken:
                self._numbers[wanted] = number
                self._taken.add(name)
                return name


def _models_in(schema: JsonObject) -> dict[str, _Model]:
    definitions = schema.get("$defs")
    if not isinstance(definitions, Mapping):
        return {}
    facts = {name: resolved(definition, schema) for name, definition in definitions.items()}
    objects = {name: fact for name, fact in facts.items() if members(fact)}
    own_names = {DEFINITIONS + name: name for name in objects}
    return {reference: _model(reference, objects[name], schema, own_names) for reference, name in own_names.items()}


def _model(reference: str, facts: JsonObject, schema: JsonObject, names: Names) -> _Model:
    shape = tuple(spelled_members(facts, schema, names).items())
    is_leaf = not any(text.startswith(("object[", "array[")) for _, text in shape)
    uses = () if is_leaf else _uses(follow(reference, schema), schema, names)
    return _Model(names[reference], facts, shape, uses)


def _uses(definition: object, schema: JsonObject, models: Names) -> tuple[str, ...]:
    """The models that a definition refers to, directly or through definitions that are no objects."""
    waiting, seen = [definition], dict[str, None]()
    while waiting:
        for reference in references(waiting.pop()):
            if reference not in seen:
                seen[reference] = None
                waiting += [] if reference in models else [follow(reference, schema)]
    return tuple(reference for reference in seen if reference in models)


def _shape_of(reference: str, models: Mapping[str, _Model]) -> tuple[object, ...]:
    """What a model looks like, with everything it refers to: two models of the same shape are the same entity."""
    waiting, found = [reference], dict[str, object]()
    while waiting:
        current = waiting.pop()
        if current not in found:
            found[current] = models[current].shape
            waiting += models[current].uses
    return tuple(found.items())


def _fields_of(model: _Model, schema: JsonObject, names: Names) -> dict[str, str]:
    """The members under the entities' names. A model that refers to no other is already spelled."""
    return spelled_members(model.facts, schema, names) if model.uses else dict(model.shape)
