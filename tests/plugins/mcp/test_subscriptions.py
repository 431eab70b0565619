"""`subscriptions/listen` of MCP: clients that listen are told that what they have read may have changed."""

import asyncio
from contextlib import AsyncExitStack

import httpx2
from fastapi import FastAPI

from awp_publish import AgentPublisher, Mcp, Principal
from awp_publish.http.running import running
from awp_publish.plugin import open_store
from awp_publish.plugins.mcp import changes, subscriptions
from awp_publish.problems import InvalidCredentials, StoreUnavailable
from tests.guarded import Watched, known_callers, make_shop
from tests.live_server import serve
from tests.plugins.events.test_events import Client
from tests.plugins.mcp.mcp_messages import CLASSIC, MODERN, connect_to, headers_of, message, open_stream

ALL = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
TOOLS = "notifications/tools/list_changed"
RESOURCES = "notifications/resources/list_changed"
META = {"io.modelcontextprotocol/subscriptionId": 1}


def make_site(**options):
    site = make_shop(**{"plugins": ["mcp"]} | options)

    @site.agent("count_books", effect="read")
    async def count_books() -> int:
        """Count."""
        return 3

    return site


def listening(app, headers=None, **wanted):
    return open_stream(app, "subscriptions/listen", {"notifications": wanted}, headers)


async def methods(next_message, count) -> list[str]:
    return [(await next_message())["method"] for _ in range(count)]


async def test_listening_is_offered():
    capabilities = (await Client(AgentPublisher(FastAPI(), site=make_site())).ask("server/discover"))["capabilities"]
    assert capabilities["tools"] == {"listChanged": True}
    assert capabilities["resources"] == {"subscribe": True, "listChanged": True}


async def test_a_subscriber_is_first_told_what_is_subscribed():
    app = AgentPublisher(FastAPI(), site=make_site())
    document, other = "https://shop.example/agent.json", "https://shop.example/nothing"
    async with listening(app, **ALL, resourceSubscriptions=[document, other], eventsListChanged=True) as next_message:
        answer = await next_message()
    assert answer["method"] == "notifications/subscriptions/acknowledged"
    assert answer["params"] == {
        "_meta": META,
        "notifications": {
            "toolsListChanged": True,
            "resourcesListChanged": True,
            "resourceSubscriptions": [document],
        },
    }


async def test_a_refresh_and_a_status_are_told():
    site = make_site()
    app = AgentPublisher(FastAPI(), site=site)
    async with listening(app, **ALL, resourceSubscriptions=["https://shop.example/agent.json"]) as next_message:
        await next_message()
        site.set_status(degraded_actions=["count_books"])
        assert await methods(next_message, 2) == [TOOLS, RESOURCES]
        site.refresh()
        results = [await next_message() for _ in range(3)]
        assert [item["method"] for item in results] == [TOOLS, RESOURCES, "notifications/resources/updated"]
        assert results[2]["params"] == {"_meta": META, "uri": "https://shop.example/agent.json"}
        await asyncio.to_thread(site.refresh)
        assert await methods(next_message, 2) == [TOOLS, RESOURCES]  # and no document has changed
        site.set_status(degraded_actions=[])
        assert await methods(next_message, 2) == [TOOLS, RESOURCES]


async def test_nobody_is_told_what_they_have_not_asked_for():
    site = make_site()
    app = AgentPublisher(FastAPI(), site=site)
    async with listening(app, resourcesListChanged=True) as next_message, listening(app) as of_nothing:
        await next_message()
        assert (await of_nothing())["params"]["notifications"] == {}
        site.refresh()
        site.refresh()
        assert (await next_message())["method"] == RESOURCES


async def test_a_caller_with_new_permissions_is_notified(monkeypatch):
    monkeypatch.setattr(subscriptions, "VERIFY_SECONDS", 0.02)
    scopes = {"ann": frozenset[str]()}
    site = make_site(
        authenticate=lambda shown: Principal("ann", scopes["ann"]) if scopes else None,
        plugins=[Mcp(list_only_allowed=True)],
    )

    @site.agent("close_shop", scopes=["operator"])
    async def close_shop() -> str:
        """Close."""
        return "closed"

    app = AgentPublisher(FastAPI(), site=site)
    async with listening(app, **ALL) as next_message:
        await next_message()
        scopes["ann"] = frozenset({"operator"})
        assert (await next_message())["method"] == TOOLS
        scopes["ann"] = frozenset()
        assert (await next_message())["method"] == TOOLS


async def test_a_caller_who_is_no_longer_known_is_told_nothing(monkeypatch):
    monkeypatch.setattr(subscriptions, "VERIFY_SECONDS", 0.02)
    tokens = {"Bearer ann": "ann"}

    def authenticate(shown):
        if shown.headers.get("authorization") not in tokens:
            raise InvalidCredentials("The token is not valid.")
        return "ann"

    app = AgentPublisher(FastAPI(), site=make_site(authenticate=authenticate))
    async with listening(app, {"authorization": "Bearer ann"}, **ALL) as next_message:
        await next_message()
        tokens.clear()
        assert (await next_message())["result"]["resultType"] == "complete"


async def test_wrong_credentials_do_not_listen():
    client = Client(AgentPublisher(FastAPI(), site=make_site(authenticate=known_callers())), authorization="Bearer x")
    answer = await client.send("subscriptions/listen", {"notifications": {}})
    assert answer.status_code == 401


async def test_wrong_requests_to_listen_are_refused():
    client = Client(AgentPublisher(FastAPI(), site=make_site()))
    assert (await client.ask("subscriptions/listen"))["code"] == -32602
    assert (await client.ask("subscriptions/listen", notifications={"toolsListChanged": "soon"}))["code"] == -32602
    sent = message("subscriptions/listen", {"notifications": {}})
    headers = headers_of(sent) | {"accept": "application/json"}
    assert (await client.http.post("/mcp", json=sent, headers=headers)).status_code == 406
    assert "-32601" in (await client.send("subscriptions/listen", {"notifications": {}}, CLASSIC)).text


async def test_other_workers_are_told_through_the_store(tmp_path, monkeypatch):
    monkeypatch.setattr(changes, "LOOK_SECONDS", 0.02)
    first, second = (make_site(store=f"sqlite:///{tmp_path}/agents.db") for _ in range(2))
    apps = [AgentPublisher(FastAPI(), site=site) for site in (first, second)]
    document = "https://shop.example/agent.json"

    async def refresh() -> None:
        while True:  # the other worker tells of what has changed since it looked for the first time
            first.refresh()
            await asyncio.sleep(0.2)

    async with (
        running(apps[0]),
        running(apps[1]),
        listening(apps[1], toolsListChanged=True, resourceSubscriptions=[document]) as next_message,
    ):
        await next_message()
        refreshing = asyncio.create_task(refresh())
        assert await methods(next_message, 2) == [TOOLS, "notifications/resources/updated"]
        refreshing.cancel()


async def test_a_change_while_the_store_is_away_is_told_when_it_is_back(tmp_path, monkeypatch):
    monkeypatch.setattr(changes, "LOOK_SECONDS", 0.02)
    stores = [Watched(open_store(f"sqlite:///{tmp_path}/agents.db", "shop")) for _ in range(2)]
    first, second = (make_site(store=store) for store in stores)
    apps = [AgentPublisher(FastAPI(), site=site) for site in (first, second)]

    async def fail(steps):
        raise StoreUnavailable("The store is away.")

    async with running(apps[0]), running(apps[1]):
        for store in stores:
            first_looks = len(store.runs) + 2
            async with asyncio.timeout(50):
                while len(store.runs) < first_looks:  # noqa: ASYNC110, each application looks
                    await asyncio.sleep(0.01)
        async with listening(apps[1], toolsListChanged=True) as next_message:
            await next_message()
            stores[0].trouble = fail
            first.refresh()
            before = len(stores[0].runs)
            await asyncio.sleep(0.2)
            assert len(stores[0].runs) - before < 50
            stores[0].trouble = None
            assert await methods(next_message, 1) == [TOOLS]


async def test_subscribers_are_disconnected_when_the_application_stops():
    app = AgentPublisher(FastAPI(), site=make_site())
    async with AsyncExitStack() as stack:
        application = await stack.enter_async_context(AsyncExitStack())
        await application.enter_async_context(running(app))
        next_message = await stack.enter_async_context(listening(app, **ALL))
        await next_message()
        await application.aclose()
        assert (await next_message())["result"]["_meta"].items() >= META.items()


async def test_the_official_client_is_told():
    site = make_site()

    def make(url):
        site.override({"url": url})
        return AgentPublisher(FastAPI(), site=site)

    async with (
        serve(make) as url,
        httpx2.AsyncClient() as http,
        connect_to(f"{url}/mcp", http, MODERN) as client,
        client.listen(tools_list_changed=True) as changes,
    ):
        site.refresh()
        assert type(await anext(aiter(changes))).__name__ == "ToolsListChanged"
