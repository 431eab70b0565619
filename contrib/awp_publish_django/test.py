"""Calls of actions in a project's own tests: `self.agent.call("order_book", {"title": "Emma"})`.

class OrderTests(AgentTestMixin, TestCase):
    def test_an_order(self):
        self.client.force_login(ann)
        answer = self.agent.call("order_book", {"title": "Emma"}, confirm=True)
        self.assertEqual(answer.value, {"location": "/thanks/"})
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from django.test import Client

from awp_publish_django.publication import get_publication


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """The status of a call, and the JSON of its answer or problem."""

    status: int
    value: Any
    headers: Mapping[str, str]

    @property
    def code(self) -> str | None:
        """The code of a refusal or a failure (`INVALID_INPUT`), None for a success."""
        return self.value["code"] if self.status >= 400 else None


class AgentTestClient:
    """Calls the site's actions through the WoA door, with the cookies of a test client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def call(
        self,
        action_id: str,
        given: Mapping[str, object] | None = None,
        *,
        confirm: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> AgentAnswer:
        """Call an action and return its answer, refusals included. With `confirm`, say yes to what it asks.

        Raises LookupError for an unknown action, or if the site has no WoA door.
        """
        catalog = get_publication().site.catalog
        if catalog.door("woa") is None:
            raise LookupError('The site has no WoA door: it leaves out the plug-in "woa".')
        action = next((declared for declared in catalog.actions if declared.id == action_id), None)
        if action is None:
            ids = ", ".join(action.id for action in catalog.actions)
            raise LookupError(f'Unknown action "{action_id}". There are: {ids}.')
        url, sent = urlsplit(catalog.url), dict(headers or {})
        body = json.dumps({"operation": action.operation, "input": dict(given or {})})
        while True:
            response: Any = self._client.post(
                catalog.invoke_path_of(action),
                body,
                content_type="application/json",
                secure=url.scheme == "https",
                headers={"host": url.netloc, **sent},
            )
            content = b"".join(response)
            answer = AgentAnswer(response.status_code, json.loads(content), dict(response.items()))
            if not confirm or answer.code != "CONFIRMATION_REQUIRED" or "AWP-Confirmation" in sent:
                return answer
            sent["AWP-Confirmation"] = answer.value["confirmation"]["token"]


class AgentTestMixin:
    """Gives a TestCase `self.agent`."""

    client: Client

    @cached_property
    def agent(self) -> AgentTestClient:
        """Calls of actions as the visitor of `self.client`."""
        return AgentTestClient(self.client)
