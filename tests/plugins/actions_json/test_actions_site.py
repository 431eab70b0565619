"""`actions.site`, the one tool of a map (`actions_site` as an action): its five modes, at the bridge, MCP and WoA."""

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from html import escape
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from awp_publish import AgentPublisher, Bridge, SessionUser, Site
from tests.client import TestClient
from tests.guarded import KEYS
from tests.plugins.awp.awp_client import AwpClient

BOOKS = {"emma": "Emma", "dracula": "Dracula"}
SEARCHES: list[str] = []


def html(title: str, body: str) -> HTMLResponse:
    head = f"<!doctype html><html lang=en><title>{title}</title>"
    return HTMLResponse(f"{head}<body><h1>{title}</h1>{body}</body></html>")


async def home(request: Request) -> Response:
    return html("Home", '<a href="/search">Search</a>')


async def search(request: Request) -> Response:
    query = request.query_params.get("q")
    if query is not None:
        SEARCHES.append(query)
    form = '<form role="search" action="/search"><input name="q" aria-label="Words"><button>Find</button></form>'
    found = [title for title in BOOKS.values() if query is not None and query.lower() in title.lower()]
    listed = "".join(f'<li class="book">{escape(title)}</li>' for title in found)
    count = "" if query is None else f'<p class="count">{len(found)} found for {escape(query)}</p>'
    return html("Search", f"{form}{count}<ol>{listed}</ol>")


async def sign_in(request: Request) -> Response:
    if request.headers.get("content-type") == "application/json":
        request.session["user_id"] = (await request.json())["name"]
        return JSONResponse({"name": request.session["user_id"]})
    if request.method == "POST":
        request.session["user_id"] = str((await request.form())["name"])
        return RedirectResponse("/account", 303)
    return html("Sign in", '<form method="post" action="/enter"><input name="name"><button>Go</button></form>')


async def account(request: Request) -> Response:
    return html("Account", f'<p class="who">{request.session.get("user_id", "nobody")}</p>')


async def order(request: Request) -> Response:
    return JSONResponse({"ordered": (await request.json())["slug"], "by": request.session.get("user_id", "")})


def make_site(bridge: str | Bridge = "bridge", **options: Any) -> Site:
    site = Site(
        "Shop", "Sells.", url="https://shop.example", plugins=[bridge, "mcp", "a2a", "awp"], secret_keys=KEYS, **options
    )
    text = {"type": "string"}
    site.declare(
        "search_books",
        method="GET",
        path="/search",
        description="Search books.",
        inputs={"type": "object", "properties": {"q": text}, "required": ["q"], "additionalProperties": False},
        outputs={},
        awas={"selector": "form", "selectors": {"q": "input[name='q']"}},
        rate_limit="3/minute",
    )
    site.declare(
        "sign_in",
        method="POST",
        path="/enter",
        description="Sign in.",
        inputs={"type": "object", "properties": {"name": text}, "required": ["name"]},
        outputs={},
        awas={"selector": "form", "selectors": {"name": "input[name='name']"}},
    )
    site.declare(
        "order_book",
        method="POST",
        path="/order",
        description="Order a book.",
        inputs={"type": "object", "properties": {"slug": text}, "required": ["slug"]},
        outputs={"type": "object"},
        confirm="Order {slug}.",
    )
    listed = {
        "name": "results",
        "description": "The books that are listed.",
        "snapshot": {
            "extract": [{"id": "books", "selector": "li.book", "many": True, "fields": {"title": {"required": True}}}],
            "projection": {"expression": "{'titles': $append([], records.books.title)}"},
            "output_schema": {"type": "object", "required": ["titles"]},
        },
        "summaries": [{"name": "short", "expression": "{'count': $count(state.titles)}"}],
    }
    found = {"name": "found", "diagnostics": [{"name": "book", "target": {"selector": "li.book"}}]}
    form = {"submit": "form button", "done": "p.count"}
    searched = {"targets": form, "states": [found], "state_projections": [listed]}
    site.page("/search", id="search", title="Search", actions=["search_books"], map=searched)
    entered = {"targets": {"submit": "form button", "done": "p.who"}}
    site.page("/enter", id="enter", title="Sign in", actions=["sign_in"], map=entered)
    return site


def make_app(**options: Any) -> AgentPublisher | Starlette:
    routes = [
        Route("/", home),
        Route("/search", search),
        Route("/enter", sign_in, methods=["GET", "POST"]),
        Route("/account", account),
        Route("/order", order, methods=["POST"]),
    ]
    publisher = Middleware(AgentPublisher, site=make_site(**options))
    return Starlette(routes=routes, middleware=[Middleware(SessionMiddleware, secret_key="k" * 20), publisher])


Use = Callable[..., Any]

SESSIONS: list[str] = []
"""Ids of sessions that answers have handed out, in order."""


def use_bridge(client: TestClient, stack: ExitStack) -> Use:
    socket = stack.enter_context(client.websocket_connect("/actions-bridge"))
    numbers = iter(range(1000))

    def use(mode: str, /, envelope: Mapping[str, object] | None = None, **arguments: object) -> Any:
        item = {"type": "action_call", "call_id": f"c{next(numbers)}", "name": "actions.site"}
        socket.send_json({**item, "arguments": {"mode": mode, **arguments}, **(envelope or {})})
        answer = socket.receive_json()
        SESSIONS.extend(answer.get("headers", {}).values())
        return answer["error"] if "error" in answer else answer["output"]

    return use


def use_woa(client: TestClient, stack: object = None) -> Use:
    def use(mode: str, /, envelope: Mapping[str, object] | None = None, **arguments: object) -> Any:
        given = {"input": {"mode": mode, **arguments}, **(envelope or {})}
        answer = client.post("/agents/actions_site/invoke", json=given)
        SESSIONS.extend(filter(None, [answer.headers.get("awp-session")]))
        return answer.json() if answer.status_code == 200 else answer.json().get("error", answer.json())

    return use


def use_mcp(client: TestClient, stack: object = None) -> Use:
    def use(mode: str, /, envelope: Mapping[str, object] | None = None, **arguments: object) -> Any:
        params = {"name": "actions_site", "arguments": {"mode": mode, **arguments}}
        meta = {f"awp/{name}": value for name, value in (envelope or {}).items()}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {**params, "_meta": meta}}
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
        result = client.post("/mcp", json=message, headers=headers).json()["result"]
        SESSIONS.extend(filter(None, [result.get("_meta", {}).get("awp/headers", {}).get("awp-session")]))
        answer = json.loads(result["content"][0]["text"])
        return answer.get("error", answer) if result["isError"] else answer

    return use


@pytest.fixture(params=[use_bridge, use_woa, use_mcp])
def use(request: pytest.FixtureRequest) -> Any:
    SEARCHES.clear()
    with TestClient(make_app(), base_url="https://shop.example") as client, ExitStack() as stack:
        yield Visitor(request.param(client, stack))


class Visitor:
    """An agent that sends the runtime's id that it got."""

    def __init__(self, use: Use) -> None:
        self._use = use
        self._runtime: str | None = None

    def __call__(self, mode: str, /, envelope: Mapping[str, object] | None = None, **arguments: object) -> Any:
        named = {"target_runtime_id": self._runtime} if self._runtime else {}
        answer = self._use(mode, envelope=envelope, **{**named, **arguments})
        self._runtime = answer.get("runtime_id", self._runtime)
        return answer


def test_an_agent_lists_goes_searches_and_reads(use):
    listed = use("list")
    assert listed["ok"] is True
    assert listed["url"] == "https://shop.example/"
    assert [action["name"] for action in listed["actions"]] == ["order_book"]
    went = use("call", action="browser.navigate", arguments={"url": "/search"})
    assert went["result"]["title"] == "Search"
    listed = use("list")
    assert [action["name"] for action in listed["actions"]] == ["search_books", "order_book"]
    assert listed["projections"][0]["name"] == "search.results"
    found = use("call", action="search_books", arguments={"q": "em"})
    assert (found["ok"], found["result"]["url"]) == (True, "https://shop.example/search?q=em")
    assert [step["id"] for step in found["steps"]][:4] == ["form_ready", "hide_overlay", "type_q", "find_submit"]
    assert SEARCHES == ["em"]
    read = use("state_read", projection_name="search.results")
    assert read["state"] == {"titles": ["Emma"]}
    assert use("state_summary", projection_name="search.results", summary_name="short")["summary"] == {"count": 1}
    use("call", action="search_books", arguments={"q": "a"})
    changed = use("state_diff", projection_name="search.results")
    assert changed["ok"] is True
    assert "Dracula" in json.dumps(changed)


def test_the_gates_of_an_action_hold_before_its_workflow_and_once(use):
    use("call", action="browser.navigate", arguments={"url": "/search"})
    for _ in range(3):
        assert use("call", action="search_books", arguments={"q": "x"})["ok"] is True
    error = use("call", action="search_books", arguments={"q": "x"})
    assert error["code"] in ("permission_denied", "RATE_LIMITED")
    assert len(SEARCHES) == 3


def test_forms_that_a_workflow_sends_do_not_count_again_where_routes_are_guarded():
    SEARCHES.clear()
    with TestClient(make_app(guard_routes=True), base_url="https://shop.example") as client:
        use = Visitor(use_woa(client))
        use("call", action="browser.navigate", arguments={"url": "/search?q=first"})  # the first of three
        counted = len(SEARCHES)
        for _ in range(2):
            assert use("call", action="search_books", arguments={"q": "x"})["ok"] is True
        assert len(SEARCHES) == counted + 2


def test_input_that_does_not_fit_is_refused_before_anything_is_done(use):
    use("call", action="browser.navigate", arguments={"url": "/search"})
    error = use("call", action="search_books", arguments={"q": 5})
    assert error["code"] in ("invalid_input", "INVALID_INPUT")
    assert SEARCHES == []


def test_a_person_confirms_what_an_action_asks_for(use):
    error = use("call", action="order_book", arguments={"slug": "emma"})
    asked = error.get("evidence", error)["confirmation"]
    assert asked["summary"] == 'Order "emma".'
    token = {"confirmation": asked["token"]}
    done = use("call", envelope=token, action="order_book", arguments={"slug": "emma"})
    assert done["result"]["ordered"] == "emma"


def test_a_page_in_process_has_cookies_of_its_own(use):
    use("call", action="browser.navigate", arguments={"url": "/enter"})
    assert use("call", action="sign_in", arguments={"name": "ann"})["ok"] is True
    use("call", action="browser.navigate", arguments={"url": "/account"})
    shown = use("call", action="dom.snapshot_text", arguments={"selector": ".who"})
    assert shown["result"]["text"] == "ann"
    error = use("call", action="order_book", arguments={"slug": "emma"})
    token = {"confirmation": error.get("evidence", error)["confirmation"]["token"]}
    assert use("call", envelope=token, action="order_book", arguments={"slug": "emma"})["result"]["by"] == "ann"


@pytest.mark.parametrize(
    ("arguments", "codes"),
    [
        ({"mode": "fly"}, {"invalid_input", "INVALID_INPUT"}),
        ({"mode": "call"}, {"invalid_input"}),
        ({"mode": "list", "more": 1}, {"invalid_input", "INVALID_INPUT"}),
        ({"mode": "call", "action": "nothing"}, {"unknown_action"}),
        ({"mode": "call", "action": "browser.navigate", "arguments": {"url": "https://evil.example/"}}, None),
        (
            {"mode": "call", "action": "browser.run_javascript", "arguments": {"source": "1"}},
            {"capability_unavailable"},
        ),
        ({"mode": "list", "target_runtime_id": "nobody"}, {"runtime_not_found"}),
        ({"mode": "state_read", "projection_name": "nothing"}, None),
    ],
)
def test_an_impossible_request_has_a_clear_code(use, arguments, codes):
    answer = use(arguments["mode"], **{name: value for name, value in arguments.items() if name != "mode"})
    assert "code" in answer, answer
    assert codes is None or answer["code"] in codes


def test_a_page_of_a_known_caller_is_nobody_elses():
    with TestClient(make_app(authenticate=SessionUser()), base_url="https://shop.example") as client:
        client.post("/enter", data={"name": "ann"})
        use = use_woa(client)
        runtime = use("list")["runtime_id"]
        assert use("list")["runtime_id"] == runtime
        client.cookies.clear()
        assert use("list", target_runtime_id=runtime)["code"] == "runtime_not_found"


def test_the_tool_is_one_thing_in_every_document_and_not_in_the_map(open_client):
    client = open_client(make_app())
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
    tools = client.post("/mcp", json=message, headers=headers).json()["result"]["tools"]
    tool = next(tool for tool in tools if tool["name"] == "actions_site")
    assert tool["inputSchema"]["required"] == ["mode"]
    for path in ("/.well-known/ai-actions.json", "/.well-known/woa.json"):
        listed = client.get(path).json()
        known = {action["id"]: action["name"] for action in listed.get("actions", listed.get("agents"))}
        assert known["actions_site"] == tool["title"] == "Pages of this site"
    [skill] = [
        skill for skill in client.get("/.well-known/agent-card.json").json()["skills"] if skill["id"] == "actions_site"
    ]
    with AwpClient.greeted(client) as caller:
        [of_awp] = [skill for skill in caller.do("skills.list")["skills"] if skill["name"] == "actions_site"]
    assert skill["name"] == of_awp["title"] == tool["title"]
    for path in ("/agent.json", "/llms.txt", "/.well-known/agent-skills/shop/SKILL.md"):
        assert "actions_site" in client.get(path).text, path
    assert "actions_site" not in client.get("/actions.json").text


def test_pages_of_one_address_make_room_among_themselves():
    with TestClient(make_app(bridge=Bridge(sessions=10)), base_url="https://shop.example") as client:
        use = use_woa(client)
        ids = [use("list")["runtime_id"] for _ in range(3)]
        assert [use("list", target_runtime_id=item).get("code") for item in ids] == ["runtime_not_found", None, None]


def test_errors_point_at_the_wrong_arguments():
    with TestClient(make_app(), base_url="https://shop.example") as client:
        given = {"mode": "call", "action": "order_book", "arguments": {"slug": 5}}
        answer = client.post("/agents/actions_site/invoke", json={"input": given})
        assert (answer.status_code, answer.json()["code"]) == (422, "INVALID_INPUT")
        assert answer.json()["errors"][0]["pointer"] == "/arguments/slug"
        unknown = {"mode": "state_read", "projection_name": "nothing"}
        assert client.post("/agents/actions_site/invoke", json={"input": unknown}).status_code == 404


def test_a_session_and_the_cookie_of_a_tab_are_one_visitor():
    with (
        TestClient(make_app(authenticate=SessionUser()), base_url="https://shop.example") as client,
        ExitStack() as stack,
    ):
        answer = client.post("/agents/sign_in/invoke", json={"input": {"name": "ann"}})
        session = answer.headers["awp-session"]
        client.cookies.clear()
        client.post("/enter", data={"name": "ann"})
        cookie = {"cookie": f"session={client.cookies['session']}"}
        client.cookies.clear()
        tab = stack.enter_context(client.websocket_connect("/actions-bridge", headers=cookie))
        tab.send_json({"type": "runtime_ready", "runtime_id": "tab", "url": "https://shop.example/"})
        tab.send_json({"type": "nothing"})
        assert tab.receive_json()["type"] == "action_error", "what came before it has been read"
        headers = {"awp-session": session}
        agent = stack.enter_context(client.websocket_connect("/actions-bridge", headers=headers))
        item = {"type": "action_call", "call_id": "1", "name": "page.info", "arguments": {}, "runtime_id": "tab"}
        agent.send_json({**item, "timeout_ms": 20})
        assert agent.receive_json()["error"]["code"] == "handler_timeout"
        assert tab.receive_json()["name"] == "page.info"
        stranger = stack.enter_context(client.websocket_connect("/actions-bridge"))
        stranger.send_json(item)
        assert stranger.receive_json()["error"]["code"] == "runtime_not_found"


@pytest.mark.parametrize("door", [use_bridge, use_woa, use_mcp])
def test_a_page_in_process_has_the_cookies_of_the_session_that_is_shown_and_the_session_those_of_the_page(
    door: Callable[..., Use],
) -> None:
    with TestClient(make_app(), base_url="https://shop.example") as client, ExitStack() as stack:
        answer = client.post("/agents/sign_in/invoke", json={"input": {"name": "ada"}})
        envelope = {"session": answer.headers["awp-session"]}
        client.cookies.clear()
        use = door(client, stack)

        def read() -> str:
            arguments = {"url": "/account"}
            assert use("call", envelope=envelope, action="browser.navigate", arguments=arguments)["ok"]
            located = {"locator": {"selector": "p.who"}}
            response = use("call", envelope=envelope, action="locator.text_content", arguments=located)
            return str(response["result"]["text"])

        assert read() == "ada"
        # The page signs in as somebody else, by its own form: the session is theirs from then on, with a new id.
        use("call", envelope=envelope, action="browser.navigate", arguments={"url": "/enter"})
        use("call", envelope=envelope, action="sign_in", arguments={"name": "eve"})
        envelope = {"session": SESSIONS[-1]}
        assert read() == "eve"
        confirmed = {"input": {"slug": "emma"}, **envelope}
        token = client.post("/agents/order_book/invoke", json=confirmed).json()["confirmation"]["token"]
        ordered = client.post("/agents/order_book/invoke", json={**confirmed, "confirmation": token}).json()
        assert ordered["by"] == "eve"
        client.cookies.clear()
        refused = use("call", envelope={"session": "nobody's"}, action="page.info")
        assert "session" in refused.get("message", refused.get("detail", "")).lower()


def test_a_session_that_a_socket_shows_and_one_that_a_request_shows_have_one_page() -> None:
    with TestClient(make_app(), base_url="https://shop.example") as client:
        session = client.post("/agents/sign_in/invoke", json={"input": {"name": "ada"}}).headers["awp-session"]
        client.cookies.clear()
        shown = {"AWP-Session": session}
        with client.websocket_connect("/actions-bridge", headers=shown) as socket:
            call = {"type": "action_call", "call_id": "c", "name": "actions.site", "arguments": {"mode": "list"}}
            socket.send_json(call)
            runtime = socket.receive_json()["runtime_id"]
        answer = client.post("/agents/actions_site/invoke", json={"input": {"mode": "list"}}, headers=shown)
        assert answer.json()["runtime_id"] == runtime


def test_a_tool_of_another_page_says_how_to_get_there(use: Any) -> None:
    answer = use("call", action="search_books", arguments={"q": "emma"})
    assert "Use browser.navigate to open one that matches /search." in answer["message"]
