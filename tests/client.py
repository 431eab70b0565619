"""A client for applications in this process, which shares one event loop in one thread with all others.

Starlette's starts a thread with an event loop for each application, and changes threads some twelve times a request.
This one does so once. What still runs when the last client ends is cancelled, as if its loop had ended with it.
"""

import asyncio
import atexit
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from queue import SimpleQueue
from threading import Lock
from typing import Any, TypeVar
from urllib.parse import unquote

import anyio
import pytest
import starlette.testclient
from anyio.from_thread import BlockingPortal, start_blocking_portal
from starlette.testclient import WebSocketTestSession
from starlette.types import ASGIApp, Message, Scope

from tests.installed import missing_document

T = TypeVar("T")

httpx: Any = vars(starlette.testclient)["httpx"]
"""The library of clients that this version of Starlette takes."""


class _Loop:
    """An event loop for several clients, in a thread that begins with the first of them."""

    def __init__(self) -> None:
        self._lock, self._clients, self._stack = Lock(), 0, ExitStack()
        self._portal: BlockingPortal | None = None
        self._own: set[asyncio.Task[Any]] = set()

    def _start(self) -> BlockingPortal:
        portal = self._stack.enter_context(start_blocking_portal())
        self._loop = portal.call(asyncio.get_running_loop)
        self._own = asyncio.all_tasks(self._loop)
        atexit.register(self.close)
        return portal

    def close(self) -> None:
        """End the loop and its thread."""
        atexit.unregister(self.close)
        self._stack.close()

    @contextmanager
    def lease(self) -> Iterator[BlockingPortal]:
        with self._lock:
            self._clients += 1
            portal = self._portal = self._portal or self._start()
        try:
            yield portal
        finally:
            with self._lock:
                self._clients -= 1
                if not self._clients:
                    self.run(self._cancel_rest())

    async def _cancel_rest(self) -> None:
        ours = {asyncio.current_task(), *self._own}
        while rest := [task for task in asyncio.all_tasks() if task not in ours]:
            for task in rest:
                task.cancel()
            await asyncio.wait(rest)

    def call_soon(self, callback: Callable[..., object], *arguments: object) -> None:
        """Call a function in the loop's thread, in the context of the caller."""
        self._loop.call_soon_threadsafe(callback, *arguments, context=copy_context())

    def start(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Return the future of a task that runs in the context of the caller."""
        future: Future[T] = Future()

        def finish(task: asyncio.Task[T]) -> None:
            if task.cancelled():
                future.cancel()
            elif (failure := task.exception()) is not None:
                future.set_exception(failure)
            else:
                future.set_result(task.result())

        def begin() -> None:
            self._loop.create_task(coroutine).add_done_callback(finish)

        self.call_soon(begin)
        return future

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.start(coroutine).result()


_shared = _Loop()


@contextmanager
def own_loop() -> Iterator[None]:
    """Give the clients that are used inside of the context a loop whose threads begin and end with it."""
    global _shared
    before, _shared = _shared, _Loop()
    try:
        yield
    finally:
        ended, _shared = _shared, before
        ended.close()


class TestClient(starlette.testclient.TestClient):
    __test__ = False

    def __init__(self, app: ASGIApp, *arguments: Any, **more: Any) -> None:
        super().__init__(app, *arguments, **more)
        self._streaming: Any = self._transport
        self._quick: Any = _Transport(self)
        self._entered: _Loop | None = None

    def loop(self) -> _Loop:
        return self._entered or _shared

    def send(self, request: Any, *, stream: bool = False, **more: Any) -> Any:
        """Send a request. One whose answer is read whole takes the quick way.

        Skips the test if the document of a plug-in is not there because the plug-in has been taken out.
        """
        self._transport = self._streaming if stream else self._quick
        answer = super().send(request, stream=stream, **more)
        if answer.status_code == 404 and (plugin := missing_document(request.url.path)) is not None:
            pytest.skip(f"taken out: {plugin}")
        return answer

    def _portal_factory(self) -> Any:
        return self.loop().lease()

    def __enter__(self) -> "TestClient":
        with ExitStack() as stack:
            self._entered = _shared
            stack.callback(setattr, self, "_entered", None)
            self.portal = stack.enter_context(_shared.lease())
            stack.callback(setattr, self, "portal", None)
            self._messages: asyncio.Queue[Message] = asyncio.Queue()
            self._answers: asyncio.Queue[Message | None] = asyncio.Queue()
            lifespan = _shared.start(self._run_lifespan())
            self._tell("startup", lifespan)
            stack.callback(self._tell, "shutdown", lifespan)
            stack.callback(self._streaming.close)
            self.exit_stack = stack.pop_all()
        return self

    async def _run_lifespan(self) -> None:
        scope = {"type": "lifespan", "state": self.app_state}
        try:
            await self.app(scope, self._messages.get, self._answers.put)
        finally:
            self._answers.put_nowait(None)

    def _tell(self, event: str, lifespan: Future[None]) -> None:
        async def ask() -> Message | None:
            self._messages.put_nowait({"type": f"lifespan.{event}"})
            answer = await self._answers.get()
            return await self._answers.get() if answer and answer["type"].endswith("failed") else answer

        answer = self.loop().run(ask())
        if answer is None:
            lifespan.result()
        assert answer == {"type": f"lifespan.{event}.complete"}


class _Transport:
    """Runs an application until it has answered."""

    def __init__(self, client: TestClient) -> None:
        self._loop, self._facts = client.loop, client._streaming

    def handle_request(self, request: Any) -> Any:
        scope = self._scope_of(request)
        if scope["type"] == "websocket":
            raise starlette.testclient._Upgrade(_Session(self._facts.app, scope, self._loop()))
        loop = self._loop()
        with loop.lease():
            answer, failure = loop.run(_answer(self._facts.app, scope, request.read()))
        if failure is not None and self._facts.raise_server_exceptions:
            raise failure
        if not answer:
            assert not self._facts.raise_server_exceptions, "TestClient did not receive any response."
            return httpx.Response(500, request=request)
        started, *parts = answer
        headers = [(name.decode(), value.decode()) for name, value in started.get("headers", [])]
        body = b"".join(part.get("body", b"") for part in parts) if request.method != "HEAD" else b""
        return httpx.Response(started["status"], headers=headers, stream=httpx.ByteStream(body), request=request)

    def _scope_of(self, request: Any) -> Scope:
        url, facts = request.url, self._facts
        headers = [(name.lower().encode(), value.encode()) for name, value in request.headers.multi_items()]
        if "host" not in request.headers:
            headers.insert(0, (b"host", url.netloc))
        is_secure = url.scheme in ("https", "wss")
        scope = {
            "type": "http",
            "path": unquote(url.path),
            "raw_path": url.raw_path.split(b"?", 1)[0],
            "root_path": facts.root_path,
            "scheme": url.scheme,
            "query_string": url.query,
            "headers": headers,
            "client": getattr(facts, "client", ("testclient", 50000)),  # older ones know no other
            "server": [url.raw_host.decode("ascii"), url.port or (443 if is_secure else 80)],
            "state": facts.app_state.copy(),
        }
        if url.scheme in ("ws", "wss"):
            listed = request.headers.get("sec-websocket-protocol")
            subprotocols = [] if listed is None else [part.strip() for part in listed.split(",")]
            extensions: dict[str, Any] = {"websocket.http.response": {}}
            return {**scope, "type": "websocket", "subprotocols": subprotocols, "extensions": extensions}
        return {**scope, "method": request.method, "http_version": "1.1", "extensions": {"http.response.debug": {}}}


async def _answer(app: Any, scope: Scope, body: bytes) -> tuple[list[Message], Exception | None]:
    """Return the messages of an application's answer, and what it has raised."""
    requested = iter([{"type": "http.request", "body": body, "more_body": False}])
    answer: list[Message] = []
    is_complete = asyncio.Event()

    async def receive() -> Message:
        for message in requested:
            return message
        await is_complete.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        assert not is_complete.is_set(), f'Received "{message["type"]}" after response completed.'
        if message["type"] == "http.response.start":
            assert not answer, 'Received multiple "http.response.start" messages.'
            answer.append(message)
        elif message["type"] == "http.response.body":
            assert answer, 'Received "http.response.body" without "http.response.start".'
            answer.append({**message, "body": bytes(message.get("body", b""))})
            if not message.get("more_body", False):
                is_complete.set()

    try:
        await app(scope, receive, send)
    except Exception as failure:
        return answer, failure
    return answer, None


class _Session(WebSocketTestSession):
    """A WebSocket that changes threads only where the test waits for a message."""

    def __init__(self, app: Any, scope: Scope, loop: _Loop) -> None:
        super().__init__(app, scope, loop.lease)
        self._loop = loop

    def __enter__(self) -> "_Session":
        with ExitStack() as stack:
            stack.enter_context(self._loop.lease())
            self._to_app: asyncio.Queue[Message] = asyncio.Queue()
            self._from_app: SimpleQueue[Message | None] = SimpleQueue()
            ended = self._loop.start(self._serve())
            stack.callback(ended.result)
            stack.callback(self._loop.call_soon, lambda: self._scope.cancel())
            self.send({"type": "websocket.connect"})
            message = self.receive()
            self._raise_on_close(message)
            self.accepted_subprotocol = message.get("subprotocol", None)
            self.extra_headers = message.get("headers", None)
            stack.callback(self.close, 1000)
            self.exit_stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> bool | None:
        return self.exit_stack.__exit__(*error)

    async def _serve(self) -> None:
        async def put(message: Message) -> None:
            self._from_app.put(message)

        try:
            with anyio.CancelScope() as self._scope:
                await self.app(self.scope, self._to_app.get, put)
        finally:
            self._from_app.put(None)

    def send(self, message: Message) -> None:
        self._loop.call_soon(self._to_app.put_nowait, message)

    def receive(self) -> Message:
        message = self._from_app.get()
        if message is None:
            self._from_app.put(None)
            raise anyio.EndOfStream
        return message
