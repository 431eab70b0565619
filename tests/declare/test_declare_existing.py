"""Routes of an application that somebody else wrote, declared by method and path."""

from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from awp_publish import DeclarationError
from tests.declare.existing_applications import shop_on_fastapi, shop_on_starlette


def test_a_declared_route_has_what_its_framework_knows(site, start):
    site.declare("find", method="GET", path="/books")
    site.declare("add", method="POST", path="/books", description="Add a book.")
    site.declare("show", method="GET", path="/books/{slug}")
    front = start(shop_on_fastapi())
    assert front.inputs("find")["properties"] == {"limit": {"type": "integer", "default": 10}}
    assert front.action("find").description == "List books."
    assert front.call("add", {"title": "Emma"}) == {"title": "Emma"}
    assert front.call("show", {"slug": "emma"}) == {"title": "emma"}


def test_a_declared_path_may_be_one_of_those_that_a_route_takes(site, start):
    site.declare("emma", method="GET", path="/books/emma", description="Show Emma.")
    site.declare("show", method="GET", path="/books/{name}", description="Show a book.")
    front = start(shop_on_fastapi())
    assert front.call("emma", {}) == {"title": "emma"}
    assert front.call("show", {"name": "persuasion"}) == {"title": "persuasion"}


@pytest.mark.parametrize("shop", [shop_on_fastapi, shop_on_starlette])
@pytest.mark.parametrize(("method", "path"), [("GET", "/boks"), ("PUT", "/health"), ("GET", "/books/a/b")])
def test_a_declared_path_that_leads_nowhere_is_told(site, refusal, shop, method, path):
    site.declare("find", method=method, path=path, description="Find.")
    words = refusal(shop())
    assert words.startswith(
        f'action "find": method, path: no route of this application takes {method} {path}. There are: '
    )
    assert "GET /health" in words


@pytest.mark.parametrize("missing", ["method", "path"])
def test_a_declaration_has_method_and_path(site, missing):
    options: dict[str, Any] = {"method": "GET", "path": "/books"}
    del options[missing]
    with pytest.raises(DeclarationError) as refused:
        site.declare("find", **options)
    assert str(refused.value) == f'action "find": {missing}: is required by site.declare().'


def test_a_declaration_of_an_unknown_route_needs_a_description(site, refusal):
    site.declare("find", method="GET", path="/find")
    assert refusal(PlainTextResponse("found")) == (
        'action "find": description: is missing. Write a docstring or give description=...'
    )


def test_a_refused_path_is_shown_with_the_nearest_of_many_routes(site, refusal):
    admin = [Route(f"/admin/auth/user/{number}", PlainTextResponse("admin")) for number in range(250)]
    site.declare("find", method="GET", path="/shop/book/{id}", description="Find.")
    words = refusal(Starlette(routes=[*admin, Route("/shop/books/{id}", PlainTextResponse("shop"))]))
    assert "There are: GET /shop/books/{id}, " in words
    assert words.count("/admin/") < 10
