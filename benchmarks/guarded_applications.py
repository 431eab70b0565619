"""Applications whose calls pass gates."""

import asyncio
import base64
import sqlite3
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

from fastapi import FastAPI, Request
from itsdangerous import TimestampSigner
from starlette.applications import Starlette
from starlette.middleware.sessions import SessionMiddleware

import awp_publish
from awp_publish.http.exchange import AsgiApp
from benchmarks.shop import ORDERS, Order, Receipt, order_books

ENDLESS = "100000000/hour"
TOKEN = "a-token-of-the-benchmark"
Insert: TypeAlias = Callable[[Receipt], Awaitable[object]]
_keys = count()


def function(site_options: dict[str, Any] | None = None, **options: Any) -> AsgiApp:
    """One function as an agent, in a Starlette application."""
    site = awp_publish.Site("Bookshop", "Find and order books.", "https://books.example", **(site_options or {}))

    async def price(order: Order) -> Receipt:
        """Say what books would cost."""
        return await order_books(order)

    site.agent("price_books", **options)(price)
    app = Starlette()
    app.add_middleware(awp_publish.AgentPublisher, site=site)
    return app


def guarded(store: str = "memory:") -> AsgiApp:
    site_options = {"authenticate": awp_publish.BearerToken({TOKEN: "partner"}), "store": store}
    options = {"auth_required": True, "rate_limit": ENDLESS, "idempotency": True}
    return function(site_options, **options)


def route(insert: Insert | None = None, store: str = "memory:", cookies: bool = False, **options: Any) -> AsgiApp:
    """A FastAPI route as an action. With `insert` its handler writes a row of its own, with `cookies` it sets one."""
    site = awp_publish.Site("Bookshop", "Find and order books.", "https://books.example", store=store)

    async def order(order: Order) -> Receipt:
        """Order books; the answer is the receipt."""
        receipt = await order_books(order)
        if insert is not None:
            await insert(receipt)
        return receipt

    app = FastAPI()
    app.post(ORDERS)(order)
    site.action("order_books", **options)(order)
    app.add_middleware(awp_publish.AgentPublisher, site=site)
    return app


def visited() -> AsgiApp:
    """A FastAPI route that keeps something in its caller's session."""
    site = awp_publish.Site("Bookshop", "Find and order books.", "https://books.example")

    async def order(order: Order, request: Request) -> Receipt:
        """Order books; the answer is the receipt."""
        request.session.setdefault("seen", "yes")
        return await order_books(order)

    app = FastAPI()
    app.post(ORDERS)(order)
    site.action("order_books")(order)
    app.add_middleware(awp_publish.AgentPublisher, site=site)
    app.add_middleware(SessionMiddleware, secret_key=TOKEN)
    return app


def cookie() -> bytes:
    """What a browser sends that has been here before."""
    return TimestampSigner(TOKEN).sign(base64.b64encode(b'{"seen":"yes"}'))


def inserting(path: Path) -> Insert:
    """One row that waits for the disk, in a thread as one does."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, body BLOB)")

    async def insert(receipt: Receipt) -> None:
        row = (f"key-{next(_keys)}", receipt.model_dump_json())
        await asyncio.to_thread(connection.execute, "INSERT INTO answers VALUES (?, ?)", row)

    return insert
