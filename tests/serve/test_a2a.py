"""The A2A door in front of the official client: each message becomes a task, over both bindings, in 1.0 and in 0.3."""

import orjson
import pytest
from starlette.applications import Starlette

from awp_publish import AgentPublisher, Site
from awp_publish.serve.reply import AsgiApp
from tests.serve.a2a_client import SPOKEN, open_caller, output, problem, state, stream, words
from tests.serve.guarded import make_shop

EVERYTHING = pytest.mark.parametrize("spoken", SPOKEN)


def make_bookshop(**options) -> Site:
    site = make_shop(doors=["a2a"], **options)

    @site.agent("find")
    async def find(title: str, copies: int = 1) -> dict[str, object]:
        """Find a book."""
        return {"title": title, "copies": copies, "kind": type(copies).__name__}

    @site.agent("add")
    async def add(numbers: list[int]) -> int:
        """Add numbers."""
        return sum(numbers)

    @site.agent("fail")
    async def fail() -> str:
        """Never succeed."""
        raise RuntimeError("a secret of the site")

    @site.agent("lie")
    async def lie() -> int:
        """Break the schema."""
        return "no number"  # type: ignore[return-value]

    return site


def publish(site: Site) -> AsgiApp:
    return AgentPublisher(Starlette(), site=site)


@EVERYTHING
async def test_a_data_part_calls_a_skill_and_its_output_is_an_artifact(spoken):
    async with open_caller(publish(make_bookshop()), spoken) as caller:
        task = await caller.call("find", {"title": "Emma", "copies": 2})
    assert state(task) == "completed"
    assert output(task) == {"title": "Emma", "copies": 2, "kind": "int"}
    assert orjson.loads(task.artifacts[0].parts[1].text) == output(task)
    assert [message.message_id for message in task.history] == ["m-1"]


@EVERYTHING
async def test_a_stream_tells_the_task_then_its_artifact_then_its_end(spoken):
    async with open_caller(publish(make_bookshop()), spoken, streaming=True) as caller:
        told = await stream(caller, {"skill": "add", "input": {"numbers": [1, 2]}})
    assert [answer.WhichOneof("payload") for answer in told] == ["task", "artifact_update", "status_update"]
    assert state(told[0].task) == "working"
    assert told[1].artifact_update.artifact.parts[1].text == "3"
    assert state(told[2].status_update) == "completed"


async def test_metadata_may_name_the_skill():
    async with open_caller(publish(make_bookshop())) as caller:
        task = await caller.send({"title": "Emma"}, metadata={"skill": "find"})
    assert output(task)["title"] == "Emma"


async def test_a_text_is_the_input_where_it_can_be_nothing_else():
    async with open_caller(publish(make_bookshop())) as caller:
        assert output(await caller.send(text="Emma"))["title"] == "Emma"
        assert output(await caller.send({"skill": "find"}, text="Emma"))["title"] == "Emma"


@EVERYTHING
async def test_a_message_that_names_no_skill_is_told_the_choices_and_may_name_one_then(spoken):
    async with open_caller(publish(make_bookshop()), spoken) as caller:
        asked = await caller.send({"skill": "fly", "input": {}})
        assert (state(asked), problem(asked)["code"]) == ("input_required", "UNKNOWN_OPERATION")
        assert [choice["skill"] for choice in problem(asked)["skills"]] == ["find", "add", "fail", "lie"]
        task = await caller.call("add", {"numbers": [1]}, task=asked)
    assert (task.id, task.context_id, state(task)) == (asked.id, asked.context_id, "completed")
    assert [message.role for message in task.history] == [1, 2, 1]


async def test_an_input_that_does_not_match_may_be_corrected_in_the_same_task():
    async with open_caller(publish(make_bookshop())) as caller:
        asked = await caller.call("find", {"title": 7})
        assert (state(asked), problem(asked)["errors"][0]["pointer"]) == ("input_required", "/title")
        task = await caller.send({"input": {"title": "Emma"}}, task=asked)
    assert output(task)["title"] == "Emma"


@EVERYTHING
async def test_failures_are_told_and_nothing_of_the_site_with_them(spoken):
    async with open_caller(publish(make_bookshop()), spoken) as caller:
        failed, lied = await caller.call("fail"), await caller.call("lie")
    assert (state(failed), problem(failed)["code"]) == ("failed", "HANDLER_FAILED")
    assert (state(lied), problem(lied)["code"]) == ("failed", "INVALID_OUTPUT")
    assert "secret" not in str(failed)
    assert problem(failed)["detail"] in words(failed)


@pytest.mark.parametrize("path", ["/a2a", "/a2a/"])
def test_the_exact_integers_of_a_request_reach_the_action(open_client, path):
    client = open_client(publish(make_bookshop()))
    part = {"data": {"skill": "add", "input": {"numbers": [9007199254740993, 1]}}}
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [part]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    answer = client.post(path, json=call, headers={"a2a-version": "1.0"}).json()
    assert answer["result"]["task"]["artifacts"][0]["parts"][1]["text"] == "9007199254740994"


def test_the_card_is_served_while_the_door_is_on(open_client):
    card = open_client(publish(make_bookshop())).get("/.well-known/agent-card.json")
    assert [skill["id"] for skill in card.json()["skills"]] == ["find", "add", "fail", "lie"]
    assert card.headers["etag"]
    assert card.headers["access-control-allow-origin"] == "*"
    assert open_client(publish(make_shop())).get("/.well-known/agent-card.json").status_code == 404
