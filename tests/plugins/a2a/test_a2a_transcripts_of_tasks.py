"""What the door of A2A answers about jobs, events, streams and push notifications, whole: `conversations`.

They are in the words of `tests/transcript.py`. A line `> SAY SKILL INPUT` sends a message with a call, `| task: ID` in
a task, `| context: ID` in a context, `| how: now` without waiting, `| how: stream` for a stream; `> TEXT TASK WORDS`
sends words; `> A2A METHOD PARAMS` any request. `> HOOK NUMBER` shows what a receiver of webhooks got, once it is so
much; $HOOK is its address.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from awp_publish.plugins.a2a import event_tasks, handler, pushes
from awp_publish.plugins.events import hook, webhooks
from tests.client import TestClient
from tests.plugins.depot import make_depot
from tests.plugins.events.webhook_receiver import Receiver, receiving
from tests.plugins.everything import CHANGING
from tests.transcript import compare

TIMES = [
    (r'("nextPageToken":")[^"$]+', r"\1..."),
    (r"(evt|a2a)_[\w-]+", r"\1_..."),
    (r"whsec_[\w+/=]{40,}", "KEY"),
    (r"127\.0\.0\.1:\d+", "RECEIVER"),
    (r'"id":"[\w-]{16}"', '"id":"ID"'),
    (r"((?:/jobs/|job_id\\?\":\\?\"))[\w-]{22}", r"\1JOB"),
    (r'("timestamp": ?)"[^"]+"', r'\1"..."'),
]


@dataclass
class Wire:
    """A client, to which messages of A2A are requests like others."""

    client: TestClient
    receiver: Receiver

    @property
    def cookies(self) -> Any:
        return self.client.cookies

    def request(self, method: str, address: str, *, content: bytes, headers: dict[str, str], **options: Any) -> Any:
        headers = {"a2a-version": "1.0", "content-type": "application/json", **headers}
        text = content.decode().replace("$HOOK", self.receiver.url)
        params: Any = json.loads(text) if text.startswith("{") and method in ("SAY", "A2A") else text
        match method:
            case "HOOK":
                return self._received(int(address))
            case "SAY":
                part = {"data": {"skill": address, **({"input": params} if params else {})}}
                method, address, params = "A2A", "SendMessage", {"message": {"parts": [part]}}
            case "TEXT":
                method, address, params = (
                    "A2A",
                    "SendMessage",
                    {"message": {"parts": [{"text": params}], "taskId": address}},
                )
        if method != "A2A":
            return self.client.request(method, address, content=text.encode(), headers=headers, **options)
        if isinstance(message := params.get("message"), dict):
            message |= {"messageId": "m-1", "role": "ROLE_USER"}
            for name, member in (("task", "taskId"), ("context", "contextId")):
                message |= {member: headers.pop(name)} if name in headers else {}
        how = headers.pop("how", "")
        address = "SendStreamingMessage" if how == "stream" else address
        params |= {"configuration": {"returnImmediately": True}} if how == "now" else {}
        sent = {"jsonrpc": "2.0", "id": 1, "method": address, "params": params}
        return self.client.request("POST", "/a2a", content=json.dumps(sent).encode(), headers=headers, **options)

    def _received(self, count: int) -> httpx2.Response:
        names = ("x-a2a-notification-token", "authorization")
        shown = [
            [each.path, {name: each.headers[name] for name in names if name in each.headers}, each.json]
            for each in self.receiver.wait(count)
        ]
        return httpx2.Response(200, text="\n".join(json.dumps(each, sort_keys=True) for each in shown))


@pytest.mark.parametrize("name", ["jobs", "events", "pushes", "odd"])
def test_conversations_about_tasks_go_as_in_the_transcripts(name, tmp_path, monkeypatch, request):
    monkeypatch.setattr(webhooks, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(hook, "PAUSES", (0.02, 0.02, 0.02))
    monkeypatch.setattr(pushes, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(event_tasks, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(handler, "MAX_SUBSCRIPTION", 0.0)
    app = make_depot(["a2a", "events", "pages"], tmp_path)
    with receiving(monkeypatch) as receiver, TestClient(app, base_url="https://shop.example") as client:
        wire: Any = Wire(client, receiver)
        path = Path(__file__).parent / "conversations" / f"{name}.txt"
        compare(path, wire, request, *TIMES, *CHANGING, sorts=True)
