"""Pages of a Django project: declared on views, found by the URLconf, read by MCP clients."""

import json
from io import BytesIO

import pytest
from asgiref.sync import sync_to_async
from awp_publish_django.project import DjangoProject
from django.contrib.auth.views import redirect_to_login
from django.http import FileResponse, HttpRequest, HttpResponse
from django.test import AsyncClient, Client, RequestFactory, override_settings
from django.urls import include, path
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.http import require_GET

from awp_publish.model import Page
from tests.django.sites import make_site
from tests.plugins.mcp.mcp_messages import headers_of, message

site, bare = make_site(plugins=["pages"]), make_site(plugins=["pages"])


@site.page(title="About us")
@require_GET
def about(request: HttpRequest) -> HttpResponse:
    """What we are."""
    return HttpResponse("<h1>About</h1>")


class Help(View):
    """Help."""

    @method_decorator(site.page())
    def get(self, request: HttpRequest) -> HttpResponse:
        """Find help."""
        return HttpResponse("<h1>Help</h1>")


@method_decorator(site.page(), name="dispatch")
class Contact(View):
    def get(self, request: HttpRequest) -> HttpResponse:
        """How to write to us."""
        return HttpResponse("<h1>Contact</h1>")


class Prices(View):
    @site.page()
    def get(self, request: HttpRequest) -> HttpResponse:
        """What things cost."""
        return HttpResponse("<h1>Prices</h1>")


def book(request: HttpRequest, slug: str) -> HttpResponse:
    return HttpResponse("<h1>Book</h1>")


site.page("/books/emma")
below = [path("help/", Help.as_view()), path("contact/", Contact.as_view()), path("prices/", Prices.as_view())]
urlpatterns = [path("about/", about), path("shop/", include(below)), path("books/<slug:slug>", book)]


def test_pages_are_found_by_the_urlconf():
    pages = site.freeze(DjangoProject(tuple(urlpatterns))).pages
    assert sorted(pages, key=lambda page: page.path) == [
        Page("/about/", "About us", "What we are."),
        Page("/books/emma", "Emma"),
        Page("/shop/contact/", "Contact", "How to write to us."),
        Page("/shop/help/", "Help", "Find help."),
        Page("/shop/prices/", "Prices", "What things cost."),
    ]
    for view in (Prices, Help, Contact):  # Django applies a method's decorator once more for each request
        assert view.as_view()(RequestFactory().get("/")).status_code == 200


def test_a_view_with_parameters_is_a_page_of_several_addresses():
    found = make_site()
    found.page()(book)
    (page,) = found.freeze(DjangoProject(tuple(urlpatterns))).pages
    assert page.is_template


@pytest.mark.parametrize(("address", "told"), [("/page", "a page"), ("/agent.json/", None), ("/nothing", None)])
def test_an_mcp_client_reads_pages_through_the_whole_of_django(client: Client, address, told):
    sent = message("resources/read", {"uri": f"https://shop.example{address}"})
    answer = client.post("/mcp", json.dumps(sent), content_type="application/json", headers=headers_of(sent)).json()
    if told is None:
        assert answer["error"]["code"] == -32602
    else:
        assert answer["result"]["contents"][0]["text"] == f"{told}\n"


def show_app(request: HttpRequest, at: str) -> HttpResponse:
    """Answer every path with the page of an application that finds its way in the browser."""
    return HttpResponse("<!doctype html><title>Shop</title><h1>The shop</h1>")


def serve_app(request: HttpRequest, at: str) -> FileResponse:
    return FileResponse(BytesIO(b"<html><h1>The shop</h1>"), filename="index.html")


def show_robots(request: HttpRequest) -> HttpResponse:
    return HttpResponse("User-agent: own")


def sign_in_first(request: HttpRequest, at: str) -> HttpResponse:
    return redirect_to_login(request.get_full_path())


@pytest.mark.parametrize("show", [show_app, serve_app, sign_in_first])
async def test_the_page_that_a_project_has_at_every_path_is_no_file_of_its_own(show):
    own = (path("robots.txt", show_robots), path("<path:at>", show))
    with override_settings(ROOT_URLCONF=own, AWP_PUBLISH={"SITE": f"{__name__}.bare"}):
        for accept in ("*/*", "text/html", "text/markdown"):
            told = await sync_to_async(Client(SERVER_NAME="shop.example").get)("/llms.txt", headers={"accept": accept})
            assert told.content.startswith(b"# Shop\n")
            same = await AsyncClient(SERVER_NAME="shop.example").get("/llms.txt", headers={"accept": accept})
            assert same.content == told.content
        assert (await AsyncClient().get("/robots.txt")).content == b"User-agent: own"
