"""The shelves: filling them, searching them, taking one book down."""

import json
import re
import sqlite3
import unicodedata
from datetime import date
from pathlib import Path
from typing import Any

from demo_site.models import Book, SearchResults, Sort, Subject
from demo_site.refusals import unknown_book

DATA = Path(__file__).parent / "data" / "books.json"
MOST_WORDS_IN_A_QUERY = 8
APOSTROPHES = "['\u2019]"

ORDERS = {
    Sort.relevance: "score DESC, front_table DESC, title_words",
    Sort.title: "title_words",
    Sort.author: "author_sort, year",
    Sort.year: "year, title_words",
    Sort.price: "price_cents, title_words",
}


def fill(connection: sqlite3.Connection) -> None:
    """Put every book of the data file on the shelves."""
    connection.executemany(
        """INSERT INTO books VALUES (:slug, :title, :author, :author_sort, :year, :language, :translator, :subjects,
        :opening_line, :price_cents, :stock, :front_table, :title_words, :author_words, :subject_words)""",
        [_row(book) for book in json.loads(DATA.read_text(encoding="utf-8"))],
    )


def search(connection: sqlite3.Connection, query: str, sort: Sort, page: int, page_size: int) -> SearchResults:
    """Find the books whose title, author or subjects have words that begin with every word of the query."""
    words = without_article(fold(query)).split()[:MOST_WORDS_IN_A_QUERY]
    values: dict[str, str | int] = {f"word{number}": f"% {word}%" for number, word in enumerate(words)}
    found = f"FROM books WHERE {_condition(len(words))}"
    total = int(connection.execute(f"SELECT count(*) {found}", values).fetchone()[0])
    rows = connection.execute(
        f"SELECT *, {_score(len(words))} AS score {found} ORDER BY {ORDERS[sort]} LIMIT :size OFFSET :start",
        values | {"size": page_size, "start": (page - 1) * page_size},
    )
    return SearchResults(
        query=query, sort=sort, total=total, page=page, pages=-(-total // page_size), books=[_book(row) for row in rows]
    )


def find(connection: sqlite3.Connection, slug: str) -> Book:
    """Return one book; an unknown one is refused."""
    row = connection.execute("SELECT * FROM books WHERE slug = ?", (slug,)).fetchone()
    if row is None:
        raise unknown_book()
    return _book(row)


def neighbours(connection: sqlite3.Connection, book: Book, limit: int = 4) -> list[Book]:
    """Return books that somebody who looks at this one may like: the same author first, then shared subjects."""
    rows = connection.execute(
        """SELECT *, (author = :author) * 10 + (SELECT count(*) FROM json_each(books.subjects)
        WHERE value IN (SELECT value FROM json_each(:subjects))) AS likeness
        FROM books WHERE slug != :slug AND likeness > 0 ORDER BY likeness DESC, title_words LIMIT :limit""",
        {"author": book.author, "subjects": json.dumps(book.subjects), "slug": book.slug, "limit": limit},
    )
    return [_book(row) for row in rows]


def front_table(connection: sqlite3.Connection) -> list[Book]:
    """Return the books that lie on the table by the door, oldest first."""
    return [_book(row) for row in connection.execute("SELECT * FROM books WHERE front_table ORDER BY year")]


def opening_of_the_day(connection: sqlite3.Connection, today: date) -> Book:
    """Return the book whose first line is in the window today."""
    row = connection.execute(
        "SELECT * FROM books ORDER BY slug LIMIT 1 OFFSET :day % (SELECT count(*) FROM books)",
        # A prime step, so that the alphabet does not show from one day to the next.
        {"day": today.toordinal() * 61},
    ).fetchone()
    return _book(row)


def subjects(connection: sqlite3.Connection, at_least: int) -> list[Subject]:
    """Return the subjects that have so many books, in alphabetical order."""
    rows = connection.execute(
        """SELECT value AS name, count(*) AS books FROM books, json_each(books.subjects)
        GROUP BY value HAVING count(*) >= ? ORDER BY value""",
        (at_least,),
    )
    return [Subject(name=row["name"], books=row["books"]) for row in rows]


def everything(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """Return the slugs of all books, their authors and their subjects, each once."""
    queries = {
        "slug": "SELECT slug FROM books ORDER BY slug",
        "author": "SELECT DISTINCT author FROM books ORDER BY author_sort",
        "subject": "SELECT DISTINCT value FROM books, json_each(books.subjects) ORDER BY value",
    }
    return {name: [row[0] for row in connection.execute(query)] for name, query in queries.items()}


def count(connection: sqlite3.Connection) -> int:
    """Return how many different books we have."""
    return int(connection.execute("SELECT count(*) FROM books").fetchone()[0])


def fold(text: str) -> str:
    """Return the plain words of a text: no case, accents, apostrophes or punctuation."""
    decomposed = unicodedata.normalize("NFKD", re.sub(APOSTROPHES, "", text))
    bare = "".join(character for character in decomposed if not unicodedata.combining(character))
    return re.sub(r"[\W_]+", " ", bare.casefold()).strip()


def without_article(words: str) -> str:
    """Return plain words without the article before them, by which no title is sorted or found."""
    return re.sub(r"^(an?|the) ", "", words)


def _row(book: dict[str, Any]) -> dict[str, Any]:
    return {
        **book,
        "subjects": json.dumps(book["subjects"], ensure_ascii=False),
        # The leading blank lets a pattern such as "% sea%" match the beginning of words only.
        "title_words": " " + without_article(fold(book["title"])),
        "author_words": " " + fold(book["author"]),
        "subject_words": " " + fold(" ".join(book["subjects"])),
    }


def _condition(words: int) -> str:
    everything = "(title_words || author_words || subject_words)"
    return " AND ".join(f"{everything} LIKE :word{number}" for number in range(words)) or "TRUE"


def _score(words: int) -> str:
    score = "4 * (title_words LIKE :word{0}) + 3 * (author_words LIKE :word{0}) + 2 * (subject_words LIKE :word{0})"
    return " + ".join(score.format(number) for number in range(words)) or "0"


def _book(row: sqlite3.Row) -> Book:
    return Book.model_validate({**dict(row), "subjects": json.loads(row["subjects"])})
