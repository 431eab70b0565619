"""What the functions of `schema` make of what they are given: `tests/schema/transcripts`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Final, Generic, Literal, NamedTuple, TypeVar
from uuid import UUID

import pytest
from awp_publish_openapi.closing import close_like, drops_unknown, write_readable
from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    RootModel,
    WithJsonSchema,
    WrapValidator,
    create_model,
    model_validator,
)
from typing_extensions import TypedDict

from awp_publish.schema import (
    compile_schema,
    inline_definitions,
    media,
    member_names,
    options,
    parts_of,
    reading,
    redaction,
    subschemas,
    write_schema,
)
from awp_publish.schema.ambiguity import branches_recursively
from awp_publish.schema.dialects import check_dialect
from awp_publish.schema.embedding import embedded
from awp_publish.schema.large_numbers import in_doubles
from awp_publish.schema.pointers import local_pointer, part_at, pointer_to
from awp_publish.schema.pydantic_errors import read_errors
from awp_publish.schema.secrets import is_secret_name, mark_secrets
from awp_publish.schema.wording import is_among
from awp_publish.schema.writing import check_schema
from tests.function_transcripts import compare

TRANSCRIPTS = Path(__file__).parent / "transcripts"
T = TypeVar("T")


class Shade(Enum):
    DARK = "dark"


class Leaf(BaseModel):
    size: int = 1


class Twig(BaseModel):
    """A twig."""

    leaf: Leaf
    others: list[Leaf] = []


class Plain(BaseModel):
    """Every kind of value that is known without a schema."""

    a: Any
    b: bool
    c: float
    d: Decimal
    e: bytes
    f: date
    g: time
    h: datetime
    i: timedelta
    j: UUID
    m: Literal["x"]
    n: Shade
    o: set[int]
    p: frozenset[str]
    q: tuple[int, str]
    r: dict[str, Leaf]
    s: Leaf | Twig
    t: None = None


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    leaf: Leaf


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    leaf: Leaf


class Tree(BaseModel):
    branches: "list[Tree | Leaf]"
    by_name: dict[str, Leaf] | None = None


class Aliased(BaseModel):
    first: Annotated[int, Field(alias="erst")]
    second: int = 0


class TwoNames(BaseModel):
    first: Annotated[int, Field(validation_alias=AliasChoices("a", "b"))]


class ByName(BaseModel):
    model_config = ConfigDict(validate_by_name=True)
    first: Annotated[int, Field(alias="erst")]


class Extra(BaseModel):
    model_config = ConfigDict(json_schema_extra={"properties": {"more": {}}})
    leaf: Leaf


class Example(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"leaf": {}}]})
    leaf: Leaf


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]
    leaf: Leaf


class Wide(BaseModel):
    """Further kinds that are known without a schema."""

    model_config = ConfigDict(json_schema_extra={"example": {}, "examples": [], "x-size": 1})
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    after: Annotated[Leaf, AfterValidator(lambda leaf: leaf)]
    metres: Annotated[int, Field(json_schema_extra={"x-unit": "m"})]
    many: tuple[Leaf, ...] | dict[str, list[Twig]] = ()


class Checked(BaseModel):
    leaf: Leaf

    @model_validator(mode="after")
    def check(self) -> "Checked":
        return self


class Mixed(BaseModel):
    """Two shapes with the same member, of which one is open."""

    closed: Closed
    open: Open


class OpenForNumbers(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int]
    leaf: Leaf


class Writer(BaseModel):
    leaf: Leaf

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> Any:
        return {**handler(core), "x-own": True}


class Choosy(BaseModel):
    def __init__(self, **members: Any) -> None:
        super().__init__(**members)

    leaf: Leaf


class Numbers(RootModel[list[int]]):
    pass


class Crate(BaseModel, Generic[T]):
    load: T


@dataclass
class Point:
    x: int
    y: float = field(default=0.5, metadata={"unit": "m"})


class Row(TypedDict, total=False):
    name: str
    at: datetime


class Pair(NamedTuple):
    left: int
    right: str


def _same(value: Any) -> Any:
    return value


DESCRIBED: Final[list[Any]] = [{"additionalProperties": True}, {"x-list": []}, lambda schema: None]
TYPES: Final[Mapping[str, Any]] = {
    **{kind.__name__: kind for kind in (int, str, bytes, datetime, date, Twig, Leaf, Open, Closed, Tree)},
    **{
        kind.__name__: kind
        for kind in (Plain, Aliased, TwoNames, ByName, Extra, Example, Choosy, Numbers, Point, Row, Pair)
    },
    "Crate[Leaf]": Crate[Leaf],
    "list[Twig]": list[Twig],
    "Twig | None": Twig | None,
    "Leaf | Point": Leaf | Point,
    "Literal": Literal["a", 2],
    **{kind.__name__: kind for kind in (Wide, Checked, Mixed, OpenForNumbers, Writer)},
    **{
        f"described {number}": create_model("Described", __config__=ConfigDict(json_schema_extra=extra), leaf=Leaf)
        for number, extra in enumerate(DESCRIBED)
    },
    **{
        f"field {number}": create_model("Field", leaf=Leaf, own=Annotated[int, note])
        for number, note in enumerate([WithJsonSchema({"type": "number"}), Field(json_schema_extra={"properties": {}})])
    },
    "before": Annotated[Twig, BeforeValidator(_same)],
    "after": Annotated[Twig, AfterValidator(_same)],
    "wrap": Annotated[Twig, WrapValidator(lambda value, handler: handler(value))],
    "plain": Annotated[Twig, PlainValidator(_same)],
    "Callable": Callable[[int], int],
}


def _redact(make: Any) -> Callable[..., Any]:
    def redact(schema: Any, *values: Any) -> Any:
        copy = make(schema)
        return None if copy is None else [copy(value) for value in values]

    return redact


def _validate(schema: Any, *values: Any, asserts_formats: bool = False) -> list[list[str]]:
    validator = compile_schema(schema, asserts_formats)
    results = [[f"{wrong.pointer} {wrong.detail}".strip() for wrong in validator(value)] for value in values]
    assert [validator.is_valid(value) for value in values] == [not violations for violations in results]
    return results


def _read(name: str) -> Callable[..., Any]:
    return lambda facts, root=None: getattr(reading, name)(facts, facts if root is None else root)


def _names(values: Any) -> Any:
    return sorted(values) if isinstance(values, frozenset) else list(values)


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **{
        name: getattr(options, f"check_{name}")
        for name in ["url", "origin", "link", "path", "text", "audience", "id", "token", "duration"]
    },
    "json": options.plain_json,
    "surrogate": lambda: options.check_text("\ud800"),
    "listing": lambda *arguments: options.listing(*arguments),
    "validate": _validate,
    "formats": lambda *arguments: _validate(*arguments, asserts_formats=True),
    "schema": check_schema,
    "members": member_names,
    "parts": lambda root, *schemas: parts_of(root, schemas, {}),
    "subschemas": lambda root: list(subschemas(root)),
    "inline": inline_definitions,
    "dialect": check_dialect,
    "embedded": embedded,
    "doubles": in_doubles,
    "branches": branches_recursively,
    "secret": is_secret_name,
    "secrets": mark_secrets,
    "input": _redact(redaction.input_redactor),
    "answer": _redact(redaction.answer_redactor),
    "among": is_among,
    "at": part_at,
    "pointer": pointer_to,
    "local": local_pointer,
    "errors": lambda errors, given: [f"{wrong.pointer} {wrong.detail}" for wrong in read_errors(errors, given)],
    **{name: _read(name) for name in ("resolved", "object_facts", "options", "kinds")},
    "required": lambda facts: _names(reading.required_members(facts)),
    "encoding": reading.encoding_of,
    "references": reading.references,
    "follow": reading.follow,
    "deep": reading.depth_exceeds,
    "kind": reading.kind_of,
    "media": lambda text: media.media_type_of(text.encode("latin-1")),
    "is_json": media.is_json,
    "is_text": media.is_text,
    "decode": lambda text, kind: media.decode(text.encode("latin-1"), kind),
    "file": lambda text: media.file_name(text.encode("latin-1")),
    "declared": media.declared_type,
    "header": lambda *arguments: [
        (header := media.write_header(*arguments)[1]).decode(),
        media.read_header(header),
    ],
    "written": lambda name: write_schema(TYPES[name]),
    "serialized": lambda name: write_schema(TYPES[name], "serialization"),
    "readable": lambda name: (written := write_readable(TYPES[name])) and [*written, drops_unknown(*written)],
    "close": lambda schema, name: close_like(schema, *write_readable(TYPES[name])),
}


@pytest.mark.parametrize("name", sorted(path.stem for path in TRANSCRIPTS.glob("*.txt")))
def test_each_function_answers_as_reviewed(name, request):
    compare(TRANSCRIPTS / f"{name}.txt", FUNCTIONS, request)
