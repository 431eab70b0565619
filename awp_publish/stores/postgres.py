"""The store on PostgreSQL, version 12 or newer, for sites that have one: `postgresql://user:password@host/database`.

All that waits is one transaction on one connection, which is opened when it is first needed and again when it is lost.
Whoever changes something holds an advisory lock until the transaction ends, one for each namespace, so it needs no
isolation level. Time is the server's, which all machines share. The two tables are made when they are missing; a role
that may not make them needs somebody who does: `SCHEMA` is what is executed. A `durable` run waits for the server's
disk (`synchronous_commit`), any other may be lost with the last moments before the server crashes.
"""

import hashlib
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, LiteralString

import psycopg
from psycopg.conninfo import conninfo_to_dict

from awp_publish.problems import DeclarationError
from awp_publish.stores.batches import Answer, BatchedStore, Order, RunSteps, StoreRequest, TakeDue
from awp_publish.stores.store import Add, Look, Swap, carry_out, unavailable

logger: Final = logging.getLogger("awp_publish.stores")

ENDLESS: Final = 1e15
"""Seconds since 1970 of what never expires."""

TOLERANCE: Final = 3600.0
"""Seconds by which a member may have been scheduled in the future, before the clock counts as set back."""

PURGE_EVERY: Final = 64
MOST_PURGED: Final = 1000
"""Changes after which what has expired is forgotten, and how much of it at a time."""

SCHEMA: Final[tuple[LiteralString, ...]] = (
    "CREATE TABLE IF NOT EXISTS awp_entries (key bytea PRIMARY KEY, value bytea NOT NULL, events bigint NOT NULL,"
    " expires double precision NOT NULL)",
    "CREATE INDEX IF NOT EXISTS awp_entries_expires ON awp_entries (expires)",
    "CREATE TABLE IF NOT EXISTS awp_queue (queue bytea, key bytea, member bytea NOT NULL,"
    " due double precision NOT NULL, since double precision NOT NULL, PRIMARY KEY (queue, key))",
    "CREATE INDEX IF NOT EXISTS awp_queue_due ON awp_queue (queue, due)",
)

_LOCK: Final = "SELECT pg_advisory_xact_lock(%s)"
_NOW: Final = "SELECT extract(epoch FROM clock_timestamp())::double precision"
_FIND: Final = "SELECT key, value, events, expires FROM awp_entries WHERE key = ANY(%s)"
_PUT: Final = (
    "INSERT INTO awp_entries (key, value, events, expires) VALUES (%s, %s, %s, %s) ON CONFLICT (key) DO UPDATE"
    " SET value = excluded.value, events = excluded.events, expires = excluded.expires"
)
_DROP: Final = "DELETE FROM awp_entries WHERE key = %s"
_SCHEDULE: Final = (
    "INSERT INTO awp_queue (queue, key, member, due, since) VALUES (%s, %s, %s, %s, %s) ON CONFLICT (queue, key)"
    " DO UPDATE SET due = excluded.due, since = excluded.since"
)
_PURGE: Final = (
    "DELETE FROM awp_entries WHERE key IN (SELECT key FROM awp_entries WHERE expires <= %s ORDER BY expires LIMIT %s)"
)


class PostgresStore(BatchedStore):
    """Keeps everything in the tables awp_entries and awp_queue of a PostgreSQL database.

    Sites that share it are kept apart by their `namespace`. `clock` tells seconds since 1970, without it the server's
    does; `timeout` is how many seconds a request may wait and take. Raises DeclarationError for a URL that cannot be
    read, without repeating it: part of it may be a password.
    """

    def __init__(
        self, url: str, namespace: str, *, clock: Callable[[], float] | None = None, timeout: float = 2.0
    ) -> None:
        try:
            conninfo_to_dict(url)
        except psycopg.Error:
            remedy = 'Write store="postgresql://user:password@host:5432/database", with a percent-encoded password.'
            raise DeclarationError("site", "store= is a PostgreSQL URL that cannot be read.", remedy) from None
        super().__init__(lambda: _PostgresBackend(url, namespace, clock, timeout), timeout)


class _GivenUp(Exception):
    """Somebody no longer waits for what was just carried out."""


class _PostgresBackend:
    """The one connection, and the transactions on it."""

    def __init__(self, url: str, namespace: str, clock: Callable[[], float] | None, timeout: float) -> None:
        self._url = url
        self._namespace = namespace
        self._lock = int.from_bytes(_hash(f"{namespace}:lock")[:8], signed=True)
        self._clock = clock
        self._timeout = timeout
        self._connection: psycopg.Connection[Any] | None = None
        self._changes = 0
        self._has_begun_to_commit = False

    def carry_out(self, requests: Sequence[StoreRequest]) -> None:
        """All in one transaction; each in its own if one of them has spoiled that. Raises StoreUnavailable."""
        was_open = self._connection is not None
        try:
            try:
                self._transact(requests)
            except psycopg.OperationalError:
                # The server was started anew, or has closed what was idle: nothing of this has happened.
                if not was_open or self._has_begun_to_commit or not self._is_lost():
                    raise
                self.close()
                self._transact(requests)
        except Exception as error:
            self._recover()
            if isinstance(error, psycopg.OperationalError) or self._connection is None:
                raise unavailable(_detail(error)) from error
            if len(requests) > 1:
                for request in requests:
                    self.carry_out([request])
            else:
                requests[0].answer = unavailable(_detail(error)) if isinstance(error, psycopg.Error) else error

    def tidy(self) -> None:
        """Nothing waits here."""

    def close(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
        self._connection = None

    def _is_lost(self) -> bool:
        return self._connection is None or self._connection.closed or self._connection.broken

    def _recover(self) -> None:
        """Undo what was begun, and open anew what was lost."""
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.rollback()
        if self._is_lost():
            self.close()

    def _transact(self, requests: Sequence[StoreRequest]) -> None:
        orders = [request.order for request in requests]
        writes = any(_writes(order) for order in orders)
        is_durable = any(isinstance(order, RunSteps) and order.durable for order in orders)
        self._has_begun_to_commit = False
        connection = self._open()
        if writes:
            connection.execute(_LOCK, (self._lock,))
            if not is_durable:
                connection.execute("SET LOCAL synchronous_commit = off")
        found = connection.execute(_NOW).fetchone()
        now = self._clock() if self._clock is not None else float(found[0] if found else 0.0)
        wanted = [request for request in requests if request.is_wanted]
        shelf = _PostgresShelf(connection, self._namespace)
        shelf.foresee(request.order for request in wanted)
        answers = [(request, _answer(request.order, shelf, now)) for request in wanted]
        if writes:
            self._changes += len(requests)
            if self._changes >= PURGE_EVERY:
                self._changes = 0
                connection.execute(_PURGE, (now, MOST_PURGED))
        if not all(request.commit() for request in wanted):  # those who gave up meanwhile: none of it has happened
            connection.rollback()
            self._transact(requests)
            return
        self._has_begun_to_commit = True
        connection.commit()
        for request, answer in answers:
            request.answer = answer

    def _open(self) -> psycopg.Connection[Any]:
        if self._connection is not None:
            return self._connection
        milliseconds = max(1, int(self._timeout * 1000))
        connection = psycopg.connect(
            self._url,
            connect_timeout=max(2, int(self._timeout)),
            options=f"-c statement_timeout={milliseconds} -c lock_timeout={milliseconds}",
            application_name="awp_publish",
            prepare_threshold=None,  # what stands between us and the server may share its connections
        )
        try:
            known = connection.execute("SELECT to_regclass('awp_entries'), to_regclass('awp_queue')").fetchone()
            if known is None or None in known:
                connection.execute(_LOCK, (int.from_bytes(_hash("schema")[:8], signed=True),))
                for statement in SCHEMA:
                    connection.execute(statement)
            connection.commit()
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection


def _answer(order: Order, shelf: "_PostgresShelf", now: float) -> Answer:
    if isinstance(order, RunSteps):
        return carry_out(order.steps, shelf, now)
    return shelf.take(order.queue, order.lease, order.most, now)


def _writes(order: Order) -> bool:
    return isinstance(order, TakeDue) or any(type(step) is not Look for step in order.steps)


class _PostgresShelf:
    """The things of one namespace, inside a transaction that somebody else begins and ends."""

    def __init__(self, connection: psycopg.Connection[Any], namespace: str) -> None:
        self._execute = connection.execute
        self._namespace = namespace
        self._known: dict[bytes, tuple[bytes, int, float] | None] = {}

    def foresee(self, orders: Iterable[Order]) -> None:
        """A transaction begins, in which these values will be asked for: they are read together."""
        steps = [step for order in orders if isinstance(order, RunSteps) for step in order.steps]
        names = {self._name("v", step.key) for step in steps if isinstance(step, (Look, Add, Swap))}
        self._read(names)

    def value(self, key: str, now: float) -> bytes | None:
        found = self._find("v", key, now)
        return None if found is None else found[0]

    def window(self, key: str, now: float) -> tuple[int, float]:
        found = self._find("c", key, now)
        return (0, 0.0) if found is None else (found[1], found[2])

    def put(self, key: str, value: bytes, expires: float) -> None:
        self._put(self._name("v", key), value, 0, expires)

    def drop(self, key: str) -> None:
        name = self._name("v", key)
        self._known[name] = None
        self._execute(_DROP, (name,))

    def count(self, key: str, events: int, closes: float) -> None:
        self._put(self._name("c", key), b"", events, closes)

    def schedule(self, queue: str, member: str, due: float, now: float) -> None:
        named = member.encode("utf-8", "surrogatepass")
        self._execute(_SCHEDULE, (self._name("q", queue), _hash(member), named, min(due, ENDLESS), now))

    def unschedule(self, queue: str, member: str) -> None:
        where = (self._name("q", queue), _hash(member))
        self._execute("DELETE FROM awp_queue WHERE queue = %s AND key = %s", where)

    def others(self, queue: str, member: str) -> int:
        where = (self._name("q", queue), _hash(member))
        found = self._execute("SELECT count(*) FROM awp_queue WHERE queue = %s AND key <> %s", where).fetchone()
        return int(found[0]) if found else 0

    def take(self, queue: str, lease: float, most: int, now: float) -> tuple[str, ...]:
        """Lease what is due, and what would not be due for hours only because the clock was set back."""
        name = self._name("q", queue)
        self._execute(
            "UPDATE awp_queue SET due = %s, since = %s WHERE queue = %s AND since > %s",
            (now, now, name, now + TOLERANCE),
        )
        found = self._execute(
            "SELECT key, member FROM awp_queue WHERE queue = %s AND due <= %s ORDER BY due, member LIMIT %s",
            (name, now, max(most, 0)),
        ).fetchall()
        self._execute(
            "UPDATE awp_queue SET due = %s, since = %s WHERE queue = %s AND key = ANY(%s)",
            (min(now + lease, ENDLESS), now, name, [key for key, _ in found]),
        )
        return tuple(bytes(member).decode("utf-8", "surrogatepass") for _, member in found)

    def _read(self, names: Iterable[bytes]) -> None:
        wanted = [name for name in names if name not in self._known]
        self._known |= dict.fromkeys(wanted)
        if wanted:
            for key, value, events, expires in self._execute(_FIND, (wanted,)):
                self._known[bytes(key)] = bytes(value), events, expires

    def _find(self, kind: str, key: str, now: float) -> tuple[bytes, int, float] | None:
        name = self._name(kind, key)
        self._read((name,))
        found = self._known[name]
        return found if found is not None and found[2] > now else None

    def _put(self, name: bytes, value: bytes, events: int, expires: float) -> None:
        expires = min(expires, ENDLESS)
        self._known[name] = value, events, expires
        self._execute(_PUT, (name, value, events, expires))

    def _name(self, kind: str, name: str) -> bytes:
        return _hash(f"{self._namespace}:{kind}:{name}")


def _hash(text: str) -> bytes:
    """Names of any length, in an index that takes no more than some 2,700 bytes."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


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
