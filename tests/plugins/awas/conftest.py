"""The published schema of a manifest, and the front door by which declarations are tested."""

from typing import Any

from tests.declare.conftest import Front, refusal as refusal, site as site, start as start
from tests.documents.conftest import matches_awas as matches_awas


def published(front: Front, action_id: str) -> Any:
    """Return what the manifest says about an action."""
    actions = front.client.get("/.well-known/ai-actions.json").json()["actions"]
    return next(action for action in actions if action["id"] == action_id)
