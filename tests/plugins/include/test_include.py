"""Routes that `site.include()` takes of an application that somebody else wrote, and those that it leaves out."""

from typing import Any

import pytest
from fastapi import APIRouter, FastAPI
from fastapi.responses import HTMLResponse
from jinja2 import DictLoader, Environment
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.templating import Jinja2Templates

from awp_publish.model import RateLimit
from tests.declare.existing_applications import Panel, shop_on_fastapi, shop_on_starlette, shop_with_a_panel
from tests.declare.test_declare_fastapi_outputs import of_article


@pytest.mark.parametrize(
    ("options", "agents"),
    [
        ({}, ["list_books", "show_book_get", "health"]),
        ({"paths": ["/books/*"]}, ["list_books", "show_book_get"]),
        ({"operations": ["add_book"]}, ["add_book"]),
        ({"operations": ["ShowBook_delete"]}, ["show_book_delete"]),
        ({"operations": ["hidden"]}, ["hidden"]),
        ({"exclude": ["/books/*"]}, ["health"]),
    ],
)
def test_routes_of_starlette_are_included_the_same_way(site, start, options, agents):
    site.include(**options)
    assert sorted(start(shop_on_starlette()).agents()) == sorted(agents)


@pytest.mark.parametrize("shop", [shop_on_fastapi, shop_on_starlette])
def test_included_routes_are_discovered_and_called(site, start, shop):
    site.include(rate_limit="9/minute", auth_required=True)
    front = start(shop())
    assert front.call("list_books", {}) == ["Emma"]
    show = next(agent for agent in front.agents() if agent.startswith("show"))
    assert front.call(show, {"slug": "emma"}) == {"title": "emma"}
    assert front.action(show).description == "Show a book."
    assert front.action("health").description == "Health"
    assert {front.action(agent).rate_limit for agent in front.agents()} == {RateLimit(9)}
    assert all(front.action(agent).auth_required for agent in front.agents())


def test_what_is_declared_already_is_not_included_again(site, start):
    site.declare("find", method="GET", path="/books", description="Find books.")
    site.include(tags=["books"])
    site.include()
    front = start(shop_on_fastapi())
    assert sorted(front.agents()) == ["find", "health", "show_book_html"]
    assert front.address("find") == "/books"


def test_an_application_that_shows_no_routes_has_nothing_to_include(site, refusal):
    site.include()
    assert refusal(PlainTextResponse("fine")) == (
        "site.include(): this application shows no routes. Declare its actions with site.declare()."
    )


def test_an_application_of_which_nothing_is_known_to_read_starts(site, start):
    async def anything(request: Any) -> PlainTextResponse:
        return PlainTextResponse("done")

    site.include()
    assert start(Starlette(routes=[Route("/x", anything, methods=["GET", "POST"])])).agents() == {}
    assert [one.path for one in site.left_out] == ["/x", "/x"]


def test_operation_ids_tell_two_versions_of_one_name_apart(site, start):
    app, router = FastAPI(), APIRouter()

    @router.get("/books")
    async def books(request: Any = None) -> str:
        """List books."""
        return "books"

    @app.get("/authors")
    async def authors() -> list[str]:
        return ["Austen"]

    for prefix in ("/v1", "/v2"):
        app.include_router(router, prefix=prefix)
    site.include()
    front = start(app)
    assert sorted(front.agents()) == ["authors", "books_v1_books_get", "books_v2_books_get"]
    assert front.address("books_v2_books_get") == "/v2/books"


def test_paths_tell_two_mounted_versions_apart_whose_operation_ids_are_the_same(site, start):
    app = FastAPI()
    for version in ("v1", "v2"):
        mounted = FastAPI()

        @mounted.get("/books")
        async def books() -> list[str]:
            """List books."""
            return ["Emma"]

        app.mount(f"/{version}", mounted)
    site.include(mounts=["/v1", "/v2/"])
    front = start(app)
    assert sorted(front.agents()) == ["books_v1_books_get", "books_v2_books_get"]
    assert front.call("books_v1_books_get", {}) == ["Emma"]


def test_routes_of_starlette_with_one_name_are_told_apart_by_their_paths(site, start):
    async def books(request: Request) -> Response:
        """List books."""
        return JSONResponse([])

    site.include()
    app = Starlette(routes=[Route("/v1/books", books), Route("/v2/books", books)])
    assert sorted(start(app).agents()) == ["books_v1_books_get", "books_v2_books_get"]


def test_two_routes_of_one_name_are_fine_once_one_is_declared(site, start):
    app, router = FastAPI(), APIRouter()

    @router.get("/books")
    async def books(request: Any = None) -> str:
        """List books."""
        return "books"

    for prefix in ("/v1", "/v2"):
        app.include_router(router, prefix=prefix)
    site.declare("old_books", method="GET", path="/v1/books")
    site.include()
    assert list(start(app).agents()) == ["old_books", "books"]


def left_out(site) -> dict[str, str]:
    return {f"{one.method} {one.path}": one.why for one in site.left_out}


def test_mounted_panels_sign_in_files_and_format_twins_are_left_out_and_told(site, start, caplog):
    caplog.set_level("INFO", "awp_publish")
    site.include()
    front = start(shop_with_a_panel())
    assert sorted(front.agents()) == ["list_books", "login_history"]
    assert site.catalog.pages == ()
    why = left_out(site)
    assert why["GET /admin/"] == 'it is in a mounted application; name that: mounts=["/admin"]'
    assert why["GET /login"] == why["GET /auth/logout"] == "it signs people in or out"
    assert why["GET /books.json"] == "it is /books in another format"
    assert why["GET /robots.txt"] == "it is a file"
    assert "takes other methods too" in why["GET /visits"]
    assert why["POST /visits"] == 'it writes; name it: operations=["visits"]'
    assert why["GET /static/*"] == "these are static files"
    lines = [record.getMessage() for record in caplog.records if "site.include()" in record.getMessage()]
    assert lines == [
        "site.include() took 2 actions (list_books, login_history) and 0 pages (none), and left "
        f"{len(site.left_out)} routes out; awp-publish show --included module:app says which and why."
    ]


def test_a_mounted_application_is_looked_into_where_it_is_named(site, start):
    site.include(mounts=["/admin"])
    front = start(shop_with_a_panel())
    assert sorted(front.agents()) == ["list_books", "login_history", "rows"]
    assert [page.path for page in site.catalog.pages] == ["/admin/", "/admin/{identity}/list"]
    assert left_out(site)["GET /admin/logout"] == "it signs people in or out"
    assert left_out(site)["DELETE /admin/{identity}/delete"] == 'it writes; name it: operations=["delete"]'


def test_a_known_admin_panel_is_not_taken_even_where_its_mount_is_named(site, start):
    panel = Panel()
    panel.__class__ = type("Admin", (Panel,), {"__module__": "sqladmin.application"})
    app = FastAPI()

    @app.get("/books")
    async def list_books() -> list[str]:
        """List books."""
        return []

    app.mount("/admin", panel)
    site.include(mounts=["/admin"])
    assert list(start(app).agents()) == ["list_books"]
    assert left_out(site)["GET /admin/rows"] == "it is part of the admin panel (sqladmin)"


def test_what_operations_name_is_taken_wherever_it_stands(site, start):
    site.include(operations=["rows", "end_session"])
    assert sorted(start(shop_with_a_panel()).agents()) == ["end_session", "rows"]


def test_pages_of_html_become_pages(site, start):
    app, templates = FastAPI(), Jinja2Templates(env=Environment(loader=DictLoader({"a.html": "A"}), autoescape=True))

    @app.get("/page", response_class=HTMLResponse)
    async def page(q: str) -> str:
        """Show a page."""
        return f"<p>{q}</p>"

    @app.get("/about-us")
    async def about(request: Request):
        return templates.TemplateResponse(request, "a.html")

    @app.get("/home")
    async def home() -> HTMLResponse:
        return HTMLResponse("Home")

    @app.get("/books")
    async def books() -> list[str]:
        """List books."""
        return []

    site.include()
    front = start(app)
    assert list(front.agents()) == ["books"]
    assert [(one.path, one.title, one.description) for one in site.catalog.pages] == [
        ("/page", "Page", "Show a page."),
        ("/about-us", "About us", None),
        ("/home", "Home", None),
    ]


def test_a_deprecated_route_is_left_out_by_include_and_says_so_where_it_is_named(site, start):
    site.include(operations=["article"], paths=["/articles"])
    front = start(of_article(deprecated=True))
    assert front.agents()["article"].description == "Deprecated. Show an article."


def test_a_deprecated_route_is_not_taken_by_the_way(site, start):
    site.include()
    front = start(of_article(deprecated=True))
    assert list(front.agents()) == ["articles"]
    why = {one.path: one.why for one in site.left_out}
    assert why["/article"] == 'it is deprecated; name it: operations=["article"]'
