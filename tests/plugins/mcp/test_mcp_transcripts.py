"""What the door of MCP answers, whole: `transcripts`, in the words of `tests/transcript.py`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client import TestClient
from tests.plugins.everything import CHANGING, make_everything
from tests.transcript import compare


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(make_everything(["mcp", "prompts", "skills"]), base_url="https://shop.example") as client:
        yield client


@pytest.mark.parametrize("name", ["classic", "modern"])
def test_the_mcp_door_answers_as_in_the_transcripts(name, client, request):
    compare(Path(__file__).parent / "transcripts" / f"{name}.txt", client, request, *CHANGING)
