"""The durable store for one machine: an SQLite file, which may be the application's own database.

All waiting requests share a transaction, so a hundred concurrent calls are one commit. The file is in WAL mode: readers
and a writer do not wait for each other. Any number of processes on one machine may use it, but not several machines.
"""

import logging
import os
import shutil
import sqlite3
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from awp_publish.plugins.sqlite.tables import SCHEMA, SECRETS, SqliteTransaction
from awp_publish.stores.batches import BatchedStore, BatchThread, RunSteps, StoreRequest
from awp_publish.stores.store import Add, Swap, unavailable

logger: Final = logging.getLogger("awp_publish.stores")

LOCK_POLL: Final = 0.01
"""Seconds that SQLite waits for a lock before we retry: its own pauses grow so long that other writers always win."""

RETRY_PAUSE: Final = 0.001
"""Seconds between two such retries."""

MIN_PURGE: Final = 64
"""Expired entries to delete that make a purge worth its while."""

ERASE_INTERVAL: Final = 1.0
"""Seconds after which replaced secrets are erased from the write-ahead log too, and between attempts to do so."""

MIN_FREE_BYTES: Final = 16 * 1024 * 1024
"""Bytes left on the disk below which nothing new is stored: they are for the answers of calls that run already."""

BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
"""Transient errors: another connection holds the lock."""

HARMLESS: Final = BUSY | {sqlite3.SQLITE_FULL, sqlite3.SQLITE_TOOBIG}
"""Errors after which the connection is still usable."""

CAUSED_BY_ONE: Final = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_TOOBIG,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    None,
}
"""Errors that a single request of a batch may have caused."""

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
    """Keeps everything in the SQLite file at `path`, which is created when first needed; its directory must exist.

    Only its owner can read the file. Deleted content is overwritten, so that no credentials of ended jobs stay in it.

    `clock` returns seconds since 1970, because entries outlive the process. `timeout` limits the seconds from a request
    to its answer, including the wait for a lock that another process holds.
    """

    def __init__(
        self, path: str, namespace: str, *, clock: Callable[[], float] = time.time, timeout: float = 2.0
    ) -> None:
        absolute = os.path.abspath(path)  # the process may change its directory before the file is opened
        super().__init__(lambda: BatchThread(_SqliteBackend(absolute, namespace, clock, timeout)), timeout)


class _SqliteBackend:
    """The connection and its transactions."""

    def __init__(self, path: str, namespace: str, clock: Callable[[], float], timeout: float) -> None:
        self._path = path
        self._namespace = namespace
        self._clock = clock
        self._timeout = timeout
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._is_synchronous_full = False
        self._purge_debt = 0
        self._page_size = 0
        self._erase_at: float | None = None
        self._has_warned = False
        self._was_nearly_full = False

    def carry_out(self, requests: Sequence[StoreRequest]) -> None:
        """Carry out all requests in one transaction, or each in its own if one of them may have made that fail."""
        try:
            self._transact(requests)
        except (sqlite3.Error, OSError) as error:
            self._recover(error)
            if len(requests) == 1 or _code(error) not in CAUSED_BY_ONE:
                raise unavailable(_detail(error)) from error
            self._carry_out_each(requests)
        except Exception as error:
            self._recover(error)
            if len(requests) > 1:
                self._carry_out_each(requests)
            else:
                requests[0].answer = error

    def tidy(self) -> float | None:
        """Empty the write-ahead log some time after secrets were replaced: it still holds what they were before."""
        if self._erase_at is None or self._connection is None:
            return None
        if (remaining := self._erase_at - time.monotonic()) > 0:
            return remaining
        try:
            is_busy = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except sqlite3.Error as error:
            self._recover(error)
            is_busy = True
        self._erase_at = time.monotonic() + ERASE_INTERVAL if is_busy else None
        return ERASE_INTERVAL if is_busy else None

    def close(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None

    def _carry_out_each(self, requests: Sequence[StoreRequest]) -> None:
        for request in requests:
            try:
                self._transact([request])
            except (sqlite3.Error, OSError) as error:
                self._recover(error)
                request.answer = unavailable(_detail(error))
            except Exception as error:
                self._recover(error)
                request.answer = error

    def _transact(self, requests: Sequence[StoreRequest]) -> None:
        runs = [request.order for request in requests if isinstance(request.order, RunSteps)]
        writes, connection = any(request.writes for request in requests), self._open()
        # FULL waits for the disk at each commit; with NORMAL a power failure may undo the last ones.
        is_full = any(order.durable for order in runs)
        if is_full is not self._is_synchronous_full:
            connection.execute(f"PRAGMA synchronous={'FULL' if is_full else 'NORMAL'}")
            self._is_synchronous_full = is_full
        # Requests that only read need not wait for a writer.
        begin = ("BEGIN IMMEDIATE",) if writes else ("BEGIN", "SELECT 1 FROM awp_entries LIMIT 1")
        self._execute_when_free(connection, begin)
        now = self._clock()
        transaction = SqliteTransaction(connection, self._namespace, self._page_size)
        pending = [request for request in requests if request.is_wanted]
        if any(map(_adds, pending)) and self._is_nearly_full():
            refused = [
                request for request in pending if any(transaction.value(key, now) is None for key in _adds(request))
            ]
            for request in refused:
                request.answer = unavailable(DETAILS[sqlite3.SQLITE_FULL])
            pending = [request for request in pending if request not in refused]
        answers = [request.carry_out(transaction, now) for request in pending]
        if not all(request.commit() for request in pending):  # a caller gave up meanwhile: its steps must not happen
            connection.execute("ROLLBACK")
            self._transact(requests)
            return
        if writes:  # purge up to two entries for each that is written, many at a time
            self._purge_debt += 2 * (len(requests) - len(runs) + sum(len(order.steps) for order in runs))
            if self._purge_debt >= MIN_PURGE:
                transaction.purge(now, self._purge_debt)
                self._purge_debt = 0
        connection.execute("COMMIT")
        swaps = (step for order in runs for step in order.steps if type(step) is Swap)
        if self._erase_at is None and any(step.key.startswith(SECRETS) for step in swaps):
            self._erase_at = time.monotonic() + ERASE_INTERVAL
        for request, answer in zip(pending, answers, strict=True):
            request.answer = answer

    def _is_nearly_full(self) -> bool:
        """Return True if the disk has room only for replacing what is stored. Logs when that changes."""
        is_full = shutil.disk_usage(os.path.dirname(self._path)).free < MIN_FREE_BYTES
        if is_full is not self._was_nearly_full:
            self._was_nearly_full = is_full
            if is_full:
                logger.error("the disk of the store is nearly full: nothing new is stored")
            else:
                logger.warning("the disk of the store has room again")
        return is_full

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None:
            if self._identify() != self._identity:
                raise FileNotFoundError("the file was deleted or replaced")
            return self._connection
        with suppress(FileExistsError):
            os.close(
                os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            )  # SQLite gives its -wal and -shm the same mode
        connection = sqlite3.connect(self._path, timeout=LOCK_POLL, isolation_level=None)
        try:
            settings = ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL", "PRAGMA secure_delete=ON")
            self._execute_when_free(connection, (*settings, "BEGIN IMMEDIATE", *SCHEMA, "COMMIT"))
            self._page_size = connection.execute("PRAGMA page_size").fetchone()[0]
            self._is_synchronous_full = False
        except BaseException:
            connection.close()
            raise
        mode = stat.S_IMODE(os.stat(self._path).st_mode)
        if os.name == "posix" and mode & 0o077 and not self._has_warned:
            self._has_warned = True
            logger.warning(
                "%s is open to other users of this machine (mode %o), and holds what callers sent: "
                "chmod 600 it, and its -wal and -shm.",
                os.path.basename(self._path),
                mode,
            )
        self._connection = connection
        self._identity = self._identify()
        return connection

    def _identify(self) -> tuple[int, int]:
        """Return the file's device and inode.

        SQLite would go on writing to a deleted file, unseen by other processes.
        """
        status = os.stat(self._path)
        return status.st_dev, status.st_ino

    def _execute_when_free(self, connection: sqlite3.Connection, statements: Sequence[str]) -> None:
        """Execute statements, and retry while another process holds the lock, for as long as a request may take."""
        give_up = time.monotonic() + self._timeout
        while True:
            try:
                for statement in statements:
                    connection.execute(statement)
                return
            except sqlite3.OperationalError as error:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if _code(error) not in BUSY or time.monotonic() >= give_up:
                    raise
                time.sleep(RETRY_PAUSE)

    def _recover(self, error: Exception) -> None:
        """Roll back, and close the connection unless the error is harmless."""
        if self._connection is None:
            return
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            self.close()
        if isinstance(error, (sqlite3.Error, OSError)) and _code(error) not in HARMLESS:
            self.close()


def _code(error: Exception) -> int | None:
    """Return SQLite's primary result code; None for what the driver itself refused, such as a value of a wrong type."""
    if isinstance(error, OSError):
        return sqlite3.SQLITE_CANTOPEN
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _detail(error: Exception) -> str:
    return DETAILS.get(_code(error), "The site's store failed.")


def _adds(request: StoreRequest) -> list[str]:
    steps = request.order.steps if isinstance(request.order, RunSteps) else ()
    return [step.key for step in steps if type(step) is Add and step.seconds > 0]
