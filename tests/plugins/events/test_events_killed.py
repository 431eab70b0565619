"""A server that is killed: no event and no subscription is lost that it had accepted, over real sockets."""

import httpx2
import pytest

from tests.http.test_killed_process import Server
from tests.http.test_real_server import NO_CERTIFICATES
from tests.plugins.events.webhook_receiver import is_signed, new_secret, receiving
from tests.plugins.mcp.mcp_messages import headers_of, message

pytestmark = pytest.mark.slow

APPLICATION = """
from fastapi import FastAPI
from awp_publish import AgentPublisher, BearerToken, Site
from awp_publish.plugins.events import webhooks

webhooks.LEASE = 2.0
site = Site(name="Shop", description="Sells things.", url="https://shop.example", plugins=["mcp"],
            store="sqlite:///agents.db", authenticate=BearerToken({"ann-secret-token": "ann"}))
site.event("order_shipped")
app = FastAPI()


@app.post("/ship/{order}")
async def ship(order: int) -> str:
    return await site.emit("order_shipped", {"order": order}, audience="principal:ann")


app.add_middleware(AgentPublisher, site=site)
"""


async def test_a_killed_server_loses_nothing_that_was_accepted(tmp_path, monkeypatch):
    (tmp_path / "shop.py").write_text(APPLICATION)
    server, secret = Server(tmp_path, "sqlite:///agents.db"), new_secret()

    def ask(method, **params):
        sent = message(method, params)
        headers = {**headers_of(sent), "authorization": "Bearer ann-secret-token", "host": "shop.example"}
        return httpx2.post(f"{server.url}/mcp", json=sent, headers=headers, verify=NO_CERTIFICATES).json()["result"]

    def ship(order):
        assert httpx2.post(f"{server.url}/ship/{order}", verify=NO_CERTIFICATES).status_code == 200

    with receiving(monkeypatch) as receiver:
        server.start()
        try:
            cursor = ask("events/poll", name="order_shipped")["cursor"]
            delivery = {"mode": "webhook", "url": receiver.url, "secret": secret}
            ask("events/subscribe", name="order_shipped", delivery=delivery)
            receiver.statuses = [500]
            for order in range(3):
                ship(order)
            await receiver.wait_for(1)
            server.kill()
            server.start()
            for order in (3,):
                ship(order)
                server.kill()
                server.start()
            polled = ask("events/poll", name="order_shipped", cursor=cursor)
            assert [event["data"]["order"] for event in polled["events"]] == [0, 1, 2, 3]
            count = 0
            while {delivery.json["data"]["order"] for delivery in receiver.received[1:]} != {0, 1, 2, 3}:
                count = max(count, len(receiver.received)) + 1
                await receiver.wait_for(count, 70)
            assert all(is_signed(delivery, secret) for delivery in receiver.received)
        finally:
            server.kill()
