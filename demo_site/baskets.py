"""Baskets: what a visitor has put aside, kept under the random name that the session carries."""

import sqlite3

from demo_site import books
from demo_site.models import Basket, BasketLine
from demo_site.refusals import not_in_basket, out_of_stock


def show(connection: sqlite3.Connection, basket_id: str | None) -> Basket:
    """Return the basket, which is empty for a visitor who has put nothing aside."""
    rows = connection.execute(
        """SELECT slug, title, author, quantity, price_cents, quantity * price_cents AS total_cents
        FROM basket_lines JOIN books USING (slug) WHERE basket_id = ? ORDER BY title_words""",
        (basket_id,),
    )
    lines = [BasketLine.model_validate(dict(row)) for row in rows]
    return Basket(
        lines=lines,
        copies=sum(line.quantity for line in lines),
        total_cents=sum(line.total_cents for line in lines),
    )


def add(connection: sqlite3.Connection, basket_id: str, slug: str, quantity: int) -> None:
    """Put copies of a book into the basket, if there are as many in the shop."""
    book = books.find(connection, slug)
    if quantity + _copies_of(connection, basket_id, slug) > book.stock:
        raise out_of_stock(book.title, book.stock)
    connection.execute(
        """INSERT INTO basket_lines VALUES (?, ?, ?)
        ON CONFLICT (basket_id, slug) DO UPDATE SET quantity = quantity + excluded.quantity""",
        (basket_id, slug, quantity),
    )


def change(connection: sqlite3.Connection, basket_id: str | None, slug: str, quantity: int) -> None:
    """Set how many copies of a book are in the basket, if there are as many in the shop."""
    if basket_id is None or not _copies_of(connection, basket_id, slug):
        raise not_in_basket()
    book = books.find(connection, slug)
    if quantity > book.stock:
        raise out_of_stock(book.title, book.stock)
    connection.execute(
        "UPDATE basket_lines SET quantity = ? WHERE basket_id = ? AND slug = ?", (quantity, basket_id, slug)
    )


def remove(connection: sqlite3.Connection, basket_id: str | None, slug: str) -> None:
    """Take all copies of a book out of the basket."""
    gone = connection.execute("DELETE FROM basket_lines WHERE basket_id = ? AND slug = ?", (basket_id, slug))
    if gone.rowcount == 0:
        raise not_in_basket()


def empty(connection: sqlite3.Connection, basket_id: str) -> None:
    """Take everything out of the basket."""
    connection.execute("DELETE FROM basket_lines WHERE basket_id = ?", (basket_id,))


def copies(connection: sqlite3.Connection, basket_id: str | None) -> int:
    """Return how many copies are in the basket."""
    row = connection.execute("SELECT total(quantity) FROM basket_lines WHERE basket_id = ?", (basket_id,)).fetchone()
    return int(row[0])


def _copies_of(connection: sqlite3.Connection, basket_id: str, slug: str) -> int:
    row = connection.execute(
        "SELECT quantity FROM basket_lines WHERE basket_id = ? AND slug = ?", (basket_id, slug)
    ).fetchone()
    return int(row["quantity"]) if row else 0
