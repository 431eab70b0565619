"""Whole conversations of callers without a cookie jar: `sessions*.txt`. --golden writes them anew; read the change."""

from pathlib import Path

import pytest
from fastapi import FastAPI, Security
from fastapi.responses import JSONResponse
from fastapi.security import APIKeyCookie

from awp_publish import AgentPublisher, Overview
from tests.client import TestClient
from tests.guarded import KEYS, make_shop
from tests.plugins.mcp.mcp_messages import without_cookie_jar
from tests.plugins.sessions.test_sessions import make_app
from tests.transcript import compare

CHANGING = [
    (r"(?<=/jobs/)[\w-]{22}", "JOB"),
    (r'(?<="job_id":")[\w-]{22}', "JOB"),
    (r"(?<=awp-session: )\S+", "TOKEN"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}", "UUID"),
    (r"(?<=[cC]ontextId\":\")[\w-]{40,}|(?<=awp-session\":\")[\w-]{40,}", "TOKEN"),
    (r"(?<=session=)[\w.=+\-]{20,}", "COOKIE"),
]


def make_app_of_routes() -> FastAPI:
    """Make a shop whose routes know callers by two cookies, and where a book is ordered before it is read."""
    site, app = make_shop(secret_keys=KEYS, plugins=["prerequisites"]), FastAPI()
    known = [Security(APIKeyCookie(name=name, scheme_name=name, auto_error=False)) for name in ("badge", "pass")]

    @app.post("/bake")
    @site.action("bake")
    async def bake(name: str, value: str, badge: str | None = known[0], passed: str | None = known[1]) -> JSONResponse:
        """Set a cookie, and say by which somebody is known."""
        answer = JSONResponse([badge, passed])
        answer.set_cookie(name, value)
        return answer

    @site.agent("order")
    async def order() -> str:
        """Order a book."""
        return "ordered"

    @site.agent("read", requires=["order"])
    async def read() -> str:
        """Read it."""
        return "read"

    app.add_middleware(AgentPublisher, site=site)
    return app


def test_sessions_of_callers_whom_routes_know(request):
    with TestClient(make_app_of_routes(), base_url="https://shop.example") as client:
        compare(Path(__file__).parent / "sessions_of_routes.txt", without_cookie_jar(client), request, *CHANGING)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("sessions", {"plugins": ()}),
        ("sessions_inside", {"plugins": (), "placed": "inside"}),
        ("sessions_of_doors", {"plugins": ("a2a", Overview())}),
    ],
)
def test_conversations_in_sessions_go_as_in_the_transcript(name, options, request):
    _, app = make_app(secret_keys=KEYS, **options)
    with TestClient(app, base_url="https://shop.example") as client:
        path, has_tasks = Path(__file__).parent / f"{name}.txt", "a2a" in options["plugins"]
        compare(path, without_cookie_jar(client), request, *CHANGING, sorts=has_tasks)
