"""Checking out, and following an order."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import FastAPI, Form, Path, Response

from awp_publish import Refused, Site
from awp_publish.calls.call import Call
from awp_publish.plugins.confirmation.quoting import quoted
from demo_site import baskets, orders
from demo_site.answers import CurrentAnswer, form_responses, page_responses
from demo_site.database import Database
from demo_site.looks import money
from demo_site.models import Basket, Order
from demo_site.visits import CurrentVisit, Visit

Recipient = Annotated[str, Form(description="Who receives the parcel.", min_length=1, max_length=100)]
Address = Annotated[str, Form(description="Postal address of the parcel.", min_length=5, max_length=500)]
OrderNumber = Annotated[str, Path(description="Number of the order, as given when it was placed.", max_length=40)]

ORDER = {
    "type": "single",
    "selector": ".order",
    "properties": {"order_id": ".order-id", "status": ".order-status", "total_cents": ".total-price"},
}
CHECKOUT_FIELDS = {
    "name": "form.checkout-form input[name='name']",
    "address": "form.checkout-form textarea[name='address']",
}
ORDER_EXAMPLE = {"order_id": "8c1f0e5a2b7d4936"}
FINAL = "This cannot be undone."
CREATED = HTTPStatus.CREATED
REFUSED_CHECKOUT = (HTTPStatus.UNAUTHORIZED, HTTPStatus.CONFLICT)


def register_orders(app: FastAPI, site: Site, database: Database) -> None:
    """Add the checkout and the page of each order."""
    _register_checkout(app, site, database)
    _register_following(app, site, database)


def _register_checkout(app: FastAPI, site: Site, database: Database) -> None:
    def say_what_is_ordered(given: Mapping[str, Any], call: Call) -> str:
        """Return what a person agrees to: the total, the titles, and where the parcel goes."""
        with database.reading() as connection:
            basket = baskets.show(connection, Visit(dict(call.application_session)).basket_id)
        if not basket.lines:
            raise Refused("The basket is empty, so there is nothing to order yet.", status=409, code="EMPTY_BASKET")
        titles = ", ".join(f"{line.quantity} x {line.title}" for line in basket.lines)
        recipient, address = quoted(given["name"]), quoted(given["address"])
        return f"Order {titles} for {money(basket.total_cents)} in all, to be sent to {recipient}, {address}. {FINAL}"

    @app.get("/checkout", response_model=Basket, responses=page_responses(*REFUSED_CHECKOUT))
    def review_checkout(answer: CurrentAnswer, visit: CurrentVisit) -> Basket | Response:
        """See what you are about to order; you must be signed in and have something in your basket."""
        visit.need_account()
        with database.reading() as connection:
            return answer.page("checkout.html", orders.ready_basket(connection, visit.basket_id))

    @app.post("/checkout", response_model=Order, status_code=CREATED, responses=form_responses(*REFUSED_CHECKOUT))
    @site.action(
        "check_out",
        tags=["orders"],
        effect="irreversible",
        confirm=say_what_is_ordered,
        awas={
            "selector": "form.checkout-form",
            "selectors": CHECKOUT_FIELDS,
            "result": ORDER,
            "preconditions": ["The basket is not empty"],
        },
        auth_required=True,
        idempotency="24h",
        requires=["add_to_basket"],
        examples=[{"name": "Ada Lovelace", "address": "1 Quiet Lane, Derby"}],
    )
    def check_out(answer: CurrentAnswer, visit: CurrentVisit, name: Recipient, address: Address) -> Order | Response:
        """Order the books in your basket; you must be signed in. No money is asked for."""
        account_id = visit.need_account()
        with database.changing() as connection:
            order = orders.place(connection, account_id, visit.basket_id, name, address)
        return answer.go_on(f"/orders/{order.order_id}", order)


def _register_following(app: FastAPI, site: Site, database: Database) -> None:
    refused = page_responses(HTTPStatus.UNAUTHORIZED, HTTPStatus.NOT_FOUND)

    @app.get("/orders/{order_id}", response_model=Order, responses=refused)
    @site.action(
        "show_order",
        tags=["orders"],
        awas={"result": ORDER},
        auth_required=True,
        depends_on=["check_out"],
        examples=[ORDER_EXAMPLE],
    )
    def show_order(answer: CurrentAnswer, visit: CurrentVisit, order_id: OrderNumber) -> Order | Response:
        """Follow an order that you placed: its status, books and address."""
        account_id = visit.need_account()
        with database.reading() as connection:
            return answer.page("order.html", orders.find(connection, account_id, order_id))
