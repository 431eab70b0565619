"""agent.json of the Agent Web Protocol: specification 0.2, which keeps every field of 0.1.

`inputs` tell what a plain HTTP client sends to `endpoint` (`plain_request.py`): fields under their names on the wire,
and the WoA envelope for actions without a route, whose `input` is an entity of its own. `outputs` name the members of
the answer; an answer that is no object is the one output "$", which is how JSONPath (RFC 9535) names a whole value.
`x-invoke` is where limits, keys, confirmations and receipts of an action with a route hold (`answers.py`).
Deliberately not emitted: `via` and `operation` (they would make 0.2 readers wrap the described request once more), the
members of synthetic files (section 14), an `auth.type` where actions require authentication of an undeclared kind.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from awp_publish import problems
from awp_publish.model import Action, Catalog, Door, JsonObject, SiteFacts
from awp_publish.protocols import agent_card, awas, woa
from awp_publish.protocols.members import extension_members, located, located_if, present
from awp_publish.protocols.plain_request import IDEMPOTENCY_HEADER, Field, listed_actions, request_fields
from awp_publish.protocols.protocol import Document, Protocol, to_json
from awp_publish.protocols.schema_reading import (
    branches,
    follow,
    guarded_endpoint,
    kinds,
    members,
    options,
    reference_of,
    references,
    required_members,
    resolved,
)

# --- agent.json's notation of types (section 8), and the entities that the models of JSON Schemas become ---
#     string, integer, float, boolean, ISO8601, url, enum[a, b], array[type], object[entity]
#
# `any` stands for a value that may be of several types, `object` for an object without a model: like the
# specification's own `airport_code` they are words of this file, and say less rather than something wrong.

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


PATH: Final = "/agent.json"
MEDIA_TYPE: Final = "application/json"
VERSION: Final = "0.2"

REGISTERED: Final = frozenset({"a2a", "mcp", "acp", "ap2", "x402", "skyfire", "openapi", "graphql", "payment"})
"""Protocol identifiers of section 5.5. Any other is custom and marked `x-`."""

DOOR_DOCUMENTS: Final = {"woa": ("document", woa.PATH)}
"""Doors to the document that describes what is behind them, and the member that names it."""

SOCKETS: Final = frozenset({"awp"})
"""Doors that speak WebSocket. (The Agent Web Protocol of that door is another than that of this document.)"""

WHOLE_ANSWER: Final = "$"


def render(catalog: Catalog) -> dict[str, object]:
    """The document, in the order of section 5."""
    site, actions = catalog.site, listed_actions(catalog)
    entities = Entities(site.entities, site.entity_schemas)
    described = [_action(catalog, action, entities) for action in actions]
    document = {
        "awp_version": VERSION,
        "domain": catalog.domain,
        "intent": site.description,
        "protocols": _protocols(catalog),
        "capabilities": _capabilities(actions),
        "auth": _auth(catalog, actions),
        "entities": entities.render() or None,
        "actions": described,
        "errors": _errors(site),
        "dependencies": {action.id: action.depends_on for action in actions if action.depends_on} or None,
        "agent_hints": dict(site.hints) or None,
        "agent_status": _agent_status(catalog),
    }
    return present(document) | extension_members(site.extensions)


# --- The site --------------------------------------------------------------------------------------------------------


def _protocols(catalog: Catalog) -> dict[str, object]:
    """Section 5.5: what else the site speaks."""
    spoken: dict[str, object] = {_protocol_id(door.protocol): _door(catalog, door) for door in catalog.doors}
    if awas.PATH in catalog.documents:
        spoken["x-awas"] = {"version": awas.VERSION, "endpoint": catalog.absolute(awas.PATH)}
    if catalog.openapi:
        spoken["openapi"] = {"version": catalog.openapi.version, "endpoint": catalog.absolute(catalog.openapi.path)}
    return spoken


def _protocol_id(door: str) -> str:
    return door if door in REGISTERED or door.startswith("x-") else f"x-{door}"


def _door(catalog: Catalog, door: Door) -> dict[str, object]:
    entry: dict[str, object] = {"version": door.version, "endpoint": catalog.absolute(door.path)}
    member, path = DOOR_DOCUMENTS.get(door.protocol, ("", ""))
    if path in catalog.documents:
        entry[member] = catalog.absolute(path)
    if door.protocol == agent_card.DOOR:
        entry["agent_card"] = catalog.absolute(agent_card.PATH)
    if door.protocol in SOCKETS:
        entry |= {"endpoint": "ws" + catalog.absolute(door.path).removeprefix("http"), "transport": "websocket"}
    return entry


def _capabilities(actions: Sequence[Action]) -> dict[str, object]:
    """Section 6. Pages of results are turned by an input of that name."""
    inputs = {name for action in actions if not action.is_write for name in members(action.inputs)}
    return {
        "streaming": False,
        "batch_actions": False,
        "webhooks": False,
        "pagination": next((way for way in ("cursor", "offset", "page") if way in inputs), "none"),
        "idempotency": any(action.idempotency for action in actions),
    }


def _auth(catalog: Catalog, actions: Sequence[Action]) -> dict[str, object]:
    """Section 7."""
    declared = catalog.site.authentication
    required = [action.id for action in actions if action.auth_required]
    if declared is None and not required:
        return {"type": "none"}
    return present(
        {
            "required_for": required,
            "optional_for": [action.id for action in actions if not action.auth_required],
            "type": declared and declared.type,
            "token_expiry": declared and declared.token_expiry,
            "refresh_endpoint": declared and located_if(catalog, declared.refresh_endpoint),
        }
    )


def _errors(site: SiteFacts) -> dict[str, object]:
    """Section 10: every problem a call can meet, with the site's own words over ours."""
    built_in = {problems.code_of(problem.slug): problem.default_recovery for problem in problems.ALL}
    return {code: {"recovery": recovery} for code, recovery in (built_in | dict(site.errors)).items()}


def _agent_status(catalog: Catalog) -> dict[str, object]:
    """Section 13."""
    return present(
        {
            "operational": catalog.status.operational,
            "degraded_actions": sorted(catalog.status.degraded_actions),
            "status_endpoint": located_if(catalog, catalog.status.status_endpoint),
        }
    )


# --- An action -------------------------------------------------------------------------------------------------------


def _action(catalog: Catalog, action: Action, entities: Entities) -> dict[str, object]:
    """Section 9, in the order of its table."""
    method, path = catalog.endpoint_of(action)
    return present(
        {
            "id": action.id,
            "description": action.description,
            "auth_required": action.auth_required,
            "inputs": _inputs(catalog, action, entities),
            "outputs": _outputs(action, entities),
            # Endpoints are resolved against https://{domain}, where this document has to be: from the origin.
            "endpoint": located(catalog, path),
            "method": method,
            "rate_limit": str(action.rate_limit) if action.rate_limit else None,
            "idempotency": _idempotency(action),
            "execution_model": action.execution,
            "poll_endpoint": located_if(catalog, catalog.poll_endpoint_of(action)),
            "sensitivity": action.sensitivity,
            "requires_human_confirmation": action.needs_confirmation or None,
            "reversible": False if action.is_irreversible else None,
            "x-encoding": _encoding(action),
            "x-invoke": guarded_endpoint(catalog, action),
        }
    ) | extension_members(action.extensions)


def _encoding(action: Action) -> str | None:
    content_type = action.direct.content_type if action.direct else None
    return content_type if content_type != awas.JSON_TYPE else None


def _idempotency(action: Action) -> dict[str, object] | None:
    """The key is a field of the envelope; a request to a route has no envelope, there it is a header."""
    if action.idempotency is None:
        return None
    field = {"key_field": action.idempotency.key_field}
    if action.direct is not None:
        field = {"key_field": IDEMPOTENCY_HEADER, "x-in": "header"}
    return {"supported": True, **field, "window": action.idempotency.window}


def _inputs(catalog: Catalog, action: Action, entities: Entities) -> dict[str, object]:
    names = entities.learn(action.inputs)
    return {field.name: _input(action, field, names, entities) for field in request_fields(catalog, action)}


def _input(action: Action, field: Field, names: Names, entities: Entities) -> dict[str, object]:
    if field.schema is action.inputs:
        return _envelope_input(action, names, entities)
    facts = resolved(field.schema, action.inputs)
    values = options(facts, action.inputs)
    return present(
        {
            "type": "enum" if values else spelled(field.schema, action.inputs, names),
            "required": field.required,
            "default": facts.get("default"),
            "options": values or None,
            "description": facts.get("description"),
            **field.marks,
        }
    )


def _envelope_input(action: Action, names: Names, entities: Entities) -> dict[str, object]:
    """The envelope's `input`. An entity has no required fields, so the description names them."""
    facts = resolved(action.inputs, action.inputs)
    fields = spelled_members(facts, action.inputs, names)
    entity = entities.add(f"{action.id}_input", fields) if fields else None
    required = [name for name in members(facts) if name in required_members(facts)]
    return present(
        {
            "type": f"object[{entity}]" if entity else "object",
            "required": True,
            "description": f"Required: {', '.join(required)}." if required else None,
        }
    )


def _outputs(action: Action, entities: Entities) -> Mapping[str, str]:
    if not action.outputs:
        return {}
    names = entities.learn(action.outputs)
    facts = resolved(action.outputs, action.outputs)
    if kinds(facts, action.outputs) == ["object"]:
        return spelled_members(facts, action.outputs, names)
    return {WHOLE_ANSWER: spelled(action.outputs, action.outputs, names)}


PROTOCOL = Protocol(
    "agent_json",
    documents=(Document(PATH, MEDIA_TYPE, to_json(render), "service-desc", "agent.json"),),
)
