"""What an agent pays to buy two copies of a book in the demo shop: requests and tokens (four bytes) through each door.

It knows the shop's address, the title, a token and where the parcel goes; for pages a name and a password. All else
(addresses, fields, the token of the confirmation) it takes from documents and answers. It keeps no cookies, except for
pages. How it got its token is not counted: it registers once, and a person signs in and allows it in their browser.
Bodies are counted, of requests and of answers, from the first document to the order; each client is the protocol's
official one where there is one. The shop runs behind a real server.
"""

import asyncio
import json
import logging
import os
import re
import shutil
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin

import httpx
import httpx2
import uvicorn
from a2a.client import ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver
from a2a.types.a2a_pb2 import Message, Part, Role, SendMessageRequest, Task, TaskState
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult
from selectolax.lexbor import LexborHTMLParser
from websockets.asyncio.client import connect

from benchmarks.person import ACCOUNT, carry_out_async, token_steps
from benchmarks.table import Row, at_most
from demo_site.app import create_app

TITLE: Final = "Emma"
COPIES: Final = 2
PARCEL: Final = {"name": "Ada", "address": "1 Quiet Lane, Oxford"}

TYPESCRIPT: Final = Path(__file__).parent / "journeys.mjs"
NODE_MODULES: Final = Path(os.environ.get("NODE_MODULES", ".venv/conformance/node_modules"))
"""Where `make conformance` puts the TypeScript SDKs."""


@dataclass
class Meter:
    """Counts the requests and the bytes of one journey."""

    requests: int = 0
    sent: int = 0
    received: int = 0

    @property
    def tokens(self) -> int:
        """Tokens, of four bytes each."""
        return -(-(self.sent + self.received) // 4)

    @property
    def hooks(self) -> dict[str, list[Callable[..., Awaitable[None]]]]:
        """Event hooks that count, for an asynchronous client of httpx or httpx2."""

        async def count_request(request: Any) -> None:
            self.requests += 1
            self.sent += len(await request.aread())

        async def count_answer(response: Any) -> None:
            self.received += len(await response.aread())

        return {"request": [count_request], "response": [count_answer]}


@dataclass(frozen=True)
class Purchase:
    """What came of a journey: the question that a person was asked before it was done, and the order."""

    question: str
    order: Mapping[str, Any]


# --- Documents and plain HTTP ---


async def by_woa(origin: str, http: httpx.AsyncClient) -> Purchase:
    """Buy through the invoke door."""
    document = (await http.get(f"{origin}/.well-known/woa.json")).json()
    rest = document["transports"]["rest"]
    known = {agent["id"]: agent for agent in document["agents"]}

    async def call(agent_id: str, given: Mapping[str, Any], **members: str) -> httpx.Response:
        assert given.keys() <= known[agent_id]["inputs"]["properties"].keys()
        address = rest["base"] + rest["invoke_path"].replace("{agent_id}", agent_id)
        return await http.post(address, json={"input": given, **members})

    found = (await call("search_books", {"q": TITLE})).json()
    await call("add_to_basket", {"slug": named(found), "quantity": COPIES})
    asked = (await call("check_out", PARCEL)).json()["confirmation"]
    placed = await call("check_out", PARCEL, confirmation=asked["token"])
    return Purchase(asked["summary"], placed.json())


async def by_llms_txt(origin: str, http: httpx.AsyncClient) -> Purchase:
    """Buy by what llms.txt says of the calls, and nothing else."""
    text = (await http.get(f"{origin}/llms.txt")).text
    [address] = re.findall(r"POST (\S+) with JSON", text)
    known = dict(re.findall(r"^- (\w+) \{([^}]*)\}", text, re.MULTILINE))

    async def call(name: str, given: Mapping[str, Any], **members: str) -> httpx.Response:
        assert all(re.search(rf"\b{member}\b", known[name]) for member in given)
        return await http.post(address.replace("NAME", name), json={"input": given, **members})

    found = (await call("search_books", {"q": TITLE})).json()
    await call("add_to_basket", {"slug": named(found), "quantity": COPIES})
    asked = (await call("check_out", PARCEL)).json()["confirmation"]
    placed = await call("check_out", PARCEL, confirmation=asked["token"])
    return Purchase(asked["summary"], placed.json())


async def by_agent_json(origin: str, http: httpx.AsyncClient) -> Purchase:
    """Buy at the addresses that agent.json names."""
    document = (await http.get(f"{origin}/agent.json")).json()
    return await _at_endpoints(origin, http, {action["id"]: action for action in document["actions"]})


async def by_awas(origin: str, http: httpx.AsyncClient) -> Purchase:
    """Buy at the addresses that the AWAS manifest names."""
    document = (await http.get(f"{origin}/.well-known/ai-actions.json")).json()
    return await _at_endpoints(origin, http, {action["id"]: action for action in document["actions"]})


async def _at_endpoints(origin: str, http: httpx.AsyncClient, known: Mapping[str, Any]) -> Purchase:
    headers: dict[str, str] = {}

    async def call(action_id: str, given: Mapping[str, Any]) -> httpx.Response:
        action = known[action_id]
        address, method = urljoin(origin, action["endpoint"]), action["method"]
        if method == "GET":
            return await http.get(address, params=dict(given), headers=headers)
        return await http.request(method, address, data=dict(given), headers=headers)

    found = (await call("search_books", {"q": TITLE})).json()
    await call("add_to_basket", {"slug": named(found), "quantity": COPIES})
    asked = (await call("check_out", PARCEL)).json()["confirmation"]
    headers["awp-confirmation"] = asked["token"]
    placed = await call("check_out", PARCEL)
    return Purchase(asked["summary"], placed.json())


# --- Pages ---


async def by_markdown(origin: str, http: httpx.AsyncClient) -> Purchase:
    """Buy on the pages as Markdown: links are followed, forms are sent as the page tells them."""

    def link(page: str, text: str) -> str:
        return str(re.findall(rf"\[{re.escape(text)}\]\(([^)]+)\)", page)[0])

    def form(page: str, button: str) -> tuple[str, str, dict[str, str]]:
        start, end = page.rindex("Form", 0, page.index(f"[button: {button}]")), page.index(f"[button: {button}]")
        method, address = re.findall(r"`(GET|POST) ([^`]+)`", page[start:end])[0]
        fields = re.findall(r"\[[\w ]+ `([^`]+)`[^\]:]*(?:: “([^”]*)”)?\]", page[start:end])
        return method, address, dict(fields)

    return await _on_pages(origin, http, "text/markdown", link, form, _markdown_facts)


async def by_html(origin: str, http: httpx.AsyncClient) -> Purchase:
    """Buy on the pages as browsers get them."""

    def link(page: str, text: str) -> str:
        links = LexborHTMLParser(page).css("a[href]")
        return urljoin(origin, next(one.attributes["href"] or "" for one in links if one.text().strip() == text))

    def form(page: str, button: str) -> tuple[str, str, dict[str, str]]:
        forms = LexborHTMLParser(page).css("form")
        found = next(one for one in forms if any(button in part.text() for part in one.css("button")))
        fields = {
            str(one.attributes["name"]): one.attributes.get("value") or "" for one in found.css("input, textarea")
        }
        return str(found.attributes["method"]).upper(), urljoin(origin, found.attributes["action"]), fields

    return await _on_pages(origin, http, "text/html", link, form, _html_facts)


def _markdown_facts(page: str) -> Mapping[str, Any]:
    [(title, copies, _)] = re.findall(r"\| \[([^\]]+)\][^|]+\| (\d+) \| (\S+) \|", page)
    total = re.findall(r"\| Total \|  \| \$([\d.]+) \|", page)[0]
    return {"title": title, "copies": int(copies), "total": total}


def _html_facts(page: str) -> Mapping[str, Any]:
    tree = LexborHTMLParser(page)
    told = {name: [one.text().strip() for one in tree.css(f"main .{name}")] for name in ("book-title", "book-quantity")}
    [title], [copies] = told["book-title"], told["book-quantity"]
    return {"title": title, "copies": int(copies), "total": tree.css("main .total-price")[0].text().strip("$ \n")}


async def _on_pages(
    origin: str,
    http: httpx.AsyncClient,
    accept: str,
    link: Callable[[str, str], str],
    form: Callable[[str, str], tuple[str, str, dict[str, str]]],
    facts: Callable[[str], Mapping[str, Any]],
) -> Purchase:
    http.headers["accept"] = accept
    http.follow_redirects = True

    async def follow(page: str, text: str) -> str:
        return (await http.get(link(page, text))).text

    async def send(page: str, button: str, given: Mapping[str, object]) -> str:
        method, address, fields = form(page, button)
        assert given.keys() <= fields.keys(), (button, fields)
        filled: dict[str, Any] = {**fields, **given}
        answer = await (http.get(address, params=filled) if method == "GET" else http.post(address, data=filled))
        assert answer.status_code == 200, answer.text
        return answer.text

    start = (await http.get(origin)).text
    inside = await send(await follow(start, "Sign in"), "Sign in", ACCOUNT)
    found = await send(inside, "Search", {"q": TITLE})
    basket = await send(await follow(found, TITLE), "Put in basket", {"quantity": COPIES})
    review = await follow(basket, "Check out")
    read, order = facts(review), await send(review, "Place the order", PARCEL)
    placed = facts(order)
    question = f"{read['copies']} x {read['title']} for ${read['total']}"
    total = round(float(placed["total"]) * 100)
    lines = [{"title": placed["title"], "quantity": placed["copies"]}]
    return Purchase(question, {"lines": lines, "total_cents": total})


# --- MCP, A2A, AWP ---


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
            told = await socket.recv()
            meter.received += len(told)
            answer = json.loads(told)
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
    told, _ = await process.communicate()
    assert process.returncode == 0, told
    result = json.loads(told)
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


# --- All of them ---

_PLAIN: Final[Mapping[str, Callable[[str, httpx.AsyncClient], Awaitable[Purchase]]]] = {
    "Markdown pages": by_markdown,
    "HTML pages": by_html,
    "llms.txt": by_llms_txt,
    "WoA": by_woa,
    "plain HTTP, agent.json": by_agent_json,
    "plain HTTP, AWAS": by_awas,
    "A2A": by_a2a,
}
_LIVE: Final[Mapping[str, Callable[[str, Meter, str], Awaitable[Purchase]]]] = {
    "MCP 2025-11-25": lambda origin, meter, token: by_mcp(origin, meter, token, "legacy"),
    "MCP 2026-07-28": lambda origin, meter, token: by_mcp(origin, meter, token, "2026-07-28"),
    "MCP, TypeScript SDK 1": lambda origin, meter, token: by_typescript(origin, meter, token, "sdk"),
    "MCP, TypeScript SDK 2": lambda origin, meter, token: by_typescript(origin, meter, token, "client"),
    "MCP 2026-07-28, TypeScript SDK 2": lambda origin, meter, token: by_typescript(
        origin, meter, token, "client", "2026-07-28"
    ),
    "AWP": by_awp,
}
WAYS: Final = (*_PLAIN, *_LIVE)
"""Every way in which an agent can buy."""

CHEAPEST: Final = 2500
LIMITS: Final = {
    "llms.txt": CHEAPEST,
    "WoA": 5000,
    "MCP 2025-11-25": 7000,
    "MCP 2026-07-28": 7000,
    "MCP, TypeScript SDK 1": 7000,
    "MCP, TypeScript SDK 2": 7000,
    "MCP 2026-07-28, TypeScript SDK 2": 7000,
}
"""The most tokens of a way."""


async def go(way: str) -> tuple[Purchase, Meter]:
    """Buy in one way, in a shop of its own. Raises NotMeasured."""
    meter = Meter()
    async with open_shop() as origin:
        if "pages" in way:
            async with httpx.AsyncClient(event_hooks=meter.hooks) as http:
                return await _PLAIN[way](origin, http), meter
        async with httpx.AsyncClient() as browser:
            token = await carry_out_async(token_steps(origin), browser)
        if way in _LIVE:
            return await _LIVE[way](origin, meter, token), meter
        async with httpx.AsyncClient(event_hooks=meter.hooks, headers=_shown(token)) as http:
            _keep_no_cookies(http)
            return await _PLAIN[way](origin, http), meter


@asynccontextmanager
async def open_shop() -> AsyncIterator[str]:
    """Serve the demo shop with every door open, and give its address."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        origin = f"http://127.0.0.1:{listening.getsockname()[1]}"
        app = create_app(origin, packing_pause=0, doors=["mcp", "a2a", "awp"])
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        task = asyncio.create_task(server.serve([listening]))
        while not server.started:
            assert not task.done()
            await asyncio.sleep(0.01)
        try:
            yield origin
        finally:
            server.should_exit = True
            await task


def journeys(seconds: float) -> list[Row]:
    """Count each way once: how long it takes is not measured, so the seconds do not matter."""
    del seconds
    logging.disable(logging.WARNING)
    return asyncio.run(_count())


async def _count() -> list[Row]:
    rows, cheapest = list[Row](), list[int]()
    for way in WAYS:
        what = f"two copies by {way}"
        limit = at_most(LIMITS[way], "tokens") if way in LIMITS else None
        try:
            _, meter = await go(way)
        except NotMeasured as missing:
            rows.append(Row(what, "", None, None, str(missing)))
            continue
        cheapest.append(meter.tokens)
        details = f"{meter.requests} requests, {meter.sent} bytes sent, {meter.received} received"
        rows.append(Row(what, "", meter.tokens, limit, details, "tokens"))
    return [Row("two copies, the cheapest way", "", min(cheapest), at_most(CHEAPEST, "tokens"), "", "tokens"), *rows]
