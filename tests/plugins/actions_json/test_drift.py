"""Drift: what the pages of a site and its map say of each other."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from awp_publish import AgentPublisher, Site
from awp_publish.maps.chromium import why_unavailable
from awp_publish.plugins.actions_json.differences import Drift
from awp_publish.plugins.actions_json.drift import check_pages
from tests.limit import OF_BROWSERS

FORM = (
    "<form role=search action=/search data-awas-action=search_books><input name=q data-awas-param=q>"
    "<button>Find</button></form>"
)
RESULTS = "<p class=count>2 books</p><ol><li class=book><b>Emma</b></li><li class=book><b>Persuasion</b></li></ol>"
SCHEMA = {"type": "object", "properties": {"q": {"type": "string", "maxLength": 50}}, "required": ["q"]}
TARGETS = {"form": {"selector": "form[role='search']", "role": "search"}, "submit": "form button", "done": "p.count"}
READY = {"name": "ready", "diagnostics": [{"name": "form", "target": "form"}]}
NEVER = {"name": "never", "diagnostics": [{"name": "it", "target": {"selector": "#never"}}]}


def drifts(
    form: str = FORM,
    results: str = RESULTS,
    search_status: int = 200,
    html: Mapping[str, str] = {},
    browser: bool = False,
    actions: Sequence[str] = ("search_books",),
    **parts: Any,
) -> list[Drift]:
    """Inspect a shop whose search page is declared with these parts of a map."""
    site = Site(name="Shop", description="Sells books.", url="https://shop.example")

    @site.action("search_books", inputs=SCHEMA, outputs={}, effect="read", awas={"selectors": {"q": "[name='q']"}})
    async def search(request: Request) -> Response:
        """Search books."""
        asked = request.query_params.get("q")
        body = f"<title>Search</title><main>{form}{results if asked else ''}<a href=/b/emma>Emma</a></main>"
        return HTMLResponse(body, search_status)

    site.page("/search", id="search", actions=list(actions), map={"targets": TARGETS, **parts})
    routes = [Route("/search", search)]
    for path, body in html.items():
        routes.append(Route(path, lambda request, body=body: HTMLResponse(body)))
        site.page(path, id=path.strip("/").replace("/", "_").replace("{", "").replace("}", "") or "home")
    app = Starlette(routes=routes)
    app.add_middleware(AgentPublisher, site=site)
    return list(asyncio.run(check_pages(app, lambda: site.catalog, browser=browser)))


def kinds(found: list[Drift]) -> list[tuple[str, str]]:
    return [(finding.kind, finding.subject) for finding in found]


@pytest.mark.limit(OF_BROWSERS)
@pytest.mark.skipif(why_unavailable() is not None, reason=why_unavailable() or "")
def test_in_chromium_the_scripts_of_the_pages_have_run():
    script = f"<div id=at></div><script>document.getElementById('at').innerHTML = `{FORM}`</script>"
    assert {kind for kind, _ in kinds(drifts(form=script, states=[READY]))} == {
        "drift-missing",
        "drift-state",
        "drift-workflow",
    }
    assert [str(drift) for drift in drifts(form=script, states=[READY], browser=True)] == []
    broken = drifts(form=script, results="<p>Nothing</p>", search_status=500, browser=True)
    assert kinds(broken)[0] == ("drift-page", "page")


def test_a_page_that_leads_elsewhere_is_no_error_but_told():
    site = Site(name="Shop", description="Sells.", url="https://shop.example")

    async def account(request: Request) -> Response:
        return Response(status_code=303, headers={"Location": "/login"})

    site.page("/account")
    routes = [Route("/account", account), Route("/login", lambda request: HTMLResponse("<h1>Sign in</h1>"))]
    app = AgentPublisher(Starlette(routes=routes), site=site)
    (found,) = asyncio.run(check_pages(app, lambda: site.catalog))
    assert (found.kind, found.level, found.evidence["url"]) == ("drift-page", "warning", "https://shop.example/login")


def test_a_page_that_is_none_is_told_and_what_it_holds_is_not_guessed():
    site = Site(name="Shop", description="Sells.", url="https://shop.example")
    site.page("/data", map={"states": [NEVER]})
    site.page("/broken")

    def broken(request: Request) -> Response:
        raise ValueError("broken")

    app = AgentPublisher(
        Starlette(
            routes=[Route("/data", lambda request: Response(b"\x00", media_type="image/png")), Route("/broken", broken)]
        ),
        site=site,
    )
    assert kinds(list(asyncio.run(check_pages(app, lambda: site.catalog)))) == [
        ("drift-page", "page"),
        ("drift-page", "page"),
    ]


def test_actions_that_change_something_are_not_tried():
    site = Site(name="Shop", description="Sells.", url="https://shop.example")
    called: list[str] = []

    @site.action("send", inputs=SCHEMA, outputs={}, awas={"selectors": {"q": "[name='q']"}})
    async def send(request: Request) -> Response:
        """Send something."""
        called.append("send")
        return JSONResponse({})

    html = "<form method=post action=/send><input name=q><button>Send</button></form>"
    site.page("/", id="home", actions=["send"], map={"targets": {"form": "form", "submit": "button", "done": "p"}})
    routes = [Route("/", lambda request: HTMLResponse(html)), Route("/send", send, methods=["POST"])]
    app = AgentPublisher(Starlette(routes=routes), site=site)
    assert list(asyncio.run(check_pages(app, lambda: site.catalog))) == []
    assert called == []


def test_a_site_without_pages_has_nothing_to_drift():
    site = Site(name="Shop", description="Sells.", url="https://shop.example")
    app = AgentPublisher(Starlette(routes=[Route("/", lambda request: PlainTextResponse("x"))]), site=site)
    assert list(asyncio.run(check_pages(app, lambda: site.catalog))) == []
