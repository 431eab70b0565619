"""What becomes of applications whose routes are included, whole: `catalogs`."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from fastapi import FastAPI
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.applications import Starlette
from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Host, Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles

from awp_publish import AgentPublisher
from tests.declare.existing_applications import Panel, shop_on_fastapi, shop_on_starlette, shop_with_a_panel
from tests.declare.facts import a_site, review
from tests.installed import taken_out

CATALOGS = Path(__file__).parent / "catalogs"
pytestmark = pytest.mark.skipif(bool(taken_out()), reason="they have what all plug-ins declare")


def including(make_app: Callable[[], Any], **options: Any) -> Any:
    site = a_site()
    site.include(**options)
    return AgentPublisher(make_app(), site=site, check=False), site


def odd_routes() -> Any:
    """Routes that are not taken, each for another reason, and those that are."""
    app, blog = FastAPI(), FastAPI()

    async def show(request: Request) -> JSONResponse:
        """Show it."""
        return JSONResponse(None)

    async def show_all() -> list[str]:
        return []

    async def old() -> RedirectResponse:
        return RedirectResponse("/books")

    class Both(HTTPEndpoint):
        async def get(self, request: Request) -> JSONResponse:
            """Get it."""
            return JSONResponse(None)

        async def post(self, request: Request) -> JSONResponse:
            """Post it."""
            return JSONResponse(None)

    async def socket(websocket: Any) -> None:
        await websocket.close()

    panel = Panel()
    panel.__class__ = type("Admin", (Panel,), {"__module__": "sqladmin.application"})
    by_routes = Starlette(routes=[Route("/rows", type("Rows", (Both,), {"__module__": "piccolo_admin.endpoints"}))])
    for path in (
        "/old",
        "/test/books",
        "/users/me",
        "/login",
        "/logout",
        "/signin",
        "/books.json",
        "/favicon.ico",
        "/a.css",
    ):
        app.add_api_route(path, old if path == "/old" else lambda: "x", name=path[1:].replace("/", "_"))
    app.add_api_route("/users/{user}", lambda user: user, name="show_user")
    app.add_api_route("/users/you", lambda: "x", name="hidden_by_user")
    app.add_api_route("/gone", lambda: "x", name="gone", deprecated=True)
    app.add_api_route("/home", lambda: HTMLResponse("x"), name="home", response_class=HTMLResponse)
    app.add_api_route("/visits", lambda: 1, methods=["GET", "POST", "HEAD"], name="visits")
    app.add_api_route("/twice", lambda: 1, name="twice")
    app.add_api_route("/twice/again", lambda: 1, name="twice")
    app.add_api_route("/books", show_all, name="books", summary="List books", tags=["shop"])
    app.add_api_route("/9lives", lambda: 9, name="9lives")
    blog.add_api_route("/posts", show_all, name="posts")
    app.router.routes += [
        Route("/both", Both),
        WebSocketRoute("/socket", socket),
        Mount("/admin", panel),
        Mount("/piccolo", by_routes),
        Mount("/static", StaticFiles(directory=".")),
        Mount("/blog", blog),
        Host("api.example", Starlette(routes=[Route("/status", show)])),
        Mount("/group", routes=[Route("/inner", show, name="inner"), Route("/hidden", show, include_in_schema=False)]),
    ]
    site = a_site()
    for name in ("books", "first", "second"):
        if name != "books":
            app.add_api_route(f"/{name}", lambda: 1, name=name)
        site.declare(name, method="GET", path=f"/{name}", description=f"See {name}.")
    site.include(mounts=["/blog", "/piccolo"], exclude=["/both"], rate_limit="9/minute")
    return AgentPublisher(app, site=site, check=False), site


APPS: Final[Mapping[str, Callable[[], Any]]] = {
    "odd": odd_routes,
    "included": partial(including, shop_on_fastapi),
    "included by name": partial(including, shop_on_fastapi, operations=["add_book", "remove", "metrics"]),
    "included by tag": partial(including, shop_on_fastapi, tags=["books"], rate_limit="5/hour"),
    "included Starlette": partial(including, shop_on_starlette),
    "included by path": partial(including, shop_on_starlette, paths=["/books/*", "/hidden"], operations=["hidden"]),
    "a panel": partial(including, shop_with_a_panel, mounts=["/admin"]),
}


@pytest.mark.parametrize("name", APPS)
def test_an_application_whose_routes_are_included_becomes_the_reviewed_catalog(name, request):
    app, site = APPS[name]()
    review(app, site, CATALOGS / f"{name}.txt", request)
