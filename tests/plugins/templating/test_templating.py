"""Attributes and links, written from the declarations."""

import json
import re
from datetime import date
from html.parser import HTMLParser
from typing import Any, Optional

import pytest
from fastapi import FastAPI
from jinja2 import Environment
from pydantic import BaseModel, Field
from starlette.applications import Starlette

from awp_publish import AgentPublisher, DeclarationError, Site
from awp_publish.plugins.templating import (
    install,
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
