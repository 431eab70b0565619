"""Django REST framework: the schemas of its serializers, as its own AutoSchema writes them, in JSON Schema 2020-12."""

import inspect
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import FieldDoesNotExist
from django.db.models import IntegerField
from django.http import HttpRequest
from django.utils.encoding import force_str
from rest_framework import exceptions, filters, serializers
from rest_framework.request import Request
from rest_framework.views import APIView

from awp_publish.declare.discover.routes import NO_BODY_METHODS, Mode, Operation
from awp_publish.model import JsonObject, Location, Parameter
from awp_publish.schema import UnusableSchema
from awp_publish.schema.handlers import docstring_of
from awp_publish.schema.parts import as_object
from awp_publish_django.callers import make_stranger
from awp_publish_django.filling import RestParameter
from awp_publish_django.form_fields import describe_field, is_file, python_pattern
from awp_publish_django.forms import MULTIPART
from awp_publish_django.rest_schemas import is_of_framework, schema_of, translate
from awp_publish_django.spectacular import UNSAID, read_annotation

if TYPE_CHECKING:
    from awp_publish_django.views import View

_LISTS: Final = "list"
"""The action of a view that answers with many."""


def read_serializer(
    declared: object, method: str, mode: Mode, context: Mapping[str, object] = MappingProxyType({})
) -> Operation | None:
    """Return what a serializer takes or gives, None for anything else. Raises UnusableSchema.

    `context` is what its view gives it.
    """
    if not isinstance(declared, type) or not issubclass(declared, serializers.BaseSerializer):
        return None
    schema = schema_of(declared, mode, context)
    return Operation({}, schema) if mode == "serialization" else _accept(schema, method)


def _accept(schema: JsonObject, method: str) -> Operation:
    """Return what a method takes of which an object has the members."""
    names = as_object(schema.get("properties"))
    if method == "PATCH":  # changes what is given, and nothing else (REST framework, partial updates)
        properties = {
            name: {key: fact for key, fact in as_object(member).items() if key != "default"}
            for name, member in names.items()
        }
        schema = {key: value for key, value in {**schema, "properties": properties}.items() if key != "required"}
    if method in NO_BODY_METHODS:
        return Operation(schema, {}, tuple(Parameter(name, "query", name) for name in names))
    files = {name for name, schema_of_member in names.items() if is_file(as_object(schema_of_member))}
    location: Location = "form" if files else "json"
    parameters = tuple(Parameter(name, "file" if name in files else location, name) for name in names)
    return Operation(schema, {}, parameters, MULTIPART if files else "application/json")


def describe_rest_view(view: "View", method: str) -> Operation | None:
    """Return what a view of REST framework takes and gives: what its serializer, its lists and its permissions say.

    What drf-spectacular is told of it (`@extend_schema`) comes first.
    """
    if view.cls is None or not issubclass(view.cls, APIView):
        return None
    instance = _make_view(view, method)
    note = read_annotation(view.handlers[0], instance, method)
    declared, is_list = _serializer_of(view, instance), _is_list(view, method)
    behind = _answering(view)
    mentioned = set(getattr(getattr(behind, "__code__", None), "co_names", ()))
    extends = is_of_framework(behind) or "super" in mentioned
    reads_it = extends or any("erializer" in name for name in mentioned) or is_of_framework(view.handlers[0])
    renderers = instance.renderer_classes
    # The first of them answers whoever asks for nothing in particular (REST framework, content negotiation).
    is_json = isinstance(renderers, (list, tuple)) and "json" in str(
        getattr(next(iter(renderers), None), "media_type", "")
    )
    is_closed = _refuses_strangers(instance)
    operation = Operation(
        {"type": "object", "properties": {}},
        {},
        answers_json=is_json,
        description=note.words or _words_of(view, instance, method),
        auth_required=is_closed,
        schemes=_schemes_of(instance) if is_closed else {},
    )
    context: dict[str, object] = {"request": instance.request, "view": instance}
    with suppress(Exception):  # of a view of REST framework's simplest class, which has none, or of somebody's own
        context = instance.get_serializer_context()
    accepted = None
    if method not in NO_BODY_METHODS and note.body is not UNSAID:
        accepted = _read_annotated(note.body, method, "validation", context)
    elif method not in NO_BODY_METHODS and reads_it:
        accepted = read_serializer(declared, method, "validation", context)
    if accepted is not None:
        operation = replace(
            operation,
            inputs=accepted.inputs,
            parameters=_of_form(accepted, declared if note.body is UNSAID else note.body, instance, method, context),
            content_type=accepted.content_type,
        )
    members = _queries(instance) if is_list and extends else {}
    operation = _with_queries(operation, {**members, **note.queries}, note.required)
    if method == "DELETE":
        return operation
    if note.answer not in (UNSAID, declared):  # of many, how they are given depends on pages, which it does not say
        returned = None if is_list else _read_annotated(note.answer, method, "serialization", context)
        return operation if returned is None else replace(operation, outputs=returned.outputs, outputs_vary=True)
    if declared is None or not extends or not is_of_framework(declared.to_representation):
        return operation
    returned = read_serializer(declared, method, "serialization", context)
    outputs = returned.outputs if returned is not None else {}
    return replace(operation, outputs=_many(instance, outputs) if is_list else outputs)


def _read_annotated(said: object, method: str, mode: Mode, context: Mapping[str, object]) -> Operation | None:
    """Return what was said of a body or an answer. The serializer may be another than that of the view."""
    if isinstance(said, Mapping):
        return _accept(said, method)
    for known in (context, {}):
        with suppress(UnusableSchema):  # it asks the view for something that only others have
            return read_serializer(said, method, mode, known)
    return None


def _of_form(
    accepted: Operation, declared: Any, instance: Any, method: str, context: Mapping[str, object]
) -> tuple[Parameter, ...]:
    """Return the parameters of a body with, for a form, what becomes of those that are left out."""
    parsers = {getattr(parser, "media_type", "") for parser in instance.parser_classes}
    if accepted.content_type != MULTIPART or "application/json" not in parsers or isinstance(declared, Mapping):
        return accepted.parameters
    true, unchanged = set[str](), set[str]()
    with suppress(Exception):  # a serializer that is not the view's own asks it for something that it has not
        true, unchanged = _left_out_of_forms(declared(context=context), method)
    return tuple(
        RestParameter(
            parameter.name,
            parameter.location,
            parameter.wire_name,
            is_true=parameter.name in true,
            is_kept=parameter.name in unchanged,
        )
        for parameter in accepted.parameters
    )


def _with_queries(
    operation: Operation, members: Mapping[str, dict[str, object] | None], required: tuple[str, ...]
) -> Operation:
    """Return an operation with parameters of its query too; those are left out that are None, or have a name of it."""
    inputs = operation.inputs
    named = as_object(inputs.get("properties"))
    added = {name: schema for name, schema in members.items() if schema is not None and name not in named}
    if not added:
        return operation
    needed = inputs.get("required")
    needed = [*(needed if isinstance(needed, list) else ()), *(name for name in required if name in added)]
    return replace(
        operation,
        inputs={**inputs, "properties": {**named, **added}, **({"required": needed} if needed else {})},
        parameters=(*operation.parameters, *(Parameter(name, "query", name) for name in added)),
    )


def _schemes_of(instance: Any) -> dict[str, JsonObject]:
    """Return how a view's callers sign in, by the challenges of its authentication classes, as in OpenAPI."""
    schemes: dict[str, JsonObject] = {}
    for authenticator in instance.get_authenticators():
        challenge = ""
        with suppress(Exception):  # it needs something of a real request
            challenge = str(authenticator.authenticate_header(instance.request) or "")
        scheme = {"type": "http", "scheme": challenge.partition(" ")[0].lower()}
        if scheme["scheme"] and scheme not in schemes.values():
            schemes[type(authenticator).__name__] = scheme
    return schemes


def is_hidden(view: "View") -> bool:
    """Return True if a project leaves a view out of the description of its API."""
    if inspect.getattr_static(view.cls, "schema", "") is None:
        return True
    with suppress(Exception):  # its class cannot be made without a request
        instance = _make_view(view, view.methods[0])
        return read_annotation(view.handlers[0], instance, view.methods[0]).is_hidden
    return False


def describe_key(cls: Any, inputs: JsonObject) -> JsonObject:
    """Return the inputs of a view whose key is a number, where a router says only that it is no slash and no dot."""
    sources = (getattr(cls, "queryset", None), getattr(getattr(cls, "serializer_class", None), "Meta", None))
    model = next((source.model for source in sources if source is not None and hasattr(source, "model")), None)
    lookup: str = getattr(cls, "lookup_field", "")
    name: str = getattr(cls, "lookup_url_kwarg", None) or lookup
    properties = as_object(inputs.get("properties"))
    if model is None or properties.get(name) != _ROUTED:
        return inputs
    with suppress(FieldDoesNotExist):
        column = model._meta.pk if lookup == "pk" else model._meta.get_field(lookup)
        if isinstance(column, IntegerField):
            return {**inputs, "properties": {**properties, name: {"type": "integer"}}}
    return inputs


_ROUTED: Final[JsonObject] = {"type": "string", **python_pattern("^(?:[^/.]+)$")}
"""What a router's own expression takes for a key (REST framework, `lookup_value_regex`)."""

_EMPTIED: Final = (serializers.BooleanField, serializers.MultipleChoiceField, serializers.ManyRelatedField)
"""Fields that REST framework takes for false or empty where a form does not have them."""


def _left_out_of_forms(serializer: Any, method: str) -> tuple[set[str], set[str]]:
    """Return the fields of a serializer that are true if a caller leaves them out, and those that stay as they are."""
    if method not in ("POST", "PUT"):  # PATCH changes what is sent, in forms too
        return set(), set()
    model = getattr(getattr(serializer, "Meta", None), "model", None)
    stored = {field.name: field.get_default() for field in model._meta.fields} if model is not None else {}
    true, unchanged = set(), set()
    for name, field in serializer.fields.items():
        if not isinstance(field, _EMPTIED):
            continue
        has_default = field.default is not serializers.empty
        if method == "PUT" and not has_default:
            unchanged.add(name)
        elif (field.default if has_default else stored.get(field.source)) is True:
            true.add(name)
    return true, unchanged


def _make_view(view: "View", method: str) -> Any:
    """An instance as REST framework would make it for a request of a stranger. Raises what its class raises."""
    assert view.cls is not None
    instance: Any = view.cls(**view.options)
    request = HttpRequest()
    request.method = method
    instance.action_map, instance.args, instance.kwargs, instance.format_kwarg = {}, (), {}, None
    instance.request = Request(request)
    instance.request.user, instance.request.auth = make_stranger(), None
    instance.swagger_fake_view = (
        True  # the usual sign for a project's code that nobody calls (drf-yasg, drf-spectacular)
    )
    if view.action:
        instance.action = view.action
    instance.request.accepted_media_type = "application/json"
    try:
        version, scheme = instance.determine_version(instance.request)
    except Exception:  # only a real request says which version of the API it wants
        version = scheme = instance.versioning_class = None
    instance.request.version, instance.request.versioning_scheme = version, scheme
    return instance


def _serializer_of(view: "View", instance: Any) -> type[Any] | None:
    """The serializer class that a view chooses for this method; what it declares where it cannot choose yet."""
    try:
        serializer = instance.get_serializer_class()
    except Exception:  # somebody's own choice, by a user or a path that is not there yet
        serializer = view.options.get("serializer_class") or getattr(view.cls, "serializer_class", None)
    return serializer if isinstance(serializer, type) and issubclass(serializer, serializers.BaseSerializer) else None


def _refuses_strangers(instance: Any) -> bool:
    """Return True if the permissions of a view refuse a caller whom nobody knows."""
    for permission in instance.get_permissions():
        try:
            if not permission.has_permission(instance.request, instance):
                return True
        except (exceptions.NotAuthenticated, exceptions.PermissionDenied, exceptions.AuthenticationFailed):
            return True
        except Exception:  # it looks at something that only a real request has
            continue
    return False


WORDS: Final[Mapping[str, str]] = {
    "list": "List {many}.",
    "retrieve": "Show one {one}.",
    "create": "Add a {one}.",
    "update": "Replace a {one}.",
    "partial_update": "Change a {one}.",
    "destroy": "Delete a {one}.",
}


def _words_of(view: "View", instance: Any, method: str) -> str | None:
    """Return an action's description: the function's own words, else the class's for this action, else what it does."""
    written = view.cls.__doc__ if view.cls is not None else None
    answering = _answering(view)
    own = docstring_of(answering) if not is_of_framework(answering) else None
    inner = wrapped_function(view.handlers[0])
    if own is None and inner is not None:
        own = docstring_of(inner)
    if own is not None:
        return own
    about = inspect.cleandoc(written) if written and not is_of_framework(view.cls) else ""
    sections: dict[str, str] = {"": ""}
    current = ""
    for line in about.splitlines():
        if match := _SECTION.match(line):
            current, line = match[1], line[match.end() :]
        sections[current] = f"{sections.get(current, '')}\n{line}".strip()
    action = view.action or method.lower()
    if action in sections:
        return sections[action]
    model = getattr(getattr(instance, "queryset", None), "model", None)
    if action not in WORDS or model is None:
        return sections[""] or None
    names = {"one": force_str(model._meta.verbose_name), "many": force_str(model._meta.verbose_name_plural)}
    return f"{WORDS[action].format(**names)} {sections['']}".strip()


def _answering(view: "View") -> object:
    """Return the function that answers: the project's own `create`, where `post` is REST framework's."""
    function = view.handlers[0]
    for _ in WORDS:
        names = getattr(getattr(function, "__code__", None), "co_names", ()) if is_of_framework(function) else ()
        function = next(
            (getattr(view.cls, name) for name in names if name in WORDS and hasattr(view.cls, name)), function
        )
    return function


_SECTION: Final = re.compile(r"^([a-z][a-z0-9_]*):(?:\s|$)")
"""`list:` in the docstring of a viewset begins what is said of that action (REST framework, schemas)."""


def _is_list(view: "View", method: str) -> bool:
    """Return True if a view answers with many."""
    if method != "GET":
        return False
    return view.action == _LISTS if view.action else hasattr(view.cls, _LISTS)


def _many(instance: Any, item: JsonObject) -> JsonObject:
    """The schema of a list, or of a page of it where pages are sure and look as REST framework's own."""
    several: JsonObject = {"type": "array", "items": item}
    paginator = instance.paginator
    if paginator is None:
        return several
    makers = [
        next(kind for kind in type(paginator).__mro__ if name in vars(kind))
        for name in ("get_paginated_response", "get_paginated_response_schema")
    ]
    own_list = next((kind for kind in type(instance).__mro__ if _LISTS in vars(kind)), None)
    sizes = [getattr(paginator, name, None) for name in ("page_size", "default_limit")]
    size_parameters = [getattr(paginator, name, None) for name in ("page_size_query_param", "limit_query_param")]
    if not any(sizes):
        return several if not any(size_parameters) else {}
    if makers[0] is not makers[1] or not is_of_framework(own_list):
        return {}
    return translate(paginator.get_paginated_response_schema(several), "serialization")


def _queries(instance: Any) -> dict[str, dict[str, object] | None]:
    """Parameters of a list: its pages, search, order and filters."""
    members: dict[str, dict[str, object] | None] = {}
    for source in (instance.paginator, *(backend() for backend in instance.filter_backends)):
        tell = getattr(source, "get_schema_operation_parameters", None)
        if isinstance(source, filters.SearchFilter) and not getattr(instance, "search_fields", None):
            continue
        for parameter in tell(instance) if tell is not None else ():
            if parameter["name"] is None:  # a paginator that takes no limit says so
                continue
            schema = translate(as_object(parameter.get("schema")), "validation")
            words = {"description": force_str(parameter["description"])} if parameter.get("description") else {}
            members[str(parameter["name"])] = {**schema, **words}
        ordering = getattr(instance, "ordering_fields", None)
        if isinstance(source, filters.OrderingFilter) and isinstance(ordering, (list, tuple)):
            fields = [str(name) for name in ordering]
            any_of = "|".join(re.escape(name) for name in fields)
            ways = (source.filter_queryset, source.get_ordering, source.get_valid_fields, source.remove_invalid_fields)
            closed = {"pattern": f"^-?(?:{any_of})(?:,-?(?:{any_of}))*$"} if all(map(is_of_framework, ways)) else {}
            members[source.ordering_param] = {
                "type": "string",
                "description": f"What to order by: {', '.join(fields)}; a minus in front reverses the order.",
                **closed,
            }
        if hasattr(source, "get_filterset_class"):
            members |= _filters(source, instance)
    return members


def _filters(source: Any, instance: Any) -> dict[str, dict[str, object]]:
    """Return what django-filter takes, by the fields of its filters; one of several parts has a name for each."""
    from django_filters.fields import BaseCSVField

    filterset = source.get_filterset_class(instance, getattr(instance, "queryset", None))
    members: dict[str, dict[str, object]] = {}
    for name, field_filter in (filterset.get_filters() if filterset is not None else {}).items():
        with suppress(UnusableSchema):
            described = describe_field(name, field_filter.field)
            if isinstance(field_filter.field, BaseCSVField):  # several in one text, with commas
                kind = "string" if described.get("type") == "string" else ["string", "integer"]
                described = {"type": kind, **{word: described[word] for word in ("description",) if word in described}}
            members[name] = {**described}
            continue
        suffixes = getattr(field_filter.field.widget, "suffixes", ())
        for suffix, part in zip(suffixes, getattr(field_filter.field, "fields", ()), strict=False):
            with suppress(UnusableSchema):
                members[f"{name}_{suffix}" if suffix else name] = describe_field(name, part)
    for schema in members.values():
        schema.pop("default", None)
    return members


def wrapped_function(handler: object) -> object:
    """The function below `@api_view`, which DRF calls from a method that shows it nowhere else."""
    if not inspect.isfunction(handler) or not handler.__module__.startswith("rest_framework."):
        return None
    return inspect.getclosurevars(handler).nonlocals.get("func")
