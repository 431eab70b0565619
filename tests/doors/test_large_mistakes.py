"""Inputs with more wrong about them than can be told: a short answer at once, at every door, whatever the schema."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pydantic import BaseModel, Field
from starlette.applications import Starlette

from awp_publish import AgentPublisher, Site
from awp_publish.schema import UnusableSchema, compile_schema, describing
from tests.client import TestClient
from tests.examples import examples
from tests.installed import installed, is_installed
from tests.plugins.awp.awp_client import AwpClient
from tests.plugins.mcp.mcp_messages import message, post
from tests.steps import Steps, counting

DEEP: Final = 16
"""Levels that a union within itself is nested. Each further one makes whoever tries all alternatives twice as slow."""

SMALL: Final = 16_000
"""Bytes that an answer may have beyond what it repeats of the request."""


class Answered(NamedTuple):
    """What a door says of a call: its problem (None for a success), and how many bytes it says."""

    problem: Any
    size: int


def woa(client: TestClient, agent: str, given: object) -> Answered:
    answer = client.post(f"/agents/{agent}/invoke", json={"input": given})
    return Answered(None if answer.status_code == 200 else answer.json(), len(answer.content))


def plain(client: TestClient, agent: str, given: object) -> Answered:
    answer = client.post(f"/agents/actions/{agent}", json=given)
    if answer.status_code == 405:
        answer = client.request(answer.headers["allow"].partition(",")[0], f"/agents/actions/{agent}", json=given)
    return Answered(None if answer.status_code == 200 else answer.json(), len(answer.content))


def mcp(client: TestClient, agent: str, given: object) -> Answered:
    answer = post(client, message("tools/call", {"name": agent, "arguments": given}))
    return Answered(answer.json()["result"]["_meta"].get("awp/problem"), len(answer.content))


def a2a(client: TestClient, agent: str, given: object) -> Answered:
    """The task as it is kept. It repeats the message that was sent, which is no part of what is measured."""
    sent = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"data": {"skill": agent, "input": given}}]}
    headers = {"a2a-version": "1.0"}

    def ask(method: str, params: object) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return client.post("/a2a", json=body, headers=headers).json()["result"]

    task = ask("SendMessage", {"message": sent})["task"]
    if task["status"]["state"] == "TASK_STATE_COMPLETED":
        return Answered(None, 0)
    if task["status"]["state"] != "TASK_STATE_REJECTED":  # of which nothing is kept
        task = ask("GetTask", {"id": task["id"], "historyLength": 0})
    return Answered(task["status"]["message"]["parts"][1]["data"], len(json.dumps(task)))


def awp(client: TestClient, agent: str, given: object) -> Answered:
    with AwpClient.open(client) as caller:
        caller.ask("awp.hello")
        answer = caller.ask("skills.invoke", {"skill": agent, "args": given})
    return Answered(answer.get("error", {}).get("details"), len(json.dumps(answer)))


Door: TypeAlias = Callable[[TestClient, str, object], Answered]
DOORS: Final[Mapping[str, Door]] = {
    "plain": plain,
    **{door.__name__: door for door in (woa, mcp, a2a, awp) if is_installed(door.__name__)},
}


@pytest.fixture(params=DOORS)
def door(request) -> Door:
    return DOORS[request.param]


# --- Schemas that are hard to describe mistakes against ---


class And(BaseModel):
    all: "Filter"


class Or(BaseModel):
    all: "Filter"


Filter: TypeAlias = And | Or | int


class Leaf(BaseModel):
    kind: Literal["leaf"]
    copies: int


class Branch(BaseModel):
    kind: Literal["branch"]
    inner: "Tagged"


Tagged: TypeAlias = Annotated[Branch | Leaf, Field(discriminator="kind")]
And.model_rebuild()
Or.model_rebuild()
Branch.model_rebuild()


@pytest.fixture(autouse=True)
def _no_haste(monkeypatch):
    """What a slow machine does not describe in time is described too."""
    monkeypatch.setattr(describing, "DESCRIPTION_TIME", 60.0)


@pytest.fixture
def steps() -> Iterator[Steps]:
    """Count steps from before the application starts, whose thread is counted too."""
    with counting() as steps:
        yield steps


@pytest.fixture
def client(open_client) -> TestClient:
    site = Site("Shop", "Sells things.", url="https://shop.example", plugins=installed("mcp", "a2a", "awp"))

    @site.agent("search")
    async def search(where: Filter) -> str:
        """Search."""
        return "found"

    @site.agent("walk")
    async def walk(tree: Tagged) -> str:
        """Walk."""
        return "walked"

    @site.agent("count")
    async def count(numbers: dict[Literal["one", "two"], int]) -> str:
        """Count."""
        return "counted"

    @site.agent("listing")
    async def listing(numbers: list[int | None]) -> str:
        """List."""
        return "listed"

    if is_installed("limits"):

        @site.agent("limited", rate_limit="1/hour")
        async def limited(numbers: list[int]) -> str:
            """List a few times."""
            return "listed"

    return open_client(AgentPublisher(Starlette(), site=site))


def nested(levels: int, leaf: object) -> dict[str, object]:
    given = leaf
    for _ in range(levels):
        given = {"all": given}
    return {"where": given}


# --- What is told ---


def test_a_mistake_deep_in_a_union_of_itself_is_told_as_quickly_as_any(steps, client, door):
    def taken(levels: int) -> int:
        begun = steps.count
        assert door(client, "search", nested(levels, "no")).problem["code"] == "INVALID_INPUT"
        return steps.count - begun

    taken(1)  # a door does some of its work once
    assert taken(DEEP) < 3 * taken(DEEP // 2)


def test_an_input_with_too_many_readings_is_refused_unvalidated(client, door):
    problem = door(client, "search", nested(DEEP, 1)).problem
    assert (problem["code"], problem["status"]) == ("INVALID_INPUT", 422)
    assert "is too deeply nested" in problem["detail"]
    assert door(client, "search", nested(DEEP // 2, 1)).problem is None


@pytest.mark.parametrize("levels", [40, 190])
@pytest.mark.parametrize("leaf", ["no", 1])
def test_the_deepest_that_json_may_be_is_refused_at_once(client, levels, leaf):
    for name in DOORS.keys() - {"a2a"}:  # a message of A2A is not so deep
        assert DOORS[name](client, "search", nested(levels, leaf)).problem["code"] == "INVALID_INPUT"


def test_a_tag_tells_where_in_a_union_a_mistake_is(client, door):
    given: object = {"kind": "leaf", "copies": "many"}
    for _ in range(6):
        given = {"kind": "branch", "inner": given}
    errors = door(client, "walk", {"tree": given}).problem["errors"]
    assert errors == [{"pointer": "/tree" + "/inner" * 6 + "/copies", "detail": 'must be an integer, not "many"'}]


def test_unknown_members_are_counted_and_the_first_are_told(client, door):
    given: dict[str, object] = {f"member{number}": number for number in range(30_000)}
    given["numbers"] = []
    answered = door(client, "listing", given)
    errors = answered.problem["errors"]
    assert [error["pointer"] for error in errors] == [f"/member{number}" for number in range(20)]
    text = '/member0: is not a known member. Known members: "numbers" (and 29999 more; the first 20 are listed).'
    assert text in answered.problem["detail"]
    assert answered.size < SMALL


def test_a_name_of_any_length_is_shortened_where_it_is_told(client, door):
    for name in ("x" * 400_000, "/~" * 100_000, "é" * 100_000):
        answered = door(client, "listing", {"numbers": [], name: 1})
        assert (len(answered.problem["errors"]), answered.problem["code"]) == (1, "INVALID_INPUT")
        assert answered.size < SMALL


def test_a_value_of_any_length_is_shortened_where_it_is_told(client, door):
    for value in ("x" * 400_000, ["x" * 400_000], {"a": "x" * 400_000}, [[0]] * 10_000):
        answered = door(client, "count", {"numbers": {"one": value}})
        assert answered.problem["errors"][0]["pointer"] == "/numbers/one"
        assert answered.size < SMALL


@pytest.mark.parametrize(
    ("agent", "given", "pointer"),
    [
        ("count", {"numbers": {f"number{index}": index for index in range(10_000)}}, "/numbers/number0"),
        ("listing", {"numbers": ["one"] * 20_000}, "/numbers/0"),
        ("listing", {"numbers": [1] * 20_000 + ["one"]}, "/numbers/20000"),
    ],
    ids=["names", "items", "the last item"],
)
def test_many_mistakes_are_told_as_the_first_of_them(client, door, agent, given, pointer):
    answered = door(client, agent, given)
    assert answered.problem["errors"][0]["pointer"] == pointer
    assert len(answered.problem["errors"]) <= 20
    assert answered.size < SMALL


@pytest.mark.needs("limits")
def test_a_caller_over_the_limit_is_not_told_what_is_wrong_nor_is_it_looked_for(steps, client):
    given = {"numbers": [1] * 80_000 + ["one"]}

    def taken(code: str) -> int:
        begun = steps.count
        assert plain(client, "limited", given).problem["code"] == code
        return steps.count - begun

    described = taken("INVALID_INPUT")
    assert taken("RATE_LIMITED") < described / 2


# --- Whatever the schema ---

NAMES = st.sampled_from(["a", "b", "c~/ %", "$ref"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
REFERENCES = st.sampled_from(["#", "#/$defs/A", "#/$defs/B~1%20x", "#/properties/a", "#anchor", "urn:x:y#/items"])


def keywords(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    several, named = st.lists(inner, min_size=1, max_size=3), st.dictionaries(NAMES, inner, max_size=2)
    single = ("additionalProperties", "unevaluatedProperties", "propertyNames", "items", "contains", "unevaluatedItems")
    plain: dict[str, st.SearchStrategy[Any]] = {
        "type": st.sampled_from(["object", "array", "string", "integer", ["null", "object"]]),
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "(?=a)"]), inner, max_size=2),
        "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, unique=True, max_size=2), max_size=2),
        "required": st.lists(NAMES, unique=True, max_size=2),
        "const": VALUES,
        "enum": st.lists(VALUES, min_size=1, max_size=2),
        "minLength": st.integers(0, 3),
        "pattern": st.sampled_from(["^a", "(?!x)"]),
        "uniqueItems": st.booleans(),
        "$ref": REFERENCES,
        "$dynamicRef": st.just("#anchor"),
        "$id": st.sampled_from(["urn:x:y", "sub"]),
        "$anchor": st.just("anchor"),
    }
    plain |= dict.fromkeys((*single, "not", "if", "then", "else"), inner)
    plain |= dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), several)
    plain |= dict.fromkeys(("properties", "dependentSchemas"), named)
    return st.fixed_dictionaries({}, optional=plain)


SCHEMAS = st.recursive(st.booleans() | st.just({}), keywords, max_leaves=8)


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(keywords(SCHEMAS), st.dictionaries(st.sampled_from(["A", "B/ x"]), SCHEMAS), st.lists(VALUES, min_size=4))
def test_every_invalid_value_is_described_for_every_schema(schema, definitions, values):
    try:
        validator = compile_schema({**schema, "$defs": definitions})
    except UnusableSchema:
        return
    for value in values:
        if not validator.is_valid(value):
            violations, more = validator.describe(value)
            assert 0 < len(violations) <= 20
            assert more >= 0
