"""Events of the site over AWP: who wants them in the handshake is told of them as they happen."""

import pytest
from fastapi import FastAPI
from starlette.websockets import WebSocketDisconnect

from awp_publish import AgentPublisher, Principal
from tests.guarded import ANN, known_callers, make_shop
from tests.plugins.awp.awp_client import AwpClient
from tests.plugins.events.test_events import Shipped


@pytest.fixture
def site():
    site = make_shop(plugins=["awp"], authenticate=known_callers())
    site.event("order_shipped", payload=Shipped)
    site.event("stock_low", audience="buy")
    return site


@pytest.fixture
def client(site, open_client):
    return open_client(AgentPublisher(FastAPI(), site=site))


def emit(client, site, order, audience="public", event="order_shipped"):
    client.portal.call(lambda: site.emit(event, {"order_id": order}, audience=audience))


def open_shop(client, headers=None, **wants):
    return AwpClient.greeted(client, headers, wants={"events": ["order_shipped", "stock_low", "nothing"], **wants})


@pytest.mark.parametrize("is_packed", [False, True])
def test_events_are_told_to_who_wants_them(client, site, is_packed):
    with AwpClient.open(client, ANN, is_packed=is_packed) as shop:
        greeted = shop.do("awp.hello", wants={"events": ["order_shipped", "nothing"]})
        assert greeted["events"] == ["order_shipped"]
        assert greeted["available_events"] == ["order_shipped", "stock_low"]
        emit(client, site, "0", "principal:ben")
        emit(client, site, "1", "principal:ann")
        answer = shop.hear()
        assert (answer["type"], answer["method"]) == ("event", "order_shipped")
        assert answer["params"].keys() == {"event_id", "name", "timestamp", "data", "cursor"}
        assert answer["params"]["data"] == {"order_id": "1", "carrier": "post"}
        assert "result" in shop.ask("session.list")
        emit(client, site, "2")
        assert shop.hear()["params"]["data"]["order_id"] == "2"
        emit(client, site, "3")
    with open_shop(client, ANN, cursors={"order_shipped": answer["params"]["cursor"]}) as shop:
        assert [shop.hear()["params"]["data"]["order_id"] for _ in range(2)] == ["2", "3"]


def test_an_anonymous_caller_sees_public_events_of_public_kinds(client, site):
    with AwpClient.open(client) as shop:
        greeted = shop.do("awp.hello", wants={"events": ["order_shipped", "stock_low"]})
        assert (greeted["events"], greeted["available_events"]) == (["order_shipped"], ["order_shipped"])
        emit(client, site, "1", "public", "stock_low")
        emit(client, site, "2", "known")
        emit(client, site, "3")
        assert shop.hear()["params"]["data"]["order_id"] == "3"


def test_a_second_handshake_replaces_the_wanted_events(client, site):
    with open_shop(client) as shop:
        shop.do("awp.hello", wants={})
        emit(client, site, "1")
        assert shop.do("session.list")["count"] == 0
        shop.do("awp.hello", wants={"events": ["order_shipped"]})
        emit(client, site, "2")
        assert shop.hear()["params"]["data"]["order_id"] == "2"


def test_wrong_wishes_are_refused(client):
    with AwpClient.open(client) as shop:
        assert shop.fail("awp.hello", wants={"events": ["order_shipped"], "cursors": "x"})["code"] == "INVALID_REQUEST"
        assert "error" not in shop.ask("awp.hello", {"wants": {"events": ["order_shipped"], "cursors": {"a": 1}}})


@pytest.mark.parametrize("since", [None, Principal("ann", frozenset({"other"}))])
def test_a_caller_whose_token_has_ended_is_told_nothing_and_disconnected(open_client, since):
    tokens: dict[str, Principal | None] = {"Bearer ann": Principal("ann", claims={"exp": 1})}
    site = make_shop(plugins=["awp"], authenticate=lambda shown: tokens.get(shown.headers.get("authorization", "")))
    site.event("order_shipped", payload=Shipped)
    client = open_client(AgentPublisher(FastAPI(), site=site))
    with open_shop(client, {"authorization": "Bearer ann"}) as shop:
        emit(client, site, "1", "principal:ann")
        assert shop.hear()["params"]["data"]["order_id"] == "1"
        tokens["Bearer ann"] = since
        emit(client, site, "2", "principal:ann")
        with pytest.raises(WebSocketDisconnect) as left:
            shop.hear()
    assert left.value.code == 1008
