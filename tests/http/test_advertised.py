"""Nothing is advertised that does not answer: every address in documents, headers and pages is followed, anywhere."""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from fastapi import APIRouter, Depends, FastAPI, Header
from fastapi.responses import HTMLResponse
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

from awp_publish import About, AgentPublisher, Discovery, Robots, Security, Site
from awp_publish.plugins.templating import head_links, page_meta, structured_data, webmcp_script
from tests.conftest import LOGIN
from tests.documents.known import ALL
from tests.installed import installed

SHOP = "https://shop.example"
BEGIN = ("/", *(document.path for protocol in ALL for document in protocol.documents))
TEXT_LINK = re.compile(r"https?://[^\s\"'<>()`]+|\]\((/[^)\s]+)\)|(?:MCP|A2A|AWP|GET|POST) (/[^\s,`]+)")
NO_ADDRESSES = ("baseUrl", "api_base", "base", "origin", "invoke_path")
"""Members to which a reader adds: of AWAS origins, of WoA two parts of an address."""

KNOWN = {"agent_id": "search", "action_id": "search", "slug": "assam", "id": "7"}


def addresses_in(answer: Any, base: str) -> Iterator[str]:
    """Every address of the site that an answer names."""
    for link in answer.headers.get_list("link"):
        yield from re.findall(r"<([^>]*)>", link)
    kind, text = answer.headers.get("content-type", ""), answer.text
    if "html" in kind:
        yield from re.findall(r'<(?:link|script|a|form)\b[^>]*?(?:href|src|action)="([^"]*)"', text)
        yield from (
            string
            for block in re.findall(r"ld\+json\">(.*?)</script>", text)
            for string in strings_in(json.loads(block))
        )
    elif "json" in kind:
        yield from strings_in(answer.json())
    elif "javascript" not in kind:
        yield from ((found[1] or found[2] or found[0]).rstrip(".,;:") for found in TEXT_LINK.finditer(text))


def strings_in(value: Any, name: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from strings_in(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from strings_in(item, name)
    elif isinstance(value, str) and re.fullmatch(r"(https?://|/)[^\s|^]+", value) and name not in NO_ADDRESSES:
        yield value


def follow_everything(client: Any, url: str) -> dict[str, tuple[int, str]]:
    """Follow all addresses of a site; give the status of each, and where it was first named."""
    root, found = urlsplit(url), dict[str, tuple[int, str]]()
    waiting = [(url + path, "nobody") for path in BEGIN]
    while waiting:
        address, named_by = waiting.pop(0)
        address = re.sub(r"\{(\w+)\}", lambda match: KNOWN.get(match[1], match[0]), address.partition("#")[0])
        address = address.replace("/NAME", "/search")
        parts = urlsplit(address)
        if parts.netloc != root.netloc or address in found or "{" in address:
            continue
        answer = client.get(address, headers={"accept": "text/html, application/json;q=0.9, */*;q=0.1"})
        found[address] = (answer.status_code, named_by)
        if answer.status_code == 200:
            waiting += [(urljoin(address, one), address) for one in addresses_in(answer, url)]
    return found


def dead(found: dict[str, tuple[int, str]]) -> list[str]:
    """What was advertised and does not answer. A door may refuse GET (405) or strangers (401, 403), or want more."""
    return [
        f"{status} {address} named by {named_by}"
        for address, (status, named_by) in found.items()
        if named_by != "nobody" and (status in (404, 410) or status >= 500 or (status == 400 and "?url=" in address))
    ]


def page_of(site: Site, path: str, title: str) -> HTMLResponse:
    head = head_links(site.catalog) + page_meta(site.catalog, path) + structured_data(site.catalog, path)
    return HTMLResponse(
        f"<html lang=en><head><title>{title}</title>{head}{webmcp_script(site.catalog)}</head><h1>{title}</h1></html>"
    )


def fastapi_shop(**options: Any) -> tuple[Any, Site]:
    """Declared one by one, pages too; some of it in a router."""
    site, app, router = Site("Shop", "Sells tea.", **options), FastAPI(), APIRouter(prefix="/v1")

    @app.get("/", response_class=HTMLResponse)
    @site.page(title="Front")
    def front() -> HTMLResponse:
        return page_of(site, "/", "Front")

    @app.get("/account", response_class=HTMLResponse)
    def account(x_key: str = Header()) -> str:
        return "<h1>Yours</h1>"

    @router.get("/search")
    @site.action("search", examples=[{"q": "assam"}], rate_limit="30/minute")
    def search(q: str = "") -> list[str]:
        """Search teas by name."""
        return [q]

    @router.post("/orders/{slug}", status_code=201)
    @site.action("order", confirm=True, idempotency="24h", tags=["orders"])
    def order(slug: str) -> dict[str, str]:
        """Order a tea."""
        return {"slug": slug}

    @site.agent("pack", execution="async")
    async def pack(slug: str) -> str:
        """Pack a tea."""
        return slug

    app.include_router(router)
    app.add_middleware(AgentPublisher, site=site, link_headers=True)
    return app, site


def starlette_shop(**options: Any) -> tuple[Any, Site]:
    """Existing routes, which are declared beside; nothing is OpenAPI."""
    site = Site("Shop", "Sells tea.", **options)

    async def front(request: Request) -> HTMLResponse:
        return page_of(site, "/", "Front")

    async def search(request: Request) -> JSONResponse:
        return JSONResponse([request.query_params.get("q")])

    async def tea(request: Request) -> HTMLResponse:
        slug = request.path_params["slug"]
        return HTMLResponse(f"<title>{slug}</title><h1>{slug}</h1>", 200 if slug == "assam" else 404)

    site.page("/", title="Front")
    site.page("/teas/{slug}", title="A tea")
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    site.declare("search", method="GET", path="/search", description="Search teas by name.", inputs=schema, outputs={})
    routes = [Route("/", front), Route("/search", search), Route("/teas/{slug}", tea)]
    return AgentPublisher(Starlette(routes=routes), site=site, link_headers=True), site


def included_shop(**options: Any) -> tuple[Any, Site]:
    """Nothing is declared: what is there is included, and some of it is private."""
    site, app = Site("Shop", "Sells tea.", **options), FastAPI(openapi_url="/api/schema.json")

    def known(authorization: str = Header()) -> str:
        return authorization

    @app.get("/", response_class=HTMLResponse)
    def front() -> HTMLResponse:
        return page_of(site, "/", "Front")

    @app.get("/search")
    def search(q: str = "") -> list[str]:
        """Search teas by name."""
        return [q]

    @app.get("/admin", response_class=HTMLResponse, include_in_schema=False)
    def admin() -> str:
        return "<h1>Admin</h1>"

    @app.get("/basket", dependencies=[Depends(known)])
    def basket() -> list[str]:
        """See what is in your basket."""
        return []

    site.include()
    app.add_middleware(AgentPublisher, site=site, link_headers=True)
    return app, site


SHOPS = [fastapi_shop, starlette_shop, included_shop]
DOORS: list[list[str]] = [[], ["mcp", "a2a", "awp", "bridge"]]


@pytest.mark.parametrize("doors", [*DOORS, ["a2a"], ["no:woa"]], ids=lambda doors: "+".join(doors) or "none")
@pytest.mark.parametrize("make", SHOPS, ids=lambda make: make.__name__)
def test_every_address_that_is_told_answers(open_client, make, doors):
    app, _ = make(url=SHOP, plugins=doors)
    found = follow_everything(open_client(app), SHOP)
    assert dead(found) == []
    assert len(found) > 15
    for private in ("/admin", "/account"):
        assert SHOP + private not in found


@pytest.mark.needs("identity")
def test_every_address_of_a_site_that_says_all_of_itself_answers(open_client):
    security = Security(contact=["mailto:a@shop.example", "/"], expires="2099-01-01", policy="/")
    about = About(documentation="/", contact="/", license="MIT")
    robots = Robots(disallow=["/account"], license="/", bots={"GPTBot": True})
    app, _ = fastapi_shop(
        url=SHOP,
        plugins=[*DOORS[-1], Discovery(robots=robots, security=security), "overview"],
        about=about,
        oauth=LOGIN,
    )
    found = follow_everything(open_client(app), SHOP)
    assert dead(found) == []
    for path in ("/auth.md", "/.well-known/oauth-protected-resource", "/.well-known/security.txt"):
        assert found[SHOP + path][0] == 200


def mounted(app: Any) -> Any:
    """In an application of its own, which knows nothing of ours."""
    return Starlette(routes=[Mount("/tea", app)])


def behind_a_proxy_that_strips(app: Any) -> Any:
    async def proxy(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            scope = {**scope, "path": scope["path"].removeprefix("/tea") or "/"}
            scope["raw_path"] = scope["path"].encode()
        await app(scope, receive, send)

    return proxy


def behind_a_server_that_knows_its_path(app: Any) -> Any:
    async def server(scope: Any, receive: Any, send: Any) -> None:
        await app(scope if scope["type"] == "lifespan" else {**scope, "root_path": "/tea"}, receive, send)

    return server


@pytest.mark.parametrize(("make", "doors"), [(fastapi_shop, DOORS[1]), (starlette_shop, DOORS[0])])
@pytest.mark.parametrize("place", [mounted, behind_a_proxy_that_strips, behind_a_server_that_knows_its_path])
def test_every_address_that_is_told_answers_below_a_path(open_client, make, place, doors):
    app, _ = make(url=f"{SHOP}/tea", plugins=doors)
    found = follow_everything(open_client(place(app)), f"{SHOP}/tea")
    assert dead(found) == []
    assert len(found) > 15
    assert [address for address in found if not address.startswith(f"{SHOP}/tea")] == []


@pytest.mark.parametrize("left", [protocol.name for protocol in ALL])
def test_a_document_that_is_left_out_is_mentioned_nowhere(open_client, left):
    app, _ = included_shop(
        url=SHOP, plugins=installed("mcp", "a2a", "awp"), about=About(leave_out=[left], documentation="/")
    )
    found = follow_everything(open_client(app), SHOP)
    assert dead(found) == []
    (documents,) = (protocol.documents for protocol in ALL if protocol.name == left)
    still = [document.path for document in documents if found[SHOP + document.path][0] == 200]
    assert still == []
