"""What the door of A2A answers, whole: `transcripts`, in the words of `tests/transcript.py`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client import TestClient
from tests.plugins.everything import make_everything
from tests.transcript import compare

CHANGING = [
    (r"(ratelimit|x-ratelimit-reset|retry-after)(: |\":\").*?(?=\"|$)", r"\1\2..."),
    (r'"(parseError|credentials)":"[^"]+"', r'"\1":"..."'),
    (r'"id":"[\w-]{16}"', '"id":"ID"'),
    (r'"(expires_at|expiresAt|token|timestamp|createdAt|lastUpdatedAt|serverVersion|version)":"[^"$]+"', r'"\1":"..."'),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|\b[0-9a-f]{32}\b", "ID"),
    (r'("awp/?_?receipt": ?")[^"$]+', r"\1..."),
]


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(make_everything(["a2a", "prompts", "skills"]), base_url="https://shop.example") as client:
        yield client


@pytest.mark.parametrize("name", ["messages"])
def test_transcripts(name, client, request):
    compare(Path(__file__).parent / "transcripts" / f"{name}.txt", client, request, *CHANGING, sorts=True)
