"""What schemas mark as secret stays with who said it: nothing of it is stored, logged or said again."""

from typing import Any

import pytest
from pydantic import BaseModel, Field, SecretStr
from starlette.applications import Starlette

from awp_publish import AgentPublisher
from awp_publish.problems import DeclarationError
from tests.client import TestClient
from tests.guarded import make_shop

SECRET = "hunter2-and-more"


class SignIn(BaseModel):
    name: str
    password: SecretStr


class Key(BaseModel):
    id: int
    token: str = Field(json_schema_extra={"readOnce": True})


GIVEN = {"name": "ann", "password": SECRET}


@pytest.mark.needs("jobs")
def test_a_background_action_can_give_nothing_only_once(open_client):
    site = make_shop()

    @site.agent("make_key", execution="async")
    async def make_key() -> Key:
        """Make a key."""
        return Key(id=1, token=SECRET)

    with pytest.raises(DeclarationError, match="readOnce"):
        open_client(AgentPublisher(Starlette(), site=site))


# --- Where a mark may stand ---

PASSWORD = {"type": "string", "format": "password"}
MARKED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a member": ({"properties": {"a": PASSWORD}}, {"a": SECRET, "b": 1}),
    "write-only": ({"properties": {"a": {"writeOnly": True}}}, {"a": {"b": SECRET}}),
    "optional": ({"properties": {"a": {"anyOf": [PASSWORD, {"type": "null"}]}}}, {"a": SECRET}),
    "one alternative": ({"properties": {"a": {"oneOf": [PASSWORD, {"type": "integer"}]}}}, {"a": SECRET}),
    "a reference": ({"properties": {"a": {"$ref": "#/$defs/p"}}, "$defs": {"p": PASSWORD}}, {"a": SECRET}),
    "an anchor": (
        {"properties": {"a": {"$ref": "#pass"}}, "$defs": {"p": {**PASSWORD, "$anchor": "pass"}}},
        {"a": SECRET},
    ),
    "items": ({"properties": {"a": {"type": "array", "items": PASSWORD}}}, {"a": [SECRET, SECRET]}),
    "the second item": ({"properties": {"a": {"prefixItems": [{}, PASSWORD]}}}, {"a": [1, SECRET]}),
    "all other members": ({"additionalProperties": PASSWORD, "properties": {"b": {}}}, {"a": SECRET, "b": 1}),
    "names of a pattern": ({"patternProperties": {"^a": PASSWORD}}, {"ab": SECRET, "b": 1}),
    "a condition": ({"if": {"required": ["b"]}, "then": {"properties": {"a": PASSWORD}}}, {"a": SECRET, "b": 1}),
    "within itself": (
        {
            "properties": {"node": {"$ref": "#/$defs/n"}},
            "$defs": {"n": {"properties": {"next": {"$ref": "#/$defs/n"}, "a": PASSWORD}}},
        },
        {"node": {"next": {"next": {"a": SECRET}}, "b": 1}},
    ),
}


@pytest.mark.parametrize("where", MARKED)
def test_a_mark_hides_a_value_wherever_it_stands(where):
    schema, given = MARKED[where]
    facts: list[Any] = []
    site = make_shop(log_inputs=True)
    site.on_call(facts.append)

    @site.agent("take", inputs={"type": "object", **schema})
    async def take(given: dict[str, Any]) -> bool:
        """Take."""
        return SECRET in str(given)

    client = TestClient(AgentPublisher(Starlette(), site=site))
    assert client.post("/agents/actions/take", json=given).json() is True
    [noted] = facts
    assert SECRET not in str(noted)
    assert "(hidden)" in str(noted["input"])
    assert ("b" in given) == ("b" in noted["input"])


class Account(BaseModel):
    login: SignIn
    others: list[SignIn] = []
    by_name: dict[str, SignIn] = {}


MISPLACED: dict[str, Any] = {
    "where it belongs": {"pins": {"a": SECRET}, "codes": [SECRET], "account": {"login": GIVEN, "others": [GIVEN]}},
    "in models in a table": {"account": {"login": GIVEN, "by_name": {"a": GIVEN}}},
    "in place of a table": {"pins": SECRET},
    "in place of a list": {"codes": SECRET},
    "a list in place of a table": {"pins": [SECRET]},
    "a table in place of a list": {"codes": {"a": SECRET}},
    "in place of a model": {"account": SECRET},
    "in place of a model in it": {"account": {"login": SECRET, "others": SECRET, "by_name": [SECRET]}},
    "in a member of another name": {"pin": SECRET},
    "in a member of another name of a model": {"account": {"login": {"name": "ann", "pasword": SECRET}}},
    "as the name of a member": {"names": {SECRET: 1}},
}


@pytest.mark.parametrize("where", MISPLACED)
def test_a_secret_is_not_logged_wherever_it_was_sent(where, caplog):
    facts: list[Any] = []
    site = make_shop(log_inputs=True)
    site.on_call(facts.append)

    @site.agent("take")
    async def take(
        pins: dict[str, SecretStr] = {},  # noqa: B006
        codes: list[SecretStr] = [],  # noqa: B006
        account: Account | None = None,
        names: dict[SecretStr, int] = {},  # noqa: B006
        copies: int = 1,
    ) -> int:
        """Take."""
        return copies

    client = TestClient(AgentPublisher(Starlette(), site=site))
    given = {"copies": 7, **MISPLACED[where]}
    with caplog.at_level("DEBUG", "awp_publish"):
        client.post("/agents/actions/take", json=given)
        client.post("/agents/actions/take?copies=7", json=MISPLACED[where])
    assert [fact["input"]["copies"] for fact in facts] == [7, 7]
    assert SECRET not in f"{facts}{caplog.text}"
