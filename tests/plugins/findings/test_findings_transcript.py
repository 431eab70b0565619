"""What the log says when a site starts, and how its findings are grouped: `findings.txt`."""

import logging
import multiprocessing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Host, Mount, Route, Router

from awp_publish import AgentPublisher, OAuth, SessionUser, Site
from awp_publish.checks import Finding
from awp_publish.plugins.findings.report import summarize
from tests.client import TestClient
from tests.function_transcripts import compare
from tests.installed import taken_out

VALUES: Mapping[str, Any] = {
    "people": SessionUser(endpoints={"login": "/sign-in", "logout": "/sign-out"}),
    "tokens": OAuth(refresh_endpoint="/refresh", endpoints={"token": "https://sso.example/token"}),
}
"""Options of a site that JSON cannot say."""


async def answer(request: Request) -> PlainTextResponse:
    return PlainTextResponse("here")


def route_of(text: str) -> BaseRoute:
    """Return a route (of a host), or an application that keeps its routes to itself: `GET /here`, `MOUNT /here`."""
    method, path = text.split(" ")
    if path.startswith("//"):
        host, _, rest = path[2:].partition("/")
        return Host(host, Router([Route(f"/{rest}", answer, methods=[method])]))
    return Mount(path, PlainTextResponse("there")) if method == "MOUNT" else Route(path, answer, methods=[method])


@pytest.mark.skipif(bool(taken_out()), reason="they name what all plug-ins have")
def test_findings_are_reported_as_in_the_transcript(request, caplog, monkeypatch, tmp_path):
    objects = {**VALUES, "shared": f"sqlite:///{tmp_path / 'agents.db'}"}

    def started(
        options: Mapping[str, Any],
        actions: Mapping[str, Mapping[str, Any]] = {},
        routes: Sequence[str] = (),
        server: Mapping[str, Any] = {},
    ) -> list[str]:
        """Return what is logged about a site with declared actions, of an application with routes, at its start."""
        caplog.clear()
        monkeypatch.setenv("WEB_CONCURRENCY", str(server.get("workers", 1)))
        monkeypatch.setattr(multiprocessing.current_process(), "name", server.get("process", "MainProcess"))
        values = {name: objects.get(str(value), value) for name, value in options.items()}
        site = Site("Shop", "Sells things.", **{"url": "https://shop.example", **values})
        for name, facts in actions.items():
            site.declare(name, **{"method": "POST", "path": f"/{name}", "description": "Do it.", **facts})
        app = Starlette(routes=[route_of(text) for text in routes])
        publisher = AgentPublisher(app, site, check=server.get("check", True))

        async def served(scope: Any, receive: Any, send: Any) -> None:
            await publisher({**scope, "root_path": server.get("root_path", "")}, receive, send)

        with TestClient(served, base_url="https://shop.example"):
            logged = [record for record in caplog.records if record.name == "awp_publish.checks"]
        return [f"{record.levelname} {record.getMessage()}" for record in logged]

    def summarized(*findings: list[Any]) -> list[str]:
        """Return log lines of findings: level, check, document, message, and how many of them."""
        each = [
            Finding(level, check, "", message.replace("#", str(number)), "Do so.", "source", document)
            for level, check, document, message, count in findings
            for number in range(count)
        ]
        return [f"{logging.getLevelName(level)} {line}" for level, line in summarize(each)]

    compare(Path(__file__).parent / "findings.txt", {"started": started, "summarized": summarized}, request)
