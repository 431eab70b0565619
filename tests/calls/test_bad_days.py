"""Bad days: applications that race, stores that are gone, slow or full, callers who hang up."""

import asyncio
import time
from contextlib import suppress

import orjson
import pytest
import redis
from starlette.applications import Starlette

from awp_publish import AgentPublisher, Limits
from awp_publish.plugins.redis.store import RedisStore
from awp_publish.plugins.sqlite.store import SqliteStore
from awp_publish.problems import StoreUnavailable
from awp_publish.stores import ForeignStore
from awp_publish.stores.memory import MemoryStore
from awp_publish.stores.store import Store
from tests.guarded import ANN, KEYS, Caller, Watched, invoke, known_callers, make_shop, publish, status_and_code

pytestmark = pytest.mark.needs("woa", "plain")

KEY = {"idempotency-key": "k-1"}


def make_app(store, **options):
    """An application whose orders are counted, with a store of any kind."""
    site = make_shop(store=store, secret_keys=KEYS, authenticate=known_callers(), **options)
    orders: list[object] = []

    @site.agent("order", idempotency="24h", timeout=5)
    async def order(number: int = 0) -> int:
        """Order a book."""
        await asyncio.sleep(0)
        orders.append(number)
        return len(orders)

    @site.agent("pay", confirm=True)
    async def pay(number: int = 0) -> str:
        """Pay a book."""
        orders.append(number)
        return "paid"

    @site.agent("look", rate_limit="1000/second")
    async def look() -> str:
        """Look at books."""
        return "books"

    @site.agent("greet")
    async def greet() -> str:
        """Greet."""
        return "hello"

    @site.agent("print", execution="async", idempotency="24h")
    async def print_book() -> str:
        """Print a book."""
        orders.append("printed")
        return "printed"

    return AgentPublisher(Starlette(), site=site), orders


@pytest.fixture(params=["sqlite", "redis"])
async def stores(request, tmp_path):
    """Two stores, as two processes have them, with the same things in them."""
    if request.param == "redis":
        url, namespace = request.getfixturevalue("redis_url"), f"race-{time.time()}"
        both: list[Store] = [RedisStore(url, namespace) for _ in range(2)]
    else:
        both = [SqliteStore(f"{tmp_path}/agents.db", "shop") for _ in range(2)]
    yield both
    for store in both:
        await store.close()


# --- Races ---


async def test_one_of_two_applications_that_race_for_a_key_runs_the_call(stores):
    apps, orders = zip(*(make_app(store) for store in stores), strict=True)
    for turn in range(100):
        key = {"idempotency-key": f"k-{turn}"}
        callers = [Caller(app, "order", {"number": turn}, key) for app in apps]
        await asyncio.gather(*(caller.call() for caller in callers))
        won = [caller for caller in callers if caller.status == 200 and b"idempotent-replayed" not in caller.headers]
        lost = next(caller for caller in callers if caller is not won[0])
        assert (len(won), lost.code or lost.body) in ((1, "IDEMPOTENCY_KEY_IN_FLIGHT"), (1, won[0].body))
        assert orders[0].count(turn) + orders[1].count(turn) == 1


async def test_one_of_two_applications_that_race_for_a_confirmation_wins(stores):
    apps, orders = zip(*(make_app(store) for store in stores), strict=True)
    for turn in range(100):
        asked = await Caller(apps[turn % 2], "pay", {"number": turn}).call()
        header = {"awp-confirmation": orjson.loads(asked.body)["confirmation"]["token"]}
        callers = [Caller(app, "pay", {"number": turn}, header) for app in apps]
        await asyncio.gather(*(caller.call() for caller in callers))
        assert sorted(caller.code for caller in callers) == ["", "CONFIRMATION_SPENT"]
        assert orders[0].count(turn) + orders[1].count(turn) == 1


# --- Stores that are gone, slow, full or broken ---


async def _gone(steps):
    raise StoreUnavailable("The site's store cannot be reached.")


async def _silent(steps):
    await asyncio.Event().wait()


async def _broken(steps):
    raise ConnectionError("secret-host:6379 does not answer")


@pytest.mark.parametrize("trouble", [_gone, _silent, _broken])
async def test_without_its_store_only_calls_that_need_it_are_refused(trouble):
    store = Watched(MemoryStore())
    app, orders = make_app(ForeignStore(store, timeout=0.1))
    store.trouble = trouble
    for agent, headers in (("order", KEY), ("look", {})):
        refused = await Caller(app, agent, {}, headers).call()
        assert (refused.status, refused.code) == (503, "STORE_UNAVAILABLE")
        assert int(refused.headers[b"retry-after"]) >= 1
        assert b"secret-host" not in refused.body
    assert (await Caller(app, "greet", {}).call()).body == b'"hello"'
    assert (await Caller(app, "order", {}).call()).body == b"1"  # no key, nothing to remember
    assert (await Caller(app, "pay", {}).call()).code == "CONFIRMATION_REQUIRED"
    store.trouble = None
    assert (await Caller(app, "order", {}, KEY).call()).status == 200
    assert len(orders) == 2


def is_answered(client) -> bool:
    """Whether a call is answered now; a busy machine may take a moment to be back."""
    answered = bool(invoke(client, "order", headers=KEY).status_code == 200)
    if not answered:
        time.sleep(0.1)
    return answered


def test_a_redis_that_crashes_pauses_and_comes_back(open_client, start_redis):
    server = start_redis()
    site = make_shop(store=RedisStore(server.url, "shop", timeout=2.0))

    @site.agent("order", idempotency="24h", rate_limit="100/minute")
    async def order() -> int:
        """Order a book."""
        return 1

    @site.agent("greet")
    async def greet() -> str:
        """Greet."""
        return "hello"

    client = publish(site, open_client)
    assert any(is_answered(client) for _ in range(100))
    for spoil, mend in ((server.pause, server.resume), (server.stop, server.start)):
        spoil()
        refused = invoke(client, "order", headers=KEY)
        assert status_and_code(refused) == (503, "STORE_UNAVAILABLE")
        assert "retry-after" in refused.headers
        assert "127.0.0.1" not in refused.text
        assert invoke(client, "greet").json() == "hello"
        mend()
        assert any(is_answered(client) for _ in range(100))


def test_a_full_store_refuses_what_it_cannot_keep(open_client):
    app, orders = make_app(MemoryStore(most_entries=4))  # three keys, and the count of them
    client = open_client(app)
    answers = [invoke(client, "order", headers={"idempotency-key": f"k-{n}"}) for n in range(5)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 503, 503]
    assert status_and_code(answers[4]) == (503, "STORE_UNAVAILABLE")
    assert invoke(client, "order", headers={"idempotency-key": "k-0"}).json() == 1
    assert len(orders) == 3


# --- The record fails after the handler ---


@pytest.mark.parametrize("trouble", [_gone, _silent, _broken])
async def test_an_answer_that_cannot_be_recorded_is_given_and_its_key_does_not_run_again(trouble):
    store = Watched(MemoryStore())
    app, orders = make_app(ForeignStore(store, timeout=0.1))

    async def trouble_at_the_end(steps):
        if type(steps[0]).__name__ == "Swap":
            await trouble(steps)

    store.trouble = trouble_at_the_end
    assert (await Caller(app, "order", {}, KEY).call()).body == b"1"
    store.trouble = None
    assert (await Caller(app, "order", {}, KEY).call()).code == "IDEMPOTENCY_KEY_IN_FLIGHT"
    assert len(orders) == 1


async def test_a_job_that_may_have_been_accepted_is_not_started_again_under_its_key():
    """The store takes the job and fails before it says so: nobody can tell."""
    store = Watched(MemoryStore())
    app, orders = make_app(store)

    async def lose_the_answer(steps):
        if any(type(step).__name__ == "Schedule" for step in steps) and store.trouble is not None:
            store.trouble = None
            await store._store.run(steps)
            raise StoreUnavailable("The site's store did not answer in time.")

    store.trouble = lose_the_answer
    first = await Caller(app, "print", {}, KEY).call()
    assert (first.status, first.code) == (503, "STORE_UNAVAILABLE")
    assert (await Caller(app, "print", {}, KEY).call()).code == "OUTCOME_UNKNOWN"
    assert len(orders) <= 1


# --- Callers who hang up ---


def slow_app():
    site, begun, ended = make_shop(), asyncio.Event(), []
    go = asyncio.Event()

    @site.agent("order", idempotency="24h")
    async def order() -> str:
        """Order a book."""
        begun.set()
        try:
            await go.wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        ended.append("done")
        return "ordered"

    return AgentPublisher(Starlette(), site=site), begun, go, ended


async def test_a_call_with_a_key_is_carried_to_its_end_though_its_caller_hung_up():
    app, begun, go, ended = slow_app()
    caller = Caller(app, "order", {}, KEY)
    call = asyncio.create_task(caller.call())
    await begun.wait()
    caller.hang_up()
    await asyncio.sleep(0.25)
    go.set()
    await call
    again = await Caller(app, "order", {}, KEY).call()
    assert (again.body, again.headers[b"idempotent-replayed"], ended) == (b'"ordered"', b"true", ["done"])


async def test_a_call_without_a_key_is_cancelled_when_its_caller_hangs_up():
    app, begun, _, ended = slow_app()
    caller = Caller(app, "order", {})
    call = asyncio.create_task(caller.call())
    await begun.wait()
    caller.hang_up()
    with suppress(asyncio.CancelledError):
        await asyncio.wait_for(call, 20)
    assert (ended, caller.is_answered) == (["cancelled"], False)


# --- What a guarded call costs ---


async def test_a_guarded_call_costs_two_round_trips(redis_url):
    app, orders = make_app(RedisStore(redis_url, f"trips-{time.time()}"), limits=Limits(rate_limit="1000/minute"))
    server = redis.Redis.from_url(redis_url)
    first = await Caller(app, "order", {}, ANN | {"idempotency-key": "warm-up"}).call()
    assert first.status == 200
    before = commands(server)
    assert (await Caller(app, "order", {}, ANN | KEY).call()).status == 200
    assert commands(server) - before == 2
    assert (await Caller(app, "order", {}, ANN | KEY).call()).status == 200  # a replay is one
    assert commands(server) - before == 3
    assert len(orders) == 2
    server.close()


def commands(server) -> int:
    """The scripts that the server has run."""
    return int(server.info("commandstats")["cmdstat_evalsha"]["calls"])
