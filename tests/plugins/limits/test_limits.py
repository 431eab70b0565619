"""Rate limits: AWAS 1.0 `rateLimit`, agent.json section 9, draft-ietf-httpapi-ratelimit-headers-10."""

import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from starlette.applications import Starlette

from awp_publish import AgentPublisher, DeclarationError, Limits, Proxies, Site
from awp_publish.stores.memory import MemoryStore
from tests.client import TestClient
from tests.doors.adapters import DOORS
from tests.guarded import ANN, BEN, Watched, invoke, known_callers, make_shop, publish, status_and_code
from tests.installed import installed


def declare(site, *agents, **options):
    for agent in agents:

        @site.agent(agent, **options)
        async def answer(word: str = "x") -> str:
            """Say a word."""
            return word


def statuses(client, agent, times, headers=None):
    return [invoke(client, agent, headers=headers).status_code for _ in range(times)]


def from_address(app, address, port=1):
    return TestClient(app, base_url="https://shop.example", client=(address, port))


@pytest.fixture
def often_switched() -> Iterator[None]:
    """Let threads take turns after a few instructions."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def test_the_limit_that_resets_first_is_reported_where_two_leave_as_many_calls(open_client):
    site = make_shop(limits=Limits(rate_limit="2/minute"))
    declare(site, "say", rate_limit="2/hour")
    answer = invoke(publish(site, open_client), "say")
    assert 0 <= int(answer.headers["x-ratelimit-reset"]) - time.time() <= 61


def test_the_site_counts_all_actions_together_and_each_action_its_own(open_client):
    site = make_shop(limits=Limits(rate_limit="3/minute"))
    declare(site, "say", "tell", rate_limit="2/minute")
    declare(site, "ask")
    client = publish(site, open_client)
    assert statuses(client, "say", 2) == [200, 200]
    assert statuses(client, "tell", 1) == [200]
    refused = invoke(client, "ask")
    assert status_and_code(refused) == (429, "RATE_LIMITED")
    assert refused.json()["detail"].startswith("The site allows 3/minute")


def test_an_action_that_is_called_as_the_limit_of_the_site_has_a_count_of_its_own(open_client):
    site = make_shop(limits=Limits(rate_limit="4/minute"))
    declare(site, "site", rate_limit="2/minute")
    client = publish(site, open_client)
    assert statuses(client, "site", 3) == [200, 200, 429]
    names = [part.split(";")[0].strip() for part in invoke(client, "site").headers["ratelimit-policy"].split(",")]
    assert len(set(names)) == 2


# --- For whom it is counted ---


def test_a_caller_called_as_an_address_is_not_that_address():
    site = make_shop(authenticate=lambda credentials: credentials.headers.get("x-name"))
    declare(site, "say", rate_limit="1/minute")
    client = from_address(AgentPublisher(Starlette(), site=site), "192.0.2.1")
    assert invoke(client, "say").status_code == 200
    assert [invoke(client, "say", headers={"x-name": name}).status_code for name in ("192.0.2.1", "ip:192.0.2.1")] == [
        200,
        200,
    ]


# --- Behind proxies ---


@pytest.mark.parametrize("name", ["X-Forwarded-For", "Forwarded"])
def test_nobody_gets_a_new_count_by_naming_another_address(name):
    site = make_shop()
    declare(site, "say", rate_limit="2/minute")
    client = from_address(AgentPublisher(Starlette(), site=site), "192.0.2.1")
    values = [f"for=198.51.100.{n}" if name == "Forwarded" else f"198.51.100.{n}" for n in range(3)]
    assert [invoke(client, "say", headers={name: value}).status_code for value in values] == [200, 200, 429]


def test_behind_a_trusted_proxy_each_client_has_its_own_count():
    site = make_shop(proxies=Proxies(trusted=["10.0.0.0/8"]))
    declare(site, "say", rate_limit="1/minute")
    client = from_address(AgentPublisher(Starlette(), site=site), "10.1.2.3")
    ways = ["198.51.100.1", "198.51.100.2", "198.51.100.1", "6.6.6.6, 198.51.100.2, 10.9.9.9"]
    seen = [invoke(client, "say", headers={"x-forwarded-for": way}).status_code for way in ways]
    assert seen == [200, 200, 429, 429]


CLOUDFLARE = "CF-Connecting-IP"
NAMED = "x-forwarded-for"


def hops(*values: str, name: str = "x-forwarded-for") -> list[tuple[str, str]]:
    return [(name, value) for value in values]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("header", "first", "second", "is_same"),
    [
        (None, hops("6.6.6.6", "198.51.100.1"), hops("6.6.6.7", "198.51.100.1"), True),
        (None, hops("6.6.6.6", "198.51.100.1"), hops("198.51.100.1", "198.51.100.2"), False),
        (
            None,
            [*hops("198.51.100.1"), *hops("for=6.6.6.6", name="forwarded")],
            [*hops("6.6.6.7"), *hops("for=198.51.100.1", name="forwarded")],
            True,
        ),
        (NAMED, hops("for=6.6.6.6", name="forwarded"), hops("for=6.6.6.7", name="forwarded"), True),
        (
            NAMED,
            [*hops("198.51.100.1"), *hops("for=6.6.6.6", name="forwarded")],
            [*hops("198.51.100.2"), *hops("for=6.6.6.6", name="forwarded")],
            False,
        ),
        (CLOUDFLARE, hops("6.6.6.6", name="cf-connecting-ip"), hops("6.6.6.7", name="cf-connecting-ip"), False),
        (CLOUDFLARE, hops("6.6.6.6"), hops("6.6.6.7"), True),
    ],
)
def test_at_every_door_callers_are_told_apart_by_the_header_that_is_believed(
    open_client, door, header, first, second, is_same
):
    site = make_shop(proxies=Proxies(["10.0.0.0/8"], header), plugins=installed("mcp", "a2a", "awp"))
    declare(site, "say", rate_limit="1/minute")
    app, codes = AgentPublisher(Starlette(), site=site), []
    for headers in (first, second):
        client = open_client(app, client=("10.1.2.3", 1))
        client.headers = headers
        codes.append(DOORS[door](client).call("say").code)
    assert codes == [None, "RATE_LIMITED" if is_same else None]


@pytest.mark.parametrize("proxies", [{"header": NAMED}, Proxies([], "x-real-ip")])
def test_a_header_that_nobody_is_believed_in_is_refused(proxies):
    with pytest.raises(DeclarationError, match="proxies: header is believed from trusted proxies only"):
        make_shop(proxies=proxies)


def test_an_untrusted_proxy_is_not_believed():
    site = make_shop(proxies=Proxies(trusted=["10.0.0.0/8"]))
    declare(site, "say", rate_limit="1/minute")
    client = from_address(AgentPublisher(Starlette(), site=site), "192.0.2.1")
    seen = [invoke(client, "say", headers={"x-forwarded-for": f"198.51.100.{n}"}).status_code for n in range(2)]
    assert seen == [200, 429]


# --- Windows, and what is published ---


@pytest.mark.parametrize("declared", ["2/minute", "2 per 5 minutes", "2/hour by ip"])
def test_the_published_limits_are_enforced(open_client, declared):
    site = make_shop(limits=Limits(rate_limit="90/minute"))
    declare(site, "say", rate_limit=declared)
    client = publish(site, open_client)
    answers = [invoke(client, "say") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    awas = client.get("/.well-known/ai-actions.json").json()
    action = next(action for action in awas["actions"] if action["id"] == "say")
    manifest = client.get("/agent.json").json()
    seconds = {"1m": 60, "5m": 300, "1h": 3600}[action["rateLimit"]["window"]]
    assert action["rateLimit"]["requests"] == 2
    assert f'"say";q=2;w={seconds}' in answers[0].headers["ratelimit-policy"]
    assert manifest["actions"][0]["rate_limit"] in answers[2].json()["detail"]
    assert awas["rateLimit"] == {"requests": 90, "window": "1m"}


def test_limits_hold_for_all_addresses_of_a_site_together():
    site = Site("Shop", "Sells.", url=["https://shop.example", "https://www.shop.example"])
    declare(site, "say", rate_limit="1/minute")
    app = AgentPublisher(Starlette(), site=site)
    first = TestClient(app, base_url="https://shop.example")
    other = TestClient(app, base_url="https://www.shop.example")
    assert [invoke(client, "say").status_code for client in (first, other)] == [200, 429]


def test_a_routes_own_fields_do_not_contradict_ours(open_client):
    site, app = make_shop(), FastAPI()

    @app.post("/say")
    @site.action("say", rate_limit="5/minute")
    async def say() -> object:
        """Say something, but not too often."""
        return JSONResponse({"detail": "Wait."}, 429, {"retry-after": "7", "x-ratelimit-limit": "9"})

    refused = invoke(publish(site, open_client, app), "say")
    assert refused.headers["retry-after"] == "7"
    assert refused.headers.get_list("x-ratelimit-limit") == ["5"]


def test_calls_in_total_that_are_leased_are_as_many_as_allowed_and_cost_few_trips(open_client):
    store = Watched(MemoryStore())
    site = make_shop(store=store)
    declare(site, "say", rate_limit="10/day in total, 4 at a time")
    client = publish(site, open_client)
    assert statuses(client, "say", 12) == [200] * 10 + [429] * 2
    assert store.runs.count(("Reserve",)) == 3
    before, last, after = time.time(), invoke(client, "say"), time.time()
    assert -before % 86_400 - (after - before) - 1 <= int(last.headers["retry-after"]) <= -before % 86_400 + 1
    assert last.headers["ratelimit"].startswith('"say";r=0;t=')


def test_workers_that_lease_calls_make_no_more_than_allowed_and_keep_few_from_each_other(open_client):
    store, clients = MemoryStore(), []
    for _ in range(3):
        site = make_shop(store=store, authenticate=known_callers())
        declare(site, "say", rate_limit="50/day in total, 4 at a time")
        clients.append(publish(site, open_client))
    given = [invoke(clients[number % 3], "say", headers=ANN).status_code for number in range(90)]
    assert 50 - 2 * 4 <= given.count(200) <= 50


def test_event_loops_of_several_threads_make_as_many_leased_calls_as_allowed(often_switched):
    site = make_shop(store=MemoryStore())
    declare(site, "say", rate_limit="100/day in total, 7 at a time")
    app = AgentPublisher(Starlette(), site=site, check=False)
    with ThreadPoolExecutor(4) as threads:
        ended = threads.map(lambda number: statuses(from_address(app, "192.0.2.1", number + 1), "say", 40), range(4))
    assert [status for each in ended for status in each].count(200) == 100


def test_leases_stand_beside_limits_of_each_caller(open_client):
    site = make_shop(limits=Limits(rate_limit="1000/day in total, 50 at a time"), authenticate=known_callers())
    declare(site, "say", rate_limit="2/minute")
    client = publish(site, open_client)
    assert statuses(client, "say", 3, ANN) == [200, 200, 429]
    assert statuses(client, "say", 1, BEN) == [200]


@pytest.mark.parametrize(
    "wrong", ["9/day by user, 3 at a time", "9/minute by ip, 3 at a time", "9/day in total, 9 at a time"]
)
def test_only_calls_in_total_are_leased_and_fewer_than_the_limit(wrong):
    with pytest.raises(DeclarationError, match="in total"):
        declare(make_shop(), "say", rate_limit=wrong)
