"""An OpenAPI 3.1 operation as flat inputs, outputs, and the locations where the inputs are sent.

Agents fill in one flat object of inputs best. A JSON body that is a plain object joins the parameters at the top level;
a list, a union, an optional body, or one whose members clash with parameters stays whole under the name `body`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, cast

from awp_publish.declare.discover.placeholders import narrow_to_path, path_parameter_schema
from awp_publish.declare.discover.routes import FORM_TYPES, Operation, path_parameters
from awp_publish.model import JsonObject, Location, Parameter, RouteCredential
from awp_publish.schema.files import with_name
from awp_publish.schema.media import JSON, MULTIPART, is_json, is_text, media_type_of
from awp_publish.schema.parts import as_object, as_objects, list_of, table_of
from awp_publish_openapi.components import Components, with_definitions

BODY: Final = "body"
_PLACES: Final = frozenset({"path", "query", "header", "cookie"})
_MERGEABLE: Final = frozenset({"type", "properties", "required", "additionalProperties", "description", "examples"})
_NULL: Final = {"type": "null"}
_LISTED: Final = ("anyOf", "oneOf", "allOf")

CALLER_HEADERS: Final = frozenset({"authorization", "cookie", "proxy-authorization", "host", "content-type", "accept"})
"""Headers that come with the call itself, never from its input: credentials are not arguments."""


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
    status, outputs = _read_responses(table_of(operation, "responses"), components)
    successes = {
        str(kind): components.follow(response)
        for kind, response in table_of(operation, "responses").items()
        if str(kind)[:1] in ("2", "3")
    }
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
        answers_json=_answers_json(successes),
        answer_headers=tuple(
            dict.fromkeys(name for answer in successes.values() for name in table_of(answer, "headers"))
        ),
    )
    # The alternative ways to authenticate, each of one or more schemes. `{}` among them means "not at all".
    alternatives = as_objects(operation.get("security", security))
    return _with_security(read, alternatives, components) if alternatives else read


def _answers_json(successes: Mapping[str, JsonObject]) -> bool:
    """Return True if every success is JSON or empty: pages and redirects are for people."""
    types = [name for answer in successes.values() for name in table_of(answer, "content")]
    return all(kind[0] == "2" for kind in successes) and all(is_json(media_type_of(name.encode())) for name in types)


def _with_security(read: Operation, alternatives: Sequence[JsonObject], components: Components) -> Operation:
    listed = [scopes for alternative in alternatives for scopes in alternative.values() if isinstance(scopes, list)]
    schemes = {name: components.security_scheme(name) for alternative in alternatives for name in alternative}
    credentials = [credential for scheme in schemes.values() if (credential := credential_of(scheme)) is not None]
    requirements = tuple(
        {
            name: tuple(str(scope) for scope in scopes) if isinstance(scopes, list) else ()
            for name, scopes in alternative.items()
        }
        for alternative in alternatives
    )
    return replace(
        read,
        auth_required=all(alternatives) or read.auth_required,
        scopes=tuple(dict.fromkeys(str(scope) for scopes in listed for scope in scopes)) if all(alternatives) else (),
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
    parameters = [components.follow(parameter) for parameter in listed] if isinstance(listed, list) else []
    in_path = {parameter.get("name") for parameter in parameters if parameter.get("in") == "path"}
    for name, convertor in convertors.items():
        if name not in in_path:
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
            narrowed = narrow_to_path(schema, convertor) if schema else path_parameter_schema(convertor)
            builder.add(name, location, narrowed, True, convertor == "path")
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
    content = table_of(body, "content")
    if not content:
        return None
    content_type = JSON if JSON in content else str(next(iter(content)))
    schema = components.root(as_object(content[content_type]).get("schema"), builder.names)
    if content_type in FORM_TYPES:
        return _read_form(builder, schema, components, content_type)
    required, members, wanted = bool(body.get("required")), table_of(schema, "properties"), list_of(schema, "required")
    # Members join the parameters if that changes the meaning of neither.
    is_plain = schema.get("type") == "object" and bool(members) and schema.keys() <= _MERGEABLE
    is_free = members.keys().isdisjoint(builder.properties) and (required or not schema.get("required"))
    if content_type != JSON and _is_bytes(schema) and not is_text(content_type):
        schema = _as_base64(schema)
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
        schema["properties"] = {**table_of(model, "properties"), **table_of(schema, "properties")}
        schema["required"] = [*list_of(model, "required"), *list_of(schema, "required")]
    wanted = list_of(schema, "required")
    locations: set[Location] = set()
    for name, member in table_of(schema, "properties").items():
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
        lengths = {key: facts[key] for key in ("minLength", "maxLength") if key in facts}
        # Of base64, four characters are three bytes.
        facts |= {key: -(-length // 3) * 4 for key, length in lengths.items() if isinstance(length, int)}
        return with_name(facts)
    if "items" in facts:
        facts["items"] = _as_base64(facts["items"])
    for key in _LISTED:
        if isinstance(facts.get(key), list):
            facts[key] = [_as_base64(part) for part in as_objects(facts[key])]
    return facts


def _is_bytes(facts: JsonObject) -> bool:
    return facts.get("format") == "binary" or facts.get("contentMediaType") == "application/octet-stream"


def _read_responses(responses: JsonObject, components: Components) -> tuple[int, dict[str, object]]:
    """Return the first success status, and a schema that covers every success."""
    successes = [
        (str(status), components.follow(response)) for status, response in responses.items() if str(status)[:1] == "2"
    ]
    if not successes:
        return 200, {}
    schemas: list[dict[str, object]] = []
    names: set[str] = set()
    for status, response in successes:
        content = table_of(response, "content")
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
    number = int(successes[0][0]) if successes[0][0].isdigit() else 200
    return number, with_definitions(outputs, components.definitions(names))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None
