"""Opening and closing the shop: the command that serves it, and the application's own start and stop."""

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from demo_site.__main__ import greeting, read_options
from demo_site.app import create_app


@contextmanager
def serving(port: int) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-W", "error", "-m", "demo_site", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            yield server
        finally:
            server.terminate()


def answer_of(url: str) -> httpx.Response:
    for _ in range(100):
        try:
            return httpx.get(url)
        except httpx.ConnectError:
            time.sleep(0.1)
    raise TimeoutError(url)


def test_the_command_serves_the_shop_and_says_where() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with serving(port) as server:
        page = answer_of(f"http://127.0.0.1:{port}/")
        assert page.status_code == 200
        assert "<h1" in page.text
        server.terminate()
        assert server.stdout is not None
        assert f"http://127.0.0.1:{port}/search" in server.stdout.read()


@pytest.mark.parametrize(
    ("arguments", "origin"),
    [
        ([], "http://127.0.0.1:8000"),
        (["--port", "80", "--host", "0.0.0.0"], "http://127.0.0.1:80"),
        (["--host", "::1"], "http://[::1]:8000"),
        (["--url", "https://books.example/"], "https://books.example"),
    ],
)
def test_the_options_give_the_address_to_open(
    arguments: list[str], origin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PORT", raising=False)
    options = read_options(arguments)
    assert options.url == origin
    assert any(line.endswith(f" {origin}/") for line in greeting(options.url))


def test_the_port_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "9001")
    assert read_options([]).port == 9001


def test_the_file_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FIRST_LINES_DATABASE", str(tmp_path / "shop.db"))
    app = create_app()
    assert not (tmp_path / "shop.db").exists(), "making an application touches nothing"

    async def start_and_stop() -> None:
        async with app.router.lifespan_context(app):
            assert (tmp_path / "shop.db").exists()

    asyncio.run(start_and_stop())
