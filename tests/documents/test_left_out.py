"""A document that a site leaves out is named nowhere else: no other document, recovery or header leads to it."""

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI

from awp_publish import About, AgentPublisher, Site
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.plugin import installed as plugins, known_protocols
from tests.client import TestClient
from tests.documents.known import PROBLEMS
from tests.guarded import KEYS
from tests.installed import installed

PATHS: dict[str, list[str]] = {}
for _protocol in known_protocols():
    PATHS.setdefault(_protocol.name, []).extend(document.path for document in _protocol.documents)
for _plugin in installed("awas", "agent_json"):
    _protocols = plugins()[_plugin].documents
    PATHS[f"no:{_plugin}"] = [document.path for protocol in _protocols for document in protocol.documents]


def make_app(left_out: str) -> tuple[Any, Site]:
    is_plugin = left_out.startswith("no:")
    about = About(leave_out=[] if is_plugin else [left_out])
    site = Site(
        "Shop",
        "Sells.",
        url="https://shop.example",
        plugins=[*installed("mcp", "a2a", "awp"), *([left_out] if is_plugin else [])],
        about=about,
        secret_keys=KEYS,
    )
    app = FastAPI()

    @app.post("/orders")
    @site.action("order", confirm=True, idempotency="24h")
    async def order(title: str, copies: int = 1) -> dict[str, str]:
        """Order a book."""
        return {}

    @site.agent("stocktake", execution="async")
    async def stocktake() -> str:
        """Count the books."""
        return ""

    app.add_middleware(AgentPublisher, site=site, link_headers=True)
    return app, site


def everything_said(client: TestClient, site: Site) -> Iterator[tuple[str, str]]:
    """Yield each text that a caller may read, with its place."""
    for path in {path for paths in PATHS.values() for path in paths}:
        answer = client.get(path)
        if answer.status_code == 200:
            yield path, answer.text + answer.headers.get("link", "")
    for kind in PROBLEMS:
        yield f"problem {kind.slug}", str(ProblemRenderer(site.catalog).describe(kind("")))
        yield f"page {kind.slug}", client.get(f"/agents/problems/{kind.slug}").text
    for path in ("/agents/actions/nothing", "/agents/nothing/invoke"):
        yield path, client.post(path, json={"input": {}}).text
    yield "headers", str(client.get("/orders").headers)


@pytest.mark.parametrize("left_out", sorted(PATHS))
def test_a_document_that_is_left_out_is_named_nowhere(left_out):
    app, site = make_app(left_out)
    with TestClient(app, base_url="https://shop.example") as client:
        said = dict(everything_said(client, site))
    gone = [path for path in PATHS[left_out] if path not in said and path.count("/") and len(path) > 3]
    leads = [f"{path} in {place}" for path in gone for place, text in said.items() if path in text]
    assert leads == []
