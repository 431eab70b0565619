"""A site without the plain door: its actions are called with WoA's envelope, and no document names plain addresses."""

import pytest

from awp_publish.client import AgentClient
from tests.client import TestClient
from tests.plugins.woa.test_left_out import make_app


@pytest.fixture
def client(open_client) -> TestClient:
    return open_client(make_app("no:plain"))


def test_the_client_calls_the_door_of_woa():
    with AgentClient(make_app("no:plain"), confirm=True) as client:
        assert client.call("order_tea", tea="assam") == "ordered assam"


def test_the_addresses_of_actions_are_the_applications_own(client):
    for path in ("/agents/actions/list_teas", "/agents/actions/unknown"):
        answer = client.get(path)
        assert (answer.status_code, answer.json()) == (404, {"detail": "Not Found"})
    assert client.get("/teas?word=assam").json() == ["assam"]


@pytest.mark.needs("awas", "agent_json", "discovery", "woa")
def test_documents_of_plain_requests_list_actions_at_routes_of_their_own(client):
    for path in ("/.well-known/ai-actions.json", "/agent.json"):
        assert [action["id"] for action in client.get(path).json()["actions"]] == ["list_teas"]
    assert [agent["id"] for agent in client.get("/.well-known/woa.json").json()["agents"]] == ["list_teas", "order_tea"]
    assert "/agents/actions/" not in client.get("/llms.txt").text


@pytest.mark.needs("overview")
def test_the_overview_offers_requests_of_other_doors(client):
    text = client.get("/agents", headers={"accept": "text/html"}).text
    assert "/agents/list_teas/invoke" in text
    assert "/agents/actions/list_teas" not in text


@pytest.mark.needs("discovery")
def test_without_any_door_llms_txt_says_of_no_call(open_client):
    text = open_client(make_app("no:plain", "no:woa")).get("/llms.txt").text
    assert "Call:" not in text
