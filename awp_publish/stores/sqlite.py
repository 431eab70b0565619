"""The durable store of one machine: an SQLite file, which may be the application's own database.

All that waits is one transaction, so a hundred calls at once are one commit. The file is in WAL mode: readers and a
writer do not wait for each other. Any number of processes of one machine may use it, not those of several machines.
"""

import logging
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from awp_publish.stores.batches import Answer, BatchedStore, Order, Request, Run, Take
from awp_publish.stores.sqlite_shelf import SCHEMA, SqliteShelf
from awp_publish.stores.steps import carry_out, unavailable
from awp_publish.stores.store import JOB, Look, Swap

logger: Final = logging.getLogger("awp_publish.stores")

POLL: Final = 0.01
"""Seconds that SQLite waits for a lock before we ask it again: its own pauses get so long that others always win."""

PAUSE: Final = 0.001
"""Seconds between two such attempts."""

PURGE_AT_ONCE: Final = 64
"""Expired entries that are looked for together."""

ERASE_AFTER: Final = 1.0
"""Seconds after which what a job's record held is gone from the log too, or it is tried again."""

BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
"""Errors that pass: another connection holds the lock."""

HARMLESS: Final = BUSY | {sqlite3.SQLITE_FULL, sqlite3.SQLITE_TOOBIG}
"""Errors after which the connection is as good as before."""

OF_ONE: Final = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, None}
"""Errors that one request of a batch may have caused alone."""

DETAILS: Final[Mapping[int | None, str]] = {
    sqlite3.SQLITE_BUSY: "The site's store is busy.",
    sqlite3.SQLITE_LOCKED: "The site's store is busy.",
    sqlite3.SQLITE_FULL: "The disk of the site's store is full.",
    sqlite3.SQLITE_READONLY: "The site's store cannot be written.",
    sqlite3.SQLITE_PERM: "The site's store cannot be written.",
    sqlite3.SQLITE_CANTOPEN: "The site's store cannot be opened.",
    sqlite3.SQLITE_CORRUPT: "The site's store is damaged.",
    sqlite3.SQLITE_NOTADB: "The site's store is damaged.",
}


class SqliteStore(BatchedStore):
    """Keeps everything in the SQLite file at `path`, which is made when it is first needed; its directory must exist.

    The file is for its owner only. What is removed is overwritten, so that no credentials of ended jobs stay in it.

    `clock` tells seconds since 1970: what is kept outlives the process. `timeout` is how many seconds a request may
    wait and take, the wait for a lock that another process holds included.
    """

    def __init__(
        self, path: str, namespace: str, *, clock: Callable[[], float] = time.time, timeout: float = 2.0
    ) -> None:
        absolute = os.path.abspath(path)  # the process may change its directory before the file is opened
        super().__init__(lambda: _Worker(absolute, namespace, clock, timeout), timeout)


class _Worker:
    """The one connection, and the transactions on it."""

    def __init__(self, path: str, namespace: str, clock: Callable[[], float], timeout: float) -> None:
        self._path = path
        self._namespace = namespace
        self._clock = clock
        self._timeout = timeout
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._is_full_sync = False
        self._owed = 0
        self._page_size = 0
        self._erase_at: float | None = None
        self._has_warned = False

    def carry_out(self, requests: Sequence[Request]) -> None:
        """All in one transaction; each in its own if one of them seems to have spoiled that."""
        try:
            self._transact(requests)
        except (sqlite3.Error, OSError) as error:
            self._recover(error)
            if len(requests) == 1 or _code(error) not in OF_ONE:
                raise unavailable(_detail(error)) from error
            self._carry_out_each(requests)
        except Exception as error:
            self._recover(error)
            if len(requests) > 1:
                self._carry_out_each(requests)
            else:
                requests[0].answer = error

    def tidy(self) -> float | None:
        """Empty the log some time after jobs' records were replaced: it keeps them as they were before."""
        if self._erase_at is None or self._connection is None:
            return None
        if (left := self._erase_at - time.monotonic()) > 0:
            return left
        try:
            is_busy = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except sqlite3.Error as error:
            self._recover(error)
            is_busy = True
        self._erase_at = time.monotonic() + ERASE_AFTER if is_busy else None
        return ERASE_AFTER if is_busy else None

    def close(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None

    def _carry_out_each(self, requests: Sequence[Request]) -> None:
        for request in requests:
            try:
                self._transact([request])
            except (sqlite3.Error, OSError) as error:
                self._recover(error)
                request.answer = unavailable(_detail(error))
            except Exception as error:
                self._recover(error)
                request.answer = error

    def _transact(self, requests: Sequence[Request]) -> None:
        writes = any(_writes(request.order) for request in requests)
        connection = self._open()
        self._set_sync(connection, any(_is_durable(request.order) for request in requests))
        self._begin(connection, writes)
        now = self._clock()
        shelf = SqliteShelf(connection, self._namespace, self._page_size)
        wanted = [request for request in requests if request.is_wanted]
        answers = [(request, _answer(request.order, shelf, now)) for request in wanted]
        if not all(request.commit() for request in wanted):  # those who gave up meanwhile: none of it has happened
            connection.execute("ROLLBACK")
            self._transact(requests)
            return
        if writes:
            self._purge(shelf, now, sum(map(_size, requests)))
        connection.execute("COMMIT")
        if self._erase_at is None and any(_replaces_jobs(request.order) for request, _ in answers):
            self._erase_at = time.monotonic() + ERASE_AFTER
        for request, answer in answers:
            request.answer = answer

    def _purge(self, shelf: SqliteShelf, now: float, steps: int) -> None:
        """Forget twice as much as is written, a good deal of it at a time."""
        self._owed += 2 * steps
        if self._owed >= PURGE_AT_ONCE:
            shelf.purge(now, self._owed)
            self._owed = 0

    def _begin(self, connection: sqlite3.Connection, writes: bool) -> None:
        """Begin a transaction; those who only look need not wait for a writer."""

        def begin() -> None:
            if writes:
                connection.execute("BEGIN IMMEDIATE")
            else:
                connection.execute("BEGIN")
                connection.execute("SELECT 1 FROM awp_entries LIMIT 1")

        self._insist(connection, begin)

    def _set_sync(self, connection: sqlite3.Connection, is_full: bool) -> None:
        """FULL waits for the disk at each commit; with NORMAL a loss of power may undo the last ones."""
        if is_full is not self._is_full_sync:
            connection.execute(f"PRAGMA synchronous={'FULL' if is_full else 'NORMAL'}")
            self._is_full_sync = is_full

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect()
            self._identity = self._identify()
        elif self._identify() != self._identity:
            raise FileNotFoundError("the file was deleted or replaced")
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        with suppress(FileExistsError):
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))  # its log is made like it
        connection = sqlite3.connect(self._path, timeout=POLL, isolation_level=None)
        try:
            self._set_up(connection)
        except BaseException:
            connection.close()
            raise
        self._warn_of_readers()
        return connection

    def _warn_of_readers(self) -> None:
        mode = stat.S_IMODE(os.stat(self._path).st_mode)
        if os.name == "posix" and mode & 0o077 and not self._has_warned:
            self._has_warned = True
            logger.warning(
                "%s is open to other users of this machine (mode %o), and holds what callers sent: "
                "chmod 600 it, and its -wal and -shm.",
                os.path.basename(self._path),
                mode,
            )

    def _set_up(self, connection: sqlite3.Connection) -> None:
        def set_up() -> None:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("PRAGMA secure_delete=ON")
            connection.execute("BEGIN IMMEDIATE")
            for statement in SCHEMA:
                connection.execute(statement)
            connection.execute("COMMIT")

        self._insist(connection, set_up)
        self._page_size = connection.execute("PRAGMA page_size").fetchone()[0]
        self._is_full_sync = False

    def _identify(self) -> tuple[int, int]:
        """SQLite goes on writing into a file that was deleted, where nobody else finds it."""
        found = os.stat(self._path)
        return found.st_dev, found.st_ino

    def _insist(self, connection: sqlite3.Connection, begin: Callable[[], None]) -> None:
        """Try again while another process holds the lock, for as long as a request may take."""
        give_up = time.monotonic() + self._timeout
        while True:
            try:
                begin()
                return
            except sqlite3.OperationalError as error:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if _code(error) not in BUSY or time.monotonic() >= give_up:
                    raise
                time.sleep(PAUSE)

    def _recover(self, error: Exception) -> None:
        """Undo what was begun, and open the file anew unless the error is harmless."""
        if self._connection is None:
            return
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            self.close()
        if isinstance(error, (sqlite3.Error, OSError)) and _code(error) not in HARMLESS:
            self.close()


def _answer(order: Order, shelf: SqliteShelf, now: float) -> Answer:
    if isinstance(order, Run):
        return carry_out(order.steps, shelf, now)
    return shelf.take(order.queue, order.lease, order.most, now)


def _writes(order: Order) -> bool:
    return isinstance(order, Take) or any(type(step) is not Look for step in order.steps)


def _replaces_jobs(order: Order) -> bool:
    return isinstance(order, Run) and any(type(step) is Swap and step.key.startswith(JOB) for step in order.steps)


def _is_durable(order: Order) -> bool:
    return isinstance(order, Run) and order.durable


def _size(request: Request) -> int:
    return len(request.order.steps) if isinstance(request.order, Run) else 1


def _code(error: Exception) -> int | None:
    """SQLite's primary result code; None for what the driver itself refused, such as a value of a wrong type."""
    if isinstance(error, OSError):
        return sqlite3.SQLITE_CANTOPEN
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _detail(error: Exception) -> str:
    return DETAILS.get(_code(error), "The site's store failed.")
