"""A small front door: start an application, read what its catalog says, call it, or hear why it does not start."""

from collections.abc import Callable
from typing import Any

import pytest
from starlette.applications import Starlette

from awp_publish import AgentPublisher, ApiKey, DeclarationError, Site
from awp_publish.model import Action, Agent
from tests.client import TestClient


class Front:
    """A started application as an agent sees it, which calls at the plain door."""

    def __init__(self, client: TestClient, site: Site) -> None:
        self.client = client
        self.site = site

    def call(self, action_id: str, inputs: object) -> Any:
        """Return the output of a call that succeeds."""
        answer = self.ask(action_id, inputs)
        assert 200 <= answer.status_code < 300, answer.text
        return answer.json() if answer.headers["content-type"] == "application/json" else answer.text

    def ask(self, action_id: str, inputs: object, **headers: str) -> Any:
        method, headers = self.action(action_id).method, headers or {"X-API-Key": "key-of-a-partner"}
        return self.client.request(method, f"/agents/actions/{action_id}", json=inputs, headers=headers)

    def action(self, action_id: str) -> Action:
        return next(action for action in self.site.catalog.actions if action.id == action_id)

    def address(self, action_id: str) -> str:
        """Return the path at which the documents publish an action."""
        return self.site.catalog.endpoint_of(self.action(action_id))[1]

    def inputs(self, action_id: str) -> Any:
        return self.action(action_id).inputs

    def outputs(self, action_id: str) -> Any:
        return self.action(action_id).outputs

    def agents(self) -> dict[str, Agent]:
        return {agent.id: agent for agent in self.site.catalog.agents}


Start = Callable[..., Front]


@pytest.fixture
def start(site, open_client) -> Start:
    """Start an application, with the publisher inside of it where it takes middleware and around it otherwise."""

    def start(app: Any = None, **publisher: Any) -> Front:
        app = Starlette() if app is None else app
        if isinstance(app, Starlette) and not publisher:
            app.add_middleware(AgentPublisher, site=site, check=False)
            return Front(open_client(app), site)
        return Front(open_client(AgentPublisher(app, site, check=False, **publisher)), site)

    return start


@pytest.fixture
def site() -> Site:
    """A site that knows its callers, so that actions may ask who calls."""
    keys = ApiKey({"key-of-a-partner": "partner"})
    return Site(name="Shop", description="Sells things.", url="https://shop.example", authenticate=keys)


@pytest.fixture
def refusal(site) -> Callable[..., str]:
    """The words in which an application refuses to start."""

    def refuse(app: Any = None) -> str:
        app = Starlette() if app is None else app
        with pytest.raises(DeclarationError) as refused, TestClient(AgentPublisher(app, site, check=False)):
            pass
        return str(refused.value)

    return refuse


@pytest.fixture
def make_site() -> Callable[..., Site]:
    """A site with some of its options; what is not given is in order."""

    def make(**options: Any) -> Site:
        return Site(**{"name": "Shop", "description": "Sells things.", "url": "https://shop.example", **options})

    return make
