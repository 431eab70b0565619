"""One site behind three gateways: Django under WSGI, Django under ASGI, Starlette. Imported by servers only."""

import asyncio
import json
import time
from datetime import UTC, datetime
from pathlib import Path

import django
from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.urls import path
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, StreamingResponse
from starlette.routing import Route

from awp_publish import About, AgentPublisher, ApiKey, BearerToken, Principal, Site

TOKEN, OTHER_TOKEN, KEY = "the-token-of-ann", "the-token-of-ben", "the-key-of-cleo"

site = Site(
    name="Shop",
    description="Sells books.",
    url="https://shop.example",
    about=About(updated=datetime(2026, 1, 1, tzinfo=UTC)),
    allow_origins=["https://friend.example"],
    plugins=["mcp", "a2a"],
    authenticate=[
        BearerToken({TOKEN: Principal("ann", frozenset({"buy"})), OTHER_TOKEN: "ben"}),
        ApiKey({KEY: "cleo"}),
    ],
    secret_keys=["a-key-that-all-three-have-0123456789"],
)
site.declare(
    "search",
    method="GET",
    path="/books/{shelf}",
    description="Search a shelf.",
    inputs={
        "type": "object",
        "properties": {"shelf": {"type": "string"}, "q": {"type": "string"}},
        "required": ["shelf", "q"],
    },
)
site.declare(
    "order",
    method="POST",
    path="/orders",
    description="Order a book.",
    inputs={"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]},
    idempotency=True,
)


@site.agent("add")
async def add(first: int, second: int) -> int:
    """Add two numbers."""
    return first + second


@site.agent("buy", scopes=["buy"])
async def buy(title: str = "Emma") -> str:
    """Buy a book."""
    return f"bought {title}"


@site.agent("pay", confirm="Pay {amount}.", auth_required=True)
async def pay(amount: int = 1) -> str:
    """Pay."""
    return "paid"


@site.agent("restock", audience="operator")
async def restock() -> str:
    """Put books on the shelves."""
    return "restocked"


@site.agent("later", execution="async")
def later(text: str) -> str:
    """Say it later."""
    return text.upper()


@site.agent("wait_for", execution="async")
async def wait_for(mark: str) -> bool:
    """Wait until a file is there."""
    return await asyncio.to_thread(appears, Path(mark))


@site.agent("be_patient")
async def be_patient(mark: str) -> bool:
    """Write down what becomes of the call."""
    try:
        await asyncio.to_thread(Path(mark).with_suffix(".begun").touch)
        await asyncio.sleep(60)
        return False
    except asyncio.CancelledError:
        await asyncio.to_thread(Path(mark).write_text, "called off")
        raise


def appears(path: Path) -> bool:
    """Whether a file is there before long."""
    until = time.monotonic() + 30
    while not path.exists():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


site.declare(
    "carry_out",
    method="POST",
    path="/errands",
    description="Do something that has to be done once begun.",
    inputs={"type": "object", "properties": {"mark": {"type": "string"}}, "required": ["mark"]},
    idempotency=True,
)


PAGE = "<title>Shop</title><main><h1>Books</h1><p>All we have, <a href='/books/a'>by shelf</a>.</p></main>"


# --- Django ---


def django_page(request: HttpRequest) -> HttpResponse:
    return HttpResponse(f"{PAGE}<p>{request.GET.get('q', '')}</p>", headers={"Cache-Control": "private"})


def django_gone(request: HttpRequest) -> HttpResponse:
    return HttpResponse(PAGE, status=410)


def django_long(request: HttpRequest) -> StreamingHttpResponse:
    return StreamingHttpResponse(iter([PAGE, "<p>and more</p>"]))


def django_search(request: HttpRequest, shelf: str) -> JsonResponse:
    return answer({"shelf": shelf, "q": request.GET["q"]})


def django_order(request: HttpRequest) -> JsonResponse:
    title = json.loads(request.body)["title"]
    return answer({"error": "sold out"}, 409) if title == "Emma" else answer({"title": title})


def django_errand(request: HttpRequest) -> JsonResponse:
    mark = Path(json.loads(request.body)["mark"])
    mark.with_suffix(".begun").touch()
    appears(mark.with_suffix(".go"))
    mark.write_text("carried out")
    return answer({})


def answer(document: object, status: int = 200) -> JsonResponse:
    """JSON as Starlette writes it."""
    return JsonResponse(document, status=status, json_dumps_params={"separators": (",", ":"), "ensure_ascii": False})


urlpatterns = [
    path("books/<str:shelf>", django_search),
    path("orders", django_order),
    path("page", django_page),
    path("gone", django_gone),
    path("long", django_long),
    path("errands", django_errand),
]


def _set_up() -> None:
    settings.configure(
        SECRET_KEY="only for tests",
        ROOT_URLCONF=__name__,
        ALLOWED_HOSTS=["*"],
        INSTALLED_APPS=["awp_publish_django"],
        MIDDLEWARE=[
            "awp_publish_django.middleware.AgentPublisherMiddleware",
            "django.middleware.common.CommonMiddleware",
        ],
        AWP_PUBLISH={"SITE": f"{__name__}.site"},
    )
    django.setup()


def make_wsgi():
    _set_up()
    from django.core.wsgi import get_wsgi_application

    return get_wsgi_application()


def make_asgi():
    _set_up()
    from awp_publish_django.asgi import get_asgi_application

    return get_asgi_application()


# --- Starlette ---


async def starlette_search(request: Request) -> JSONResponse:
    return JSONResponse({"shelf": request.path_params["shelf"], "q": request.query_params["q"]})


async def starlette_order(request: Request) -> JSONResponse:
    title = (await request.json())["title"]
    sold_out = title == "Emma"
    return JSONResponse({"error": "sold out"} if sold_out else {"title": title}, 409 if sold_out else 200)


async def starlette_page(request: Request) -> HTMLResponse:
    asked = request.query_params.get("q", "")
    return HTMLResponse(f"{PAGE}<p>{asked}</p>", headers={"Cache-Control": "private"})


async def starlette_gone(request: Request) -> HTMLResponse:
    return HTMLResponse(PAGE, 410)


async def starlette_long(request: Request) -> StreamingResponse:
    return StreamingResponse(iter([PAGE, "<p>and more</p>"]), media_type="text/html")


async def starlette_errand(request: Request) -> JSONResponse:
    raise NotImplementedError


def make_starlette():
    routes = [
        Route("/books/{shelf}", starlette_search),
        Route("/page", starlette_page, include_in_schema=False),  # as it is unknown of a view that it answers HTML
        Route("/gone", starlette_gone, include_in_schema=False),
        Route("/long", starlette_long),
        Route("/orders", starlette_order, methods=["POST"]),
        Route("/errands", starlette_errand, methods=["POST"]),
    ]
    return AgentPublisher(Starlette(routes=routes), site=site)
