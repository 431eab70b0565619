"""The routes of a URLconf, as templates that agents fill in."""

from typing import Final

import pytest
from awp_publish_django.routes import find_django_routes
from django.http import HttpRequest, HttpResponse
from django.urls import include, path, re_path, register_converter
from django.views.decorators.http import require_http_methods
from django.views.generic import RedirectView


class Code:
    regex = "[A-Z]{3}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(Code, "awp_code")


@require_http_methods(["GET", "PUT", "OPTIONS"])
def view(request: HttpRequest) -> HttpResponse:
    """Answer."""
    return HttpResponse()


UUID: Final = "^(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$"
"""Django's converter takes fewer spellings than a UUID has, and its addresses have no others."""


@pytest.mark.parametrize(
    ("pattern", "template", "schemas"),
    [
        (path("a/<int:n>/", view), "/a/{n}/", {"n": {"type": "integer", "minimum": 0}}),
        (path("a/<n>", view), "/a/{n}", {"n": {"type": "string", "minLength": 1, "pattern": r"^[^/\u0000]+$"}}),
        (path("a/<uuid:n>", view), "/a/{n}", {"n": {"type": "string", "format": "uuid", "pattern": UUID}}),
        (
            path("a/<path:n>", view),
            "/a/{n:path}",
            {"n": {"type": "string", "minLength": 1, "pattern": r"^[^\u0000]*$"}},
        ),
        (path("a/<awp_code:n>", view), "/a/{n}", {"n": {"type": "string", "pattern": "^(?:[A-Z]{3})$"}}),
        (re_path(r"^a/(?P<n>[0-9]{4})/$", view), "/a/{n}/", {"n": {"type": "string", "pattern": "^(?:[0-9]{4})$"}}),
        (
            re_path(r"^a/(?P<n>(?:x|y[)(])+)$", view),
            "/a/{n}",
            {"n": {"type": "string", "pattern": "^(?:(?:x|y[)(])+)$"}},
        ),
        (re_path(r"^a\.b/(\d+)$", view), "/a.b/{_0}", {"_0": {"type": "string", "pattern": r"^(?:\d+)$"}}),
        (re_path(r"^a/(?P<n>.+)$", view), "/a/{n:path}", {"n": {"type": "string", "pattern": "^(?:.+)$"}}),
        (path("<slug:s>/", include([path("b/<int:n>", view)])), "/{s}/b/{n}", None),
    ],
)
def test_a_pattern_is_a_template_with_a_schema_for_each_part(pattern, template, schemas):
    (route,) = find_django_routes((pattern,))
    assert (route.path, route.methods) == (template, ("GET", "PUT"))
    assert route.describe is not None
    described = route.describe("GET")
    assert schemas is None or described.inputs["properties"] == schemas
    assert described.description == "Answer."


def test_namespaces_stand_before_names_and_the_first_of_two_equal_routes_counts():
    other = RedirectView.as_view(url="/")
    inner = ([path("b", view, name="b"), path("b", view, name="again"), path("b", other, name="never")], "app")
    first, *never = find_django_routes((path("a/", include(inner, namespace="space")),))
    assert (first.path, first.name, first.kept_out) == ("/a/b", "space:b", "")
    assert {route.kept_out for route in never} == {"a view before it has the same address"}
