"""A person signs in on the site's own page, allows an agent to act, and the agent's calls are the person's."""

import pytest
from starlette.testclient import TestClient

from tests.sign_in.shop import URL, Agent, invoke, make_shop


@pytest.fixture(params=[False, True], ids=["sessions inside", "sessions outside"])
def shop(request, open_client) -> TestClient:
    app = make_shop(sessions_outside=request.param)
    return open_client(app)


@pytest.fixture
def agent(shop, open_client) -> Agent:
    return Agent(shop, TestClient(shop.app, base_url=URL))


def test_an_agent_acts_as_the_person_who_has_allowed_it(shop, agent):
    assert invoke(shop, "read_profile").status_code == 401
    tokens = agent.sign_in("ann")
    assert invoke(shop, "read_profile", tokens["access_token"]).json() == "ann"
    assert invoke(shop, "order_book", tokens["access_token"], title="Emma").json() == "Emma for ann"
