"""Conversations over HTTP, whole, in files beside the tests that play them. --golden writes them anew; read the change.

`# TITLE` begins one, without cookies. `> METHOD ADDRESS BODY | NAME: VALUE` is a request; a body that begins with a
brace or bracket is JSON, one like b'...' bytes, another one a form. Below it stands its answer, indented: status,
headers, and body; not that of a request with `>>`, of which `? PATTERN` shows a part; one with `>~` is repeated until a
job has ended, with `>+` until it shows progress. `= NAME PATTERN` takes from an answer a value, for which $NAME stands.
A status in a pattern is written `\\A200`: its digits may be in an id too.
"""

import json
import re
import time
from ast import literal_eval
from collections.abc import Callable, Sequence
from difflib import unified_diff
from html import escape
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import quote, quote_plus

import pytest

from tests.client import TestClient

CHANGING: Final = [
    (r"(x-request-id: |\"request_id\":\"|#|nonce[-=]\"?)[\w-]{16,}", r"\1ID"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)", "TIME"),
    (r"\.?eJ[\w-]{20,}\.[\w-]+|eyJ[\w-]{20,}\.[\w-]+", "TOKEN"),
    (r"content-length: [1-9]\d*", "content-length: N"),
    (r"(etag|last-modified|link): .*", r"\1: ..."),
    (r"(access-control-expose-headers: X-Request-Id).*", r"\1, ..."),
]

SECONDS: Final = 60.0
"""In which a job ends or shows progress."""

Waits: TypeAlias = Callable[[Any], bool]


def _job(answer: Any) -> dict[str, Any]:
    """Return a job, or a task of MCP or A2A."""
    body: dict[str, Any] = answer.json()
    return body if "status" in body else body.get("result", {})


def _runs(answer: Any) -> bool:
    status = _job(answer).get("status")
    state = status.get("state") if isinstance(status, dict) else status
    return state in ("accepted", "running", "working", "TASK_STATE_SUBMITTED", "TASK_STATE_WORKING")


WAITS: Final[dict[str, Waits]] = {
    ">": lambda answer: False,
    ">>": lambda answer: False,
    ">~": _runs,
    ">+": lambda answer: _runs(answer) and _job(answer).keys().isdisjoint({"progress", "statusMessage"}),
}


def play(text: str, client: TestClient, changing: Sequence[tuple[str, str]] = (), *, sorts: bool = False) -> str:
    """Send what a transcript sends, and return it with the answers."""
    made: list[str] = []
    values: list[tuple[str, str]] = []
    answer = ""
    for line in text.splitlines():
        if not line or line.startswith("  "):
            continue
        made += ["", line] if line.startswith("# ") and made else [line]
        if line.startswith("# "):
            client.cookies.clear()
        elif line.startswith(">"):
            mark, _, sent = line.partition(" ")
            answer = _send(client, sent, dict(values), WAITS[mark], sorts=sorts)
            made += _indented(answer) if mark != ">>" else []
        elif line.startswith("? "):
            made += _indented(_search(line[2:], answer)[0])
        elif line.startswith("= "):
            name, pattern = line[2:].split(" ", 1)
            values.append((name, _search(pattern, answer)[1]))
    for number, line in enumerate(made):
        if line.startswith("  "):
            for name, value in sorted(values, key=lambda pair: -len(pair[1])):
                for spelling in {value, quote(value, safe=""), quote_plus(value), escape(value)}:
                    line = line.replace(spelling, f"${name}")
            for pattern, replacement in (*changing, *CHANGING):
                line = re.sub(pattern, replacement, line)
            made[number] = line
    return "\n".join(made) + "\n"


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines() if line.strip()]


def _search(pattern: str, text: str) -> re.Match[str]:
    found = re.search(pattern, text, re.DOTALL)
    assert found is not None, f"{pattern}\n{text}"
    return found


def _send(client: TestClient, line: str, values: dict[str, str], waits: Waits, *, sorts: bool) -> str:
    request, *fields = line.split(" | ")
    method, address, *rest = request.split(" ", 2)
    body = rest[0] if rest else ""
    for name, value in sorted(values.items(), reverse=True):
        address, body = address.replace(f"${name}", quote(value, safe="")), body.replace(f"${name}", value)
        fields = [field.replace(f"${name}", value) for field in fields]
    headers = {name.lower(): text for name, text in (field.split(": ", 1) for field in fields)}
    content = literal_eval(body) if body.startswith("b'") else body.encode()
    if body:
        kind = "application/json" if body[0] in "{[" else "application/x-www-form-urlencoded"
        headers = {"content-type": kind, **headers}
    end = time.monotonic() + SECONDS
    while waits(answer := client.request(method, address, content=content, headers=headers, follow_redirects=False)):
        assert time.monotonic() < end, answer.text
    lines = [f"{name}: {value}" for name, value in answer.headers.multi_items()]
    text = answer.content.decode(errors="backslashreplace")
    if sorts:
        text = re.sub(r"(?m)^(data: )?(\{.*)$", _sorted, text)
    shown = re.sub(r"(<style[^>]*>).*?(?=</style>)", r"\1", text, flags=re.DOTALL)
    return "\n".join([str(answer.status_code), *lines, shown])


def _sorted(line: re.Match[str]) -> str:
    try:
        value = json.loads(line[2])
    except ValueError:
        return line[0]
    return (line[1] or "") + json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def compare(
    path: Path, client: TestClient, request: pytest.FixtureRequest, *changing: tuple[str, str], sorts: bool = False
) -> None:
    """Fail unless the answers are those that a transcript has; with --golden, write them.

    If it `sorts`, the members of JSON have no order.
    """
    transcript = play(path.read_text(), client, changing, sorts=sorts)
    if request.config.getoption("--golden"):
        path.write_text(transcript)
    written = path.read_text()
    changes = unified_diff(written.splitlines(), transcript.splitlines(), n=0, lineterm="")
    assert transcript == written, "\n".join(changes)
