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
from awp_publish.plugins.actions_json.differences import KINDS, Drift
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


def projection(record: str = "li.book", expression: str = "{'books': $append([], records.books)}") -> dict[str, Any]:
    fields = {"title": {"selector": "b", "required": True}}
    snapshot = {
        "extract": [{"id": "books", "selector": record, "many": True, "fields": fields}],
        "projection": {"expression": expression},
        "output_schema": {"type": "object", "properties": {"books": {"type": "array"}}, "required": ["books"]},
    }
    return {"state_projections": [{"name": "books", "snapshot": snapshot}]}


def check(css: str) -> dict[str, Any]:
    assertions = [{"target": {"selector": css}, "visible": True}]
    return {"checks": [{"id": "there", "severity": "critical", "assertions": assertions}]}


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
    return [(one.kind, one.subject) for one in found]


def test_a_page_that_is_as_declared_has_no_findings():
    shown = {"name": "shown", "diagnostics": [{"name": "book", "target": "book"}]}
    targets = {**TARGETS, "book": "li.book"}
    parts = projection() | check("form") | {"targets": targets, "states": [READY, shown]}
    form = FORM.replace("<button>", "<input name=hint><button>")
    found = drifts(form, **parts)
    assert [str(one) for one in found] == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"search_status": 500}, ("drift-page", "page")),
        ({"form": "<p>Closed</p>"}, ("drift-missing", "target form")),
        ({"form": FORM.replace("<button>Find</button>", "")}, ("drift-missing", "target submit")),
        ({"form": FORM.replace("name=q", "name=words")}, ("drift-missing", "tool search_books, step type_q")),
        ({"form": FORM.replace("name=q", "name=words")}, ("drift-missing", "action search_books")),
        (
            {"form": FORM.replace("<button>Find", "<button>Find</button><button>Clear")},
            ("drift-several", "tool search_books, step find_submit"),
        ),
        ({"form": FORM + FORM}, ("drift-several", "tool search_books")),
        (
            {"form": FORM.replace("<button>", "<input name=age required><button>")},
            ("drift-form", "action search_books"),
        ),
        ({"form": FORM.replace("=search_books", "=serch_books")}, ("drift-attribute", "data-awas-action")),
        ({"form": FORM.replace("param=q", "param=words")}, ("drift-attribute", "input words")),
        (
            {"form": FORM.replace("data-awas", "data-ai-endpoint=/other data-ai", 1)},
            ("drift-attribute", "action search_books"),
        ),
        ({"results": "<p>Nothing</p>"}, ("drift-workflow", "tool search_books")),
        (
            {"targets": {"form": {"selector": "#old", "fallback_selectors": ["form"]}, "done": "p.count"}},
            ("drift-other", "target form"),
        ),
        ({"states": [NEVER]}, ("drift-state", "state search.never")),
        (check("#gone"), ("drift-check", "check search.there")),
        (
            {"attachments": [{"id": "guide", "kind": "status_badge", "target": {"selector": "h7"}}]},
            ("drift-missing", "attachment search.guide"),
        ),
        ({**projection(), "results": "<p class=count>0</p>"}, ("drift-records", "projection search.books")),
        (
            {**projection(), "results": RESULTS.replace("<b>Emma</b>", "")},
            ("drift-records", "projection search.books"),
        ),
        (projection("li", "{'a': $error('no')}"), ("drift-projection", "projection search.books")),
        (projection("a", "{'b': 1}"), ("drift-projection", "projection search.books")),
    ],
)
def test_what_has_drifted_is_told_with_evidence(change, expected):
    found = drifts(**change)
    assert expected in kinds(found), found
    (one, *_) = [one for one in found if (one.kind, one.subject) == expected]
    assert one.page == "/search"
    assert one.evidence
    assert one.hint == KINDS[one.kind][2]
    assert expected[0] in str(one)
    assert one.describe()["evidence"] == one.evidence


@pytest.mark.limit(OF_BROWSERS)
@pytest.mark.skipif(why_unavailable() is not None, reason=why_unavailable() or "")
def test_in_chromium_the_scripts_of_the_pages_have_run():
    script = f"<div id=at></div><script>document.getElementById('at').innerHTML = `{FORM}`</script>"
    assert {kind for kind, _ in kinds(drifts(form=script, states=[READY]))} == {
        "drift-missing",
        "drift-state",
        "drift-workflow",
    }
    assert [str(one) for one in drifts(form=script, states=[READY], browser=True)] == []
    broken = drifts(form=script, results="<p>Nothing</p>", search_status=500, browser=True)
    assert kinds(broken)[0] == ("drift-page", "page")


def test_a_form_of_an_action_on_another_page_is_proposed_as_a_declaration():
    form = FORM.replace(" data-awas-action=search_books", "")
    (found,) = drifts(form=form, actions=[])
    assert (found.kind, found.level, found.page) == ("drift-form", "warning", "/search")
    assert drifts(html={"/": f"<main>{form}</main>"}) == []  # it is declared where it belongs
    assert "'selectors': {'q': \"form[action='/search'] [name='q']\"}" in str(found.evidence["proposal"])


def test_a_page_of_several_addresses_is_visited_where_a_link_leads_to_it():
    assert drifts(html={"/b/{slug}": "<h1>Book</h1>"}) == []
    (found,) = drifts(html={"/authors/{name}": "<h1>Author</h1>"})
    assert (found.kind, found.level, found.page) == ("drift-unvisited", "warning", "/authors/{name}")
    assert found.hint


def test_a_page_that_is_not_visited_hides_nothing_of_the_others():
    found = drifts(html={"/authors/{name}": "x"}, states=[NEVER])
    assert kinds(found) == [("drift-state", "state search.never"), ("drift-unvisited", "page")]


def test_a_page_for_those_who_have_signed_in_is_no_error_but_told():
    found = drifts(search_status=401)
    assert [(one.kind, one.level) for one in found] == [("drift-page", "warning")]


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
