"""A Redis Cluster, and a primary with sentinels: what is in several places, what moves, and who takes whose place."""

import asyncio
import time
from collections import Counter
from contextlib import suppress
from uuid import uuid4

import httpx
import pytest
import redis
from starlette.applications import Starlette

from awp_publish import AgentPublisher, BearerToken, Site
from awp_publish.http.running import running
from awp_publish.plugins.idempotency import gate as idempotency
from awp_publish.plugins.jobs.jobs import JobStore
from awp_publish.plugins.redis.cluster import RedisClusterStore
from awp_publish.plugins.redis.store import RedisStore
from awp_publish.problems import StoreUnavailable
from awp_publish.stores import Add, Count, Counted, Look, Ran, Reserve, Schedule, Swap, Unschedule
from tests.redis_server import RedisServer, find_binary

ANN, BEN = "{user:ann}", "{user:ben}"  # in slots of different servers


@pytest.fixture
async def store(redis_cluster):
    made = RedisClusterStore(redis_cluster.url, uuid4().hex, timeout=20)
    yield made
    await made.close()


async def look(store, *keys):
    return (await store.run([Look(key) for key in keys])).seen


def test_the_places_of_these_tests_are_on_different_servers(redis_cluster):
    servers = {redis_cluster.primary_of(place.encode()) for place in (ANN, BEN)}
    assert len(servers) == 2


async def test_steps_in_several_places_are_done_in_their_order(store):
    steps = [
        Count("in total", 5, 60),
        Add(f"{ANN}key", b"1", 60),
        Count(f"{BEN}count", 5, 60),
        Schedule("queue", "m", 0),
    ]
    ran = await store.run(steps)
    assert ran.failed is None
    assert [seen.events if isinstance(seen, Counted) else seen for seen in ran.seen] == [1, None, 1, None]
    assert await store.take("queue", 60, 5) == ("m",)
    assert await look(store, f"{ANN}key", f"{BEN}key", *map(str, range(200))) == (b"1", *[None] * 201)


async def test_a_count_for_all_callers_that_does_not_hold_keeps_the_claim_from_being_made(store):
    await store.run([Count("in total", 1, 60)])
    ran = await store.run([Count("in total", 1, 60), Add(f"{ANN}key", b"1", 60)])
    assert ran.failed == 0
    assert await look(store, f"{ANN}key") == (None,)


async def test_additions_and_reservations_are_undone_if_a_later_step_refuses(store):
    await store.run([Add(f"{BEN}there", b"old", 60)])
    ran = await store.run(
        [
            Count(f"{ANN}count", 5, 60),
            Add(f"{ANN}key", b"1", 60),
            Reserve(f"{ANN}bytes", 7, 10, 60),
            Add(f"{BEN}there", b"new", 60),
            Add(f"{ANN}never", b"1", 60),
        ]
    )
    assert ran == Ran(3, (Counted(1, ran.seen[0].seconds_left), None, Counted(0, 0.0), b"old"))
    assert await look(store, f"{ANN}key", f"{BEN}there", f"{ANN}never") == (None, b"old", None)
    assert (await store.run([Reserve(f"{ANN}bytes", 10, 10, 60)])).failed is None
    assert (await store.run([Count(f"{ANN}count", 5, 60)])).seen[0].events == 2


@pytest.mark.parametrize("step", [Swap(f"{ANN}key", b"1", b"2", 60), Schedule(f"{ANN}q", "m", 0), Unschedule("q", "m")])
async def test_irrevocable_steps_come_after_those_that_may_fail(store, step, caplog):
    await store.run([Add(f"{ANN}key", b"1", 60)])
    may_fail = Add(f"{BEN}key", b"1", 60), Swap(f"{BEN}key", b"1", b"2", 60)
    for later in (*((each,) for each in may_fail), (Look(f"{BEN}key"), Add(f"{ANN}new", b"1", 60))):
        with pytest.raises(StoreUnavailable):
            await store.run([step, *later])
    assert "put its Swap and its queue steps last" in caplog.text
    assert await look(store, f"{ANN}key", f"{BEN}key") == (b"1", None)
    assert (await store.run([Add(f"{BEN}key", b"1", 60), step])).failed is None


async def test_a_slot_that_is_moved_is_found_at_every_stage(redis_cluster):
    namespace = uuid4().hex
    store = RedisClusterStore(redis_cluster.url, namespace, timeout=20)
    name = f"awp:{namespace}:v:{ANN}old".encode()
    source = redis_cluster.primary_of(name)
    target = redis_cluster.primary_of(BEN.encode())
    try:
        await store.run([Add(f"{ANN}old", b"1", 60)])
        with redis.Redis(port=source.port) as here, redis.Redis(port=target.port) as there:
            slot = here.execute_command("CLUSTER KEYSLOT", name)
            here_id, there_id = (item.execute_command("CLUSTER MYID").decode() for item in (here, there))
            there.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", here_id)
            here.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", there_id)
            assert (await store.run([Add(f"{ANN}new", b"2", 60)])).failed is None  # by ASK at the new server
            assert await look(store, f"{ANN}old") == (b"1",)
            both = asyncio.create_task(store.run([Look(f"{ANN}old"), Add(f"{ANN}third", b"3", 60)]))
            await asyncio.sleep(0.2)
            assert not both.done()  # Redis refuses a run on keys of which some are not there, until the slot has moved
            keys = here.execute_command("CLUSTER GETKEYSINSLOT", slot, 100)
            here.execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
            for server in (there, here):
                server.execute_command("CLUSTER SETSLOT", slot, "NODE", there_id)
            assert await both == Ran(None, (b"1", None))
            assert await look(store, f"{ANN}old", f"{ANN}new", f"{ANN}third") == (b"1", b"2", b"3")
    finally:
        await store.close()
        with redis.Redis(port=source.port) as here, redis.Redis(port=target.port) as there:
            keys = there.execute_command("CLUSTER GETKEYSINSLOT", slot, 100)
            there.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", here_id)
            here.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", there_id)
            there.execute_command("MIGRATE", "127.0.0.1", source.port, "", 0, 5000, "KEYS", *keys)
            for server in (here, there):
                server.execute_command("CLUSTER SETSLOT", slot, "NODE", here_id)


@pytest.mark.needs("woa")
async def test_a_call_of_a_known_caller_goes_to_the_store_once_before_and_once_after(redis_cluster):
    store = RedisClusterStore(redis_cluster.url, "shop.example", timeout=20)
    site = make_site(store)

    @site.agent("order", effect="write", idempotency="24h", rate_limit="9/minute", auth_required=True)
    async def order(book: str) -> str:
        "Order a book."
        return book

    async with client_of(site) as client:
        await invoke(client, "order", {"book": "first"}, "first")  # connections are opened, scripts are loaded
        before = scripts_run(redis_cluster)
        assert (await invoke(client, "order", {"book": "Emma"}, "second")).status_code == 200
        assert scripts_run(redis_cluster) - before == 2
    await store.close()


def scripts_run(cluster):
    calls = 0
    for server in cluster.servers:
        with redis.Redis(port=server.port) as client:
            stats = client.info("commandstats").get("cmdstat_evalsha", {})
            calls += stats.get("calls", 0) if client.info("replication")["role"] == "master" else 0
    return calls


# A primary that is killed in the middle of calls

ORDERS = 60


def make_site(store):
    return Site(
        name="Shop",
        description="Sells books.",
        url="https://shop.example",
        store=store,
        secret_keys=["a-secret-key-of-this-test-and-no-one-else"],
        authenticate=[BearerToken({f"token-{name}": name for name in NAMES})],
    )


NAMES = [f"caller{number}" for number in range(12)]  # on all servers


def client_of(site):
    return _Client(AgentPublisher(Starlette(), site=site, check=False))


class _Client(httpx.AsyncClient):
    """A client of an application that runs as long as it is open."""

    def __init__(self, app) -> None:
        super().__init__(transport=httpx.ASGITransport(app), base_url="https://shop.example")
        self._running = running(app)

    async def __aenter__(self):
        await self._running.__aenter__()
        return await super().__aenter__()

    async def __aexit__(self, *error) -> None:
        await super().__aexit__(*error)
        await self._running.__aexit__(*error)


async def invoke(client, action, members, key, name=NAMES[0]):
    headers = {"idempotency-key": key, "authorization": f"Bearer token-{name}"}
    return await client.post(f"/agents/{action}/invoke", json={"input": members}, headers=headers)


class Life:
    """A site on a store whose primary dies, callers who call until they have an answer, and what has been done."""

    def __init__(self, store) -> None:
        self.ran: Counter[str] = Counter()
        self.begun = asyncio.Event()
        self.answered: dict[str, tuple[str, httpx.Response]] = {}
        self.accepted: dict[str, tuple[str, httpx.Response]] = {}
        site = self.site = make_site(store)

        @site.agent("order", effect="write", idempotency="24h", timeout=1, auth_required=True)
        async def order(number: str) -> str:
            "Order a book."
            self.ran[number] += 1
            self.begun.set()
            await asyncio.sleep(0.02)
            return number

        @site.agent("print", effect="write", idempotency="24h", execution="async", timeout=1, auth_required=True)
        async def print_book(number: str) -> str:
            "Print a book."
            self.ran[number] += 1
            return number

    async def call(self, client, action, number):
        """Call until the site knows what has become of the call."""
        name, give_up = NAMES[number % len(NAMES)], time.monotonic() + 60
        while time.monotonic() < give_up:
            answer = await invoke(client, action, {"number": f"{action}{number}"}, f"{action}{number}", name)
            if answer.status_code in (200, 202):
                (self.answered if answer.status_code == 200 else self.accepted)[f"{action}{number}"] = name, answer
                return
            assert answer.json()["code"] in TEMPORARY | {"OUTCOME_UNKNOWN"}, answer.text
            if answer.json()["code"] == "OUTCOME_UNKNOWN":
                return
            await asyncio.sleep(0.2)
        raise AssertionError("the store did not come back")

    async def go_through(self, kill):
        async with client_of(self.site) as client:
            calls = [self.call(client, action, number) for number in range(ORDERS) for action in ("order", "print")]
            crowd = asyncio.gather(*calls[: len(calls) // 2])
            await self.begun.wait()
            await asyncio.to_thread(kill)
            await asyncio.gather(crowd, *calls[len(calls) // 2 :])
            assert max(self.ran.values()) == 1
            for number, (name, _) in self.answered.items():
                again = await invoke(client, "order", {"number": number}, number, name)
                if again.status_code == 200:
                    assert (again.json(), again.headers["idempotent-replayed"]) == (number, "true")
                else:  # it could not be recorded: the key says so
                    assert again.json()["code"] in {"OUTCOME_UNKNOWN", "IDEMPOTENCY_KEY_IN_FLIGHT"}
            assert self.accepted
            for name, answer in self.accepted.values():
                assert await self.ends(client, answer.json()["job_id"], name) in {"done", "failed"}
        assert max(self.ran.values()) == 1
        assert len(self.answered) > ORDERS / 2

    async def ends(self, client, job_id, name):
        """Return how an accepted job has ended; it is never unknown."""
        give_up = time.monotonic() + 90
        while time.monotonic() < give_up:
            answer = await client.get(f"/agents/jobs/{job_id}", headers={"authorization": f"Bearer token-{name}"})
            if answer.status_code == 200 and answer.json()["status"] in {"done", "failed"}:
                return answer.json()["status"]
            assert answer.status_code in (200, 503), answer.text
            await asyncio.sleep(0.2)
        raise AssertionError("the job does not end")


TEMPORARY = {"STORE_UNAVAILABLE", "IDEMPOTENCY_KEY_IN_FLIGHT"}


@pytest.fixture
def short_leases(monkeypatch):
    """Jobs and keys whose beginning could not be recorded are free after seconds, instead of after half a minute."""
    monkeypatch.setattr(idempotency, "ACCEPTING_SECONDS", 10.0)
    for name, seconds in {"lease_seconds": 4.0, "beat_seconds": 1.0}.items():
        monkeypatch.setitem(JobStore.__init__.__kwdefaults__, name, seconds)


@pytest.mark.slow
@pytest.mark.usefixtures("short_leases")
async def test_calls_go_on_when_a_primary_of_the_cluster_is_killed_and_nothing_is_done_twice(start_cluster):
    cluster = await asyncio.to_thread(start_cluster)
    store = RedisClusterStore(cluster.url, "shop.example", timeout=3)
    jobs = cluster.primary_of(b"{jobs}")  # the server of all jobs, and of some callers

    def kill() -> None:
        jobs.stop()

    await Life(store).go_through(kill)
    cluster.settle(2)
    await store.close()


@pytest.mark.slow
@pytest.mark.usefixtures("short_leases")
async def test_calls_go_on_when_sentinels_name_another_primary_and_nothing_is_done_twice(start_sentinels):
    primary, url = await asyncio.to_thread(start_sentinels)
    store = RedisStore(url, "shop.example", timeout=3)
    await Life(store).go_through(primary.stop)
    await store.close()


@pytest.fixture
def start_sentinels(tmp_path):
    """Start a primary with a replica and three sentinels."""
    servers = []

    def begin(name, options, *flags):
        place = tmp_path / name
        place.mkdir()
        server = RedisServer(find_binary(), place, options, flags)
        servers.append(server)
        server.start()
        return server

    def start():
        primary = begin("primary", {"repl-diskless-sync-delay": 0})
        begin("replica", {"replicaof": f"127.0.0.1 {primary.port}"})
        sentinels = []
        for number in range(3):
            file = tmp_path / f"sentinel{number}.conf"
            file.write_text(
                f"sentinel monitor shop 127.0.0.1 {primary.port} 2\n"
                "sentinel down-after-milliseconds shop 500\nsentinel failover-timeout shop 3000\n"
            )
            sentinels.append(begin(f"sentinel{number}", {}, str(file), "--sentinel"))
        give_up = time.monotonic() + 60
        while not all(knows_all(server) for server in sentinels):
            assert time.monotonic() < give_up, "the sentinels do not know each other"
            time.sleep(0.1)
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in sentinels)
        return primary, f"redis+sentinel://{hosts}/shop"

    yield start
    for server in servers:
        server.stop()


def knows_all(sentinel):
    with suppress(redis.RedisError), redis.Redis(port=sentinel.port) as client:
        [facts] = client.sentinel_masters().values()
        return facts["num-other-sentinels"] == 2 and facts["num-slaves"] == 1
    return False
