"""The endpoint for single pages, its directory, and the ways in which a site points at them."""

from typing import Any
from urllib.parse import quote

import pytest
from starlette.applications import Starlette
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from awp_publish import AgentPublisher, Paths, Site
from awp_publish.documents.links import link_header
from awp_publish.model import Contact, DoorFacts
from awp_publish.plugin import known_protocols
from awp_publish.plugins.pages import som
from awp_publish.plugins.pages.rendering import MAX_PAGE_BYTES
from awp_publish.plugins.templating import head_links, robots_lines
from tests.client import TestClient
from tests.conftest import run_command
from tests.documents.catalogs import make_catalog

ENDPOINT = "/agents/som"
OWN = "https://shop.example"
CREDENTIALS = {"cookie": "a=b", "authorization": "Bearer c", "x-api-key": "d", "x-forwarded-user": "root"}


async def page(request: Request) -> Response:
    known = ", ".join(name for name in CREDENTIALS if name in request.headers)
    url = quote(str(request.url), safe=":/?=&%")
    return HTMLResponse(f"<p>{url}</p><p>{known or 'nobody'}</p>")


async def session(request: Request) -> Response:
    request.session["seen"] = request.session.get("seen", 0) + 1
    return HTMLResponse(f"<p>{request.session['seen']}")


async def status(request: Request) -> Response:
    return HTMLResponse("<h1>No</h1>", int(request.path_params["status"]))


async def fail(request: Request) -> Response:
    raise ValueError("lost")


ROUTES = [
    Route("/", page),
    Route("/page", page),
    Route("/deep/{path:path}", page),
    Route("/session", session),
    Route("/status/{status}", status),
    Route("/fail", fail),
    Route("/json", lambda request: JSONResponse({})),
    Route("/accepted", lambda request: HTMLResponse(f"<p>{request.headers['accept']}")),
    Route("/large", lambda request: HTMLResponse("x" * (MAX_PAGE_BYTES + 1))),
    Route("/moved", lambda request: RedirectResponse("/page?moved")),
    Route("/away", lambda request: RedirectResponse("https://elsewhere.example/")),
    Route("/astray", lambda request: RedirectResponse("http://[")),
    Route("/round", lambda request: RedirectResponse("/round")),
]


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


@pytest.mark.parametrize(
    ("url", "found"),
    [
        (f"{OWN}/page", f"{OWN}/page"),
        (f"{OWN}:443/page?a=1&b=%20c#part", f"{OWN}/page?a=1&b=%20c"),
        ("HTTPS://SHOP.EXAMPLE/page", f"{OWN}/page"),
        ("/page?a", f"{OWN}/page?a"),
        ("page", f"{OWN}/page"),
        (OWN, f"{OWN}/"),
        (f"{OWN}/deep/../page", f"{OWN}/page"),
        (f"{OWN}/deep/%2e%2e/page", f"{OWN}/page"),
        (f"{OWN}/deep/ä b", f"{OWN}/deep/%C3%A4%20b"),
        (f"{OWN}/moved", f"{OWN}/page?moved"),
    ],
)
def test_a_page_of_this_site_is_given_as_a_stranger_sees_it(client, url, found):
    answer = ask(client, url, headers={**CREDENTIALS, "host": "evil.example", "x-forwarded-host": "evil.example"})
    assert answer.text == f"{found}\n\nnobody\n"
    assert answer.headers["link"].startswith(f'<{found}>; rel="canonical"')
    assert answer.headers["cache-control"] == "public, max-age=300"
    assert "set-cookie" not in answer.headers


def test_a_page_is_asked_for_as_html(client):
    assert ask(client, "/accepted", headers={"accept": "text/markdown"}).text.startswith("text/html, ")


@pytest.mark.parametrize(
    "url",
    [
        "https://elsewhere.example/page",
        "http://shop.example/page",
        f"{OWN}:444/page",
        "https://shop.example.evil.example/",
        "https://shop.example@evil.example/",
        "https://user@shop.example/page",
        "//evil.example/page",
        "\\\\evil.example/page",
        f"{OWN}\\@evil.example/",
        "file:///etc/passwd",
        "https://[broken/",
        "https://shop.example:port/",
        "",
        "/a\nb",
        "/" + "a" * 9_000,
    ],
)
def test_any_other_address_is_refused_and_never_fetched(client, url):
    answer = ask(client, url)
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_URL")
    assert answer.json()["error"] == "invalid_url"
    assert answer.headers["content-type"] == "application/problem+json"


REFUSED = {
    "/status/404": 404,
    "/status/410": 404,
    "/status/401": 401,
    "/status/403": 403,
    "/status/500": 502,
    "/fail": 502,
    "/json": 404,
    "/large": 404,
    "/away": 404,
    "/astray": 404,
    "/round": 404,
    "/agent.json": 404,
    "/.well-known/som.json": 404,
    "/agents/som": 404,
    "/agents/status": 404,
    "/agents/anybody/invoke": 404,
}


@pytest.mark.parametrize(("path", "expected"), REFUSED.items())
def test_what_is_no_page_for_everybody_is_not_found(client, path, expected):
    answer = ask(client, path)
    assert (answer.status_code, answer.json()["code"]) == (expected, "PAGE_NOT_FOUND")


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


def test_a_mounted_site_gives_its_own_pages_only(open_client):
    site = Site("Shop", "Sells things.", url="https://example.com/shop")
    mounted = AgentPublisher(Starlette(routes=ROUTES), site=site, check=False)
    client = open_client(Starlette(routes=[Mount("/shop", mounted), Route("/page", page)]))

    def told(url: str) -> Any:
        return client.get(f"/shop{ENDPOINT}", params={"url": url, "format": "md"})

    assert told("https://example.com/shop/page").text.startswith("https://example.com/shop/page\n")
    assert told("/shop/page").status_code == 200
    for above in ("https://example.com/page", "/page", "/shop/../page", "/shop/%2e%2e/page", "/shopping"):
        assert told(above).status_code == 400


def test_the_endpoint_can_be_moved(open_client):
    client = make_client(open_client, paths=Paths(root="/for-agents"))
    assert client.get("/for-agents/som?url=/page&format=md").status_code == 200
    assert client.get("/.well-known/som.json").json()["endpoint"] == f"{OWN}/for-agents/som"


# --- The directory, and what points at it ---


def test_without_an_address_stands_the_directory(client):
    directory, endpoint = client.get("/.well-known/som.json"), client.get(ENDPOINT)
    assert directory.content == endpoint.content
    assert endpoint.headers["content-type"] == "application/som+json"
    assert endpoint.headers["access-control-allow-origin"] == "*"
    asked = {"if-none-match": endpoint.headers["etag"]}
    assert client.get(ENDPOINT, headers=asked).status_code == 304


OPEN = DoorFacts(som.DOOR, som.SOM_VERSION, ENDPOINT)


def test_the_directory_says_where_and_what():
    facts = {"documentation": "/help", "contact": Contact(url="https://elsewhere.example/us")}
    directory = som.render(make_catalog(doors=(OPEN,), site=facts))
    usage = directory.pop("usage")
    assert directory == {
        "som_version": "0.1",
        "endpoint": "https://books.example/agents/som",
        "format": "SOM/1.0",
        "scope": "full-page",
        "freshness_seconds": 300,
        "urls": ["https://books.example/help"],
    }
    assert isinstance(usage, dict)
    assert "text/markdown" in usage["markdown"]
    assert "https://books.example/agents/som?url=" in usage["endpoint"]


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
