"""What a caller is told of a mistake: what it must be, where, and what to do; the same through every door."""

import ipaddress
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Annotated, Any, Final, Literal, NamedTuple

import pytest
from fastapi import FastAPI, Form, HTTPException, Path
from fastapi.responses import JSONResponse
from pydantic import (
    AfterValidator,
    AnyUrl,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    EmailStr,
    Field,
    SecretStr,
    TypeAdapter,
    ValidationError,
    field_validator,
)
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from typing_extensions import TypedDict

from awp_publish import AgentPublisher, Site
from awp_publish.problems import DeclarationError
from awp_publish.schema import compile_schema, write_schema
from tests.client import TestClient
from tests.doors.test_large_mistakes import DOORS, Door
from tests.installed import installed
from tests.plugins.awp.awp_client import AwpClient
from tests.plugins.mcp.mcp_messages import message, post

SECRET: Final = "correct horse battery staple"


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: Annotated[int, Field(le=9)]


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str]


class Short(BaseModel):
    size: Literal["short"] = "short"
    lines: Annotated[int, Field(le=3)]


class Long(BaseModel):
    size: Literal["long"] = "long"
    chapters: int


class Parcel(BaseModel):
    weight: Annotated[float, Field(gt=0, le=20)]
    note: str = ""


class Letter(BaseModel):
    pages: int
    note: str = ""


File = Annotated[str, Field(json_schema_extra={"contentEncoding": "base64"})]
MONTHS: Final = [f"2026-{number:02}" for number in range(1, 31)]


class Wishes(BaseModel):
    species: list[Literal["cat", "dog", "rabbit"]] | None = None
    quantity: Annotated[int, Field(ge=1, le=20)] | None = None
    pet: Cat | Dog | None = None
    tagged: Annotated[Cat | Dog, Field(discriminator="kind")] | None = None
    text: Short | Long | None = None
    sent: Parcel | Letter | None = None
    when: date | Literal["today"] | None = None
    month: Annotated[str, Field(json_schema_extra={"enum": MONTHS})] | None = None
    title: Annotated[str, Field(min_length=1, max_length=5)] | None = None
    numbers: list[int] | list[str] | None = None
    scale: Annotated[float, Field(multiple_of=0.5)] | None = None


def site_of(**options: Any) -> Site:
    return Site("Shop", "Sells things.", url="https://shop.example", plugins=installed("mcp", "a2a", "awp"), **options)


@pytest.fixture(params=DOORS)
def door(request) -> Door:
    return DOORS[request.param]


@pytest.fixture
def wishing(open_client) -> TestClient:
    site = site_of()

    @site.agent("wish")
    async def wish(wishes: Wishes) -> str:
        """Take wishes."""
        return "granted"

    @site.agent("sign_in")
    async def sign_in(password: SecretStr | None = None, pins: list[SecretStr] | None = None) -> str:
        """Sign in."""
        return "signed in"

    return open_client(AgentPublisher(Starlette(), site=site))


ONE_OF_SPECIES: Final = 'must be one of "cat", "dog", "rabbit"'
TOLD: Final[tuple[tuple[dict[str, object], list[tuple[str, str]]], ...]] = (
    # An optional value is told as what it is when it is there.
    ({"species": ["cow"]}, [("/species/0", f'{ONE_OF_SPECIES}, not "cow"')]),
    ({"species": "cat"}, [("/species", 'must be an array, not "cat"')]),
    ({"quantity": 21}, [("/quantity", "must be at most 20")]),
    ({"quantity": 0}, [("/quantity", "must be at least 1")]),
    ({"quantity": "many"}, [("/quantity", 'must be an integer, not "many"')]),
    ({"quantity": 2.5}, [("/quantity", "must be an integer, not 2.5")]),
    ({"title": ""}, [("/title", "must not be empty")]),
    ({"title": "Middlemarch"}, [("/title", "must have at most 5 characters")]),
    ({"scale": 0.3}, [("/scale", "must be a multiple of 0.5")]),
    # A tag is followed, declared or not.
    ({"pet": {"kind": "cat", "lives": 10}}, [("/pet/lives", "must be at most 9")]),
    ({"pet": {"kind": "cow"}}, [("/pet/kind", 'must be one of "cat", "dog", not "cow"')]),
    ({"tagged": {"lives": 3}}, [("/tagged/kind", 'is required: one of "cat", "dog"')]),
    ({"tagged": {"kind": "dog", "tricks": [1]}}, [("/tagged/tricks/0", "must be a string, not 1")]),
    ({"text": {"size": "long", "chapters": "x"}}, [("/text/chapters", 'must be an integer, not "x"')]),
    # Without a tag the deepest match is.
    ({"text": {"lines": 4}}, [("/text/lines", "must be at most 3")]),
    ({"sent": {"weight": 21, "note": "Fragile."}}, [("/sent/weight", "must be at most 20")]),
    ({"sent": {"pages": "two"}}, [("/sent/pages", 'must be an integer, not "two"')]),
    ({"sent": {}}, [("/sent", 'must be an object with "weight" or an object with "pages"')]),
    ({"sent": "x"}, [("/sent", 'must be an object with "weight" or an object with "pages", not "x"')]),
    ({"numbers": ["one", 2, "three"]}, [("/numbers/1", "must be a string, not 2")]),
    ({"when": "now"}, [("/when", 'must be a date such as 2026-01-31 or "today", not "now"')]),
    # Names that are nearly right are asked for; else what there is is told, once.
    ({"quantiti": 2}, [("/quantiti", 'is not a known member. Did you mean "quantity"?')]),
)


def test_a_mistake_is_told_as_what_must_be_there(wishing, door):
    for given, expected in TOLD:
        errors = door(wishing, "wish", given).problem["errors"]
        assert [(error["pointer"], error["detail"]) for error in errors] == expected, given


def test_unknown_members_are_told_what_is_known_once(wishing, door):
    problem = door(wishing, "wish", {"xyz": 1, "uvw": 2}).problem
    first, second = problem["errors"]
    assert first["detail"].startswith('is not a known member. Known members: "species", "quantity", ')
    assert second["detail"] == "is not a known member"


def test_the_detail_of_a_problem_ends_as_a_sentence_does(wishing):
    told = DOORS["plain"](wishing, "wish", {"quantiti": 2}).problem["detail"]
    assert told == '/quantiti: is not a known member. Did you mean "quantity"?'
    assert DOORS["plain"](wishing, "wish", {"quantity": 21}).problem["detail"] == "/quantity: must be at most 20."


def test_the_nearest_of_more_than_twenty_values_are_named(wishing, door):
    (error,) = door(wishing, "wish", {"month": "2026-31"}).problem["errors"]
    words, values = error["detail"].split("such as ")
    assert words == "must be one of 30 values, "
    assert '"2026-30"' in values
    assert values.count("2026") == 5 + 1  # and what was sent


def test_an_over_long_value_is_told_by_its_length(wishing, door):
    (error,) = door(wishing, "wish", {"quantity": "x" * 500}).problem["errors"]
    assert error["detail"] == "must be an integer, not a string of 500 characters"


def test_the_value_of_a_password_is_never_told(wishing, door):
    for given in ({"password": 12345678}, {"pins": SECRET}, {"pins": [12345678]}, {"password": [SECRET]}):
        problem = door(wishing, "sign_in", given).problem
        assert problem["errors"]
        assert SECRET not in json.dumps(problem)
        assert "12345678" not in json.dumps(problem)


@pytest.mark.parametrize("secret", [{"format": "password"}, {"writeOnly": True}, {"$ref": "#/$defs/Secret"}])
def test_no_kind_of_mistake_tells_a_secret(secret):
    schema = {
        "properties": {
            "enumerated": {**secret, "enum": ["a", "b"]},
            "short": {**secret, "maxLength": 3},
            "shaped": {**secret, "pattern": "^[0-9]+$"},
            "inside": {"allOf": [secret, {"type": "integer"}]},
            "formatted": {"anyOf": [{"type": "null"}, {**secret, "type": "string", "const": "x"}]},
            "deep": {**secret, "type": "object", "properties": {"pin": {"type": "integer"}}},
        },
        "$defs": {"Secret": {"writeOnly": True}},
    }
    validator = compile_schema(schema, asserts_formats=True)
    given: dict[str, object] = dict.fromkeys(schema["properties"], SECRET)
    violations = validator({**given, "deep": {"pin": SECRET}})
    assert len(violations) == 6
    assert SECRET not in str(violations)


# --- Formats ---

FORMATS: Final[dict[str, tuple[Any, tuple[str, ...], tuple[str, ...]]]] = {
    "date-time": (
        datetime,
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00", "2026-01-31 12:00", "2026-01-31", "1700000000"),
        ("soon", "2026-13-01T00:00:00Z", ""),
    ),
    "date": (date, ("2026-01-31", "2026-01-31T00:00:00"), ("2026-1-31", "2026-02-30", "soon", "")),
    "time": (time, ("12:00:00Z", "12:00", "12:00:00", "12:00:00+02:00"), ("25:00", "noon")),
    "duration": (timedelta, ("P1D", "PT1H", "00:30", "3 days 04:05:06"), ("long", "P")),
    "uuid": (uuid.UUID, (str(uuid.UUID(int=1)), uuid.UUID(int=1).hex, uuid.UUID(int=1).urn), ("1", "no")),
    "uri": (AnyUrl, ("https://a.example/b", "mailto:a@b.example", "https://exämple.com/ü"), ("/b", "b", "http://a b")),
    "email": (EmailStr, ("ann@books.com", "ü@exämple.com"), ("ann", "a b@c.com", "@c.com")),
    "ipv4": (ipaddress.IPv4Address, ("192.0.2.1",), ("192.0.2", "::1")),
    "ipv6": (ipaddress.IPv6Address, ("::1", "fe80::1%eth0"), ("192.0.2.1", "1")),
}
"""By format: the type that pydantic writes it for, texts that are taken, and texts that are refused."""


def test_a_text_in_a_wrong_format_is_refused_and_none_that_pydantic_takes():
    for name, (kind, taken, refused) in FORMATS.items():
        schema = write_schema(kind)
        assert schema["format"] == name
        validator = compile_schema(schema, asserts_formats=True)
        for text in taken:
            assert TypeAdapter(kind).validate_python(text) is not None
            assert validator(text) == (), (name, text)
        for text in refused:
            with pytest.raises(ValidationError):
                TypeAdapter(kind).validate_python(text)
            (violation,) = validator(text)
            assert violation.detail.startswith("must "), (name, text)


def test_a_format_that_only_describes_refuses_nothing():
    for name in ("binary", "password", "json-string", "path", "regex", "base64url", "name-email", "color", "x-own"):
        validator = compile_schema({"type": "string", "format": name}, asserts_formats=True)
        assert validator("anything at (all") == ()


def test_formats_hold_wherever_a_schema_has_them_and_in_the_meta_schema_that_it_refers_to():
    dated = {"type": "string", "format": "date"}
    for schema, wrong in (
        ({"$defs": {"Day": dated}, "$ref": "#/$defs/Day"}, "soon"),
        ({"type": "object", "additionalProperties": {"items": dated}}, {"days": ["soon"]}),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, {"$id": "% no address"}),
        ({"type": "string", "contentEncoding": "base64"}, "%"),
    ):
        assert compile_schema(schema, asserts_formats=True)(wrong), schema
        assert not compile_schema(schema)(wrong), schema


def test_outputs_are_not_held_to_formats(open_client):
    site = site_of()

    @site.agent("tell", outputs={"type": "string", "format": "date"})
    async def tell() -> str:
        """Tell a date in words."""
        return "today"

    answer = open_client(AgentPublisher(Starlette(), site=site)).post("/agents/actions/tell")
    assert answer.json() == "today"


def test_a_format_is_held_before_a_person_is_asked_or_a_handler_runs(open_client, door):
    site, ran = site_of(secret_keys=["k" * 32]), list[date]()

    @site.agent("visit", confirm="Visit on {day}.")
    async def visit(
        day: date,
        file: Annotated[str, Field(json_schema_extra={"contentEncoding": "base64"})] = "",
        ticket: uuid.UUID | None = None,
    ) -> str:
        """Plan a visit."""
        ran.append(day)
        return "planned"

    client = open_client(AgentPublisher(Starlette(), site=site))
    problem = door(client, "visit", {"day": "soon", "file": "?!", "ticket": "seven"}).problem
    assert problem["code"] == "INVALID_INPUT"
    assert [(error["pointer"], error["detail"]) for error in problem["errors"]] == [
        ("/day", 'must be a date such as 2026-01-31, not "soon"'),
        ("/file", "must be base64"),
        ("/ticket", 'must be a UUID, not "seven"'),
    ]
    assert ran == []


def test_a_method_that_a_door_does_not_take_is_refused_in_words_but_to_head(open_client):
    site = site_of()

    @site.agent("tell")
    async def tell() -> str:
        """Tell something."""
        return "told"

    client = open_client(AgentPublisher(Starlette(), site=site))
    put, head = (client.request(method, "/agents/actions/tell") for method in ("PUT", "HEAD"))
    assert (put.status_code, put.json()["code"]) == (405, "METHOD_NOT_ALLOWED")
    assert (head.status_code, head.content) == (405, b"")


def test_examples_are_held_to_formats_at_the_start(open_client):
    site = site_of()

    @site.agent("visit", examples=[{"day": "soon"}])
    async def visit(day: date) -> str:
        """Plan a visit."""
        return "planned"

    words = r'"visit": examples.0: /day must be a date such as 2026-01-31, not "soon"\.$'
    with pytest.raises(DeclarationError, match=words):
        open_client(AgentPublisher(Starlette(), site=site))


@pytest.mark.parametrize("is_route", [True, False])
def test_the_applications_errors_of_a_union_concern_the_alternative_that_was_meant(open_client, door, is_route):
    class Lion(BaseModel):
        kind: Literal["lion"]
        cubs: int

        @field_validator("cubs")
        @classmethod
        def check(cls, cubs: int) -> int:
            if cubs > 5:
                raise ValueError("are too many")
            return cubs

    class Zoo(BaseModel):
        plain: list[Lion | Dog] = []
        tagged: Annotated[Lion | Dog, Field(discriminator="kind")] | None = None

    site, app = site_of(), FastAPI()

    async def keep(zoo: Zoo) -> str:
        """Keep animals."""
        return "kept"

    if is_route:
        app.post("/zoo")(site.action("keep")(keep))
    else:
        site.agent("keep")(keep)
    client, lion = open_client(AgentPublisher(app, site=site)), {"kind": "lion", "cubs": 6}
    for given, pointer in (({"plain": [lion]}, "/plain/0/cubs"), ({"tagged": lion}, "/tagged/cubs")):
        assert door(client, "keep", given).problem["errors"] == [{"pointer": pointer, "detail": "are too many"}]


def test_errors_of_the_handlers_own_types_point_at_the_input(open_client, door):
    class Even(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def check(cls, number: int) -> int:
            if number % 2:
                raise ValueError("must be even")
            return number

    class Odd(BaseModel):
        name: Literal["odd"]

    site = site_of()

    @site.agent("count")
    async def count(numbers: list[Even | Odd]) -> str:
        """Count."""
        return "counted"

    client = open_client(AgentPublisher(Starlette(), site=site))
    errors = door(client, "count", {"numbers": [{"number": 2}, {"number": 3}]}).problem["errors"]
    assert errors[0] == {"pointer": "/numbers/1/number", "detail": "must be even"}


# --- Names that nobody knows ---


@pytest.mark.needs("woa", "mcp", "a2a", "awp")
def test_an_unknown_agent_is_told_with_the_nearest(wishing):
    problem = wishing.post("/agents/sing_in/invoke", json={"input": {}}).json()
    assert problem["detail"] == 'This site has no agent "sing_in". Did you mean "sign_in"?'
    problem = wishing.post("/agents/zebra/invoke", json={"input": {}}).json()
    assert problem["detail"] == 'This site has no agent "zebra". Known agents: wish, sign_in.'
    problem = wishing.post("/agents/wish/invoke", json={"operation": "defualt", "input": {}}).json()
    expected = 'Agent "wish" has no operation "defualt". Did you mean "default"? Known operations: default.'
    assert problem["detail"] == expected

    error = post(wishing, message("tools/call", {"name": "sing_in", "arguments": {}})).json()["error"]
    assert error["message"] == 'This site has no tool "sing_in". Did you mean "sign_in"?'
    problem = DOORS["a2a"](wishing, "sing_in", {}).problem
    assert problem["detail"].startswith('There is no skill "sing_in". Did you mean "sign_in"? There are: ')
    problem = DOORS["awp"](wishing, "sing_in", {}).problem
    assert problem["detail"] == 'This site has no skill "sing_in". Did you mean "sign_in"?'


# --- What belongs beside an input ---


@pytest.mark.needs("idempotency")
@pytest.mark.parametrize(
    ("name", "place"),
    [
        pytest.param(name, place, marks=pytest.mark.needs(name))
        for name, place in (("woa", "beside input"), ("mcp", "_meta, as awp/"), ("a2a", "data part"), ("awp", ""))
    ],
)
def test_members_of_the_envelope_inside_the_input_are_told_where_they_belong(open_client, name, place):
    site = site_of(secret_keys=["k" * 32])

    @site.agent("pay", idempotency={"key_field": "payment_key"})
    async def pay(amount: int) -> str:
        """Pay."""
        return "paid"

    client = open_client(AgentPublisher(Starlette(), site=site))
    assert DOORS[name](client, "pay", {"amount": 3, "payment_key": "x"}).problem is None  # a key wherever it stands
    for member in ("idempotency_key", "confirmation", "receipts", "input", *(["agent"] if name == "woa" else [])):
        (error,) = DOORS[name](client, "pay", {"amount": 3, member: "x"}).problem["errors"]
        assert error["pointer"] == f"/{member}"
        assert error["detail"].startswith("is not an input: ")
        assert place in error["detail"] or member == "input"


@pytest.mark.needs("woa", "mcp", "a2a", "awp")
def test_the_input_of_a_skill_under_another_name_is_refused(wishing):
    with AwpClient.open(wishing) as caller:
        caller.ask("awp.hello")
        error = caller.ask("skills.invoke", {"skill": "wish", "input": {"quantity": 2}})["error"]
        assert "result" in caller.ask("skills.invoke", {"skill": "sign_in", "args": {}, "input": {}})  # paper, 4.3
    assert (error["code"], error["details"]["param"]) == ("INVALID_REQUEST", "args")
    assert "takes the input of a skill as args, not as input" in error["message"]

    sent = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"data": {"skill": "wish", "args": {"quantity": 2}}}]}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": sent}}
    text = wishing.post("/a2a", json=body, headers={"a2a-version": "1.0"}).text
    assert "carries the input of a skill in its member input, not in args" in text

    problem = wishing.post("/agents/wish/invoke", json={"args": {"quantity": 2}}).json()
    assert (problem["code"], problem["detail"]) == (
        "MISSING_INPUT",
        "The envelope has no member input: its args has to be called input.",
    )
    problem = wishing.post("/agents/actions/wish", json={"input": {"quantity": 2}}).json()
    told_it = "is not an input: send its members directly, in the query, a form or the body"
    assert problem["errors"] == [{"pointer": "/input", "detail": told_it}]

    for params in ({"name": "wish", "input": {"quantity": 2}}, {"name": "wish", "arguments": {}, "args": {}}):
        error = post(wishing, message("tools/call", params)).json()["error"]
        assert error["code"] == -32602
        assert error["message"].startswith("tools/call takes the input of a tool as params.arguments, not as params.")


# --- Inputs are as closed and as strict as what their routes take ---


class Item(BaseModel):
    book: str
    quantity: int = 1


class ByName(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    first_name: str = Field(alias="firstName")


class Shop(NamedTuple):
    client: TestClient
    inputs: Mapping[str, Any]


@pytest.fixture
def shop(open_client) -> Shop:
    site, app = site_of(), FastAPI()

    @app.post("/basket/{shelf}")
    @site.action("add_to_basket")
    async def add_to_basket(
        shelf: Annotated[str, Path(max_length=9)],
        book: Annotated[str, Form()],
        quantity: Annotated[int, Form(ge=1, le=20)] = 1,
        wrapping: Annotated[str, Form()] = "paper",
        note: Annotated[str | None, Form()] = None,
    ) -> list[object]:
        """Add a book."""
        return [shelf, book, quantity, wrapping, note]

    @app.post("/items")
    @site.action("add_item")
    async def add_item(item: Item) -> Item:
        """Add an item."""
        return item

    @app.post("/names")
    @site.action("add_name")
    async def add_name(name: ByName) -> str:
        """Add a name."""
        return name.first_name

    @app.get("/orders/{number:int}/{page:path}")
    @site.action("show_order")
    async def show_order(number: int, page: str, sort: str = "") -> str:
        """Show an order."""
        return f"{number} {page} {sort}"

    @app.get("/copies/{copy:uuid}/{mail}")
    @site.action("show_copy")
    async def show_copy(copy: uuid.UUID, mail: EmailStr) -> str:
        """Show a copy."""
        return f"{copy} {mail}"

    async def search(request: Request) -> Response:
        """Search."""
        return JSONResponse(dict(request.query_params))

    site.action("search", inputs=Item)(search)
    app.router.routes.append(Route("/search", search))
    client = open_client(AgentPublisher(app, site=site))
    return Shop(client, {action.id: action.inputs for action in site.catalog.actions})


def test_a_member_that_the_application_would_drop_is_refused(shop, door):
    for agent, given in (
        ("add_to_basket", {"shelf": "a", "book": "Emma", "qty": 3}),
        ("add_item", {"book": "Emma", "qty": 3}),
        ("search", {"book": "Emma", "qty": 3}),
        ("show_order", {"number": 1, "page": "a", "qty": 3}),
    ):
        assert shop.inputs[agent]["additionalProperties"] is False
        (error,) = door(shop.client, agent, given).problem["errors"]
        assert error["pointer"] == "/qty"


class Line(BaseModel):
    book: str
    quantity: int = 1


@dataclass
class Address:
    street: str


class Terms(TypedDict):
    days: int


class Gift(BaseModel):
    model_config = ConfigDict(extra="allow")
    note: str = ""


class Raw(BaseModel):
    amount: int = 0


def even(number: int) -> int:
    if number % 2:
        raise ValueError("must be even")
    return number


class Purchase(BaseModel):
    lines: list[Line] = []
    by_shelf: dict[str, Line] = {}
    address: Address | None = None
    terms: Terms | None = None
    gift: Gift | None = None
    parts: list["Purchase"] = []
    number: Annotated[int, AfterValidator(even)] | Annotated[float, AfterValidator(even)] | None = None
    raw: Annotated[Raw, BeforeValidator(lambda given: given)] | None = None


@pytest.fixture(params=["route", "beside others", "function"])
def purchasing(open_client, request) -> TestClient:
    """One action that takes a purchase: of a route, of a route with a second model, of an agent."""
    site, app = site_of(), FastAPI()
    if request.param == "function":

        @site.agent("buy")
        async def buy(purchase: Purchase) -> str:
            """Buy."""
            return "bought"

        @site.agent("sell")
        async def sell(purchase: Purchase, line: Line | None = None) -> str:
            """Sell."""
            return "sold"

    else:

        @app.post("/buy")
        @site.action("buy")
        async def buy_there(purchase: Purchase) -> str:
            """Buy."""
            return "bought"

        @app.post("/sell")
        @site.action("sell")
        async def sell_there(purchase: Purchase, line: Line | None = None) -> str:
            """Sell."""
            return "sold"

    return open_client(AgentPublisher(app, site=site))


def test_a_member_that_a_nested_object_would_drop_is_refused(purchasing, door):
    known = 'is not a known member. Did you mean "quantity"?'
    for given, pointer, detail in (
        ({"lines": [{"book": "Emma", "qty": 3}]}, "/lines/0/qty", known),
        ({"by_shelf": {"a": {"book": "Emma", "qty": 3}}}, "/by_shelf/a/qty", known),
        (
            {"address": {"street": "A", "strete": "B"}},
            "/address/strete",
            'is not a known member. Did you mean "street"?',
        ),
        ({"terms": {"days": 3, "months": 1}}, "/terms/months", 'is not a known member. Known members: "days"'),
        ({"parts": [{"lines": [{"book": "Emma", "qty": 3}]}]}, "/parts/0/lines/0/qty", known),
        # What the application's own functions refuse has its place too, and the alternative that was meant.
        ({"number": 3}, "/number", "must be even"),
    ):
        assert door(purchasing, "buy", given).problem["errors"] == [{"pointer": pointer, "detail": detail}]
        errors = door(purchasing, "sell", {"purchase": given}).problem["errors"]
        assert errors == [{"pointer": f"/purchase{pointer}", "detail": detail}]
    for open_to in ({"gift": {"note": "Hello", "ribbon": "red"}}, {"raw": {"amount": 3, "sum": 4}}):
        assert door(purchasing, "buy", open_to).problem is None


def test_a_model_that_reads_other_names_too_stays_open(shop):
    assert "additionalProperties" not in shop.inputs["add_name"]
    assert DOORS["plain"](shop.client, "add_name", {"firstName": "Ann"}).problem is None


def test_the_empty_text_that_a_form_takes_for_nothing_is_refused(shop, door):
    properties = shop.inputs["add_to_basket"]["properties"]
    assert properties["book"] == {"type": "string", "minLength": 1}
    assert properties["wrapping"] == {"type": "string", "default": "paper", "minLength": 1}
    assert "minLength" not in json.dumps(properties["note"])
    for member in ("book", "wrapping"):
        given = {"shelf": "a", "book": "Emma", member: ""}
        (error,) = door(shop.client, "add_to_basket", given).problem["errors"]
        assert error == {"pointer": f"/{member}", "detail": "must not be empty"}


def test_bounds_of_integers_are_integers_in_documents_and_messages(shop, door):
    quantity = shop.inputs["add_to_basket"]["properties"]["quantity"]
    assert json.dumps([quantity["minimum"], quantity["maximum"]]) == "[1, 20]"
    problem = door(shop.client, "add_to_basket", {"shelf": "a", "book": "Emma", "quantity": 30}).problem
    assert problem["detail"] == "/quantity: must be at most 20."


def test_path_parameters_are_published_as_strict_as_their_convertors(shop, door):
    assert shop.inputs["add_to_basket"]["properties"]["shelf"] == {
        "type": "string",
        "maxLength": 9,
        "minLength": 1,
        "pattern": r"^[^/\u0000]+$",
    }
    properties = shop.inputs["show_order"]["properties"]
    assert properties["number"] == {"type": "integer", "minimum": 0}
    assert properties["page"] == {"type": "string", "minLength": 1, "pattern": r"^[^\u0000]*$"}
    for given, pointer, detail in (
        ({"number": -1, "page": "a"}, "/number", "must be at least 0"),
        ({"number": 1, "page": ""}, "/page", "must not be empty"),
    ):
        (error,) = door(shop.client, "show_order", given).problem["errors"]
        assert (error["pointer"], error["detail"]) == (pointer, detail)
    # What a type reads and an address has not is refused as the document says.
    copy, properties = uuid.UUID(int=1), shop.inputs["show_copy"]["properties"]
    assert properties["mail"] == {"type": "string", "format": "email", "minLength": 1, "pattern": r"^[^/\u0000]+$"}
    assert door(shop.client, "show_copy", {"copy": copy.hex, "mail": "ann@shop.example"}).problem is None
    for sent, pointer in (
        ({"copy": copy.urn, "mail": "ann@shop.example"}, "/copy"),
        ({"copy": copy.hex, "mail": "ann/bob@shop.example"}, "/mail"),
    ):
        (error,) = door(shop.client, "show_copy", sent).problem["errors"]
        assert (error["pointer"], error["detail"].partition(" ^")[0]) == (pointer, "must match the pattern")
    (error,) = door(shop.client, "add_to_basket", {"shelf": "a/b", "book": "Emma"}).problem["errors"]
    assert (error["pointer"], error["detail"]) == ("/shelf", r'must match the pattern ^[^/\u0000]+$, not "a/b"')
    (error,) = door(shop.client, "add_to_basket", {"shelf": "a\0b", "book": "Emma"}).problem["errors"]
    assert (error["pointer"], error["detail"].partition(" ^")[0]) == ("/shelf", "must match the pattern")


# --- What to do, by status ---


@pytest.fixture
def refusing(open_client) -> TestClient:
    site = site_of()

    async def answer(request: Request) -> Response:
        """Answer with a status."""
        status, after = int(request.query_params["status"]), request.query_params.get("after")
        return JSONResponse({"hint": "Closed."}, status, {"retry-after": after} if after else None)

    @site.action("answer", inputs={"type": "object", "properties": {"status": {"type": "integer"}, "after": {}}})
    async def action(request: Request) -> Response:
        """Answer with a status."""
        return await answer(request)

    return open_client(AgentPublisher(Starlette(routes=[Route("/answer", action)]), site=site))


def test_the_recovery_depends_on_the_status(refusing, door):
    values = {}
    for status in (400, 401, 403, 404, 409, 410, 422, 429, 503, 501):
        problem = door(refusing, "answer", {"status": status}).problem
        assert (problem["status"], problem["response"]) == (status, {"hint": "Closed."})
        values[status] = problem["recovery"]
    assert len(set(values.values())) == len(values)
    assert "Sign in" in values[401]
    assert all("do not repeat the call" in values[status] for status in (403, 410, 501))
    assert "after a minute" in values[429]


def test_the_recovery_says_when_to_come_back(refusing, door):
    for status in (429, 503):
        problem = door(refusing, "answer", {"status": status, "after": "17"}).problem
        assert problem["recovery"].endswith("call again after 17 seconds.")


# --- Failures ---


@pytest.mark.parametrize("is_inside", [True, False], ids=["inside", "outermost"])
def test_a_chosen_failure_message_is_passed_on_and_an_exceptions_is_not(open_client, is_inside):
    site, app = site_of(errors={"STOCKTAKING": "Come back tomorrow."}), FastAPI()

    @app.get("/stock")
    @site.action("stock")
    async def stock(how: str) -> Response:
        """Tell the stock."""
        if how == "chosen":
            return JSONResponse({"code": "STOCKTAKING", "detail": "We count.", "until": "noon"}, 503)
        if how == "raised":
            raise HTTPException(500, {"message": "The till is broken.", "till": 3})
        if how == "text":
            return PlainTextResponse(SECRET, 503)
        raise RuntimeError(SECRET)

    @app.exception_handler(Exception)
    async def tell(request: Request, error: Exception) -> Response:
        return JSONResponse({"detail": str(error)}, 500)

    if is_inside:
        app.add_middleware(AgentPublisher, site=site)
    client = open_client(app if is_inside else AgentPublisher(app, site=site))

    def ask(how: str) -> Any:
        answer = client.get("/agents/actions/stock", params={"how": how})
        assert SECRET not in answer.text
        return answer.json()

    response = ask("chosen")
    assert (response["status"], response["code"], response["detail"]) == (503, "STOCKTAKING", "We count.")
    assert (response["response"]["until"], response["recovery"]) == ("noon", "Come back tomorrow.")
    response = ask("raised")
    assert (response["status"], response["code"], response["detail"]) == (500, "HANDLER_FAILED", "The till is broken.")
    assert response["response"]["detail"]["till"] == 3
    for how, status in (("text", 503), ("exception", 500)):
        response = ask(how)
        assert (response["status"], "response" in response) == (status, False)


def test_a_function_of_the_applications_refuses_as_its_routes_do(open_client, door):
    site, app = site_of(secret_keys=["k" * 32], errors={"SOLD_OUT": "Choose another book."}), FastAPI()

    def refuse(status: int) -> None:
        raise HTTPException(status, {"code": "SOLD_OUT", "message": "None left."}, {"Retry-After": "9"})

    async def ask(given: dict[str, Any]) -> str:
        refuse(given["status"])
        return "Order."

    @app.get("/look")
    @site.action("look")
    async def look(status: int) -> str:
        """Look."""
        refuse(status)
        return "found"

    @site.agent("search")
    async def search(status: int) -> str:
        """Search."""
        refuse(status)
        return "found"

    @site.agent("order", confirm=ask)
    async def order(status: int) -> str:
        """Order."""
        return "ordered"

    client = open_client(AgentPublisher(app, site=site))
    for status in (409, 503):
        results = [door(client, agent, {"status": status}).problem for agent in ("look", "search", "order")]
        for problem in results:
            assert (problem["status"], problem["code"], problem["detail"]) == (status, "SOLD_OUT", "None left.")
            assert problem["recovery"] == "Choose another book."
            assert problem["response"] == {"detail": {"code": "SOLD_OUT", "message": "None left."}}
