"""What the frozen facts of a site say of themselves, and what is left of them for those who may not see all."""

from typing import Any

import pytest
from starlette.applications import Starlette

from awp_publish import Site
from awp_publish.model import Authentication, Page, RateLimit
from awp_publish.model.listing import listing_of
from tests.documents.catalogs import make_action, make_catalog, make_route_action
from tests.installed import installed


@pytest.mark.parametrize(
    ("effect", "method", "intent", "is_write"),
    [
        ("read", "GET", "read", False),
        ("read", "POST", "read", False),
        ("write", "POST", "write", True),
        ("write", None, "execute", True),
        ("write", "DELETE", "delete", True),
        ("delete", "POST", "delete", True),
        ("delete", None, "delete", True),
    ],
)
def test_the_intent_of_an_action_follows_from_its_effect_and_its_route(effect, method, intent, is_write):
    action = make_action(effect=effect, target=None) if method is None else make_route_action("a", {}, effect=effect)
    if method is not None:
        action = make_route_action("a", {}, effect=effect, method=method)
    assert (action.intent, action.is_write) == (intent, is_write)


@pytest.mark.parametrize(
    ("expose", "at"),
    [(None, {"woa", "mcp", "route", "job"}), (("woa",), {"woa", "route", "job"}), ((), {"route", "job"})],
)
def test_an_action_is_offered_at_the_doors_that_are_named_and_always_as_a_route_and_a_job(expose, at):
    action = make_action(expose=expose)
    assert {door for door in ("woa", "mcp", "route", "job") if action.is_exposed_at(door)} == at


def test_references_to_a_hidden_action_are_left_out():
    hidden = make_action("hidden", audience="known")
    page = Page("/", "Home", actions=("hidden", "seen"))
    after, free = make_action("seen", requires=("hidden",), depends_on=("hidden", "free")), make_action("free")
    catalog = make_catalog(hidden, after, free, pages=(page,)).public
    seen, free = catalog.actions
    assert (seen.id, seen.requires, seen.depends_on) == ("seen", (), ("free",))
    assert (seen.is_required, free.is_required) == (True, False)
    (shown,) = catalog.pages
    assert shown.actions == ("seen",)
    assert [agent.id for agent in catalog.agents] == ["seen", "free"]


@pytest.mark.parametrize(
    ("own_server", "only_allowed", "unknown", "known"),
    [
        (None, None, {"open", "buy", "refund"}, {"open", "buy", "refund"}),
        (None, True, {"open"}, {"open", "buy"}),
        ({}, False, {"open", "buy", "refund"}, {"open", "buy", "refund"}),
        ({}, None, {"open", "buy"}, {"open", "buy"}),
    ],
)
def test_actions_that_need_a_caller_are_listed_as_the_site_says(own_server, only_allowed, unknown, known):
    facts: Any = {"authentication": Authentication(type="oauth2", own_server=own_server, scopes={"buy": "Buy."})}
    open_, buy, refund = (
        make_action("open"),
        make_action("buy", scopes=("buy",)),
        make_action("refund", scopes=("refund",)),
    )
    listing = listing_of(make_catalog(open_, buy, refund, site=facts), only_allowed)
    for scopes, told in ((None, unknown), (frozenset({"buy"}), known)):
        assert {action.id for action in (open_, buy, refund) if listing.shows(action, scopes)} == told


@pytest.mark.parametrize("door", ["woa", "plain", "mcp", "a2a", "awp", "bridge"])
def test_an_action_may_be_exposed_at_each_door(door):
    site = Site("Shop", "Sells.", url="https://shop.example", plugins=installed("mcp", "a2a", "awp", "bridge"))

    @site.agent("ping", expose=[door])
    async def ping() -> str:
        """Say hello."""
        return "hello"

    assert [action.expose for action in site.freeze(Starlette()).actions if action.id == "ping"] == [frozenset({door})]


def test_a_limit_without_a_unit_is_of_a_minute():
    assert (RateLimit(5).seconds, RateLimit(5, unit="h").seconds, RateLimit(5, count=2, unit="s").seconds) == (
        60,
        3600,
        2,
    )
