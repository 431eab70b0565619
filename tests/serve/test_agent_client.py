"""`AgentClient`: a site's own tests call its actions as agents do, through any door."""

import threading
import time
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware

from awp_publish import AgentPublisher, Site
from awp_publish.client import DOORS, AgentClient, CallFailed


def shop() -> Any:
    site = Site(
        name="Shop",
        description="Sells books.",
        url="http://127.0.0.1",
        doors=["mcp", "a2a", "awp"],
        secret_keys=["s" * 32],
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


@pytest.mark.parametrize("door", DOORS)
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
        assert client.call("cover") in (b"\x89PNG", "iVBORw==")


@pytest.mark.parametrize("door", DOORS)
def test_sessions_and_receipts_are_carried_and_jobs_are_waited_for(app, door):
    with AgentClient(app, door=door) as client:
        assert [client.call("visit")["visits"] for _ in range(3)] == [1, 2, 3]
        client.call("quote")
        assert client.call("buy") == {"bought": "yes"}
        assert client.call("report", pages=3) == {"pages": 3}
        with pytest.raises(CallFailed):
            client.call("report", pages=-1)


def test_the_same_caller_goes_through_another_door(app):
    with AgentClient(app, token="t") as client:
        for door in DOORS:
            assert client.through(door).call("me") == {"token": "t"}


def test_a_key_is_sent_and_its_replay_is_told(app):
    with AgentClient(app, confirm=True) as client:
        first = client.send("order_book", {"slug": "emma"}, key="k-1")
        second = client.send("order_book", {"slug": "emma"}, key="k-1")
        assert (first.is_replayed, second.is_replayed) == (False, True)
        assert client.document("/.well-known/woa.json")["woa_version"] == "1"


async def test_it_works_inside_of_a_running_loop_too(app):
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
    for door in DOORS:
        with AgentClient(address, door=door, token="t", confirm=True) as client:
            assert client.call("order_book", slug="emma") == {"ordered": "emma"}
            assert client.call("report", pages=2) == {"pages": 2}
            assert client.call("me") == {"token": "t"}


@pytest.mark.parametrize(
    ("target", "words"),
    [("books.example", "no address of a site"), (3, "takes an ASGI application or an address, not a int")],
)
def test_what_is_no_target_is_told(target, words):
    with pytest.raises((ValueError, TypeError), match=words):
        AgentClient(target)
    with pytest.raises(ValueError, match="There is no door"):
        AgentClient("https://books.example", door="phone")  # type: ignore[arg-type]
