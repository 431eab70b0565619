"""An application in this process, for synchronous code: on an event loop in a thread of its own."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import wait
from typing import Any, Final, TypeVar, cast
from urllib.parse import urlsplit

from awp_publish.calls.wire import WireResponse
from awp_publish.http.exchange import AsgiApp, Scope
from awp_publish.http.outgoing import OutOfTime, RequestFailed
from awp_publish.http.page_request import PageExchange, PageRequest
from awp_publish.http.running import running
from awp_publish.http.talk import talk

T = TypeVar("T")

CLIENT: Final[Scope] = {"client": ("127.0.0.1", 50000), "path": "/"}


class InProcess:
    """Runs an application, with its lifespan, on an event loop in a thread of its own. `host` is whom requests name."""

    prefix = ""

    def __init__(self, app: AsgiApp, timeout: float) -> None:
        self.host = "localhost"
        self._app = app
        self._timeout = timeout
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self._state: Mapping[str, object] = {}

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> WireResponse:
        return self._run(path, lambda: self._request(self._inside(method, path, headers, body)))

    def talk(
        self, path: str, headers: Mapping[str, str], messages: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        inside = self._inside("GET", path, headers)
        return self._run(path, lambda: talk(self._app, inside.websocket(CLIENT), messages))

    def close(self) -> None:
        with self._lock:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._over.set)
                self._thread.join()
                self._loop = None

    def _run(self, path: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        with self._lock:
            if self._loop is None:
                self._start()
            loop = cast(asyncio.AbstractEventLoop, self._loop)
        answer = asyncio.run_coroutine_threadsafe(work(), loop)
        wait((answer,), self._timeout)
        if not answer.done():
            answer.cancel()
            raise OutOfTime(f"{path} was not answered within {self._timeout:g} seconds.")
        return answer.result()

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
        fields = {"host": self.host, **headers}
        encoded = tuple((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in fields.items())
        origin = urlsplit("https://localhost")
        return PageRequest(origin, plain.encode(), query.encode(), encoded, method, body, self._state)

    async def _request(self, inside: PageRequest) -> WireResponse:
        exchange = PageExchange(inside.body)
        answer = await exchange.run(self._app, inside.scope(CLIENT))
        if not exchange.is_closed:
            raise RequestFailed("the answer broke off before its end")
        fields = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in answer.headers}
        return WireResponse(answer.status, fields, answer.body)
