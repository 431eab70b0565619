"""A synchronous view of Django tells agents what has happened."""

from typing import Any

from django.test import AsyncClient, Client

from tests.plugins.mcp.mcp_messages import headers_of, message


def asked(method: str, params: dict[str, Any]) -> dict[str, Any]:
    sent = message(method, params)
    return {"data": sent, "content_type": "application/json", "headers": headers_of(sent)}


def test_a_view_emits(client: Client) -> None:
    begun = client.post("/mcp", **asked("events/poll", {"name": "order_shipped"})).json()["result"]
    text = client.get("/ship?order=7").content.decode()
    read = client.post("/mcp", **asked("events/poll", {"name": "order_shipped", "cursor": begun["cursor"]})).json()
    [event] = read["result"]["events"]
    assert (event["eventId"], event["data"]) == (text, {"order": "7"})


def test_a_server_of_few_threads_keeps_no_streams_open(client: Client) -> None:
    listed = client.post("/mcp", **asked("events/list", {})).json()["result"]["events"]
    assert {item["name"]: item["delivery"] for item in listed}["order_shipped"] == ["poll", "webhook"]
    refused = client.post("/mcp", **asked("events/stream", {"name": "order_shipped"})).json()["error"]
    assert (refused["code"], refused["data"]) == (-32026, {"feature": "deliveryMode", "value": "push"})
    refused = client.post("/mcp", **asked("subscriptions/listen", {"notifications": {}})).json()["error"]
    assert refused["code"] == -32601
    offered = client.post("/mcp", **asked("server/discover", {})).json()["result"]["capabilities"]
    assert offered["tools"] == {"listChanged": False}
    assert offered["resources"] == {"listChanged": False, "subscribe": False}


async def test_a_server_of_an_event_loop_offers_to_listen(async_client: AsyncClient) -> None:
    offered = (await async_client.post("/mcp", **asked("server/discover", {}))).json()["result"]["capabilities"]
    assert offered["tools"] == {"listChanged": True}


async def test_a_view_emits_under_asgi(async_client: AsyncClient) -> None:
    begun = (await async_client.post("/mcp", **asked("events/poll", {"name": "order_shipped"}))).json()["result"]
    text = (await async_client.get("/ship?order=7")).content.decode()
    params = {"name": "order_shipped", "cursor": begun["cursor"]}
    read = (await async_client.post("/mcp", **asked("events/poll", params))).json()
    assert [event["eventId"] for event in read["result"]["events"]] == [text]
