"""From an OpenAPI 3.1 operation to flat inputs, outputs and the places where the inputs travel.

One flat object of inputs is what agents fill in best. A JSON body that is a plain object joins the parameters at the
top level; a list, a union, an optional body or one whose members clash with parameters stays whole under the name
`body`. Recursive models stay recursive: their `$defs` are kept.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, cast

from awp_publish.discover.placement import FORM_TYPES
from awp_publish.discover.route import Operation, path_parameters
from awp_publish.model import JsonObject, Location, Parameter

COMPONENTS: Final = "#/components/schemas/"
DEFINITIONS: Final = "#/$defs/"
BODY: Final = "body"
JSON: Final = "application/json"

CARRIED_HEADERS: Final = frozenset({"authorization", "cookie", "proxy-authorization", "host", "content-type", "accept"})
"""Headers that come with the call itself and never from its input: credentials are no arguments of an agent."""

_VERBATIM: Final = frozenset({"default", "const", "enum", "example", "examples"})
_MERGEABLE: Final = frozenset(
    {"type", "properties", "required", "additionalProperties", "title", "description", "examples", "$defs"}
)


class Components:
    """The schemas of one OpenAPI document, rewritten once each so that every action can carry the ones it needs."""

    def __init__(self, document: JsonObject) -> None:
        self._schemas = _object(_object(document.get("components")).get("schemas"))
        self._local: dict[str, tuple[JsonObject, frozenset[str]]] = {}

    def localize(self, schema: object) -> dict[str, object]:
        """A schema that stands alone: references point into its own `$defs`."""
        names: set[str] = set()
        local = _rewrite(schema, names)
        root = cast(dict[str, object], local) if isinstance(local, dict) else {}
        definitions = self._definitions(names)
        return {**root, "$defs": definitions} if definitions else root

    def inline_root(self, schema: dict[str, object]) -> dict[str, object]:
        """Replace a root that is only a reference by what it refers to; `$defs` stay for recursion."""
        reference, definitions = schema.get("$ref"), _object(schema.get("$defs"))
        if not isinstance(reference, str) or set(schema) - {"$ref", "$defs", "title", "description"}:
            return schema
        name = reference.removeprefix(DEFINITIONS)
        target = {**_object(definitions.get(name)), **{k: v for k, v in schema.items() if k == "description"}}
        left = {key: value for key, value in definitions.items() if key != name or _refers_to(definitions, name)}
        return {**target, "$defs": left} if left else target

    def _definitions(self, names: set[str]) -> dict[str, object]:
        found: dict[str, object] = {}
        waiting = sorted(names)
        while waiting:
            name = waiting.pop(0)
            if name not in found:
                found[name], further = self._definition(name)
                waiting += sorted(further)
        return found

    def _definition(self, name: str) -> tuple[JsonObject, frozenset[str]]:
        if name not in self._local:
            names: set[str] = set()
            local = _rewrite(self._schemas.get(name, {}), names)
            self._local[name] = (_object(local), frozenset(names))
        return self._local[name]


def read_operation(operation: JsonObject, components: Components, path: str) -> Operation:
    """Read one OpenAPI operation. `path` is the route's template with convertors, which say what spans segments."""
    taken = _Taken()
    _read_parameters(taken, operation, path)
    content_type = _read_body(taken, _object(operation.get("requestBody")), components)
    status, outputs = _read_response(operation, components)
    return Operation(
        taken.schema(components),
        outputs,
        tuple(taken.parameters),
        content_type,
        status,
        _text(operation.get("description")) or _text(operation.get("summary")),
        _text(operation.get("operationId")),
    )


@dataclass(slots=True)
class _Taken:
    """The flat inputs as they are put together. `extra` is what an open body says about members not declared."""

    parameters: list[Parameter] = field(default_factory=list)
    properties: dict[str, object] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    definitions: JsonObject = field(default_factory=dict)
    extra: object = False

    def add(self, name: str, location: Location, schema: object, required: bool, spans_segments: bool = False) -> None:
        label = name if name not in self.properties else f"{location}_{name}"
        self.properties[label] = schema
        self.required += [label] if required else []
        self.parameters.append(Parameter(label, location, name, spans_segments))

    def schema(self, components: Components) -> dict[str, object]:
        """One object. It is closed unless an open body takes what is not declared: nothing accepted is lost."""
        inputs: dict[str, object] = {"type": "object", "properties": self.properties}
        if self.required:
            inputs["required"] = self.required
        if self.extra is not True:
            inputs["additionalProperties"] = self.extra
        localized = components.localize(inputs)
        definitions = {**_object(localized.get("$defs")), **self.definitions}
        return {**localized, "$defs": definitions} if definitions else localized


def _read_parameters(taken: _Taken, operation: JsonObject, path: str) -> None:
    convertors = path_parameters(path)
    for declared in _objects(operation.get("parameters")):
        name, location = str(declared.get("name")), cast(Location, declared.get("in"))
        if location == "header" and name.lower() in CARRIED_HEADERS:
            continue
        required = bool(declared.get("required"))
        taken.add(name, location, _parameter_schema(declared), required, convertors.get(name) == "path")


def _read_body(taken: _Taken, body: JsonObject, components: Components) -> str | None:
    """Add the body's inputs; its media type."""
    content = _object(body.get("content"))
    if not content:
        return None
    content_type = JSON if JSON in content else next(iter(content))
    schema = components.inline_root(components.localize(_object(content[content_type]).get("schema", {})))
    taken.definitions = _object(schema.get("$defs"))
    required = bool(body.get("required"))
    if not _can_merge(schema, taken.properties, required, content_type):
        taken.add(BODY, "body", {key: value for key, value in schema.items() if key != "$defs"}, required)
        return content_type
    wanted = cast(list[str], schema.get("required", []))
    for name, member in _object(schema.get("properties")).items():
        taken.add(name, _body_location(member, content_type), _as_text(member), name in wanted)
    taken.extra = schema.get("additionalProperties", True)
    return content_type


def _parameter_schema(declared: JsonObject) -> dict[str, object]:
    schema = dict(_object(declared.get("schema")))
    for key in ("description", "deprecated"):
        if key in declared:
            schema.setdefault(key, declared[key])
    if "example" in declared:
        schema.setdefault("examples", [declared["example"]])
    return schema


def _can_merge(body: JsonObject, taken: JsonObject, required: bool, content_type: str) -> bool:
    """Whether a body's members can stand beside the parameters without changing what either means."""
    if content_type in FORM_TYPES:
        return "properties" in body
    plain = content_type == JSON and body.get("type") == "object" and "properties" in body
    clash = set(_object(body.get("properties"))) & set(taken)
    return plain and not set(body) - _MERGEABLE and not clash and (required or not body.get("required"))


def _body_location(schema: object, content_type: str | None) -> Location:
    if content_type == JSON:
        return "json"
    return "file" if any(_is_binary(part) for part in _with_items(_object(schema))) else "form"


def _as_text(schema: object) -> object:
    """A file travels in JSON as base64 (JSON Schema's contentEncoding)."""
    if isinstance(schema, Mapping) and _is_binary(schema):
        kept = {key: value for key, value in schema.items() if key != "format"}
        return {**kept, "contentEncoding": "base64"}
    if isinstance(schema, Mapping) and isinstance(schema.get("items"), Mapping):
        return {**schema, "items": _as_text(schema["items"])}
    if isinstance(schema, Mapping) and isinstance(schema.get("anyOf"), list):
        return {**schema, "anyOf": [_as_text(part) for part in _objects(schema["anyOf"])]}
    return schema


def _with_items(schema: JsonObject) -> Iterator[JsonObject]:
    yield schema
    yield _object(schema.get("items"))
    yield from _objects(schema.get("anyOf"))


def _is_binary(schema: JsonObject) -> bool:
    return schema.get("format") == "binary" or schema.get("contentMediaType") == "application/octet-stream"


def _read_response(operation: JsonObject, components: Components) -> tuple[int, dict[str, object]]:
    responses = _object(operation.get("responses"))
    status = next((key for key in responses if str(key).startswith("2")), "200")
    content = _object(_object(responses.get(status)).get("content"))
    number = int(status) if str(status).isdigit() else 200
    if not content:
        return number, {"type": "null"} if number in (204, 205) else {}
    media_type = next((name for name in content if "json" in name and "jsonl" not in name), next(iter(content)))
    if "json" not in media_type or "jsonl" in media_type:
        return number, {"type": "string", "contentMediaType": media_type}
    return number, components.inline_root(components.localize(_object(content[media_type]).get("schema", {})))


def _rewrite(schema: object, names: set[str]) -> object:
    """Copy a schema with references made local, noting their names, and without the titles made up from names."""
    if isinstance(schema, list):
        return [_rewrite(item, names) for item in schema]
    if not isinstance(schema, dict):
        return schema
    copied: dict[str, object] = {}
    for key, value in schema.items():
        if key == "title" and isinstance(value, str):
            continue
        if key == "$ref" and isinstance(value, str) and value.startswith(COMPONENTS):
            names.add(value.removeprefix(COMPONENTS))
            copied[key] = DEFINITIONS + value.removeprefix(COMPONENTS)
        elif key == "discriminator":
            continue  # an OpenAPI keyword whose mapping points into the document we leave
        elif key in ("properties", "$defs", "patternProperties") and isinstance(value, dict):
            copied[key] = {name: _rewrite(member, names) for name, member in value.items()}
        else:
            copied[key] = value if key in _VERBATIM else _rewrite(value, names)
    return copied


def _refers_to(definitions: JsonObject, name: str) -> bool:
    return any(DEFINITIONS + name == reference for reference in _references(definitions))


def _references(schema: object) -> Iterator[str]:
    if isinstance(schema, list):
        for item in schema:
            yield from _references(item)
    elif isinstance(schema, Mapping):
        reference = schema.get("$ref")
        if isinstance(reference, str):
            yield reference
        for value in schema.values():
            yield from _references(value)


def _object(value: object) -> JsonObject:
    return value if isinstance(value, Mapping) else {}


def _objects(value: object) -> list[JsonObject]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
