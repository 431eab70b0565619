"""Packing and shipping an order: work that takes its time, done for agents in the background."""

import asyncio
from http import HTTPStatus
from typing import Final

from fastapi import FastAPI, Response
from fastapi.concurrency import run_in_threadpool

from awp_publish import Site, report_progress
from demo_site import orders
from demo_site.answers import CurrentAnswer, form_responses
from demo_site.database import Database
from demo_site.models import Order, Shipment
from demo_site.routes.orders import ORDER, ORDER_EXAMPLE, OrderNumber
from demo_site.visits import CurrentVisit

STEPS: Final = (
    (0.0, "Taking the books from the shelves"),
    (0.4, "Wrapping them in paper"),
    (0.8, "Handing the parcel to the post"),
)
REFUSED_SHIPPING = (HTTPStatus.UNAUTHORIZED, HTTPStatus.NOT_FOUND)


def register_shipments(app: FastAPI, site: Site, database: Database, pause: float) -> None:
    """Add the form that has an order shipped; each step of it takes `pause` seconds."""

    site.event("order_shipped", payload=Shipment)

    def find(account_id: int, order_id: str) -> Order:
        with database.reading() as connection:
            return orders.find(connection, account_id, order_id)

    def note(account_id: int, order_id: str) -> Order:
        with database.changing() as connection:
            return orders.ship(connection, account_id, order_id)

    @app.post("/orders/{order_id}/shipment", response_model=Order, responses=form_responses(*REFUSED_SHIPPING))
    @site.action(
        "ship_order",
        tags=["orders"],
        effect="idempotent",
        awas={
            "selector": "form.ship-order-form",
            "result": ORDER,
            "preconditions": ["You placed the order"],
        },
        extensions={"awas": {"x-page": "/orders/{order_id}"}},
        auth_required=True,
        idempotency="24h",
        depends_on=["check_out"],
        examples=[ORDER_EXAMPLE],
        execution="async",
    )
    async def ship_order(answer: CurrentAnswer, visit: CurrentVisit, order_id: OrderNumber) -> Order | Response:
        """Have an order packed and shipped that you placed; an order that is on its way already stays as it is."""
        account_id = visit.need_account()
        order = await run_in_threadpool(find, account_id, order_id)
        if order.status == "received":
            await pack(pause)
            order = await run_in_threadpool(note, account_id, order_id)
            shipped = Shipment(order_id=order.order_id, total_cents=order.total_cents, currency=order.currency)
            # A job that runs again after a worker has died tells of the same parcel: once.
            await site.emit("order_shipped", shipped, audience=f"principal:{account_id}", unique=f"ship-{order_id}")
        report_progress(1.0, "On its way")
        return answer.go_on(f"/orders/{order_id}", order)


async def pack(pause: float) -> None:
    """Go through the steps, and say so to whoever follows the work."""
    for fraction, message in STEPS:
        report_progress(fraction, message)
        await asyncio.sleep(pause)
