"""An application called in process by whoever is no coroutine: on an event loop in a thread of its own.

The application's lifespan is around all calls, as a server has it around all requests.
"""

import asyncio
import json
import threading
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from awp_publish.serve.http import AsgiApp, Message, Scope
from awp_publish.serve.lifespan import running

T = TypeVar("T")


class TalkFailed(Exception):
    """A WebSocket that was not opened, or closed too early; with status and body of its refusal, 0 without one."""

    def __init__(self, detail: str, status: int = 0, body: bytes = b"") -> None:
        super().__init__(detail)
        self.status, self.body = status, body


@dataclass(frozen=True, slots=True)
class Response:
    """An answer over HTTP; the names of its headers are lower-case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The JSON of the body; of an event stream, that of its last event."""
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            lines = [line[5:] for line in self.body.decode().splitlines() if line.startswith("data:")]
            return json.loads(next(line for line in reversed(lines) if line.strip()))
        return json.loads(self.body)


class InProcess:
    """An application on an event loop in a thread of its own, with its lifespan around all calls."""

    prefix = ""

    def __init__(self, app: AsgiApp, timeout: float) -> None:
        self._app = app
        self._timeout = timeout
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self._state: Mapping[str, object] = {}

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Response:
        return self._run(self._request(method, path, headers, body))

    def talk(self, path: str, headers: Mapping[str, str], messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return self._run(talk(self._app, {**self._scope("websocket", path, headers), "subprotocols": []}, messages))

    def close(self) -> None:
        with self._lock:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._over.set)
                self._thread.join()
                self._loop = None

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        with self._lock:
            if self._loop is None:
                try:
                    self._start()
                except BaseException:
                    work.close()
                    raise
        return asyncio.run_coroutine_threadsafe(work, cast(asyncio.AbstractEventLoop, self._loop)).result(self._timeout)

    def _start(self) -> None:
        started = threading.Event()
        failures: list[BaseException] = []

        async def live() -> None:
            self._over = asyncio.Event()
            try:
                async with running(self._app) as state:
                    self._state, self._loop = state, asyncio.get_running_loop()
                    started.set()
                    await self._over.wait()
            except BaseException as error:
                failures.append(error)
            finally:
                started.set()

        self._thread = threading.Thread(target=lambda: asyncio.run(live()), name="awp_publish client", daemon=True)
        self._thread.start()
        started.wait()
        if failures:
            raise failures[0]

    def _scope(self, kind: str, path: str, headers: Mapping[str, str]) -> Scope:
        plain, _, query = path.partition("?")
        fields = {"host": "localhost", **headers}
        return {
            "type": kind,
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "scheme": "https" if kind == "http" else "wss",
            "path": plain,
            "raw_path": plain.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in fields.items()],
            "client": ("127.0.0.1", 50000),
            "server": ("localhost", 443),
            "state": dict(self._state),
            "extensions": {},
        }

    async def _request(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Response:
        scope = {**self._scope("http", path, {**headers, "content-length": str(len(body))}), "method": method}
        start: Message = {}
        pieces: list[bytes] = []
        asked, over = False, asyncio.Event()

        async def receive() -> Message:
            nonlocal asked
            if not asked:
                asked = True
                return {"type": "http.request", "body": body, "more_body": False}
            await over.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            elif message["type"] == "http.response.body":
                pieces.append(message.get("body", b""))
                if not message.get("more_body", False):
                    over.set()

        await self._app(scope, receive, send)
        fields = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in start.get("headers", ())}
        return Response(start.get("status", 500), fields, b"".join(pieces))


async def talk(app: AsgiApp, scope: Scope, messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Open a WebSocket, and send each message after the answer to the one before; return them, up to an error.

    Raises TalkFailed.
    """
    inbox: asyncio.Queue[Message] = asyncio.Queue()
    outbox: asyncio.Queue[Message] = asyncio.Queue()
    inbox.put_nowait({"type": "websocket.connect"})
    task = asyncio.ensure_future(app(scope, inbox.get, outbox.put))

    async def hear() -> Message:
        """Return the next message. Raises TalkFailed where the connection is closed, or the application has ended."""
        heard = asyncio.ensure_future(outbox.get())
        waited: set[asyncio.Future[Any]] = {heard, task}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if not heard.done():
            heard.cancel()
            raise TalkFailed("The application has no WebSocket at this address.")
        message = heard.result()
        if message["type"] == "websocket.http.response.start":
            raise TalkFailed("The connection was refused.", message["status"], (await hear()).get("body", b""))
        if message["type"] == "websocket.close":
            raise TalkFailed("The connection was refused.")
        return message

    told: list[dict[str, Any]] = []
    try:
        await hear()  # accepted
        for message in messages:
            inbox.put_nowait({"type": "websocket.receive", "text": json.dumps(message)})
            while True:
                heard = json.loads((await hear())["text"])
                if heard.get("id") == message["id"]:
                    break
            told.append(heard)
            if "error" in heard:
                break
    finally:
        inbox.put_nowait({"type": "websocket.disconnect", "code": 1000})
        await asyncio.wait({task}, timeout=5)
        task.cancel()
        await asyncio.wait({task})
    return told
