"""Putting books aside."""

from http import HTTPStatus
from typing import Annotated

from fastapi import FastAPI, Form, Response

from awp_publish import Site
from demo_site import baskets
from demo_site.answers import CurrentAnswer, form_responses, page_responses
from demo_site.database import Database
from demo_site.models import Basket
from demo_site.visits import CurrentVisit

ChosenSlug = Annotated[str, Form(description="Name of the book, as in a search result.", examples=["moby-dick"])]
Quantity = Annotated[int, Form(description="How many copies to add.", ge=1, le=20)]
NewQuantity = Annotated[int, Form(description="How many copies there are to be.", ge=1, le=20)]

BASKET = {
    "type": "table",
    "selector": ".basket",
    "itemSelector": ".book-line",
    "properties": {"title": ".book-title", "quantity": ".book-quantity", "total_cents": ".line-total"},
}
LINES = {
    "id": "lines",
    "selector": ".basket .book-line",
    "many": True,
    "fields": {
        "title": {"selector": ".book-title", "property": "innerText", "trim": True, "required": True},
        "copies": {"selector": "span.book-quantity", "property": "innerText", "trim": True, "required": True},
    },
}
TOTAL = {
    "id": "total",
    "selector": ".basket .total-price",
    "many": False,
    "fields": {"cents": {"attribute": "value"}},
}
BASKET_LINE = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "copies": {"type": "integer"}},
    "required": ["title", "copies"],
}
BASKET_STATE = {
    "type": "object",
    "properties": {"lines": {"type": "array", "items": BASKET_LINE}, "total_cents": {"type": "integer"}},
    "required": ["lines"],
}
ADD_FIELDS = {
    "slug": "form.add-to-basket-form input[name='slug']",
    "quantity": "form.add-to-basket-form input[name='quantity']",
}
CHANGE_FIELDS = {
    "slug": "form.change-quantity-form input[name='slug']",
    "quantity": "form.change-quantity-form input[name='quantity']",
}
REMOVE_FIELDS = {"slug": "form.remove-from-basket-form input[name='slug']"}
REFUSED_ADDING = (HTTPStatus.UNAUTHORIZED, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)
REFUSED_REMOVING = (HTTPStatus.UNAUTHORIZED, HTTPStatus.NOT_FOUND)


def register_baskets(app: FastAPI, site: Site, database: Database) -> None:
    """Add the basket and the forms that change it."""
    _register_basket(app, site, database)
    _register_changing(app, site, database)


def _register_basket(app: FastAPI, site: Site, database: Database) -> None:
    @app.get("/basket", response_model=Basket, responses=page_responses(HTTPStatus.UNAUTHORIZED))
    @site.page(
        id="basket",
        title="Your basket",
        guide="Read the basket with the projection basket.lines. What is in it is ordered with check_out.",
        actions=["change_quantity", "remove_from_basket"],
        map={
            "states": [
                {
                    "name": "filled",
                    "description": "There are books in the basket.",
                    "diagnostics": [{"name": "book-line", "target": {"selector": ".basket .book-line"}}],
                    "observables": ["lines"],
                },
                {
                    "name": "empty",
                    "description": "Nothing is in the basket yet.",
                    "diagnostics": [{"name": "basket-empty", "target": {"selector": ".basket .basket-empty"}}],
                },
            ],
            "state_projections": [
                {
                    "name": "lines",
                    "description": "The books in the basket, how many copies of each, and what they cost together, "
                    "in cents.",
                    "snapshot": {
                        "extract": [LINES, TOTAL],
                        "projection": {
                            "expression": "{'lines': $append([], records.lines."
                            "{'title': title, 'copies': $number(copies)}), "
                            "'total_cents': $number(records.total.cents)}"
                        },
                        "output_schema": BASKET_STATE,
                    },
                    "summaries": [
                        {
                            "name": "total",
                            "max_bytes": 12_000,
                            "expression": "{'copies': $sum(state.lines.copies), 'total_cents': state.total_cents}",
                        }
                    ],
                }
            ],
        },
    )
    @site.action("show_basket", tags=["basket"], awas={"result": BASKET}, auth_required=True)
    def show_basket(answer: CurrentAnswer, visit: CurrentVisit) -> Basket | Response:
        """See which books are in your basket, and what they cost together; you must be signed in."""
        visit.need_account()
        with database.reading() as connection:
            return answer.page("basket.html", baskets.show(connection, visit.basket_id))

    @app.post("/basket", response_model=Basket, responses=form_responses(*REFUSED_ADDING))
    @site.action(
        "add_to_basket",
        tags=["basket"],
        awas={
            "selector": "form.add-to-basket-form",
            "selectors": ADD_FIELDS,
            "preconditions": ["The shop has as many copies in stock"],
        },
        extensions={"awas": {"x-page": "/books/{slug}"}},
        auth_required=True,
        examples=[{"slug": "moby-dick", "quantity": 1}],
    )
    def add_to_basket(
        answer: CurrentAnswer, visit: CurrentVisit, slug: ChosenSlug, quantity: Quantity = 1
    ) -> Basket | Response:
        """Put copies of a book into your basket; you must be signed in. Refused if the shop has too few copies."""
        visit.need_account()
        with database.changing() as connection:
            basket_id = visit.begin_basket()
            baskets.add(connection, basket_id, slug, quantity)
            return answer.go_on("/basket", baskets.show(connection, basket_id))


def _register_changing(app: FastAPI, site: Site, database: Database) -> None:
    @app.post("/basket/quantity", response_model=Basket, responses=form_responses(*REFUSED_ADDING))
    @site.action(
        "change_quantity",
        tags=["basket"],
        effect="idempotent",
        awas={
            "selector": "form.change-quantity-form",
            "selectors": CHANGE_FIELDS,
            "preconditions": [
                "The book is in your basket",
                "The shop has as many copies in stock",
            ],
        },
        auth_required=True,
        depends_on=["add_to_basket"],
        examples=[{"slug": "moby-dick", "quantity": 2}],
    )
    def change_quantity(
        answer: CurrentAnswer, visit: CurrentVisit, slug: ChosenSlug, quantity: NewQuantity
    ) -> Basket | Response:
        """Set how many copies of a book are in your basket; you must be signed in."""
        visit.need_account()
        with database.changing() as connection:
            baskets.change(connection, visit.basket_id, slug, quantity)
            return answer.go_on("/basket", baskets.show(connection, visit.basket_id))

    @app.post("/basket/remove", response_model=Basket, responses=form_responses(*REFUSED_REMOVING))
    @site.action(
        "remove_from_basket",
        tags=["basket"],
        effect="idempotent",
        awas={"selector": "form.remove-from-basket-form", "selectors": REMOVE_FIELDS},
        examples=[{"slug": "moby-dick"}],
        auth_required=True,
        depends_on=["add_to_basket"],
    )
    def remove_from_basket(answer: CurrentAnswer, visit: CurrentVisit, slug: ChosenSlug) -> Basket | Response:
        """Take all copies of a book out of your basket; you must be signed in."""
        visit.need_account()
        with database.changing() as connection:
            baskets.remove(connection, visit.basket_id, slug)
            return answer.go_on("/basket", baskets.show(connection, visit.basket_id))
