"""Which store a URL means, and what a site owner is told about one that means none."""

import subprocess
import sys

import pytest

from awp_publish import DeclarationError
from awp_publish.plugin import open_store
from awp_publish.plugins.redis.cluster import RedisClusterStore
from awp_publish.plugins.redis.store import RedisStore
from awp_publish.plugins.sqlite.store import SqliteStore
from awp_publish.stores import Add, Look
from awp_publish.stores.memory import MemoryStore


def needs_pool(url):
    if url.startswith("postgresql:"):
        pytest.importorskip("psycopg_pool")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("memory:", MemoryStore),
        ("memory://", MemoryStore),
        ("sqlite:///agents.db", SqliteStore),
        ("sqlite:////var/lib/agents.db", SqliteStore),
        ("redis://localhost:6379/0", RedisStore),
        ("redis://localhost", RedisStore),
        ("postgresql://shop:secret@localhost:5432/shop?sslmode=require", "PostgresStore"),
        ("postgresql:///shop?host=/run/postgresql", "PostgresStore"),
        ("rediss://user:secret@localhost:6380/1?ssl_cert_reqs=required", RedisStore),
        ("unix:///run/redis.sock?db=1", RedisStore),
        ("valkey://localhost/2", RedisStore),
        ("valkeys://user:secret@localhost:6380/1", RedisStore),
        ("redis+sentinel://:secret@one:26379,two/shop/1", RedisStore),
        ("rediss+sentinel://one,[::1]:7000/shop?ssl_cert_reqs=required", RedisStore),
        ("redis+cluster://one:6379,two:6380", RedisClusterStore),
        ("rediss+cluster://user:secret@one:6379", RedisClusterStore),
        ("valkey+cluster://one/0", RedisClusterStore),
    ],
)
async def test_a_url_means_a_store(url, expected):
    needs_pool(url)
    store = open_store(url, "shop")
    assert type(store).__name__ == getattr(expected, "__name__", expected)
    assert store.is_shared is (expected is not MemoryStore)
    await store.close()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "memory",
        "memory:x",
        "agents.db",
        "sqlite:",
        "sqlite:agents.db",
        "sqlite://",
        "sqlite:///",
        "sqlite://agents.db",
        "sqlite:///folder/",
        "sqlite://///agents.db",
        "sqlite:///:memory:",
        "sqlite:///agents.db?mode=ro",
        "sqlite:///agents\0.db",
        "postgres://user:secret@host/db",
        "postgresql://user:secret@host/db?no_such_option=1",
        "postgresql://user:secret@host:port/db%",
        "Redis://:secret@host",
        "redis:/host/0",
        "redis://:secret@host:port/0",
        "redis://:sec#ret@host:6379/0",
        "redis://:sec/ret@host:6379/0",
        "redis://:secret@host/zero",
        "redis://:secret@host/0?no_such_option=1",
        "redis://:secret@host/0?socket_timeout=secret",
        "redis+cluster://:secret@host:port",
        "redis+cluster://:secret@host,,other",
        "redis+cluster://:secret@host/1",
        "redis+cluster://:secret@host?no_such_option=1",
        "redis+sentinel://:secret@host",
        "redis+sentinel://:secret@host/shop/zero",
        "redis+http://:secret@host",
    ],
)
def test_any_other_url_is_a_mistake_that_is_explained_without_repeating_it(url):
    needs_pool(url)
    with pytest.raises(DeclarationError) as caught:
        open_store(url, "shop")
    assert caught.value.subject == "site"
    assert "store=" in caught.value.detail
    assert "store=" in caught.value.remedy
    assert "sec" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


async def test_a_relative_path_stays_where_it_was_when_the_process_moves(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = open_store("sqlite:///agents.db", "shop")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    await store.run([Add("key", b"one", 60)])
    await store.close()
    assert (tmp_path / "agents.db").exists()


async def test_sites_that_share_a_store_do_not_see_each_other(tmp_path, redis_url):
    for url in (f"sqlite:///{tmp_path}/agents.db", redis_url):
        one, other = open_store(url, "one"), open_store(url, "other")
        await one.run([Add("key", b"one", 60)])
        assert (await other.run([Look("key")])).seen == (None,)
        await one.close()
        await other.close()


def run_python(script):
    return subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "scheme", "extra"),
    [("redis", "redis", "redis"), ("psycopg", "postgresql", "postgres"), ("psycopg_pool", "postgresql", "postgres")],
)
def test_a_missing_package_is_named(package, scheme, extra):
    script = (
        "import sys\n"
        f"sys.modules[{package!r}] = None\n"
        "from awp_publish.plugin import open_store\n"
        "try:\n"
        f"    open_store('{scheme}://:secret@host', 'shop')\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    said = run_python(script).stdout
    assert said.startswith("DeclarationError")
    assert f"the package {package} is missing" in said
    assert f'pip install "awp-publish[{extra}]"' in said
    assert "secret" not in said


def test_only_what_is_used_is_imported():
    script = (
        "import sys\n"
        "from awp_publish.plugin import open_store\n"
        "open_store('memory:', 'shop')\n"
        "assert not {'redis', 'awp_publish.plugins.sqlite.store', 'awp_publish.stores.batches'} & set(sys.modules)\n"
    )
    run_python(script)
