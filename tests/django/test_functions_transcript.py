"""What functions of the Django app make of what they are given, whole: `transcripts/functions.txt`.

Fields of forms and serializers, expressions and views are given in Python. --golden writes the answers anew; read the
change.
"""

import asyncio
import linecache
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import FunctionType
from typing import Any

import django
import pytest
from awp_publish_django.asking import read_words
from awp_publish_django.filling import FormParameter, find_form
from awp_publish_django.form_fields import describe_field, is_file, when_left_out
from awp_publish_django.forms import UNREAD, form_of_view, read_form
from awp_publish_django.gateway import scope_of
from awp_publish_django.patterns import read_pattern
from awp_publish_django.reading import find_dead, reads_of
from awp_publish_django.rest_authentication import adapt_rest_authentication
from awp_publish_django.rest_framework import describe_rest_view, read_serializer
from awp_publish_django.rest_schemas import translate
from awp_publish_django.routes import find_django_routes
from awp_publish_django.views import read_views
from django import forms
from django.contrib.auth import decorators, mixins
from django.contrib.auth.models import User
from django.core import validators
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.test import RequestFactory
from django.urls.resolvers import RegexPattern, RoutePattern
from django.views import generic
from django.views.decorators import http
from rest_framework import filters, generics, pagination, permissions, renderers, serializers, viewsets
from rest_framework.decorators import api_view
from rest_framework.views import APIView

from awp_publish.calls.call import Credentials
from awp_publish.declare.discover.routes import Mode, Operation, Route
from awp_publish.model import Parameter, Target
from awp_publish.problems import InvalidCredentials
from awp_publish.schema import UnusableSchema
from tests.documents.catalogs import make_action
from tests.function_transcripts import compare

NAMES: dict[str, Any] = {
    each.__name__.rpartition(".")[2]: each
    for each in (
        *(forms, decorators, mixins, User, validators, HttpResponse, JsonResponse, redirect, render, generic),
        *(filters, generics, pagination, permissions, renderers, viewsets),
    )
} | {"http": http, "serializers": serializers, "api_view": api_view, "APIView": APIView}
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
    """Return what is known of each method of a view, without what is false or empty."""
    facts = ("reads", "usual_method", "shows_form", "is_page", "auth_required", "kept_out", "action")
    described: list[object] = []
    for view in read_views(made(code)):
        known = {fact: value for fact in facts if (value := getattr(view, fact)) not in (False, "")}
        words = {"description": view.description} if view.description else {}
        described.append([view.name, " ".join(view.methods), known | words])
    return described


def kept_out(*modules: str) -> dict[str, str]:
    """Return why views of modules are not published unless they are named, without those that are published."""
    views = {module: FunctionType((lambda request: None).__code__, {"__name__": module}) for module in modules}
    return {module: why for module, view in views.items() if (why := next(read_views(view)).kept_out)}


def of_code(code: str) -> Any:
    reads = reads_of(next(read_views(made(code))).handlers)
    flags = ("more_of_query", "more_of_body", "calls_itself")
    return reads and [sorted(reads.query), sorted(reads.body), *(flag for flag in flags if getattr(reads, flag))]


def dead(code: str, method: str, inputs: dict[str, Any], places: dict[str, Any]) -> list[str]:
    """Return the findings about an action with these inputs, of which some are in other places than the query."""
    parameters = tuple(Parameter(name, places.get(name, "query"), name) for name in inputs["properties"])
    action, target = make_action("act", inputs=inputs), Target(method, "/act", parameters)
    return list(map(str, find_dead(action, target, [made(code)])))


def form_in(page: str, path: str, *names: str) -> list[object] | None:
    """Return the fields of the form in a page that has names, and what a browser sends for it as it is."""
    form = find_form(page, path, set(names))
    return None if form is None else [form.action, sorted(form.names), form.entries]


def words_in(page: str | list[str], path: str, *sent: str) -> list[object]:
    read = read_words("".join(page), path)
    return [read.title, read.fields, read.errors, *read.refusal(set(sent))]


def of_pattern(kind: Callable[[str], object]) -> Callable[..., list[object]]:
    def read(text: str, unnamed: int = 0) -> list[object]:
        piece = read_pattern(kind(text), unnamed)
        return [piece.template, piece.schemas]

    return read


def translated(schema: dict[str, Any]) -> list[object]:
    modes: tuple[Mode, ...] = ("validation", "serialization")
    return [translate(schema, mode) for mode in modes]


def facts_of(operation: Operation | None) -> object:
    """Return what is known of an operation, with each input's place and what a page or a form does with it.

    A field of a form has what is sent for it where nobody fills it in.
    """
    if operation is None:
        return None
    flags = ("is_box", "on_page", "is_true", "is_kept")
    places = [
        " ".join([each.name, each.location, each.wire_name, *(flag for flag in flags if getattr(each, flag, False))])
        + (f" = {each.initial_texts()}" if isinstance(each, FormParameter) else "")
        for each in operation.parameters
    ]
    facts = {
        "inputs": operation.inputs,
        "outputs": operation.outputs,
        "places": places,
        "takes": operation.content_type,
        "says": operation.description,
        "needs somebody": operation.auth_required,
        "is JSON": operation.answers_json,
    }
    return {name: fact for name, fact in facts.items() if fact}


def of_forms(code: str, method: str = "POST", on_page: bool = False, changes: bool = False) -> object:
    """Return what a form, a formset or several take, which some lines of Python call `view`, if its class tells it."""
    form = made(code)
    facts = facts_of(read_form(form, method, on_page=on_page, changes=changes))
    return ["perhaps more", facts] if form in UNREAD else facts


def of_editing(code: str) -> object:
    """Return what a generic editing view takes, whose class and options some lines of Python call `view`."""
    cls, options = made(code)
    form = form_of_view(cls, options)
    return None if form is None else facts_of(read_form(form, "POST"))


def of_rest(code: str, *methods: str) -> object:
    """Return what is known of the methods of a view of REST framework, which some lines of Python call `View`."""
    views = read_views(made(f"{code}\nview = View.as_view(**globals().get('given', {{}}))"))
    described = {view.methods[0]: facts_of(describe_rest_view(view, view.methods[0])) for view in views}
    return {method: facts for method, facts in described.items() if method in (methods or described)}


def of_routes(code: str) -> list[object]:
    """Return the routes of addresses that some lines of Python call `view`, with what is described of each method."""
    facts = ("name", "aliases", "listed", "reads", "is_page", "usual_method", "kept_out")
    described: list[object] = []
    for route in find_django_routes(tuple(made(code))):
        known = {fact: value for fact in facts if (value := getattr(route, fact)) not in (False, "")}
        arrival = route.arrival and [route.arrival.path, route.arrival.endpoint is not None]
        methods = {method: described_by(route, method) for method in route.methods}
        same = {"every": methods["GET"]} if len(methods) > 1 and len(set(map(repr, methods.values()))) == 1 else methods
        stands_for = [getattr(handler, "__qualname__", type(handler).__name__) for handler in route.handlers]
        described.append([route.template, known, arrival, stands_for, same, *understood_by(route)])
    return described


def understood_by(route: Route) -> Iterator[object]:
    """Yield what a form is taken to mean that is declared for a route."""
    assert route.understand is not None
    form = type("Plain", (forms.Form,), {"word": forms.CharField(required=False)})
    if "POST" in route.methods:
        yield facts_of(route.understand(form, "POST", "validation"))


def described_by(route: Route, method: str) -> object:
    assert route.describe is not None
    try:
        return facts_of(route.describe(method))
    except UnusableSchema as error:
        return f"! {error}"


def scope_in(method: str, path: str, meta: Any = None) -> object:
    """Return the scope of a request under WSGI."""
    scope = scope_of(RequestFactory().generic(method, path, **(meta or {})))
    headers = [[each.decode("latin-1") for each in pair] for pair in scope["headers"]]
    texts = {name: value.decode("latin-1") for name, value in scope.items() if isinstance(value, bytes)}
    return {**scope, **texts, "headers": headers}


def known_by(code: str, headers: dict[str, str]) -> object:
    """Return how REST framework's authentication knows callers, and whom.

    Some lines of Python call `view` its class, and the session and the user of Django's own middleware.
    """
    declared, session, user = made(code)
    adapted = adapt_rest_authentication(declared)
    if adapted is None:
        return None
    try:
        caller = asyncio.run(adapted(Credentials(headers, "203.0.113.1", session, user)))
    except InvalidCredentials as problem:
        return [adapted.method, adapted.scheme, adapted.challenge, f"! {problem}"]
    known = [caller.id, sorted(caller.scopes), caller.issuer] if caller is not None else None
    return [adapted.method, adapted.scheme, adapted.challenge, known]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "field": of_field,
    "serializer": of_serializer,
    "patched": lambda *expressions: of_serializer(*expressions, method="PATCH"),
    "queried": lambda *expressions: of_serializer(*expressions, method="GET"),
    "translate": translated,
    "view": of_view,
    "kept": kept_out,
    "reads": of_code,
    "dead": dead,
    "forms": of_forms,
    "editing": of_editing,
    "rest": of_rest,
    "scope": scope_in,
    "routes": of_routes,
    "knows": known_by,
    "form": form_in,
    "words": words_in,
    "route": of_pattern(RoutePattern),
    "regex": of_pattern(RegexPattern),
}


@pytest.mark.skipif(django.VERSION < (5, 2), reason="older fields have other words")
def test_functions_of_django_answer_as_in_the_transcript(request):
    compare(Path(__file__).parent / "transcripts" / "functions.txt", FUNCTIONS, request)
