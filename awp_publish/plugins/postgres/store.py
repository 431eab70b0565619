"""The store on PostgreSQL, version 12 or newer, for sites that have one: `postgresql://user:password@host/database`.

One thread with an event loop of its own serves all loops and threads through a pool of at most POOL_SIZE connections,
which is opened by the first request and closed with the store. Requests that wait while every connection is busy become
one transaction of two round trips: one locks and reads, one writes and commits. Locks are advisory, one for each of
STRIPES parts of a namespace, always taken in the same order: other keys are not blocked, and there are no deadlocks.

Time is the server's, which all machines share. The two tables are created when they are missing; for a role without the
right to do so, somebody else executes `SCHEMA` beforehand. A `durable` run waits for the server's disk
(`synchronous_commit`); any other may be lost if the server crashes a moment later.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, LiteralString, NamedTuple, TypeAlias

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool

from awp_publish.plugins.postgres.pool import PooledThread
from awp_publish.problems import DeclarationError
from awp_publish.stores.batches import Answer, BatchedStore, RunSteps, StoreRequest, TakeDue
from awp_publish.stores.store import (
    CLOCK_TOLERANCE,
    NEVER_EXPIRES,
    Count,
    Reserve,
    Schedule,
    Unschedule,
    decode,
    encode,
    unavailable,
)
from awp_publish.stores.transaction import carry_out

POOL_SIZE: Final = 4
"""Maximum connections of a process. The pool closes those that stay idle for ten minutes."""

STRIPES: Final = 64
"""Advisory locks of a namespace; a batch takes those that its keys hash to."""

PURGE_EVERY: Final = 64
MAX_PURGED: Final = 1000
"""Requests after which expired entries are deleted, and how many of them at a time."""

TCP_USER_TIMEOUT_MS: Final = 10_000
"""Milliseconds without an acknowledgement after which the connection counts as lost, where the platform supports it."""

SCHEMA: Final[tuple[LiteralString, ...]] = (
    "CREATE TABLE IF NOT EXISTS awp_entries (key bytea PRIMARY KEY, value bytea NOT NULL, events bigint NOT NULL,"
    " expires double precision NOT NULL)",
    "CREATE INDEX IF NOT EXISTS awp_entries_expires ON awp_entries (expires)",
    "CREATE TABLE IF NOT EXISTS awp_queue (queue bytea, key bytea, member bytea NOT NULL,"
    " due double precision NOT NULL, since double precision NOT NULL, PRIMARY KEY (queue, key))",
    "CREATE INDEX IF NOT EXISTS awp_queue_due ON awp_queue (queue, due)",
)

_LOCK: Final = "SELECT pg_advisory_xact_lock(stripe) FROM unnest(%s::bigint[]) AS stripe"
_LOCK_LIGHTLY: Final = (
    "SELECT pg_advisory_xact_lock(stripe), set_config('synchronous_commit', 'off', true)"
    " FROM unnest(%s::bigint[]) AS stripe"
)
"""The same, without the commit waiting for the disk.

One statement, because each costs the client more than its work.
"""

_FIND: Final = (
    "SELECT now, key, value, events, expires"
    " FROM (SELECT extract(epoch FROM clock_timestamp())::double precision AS now) AS clock"
    " LEFT JOIN awp_entries ON key = ANY(%s)"
)
"""Each row has the time; if no entry is found, one row has it alone."""

_MEMBERS: Final = "SELECT queue, key FROM awp_queue WHERE queue = ANY(%s)"
_PUT: Final = (
    "INSERT INTO awp_entries (key, value, events, expires)"
    " SELECT * FROM unnest(%s::bytea[], %s::bytea[], %s::bigint[], %s::double precision[])"
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value, events = excluded.events, expires = excluded.expires"
)
_DROP: Final = "DELETE FROM awp_entries WHERE key = ANY(%s)"
_SCHEDULE: Final = (
    "INSERT INTO awp_queue (queue, key, member, due, since)"
    " SELECT * FROM unnest(%s::bytea[], %s::bytea[], %s::bytea[], %s::double precision[], %s::double precision[])"
    " ON CONFLICT (queue, key) DO UPDATE SET due = excluded.due, since = excluded.since"
)
_UNSCHEDULE: Final = (
    "DELETE FROM awp_queue USING unnest(%s::bytea[], %s::bytea[]) AS gone (queue, key)"
    " WHERE awp_queue.queue = gone.queue AND awp_queue.key = gone.key"
)
_PURGE: Final = (
    "DELETE FROM awp_entries WHERE key IN"
    " (SELECT key FROM awp_entries WHERE expires <= %s ORDER BY expires LIMIT %s FOR UPDATE SKIP LOCKED)"
)
_MAKE_DUE: Final = "UPDATE awp_queue SET due = %s, since = %s WHERE queue = %s AND since > %s"
_TAKE: Final = (
    "WITH taken AS (SELECT key, member, due FROM awp_queue WHERE queue = %(queue)s AND due <= %(now)s"
    " ORDER BY due, member LIMIT %(most)s),"
    " leased AS (UPDATE awp_queue SET due = %(again)s, since = %(now)s"
    " WHERE queue = %(queue)s AND key IN (SELECT key FROM taken))"
    " SELECT member FROM taken ORDER BY due, member"
)

_Entry: TypeAlias = tuple[bytes, int, float]
_Connection: TypeAlias = psycopg.AsyncConnection[Any]


class PostgresStore(BatchedStore):
    """Keeps everything in the tables awp_entries and awp_queue of a PostgreSQL database.

    Sites that share it are kept apart by their `namespace`. `clock` returns seconds since 1970; the default is the
    server's clock. `timeout` limits the seconds from a request to its answer. Raises DeclarationError for a URL that
    cannot be read, without repeating it: it may contain a password.
    """

    def __init__(
        self, url: str, namespace: str, *, clock: Callable[[], float] | None = None, timeout: float = 2.0
    ) -> None:
        try:
            conninfo_to_dict(url)
        except psycopg.Error:
            remedy = 'Write store="postgresql://user:password@host:5432/database", with a percent-encoded password.'
            raise DeclarationError("site", "store= is a PostgreSQL URL that cannot be read.", remedy) from None
        super().__init__(lambda: PooledThread(_PostgresBackend(url, namespace, clock, timeout), POOL_SIZE), timeout)


class _PostgresBackend:
    """The pool and the transactions on its connections."""

    def __init__(self, url: str, namespace: str, clock: Callable[[], float] | None, timeout: float) -> None:
        self._namespace = namespace
        self._lock = _number(f"{namespace}:lock") // STRIPES * STRIPES
        self._clock = clock
        self._timeout = timeout
        milliseconds = max(1, int(timeout * 1000))
        self._pool: AsyncConnectionPool[_Connection] = AsyncConnectionPool(
            url,
            kwargs={
                "autocommit": True,
                "connect_timeout": max(2, int(timeout)),
                "tcp_user_timeout": TCP_USER_TIMEOUT_MS,
                "options": f"-c statement_timeout={milliseconds} -c lock_timeout={milliseconds}",
                "application_name": "awp_publish",
                "prepare_threshold": None,  # a proxy such as PgBouncer may share server connections
            },
            min_size=0,
            max_size=POOL_SIZE,
            timeout=timeout,
            open=False,
            reconnect_timeout=0,  # waiting requests fail at once, and the next one tries again
            reconnect_failed=self._note_failed_connection,
        )
        self._has_tables = False
        self._connection_failed: asyncio.Future[None] | None = None
        self._changes = 0

    async def carry_out(self, requests: Sequence[StoreRequest]) -> None:
        """Carry out all steps in one transaction, or each request in its own if that failed.

        Raises StoreUnavailable.
        """
        steps = [request for request in requests if isinstance(request.order, RunSteps)]
        batches = [steps] if steps else []
        for batch in batches + [[request] for request in requests if isinstance(request.order, TakeDue)]:
            try:
                await self._transact(batch)
            except Exception as error:
                if isinstance(error, psycopg.OperationalError):
                    raise unavailable(_detail(error)) from error
                if isinstance(error, psycopg.errors.UndefinedTable):
                    self._has_tables = False
                if len(batch) > 1:
                    for request in batch:
                        await self.carry_out([request])
                else:
                    batch[0].answer = unavailable(_detail(error)) if isinstance(error, psycopg.Error) else error

    async def close(self) -> None:
        await self._pool.close()

    async def _connect(self) -> _Connection:
        """Return a connection from the pool. Raises psycopg.OperationalError as soon as a new one cannot be made."""
        await self._pool.open()
        if self._connection_failed is None:
            self._connection_failed = asyncio.get_running_loop().create_future()
        getting = asyncio.ensure_future(self._pool.getconn())
        await asyncio.wait((getting, self._connection_failed), return_when=asyncio.FIRST_COMPLETED)
        if not getting.done():
            getting.cancel()
            with suppress(asyncio.CancelledError):
                await self._pool.putconn(await getting)
            raise psycopg.OperationalError("no connection can be made")
        connection: _Connection = getting.result()
        return connection

    async def _note_failed_connection(self, _: object) -> None:
        if self._connection_failed is not None:
            self._connection_failed.set_result(None)
            self._connection_failed = None

    async def _transact(self, batch: Sequence[StoreRequest]) -> None:
        """Carry out steps, or one lease; retry once if the server had closed the connection while it was idle."""
        for is_second in (False, True):
            connection = await self._connect()
            has_begun = False
            try:
                if not self._has_tables:
                    await self._make_tables(connection)
                now, snapshot = await self._begin(connection, [request for request in batch if request.is_wanted])
                has_begun = True
                await self._finish(connection, batch, now, snapshot)
                return
            except psycopg.OperationalError:
                if is_second or has_begun or not connection.broken:
                    raise
            finally:
                if connection.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
                    with suppress(psycopg.Error):
                        await connection.rollback()
                await self._pool.putconn(connection)
            await self._pool.check()

    async def _make_tables(self, connection: _Connection) -> None:
        tables = await connection.execute("SELECT to_regclass('awp_entries'), to_regclass('awp_queue')")
        if None in (await tables.fetchone() or (None,)):
            async with connection.transaction():
                await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_number("schema"),))
                for statement in SCHEMA:
                    await connection.execute(statement)
        self._has_tables = True

    async def _begin(self, connection: _Connection, pending: Sequence[StoreRequest]) -> tuple[float, "_Snapshot"]:
        """Return the time and everything that the requests name, locked if anything may change. One round trip."""
        names: set[bytes] = set()
        queues: set[bytes] = set()
        limited: set[bytes] = set()
        is_durable = False
        for order in (request.order for request in pending):
            if isinstance(order, TakeDue):
                queues.add(self._name("q", order.queue))
                continue
            is_durable |= order.durable
            for step in order.steps:
                if isinstance(step, (Schedule, Unschedule)):
                    queues.add(queue := self._name("q", step.queue))
                    if isinstance(step, Schedule) and step.most is not None:
                        limited.add(queue)
                else:
                    names.add(self._name("c" if isinstance(step, (Count, Reserve)) else "v", step.key))
        async with connection.pipeline():
            if any(request.writes for request in pending):
                await connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
                stripes = sorted({self._lock + name[0] % STRIPES for name in names | queues})
                await connection.execute(_LOCK if is_durable else _LOCK_LIGHTLY, (stripes,))
            entries = await connection.execute(_FIND, (list(names),))
            members = await connection.execute(_MEMBERS, (list(limited),)) if limited else None
        rows = await entries.fetchall()
        snapshot = _Snapshot(
            {key: entry for _, key, *entry in rows if key is not None}, {queue: set() for queue in limited}
        )
        if members is not None:
            async for queue, key in members:
                snapshot.members[queue].add(key)
        return self._clock() if self._clock is not None else float(rows[0][0]), snapshot

    async def _finish(
        self, connection: _Connection, batch: Sequence[StoreRequest], now: float, snapshot: "_Snapshot"
    ) -> None:
        """Test the steps and write their changes in one round trip. A lease takes two."""
        order = batch[0].order
        if isinstance(order, TakeDue):
            queue = self._name("q", order.queue)
            await connection.execute(_MAKE_DUE, (now, now, queue, now + CLOCK_TOLERANCE))
            again = min(now + order.lease, NEVER_EXPIRES)
            leased = await connection.execute(
                _TAKE, {"queue": queue, "now": now, "again": again, "most": max(order.most, 0)}
            )
            members = tuple([decode(bytes(member)) async for (member,) in leased])
            if batch[0].commit():
                await connection.execute("COMMIT")
                batch[0].answer = members
            return
        answers: dict[StoreRequest, Answer] = {}
        while True:  # repeated without requests whose callers give up meanwhile
            pending = [request for request in batch if request.is_wanted]
            transaction = _PostgresTransaction(self._name, snapshot)
            for request in pending:
                if isinstance(request.order, RunSteps):
                    answers[request] = carry_out(request.order.steps, transaction, now)
            if all(request.commit() for request in pending):
                break
        if connection.info.transaction_status == TransactionStatus.INTRANS:
            self._changes += len(pending)
            async with connection.pipeline():
                for statement, rows in transaction.changes():
                    await connection.execute(statement, list(map(list, zip(*rows, strict=True))))
                if self._changes >= PURGE_EVERY:
                    self._changes = 0
                    await connection.execute(_PURGE, (now, MAX_PURGED))
                await connection.execute("COMMIT")
        for request in pending:
            request.answer = answers[request]

    def _name(self, kind: str, name: str) -> bytes:
        return _hash(f"{self._namespace}:{kind}:{name}")


class _Snapshot(NamedTuple):
    """The entries that a batch names and the members of queues that it counts, as the database had them."""

    entries: Mapping[bytes, _Entry]
    members: Mapping[bytes, set[bytes]]


class _PostgresTransaction:
    """A snapshot of the rows, and the changes to it that are not written yet."""

    def __init__(self, name: Callable[[str, str], bytes], snapshot: _Snapshot) -> None:
        self._name = name
        self._entries = snapshot.entries
        self._members = {queue: set(members) for queue, members in snapshot.members.items()}
        self._put: dict[bytes, _Entry | None] = {}
        self._scheduled: dict[tuple[bytes, bytes], tuple[bytes, float, float] | None] = {}

    def value(self, key: str, now: float) -> bytes | None:
        entry = self._find("v", key, now)
        return None if entry is None else entry[0]

    def window(self, key: str, now: float) -> tuple[int, float]:
        entry = self._find("c", key, now)
        return (0, 0.0) if entry is None else (entry[1], entry[2])

    def put(self, key: str, value: bytes, expires: float) -> None:
        self._put[self._name("v", key)] = value, 0, min(expires, NEVER_EXPIRES)

    def drop(self, key: str) -> None:
        self._put[self._name("v", key)] = None

    def count(self, key: str, events: int, closes: float) -> None:
        self._put[self._name("c", key)] = b"", events, min(closes, NEVER_EXPIRES)

    def schedule(self, queue: str, member: str, due: float, now: float) -> None:
        place = self._name("q", queue), _hash(member)
        self._scheduled[place] = encode(member), min(due, NEVER_EXPIRES), now
        self._members.get(place[0], set()).add(place[1])

    def unschedule(self, queue: str, member: str) -> None:
        place = self._name("q", queue), _hash(member)
        self._scheduled[place] = None
        self._members.get(place[0], set()).discard(place[1])

    def others(self, queue: str, member: str) -> int:
        return len(self._members[self._name("q", queue)] - {_hash(member)})

    def changes(self) -> Iterator[tuple[LiteralString, list[tuple[Any, ...]]]]:
        """Return the statements that write the changes, each with its rows."""
        rows: dict[LiteralString, list[tuple[Any, ...]]] = {}
        for key, entry in self._put.items():
            rows.setdefault(_DROP if entry is None else _PUT, []).append((key, *(entry or ())))
        for place, member in self._scheduled.items():
            rows.setdefault(_UNSCHEDULE if member is None else _SCHEDULE, []).append((*place, *(member or ())))
        return iter(rows.items())

    def _find(self, kind: str, key: str, now: float) -> _Entry | None:
        name = self._name(kind, key)
        entry = self._put[name] if name in self._put else self._entries.get(name)
        return entry if entry is not None and entry[2] > now else None


def _hash(text: str) -> bytes:
    """Hash a name: an index row holds no more than some 2,700 bytes, a name may have any length."""
    return hashlib.sha256(encode(text)).digest()


def _number(text: str) -> int:
    return int.from_bytes(_hash(text)[:8], signed=True)


def _detail(error: Exception) -> str:
    if isinstance(error, (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable)):
        return "The site's store did not answer in time."
    if isinstance(error, psycopg.errors.DiskFull):
        return "The site's store is full."
    if isinstance(error, (psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction)):
        return "The site's store cannot be written."
    if isinstance(error, psycopg.OperationalError):
        return "The site's store cannot be reached."
    return "The site's store failed."
