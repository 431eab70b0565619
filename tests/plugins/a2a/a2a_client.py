"""The official A2A client in front of an application, over both bindings, as 1.0 and as 0.3 speak."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx
import uvicorn
from a2a.client import Client, ClientConfig, ClientFactory
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    Task,
    TaskState,
    TaskStatusUpdateEvent,
)
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value

from awp_publish.http.exchange import AsgiApp

URL: Final = "https://shop.example/a2a"

SPOKEN: Final = {
    "1.0 JSON-RPC": ("JSONRPC", "1.0"),
    "1.0 HTTP+JSON": ("HTTP+JSON", "1.0"),
    "0.3 JSON-RPC": ("JSONRPC", "0.3"),
    "0.3 HTTP+JSON": ("HTTP+JSON", "0.3"),
}
"""Everything that the door speaks: binding and version."""


class Caller:
    """Sends messages with one client, and tells what comes of them."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def send(self, data: Mapping[str, Any] | None = None, **rest: Any) -> Task:
        """The task that a message comes to."""
        async for answer in self.client.send_message(make_request(data, **rest)):
            task = answer.task
        return task

    async def call(self, skill: str, given: Mapping[str, Any] | None = None, **rest: Any) -> Task:
        """Call one skill."""
        return await self.send({"skill": skill, "input": given or {}}, **rest)


def make_request(
    data: Mapping[str, Any] | None = None,
    *,
    text: str | None = None,
    task: Task | None = None,
    metadata: Mapping[str, Any] | None = None,
    at_once: bool = False,
    files: Sequence[Part] = (),
    **members: Any,
) -> SendMessageRequest:
    """A message of one data part or one text, in a task if there is one already. `members` stand beside the input."""
    message = Message(message_id="m-1", role=Role.ROLE_USER)
    if data is not None:
        message.parts.append(Part(data=ParseDict({**data, **members}, Value())))
    if text is not None:
        message.parts.append(Part(text=text))
    message.parts.extend(files)
    if task is not None:
        message.task_id, message.context_id = task.id, task.context_id
    if metadata is not None:
        message.metadata.update(metadata)
    return SendMessageRequest(message=message, configuration=SendMessageConfiguration(return_immediately=at_once))


@asynccontextmanager
async def open_caller(
    app: AsgiApp, spoken: str = "1.0 JSON-RPC", *, streaming: bool = False, headers: Mapping[str, str] | None = None
) -> AsyncIterator[Caller]:
    """A caller of an application."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), headers=headers or {}) as http:
        yield make_caller(http, URL, spoken, streaming=streaming)


def make_caller(http: httpx.AsyncClient, url: str, spoken: str, *, streaming: bool = False) -> Caller:
    """A caller of the door at an address."""
    binding, version = SPOKEN[spoken]
    interface = AgentInterface(url=url, protocol_binding=binding, protocol_version=version)
    card = AgentCard(
        name="Shop",
        supported_interfaces=[interface],
        capabilities=AgentCapabilities(streaming=streaming),
    )
    config = ClientConfig(streaming=streaming, httpx_client=http, supported_protocol_bindings=[binding])
    return Caller(ClientFactory(config).create(card))


async def stream(caller: Caller, data: Mapping[str, Any], **rest: Any) -> list[StreamResponse]:
    """All that a stream tells."""
    return [answer async for answer in caller.client.send_message(make_request(data, **rest))]


def state(task: Task | TaskStatusUpdateEvent) -> str:
    """The state of a task, in a word."""
    return TaskState.Name(task.status.state).removeprefix("TASK_STATE_").lower()


def output(task: Task) -> Any:
    """What the one part of a task's artifact says: data, a text, or JSON that data cannot say."""
    [artifact] = task.artifacts
    [part] = artifact.parts
    if part.HasField("data"):
        return MessageToDict(part.data)
    return json.loads(part.text) if part.media_type == "application/json" else part.text


def problem(task: Task) -> dict[str, Any]:
    """The problem that a task's status tells."""
    [data] = [part for part in task.status.message.parts if part.HasField("data")]
    answer: dict[str, Any] = MessageToDict(data.data)
    return answer


def words(task: Task) -> str:
    """What a task's status says to people."""
    return "\n".join(part.text for part in task.status.message.parts if part.text)


def told_headers(task: Task) -> dict[str, str]:
    """The headers that gates have added."""
    answer: dict[str, str] = MessageToDict(task.metadata).get("headers", {})
    return answer


@asynccontextmanager
async def serving(app: AsgiApp) -> AsyncIterator[str]:
    """A real server in front of an application, and its address."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", ws="none"))
    task = asyncio.create_task(server.serve())
    while not server.started:
        assert not task.done()
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
