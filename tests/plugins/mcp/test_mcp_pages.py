"""Pages as MCP resources: declared ones are listed, all others are read by address, as an unknown visitor sees them."""

from collections.abc import Sequence
from typing import Any

import pytest
from mcp import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS
from starlette.applications import Starlette
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from awp_publish import AgentPublisher, Site
from awp_publish.plugins.pages.rendering import MAX_PAGE_BYTES
from tests.plugins.mcp.mcp_messages import MODERN, MODES, VERSIONS, connect, message, post

OWN = "https://shop.example"
NOT_FOUND = {"legacy": -32002, MODERN: INVALID_PARAMS}


async def about(request: Request) -> Response:
    """What we are."""
    known = [name for name in ("cookie", "authorization") if name in request.headers]
    return HTMLResponse(f"<h1>About</h1><p>{request.url.query or 'us'}<p>{known or 'nobody'}")


async def visit(request: Request) -> Response:
    request.session["seen"] = True
    return HTMLResponse("<p>visit")


async def fail(request: Request) -> Response:
    raise ValueError("lost")


def kept(value: str, **headers: str) -> Any:
    return lambda request: HTMLResponse("<p>kept", headers={"cache-control": value, **headers})


ROUTES = [
    Route("/about", about),
    Route("/visit", visit),
    Route("/fail", fail),
    Route("/json", lambda request: JSONResponse({})),
    Route("/members", lambda request: HTMLResponse("no", 403)),
    Route("/large", lambda request: HTMLResponse("x" * (MAX_PAGE_BYTES + 1))),
    Route("/moved", lambda request: RedirectResponse("/about?moved")),
    Route("/away", lambda request: RedirectResponse("https://elsewhere.example/")),
    Route("/astray", lambda request: RedirectResponse("http://[")),
    Route("/kept", kept("public, max-age=60")),
    Route("/own", kept("private, max-age=60")),
    Route("/languages", kept("max-age=60", vary="Accept-Language")),
]


def make_app(plugins: Sequence[str] = (), **options: Any) -> Starlette:
    site = Site("Shop", "Sells things.", url=OWN, plugins=["mcp", *plugins], **options)
    site.page("/about", title="About us")
    site.page("/kept", description="Stays the same.")
    app = Starlette(routes=ROUTES)
    app.add_middleware(AgentPublisher, site=site, check=False)
    app.add_middleware(SessionMiddleware, secret_key="not a secret at all")
    return app


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("path", "text"), [("/about", "us"), ("/about?a=1&b=2", "a=1&b=2"), ("/moved", "moved")])
async def test_a_page_is_read_as_markdown_and_as_nobody_in_particular(mode, path, text):
    async with connect(make_app(), mode, headers={"cookie": "session=a", "authorization": "Bearer b"}) as client:
        (read,) = (await client.read_resource(OWN + path)).contents
    assert (read.uri, read.mime_type) == (OWN + path, "text/markdown")
    assert read.text == f"# About\n\n{text}\n\nnobody\n"


REFUSED = [
    "https://elsewhere.example/about",
    "http://shop.example/about",
    "https://shop.example.evil.example/",
    "file:///etc/passwd",
    "/about",
    "about",
    f"{OWN}/nothing",
    f"{OWN}/json",
    f"{OWN}/members",
    f"{OWN}/large",
    f"{OWN}/away",
    f"{OWN}/astray",
    f"{OWN}/mcp",
    f"{OWN}/agents/som",
    f"{OWN}/agents/status",
    "https://[broken/",
    "https://shop.example/" + "a" * 9_000,
]


@pytest.mark.parametrize("mode", MODES)
async def test_a_page_that_is_not_public_is_not_a_resource(mode):
    async with connect(make_app(), mode) as client:
        for uri in REFUSED:
            with pytest.raises(MCPError) as refused:
                await client.read_resource(uri)
            assert refused.value.error.code == NOT_FOUND[mode], uri
            assert refused.value.error.data == {"uri": uri[:200]}


@pytest.mark.parametrize("mode", MODES)
async def test_a_page_that_fails_is_an_error_of_the_site(mode):
    async with connect(make_app(), mode) as client:
        with pytest.raises(MCPError) as failed:
            await client.read_resource(f"{OWN}/fail")
    assert (failed.value.error.code, failed.value.error.message) == (INTERNAL_ERROR, "The page failed.")


@pytest.mark.parametrize("version", VERSIONS)
def test_pages_without_other_formats_are_no_resources(open_client, version):
    client = open_client(make_app(plugins=["no:pages"]))
    listed = post(client, message("resources/list", version=version), version).json()["result"]["resources"]
    assert f"{OWN}/about" not in [item["uri"] for item in listed]
    templates = post(client, message("resources/templates/list", version=version), version).json()
    assert templates["error"]["code"] == -32601
    read = post(client, message("resources/read", {"uri": f"{OWN}/about"}, version=version), version).json()
    assert read["error"]["code"] in (-32002, INVALID_PARAMS)


async def test_a_mounted_site_reads_its_own_pages_only(open_client):
    site = Site("Shop", "Sells.", url="https://shop.example/shop", plugins=["mcp"])
    app = AgentPublisher(Starlette(routes=ROUTES), site=site, check=False)
    client = open_client(Starlette(routes=[Mount("/shop", app), Route("/about", about)]))

    def read(uri: str) -> Any:
        sent = message("resources/read", {"uri": uri})
        headers = {"mcp-method": "resources/read", "mcp-name": uri, "mcp-protocol-version": MODERN}
        accept = {"accept": "application/json, text/event-stream"}
        return client.post("/shop/mcp", json=sent, headers=headers | accept).json()

    assert read("https://shop.example/shop/about")["result"]["contents"][0]["text"].startswith("# About")
    assert read("https://shop.example/about")["error"]["code"] == INVALID_PARAMS
