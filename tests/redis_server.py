"""Real Redis servers for tests: on a free port, without persistence, ended with the test or the session."""

import itertools
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import MappingProxyType

import pytest


class RedisServer:
    """One `redis-server` process, which can be stopped, started again on its port, paused and resumed."""

    def __init__(
        self,
        binary: str,
        directory: Path,
        options: Mapping[str, object] = MappingProxyType({}),
        flags: Sequence[str] = (),
    ) -> None:
        self.options = options
        self._flags = flags
        self._binary = binary
        self._directory = directory
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        options = {"port": self.port, "bind": "127.0.0.1", "save": "", "appendonly": "no", "dir": self._directory}
        words = [word for name, value in {**options, **self.options}.items() for word in (f"--{name}", str(value))]
        self._process = subprocess.Popen(
            [self._binary, *self._flags, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        give_up = time.monotonic() + 90
        while not self._answers():
            assert time.monotonic() < give_up, "redis-server did not start"
            time.sleep(0.01)

    def stop(self) -> None:
        """As a crash does: at once, and whatever it held is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def _answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
        return False


WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
_ports = itertools.cycle(random.sample(range(20_000 + WORKER % 12 * 1_000, 21_000 + WORKER % 12 * 1_000), 1_000))


def free_port() -> int:
    """A port for a server that starts in a moment.

    Until then the system gives it to no connection, whose ports are beyond 32,768 (Linux) or 49,152, and no other
    worker of the tests takes it.
    """
    for port in _ports:
        with socket.socket() as listener, suppress(OSError):
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def find_binary() -> str:
    """Where redis-server is. Skips the test without it, except in CI, which has to run every test."""
    binary = shutil.which("redis-server")
    if binary is None and os.environ.get("CI"):
        pytest.fail("redis-server is not installed")
    if binary is None:
        pytest.skip("redis-server is not installed")
    return binary


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that all tests of a worker share; each takes a namespace of its own."""
    server = RedisServer(find_binary(), tmp_path_factory.mktemp("redis"))
    try:
        server.start()
        yield server.url
    finally:
        server.stop()


@pytest.fixture
def start_redis(tmp_path: Path) -> Iterator[Callable[[], RedisServer]]:
    """Start a server of the test's own, to treat badly."""
    with ExitStack() as stack:

        def start() -> RedisServer:
            server = RedisServer(find_binary(), tmp_path)
            stack.callback(server.stop)
            server.start()
            return server

        yield start
