"""FastAPI handlers: parameters are published as FastAPI knows them, and arrive as if they were sent directly."""

from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Cookie, Depends, Header, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from tests.declare.handlers import taking


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Book(BaseModel):
    title: str
    pages: int = 1


class Filter(BaseModel):
    model_config = ConfigDict(extra="forbid")
    limit: int = Field(10, ge=1, le=100)
    tags: list[str] = []
    order_by: Literal["title", "year"] = "title"


class Headers(BaseModel):
    x_token: str
    save_data: bool = False


class Cookies(BaseModel):
    session: str


def test_path_parameters_of_every_type(site, start):
    async def take(n: int, f: float, u: UUID, c: Colour, d: date, p: str) -> list[Any]:
        return [n, f, u, c, d, p]

    front = start(taking(site, take, method="get", path="/{n}/{f}/{u}/{c}/{d}/{p:path}"))
    uuid = "12345678-1234-5678-1234-567812345678"
    given = {"n": -1, "f": 1.5, "u": uuid, "c": "red", "d": "2026-03-31", "p": "a/b c/ü%2F"}
    assert front.call("take", given) == list(given.values())
    inputs = front.inputs("take")
    assert inputs["properties"]["n"] == {"type": "integer"}
    assert inputs["properties"]["u"] == {"type": "string", "format": "uuid"}
    assert inputs["$defs"]["Colour"]["enum"] == ["red", "blue"]
    assert inputs["required"] == list("nfucdp")
    assert inputs["additionalProperties"] is False


def test_convertors_describe_path_parameters_that_annotations_do_not(site, start):
    async def take(n, f, u, request: Request):
        return [n, f, u, request.path_params["rest"]]

    front = start(taking(site, take, method="get", path="/{n:int}/{f:float}/{u:uuid}/{rest:path}"))
    uuid = "12345678-1234-5678-1234-567812345678"
    assert front.call("take", {"n": 1, "f": 1.5, "u": uuid, "rest": "a/b"}) == [1, 1.5, uuid, "a/b"]
    assert front.inputs("take")["properties"]["n"] == {"type": "integer", "minimum": 0}
    assert front.ask("take", {"n": -1, "f": 1.5, "u": uuid, "rest": "a"}).status_code == 422


def test_query_parameters_with_lists_aliases_constraints_and_defaults(site, start):
    async def take(
        a: Annotated[list[int], Query()],
        b: Annotated[str | None, Query(alias="b-b", min_length=2)] = None,
        c: bool = True,
        d: date | None = None,
        e: Annotated[list[str], Query()] = [],  # noqa: B006
        f: Colour = Colour.RED,
        g: Annotated[float, Query(gt=0, description="How much.")] = 1,
    ) -> list[Any]:
        return [a, b, c, d, e, f, g]

    front = start(taking(site, take, method="get"))
    assert front.call("take", {"a": [1, 2]}) == [[1, 2], None, True, None, [], "red", 1]
    given = {"a": [3], "b-b": "xx", "c": False, "d": "2026-03-31", "e": ["p", "q"], "f": "blue", "g": 2.5}
    assert front.call("take", given) == list(given.values())
    assert front.call("take", {"a": [1], "b-b": None, "d": None, "e": []})[1:3] == [None, True]
    assert front.inputs("take")["properties"]["g"] == {
        "type": "number",
        "exclusiveMinimum": 0,
        "description": "How much.",
        "default": 1,
    }
    refused: list[dict[str, Any]] = [
        {"a": [1], "b-b": "x"},
        {"a": ["x"]},
        {"a": [1], "f": "green"},
        {"a": [1], "z": 1},
        {},
    ]
    for wrong in refused:
        assert front.ask("take", wrong).status_code == 422


def test_a_value_that_a_query_cannot_carry_is_refused_and_does_not_become_the_default(site, start):
    async def take(
        a: Annotated[list[int], Query()],
        b: str | None,
        c: str | None = "x",
        d: Annotated[list[int], Query()] = [7],  # noqa: B006
    ) -> list[Any]:
        return [a, b, c, d]

    front = start(taking(site, take, method="get"))
    assert front.call("take", {"a": [1], "b": "y"}) == [[1], "y", "x", [7]]
    refused: list[dict[str, Any]] = [{"a": []}, {"b": None}, {"c": None}, {"d": []}]
    for wrong in refused:
        answer = front.ask("take", {"a": [1], "b": "y"} | wrong)
        assert [error["pointer"] for error in answer.json()["errors"]] == [f"/{next(iter(wrong))}"]


def test_parameter_models_for_query_headers_and_cookies(site, start):
    async def take(
        q: Annotated[Filter, Query()], h: Annotated[Headers, Header()], c: Annotated[Cookies, Cookie()]
    ) -> list[Any]:
        return [q, h, c]

    front = start(taking(site, take, method="get"))
    given = {"limit": 3, "tags": ["a", "b"], "order_by": "year", "x-token": "t", "save-data": True, "session": "s; x"}
    assert front.call("take", given) == [
        {"limit": 3, "tags": ["a", "b"], "order_by": "year"},
        {"x_token": "t", "save_data": True},
        {"session": "s; x"},
    ]
    assert front.ask("take", given | {"limit": 0}).json()["errors"][0]["pointer"] == "/limit"


def test_a_cookie_may_come_with_the_call_instead_of_its_input(site, start):
    async def take(session: Annotated[str, Cookie()]) -> str:
        return session

    front = start(taking(site, take, method="get"))
    assert front.ask("take", {}, cookie="session=mine").json() == "mine"
    assert front.call("take", {"session": "yours"}) == "yours"
    assert front.ask("take", {}).status_code == 422


def test_dependencies_bring_their_parameters_along(site, start):
    def page(limit: int = 10, offset: int = 0) -> dict[str, int]:
        return {"limit": limit, "offset": offset}

    class Wanted:
        def __init__(self, q: str, page: Annotated[dict[str, int], Depends(page)]) -> None:
            self.found = [q, page]

    def flag(flag: bool = False):
        yield flag

    async def take(wanted: Annotated[Wanted, Depends()], flag: Annotated[bool, Depends(flag)]) -> list[Any]:
        return [*wanted.found, flag]

    front = start(taking(site, take, method="get"))
    assert front.call("take", {"q": "a", "limit": 3, "flag": True}) == ["a", {"limit": 3, "offset": 0}, True]
    assert front.inputs("take")["required"] == ["q"]


def test_parameters_of_one_name_in_several_places_are_told_apart(site, start):
    async def take(
        q: int,
        in_query: Annotated[int, Query(alias="q")],
        in_header: Annotated[int, Header(alias="q")],
        in_cookie: Annotated[int, Cookie(alias="q")],
        query_q: int,
        book: Book,
    ) -> list[Any]:
        return [q, in_query, in_header, in_cookie, query_q, book.title]

    front = start(taking(site, take, path="/{q}"))
    names = list(front.inputs("take")["properties"])
    assert names[0] == "q"
    assert len(set(names)) == 7
    given = dict(zip(names, [1, 2, 3, 4, 5], strict=False)) | {"title": "Emma"}
    assert sorted(front.call("take", given)[:5]) == [1, 2, 3, 4, 5]
