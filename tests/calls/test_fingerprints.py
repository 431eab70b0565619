"""By which parts of a request a caller is distinguished who is not known."""

import base64
import json
from typing import Any

from awp_publish.calls.call import Credentials
from awp_publish.calls.fingerprints import shown_by
from awp_publish.model import RouteCredential

SESSION = {"user": "ann"}
SIGNED = base64.b64encode(json.dumps(SESSION).encode()).decode() + ".time.signature"
HEADERS = {
    "authorization": "Bearer t",
    "x-api-key": "k",
    "apikey": "k",
    "x-auth-token": "t",
    "my-secret": "s",
    "user": "ann",
    "x-user-id": "7",
    "session-id": "s",
    "x-session": "s",
    "x-identity": "i",
    "credentials": "c",
}
COOKIES = f'sid=1; _ga=2; AWSALB=3; __cf_bm=4; csrftoken=5; messages=6; session="{SIGNED}"; =7; lang=de'
CASES: list[tuple[Credentials, dict[str, Any], str]] = [
    (Credentials(HEADERS), {}, "\n".join(sorted(f"{name}: {value}" for name, value in HEADERS.items()))),
    (
        Credentials(
            dict.fromkeys(
                ["accept", "idempotency-key", "sec-token", "mcp-session-id", "x-csrf-token", "user-agent", "monkey"],
                "x",
            )
        ),
        {},
        "",
    ),
    (Credentials({"x-mine": "a"}), {"credentials": [RouteCredential("header", "x-mine")]}, "x-mine: a"),
    (Credentials({}, query=b"k=1&q=2"), {"credentials": [RouteCredential("query", "k")]}, "query k=1"),
    (Credentials({}, query=b"k=1&q=2"), {}, ""),
    (Credentials({"cookie": COOKIES}), {}, ""),
    (Credentials({"cookie": COOKIES}), {"credentials": [RouteCredential("cookie", "lang")]}, "cookie lang=de"),
    (
        Credentials({"cookie": COOKIES}, session=SESSION),
        {"cookies": True, "session": False},
        "cookie lang=de\ncookie sid=1",
    ),
    (
        Credentials({"cookie": COOKIES}, session={"user": "ben"}),
        {"cookies": True},
        f'cookie lang=de\ncookie session="{SIGNED}"\ncookie sid=1\n{{"user": "ben"}}',
    ),
    (
        Credentials({"cookie": "a=[[.x; b=?"}, session=SESSION),
        {"cookies": True},
        'cookie a=[[.x\ncookie b=?\n{"user": "ann"}',
    ),
    (Credentials({"cookie": "b=2; a=1"}), {"cookies": True}, "cookie a=1\ncookie b=2"),
    (Credentials({"cookie": "a=1; b=2"}), {"cookies": True}, "cookie a=1\ncookie b=2"),
    (Credentials({}, session=SESSION), {}, '{"user": "ann"}'),
    (Credentials({}, session=SESSION), {"session": False}, ""),
    (Credentials({}, session={}), {}, ""),
]


def test_callers_are_distinguished_by_their_credentials():
    for presented, options, words in CASES:
        assert shown_by(presented, **options) == words, (presented, options)
