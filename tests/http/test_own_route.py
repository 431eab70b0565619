"""A call reaches its own action's route and nothing else, whatever the values of its path parameters are."""

import functools
from collections.abc import Mapping
from typing import Any

import pytest
from fastapi import APIRouter, FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Host, Mount, Route

from awp_publish import AgentPublisher, BearerToken, DeclarationError
from awp_publish.http import arrivals
from awp_publish.schema.paths import pattern_of
from tests.client import TestClient
from tests.doors.adapters import DOORS
from tests.guarded import ANN, KEYS, invoke, make_shop, poll, read, status_and_code
from tests.installed import installed, is_installed

TEXT = {"type": "string"}
ASKED_FOR = installed("mcp", "a2a", "awp")
CANCELLING: Mapping[str, Any] = {"auth_required": True, **({"confirm": True} if is_installed("confirmation") else {})}


class Shop:
    """A shop whose routes write down that they ran; `client` calls its actions."""

    def __init__(self, open_client, build) -> None:
        self.ran: list[str] = []
        self.site = make_shop(
            plugins=ASKED_FOR, secret_keys=KEYS, authenticate=BearerToken({"ann-secret-token": "ann"}), store="memory:"
        )
        self.app = build(self)
        self.client: TestClient = open_client(self.app)


def _fastapi(shop: Shop):
    orders = APIRouter(prefix="/orders")

    @orders.post("/cancel_all")
    @shop.site.action("cancel_all", **CANCELLING)
    async def cancel_all() -> str:
        """Cancel every order."""
        shop.ran.append("cancel_all")
        return "cancelled"

    @orders.post("/secret")
    async def secret() -> str:
        shop.ran.append("secret")
        return "a secret"

    @orders.post("/{order_id}")
    @shop.site.action("show_order")
    async def show_order(order_id: str) -> str:
        """Show an order."""
        shop.ran.append(f"show {order_id}")
        return order_id

    app = FastAPI()
    app.include_router(orders)
    app.add_middleware(AgentPublisher, site=shop.site)
    return app


def _starlette(shop: Shop, wrap=lambda routes: routes, around=None):
    async def run(request: Request) -> Response:
        shop.ran.append(request.url.path)
        return JSONResponse(request.path_params.get("order_id", "done"))

    async def cancel_all(request: Request) -> Response:
        """Cancel every order."""
        return await run(request)

    async def show_order(request: Request) -> Response:
        """Show an order."""
        return await run(request)

    shop.site.action("show_order", outputs=TEXT)(show_order)
    shop.site.action("cancel_all", **CANCELLING)(cancel_all)
    routes = [
        Route("/orders/cancel_all", cancel_all, methods=["POST"]),
        Route("/orders/secret", run, methods=["POST"]),
        Route("/orders/{order_id}", show_order, methods=["POST"]),
    ]
    app = Starlette(routes=wrap(routes))
    return AgentPublisher(app, shop.site) if around is None else around(app, shop.site)


def _inside(app, site):
    app.add_middleware(AgentPublisher, site=site)
    return app


BUILDS = {
    "fastapi": _fastapi,
    "starlette": _starlette,
    "starlette, inside": lambda shop: _starlette(shop, around=_inside),
    "mounted": lambda shop: _starlette(shop, lambda routes: [Mount("/shop", routes=routes)]),
    "sub-application": lambda shop: _starlette(shop, lambda routes: [Mount("/shop", app=Starlette(routes=routes))]),
    "host": lambda shop: _starlette(shop, lambda routes: [Host("shop.example", app=Starlette(routes=routes))]),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("build", BUILDS)
def test_a_value_that_names_a_sibling_is_refused_at_every_door(open_client, build, door):
    shop = Shop(open_client, BUILDS[build])
    caller = DOORS[door](shop.client)
    for value in ("cancel_all", "secret", "cancel_all\n"):
        answer = caller.call("show_order", {"order_id": value})
        if value.isprintable():
            assert (answer.code, "another address" in answer.detail) == ("INVALID_INPUT", True)
        assert [result for result in shop.ran if "cancel_all\n" not in result] == []
    assert caller.call("show_order", {"order_id": "o-1"}).output == "o-1"


def test_the_refusal_points_at_the_parameter(open_client):
    shop = Shop(open_client, _starlette)
    answer = invoke(shop.client, "show_order", {"order_id": "secret"})
    assert answer.status_code == 422
    assert answer.json()["errors"] == [{"pointer": "/order_id", "detail": "names another address of this site"}]


@pytest.mark.parametrize(
    "value",
    [
        "%63ancel_all",
        "cancel%5Fall",
        "..%2Fsecret",
        "x/../secret",
        "secret/",
        "secret?",
        "SECRET",
        "secret;x",
        " secret",
    ],
)
def test_no_spelling_of_a_sibling_reaches_it(open_client, value):
    shop = Shop(open_client, _fastapi)
    invoke(shop.client, "show_order", {"order_id": value})
    assert set(shop.ran) <= {f"show {value}"}


@pytest.mark.needs("jobs")
def test_a_job_is_refused_when_it_is_asked_for(open_client):
    shop = Shop(open_client, lambda shop: _with_jobs(shop))
    assert status_and_code(invoke(shop.client, "pack_order", {"order_id": "all"})) == (422, "INVALID_INPUT")
    started = invoke(shop.client, "pack_order", {"order_id": "o-1"})
    assert poll(shop.client, started.headers["location"]).json()["result"] == "o-1"
    assert shop.ran == ["pack o-1"]


def _with_jobs(shop: Shop):
    app = FastAPI()

    @app.post("/orders/all/pack")
    async def never() -> str:
        shop.ran.append("pack all")
        return "packed"

    @app.post("/orders/{order_id}/pack")
    @shop.site.action("pack_order", execution="async")
    async def pack_order(order_id: str) -> str:
        """Pack an order."""
        shop.ran.append(f"pack {order_id}")
        return order_id

    app.add_middleware(AgentPublisher, site=shop.site)
    return app


def test_values_that_span_segments_reach_no_longer_route(open_client):
    def build(shop: Shop):
        app = FastAPI()

        @app.get("/files/{name:path}/raw")
        async def raw(name: str) -> str:
            shop.ran.append("raw")
            return "raw"

        @app.get("/files/{name:path}")
        @shop.site.action("read_file")
        async def read_file(name: str) -> str:
            """Read a file."""
            return name

        app.add_middleware(AgentPublisher, site=shop.site)
        return app

    shop = Shop(open_client, build)
    assert status_and_code(read(shop.client, "read_file", {"name": "a/raw"})) == (422, "INVALID_INPUT")
    assert read(shop.client, "read_file", {"name": "a/b"}).json() == "a/b"
    assert shop.ran == []


def test_a_route_that_was_added_while_the_site_runs_is_not_reached(open_client):
    shop = Shop(open_client, _starlette)

    async def added(request: Request) -> Response:
        shop.ran.append("added")
        return PlainTextResponse("added")

    shop.app.app.router.routes.insert(0, Route("/orders/new", added, methods=["POST"]))
    assert status_and_code(invoke(shop.client, "show_order", {"order_id": "new"})) == (422, "INVALID_INPUT")
    assert shop.ran == []


def test_middleware_inside_that_changes_the_path_leads_a_call_to_no_other_route(open_client):
    class LowerCase:
        def __init__(self, app):
            self.app = app

        async def __call__(self, scope, receive, send):
            if scope["type"] == "http":
                scope["path"] = scope["path"].lower()
            await self.app(scope, receive, send)

    def inside_of_us(app, site):
        app.add_middleware(LowerCase)
        app.add_middleware(AgentPublisher, site=site)
        return app

    shop = Shop(open_client, lambda shop: _starlette(shop, around=inside_of_us))
    assert status_and_code(invoke(shop.client, "show_order", {"order_id": "Secret"})) == (422, "INVALID_INPUT")
    assert shop.ran == []
    assert invoke(shop.client, "show_order", {"order_id": "O-1"}).json() == "o-1"


def _plain(ran):
    """An application without routes that anybody could look at."""

    async def plain(scope, receive, send):
        if scope["type"] == "http":
            ran.append(scope["path"])
            await JSONResponse("shown")(scope, receive, send)
            return
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})

    return plain


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    "value",
    ["cancel_all", "Cancel_All", "cancel%5Fall", "cancel%255Fall", "x%2F..%2Fcancel_all", "archive", "export-7"],
)
def test_without_routes_a_call_reaches_no_other_known_address_of_the_site(open_client, door, value):
    def build(shop: Shop):
        inputs = {"type": "object", "properties": {"order_id": {"type": "string"}}}
        shop.site.declare(
            "show_order", method="GET", path="/orders/{order_id}", description="Show.", inputs=inputs, outputs=TEXT
        )
        shop.site.declare("change_order", method="POST", path="/orders/{id}", description="Change an order.")
        shop.site.declare("cancel_all", method="POST", path="/orders/cancel_all", description="Cancel every order.")
        shop.site.declare("export", method="GET", path="/orders/export-{number}", description="Export.")
        shop.site.page("/orders/archive", title="Archive")
        return AgentPublisher(_plain(shop.ran), shop.site)

    shop = Shop(open_client, build)
    caller = DOORS[door](shop.client)
    assert caller.call("show_order", {"order_id": value}).code == "INVALID_INPUT"
    assert caller.call("show_order", {"order_id": "o-1"}).output == "shown"
    assert shop.ran[-1:] == ["/orders/o-1"]


@pytest.mark.needs("plain")
def test_a_value_that_is_encoded_without_end_is_refused_at_once(open_client):
    site = make_shop()
    site.declare("show", method="GET", path="/orders/{order_id}", description="Show an order.")
    client = open_client(AgentPublisher(_plain([]), site))
    for value in ("%" + "25" * 3000, "x" * 500_000):
        answer = client.request("GET", "/agents/actions/show", json={"order_id": value})
        assert status_and_code(answer) == (422, "INVALID_INPUT")


def test_a_call_is_led_to_no_other_method(open_client):
    class Override:
        """As several frameworks do it."""

        def __init__(self, app):
            self.app = app

        async def __call__(self, scope, receive, send):
            if scope["type"] == "http":
                request = Request(scope)
                named = request.headers.get("x-http-method-override") or request.query_params.get("_method")
                scope["method"] = named or scope["method"]
                scope["path"] = request.headers.get("x-original-url", scope["path"])
            await self.app(scope, receive, send)

    site, ran = make_shop(), []
    app = FastAPI()

    @app.delete("/orders/{order_id}")
    async def delete(order_id: str) -> str:
        ran.append("deleted")
        return "deleted"

    async def show(request: Request) -> Response:
        """Show an order."""
        return JSONResponse("shown")

    inputs: Mapping[str, object] = {"type": "object", "properties": {}}
    app.router.add_route("/orders/{order_id}", site.action("show", inputs=inputs)(show), methods=["GET"])
    app.add_middleware(Override)
    app.add_middleware(AgentPublisher, site=site)
    client = open_client(app)
    for header in ("x-http-method-override", "X-HTTP-Method-Override"):
        assert read(client, "show", {"order_id": "1"}, {header: "DELETE"}).json() == "shown"
    assert read(client, "show", {"order_id": "1"}, {"x-original-url": "/nowhere"}).json() == "shown"
    assert status_and_code(read(client, "show", {"order_id": "1", "_method": "DELETE"})) == (422, "INVALID_INPUT")
    assert ran == []


def test_the_host_that_a_caller_names_leads_to_no_other_application(open_client):
    site, ran = make_shop(), []

    async def own(request: Request) -> Response:
        """Say hello."""
        return PlainTextResponse("own")

    async def other(request: Request) -> Response:
        ran.append("other")
        return PlainTextResponse("other")

    site.action("hello")(own)
    hosts = [
        Host("shop.example", app=Starlette(routes=[Route("/hello", own)])),
        Host("intern.example", app=Starlette(routes=[Route("/hello", other)])),
    ]
    client = open_client(AgentPublisher(Starlette(routes=hosts), site))
    assert read(client, "hello").text == "own"
    assert status_and_code(read(client, "hello", {}, {"host": "intern.example"})) == (422, "INVALID_INPUT")
    assert ran == []


def test_an_action_whose_path_another_route_answers_is_refused_at_start():
    site, app = make_shop(), FastAPI()

    @app.get("/orders/{order_id}")
    async def show(order_id: str) -> str:
        return order_id

    @app.get("/orders/latest")
    @site.action("latest")
    async def latest() -> str:
        """Show the latest order."""
        return "latest"

    app.add_middleware(AgentPublisher, site=site)
    with pytest.raises(DeclarationError, match=r'"latest".*/orders/\{order_id\}'), TestClient(app):
        pass


def test_many_fixed_routes_are_compared_at_start_in_proportion_to_their_number(monkeypatch):
    asked = []
    matches = Route.matches

    @functools.wraps(matches)
    def counted(route, scope):
        asked.append(route.path)
        return matches(route, scope)

    monkeypatch.setattr(Route, "matches", counted)
    site, routes = make_shop(), []
    for number in range(100):

        async def act(request: Request) -> Response:
            """Act."""
            return JSONResponse(None)

        site.action(f"act_{number}", method="POST", inputs={"type": "object"}, outputs=TEXT)(act)
        routes.append(Route(f"/{number}", act, methods=["POST"]))
        routes.append(Route(f"/{{id}}/{number}", act, methods=["PUT"]))
    rooms = [Mount("/rooms", routes=routes[:100]), *routes[100:]]
    AgentPublisher(Starlette(routes=rooms), site=site).open()
    assert len(asked) <= 2 * len(routes)


def test_many_declared_addresses_are_read_at_start_in_proportion_to_their_number(monkeypatch):
    read = []

    def counted(path):
        read.append(path)
        return pattern_of(path)

    monkeypatch.setattr(arrivals, "pattern_of", counted)
    site = make_shop()
    for number in range(50):
        site.declare(f"act_{number}", method="POST", path=f"/{number}/{{id}}", description="Act.")

    async def app(scope, receive, send):
        pass

    AgentPublisher(app, site=site).open()
    assert 50 <= len(read) <= 150


@pytest.mark.needs("confirmation")
def test_a_permitted_sibling_is_called_by_its_own_name(open_client):
    shop = Shop(open_client, _starlette)
    asked = invoke(shop.client, "cancel_all", {}, ANN)
    assert asked.status_code == 428
    confirmed = invoke(shop.client, "cancel_all", {}, ANN, confirmation=asked.json()["confirmation"]["token"])
    assert confirmed.json() == "done"
    assert shop.ran == ["/orders/cancel_all"]
