"""What guards cost: what they add to a call beside a direct POST, and each promise beside its rival.

Keys are new for every request, so that nothing is replayed but what is meant to be. The store on SQLite and its rival,
one INSERT, are as durable as each other: both wait for the disk once a call.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import redis

from awp_publish.http.exchange import AsgiApp, RawHeaders
from benchmarks.guarded_applications import TOKEN, cookie, function, guarded, inserting, route, visited
from benchmarks.measure import Case, Series, ask, interleave, on_each_loop
from benchmarks.postgres_server import counting, running_postgres
from benchmarks.redis_server import running_redis
from benchmarks.shop import FUNCTION_INVOKE, INVOCATION, ORDER, ORDER_INVOKE, ORDERS, json_headers, shop
from benchmarks.table import Row, added, at_most, compare, share

AT_ONCE = 16
CALLS = 100
_keys = count()


def guarding(seconds: float) -> list[Row]:
    """The rows of calls in process."""
    with TemporaryDirectory() as folder:
        found = on_each_loop(lambda: _measure(seconds / 2, Path(folder)))
    return [
        added("traffic", found, "counted", "unguarded", "the same call, not counted", at_most(2.0, "us")),
        added(
            "bearer check, limit and idempotency record, in memory",
            found,
            "guarded",
            "counted",
            "the same call without them",
            at_most(40.0, "us"),
        ),
        share(
            "what bearer, limit and key add, in memory",
            found,
            "guarded",
            "counted",
            "post",
            "direct POST of a route without awp_publish",
            at_most(0.56),
        ),
        compare(
            "a call in a session, in memory", found, "session", "cookie", "the same with a cookie jar", at_most(1.75)
        ),
        compare(
            "idempotent call on SQLite, durable",
            found,
            "sqlite",
            "insert",
            "the call plus an INSERT as durable",
            at_most(1.5),
        ),
        compare(
            f"the same, {AT_ONCE} calls at once",
            found,
            "sqlite together",
            "insert together",
            "the call plus an INSERT as durable",
            at_most(1.5),
        ),
        _trips_to_redis(),
        _trips_to_postgres(),
        compare("an idempotent replay", found, "replay", "keyed", "the call it replays", at_most(0.5)),
    ]


def _trips_to_redis() -> Row:
    """Counted by the server: whatever a guarded call sends is one script."""
    what, beside, limit = "guarded call on Redis", "counted, not timed", at_most(2, "trips")
    with running_redis() as url:
        if url is None:
            return Row(what, beside, None, limit, "redis-server is not installed", "trips")
        with redis.Redis.from_url(url) as server:
            counted = asyncio.run(_count_trips(url, lambda: _commands(server)))
            return Row(what, beside, counted, limit, f"over {CALLS} calls", "trips")


def _trips_to_postgres() -> Row:
    """Counted on the way: each run locks and reads, then writes and commits."""
    what, beside, limit = "guarded call on PostgreSQL", "counted, not timed", at_most(4, "trips")

    async def count(server: Path) -> float:
        async with counting(server) as (url, trips):
            return await _count_trips(url, lambda: trips.count)

    with running_postgres() as server:
        if server is None:
            return Row(what, beside, None, limit, "PostgreSQL is not installed", "trips")
        return Row(what, beside, asyncio.run(count(server)), limit, f"over {CALLS} calls", "trips")


async def _count_trips(url: str, count: Callable[[], int]) -> float:
    """Round trips of a guarded call with a store that is at an address."""
    app = guarded(store=url)
    bearer = (*json_headers(INVOCATION), (b"authorization", f"Bearer {TOKEN}".encode()))
    case = _case("counted", app, bearer, _fresh_key)
    assert (await ask(case)).status == 200
    before = count()
    for _ in range(CALLS):
        assert (await ask(case)).status == 200
    return (count() - before) / CALLS


def _commands(server: "redis.Redis") -> int:
    """Scripts that were run; what a script does is done where the data is."""
    stats: Any = server.info("commandstats")
    return int(stats["cmdstat_evalsha"]["calls"])


async def _measure(seconds: float, folder: Path) -> dict[str, Series]:
    headers = json_headers(INVOCATION)
    keyed, stored = route(idempotency=True), f"sqlite:///{folder / 'agents.db'}"
    bearer = (*headers, (b"authorization", f"Bearer {TOKEN}".encode()))
    cases = [
        _case("unguarded", function({"plugins": ["no:traffic"]}), headers),
        _case("counted", function(), headers),
        _case("guarded", guarded(), bearer, _fresh_key),
        Case("sqlite", route(store=stored, idempotency=True), ORDER_INVOKE, "POST", headers, INVOCATION, _fresh_key),
        Case("insert", route(insert=inserting(folder / "rival.db")), ORDER_INVOKE, "POST", headers, INVOCATION),
        Case("keyed", keyed, ORDER_INVOKE, "POST", headers, INVOCATION, _fresh_key),
        Case("replay", keyed, ORDER_INVOKE, "POST", (*headers, (b"idempotency-key", b"one")), INVOCATION),
    ]
    cases += [replace(case, name=f"{case.name} together", at_once=AT_ONCE) for case in cases[3:5]]
    cases.append(Case("post", shop("nowhere"), ORDERS, "POST", json_headers(ORDER), ORDER, clock=time.thread_time))
    of_visitors = visited()
    begun = dict((await ask(Case("", of_visitors, ORDER_INVOKE, "POST", headers, INVOCATION))).headers)
    jar = (b"cookie", b"session=" + cookie())
    for name, shown in (("session", (b"awp-session", begun[b"awp-session"])), ("cookie", jar)):
        cases.append(Case(name, of_visitors, ORDER_INVOKE, "POST", (*headers, shown), INVOCATION))
    for case in cases:
        answer = await ask(case)
        assert answer.status == 200, (case.name, answer.body)
    again = await ask(cases[6])
    assert (b"idempotent-replayed", b"true") in again.headers
    return await interleave(cases, seconds)


def _case(name: str, app: AsgiApp, headers: RawHeaders, fresh: Callable[[], RawHeaders] | None = None) -> Case:
    return Case(name, app, FUNCTION_INVOKE, "POST", headers, INVOCATION, fresh, clock=time.thread_time)


def _fresh_key() -> RawHeaders:
    return ((b"idempotency-key", b"key-%d" % next(_keys)),)
