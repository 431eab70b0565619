"""Annotations that are only text (`from __future__ import annotations`), of FastAPI handlers and plain functions."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, FastAPI, Query
from pydantic import BaseModel


class Book(BaseModel):
    title: str
    sequel: Book | None = None


def page(limit: int = 10) -> int:
    return limit


def test_types_at_module_level_are_found(site, start):
    app = FastAPI()

    @app.post("/x/{n}")
    @site.action("x")
    async def x(n: int, book: Book, q: Annotated[list[str], Query()], limit: Annotated[int, Depends(page)]) -> Book:
        """Do x."""
        return Book(title=f"{n} {q} {limit}", sequel=book)

    @site.agent("y")
    async def y(book: Book, n: int = 1) -> Book:
        """Do y."""
        return Book(title=str(n), sequel=book)

    front = start(app)
    assert front.call("x", {"n": 1, "title": "Emma", "q": ["a"]})["sequel"] == {"title": "Emma", "sequel": None}
    assert front.call("y", {"book": {"title": "Emma"}})["sequel"]["title"] == "Emma"


def test_a_route_with_a_model_that_is_defined_in_a_function_is_named(site, refusal):
    app = FastAPI()

    class Local(BaseModel):
        title: str

    @app.post("/x")
    @site.action("x")
    async def x(book: Local) -> None:
        """Do x."""

    words = refusal(app)
    assert words.startswith('action "x": FastAPI cannot describe /x: ')
    assert "Declare inputs=... and outputs=... (a model or a JSON Schema)." in words


def test_a_function_with_a_model_that_is_defined_in_a_function_is_named(site, refusal):
    class Local(BaseModel):
        title: str

    @site.agent("y")
    async def y(book: Local) -> None:
        """Do y."""

    assert refusal() == (
        'operation "default" of agent "y": its annotations cannot be read: the type Local is not defined; define it at '
        "module level. Declare inputs=... and outputs=... (a model or a JSON Schema)."
    )
