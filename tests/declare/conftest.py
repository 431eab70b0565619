"""A small front door: start an application, read what it publishes, call it, or hear why it does not start."""

from collections.abc import Callable
from typing import Any

import pytest
from starlette.applications import Starlette

from awp_publish import AgentPublisher, ApiKey, DeclarationError, Site
from tests.client import TestClient


class Front:
    """A started application as an agent sees it."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def call(self, agent_id: str, given: object, operation: str | None = None) -> Any:
        """The output of a call that succeeds."""
        answer = self.ask(agent_id, given, operation)
        assert 200 <= answer.status_code < 300, answer.text
        return answer.json()

    def ask(self, agent_id: str, given: object, operation: str | None = None) -> Any:
        envelope = {"input": given} | ({"operation": operation} if operation else {})
        key = {"X-API-Key": "key-of-a-partner"}
        return self.client.post(f"/agents/{agent_id}/invoke", json=envelope, headers=key)

    def agent(self, agent_id: str) -> dict[str, Any]:
        """What /.well-known/woa.json says about an agent, without the dialect of its schemas."""
        agents = self.client.get("/.well-known/woa.json").json()["agents"]
        found: dict[str, Any] = next(agent for agent in agents if agent["id"] == agent_id)
        for schema in (found["inputs"], found["outputs"]):
            schema.pop("$schema")
        return found

    def inputs(self, agent_id: str) -> Any:
        return self.agent(agent_id)["inputs"]

    def outputs(self, agent_id: str) -> Any:
        return self.agent(agent_id)["outputs"]

    def agents(self) -> list[str]:
        return [agent["id"] for agent in self.client.get("/.well-known/woa.json").json()["agents"]]

    def awas(self, action_id: str) -> dict[str, Any]:
        """What /.well-known/ai-actions.json says about an action."""
        actions = self.client.get("/.well-known/ai-actions.json").json()["actions"]
        found: dict[str, Any] = next(action for action in actions if action["id"] == action_id)
        return found

    def agent_json(self, action_id: str) -> dict[str, Any]:
        """What /agent.json says about an action."""
        actions = self.client.get("/agent.json").json()["actions"]
        found: dict[str, Any] = next(action for action in actions if action["id"] == action_id)
        return found


Start = Callable[..., Front]


@pytest.fixture
def start(site, open_client) -> Start:
    """Start an application, with the publisher inside of it where it takes middleware and around it otherwise."""

    def start(app: Any = None, **publisher: Any) -> Front:
        app = Starlette() if app is None else app
        if isinstance(app, Starlette) and not publisher:
            app.add_middleware(AgentPublisher, site=site, check=False)
            return Front(open_client(app))
        return Front(open_client(AgentPublisher(app, site, check=False, **publisher)))

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
