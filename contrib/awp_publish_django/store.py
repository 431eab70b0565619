"""`DjangoStore`: the project's own database as a store.

site = Site(..., store=DjangoStore())

It uses a connection of its own in a thread of its own: its records stay even if the transaction of the request is
rolled back. Each transaction that writes first updates one row, which every database locks until the transaction ends;
so it needs no isolation level and no feature that only some databases have.
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

from django.db import Error, OperationalError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, QuerySet
from django.utils.connection import ConnectionDoesNotExist

from awp_publish.plugins.sqlite.store import BUSY
from awp_publish.stores.batches import BatchedStore, BatchThread, RunSteps, StoreRequest
from awp_publish.stores.store import CLOCK_TOLERANCE, JOB, NEVER_EXPIRES, Add, Look, Swap, decode, encode, unavailable
from awp_publish.stores.threads import pause
from awp_publish_django.models import Entry, Lock, Member

MAX_KEYS_A_QUERY: Final = 500
"""Keys in one query; older versions of SQLite allow no more than 999 parameters."""

UNLOCKED_WAIT_SECONDS: Final = 3.0
FIRST_PAUSE_SECONDS: Final = 0.01
LONGEST_PAUSE_SECONDS: Final = 0.3
BUSY_TIMEOUT_MS: Final = 1500
"""On SQLite: seconds to wait without a lock, the first and the longest pause between two attempts, and then the
milliseconds to wait for the lock. Each attempt locks the file for a moment in which no transaction can begin to write.
"""

PURGE_EVERY: Final = 64
"""Requests after which expired entries are deleted."""


class DjangoStore(BatchedStore):
    """Keeps everything in the database `using`. Sites that share it are kept apart by their `namespace`.

    `clock` returns seconds since 1970, `timeout` limits the seconds that a request may wait. Needs `manage.py migrate`.
    """

    def __init__(
        self,
        namespace: str = "site",
        *,
        using: str = "default",
        clock: Callable[[], float] = time.time,
        timeout: float = 5.0,
    ) -> None:
        super().__init__(lambda: BatchThread(_DjangoBackend(namespace, using, clock)), timeout)


def run_transaction(using: str, transact: Callable[[], None], *, writes: bool = True, may_block: bool = True) -> None:
    """Carry out a transaction. On SQLite, wait for its readers, at first without holding a lock.

    A transaction of the site's own that reads and then writes fails at once (SQLITE_BUSY) if another one waits for it
    or may write before it: with ATOMIC_REQUESTS, a whole request would fail. So our first statement locks the whole
    file or nothing; Django has an option for that only since 5.1. In the end it waits while it holds a lock, unless
    `may_block` is False: then it fails.
    """
    connection = connections[using]
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        transact()
        return
    begin = "BEGIN EXCLUSIVE" if writes else "BEGIN"
    _retry_while_busy(connection, lambda: _transact_from(begin, using, transact), BUSY_TIMEOUT_MS if may_block else 0)


def run_statement(using: str, execute: Callable[[], None]) -> None:
    """Carry out one statement that is a transaction by itself. On SQLite, wait for its readers without holding a lock.

    It fails if it cannot be carried out in UNLOCKED_WAIT_SECONDS.
    """
    connection = connections[using]
    if connection.vendor != "sqlite":
        execute()
        return
    _retry_while_busy(connection, execute, 0)


def _transact_from(begin: str, using: str, transact: Callable[[], None]) -> None:
    """Carry out a transaction that begins with our own statement, for which Django must not begin one."""
    transaction.set_autocommit(False, using)
    try:
        with connections[using].cursor() as cursor:
            cursor.execute(begin)
        transact()
        transaction.commit(using)
    except BaseException:
        transaction.rollback(using)
        raise
    finally:
        transaction.set_autocommit(True, using)


def _retry_while_busy(connection: BaseDatabaseWrapper, execute: Callable[[], None], last_wait_ms: int) -> None:
    """Repeat what SQLite is too busy for, at last with a wait for its locks. Raises OperationalError."""
    last_from, seconds = time.monotonic() + UNLOCKED_WAIT_SECONDS, FIRST_PAUSE_SECONDS
    try:
        while True:
            is_last = time.monotonic() >= last_from
            _wait_for_locks(connection, last_wait_ms if is_last else 0)
            try:
                execute()
                return
            except OperationalError as error:
                if is_last or getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF not in BUSY:
                    raise
            pause(seconds)
            seconds = min(seconds * 2, LONGEST_PAUSE_SECONDS)
    finally:  # the connection may be that of a request, and of the next ones
        _wait_for_locks(connection, int(connection.settings_dict["OPTIONS"].get("timeout", 5.0) * 1000))


def _wait_for_locks(connection: BaseDatabaseWrapper, milliseconds: int) -> None:
    """Set how long SQLite waits: a setting of the driver's connection, and no query of the project's."""
    connection.ensure_connection()
    connection.connection.execute(f"PRAGMA busy_timeout = {milliseconds}")


class _RequestAbandoned(Exception):
    """A caller no longer waits for what was just carried out: roll back."""


class _DjangoBackend:
    """The connection and its transactions."""

    def __init__(self, namespace: str, using: str, clock: Callable[[], float]) -> None:
        self._transaction = DjangoTransaction(namespace, using)
        self._using = using
        self._clock = clock
        self._changes = 0

    def carry_out(self, requests: Sequence[StoreRequest]) -> None:
        """Carry out all requests in one transaction, or each in its own if that failed."""
        try:
            connections[self._using].close_if_unusable_or_obsolete()
            writes = any(request.writes for request in requests)
            run_transaction(self._using, lambda: self._transact(requests), writes=writes)
        except Exception as error:
            if len(requests) == 1:
                if isinstance(error, (Error, ConnectionDoesNotExist)):
                    problem = unavailable("The site's database cannot be used.")
                    problem.__cause__ = error
                    requests[0].answer = problem
                else:
                    requests[0].answer = error
                return
            for request in requests:
                self.carry_out([request])

    def tidy(self) -> None:
        """Do nothing: there is no deferred work."""

    def close(self) -> None:
        with suppress(ConnectionDoesNotExist):
            connections[self._using].close()

    def _transact(self, requests: Sequence[StoreRequest]) -> None:
        writes = any(request.writes for request in requests)
        pending = [request for request in requests if request.is_wanted]
        try:
            with transaction.atomic(using=self._using):
                if writes:
                    self._transaction.lock()
                now = self._clock()
                orders = (request.order for request in pending)
                steps = [step for order in orders if isinstance(order, RunSteps) for step in order.steps]
                self._transaction.prefetch({step.key for step in steps if isinstance(step, (Look, Add, Swap))})
                answers = [request.carry_out(self._transaction, now) for request in pending]
                if writes:
                    self._changes += len(requests)
                    if self._changes >= PURGE_EVERY:
                        self._changes = 0
                        self._transaction.purge(now)
                if not all(request.commit() for request in pending):
                    raise _RequestAbandoned
        except _RequestAbandoned:
            self._transact(requests)
            return
        for request, answer in zip(pending, answers, strict=True):
            request.answer = answer


class DjangoTransaction:
    """The entries and queues of one namespace, inside a transaction that the backend begins and ends."""

    def __init__(self, namespace: str, using: str) -> None:
        self._namespace = namespace
        self._entries: QuerySet[Entry] = Entry.objects.using(using)
        self._members: QuerySet[Member] = Member.objects.using(using)
        self._locks: QuerySet[Lock] = Lock.objects.using(using)
        self._known: dict[str, Entry | None] = {}

    def lock(self) -> None:
        """Lock the namespace until the transaction ends."""
        name = _hash(self._namespace)
        while not self._locks.filter(name=name).update(turn=F("turn") + 1):
            self._locks.get_or_create(name=name)

    def prefetch(self, keys: Iterable[str]) -> None:
        """Read, in as few queries as possible, the values that this transaction will ask for."""
        names = [self._name("v", key) for key in keys]
        self._known = dict.fromkeys(names)
        for start in range(0, len(names), MAX_KEYS_A_QUERY):
            for entry in self._entries.filter(key__in=names[start : start + MAX_KEYS_A_QUERY]):
                self._known[entry.key] = entry

    def value(self, key: str, now: float) -> bytes | None:
        row = self._find("v", key, now)
        return None if row is None else bytes(row.value)

    def window(self, key: str, now: float) -> tuple[int, float]:
        row = self._find("c", key, now)
        return (0, 0.0) if row is None else (row.events, row.expires)

    def put(self, key: str, value: bytes, expires: float) -> None:
        expires = min(expires, NEVER_EXPIRES)
        self._put(Entry(key=self._name("v", key), value=value, expires=expires, is_job=key.startswith(JOB)))

    def drop(self, key: str) -> None:
        name = self._name("v", key)
        self._known[name] = None
        self._entries.filter(key=name).delete()

    def count(self, key: str, events: int, closes: float) -> None:
        self._put(Entry(key=self._name("c", key), value=b"", events=events, expires=min(closes, NEVER_EXPIRES)))

    def schedule(self, queue: str, member: str, due: float, now: float) -> None:
        key, times = self._name("m", f"{_hash(queue)}{member}"), {"due": min(due, NEVER_EXPIRES), "since": now}
        if not self._members.filter(key=key).update(**times):
            self._members.create(key=key, queue=self._name("q", queue), name=encode(member), **times)

    def unschedule(self, queue: str, member: str) -> None:
        self._members.filter(key=self._name("m", f"{_hash(queue)}{member}")).delete()

    def others(self, queue: str, member: str) -> int:
        in_queue = self._members.filter(queue=self._name("q", queue))
        return in_queue.exclude(key=self._name("m", f"{_hash(queue)}{member}")).count()

    def take(self, queue: str, lease: float, most: int, now: float) -> tuple[str, ...]:
        """Lease members that are due, and those that seem due in hours only because the clock was set back."""
        in_queue = self._members.filter(queue=self._name("q", queue))
        in_queue.filter(since__gt=now + CLOCK_TOLERANCE).update(due=now, since=now)
        members = list(in_queue.filter(due__lte=now).order_by("due", "name")[: max(most, 0)])
        self._members.filter(key__in=[member.key for member in members]).update(
            due=min(now + lease, NEVER_EXPIRES), since=now
        )
        return tuple(decode(bytes(member.name)) for member in members)

    def purge(self, now: float) -> None:
        """Delete what has expired. The last statement of a transaction."""
        self._entries.filter(expires__lte=now).delete()

    def _find(self, kind: str, key: str, now: float) -> Entry | None:
        name = self._name(kind, key)
        if name not in self._known:
            self._known[name] = self._entries.filter(key=name).first()
        entry = self._known[name]
        return entry if entry is not None and entry.expires > now else None

    def _put(self, entry: Entry) -> None:
        self._known[entry.key] = entry
        facts = {name: getattr(entry, name) for name in ("value", "events", "expires", "is_job")}
        if not self._entries.filter(key=entry.key).update(**facts):
            self._entries.create(key=entry.key, **facts)

    def _name(self, kind: str, name: str) -> str:
        return _hash(f"{self._namespace}:{kind}:{name}")


def _hash(text: str) -> str:
    return hashlib.sha256(encode(text)).hexdigest()
