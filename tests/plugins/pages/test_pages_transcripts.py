"""Pages in other formats, whole, with all that is said beside them: `transcripts`, see `tests/transcript.py`.

`/echo` shows what the application is sent, and `/says?STATUS&NAME=VALUE` is a page with these headers. A header of an
answer whose value `tests/transcript.py` leaves out has `=` behind its name.
"""

import gzip
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from awp_publish import About, AgentPublisher, Discovery, Pages, Site, Traffic, WebBotAuth
from awp_publish.plugins.pages.rendering import MAX_PAGE_BYTES
from tests.client import TestClient
from tests.guarded import known_callers
from tests.transcript import compare

TRANSCRIPTS = Path(__file__).parent / "transcripts"
CHANGING = [
    (r"^  (link|etag|last-modified): ", r"  \1 = "),
    (r"(?<=accept-encoding: )[^<\n]+", "..."),
    (r'(?:</[^>]*>; rel="[^"]*"; type="[^"]*"(?:, )?)+', "SITE "),
]
UPDATED = datetime(2026, 11, 21, tzinfo=UTC)
SENTENCE = "The boat left the harbour at six, and nobody on board had slept, because of the storm. "
MENU = "".join(f"<li><a href=/{number}>Entry {number}</a>" for number in range(30))
PAGES = {
    "/": "<title>Home</title><h1>Home</h1><p>Welcome.</p>",
    "/untitled": "<p>No title.</p>",
    "/titled": (
        '<title>A  title</title><meta name=Description content="Said \n here.">'
        '<link rel="canonical alternate" href="/real é"><p>Text.</p>'
    ),
    "/story": f"<nav><ul>{MENU}</ul></nav><main><h1>Storm</h1>{f'<p>{SENTENCE * 3}</p>' * 4}</main>",
    "/shop": (
        f"<nav><ul>{MENU}</ul></nav><nav><a href=/basket>Basket</a></nav><main><h1>Lamps</h1>"
        "<form action=/add method=post><p>Lamp, $ 9</p><input name=count><button>Add</button></form>"
        "<nav><a href='?page=1'>1</a> 2 <a href='?page=3'>3</a> <a href='?page=3'>\xbb</a></nav></main>"
    ),
    "/long": f"<main>{''.join(f'<p>{number} {SENTENCE * 3}</p>' for number in range(200))}</main>",
    "/small": "<nav><a href=/>Home</a></nav><main><h1>Small</h1>Text</main>",
    "/form": "<form method=post action=/form><input name=a required><button>Go</button></form>",
    "/own.md": "<p>A page whose name ends so.</p>",
    "/elsewhere": '<link rel=canonical href="javascript:alert(1)"><p>Text.</p>',
    "/broken": '<link rel=canonical href="http://["><p>Text.</p>',
    "/secret/{token}": "<p>Reset.</p>",
}


async def show(request: Request) -> Response:
    return HTMLResponse(PAGES[request.scope["route"].path] if request.method != "POST" else "<p>Thanks.</p>")


async def echo(request: Request) -> Response:
    lines = [f"{request.method} {request.url}", *(f"{name}: {value}" for name, value in request.headers.items())]
    return HTMLResponse("".join(f"<p>{escape(line)}</p>" for line in lines))


async def says(request: Request) -> Response:
    (status, _), *headers = parse_qsl(request.url.query, keep_blank_values=True)
    answer = HTMLResponse("<h1>Said</h1>", int(status))
    for name, value in headers:
        if name == "content-type":
            answer.headers[name] = value
        else:
            answer.headers.append(name, value)
    return answer


async def packed(request: Request) -> Response:
    coding, body = request.path_params["coding"], b"<p>Packed.</p>"
    body = body if coding == "identity" else gzip.compress(body, mtime=0)
    return HTMLResponse(body, headers={"content-encoding": coding})


async def fail(request: Request) -> Response:
    raise ValueError("lost")


ROUTES = [
    *(Route(path, show, methods=["GET", "POST"] if path == "/form" else ["GET"]) for path in PAGES),
    Route("/echo", echo, methods=["GET", "POST", "PUT"]),
    Route("/says", says, methods=["GET", "POST", "PUT"]),
    Route("/packed/{coding}", packed),
    Route("/fail", fail),
    *(Route(path, lambda request: Response(status_code=304)) for path in ("/script.js", "/v1.2/unchanged")),
    Route("/json", lambda request: JSONResponse({"a": 1})),
    Route("/full", lambda request: HTMLResponse("<p>Full." + " " * (MAX_PAGE_BYTES - 8))),
    Route("/large", lambda request: HTMLResponse("x" * (MAX_PAGE_BYTES + 1))),
    Route("/moved", lambda request: RedirectResponse("/titled?a=1", 301)),
    Route("/away", lambda request: RedirectResponse("https://elsewhere.example/")),
    Route("/round", lambda request: RedirectResponse("/round")),
]

BOTS = WebBotAuth(signers={"https://bot.example": "ReaderBot"})

SITES: dict[str, dict[str, Any]] = {
    "headers": {},
    "files": {"allow_origins": ["https://friend.example"], "plugins": [Discovery(robots_proposals=True), "pages"]},
    "query": {"plugins": ["discovery", Pages(in_query=True)]},
    "shared": {"plugins": ["discovery", Pages(shared_cache=True)]},
    "html": {"plugins": ["discovery", "no:pages"]},
    "unequipped": {},
    "endpoint": {
        "allow_origins": ["https://friend.example"],
        "about": About(
            version="1.2.0", updated=UPDATED, documentation="/help", contact="https://elsewhere.example/contact"
        ),
    },
    "mounted": {
        "url": "https://shop.example/books",
        "about": About(
            version="1.2.0",
            updated=UPDATED,
            documentation="https://shop.example/books",
            contact="https://shop.example/bookshop",
        ),
    },
    "counted": {"plugins": ["pages", "woa", Traffic(metrics=True)], "authenticate": [known_callers(), BOTS]},
}


@pytest.mark.parametrize("name", SITES)
def test_pages_are_negotiated_as_in_the_transcripts(name, request, monkeypatch):
    if name == "unequipped":
        monkeypatch.setattr("awp_publish.plugins.pages.PACKAGE", "nowhere_to_be_found")
    about = About(
        version="1.2.0",
        updated=UPDATED,
        documentation="/help",
        contact="https://shop.example/contact",
    )
    site = Site("Shop", "Sells things.", **{"url": "https://shop.example", "about": about, **SITES[name]})
    site.page("/untitled", title="Declared", description="What the page\nis about.")
    site.page("/titled", title="Unused")
    site.page("/secret/{token}")
    app: Any = AgentPublisher(Starlette(routes=ROUTES), site=site)
    if name == "mounted":
        app = Starlette(routes=[Mount("/books", app)])
    with TestClient(app, base_url="https://shop.example") as client:
        compare(TRANSCRIPTS / f"{name}.txt", client, request, *CHANGING)
