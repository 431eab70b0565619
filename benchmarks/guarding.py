"""What guards cost: an unguarded call beside the same call before there were any, and each promise beside its rival.

Keys are new for every request, so that nothing is replayed but what is meant to be. The store on SQLite and its rival,
one INSERT, are as durable as each other: both wait for the disk once a call.
"""

import asyncio
import base64
import sqlite3
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, TypeAlias

import redis
from fastapi import FastAPI, Request
from itsdangerous import TimestampSigner
from starlette.applications import Starlette
from starlette.middleware.sessions import SessionMiddleware

import awp_publish
from awp_publish.http.exchange import AsgiApp, RawHeaders
from benchmarks.applications import (
    FUNCTION_INVOKE,
    INVOCATION,
    ORDER_INVOKE,
    ORDERS,
    Order,
    Receipt,
    json_headers,
    order_books,
)
from benchmarks.before import SMALL_PIECES, UNGUARDED, load_before
from benchmarks.measure import Case, Series, ask, interleave, on_each_loop
from benchmarks.postgres_server import counting, running_postgres
from benchmarks.redis_server import running_redis
from benchmarks.table import Row, added, at_most, compare, of_before

AT_ONCE = 16
CALLS = 100
ENDLESS = "100000000/hour"
TOKEN = "a-token-of-the-benchmark"
BEFORE = "the same call before there were guards"
_keys = count()

Insert: TypeAlias = Callable[[Receipt], Awaitable[object]]


def guarding(seconds: float) -> list[Row]:
    """The rows of calls in process."""
    before, pieces = load_before(UNGUARDED), load_before(SMALL_PIECES)
    with TemporaryDirectory() as folder:
        found = on_each_loop(lambda: _measure(seconds / 2, before, pieces, Path(folder)))
    unguarded = "a call with no gate declared"
    gates, small, most = "what bearer, limit and key add, in memory", "the same in many small modules", at_most(0.6)
    return [
        added(unguarded, found, "unguarded", "before", BEFORE, at_most(1.0, "us"))
        if before is not None
        else Row(unguarded, BEFORE, None, at_most(1.0, "us"), "the history is not at hand"),
        added("traffic", found, "counted", "unguarded", "the same call, not counted", at_most(2.0, "us")),
        added(
            "bearer check, limit and idempotency record, in memory",
            found,
            "guarded",
            "counted",
            "the same call without them",
            at_most(40.0, "us"),
        ),
        of_before(gates, found, "guarded", "counted", "old guarded", "old unguarded", small, most)
        if pieces is not None
        else Row(gates, small, None, most, "the history is not at hand"),
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
    app = _guarded(store=url)
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


async def _measure(
    seconds: float, before: ModuleType | None, pieces: ModuleType | None, folder: Path
) -> dict[str, Series]:
    headers = json_headers(INVOCATION)
    keyed, stored = _route(idempotency=True), f"sqlite:///{folder / 'agents.db'}"
    bearer = (*headers, (b"authorization", f"Bearer {TOKEN}".encode()))
    cases = [
        _case("unguarded", _function(awp_publish, {"plugins": ["no:traffic"]}), headers),
        _case("counted", _function(awp_publish), headers),
        _case("guarded", _guarded(), bearer, _fresh_key),
        Case("sqlite", _route(store=stored, idempotency=True), ORDER_INVOKE, "POST", headers, INVOCATION, _fresh_key),
        Case("insert", _route(insert=_inserting(folder / "rival.db")), ORDER_INVOKE, "POST", headers, INVOCATION),
        Case("keyed", keyed, ORDER_INVOKE, "POST", headers, INVOCATION, _fresh_key),
        Case("replay", keyed, ORDER_INVOKE, "POST", (*headers, (b"idempotency-key", b"one")), INVOCATION),
    ]
    cases += [replace(case, name=f"{case.name} together", at_once=AT_ONCE) for case in cases[3:5]]
    if before is not None:
        cases.append(_case("before", _function(before), headers))
    if pieces is not None:
        cases.append(_case("old unguarded", _function(pieces), headers))
        cases.append(_case("old guarded", _guarded(package=pieces), bearer, _fresh_key))
    visited = _visited()
    begun = dict((await ask(Case("", visited, ORDER_INVOKE, "POST", headers, INVOCATION))).headers)
    jar = (b"cookie", b"session=" + _cookie())
    for name, shown in (("session", (b"awp-session", begun[b"awp-session"])), ("cookie", jar)):
        cases.append(Case(name, visited, ORDER_INVOKE, "POST", (*headers, shown), INVOCATION))
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


# --- The applications ----------------------------------------------------------------------------------------------


def _function(package: ModuleType, site_options: dict[str, Any] | None = None, **options: Any) -> AsgiApp:
    """One function as an agent, in a Starlette application; `package` is awp_publish of today or of before."""
    site = package.Site("Bookshop", "Find and order books.", "https://books.example", **(site_options or {}))

    async def price(order: Order) -> Receipt:
        """Say what books would cost."""
        return await order_books(order)

    site.agent("price_books", **options)(price)
    app = Starlette()
    app.add_middleware(package.AgentPublisher, site=site)
    return app


def _guarded(store: str = "memory:", package: ModuleType = awp_publish) -> AsgiApp:
    site_options = {"authenticate": package.BearerToken({TOKEN: "partner"}), "store": store}
    options = {"auth_required": True, "rate_limit": ENDLESS, "idempotency": True}
    return _function(package, site_options, **options)


def _route(insert: Insert | None = None, store: str = "memory:", cookies: bool = False, **options: Any) -> AsgiApp:
    """A FastAPI route as an action. With `insert` its handler writes a row of its own, with `cookies` it sets one."""
    site = awp_publish.Site("Bookshop", "Find and order books.", "https://books.example", store=store)

    async def order(order: Order) -> Receipt:
        """Order books; the answer is the receipt."""
        receipt = await order_books(order)
        if insert is not None:
            await insert(receipt)
        return receipt

    app = FastAPI()
    app.post(ORDERS)(order)
    site.action("order_books", **options)(order)
    app.add_middleware(awp_publish.AgentPublisher, site=site)
    return app


def _visited() -> AsgiApp:
    """A FastAPI route that keeps something in its caller's session."""
    site = awp_publish.Site("Bookshop", "Find and order books.", "https://books.example")

    async def order(order: Order, request: Request) -> Receipt:
        """Order books; the answer is the receipt."""
        request.session.setdefault("seen", "yes")
        return await order_books(order)

    app = FastAPI()
    app.post(ORDERS)(order)
    site.action("order_books")(order)
    app.add_middleware(awp_publish.AgentPublisher, site=site)
    app.add_middleware(SessionMiddleware, secret_key=TOKEN)
    return app


def _cookie() -> bytes:
    """What a browser sends that has been here before."""
    return TimestampSigner(TOKEN).sign(base64.b64encode(b'{"seen":"yes"}'))


def _inserting(path: Path) -> Insert:
    """One row that waits for the disk, in a thread as one does."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, body BLOB)")

    async def insert(receipt: Receipt) -> None:
        row = (f"key-{next(_keys)}", receipt.model_dump_json())
        await asyncio.to_thread(connection.execute, "INSERT INTO answers VALUES (?, ?)", row)

    return insert
