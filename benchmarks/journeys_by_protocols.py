"""Purchases over MCP, A2A and AWP."""

import asyncio
import json
import os
import shutil
from collections.abc import Mapping
from http.cookiejar import DefaultCookiePolicy
from pathlib import Path
from typing import Any, Final

import httpx
import httpx2
from a2a.client import ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver
from a2a.types.a2a_pb2 import Message, Part, Role, SendMessageRequest, Task, TaskState
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult
from websockets.asyncio.client import connect

from benchmarks.purchase import COPIES, PARCEL, TITLE, Meter, Purchase

TYPESCRIPT: Final = Path(__file__).parent / "journeys.mjs"

NODE_MODULES: Final = Path(os.environ.get("NODE_MODULES", ".venv/conformance/node_modules"))
"""Where `make conformance` puts the TypeScript SDKs."""


async def by_mcp(origin: str, meter: Meter, token: str, mode: str) -> Purchase:
    """Buy with the tools, by the official Python SDK; `mode` is "legacy" up to revision 2025-11-25."""
    questions: list[str] = []

    async def agree(_context: object, params: Any) -> ElicitResult:
        questions.append(params.message)
        return ElicitResult(action="accept", content={})

    async with httpx2.AsyncClient(event_hooks=meter.hooks, headers=_shown(token)) as http:
        _keep_no_cookies(http)
        options: dict[str, Any] = {} if mode == "legacy" else {"elicitation_callback": agree}
        transport = streamable_http_client(f"{origin}/mcp", http_client=http)
        async with Client(transport, mode=mode, **options) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}

            async def call(name: str, given: Mapping[str, Any]) -> Any:
                assert given.keys() <= tools[name].input_schema["properties"].keys()
                return await client.call_tool(name, dict(given))

            found = (await call("search_books", {"q": TITLE})).structured_content
            await call("add_to_basket", {"slug": named(found), "quantity": COPIES})
            placed = await call("check_out", PARCEL)
            if placed.is_error:
                asked = json.loads(placed.content[0].text)["confirmation"]
                questions.append(asked["summary"])
                placed = await call("check_out", {**PARCEL, "confirmation": asked["token"]})
            assert not placed.is_error, placed.content
            return Purchase(questions[0], placed.structured_content)


async def by_a2a(origin: str, http: httpx.AsyncClient) -> Purchase:
    """Buy with the skills, by the official SDK."""
    card = await A2ACardResolver(http, origin).get_agent_card()
    skills = {skill.id for skill in card.skills}
    client = ClientFactory(ClientConfig(streaming=False, httpx_client=http)).create(card)
    count = 0

    async def send(data: Mapping[str, Any], task_id: str = "") -> Task:
        nonlocal count
        count += 1
        parts = [Part(data=ParseDict(dict(data), Value()))]
        message = Message(message_id=f"m-{count}", role=Role.ROLE_USER, parts=parts, task_id=task_id)
        [answer] = [answer async for answer in client.send_message(SendMessageRequest(message=message))]
        return answer.task

    async def call(skill: str, given: Mapping[str, Any]) -> Task:
        assert skill in skills
        return await send({"skill": skill, "input": dict(given)})

    def output(task: Task) -> Any:
        assert task.status.state == TaskState.TASK_STATE_COMPLETED, task
        return MessageToDict(task.artifacts[0].parts[0].data)

    found = output(await call("search_books", {"q": TITLE}))
    output(await call("add_to_basket", {"slug": named(found), "quantity": COPIES}))
    waiting = await call("check_out", PARCEL)
    assert waiting.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    [problem] = [MessageToDict(part.data) for part in waiting.status.message.parts if part.HasField("data")]
    asked = problem["confirmation"]
    placed = await send({"confirmation": asked["token"]}, waiting.id)
    return Purchase(asked["summary"], output(placed))


async def by_awp(origin: str, meter: Meter, token: str) -> Purchase:
    """Buy with the skills over one WebSocket."""
    async with connect(f"{origin.replace('http', 'ws', 1)}/awp", additional_headers=_shown(token)) as socket:

        async def ask(method: str, **params: object) -> Any:
            meter.requests += 1
            sent = json.dumps({"id": str(meter.requests), "method": method, "params": params}, separators=(",", ":"))
            meter.sent += len(sent)
            await socket.send(sent)
            response = await socket.recv()
            meter.received += len(response)
            answer = json.loads(response)
            return answer["result"] if "result" in answer else answer["error"]

        await ask("awp.hello", client_name="journey", client_version="1", awp_version="0.1")
        skills = {skill["name"]: skill for skill in (await ask("skills.list"))["skills"]}

        async def call(skill: str, given: Mapping[str, Any], **rest: str) -> Any:
            assert given.keys() <= skills[skill]["input_schema"]["properties"].keys()
            return await ask("skills.invoke", skill=skill, args=given, **rest)

        found = (await call("search_books", {"q": TITLE}))["output"]
        await call("add_to_basket", {"slug": named(found), "quantity": COPIES})
        asked = (await call("check_out", PARCEL))["details"]["confirmation"]
        placed = await call("check_out", PARCEL, confirmation=asked["token"])
        return Purchase(asked["summary"], placed["output"])


async def by_typescript(origin: str, meter: Meter, token: str, package: str, revision: str = "") -> Purchase:
    """Buy with the tools, by one of the official TypeScript SDKs. Raises NotMeasured where it is not installed.

    Without a revision it shakes hands as its default is, and cannot ask its user.
    """
    node = os.environ.get("NODE") or shutil.which("node")
    if node is None or not (NODE_MODULES / "@modelcontextprotocol" / package).is_dir():
        raise NotMeasured(f"@modelcontextprotocol/{package} is not there: `make conformance` fetches it")
    facts = {"address": f"{origin}/mcp", "modules": str(NODE_MODULES.resolve()), "package": package}
    facts |= {
        "revision": revision,
        "title": TITLE,
        "copies": str(COPIES),
        "headers": json.dumps(_shown(token)),
        "parcel": json.dumps(PARCEL),
    }
    process = await asyncio.create_subprocess_exec(
        node, str(TYPESCRIPT), json.dumps(facts), stdout=asyncio.subprocess.PIPE
    )
    answer, _ = await process.communicate()
    assert process.returncode == 0, answer
    result = json.loads(answer)
    meter.requests, meter.sent, meter.received = result["requests"], result["sent"], result["received"]
    return Purchase(result["question"], result["order"])


class NotMeasured(Exception):
    """A client is missing."""


def named(found: Mapping[str, Any]) -> str:
    """Return the slug of the book of the title, as an answer tells it."""
    return str(next(book["slug"] for book in found["books"] if book["title"] == TITLE))


def _shown(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def _keep_no_cookies(client: Any) -> None:
    client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))
