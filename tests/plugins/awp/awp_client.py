"""A client of the AWP door for tests: one WebSocket, requests as text frames or, packed, as binary ones."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any

import msgpack
from starlette.testclient import WebSocketTestSession

from tests.client import TestClient

HELLO = {"client_name": "tests", "client_version": "1", "awp_version": "0.1"}


class AwpClient:
    """Asks, and gives the whole response. `say` sends only; `hear` reads the next message."""

    def __init__(self, socket: WebSocketTestSession, *, is_packed: bool = False) -> None:
        self.socket = socket
        self._is_packed = is_packed
        self._ids = count(1)

    @classmethod
    @contextmanager
    def open(
        cls,
        client: TestClient,
        headers: Mapping[str, str] | None = None,
        *,
        is_packed: bool = False,
        path: str = "/awp",
    ) -> Iterator["AwpClient"]:
        """A connection before its handshake."""
        with client.websocket_connect(path, headers={"host": "shop.example", **(headers or {})}) as socket:
            yield cls(socket, is_packed=is_packed)

    @classmethod
    @contextmanager
    def greeted(
        cls, client: TestClient, headers: Mapping[str, str] | None = None, **hello: Any
    ) -> Iterator["AwpClient"]:
        """A connection after its handshake."""
        with cls.open(client, headers) as opened:
            assert "result" in opened.ask("awp.hello", {**HELLO, **hello})
            yield opened

    def say(self, method: str, params: Mapping[str, Any] | None = None, *, key: str | None = None, **more: Any) -> str:
        """Send a request, and give its id."""
        request_id = f"r{next(self._ids)}"
        meta = {} if key is None else {"meta": {"idempotency_key": key}}
        message = {"id": request_id, "type": "request", "method": method, "params": params or {}, **meta, **more}
        if self._is_packed:
            self.socket.send_bytes(msgpack.packb(message))
        else:
            self.socket.send_text(json.dumps(message))
        return request_id

    def hear(self) -> Any:
        """The next message."""
        if self._is_packed:
            return msgpack.unpackb(self.socket.receive_bytes())
        return json.loads(self.socket.receive_text())

    def ask(self, method: str, params: Mapping[str, Any] | None = None, **more: Any) -> Any:
        """The response to a request."""
        request_id = self.say(method, params, **more)
        answer = self.hear()
        assert (answer["id"], answer["type"]) == (request_id, "response")
        assert ("result" in answer) != ("error" in answer)
        return answer

    def do(self, method: str, **params: Any) -> Any:
        """The result of a request that succeeds."""
        answer = self.ask(method, params)
        assert "result" in answer, answer
        return answer["result"]

    def fail(self, method: str, **params: Any) -> Any:
        """The error of a request that does not."""
        answer = self.ask(method, params)
        assert "error" in answer, answer
        return answer["error"]

    def create(self, **params: Any) -> str:
        """A new session's id."""
        return str(self.do("session.create", **params)["session_id"])
