"""A parcel that leaves the bookshop is told to whoever has ordered it, and to nobody else."""

import asyncio

import httpx

from awp_publish.http.running import running
from benchmarks.person import carry_out_async, token_steps
from demo_site.app import create_app
from tests.plugins.events.test_events import Client

ORIGIN = "https://shop.example"


async def test_an_order_that_is_shipped_is_told_to_its_buyer():
    app = create_app(ORIGIN, packing_pause=0, doors=["mcp"])

    async def use(client, tool, **given):
        answer = await client.ask("tools/call", name=tool, arguments=given)
        if answer["isError"] and "confirmation" in answer["_meta"]["awp/problem"]:
            token = answer["_meta"]["awp/problem"]["confirmation"]["token"]
            answer = await client.ask("tools/call", name=tool, arguments={**given, "confirmation": token})
        assert answer["isError"] is False, answer["content"]
        return answer["structuredContent"]

    async with running(app):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as browser:
            token = await carry_out_async(token_steps(ORIGIN), browser)
        buyer, stranger = Client(app, authorization=f"Bearer {token}"), Client(app)
        cursors = [(await item.poll())["cursor"] for item in (buyer, stranger)]
        of_jobs = (await buyer.poll(name="job_ended"))["cursor"]
        await use(buyer, "add_to_basket", slug="emma", quantity=1)
        placed = await use(buyer, "check_out", name="Jane", address="1 Quiet Lane, Oxford")
        await use(buyer, "ship_order", order_id=placed["order_id"])
        async with asyncio.timeout(50):
            while not (answer := (await buyer.poll(cursors[0]))["events"]):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            while not (ended := (await buyer.poll(of_jobs, name="job_ended"))["events"]):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert (await stranger.poll(cursors[1]))["events"] == []
    shipped = {"order_id": placed["order_id"], "total_cents": placed["total_cents"], "currency": "USD"}
    assert [item["data"] for item in answer] == [shipped]
    assert ended[0]["data"]["action"] == "ship_order"
