"""Functions without a route that FastAPI fills in: dependencies, security, the request. None of it is a caller's."""

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Annotated, Any

import pytest
from fastapi import BackgroundTasks, Body, Depends, FastAPI, Header, HTTPException, Request, Response, Security
from fastapi.security import (
    APIKeyHeader,
    HTTPAuthorizationCredentials,
    HTTPBearer,
    OAuth2PasswordBearer,
    SecurityScopes,
)
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware

from awp_publish import AgentPublisher, DeclarationError, Site
from tests.client import TestClient
from tests.doors.adapters import DOORS
from tests.installed import installed

ORDERS = {1: ["Emma"], 2: ["Moby-Dick"]}
TOKENS = {"anna": 1, "ben": 2}

bearer = OAuth2PasswordBearer(tokenUrl="token", scopes={"orders": "Read orders.", "refund": "Pay back."})


async def current_user_id(scopes: SecurityScopes, token: Annotated[str, Depends(bearer)]) -> int:
    if token not in TOKENS:
        raise HTTPException(401, "Unknown token.", {"WWW-Authenticate": "Bearer"})
    if "refund" in scopes.scopes and token != "anna":
        raise HTTPException(403, "Not enough permissions.")
    return TOKENS[token]


UserId = Annotated[int, Depends(current_user_id)]


def new_site(**options: Any) -> Site:
    return Site(name="Shop", description="Sells things.", url="https://shop.example", **options)


def published(app: Any, site: Site) -> TestClient:
    return TestClient(AgentPublisher(app, site=site, check=False), base_url="https://shop.example")


def inputs_of(site: Site, action_id: str) -> Mapping[str, Any]:
    return next(action.inputs for action in site.catalog.actions if action.id == action_id)


def refusal(app: Any, site: Site) -> str:
    with pytest.raises(DeclarationError) as refused:
        AgentPublisher(app, site=site, check=False).open()
    return str(refused.value)


def orders() -> tuple[FastAPI, Site]:
    app, site = FastAPI(), new_site(plugins=installed("mcp", "a2a", "awp"))

    @site.agent("my_orders")
    async def my_orders(user_id: UserId, newest_first: bool = False) -> list[str]:
        """List the caller's orders."""
        return ORDERS[user_id]

    @site.agent("refund")
    def refund(order: int, user_id: Annotated[int, Security(current_user_id, scopes=["refund"])]) -> str:
        """Pay an order back."""
        return f"order {order} of {user_id}"

    return app, site


@pytest.mark.parametrize("door", DOORS)
def test_a_dependency_is_resolved_as_for_a_route_and_never_chosen_by_the_caller(door):
    app, site = orders()
    with published(app, site) as client:
        caller = DOORS[door](client)
        assert caller.call("my_orders", token="anna").output in (["Emma"], {"result": ["Emma"]})
        assert caller.call("my_orders", token="ben").output in (["Moby-Dick"], {"result": ["Moby-Dick"]})
        for token in (None, "nobody"):
            assert caller.call("my_orders", token=token).code in ("AUTHENTICATION_REQUIRED", "INVALID_CREDENTIALS")
        assert caller.call("my_orders", {"user_id": 1}, token="ben").code == "INVALID_INPUT"
        assert caller.call("my_orders", {"user_id": 1}).code in ("AUTHENTICATION_REQUIRED", "INVALID_INPUT")
        assert caller.call("refund", {"order": 7}, token="anna").output in ("order 7 of 1", {"result": "order 7 of 1"})
        assert caller.call("refund", {"order": 7}, token="ben").code == "INSUFFICIENT_PERMISSIONS"


def test_documents_tell_the_function_s_own_inputs_and_that_it_needs_to_know_who_calls():
    app, site = orders()
    with published(app, site) as client:
        assert list(inputs_of(site, "my_orders")["properties"]) == ["newest_first"]
        assert list(inputs_of(site, "refund")["properties"]) == ["order"]
        documents = [client.get(path).text for path in ("/.well-known/ai-actions.json", "/agent.json", "/llms.txt")]
        assert not any("user_id" in document for document in documents)
        actions = {action.id: action for action in site.catalog.actions}
    assert actions["my_orders"].auth_required
    assert actions["refund"].scopes == ("refund",)
    assert actions["my_orders"].target is None
    assert "/agents/actions/my_orders" not in [getattr(route, "path", "") for route in app.routes]


def test_nobody_but_its_own_calls_reaches_the_hidden_route():
    app, site = orders()
    publisher = AgentPublisher(app, site=site, check=False)
    publisher.open()
    with TestClient(app) as client:  # past the publisher, straight to the application
        assert (
            client.post("/agents/actions/my_orders", json={}, headers={"authorization": "Bearer anna"}).status_code
            == 404
        )
        assert "/agents/actions/my_orders" not in client.get("/openapi.json").json()["paths"]


class Page:
    def __init__(self, limit: Annotated[int, Header()] = 0, offset: int = 0) -> None:
        self.offset = offset
        self.limit = limit


class Paginator:
    """A callable instance, as a parametrised dependency is written."""

    def __init__(self, most: int) -> None:
        self.most = most

    def __call__(self, limit: int = 10) -> int:
        return min(limit, self.most)


class Note(BaseModel):
    text: str
    stars: int = 0


def test_parameters_of_dependencies_are_inputs():
    app, site = FastAPI(), new_site()

    @site.agent("list_books")
    async def list_books(page: Annotated[Page, Depends()], most: Annotated[int, Depends(Paginator(5))], q: str) -> Any:
        """List books."""
        return [q, page.offset, page.limit, most]

    @site.agent("add_note")
    async def add_note(note: Note, most: int = Depends(Paginator(5)), by: str = Depends(lambda: "us")) -> Any:
        """Add a note."""
        return [note.text, note.stars, most, by]

    @site.agent("tell")
    async def tell(word: str, extra: Annotated[str, Depends(told)]) -> Any:
        """Tell."""
        return [word, extra]

    with published(app, site) as client:
        given = inputs_of(site, "list_books")
        assert set(given["properties"]) == {"q", "offset", "limit", "header_limit"} or set(given["properties"]) == {
            "q",
            "offset",
            "limit",
            "query_limit",
        }
        assert given["required"] == ["q"]
        answer = client.post("/agents/actions/list_books", json={"q": "x", "offset": 3})
        assert answer.json() == ["x", 3, 0, 5]
        note = {"text": "Fine", "stars": 2, "limit": 3}
        assert client.post("/agents/actions/add_note", json=note).json() == ["Fine", 2, 3, "us"]
        wrong = client.post("/agents/actions/add_note", json={"text": "a", "limit": "many"}).json()
        assert [error["pointer"] for error in wrong["errors"]] == ["/limit"]
        assert client.post("/agents/actions/tell", json={"word": "a", "extra": "b"}).json() == ["a", "b!"]


def told(extra: Annotated[str, Body(embed=True)]) -> str:
    return extra + "!"


def test_the_request_the_response_and_background_tasks_are_the_call_s_own():
    app, site, done = FastAPI(), new_site(), list[str]()

    @site.agent("greet")
    async def greet(request: Request, response: Response, tasks: BackgroundTasks, name: str) -> str:
        """Greet."""
        response.headers["Link"] = "</names>; rel=related"
        response.set_cookie("seen", "1")
        tasks.add_task(done.append, name)
        return f"{request.headers['x-greeting']}, {name}"

    with published(app, site) as client:
        assert set(inputs_of(site, "greet")["properties"]) == {"name"}
        answer = client.post("/agents/actions/greet", json={"name": "Emma"}, headers={"X-Greeting": "Hi"})
        assert (answer.status_code, answer.json()) == (200, "Hi, Emma")
        assert answer.headers["link"] == "</names>; rel=related"
        assert answer.cookies["seen"] == "1"
        assert done == ["Emma"]
        assert (
            client.post("/agents/actions/greet", json={"name": "Emma", "request": {}}).json()["code"] == "INVALID_INPUT"
        )


def test_dependencies_that_yield_clean_up_and_see_the_session_of_middleware():
    app, site, seen = FastAPI(middleware=[Middleware(SessionMiddleware, secret_key="s" * 32)]), new_site(), list[str]()

    async def connection() -> AsyncIterator[str]:
        seen.append("open")
        try:
            yield "connection"
        finally:
            seen.append("closed")

    def plain() -> Iterator[int]:
        yield 7

    @site.agent("count")
    def count(request: Request, db: Annotated[str, Depends(connection)], seven: Annotated[int, Depends(plain)]) -> Any:
        """Count calls of a session."""
        request.session["calls"] = request.session.get("calls", 0) + 1
        return [db, seven, request.session["calls"]]

    with published(app, site) as client:
        for number in (1, 2):
            assert client.post("/agents/actions/count").json() == ["connection", 7, number]
    assert seen == ["open", "closed"] * 2


def test_dependencies_of_the_whole_application_hold_for_functions_too():
    keys = APIKeyHeader(name="X-Key")

    async def check(key: Annotated[str, Depends(keys)]) -> None:
        if key != "right":
            raise HTTPException(403, "Wrong key.")

    app, site = FastAPI(dependencies=[Depends(check)]), new_site()

    @site.agent("count")
    async def count(text: str) -> int:
        """Count characters."""
        return len(text)

    with published(app, site) as client:
        lacking = client.post("/agents/actions/count", json={"text": "abc"})
        assert lacking.status_code in (401, 403)  # as FastAPI has it: 403 before 0.122
        ask: Any = {"json": {"text": "abc"}}
        assert client.post("/agents/actions/count", headers={"X-Key": "wrong"}, **ask).status_code == 403
        assert client.post("/agents/actions/count", headers={"X-Key": "right"}, **ask).json() == 3
        assert inputs_of(site, "count")["properties"] == {"text": {"type": "string"}}


def test_overrides_of_a_test_hold():
    app, site = orders()
    app.dependency_overrides[current_user_id] = lambda: 2
    with published(app, site) as client:
        assert client.post("/agents/actions/my_orders").json() == ["Moby-Dick"]


def test_a_credential_that_is_looked_for_but_not_demanded_is_none_of_the_inputs():
    app, site, maybe = FastAPI(), new_site(), HTTPBearer(auto_error=False)

    @site.agent("hello")
    async def hello(who: Annotated[HTTPAuthorizationCredentials | None, Depends(maybe)]) -> str:
        """Say hello."""
        return who.credentials if who else "nobody"

    with published(app, site) as client:
        assert inputs_of(site, "hello")["properties"] == {}
        assert client.post("/agents/actions/hello").json() == "nobody"
        headers = {"authorization": "Bearer me"}
        assert client.post("/agents/actions/hello", headers=headers).json() == "me"
    assert not site.catalog.actions[0].auth_required


def test_operations_of_an_agent_and_methods_have_dependencies_too():
    app, site = FastAPI(), new_site()
    desk = site.agent("desk", description="The help desk.")

    class Desk:
        async def ask(self, user_id: UserId, question: str) -> str:
            """Ask a question."""
            return f"{user_id}: {question}"

    desk.operation("ask")(Desk().ask)
    with published(app, site) as client:
        body = {"question": "Why?"}
        assert client.post("/agents/actions/desk_ask", json=body).status_code == 401
        answer = client.post("/agents/actions/desk_ask", json=body, headers={"authorization": "Bearer ben"})
        assert answer.json() == "2: Why?"


def test_a_background_job_has_its_caller_s_dependencies():
    from awp_publish import Jobs

    app, site = FastAPI(), new_site(plugins=[Jobs()])

    @site.agent("report", execution="async")
    async def report(user_id: UserId) -> int:
        """Write a report."""
        return user_id

    with published(app, site) as client:
        headers = {"authorization": "Bearer ben"}
        accepted = client.post("/agents/actions/report", headers=headers)
        assert accepted.status_code == 202
        for _ in range(100):
            job = client.get(accepted.json()["poll_endpoint"].removeprefix("https://shop.example")).json()
            if job["status"] == "done":
                break
        assert (job["status"], job["result"]) == ("done", 2)


def by_starlette(site: Site) -> Any:
    return Starlette()


def mounted(site: Site) -> Any:
    app = Starlette()
    app.mount("/api", FastAPI())
    return app


@pytest.mark.parametrize("make", [by_starlette, mounted])
@pytest.mark.parametrize(
    ("kind", "told"),
    [(UserId, "Depends"), (Annotated[int, Security(current_user_id)], "Security"), (Request, "Request")],
)
def test_a_placeholder_that_nothing_fills_in_is_refused_at_the_start(make, kind, told):
    site = new_site()

    async def my_orders(user_id: Any) -> list[str]:
        """List the caller's orders."""
        return []

    my_orders.__annotations__["user_id"] = kind
    site.agent("my_orders")(my_orders)
    refused = refusal(make(site), site)
    assert f'operation "default" of agent "my_orders": its parameter user_id ({told}) is not an input' in refused
    assert "@site.action" in refused
    assert "current_caller()" in refused


def test_a_request_without_an_annotation_is_no_input_either():
    site = new_site()

    @site.agent("greet")
    async def greet(request, name: str) -> str:
        """Greet."""
        return name

    assert "its parameter request (the request) is not an input" in refusal(Starlette(), site)
    assert refusal(FastAPI(), site).endswith("its parameter request has no annotation; write request: Request.")


def test_a_dependency_inside_of_a_union_is_refused_with_the_spelling_that_works():
    site = new_site()

    @site.agent("greet")
    async def greet(user: UserId | None = None) -> str:
        """Greet."""
        return "Hi"

    assert "its parameter user has Depends inside its annotation; write Annotated[... | None, Depends(...)]" in (
        refusal(FastAPI(), site)
    )


def test_declared_inputs_do_not_bring_a_dependency_back():
    app, site = FastAPI(), new_site()

    class Query(BaseModel):
        word: str

    @site.agent("find", inputs=Query)
    async def find(user_id: UserId, word: str) -> list[Any]:
        """Find."""
        return [user_id, word]

    with published(app, site) as client:
        assert list(inputs_of(site, "find")["properties"]) == ["word"]
        answer = client.post("/agents/actions/find", json={"word": "a"}, headers={"authorization": "Bearer ben"})
        assert answer.json() == [2, "a"]


@pytest.mark.needs("prompts")
def test_a_prompt_has_no_dependencies():
    site = new_site()

    @site.prompt("write")
    def write(topic: str, user_id: UserId) -> str:
        """Write."""
        return topic

    refused = refusal(FastAPI(), site)
    assert refused.startswith('prompt "write": its parameter user_id (Depends) cannot be entered by a person.')
    assert "current_caller()" in refused
