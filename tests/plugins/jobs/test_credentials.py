"""Credentials of a job's caller: in the store until the job has ended, and in none of its files after that."""

import os
import stat
import threading
import time
from pathlib import Path

import pytest
import redis
from starlette.applications import Starlette

from awp_publish import AgentPublisher, Site
from awp_publish.stores.memory import MemoryStore
from tests.guarded import invoke, make_shop

MARK = "credential-of-a-job"


def make_site(store, go: threading.Event) -> Site:
    site = make_shop(store=store)

    @site.agent("report", execution="async")
    def report(size: int) -> str:
        """Write a report."""
        go.wait(30)
        return "r" * size

    return site


def send_and_wait(client, go: threading.Event, number: int) -> None:
    """Have jobs of many sizes run, each with a credential of its own."""
    sizes = [10 ** (one % 5) for one in range(number)]
    sent = [
        invoke(client, "report", {"size": size}, {"authorization": f"Bearer {MARK}-{one} {'x' * size}"})
        for one, size in enumerate(sizes)
    ]
    assert {message.status_code for message in sent} == {202}
    go.set()
    for message in sent:
        until = time.monotonic() + 30
        while client.get(message.headers["location"]).json()["status"] != "done":
            assert time.monotonic() < until
            time.sleep(0.01)


def test_credentials_of_ended_jobs_are_in_no_bytes_of_the_sqlite_file_and_its_log(tmp_path, open_client):
    go, path = threading.Event(), tmp_path / "agents.db"
    client = open_client(AgentPublisher(Starlette(), site=make_site(f"sqlite:///{path}", go)))
    assert invoke(client, "report", {"size": 1}, {"authorization": f"Bearer {MARK}"}).status_code == 202
    assert MARK.encode() in bytes_of(tmp_path)  # the job is made a request again with them
    send_and_wait(client, go, 60)
    until = time.monotonic() + 30
    while found := bytes_of(tmp_path).count(MARK.encode()):
        assert time.monotonic() < until, f"{found} times"
        time.sleep(0.1)


def bytes_of(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


def test_credentials_of_ended_jobs_are_in_no_key_of_redis(redis_url, open_client):
    go = threading.Event()
    client = open_client(AgentPublisher(Starlette(), site=make_site(redis_url, go)))
    send_and_wait(client, go, 5)
    with redis.Redis.from_url(redis_url) as other:
        values = [other.get(key) for key in other.scan_iter("*v:{jobs}job:*")]
    assert values
    assert MARK.encode() not in b"".join(value for value in values if isinstance(value, bytes))


def test_credentials_of_ended_jobs_are_not_in_memory(open_client):
    go, store = threading.Event(), MemoryStore()
    client = open_client(AgentPublisher(Starlette(), site=make_site(store, go)))
    send_and_wait(client, go, 5)
    assert MARK.encode() not in b"".join(value for value, _ in store._values.entries.values())


@pytest.mark.skipif(os.name != "posix", reason="other systems have no modes")
def test_the_sqlite_file_and_its_log_are_for_their_owner_only(tmp_path, open_client, caplog):
    before = os.umask(0o022)
    try:
        go, path = threading.Event(), tmp_path / "agents.db"
        client = open_client(AgentPublisher(Starlette(), site=make_site(f"sqlite:///{path}", go)))
        go.set()
        invoke(client, "report", {"size": 1})
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
        assert modes == {"agents.db": 0o600, "agents.db-wal": 0o600, "agents.db-shm": 0o600}
        assert "chmod" not in caplog.text
    finally:
        os.umask(before)


@pytest.mark.skipif(os.name != "posix", reason="other systems have no modes")
def test_a_file_that_others_may_read_is_left_so_and_told_once(tmp_path, open_client, caplog):
    go, path = threading.Event(), tmp_path / "agents.db"
    path.touch()
    path.chmod(0o644)
    client = open_client(AgentPublisher(Starlette(), site=make_site(f"sqlite:///{path}", go)))
    go.set()
    for _ in range(3):
        invoke(client, "report", {"size": 1})
    assert caplog.text.count("agents.db is open to other users of this machine (mode 644)") == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
