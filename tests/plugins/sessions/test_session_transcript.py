"""Whole conversations of callers without a cookie jar: `sessions.txt`. --golden writes it anew; read the change."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client import TestClient
from tests.guarded import KEYS
from tests.http_transcripts import play
from tests.plugins.mcp.mcp_messages import without_cookie_jar
from tests.plugins.sessions.test_sessions import make_app


@pytest.fixture
def client() -> Iterator[TestClient]:
    _, app = make_app(secret_keys=KEYS, plugins=())
    with TestClient(app, base_url="https://shop.example") as client:
        yield without_cookie_jar(client)


def test_conversations_in_sessions(client, request):
    path = Path(__file__).parent / "sessions.txt"
    text = play(path.read_text(), client)
    if request.config.getoption("--golden"):
        path.write_text(text)
    assert text == path.read_text()
