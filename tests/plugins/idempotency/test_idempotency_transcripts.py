"""What becomes of keys, second by second, with what the store has: `transcripts`, see `tests/transcript.py`."""

from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Header, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from awp_publish import Refused, Site
from awp_publish.http.exchange import AsgiApp
from awp_publish.plugins.idempotency.options import read_idempotency
from tests.function_transcripts import compare
from tests.timed import compare_timed

TRANSCRIPTS = Path(__file__).parent / "transcripts"


class Secret(BaseModel):
    pin: Annotated[str, Field(json_schema_extra={"writeOnly": True})]


def declare(site: Site) -> AsgiApp:
    app = FastAPI()
    kinds: dict[str, dict[str, Any]] = {"write": {"effect": "write"}, "again": {"effect": "idempotent"}}
    for name, options in kinds.items():

        @site.agent(name, idempotency="1h", timeout=20.0, **options)
        async def act(how: Literal["", "refuse", "raise", "wrong"] = "", size: int = 0) -> str:
            """Act."""
            if how == "refuse":
                raise Refused("No.", code="NO")
            if how == "raise":
                raise RuntimeError("secret")
            return (how and 7) or "x" * size  # type: ignore[return-value]

    @site.agent("short", idempotency={"window": "5s", "key_field": "order_number"})
    async def short(order_number: str = "", n: int = 1) -> str:
        """Be short."""
        return order_number

    @site.agent("secret", idempotency=True)
    async def secret() -> Secret:
        """Make a PIN."""
        return Secret(pin="1234")

    @app.post("/orders/{number}", status_code=201)
    @site.action("order", idempotency="1h")
    async def order(number: int, authorization: Annotated[str, Header()] = "") -> Response:
        """Order."""
        headers = {"location": f"/orders/{number}", "link": "</orders>; rel=up", "x-total-count": "1", "etag": '"a"'}
        answer = JSONResponse({"number": number}, 201, headers)
        answer.set_cookie("session", "secret")
        return answer

    @app.delete("/orders")
    @site.action("clear", idempotency="1h")
    async def clear() -> Response:
        """Clear all."""
        return Response(status_code=204)

    @app.get("/file")
    @site.action("file", idempotency="1h", method="GET")
    async def file() -> Response:
        """Read a file."""
        return Response(b"\xff", media_type="image/png", headers={"content-disposition": 'inline; filename="a.png"'})

    return app


def test_keys_are_kept_as_in_the_transcripts(request):
    compare_timed(TRANSCRIPTS / "keys.txt", declare, request)


def test_options_are_read_as_reviewed(request):
    functions = {"idempotency": lambda value: (read := read_idempotency(value)) and [read.window, read.key_field]}
    compare(TRANSCRIPTS / "options.txt", functions, request)
