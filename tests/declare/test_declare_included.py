"""What `site.include()` without a choice takes, and how it words it."""

import functools

from fastapi import FastAPI
from fastapi.responses import RedirectResponse
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Host, Mount, Route

from awp_publish import AgentPublisher, Site


def test_neither_redirects_nor_routes_for_tests_are_taken(site, start):
    app = FastAPI()

    @app.get("/old")
    async def old() -> RedirectResponse:
        return RedirectResponse("/books")

    @app.get("/older")
    async def older(year: int = 0):
        if year > 2000:
            return RedirectResponse(f"/old?year={year}")
        return RedirectResponse("/old", status_code=301)

    @app.get("/oldest", response_class=RedirectResponse)
    async def oldest():
        return "/older"

    @app.get("/test/books")
    async def try_books() -> list[str]:
        return []

    @app.get("/books")
    async def latest_contest(old: bool = False):
        return RedirectResponse("/old") if old else ["Emma"]

    site.include()
    front = start(app)
    assert front.call("latest_contest", {}) == ["Emma"]
    assert [action.id for action in site.catalog.actions] == ["latest_contest"]
    reasons = {one.path: one.why for one in site.left_out}
    assert all("it redirects" in reasons[path] for path in ("/old", "/older", "/oldest")), reasons
    assert "test route" in reasons["/test/books"]


def test_a_route_that_another_one_hides_is_left_out_and_the_application_starts(site, start):
    app, blog = FastAPI(), FastAPI()

    @app.get("/users/{user}")
    async def show_user(user: str) -> str:
        return user

    @app.get("/users/me")
    async def show_me() -> str:
        return "nobody gets here"

    @app.get("/shelves/{shelf:int}")
    async def show_shelf(shelf: int) -> int:
        return shelf

    @app.get("/shelves/first")
    async def show_first_shelf() -> int:
        return 1

    for name in ("authorize", "authorize_again"):
        app.add_api_route("/authorize", lambda name=name: name, name=name)

    @blog.get("/authorize")
    async def authorize_authors() -> str:
        return "authors"

    app.router.routes.insert(0, Host("blog.example", blog))
    site.include()
    front = start(app)
    assert front.call("show_user", {"user": "ann"}) == "ann"
    assert front.call("authorize", {}) == "authorize"
    assert front.call("show_first_shelf", {}) == 1
    assert {one.id for one in site.catalog.actions} >= {"authorize", "show_shelf"}
    assert "show_me" not in {one.id for one in site.catalog.actions}
    reasons = {one.path: one.why for one in site.left_out}
    assert reasons["/users/me"] == "GET /users/{user} (show_user), which stands before it, takes its requests"


def test_a_description_made_of_a_name_reads_well(site, start):
    app = FastAPI()

    async def current() -> str:
        return "ann"

    app.add_api_route("/auth/jwt", current, name="auth:jwt.current")
    app.add_api_route("/auth/own", current, name="auth:jwt.own", operation_id="auth-own")
    site.include()
    front = start(app)
    assert front.awas("auth_jwt_current")["description"] == "Auth jwt current"
    assert front.awas("auth_own")["description"] == "Auth own"


def test_a_summary_of_the_route_describes_its_action(site, start):
    app = FastAPI()

    @app.get("/shelf", summary="Show the first shelf.")
    @site.action("show_shelf")
    async def shelf() -> int:
        return 1

    assert start(app).awas("show_shelf")["description"] == "Show the first shelf."


def test_a_partial_has_the_words_and_the_name_of_its_function(site, start):
    app = FastAPI()

    async def show_shelf(shelf: str, page: int = 1) -> str:
        """Show a shelf."""
        return f"{shelf} {page}"

    app.add_api_route("/shelf", functools.partial(show_shelf, shelf="B"))
    site.include()
    assert start(app).awas("show_shelf")["description"] == "Show a shelf."


def test_a_public_address_without_tls_is_said_at_start_up(open_client, caplog):
    for url, is_said in (("http://shop.example.org", True), ("http://10.0.0.1", False), ("https://shop.org", False)):
        caplog.clear()
        open_client(AgentPublisher(Starlette(), Site("Shop", "Sells books.", url=url))).get("/agent.json")
        assert ("start-http" in caplog.text) is is_said, url


def test_of_several_inclusions_the_one_that_is_about_a_route_says_why_it_is_left_out(site, start):
    async def add_book(request: Request) -> JSONResponse:
        return JSONResponse(None)

    async def show_book(request: Request) -> JSONResponse:
        return JSONResponse(request.path_params["book"])

    shop = Starlette(routes=[Route("/books", add_book, methods=["POST"]), Route("/books/{book}", show_book)])
    site.include(operations=["about"])
    site.include(paths=["/shop/*"], mounts=["/shop"])
    site.include(operations=["contact"])
    others = [Route(f"/{name}", show_book, name=name) for name in ("about", "contact")]
    front = start(Starlette(routes=[*others, Mount("/shop", shop)]))
    assert front.call("show_book", {"book": "emma"}) == "emma"
    assert [one.why for one in site.left_out] == ['it writes; name it: operations=["add_book"]']
