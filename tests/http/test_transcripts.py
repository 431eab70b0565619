"""What routes are sent for calls, and what becomes of their answers: `transcripts`, see `tests/transcript.py`."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import pytest
from fastapi import Cookie, FastAPI, File, Form, Header, HTTPException, Query, Request, Response, UploadFile
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, StreamingResponse
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.middleware.sessions import SessionMiddleware

from awp_publish import About, AgentPublisher
from tests.client import TestClient
from tests.guarded import KEYS, known_callers, make_shop
from tests.transcript import compare

TRANSCRIPTS = Path(__file__).parent / "transcripts"
CHANGING = [
    (r'"accept-encoding: [^"]*"', '"accept-encoding: ..."'),
    (r"(boundary=|--)[0-9a-f]{32}", r"\1BOUNDARY"),
    (r"(set-cookie: session=)[^;]+|(awp-session: ).*", r"\1\2..."),
]


class Parcel(BaseModel):
    weight: float
    note: str | None = None


UPDATED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

ANSWERS: dict[str, Response] = {
    "created": JSONResponse(
        {"id": 7}, 201, {"location": "/orders/7", "etag": '"a"', "x-total-count": "1", "x-own": "o"}
    ),
    "empty": Response(status_code=204),
    "text": PlainTextResponse("é"),
    "latin": Response("é".encode("latin-1"), media_type="text/plain; charset=latin-1"),
    "page": HTMLResponse("<p>é</p>"),
    "bytes": Response(b"\x00\xff", media_type="application/octet-stream"),
    "file": Response(b"a,b", media_type="text/csv", headers={"content-disposition": 'attachment; filename="a.csv"'}),
    "untyped": Response(b'{"a": 1}'),
    "wrong_json": Response(b"{", media_type="application/json"),
    "problem": JSONResponse(
        {"type": "/problems/sold-out", "title": "Sold out", "detail": "It is sold out.", "code": "SOLD_OUT", "left": 0},
        409,
        media_type="application/problem+json",
    ),
    "moved": RedirectResponse("/elsewhere", 307),
    "unmodified": Response(status_code=304),
    "choices": JSONResponse(["/a", "/b"], 300),
    "last_success": JSONResponse("done", 299),
    "gone": JSONResponse({"detail": "It is gone."}, 410),
    "limited": JSONResponse({"detail": "Slowly."}, 429, {"retry-after": "7", "ratelimit": '"x";r=0;t=7'}),
    "asked": JSONResponse({"detail": "Who?"}, 401, {"www-authenticate": 'Basic realm="own"'}),
    "denied": JSONResponse({"message": "No."}, 403),
    "invalid": JSONResponse({"detail": [{"loc": ["body", "name"], "msg": "too short", "type": "x"}]}, 422),
    "broken": PlainTextResponse("Traceback: secret", 500),
    "busy": PlainTextResponse("Later.", 503, {"retry-after": "9"}),
    "odd": Response(b"?", 599),
    "ascii": Response(b"ASCII", media_type="image/png"),
    "no_utf8": Response(b"\xff", media_type="text/plain"),
    "svg": Response("<a/>", media_type="image/svg+xml"),
    "no_charset": Response("a", headers={"content-type": "text/plain; charset=idna"}),
    "no_text_charset": Response("a", headers={"content-type": "text/plain; charset=hex"}),
    "linked": JSONResponse({"@id": 1}, media_type="application/ld+json"),
    "bad_gateway": PlainTextResponse("secret", 502),
    "not_a_number": Response(b"NaN", media_type="application/json"),
    "untyped_bytes": Response(b"\xff"),
    "wrong_refusal": Response(b"{", 404, media_type="application/json"),
    "refused_bytes": Response(b"\xff", 400, media_type="text/plain"),
    "refused_page": HTMLResponse("<title>409 Conflict</title>\n<h1>Conflict</h1>\n<p>Sold out &amp; gone.</p>\n", 409),
    "refused_bare_page": HTMLResponse("<h1>Not Found</h1><script>if (1 < 2) run()</script><!-- <p>No. -->", 404),
    "refused_layout": HTMLResponse(f"<p>Sold out</p>{'<div>x</div>' * 200}", 409),
    "broken_page": HTMLResponse("<h1>Error</h1><p>secret</p>", 500),
    "blank_problem": JSONResponse({"type": "about:blank", "title": "Oops"}, 402, media_type="application/problem+json"),
    "own_problem": JSONResponse(
        {
            "type": "https://shop.example/oops",
            "title": "Oops",
            "status": 402,
            "detail": "Pay.",
            "balance": 3,
            "code": "PAY_FIRST",
            "errors": [{"pointer": "/card", "detail": "is empty"}],
            "recovery": "call pay",
        },
        402,
        media_type="application/problem+json",
    ),
}


class KeepBody:
    """Middleware that keeps what was received, which a form takes away from its route."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def receive_and_keep() -> Any:
            message = await receive()
            scope["sent"] += message.get("body", b"")
            return message

        scope["sent"] = b""
        await self.app(scope, receive_and_keep, send)


def make_echo(guards: Mapping[str, Any] = MappingProxyType({}), **options: Any) -> FastAPI:
    """Make an application whose routes show what they are sent, or answer in many ways. `guards` are of all actions."""
    options = {"errors": {"SOLD_OUT": "Choose another."}, **options}
    site, app = make_shop(authenticate=known_callers(), secret_keys=KEYS, **options), FastAPI()

    async def shown(request: Request) -> dict[str, Any]:
        scope = request.scope
        names = ("type", "http_version", "method", "scheme", "path", "root_path", "server", "client")
        texts = {name: scope[name].decode("latin-1") for name in ("raw_path", "query_string")}
        headers = [f"{name.decode()}: {value.decode('latin-1')}" for name, value in scope["headers"]]
        body = scope["sent"].decode("latin-1") or (await request.body()).decode("latin-1")
        return {**{name: scope[name] for name in names}, **texts, "headers": headers, "body": body}

    @app.get("/read/{number}/{rest:path}")
    @site.action("read", **guards)
    async def read(
        request: Request,
        number: int,
        rest: str,
        q: str = "",
        tag: Annotated[list[int], Query()] = [],  # noqa: B006
        used: bool = False,
        x_own: Annotated[str | None, Header()] = None,
        lang: Annotated[str | None, Cookie()] = None,
    ) -> Any:
        """Show a request without a body."""
        return await shown(request)

    @app.post("/send/{name}")
    @site.action("send", **guards)
    async def send(request: Request, name: str, parcel: Parcel, q: str | None = None) -> Any:
        """Show a request with JSON."""
        return await shown(request)

    @app.post("/form")
    @site.action("form", **guards)
    async def form(request: Request, title: Annotated[str, Form()], tag: Annotated[list[str], Form()] = []) -> Any:  # noqa: B006
        """Show a form."""
        return await shown(request)

    @app.post("/files")
    @site.action("files", **guards)
    async def files(
        request: Request,
        title: Annotated[str, Form()],
        cover: Annotated[UploadFile, File()],
        more: list[UploadFile] = [],  # noqa: B006
    ) -> Any:
        """Show files."""
        return await shown(request)

    @app.put("/session")
    @site.action("remember", **guards)
    async def remember(request: Request, name: str) -> dict[str, Any]:
        """Remember a name in the session."""
        before = dict(request.session)
        request.session["name"] = name
        return before

    def answer_with(name: str, answer: Response) -> None:
        async def handler() -> Response:
            """Answer."""
            return answer

        handler.__name__ = name
        app.post(f"/answers/{name}", response_model=None)(site.action(name, **guards)(handler))

    for name, answer in ANSWERS.items():
        answer_with(name, answer)

    @app.get("/stream", response_model=None)
    @site.action("stream", **guards)
    async def stream() -> StreamingResponse:
        """Stream."""
        return StreamingResponse(iter(["a", "b"]), media_type="text/plain")

    @app.get("/fail")
    @site.action("fail", **guards)
    async def fail(kind: str = "") -> str:
        """Fail."""
        match kind:
            case "text":
                raise HTTPException(403, "Not you.")
            case "code":
                raise HTTPException(409, {"code": "SOLD_OUT", "message": "None left."}, {"retry-after": "9"})
            case "unknown code":
                raise HTTPException(409, {"code": "TEAPOT", "detail": "No coffee."}, {"x-own": "o"})
            case "bare":
                raise HTTPException(418)
            case "redirect":
                raise HTTPException(307, headers={"location": "/elsewhere"})
        raise RuntimeError("a secret")

    app.add_middleware(KeepBody)
    app.add_middleware(SessionMiddleware, secret_key="a")
    app.add_middleware(AgentPublisher, site=site)
    return app


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(make_echo(), base_url="https://shop.example", raise_server_exceptions=False) as client:
        yield client


@pytest.mark.needs("discovery")
def test_documents_for_other_origins_are_as_in_the_transcript(request):
    """Documents with their conditions, pages of problems, and calls of pages of other sites."""
    options = {"allow_origins": ["https://agent.example"], "errors": {"SOLD_OUT": "Choose another."}}
    site = make_shop(authenticate=known_callers(), secret_keys=KEYS, about=About(updated=UPDATED), **options)

    @site.agent("greet")
    async def greet(name: str = "you") -> str:
        """Greet somebody."""
        return name

    app = AgentPublisher(Starlette(), site=site)
    with TestClient(app, base_url="https://shop.example", client=("10.1.2.3", 1)) as client:
        compare(TRANSCRIPTS / "documents.txt", client, request)


@pytest.mark.parametrize("name", ["answers", pytest.param("requests", marks=pytest.mark.needs("sessions"))])
def test_requests_are_answered_as_in_the_transcripts(name, client, request):
    compare(TRANSCRIPTS / f"{name}.txt", client, request, *CHANGING)
