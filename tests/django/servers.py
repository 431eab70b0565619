"""The same site behind gunicorn, and behind uvicorn twice: as Django and as Starlette."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx2
import pytest

from tests.serve.test_real_server import free_port

ROOT = Path(__file__).parents[2]

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "wsgi": ("gunicorn", "tests.django.parity:make_wsgi()", "--threads", "4", "--log-level", "error", "--bind"),
    "asgi": ("uvicorn", "tests.django.parity:make_asgi", "--factory", "--log-level", "error", "--port"),
    "starlette": ("uvicorn", "tests.django.parity:make_starlette", "--factory", "--log-level", "error", "--port"),
}
DJANGO = ("wsgi", "asgi")


def environment() -> dict[str, str]:
    """That of a process which finds the tests and the package as this one does."""
    path = os.pathsep.join((os.environ.get("PYTHONPATH", ""), str(ROOT), str(ROOT / "contrib")))
    return {**os.environ, "PYTHONPATH": path}


def start(kind: str) -> tuple["subprocess.Popen[bytes]", str]:
    port = free_port()
    place = f"127.0.0.1:{port}" if kind == "wsgi" else str(port)
    command = [sys.executable, "-m", *COMMANDS[kind], place]
    return subprocess.Popen(command, cwd=ROOT, env=environment()), f"http://127.0.0.1:{port}"


def wait_for(address: str) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            httpx2.get(f"{address}/agent.json")
            return
        except httpx2.TransportError:
            time.sleep(0.1)
    raise TimeoutError(address)


@pytest.fixture(scope="session")
def servers() -> Iterator[Mapping[str, str]]:
    """Their addresses."""
    started = {kind: start(kind) for kind in COMMANDS}
    try:
        for _, address in started.values():
            wait_for(address)
        yield {kind: address for kind, (_, address) in started.items()}
    finally:
        for process, _ in started.values():
            process.send_signal(signal.SIGTERM)
        for process, _ in started.values():
            assert process.wait(timeout=20) in (0, -signal.SIGTERM)
