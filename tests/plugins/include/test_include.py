"""Routes that `site.include()` takes of an application that somebody else wrote, and those that it leaves out."""

from typing import Any

import pytest
from fastapi import APIRouter, FastAPI
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from awp_publish.model import RateLimit
from tests.declare.existing_applications import Panel, shop_on_fastapi, shop_on_starlette, shop_with_a_panel


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


def test_declared_routes_are_not_included_again(site, start):
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
    assert [item.path for item in site.left_out] == ["/x", "/x"]


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
    return {f"{item.method} {item.path}": item.why for item in site.left_out}


def test_the_addresses_to_which_identity_providers_send_people_back_are_left_out(site, start):
    app = FastAPI()

    @app.get("/teas")
    async def teas() -> list[str]:
        """List teas."""
        return ["assam"]

    for path, name in (
        ("/oauth/callback", "finish"),
        ("/auth/{provider}/done", "oidc_callback"),
        ("/callbacks", "all"),
    ):
        app.add_api_route(path, teas, name=name)
    site.include()
    assert set(start(app).agents()) == {"teas", "all"}
    assert left_out(site)["GET /oauth/callback"] == "it signs people in or out"


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


def test_all_wrong_names_are_refused_at_once_each_with_the_nearest(site, refusal):
    site.include(operations=["listBook", "add_bok", "nothing"], tags=["boks"])
    words = refusal(shop_on_fastapi())
    assert '"listBook" (did you mean "listBooks"?), "add_bok" (did you mean "add_book"?), "nothing"' in words
    assert 'tags: "boks"' in words
