"""The rules of the checkers that cannot be installed: documents of ours keep them, and a broken one is seen."""

from typing import Any

import pytest
from fastapi import FastAPI

from awp_publish import AgentPublisher, Site
from demo_site.agents import DOORS
from demo_site.app import create_app
from tests.client import TestClient
from tools.checkers import a14y, agent_ready, ard, isitagentready
from tools.checkers.first_program import make_app

ORIGIN = "https://books.example"


@pytest.fixture(scope="module")
def demo():
    with TestClient(create_app(ORIGIN, doors=DOORS), base_url=ORIGIN) as client:
        yield client


def test_the_demo_keeps_every_rule_of_a14y_but_the_share_of_text(demo):
    report = a14y.scan(demo, ORIGIN, max_pages=10)
    assert {rule for rule, _ in report.failed} <= {"html.text-ratio", "agents-md.has-min-sections"}
    assert report.score >= 95
    assert report.passed > 150


def test_readmes_first_program_keeps_most_rules_of_a14y(open_client):
    report = a14y.scan(open_client(make_app("https://shop.example")), "https://shop.example")
    assert report.score >= 85


def test_readmes_first_program_keeps_what_agent_ready_asks_for_but_the_owners_words(open_client):
    score, rules = agent_ready.scan(open_client(make_app("https://shop.example")), "https://shop.example")
    assert score >= 85
    assert {rule for rule, given in rules.items() if given < 1} <= {"content-signals", "web-bot-auth", "a2a-agent-card"}


def test_readmes_first_program_keeps_eight_of_the_eleven_rules_of_isitagentready(open_client):
    rules = isitagentready.scan(open_client(make_app("https://shop.example")), "https://shop.example")
    assert len(rules) == 11
    assert {rule for rule, kept in rules.items() if not kept} <= {
        "content-signals",
        "oauth-discovery",
        "oauth-protected-resource",
    }


def test_a_bare_site_breaks_rules_of_agent_ready_and_isitagentready(open_client):
    app = FastAPI()
    app.add_api_route("/", lambda: {"nothing": "here"})
    assert agent_ready.scan(open_client(app), ORIGIN)[0] < 40
    assert not any(isitagentready.scan(open_client(app), ORIGIN).values())


def test_a_bare_site_breaks_rules_of_a14y(open_client):
    app = FastAPI()
    app.add_api_route("/", lambda: {"nothing": "here"})
    report = a14y.scan(open_client(app), ORIGIN)
    broken = {rule for rule, _ in report.failed}
    assert {"llms-txt.exists", "robots-txt.exists", "sitemap-xml.exists", "agents-md.exists"} <= broken
    assert {"http.content-type-html", "discovery.indexed"} <= broken


@pytest.mark.parametrize("name", ["ard", "ai-catalog"])
def test_the_demo_keeps_every_rule_of_the_ard_suite(demo, name):
    answer = demo.get(f"/.well-known/{name}.json")
    assert list(ard.faults(answer.json())) == []
    assert len(answer.json()["entries"]) > len(DOORS)


@pytest.mark.parametrize(
    "url", ["http://[::1]:8000", "https://xn--bcher-kva.example", "https://shop.example/tea", "http://a"]
)
@pytest.mark.parametrize("name", ["Tea", "茶", "—"])
def test_any_site_keeps_every_rule_of_the_ard_suite(open_client, url, name):
    site, app = Site(name, "Sells tea.", url=url, plugins=["mcp", "a2a"]), FastAPI()

    @app.post("/orders")
    @site.action("order", examples=[{"what": "tea", "much": 1}, {"what": "x" * 300}], tags=["a", "b"])
    async def order(what: str, much: int = 1) -> str:
        """Order."""
        return what

    app.add_middleware(AgentPublisher, site=site)
    assert list(ard.faults(open_client(app).get("/.well-known/ard.json").json())) == []


ENTRY: dict[str, Any] = {
    "identifier": "urn:air:a.example:tea:order",
    "displayName": "Tea",
    "type": "application/mcp-server-card+json",
    "url": "https://a.example/mcp/server-card",
    "representativeQueries": ["order tea", "buy tea"],
}
MANIFEST: dict[str, Any] = {"specVersion": "1.0", "host": {"displayName": "Shop"}, "entries": [ENTRY]}


@pytest.mark.parametrize(
    "broken",
    [
        [],
        {**MANIFEST, "collections": []},
        {**MANIFEST, "specVersion": "0.91"},
        {**MANIFEST, "host": {"name": "Shop"}},
        {**MANIFEST, "entries": {}},
        *(
            {**MANIFEST, "entries": [entry]}
            for entry in (
                "tea",
                {**ENTRY, "identifier": "tea"},
                {**ENTRY, "displayName": ""},
                {**ENTRY, "type": "application/json"},
                {**ENTRY, "data": {}},
                {**ENTRY, "url": "/mcp/server-card"},
                {**ENTRY, "tags": "tea"},
                {**ENTRY, "tags": [1]},
                {**ENTRY, "representativeQueries": ["tea"]},
                {**ENTRY, "trustManifest": {}},
            )
        ),
    ],
)
def test_a_manifest_that_breaks_a_rule_of_the_ard_suite_is_seen(broken):
    assert list(ard.faults(MANIFEST)) == []
    assert list(ard.faults(broken))
