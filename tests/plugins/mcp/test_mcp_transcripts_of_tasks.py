"""What the door of MCP answers about tasks, events, pages, skills and cards, whole: `conversations`.

They are in the words of `tests/transcript.py`. A line `> MCP METHOD PARAMS` sends a message of 2026-07-28 to the door,
of a client that can do what `can` says: `| can: tasks elicitation cards`, or of an older revision: `| in: 2025-11-25`.
A line `> HOOK NUMBER` shows what the receiver of webhooks got, once it is so much; $HOOK is its address.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from awp_publish.plugins.events import hook, webhooks
from awp_publish.plugins.mcp import events, tasks
from tests.client import TestClient
from tests.plugins.depot import make_depot
from tests.plugins.events.webhook_receiver import Receiver, receiving
from tests.plugins.everything import CHANGING
from tests.plugins.mcp.mcp_messages import MODERN, headers_of, message
from tests.transcript import compare

CAN: dict[str, dict[str, Any]] = {
    "tasks": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
    "cards": {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}},
    "odd_cards": {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html"]}}},
    "elicitation": {"elicitation": {}},
    "urls": {"elicitation": {"url": {}}},
}
TIMES = [
    (r'("(?:refreshBefore|lastDeliveryAt|failedSince)":)"[^"]+"', r'\1"..."'),
    (r"sub_[0-9a-f]{32}", "SUB"),
    (r'"cursor": ?"[^"$]+"', '"cursor":"..."'),
    (r"(\"ttlMs\":8640)\d{4}", r"\1...."),
    (r"((?:/jobs/|job_id\\?\":\\?\"|\"taskId\":\"))[\w-]{22}", r"\1JOB"),
    (r"evt_[\w-]+", "EVENT"),
    (r"127\.0\.0\.1:\d+", "RECEIVER"),
    (r"(<script[^>]*>).{2000,}?(?=</script>)", r"\1..."),
]
SECRET = "whsec_" + "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="


@dataclass
class Wire:
    """A client, to which messages of MCP are requests like others."""

    client: TestClient
    receiver: Receiver

    @property
    def cookies(self) -> Any:
        return self.client.cookies

    def request(self, method: str, address: str, *, content: bytes, headers: dict[str, str], **options: Any) -> Any:
        headers = dict(headers)
        if method == "HOOK":
            return self._received(int(address))
        if method != "MCP":
            return self.client.request(method, address, content=content, headers=headers, **options)
        text = content.decode().replace("$HOOK", self.receiver.url).replace("$SECRET", SECRET)
        params, version = json.loads(text or "{}"), headers.pop("in", MODERN)
        capabilities: dict[str, Any] = {}
        for name in headers.pop("can", "").split():
            for key, value in CAN[name].items():
                capabilities[key] = {**capabilities.get(key, {}), **value}
        meta = params.pop("_meta", None)
        sent = message(address, params, version=version, meta=meta, capabilities=capabilities)
        named = {"mcp-name": params["taskId"]} if "taskId" in params else {}
        headers = {"content-type": "application/json", **headers_of(sent, version), **named, **headers}
        return self.client.request("POST", "/mcp", content=json.dumps(sent).encode(), headers=headers, **options)

    def _received(self, count: int) -> httpx2.Response:
        shown = [
            [each.path, sorted(name for name in each.headers if name.startswith(("x-", "webhook"))), each.json]
            for each in self.receiver.wait(count)
        ]
        return httpx2.Response(200, text="\n".join(json.dumps(each) for each in shown))


@pytest.mark.parametrize("name", ["tasks", "events", "webhooks", "reading"])
def test_conversations_about_tasks_go_as_in_the_transcripts(name, tmp_path, monkeypatch, request):
    monkeypatch.setattr(webhooks, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(hook, "PAUSES", (0.02, 0.02, 0.02))
    monkeypatch.setattr(events, "STREAM_SECONDS", -1.0)
    monkeypatch.setattr(events, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(tasks, "YOUNG_SECONDS", 10**6)
    app = make_depot(["mcp", "events", "pages", "prompts", "skills"], tmp_path)
    with receiving(monkeypatch) as receiver, TestClient(app, base_url="https://shop.example") as client:
        wire: Any = Wire(client, receiver)
        path = Path(__file__).parent / "conversations" / f"{name}.txt"
        compare(path, wire, request, *TIMES, *CHANGING)
