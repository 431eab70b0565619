"""What functions of the Django app make of what they are given, whole: `transcripts/functions.txt`.

Fields of forms and serializers, expressions and views are given in Python. --golden writes the answers anew; read the
change.
"""

import linecache
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import django
import pytest
from awp_publish_django.asking import read_words
from awp_publish_django.filling import FormParameter, find_form
from awp_publish_django.form_fields import describe_field, is_file, when_left_out
from awp_publish_django.patterns import read_pattern
from awp_publish_django.reading import find_dead, reads_of
from awp_publish_django.rest_framework import read_serializer
from awp_publish_django.rest_schemas import translate
from awp_publish_django.views import read_views
from django import forms
from django.contrib.auth import decorators, mixins
from django.contrib.auth.models import User
from django.core import validators
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls.resolvers import RegexPattern, RoutePattern
from django.views import generic
from django.views.decorators import http
from rest_framework import serializers
from rest_framework.decorators import api_view

from awp_publish.declare.discover.routes import Mode, Route
from awp_publish.model import Parameter, Target
from tests.documents.catalogs import make_action
from tests.function_transcripts import compare

NAMES: dict[str, Any] = {
    each.__name__.rpartition(".")[2]: each
    for each in (forms, decorators, mixins, User, validators, HttpResponse, JsonResponse, redirect, render, generic)
} | {"http": http, "serializers": serializers, "api_view": api_view}
NUMBERS: Iterator[int] = count()


def in_python(expression: str) -> Any:
    return eval(expression, NAMES)


def made(code: str) -> Any:
    """Return the `view` that some lines of a project's module define, whose source is there."""
    name = f"shop/views_{next(NUMBERS)}.py"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    module = {**NAMES, "__name__": "shop.views"}
    exec(compile(code, name, "exec"), module)
    return module["view"]


def of_field(expression: str) -> list[object]:
    """Return a field's schema, what its form sends as it is and emptied, and its schemas for a thing that is there."""
    field = in_python(expression)
    schema, parameter = describe_field("field", field), FormParameter("field", "form", "field", declared=field)
    left_out = [when_left_out(field, schema, on_page) for on_page in (False, True)]
    return [schema, parameter.initial_texts(), parameter.empty(), *left_out, is_file(schema)]


def of_serializer(*expressions: str, method: str = "POST") -> list[object]:
    """Return the schemas of a serializer with these fields, as it takes and gives them, and where its inputs are."""
    fields = {f"field{number or ''}": in_python(expression) for number, expression in enumerate(expressions)}
    kind = type("Made", (serializers.Serializer,), fields)
    taken, given = read_serializer(kind, method, "validation"), read_serializer(kind, method, "serialization")
    assert taken is not None
    assert given is not None
    places = [f"{each.name} in {each.location}" for each in taken.parameters]
    return [taken.inputs, given.outputs, places, taken.content_type]


def of_view(code: str) -> list[object]:
    """Return what is known of each method of a view."""
    facts = ("reads", "usual_method", "shows_form", "is_page", "auth_required", "kept_out", "description", "action")
    return [
        [" ".join(view.methods), {fact: value for fact in facts if (value := getattr(view, fact))}]
        for view in read_views(made(code))
    ]


def of_code(code: str) -> Any:
    reads = reads_of(made(code))
    return reads and [sorted(reads.query), sorted(reads.body), reads.more_of_query, reads.more_of_body]


def dead(code: str, method: str, inputs: dict[str, Any], places: dict[str, Any]) -> list[str]:
    """Return the findings about an action with these inputs, of which some are in other places than the query."""
    parameters = tuple(Parameter(name, places.get(name, "query"), name) for name in inputs["properties"])
    action = make_action("act", inputs=inputs, target=Target(method, "/act", parameters))
    return list(map(str, find_dead(action, Route("/act", (method,), (made(code),), "act"))))


def form_in(page: str, path: str, *names: str) -> list[object] | None:
    """Return the fields of the form in a page that has names, and what a browser sends for it as it is."""
    form = find_form(page, path, set(names))
    return None if form is None else [form.action, sorted(form.names), form.entries]


def words_in(page: str, path: str, *sent: str) -> list[object]:
    read = read_words(page, path)
    return [read.title, read.fields, read.errors, *read.refusal(set(sent))]


def of_pattern(kind: Callable[[str], object]) -> Callable[..., list[object]]:
    def read(text: str, unnamed: int = 0) -> list[object]:
        piece = read_pattern(kind(text), unnamed)
        return [piece.template, piece.schemas]

    return read


def translated(schema: dict[str, Any]) -> list[object]:
    modes: tuple[Mode, ...] = ("validation", "serialization")
    return [translate(schema, mode) for mode in modes]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "field": of_field,
    "serializer": of_serializer,
    "patched": lambda *expressions: of_serializer(*expressions, method="PATCH"),
    "queried": lambda *expressions: of_serializer(*expressions, method="GET"),
    "translate": translated,
    "view": of_view,
    "reads": of_code,
    "dead": dead,
    "form": form_in,
    "words": words_in,
    "route": of_pattern(RoutePattern),
    "regex": of_pattern(RegexPattern),
}


@pytest.mark.skipif(django.VERSION < (5, 2), reason="older fields have other words")
def test_functions_of_django_answer_as_in_the_transcript(request):
    compare(Path(__file__).parent / "transcripts" / "functions.txt", FUNCTIONS, request)
