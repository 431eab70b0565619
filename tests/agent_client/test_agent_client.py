"""`AgentClient`: a site's own tests call its actions as agents do, through any door."""

import asyncio
import json
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Annotated, Any

import pytest
import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import Response, StreamingResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from awp_publish import AgentPublisher, Site
from awp_publish.client import AgentClient, CallFailed, doors
from awp_publish.client.network import Network
from awp_publish.http.outgoing import RequestFailed
from awp_publish.http.running import StartFailed
from awp_publish.model import Paths
from tests.installed import installed


def shop(**options: Any) -> Any:
    site = Site(
        name="Shop",
        description="Sells books.",
        url="http://127.0.0.1",
        plugins=installed("mcp", "a2a", "awp"),
        secret_keys=["s" * 32],
        **options,
    )
    app = FastAPI(middleware=[Middleware(SessionMiddleware, secret_key="s" * 32)])
    bearer = HTTPBearer()

    @app.get("/books/{slug}")
    @site.action("show_book")
    async def show_book(slug: str) -> dict[str, str]:
        """Show a book."""
        if slug == "gone":
            raise HTTPException(404, "There is no such book.")
        return {"slug": slug}

    @app.post("/orders")
    @site.action("order_book", confirm="Order {slug}?", idempotency="1h")
    async def order_book(slug: str) -> dict[str, str]:
        """Order a book."""
        return {"ordered": slug}

    @site.agent("report", execution="async")
    async def report(pages: int) -> dict[str, int]:
        """Write a report."""
        if pages < 0:
            raise HTTPException(409, "No.")
        return {"pages": pages}

    @app.get("/me")
    @site.action("me")
    async def me(shown: Annotated[HTTPAuthorizationCredentials, Depends(bearer)]) -> dict[str, str]:
        """Say who I am."""
        return {"token": shown.credentials}

    @app.post("/visit")
    @site.action("visit")
    async def visit(request: Request) -> dict[str, int]:
        """Count visits of a session."""
        request.session["visits"] = request.session.get("visits", 0) + 1
        return {"visits": request.session["visits"]}

    @site.agent("quote")
    async def quote() -> dict[str, int]:
        """Make a quote."""
        return {"price": 3}

    @site.agent("buy", requires=["quote"])
    async def buy() -> dict[str, str]:
        """Buy at the quoted price."""
        return {"bought": "yes"}

    @app.get("/cover", responses={200: {"content": {"image/png": {}}}}, response_class=Response)
    @site.action("cover")
    async def cover() -> Response:
        """Show a cover."""
        return Response(b"\x89PNG", media_type="image/png")

    return AgentPublisher(app, site=site, check=False)


@pytest.fixture
def app() -> Any:
    return shop()


@pytest.mark.parametrize("door", doors())
def test_an_action_is_called_through_any_door(app, door):
    asked: list[str] = []

    def confirm(summary: str) -> bool:
        asked.append(summary)
        return "emma" in summary

    with AgentClient(app, door=door, token="t", confirm=confirm) as client:
        assert client.call("show_book", slug="emma") == {"slug": "emma"}
        assert client.call("show_book", {"slug": "a b"}) == {"slug": "a b"}
        assert client.call("order_book", slug="emma") == {"ordered": "emma"}
        with pytest.raises(CallFailed) as declined:
            client.call("order_book", slug="moby")
        assert declined.value.code == "CONFIRMATION_REQUIRED"
        assert asked == ['Order "emma"?', 'Order "moby"?']
        assert client.call("me") == {"token": "t"}
        with pytest.raises(CallFailed) as refused:
            client.call("show_book", slug="gone")
        assert (refused.value.code, refused.value.status) == ("REFUSED", 404)
        assert refused.value.problem["detail"] == "There is no such book."
        with pytest.raises(CallFailed) as wrong:
            client.call("show_book", slug="emma", color="red")
        assert wrong.value.code == "INVALID_INPUT"
        with pytest.raises(CallFailed, match="18446744073709551616, which is beyond 64 bits"):
            client.call("report", pages=2**64)
        assert client.call("cover") in (b"\x89PNG", "iVBORw==")


@pytest.mark.parametrize("door", doors())
def test_sessions_and_receipts_are_carried_and_jobs_are_waited_for(app, door):
    with AgentClient(app, door=door) as client:
        assert [client.call("visit")["visits"] for _ in range(3)] == [1, 2, 3]
        client.call("quote")
        assert client.call("buy") == {"bought": "yes"}
        another = client.through(door)
        another.receipts = client.receipts
        assert another.call("buy") == {"bought": "yes"}, "of the same receipts, without the session"
        assert client.call("report", pages=3) == {"pages": 3}
        session = client.session
        with pytest.raises(CallFailed, match="No") as failed:
            client.call("report", pages=-1)
        assert failed.value.status == 409
        assert client.session == session, "a failure ends no session"


@pytest.mark.parametrize("door", sorted({*doors()} - {"a2a"}))  # which answers when the job has ended
def test_a_job_that_does_not_end_in_time_is_given_up_with_its_name(door):
    site, ended = Site("Shop", "Sells books.", "http://127.0.0.1", plugins=installed("mcp", "awp")), threading.Event()

    @site.agent("report", execution="async")
    def report() -> dict[str, int]:
        """Write a report."""
        ended.wait()
        return {}

    app = FastAPI()
    app.add_middleware(AgentPublisher, site=site)
    with AgentClient(app, door=door) as client:
        client.timeout = 0
        with pytest.raises(TimeoutError, match="report has not ended within 0 seconds"):
            client.call("report")
        ended.set()


@pytest.mark.parametrize(("door", "path"), [("woa", "/agents/report/invoke"), ("awp", "/awp")])
def test_a_call_that_is_not_answered_in_time_says_where(door, path):
    site = Site("Shop", "Sells books.", "http://127.0.0.1", plugins=installed("awp"))

    @site.agent("report")
    async def report() -> dict[str, int]:
        """Write a report."""
        await asyncio.sleep(3600)
        return {}

    app = FastAPI()
    app.add_middleware(AgentPublisher, site=site)
    with AgentClient(app, door=door, timeout=1) as client:
        with pytest.raises(TimeoutError) as late:
            client.call("report")
        assert str(late.value) == f"{path} was not answered within 1 seconds."


def test_the_same_caller_goes_through_another_door(app):
    with AgentClient(app, token="t") as client:
        for door in doors():
            assert client.through(door).call("me") == {"token": "t"}


def test_a_key_is_sent_and_its_replay_is_told(app):
    with AgentClient(app, confirm=True) as client:
        first = client.send("order_book", {"slug": "emma"}, key="k-1")
        second = client.send("order_book", {"slug": "emma"}, key="k-1")
        assert (first.is_replayed, second.is_replayed) == (False, True)
        assert client.document("/.well-known/woa.json")["woa_version"] == "1"


async def test_the_client_works_inside_of_a_running_loop_too(app):
    with AgentClient(app) as client:
        assert client.call("show_book", slug="emma") == {"slug": "emma"}


@pytest.fixture
def address(app) -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def test_a_site_is_called_over_the_network_as_an_application_is(address):
    for door in doors():
        with AgentClient(address, door=door, token="t", confirm=True) as client:
            assert client.call("order_book", slug="emma") == {"ordered": "emma"}
            assert client.call("report", pages=2) == {"pages": 2}
            assert client.call("me") == {"token": "t"}


@pytest.mark.parametrize(
    ("target", "words"),
    [("books.example", "not the address of a site"), (3, "takes an ASGI application or an address, not a int")],
)
def test_an_invalid_target_is_reported(target, words):
    with pytest.raises((ValueError, TypeError), match=words):
        AgentClient(target)
    with pytest.raises(ValueError, match=r"There is no door .* give its Wire"):
        AgentClient("https://books.example", door="phone")


def test_a_missing_package_is_named_with_the_extra_that_has_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "websockets.sync.client", None)
    with (
        AgentClient("http://127.0.0.1:1", door="awp") as client,
        pytest.raises(RuntimeError, match=r"awp-publish\[awp"),
    ):
        client._transport.talk("/awp", {}, [])


@pytest.mark.parametrize("door", doors())
def test_doors_that_have_been_moved_are_found(door):
    paths = Paths(root="/bots", mcp="/tools", a2a="/friends", awp="/socket")
    with AgentClient(shop(paths=paths), door=door, confirm=True) as client:
        assert client.call("order_book", slug="emma") == {"ordered": "emma"}
        assert client.call("report", pages=3) == {"pages": 3}


def test_without_a_door_the_first_is_taken_that_the_documents_name():
    documents: dict[str, Any] = {
        "/.well-known/mcp/server-card.json": {"remotes": [{"url": "https://elsewhere.example/tools"}]}
    }

    async def tools_only(scope, receive, send):
        document = documents.get(scope.get("path", ""))
        if scope["type"] != "http":
            return
        if scope["path"] == "/tools":
            document = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "Found."}]}}
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200 if document else 404, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(document).encode()})

    with AgentClient(tools_only) as client:
        assert client.door == "mcp"
        assert client.call("search") == "Found."
    with AgentClient(shop()) as client:
        assert client.door == "woa"


@contextmanager
def server(answer: "Callable[[BaseHTTPRequestHandler], None]") -> Iterator[tuple[str, list[str]]]:
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(f"{self.command} {self.path}")
            self.rfile.read(int(self.headers.get("content-length") or 0))
            answer(self)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    listening = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.server_port}", seen
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()


def reply(handler: BaseHTTPRequestHandler, status: int, body: object, **headers: str) -> None:
    sent = json.dumps(body).encode()
    handler.send_response(status)
    for name, value in {"content-type": "application/json", "content-length": str(len(sent)), **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(sent)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_call_leaves_the_site_by_a_document_or_a_redirect(status):
    with server(lambda handler: reply(handler, 200, {"secret": 1})) as (inside, visited):

        def lead_away(handler):
            if handler.path == "/.well-known/woa.json":
                return reply(handler, 200, {"transports": {"rest": {"base": inside, "invoke_path": "/in/{agent_id}"}}})
            return reply(handler, status, {}, location=f"{inside}{handler.path}")

        with server(lead_away) as (site, seen), AgentClient(site, token="t") as client:
            with pytest.raises(CallFailed, match="redirects to another site") as failed:
                client.call("steal")
            assert failed.value.code == "OFF_SITE_REDIRECT"
            assert seen[-1] == "POST /in/steal"
        assert visited == []


def test_a_redirect_inside_of_the_site_is_followed_where_it_keeps_the_request():
    def add_slash(handler):
        if handler.path.endswith("/"):
            return reply(handler, 404 if "404" in handler.path else 200, {"done": True})
        status = handler.path.partition("-")[2].partition("/")[0]
        return reply(handler, int(status), {}, location="/a-302" if status == "305" else f"{handler.path}/")

    with server(add_slash) as (site, _), AgentClient(site, door="woa") as client:
        client._documents |= {"/agent.json": {}, "/.well-known/woa.json": {}}  # they name no addresses
        for status in (301, 302, 303, 307, 308):
            assert client.document(f"/a-{status}") == {"done": True}
            if status < 307:
                with pytest.raises(CallFailed, match="the call was not made") as failed:
                    client.call(f"order-{status}")
                assert failed.value.code == "REDIRECTED"
            else:
                assert client.call(f"order-{status}") == {"done": True}
        with pytest.raises(CallFailed, match="has no such document") as failed:
            client.document("/404-301")
        assert failed.value.code == "NO_DOCUMENT"


def test_a_large_answer_is_read_and_a_long_pause_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("awp_publish.client.time.sleep", lambda seconds: pytest.fail(f"It waits for {seconds} s."))
    problem = {"code": "RATE_LIMITED", "status": 429, "detail": "Too many calls."}

    def answer(handler):
        if "order" in handler.path:
            return reply(handler, 429, problem, **{"Retry-After": "3600"})
        return reply(handler, 200, {"text": "x" * 1_000_000})

    with server(answer) as (site, _), AgentClient(site, door="woa") as client:
        assert len(client.call("read")["text"]) == 1_000_000
        with pytest.raises(CallFailed, match="RATE_LIMITED"):
            client.call("order")


def test_an_application_that_does_not_start_says_why():
    @asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[dict[str, int]]:
        yield {"books": int("no number")}

    app = FastAPI(lifespan=lifespan)
    app.add_middleware(AgentPublisher, site=Site("Shop", "Sells books.", "http://127.0.0.1"))
    with AgentClient(app) as client, pytest.raises(StartFailed, match="no number"):
        client.call("read")


def test_an_answer_that_does_not_end_is_left(monkeypatch):
    monkeypatch.setattr("awp_publish.client.network.MAX_BYTES", 100_000)

    def pour(handler):
        handler.send_response(200)
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(b" " * 10_000)
        except OSError:
            return

    with server(pour) as (site, _), AgentClient(site) as client, pytest.raises(CallFailed) as failed:
        client.call("read")
    assert failed.value.code == "ANSWER_TOO_LARGE"


def test_a_name_that_leads_to_a_private_address_is_refused_unless_it_is_meant(monkeypatch):
    def resolve(host, port, *args, **more):
        return [(2, 1, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr("socket.getaddrinfo", resolve)
    with server(lambda handler: reply(handler, 200, {"done": True})) as (site, seen):
        named = site.replace("127.0.0.1", "books.example")
        for door in doors():
            with AgentClient(named, door=door) as client, pytest.raises(CallFailed, match="allow_private=True"):
                client.call("read")
        assert seen == []
        with AgentClient(named, allow_private=True) as client:
            assert client.call("read") == {"done": True}


@pytest.mark.parametrize("door", doors())
def test_a_session_that_is_unknown_begins_anew(app, door):
    with AgentClient(app, door=door) as client:
        client.session = "s" * 43
        assert client.call("visit") == {"visits": 1}
        assert client.session != "s" * 43


ODD_ANSWERS: dict[str, Any] = {
    "nothing": None,
    "number": 3,
    "text": "3",
    "numbers": [1, 2],
    "large": {"id": 2**60},
    "nested": {"result": 5},
}


def odd_shop() -> Any:
    """An application with answers of all kinds, which keeps something in its lifespan and trusts its own host only."""

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[dict[str, str]]:
        yield {"greeting": "hello"}

    site = Site("Shop", "Sells books.", url="https://shop.example", plugins=installed("mcp", "a2a", "awp"))
    app = FastAPI(lifespan=lifespan)
    for name, answer in ODD_ANSWERS.items():

        async def give(answer: Any = answer) -> Any:
            """Give an answer."""
            return answer

        known = Any if answer is None else type(answer) | None
        app.get(f"/{name}", response_model=None)(site.action(name)(partial(give)))
        app.get(f"/{name}_or_nothing", response_model=known)(site.action(f"{name}_or_nothing")(partial(give)))

    @app.get("/greet")
    @site.action("greet")
    async def greet(request: Request) -> list[str]:
        """Greet, at a host."""
        return [request.state.greeting, request.headers["host"]]

    @app.get("/books.csv")
    @site.action("list_books")
    async def list_books() -> Response:
        """List the books."""
        named = {"content-disposition": 'attachment; filename="books.csv"'}
        text = "title\nGrün\n".encode("latin-1")
        return Response(text, media_type="text/csv; charset=latin-1", headers=named)

    app.add_middleware(TrustedHostMiddleware, allowed_hosts=["shop.example"])
    app.add_middleware(AgentPublisher, site=site)
    return app


@pytest.mark.parametrize("door", doors())
def test_an_answer_is_the_same_at_every_door(door):
    with AgentClient(odd_shop(), door=door) as client:
        assert client.call("greet") == ["hello", "shop.example"]
        for name, answer in ODD_ANSWERS.items():
            assert client.call(name) == client.call(f"{name}_or_nothing") == answer
        books = client.send("list_books")
    assert (books.output, books.media_type, books.filename) == ("title\nGrün\n", "text/csv", "books.csv")


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (b"abc", "YWJj"),
        (bytearray(b"abc"), "YWJj"),
        (("a.txt", b"abc"), {"filename": "a.txt", "content": "YWJj"}),
        (("a.txt", b"abc", "text/plain"), {"filename": "a.txt", "content_type": "text/plain", "content": "YWJj"}),
        ([1, b"abc", {"b": (b"a", 2)}], [1, "YWJj", {"b": ["YQ==", 2]}]),
        ({"a": None, "b": b"abc"}, {"a": None, "b": "YWJj"}),
    ],
)
def test_inputs_are_sent_as_json_has_them(value, sent):
    site = Site("Shop", "Sells books.", url="http://127.0.0.1")

    @site.agent("echo")
    async def echo(value: Any) -> Any:
        """Echo."""
        return value

    with AgentClient(AgentPublisher(FastAPI(), site=site, check=False)) as client:
        assert client.call("echo", value=value) == sent


@pytest.mark.parametrize(
    ("target", "address", "is_ours"),
    [
        ("http://shop.example", "https://shop.example/a", True),
        ("http://shop.example:8000", "https://shop.example/a", False),
        ("https://shop.example", "http://shop.example/a", False),
        ("https://shop.example", "https://shop.example:443/a", True),
        ("https://shop.example", "https://shop.example:8443/a", False),
        ("https://shop.example", "https://shop.example.evil.example/a", False),
        ("http://shop.example", "ftp://shop.example:80/a", False),
        ("http://shop.example", "http://shop.example:x/a", False),
    ],
)
def test_a_redirect_stays_with_the_site_or_steps_up_to_https(target, address, is_ours):
    assert Network(target, 1, False)._is_ours(address) is is_ours


def test_a_document_that_is_not_json_is_its_text():
    site = Site("Shop", "Sells books.", "https://shop.example")
    with AgentClient(AgentPublisher(FastAPI(), site=site, check=False)) as client:
        assert client.document("/llms.txt").startswith("# Shop")
        assert isinstance(client.document("/agent.json"), dict)


def test_an_answer_that_breaks_off_is_none():
    site, app = Site("Shop", "Sells books.", "https://shop.example"), FastAPI()

    @app.get("/lines")
    @site.action("list_lines")
    async def list_lines() -> StreamingResponse:
        """List lines."""

        async def lines() -> AsyncIterator[str]:
            yield "one"
            raise RuntimeError("there are no more")

        return StreamingResponse(lines(), media_type="text/plain")

    app.add_middleware(AgentPublisher, site=site, check=False)
    with AgentClient(app, door="plain") as client, pytest.raises(RequestFailed):
        client.call("list_lines")
