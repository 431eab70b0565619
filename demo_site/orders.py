"""Orders: turning a basket into one, showing it to the person who placed it, and sending it on its way."""

import secrets
import sqlite3
from datetime import UTC, datetime

from demo_site import baskets
from demo_site.models import Basket, BasketLine, Order, OrderLine
from demo_site.refusals import empty_basket, out_of_stock, unknown_order


def ready_basket(connection: sqlite3.Connection, basket_id: str | None) -> Basket:
    """Return a basket that can be ordered; an empty one is refused."""
    basket = baskets.show(connection, basket_id)
    if not basket.lines:
        raise empty_basket()
    return basket


def place(connection: sqlite3.Connection, account_id: int, basket_id: str | None, name: str, address: str) -> Order:
    """Take the books from stock, write the order down and empty the basket, all in the caller's transaction."""
    basket = ready_basket(connection, basket_id)
    assert basket_id is not None
    order_id = secrets.token_hex(8)
    connection.execute(
        "INSERT INTO orders VALUES (?, ?, ?, 'received', ?, ?)",
        (order_id, account_id, datetime.now(UTC).isoformat(timespec="seconds"), name, address),
    )
    for line in basket.lines:
        _take_from_stock(connection, line)
        connection.execute(
            "INSERT INTO order_lines VALUES (?, ?, ?, ?)", (order_id, line.slug, line.quantity, line.price_cents)
        )
    baskets.empty(connection, basket_id)
    return find(connection, account_id, order_id)


def find(connection: sqlite3.Connection, account_id: int, order_id: str) -> Order:
    """Return an order of this account; anybody else's is as unknown as one that never was."""
    order = connection.execute(
        "SELECT * FROM orders WHERE order_id = ? AND account_id = ?", (order_id, account_id)
    ).fetchone()
    if order is None:
        raise unknown_order()
    lines = _lines(connection, order_id)
    return Order.model_validate({**dict(order), "lines": lines, "total_cents": sum(line.total_cents for line in lines)})


def ship(connection: sqlite3.Connection, account_id: int, order_id: str) -> Order:
    """Write down that an order of this account is on its way; to do so again changes nothing."""
    connection.execute(
        "UPDATE orders SET status = 'shipped' WHERE order_id = ? AND account_id = ?", (order_id, account_id)
    )
    return find(connection, account_id, order_id)


def _take_from_stock(connection: sqlite3.Connection, line: BasketLine) -> None:
    taken = connection.execute(
        "UPDATE books SET stock = stock - :quantity WHERE slug = :slug AND stock >= :quantity",
        {"slug": line.slug, "quantity": line.quantity},
    )
    if taken.rowcount == 0:
        left = connection.execute("SELECT stock FROM books WHERE slug = ?", (line.slug,)).fetchone()["stock"]
        raise out_of_stock(line.title, left)


def _lines(connection: sqlite3.Connection, order_id: str) -> list[OrderLine]:
    rows = connection.execute(
        """SELECT slug, title, author, quantity, order_lines.price_cents AS price_cents,
        quantity * order_lines.price_cents AS total_cents
        FROM order_lines JOIN books USING (slug) WHERE order_id = ? ORDER BY title_words""",
        (order_id,),
    )
    return [OrderLine.model_validate(dict(row)) for row in rows]
