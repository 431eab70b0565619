"""What callers of the A2A door can have kept: nothing for what is refused, and never more than a record's bytes."""

import asyncio
import logging
import math
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing

import orjson
import pytest
from a2a.client.errors import A2AClientError
from a2a.types.a2a_pb2 import GetTaskRequest, ListTasksRequest, Task
from a2a.utils.errors import A2AError, TaskNotFoundError
from google.protobuf.json_format import MessageToJson
from starlette.applications import Starlette

from awp_publish import AgentPublisher, Limits, Site
from awp_publish.http.running import running
from awp_publish.plugins.a2a.record import MAX_ANONYMOUS_BYTES, MAX_BYTES, MAX_MESSAGE_BYTES
from awp_publish.plugins.a2a.records import MAX_ANONYMOUS_TASKS
from awp_publish.stores import Add
from awp_publish.stores.memory import ENTRY_BYTES, MemoryStore
from awp_publish.stores.store import JOB
from tests.guarded import ANN, KEYS, Watched, known_callers, make_shop
from tests.plugins.a2a.a2a_client import (
    SPOKEN,
    Caller,
    open_caller,
    output,
    problem,
    state,
    stream,
    told_headers,
    words,
)

EVERYTHING = pytest.mark.parametrize("spoken", SPOKEN)
LARGE = "x" * 100_000
SECRET = "hunter2-hunter2"


class Shop:
    """A shop and its store in memory."""

    def __init__(self, **options) -> None:
        self.store = MemoryStore()
        self.watched = Watched(self.store)
        self.ran: list[str] = []
        options = {"store": self.watched, "secret_keys": KEYS, "authenticate": known_callers(), **options}
        self.site = self._declare(make_shop(plugins=["a2a"], **options))
        self.app = AgentPublisher(Starlette(), site=self.site)

    @property
    def kept(self) -> int:
        """Bytes of what is in the store, but for the counts of calls, which are written now and then."""
        counts = (entry for entry in self.store._values.entries.items() if entry[0].startswith("{traffic}"))
        return self.store.bytes_used - sum(ENTRY_BYTES + len(key) + len(value) for key, (value, _) in counts)

    def keys(self, prefix: str) -> list[str]:
        """Keys in the store that begin with `prefix`."""
        return [key for key in self.store._values.entries if key.startswith(prefix)]

    def _declare(self, site: Site) -> Site:
        @site.agent("echo")
        async def echo(text: str, times: int = 1) -> str:
            """Say it again."""
            self.ran.append("echo")
            return text * times

        @site.agent("limited", rate_limit="1/hour")
        async def limited(text: str = "") -> str:
            """Say it once."""
            return "once"

        @site.agent("mine", auth_required=True)
        async def mine(text: str = "") -> str:
            """What is mine."""
            self.ran.append(f"mine {len(text)}")
            return text[:10]

        @site.agent("buy", auth_required=True, scopes=["buy"])
        async def buy(text: str = "") -> str:
            """Buy."""
            return text

        @site.agent("pay", confirm="Pay {copies} times.")
        async def pay(text: str = "", copies: int = 1) -> int:
            """Pay."""
            self.ran.append(f"pay {len(text)}")
            return copies

        @site.agent("ship", execution="async", rate_limit="3/hour")
        async def ship(text: str = "", times: int = 1) -> str:
            """Ship."""
            self.ran.append("ship")
            return text * times

        return site


async def get(caller: Caller, task: Task) -> Task:
    return await caller.client.get_task(GetTaskRequest(id=task.id))


async def send_refused(caller: Caller, _: int) -> None:
    task = await caller.call("limited", {"text": LARGE})
    assert state(task) == "rejected"


async def send_unknown(caller: Caller, _: int) -> None:
    assert state(await caller.call("fly", {"text": LARGE})) == "input_required"


async def send_invalid(caller: Caller, _: int) -> None:
    assert state(await caller.call("echo", {"text": LARGE, "times": "many"})) == "input_required"


async def send_unauthorised(caller: Caller, _: int) -> None:
    assert state(await caller.call("mine", {"text": LARGE})) == "auth_required"


async def send_unconfirmed(caller: Caller, _: int) -> None:
    assert state(await caller.call("pay", {"text": LARGE})) == "input_required"


async def send_answered(caller: Caller, _: int) -> None:
    assert state(await caller.call("echo", {"text": LARGE})) == "completed"


async def send_files(caller: Caller, _: int) -> None:
    assert state(await caller.send(text=LARGE, metadata={"skill": "mine", "more": LARGE})) == "auth_required"


WAYS: list[Callable[[Caller, int], Awaitable[None]]] = [
    send_refused,
    send_unknown,
    send_invalid,
    send_unauthorised,
    send_unconfirmed,
    send_answered,
    send_files,
]


@EVERYTHING
async def test_large_messages_of_nobody_known_leave_next_to_nothing(spoken):
    shop = Shop(limits=Limits(max_body_bytes=4_000_000))
    async with open_caller(shop.app, spoken) as caller:
        await caller.call("limited")
        for send in WAYS:
            before = shop.kept
            for number in range(3):
                await send(caller, number)
            assert shop.kept < before + 3 * 2500, send


@pytest.mark.slow
async def test_the_file_of_a_site_does_not_grow_by_what_is_refused(tmp_path):
    path = tmp_path / "agents.db"
    shop = Shop(store=f"sqlite:///{path}")
    async with running(shop.app, {}), open_caller(shop.app) as caller:
        await caller.call("limited")
        for number in range(20):
            for send in WAYS[:-1]:
                await send(caller, number)
    with closing(sqlite3.connect(path)) as file:
        tables = [name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = [row for table in tables for row in file.execute(f'SELECT * FROM "{table}"')]
    assert sum(len(str(value)) for row in rows for value in row) < 6 * 20 * 5000
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 5_000_000


@EVERYTHING
async def test_a_final_refusal_is_not_kept(spoken):
    shop = Shop()
    async with open_caller(shop.app, spoken) as caller, open_caller(shop.app, spoken, streaming=True) as streaming:
        await caller.call("limited")
        before = shop.kept
        refused = await caller.call("limited")
        assert (state(refused), problem(refused)["code"]) == ("rejected", "RATE_LIMITED")
        answer = await stream(streaming, {"skill": "limited", "input": {}})
        assert state(answer[-1].status_update) == "rejected"
        for _ in range(5):
            rejected = await caller.call("ship", at_once=True)
        assert state(rejected) == "rejected"
        if spoken == "1.0 JSON-RPC":
            with pytest.raises(TaskNotFoundError):
                await get(caller, refused)
    assert len(shop.keys("a2a:task:")) == 1 + 3  # the first call, and the three jobs that were taken
    assert len(shop.keys(JOB)) == 3
    assert shop.kept - before < 3 * 2500


# --- What is kept ---


@EVERYTHING
@pytest.mark.parametrize("headers", [{}, ANN])
async def test_no_input_can_be_read_from_a_task_later(spoken, headers):
    shop = Shop()
    async with open_caller(shop.app, spoken, headers=headers) as caller:
        done = await caller.call("echo", {"text": SECRET, "times": 0})
        waits = await caller.call("pay", {"text": SECRET})
        wrong = await caller.call("echo", {"times": 0, "password": SECRET})
        assert "input_required" in (state(waits), state(wrong))
        for task in (done, waits, wrong):
            kept = await get(caller, task)
            assert (kept.id, state(kept)) == (task.id, state(task))
            assert kept.history[0].message_id == "m-1"
            assert kept.history[0].parts
            assert SECRET not in MessageToJson(kept)
        token = problem(waits)["confirmation"]["token"]
        if not headers:  # of nobody known, nothing of an input is kept
            assert "input" in words(waits)
            asked = await caller.send({"confirmation": token}, task=waits)
            assert (state(asked), problem(asked)["code"]) == ("input_required", "INVALID_INPUT")
        again = {} if headers else {"input": {"text": SECRET}}
        assert output(await caller.send({"confirmation": token, **again}, task=waits)) == 1
        paid = await get(caller, waits)
        assert SECRET not in MessageToJson(paid)
    assert shop.ran[-1] == f"pay {len(SECRET)}"
    assert SECRET.encode() not in b"".join(value for value, _ in shop.store._values.entries.values())


async def test_a_text_that_is_the_call_is_kept_no_more_than_a_data_part():
    shop = Shop()
    async with open_caller(shop.app, headers=ANN) as ann:
        done = await ann.send(text=orjson.dumps({"skill": "echo", "input": {"text": SECRET, "times": 0}}).decode())
        assert state(done) == "completed"
        assert SECRET not in MessageToJson(await get(ann, done))
        said = await ann.send(text=f"What of {SECRET}?", metadata={"skill": "echo"})
        assert SECRET in MessageToJson(await get(ann, said))


async def test_an_input_is_kept_once_while_its_task_waits():
    shop = Shop()
    async with open_caller(shop.app, headers=ANN) as ann:
        before = shop.kept
        await ann.call("pay", {"text": "x" * 50_000})
    assert 50_000 < shop.kept - before < 60_000


@pytest.mark.parametrize(("headers", "size"), [({}, 20_000), (ANN, 200_000)])
async def test_an_input_that_is_too_large_to_be_kept_is_sent_again_with_the_confirmation(headers, size):
    shop, given = Shop(), {"text": "x" * size, "copies": 3}
    async with open_caller(shop.app, headers=headers) as caller:
        asked = await caller.call("pay", given)
        assert "send it again" in words(asked)
        confirmation = problem(asked)["confirmation"]["token"]
        for forgetful in ({"confirmation": confirmation}, {}):
            refused = await caller.send(forgetful, task=asked)
            assert (state(refused), problem(refused)["code"]) == ("input_required", "INVALID_INPUT")
            assert "not stored" in problem(refused)["detail"]
        paid = await caller.send({"confirmation": confirmation, "input": given}, task=asked)
        assert output(paid) == 3
    assert shop.ran == [f"pay {size}"]


async def test_an_input_that_did_not_match_is_not_run_as_an_empty_one():
    shop = Shop()
    async with open_caller(shop.app, headers=ANN) as ann:
        asked = await ann.call("mine", {"text": 7})
        again = await ann.send({}, task=asked)
        assert (state(again), problem(again)["code"]) == ("input_required", "INVALID_INPUT")
        assert output(await ann.send({"input": {}}, task=asked)) == ""


@EVERYTHING
@pytest.mark.parametrize(("headers", "most"), [({}, MAX_ANONYMOUS_BYTES), (ANN, MAX_BYTES)])
async def test_an_answer_that_is_too_large_is_given_and_what_is_kept_says_so(spoken, headers, most):
    shop = Shop()
    async with open_caller(shop.app, spoken, headers=headers) as caller:
        before = shop.kept
        task = await caller.call("echo", {"text": "x", "times": most})
        assert output(task) == "x" * most
        kept = await get(caller, task)
        assert (state(kept), list(kept.artifacts)) == ("completed", [])
        assert "too many to be kept" in words(kept)
        small = await caller.call("echo", {"text": "x", "times": most // 4})
        assert len((await get(caller, small)).artifacts) == 1
    assert shop.kept - before < most


@EVERYTHING
async def test_an_answer_of_a_job_that_is_too_large_is_read_from_the_job(spoken):
    shop = Shop()
    async with running(shop.app, {}), open_caller(shop.app, spoken) as caller:
        task = await caller.call("ship", {"text": "x", "times": 50_000})
        for told in (task, await get(caller, task), await get(caller, task)):
            assert (state(told), output(told)) == ("completed", "x" * 50_000)


@pytest.mark.slow
@pytest.mark.parametrize(("headers", "most"), [({}, MAX_ANONYMOUS_BYTES), (ANN, MAX_BYTES)])
async def test_a_conversation_that_goes_on_and_on_stays_small(headers, most):
    shop = Shop()
    async with open_caller(shop.app, headers=headers) as caller:
        before = shop.kept
        task = await caller.call("pay")
        for _ in range(80):
            task = await caller.send(text="x" * 20_000, task=task)
            assert state(task) == "input_required"
        kept = await get(caller, task)
        assert 0 < len(kept.history) <= 50
        assert all(message.ByteSize() <= MAX_MESSAGE_BYTES for message in kept.history)
        assert kept.ByteSize() < most
    assert shop.kept - before < most + 1000


async def test_ids_that_callers_choose_are_short(open_client):
    client = open_client(Shop().app)
    for name in ("messageId", "contextId"):
        message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}], name: "x" * 256}
        call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
        assert client.post("/a2a", json=call, headers={"a2a-version": "1.0"}).json()["error"]["code"] == -32602


# --- How many ---


@pytest.mark.slow
async def test_an_address_that_has_too_many_tasks_is_told_when_to_come_again():
    shop = Shop()
    async with open_caller(shop.app) as caller:
        for _ in range(MAX_ANONYMOUS_TASKS // 100):
            await asyncio.gather(*(caller.call("echo", {"text": ""}) for _ in range(100)))
    before = shop.kept
    shop.ran.clear()
    for spoken in SPOKEN:
        async with open_caller(shop.app, spoken) as caller, open_caller(shop.app, spoken, streaming=True) as streaming:
            told = (await stream(streaming, {"skill": "echo", "input": {"text": "a"}}))[-1].task
            for refused in (await caller.call("pay"), await caller.call("ship"), await caller.call("fly"), told):
                assert (state(refused), problem(refused)["code"]) == ("rejected", "RATE_LIMITED")
                assert 0 < int(told_headers(refused)["retry-after"]) <= 3600
                assert problem(refused)["retry_after"] == int(told_headers(refused)["retry-after"])
            assert not shop.ran
            answered = await caller.call("echo", {"text": "answered"})  # and not kept
            assert (state(answered), output(answered)) == ("completed", "answered")
            assert state(await caller.call("mine")) == "auth_required"
            assert shop.kept - before < 1000
            shop.ran.clear()
    async with open_caller(shop.app, headers=ANN) as ann:
        assert state(await ann.call("pay")) == "input_required"


async def test_a_list_of_tasks_is_kept_for_as_long_as_any_task_in_it():
    now = [0.0]
    shop = Shop(store=MemoryStore(lambda: now[0]))
    async with (
        open_caller(shop.app, headers=ANN) as ann,
        open_caller(shop.app, headers=ANN, streaming=True) as streaming,
    ):
        task = await ann.call("mine")
        await stream(streaming, {"skill": "mine", "input": {}})
        now[0] += 3600
        listed = (await ann.client.list_tasks(ListTasksRequest())).tasks
    assert len(listed) == 2
    assert listed[-1].id == task.id


# --- Records that are damaged ---


@EVERYTHING
async def test_a_damaged_task_is_a_store_that_is_unavailable(spoken, caplog):
    shop = Shop()
    async with open_caller(shop.app, spoken, headers=ANN) as ann:
        task = await ann.call("pay")
        for damaged in (
            b"",
            b"\n",
            b"\xff\n",
            b"[]\n",
            b"{}\n",
            b'{"owner": 1, "skill": "", "input": {}, "job": ""}\n',
            b'{"owner": "ann", "skill": [], "input": {}, "job": ""}\n',
            b'{"owner": "ann", "skill": "", "input": [], "job": ""}\n',
            b'{"owner": "ann", "skill": "", "input": {}, "job": ""}\n\xff\xff\xff',
        ):
            shop.watched.told_instead = damaged
            with pytest.raises((A2AError, A2AClientError), match=r"damaged|503"):
                await get(ann, task)
            with pytest.raises((A2AError, A2AClientError), match=r"damaged|503"):
                await ann.send({}, task=task)
        shop.watched.told_instead = None
        assert state(await get(ann, task)) == "input_required"
    assert "Traceback" not in caplog.text


async def test_a_damaged_task_is_told_with_503_where_http_tells_it(open_client):
    shop = Shop()
    async with open_caller(shop.app, headers=ANN) as ann:
        task = await ann.call("pay")
    shop.watched.told_instead = b"\xff"
    answer = open_client(shop.app).get(f"/a2a/tasks/{task.id}", headers={**ANN, "a2a-version": "1.0"})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json()["error"]["details"][0]["metadata"]["code"] == "STORE_UNAVAILABLE"


async def test_a_damaged_list_or_task_hides_no_other_task():
    shop = Shop()
    async with open_caller(shop.app, headers=ANN) as ann:
        first, second = await ann.call("pay"), await ann.call("pay")
        key = f"a2a:task:{first.id}"
        values = shop.store._values.entries
        values[key] = (b"\xff", math.inf)
        assert [task.id for task in (await ann.client.list_tasks(ListTasksRequest())).tasks] == [second.id]
        [listed] = [key for key in values if key.startswith("a2a:tasks:")]
        for damaged in (b"\xff", b"{}", b"[1]"):
            values[listed] = (damaged, math.inf)
            assert not (await ann.client.list_tasks(ListTasksRequest())).tasks
        third = await ann.call("pay")
        assert [task.id for task in (await ann.client.list_tasks(ListTasksRequest())).tasks] == [third.id]


async def test_a_store_that_is_full_costs_no_answer(caplog):
    store = MemoryStore(most_bytes=20_000)
    shop = Shop(store=store)
    await store.run([Add("all", b"x" * 18_500, 60)])
    with caplog.at_level(logging.WARNING):
        async with open_caller(shop.app, headers=ANN) as ann:
            assert output(await ann.call("echo", {"text": "x" * 3000})) == "x" * 3000
    assert "is not stored" in caplog.text
