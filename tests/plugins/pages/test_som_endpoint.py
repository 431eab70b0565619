"""The endpoint for single pages, its directory, and the ways in which a site points at them."""

from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from awp_publish import AgentPublisher, Paths, Site
from awp_publish.documents.links import link_header
from awp_publish.model import DoorFacts
from awp_publish.plugin import known_protocols
from awp_publish.plugins.pages import som
from awp_publish.plugins.templating import head_links, robots_lines
from tests.client import TestClient
from tests.conftest import run_command
from tests.documents.catalogs import make_catalog

ENDPOINT = "/agents/som"
OWN = "https://shop.example"


async def page(request: Request) -> Response:
    return HTMLResponse("<p>A page.</p>")


async def session(request: Request) -> Response:
    request.session["seen"] = request.session.get("seen", 0) + 1
    return HTMLResponse(f"<p>{request.session['seen']}")


ROUTES = [Route("/page", page), Route("/session", session)]


def make_client(open_client: Any, place: str = "inside", **options: Any) -> TestClient:
    site = Site("Shop", "Sells things.", url=options.pop("url", OWN), **options)
    app = Starlette(routes=ROUTES)
    if place == "inside":
        app.add_middleware(AgentPublisher, site=site, check=False)
        app.add_middleware(SessionMiddleware, secret_key="not a secret at all")
        return open_client(app)
    app.add_middleware(SessionMiddleware, secret_key="not a secret at all")
    return open_client(AgentPublisher(app, site=site, check=False))


@pytest.fixture(params=["inside", "outermost"])
def client(request, open_client) -> TestClient:
    return make_client(open_client, request.param)


def ask(client: TestClient, url: str, **given: Any) -> Any:
    headers = given.pop("headers", {})
    return client.get(ENDPOINT, params={"url": url, "format": "md", **given}, headers=headers)


def test_a_redirect_away_from_the_site_is_not_asked_for_again(open_client):
    asked: list[str] = []

    def away(request: Request) -> Response:
        asked.append(request.url.path)
        return RedirectResponse("https://elsewhere.example/")

    app = Starlette(routes=[Route("/away", away)])
    client = open_client(AgentPublisher(app, site=Site("Shop", "Sells things.", url=OWN), check=False))
    assert (ask(client, "/away").status_code, asked) == (404, ["/away"])


def test_a_visit_that_begins_is_nobodys(client):
    client.get("/session")
    answer = ask(client, "/session")
    assert (answer.text, answer.headers["cache-control"]) == ("1\n", "no-store")
    assert "set-cookie" not in answer.headers
    assert client.get("/session").text == "<p>2"


def test_the_state_that_others_made_of_the_caller_stays_behind(open_client):
    async def user(request: Request) -> Response:
        return HTMLResponse(f"<p>{request.user.display_name or 'nobody'}")

    class Backend:
        async def authenticate(self, connection: Any) -> Any:
            from starlette.authentication import AuthCredentials, SimpleUser

            return (AuthCredentials(), SimpleUser("ada")) if "cookie" in connection.headers else None

    app = Starlette(routes=[Route("/user", user)])
    app.add_middleware(AgentPublisher, site=Site("Shop", "Sells.", url=OWN), check=False)
    app.add_middleware(AuthenticationMiddleware, backend=Backend())  # type: ignore[arg-type]
    client = open_client(app)
    asked = {"accept": "text/markdown", "cookie": "a=b"}
    assert client.get("/user", headers=asked).text == "ada\n"
    assert ask(client, "/user", headers=asked).text == "nobody\n"


def test_the_endpoint_can_be_moved(open_client):
    client = make_client(open_client, paths=Paths(root="/for-agents"))
    assert client.get("/for-agents/som?url=/page&format=md").status_code == 200
    assert client.get("/.well-known/som.json").json()["endpoint"] == f"{OWN}/for-agents/som"


# --- The directory, and what points at it ---


OPEN = DoorFacts(som.DOOR, som.SOM_VERSION, ENDPOINT)


def test_heads_links_and_robots_point_at_it_as_the_proposals_write_it():
    catalog = make_catalog(doors=(OPEN,))
    element = '<link rel="describedby" type="application/som+json" href="/.well-known/som.json" title="SOM">'
    assert element in head_links(catalog).splitlines()
    member = '</.well-known/som.json>; rel="describedby"; type="application/som+json"'
    assert member in link_header(catalog, known_protocols()).split(", ")
    assert robots_lines(catalog).splitlines() == [
        "SOM-Endpoint: https://books.example/agents/som",
        "SOM-Format: SOM/1.0",
        "SOM-Scope: full-page",
        "SOM-Freshness: 300",
        "SOM-Auth: none",
    ]


def test_a_site_of_html_only_points_at_nothing():
    catalog = make_catalog(doors=())
    assert robots_lines(catalog) == ""
    assert "som" not in head_links(catalog) + link_header(catalog, known_protocols())


def test_every_representation_of_a_page_has_the_links_of_its_html(open_client):
    async def answer(request: Request) -> Response:
        return JSONResponse([]) if request.url.path == "/data" else HTMLResponse("<h1>x</h1>")

    app = Starlette(routes=[Route("/{path}", answer, methods=["GET", "POST"])])
    client = open_client(AgentPublisher(app, Site("Shop", "Sells.", url=OWN), link_headers=True, check=False))
    links = client.get("/page").headers["link"]
    assert f'<{OWN}/page.md>; rel="alternate"' in links
    for path, accept in (
        ("/page", "text/markdown"),
        ("/page", "application/som+json"),
        ("/agents/som?url=/page", "*/*"),
    ):
        assert client.get(path, headers={"accept": accept}).headers["link"].endswith(links)
    of_site, _, _ = links.partition(f", <{OWN}/page.md>")
    assert client.get("/data").headers["link"] == of_site
    for accept in ("*/*", "text/markdown"):
        told = client.post("/page", headers={"accept": accept}).headers["link"]
        assert told.endswith(of_site)
        assert "alternate" not in told, "there is no file of what a form answered"


def test_the_command_prints_the_lines():
    printed = run_command("robots", "demo_site.app:app").stdout
    assert "SOM-Endpoint: http" in printed
    assert "SOM-Format: SOM/1.0\n" in printed
