"""Any signature: what conforms to the published schema reaches the handler as a direct request would bring it."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import Enum
from keyword import iskeyword
from typing import Annotated, Any, Literal, NotRequired
from urllib.parse import quote, unquote
from uuid import UUID

import jsonschema
import pytest
from fastapi import Body, FastAPI, Header, Query
from hypothesis import given, settings, strategies as st
from pydantic import BaseModel, Field, TypeAdapter, create_model
from starlette.applications import Starlette
from typing_extensions import TypedDict

from awp_publish import AgentPublisher, Site
from tests.client import TestClient
from tests.declare.conftest import Front
from tests.examples import examples

pytestmark = pytest.mark.slow

LIMITED = settings(max_examples=examples(60), deadline=None)


class Colour(Enum):
    RED = "red"
    DARK_BLUE = "dark blue"


class Move(TypedDict):
    to: int
    along: NotRequired[str]


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass(frozen=True)
class Kind:
    """A type, and strategies for its values as JSON. What has no text travels in JSON bodies only."""

    annotation: Any
    values: st.SearchStrategy[Any]
    in_path: bool = False
    in_query: bool = True
    in_header: bool = False


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)
NUMBERS = st.integers(-(2**53), 2**53)
KINDS = [
    Kind(int, NUMBERS, in_path=True, in_header=True),
    Kind(Annotated[int, Field(ge=0, le=9)], st.integers(0, 9), in_path=True, in_header=True),
    Kind(float, st.floats(-1e15, 1e15), in_header=True),
    Kind(bool, st.booleans(), in_path=True, in_header=True),
    Kind(str, TEXT),
    Kind(
        str,
        # the test client decodes a path twice
        st.text("abc-_.~ äé%+&=?#", min_size=1, max_size=5).filter(lambda t: t not in (".", "..") and unquote(t) == t),
        in_path=True,
    ),
    Kind(str, st.text("abcXYZ019-_", min_size=1, max_size=5), in_path=True, in_header=True),
    Kind(date, st.dates().map(str), in_path=True, in_header=True),
    Kind(UUID, st.uuids().map(str), in_path=True, in_header=True),
    Kind(Colour, st.sampled_from([colour.value for colour in Colour]), in_path=True, in_header=True),
    Kind(Literal["a", "b"], st.sampled_from(["a", "b"]), in_path=True, in_header=True),
    Kind(list[int], st.lists(NUMBERS, min_size=1, max_size=3)),
    Kind(list[str], st.lists(TEXT, min_size=1, max_size=3)),
    Kind(int | str, NUMBERS | st.text("abc", min_size=1, max_size=3)),
    Kind(dict[str, int], st.dictionaries(TEXT, NUMBERS, max_size=2), in_query=False),
    Kind(list[dict[str, bool]], st.lists(st.dictionaries(TEXT, st.booleans(), max_size=2), max_size=2), in_query=False),
    Kind(int | None, st.none() | NUMBERS, in_query=False),
    Kind(Move, st.fixed_dictionaries({"to": NUMBERS}, optional={"along": TEXT}), in_query=False),
    Kind(Point, st.fixed_dictionaries({"x": NUMBERS}, optional={"y": NUMBERS}), in_query=False),
    Kind(Any, st.recursive(st.none() | TEXT | NUMBERS, lambda inner: st.lists(inner, max_size=2)), in_query=False),
]
CARRIED = ("accept", "cookie", "host")  # headers of the call itself, which are never inputs
NAMES = st.from_regex(r"[a-z]{1,6}(_[a-z]{1,4})?", fullmatch=True).filter(
    lambda name: not iskeyword(name) and name not in CARRIED
)
MODEL_NAMES = NAMES.filter(lambda name: not hasattr(BaseModel, name) and not name.startswith("model_"))


@dataclass(frozen=True)
class Parameter:
    """One parameter of a generated handler. `omitted` inputs leave it to its default."""

    name: str
    kind: Kind
    location: Literal["path", "query", "header", "body"]
    value: Any
    is_optional: bool
    is_omitted: bool


@st.composite
def kinds_in(draw: st.DrawFn, location: str) -> Kind:
    fitting = [kind for kind in KINDS if location == "body" or getattr(kind, f"in_{location}")]
    kind = draw(st.sampled_from(fitting))
    return draw(models()) if location == "body" and draw(st.integers(0, 4)) == 0 else kind


@st.composite
def models(draw: st.DrawFn) -> Kind:
    """A model of some of the other kinds."""
    members = draw(st.dictionaries(MODEL_NAMES, st.sampled_from(KINDS), min_size=1, max_size=3))
    fields: dict[str, Any] = {name: (kind.annotation, ...) for name, kind in members.items()}
    model = create_model(draw(st.sampled_from(["Book", "Shelf", "Shop"])), **fields)
    return Kind(model, st.fixed_dictionaries({name: kind.values for name, kind in members.items()}), in_query=False)


@st.composite
def signatures(draw: st.DrawFn) -> list[Parameter]:
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    return [draw(parameters(name)) for name in names]


@st.composite
def parameters(draw: st.DrawFn, name: str) -> Parameter:
    location = draw(st.sampled_from(["path", "query", "header", "body"]))
    kind = draw(kinds_in(location))
    is_optional = location != "path" and draw(st.booleans())
    is_omitted = is_optional and draw(st.booleans())
    return Parameter(name, kind, location, draw(kind.values), is_optional, is_omitted)  # type: ignore[arg-type]


# --- A handler, and the two ways to it ---

_MARKS: Mapping[str, Any] = {"query": Query, "header": Header, "body": Body}


def handler_of(chosen: list[Parameter], seen: list[dict[str, Any]], marks: Mapping[str, Any]) -> Any:
    async def handler(**values: Any) -> None:
        """Note what came."""
        seen.append(values)

    annotated = {item.name: _annotation(item, marks) for item in chosen}
    ordered = [
        inspect.Parameter(
            item.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None if item.is_optional else inspect.Parameter.empty,
            annotation=annotated[item.name],
        )
        for item in chosen
    ]
    handler.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    handler.__annotations__ = annotated
    return handler


def _annotation(one: Parameter, marks: Mapping[str, Any]) -> Any:
    annotation = one.kind.annotation | None if one.is_optional else one.kind.annotation
    if one.location not in marks:
        return annotation
    options = {"embed": True} if one.location == "body" else {}
    return Annotated[annotation, marks[one.location](**options)]


def input_name(one: Parameter) -> str:
    return one.name.replace("_", "-") if one.location == "header" else one.name


def send_directly(client: TestClient, chosen: list[Parameter]) -> int:
    """The request that a programmer would write."""
    given = {where: [item for item in chosen if item.location == where and not item.is_omitted] for where in _MARKS}
    path = "".join("/" + quote(_text(item.value), safe="") for item in chosen if item.location == "path")
    return client.request(
        "POST",
        "/x" + path,
        params={item.name: _texts(item.value) for item in given["query"]},
        headers={input_name(item): _text(item.value) for item in given["header"]},
        json={item.name: item.value for item in given["body"]},
    ).status_code


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _texts(value: Any) -> Any:
    return [_text(item) for item in value] if isinstance(value, list) else _text(value)


def published(app: Any, site: Site) -> TestClient:
    return TestClient(AgentPublisher(app, site, check=False), base_url="https://shop.example")


def new_site() -> Site:
    return Site("Shop", "Sells things.", "https://shop.example")


@LIMITED
@given(signatures())
def test_a_route_sees_the_same_values_whichever_way_they_come(chosen):
    seen: list[dict[str, Any]] = []
    app, site = FastAPI(), new_site()
    path = "".join("/{" + item.name + "}" for item in chosen if item.location == "path")
    app.post("/x" + path)(site.action("x")(handler_of(chosen, seen, _MARKS)))
    given_input = {input_name(item): item.value for item in chosen if not item.is_omitted}
    with published(app, site) as client:
        front = Front(client, site)
        jsonschema.Draft202012Validator(front.inputs("x")).validate(given_input)
        assert send_directly(client, chosen) == 200
        assert front.call("x", given_input) is None
    directly, invoked = seen
    assert invoked == directly


@LIMITED
@given(signatures())
def test_a_function_sees_what_its_types_make_of_the_input(chosen):
    seen: list[dict[str, Any]] = []
    site = new_site()
    site.agent("x", description="Note what came.").operation("note")(handler_of(chosen, seen, {}))
    given_input = {item.name: item.value for item in chosen if not item.is_omitted}
    only = chosen[0]
    if len(chosen) == 1 and isinstance(only.value, dict) and not only.is_optional and is_model(only.kind.annotation):
        given_input = only.value  # a single model is the whole input
    with published(Starlette(), site) as client:
        front = Front(client, site)
        jsonschema.Draft202012Validator(front.inputs("x_note")).validate(given_input)
        assert front.call("x_note", given_input) is None
    expected = {
        item.name: None if item.is_omitted else TypeAdapter(_annotation(item, {})).validate_python(item.value)
        for item in chosen
    }
    assert seen == [expected]


def is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
