"""Whole conversations of callers without a cookie jar: `sessions*.txt`. --golden writes them anew; read the change."""

from pathlib import Path

import pytest

from awp_publish import Overview
from tests.client import TestClient
from tests.guarded import KEYS
from tests.plugins.mcp.mcp_messages import without_cookie_jar
from tests.plugins.sessions.test_sessions import make_app
from tests.transcript import compare

CHANGING = [
    (r"(?<=/jobs/)[\w-]{22}", "JOB"),
    (r'(?<="job_id":")[\w-]{22}', "JOB"),
    (r"(?<=awp-session: )\S+", "TOKEN"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}", "UUID"),
    (r"(?<=[cC]ontextId\":\")[\w-]{40,}|(?<=awp-session\":\")[\w-]{40,}", "TOKEN"),
    (r"(?<=session=)[\w.=+\-]{20,}", "COOKIE"),
]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("sessions", {"plugins": ()}),
        ("sessions_inside", {"plugins": (), "placed": "inside"}),
        ("sessions_of_doors", {"plugins": ("a2a", Overview())}),
    ],
)
def test_conversations_in_sessions(name, options, request):
    _, app = make_app(secret_keys=KEYS, **options)
    with TestClient(app, base_url="https://shop.example") as client:
        path, has_tasks = Path(__file__).parent / f"{name}.txt", "a2a" in options["plugins"]
        compare(path, without_cookie_jar(client), request, *CHANGING, sorts=has_tasks)
