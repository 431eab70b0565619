"""Several processes on one SQLite file, and on one Redis server, at the same time; and processes that fork."""

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from uuid import uuid4

import pytest

from awp_publish.plugin import open_store
from awp_publish.stores import Add, Count, Look, Schedule

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


def test_several_processes_share_a_store_without_losing_or_doubling_anything(url):
    namespace = uuid4().hex
    fill_queue(url, namespace)
    command = [sys.executable, "-W", "error", "-c", WORK, url, namespace, str(KEYS)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(PROCESSES)]
    told = [process.communicate(timeout=180) for process in running]
    assert [errors.decode() for _, errors in told] == [""] * PROCESSES
    results = [json.loads(output) for output, _ in told]
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
asyncio.run(store.close())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_opens_its_own_connection_and_leaves_the_parents_alone(url):
    """Servers fork after they have imported the application, and maybe after they have used it."""
    command = [
        sys.executable,
        "-W",
        "error::ResourceWarning",
        "-W",
        "ignore::DeprecationWarning",
        "-c",
        FORK,
        url,
        uuid4().hex,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_process_that_ends_without_closing_its_store_says_nothing(url):
    script = (
        "import asyncio, sys\n"
        "from awp_publish.plugin import open_store\n"
        "from awp_publish.stores import Add\n"
        "store = open_store(sys.argv[1], sys.argv[2])\n"
        "print(asyncio.run(store.run([Add('key', b'one', 60)])).failed)\n"
    )
    command = [sys.executable, "-W", "error", "-c", script, url, uuid4().hex]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "None\n", "")


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


def test_what_was_durable_is_there_after_a_process_was_killed(url):
    namespace = uuid4().hex
    process = subprocess.Popen([sys.executable, "-c", KILLED, url, namespace], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process, process.stdout as told:
        while told.readline() != b"100\n":
            pass
        process.kill()
        last = max(map(int, told.read().split()[:-1]), default=100)  # the last line may have been cut off
    assert asyncio.run(look_at(url, namespace, last + 1)) == {b"v" * 500}


async def look_at(url, namespace, most):
    store = open_store(url, namespace)
    seen = (await store.run([Look(f"key {number}") for number in range(most)])).seen
    assert (await store.run([Add("new", b"value", 60), Count("count", 5, 60)])).failed is None
    await store.close()
    return set(seen)
