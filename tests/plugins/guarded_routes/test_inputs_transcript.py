"""What gates see of direct requests, and how answers are passed on: `transcripts/inputs.txt` and `messages.txt`.

Each route of the first asks for a confirmation, whose question is the input as the gates have read it. `send` in the
second shows the messages of ASGI, one by one.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from fastapi import Body, Cookie, FastAPI, File, Form, Header, Query, Request, Response, UploadFile
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from awp_publish import AgentPublisher
from tests.function_transcripts import compare
from tests.guarded import KEYS, known_callers, make_shop

TEXTS = Path(__file__).parent / "transcripts"
CHANGING = re.compile("ratelimit:|x-ratelimit|x-request-id: (?!own)|content-length: ...")
"""What is left out of the headers of an answer."""


class Parcel(BaseModel):
    weight: float
    note: str | None = None
    sent_to: str = Field("", alias="to")


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    weight: float


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    weight: float


def _question(inputs: Mapping[str, Any]) -> str:
    return json.dumps(inputs, sort_keys=True)


def make_asking() -> FastAPI:
    """Make an application each of whose routes asks what it has been asked."""
    plugins = ["confirmation"]
    site = make_shop(authenticate=known_callers(), secret_keys=KEYS, guard_routes=True, plugins=plugins)
    app = FastAPI()

    def action(name: str, **options: Any) -> Any:
        return site.action(name, confirm=_question, description=f"The {name}.", **options)

    @app.get("/read/{number}/{rest:path}")
    @action("read", effect="write")
    async def read(
        number: int,
        rest: str,
        q: str = "",
        tag: Annotated[list[int] | None, Query(alias="tags")] = None,
        used: bool = False,
        X_Own: Annotated[str | None, Header()] = None,  # noqa: N803
        lang: Annotated[str | None, Cookie()] = None,
        size: Annotated[int | None, Cookie(alias="font-size")] = None,
    ) -> str:
        return "read"

    @app.post("/send/{name}")
    @action("send")
    async def send(name: str, parcel: Parcel, q: str | None = None) -> str:
        return "sent"

    @app.post("/closed")
    @action("closed")
    async def closed(parcel: Closed) -> str:
        return "sent"

    @app.post("/open")
    @action("open")
    async def opened(parcel: Open) -> str:
        return "sent"

    @app.post("/two")
    @action("two")
    async def two(parcel: Parcel, copies: Annotated[int, Body()] = 1) -> str:
        return "sent"

    @app.post("/list")
    @action("list")
    async def listed(titles: list[str]) -> str:
        return "listed"

    @app.post("/text")
    @action("text")
    async def text(words: Annotated[str, Body(media_type="text/plain")]) -> str:
        return "read"

    @app.post("/form")
    @action("form")
    async def form(
        title: Annotated[str, Form()],
        copies: Annotated[int, Form()] = 1,
        tag: Annotated[list[str] | None, Form(alias="tags")] = None,
    ) -> str:
        return "sent"

    @app.post("/files")
    @action("files")
    async def files(
        title: Annotated[str, Form()],
        cover: Annotated[UploadFile, File()],
        more: list[UploadFile] | None = None,
        note: Annotated[str, Form()] = "",
    ) -> str:
        return "sent"

    @action("over_any")
    async def over_any(name: str) -> str:
        return name

    @action("over_one")
    async def over_one(title: str = "") -> str:
        return title

    app.add_api_route("/over/one", over_one, methods=["POST"])
    app.add_api_route("/over/{name}", over_any, methods=["POST"])

    async def loose(request: Request) -> Response:
        return JSONResponse("sent")

    inputs = {"type": "object", "properties": {"title": {"type": "string"}}}
    file = {"type": "string", "contentEncoding": "base64", "contentMediaType": "image/png"}
    more_of: dict[str, dict[str, Any]] = {
        "loose": {},
        "strict": {"additionalProperties": False},
        "picture": {"properties": {"picture": file}, "required": ["picture"]},
    }
    for name, more in more_of.items():
        app.router.routes.append(Route(f"/{name}", loose, methods=["POST"], name=name))
        site.declare(
            name, method="POST", path=f"/{name}", inputs={**inputs, **more}, confirm=_question, description=f"A {name}."
        )
    app.add_middleware(AgentPublisher, site=site)
    return app


def test_gates_see_the_inputs_of_requests_as_in_the_transcript(request, open_client):
    client = open_client(make_asking())

    def ask(line: str, body: str = "", fields: Mapping[str, str] | None = None) -> list[Any]:
        headers = {name: value.encode("latin-1") for name, value in (fields or {}).items()}
        answer = client.request(*line.split(" ", 1), content=body.encode("latin-1"), headers=headers)
        response = answer.json() if answer.text else None
        if not isinstance(response, dict):
            return [answer.status_code, response]
        if "confirmation" in response:
            return [json.loads(response["confirmation"]["summary"])]
        return [answer.status_code, *(response[name] for name in ("code", "detail", "errors") if name in response)]

    compare(TEXTS / "inputs.txt", {"ask": ask}, request)


def make_streaming() -> AgentPublisher:
    """Make an application whose routes answer in parts."""
    site = make_shop(authenticate=known_callers(), secret_keys=KEYS, guard_routes=True)

    async def parts() -> AsyncIterator[bytes]:
        for part in (b"one ", b"", b"two"):
            yield part

    async def stream(request: Request) -> Response:
        given = request.query_params
        headers = {"x-own": "o", "x-request-id": "own"}
        return StreamingResponse(parts(), int(given.get("status", "200")), headers, given.get("type", "text/plain"))

    class Spelt:
        """An application whose headers have capitals, one of which a gate gives, too."""

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            headers = [(b"X-Own", b"o"), (b"RateLimit-Policy", b"own"), (b"RateLimit", b"own")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b"spelt"})

    async def silent(request: Request) -> Response:
        return Response(status_code=204)

    routes: dict[str, dict[str, Any]] = {
        "counted": {"rate_limit": "90/minute"},
        "keyed": {"idempotency": "1h"},
        "known": {"scopes": ["buy"]},
    }
    for name, options in routes.items():
        site.declare(name, method="POST", path=f"/{name}", description=f"A {name} answer.", outputs={}, **options)
    site.declare("silent", method="POST", path="/silent", description="None.", outputs={}, rate_limit="90/minute")
    site.declare("spelt", method="POST", path="/spelt", description="Spelt.", outputs={}, rate_limit="90/minute")
    paths = [Route(f"/{name}", stream, methods=["POST"]) for name in routes]
    paths += [Route("/silent", silent, methods=["POST"]), Route("/spelt", Spelt(), methods=["POST"])]
    return AgentPublisher(Starlette(routes=paths), site=site)


def test_answers_of_guarded_routes_are_passed_on_as_in_the_transcript(request):
    app = make_streaming()

    def send(method: str, path: str, fields: Mapping[str, str], parts: tuple[str, ...] = ("",)) -> list[Any]:
        address, _, query = path.partition("?")
        headers = [(name.encode(), value.encode()) for name, value in {"host": "shop.example", **fields}.items()]
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "https",
        }
        scope |= {"path": address, "raw_path": address.encode(), "query_string": query.encode(), "headers": headers}
        scope |= {"server": ("shop.example", 443), "client": ("192.0.2.1", 1), "root_path": "", "state": {}}
        bodies, told = list(parts), list[Any]()

        async def receive() -> Any:
            if bodies:
                return {"type": "http.request", "body": bodies.pop(0).encode(), "more_body": bool(bodies)}
            await asyncio.sleep(60)
            return {"type": "http.disconnect"}

        async def take(message: Any) -> None:
            if message["type"] == "http.response.start":
                pairs = [f"{name.decode()}: {value.decode()}" for name, value in message["headers"]]
                told.append([message["status"], *(pair for pair in pairs if not CHANGING.match(pair))])
            else:
                told.append(message.get("body", b"").decode() + ("..." if message.get("more_body") else ""))

        asyncio.run(app(scope, receive, take))
        return [each if isinstance(each, list) else re.sub(r"#.*", "#...", each) for each in told]

    compare(TEXTS / "messages.txt", {"send": send}, request)
