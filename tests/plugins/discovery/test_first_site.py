"""A first site, as README begins, with two HTML pages: what crawlers and agents find of it without a word more."""

import re
from typing import Annotated
from xml.etree import ElementTree

import pytest
from fastapi import Depends, FastAPI
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.security import HTTPBearer
from jinja2 import Environment
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from awp_publish import About, AgentPublisher, Discovery, Robots, Security, Site
from awp_publish.plugins.templating import head_links, install
from tests.client import TestClient

URL = "http://127.0.0.1:8000"


def make_site(**options) -> Site:
    return Site(**{"name": "Bookshop", "description": "Find books.", "url": URL, "plugins": ["mcp"]} | options)


def make_app(site: Site) -> FastAPI:
    app = FastAPI()

    @app.get("/search")
    @site.action("search_books")
    async def search(q: str, limit: int = 10) -> list[str]:
        """Search books by title, author or subject."""
        return []

    @app.get("/", response_class=HTMLResponse)
    def home() -> str:
        """The shop window."""
        return "<title>Bookshop</title><h1>Bookshop</h1>"

    @app.get("/about")
    def about() -> HTMLResponse:
        """Who we are."""
        return HTMLResponse("<title>About</title><h1>About</h1>")

    @app.get("/hidden", response_class=HTMLResponse, include_in_schema=False)
    def hidden() -> str:
        return "hidden"

    @app.get("/members", response_class=HTMLResponse)
    def members(token: Annotated[object, Depends(HTTPBearer())]) -> str:
        return "members"

    @app.get("/books/{slug}", response_class=HTMLResponse)
    def book(slug: str) -> str:
        return slug

    @app.get("/login", response_class=HTMLResponse)
    def login() -> str:
        return "login"

    @app.get("/old")
    def old() -> RedirectResponse:
        return RedirectResponse("/")

    @app.get("/data")
    def data() -> dict[str, str]:
        return {}

    app.add_middleware(AgentPublisher, site=site, check=False)
    return app


def addresses_of(client: TestClient) -> list[str]:
    answer = client.get("/sitemap.xml")
    if answer.status_code == 404:
        return []
    return [item.text or "" for item in ElementTree.fromstring(answer.content).iter() if item.tag.endswith("}loc")]


def test_pages_are_found_and_listed_linked_and_read():
    with TestClient(make_app(make_site()), base_url=URL) as client:
        assert addresses_of(client) == [f"{URL}/", f"{URL}/about"]
        assert f"Sitemap: {URL}/sitemap.xml" in client.get("/robots.txt").text
        assert f"[About]({URL}/about.md): Who we are." in client.get("/llms.txt").text
        home = client.get("/")
        assert '</.well-known/api-catalog>; rel="api-catalog"' in home.headers["link"]
        assert f'<{URL}/index.md>; rel="alternate"; type="text/markdown"' in home.headers["link"]
        assert "link" not in client.get("/data").headers
        assert client.get("/", headers={"accept": "text/markdown"}).text.startswith("# Bookshop")


def test_pages_that_are_declared_or_included_are_the_only_ones():
    site = make_site()
    site.page("/about")
    with TestClient(make_app(site), base_url=URL) as client:
        assert addresses_of(client) == [f"{URL}/about"]
    site = make_site()
    site.include(paths=["/data"])
    with TestClient(make_app(site), base_url=URL) as client:
        assert addresses_of(client) == []


def test_pages_of_starlette_are_found_by_what_their_handlers_answer():
    async def home(request: Request) -> Response:
        return HTMLResponse("<h1>Home</h1>")

    async def data(request: Request) -> Response:
        return Response(b"{}")

    routes = [Route("/", home), Route("/data", data), Route("/send", home, methods=["POST"])]
    app = AgentPublisher(Starlette(routes=routes), site=make_site(), check=False)
    with TestClient(app, base_url=URL) as client:
        assert addresses_of(client) == [f"{URL}/"]


def test_one_call_writes_all_that_is_looked_for_in_a_head():
    site = make_site()
    with TestClient(make_app(site), base_url=URL):
        text = head_links(site.catalog, path="/about", nonce="n1")
    assert text.startswith("<!-- For agents: /llms.txt lists the pages and actions of this site. -->\n")
    for part in (
        '<link rel="describedby" type="text/plain" href="/llms.txt" title="llms.txt">',
        '<link rel="alternate" type="text/plain" href="/llms.txt" title="llms.txt">',
        f'<link rel="canonical" href="{URL}/about">',
        f'<link rel="alternate" type="text/markdown" href="{URL}/about.md">',
        '<meta property="og:title" content="About">',
        '<script type="application/ld+json">',
        '<script type="module" src="/agents/webmcp.tools.js" nonce="n1">',
    ):
        assert part in text
    assert len(re.findall("canonical", text)) == 1


@pytest.mark.parametrize("path", ["/nowhere", "/books/emma"])
def test_a_page_that_is_not_known_has_the_links_of_the_site(path):
    site = make_site()
    with TestClient(make_app(site), base_url=URL):
        environment = Environment(autoescape=True)
        install(environment, site)
        text = environment.from_string("{{ head_links(path=path) }}").render(path=path)
    assert isinstance(Markup(text), str)
    assert 'rel="describedby"' in text
    assert "webmcp" in text
    assert "canonical" not in text


def test_a_line_at_the_start_says_what_only_the_owner_can_say(caplog):
    with TestClient(make_app(make_site()), base_url=URL):
        (line,) = [record.message for record in caplog.records if "Only you can supply" in record.message]
    assert line.endswith(
        "About(updated=...), About(email=...), Discovery(security=Security(...)), Robots(content_signal={...})."
    )
    caplog.clear()
    security = Security(contact=["mailto:a@shop.example"], expires="2099-01-01")
    about = About(updated="2026-11-01", email="a@shop.example")
    with TestClient(
        make_app(
            make_site(
                about=about, plugins=[Discovery(robots=Robots(content_signal={"search": "yes"}), security=security)]
            )
        ),
        base_url=URL,
    ):
        assert "Only you can supply" not in caplog.text
