"""The tables of the SQLite store, and every statement on them.

Keys are stored as bytes: text that is no valid Unicode, or has a NUL in it, is a key like any other.

Records of jobs hold credentials, of which nothing may stay behind. `secure_delete` overwrites what is deleted, but not
what SQLite has moved from page to page before to make room: that stays where it was until something else is written
there. Only what lies beyond the first part of a row, on pages of its own, is never moved. So a job's record is stored
behind as much padding as that part can hold (https://www.sqlite.org/fileformat2.html#cell_payload_overflow_pages).
"""

import sqlite3
from typing import Final

from awp_publish.stores.store import JOB

TOLERANCE: Final = 3600.0
"""Seconds by which a member of a queue may have been scheduled in the future, before the clock counts as set back."""

SLOT_SECONDS: Final = 5.0
ENDLESS: Final = 2.0**60
"""A slot that never is over."""

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

Entries are indexed by the `slot` of seconds in which they expire and not by the moment, so that to replace one, as each
recorded answer replaces its claim, mostly leaves the index as it is.
"""

FIND: Final = "SELECT value, expires FROM awp_entries WHERE key = ? AND expires > ?"
PUT: Final = (
    "INSERT INTO awp_entries (key, value, expires, slot) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires, slot = excluded.slot"
)
DROP: Final = "DELETE FROM awp_entries WHERE key = ?"
PURGE: Final = "DELETE FROM awp_entries WHERE key IN (SELECT key FROM awp_entries WHERE slot < ? ORDER BY slot LIMIT ?)"
SCHEDULE: Final = "INSERT OR REPLACE INTO awp_queue (queue, member, due, since) VALUES (?, ?, ?, ?)"
UNSCHEDULE: Final = "DELETE FROM awp_queue WHERE queue = ? AND member = ?"
OTHERS: Final = (
    "SELECT count(*) - EXISTS (SELECT 1 FROM awp_queue WHERE queue = ?1 AND member = ?2) FROM awp_queue"
    " WHERE queue = ?1"  # without looking at the members, which takes three times as long
)
RELEASE: Final = "UPDATE awp_queue SET due = ?, since = ? WHERE queue = ? AND since > ?"
DUE: Final = "SELECT member FROM awp_queue WHERE queue = ? AND due <= ? ORDER BY due, member LIMIT ?"


class SqliteShelf:
    """The things of one namespace, inside a transaction that somebody else begins and ends.

    `page_size` is the file's, in bytes.
    """

    def __init__(self, connection: sqlite3.Connection, namespace: str, page_size: int) -> None:
        self._padding = (page_size - 12) * 64 // 255 - 23
        self._execute = connection.execute
        self._executemany = connection.executemany
        self._prefix = f"awp:{namespace}"

    def value(self, key: str, now: float) -> bytes | None:
        found: tuple[bytes, float] | None = self._execute(FIND, (self._name("v", key), now)).fetchone()
        if found is None or not key.startswith(JOB):
            return None if found is None else found[0]
        return found[0][4 + int.from_bytes(found[0][:4]) :]

    def window(self, key: str, now: float) -> tuple[int, float]:
        found: tuple[int, float] | None = self._execute(FIND, (self._name("c", key), now)).fetchone()
        return found or (0, 0.0)

    def put(self, key: str, value: bytes, expires: float) -> None:
        if key.startswith(JOB):
            value = self._padding.to_bytes(4) + bytes(self._padding) + value
        self._execute(PUT, (self._name("v", key), value, expires, _slot_of(expires)))

    def drop(self, key: str) -> None:
        self._execute(DROP, (self._name("v", key),))

    def count(self, key: str, events: int, closes: float) -> None:
        self._execute(PUT, (self._name("c", key), events, closes, _slot_of(closes)))

    def schedule(self, queue: str, member: str, due: float, now: float) -> None:
        self._execute(SCHEDULE, (self._name("q", queue), _encode(member), due, now))

    def unschedule(self, queue: str, member: str) -> None:
        self._execute(UNSCHEDULE, (self._name("q", queue), _encode(member)))

    def others(self, queue: str, member: str) -> int:
        found: tuple[int] = self._execute(OTHERS, (self._name("q", queue), _encode(member))).fetchone()
        return found[0]

    def take(self, queue: str, lease: float, most: int, now: float) -> tuple[str, ...]:
        """Lease what is due, and what would not be due for hours only because the clock was set back."""
        name = self._name("q", queue)
        self._execute(RELEASE, (now, now, name, now + TOLERANCE))
        members: list[bytes] = [member for (member,) in self._execute(DUE, (name, now, max(most, 0)))]
        self._executemany(SCHEDULE, [(name, member, now + lease, now) for member in members])
        return tuple(member.decode("utf-8", "surrogatepass") for member in members)

    def purge(self, now: float, most: int) -> None:
        """Forget up to `most` entries whose slot is over, so that the file stays about as large as what is in it."""
        self._execute(PURGE, (_slot_of(now), most))

    def _name(self, kind: str, name: str) -> bytes:
        return _encode(f"{self._prefix}:{kind}:{name}")


def _slot_of(moment: float) -> float:
    return moment // SLOT_SECONDS if moment < ENDLESS else ENDLESS


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
