"""drf-spectacular: what `@extend_schema` says of a view, which REST framework itself does not know.

Its whole document is not made: of a large API that takes minutes, and serializers are read better here.
"""

import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from django.utils.encoding import force_str

from awp_publish.schema.parts import as_object
from awp_publish_django.form_fields import file_schema
from awp_publish_django.rest_schemas import schema_of, translate

LOADED: Final = "drf_spectacular.openapi"
UNSAID: Final = object()
_FORMS: Final = ("application/json", "multipart/form-data", "application/x-www-form-urlencoded")
"""Kinds of bodies, the best first."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """What was said of one method. `queries` has None for a parameter that the document hides.

    `body` is a serializer class or an object's schema, None for no body, UNSAID if nothing was said; `answer` likewise.
    """

    words: str = ""
    queries: Mapping[str, dict[str, object] | None] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    body: Any = UNSAID
    answer: Any = UNSAID
    is_hidden: bool = False


def read_annotation(handler: object, instance: Any, method: str) -> Annotation:
    """Return what `@extend_schema` says of the function that answers, of its class, or of both."""
    if LOADED not in sys.modules:
        return Annotation()
    from drf_spectacular.openapi import AutoSchema

    said = getattr(handler, "kwargs", {}).get("schema") or getattr(type(instance), "schema", None)
    kind: Any = said if isinstance(said, type) else type(said)
    if not issubclass(kind, AutoSchema) or kind is AutoSchema:
        return Annotation()

    class Silent(AutoSchema):
        """Says nothing where AutoSchema guesses."""

        def get_request_serializer(self) -> object:
            return UNSAID

        def get_response_serializers(self) -> object:
            return UNSAID

        def get_description(self) -> str:
            return ""

        def get_summary(self) -> str:
            return ""

    schema = type(kind.__name__, (kind, Silent), {})()
    schema.view, schema.method = instance, method
    queries: dict[str, dict[str, object] | None] = {}
    required: list[str] = []
    for name, described, is_required in _queries(_said(schema.get_override_parameters, [])):
        queries[name] = described
        required += [name] if is_required and described is not None else []
    words = _said(schema.get_description, "") or _said(schema.get_summary, "")
    return Annotation(
        words=force_str(words or ""),
        queries=queries,
        required=tuple(required),
        body=_body_of(_said(schema.get_request_serializer, UNSAID)),
        answer=_answer_of(_said(schema.get_response_serializers, UNSAID)),
        is_hidden=bool(_said(schema.is_excluded, False)),
    )


def _said(tell: Any, otherwise: Any) -> Any:
    with suppress(Exception):  # it asks a request which version of the API it wants, or a user
        return tell()
    return otherwise


def _queries(parameters: list[Any]) -> Iterator[tuple[str, dict[str, object] | None, bool]]:
    from drf_spectacular.utils import OpenApiParameter
    from rest_framework import serializers

    for parameter in parameters:
        kind = parameter if isinstance(parameter, type) else type(parameter)
        if issubclass(kind, serializers.Serializer):  # each of its fields
            with suppress(Exception):
                schema = schema_of(kind, "validation", {})
                needed = schema.get("required")
                for name, described in as_object(schema.get("properties")).items():
                    yield name, dict(as_object(described)), isinstance(needed, list) and name in needed
        elif isinstance(parameter, OpenApiParameter) and parameter.location == OpenApiParameter.QUERY:
            described = None if parameter.exclude else _parameter(parameter)
            yield parameter.name, described, parameter.required


def _parameter(parameter: Any) -> dict[str, object]:
    from drf_spectacular.plumbing import build_basic_type

    said = {"enum": list(parameter.enum or ()), "pattern": parameter.pattern}
    schema: dict[str, object] = {}
    with suppress(Exception):  # a serializer, or a field
        made = parameter.type if isinstance(parameter.type, dict) else build_basic_type(parameter.type)
        schema = translate({**as_object(made), **{word: fact for word, fact in said.items() if fact}}, "validation")
    if parameter.many:  # a list in one text, unless each has the name in front
        schema = {"type": "string"} if parameter.explode is False else {"type": "array", "items": schema}
    if parameter.description:
        schema["description"] = force_str(parameter.description)
    return schema


def _body_of(said: Any) -> Any:
    if isinstance(said, Mapping) and not {"type", "properties"} & said.keys():
        kinds = [kind for kind in _FORMS if kind in said]
        said = said[kinds[0]] if kinds else UNSAID
    said = getattr(said, "request", said) if type(said).__name__ == "OpenApiRequest" else said
    if isinstance(said, Mapping):
        return _object(said)
    return said if said in (None, UNSAID) else _serializer(said)


def _object(said: Mapping[str, object]) -> Any:
    """Return the schema of an object of which the members are said, UNSAID for another."""
    properties = as_object(said.get("properties"))
    if not properties:
        return UNSAID
    members = {name: translate(as_object(member), "validation") for name, member in properties.items()}
    files = {name: file_schema() for name, member in members.items() if member.get("format") == "binary"}
    return {**translate(said, "validation"), "properties": {**members, **files}}


def _answer_of(said: Any) -> Any:
    if isinstance(said, Mapping):
        statuses = {str(key[0] if isinstance(key, tuple) else key): answer for key, answer in said.items()}
        said = next((answer for status, answer in statuses.items() if status.startswith("2")), UNSAID)
    said = getattr(said, "response", said) if type(said).__name__ == "OpenApiResponse" else said
    return said if said in (None, UNSAID) else _serializer(said)


def _serializer(said: Any) -> Any:
    """Return the class of a serializer, UNSAID for anything else, and for one of many."""
    from rest_framework import serializers

    kind = said if inspect.isclass(said) else type(said)
    return kind if issubclass(kind, serializers.Serializer) else UNSAID
