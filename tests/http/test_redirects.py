"""A route that answers with a redirect, as pages for people do: one rule at every door."""

from typing import Any

import pytest
from fastapi import FastAPI, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.applications import Starlette
from starlette.middleware.sessions import SessionMiddleware
from starlette.routing import Mount

from awp_publish import AgentPublisher, Site
from tests.doors.adapters import DOORS
from tests.guarded import KEYS, make_shop
from tests.installed import installed


@pytest.fixture(params=DOORS)
def shop(open_client, request):
    site = make_shop(plugins=installed("mcp", "a2a", "awp"), secret_keys=KEYS)
    app = FastAPI()

    def add(action_id: str, method: str, path: str, location: str, status: int = 303, **options):
        async def redirect() -> RedirectResponse:
            answer = RedirectResponse(location, status)
            answer.set_cookie("last", action_id)
            return answer

        redirect.__name__, redirect.__doc__ = action_id, "Redirect."
        app.add_api_route(path, site.action(action_id, **options)(redirect), methods=[method])

    @app.get("/thanks")
    async def thanks(request: Request) -> dict[str, str]:
        return {"thanks_for": request.cookies.get("last") or request.session.get("last", "")}

    @app.get("/page")
    async def page() -> HTMLResponse:
        return HTMLResponse("<title>Thanks</title><main><h1>Thank you</h1></main>")

    @app.post("/book", status_code=303)
    @site.action("order_book")
    async def order_book(request: Request, title: str = Form()) -> RedirectResponse:
        """Order a book."""
        request.session["last"] = title
        return RedirectResponse("/thanks", 303)

    add("order_page", "POST", "/order-page", "/page")
    add("order_away", "POST", "/order-away", "https://pay.example/1")
    add("order_own", "POST", "/order-own", "https://shop.example/thanks", 302)
    add("order_lost", "POST", "/order-lost", "/nowhere")
    add("order_other", "POST", "/order-other", "//evil.example/thanks")
    add("order_promised", "POST", "/order-promised", "/thanks", outputs={"type": "object", "required": ["thanks_for"]})
    add("order_again", "POST", "/order-again", "/thanks", 307)
    add("order_as_member", "POST", "/order-as-member", "/login?next=/order-as-member")
    add("sign_out", "POST", "/logout", "/login")
    add("show_order", "GET", "/order", "/thanks", 307)
    add("show_twice", "GET", "/twice", "/order", 302)
    add("show_circle", "GET", "/circle", "/circle", 302)
    add("show_away", "GET", "/away", "https://pay.example/1")
    add("show_private", "GET", "/private", "/log-in", 302)
    add("show_lost", "GET", "/lost", "/nowhere", 302)
    app.add_middleware(AgentPublisher, site=site)
    app.add_middleware(SessionMiddleware, secret_key="secret")
    return DOORS[request.param](open_client(app))


SUCCESSES: dict[str, dict[str, Any]] = {
    "order_page": {"location": "/page", "page": "# Thank you"},
    "order_away": {"location": "https://pay.example/1"},
    "order_own": {"location": "https://shop.example/thanks", "page": {"thanks_for": "order_own"}},
    "order_lost": {"location": "/nowhere"},
    "order_other": {"location": "//evil.example/thanks"},
    "order_promised": {"thanks_for": "order_promised"},
    "sign_out": {"location": "/login"},
    "show_order": {"thanks_for": "show_order"},
    "show_twice": {"thanks_for": "show_order"},
    "show_away": {"location": "https://pay.example/1"},
}


@pytest.mark.needs("pages")
def test_a_redirect_after_a_write_says_where_and_one_of_a_read_is_followed(shop):
    for action_id, expected in SUCCESSES.items():
        answer = shop.call(action_id)
        assert answer.code is None, (action_id, answer)
        output = answer.output
        if action_id == "order_page":
            assert expected["page"] in output["page"]
            output = {**output, "page": expected["page"]}
        assert output == expected, action_id


def test_post_redirect_get_of_a_form_is_a_success(shop):
    answer = shop.call("order_book", {"title": "Emma"})
    assert answer.output == {"location": "/thanks", "page": {"thanks_for": "Emma"}}


def test_a_refusal_at_the_address_of_a_redirect_is_the_answer(shop):
    refused = {"show_private": "AUTHENTICATION_REQUIRED", "order_as_member": "AUTHENTICATION_REQUIRED"}
    refused |= {"order_again": "HANDLER_REDIRECTED", "show_circle": "HANDLER_REDIRECTED", "show_lost": "REFUSED"}
    assert {action_id: shop.call(action_id).code for action_id in refused} == refused


@pytest.mark.parametrize("placed", ["below a mount", "around a mount", "at a root path"])
def test_a_relative_address_is_followed_wherever_the_application_is_mounted(open_client, placed):
    url = "https://shop.example" if placed == "around a mount" else "https://shop.example/api"
    site, app = Site(name="Shop", description="Sells.", url=url), FastAPI()

    @app.get("/thanks")
    async def thanks() -> str:
        return "thanks"

    @app.post("/order")
    @site.action("order")
    async def order() -> RedirectResponse:
        """Order."""
        return RedirectResponse("thanks", 303)

    outer = app if placed == "at a root path" else Starlette(routes=[Mount("/api", app)])
    (outer if placed == "around a mount" else app).add_middleware(AgentPublisher, site=site)
    app.root_path = "/api" if outer is app else ""
    path = f"{'/api' if placed == 'below a mount' else ''}/agents/actions/order"
    answer = open_client(outer).post(path)
    assert answer.json() == {"location": "thanks", "page": "thanks"}


@pytest.mark.parametrize(
    ("location", "page"),
    [
        ("http://Shop.Test/thanks", "thanks"),
        ("https://shop.test/thanks", "thanks"),
        ("http://shop.test:8080/thanks", None),
        ("ftp://shop.test/thanks", None),
        ("https://ann@shop.test/thanks", None),
        ("https://SHOP.example:443/thanks", "thanks"),
        ("https://shop.example:8443/thanks", None),
        ("https://shop.example:port/thanks", None),
        ("/\\evil.example/thanks", None),
        ("/thanks\u00ad", None),
    ],
)
def test_a_redirect_to_the_host_of_the_request_or_the_sites_own_is_followed(open_client, location, page):
    site, app = make_shop(), FastAPI()

    @app.get("/thanks")
    async def thanks() -> str:
        return "thanks"

    @app.post("/order")
    @site.action("order")
    async def order() -> Response:
        """Order."""
        return Response(status_code=303, headers={"location": location})

    app.add_middleware(AgentPublisher, site=site)
    answer = open_client(app).post("/agents/actions/order", headers={"host": "SHOP.test"})
    assert answer.json().get("page") == page


@pytest.mark.needs("guarded_routes")
def test_a_page_behind_the_gates_of_guarded_routes_is_not_shown_on_the_way(open_client):
    site, app = make_shop(secret_keys=KEYS, guard_routes=True), FastAPI()

    @app.post("/order")
    @site.action("order_book")
    async def order_book() -> RedirectResponse:
        """Order a book."""
        return RedirectResponse("/secret", 303)

    @app.get("/secret")
    @site.action("show_secret", confirm=True)
    async def show_secret() -> str:
        """Show a secret."""
        return "a secret"

    app.add_middleware(AgentPublisher, site=site)
    answer = open_client(app).post("/agents/actions/order_book")
    assert (answer.status_code, answer.json()) == (200, {"location": "/secret"})
