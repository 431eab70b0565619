"""Django REST framework: the schemas of its serializers, as its own AutoSchema writes them, in JSON Schema 2020-12."""

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rest_framework import serializers
from rest_framework.schemas.openapi import AutoSchema

from awp_publish.discover.openapi import as_object, as_objects
from awp_publish.discover.routes import NO_BODY_METHODS, Mode, Operation
from awp_publish.model import Location, Parameter
from awp_publish.schema import UnusableSchema, reason_of

if TYPE_CHECKING:
    from awp_publish_django.views import View

_HIDDEN: Final[Mapping[Mode, str]] = {"validation": "readOnly", "serialization": "writeOnly"}
_OWN: Final = frozenset({"nullable", "readOnly", "writeOnly"})
_LISTS: Final = "list"
"""The action of a view that answers with many."""


def read_serializer(declared: object, method: str, mode: Mode) -> Operation | None:
    """What a serializer takes or gives, None for anything else. Raises UnusableSchema."""
    if not isinstance(declared, type) or not issubclass(declared, serializers.BaseSerializer):
        return None
    schema = _schema_of(declared, mode)
    if mode == "serialization":
        return Operation({}, schema)
    location: Location = "query" if method in NO_BODY_METHODS else "json"
    names = as_object(schema.get("properties"))
    parameters = tuple(Parameter(name, location, name) for name in names)
    return Operation(schema, {}, parameters, None if location == "query" else "application/json")


def describe_rest_view(view: "View", method: str) -> Operation | None:
    """What a generic view's own serializer says."""
    declared = view.options.get("serializer_class") or getattr(view.cls, "serializer_class", None)
    if declared is None:
        return None
    taken = None if method in NO_BODY_METHODS else read_serializer(declared, method, "validation")
    gives_one = method not in ("DELETE",) and not _is_list(view, method)
    given = read_serializer(declared, method, "serialization") if gives_one else None
    outputs = given.outputs if given is not None else {}
    renderers = view.options.get("renderer_classes") or getattr(view.cls, "renderer_classes", ())
    # The first of them answers whoever asks for nothing in particular (REST framework, content negotiation).
    is_json = isinstance(renderers, (list, tuple)) and "json" in str(
        getattr(next(iter(renderers), None), "media_type", "")
    )
    if taken is None:
        return Operation({"type": "object", "properties": {}}, outputs, answers_json=is_json)
    return Operation(taken.inputs, outputs, taken.parameters, taken.content_type, answers_json=is_json)


def _is_list(view: "View", method: str) -> bool:
    """Whether a view may answer with a page of many; how pages look is the project's affair."""
    if method != "GET":
        return False
    behind = view.handlers[0]
    return getattr(behind, "__name__", "") == _LISTS or hasattr(view.cls, _LISTS)


def wrapped_function(handler: object) -> object:
    """The function below `@api_view`, which DRF calls from a method that shows it nowhere else."""
    if not inspect.isfunction(handler) or not handler.__module__.startswith("rest_framework."):
        return None
    return inspect.getclosurevars(handler).nonlocals.get("func")


# --- Schemas ---


def _schema_of(declared: type[Any], mode: Mode) -> dict[str, object]:
    try:
        serializer = declared(many=False)
        schema = AutoSchema().map_serializer(serializer)
        computed = {name for name, one in serializer.fields.items() if _is_computed(one)}
    except Exception as error:  # whatever somebody's serializer raises, it is about this schema
        raise UnusableSchema(f"{declared.__name__}: {reason_of(error)}") from error
    translated = _translate(schema, mode)
    properties = dict(as_object(translated.get("properties")))
    return {**translated, "properties": {name: {} if name in computed else one for name, one in properties.items()}}


def _is_computed(field: object) -> bool:
    """Of a method's answer AutoSchema says that it is text, which it need not be."""
    return isinstance(field, (serializers.SerializerMethodField, serializers.ReadOnlyField))


def _translate(schema: Mapping[str, object], mode: Mode) -> dict[str, object]:
    """OpenAPI 3.0 in words of JSON Schema 2020-12, without what is not for this direction."""
    found = {key: value for key, value in schema.items() if key not in _OWN}
    if "properties" in found:
        found |= _members(as_object(found["properties"]), found.get("required"), mode)
    if isinstance(found.get("items"), Mapping):
        found["items"] = _translate(as_object(found["items"]), mode)
    for word in ("anyOf", "oneOf", "allOf"):
        if word in found:
            found[word] = [_translate(one, mode) for one in as_objects(found[word])]
    if found.get("format") == "decimal":
        found = {"type": ["string", "number"]}
    return _with_null(found) if schema.get("nullable") else found


def _members(properties: Mapping[str, object], required: object, mode: Mode) -> dict[str, object]:
    hidden = _HIDDEN[mode]
    shown = {name: _translate(as_object(one), mode) for name, one in properties.items() if not _has(one, hidden)}
    wanted = [name for name in required if name in shown] if isinstance(required, list) else []
    return {"properties": shown, "required": wanted}


def _has(schema: object, word: str) -> bool:
    return bool(as_object(schema).get(word))


def _with_null(schema: dict[str, object]) -> dict[str, object]:
    kind = schema.get("type")
    if kind is not None:
        schema["type"] = [*(kind if isinstance(kind, list) else [kind]), "null"]
    listed = schema.get("enum")
    if isinstance(listed, list):
        schema["enum"] = [*listed, None]
    return schema
