"""Every option has its line in a table of the pages, every example starts, every message is the real one."""

import re
import runpy
from inspect import signature
from pathlib import Path

import pytest
from fastapi import APIRouter, FastAPI

from awp_publish import (
    About,
    Approval,
    Awp,
    DeclarationError,
    Discovery,
    Idempotency,
    Jobs,
    Limits,
    Mcp,
    OAuth,
    Overview,
    Pages,
    Paths,
    Proxies,
    Robots,
    Security,
    Site,
    Traffic,
    Workflow,
)
from awp_publish.declare.settings.actions import ActionOptions, AgentOptions
from awp_publish.declare.settings.pages import PageOptions
from awp_publish.declare.settings.site import SiteSettings
from awp_publish.plugin import installed
from awp_publish.plugins.awas.options import AwasSettings
from tests.client import TestClient
from tests.installed import taken_out

if taken_out():
    pytest.skip("the tables of the pages are of all plug-ins", allow_module_level=True)

MOST_OPTIONS = 107
DOCS = Path(__file__).parents[2] / "docs"
option_rows = runpy.run_path(str(DOCS / "tables.py"))["option_rows"]
PAGES = ("site.md", "actions.md", "existing-applications.md")
EXAMPLES = [
    pytest.param(block, id=f"{page}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL))
]


def rows(page: str, heading: str) -> list[str]:
    """The options of the table below a heading, in order."""
    section = (DOCS / page).read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)


def names(settings: type) -> list[str]:
    return [name for name, _ in option_rows(settings)]


def test_every_option_of_a_site_has_its_line():
    assert rows("site.md", "Options") == [*names(SiteSettings), *names(Limits), *names(About)]


def test_every_option_of_a_feature_is_in_its_line():
    section = (DOCS / "site.md").read_text().split("\n## Features\n")[1].split("\n## ")[0]
    for name, plugin in installed().items():
        (line,) = re.findall(rf"^\| `{name}` \|.*", section, re.MULTILINE)
        assert [option for option in getattr(plugin.options, "__annotations__", ()) if option not in line] == []


def test_every_option_of_an_action_has_its_line():
    assert rows("actions.md", "Options of actions") == [*names(ActionOptions), *names(AwasSettings)]


def test_every_option_of_an_agent_has_its_line():
    own = [name for name in names(AgentOptions) if name not in names(ActionOptions)]
    assert rows("actions.md", "Options of agents") == ["name", "description", *own]


def test_options_are_few():
    """Groups count as what is in them, and options of a site and of an action leave room in their calls."""
    facts = (About, Robots, Security, Workflow, AwasSettings, PageOptions)
    plugins = (Approval, Awp, Discovery, Jobs, Mcp, Overview, Pages, Traffic)
    groups = (*facts, *plugins, OAuth, Proxies, Limits, Idempotency)
    parts = sum(len(group.__annotations__) for group in groups) + len(signature(Paths).parameters)
    of_agents = [name for name in names(AgentOptions) if name not in names(ActionOptions)]
    grouping = {"about", "oauth", "proxies", "limits", "plugins", "paths", "workflows", "awas", "robots", "security"}
    assert len(names(SiteSettings)) <= 16
    assert len(names(ActionOptions)) <= 26
    whole = len(names(SiteSettings)) + len(names(ActionOptions)) + len(of_agents) + parts
    assert whole - len(grouping) <= MOST_OPTIONS + 1


@pytest.mark.needs("include")
def test_every_argument_of_include_has_its_line():
    include = installed()["include"].declares["include"]
    arguments = [name for name in signature(include).parameters if name != "self"]
    assert rows("existing-applications.md", "Routes in bulk: `include`") == arguments


@pytest.mark.needs("woa")
@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_starts(example, tmp_path):
    script = tmp_path / "example.py"
    script.write_text(example)
    app = runpy.run_path(str(script)).get("app")
    if app is not None:
        client = TestClient(app, base_url="https://books.example")
        assert client.get("/.well-known/woa.json").json()["agents"]


def a_wrong_url(site: Site) -> None:
    Site("Bookshop", "Sells books.", "books.example")


def a_wrong_option(site: Site) -> None:
    Site("Bookshop", "Sells books.", "https://books.example", abuot={})  # type: ignore[call-arg]


def two_ways(site: Site) -> None:
    app, router = FastAPI(), APIRouter()
    router.post("/orders")(site.action("order_book")(order))
    for prefix in ("/v1", "/v2"):
        app.include_router(router, prefix=prefix)
    site.freeze(app)


def a_wrong_example(site: Site) -> None:
    app = FastAPI()
    app.post("/orders")(site.action("order_book", examples=[{}])(order))
    site.freeze(app)


async def order(title: str) -> None:
    """Order a book."""


@pytest.mark.parametrize(
    ("mistake", "page"),
    [(a_wrong_url, "site.md"), (a_wrong_option, "site.md"), (two_ways, "actions.md"), (a_wrong_example, "actions.md")],
)
def test_messages_in_the_pages_are_what_is_said(site, mistake, page):
    with pytest.raises(DeclarationError) as refused:
        mistake(site)
    assert f"\n{refused.value}\n" in (DOCS / page).read_text()
