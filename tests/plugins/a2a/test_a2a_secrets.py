"""What schemas mark as secret stays with who said it: no task of A2A repeats or keeps it."""

import asyncio
from typing import Any

import orjson
import pytest
from a2a.types.a2a_pb2 import GetTaskRequest, Task
from google.protobuf.json_format import MessageToJson
from starlette.applications import Starlette

from awp_publish import AgentPublisher
from awp_publish.http.running import running
from awp_publish.stores.memory import MemoryStore
from tests.calls.test_secrets import GIVEN, SECRET, Key, SignIn
from tests.guarded import ANN, KEYS, known_callers, make_shop
from tests.plugins.a2a.a2a_client import Caller, make_request, open_caller, output, problem, state, stream

BOTH = pytest.mark.parametrize("headers", [{}, ANN], ids=["nobody", "ann"])


class Vault:
    def __init__(self) -> None:
        self.store = MemoryStore()
        site = make_shop(plugins=["a2a"], secret_keys=KEYS, store=self.store, authenticate=known_callers())

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


async def test_a_stream_does_not_repeat_a_password():
    async with open_caller(Vault().app, streaming=True) as caller:
        assert SECRET not in "".join(map(MessageToJson, await stream(caller, CALL)))


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


@BOTH
async def test_one_time_values_are_in_the_answer_and_not_in_its_task(headers):
    vault = Vault()
    async with open_caller(vault.app, headers=headers) as caller:
        task = await caller.call("make_key")
        assert output(task) == {"id": 1, "token": SECRET}
        assert '"(given once)"' in await get(caller, task)
    assert not vault.keeps(SECRET)


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
