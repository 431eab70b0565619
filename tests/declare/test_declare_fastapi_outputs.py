"""FastAPI handlers: what they answer is published, and the answer conforms to it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from fastapi import FastAPI
from fastapi.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from pydantic import BaseModel, Field, computed_field


class Book(BaseModel):
    title: str
    note: str | None = None
    tags: list[str] = []

    @computed_field  # type: ignore[prop-decorator]
    @property
    def length(self) -> int:
        return len(self.title)


class Renamed(BaseModel):
    title: str = Field(serialization_alias="bookTitle")


class Accepted(BaseModel):
    job: str


def giving(site, handler, **options: Any) -> FastAPI:
    app = FastAPI()
    handler.__doc__ = "Give it."
    app.get("/x", **options)(site.action("give")(handler))
    return app


async def annotated() -> Book:
    return Book(title="Emma")


async def not_annotated():
    return {"title": "Emma", "length": 4}


async def renamed() -> Renamed:
    return Renamed(title="Emma")


BOOK: dict[str, Any] = {"title": "Emma", "note": None, "tags": [], "length": 4}


@pytest.mark.parametrize(
    ("handler", "options", "answer", "required"),
    [
        (annotated, {}, BOOK, ["title", "length"]),
        (annotated, {"status_code": 201}, BOOK, ["title", "length"]),
        (not_annotated, {"response_model": Book}, BOOK, ["title", "length"]),
        (annotated, {"response_model_exclude_none": True}, {"title": "Emma", "tags": [], "length": 4}, None),
        (annotated, {"response_model_exclude_unset": True}, {"title": "Emma", "length": 4}, None),
        (annotated, {"response_model_exclude_defaults": True}, {"title": "Emma", "length": 4}, None),
        (annotated, {"response_model_exclude": {"title"}}, {"note": None, "tags": [], "length": 4}, None),
        (annotated, {"response_model_include": {"tags"}}, {"tags": []}, None),
        (renamed, {}, {"bookTitle": "Emma"}, ["bookTitle"]),
        (renamed, {"response_model_by_alias": False}, {"title": "Emma"}, ["title"]),
    ],
)
def test_models_are_published_as_they_are_written(site, start, handler, options, answer, required):
    front = start(giving(site, handler, **options))
    assert front.call("give", {}) == answer
    assert front.outputs("give").get("required") == required


def test_optional_members_may_be_omitted_at_every_depth(site, start):
    class Shelf(BaseModel):
        books: list[Book]
        by_name: dict[str, Book]
        best: Book | None = None

    async def give() -> Shelf:
        return Shelf(books=[Book(title="Emma")], by_name={"a": Book(title="Emma")}, best=Book(title="Emma"))

    front = start(giving(site, give, response_model_exclude={"books": {0: {"title"}}, "best": {"title"}}))
    assert "title" not in front.call("give", {})["best"]


@pytest.mark.parametrize(
    ("response_class", "answer", "outputs"),
    [
        (HTMLResponse, "<p>", {"type": "string", "contentMediaType": "text/html"}),
        (PlainTextResponse, "text", {"type": "string", "contentMediaType": "text/plain"}),
        (JSONResponse, {"a": 1}, {}),
        (StreamingResponse, "stream", {}),
    ],
)
def test_response_classes_of_every_kind(site, start, response_class, answer, outputs):
    async def give():
        return response_class(answer if response_class is not StreamingResponse else iter([answer]))

    front = start(giving(site, give, response_class=response_class))
    assert front.call("give", {}) == answer
    assert front.outputs("give") == outputs


def test_a_file_is_answered_as_text(site, start, tmp_path: Path):
    (tmp_path / "a.txt").write_text("hello")

    async def give():
        return FileResponse(tmp_path / "a.txt")

    assert start(giving(site, give, response_class=FileResponse)).call("give", {}) == "hello"


def test_a_redirect_to_nowhere_is_no_answer(site, start):
    async def give():
        return RedirectResponse("/elsewhere")

    answer = start(giving(site, give, response_class=RedirectResponse)).ask("give", {})
    assert (answer.status_code, answer.json()["code"]) == (404, "REFUSED")


@pytest.mark.parametrize("annotation", [Response, PlainTextResponse])
def test_a_response_annotation_says_nothing_about_the_answer(site, start, annotation):
    async def give():
        return PlainTextResponse("text")

    give.__annotations__["return"] = annotation
    front = start(giving(site, give))
    assert (front.outputs("give"), front.call("give", {})) == ({}, "text")


def test_no_content_is_null(site, start):
    async def give() -> None:
        return None

    front = start(giving(site, give, status_code=204))
    assert (front.outputs("give"), front.call("give", {})) == ({"type": "null"}, None)
    assert front.action("give").success_status == 204


def test_a_stream_of_json_lines_is_text(site, start):
    async def give() -> AsyncIterator[int]:
        yield 1
        yield 2

    front = start(giving(site, give))
    assert front.outputs("give") == {"type": "string", "contentMediaType": "application/jsonl"}
    assert front.call("give", {}) == "1\n2\n"


@pytest.mark.parametrize("media_type", ["application/x-ndjson", "application/json-seq"])
def test_several_json_documents_one_after_another_are_no_json(site, start, media_type):
    class Lines(Response):
        pass

    Lines.media_type = media_type

    async def give():
        return Lines('{"number": 1}\n{"number": 2}\n')

    give.__annotations__["return"] = Lines
    content = {media_type: {"schema": {"type": "object"}}}
    front = start(giving(site, give, response_class=Lines, responses={200: {"content": content}}))
    assert front.outputs("give")["type"] == "string"
    assert front.ask("give", {}).status_code == 200


@pytest.mark.parametrize("status", [200, 202])
def test_a_route_with_several_successes_may_answer_with_any_of_them(site, start, status):
    async def give():
        return JSONResponse({"job": "1"} if status == 202 else BOOK, status)

    front = start(giving(site, give, response_model=Book, responses={202: {"model": Accepted}, 404: {"model": Book}}))
    assert len(front.outputs("give")["anyOf"]) == 2
    assert front.call("give", {}) in (BOOK, {"job": "1"})


@pytest.mark.parametrize("answered", [{"title": 1}, ["Emma"], "Emma", None])
def test_an_answer_that_breaks_a_derived_schema_is_passed_on_with_one_warning(site, start, caplog, answered):
    async def give() -> Book:
        return JSONResponse(answered)  # type: ignore[return-value]

    front = start(giving(site, give))
    assert [front.call("give", {}), front.call("give", {})] == [answered, answered]
    warnings = [record.getMessage() for record in caplog.records if record.name == "awp_publish.calls"]
    assert len(warnings) == 1
    assert warnings[0].startswith("the answers of action give do not match the outputs that its route describes: ")


def test_an_answer_that_breaks_a_declared_schema_is_not_sent(site, start):
    app = FastAPI()

    @app.get("/x")
    @site.action("give", outputs=Book)
    async def give() -> Response:
        """Give it."""
        return JSONResponse({"title": 1})

    answer = start(app).ask("give", {})
    assert (answer.status_code, answer.json()["code"]) == (500, "INVALID_OUTPUT")


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


def test_outputs_have_no_discriminator_whose_mapping_refers_to_another_document(site, start):
    async def give() -> Annotated[Cat | Dog, Field(discriminator="kind")]:
        return Dog(kind="dog")

    front = start(giving(site, give))
    assert front.call("give", {}) == {"kind": "dog"}
    assert "discriminator" not in str(front.outputs("give"))


class Writer(BaseModel):
    name: str
    email: str


class Article(BaseModel):
    title: str
    secret: str
    author: Writer


def of_article(**options: Any) -> FastAPI:
    app = FastAPI()

    @app.get("/article", response_model=Article, **options)
    async def article() -> Any:
        """Show an article."""
        return {"title": "Emma", "secret": "s", "author": {"name": "Jane", "email": "j@example.org"}}

    @app.get("/articles", response_model=list[Article], response_model_exclude={"__all__": {"secret"}})
    async def articles() -> Any:
        """List articles."""
        return [{"title": "Emma", "secret": "s", "author": {"name": "Jane", "email": "j@example.org"}}]

    return app


def test_members_that_the_response_excludes_are_not_in_the_outputs(site, start):
    for path in ("/article", "/articles"):
        site.declare(path[1:], method="GET", path=path)
    front = start(of_article(response_model_exclude={"secret": True, "author": {"email"}}))
    assert list(front.outputs("article")["properties"]) == ["title", "author"]
    assert list(front.outputs("article")["properties"]["author"]["properties"]) == ["name"]
    assert front.call("article", {}) == {"title": "Emma", "author": {"name": "Jane"}}
    assert list(front.outputs("articles")["items"]["properties"]) == ["title", "author"]
    assert front.call("articles", {})[0].keys() == {"title", "author"}


def test_members_that_only_the_response_has_are_in_the_outputs(site, start):
    site.declare("article", method="GET", path="/article")
    front = start(of_article(response_model_include={"title"}))
    assert list(front.outputs("article")["properties"]) == ["title"]
    assert front.call("article", {}) == {"title": "Emma"}
