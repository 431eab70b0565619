"""The index of a site's pages in PostgreSQL: its own text search, ranked by how rare a word is and how often it occurs.

One connection serves an index, and is made anew after it was lost. Words are reduced to their English stems, without
diacritics; each word of a query is a parameter of its own, so that none can use the operators of `tsquery`.
"""

import os
import unicodedata
from collections.abc import Sequence
from typing import Any, Final, LiteralString

import psycopg

from awp_publish.plugins.search.page_index import LEASE_SECONDS, IndexedPage, Known, query_words, words_of
from awp_publish.stores.store import unavailable

CONNECT_SECONDS: Final = 5
STATEMENT_MS: Final = 10_000

MAX_INDEXED: Final = 150_000
"""Characters of a text whose words are indexed: a `tsvector` has less than a megabyte."""

PAGES_SCHEMA: Final[tuple[LiteralString, ...]] = (
    "CREATE TABLE IF NOT EXISTS awp_pages (site text, path text, title text NOT NULL, text text NOT NULL,"
    " description text NOT NULL, modified text NOT NULL, etag text NOT NULL, digest bytea NOT NULL,"
    " size bigint NOT NULL, checked double precision NOT NULL, words tsvector NOT NULL, PRIMARY KEY (site, path))",
    "CREATE INDEX IF NOT EXISTS awp_pages_words ON awp_pages USING gin (words)",
    "CREATE TABLE IF NOT EXISTS awp_page_readings (site text PRIMARY KEY, begun double precision NOT NULL DEFAULT 0,"
    " ended double precision NOT NULL DEFAULT 0, holder text NOT NULL DEFAULT '',"
    " held_until double precision NOT NULL DEFAULT 0)",
)

_SEARCH: Final = (
    "WITH words AS (SELECT phraseto_tsquery('english', word) AS asked FROM unnest(%(words)s::text[]) AS word),"
    " counted AS (SELECT asked, (SELECT count(*) FROM awp_pages WHERE site = %(site)s AND words @@ asked) AS pages"
    " FROM words WHERE numnode(asked) > 0),"
    " everything AS (SELECT count(*) AS pages FROM awp_pages WHERE site = %(site)s)"
    " SELECT path, title FROM awp_pages, counted, everything WHERE site = %(site)s AND words @@ asked"
    " GROUP BY path, title ORDER BY sum("
    "ln(1 + (everything.pages - counted.pages + 0.5) / (counted.pages + 0.5))"
    " * ts_rank('{0.25, 0.25, 0.25, 1}', words, asked, 1)) DESC, path LIMIT %(most)s"
)
_PUT: Final = (
    "INSERT INTO awp_pages VALUES (%(site)s, %(path)s, %(title)s, %(text)s, %(description)s, %(modified)s, %(etag)s,"
    " %(digest)s, %(size)s, %(now)s, setweight(to_tsvector('english', %(title_words)s), 'A')"
    " || setweight(to_tsvector('english', %(text_words)s), 'D'))"
    " ON CONFLICT (site, path) DO UPDATE SET title = excluded.title, text = excluded.text,"
    " description = excluded.description, modified = excluded.modified, etag = excluded.etag,"
    " digest = excluded.digest, size = excluded.size, checked = excluded.checked, words = excluded.words"
)
_CLAIM: Final = (
    "INSERT INTO awp_page_readings (site, holder, held_until) VALUES (%(site)s, %(holder)s, %(until)s)"
    " ON CONFLICT (site) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until"
    " WHERE awp_page_readings.holder = excluded.holder OR awp_page_readings.held_until <= %(now)s"
    " OR awp_page_readings.held_until > %(now)s + 2 * %(lease)s"  # the clock may have been set back
    " RETURNING holder"
)


def plain(text: str) -> str:
    """Return a text as PostgreSQL keeps and compares it: without diacritics and NUL."""
    parts = unicodedata.normalize("NFKD", text.replace("\0", " "))
    return unicodedata.normalize("NFC", "".join(part for part in parts if unicodedata.category(part) != "Mn"))


class PostgresPageIndex:
    """The pages of one site, in tables of a PostgreSQL database. `site` separates sites that share it."""

    def __init__(self, url: str, site: str) -> None:
        self._url, self._site = url, site
        self._holder = f"{os.uname().nodename}-{os.getpid()}-{id(self):x}"
        self._connection: psycopg.Connection[Any] | None = None

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def search(self, query: str, most: int) -> list[tuple[str, str]]:
        words = [plain(word) for word in query_words(query)]
        return self._ask(_SEARCH, words=words, most=most) if words else []

    def page(self, path: str) -> IndexedPage | None:
        rows = self._ask(
            "SELECT title, text, description, modified FROM awp_pages WHERE site = %(site)s AND path = %(path)s",
            path=path.replace("\0", ""),
        )
        if not rows:
            return None
        title, text, description, modified = rows[0]
        return IndexedPage(path=path, title=title, text=text, description=description, modified=modified)

    def known(self) -> dict[str, Known]:
        rows = self._ask("SELECT path, etag, modified, digest, checked, size FROM awp_pages WHERE site = %(site)s")
        return {path: Known(*rest) for path, *rest in rows}

    def begun(self) -> float:
        return self._moment("SELECT begun FROM awp_page_readings WHERE site = %(site)s")

    def ended(self) -> float:
        return self._moment("SELECT ended FROM awp_page_readings WHERE site = %(site)s")

    def _moment(self, statement: LiteralString) -> float:
        rows = self._ask(statement)
        return float(rows[0][0]) if rows else 0.0

    def begin(self, now: float) -> None:
        self._ask("UPDATE awp_page_readings SET begun = %(now)s WHERE site = %(site)s", now=now)

    def end(self, now: float) -> None:
        self._ask("UPDATE awp_page_readings SET ended = %(now)s WHERE site = %(site)s", now=now)

    def claim(self, now: float) -> bool:
        return bool(self._ask(_CLAIM, holder=self._holder, now=now, until=now + LEASE_SECONDS, lease=LEASE_SECONDS))

    def release(self) -> None:
        statement: LiteralString = (
            "UPDATE awp_page_readings SET held_until = 0 WHERE site = %(site)s AND holder = %(holder)s"
        )
        self._ask(statement, holder=self._holder)

    def put(self, page: IndexedPage, now: float) -> None:
        texts = {name: getattr(page, name).replace("\0", "") for name in ("path", "title", "text", "description")}
        words = {"title_words": plain(words_of(page.title)), "text_words": plain(words_of(page.text))}
        facts = {"modified": page.modified, "etag": page.etag, "digest": page.digest, "size": page.size, "now": now}
        words["text_words"] = words["text_words"][:MAX_INDEXED]
        self._ask(_PUT, **texts, **words, **facts)

    def confirm(self, path: str, now: float) -> None:
        self._ask(
            "UPDATE awp_pages SET checked = %(now)s WHERE site = %(site)s AND path = %(path)s", path=path, now=now
        )

    def remove(self, path: str) -> None:
        self._ask("DELETE FROM awp_pages WHERE site = %(site)s AND path = %(path)s", path=path)

    def _ask(self, statement: LiteralString, **values: object) -> list[Any]:
        """Execute a statement for this site. Raises StoreUnavailable."""
        try:
            if self._connection is None or self._connection.closed:
                self._connection = self._connect()
            with self._connection.cursor() as cursor:
                cursor.execute(statement, {"site": self._site, **values})
                return cursor.fetchall() if cursor.description is not None else []
        except psycopg.Error as error:
            if isinstance(error, psycopg.OperationalError):
                self.close()
            raise unavailable("The index of this site's pages failed.") from error

    def _connect(self) -> psycopg.Connection[Any]:
        connection = psycopg.connect(
            self._url,
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            options=f"-c statement_timeout={STATEMENT_MS}",
            application_name="awp_publish search",
            prepare_threshold=None,  # a proxy such as PgBouncer may share server connections
        )
        try:
            _create(connection, PAGES_SCHEMA)
        except psycopg.Error:
            connection.close()
            raise
        return connection


def _create(connection: psycopg.Connection[Any], schema: Sequence[LiteralString]) -> None:
    """Make the tables that are missing. Of several processes one makes them, and the others wait."""
    tables = connection.execute("SELECT to_regclass('awp_pages'), to_regclass('awp_page_readings')").fetchone()
    if tables is not None and None not in tables:
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (int.from_bytes(b"awppages"),))
        for statement in schema:
            connection.execute(statement)
