"""Whole conversations of callers without a cookie jar: `sessions.txt`. --golden writes it anew; read the change."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client import TestClient
from tests.guarded import KEYS
from tests.plugins.mcp.mcp_messages import without_cookie_jar
from tests.plugins.sessions.test_sessions import make_app
from tests.transcript import compare

CHANGING = [
    (r"(?<=/jobs/)[\w-]{22}", "JOB"),
    (r'(?<="job_id":")[\w-]{22}', "JOB"),
    (r"(?<=awp-session: )\S+", "TOKEN"),
    (r"(?<=session=)[\w.=+\-]{20,}", "COOKIE"),
]


@pytest.fixture
def client() -> Iterator[TestClient]:
    _, app = make_app(secret_keys=KEYS, plugins=())
    with TestClient(app, base_url="https://shop.example") as client:
        yield without_cookie_jar(client)


def test_conversations_in_sessions(client, request):
    compare(Path(__file__).parent / "sessions.txt", client, request, *CHANGING)
