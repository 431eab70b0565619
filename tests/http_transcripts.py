"""Conversations over HTTP, whole.

A line `> METHOD PATH | HEADERS | BODY` is a request, with its headers and body in JSON where it has them; `>~` repeats
it until a job has ended, `>+` until it shows progress. The answer follows, without what differs each time. $location,
$session, $receipt, $confirmation and $job stand for the last ones of an answer.
"""

import json
import re
import time
from typing import Any, Final
from urllib.parse import urlsplit

from tests.client import TestClient

UNTOLD: Final = frozenset({"content-length", "date", "vary"})
CHANGING: Final = (
    (r'"(request_id|trace_id|server_version|worker)": "[^"]+"', r'"\1": "..."'),
    (r'"(created|updated|expires|expires_at|at)": "[^"]+"', r'"\1": "..."'),
    (r"#[0-9a-f]{32}", "#ID"),
    (r"(?<=;t=)\d+|(?<=ratelimit-reset: )\d+|(?<=retry-after: )\d+", "N"),
    (r"(?<=x-request-id: )\S+", "ID"),
    (r"(?<=/jobs/)[\w-]{22}", "JOB"),
    (r'(?<="job_id": ")[\w-]{22}', "JOB"),
    (r"(?<=awp-(?:session|receipt): )\S+", "TOKEN"),
    (r'(?<="token": ")[^"]+', "TOKEN"),
    (r"(?<=session=)[\w.=+\-]{20,}", "COOKIE"),
)


def play(text: str, client: TestClient) -> str:
    """Send what a transcript sends, and return it with the answers."""
    values: dict[str, str] = {}
    lines: list[str] = []
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith(">"):
            answer = _send(line, client, values)
            for pattern, replacement in CHANGING:
                answer = re.sub(pattern, replacement, answer)
            lines += [line, answer]
        elif not line or line.startswith("#"):
            lines.append(line)
    return "\n".join(lines) + "\n"


def _send(line: str, client: TestClient, values: dict[str, str]) -> str:
    sent = line.partition(" ")[2]
    for name, value in values.items():
        sent = sent.replace(f"${name}", value)
    target, *rest = sent.split(" | ")
    method, path = target.split(" ")
    headers = json.loads(rest[0]) if rest else {}
    body = {"json": json.loads(rest[1])} if rest[1:] else {}
    answer = client.request(method, path, headers=headers, **body)
    end = time.monotonic() + 60
    while (
        line[1] in "~+"
        and answer.json()["status"] in ("accepted", "running")
        and (line[1] == "~" or "progress" not in answer.json())
    ):
        assert time.monotonic() < end, answer.text
        answer = client.request(method, path, headers=headers)
    told = [f"{name}: {value}" for name, value in sorted(answer.headers.multi_items()) if name not in UNTOLD]
    text, parsed = answer.text, None
    if "json" in answer.headers.get("content-type", "") and text:
        parsed = answer.json()
        text = json.dumps(parsed, ensure_ascii=False)
    values |= _values_of(answer.headers, parsed)
    return "\n".join(filter(None, [f"{answer.status_code} {', '.join(told)}".rstrip(), text.rstrip("\n")]))


def _values_of(headers: Any, parsed: Any) -> dict[str, str]:
    members = parsed if isinstance(parsed, dict) else {}
    found = {
        "location": urlsplit(headers.get("location", "")).path,
        "session": headers.get("awp-session"),
        "receipt": headers.get("awp-receipt"),
        "job": members.get("job_id"),
        "confirmation": members.get("confirmation", {}).get("token"),
    }
    return {name: value for name, value in found.items() if value}
