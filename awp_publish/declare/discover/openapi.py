"""An OpenAPI 3.1 operation as flat inputs, outputs, and the locations where the inputs are sent.

Agents fill in one flat object of inputs best. A JSON body that is a plain object joins the parameters at the top level;
a list, a union, an optional body, or one whose members clash with parameters stays whole under the name `body`. If only
a schema or a path is known, the locations follow from these.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, cast

from starlette.convertors import CONVERTOR_TYPES, UUIDConvertor

from awp_publish.declare.discover.routes import FORM_TYPES, NO_BODY_METHODS, Operation, path_parameters
from awp_publish.model import SEGMENT_PATTERN, SEGMENTS_PATTERN, JsonObject, Location, Parameter, RouteCredential
from awp_publish.schema import UnusableSchema, compile_schema, member_names
from awp_publish.schema.files import with_name
from awp_publish.schema.media import is_json, is_text, media_type_of

# --- The schemas of one OpenAPI 3.1 document, made self-contained ---
# Each schema is copied once, however many actions use it. Recursive models stay recursive.

_COMPONENTS: Final = "#/components/"
_SCHEMAS: Final = "#/components/schemas/"
_DEFINITIONS: Final = "#/$defs/"
_VERBATIM: Final = frozenset({"default", "const", "enum", "example", "examples"})
"""Keywords that hold data, in which `title` or `$ref` has no special meaning."""

_BOUNDS: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})

_NAMED: Final = frozenset({"properties", "$defs", "patternProperties", "dependentSchemas"})
"""Keywords that hold schemas under arbitrary names."""


class Components:
    """The `components` of an OpenAPI document."""

    def __init__(self, document: object) -> None:
        self._components = as_object(as_object(document).get("components"))
        self._schemas = as_object(self._components.get("schemas"))
        self._local: dict[str, tuple[JsonObject, frozenset[str]]] = {}

    def follow(self, value: object) -> JsonObject:
        """Return a parameter, request body or response, resolving a reference to one."""
        reference = as_object(value).get("$ref")
        if isinstance(reference, str) and reference.startswith(_COMPONENTS):
            kind, _, name = reference.removeprefix(_COMPONENTS).partition("/")
            return as_object(as_object(self._components.get(kind)).get(name))
        return as_object(value)

    def security_scheme(self, name: str) -> JsonObject:
        """Return the security scheme of that name, {} if there is none."""
        return self.follow(as_object(self._components.get("securitySchemes")).get(name))

    def local(self, schema: object, names: set[str]) -> dict[str, object]:
        """Return a copy whose references point into `$defs`, and add the names it refers to."""
        copied = _rewrite(schema, names)
        return copied if isinstance(copied, dict) else {}

    def root(self, schema: object, names: set[str]) -> dict[str, object]:
        """Return the same, but resolve a schema that is itself a reference."""
        reference = as_object(schema).get("$ref")
        if not isinstance(reference, str) or not reference.startswith((_SCHEMAS, _DEFINITIONS)):
            return self.local(schema, names)
        target, further = self._definition(reference.removeprefix(_SCHEMAS).removeprefix(_DEFINITIONS))
        names |= further
        return {**target, **{key: value for key, value in as_object(schema).items() if key not in ("$ref", "title")}}

    def definitions(self, names: Iterable[str]) -> dict[str, object]:
        """Return the schemas of these names and all that they refer to."""
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
            self._local[name] = self.local(self._schemas.get(name, {}), names), frozenset(names)
        return self._local[name]


def with_definitions(schema: dict[str, object], definitions: JsonObject) -> dict[str, object]:
    return {**schema, "$defs": definitions} if definitions else schema


def _rewrite(schema: object, names: set[str]) -> object:
    """Copy a schema with local references, and without titles, which are generated from names."""
    if isinstance(schema, list):
        return [_rewrite(item, names) if isinstance(item, (dict, list)) else item for item in schema]
    if not isinstance(schema, dict):
        return schema
    copied: dict[str, object] = {}
    for key, value in schema.items():
        if isinstance(value, (dict, list)):
            if key in _NAMED and isinstance(value, dict):
                copied[key] = {name: _rewrite(member, names) for name, member in value.items()}
            elif key in _VERBATIM:
                copied[key] = value
            elif key != "discriminator":  # an OpenAPI keyword, whose mapping refers to the original document
                copied[key] = _rewrite(value, names)
        elif key == "$ref" and isinstance(value, str) and value.startswith(_SCHEMAS):
            names.add(value.removeprefix(_SCHEMAS))
            copied[key] = _DEFINITIONS + value.removeprefix(_SCHEMAS)
        elif key in _BOUNDS and isinstance(value, float) and value.is_integer():
            copied[key] = int(value)  # FastAPI keeps every bound as a float
        elif key != "title":
            copied[key] = value
    return copied


def as_object(value: object) -> JsonObject:
    return value if isinstance(value, Mapping) else {}


def as_objects(value: object) -> list[JsonObject]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


BODY: Final = "body"
JSON: Final = "application/json"
MULTIPART: Final = "multipart/form-data"

CALLER_HEADERS: Final = frozenset({"authorization", "cookie", "proxy-authorization", "host", "content-type", "accept"})
"""Headers that come with the call itself, never from its input: credentials are not arguments."""

_PLACES: Final = frozenset({"path", "query", "header", "cookie"})
_MERGEABLE: Final = frozenset({"type", "properties", "required", "additionalProperties", "description", "examples"})
_NULL: Final = {"type": "null"}
_LISTED: Final = ("anyOf", "oneOf", "allOf")


def read_operation(
    operation: JsonObject,
    components: Components,
    path: str,
    security: object = None,
    *,
    drops_unknown: bool = False,
    drops_empty: bool = False,
) -> Operation:
    """Read one OpenAPI operation.

    `path` is the route's template with convertors, from the application's root: it tells which parameters span
    segments, and may hold placeholders of mounts that the document does not know. `security` is the document's default.
    `drops_unknown` means that the framework drops body members that the schema does not mention, `drops_empty` that it
    treats an empty form field as a missing one.
    """
    builder = _InputBuilder(default_extra=not drops_unknown, drops_empty=drops_empty)
    _read_parameters(builder, operation, components, path)
    content_type = _read_body(builder, components.follow(operation.get("requestBody")), components)
    status, outputs = _read_responses(as_object(operation.get("responses")), components)
    # The alternative ways to authenticate, each of one or more schemes. `{}` among them means "not at all".
    asked = as_objects(operation.get("security", security))
    # Pages and redirects are for people: every success has to be JSON or empty.
    answers_json, answer_headers = True, dict[str, None]()
    for kind, response in as_object(operation.get("responses")).items():
        if str(kind)[:1] in ("2", "3"):
            content = as_object(components.follow(response).get("content"))
            answer_headers |= dict.fromkeys(as_object(components.follow(response).get("headers")))
            only_json = all(is_json(media_type_of(name.encode())) for name in content)
            answers_json = answers_json and only_json and str(kind)[:1] == "2"
    read = Operation(
        builder.schema(components),
        outputs,
        tuple(builder.parameters),
        content_type,
        status,
        _text(operation.get("description")),
        _text(operation.get("summary")),
        _text(operation.get("operationId")),
        builder.needs_authorization,
        answers_json=answers_json,
        answer_headers=tuple(answer_headers),
    )
    if not asked:
        return read
    listed = [scopes for alternative in asked for scopes in alternative.values() if isinstance(scopes, list)]
    schemes = {name: components.security_scheme(name) for alternative in asked for name in alternative}
    credentials = [found for scheme in schemes.values() if (found := credential_of(scheme)) is not None]
    requirements = tuple(
        {
            name: tuple(str(one) for one in scopes) if isinstance(scopes, list) else ()
            for name, scopes in alternative.items()
        }
        for alternative in asked
    )
    return replace(
        read,
        auth_required=all(asked) or builder.needs_authorization,
        scopes=tuple(dict.fromkeys(str(scope) for scopes in listed for scope in scopes)) if all(asked) else (),
        credentials=tuple(dict.fromkeys(credentials)),
        security=requirements,
        schemes={name: scheme for name, scheme in schemes.items() if scheme},
    )


def credential_of(scheme: JsonObject) -> RouteCredential | None:
    """Return the header, cookie or query parameter that a security scheme reads; all but `apiKey`: Authorization."""
    kind, place, name = scheme.get("type"), scheme.get("in"), str(scheme.get("name"))
    if kind in ("http", "oauth2", "openIdConnect"):
        return RouteCredential("header", "authorization")
    if kind != "apiKey":
        return None
    if place == "header":
        return RouteCredential("header", name.lower())
    if place == "cookie":
        return RouteCredential("cookie", name)
    return RouteCredential("query", name) if place == "query" else None


_SECRET_HEADER: Final = re.compile(
    r"(?!.*(csrf|xsrf|idempotency|page|cursor|continuation))"
    r".*(authorization|token|secret|credential|password|api-?key|(^|-)(key|auth)(-|$))"
)


def is_secret_header(name: str) -> bool:
    """Return True if a header, in lower case, is named like those that hold credentials: `x-token`, `api-key`."""
    return _SECRET_HEADER.fullmatch(name) is not None


def without_credentials(operation: Operation, named: Collection[str] = (), of_route: Collection[str] = ()) -> Operation:
    """Return an operation without inputs that are headers with credentials: the caller's own headers are used.

    These are `named` by the site (in lower case), by a security scheme, or recognised by the route (`of_route`).
    """
    by_scheme = {one.name for one in operation.credentials if one.place == "header"}
    removed: dict[str, str] = {}
    for one in operation.parameters:
        name = one.wire_name.lower()
        if one.location == "header" and (name in named or name in by_scheme or name in of_route):
            removed[one.name] = name
    if not removed:
        return operation
    inputs, required = dict(operation.inputs), _required(operation.inputs)
    inputs["properties"] = {
        name: schema for name, schema in as_object(inputs.get("properties")).items() if name not in removed
    }
    inputs.pop("required", None)
    if left := [name for name in required if name not in removed]:
        inputs["required"] = left
    found = [RouteCredential("header", name) for name in removed.values()]
    # A header that the site itself checks does not make the route require authentication.
    demanded = any(removed[name] not in named for name in required if name in removed)
    return replace(
        operation,
        inputs=inputs,
        parameters=tuple(one for one in operation.parameters if one.name not in removed),
        credentials=tuple(dict.fromkeys((*operation.credentials, *found))),
        auth_required=operation.auth_required or demanded,
    )


# --- Inputs ---


@dataclass(slots=True)
class _InputBuilder:
    """Collects the flat inputs. `extra` is the body's `additionalProperties`.

    `default_extra` applies to a body that has none: where unknown members would be dropped, it forbids them.
    """

    parameters: list[Parameter] = field(default_factory=list)
    properties: dict[str, object] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    extra: object = False
    default_extra: bool = True
    drops_empty: bool = False
    needs_authorization: bool = False

    def add(self, name: str, location: Location, schema: object, required: bool, spans_segments: bool = False) -> None:
        label = name
        while label in self.properties:
            label = f"{location}_{label}"
        self.properties[label] = schema
        self.required += [label] if required else []
        self.parameters.append(Parameter(label, location, name, spans_segments))

    def schema(self, components: Components) -> dict[str, object]:
        """Return one object schema. It is closed unless the body is open, so that no accepted input is lost."""
        inputs: dict[str, object] = {"type": "object", "properties": self.properties}
        if self.required:
            inputs["required"] = self.required
        if self.extra is not True:
            inputs["additionalProperties"] = self.extra
        return with_definitions(inputs, components.definitions(self.names))


def _read_parameters(builder: _InputBuilder, operation: JsonObject, components: Components, path: str) -> None:
    convertors = path_parameters(path)
    listed = operation.get("parameters")
    parameters = [components.follow(one) for one in listed] if isinstance(listed, list) else []
    known = {one.get("name") for one in parameters if one.get("in") == "path"}
    for name, convertor in convertors.items():
        if name not in known:
            builder.add(name, "path", path_parameter_schema(convertor), True, convertor == "path")
    for declared in parameters:
        place = declared.get("in")
        if place not in _PLACES or (place == "path" and declared.get("name") not in convertors):
            continue
        name, location = str(declared.get("name")), cast(Location, place)
        required = bool(declared.get("required"))
        if location == "header" and name.lower() in CALLER_HEADERS:
            builder.needs_authorization |= required and name.lower() == "authorization"
            continue
        schema = components.local(declared.get("schema"), builder.names)
        for key in ("description", "deprecated"):
            if key in declared:
                schema.setdefault(key, declared[key])
        if "example" in declared:
            schema.setdefault("examples", [declared["example"]])
        if location == "path":
            convertor = convertors[name]
            told = narrow_to_path(schema, convertor) if schema else path_parameter_schema(convertor)
            builder.add(name, location, told, True, convertor == "path")
        else:
            # A cookie may also come with the call itself, from the caller's own jar.
            builder.add(name, location, _as_sent(schema, required), required and location != "cookie")


def _as_sent(schema: dict[str, object], required: bool) -> dict[str, object]:
    """Narrow a schema to what a query, form or header can send: null or an empty list would mean the default."""
    if not required and schema.get("default") in (None, [], {}):
        return schema
    if schema.get("type") == "array":
        return {**schema, "minItems": max(1, cast(int, schema.get("minItems", 1)))}
    branches = schema.get("anyOf")
    if not isinstance(branches, list) or _NULL not in branches:
        return schema
    left = [branch for branch in branches if branch != _NULL]
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return _as_sent({**rest, **left[0]}, required) if len(left) == 1 else {**rest, "anyOf": left}


def _read_body(builder: _InputBuilder, body: JsonObject, components: Components) -> str | None:
    """Add the body's inputs. Returns its media type."""
    content = as_object(body.get("content"))
    if not content:
        return None
    content_type = JSON if JSON in content else str(next(iter(content)))
    schema = components.root(as_object(content[content_type]).get("schema"), builder.names)
    if content_type in FORM_TYPES:
        return _read_form(builder, schema, components, content_type)
    required, members, wanted = bool(body.get("required")), as_object(schema.get("properties")), _required(schema)
    # Members join the parameters if that changes the meaning of neither.
    is_plain = schema.get("type") == "object" and bool(members) and schema.keys() <= _MERGEABLE
    is_free = members.keys().isdisjoint(builder.properties) and (required or not schema.get("required"))
    if content_type != JSON or not (is_plain and is_free):
        builder.add(BODY, "body", schema, required)
        return content_type
    for name, member in members.items():
        builder.add(name, "json", member, name in wanted)
    builder.extra = schema.get("additionalProperties", builder.default_extra)
    return content_type


def _read_form(builder: _InputBuilder, form: dict[str, object], components: Components, content_type: str) -> str:
    """Add form fields beside the parameters. Files make the form multipart. Returns its media type."""
    # FastAPI writes a form model beside single form fields as `allOf`, although its fields belong to the form, too.
    schema = {key: value for key, value in form.items() if key != "allOf"}
    for part in as_objects(form.get("allOf")):
        model = components.root(part, builder.names)
        schema["properties"] = {**as_object(model.get("properties")), **as_object(schema.get("properties"))}
        schema["required"] = [*_required(model), *_required(schema)]
    wanted = _required(schema)
    locations: set[Location] = set()
    for name, member in as_object(schema.get("properties")).items():
        location: Location = "file" if _is_file(member) else "form"
        locations.add(location)
        fields = _as_base64(member) if location == "file" else dict(as_object(member))
        sent = _as_sent(fields, name in wanted)
        is_text = location == "form" and sent.get("type") == "string" and {"enum", "const"}.isdisjoint(sent)
        if builder.drops_empty and is_text and (name in wanted or sent.get("default") not in (None, "")):
            sent["minLength"] = max(1, cast(int, sent.get("minLength", 1)))
        builder.add(name, location, sent, name in wanted)
    builder.extra = schema.get("additionalProperties", builder.default_extra)
    return MULTIPART if "file" in locations else content_type


def _required(schema: JsonObject) -> list[str]:
    listed = schema.get("required")
    return listed if isinstance(listed, list) else []


def _is_file(schema: object) -> bool:
    facts = as_object(schema)
    parts = [facts.get("items"), *(part for key in _LISTED for part in as_objects(facts.get(key)))]
    return _is_bytes(facts) or any(_is_file(part) for part in parts if part is not None)


def _as_base64(schema: object) -> dict[str, object]:
    """Replace binary content by base64 (JSON Schema's contentEncoding), as which a file is sent in JSON.

    Beside it there is an object with the file's name and media type.
    """
    facts = dict(as_object(schema))
    if _is_bytes(facts):
        facts.pop("format", None)
        return with_name(facts)
    if "items" in facts:
        facts["items"] = _as_base64(facts["items"])
    for key in _LISTED:
        if isinstance(facts.get(key), list):
            facts[key] = [_as_base64(part) for part in as_objects(facts[key])]
    return facts


def _is_bytes(facts: JsonObject) -> bool:
    return facts.get("format") == "binary" or facts.get("contentMediaType") == "application/octet-stream"


# --- Outputs ---


def _read_responses(responses: JsonObject, components: Components) -> tuple[int, dict[str, object]]:
    """Return the first success status, and a schema that covers every success."""
    found = [(str(status), components.follow(one)) for status, one in responses.items() if str(status)[:1] == "2"]
    if not found:
        return 200, {}
    schemas: list[dict[str, object]] = []
    names: set[str] = set()
    for status, response in found:
        content = as_object(response.get("content"))
        media_type = next((name for name in content if is_json(media_type_of(name.encode()))), None)
        if not content:
            schema: dict[str, object] = {"type": "null"} if status in ("204", "205") else {}
        elif media_type is None:
            named = next(iter(content))
            is_binary = named.partition("/")[0] != "*" and not is_text(media_type_of(named.encode()))
            schema = {
                "type": "string",
                "contentMediaType": named,
                **({"contentEncoding": "base64"} if is_binary else {}),
            }
        else:
            schema = components.root(as_object(content[media_type]).get("schema"), names)
        schemas += [schema] if schema not in schemas else []
    outputs: dict[str, object] = {"anyOf": schemas} if all(schemas) else {}
    if len(schemas) == 1:
        outputs = schemas[0]
    number = int(found[0][0]) if found[0][0].isdigit() else 200
    return number, with_definitions(outputs, components.definitions(names))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


# --- The path's placeholders ---

_CONVERTOR_SCHEMAS: Final[Mapping[str, JsonObject]] = {
    "int": {"type": "integer", "minimum": 0},
    "float": {"type": "number", "minimum": 0},
    "uuid": {"type": "string", "format": "uuid", "pattern": f"^(?:{UUIDConvertor.regex})$"},
    "path": {"type": "string", "minLength": 1, "pattern": SEGMENTS_PATTERN},
    "str": {"type": "string", "minLength": 1, "pattern": SEGMENT_PATTERN},
}


def path_parameter_schema(convertor: str) -> dict[str, object]:
    """Return the JSON Schema of what a Starlette convertor matches, also of one that the site has registered."""
    known = _CONVERTOR_SCHEMAS.get(convertor)
    if known is None and convertor in CONVERTOR_TYPES:
        known = {"type": "string", "minLength": 1, "pattern": f"^(?:{CONVERTOR_TYPES[convertor].regex})$"}
        try:
            compile_schema(known)
        except UnusableSchema:  # not every Python regular expression is valid in JSON Schema
            known = None
    return dict(known or _CONVERTOR_SCHEMAS["path"])


_SINGLE_SEGMENTS: Final = frozenset({"uuid", "date", "date-time", "time", "duration", "ipv4", "ipv6"})
"""Formats whose values are never empty and contain no slash."""


def narrow_to_path(schema: object, convertor: str) -> object:
    """Add what a path parameter's convertor demands: other values would lead to another route."""
    if not isinstance(schema, Mapping) or not {"enum", "const", "$ref"}.isdisjoint(schema):
        return schema
    if convertor == "str" and schema.get("format") in _SINGLE_SEGMENTS:
        return schema
    demanded = path_parameter_schema(convertor)
    if schema.get("type", "string") != demanded["type"]:
        demanded = path_parameter_schema("str") if schema.get("type") == "string" else {}
    bounds: dict[str, object] = {key: value for key, value in demanded.items() if key not in ("type", *schema)}
    if isinstance(least := schema.get("minLength"), int) and "minLength" in demanded:
        bounds["minLength"] = max(1, least)
    if "exclusiveMinimum" in schema:
        bounds.pop("minimum", None)
    return {**schema, **bounds}


# --- Locations of inputs of which only the schema is known ---

_OUTSIDE_BODY: Final = ("path", "query", "header", "cookie")


def describe_by_path(path: str, description: str | None = None) -> Operation:
    """Describe a route of which only the path is known: it takes the path's parameters and may answer anything."""
    nothing: dict[str, object] = {"type": "object", "properties": {}, "additionalProperties": False}
    return Operation(
        _with_path_parameters(nothing, path, {}), {}, tuple(_path_parameters(path).values()), description=description
    )


def take_inputs(
    operation: Operation, inputs: JsonObject, method: str, path: str, content_type: str | None
) -> Operation:
    """Replace an operation's inputs by a declared schema.

    Inputs that the framework has outside the body stay where they are, the path's parameters go into the path, and all
    others into the query for methods without a body, otherwise into the body.
    """
    by_method = None if method in NO_BODY_METHODS else "application/json"
    body_type = content_type or operation.content_type or by_method
    location: Location = "query" if body_type is None else "form" if body_type in FORM_TYPES else "json"
    # Locations in the body are kept only if the body has the same media type.
    same_body = body_type == operation.content_type
    kept = (one for one in operation.parameters if same_body or one.location in _OUTSIDE_BODY)
    known = {one.name: one for one in kept} | _path_parameters(path)
    taken = _with_path_parameters(inputs, path, operation.inputs)
    names = [*path_parameters(path), *(name for name in member_names(taken) if name not in path_parameters(path))]
    parameters = tuple(known.get(name) or Parameter(name, location, name) for name in names)
    return replace(operation, inputs=taken, parameters=parameters, content_type=body_type)


def _path_parameters(path: str) -> dict[str, Parameter]:
    found = path_parameters(path).items()
    return {name: Parameter(name, "path", name, spans_segments=convertor == "path") for name, convertor in found}


def _with_path_parameters(inputs: JsonObject, path: str, described: JsonObject) -> JsonObject:
    """Add the path's parameters, which a declared model often leaves out: required, as they are `described`."""
    properties, required = inputs.get("properties"), inputs.get("required")
    known = dict(properties) if isinstance(properties, Mapping) else {}
    wanted = list(required) if isinstance(required, list) else []
    by_framework = described.get("properties")
    for name, convertor in path_parameters(path).items():
        schema = by_framework.get(name) if isinstance(by_framework, Mapping) else None
        # A schema with a reference cannot be used: the declared inputs lack its definitions.
        is_usable = isinstance(schema, Mapping) and bool(schema) and "$ref" not in schema
        known.setdefault(name, schema if is_usable else path_parameter_schema(convertor))
        known[name] = narrow_to_path(known[name], convertor)
        wanted += [name] if name not in wanted else []
    added: dict[str, object] = {"properties": known} | ({"required": wanted} if wanted else {})
    return {**inputs, **added}
