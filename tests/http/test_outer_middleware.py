"""Middleware of the site that stands outside of us: it sees the address of a call's route, as for any request."""

import contextvars
import json

import pytest
from fastapi import FastAPI, HTTPException, Request
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route

from awp_publish import AgentPublisher, DeclarationError, Site
from tests.client import TestClient
from tests.doors.adapters import DOORS
from tests.guarded import KEYS, invoke, make_shop, poll, read, status_and_code
from tests.installed import installed

ASKED_FOR = installed("mcp", "a2a", "awp")
seen: contextvars.ContextVar[str] = contextvars.ContextVar("seen", default="")


class AdminGuard:
    """Lets nobody see /admin/ without its word, by the path alone."""

    def __init__(self, app, paths):
        self.app = app
        self.paths = paths

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http":
            self.paths.append(scope["path"])
            if scope["path"].startswith("/admin/") and (b"x-word", b"sesame") not in scope["headers"]:
                await PlainTextResponse("For the staff.", 403)(scope, receive, send)
                return
            scope.setdefault("state", {})["passes"] = scope.get("state", {}).get("passes", 0) + 1
        await self.app(scope, receive, send)


class PerRequest(BaseHTTPMiddleware):
    """Middleware of the kind that most sites write."""

    async def dispatch(self, request, call_next):
        seen.set(request.url.path)
        request.state.path = request.url.path
        answer = await call_next(request)
        answer.headers["x-seen"] = seen.get()
        return answer


def make_admin(ran, **options) -> tuple[Site, FastAPI]:
    site = make_shop(plugins=ASKED_FOR, secret_keys=KEYS, **options)
    app = FastAPI()

    @app.get("/admin/users")
    @site.action("list_users")
    async def list_users() -> str:
        """Say who is here."""
        ran.append("list_users")
        return "ann, ben"

    @app.get("/books/{title}")
    @site.action("show_book")
    async def show_book(title: str, request: Request) -> dict[str, str]:
        """Show a book."""
        return {"title": title, "passes": str(request.scope.get("state", {}).get("passes", 0))}

    return site, app


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("order", ["outside", "inside", "outside, of a class of its own"])
def test_a_guard_by_path_sees_the_route_of_a_call_at_every_door(open_client, door, order):
    class Own(AgentPublisher):
        pass

    ran: list[str] = []
    paths: list[str] = []
    site, app = make_admin(ran)
    if order == "inside":
        app.add_middleware(AdminGuard, paths=paths)
    app.add_middleware(Own if order.endswith("own") else AgentPublisher, site=site)
    if order != "inside":
        app.add_middleware(AdminGuard, paths=paths)
    caller = DOORS[door](open_client(app))
    answer = caller.call("list_users")
    assert (answer.code is not None, "staff" in answer.detail) == (True, True)
    assert ran == []
    assert "/admin/users" in paths
    assert caller.call("show_book", {"title": "emma"}).output == {"title": "emma", "passes": "1"}


def test_a_publisher_whose_place_cannot_be_told_goes_in_from_outside(open_client):
    ran: list[str] = []
    paths: list[str] = []
    site, app = make_admin(ran)
    app.add_middleware(lambda app: AgentPublisher(app, site))
    app.add_middleware(AdminGuard, paths=paths)
    assert read(open_client(app), "list_users").status_code == 403
    assert ran == []


@pytest.mark.needs("jobs")
def test_a_known_caller_passes_and_their_job_is_guarded_too(open_client):
    ran: list[str] = []
    paths: list[str] = []
    site, app = make_admin(ran)

    @app.post("/admin/jobs")
    @site.action("clean_up", execution="async")
    async def clean_up() -> str:
        """Clean up."""
        ran.append("clean_up")
        return "clean"

    app.add_middleware(AgentPublisher, site=site)
    app.add_middleware(AdminGuard, paths=paths)
    client = open_client(app)
    assert read(client, "list_users", {}, {"x-word": "sesame"}).json() == "ann, ben"
    started = invoke(client, "clean_up")
    assert poll(client, started.headers["location"]).json()["status"] == "failed"
    assert ran == ["list_users"]


def test_a_call_passes_once_if_no_middleware_is_outside(open_client):
    paths: list[str] = []
    site, app = make_admin([])
    app.add_middleware(AdminGuard, paths=paths)
    app.add_middleware(AgentPublisher, site=site)
    read(open_client(app), "show_book", {"title": "emma"})
    assert paths == ["/books/emma"]


@pytest.mark.needs("plain")
def test_a_call_on_its_way_is_never_for_a_door_or_document_of_ours(open_client):
    site, app = make_shop(), FastAPI()
    paths: list[str] = []

    @app.post("/{first}/actions/{second}")
    @site.action("relay")
    async def relay(first: str, second: str) -> str:
        """Relay a word."""
        return f"{first} {second}"

    @app.get("/{name}")
    @site.action("show")
    async def show(name: str) -> str:
        """Show a page."""
        return name

    app.add_middleware(AgentPublisher, site=site)
    app.add_middleware(AdminGuard, paths=paths)
    client = open_client(app)
    assert invoke(client, "relay", {"first": "agents", "second": "relay"}).json() == "agents relay"
    assert read(client, "show", {"name": "agent.json"}).json() == "agent.json"


def test_trusting_outer_middleware_spares_calls_the_second_pass(open_client):
    paths: list[str] = []
    site, app = make_admin([])
    app.add_middleware(AgentPublisher, site=site, trust_outer_middleware=True)
    app.add_middleware(AdminGuard, paths=paths)
    assert read(open_client(app), "list_users").json() == "ann, ben"
    assert "/admin/users" not in paths


@pytest.mark.parametrize("trusts", [False, True])
def test_a_mounted_publisher_names_the_middleware_that_calls_would_pass_by(trusts):
    site, app = make_admin([])
    outer = Starlette(routes=[Mount("/shop", app=AgentPublisher(app, site, trust_outer_middleware=trusts))])
    outer.add_middleware(AdminGuard, paths=[])
    client = TestClient(outer, base_url="https://shop.example")
    if trusts:
        answer = client.get("/shop/agents/actions/show_book?title=emma")
        assert answer.json()["title"] == "emma"
    else:
        with pytest.raises(DeclarationError, match=r"[ (]AdminGuard[ ),:.]"):
            client.get("/shop/agent.json")


# --- Sessions ---


class OldSessions:
    """Sessions as Starlette wrote them once: a plain dictionary, sent again with every answer."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        cookie = Request(scope).cookies.get("session", "{}")
        scope["session"] = json.loads(bytes.fromhex(cookie)) if cookie != "{}" else {}

        async def send_with_cookie(message):
            if message["type"] == "http.response.start" and scope["session"]:
                value = json.dumps(scope["session"]).encode().hex()
                message["headers"] = [*message["headers"], (b"set-cookie", f"session={value}; path=/".encode())]
            await send(message)

        await self.app(scope, receive, send_with_cookie)


class LastSeen:
    """Writes into every session at the end of each request."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        async def send_late(message):
            if message["type"] == "http.response.start":
                scope["session"]["last_seen"] = "now"
            await send(message)

        await self.app(scope, receive, send_late if scope["type"] == "http" else send)


def make_sign_in(*middleware) -> FastAPI:
    site, app = make_shop(), FastAPI()

    @app.post("/sign-in")
    @site.action("sign_in")
    async def sign_in(request: Request, name: str) -> str:
        """Sign in."""
        request.session["user"] = name
        return name

    @app.post("/sign-out")
    @site.action("sign_out")
    async def sign_out(request: Request) -> str:
        """Sign out."""
        request.session.clear()
        return "bye"

    @app.get("/me")
    @site.action("me")
    async def me(request: Request) -> str:
        """Say who calls."""
        return str(request.session.get("user"))

    app.add_middleware(AgentPublisher, site=site)
    for kind, options in middleware:
        app.add_middleware(kind, **options)
    return app


@pytest.mark.parametrize(
    "middleware",
    [
        [(SessionMiddleware, {"secret_key": "k"})],
        [(OldSessions, {})],
        [(LastSeen, {}), (SessionMiddleware, {"secret_key": "k"})],
        [(LastSeen, {}), (OldSessions, {})],
    ],
    ids=["tracked", "old", "tracked, written always", "old, written always"],
)
def test_changes_of_a_route_to_the_session_are_kept(open_client, middleware):
    client = open_client(make_sign_in(*middleware))
    assert read(client, "me").json() == "None"
    for name in ("ann", "ben"):
        assert invoke(client, "sign_in", {"name": name}).json() == name
        assert read(client, "me").json() == name
        assert client.get("/me").json() == name
    invoke(client, "sign_out")
    if middleware[-1][0] is SessionMiddleware:
        assert read(client, "me").json() == "None"


# --- What else stands outside ---


def test_an_answer_that_is_compressed_outside_is_read(open_client):
    site, app = make_admin([])
    app.add_middleware(AgentPublisher, site=site)
    app.add_middleware(GZipMiddleware, minimum_size=1)
    answer = read(open_client(app), "list_users", {}, {"accept-encoding": "gzip"})
    assert (answer.json(), answer.headers["content-encoding"]) == ("ann, ben", "gzip")


def test_context_variables_of_the_inner_pass_stay_in_it(open_client):
    site, app = make_shop(), FastAPI()

    @app.get("/me")
    @site.action("me")
    async def me(request: Request) -> list[str]:
        """Say what is known of the request."""
        return [seen.get(), request.state.path, request.headers.get("x-request-id", "")]

    app.add_middleware(AgentPublisher, site=site)
    app.add_middleware(PerRequest)
    answer = read(open_client(app), "me")
    assert answer.json() == ["/me", "/me", answer.headers["x-request-id"]]
    assert answer.headers["x-seen"] == "/agents/actions/me"


@pytest.mark.parametrize("outside", [(AdminGuard, {"paths": []}), (PerRequest, {})], ids=["plain", "base"])
def test_failures_refusals_and_late_work_are_what_they_are_without_middleware(open_client, outside):
    ran: list[str] = []
    site, app = make_shop(), FastAPI()

    @app.get("/fail")
    @site.action("fail")
    async def fail() -> str:
        """Fail."""
        raise RuntimeError("a secret of the site")

    @app.get("/refuse")
    @site.action("refuse")
    async def refuse() -> str:
        """Refuse."""
        raise HTTPException(409, "Not now.")

    async def slow(request) -> Response:
        """Take too long."""
        import asyncio

        try:
            await asyncio.sleep(60)
        finally:
            ran.append("stopped")
        return Response()

    async def late(request) -> Response:
        """Work after the answer."""
        return JSONResponse("soon", background=BackgroundTask(ran.append, "late"))

    app.router.add_route("/slow", site.action("slow", timeout=1)(slow))
    app.router.add_route("/late", site.action("late")(late))
    app.add_middleware(AgentPublisher, site=site)
    app.add_middleware(outside[0], **outside[1])
    client = open_client(app)
    failed = read(client, "fail")
    assert status_and_code(failed) == (500, "HANDLER_FAILED")
    assert "secret" not in failed.text
    refused = read(client, "refuse")
    assert (refused.status_code, refused.json()["detail"]) == (409, "Not now.")
    assert status_and_code(read(client, "slow")) == (504, "HANDLER_TIMEOUT")
    assert read(client, "late").json() == "soon"
    assert ran == ["stopped", "late"]


def test_the_state_of_the_lifespan_reaches_the_route(open_client):
    import contextlib

    @contextlib.asynccontextmanager
    async def lifespan(app):
        yield {"database": "open"}

    site = make_shop()

    async def read_database(request) -> Response:
        """Read the database."""
        return JSONResponse([request.state.database, request.state.passes])

    app = Starlette(routes=[Route("/read", site.action("read")(read_database))], lifespan=lifespan)
    app.add_middleware(AgentPublisher, site=site)
    app.add_middleware(AdminGuard, paths=[])
    assert read(open_client(app), "read").json() == ["open", 1]


def test_a_site_below_a_prefix_is_entered_below_it(open_client):
    ran: list[str] = []
    paths: list[str] = []
    site, app = make_admin(ran)
    app.add_middleware(AgentPublisher, site=site)
    app.add_middleware(AdminGuard, paths=paths)
    client = open_client(app, root_path="/shop")
    assert read(client, "show_book", {"title": "emma"}).json()["title"] == "emma"
