"""What becomes of applications, whole: `catalogs`. --golden writes them anew; read the change."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import pytest
from fastapi import APIRouter, Body, Cookie, Depends, FastAPI, Form, Header, Query, Security, UploadFile
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse
from fastapi.security import APIKeyCookie, HTTPBasic, OAuth2PasswordBearer, OpenIdConnect, SecurityScopes
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Host, Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles

from awp_publish import AgentPublisher, Site
from tests.client import TestClient
from tests.declare.test_declare_existing import Panel, shop_on_fastapi, shop_on_starlette, shop_with_a_panel
from tests.documents.sites import SITES
from tests.guarded import KEYS
from tests.installed import taken_out

CATALOGS = Path(__file__).parent / "catalogs"
pytestmark = pytest.mark.skipif(bool(taken_out()), reason="they have what all plug-ins declare")


def told(value: Any) -> Any:
    """Return a fact without what is its default, and functions by their names."""
    if is_dataclass(value) and not isinstance(value, type):
        pairs = [(each.name, getattr(value, each.name)) for each in fields(value) if each.repr]
        defaults = {
            each.name: each.default if each.default_factory is MISSING else each.default_factory()
            for each in fields(value)
        }
        shown = ", ".join(f"{name}={told(part)}" for name, part in pairs if part != defaults[name])
        return f"{type(value).__name__}({shown})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name!r}: {told(part)}" for name, part in value.items()) + "}"
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(sorted(map(str, map(told, value))))}}}"
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return f"({', '.join(map(str, map(told, value)))})"
    if callable(value):
        return getattr(value, "__qualname__", type(value).__name__)
    return repr(value)


def facts_of(site: Site) -> list[str]:
    """Return the lines of a site's catalog and of what was not published."""
    catalog, lines = site.catalog, list[str]()
    for action in catalog.actions:
        lines += ["", f"# {action.id}"]
        for each in fields(action):
            default = each.default if each.default_factory is MISSING else each.default_factory()
            if (value := getattr(action, each.name)) != default and each.name not in ("id", "rehearse"):
                lines.append(f"{each.name}: {told(value)}")
        if (target := action.target) is not None:
            arrival = f"{target.arrival.path} of {told(target.arrival.endpoint)}" if target.arrival else "somewhere"
            lines.append(f"reached: {arrival}, plainly: {target.takes_plain_inputs}")
    lines += ["", *(told(agent) for agent in catalog.agents), *(told(page) for page in catalog.pages)]
    lines += [told(catalog.site), told(catalog.openapi), f"included: {', '.join(site.included)}"]
    lines += [f"left out: {each.method} {each.path} ({each.name}): {each.why}" for each in site.left_out]
    return [*lines, *(f"found: {finding}" for finding in site.findings)]


def a_site(**options: Any) -> Site:
    return Site("Shop", "Sells things.", url="https://shop.example", secret_keys=KEYS, **options)


def including(make_app: Callable[[], Any], **options: Any) -> Any:
    site = a_site()
    site.include(**options)
    return AgentPublisher(make_app(), site=site, check=False), site


class Book(BaseModel):
    title: str
    pages: int = 1


class Filter(BaseModel):
    shelf: str | None = None
    years: list[int] = []


def fastapi_routes() -> Any:
    """Every place where FastAPI reads an input, and every way to sign in that it knows."""
    site, app = a_site(), FastAPI(title="Shop")
    router = APIRouter(prefix="/v1", tags=["v1"])
    oauth = OAuth2PasswordBearer("token", scopes={"read": "look", "write": "change"}, auto_error=False)

    def paging(page: int = 1, size: Annotated[int, Query(alias="per-page", le=100)] = 10) -> int:
        return page * size

    def scoped(scopes: SecurityScopes, token: Annotated[str | None, Depends(oauth)]) -> str:
        return scopes.scope_str

    @router.get("/books/{shelf}/{rest:path}", summary="List a shelf", operation_id="listShelf")
    @site.action("list_shelf")
    async def list_shelf(
        shelf: int,
        rest: str,
        paged: Annotated[int, Depends(paging)],
        chosen: Annotated[Filter, Query()],
        lang: Annotated[str, Cookie()],
        theme: Annotated[str | None, Cookie(alias="the-theme")] = None,
        agent: Annotated[str, Header(alias="User-Agent")] = "",
        trace: Annotated[list[str] | None, Header()] = None,
    ) -> list[Book]:
        return []

    @router.post("/books", status_code=201, response_model_exclude={"pages"}, deprecated=True)
    @site.action("add_book")
    async def add_book(book: Book, copies: Annotated[int, Body(embed=True)] = 1) -> Book:
        """Add a book.

        And a second paragraph.
        """
        return book

    @router.put("/books/{number}/cover")
    @site.action("set_cover")
    async def set_cover(
        number: int, cover: UploadFile, more: list[UploadFile], alt: Annotated[str, Form()] = ""
    ) -> None:
        """Set a cover."""

    @router.patch("/raw")
    @site.action("patch_raw")
    async def patch_raw(request: Request) -> PlainTextResponse:
        """Patch what is there."""
        return PlainTextResponse("")

    @router.post("/whole")
    @site.action("send_whole")
    async def send_whole(books: list[Book] | None = None, x_key: Annotated[str, Header()] = "") -> dict[str, int]:
        """Send many."""
        return {}

    @app.get("/scoped", dependencies=[Security(scoped, scopes=["write"])])
    @site.action("scoped")
    async def scoped_route(seen: Annotated[str, Security(scoped, scopes=["read"])]) -> str:
        """Look with scopes."""
        return seen

    schemes: dict[str, Any] = {
        "basic": HTTPBasic(),
        "cookie": APIKeyCookie(name="sid"),
        "openid": OpenIdConnect(openIdConnectUrl="/.well-known/openid"),
        "perhaps": APIKeyCookie(name="sid", auto_error=False),
    }
    for name, scheme in schemes.items():

        def signed(key: Any = Depends(scheme)) -> str:  # noqa: B008
            """Be known."""
            return str(key)

        app.get(f"/signed/{name}", name=name)(site.action(f"signed_{name}")(partial(signed)))
    app.include_router(router)
    app.add_middleware(AgentPublisher, site=site, check=False)
    return app, site


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
    **SITES,
    "fastapi": fastapi_routes,
    "odd": odd_routes,
    "included": partial(including, shop_on_fastapi),
    "included by name": partial(including, shop_on_fastapi, operations=["add_book", "remove", "metrics"]),
    "included by tag": partial(including, shop_on_fastapi, tags=["books"], rate_limit="5/hour"),
    "included Starlette": partial(including, shop_on_starlette),
    "included by path": partial(including, shop_on_starlette, paths=["/books/*", "/hidden"], operations=["hidden"]),
    "a panel": partial(including, shop_with_a_panel, mounts=["/admin"]),
}


@pytest.mark.parametrize("name", APPS)
def test_an_application_becomes_the_reviewed_catalog(name, request):
    app, site = APPS[name]()
    with TestClient(app):
        lines = facts_of(site)
    path, text = CATALOGS / f"{name}.txt", "\n".join(lines).lstrip("\n") + "\n"
    if request.config.getoption("--golden"):
        path.write_text(text)
    assert text == path.read_text()
