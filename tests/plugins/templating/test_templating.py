"""Attributes and links, written from the declarations."""

import json
import re
from datetime import date
from html.parser import HTMLParser
from typing import Any, Literal, Optional

import pytest
from fastapi import FastAPI
from jinja2 import Environment
from pydantic import BaseModel, Field
from starlette.applications import Starlette

from awp_publish import About, AgentPublisher, DeclarationError, Site
from awp_publish.plugins.templating import (
    action_attributes,
    install,
    page_meta,
    param_attributes,
    structured_data,
    structured_result,
)


@pytest.fixture
def published(open_client) -> Site:
    site = Site(name="Shop", description="Sells.", url="https://shop.example/here")
    app = FastAPI()

    @app.get("/search")
    @site.action("search", awas={"type": "search", "selectors": "data-awas"})
    async def search(q: str, limit: int = 10) -> list[str]:
        """Search."""
        return [q]

    app.add_middleware(AgentPublisher, site=site)
    open_client(app)
    return site


def render(site: Site, text: str, **options: Any) -> str:
    environment = Environment(autoescape=True)
    install(environment, site, **options)
    return environment.from_string(text).render()


FORM = """<form {{ awas_action("search", context="a \\"b\\"") }}><input {{ awas_param("search", "q") }}>
<input {{ awas_param("search", "limit") }}></form><ol {{ awas_result("search") }}></ol><p {{ awas_context("help") }}>"""


class Attributes(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += attrs


def test_the_four_attributes_of_awas_1_0_are_written(published):
    assert Attributes(render(published, FORM)).found == [
        ("data-awas-action", "search"),
        ("data-awas-context", 'a "b"'),
        ("data-awas-param", "q"),
        ("data-awas-param", "limit"),
        ("data-awas-result", "search"),
        ("data-awas-context", "help"),
    ]


def test_the_names_of_awas_1_1_are_written_when_asked(published):
    found = Attributes(render(published, FORM, styles=("data-ai",))).found
    assert ("data-ai-action", "search") in found
    assert ("data-ai-action-type", "search") in found
    assert ("data-ai-endpoint", "/here/search") in found
    assert ("data-ai-method", "GET") in found
    assert ("data-ai-intent", "read") in found
    assert ("data-ai-param", "q") in found
    assert ("data-ai-param-required", "true") in found
    assert ("data-ai-param-type", "integer") in found
    assert ("data-ai-param-default", "10") in found
    assert not any(name.startswith("data-awas") for name, _ in found)
    both = Attributes(render(published, FORM, styles=("data-awas", "data-ai"))).found
    assert set(found) < set(both)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{{ awas_action("serach") }}', 'there is no action "serach". There are: search.'),
        ('{{ awas_param("search", "query") }}', 'action "search" has no input "query". There are: q, limit.'),
        ('{{ awas_result("serach") }}', "there is no action"),
    ],
)
def test_html_cannot_name_what_the_manifest_does_not(published, text, words):
    with pytest.raises(DeclarationError, match=re.escape(words)):
        render(published, text)


def test_the_manifests_selectors_find_the_written_attributes(published):
    """The selector `[data-awas-action='search'] [data-awas-param='q']` in the manifest, the attributes in the page."""
    selectors = published.catalog.action("search").selectors
    assert selectors["q"] == "[data-awas-action='search'] [data-awas-param='q']"
    page = render(published, FORM)
    for attribute in re.findall(r"\[([^\]]+)\]", " ".join(selectors.values())):
        assert attribute.replace("'", '"') in page


def test_head_links_point_at_every_document_below_the_sites_prefix(published):
    page = render(published, "{{ head_links() }}")
    assert '<link rel="ai-actions" type="application/json" href="/here/.well-known/ai-actions.json"' in page
    assert 'type="application/woa+json" href="/here/.well-known/woa.json"' in page
    assert 'href="/here/agent.json"' in page


def test_a_template_rendered_before_the_start_is_told_so(site):
    site.declare("status", method="GET", path="/status", description="Say how it goes.")
    AgentPublisher(Starlette(), site=site)
    with pytest.raises(DeclarationError, match="not frozen yet"):
        render(site, "{{ head_links() }}")


def shop_with_pages():
    site, app = Site("Shop", "Sells <things>.", url="https://shop.example"), FastAPI()
    for path in ("/", "/help", "/help/orders", "/books/{slug}"):
        app.add_api_route(path, lambda: "shown")
        site.page(path, title=f"Page {path}")

    @app.get("/search")
    @site.action("search_books", awas={"type": "search"})
    async def search(q: str) -> list[str]:
        """Search."""
        return [q]

    site.freeze(app)
    return site.catalog


def test_structured_data_tells_the_search_and_where_a_page_stands():
    text = structured_data(shop_with_pages(), "/help/orders")
    assert text.startswith('<script type="application/ld+json">')
    assert "<things>" not in text
    graph = {one["@type"]: one for one in json.loads(text.partition(">")[2].removesuffix("</script>"))["@graph"]}
    assert graph["WebSite"]["potentialAction"]["target"]["urlTemplate"] == "https://shop.example/search?q={search_term}"
    trail = [one["item"] for one in graph["BreadcrumbList"]["itemListElement"]]
    assert trail == [f"https://shop.example{path}" for path in ("/", "/help", "/help/orders")]


def test_the_search_of_a_site_is_a_page_for_people_even_where_programs_call_it_elsewhere():
    site, app = Site("Shop", "Sells.", url="https://shop.example"), FastAPI()

    @app.get("/find", response_model=list[str])
    @site.page(title="Find")
    @site.action("find_books", rate_limit="30/minute")
    async def find(page: int = 1, sort: Literal["a", "b"] = "a", words: str = "") -> list[str]:
        """Find books."""
        return [words]

    site.freeze(app)
    text = structured_data(site.catalog, "/find")
    graph = {one["@type"]: one for one in json.loads(text.partition(">")[2].removesuffix("</script>"))["@graph"]}
    target = graph["WebSite"]["potentialAction"]["target"]
    assert target["urlTemplate"] == "https://shop.example/find?words={search_term}"


def test_page_meta_names_what_is_declared_and_nothing_else():
    text = page_meta(shop_with_pages(), "/help", image="/shop.png")
    assert '<link rel="canonical" href="https://shop.example/help">' in text
    assert '<meta property="og:image" content="https://shop.example/shop.png">' in text
    assert "canonical" not in page_meta(shop_with_pages(), "/books/{slug}")
    for unknown in ("/nowhere", "/books/emma/reviews", "/books/"):
        with pytest.raises(DeclarationError, match=f'no page "{unknown}"'):
            page_meta(shop_with_pages(), unknown)


def test_one_address_of_a_page_with_several_has_its_own_words_and_a_canonical_link():
    catalog = shop_with_pages()
    text = page_meta(catalog, "/books/thérèse raquin", title="Thérèse Raquin", description="By Émile Zola.")
    assert '<link rel="canonical" href="https://shop.example/books/th%C3%A9r%C3%A8se%20raquin">' in text
    assert '<meta property="og:title" content="Thérèse Raquin">' in text
    assert '<meta property="og:description" content="By Émile Zola.">' in text
    text = page_meta(catalog, "/help?topic=post&lang=en", title="Post")
    assert '<link rel="canonical" href="https://shop.example/help?topic=post&amp;lang=en">' in text
    said = structured_data(catalog, "/books/emma", title="Emma")
    graph = {one["@type"]: one for one in json.loads(said.partition(">")[2].removesuffix("</script>"))["@graph"]}
    assert graph["WebPage"]["url"] == "https://shop.example/books/emma"
    assert [one["name"] for one in graph["BreadcrumbList"]["itemListElement"]] == ["Page /", "Emma"]


def test_the_json_ld_of_a_result_holds_what_the_outputs_name():
    site, app = Site("Shop", "Sells.", url="https://shop.example"), FastAPI()

    class Tea(BaseModel):
        name: str = Field(alias="teaName")
        harvested: date | None = None

    class Found(BaseModel):
        teas: list[Tea]
        next: Optional["Found"] = None

    @app.get("/teas", response_model=Found)
    @site.action("search_teas", awas={"type": "search"})
    async def search(q: str):
        """Search teas."""

    @app.post("/notes")
    @site.action("note", expose=["mcp"])
    async def note(text: str) -> str:
        """Keep a note."""
        return text

    site.freeze(app)

    def result_of(value):
        text = structured_result(site.catalog, "search_teas", value)
        assert text.count("<") == 2
        return json.loads(text.partition(">")[2].removesuffix("</script>"))

    tea = Tea(teaName="</script>", harvested=date(2026, 5, 1))
    said = result_of(Found(teas=[tea], next=Found(teas=[])))
    assert (said["@type"], said["identifier"]) == ("SearchAction", "search_teas")
    assert said["@context"][0] == "https://schema.org"
    assert said["result"]["teas"] == [{"teaName": "</script>", "harvested": "2026-05-01"}]
    assert said["result"]["next"] == {"teas": [], "next": None}
    given = {"teas": [{"teaName": "a", "margin": 7}], "next": {"teas": [], "owner": "x"}, "query": "q"}
    assert result_of(given)["result"] == {"teas": [{"teaName": "a"}], "next": {"teas": []}}
    assert structured_result(site.catalog, "note", "kept") == "", "nobody is told of it here"
    with pytest.raises(DeclarationError, match='result of action "search_teas" is not JSON'):
        structured_result(site.catalog, "search_teas", object())
    with pytest.raises(DeclarationError, match='no action "nothing"'):
        structured_result(site.catalog, "nothing", {})


def test_the_attributes_of_the_style_tool_make_a_form_a_tool():
    catalog = shop_with_pages()
    assert action_attributes(catalog, "search_books", ["tool"]) == (
        'toolname="search_books" tooldescription="Search." toolautosubmit=""'
    )
    assert param_attributes(catalog, "search_books", "q", ["tool"]) == 'toolparamdescription="q"'


def test_structured_data_names_the_owner_and_the_day_of_the_last_change():
    about = About(email="ann@shop.example", updated=date(2026, 5, 1))
    site, app = Site("Shop", "Sells.", url="https://shop.example", about=about), FastAPI()
    app.add_api_route("/about", lambda: "shown")
    site.page("/about", title="About")
    site.freeze(app)
    said = structured_data(site.catalog, "/about")
    graph = {one["@type"]: one for one in json.loads(said.partition(">")[2].removesuffix("</script>"))["@graph"]}
    assert graph["Organization"]["email"] == "ann@shop.example"
    assert graph["WebSite"]["publisher"] == {"@id": graph["Organization"]["@id"]}
    assert graph["WebPage"]["isPartOf"] == {"@id": graph["WebSite"]["@id"]}
    assert graph["WebPage"]["dateModified"].startswith("2026-05-01")
