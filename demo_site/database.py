"""The shop's SQLite file: made once from the data beside this module, then opened for each piece of work."""

import secrets
import shutil
import sqlite3
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from demo_site import accounts, books

SCHEMA = Path(__file__).parent / "data" / "schema.sql"
SCHEMA_VERSION = 1
SECONDS_TO_WAIT_FOR_A_LOCK = 10.0


class Database:
    """A SQLite file that is made and filled the first time somebody needs it.

    Without a path the file is temporary and disappears with the process. With a path it stays, and
    several worker processes may share it.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.is_temporary = path is None
        self.path = path or _temporary_path()
        self._own_secret = secrets.token_urlsafe(32)
        self._prepared = False
        self._lock = threading.Lock()
        self._forget: Callable[[], object] | None = None

    def prepare(self) -> None:
        """Make the tables and fill them, unless that is done."""
        with self._lock:
            if self._prepared:
                return
            if self.is_temporary:
                self._make_folder(self.path.parent)
            with self._open() as connection, _transaction(connection):
                _fill_once(connection, self._own_secret)
            self._prepared = True

    def close(self) -> None:
        """Delete a temporary file; one with a path of its own stays."""
        with self._lock:
            if self._forget is not None:
                self._forget()
                self._forget, self._prepared = None, False

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection to look things up with."""
        self.prepare()
        with self._open() as connection:
            yield connection

    @contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection whose changes happen together, or not at all when the block raises."""
        with self.reading() as connection, _transaction(connection):
            yield connection

    def secret(self) -> str:
        """Return the secret that signs what visitors keep, the same in every process that shares the file."""
        if self.is_temporary:
            return self._own_secret
        with self.reading() as connection:
            row = connection.execute("SELECT value FROM settings WHERE name = 'session_secret'").fetchone()
        return str(row["value"])

    def _make_folder(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        # A shop that is never closed, in a test for instance, leaves nothing behind either.
        self._forget = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        # Autocommit mode: transactions begin and end only where `_transaction` says so.
        opened = sqlite3.connect(self.path, timeout=SECONDS_TO_WAIT_FOR_A_LOCK, isolation_level=None)
        with closing(opened) as connection:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA foreign_keys = ON")
            yield connection


def _temporary_path() -> Path:
    # Named before it is made, and by nobody to be guessed: what lies beside it has to be named at once too.
    return Path(tempfile.gettempdir()) / f"first-lines-{secrets.token_hex(16)}" / "shop.db"


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    # IMMEDIATE takes the write lock before the first read, so two customers cannot both be sold the last copy.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _fill_once(connection: sqlite3.Connection, secret: str) -> None:
    # The version is read under the write lock: of several workers starting together one fills the file.
    if connection.execute("PRAGMA user_version").fetchone()[0] == SCHEMA_VERSION:
        return
    for statement in SCHEMA.read_text(encoding="utf-8").split(";"):
        connection.execute(statement)
    books.fill(connection)
    accounts.fill(connection)
    connection.execute("INSERT INTO settings VALUES ('session_secret', ?)", (secret,))
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
