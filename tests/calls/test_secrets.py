"""What schemas mark as secret stays with who said it: nothing of it is stored, logged or said again."""

import asyncio
from typing import Any

import orjson
import pytest
from a2a.types.a2a_pb2 import GetTaskRequest, Task
from google.protobuf.json_format import MessageToJson
from pydantic import BaseModel, Field, SecretStr
from starlette.applications import Starlette

from awp_publish import AgentPublisher
from awp_publish.http.running import running
from awp_publish.problems import DeclarationError
from awp_publish.stores.memory import MemoryStore
from tests.client import TestClient
from tests.guarded import ANN, KEYS, known_callers, make_shop
from tests.installed import installed
from tests.plugins.a2a.a2a_client import Caller, make_request, open_caller, output, problem, state, stream

SECRET = "hunter2-and-more"
BOTH = pytest.mark.parametrize("headers", [{}, ANN], ids=["nobody", "ann"])


class SignIn(BaseModel):
    name: str
    password: SecretStr


class Key(BaseModel):
    id: int
    token: str = Field(json_schema_extra={"readOnce": True})


class Vault:
    def __init__(self) -> None:
        self.store = MemoryStore()
        site = make_shop(plugins=installed("a2a"), secret_keys=KEYS, store=self.store, authenticate=known_callers())

        @site.agent("sign_in")
        async def sign_in(given: SignIn) -> str:
            """Sign in."""
            return given.password.get_secret_value()[::-1]

        @site.agent("sign_up", confirm=True)
        async def sign_up(given: SignIn) -> str:
            """Sign up."""
            return given.name

        @site.agent("make_key")
        async def make_key() -> Key:
            """Make a key."""
            return Key(id=1, token=SECRET)

        @site.agent("import_all", execution="async")
        async def import_all(given: SignIn) -> str:
            """Import everything."""
            return given.name

        self.app = AgentPublisher(Starlette(), site=site)

    def keeps(self, text: str) -> bool:
        return text.encode() in b"".join(value for value, _ in self.store._values.entries.values())


async def get(caller: Caller, task: Task) -> str:
    return MessageToJson(await caller.client.get_task(GetTaskRequest(id=task.id)))


GIVEN = {"name": "ann", "password": SECRET}
CALL = {"skill": "sign_in", "input": GIVEN}
MESSAGES: dict[str, dict[str, Any]] = {
    "a data part": {"data": CALL},
    "metadata and a data part": {"data": GIVEN, "metadata": {"skill": "sign_in"}},
    "metadata alone": {"text": "please", "metadata": CALL},
    "a text": {"text": orjson.dumps(CALL).decode()},
    "a text of the input": {"text": orjson.dumps(GIVEN).decode(), "metadata": {"skill": "sign_in"}},
    "a text beside the data": {"data": CALL, "text": f"my password is {SECRET}"},
    "another skill": {"data": {**CALL, "skill": "sing_in"}},
    "another skill in a text": {"text": orjson.dumps({**CALL, "skill": "sing_in"}).decode()},
    "a wrong input": {"data": {"skill": "sign_in", "input": {"nmae": "ann", "password": SECRET}}},
    "no input": {"data": {"skill": "sign_in", "input": SECRET}},
}


@pytest.mark.needs("a2a")
@BOTH
@pytest.mark.parametrize("said", MESSAGES)
async def test_a_password_is_not_repeated_and_not_kept_however_it_was_said(said, headers):
    vault = Vault()
    async with open_caller(vault.app, headers=headers) as caller:
        async for answer in caller.client.send_message(make_request(**MESSAGES[said])):
            task = answer.task
        works = said not in ("another skill", "another skill in a text", "a wrong input", "no input")
        assert state(task) == ("completed" if works else "input_required")
        assert not works or output(task) == SECRET[::-1]
        assert SECRET not in MessageToJson(task)
        assert task.history[0].message_id == "m-1"
        assert SECRET not in await get(caller, task)
    assert not vault.keeps(SECRET)


@pytest.mark.needs("a2a")
async def test_a_stream_does_not_repeat_a_password():
    async with open_caller(Vault().app, streaming=True) as caller:
        assert SECRET not in "".join(map(MessageToJson, await stream(caller, CALL)))


@pytest.mark.needs("a2a")
@BOTH
async def test_a_task_that_waits_keeps_no_password_and_is_told_it_again(headers):
    vault = Vault()
    async with open_caller(vault.app, headers=headers) as caller:
        asked = await caller.call("sign_up", GIVEN)
        assert not vault.keeps(SECRET)
        assert "send it again" in asked.status.message.parts[2].text
        done = await caller.send({"confirmation": problem(asked)["confirmation"]["token"], "input": GIVEN}, task=asked)
        assert (state(done), output(done)) == ("completed", "ann")
    assert not vault.keeps(SECRET)


@pytest.mark.needs("a2a")
@BOTH
async def test_what_is_given_once_is_in_the_answer_and_not_in_its_task(headers):
    vault = Vault()
    async with open_caller(vault.app, headers=headers) as caller:
        task = await caller.call("make_key")
        assert output(task) == {"id": 1, "token": SECRET}
        assert '"(given once)"' in await get(caller, task)
    assert not vault.keeps(SECRET)


@pytest.mark.needs("a2a", "jobs")
async def test_a_job_that_has_ended_keeps_no_input():
    vault = Vault()
    async with running(vault.app, {}), open_caller(vault.app) as caller:
        done = await caller.call("import_all", GIVEN)
        assert (state(done), output(done)) == ("completed", "ann")
        for _ in range(1000):
            if not vault.keeps(SECRET):
                break
            await asyncio.sleep(0.02)
    assert not vault.keeps(SECRET)


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
    assert client.post("/agents/take/invoke", json={"input": given}).json() is True
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
        client.post("/agents/take/invoke", json={"input": given})
        client.post("/agents/actions/take", json=given)
    assert [one["input"]["copies"] for one in facts] == [7, 7]
    assert SECRET not in f"{facts}{caplog.text}"
