"""Calls an application in process: by single requests, over a WebSocket, or from synchronous code."""

import asyncio
import json
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast
from urllib.parse import SplitResult, unquote_to_bytes, urlsplit

from awp_publish.calls.call import SESSION_HEADER
from awp_publish.http.exchange import (
    AsgiApp,
    Message,
    RawHeaders,
    Receive,
    Scope,
    Send,
    mount_of,
    read_fields,
    wait_for_disconnect,
)
from awp_publish.http.lifespan import running
from awp_publish.model import ROUTE_CALL

# --- A request to a page of this site, in process ---
# The request is made from scratch, so that middleware treats it as a visitor's; the caller decides on its credentials.
# No connection is opened to any host. Calls of actions use `dispatch` instead, which derives them from the client's own
# request.

FORWARDED: Final = frozenset({b"forwarded", b"x-forwarded-for", b"x-real-ip"})
"""Headers in which proxies name the client. They are also passed on with requests made for that client."""

DEFAULT_PORTS: Final = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request for a page. `path` is percent-encoded, and relative to the application's mount point."""

    origin: SplitResult
    path: bytes
    query: bytes
    headers: RawHeaders
    method: str = "GET"
    body: bytes = field(default=b"", repr=False)
    state: Mapping[str, object] = field(default_factory=dict)

    def scope(self, outer: Scope) -> Scope:
        """Return the ASGI scope, with the mount point and the client's address of the `outer` request."""
        mounted, origin = mount_of(outer), self.origin
        length = ((b"content-length", b"%d" % len(self.body)),) if self.body else ()
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": self.method,
            "scheme": origin.scheme,
            "root_path": outer.get("root_path", ""),
            "path": mounted + unquote_to_bytes(self.path).decode("utf-8", "replace") or "/",
            "raw_path": mounted.encode("utf-8") + self.path or b"/",
            "query_string": self.query,
            "headers": [*self.headers, *length],
            "client": outer.get("client"),
            "server": (origin.hostname or "", origin.port or DEFAULT_PORTS.get(origin.scheme, 80)),
            "state": dict(self.state),
            "extensions": {},  # server extensions for sending files would bypass `PageExchange.send`
        }

    def websocket(self, outer: Scope) -> Scope:
        """Return the scope of a WebSocket, with support for refusals with a body (ASGI, WebSocket Denial Response)."""
        scope = self.scope(outer)
        del scope["method"]
        scheme = "wss" if scope["scheme"] == "https" else "ws"
        extensions: dict[str, object] = {"websocket.http.response": {}}
        return {**scope, "type": "websocket", "scheme": scheme, "subprotocols": [], "extensions": extensions}


@dataclass(frozen=True, slots=True)
class PageAnswer:
    """The application's answer. `is_whole` is False if it was too long and only its beginning is here."""

    status: int
    headers: RawHeaders
    body: bytes = field(repr=False)
    is_whole: bool = True


class PageExchange:
    """The ASGI exchange of an in-process request: provides its body, collects at most `max_bytes` of the answer.

    The application sees a disconnect when the answer is complete or too long, when `hang_up()` is called, or when the
    client of the `outer` request disconnects. The future `answered` is done when the answer is.
    """

    __slots__ = ("_body", "_headers", "_left", "_max_bytes", "_outer", "_over", "_status", "answered")

    def __init__(self, body: bytes, max_bytes: int, outer: Receive | None = None) -> None:
        self.answered: asyncio.Future[PageAnswer] = asyncio.get_running_loop().create_future()
        self._left: bytes | None = body
        self._max_bytes = max_bytes
        self._outer = outer
        self._over = asyncio.Event()
        self._status = 500
        self._headers: RawHeaders = ()
        self._body = bytearray()

    async def receive(self) -> Message:
        if self._left is not None:
            body, self._left = self._left, None
            return {"type": "http.request", "body": body, "more_body": False}
        if self._outer is None:
            await self._over.wait()
        else:
            async with asyncio.TaskGroup() as group:
                ends: tuple[Coroutine[object, object, object], ...] = (
                    self._over.wait(),
                    wait_for_disconnect(self._outer),
                )
                waiting = {group.create_task(end) for end in ends}
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in waiting:
                    task.cancel()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if self._over.is_set():
            await asyncio.sleep(0)  # lets an application that sends endlessly be cancelled
        elif message["type"] == "http.response.start":
            self._status, self._headers = message["status"], tuple(message.get("headers", ()))
        elif message["type"] == "http.response.body":
            self._body += message.get("body", b"")
            if self.is_cut or not message.get("more_body", False):
                self._over.set()
                if not self.answered.done():  # its reader may have been cancelled
                    self.answered.set_result(self.collected())

    @property
    def is_cut(self) -> bool:
        """True if the answer is longer than `max_bytes`."""
        return len(self._body) > self._max_bytes

    def hang_up(self) -> None:
        """Let the application see a disconnect."""
        self._over.set()

    def collected(self) -> PageAnswer:
        """Return the answer received so far, with status 500 if there is none."""
        return PageAnswer(self._status, self._headers, bytes(self._body), not self.is_cut)


# --- WebSockets ---


class TalkFailed(Exception):
    """A WebSocket was refused or closed early. `status` and `body` are those of the refusal, 0 and empty if none."""

    def __init__(self, detail: str, status: int = 0, body: bytes = b"") -> None:
        super().__init__(detail)
        self.status, self.body = status, body


async def talk(app: AsgiApp, scope: Scope, messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Open a WebSocket and send messages, each after the answer to the one before. Returns the answers.

    Stops after the first answer with an error. Raises TalkFailed.
    """
    inbox: asyncio.Queue[Message] = asyncio.Queue()
    outbox: asyncio.Queue[Message] = asyncio.Queue()
    inbox.put_nowait({"type": "websocket.connect"})
    task = asyncio.ensure_future(app(scope, inbox.get, outbox.put))

    async def receive_next() -> Message:
        """Return the next message. Raises TalkFailed if the connection is closed or the application has returned."""
        received = asyncio.ensure_future(outbox.get())
        waited: set[asyncio.Future[Any]] = {received, task}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if not received.done():
            received.cancel()
            raise TalkFailed("The application has no WebSocket at this address.")
        message = received.result()
        if message["type"] == "websocket.http.response.start":
            raise TalkFailed("The connection was refused.", message["status"], (await receive_next()).get("body", b""))
        if message["type"] == "websocket.close":
            raise TalkFailed("The connection was refused.")
        return message

    answers: list[dict[str, Any]] = []
    try:
        await receive_next()  # accepted
        for message in messages:
            inbox.put_nowait({"type": "websocket.receive", "text": json.dumps(message)})
            while True:
                answer = json.loads((await receive_next())["text"])
                if answer.get("id") == message["id"]:
                    break
            answers.append(answer)
            if "error" in answer:
                break
    finally:
        inbox.put_nowait({"type": "websocket.disconnect", "code": 1000})
        await asyncio.wait({task}, timeout=5)
        task.cancel()
        await asyncio.wait({task})
    return answers


# --- Synchronous calls ---

T = TypeVar("T")

_CLIENT: Final[Scope] = {"client": ("127.0.0.1", 50000), "path": "/"}


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response; the names of its headers are lower-case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the JSON of the body; of an event stream, the JSON of its last event."""
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            lines = [line[5:] for line in self.body.decode().splitlines() if line.startswith("data:")]
            return json.loads(next((line for line in reversed(lines) if line.strip()), ""))
        return json.loads(self.body)


class InProcess:
    """Runs an application, with its lifespan, on an event loop in a thread of its own."""

    prefix = ""

    def __init__(self, app: AsgiApp, timeout: float) -> None:
        self._app = app
        self._timeout = timeout
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self._state: Mapping[str, object] = {}

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Response:
        return self._run(lambda: self._request(self._inside(method, path, headers, body)))

    def talk(self, path: str, headers: Mapping[str, str], messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return self._run(lambda: talk(self._app, self._inside("GET", path, headers).websocket(_CLIENT), messages))

    def close(self) -> None:
        with self._lock:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._over.set)
                self._thread.join()
                self._loop = None

    def _run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        with self._lock:
            if self._loop is None:
                self._start()
            loop = cast(asyncio.AbstractEventLoop, self._loop)
        return asyncio.run_coroutine_threadsafe(work(), loop).result(self._timeout)

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

    def _inside(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> PageRequest:
        plain, _, query = path.partition("?")
        fields = {"host": "localhost", **headers}
        encoded = tuple((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in fields.items())
        origin = urlsplit("https://localhost")
        return PageRequest(origin, plain.encode(), query.encode(), encoded, method, body, self._state)

    async def _request(self, inside: PageRequest) -> Response:
        exchange = PageExchange(inside.body, sys.maxsize)
        await self._app(inside.scope(_CLIENT), exchange.receive, exchange.send)
        answer = exchange.collected()
        fields = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in answer.headers}
        return Response(answer.status, fields, answer.body)


@dataclass(frozen=True, slots=True)
class Outside:
    """The outermost application, if anything runs outside of us. `carried` are scope members that it needs."""

    app: AsgiApp
    state: Callable[[], Mapping[str, object]]
    carried: tuple[str, ...] = ()


def with_cookies(scope: Scope, cookies: str) -> Scope:
    """Return a scope with additional cookies, and without the session's id, which the application must not see."""
    headers = [pair for pair in scope["headers"] if pair[0] != SESSION_HEADER]
    if cookies:
        headers.append((b"cookie", cookies.encode("latin-1", "replace")))
        joined = read_fields(headers)[b"cookie"]
        headers = [*(pair for pair in headers if pair[0] != b"cookie"), (b"cookie", joined)]
    return {**scope, "headers": headers}


class SessionPass:
    """A request through the middleware outside of us. `arrived` is called with its scope when it reaches us."""

    target = None

    def __init__(self, arrived: Callable[[Scope, Callable[[], Awaitable[None]]], Awaitable[None]]) -> None:
        self._arrived = arrived
        self._is_sent = False
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.has_arrived = False
        self.status = 0
        self.set_cookies: list[str] = []

    async def arrive(self, app: AsgiApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Call `arrived`, and answer the request: when `arrived` asks for that, at the latest when it returns."""
        self.has_arrived, is_answered = True, False
        scope.pop(ROUTE_CALL)

        async def answer() -> None:
            nonlocal is_answered
            is_answered = True
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        await self._arrived(scope, answer)
        if not is_answered:
            await answer()

    async def receive(self) -> Message:
        if not self._is_sent:
            self._is_sent = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await asyncio.wait({self._ended})
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = message.get("headers", ())
            self.set_cookies = [value.decode("latin-1") for name, value in headers if name.lower() == b"set-cookie"]
        elif message["type"] == "http.response.body" and not message.get("more_body", False):
            self._end()

    async def wait(self, entering: "asyncio.Future[None]") -> None:
        """Return when the request is answered or its task has ended."""
        entering.add_done_callback(lambda _: self._end())
        await self._ended

    def _end(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)
