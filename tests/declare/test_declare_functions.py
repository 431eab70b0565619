"""Plain functions: signatures of every kind, and functions that no agent could call."""

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, NoReturn, Optional
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel, field_validator
from typing_extensions import TypedDict

from awp_publish import Refused


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Book(BaseModel):
    title: str
    pages: int = Field(1, alias="pageCount")


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    day: date
    colour: Colour


class Careful(BaseModel):
    word: str

    @field_validator("word")
    @classmethod
    def known(cls, word: str) -> str:
        if word != "please":
            raise ValueError("say please")
        return word


@dataclass(slots=True)
class Point:
    x: int
    y: int = 0


class Move(TypedDict, total=False):
    to: int


class Size(NamedTuple):
    width: int
    height: int = 1


class Unwritable:
    """No JSON Schema knows it."""


# --- Inputs ---


async def every_kind(a: int, b: str = "b", *, c: float | None = None) -> list[Any]:
    return [a, b, c]


async def scalars(
    at: datetime, on: date, u: UUID, colour: Colour, word: Literal["x", "y"] = "x", price: Decimal = Decimal("1.5")
) -> list[Any]:
    assert isinstance(at, datetime)
    assert isinstance(u, UUID)
    assert isinstance(colour, Colour)
    return [at, on, u, colour, word, price]


async def containers(
    s: set[int],
    t: tuple[int, str],
    q: Sequence[int] = (1,),
    d: dict[str, list[int]] = {},  # noqa: B006
) -> list[Any]:
    return [type(s).__name__, t, list(q), d]


async def one_model(book: Book) -> Book:
    return book


async def a_model_and_more(book: Book, n: int) -> list[Any]:
    return [book.pages, n]


async def one_dataclass(point: Point) -> Point:
    return point


async def one_typed_dictionary(move: Move) -> Move:
    return move


async def several_of_the_standard_library(point: Point, move: Move, size: Size, x: int = 4) -> list[Any]:
    return [point, move, size, x]


async def an_optional_dataclass(point: Point | None = None) -> Point | None:
    return point


async def an_optional_model(book: Optional[Book] = None) -> Any:  # noqa: UP045
    return book and book.title


async def a_wrong_default(book: Book = None) -> Any:  # type: ignore[assignment]
    return book


async def a_root_model(numbers: RootModel[list[int]]) -> Any:
    return numbers


async def a_strict_model(day: Strict) -> Any:
    return day


async def a_field(a: Annotated[int, Field(ge=1, description="How many.", alias="how-many")], b: int = Field(2, le=9)):
    return [a, b]


async def names_that_pydantic_keeps_for_itself(
    model_config: int, copy: int = 1, _hidden: int = 2, schema: str = "s", model_dump: int = 3, self: int = 4
) -> list[Any]:
    return [model_config, copy, _hidden, schema, model_dump, self]


async def a_mutable_default(a: list[int] = []) -> list[int]:  # noqa: B006
    a.append(1)
    return a


async def anything(a: Any, b: object = None) -> list[Any]:
    return [a, b]


async def nothing() -> None:
    return None


UUID_TEXT = "12345678-1234-5678-1234-567812345678"


@pytest.mark.parametrize(
    ("function", "given", "answer"),
    [
        (every_kind, {"a": 1}, [1, "b", None]),
        (every_kind, {"a": 1, "b": "x", "c": 2.5}, [1, "x", 2.5]),
        (every_kind, {"a": 1.0, "c": None}, [1, "b", None]),
        (
            scalars,
            {"at": "2026-03-31T12:00:00Z", "on": "2026-03-31", "u": UUID_TEXT, "colour": "red"},
            ["2026-03-31T12:00:00Z", "2026-03-31", UUID_TEXT, "red", "x", "1.5"],
        ),
        (containers, {"s": [1, 2], "t": [1, "a"]}, ["set", [1, "a"], [1], {}]),
        (one_model, {"title": "Emma", "pageCount": 3}, {"title": "Emma", "pageCount": 3}),
        (a_model_and_more, {"book": {"title": "Emma"}, "n": 2}, [1, 2]),
        (one_dataclass, {"x": 1}, {"x": 1, "y": 0}),
        (one_typed_dictionary, {"to": 1}, {"to": 1}),
        (one_typed_dictionary, {}, {}),
        (
            several_of_the_standard_library,
            {"point": {"x": 1}, "move": {"to": 2}, "size": [3]},
            [{"x": 1, "y": 0}, {"to": 2}, [3, 1], 4],
        ),
        (an_optional_dataclass, {}, None),
        (an_optional_dataclass, {"point": {"x": 1, "y": 2}}, {"x": 1, "y": 2}),
        (an_optional_model, {}, None),
        (an_optional_model, {"book": {"title": "Emma"}}, "Emma"),
        (a_wrong_default, {}, None),
        (a_root_model, {"numbers": [1]}, [1]),
        (a_strict_model, {"day": "2026-03-31", "colour": "red"}, {"day": "2026-03-31", "colour": "red"}),
        (a_field, {"how-many": 1}, [1, 2]),
        (names_that_pydantic_keeps_for_itself, {"model_config": 0, "_hidden": 5}, [0, 1, 5, "s", 3, 4]),
        (a_mutable_default, {}, [1]),
        (anything, {"a": {"b": [None]}}, [{"b": [None]}, None]),
        (nothing, {}, None),
    ],
)
def test_signatures_of_every_kind(site, start, function, given, answer):
    site.agent("f", description="Do it.")(function)
    front = start()
    assert front.call("f", given) == answer
    assert front.call("f", given) == answer  # a second call finds the same defaults


@pytest.mark.parametrize(
    ("function", "given", "pointer"),
    [
        (every_kind, {"a": "1"}, "/a"),
        (every_kind, {}, "/a"),
        (every_kind, {"a": 1, "z": 1}, "/z"),
        (scalars, {"at": "noon", "on": "2026-03-31", "u": UUID_TEXT, "colour": "red"}, "/at"),
        (one_model, {"title": "Emma", "pageCount": "many"}, "/pageCount"),
        (a_strict_model, {"day": "never", "colour": "red"}, "/day"),
        (a_field, {"how-many": 0}, "/how-many"),
        (a_field, {"how-many": 1, "b": 10}, "/b"),
        (nothing, {"a": 1}, "/a"),
    ],
)
def test_a_wrong_input_is_refused_and_the_member_is_named(site, start, function, given, pointer):
    site.agent("f", description="Do it.")(function)
    answer = start().ask("f", given)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)
    assert answer.json()["detail"].startswith(f"{pointer}: ")


def test_errors_that_only_a_model_can_find_are_told_in_its_words(site, start):
    @site.agent("f")
    async def f(careful: Careful) -> None:
        """Do it."""

    answer = start().ask("f", {"word": "now"}).json()
    assert answer["errors"] == [{"pointer": "/word", "detail": "say please"}]


# --- What may be called ---


class Adder:
    def __init__(self, n: int) -> None:
        self.n = n

    def __call__(self, a: int) -> int:
        """Add."""
        return self.n + a

    async def add(self, a: int) -> int:
        """Add."""
        return self.n + a

    @staticmethod
    def static(a: int) -> int:
        """Add."""
        return 1 + a

    @classmethod
    def of_class(cls, a: int) -> int:
        """Add."""
        return 1 + a


class AsyncAdder:
    async def __call__(self, a: int) -> int:
        """Add."""
        return 1 + a


def plain(a: int) -> int:
    """Add."""
    return 1 + a


async def scaled(factor: int, a: int) -> int:
    """Add."""
    return factor + a


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


@pytest.mark.parametrize(
    "function",
    [
        plain,
        Adder(1),
        AsyncAdder(),
        Adder(1).add,
        Adder.static,
        Adder.of_class,
        functools.partial(scaled, 1),
        functools.partial(scaled, factor=1),
        wrapped(plain),
        wrapped(functools.partial(scaled, 1)),
    ],
)
def test_callables_of_every_kind(site, start, function):
    assert site.agent("f")(function) is function
    front = start()
    assert front.call("f", {"a": 2}) == 3
    assert front.action("f").description == "Add."


def test_synchronous_functions_run_in_threads(site, start):
    @site.agent("f")
    def f() -> bool:
        """Say whether this is the event loop's thread."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return threading.current_thread() is threading.main_thread()
        return True

    assert start().call("f", {}) is False


async def any_number(*values: int) -> None: ...


async def any_names(**values: int) -> None: ...


async def by_position(a: int, /) -> None: ...


async def no_annotation(a) -> None: ...


async def unwritable(a: Unwritable) -> None: ...


async def takes_a_callable(a: Callable[[int], int]) -> None: ...


async def unwritable_answer() -> Unwritable:
    return Unwritable()


async def no_answer() -> NoReturn:
    raise Refused("no")


def generating() -> Iterator[int]:
    yield 1


async def generating_slowly() -> AsyncIterator[int]:
    yield 1


REMEDY = "Declare inputs=... and outputs=... (a model or a JSON Schema)."
UNWRITABLE = "tests.declare.test_declare_functions.Unwritable has no JSON Schema."


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (any_number, "its parameter values cannot be given by name; agents send named inputs."),
        (any_names, "its parameter values cannot be given by name; agents send named inputs."),
        (by_position, "its parameter a cannot be given by name; agents send named inputs."),
        (no_annotation, f"its parameter a has no annotation. {REMEDY}"),
        (Adder.add, f"its parameter self has no annotation. {REMEDY}"),
        (unwritable, f"{UNWRITABLE} {REMEDY}"),
        (unwritable_answer, f"{UNWRITABLE} {REMEDY}"),
        (takes_a_callable, f"a value of the kind Callable has no JSON Schema. {REMEDY}"),
        (no_answer, f"typing.NoReturn has no JSON Schema. {REMEDY}"),
        (generating, "it is a generator; return one answer, a list for instance."),
        (generating_slowly, "it is a generator; return one answer, a list for instance."),
        (Book, "it is a class; declare a function."),
        (max, "its signature cannot be read; wrap it in a function of your own."),
    ],
)
def test_an_action_that_no_agent_could_call_is_refused_at_the_start(site, refusal, function, words):
    site.agent("f", description="Do it.")(function)
    assert refusal() == f'operation "default" of agent "f": {words}'


@pytest.mark.parametrize("option", [{"method": "GET"}, {"path": "/f"}, {"content_type": "application/json"}])
def test_options_of_routes_are_refused_for_a_function(site, refusal, option):
    site.agent("f", description="Do it.", **option)(plain)
    assert refusal().startswith(
        f'operation "default" of agent "f": {next(iter(option))}: no route leads to this function.'
    )


# --- Inputs and outputs declared beside the signature ---


async def members(title, pages=7) -> Any:
    return [title, pages]


async def whole(given) -> Any:
    return given if isinstance(given, dict) else [type(given).__name__, given]


RAW = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "pages": {"type": "integer"}},
    "required": ["title"],
}


@pytest.mark.parametrize(
    ("function", "inputs", "given", "answer"),
    [
        (members, RAW, {"title": "Emma"}, ["Emma", 7]),
        (members, RAW, {"title": "Emma", "pages": 3}, ["Emma", 3]),
        (members, Book, {"title": "Emma"}, ["Emma", 1]),
        (whole, RAW, {"title": "Emma"}, {"title": "Emma"}),
        (whole, Book, {"title": "Emma"}, ["Book", {"title": "Emma", "pageCount": 1}]),
        (whole, Point, {"x": 1}, ["Point", {"x": 1, "y": 0}]),
        (whole, dict[str, int], {"a": 1}, {"a": 1}),
    ],
)
def test_declared_inputs_are_given_by_name_or_as_a_whole(site, start, function, inputs, given, answer):
    site.agent("f", description="Do it.", inputs=inputs)(function)
    assert start().call("f", given) == answer


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        (
            {"type": "object", "properties": {"title": {}}},
            "its parameter title has no default, and the declared inputs",
        ),
        (Point, "its parameter title has no default, and the declared inputs do not require it."),
        (
            {"type": "object", "properties": {"title": {}, "author": {}}, "required": ["title"]},
            "the declared inputs have author, which is none of its parameters.",
        ),
    ],
)
def test_declared_inputs_must_fit_the_signature(site, refusal, inputs, words):
    site.agent("f", description="Do it.", inputs=inputs)(members)
    assert refusal().startswith(f'operation "default" of agent "f": {words}')


# --- Outputs ---


@pytest.mark.parametrize(
    ("annotation", "returned", "answer"),
    [
        (Book, Book(title="Emma", pageCount=2), {"title": "Emma", "pageCount": 2}),
        (Book, {"title": "Emma"}, {"title": "Emma", "pageCount": 1}),
        (list[Point], [Point(1)], [{"x": 1, "y": 0}]),
        (dict[str, Decimal], {"a": Decimal("1.5")}, {"a": "1.5"}),
        (None, None, None),
        (Any, float("nan"), None),
        (Any, {1: 2}, {"1": 2}),
        (Any, Point(1), {"x": 1, "y": 0}),
    ],
)
def test_answers_are_written_as_they_are_declared(site, start, annotation, returned, answer):
    async def f():
        return returned

    f.__annotations__["return"] = annotation
    site.agent("f", description="Do it.")(f)
    assert start().call("f", {}) == answer


@pytest.mark.parametrize(
    ("annotation", "returned"),
    [
        (int, "no"),
        (Book, {"titel": "Emma"}),
        (Book, Book.model_construct(title=3)),
        (None, 3),
        (float, float("inf")),
        (bytes, 3),
        (Any, object()),
    ],
)
def test_an_answer_that_is_not_what_was_declared_is_not_sent(site, start, annotation, returned):
    async def f():
        return returned

    f.__annotations__["return"] = annotation
    site.agent("f", description="Do it.")(f)
    answer = start().ask("f", {})
    assert (answer.status_code, answer.json()["code"]) == (500, "INVALID_OUTPUT")


def test_bytes_are_described_as_base64_of_the_media_type_that_is_declared(site, start):
    @site.agent("draw")
    async def draw() -> Annotated[bytes, Field(json_schema_extra={"contentMediaType": "image/png"})]:
        """Draw."""
        return b"\xff\x00"

    @site.agent("pack")
    async def pack() -> bytes:
        """Pack."""
        return b"text"

    front = start()
    assert front.outputs("draw") == {"type": "string", "contentMediaType": "image/png", "contentEncoding": "base64"}
    assert front.outputs("pack")["contentMediaType"] == "application/octet-stream"
    drawn, packed = front.ask("draw", {}), front.ask("pack", {})
    assert (drawn.headers["content-type"], drawn.content) == ("image/png", b"\xff\x00")
    assert (packed.headers["content-type"], packed.content) == ("application/octet-stream", b"text")


def test_declared_outputs_replace_the_annotation(site, start):
    @site.agent("f", outputs={"type": "array", "items": {"type": "integer"}})
    async def f() -> Unwritable:
        """Do it."""
        return [1]  # type: ignore[return-value]

    front = start()
    assert front.outputs("f") == {"type": "array", "items": {"type": "integer"}}
    assert front.call("f", {}) == [1]


def test_a_default_that_json_has_no_word_for_is_left_out_of_the_schema(site, start):
    @site.agent("f")
    async def f(a: Any = Unwritable) -> bool:
        """Do it."""
        return a is Unwritable

    front = start()
    assert front.inputs("f")["properties"] == {"a": {}}
    assert front.call("f", {}) is True
