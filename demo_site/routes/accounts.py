"""Signing in and out."""

from http import HTTPStatus
from typing import Annotated

from fastapi import FastAPI, Form, Query, Request, Response

from awp_publish import Site
from demo_site import accounts
from demo_site.answers import CurrentAnswer, form_responses, page_responses
from demo_site.database import Database
from demo_site.models import Visitor
from demo_site.origins import own_path, page_before
from demo_site.visits import CurrentVisit

AccountName = Annotated[str, Form(description="Name of the account.", min_length=1, max_length=100)]
Password = Annotated[
    str,
    Form(
        description="Password of the account.", min_length=1, max_length=200, json_schema_extra={"format": "password"}
    ),
]

WayBack = Annotated[str | None, Query(description="Page of this shop to go to afterwards.", max_length=4000)]

SIGN_IN_FIELDS = {
    "name": "form.sign-in-form input[name='name']",
    "password": "form.sign-in-form input[name='password']",
}


def register_accounts(app: FastAPI, site: Site, database: Database) -> None:
    """Add the sign-in page and the forms to sign in and out."""

    @app.get("/sign-in", response_model=Visitor, responses=page_responses())
    @site.page(
        id="sign_in",
        title="Sign in",
        guide="Call sign_in on this page, with an account that the page shows.",
        actions=["sign_in"],
        map={
            "targets": {
                "form": "form.sign-in-form",
                "submit": {"selector": "form.sign-in-form button", "text_contains": "Sign in"},
                "done": ".sign-out-form .account-name",
            }
        },
    )
    def show_visitor(
        request: Request,
        answer: CurrentAnswer,
        visit: CurrentVisit,
        next: WayBack = None,  # noqa: A002
    ) -> Visitor | Response:
        """See whether you are signed in, and as whom."""
        before = own_path(next) or page_before(request)
        if before is not None and before != "/sign-in":
            visit.remember_way_back(before)
        with database.reading() as connection:
            visitor = visit.visitor(connection)
        return answer.page("sign_in.html", visitor)

    @app.post("/sign-in", response_model=Visitor, responses=form_responses(HTTPStatus.UNAUTHORIZED))
    @site.action(
        "sign_in",
        tags=["account"],
        effect="idempotent",
        expose=["bridge"],  # who is on the page; elsewhere agents call with a token, and see no password
        awas={"selector": "form.sign-in-form", "selectors": SIGN_IN_FIELDS},
    )
    def sign_in(
        answer: CurrentAnswer, visit: CurrentVisit, name: AccountName, password: Password
    ) -> Visitor | Response:
        """Sign in, as the basket and orders require. The sign-in page shows accounts that anybody may use."""
        with database.reading() as connection:
            visit.sign_in(accounts.authenticate(connection, name, password))
            return answer.go_on(visit.take_way_back(default="/basket"), visit.visitor(connection))

    @app.post("/sign-out", response_model=Visitor, responses=form_responses())
    @site.action("sign_out", tags=["account"], effect="idempotent", expose=["bridge"])
    def sign_out(answer: CurrentAnswer, visit: CurrentVisit) -> Visitor | Response:
        """Sign out and forget the basket."""
        visit.sign_out()
        with database.reading() as connection:
            return answer.go_on("/", visit.visitor(connection))
