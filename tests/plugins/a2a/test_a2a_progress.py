"""Progress through the A2A door: a stream has what the handler reports, and the parts of what its route streams."""

import asyncio

from a2a.types.a2a_pb2 import StreamResponse
from fastapi import FastAPI
from google.protobuf.json_format import MessageToDict

from awp_publish import AgentPublisher, report_progress
from awp_publish.http.running import running
from tests.guarded import make_shop
from tests.plugins.a2a.a2a_client import open_caller, output, state, stream
from tests.plugins.a2a.test_a2a_tasks import EVERYTHING, noted
from tests.storyteller import make_storyteller


def texts(told: list[StreamResponse]) -> list[str]:
    """The words of all that says that the call is running."""
    updates = [item.status_update for item in told if item.HasField("status_update")]
    return [update.status.message.parts[0].text for update in updates if state(update) == "working"]


@EVERYTHING
async def test_a_stream_has_the_parts_of_a_text_as_its_route_sends_them(spoken):
    is_told = asyncio.Event()
    app = make_storyteller(make_shop(plugins=["a2a"]), is_told)
    async with running(app, {}), open_caller(noted(app, is_told.set, b"once "), spoken, streaming=True) as caller:
        answer = await stream(caller, {"skill": "story", "input": {}})
    assert texts(answer)[0] == "Once "
    assert [part.text for part in answer[-2].artifact_update.artifact.parts] == ["Once upon a time"]
    assert state(answer[-1].status_update) == "completed"


@EVERYTHING
async def test_a_stream_has_what_a_handler_reports_while_it_runs(spoken):
    site, app, is_told = make_shop(plugins=["a2a"]), FastAPI(), asyncio.Event()

    @site.agent("count")
    async def count() -> int:
        """Count."""
        report_progress(0.5, "half")
        await asyncio.wait_for(is_told.wait(), 20)
        return 2

    app.add_middleware(AgentPublisher, site=site)
    async with running(app, {}), open_caller(noted(app, is_told.set, b"half"), spoken, streaming=True) as caller:
        answer = await stream(caller, {"skill": "count", "input": {}})
    assert texts(answer) == ["half"]
    reported = next(item.status_update for item in answer if item.HasField("status_update"))
    data = MessageToDict(reported.status.message.parts[1])["data"]
    assert data == {"progress": {"fraction": 0.5, "message": "half"}}


async def test_an_answer_without_a_stream_has_no_progress():
    site, app = make_shop(plugins=["a2a"]), FastAPI()

    @site.agent("count")
    async def count() -> int:
        """Count."""
        report_progress(0.5, "half")
        return 2

    app.add_middleware(AgentPublisher, site=site)
    async with running(app, {}), open_caller(app) as caller:
        task = await caller.call("count")
    assert output(task) == 2
    assert "half" not in str(task)


async def test_leaving_a_stream_ends_the_call():
    site, app, begun, ended = make_shop(plugins=["a2a"]), FastAPI(), asyncio.Event(), asyncio.Event()

    @site.agent("wait")
    async def wait() -> str:
        """Wait."""
        report_progress(0.1)
        begun.set()
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()
        return "done"

    app.add_middleware(AgentPublisher, site=site)
    async with running(app, {}), open_caller(app, streaming=True) as caller:
        following = asyncio.create_task(stream(caller, {"skill": "wait", "input": {}}))
        await asyncio.wait_for(begun.wait(), 20)
        following.cancel()
        await asyncio.wait_for(ended.wait(), 20)
