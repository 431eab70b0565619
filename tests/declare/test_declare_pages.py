"""Pages: declared on their handlers or by their paths, and told of where agents look for them."""

import functools
from typing import Any

import pytest
from fastapi import APIRouter, FastAPI
from starlette.applications import Starlette
from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route

from awp_publish import DeclarationError, Site
from awp_publish.model import Page
from tests.installed import installed

OWN = "https://shop.example"


def make_site(**options: Any) -> Site:
    return Site("Shop", "Sells things.", url=OWN, plugins=installed("pages"), **options)


async def about(request: Request) -> Response:
    """What we are."""
    return HTMLResponse("<h1>About</h1>")


def undescribed(request: Request) -> Response:
    return HTMLResponse("<h1>Other</h1>")


async def _mounted(scope: Any, receive: Any, send: Any) -> None:
    """An application that keeps its routes to itself."""


def pages_of(site: Site, *routes: Any) -> list[Page]:
    return list(site.freeze(Starlette(routes=list(routes))).pages)


def test_a_decorated_handler_is_a_page_and_stays_as_it_is():
    site = make_site()
    assert site.page(title="About us")(about) is about
    assert pages_of(site, Route("/about", about)) == [Page("/about", "About us", "What we are.")]


def test_the_decorator_stands_above_or_below_that_of_the_route():
    site, app = make_site(), FastAPI()
    router = APIRouter(prefix="/shop")

    @site.page()
    @router.get("/opening-hours")
    async def hours() -> str:
        """When we are here."""
        return ""

    @router.get("/way")
    @site.page(description="How to find us.")
    @site.action("find_way")
    def way() -> str:
        """Not for agents."""
        return ""

    app.include_router(router)
    assert list(site.freeze(app).pages) == [
        Page("/shop/opening-hours", "Opening hours", "When we are here."),
        Page("/shop/way", "Way", "How to find us."),
    ]


def test_pages_are_declared_by_their_paths_too_and_keep_their_order():
    site = make_site()
    site.page("/books/emma", title="Emma")
    site.page("/")
    site.page()(about)
    site.page("/mounted/help")
    routes = (
        Route("/", undescribed),
        Route("/about", about),
        Route("/books/{slug}", undescribed),
        Mount("/mounted", _mounted),
    )
    assert pages_of(site, *routes) == [
        Page("/books/emma", "Emma"),
        Page("/", "Shop"),
        Page("/about", "About", "What we are."),
        Page("/mounted/help", "Help"),
    ]


def test_a_page_may_have_several_addresses():
    site = make_site()
    site.page()(book)
    (page,) = pages_of(site, Route("/books/{slug}", book))
    assert page.path == "/books/{slug}"
    assert page.title == "Books"
    assert page.is_template


@pytest.mark.parametrize(
    ("path", "name"),
    [("/", "home"), ("/about", "about"), ("/shop/about/", "about"), ("/shop/{part}", "shop"), ("/2026", "page_2026")],
)
def test_a_page_is_named_by_the_last_part_of_its_path_that_is_no_placeholder(path, name):
    site = make_site()
    site.page(path, guide="Read it.")(about)
    assert [page.id for page in pages_of(site, Route(path, about))] == [name]


def test_a_path_chooses_among_the_addresses_of_a_handler():
    site = make_site()
    site.page("/en/about")(about)
    found = pages_of(
        site, Route("/de/about", about), Route("/en/about", about), Route("/about", about, methods=["PUT"])
    )
    assert found == [Page("/en/about", "About", "What we are.")]


def test_an_address_without_parameters_is_the_page_of_a_handler_that_has_others():
    site = make_site()
    site.page()(about)
    assert [page.path for page in pages_of(site, Route("/about/{part}", about), Route("/about", about))] == ["/about"]


def test_one_decorator_may_stand_on_several_handlers():
    site, page = make_site(), None
    page = site.page(description="To read.")
    routes = [Route("/a", page(about)), Route("/b", page(undescribed))]
    assert [page.path for page in pages_of(site, *routes)] == ["/a", "/b"]


def test_classes_partials_and_wrappings_are_handlers():
    site = make_site()

    @site.page()
    class Contact(HTTPEndpoint):
        async def get(self, request: Request) -> Response:
            return HTMLResponse("")

        async def post(self, request: Request) -> Response:
            return HTMLResponse("")

    given = functools.partial(undescribed)
    site.page()(given)
    wrapped = functools.wraps(about)(lambda request: about(request))
    site.page()(about)
    found = pages_of(site, Route("/contact", Contact), Route("/partial", given), Route("/wrapped", wrapped))
    assert [page.path for page in found] == ["/contact", "/partial", "/wrapped"]


def test_addresses_are_written_as_the_web_writes_them():
    site = make_site()
    site.page()(about)
    (page,) = pages_of(site, Route("/über uns", about))
    assert page == Page("/%C3%BCber%20uns", "Über uns", "What we are.")


@pytest.mark.parametrize("given", [{"titel": "About"}, {"title": ""}, {"title": 1}, {"description": " "}])
def test_wrong_options_are_refused_where_they_are_written(given):
    with pytest.raises(DeclarationError, match=next(iter(given))):
        make_site().page("/about", **given)


@pytest.mark.parametrize("path", ["about", "", "/a?b", "/a#b", "/a b", 1])
def test_an_invalid_page_path_is_refused_where_it_is_written(path):
    with pytest.raises(DeclarationError, match=r"page .*: path: "):
        make_site().page(path)


def test_a_decorator_without_its_parentheses_is_told_so():
    with pytest.raises(DeclarationError, match=r"@site\.page\(\)"):
        make_site().page(about)  # type: ignore[arg-type]
    with pytest.raises(DeclarationError, match="not a function"):
        make_site().page()("about")  # type: ignore[type-var]


def _unknown_path(site: Site) -> None:
    site.page("/abuot")


def _unknown_handler(site: Site) -> None:
    site.page()(undescribed)


def _twice(site: Site) -> None:
    site.page("/about")
    site.page()(about)


def _writing(site: Site) -> None:
    site.page()(order)


def _several(site: Site) -> None:
    site.page()(home)


def _another(site: Site) -> None:
    site.page("/about")(home)


async def book(request: Request) -> Response:
    return HTMLResponse("")


async def order(request: Request) -> Response:
    return HTMLResponse("")


async def home(request: Request) -> Response:
    return HTMLResponse("")


ROUTES = [
    Route("/about", about),
    Route("/books/{slug}", book),
    Route("/order", order, methods=["POST"]),
    Route("/", home),
    Route("/home", home),
]


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (_unknown_path, 'page "/abuot": method, path: no route of this application takes GET /abuot'),
        (_unknown_handler, "no route of this application leads to the decorated function"),
        (_twice, 'the page "/about" is declared twice'),
        (_writing, r"its route \(/order\) does not take GET"),
        (_several, r"is reachable in several ways \(/, /home\)"),
        (_another, r"path: none of the routes of what it decorates takes GET /about"),
    ],
)
def test_mistakes_that_only_routes_reveal_are_refused_at_the_start(declare, words):
    site = make_site()
    declare(site)
    with pytest.raises(DeclarationError, match=words):
        pages_of(site, *ROUTES)


def test_nothing_is_declared_after_the_start():
    site = make_site()
    early = site.page()
    pages_of(site, *ROUTES)
    for late in (lambda: site.page("/about"), lambda: site.page(), lambda: early(about)):
        with pytest.raises(DeclarationError, match="after the site was published"):
            late()


@pytest.mark.needs("pages")
def test_the_directory_of_pages_lists_them_before_those_that_the_facts_name(open_client):
    from awp_publish import AgentPublisher

    site = make_site(about={"documentation": "/help", "contact": f"{OWN}/about"})
    site.page("/about")
    site.page("/")
    app = AgentPublisher(Starlette(routes=[*ROUTES, Route("/help", home)]), site=site, check=False)
    directory = open_client(app).get("/.well-known/som.json").json()
    assert directory["urls"] == [f"{OWN}/about", f"{OWN}/", f"{OWN}/help"]
