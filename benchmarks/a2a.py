"""SendMessage at the A2A door, in process, beside the SDK's own server, and what of it is ours.

The rival does the same work in the SDK's way: an executor behind its default handler, tasks in its store in memory. Our
own share is what we take beyond the part of the SDK that both sides need (JSON-RPC, protobuf, validation, routing): its
dispatcher before a handler that answers with the same task, made before.
"""

from operator import sub
from typing import Any, Final

import orjson
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.request_handlers.request_handler import validate_request_params
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Message,
    Part,
    SendMessageRequest,
    Task,
    TaskState,
    TaskStatus,
)
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value
from starlette.applications import Starlette

from awp_publish import AgentPublisher, Site
from awp_publish.http.exchange import AsgiApp, RawHeaders
from benchmarks.measure import Case, Found, Series, ask, interleave, on_each_loop
from benchmarks.shop import json_headers
from benchmarks.table import Row, at_most, compare

PATH: Final = "/a2a"
BOOKS: Final = 10
DATA: Final = {"skill": "search_books", "input": {"author": "Austen", "most": BOOKS}}
REQUEST: Final = orjson.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendMessage",
        "params": {"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"data": DATA}]}},
    }
)
HEADERS: Final[RawHeaders] = (*json_headers(REQUEST), (b"a2a-version", b"1.0"))

Books = list[dict[str, object]]


def find(author: str, most: int) -> Books:
    """What both sides do."""
    return [{"title": f"Book {number}", "author": author, "year": 1810 + number} for number in range(most)]


def a2a(seconds: float) -> list[Row]:
    """The whole call beside the SDK's own server, and beside the part of the SDK that both have."""
    found = on_each_loop(lambda: _measure(seconds / 2))
    whole, shared = "the SDK's default handler, same work", "the SDK's dispatcher alone"
    return [
        compare("A2A SendMessage of a function", found, "door", "sdk", whole, at_most(1.15)),
        compare("our share of an A2A SendMessage", _with_share(found), "share", "sdk", whole, at_most(0.15)),
        compare("A2A SendMessage of a function", found, "door", "dispatcher", shared, None),
    ]


def _with_share(found: Found) -> Found:
    """What of a call is not the SDK's."""
    return {loop: {**of, "share": list(map(sub, of["door"], of["dispatcher"]))} for loop, of in found.items()}


async def _measure(seconds: float) -> dict[str, Series]:
    own = InMemoryTaskStore()
    apps = {
        "door": _door(),
        "sdk": _serve(DefaultRequestHandler(_Executor(), own, _card())),
        "dispatcher": _serve(_Prepared(_Executor(), own, _card())),
    }
    cases = [Case(name, app, PATH, "POST", HEADERS, REQUEST) for name, app in apps.items()]
    for case in cases:
        answer = orjson.loads((await ask(case)).body)["result"]["task"]
        assert answer["status"]["state"] == "TASK_STATE_COMPLETED", case.name
        assert len(answer["artifacts"][0]["parts"][0]["data"]) == BOOKS
    return await interleave(cases, seconds)


def _door() -> AsgiApp:
    site = Site("Bookshop", "Find books.", url="https://books.example", plugins=["a2a"])

    @site.agent("search_books")
    async def search_books(author: str, most: int = BOOKS) -> Books:
        """Search books."""
        return find(author, most)

    return AgentPublisher(Starlette(), site=site, check=False)


# --- The SDK's own server ---


class _Executor(AgentExecutor):
    """The same work as an executor: a task, its artifact, its end."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        await event_queue.enqueue_event(_task_of(context.message))
        given = MessageToDict(context.message.parts[0].data)["input"]
        update = TaskUpdater(event_queue, context.message.task_id, context.message.context_id)
        await update.add_artifact(_parts_of(find(given["author"], int(given["most"]))))
        await update.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError


class _Prepared(DefaultRequestHandler):
    """A handler that has its answer already."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._task = Task(id="t-1", context_id="c-1", status=TaskStatus(state=TaskState.TASK_STATE_COMPLETED))
        self._task.artifacts.add(artifact_id="a-1", parts=_parts_of(find("Austen", BOOKS)))
        self._task.history.append(ParseDict(orjson.loads(REQUEST)["params"]["message"], Message()))

    @validate_request_params
    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task | Message:
        return self._task


def _task_of(message: Message) -> Task:
    status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
    return Task(id=message.task_id, context_id=message.context_id, status=status, history=[message])


def _parts_of(books: Any) -> list[Part]:
    return [Part(data=ParseDict(books, Value())), Part(text=orjson.dumps(books).decode())]


def _card() -> AgentCard:
    interface = AgentInterface(url="https://books.example/a2a", protocol_binding="JSONRPC", protocol_version="1.0")
    return AgentCard(
        name="Bookshop",
        description="Find books.",
        version="1.0",
        supported_interfaces=[interface],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["application/json"],
        default_output_modes=["application/json"],
        skills=[AgentSkill(id="search_books", name="Search", description="Search books.", tags=["search"])],
    )


def _serve(handler: DefaultRequestHandler) -> AsgiApp:
    return Starlette(routes=create_jsonrpc_routes(handler, PATH, enable_v0_3_compat=True))
