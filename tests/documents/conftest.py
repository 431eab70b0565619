"""The published schemas and the draft's text, which live beside the checkout where they are at hand."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import orjson
import pytest

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
PUBLISHED = {"awas": "awas/ai-actions-schema.json", "agent_json": "agent-json/agent-json.schema.v0.2.json"}

Check = Callable[[object], None]


@pytest.fixture(scope="session")
def matches_awas() -> Check:
    """Fails with the first violation of the published AWAS 1.1 schema."""
    return _checker("awas")


@pytest.fixture(scope="session")
def matches_agent_json() -> Check:
    """Fails with the first violation of the published agent.json 0.2 schema."""
    return _checker("agent_json")


def _checker(name: str) -> Check:
    schema: Any = orjson.loads(shared_file(f"fixtures/{PUBLISHED[name]}").read_bytes())
    return jsonschema_rs.Draft7Validator(schema, validate_formats=True).validate


def shared_file(path: str) -> Path:
    found = SHARED / path
    if not found.is_file():
        pytest.skip(f"{path} is not beside this checkout: nothing to compare with")
    return found
