"""The tables of the SQLite store, and every statement on them.

Some records (SECRETS) hold credentials, of which no trace may be left. `secure_delete` overwrites what is deleted, but
not the copies that remain where SQLite has moved cells from page to page to make room. Only a row's overflow pages are
never moved. So such a record is stored behind as much padding as fits into the part of a row that can be moved
(https://www.sqlite.org/fileformat2.html#cell_payload_overflow_pages).
"""

import sqlite3
from typing import Final

from awp_publish.stores.store import CLOCK_TOLERANCE, JOB, SESSION, WEBHOOK, decode, encode

SECRETS: Final = (JOB, SESSION, WEBHOOK)
"""Prefixes of the keys under which credentials are kept: a value replaced or dropped there must not stay readable."""

SLOT_SECONDS: Final = 5.0
LAST_SLOT: Final = 2.0**60
"""The slot of what never expires."""

SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS awp_entries (key BLOB PRIMARY KEY, value NOT NULL, expires REAL NOT NULL,"
    " slot INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS awp_entries_slot ON awp_entries (slot)",
    "CREATE TABLE IF NOT EXISTS awp_queue (queue BLOB, member BLOB, due REAL NOT NULL, since REAL NOT NULL,"
    " PRIMARY KEY (queue, member)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS awp_queue_due ON awp_queue (queue, due, member)",
    "CREATE INDEX IF NOT EXISTS awp_queue_since ON awp_queue (queue, since)",
)
"""Entries are values (bytes) and windows (a number of events). `since` is when a member was scheduled.

Entries are indexed by the `slot` of seconds in which they expire, not by the exact time, so that replacing one (as each
recorded answer replaces its claim) rarely touches the index.
"""

FIND: Final = "SELECT value, expires FROM awp_entries WHERE key = ? AND expires > ?"
PUT: Final = (
    "INSERT INTO awp_entries (key, value, expires, slot) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires WHERE slot = excluded.slot"
)
MOVE: Final = "UPDATE awp_entries SET value = ?, expires = ?, slot = ? WHERE key = ?"
"""For an entry in another slot, which `PUT` leaves alone: an update that names the slot always writes the index."""

DROP: Final = "DELETE FROM awp_entries WHERE key = ?"
PURGE: Final = "DELETE FROM awp_entries WHERE key IN (SELECT key FROM awp_entries WHERE slot < ? ORDER BY slot LIMIT ?)"
SCHEDULE: Final = "INSERT OR REPLACE INTO awp_queue (queue, member, due, since) VALUES (?, ?, ?, ?)"
UNSCHEDULE: Final = "DELETE FROM awp_queue WHERE queue = ? AND member = ?"
OTHERS: Final = (
    "SELECT count(*) - EXISTS (SELECT 1 FROM awp_queue WHERE queue = :queue AND member = :member) FROM awp_queue"
    " WHERE queue = :queue"  # without looking at the members, which takes three times as long
)
MAKE_DUE: Final = "UPDATE awp_queue SET due = ?, since = ? WHERE queue = ? AND since > ?"
DUE: Final = "SELECT member FROM awp_queue WHERE queue = ? AND due <= ? ORDER BY due, member LIMIT ?"


class SqliteTransaction:
    """The entries and queues of one namespace, inside a transaction that the backend begins and ends.

    `page_size` is that of the file, in bytes.
    """

    def __init__(self, connection: sqlite3.Connection, namespace: str, page_size: int) -> None:
        self._padding = (page_size - 12) * 64 // 255 - 23
        self._execute = connection.execute
        self._executemany = connection.executemany
        self._prefix = f"awp:{namespace}"

    def value(self, key: str, now: float) -> bytes | None:
        row: tuple[bytes, float] | None = self._execute(FIND, (self._name("v", key), now)).fetchone()
        if row is None or not key.startswith(SECRETS):
            return None if row is None else row[0]
        return row[0][4 + int.from_bytes(row[0][:4]) :]

    def window(self, key: str, now: float) -> tuple[int, float]:
        row: tuple[int, float] | None = self._execute(FIND, (self._name("c", key), now)).fetchone()
        return row or (0, 0.0)

    def put(self, key: str, value: bytes, expires: float) -> None:
        if key.startswith(SECRETS):
            value = self._padding.to_bytes(4) + bytes(self._padding) + value
        self._put(self._name("v", key), value, expires)

    def _put(self, key: bytes, value: bytes | int, expires: float) -> None:
        slot = _slot_of(expires)
        if not self._execute(PUT, (key, value, expires, slot)).rowcount:
            self._execute(MOVE, (value, expires, slot, key))

    def drop(self, key: str) -> None:
        self._execute(DROP, (self._name("v", key),))

    def count(self, key: str, events: int, closes: float) -> None:
        self._put(self._name("c", key), events, closes)

    def schedule(self, queue: str, member: str, due: float, now: float) -> None:
        self._execute(SCHEDULE, (self._name("q", queue), encode(member), due, now))

    def unschedule(self, queue: str, member: str) -> None:
        self._execute(UNSCHEDULE, (self._name("q", queue), encode(member)))

    def others(self, queue: str, member: str) -> int:
        place = {"queue": self._name("q", queue), "member": encode(member)}
        row: tuple[int] = self._execute(OTHERS, place).fetchone()
        return row[0]

    def take(self, queue: str, lease: float, most: int, now: float) -> tuple[str, ...]:
        """Lease members that are due, and those that seem due in hours only because the clock was set back."""
        name = self._name("q", queue)
        self._execute(MAKE_DUE, (now, now, name, now + CLOCK_TOLERANCE))
        members: list[bytes] = [member for (member,) in self._execute(DUE, (name, now, max(most, 0)))]
        self._executemany(SCHEDULE, [(name, member, now + lease, now) for member in members])
        return tuple(decode(member) for member in members)

    def purge(self, now: float, most: int) -> None:
        """Delete up to `most` entries whose slot has passed, so that the file does not keep growing."""
        self._execute(PURGE, (_slot_of(now), most))

    def _name(self, kind: str, name: str) -> bytes:
        return encode(f"{self._prefix}:{kind}:{name}")


def _slot_of(moment: float) -> float:
    return moment // SLOT_SECONDS if moment < LAST_SLOT else LAST_SLOT
