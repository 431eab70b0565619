"""Applications that somebody else wrote, in which nothing knows of agents."""

from fastapi import APIRouter, FastAPI
from fastapi.responses import HTMLResponse
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles


class Book(BaseModel):
    title: str


def shop_on_fastapi() -> FastAPI:
    """Nothing in here knows of agents."""
    app, books = FastAPI(), APIRouter(prefix="/books", tags=["books"])

    @books.get("")
    async def listBooks(limit: int = 10) -> list[str]:  # noqa: N802
        """List books."""
        return ["Emma"][:limit]

    @books.get("/{slug}", operation_id="showBookHTML")
    async def show(slug: str) -> Book:
        """Show a book."""
        return Book(title=slug)

    @books.post("")
    async def add_book(book: Book) -> Book:
        return book

    @app.get("/health", tags=["operations"])
    async def health() -> str:
        return "fine"

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> str:
        """Count."""
        return "1"

    @app.delete("/books/{slug}", tags=["books", "operations"])
    async def remove(slug: str) -> None:
        """Remove a book."""

    app.include_router(books)
    return app


def shop_on_starlette() -> Starlette:
    async def list_books(request: Request) -> Response:
        """List books."""
        return JSONResponse(["Emma"])

    async def health(request: Request) -> Response:
        return PlainTextResponse("fine")

    class ShowBook(HTTPEndpoint):
        async def get(self, request: Request) -> Response:
            """Show a book."""
            return JSONResponse({"title": request.path_params["slug"]})

        async def delete(self, request: Request) -> Response:
            """Remove a book."""
            return JSONResponse(None)

    routes = [
        Mount("/books", routes=[Route("/", list_books), Route("/{slug}", ShowBook)]),
        Route("/health", health),
        Route("/hidden", health, include_in_schema=False, name="hidden"),
        Route("/add", list_books, methods=["POST"], name="add_book"),
    ]
    return Starlette(routes=routes)


class Panel(Starlette):
    """An admin panel as such packages write it: an application of its own, with pages, forms and a sign-out."""

    def __init__(self) -> None:
        async def page(request: Request) -> Response:
            return HTMLResponse("<h1>Admin</h1>")

        async def rows(request: Request) -> Response:
            """List the rows of a model."""
            return JSONResponse([])

        super().__init__(
            routes=[
                Route("/", page, name="index"),
                Route("/login", page, name="login", methods=["GET", "POST"]),
                Route("/logout", page, name="logout"),
                Route("/{identity}/list", page, name="list"),
                Route("/{identity}/create", page, name="create", methods=["GET", "POST"]),
                Route("/{identity}/delete", page, name="delete", methods=["DELETE"]),
                Route("/rows", rows, name="rows"),
                Mount("/statics", StaticFiles(directory="."), name="statics"),
            ]
        )


def shop_with_a_panel() -> FastAPI:
    app = FastAPI()

    @app.get("/books")
    async def list_books() -> list[str]:
        """List books."""
        return ["Emma"]

    @app.get("/books.json")
    async def list_books_as_json() -> list[str]:
        return ["Emma"]

    @app.get("/robots.txt")
    async def robots() -> str:
        return ""

    @app.get("/login")
    async def login_page() -> str:
        return "Sign in."

    @app.get("/auth/logout")
    async def end_session() -> str:
        return "Bye."

    @app.api_route("/visits", methods=["GET", "POST"])
    async def visits() -> int:
        return 1

    @app.get("/login-history")
    async def login_history() -> list[str]:
        """List who signed in."""
        return []

    app.mount("/admin", Panel())
    app.mount("/static", StaticFiles(directory="."))
    return app
