"""agent.json's notation of types (section 8), and the entities that the models of JSON Schemas become.

    string, integer, float, boolean, ISO8601, url, enum[a, b], array[type], object[entity]

`any` is a value of several types, `object` an object without a model. Like the specification's own `airport_code`,
these are custom names; they say less rather than something wrong.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from awp_publish.model import JsonObject
from awp_publish.schema.reading import branches, follow, kinds, members, options, reference_of, references, resolved

Names: TypeAlias = Mapping[str, str]
"""Reference to a model ("#/$defs/Book") to the name of its entity ("book")."""

LIMITS: Final = (
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
)
"""JSON Schema keywords for what types cannot express. (Section 15 allows additional members.)"""

LIMITING: Final = frozenset(LIMITS)

OWN_TYPE: Final = "x-type"
"""The JSON Schema keyword for a type of the site's own, such as the specification's `airport_code`."""

ANY: Final = "any"

PRIMITIVES: Final = {
    "string": "string",
    "integer": "integer",
    "number": "float",
    "boolean": "boolean",
    "object": "object",
}

_PLAIN: Final = ("string", "integer", "number", "boolean")

_MORE: Final = frozenset((OWN_TYPE, "format", "enum", "const", "$ref", "allOf", "anyOf", "oneOf"))
"""Keywords that may narrow a type."""

NESTED: Final = frozenset({"object", "array[object]"})

FORMATS: Final = {
    "date": "ISO8601",
    "date-time": "ISO8601",
    "time": "ISO8601",
    "duration": "ISO8601",
    "uri": "url",
    "iri": "url",
}

WIDER: Final = {"integer": "float", "float": "float", "ISO8601": "string", "url": "string", "string": "string"}
"""The type of a value of several types if all of them widen to the same."""

RESERVED: Final = frozenset({*PRIMITIVES, *PRIMITIVES.values(), "iso8601", "url", "enum", "array", ANY})
"""Names that an entity must not have: `array[url]` already has a meaning."""

DEFINITIONS: Final = "#/$defs/"

WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

UNSPELLABLE: Final = re.compile(r"[,\[\]]")


def spelled(schema: object, root: JsonObject, names: Names, seen: set[str] | None = None) -> str:
    """Return the type of a value in agent.json's notation.

    References to anything but an entity are followed once (`seen`), so that recursion ends.
    """
    if isinstance(schema, dict) and schema.get("type") in _PLAIN and _MORE.isdisjoint(schema):  # as are most
        return PRIMITIVES[schema["type"]]
    followed = set() if seen is None else seen
    reference = reference_of(schema)
    if reference is not None and reference in names:
        return f"object[{names[reference]}]"
    if reference in followed:
        return ANY
    facts = resolved(schema, root, followed)
    own = facts.get(OWN_TYPE)
    if isinstance(own, str) and re.fullmatch(r"[A-Za-z_]\w*", own):
        return own
    values = options(facts, root)
    if values and all(isinstance(value, str | int | float) for value in values):
        texts = ["true" if value is True else "false" if value is False else str(value) for value in values]
        if all(text and text == text.strip() and not UNSPELLABLE.search(text) for text in texts):
            return f"enum[{', '.join(texts)}]"
    declared, shape, found = facts.get("type"), facts.get("format"), set[str]()
    if declared is None and (alternatives := branches(facts)):
        found = {spelled(branch, root, names, followed) for branch in alternatives}
    else:
        for kind in [declared] if isinstance(declared, str) else kinds(facts, root):
            if kind == "array":
                item = spelled(facts.get("items"), root, names, followed)
                # A list of entities is `array[book]`, not `array[object[book]]` (section 8).
                found.add(f"array[{item[len('object[') : -1] if item.startswith('object[') else item}]")
            elif kind == "string" and isinstance(shape, str):
                found.add(FORMATS.get(shape, "string"))
            else:
                found.add(PRIMITIVES.get(kind, ANY))
    if len(found) == 1:
        return found.pop()
    wider = {"object" if text.startswith("object") else WIDER.get(text, ANY) for text in found}
    return wider.pop() if len(wider) == 1 else ANY


def spelled_members(facts: JsonObject, root: JsonObject, names: Names) -> dict[str, str]:
    """Return the members of a resolved object schema: name to type."""
    return {name: spelled(schema, root, names) for name, schema in members(facts).items()}


def snake_case(name: str) -> str:
    """Return the name of a model's entity: `BookSummary` is `book_summary`."""
    return "_".join(WORD.findall(name)).lower() or "entity"


class _Model(NamedTuple):
    """An object model of a schema: its members in the notation, with the models' own names, and its references."""

    name: str
    facts: JsonObject
    shape: tuple[tuple[str, str], ...]
    uses: tuple[str, ...]


class Entities:
    """The entities of a document: declared ones, and one for each object model in the actions' schemas.

    Models that are equal in the notation share an entity; a different one of the same name gets a number. A declared
    entity, given by its fields or as the schema of a model, stands for every model of its name.
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
        """Add the models of a schema, and return the entity names of its references."""
        models, names = _models_in(schema), dict[str, str]()
        for reference, model in models.items():
            # Models of the same name are one entity if they are equal, including everything that they refer to.
            waiting, shapes = [reference], dict[str, object]()
            while waiting:
                current = waiting.pop()
                if current not in shapes:
                    shapes[current] = models[current].shape
                    waiting += models[current].uses
            names[reference] = self._name_of(model.name, tuple(shapes.items()))
        for reference, name in names.items():
            if name not in self._fields:
                model = models[reference]  # one without references is already written
                self._fields[name] = spelled_members(model.facts, schema, names) if model.uses else dict(model.shape)
        return names

    def add(self, name: str, fields: dict[str, str]) -> str:
        """Add one entity, and return its name."""
        name_given = self._name_of(name, tuple(fields.items()))
        self._fields.setdefault(name_given, fields)
        return name_given

    def nested(self, name: str, kind: str, facts: JsonObject, root: JsonObject, names: Names) -> str:
        """Return the type of an object, or a list of objects, whose members are written where it is used."""
        inside = facts if kind == "object" else resolved(facts.get("items"), root)
        if not members(inside):
            return kind
        entity = self.add(name, spelled_members(inside, root, names))
        return f"object[{entity}]" if kind == "object" else f"array[{entity}]"

    def render(self) -> dict[str, object]:
        """Return the member `entities`."""
        return {name: {"fields": fields} for name, fields in self._fields.items()}

    def _name_of(self, name: str, shape: object) -> str:
        """Return `book`, then `book_2`, `book_3`, ... for other shapes. Used numbers are not tried again."""
        wanted = snake_case(name)
        if wanted in self._declared:
            return wanted
        if (wanted, shape) not in self._known:
            free, number = "", self._numbers.get(wanted, 0)
            while not free or free in self._taken:
                number += 1
                free = wanted if number == 1 else f"{wanted}_{number}"
            self._numbers[wanted] = number
            self._taken.add(free)
            self._known[wanted, shape] = free
        return self._known[wanted, shape]


def _models_in(schema: JsonObject) -> dict[str, _Model]:
    """Return the object models in `$defs`, by the references to them."""
    definitions = schema.get("$defs")
    if not isinstance(definitions, Mapping):
        return {}
    facts = {name: resolved(definition, schema) for name, definition in definitions.items()}
    own_names = {DEFINITIONS + name: name for name, fact in facts.items() if members(fact)}
    models: dict[str, _Model] = {}
    for model, name in own_names.items():
        shape = tuple(spelled_members(facts[name], schema, own_names).items())
        # Models are used directly, or through definitions that are not objects.
        has_references = any(text.startswith(("object[", "array[")) for _, text in shape)
        waiting, seen = [follow(model, schema)] if has_references else [], dict[str, None]()
        while waiting:
            for reference in references(waiting.pop()):
                if reference not in seen:
                    seen[reference] = None
                    waiting += [] if reference in own_names else [follow(reference, schema)]
        models[model] = _Model(name, facts[name], shape, tuple(name for name in seen if name in own_names))
    return models
