"""A tiny site to browse: a few pages, a form, a sign-in, and pages that go wrong."""

import asyncio
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from awp_publish import AgentPublisher, Site
from awp_publish.http.exchange import AsgiApp
from tests.guarded import make_shop

BACKGROUND_RUNS: list[str] = []


def page(title: str, body: str = "", status: int = 200) -> HTMLResponse:
    html = f"<!doctype html><html lang=en><title>{title}</title><body><main><h1>{title}</h1>{body}</main></body></html>"
    return HTMLResponse(html, status)


async def home(request: Request) -> Response:
    who = request.session.get("user_id", "nobody")
    return page("Home", f'<p>Hello {who}.</p><a href="/next">Next</a><a href="https://evil.example/">Away</a>')


async def enter(request: Request) -> Response:
    if request.method == "POST":
        request.session["user_id"] = str((await request.form())["name"])
        return RedirectResponse("/", 303)
    return page("Enter", '<form method="post" action="/enter"><input name="name"><button>Go</button></form>')


async def echo(request: Request) -> Response:
    """What a page's request shows."""
    values: dict[str, object] = {**request.headers, "client": request.client.host if request.client else ""}
    values |= {
        "path": request.url.path,
        "scheme": request.url.scheme,
        "query": request.url.query,
        "session": dict(request.session),
    }
    return page("Echo", "<p>" + " ".join(f"[{name}={value}]" for name, value in values.items()) + "</p>")


async def fail(request: Request) -> Response:
    raise RuntimeError("a bug with a secret in it")


async def sleep(request: Request) -> Response:
    await asyncio.sleep(60)
    return page("Late")


async def drip(request: Request) -> Response:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"<p>" + b"x" * 60_000
            await asyncio.sleep(0)

    return StreamingResponse(endless(), media_type="text/html")


async def mail(request: Request) -> Response:
    async def send() -> None:
        await asyncio.sleep(0.05)
        BACKGROUND_RUNS.append("sent")

    answer = page("Sent")
    answer.background = BackgroundTask(send)
    return answer


async def circle(request: Request) -> Response:
    return RedirectResponse("/circle")


async def away(request: Request) -> Response:
    return RedirectResponse("https://evil.example/stolen")


async def large(request: Request) -> Response:
    return page("Large", "<p>word word word</p>" * 10_000)


async def data(request: Request) -> Response:
    return JSONResponse({"a": 1})


ROUTES = [
    Route("/", home),
    Route("/next", lambda request: page("Next", '<a href="/">Back home</a>')),
    Route("/enter", enter, methods=["GET", "POST"]),
    Route("/echo", echo, methods=["GET", "POST"]),
    Route("/fail", fail),
    Route("/sleep", sleep),
    Route("/drip", drip),
    Route("/mail", mail),
    Route("/circle", circle),
    Route("/away", away),
    Route("/large", large),
    Route("/data", data),
]


def make_site(**options: object) -> Site:
    """A site with the door open."""
    return make_shop(**{"plugins": ["awp"]} | options)


def publish(site: Site | None = None) -> AsgiApp:
    """The application, published inside of its session middleware."""
    outside = Middleware(SessionMiddleware, secret_key="k" * 20)
    return Starlette(routes=ROUTES, middleware=[outside, Middleware(AgentPublisher, site=site or make_site())])
