"""`uniqueItems`: what is equal, and that to find it takes linear work whatever the items are."""

import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import given, settings, strategies as st
from starlette.applications import Starlette

from awp_publish import AgentPublisher
from awp_publish.schema import compile_schema
from tests.client import TestClient
from tests.guarded import invoke, make_shop
from tests.steps import LINEAR, counting

NUMBERS = [0.0, -0.0, 1.0, 1.5, 1e300, 2**53, 2.0**53, 2**53 + 1, 2**63, 2.0**63, 10**400]
ITEMS = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(NUMBERS) | st.text("a1'\",", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("a'", max_size=1), inner, max_size=2),
    max_leaves=5,
)
IS_UNIQUE = compile_schema({"uniqueItems": True}).is_valid


def are_equal(one: Any, other: Any) -> bool:
    """Compare as JSON Schema does (2020-12, section 4.2.2)."""
    if isinstance(one, bool) is not isinstance(other, bool):
        return False
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(are_equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(are_equal(one[name], other[name]) for name in one)
    return bool(one == other)


@settings(deadline=None)
@given(st.lists(ITEMS, max_size=5))
def test_items_are_unique_unless_two_are_equal(items):
    pairs = [(one, other) for at, one in enumerate(items) for other in items[:at]]
    assert IS_UNIQUE(items) is not any(are_equal(one, other) for one, other in pairs)


def test_values_that_need_not_be_unique_are_valid():
    assert IS_UNIQUE("aa")
    assert compile_schema({"uniqueItems": False}).is_valid([1, 1])


SHAPES: Final[dict[str, Callable[[int], object]]] = {
    "integers that are one as floating-point numbers": lambda number: 2**62 + number,
    "such integers in lists": lambda number: [2**62 + number],
    "such integers in objects": lambda number: {"a": {"b": 2**62 + number}},
    "fractions": lambda number: number + 0.5,
    "deep": lambda number: json.loads("[" * 50 + str(number) + "]" * 50),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_unique_items_take_linear_work_which_is_ours(shape):
    site = make_shop()

    @site.agent("take", inputs={"properties": {"items": {"type": "array", "uniqueItems": True}}})
    async def take(given: dict[str, Any]) -> int:
        """Take different items."""
        return len(given["items"])

    @site.agent("take_any", inputs={"properties": {"items": {"type": "array"}}})
    async def take_any(given: dict[str, Any]) -> int:
        """Take any items."""
        return len(given["items"])

    client = TestClient(AgentPublisher(Starlette(), site=site))
    assert invoke(client, "take", {"items": [1, 2, 1.0]}).json()["errors"] == [
        {"pointer": "/items", "detail": "must not contain the same item twice"}
    ]

    def steps_of(agent: str, count: int) -> int:
        items = [SHAPES[shape](number) for number in range(count)]
        with counting() as steps:
            assert invoke(client, agent, {"items": items}).json() == count
        return steps.count

    steps_of("take_any", 1)
    assert steps_of("take", 500) > steps_of("take_any", 500) + 500  # they are not compared in a call of C
    assert steps_of("take", 2000) <= LINEAR * steps_of("take", 500)
