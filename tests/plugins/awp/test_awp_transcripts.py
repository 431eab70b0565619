"""Whole conversations with the AWP door: `tests/plugins/awp/transcripts`. --golden writes them anew; read the change.

A line `# NAME` opens a connection of a caller, `# packed` one in MessagePack. `> METHOD PARAMS` is a request, with what
else its message has behind a bar, and `>> TEXT` a frame as it is. Answers follow, without what differs each time.
$session_id, $resume_token and $state stand for the last ones that were given.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from awp_publish import BearerToken, Principal
from tests.client import TestClient
from tests.guarded import KEYS
from tests.plugins.awp.awp_client import AwpClient
from tests.plugins.awp.awp_site import publish
from tests.plugins.awp.test_awp_skills import make_shop

TRANSCRIPTS = Path(__file__).parent / "transcripts"
CALLERS = {
    "ann": Principal("ann", frozenset({"buy"})),
    "reader": Principal("reader", frozenset({"som:read", "session:write", "buy"})),
}
CHANGING = [
    (r'"(trace_id|request_id)": "[0-9a-f]{32}"', r'"\1": "ID"'),
    (r'"(span_id|resume_token|state|nonce|challenge|server_version)": "[^"]+"', r'"\1": "..."'),
    (r'"version": "\d+\.\d+\.\d+"', '"version": "..."'),
    (r'"(job_id|created|updated)": "[^"]+"', r'"\1": "..."'),
    (r"s_[0-9a-f]{8,}", "s_ID"),
    (r"#[0-9a-f]{32}", "#ID"),
    (r'"(uptime_ms|load_ms|fetch_ms|pipeline_ms|expires_at)": [\d.]+', r'"\1": 0'),
    (r"/jobs/[\w.-]+", "/jobs/ID"),
]


def play(text: str, client: Any) -> str:
    """Send what a transcript sends, and return it with the answers."""
    made: list[str] = []
    values: dict[str, str] = {}
    for conversation in re.split(r"^(?=# )", text, flags=re.MULTILINE)[1:]:
        name, *lines = conversation.splitlines()
        headers = {"authorization": f"Bearer {name[2:]}"} if name[2:] in CALLERS else None
        made.append(name)
        with AwpClient.open(client, headers, is_packed=name == "# packed") as caller:
            for line in lines:
                if line.startswith(">"):
                    answer = json.dumps(send(caller, line, values), ensure_ascii=False)
                    for pattern, replacement in CHANGING:
                        answer = re.sub(pattern, replacement, answer)
                    made += [line, answer]
        made.append("")
    return "\n".join(made)


def send(caller: AwpClient, line: str, values: dict[str, str]) -> Any:
    sent = line.partition(" ")[2]
    for name, value in values.items():
        sent = sent.replace(f"${name}", value)
    if line.startswith(">> "):
        caller.socket.send_text(sent)
        return caller.hear()
    method, _, rest = sent.partition(" ")
    params, _, more = rest.partition(" | ")
    answer = caller.ask(method, json.loads(params or "{}"), **json.loads(more or "{}"))
    given = answer.get("result", {})
    values |= {name: given[name] for name in ("session_id", "resume_token", "state") if name in given}
    return answer


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    app = publish(make_shop(authenticate=BearerToken(CALLERS), secret_keys=KEYS))
    with TestClient(app, base_url="https://shop.example") as client:
        yield client


@pytest.fixture
def compare(client, request):
    def compare(name: str) -> None:
        path = TRANSCRIPTS / f"{name}.txt"
        transcript = play(path.read_text(), client)
        if request.config.getoption("--golden"):
            path.write_text(transcript)
        assert transcript == path.read_text()

    return compare


def test_handshakes_go_as_in_the_transcripts(compare):
    compare("handshakes")


def test_frames_that_are_requests_and_others(compare):
    compare("frames")


def test_sessions_go_as_in_the_transcripts(compare):
    compare("sessions")


def test_pages_are_browsed_as_in_the_transcripts(compare):
    compare("pages")


def test_skills_are_run_as_in_the_transcripts(compare):
    compare("skills")
