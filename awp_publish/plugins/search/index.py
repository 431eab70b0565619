"""The index of a site's pages: SQLite FTS5, ranked by BM25.

A query is reduced to its words, each of which is quoted, so that no query is a syntax error and none can use FTS5's own
operators; a page matches if it has any of the words, and the rank decides. Scripts without spaces between words are
indexed by character, and searched by phrase.

Several processes may share the file: a lease lets one of them write at a time. The texts of pages are public.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from typing import Final

from awp_publish.plugins.search.page_index import LEASE_SECONDS, IndexedPage, Known, query_words, words_of

VERSION: Final = 1
"""Of the tables: those of another version are made again."""

WEIGHTS: Final = (4.0, 1.0)
"""How much a word in the title counts, and in the text."""

BUSY_SECONDS: Final = 5.0


def has_full_text_search() -> bool:
    """Return True if SQLite here was built with FTS5."""
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE words USING fts5(word)")
        except sqlite3.OperationalError:
            return False
    return True


def match_of(query: str) -> str:
    """Return a query in the syntax of FTS5: its words, any of which a page has; "" if it has none."""
    return " OR ".join(f'"{word}"' for word in query_words(query))


class SqlitePageIndex:
    """The pages of one site, in the file at `path`, or in a temporary database if that is None.

    Not thread-safe. `namespace` separates sites that share a file. Raises sqlite3.Error.
    """

    def __init__(self, path: str | None, namespace: str) -> None:
        self._holder = f"{os.getpid()}-{id(self):x}".encode()
        self._connection = sqlite3.connect(
            path or "", timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        name = sha256(namespace.encode()).hexdigest()[:12]
        self._pages, self._words, self._facts = (f"awp_search_{kind}_{name}" for kind in ("pages", "words", "facts"))
        if path is not None:
            self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=NORMAL")  # what a power failure undoes is read again
        with self._writing():
            self._create()

    def close(self) -> None:
        self._connection.close()

    def _create(self) -> None:
        run = self._connection.execute
        run(f"CREATE TABLE IF NOT EXISTS {self._facts} (name TEXT PRIMARY KEY, value) WITHOUT ROWID")
        if self._fact("version") == VERSION:
            return
        for table in (self._pages, self._words):
            run(f"DROP TABLE IF EXISTS {table}")
        run(
            f"CREATE TABLE {self._pages} (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, title TEXT NOT NULL,"
            " text TEXT NOT NULL, description TEXT NOT NULL, modified TEXT NOT NULL, etag TEXT NOT NULL,"
            " digest BLOB NOT NULL, size INTEGER NOT NULL, checked REAL NOT NULL)"
        )
        # Without content of its own: the texts are in the other table.
        tokenizer = "porter unicode61 remove_diacritics 2"
        run(f"CREATE VIRTUAL TABLE {self._words} USING fts5(title, text, content='', tokenize='{tokenizer}')")
        run(f"DELETE FROM {self._facts}")
        self._note("version", VERSION)

    def search(self, query: str, most: int) -> list[tuple[str, str]]:
        if not (match := match_of(query)):
            return []
        weights = ", ".join(map(str, WEIGHTS))
        return self._connection.execute(
            f"SELECT path, title FROM (SELECT rowid AS number, bm25({self._words}, {weights}) AS score"
            f" FROM {self._words} WHERE {self._words} MATCH ? ORDER BY score, number LIMIT ?)"
            f" JOIN {self._pages} ON id = number ORDER BY score, number",
            (match, most),
        ).fetchall()

    def page(self, path: str) -> IndexedPage | None:
        row = self._connection.execute(
            f"SELECT title, text, description, modified FROM {self._pages} WHERE path = ?", (path,)
        ).fetchone()
        if row is None:
            return None
        title, text, description, modified = row
        return IndexedPage(path=path, title=title, text=text, description=description, modified=modified)

    def known(self) -> dict[str, Known]:
        rows = self._connection.execute(f"SELECT path, etag, modified, digest, checked, size FROM {self._pages}")
        return {path: Known(*rest) for path, *rest in rows}

    def begun(self) -> float:
        return self._moment("begun")

    def ended(self) -> float:
        return self._moment("ended")

    def claim(self, now: float) -> bool:
        with self._writing():
            holder, until = self._fact("holder"), self._moment("until")
            is_held = now < until <= now + 2 * LEASE_SECONDS  # the clock may have been set back
            if is_held and holder != self._holder:
                return False
            self._note("holder", self._holder)
            self._note("until", now + LEASE_SECONDS)
            return True

    def release(self) -> None:
        with self._writing():
            if self._fact("holder") == self._holder:
                self._note("until", 0)

    def begin(self, now: float) -> None:
        with self._writing():
            self._note("begun", now)

    def end(self, now: float) -> None:
        with self._writing():
            self._note("ended", now)

    def put(self, page: IndexedPage, now: float) -> None:
        with self._writing():
            self._remove(page.path)
            values = (page.title, page.text, page.description, page.modified, page.etag, page.digest, page.size, now)
            cursor = self._connection.execute(
                f"INSERT INTO {self._pages} (path, title, text, description, modified, etag, digest, size, checked)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (page.path, *values),
            )
            self._connection.execute(
                f"INSERT INTO {self._words} (rowid, title, text) VALUES (?, ?, ?)",
                (cursor.lastrowid, words_of(page.title), words_of(page.text)),
            )

    def confirm(self, path: str, now: float) -> None:
        with self._writing():
            self._connection.execute(f"UPDATE {self._pages} SET checked = ? WHERE path = ?", (now, path))

    def remove(self, path: str) -> None:
        with self._writing():
            self._remove(path)

    def _remove(self, path: str) -> None:
        run = self._connection.execute
        row = run(f"SELECT id, title, text FROM {self._pages} WHERE path = ?", (path,)).fetchone()
        if row is None:
            return
        number, title, text = row
        # A table without content is told what its row held (FTS5, The 'delete' Command).
        run(
            f"INSERT INTO {self._words} ({self._words}, rowid, title, text) VALUES ('delete', ?, ?, ?)",
            (number, words_of(title), words_of(text)),
        )
        run(f"DELETE FROM {self._pages} WHERE id = ?", (number,))

    def _moment(self, name: str) -> float:
        value = self._fact(name)
        return float(value) if isinstance(value, (int, float)) else 0.0

    def _fact(self, name: str) -> object:
        row = self._connection.execute(f"SELECT value FROM {self._facts} WHERE name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    def _note(self, name: str, value: object) -> None:
        self._connection.execute(f"INSERT OR REPLACE INTO {self._facts} (name, value) VALUES (?, ?)", (name, value))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        try:
            yield
            run("COMMIT")
        except BaseException:
            self._connection.rollback()
            raise
