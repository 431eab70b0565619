"""A receiver of webhooks for tests: it verifies what it is sent, answers as it is told, and keeps all of it."""

import asyncio
import base64
import hmac
import json
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from awp_publish.plugins.events.webhooks import ORIGINS_VARIABLE


@dataclass(frozen=True)
class Received:
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Receiver:
    """What was received, beside verifications, whose status is `verification`. `statuses` are those of the next
    answers, then it is 200.

    Where the path begins with `stalls`, there is no answer until it `goes_on`.
    """

    url: str
    received: list[Received] = field(default_factory=list)
    verified: list[Received] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    echoes: bool = True
    verification: int = 200
    stalls: str = ""
    goes_on: threading.Event = field(default_factory=threading.Event)
    _news: threading.Condition = field(default_factory=threading.Condition)

    def take(self, one: Received) -> tuple[int, bytes]:
        answer = one.json
        if answer.get("type") == "verification":
            self.verified.append(one)
            return self.verification, json.dumps(
                {"challenge": answer["challenge"] if self.echoes else "something else"}
            ).encode()
        with self._news:
            self.received.append(one)
            self._news.notify_all()
            status = self.statuses.pop(0) if self.statuses else 200
        if self.stalls and one.path.startswith(self.stalls):
            self.goes_on.wait(30)
        return status, b""

    def wait(self, count: int, seconds: float = 60) -> list[Received]:
        """Return what was received, once it is so many."""
        with self._news:
            assert self._news.wait_for(lambda: len(self.received) >= count, seconds), self.received
        return self.received

    async def wait_for(self, count: int, seconds: float = 60) -> list[Received]:
        """Return the same, without keeping the event loop waiting."""
        return await asyncio.to_thread(self.wait, count, seconds)


def new_secret() -> str:
    return f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"


def is_signed(one: Received, secret: str) -> bool:
    """Whether one of the signatures is that of the secret, as Standard Webhooks has it."""
    headers, key = one.headers, base64.b64decode(secret.removeprefix("whsec_"))
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 300
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + one.body
    expected = "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
    return any(hmac.compare_digest(expected, given) for given in headers["webhook-signature"].split())


@contextmanager
def receiving(monkeypatch: Any, *, trusted: bool = True) -> Iterator[Receiver]:
    """A receiver at an address of this machine, which sites of this test may send to."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, answer = receiver.take(Received(self.path, headers, body))
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("location", f"{receiver.url}/elsewhere")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver = Receiver(f"http://127.0.0.1:{server.server_port}")
    if trusted:
        monkeypatch.setenv(ORIGINS_VARIABLE, receiver.url)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
