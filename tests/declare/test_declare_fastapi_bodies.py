"""FastAPI handlers: JSON bodies of every kind."""

from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, TypeVar

import pytest
from awp_publish_openapi.closing import write_readable
from fastapi import Body
from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    WithJsonSchema,
    field_validator,
)
from typing_extensions import TypedDict

from awp_publish.schema import subschemas, write_schema
from tests.declare.handlers import taking


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
def test_the_published_schema_refuses_an_impossible_body(site, start, handler, wrong, pointer):
    answer = start(taking(site, handler)).ask("take", wrong)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)


@pytest.mark.parametrize("method", ["get", "post", "put", "patch", "delete"])
def test_every_method_may_have_a_body(site, start, method):
    front = start(taking(site, one_model, method=method))
    assert front.call("take", {"title": "Emma"}) == EMMA
    assert front.action("take").method == method.upper()


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
        "additionalProperties": False,
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


class Bookcase(BaseModel):
    name: Annotated[str, Field(min_length=1, description="Its name.")]
    books: list[Book] = []
    closed: dict[str, ClosedBook] = {}
    either: Cat | Dog | None = None
    told_apart: Annotated[Cat | Dog, Field(discriminator="kind")] | None = None
    pair: tuple[int, OpenBook] | None = None
    inner: "Bookcase | None" = None
    checked: Annotated[Book, AfterValidator(lambda book: book)] | None = None


class MadeByHand(BaseModel):
    title: str

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)


class SeenBefore(BaseModel):
    book: Book

    @field_validator("book", mode="before")
    @classmethod
    def read(cls, given: object) -> object:
        return given


class Described(BaseModel):
    model_config = ConfigDict(json_schema_extra={"properties": {"other": {}}})
    title: str


class OwnWords(BaseModel):
    part: Annotated[int, WithJsonSchema({"type": "object", "properties": {"whole": {}}})]


class FurtherWords(BaseModel):
    part: Annotated[object, Field(json_schema_extra={"allOf": [{"properties": {"x": {}}}], "writeOnly": True})]


class ByEitherName(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    title: str = Field(alias="t")


class OpenToNumbers(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int]
    title: str


@pytest.mark.parametrize(
    "model",
    [
        *(
            Book,
            ClosedBook,
            OpenBook,
            Renamed,
            Cat,
            Bookcase,
            MadeByHand,
            SeenBefore,
            Described,
            OwnWords,
            FurtherWords,
        ),
        *(ByEitherName, OpenToNumbers, RootModel[Book], RootModel[list[Book]]),
    ],
)
def test_a_model_that_drops_members_is_read_by_its_whole_schema(model):
    def objects(schema: object) -> dict[frozenset[str], bool]:
        found: dict[frozenset[str], bool] = {}
        for part in subschemas(schema):
            if isinstance(names := part.get("properties"), dict):
                is_closed = part.get("additionalProperties") is False
                found[frozenset(names)] = found.get(frozenset(names), True) and is_closed
        return found

    (read,), written = write_readable(model), write_schema(model)
    assert objects(read) == objects(written)
    assert (read.get("additionalProperties") is False) == (written.get("additionalProperties") is False)
