"""The middleware as a guest in somebody's application: starting, refreshing, leaving everything else alone."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI, WebSocket
from fastapi.responses import HTMLResponse
from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from awp_publish import AgentPublisher, DeclarationError, Site
from awp_publish.documents.protocol import Document, Protocol, published
from awp_publish.http.exchange import Message
from awp_publish.plugin import Plugin
from tests.client import TestClient
from tests.documents.known import ALL
from tests.installed import is_installed


def paths_of(site: Site) -> list[str]:
    """The paths of its documents, once it has started."""
    return [document.path_in(site.catalog) for document in published(ALL, site.catalog)]


def declare_status(site: Site) -> None:
    site.declare("status", method="GET", path="/status", description="Say how it goes.")


# --- Leaving the application alone ---


async def page(request: Request) -> Response:
    return HTMLResponse("<h1>Shop</h1>", headers={"etag": '"mine"', "link": "</a>; rel=next"})


async def data(request: Request) -> Response:
    return JSONResponse({"query": str(request.query_params), "body": (await request.body()).decode()})


async def stream(request: Request) -> Response:
    return StreamingResponse(iter(["a", "b", "c"]), media_type="text/csv")


ROUTES = [
    Route("/", page),
    Route("/data", data, methods=["GET", "POST", "DELETE"]),
    Route("/stream", stream),
    Route("/status", data),
    Route("/agents", data),
    Route("/agents/list", data),
    Route("/agents/{name}/profile", data),
    Route("/.well-known/other.json", data),
]
REQUESTS = [
    ("GET", "/", b""),
    ("GET", "/data?a=1&a=2", b""),
    ("POST", "/data", b"\x00\xff" * 10_000),
    ("DELETE", "/data", b""),
    ("HEAD", "/data", b""),
    ("OPTIONS", "/data", b""),
    ("GET", "/stream", b""),
    ("GET", "/agents", b""),
    ("GET", "/agents/list", b""),
    ("GET", "/agents/someone/profile", b""),
    ("POST", "/agents/someone/invoke/more", b"{}"),
    ("GET", "/.well-known/other.json", b""),
    ("GET", "/.well-known/nothing.json", b""),
    ("GET", "/agent.json/", b""),
    ("GET", "/nowhere", b""),
    ("PROPFIND", "/data", b""),
]


@pytest.mark.parametrize(("method", "path", "body"), REQUESTS)
def test_requests_that_are_not_ours_get_the_applications_own_answer(site, open_client, method, path, body):
    declare_status(site)
    ours = AgentPublisher(Starlette(routes=ROUTES), site, link_headers=False)
    bare, published = open_client(Starlette(routes=ROUTES)), open_client(ours)
    one, other = (client.request(method, path, content=body.decode("latin-1")) for client in (bare, published))
    if is_installed("pages") and one.headers.get("content-type", "").startswith("text/html"):
        one.headers["vary"] = "Accept"
    assert (one.status_code, one.content, one.headers) == (other.status_code, other.content, other.headers)


@pytest.mark.needs("woa", "awas", "discovery", "pages")
def test_html_pages_point_at_the_documents_and_keep_their_own_headers(site, open_client):
    declare_status(site)
    answer = open_client(AgentPublisher(Starlette(routes=ROUTES), site)).get("/")
    links = answer.headers.get_list("link")
    assert links[0] == "</a>; rel=next"
    assert '</.well-known/ai-actions.json>; rel="ai-actions"; type="application/json"' in links[1]
    assert '</.well-known/woa.json>; rel="service-desc"; type="application/woa+json"' in links[1]
    assert answer.headers["etag"] == '"mine"'


@pytest.mark.needs("discovery", "pages")
def test_pages_are_left_alone_without_link_headers_and_json_unless_they_are_for_it_too(site, open_client):
    declare_status(site)

    def links(path: str, link_headers: bool | None = None) -> list[str]:
        client = open_client(AgentPublisher(Starlette(routes=ROUTES), site, link_headers=link_headers))
        found: list[str] = client.get(path).headers.get_list("link")
        return found

    assert links("/", link_headers=False) == ["</a>; rel=next"]
    assert (len(links("/data")), len(links("/data", link_headers=True))) == (0, 1)


@pytest.mark.needs("woa")
def test_every_document_points_at_the_others(site, open_client):
    declare_status(site)
    client = open_client(AgentPublisher(Starlette(), site))
    for path in paths_of(site):
        assert (
            '</.well-known/woa.json>; rel="service-desc"; type="application/woa+json"'
            in client.get(path).headers["link"]
        )


def test_websockets_pass(site, open_client):
    app = FastAPI()

    @app.get("/status")
    @site.action("status")
    async def status() -> str:
        """Say how it goes."""
        return "well"

    @app.websocket("/talk")
    async def talk(socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_text("hello")
        await socket.close()

    app.add_middleware(AgentPublisher, site=site)
    with open_client(app).websocket_connect("/talk") as socket:
        assert socket.receive_text() == "hello"


@pytest.mark.parametrize("order", ["inside", "outside"])
def test_other_middleware_works_around_and_inside(site, open_client, order):
    app = FastAPI()

    @app.get("/long")
    @site.action("long")
    async def long() -> str:
        """Say something long."""
        return "long " * 1000

    others: list[tuple[Any, dict[str, object]]] = [
        (GZipMiddleware, {}),
        (CORSMiddleware, {"allow_origins": ["https://app.example"]}),
    ]
    publisher: list[tuple[Any, dict[str, object]]] = [(AgentPublisher, {"site": site})]
    for middleware, options in others + publisher if order == "inside" else publisher + others:
        app.add_middleware(middleware, **options)
    client = open_client(app)
    called = client.get("/agents/actions/long", headers={"origin": "https://app.example"})
    assert called.json() == "long " * 1000
    for path in paths_of(site):
        assert client.get(path, headers={"accept-encoding": "gzip"}).status_code == 200


# --- Starting and stopping ---


def broken_site() -> tuple[FastAPI, Site]:
    site, app = Site("Shop", "Sells.", url="https://shop.example"), FastAPI()

    @site.action("lost")
    async def lost() -> None:
        """Never registered with a route."""

    app.add_middleware(AgentPublisher, site=site)
    return app, site


def test_a_mistake_stops_the_start_and_names_its_action(open_client):
    app, _ = broken_site()
    with pytest.raises(DeclarationError, match='action "lost": no route of this application leads to'):
        open_client(app)


async def test_a_server_is_told_that_the_start_failed():
    app, _ = broken_site()
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "lifespan.startup"}

    async def send(message: Message) -> None:
        sent.append(message)

    with pytest.raises(DeclarationError):
        await app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, receive, send)
    assert sent[0]["type"] == "lifespan.startup.failed"
    assert 'action "lost"' in str(sent[0]["message"])


def test_the_applications_own_lifespan_runs(site):
    seen: list[str] = []

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, str]]:
        seen.append("started")
        yield {"name": "Ada"}
        seen.append("stopped")

    async def who(request: Request) -> Response:
        return JSONResponse(request.state.name)

    site.declare("who", method="GET", path="/who", description="Say who.")
    app = AgentPublisher(Starlette(routes=[Route("/who", who)], lifespan=lifespan), site=site)
    with TestClient(app) as client:
        assert client.get("/agents/actions/who").json() == "Ada"
    assert seen == ["started", "stopped"]


@pytest.mark.needs("plain")
async def test_no_lifespan_is_needed(site):
    declare_status(site)
    app = AgentPublisher(Starlette(routes=[Route("/status", lambda request: PlainTextResponse("fine"))]), site=site)
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="https://shop.example") as client:
        assert (await client.get("/agents/actions/status")).text == "fine"
        for path in paths_of(site):
            assert (await client.get(path)).status_code == 200


# --- Refreshing ---


@pytest.mark.needs("status")
@pytest.mark.needs("plain")
def test_a_degraded_action_is_published_without_a_restart(site, open_client):
    declare_status(site)
    client = open_client(AgentPublisher(Starlette(), site=site))
    before = client.get("/agent.json")
    untouched = client.get("/.well-known/woa.json")
    assert before.json()["agent_status"]["degraded_actions"] == []
    site.set_status(operational=True, degraded_actions=["status"])
    assert client.get("/agent.json").headers["etag"] == before.headers["etag"]
    site.refresh()
    after = client.get("/agent.json")
    assert after.json()["agent_status"]["degraded_actions"] == ["status"]
    assert after.headers["etag"] != before.headers["etag"]
    assert client.get("/.well-known/woa.json").headers == untouched.headers


@pytest.mark.needs("status")
def test_an_unknown_degraded_action_is_refused(site, open_client):
    declare_status(site)
    open_client(AgentPublisher(Starlette(), site=site))
    site.set_status(degraded_actions=["statsu"])
    with pytest.raises(DeclarationError, match='degraded_actions: there is no action "statsu"'):
        site.refresh()


@pytest.mark.needs("agent_json", "status")
@pytest.mark.needs("plain")
async def test_no_reader_sees_half_a_refresh_under_load(site):
    """Readers and a refreshing thread at once: every answer is whole, and its ETag belongs to its bytes."""
    declare_status(site)
    app = AgentPublisher(Starlette(), site=site)
    seen: dict[str, set[bytes]] = {}
    stop = threading.Event()

    async def read(client: httpx2.AsyncClient) -> None:
        while not stop.is_set():
            answer = await client.get("/agent.json", headers={"accept-encoding": "identity"})
            assert int(answer.headers["content-length"]) == len(answer.content)
            seen.setdefault(answer.headers["etag"], set()).add(answer.content)
            await asyncio.sleep(0.001)  # a loop that never rests hardly lets another thread run

    def refresh() -> None:
        turn, until = 0, time.monotonic() + 30
        while turn < 60 or (len(seen) < 2 and time.monotonic() < until):
            site.set_status(degraded_actions=["status"] if turn % 2 else [])
            site.refresh()
            turn += 1
        stop.set()

    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="https://shop.example") as client:
        await client.get("/agent.json")
        await asyncio.gather(*(read(client) for _ in range(8)), asyncio.to_thread(refresh))
    assert len(seen) == 2
    assert all(len(bodies) == 1 for bodies in seen.values())


def test_a_protocol_of_ones_own_is_one_more_value(open_client):
    mine = Protocol("mine", (Document("/mine.json", "application/json", lambda catalog: catalog.domain.encode()),))
    site = Site("Shop", "Sells.", url="https://shop.example", plugins=[Plugin(name="mine", documents=[mine])])
    declare_status(site)
    client = open_client(AgentPublisher(Starlette(), site=site))
    answer = client.get("/mine.json")
    assert (answer.text, answer.headers["cache-control"]) == (
        "shop.example",
        "public, max-age=300, stale-while-revalidate=300",
    )
    assert client.get("/mine.json", headers={"if-none-match": answer.headers["etag"]}).status_code == 304


publisher: Any = AgentPublisher


async def no_application(scope, receive, send): ...


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda site: publisher(site, no_application), "takes the application first, then the site."),
        (lambda site: publisher(site, site), "takes the application first, then the site."),
        (lambda site: publisher(no_application, no_application), "needs an application and a site."),
        (lambda site: publisher("app", site), "needs an application and a site."),
    ],
)
def test_the_wrong_order_gets_a_sentence(given, words):
    site = Site(name="Shop", description="A shop.", url="https://shop.example")
    with pytest.raises(DeclarationError) as refused:
        given(site)
    assert str(refused.value) == (
        f"AgentPublisher: {words} Write AgentPublisher(app, site=site), or "
        "app.add_middleware(AgentPublisher, site=site)."
    )
