"""An application of odd routes, for `included.txt`."""

import functools
from typing import Any

from fastapi import Depends, FastAPI, HTTPException
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.security import HTTPBearer
from jinja2 import DictLoader, Environment
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Host, Mount, Route
from starlette.templating import Jinja2Templates, _TemplateResponse

templates = Jinja2Templates(env=Environment(loader=DictLoader({"a.html": "A"}), autoescape=True))


class Book(BaseModel):
    title: str


async def current(name: str = "ann") -> str:
    return name


async def show_page(shelf: str, page: int = 1) -> str:
    """Show a page of a shelf."""
    return f"{shelf} {page}"


async def of_starlette(request: Request) -> JSONResponse:
    """Show what Starlette has."""
    return JSONResponse(None)


class Both(HTTPEndpoint):
    """A resource."""

    async def get(self, request: Request) -> JSONResponse:
        return JSONResponse(None)

    async def post(self, request: Request) -> JSONResponse:
        """Change it."""
        return JSONResponse(None)


def make_odd_application() -> FastAPI:
    app, blog = FastAPI(openapi_url=None), FastAPI(openapi_url=None)

    @app.get("/old")
    async def old() -> RedirectResponse:
        return RedirectResponse("/books")

    @app.get("/older")
    async def older(year: int = 0):
        if year > 2000:
            return RedirectResponse(f"/old?year={year}")
        return RedirectResponse("/old", status_code=301)

    @app.get("/oldest", response_class=RedirectResponse)
    async def oldest() -> str:
        return "/older"

    @app.get("/test/books")
    async def try_books() -> list[str]:
        return []

    @app.get("/contest", tags=["books", "new"])
    async def latest_contest(old: bool = False):
        return RedirectResponse("/old") if old else ["Emma"]

    @app.get("/perhaps")
    async def perhaps(old: bool = False):
        if old:
            return RedirectResponse("/old")
        return str(old)

    @app.get("/perhaps/not")
    async def perhaps_not(old: bool = False):
        if not old:
            return str(old)
        return RedirectResponse("/old")

    async def annotated() -> HTMLResponse:
        return app.state.answer

    async def of_json() -> JSONResponse:
        return JSONResponse(str(HTMLResponse))

    async def of_template() -> _TemplateResponse:
        return app.state.answer

    app.add_api_route("/of-template", of_template, response_model=None)

    async def moved() -> RedirectResponse:
        return app.state.answer

    app.add_api_route("/moved", moved, response_model=None)
    app.router.routes.append(Route("/narrow/{n:int}", of_starlette, name="narrow"))
    app.add_api_route("/narrow/7", current, name="seventh")
    app.add_api_route("/annotated", annotated, response_model=None)
    app.add_api_route("/of-json", of_json, response_model=None)
    app.add_api_route("/partly-annotated", functools.partial(annotated), response_model=None, name="partly_annotated")
    app.add_api_route("/wide/{a}", current, name="wide")
    app.router.routes.append(Route("/wide/{b:int}", of_starlette, name="wide_number"))
    for path in ("/twin-a", "/twin_a"):
        app.add_api_route(path, current, methods=["POST"], name="twin")
    app.add_api_route("/partly-old", functools.partial(old), name="partly_old")
    app.add_api_route("/files/{rest:path}", current, name="files")
    app.add_api_route("/files/a/b", current, name="file_of_a")

    @app.get("/users/{user}", tags=["people"])
    async def show_user(user: str) -> str:
        return user

    @app.get("/users/me", tags=["people"])
    async def show_me() -> str:
        return "nobody gets here"

    for name in ("authorize", "authorize_again"):
        app.add_api_route("/authorize", lambda name=name: name, name=name)
    app.add_api_route("/auth/jwt", current, name="auth:jwt.current")
    app.add_api_route("/auth/own", current, name="auth:jwt.own", operation_id="auth-own")
    app.add_api_route("/same", current, name="same")
    app.add_api_route("/same/other", current, name="same")
    app.add_api_route("/2fa", current, name="2fa")
    app.add_api_route("/shelf", functools.partial(show_page, shelf="B"))
    app.add_api_route("/many", current, methods=["GET", "PUT"], name="many")
    app.add_api_route("/many", current, methods=["POST", "PUT"], name="many_again")

    @app.get("/login")
    async def login() -> str:
        return ""

    @app.get("/hidden", include_in_schema=False)
    async def hidden() -> str:
        return ""

    @app.get("/late", deprecated=True)
    async def late() -> str:
        return ""

    @app.get("/feed.xml")
    async def feed() -> str:
        return ""

    @app.get("/books", tags=["books"], summary="List all books.", responses={404: {"description": "None."}})
    async def list_books(limit: int = 10) -> list[Book]:
        return []

    @app.get("/books.csv")
    async def books_as_csv() -> str:
        return ""

    @app.get("/books.json", tags=["books"])
    async def books_as_json() -> str:
        return ""

    @app.post("/books", tags=["books"], status_code=201, responses={200: {"model": Book}, 202: {"model": Book}})
    async def add_book(book: Book) -> Book:
        """Add a book."""
        return book

    @app.put("/books/{title}", responses={200: {"model": Book}, 201: {"content": {"text/plain": {}}}})
    async def put_book(title: str, book: Book) -> Any:
        """Put a book."""
        raise HTTPException(404)

    @app.get("/page", response_class=HTMLResponse)
    async def page() -> str:
        """Show a page for people."""
        return "<p>"

    @app.get("/plain", response_class=Response)
    async def plain():
        return HTMLResponse("<p>")

    @app.get("/about-us")
    async def about(request: Request):
        return templates.TemplateResponse(request, "a.html")

    @app.get("/home")
    async def home() -> HTMLResponse:
        return HTMLResponse("Home")

    @app.get("/private", tags=["new"], dependencies=[Depends(HTTPBearer())])
    async def private() -> str:
        """Show what is private."""
        return ""

    @blog.get("/authorize")
    async def authorize_authors() -> str:
        return "authors"

    inner = Starlette(routes=[Route("/a", of_starlette), Route("/b", Both), Route("/c/{x}", of_starlette)])
    other = Starlette(routes=[Route("/z", of_starlette, name="zed")])
    app.router.routes += [
        Mount("/inner", inner),
        Mount("/other", other),
        Mount("/opaque", JSONResponse({})),
        Mount("/path", routes=[Route("/d", of_starlette, name="d")]),
        Route("/both", Both),
        Route("/any", of_starlette, methods=["GET", "HEAD"]),
    ]
    app.router.routes.append(
        Host(
            "{x}.late.example",
            Starlette(routes=[Route("/login/late", of_starlette), Route("/2fa", of_starlette, name="late_2fa")]),
        )
    )
    app.router.routes.insert(0, Host("blog.example", blog))
    app.router.routes.insert(1, Host("{name}.blog.example", Starlette(routes=[Route("/of-any-blog", of_starlette)])))
    return app
