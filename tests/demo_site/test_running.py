"""Opening and closing the shop: the command that serves it, and the application's own start and stop."""

import signal
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from awp_publish import DeclarationError
from demo_site.__main__ import greeting, read_options
from demo_site.agents import NEEDS_THE_SHELVES
from demo_site.app import create_app
from tests.client import TestClient
from tests.processes import Process
from tests.redis_server import free_port


def answer_of(url: str) -> httpx.Response:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            return httpx.get(url)
        except httpx.ConnectError:
            time.sleep(0.1)
    raise TimeoutError(url)


@pytest.mark.slow
def test_the_command_serves_the_shop_and_says_where(tmp_path: Path) -> None:
    port = free_port()
    said = tmp_path / "said"
    server = Process("demo_site", "--port", str(port), cwd=tmp_path, is_strict=True, output=said)
    try:
        page = answer_of(f"http://127.0.0.1:{port}/")
        assert page.status_code == 200
        assert "<h1" in page.text
        for path in ("/mcp", "/a2a"):
            assert httpx.get(f"http://127.0.0.1:{port}{path}").status_code == 405
        for path in ("/awp", "/actions-bridge"):
            assert httpx.get(f"http://127.0.0.1:{port}{path}").status_code == 426
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)
    assert f"http://127.0.0.1:{port}/search" in said.read_text()


def test_the_command_opens_every_door_unless_it_is_told_which() -> None:
    assert read_options([]).doors == ("mcp", "a2a", "awp", "bridge")
    assert read_options(["--doors"]).doors == []
    assert read_options(["--doors", "mcp"]).doors == ["mcp"]
    assert any(line.endswith("http://127.0.0.1:8000/mcp") for line in greeting("http://127.0.0.1:8000"))


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


def test_file_and_secret_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FIRST_LINES_DATABASE", str(tmp_path / "shop.db"))
    monkeypatch.setenv("FIRST_LINES_SECRET", "a secret of this test")
    app = create_app()
    assert list(tmp_path.iterdir()) == [], "with a secret at hand, making an application touches nothing"
    with TestClient(app) as client:
        assert (tmp_path / "shop.db").exists()
        assert client.post("/agents/search_books/invoke", json={"input": {}}).status_code == 200
        assert (tmp_path / "shop-agents.db").exists()


def test_a_secret_that_could_be_guessed_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRST_LINES_SECRET", "short")
    with pytest.raises(DeclarationError, match=r"secret_keys.*16 characters"):
        create_app()


def test_a_temporary_shop_makes_its_folder_when_it_opens_and_deletes_it_when_it_closes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("FIRST_LINES_DATABASE", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    app = create_app()
    for _ in range(2):
        assert list(tmp_path.iterdir()) == []
        with TestClient(app) as client:
            assert client.post("/agents/search_books/invoke", json={"input": {}}).status_code == 200
            (folder,) = tmp_path.iterdir()
            assert folder.stat().st_mode & 0o077 == 0
            assert {"shop.db", "shop-agents.db"} <= {file.name for file in folder.iterdir()}
    assert list(tmp_path.iterdir()) == []


def test_a_shop_without_books_says_what_does_not_work(tmp_path: Path) -> None:
    app = create_app(database=tmp_path / "shop.db")
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute("DROP TABLE books")
    with TestClient(app) as client:
        degraded = client.get("/agents/status").json()["degraded_actions"]
        assert "check_out" in degraded
        assert "summarizer" not in degraded
        of_the_map = {"sign_in", "sign_out"}
        assert of_the_map <= set(degraded)
        listed = client.get("/agent.json").json()["agent_status"]["degraded_actions"]
        assert listed == [action for action in degraded if action not in of_the_map]
        refused = client.post("/agents/search_books/invoke", json={"input": {}})
        assert (refused.status_code, refused.json()["code"]) == (503, "TEMPORARILY_UNAVAILABLE")


def test_every_action_but_the_summarizer_is_watched() -> None:
    with TestClient(create_app()) as client:
        status = client.get("/agents/status").json()
        assert status["degraded_actions"] == []
        assert set(status["actions"]) == {*NEEDS_THE_SHELVES, "summarizer"}
