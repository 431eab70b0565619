"""What a site says about itself, and the words in which its mistakes are refused."""

import inspect
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from awp_publish import (
    About,
    AgentPublisher,
    DeclarationError,
    Jobs,
    OAuth,
    Pages,
    Paths,
    Site,
    Workflow,
)
from awp_publish.plugin import Plugin, Setup
from tests.client import TestClient


def declared(site: Site) -> Site:
    site.declare("look", method="GET", path="/look", description="Look around.")
    return site


def document(site: Site, path: str) -> Any:
    app = AgentPublisher(Starlette(), declared(site), check=False)
    with TestClient(app, base_url="https://shop.example") as client:
        answer = client.get(path)
    assert answer.status_code == 200
    return answer.json()


# --- What is said is published ---


@pytest.mark.needs("plain")
@pytest.mark.parametrize(
    ("inputs", "pagination"),
    [(["word"], None), (["word", "page"], "page"), (["offset", "limit"], "offset"), (["cursor"], "cursor")],
)
def test_pagination_is_read_from_the_inputs_of_actions_that_read(make_site, inputs, pagination):
    site = make_site()
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in inputs}}
    site.declare("find", method="GET", path="/find", description="Find.", inputs=schema)
    assert document(site, "/agent.json").get("capabilities", {}).get("pagination") == pagination


@pytest.mark.parametrize(
    ("updated", "published"),
    [
        (datetime(2026, 3, 31, 12, tzinfo=UTC), "2026-03-31T12:00:00Z"),
        (datetime(2026, 3, 31, 12, tzinfo=timezone(timedelta(hours=2))), "2026-03-31T10:00:00Z"),
        (datetime(2026, 3, 31, 12), "2026-03-31T12:00:00Z"),
        (date(2026, 3, 31), "2026-03-31T00:00:00Z"),
        ("2026-03-31", "2026-03-31T00:00:00Z"),
        ("2026-03-31T12:00:00+02:00", "2026-03-31T10:00:00Z"),
    ],
)
def test_updated_is_a_moment_and_without_a_zone_it_is_utc(make_site, updated, published):
    read = document(make_site(about=About(updated=updated)), "/.well-known/ai-actions.json")["lastUpdated"]
    assert datetime.fromisoformat(read) == datetime.fromisoformat(published)


def test_later_changes_of_an_argument_do_not_change_the_declaration(make_site):
    extensions: dict[str, Any] = {"x-shop": {"open": True}}
    site = make_site(about=About(extensions=extensions))
    extensions["x-shop"]["open"] = object()
    assert document(site, "/.well-known/ai-actions.json")["x-shop"] == {"open": True}


def test_the_invoke_path_may_be_moved_and_may_name_the_agent_in_a_query(make_site):
    site = make_site(paths=Paths(root="/run", invoke="/run?agent={agent_id}"))

    @site.agent("adder")
    async def adder(a: int, b: int) -> int:
        """Add."""
        return a + b

    app = AgentPublisher(Starlette(), site, check=False)
    with TestClient(app, base_url="https://shop.example") as client:
        rest = client.get("/.well-known/woa.json").json()["transports"]["rest"]
        assert rest["invoke_path"] == "/run?agent={agent_id}"
        url = rest["base"] + rest["invoke_path"].replace("{agent_id}", "adder")
        assert client.post(url, json={"input": {"a": 1, "b": 2}}).json() == 3
        refused = client.post(url, json={"input": {"a": 1}}).json()
        assert refused["type"].startswith("https://shop.example/run/problems/")


# --- The address ---


@pytest.mark.parametrize(
    ("given", "base"),
    [
        ("https://shop.example", "https://shop.example"),
        ("https://shop.example/", "https://shop.example"),
        ("https://shop.example/books/", "https://shop.example/books"),
        ("HTTPS://Shop.Example:8443", "https://shop.example:8443"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_the_url_is_where_documents_say_that_the_site_is(make_site, given, base):
    assert make_site(url=given).settings.urls == (base,)


def test_a_site_may_have_several_addresses(make_site):
    site = make_site(url=["https://shop.example", "https://laden.example"])
    app = AgentPublisher(Starlette(), declared(site), check=False)
    with TestClient(app) as client:
        for host in ("shop.example", "laden.example"):
            read = client.get("/.well-known/woa.json", headers={"host": host}).json()
            assert read["transports"]["rest"]["base"] == f"https://{host}"


def test_the_environment_gives_the_url_where_the_code_does_not(monkeypatch):
    monkeypatch.setenv("AWP_PUBLISH_URL", "https://a.example, https://b.example/")
    assert Site("Shop", "Sells things.").settings.urls == ("https://a.example", "https://b.example")
    assert Site("Shop", "Sells things.", "https://c.example").settings.urls == ("https://c.example",)


@pytest.mark.parametrize("value", [None, "", " , "])
def test_a_site_without_a_url_is_refused(monkeypatch, value):
    if value is None:
        monkeypatch.delenv("AWP_PUBLISH_URL", raising=False)
    else:
        monkeypatch.setenv("AWP_PUBLISH_URL", value)
    with pytest.raises(DeclarationError) as refused:
        Site("Shop", "Sells things.")
    assert str(refused.value) == "site: url: is required; give Site(url=...) or set AWP_PUBLISH_URL."


# --- Mistakes ---

LINK = 'is neither a path beginning with "/" nor an absolute URL.'


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("about", About(email=3), "about.email: must be text."),  # type: ignore[arg-type]
        ("about", About(email="me"), "about.email: 'me' is not an e-mail address."),
        ("about", About(contact="us"), f"about.contact: 'us' {LINK}"),
        (
            "oauth",
            OAuth(token_expiry="a day"),
            "oauth.token_expiry: 'a day' is not a duration; write a number and one of s, m, h, d, such as \"24h\".",
        ),
        ("oauth", OAuth(refresh_endpoint="me"), f"oauth.refresh_endpoint: 'me' {LINK}"),
        (
            "plugins",
            [Jobs(queue="amqp://:secret@queue")],
            "plugins.jobs.queue: must be the address of a Redis, such as",
        ),
        ("plugins", [Jobs(concurrency=0)], "plugins.jobs.concurrency: must be greater than 0."),
        ("plugins", [Pages(in_query="yes")], "plugins.pages.in_query: must be True or False."),  # type: ignore[arg-type]
        (
            "about",
            {"workflows": [Workflow("see", "See", ())]},
            'about.workflows.0: workflow "see" has no steps; name the actions',
        ),
        (
            "about",
            {"workflows": [Workflow("See!", "See", ("look",))]},
            "about.workflows.0: 'See!' must be lower-case letters, digits",
        ),
        (
            "about",
            {"workflows": [Workflow("see", "See", ("look",))] * 2},
            'about.workflows: two workflows have the id "see".',
        ),
        ("about", {"extensions": {"x-shop": {1, 2}}}, "about.extensions: {1, 2} is not JSON."),
        ("about", {"extensions": {"x-shop": float("nan")}}, "about.extensions: nan is not JSON."),
    ],
)
def test_a_mistake_is_refused_and_the_field_is_named(make_site, field, value, words):
    with pytest.raises(DeclarationError) as refused:
        make_site(**{field: value})
    assert str(refused.value).startswith(f"site: {words}")
    assert "pydantic" not in str(refused.value)


def test_repeated_and_unnamed_arguments_are_refused_as_in_python(make_site):
    with pytest.raises(TypeError, match="several values for name"):
        Site("Shop", "Sells things.", name="Other")  # type: ignore[misc]
    with pytest.raises(TypeError, match="too many positional"):
        Site("Shop", "Sells things.", "https://shop.example", 30.0)  # type: ignore[call-arg, arg-type]
    with pytest.raises(TypeError, match="too many positional"):
        make_site().action("look", "Look around.")


def test_editors_see_every_option_of_a_call():
    assert {"name", "limits", "plugins"} <= set(inspect.signature(Site).parameters)
    assert {"action_id", "effect", "timeout"} <= set(inspect.signature(Site.action).parameters)


@pytest.mark.parametrize(
    ("plugin", "options"), [("jobs", {"execution": "async"}), ("guarded_routes", {"guard_routes": True})]
)
def test_an_option_of_a_plugin_that_is_left_out_is_refused_at_the_start(make_site, plugin, options):
    site = make_site(plugins=[f"no:{plugin}"])

    @site.action("look", **options)
    async def look(request: Request) -> Response:
        """Look."""
        return Response()

    app = Starlette(routes=[Route("/look", look)])
    with pytest.raises(DeclarationError, match=rf'nothing fulfils it, and look would need it\. .*"no:{plugin}"'):
        site.freeze(app)


def test_the_first_of_several_mistakes_is_told_and_the_others_are_counted(make_site):
    with pytest.raises(DeclarationError) as refused:
        make_site(about={"license": "", "documentation": "about"})
    assert str(refused.value).endswith("(and 1 more).")


def test_a_workflow_with_an_unknown_step_is_refused_at_the_start(make_site):
    site = declared(make_site(about=About(workflows=[Workflow("see", "See", ("look", "touch"))])))
    with pytest.raises(DeclarationError) as refused, TestClient(AgentPublisher(Starlette(), site)):
        pass
    assert str(refused.value) == 'site: about.workflows: "see" names the unknown action "touch".'


@pytest.mark.needs("status")
def test_a_status_of_another_type_is_refused(make_site):
    with pytest.raises(DeclarationError, match="degraded_actions: must be a list, not one string"):
        make_site().set_status(degraded_actions="look")
    with pytest.raises(DeclarationError, match="operational: must be True or False"):
        make_site().set_status(operational="degraded")


def test_a_site_that_was_not_started_has_no_catalog(make_site):
    with pytest.raises(DeclarationError, match=r"site: is not frozen yet. It is when the application has started"):
        _ = make_site().catalog


@pytest.mark.needs("status")
def test_a_site_is_frozen_once_and_tells_who_listens_when_it_is_refreshed(make_site):
    site = declared(make_site())
    heard: list[Site] = []
    catalog = site.freeze(Starlette())
    assert site.freeze(Starlette()) is catalog
    site.on_refresh(heard.append)
    site.set_status(operational=False, degraded_actions=["look"])
    site.refresh()
    assert heard == [site]
    assert site.catalog.status.operational is False
    assert list(site.catalog.status.degraded_actions) == ["look"]
    site.set_status(degraded_actions=["touch"])
    with pytest.raises(DeclarationError, match='site: degraded_actions: there is no action "touch"'):
        site.refresh()


def test_all_wrong_declarations_are_told_at_once(site):
    app = Starlette(routes=[Route("/here", lambda request: Response())])
    site.declare("lost", method="GET", path="/nowhere", description="Look.")
    site.declare("gone", method="GET", path="/gone", description="Look.")
    with pytest.raises(DeclarationError) as caught:
        AgentPublisher(app, site=site).open()
    assert [error.subject for error in caught.value.errors] == ['action "lost"', 'action "gone"']
    assert caught.value.subject == 'action "lost"'
    assert [line.partition(":")[0] for line in str(caught.value).split("\n")] == ['action "lost"', 'action "gone"']


def test_a_start_that_was_refused_is_refused_for_the_same_reason_again():
    """Plug-ins that declare actions of their own do so at each start."""
    site: Site

    def prepare(setup: Setup) -> None:
        declared(site)

    own = Plugin(name="own", prepare=prepare)
    site = Site("Shop", "Sells books.", "https://shop.example", plugins=[own])
    site.declare("buy", method="GET", path="/buy", description="Buy it.", depends_on=["pay"])
    for _ in range(2):
        with pytest.raises(DeclarationError, match='depends_on: there is no action "pay"'):
            site.freeze(Starlette())


@pytest.mark.needs("findings")
def test_a_public_address_without_tls_is_said_at_start_up(open_client, caplog):
    for url, is_said in (("http://shop.example.org", True), ("http://10.0.0.1", False), ("https://shop.org", False)):
        caplog.clear()
        open_client(AgentPublisher(Starlette(), Site("Shop", "Sells books.", url=url))).get("/agent.json")
        assert ("start-http" in caplog.text) is is_said, url


async def _forgotten(call: object) -> None:
    """A listener that nobody would await."""


@pytest.mark.parametrize(
    "declare",
    [
        lambda site: Site("Shop", "Sells.", "https://shop.example", authenticate=lambda: "ann"),
        lambda site: site.action("order", confirm=lambda: "Order?"),
        lambda site: site.action("order", confirm=lambda given, call, more: "Order?"),
        lambda site: site.on_call(lambda: None),
        lambda site: site.on_call(_forgotten),
        lambda site: site.on_call("listener"),
    ],
)
def test_a_function_that_cannot_be_called_as_it_will_be_is_refused_where_it_is_given(declare):
    with pytest.raises(DeclarationError, match=r"credentials|or a function of the input|plain function of the facts"):
        declare(Site("Shop", "Sells.", "https://shop.example"))
