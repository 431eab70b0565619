"""The same site behind gunicorn, and behind uvicorn twice: as Django and as Starlette."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.http.test_real_server import NO_CERTIFICATES, free_port
from tests.processes import Process

ROOT = Path(__file__).parents[2]

GUNICORN = ("gunicorn", "--threads", "4", "--log-level", "error", "--bind")
UVICORN = ("uvicorn", "--log-level", "error", "--port")

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "wsgi": (*GUNICORN, "{place}", "tests.django.parity:make_wsgi()"),
    "asgi": (*UVICORN, "{port}", "tests.django.parity:make_asgi", "--factory"),
    "starlette": (*UVICORN, "{port}", "tests.django.parity:make_starlette", "--factory"),
}
DJANGO = ("wsgi", "asgi")
ACCOUNTS: Mapping[str, tuple[str, ...]] = {
    "wsgi": ("gunicorn", "--workers", "2", *GUNICORN[1:], "{place}", "tests.django.accounts:make_wsgi()"),
    "asgi": (*UVICORN, "{port}", "tests.django.accounts:make_asgi", "--factory"),
}
PASSWORD = "correct horse battery"
"""That of everybody who has an account."""


def environment() -> dict[str, str]:
    """That of a process which finds the tests and the package as this one does."""
    path = os.pathsep.join((os.environ.get("PYTHONPATH", ""), str(ROOT), str(ROOT / "contrib")))
    return {**os.environ, "PYTHONPATH": path}


def start(command: Sequence[str], database: Path | None = None) -> tuple["Process | subprocess.Popen[bytes]", str]:
    """A server and its address. `{port}` and `{place}` in the command are where it has to listen.

    With a `database` it is that of the shop with accounts, which is prepared there.
    """
    port = free_port()
    place = f"127.0.0.1:{port}"
    words = [word.format(port=port, place=place) for word in command]
    env = environment()
    if database is not None:
        env |= {"ACCOUNTS_URL": f"http://{place}", "ACCOUNTS_DATABASE": str(database)}
        assert Process("tests.django.accounts", cwd=ROOT, env=env).wait(timeout=90) == 0
    if "gevent" in words:  # which has to come before what it patches is imported
        return subprocess.Popen([sys.executable, "-m", *words], cwd=ROOT, env=env), f"http://{place}"
    return Process(*words, cwd=ROOT, env=env), f"http://{place}"


@contextmanager
def serve_accounts(kind: str, folder: Path) -> Iterator[str]:
    """Serve the shop with accounts in one of the ACCOUNTS ways, and return its address."""
    process, address = start(ACCOUNTS[kind], folder / "shop.db")
    try:
        wait_for(address)
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=90) in (0, -signal.SIGTERM)


@contextmanager
def serving(commands: Mapping[str, Sequence[str]]) -> Iterator[Mapping[str, str]]:
    """Servers, and their addresses by name."""
    started = {kind: start(command) for kind, command in commands.items()}
    try:
        for _, address in started.values():
            wait_for(address)
        yield {kind: address for kind, (_, address) in started.items()}
    finally:
        for process, _ in started.values():
            process.send_signal(signal.SIGTERM)
        for process, _ in started.values():
            assert process.wait(timeout=90) in (0, -signal.SIGTERM)


def wait_for(address: str) -> None:
    until = time.monotonic() + 180  # three of them start at once, on a machine that may be busy
    while time.monotonic() < until:
        try:
            httpx2.get(f"{address}/agent.json", verify=NO_CERTIFICATES)
            return
        except httpx2.TransportError:
            time.sleep(0.1)
    raise TimeoutError(address)


@pytest.fixture(scope="session")
def servers() -> Iterator[Mapping[str, str]]:
    """Their addresses."""
    with serving(COMMANDS) as addresses:
        yield addresses
