"""FastAPI handlers: what they take is published as FastAPI knows it, and arrives as if it were sent directly."""

import base64
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Generic, Literal, TypeVar
from uuid import UUID

import pytest
from fastapi import Body, Cookie, Depends, FastAPI, File, Form, Header, Query, Request, UploadFile
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, RootModel
from typing_extensions import TypedDict


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Book(BaseModel):
    title: str
    pages: int = 1


class ClosedBook(BaseModel):
    model_config = ConfigDict(extra="forbid")
    title: str


class OpenBook(BaseModel):
    model_config = ConfigDict(extra="allow")
    title: str


class Renamed(BaseModel):
    first: str = Field(alias="firstName")
    last: str = Field(validation_alias="lastName")
    middle: str = Field("", validation_alias=AliasChoices("middleName", "middle_name"))


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    good: bool


class Tree(BaseModel):
    name: str
    children: list["Tree"] = []


Item = TypeVar("Item")


class Page(BaseModel, Generic[Item]):
    items: list[Item]
    next: int | None = None


class Shelf(BaseModel):
    pages: Page[Book]
    trees: dict[str, Tree] = {}


@dataclass
class Point:
    x: int
    y: int = 0


class Move(TypedDict):
    to: int


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


def taking(site, handler, *, method: str = "post", path: str = "/x", **options: Any) -> FastAPI:
    app = FastAPI()
    handler.__doc__ = "Take it."
    getattr(app, method)(path, **options)(site.action("take")(handler))
    return app


# --- Path, query, headers, cookies ---


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
    for wrong in ({"a": [1], "b-b": "x"}, {"a": ["x"]}, {"a": [1], "f": "green"}, {"a": [1], "z": 1}, {}):
        assert front.ask("take", wrong).status_code == 422


def test_what_a_query_cannot_carry_is_refused_instead_of_becoming_the_default(site, start):
    async def take(
        a: Annotated[list[int], Query()],
        b: str | None,
        c: str | None = "x",
        d: Annotated[list[int], Query()] = [7],  # noqa: B006
    ) -> list[Any]:
        return [a, b, c, d]

    front = start(taking(site, take, method="get"))
    assert front.call("take", {"a": [1], "b": "y"}) == [[1], "y", "x", [7]]
    for wrong in ({"a": []}, {"b": None}, {"c": None}, {"d": []}):
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
    answer = front.client.post("/agents/take/invoke", json={"input": {}}, headers={"cookie": "session=mine"})
    assert answer.json() == "mine"
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


# --- JSON bodies ---


async def one_model(book: Book):
    return book


async def two_bodies(book: Book, other: ClosedBook):
    return [book, other]


async def embedded(book: Annotated[Book, Body(embed=True)]):
    return book


async def single_values(n: Annotated[int, Body()], m: Annotated[str, Body()] = "m"):
    return [n, m]


async def a_list(books: list[Book]):
    return books


async def a_union(pet: Cat | Dog):
    return pet


async def a_discriminated_union(pet: Annotated[Cat | Dog, Field(discriminator="kind")]):
    return pet


async def a_dictionary(counts: dict[str, int]):
    return counts


async def a_dataclass(point: Point):
    return point


async def a_typed_dictionary(move: Move):
    return move


async def an_optional_model(book: Book | None = None):
    return book


async def a_model_with_a_default(book: Book = Book(title="Emma")):  # noqa: B008
    return book


async def a_closed_model(book: ClosedBook):
    return book


async def an_open_model(book: OpenBook):
    return book


async def renamed_fields(name: Renamed):
    return [name.first, name.last, name.middle]


async def a_recursive_model(tree: Tree) -> Tree:
    return tree


async def a_generic_model(page: Page[Book]):
    return page


async def nested_models(shelf: Shelf):
    return shelf


async def a_root_model(numbers: RootModel[list[int]]):
    return numbers


async def one_value(n: Annotated[int, Body()]):
    return n


async def anything(value: Annotated[Any, Body()]):
    return value


async def text(value: Annotated[bytes, Body(media_type="text/plain")]):
    return value.decode()


EMMA = {"title": "Emma", "pages": 1}
CAT = {"kind": "cat", "lives": 9}
TREE = {"name": "a", "children": [{"name": "b", "children": []}]}


@pytest.mark.parametrize(
    ("handler", "given", "arrives"),
    [
        (one_model, {"title": "Emma"}, EMMA),
        (two_bodies, {"book": {"title": "Emma"}, "other": {"title": "x"}}, [EMMA, {"title": "x"}]),
        (embedded, {"book": {"title": "Emma"}}, EMMA),
        (single_values, {"n": 1}, [1, "m"]),
        (a_list, {"body": [{"title": "Emma"}]}, [EMMA]),
        (a_union, {"body": CAT}, CAT),
        (a_discriminated_union, {"body": {"kind": "dog", "good": True}}, {"kind": "dog", "good": True}),
        (a_dictionary, {"body": {"a": 1}}, {"a": 1}),
        (a_dataclass, {"x": 1}, {"x": 1, "y": 0}),
        (a_typed_dictionary, {"to": 1}, {"to": 1}),
        (an_optional_model, {}, None),
        (an_optional_model, {"body": None}, None),
        (an_optional_model, {"body": {"title": "Emma"}}, EMMA),
        (a_model_with_a_default, {}, EMMA),
        (a_model_with_a_default, {"body": {"title": "x"}}, {"title": "x", "pages": 1}),
        (a_closed_model, {"title": "x"}, {"title": "x"}),
        (an_open_model, {"title": "x", "more": [1]}, {"title": "x", "more": [1]}),
        (renamed_fields, {"firstName": "a", "lastName": "b"}, ["a", "b", ""]),
        (renamed_fields, {"firstName": "a", "lastName": "b", "middleName": "c"}, ["a", "b", "c"]),
        (renamed_fields, {"firstName": "a", "lastName": "b", "middle_name": "c"}, ["a", "b", "c"]),
        (a_recursive_model, TREE, TREE),
        (a_generic_model, {"items": [{"title": "Emma"}]}, {"items": [EMMA], "next": None}),
        (
            nested_models,
            {"pages": {"items": []}, "trees": {"x": TREE}},
            {"pages": {"items": [], "next": None}, "trees": {"x": TREE}},
        ),
        (a_root_model, {"body": [1, 2]}, [1, 2]),
        (one_value, {"body": 3}, 3),
        (anything, {"body": {"a": [None]}}, {"a": [None]}),
        (text, {"body": "grüß"}, "grüß"),
    ],
)
def test_bodies_of_every_kind_arrive(site, start, handler, given, arrives):
    assert start(taking(site, handler)).call("take", given) == arrives


@pytest.mark.parametrize(
    ("handler", "wrong", "pointer"),
    [
        (one_model, {"pages": 1}, "/title"),
        (one_model, {"title": "Emma", "pages": "many"}, "/pages"),
        (two_bodies, {"book": {"title": "x"}, "other": {"title": "x", "more": 1}}, "/other/more"),
        (a_list, {"body": [{"title": 1}]}, "/body/0/title"),
        (a_dictionary, {"body": {"a": "b"}}, "/body/a"),
        (a_closed_model, {"title": "x", "more": 1}, "/more"),
        (a_recursive_model, {"name": "a", "children": [{"children": []}]}, "/children/0/name"),
    ],
)
def test_what_a_body_may_not_be_is_refused_by_the_published_schema(site, start, handler, wrong, pointer):
    answer = start(taking(site, handler)).ask("take", wrong)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)


@pytest.mark.parametrize("method", ["get", "post", "put", "patch", "delete"])
def test_every_method_may_have_a_body(site, start, method):
    front = start(taking(site, one_model, method=method))
    assert front.call("take", {"title": "Emma"}) == EMMA
    assert front.awas("take")["method"] == method.upper()


def test_a_recursive_model_keeps_its_definitions_and_has_its_root_written_out(site, start):
    inputs = start(taking(site, a_recursive_model)).inputs("take")
    assert (inputs["type"], list(inputs["properties"]), inputs["required"]) == (
        "object",
        ["name", "children"],
        ["name"],
    )
    (name,) = inputs["$defs"]
    assert inputs["properties"]["children"]["items"] == {"$ref": f"#/$defs/{name}"}
    assert inputs["$defs"][name]["properties"]["children"]["items"] == {"$ref": f"#/$defs/{name}"}


def test_a_model_that_is_written_out_leaves_no_definition_behind(site, start):
    front = start(taking(site, one_model))
    assert front.inputs("take") == {
        "type": "object",
        "properties": {"title": {"type": "string"}, "pages": {"type": "integer", "default": 1}},
        "required": ["title"],
    }


def test_a_body_member_named_like_a_path_parameter_keeps_the_body_whole(site, start):
    async def take(title: str, book: Book) -> list[Any]:
        return [title, book.title]

    front = start(taking(site, take, path="/{title}"))
    assert list(front.inputs("take")["properties"]) == ["title", "body"]
    assert front.call("take", {"title": "path", "body": {"title": "body"}}) == ["path", "body"]


def test_a_parameter_called_body_beside_a_whole_body(site, start):
    async def take(body: str, numbers: list[int]) -> list[Any]:
        return [body, numbers]

    front = start(taking(site, take, path="/{body}"))
    assert front.call("take", {"body": "path", "body_body": [1]}) == ["path", [1]]


def test_members_named_like_keywords_of_json_schema_are_members(site, start):
    class Odd(BaseModel):
        title: str
        properties: dict[str, int] = {}
        ref: Tree = Field(Tree(name="x"), alias="$ref")
        discriminator: str = "d"
        default: list[int] = Field([1], examples=[{"title": "kept"}])

    async def take(odd: Odd) -> dict[str, Any]:
        return odd.model_dump(by_alias=True)

    front = start(taking(site, take))
    given = {"title": "t", "properties": {"a": 1}, "$ref": TREE, "discriminator": "x", "default": [2]}
    assert front.call("take", given) == given
    assert front.inputs("take")["properties"]["default"]["examples"] == [{"title": "kept"}]


# --- Forms and files ---


class Contact(BaseModel):
    name: str
    tags: list[str] = []
    agree: bool = False


class ClosedContact(Contact):
    model_config = ConfigDict(extra="forbid")


async def form_fields(
    name: Annotated[str, Form()],
    n: Annotated[int | None, Form()] = None,
    tags: Annotated[list[str], Form()] = [],  # noqa: B006
):
    return [name, n, tags]


async def form_model(contact: Annotated[Contact, Form()]):
    return contact


async def closed_form_model(contact: Annotated[ClosedContact, Form()]):
    return contact


async def form_model_and_field(contact: Annotated[Contact, Form()], note: Annotated[str, Form()]):
    return [contact, note]


async def a_file(file: UploadFile, note: Annotated[str, Form()] = "n"):
    return [(await file.read()).decode(), note]


async def files(files: list[UploadFile]):
    return [(await file.read()).decode() for file in files]


async def optional_files(files: Annotated[list[bytes] | None, File()] = None):
    return files and [file.decode() for file in files]


async def bytes_of_a_file(file: Annotated[bytes, File()]):
    return file.decode()


async def an_optional_file(file: Annotated[bytes | None, File()] = None):
    return file and file.decode()


class Upload(BaseModel):
    note: str
    file: UploadFile


async def form_model_with_a_file(upload: Annotated[Upload, Form()]):
    return [upload.note, (await upload.file.read()).decode()]


FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
HELLO = base64.b64encode(b"hello").decode()
ADA = {"name": "Ada", "tags": ["x", "y"], "agree": True}


@pytest.mark.parametrize(
    ("handler", "encoding", "given", "arrives"),
    [
        (form_fields, FORM, {"name": "Ada", "n": 2, "tags": ["x", "y"]}, ["Ada", 2, ["x", "y"]]),
        (form_fields, FORM, {"name": "Ada & Eve=ü"}, ["Ada & Eve=ü", None, []]),
        (form_model, FORM, ADA, ADA),
        (closed_form_model, FORM, ADA, ADA),
        (form_model_and_field, FORM, {**ADA, "note": "n"}, [ADA, "n"]),
        (a_file, MULTIPART, {"file": HELLO, "note": "m"}, ["hello", "m"]),
        (files, MULTIPART, {"files": [HELLO, HELLO]}, ["hello", "hello"]),
        (optional_files, MULTIPART, {"files": [HELLO]}, ["hello"]),
        (optional_files, MULTIPART, {}, None),
        (bytes_of_a_file, MULTIPART, {"file": HELLO}, "hello"),
        (an_optional_file, MULTIPART, {"file": HELLO}, "hello"),
        (an_optional_file, MULTIPART, {"file": None}, None),
        (form_model_with_a_file, MULTIPART, {"note": "n", "file": HELLO}, ["n", "hello"]),
    ],
)
def test_forms_and_files_arrive(site, start, handler, encoding, given, arrives):
    front = start(taking(site, handler))
    assert front.call("take", given) == arrives
    assert front.agent_json("take")["x-encoding"] == encoding


def test_a_file_is_base64_in_the_published_schema_and_in_the_input(site, start):
    front = start(taking(site, a_file))
    assert front.inputs("take")["properties"]["file"] == {
        "type": "string",
        "contentMediaType": "application/octet-stream",
        "contentEncoding": "base64",
    }
    assert front.ask("take", {"file": "?!"}).json()["errors"] == [{"pointer": "/file", "detail": "must be base64"}]


def test_bytes_in_a_json_body_are_text_and_no_file(site, start):
    class Secret(BaseModel):
        key: bytes

    async def take(secret: Secret) -> str:
        return secret.key.decode()

    front = start(taking(site, take))
    assert front.call("take", {"key": "as it is"}) == "as it is"
    assert "contentEncoding" not in front.inputs("take")["properties"]["key"]


def test_a_closed_form_refuses_other_fields(site, start):
    answer = start(taking(site, closed_form_model)).ask("take", {"name": "Ada", "more": 1})
    assert answer.json()["errors"][0]["pointer"] == "/more"
