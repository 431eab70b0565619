"""Several processes on one SQLite file, and on one Redis server, at the same time; and processes that fork."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections import Counter
from uuid import uuid4

import pytest

from awp_publish.plugin import open_store
from awp_publish.stores import Add, Count, Look, Schedule
from tests.processes import Process

pytestmark = pytest.mark.slow

PROCESSES = 4
KEYS = 100
WORK = """
import asyncio, json, sys, time
from awp_publish.plugin import open_store
from awp_publish.stores import Add, Count
from awp_publish.plugins.redis.store import RedisStore
from awp_publish.plugins.sqlite.store import SqliteStore

async def work(url, namespace, keys):
    kind, place = RedisStore if url.startswith("redis:") else SqliteStore, url.removeprefix("sqlite:///")
    if url.startswith("postgresql:"):
        from awp_publish.plugins.postgres.store import PostgresStore as kind
    store = kind(place, namespace, timeout=20)
    added, counted, taken = [], 0, []

    async def one(key):
        nonlocal counted
        if (await store.run([Add(f"key {key}", b"value", 60)], durable=key % 50 == 0)).failed is None:
            added.append(key)
        ran = await store.run([Count("count", keys * 2, 600)])
        counted += ran.failed is None
        taken.extend(await store.take("queue", 600, 1))

    for start in range(0, keys, 10):
        await asyncio.gather(*map(one, range(start, start + 10)))
    await store.close()
    print(json.dumps([added, counted, taken]))

asyncio.run(work(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


@pytest.fixture(params=["sqlite", "redis", "postgres"])
def url(request, tmp_path):
    """A store that processes share."""
    return (
        f"sqlite:///{tmp_path}/agents.db"
        if request.param == "sqlite"
        else request.getfixturevalue(f"{request.param}_url")
    )


def test_several_processes_share_a_store_without_losing_or_doubling_anything(url, tmp_path):
    namespace = uuid4().hex
    fill_queue(url, namespace)
    (tmp_path / "work.py").write_text(WORK)
    outputs = [tmp_path / f"{number}.json" for number in range(PROCESSES)]
    arguments = ("work", url, namespace, str(KEYS))
    running = [Process(*arguments, cwd=tmp_path, is_strict=True, output=output) for output in outputs]
    assert [process.wait(timeout=180) for process in running] == [0] * PROCESSES
    results = [json.loads(output.read_text()) for output in outputs]
    assert Counter(key for added, _, _ in results for key in added) == Counter(range(KEYS))
    assert sum(counted for _, counted, _ in results) == KEYS * 2
    assert Counter(member for _, _, taken in results for member in taken) == Counter(map(str, range(KEYS)))


def fill_queue(url, namespace):
    async def fill() -> None:
        store = open_store(url, namespace)
        await store.run([Schedule("queue", str(member), 0) for member in range(KEYS)])
        await store.close()

    asyncio.run(fill())


FORK = """
import asyncio, os, sys
from awp_publish.plugin import open_store
from awp_publish.stores import Add, Look

store = open_store(sys.argv[1], sys.argv[2])

async def add(key):
    return (await store.run([Add(key, b"value", 60)])).failed is None

assert asyncio.run(add("parent"))
child = os.fork()
if child == 0:
    assert not asyncio.run(add("parent")) and asyncio.run(add("child"))
    asyncio.run(store.close())
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
assert not asyncio.run(add("child")) and asyncio.run(add("parent again"))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_opens_its_own_connection_and_a_process_that_does_not_close_its_store_says_nothing(url):
    """Servers fork after they have imported the application, and maybe after they have used it."""
    warnings = ("-W", "error", "-W", "ignore::DeprecationWarning")  # of a fork beside threads
    command = [sys.executable, *warnings, "-c", FORK, url, uuid4().hex]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


KILLED = """
import asyncio, sys
from awp_publish.plugin import open_store
from awp_publish.stores import Add

async def work():
    store = open_store(sys.argv[1], sys.argv[2])
    for number in range(1_000_000):
        await store.run([Add(f"key {number}", b"v" * 500, 600)], durable=True)
        print(number, flush=True)

asyncio.run(work())
"""


def test_durable_values_survive_a_killed_process(url, tmp_path):
    namespace, output = uuid4().hex, tmp_path / "output"
    (tmp_path / "killed.py").write_text(KILLED)
    process = Process("killed", url, namespace, cwd=tmp_path, output=output)
    while not output.exists() or len(lines := output.read_bytes().split(b"\n")) < 100:
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait(60)
    lines = output.read_bytes().split(b"\n")[:-1]  # the last line may have been cut off
    assert asyncio.run(look_at(url, namespace, len(lines))) == {b"v" * 500}


async def look_at(url, namespace, most):
    store = open_store(url, namespace)
    seen = (await store.run([Look(f"key {number}") for number in range(most)])).seen
    assert (await store.run([Add("new", b"value", 60), Count("count", 5, 60)])).failed is None
    await store.close()
    return set(seen)
