"""The signed session cookie, which remembers of a visit: a basket, an account, and where to go after signing in."""

import secrets
import sqlite3
from typing import Annotated, Any

from fastapi import Depends, Request

from demo_site import accounts, baskets
from demo_site.models import Visitor
from demo_site.refusals import not_signed_in

ACCOUNT = "account"
"""The session's name for the number of the account, by which agents are known too."""


class Visit:
    """One visitor's session, read and written by name."""

    def __init__(self, session: dict[str, Any]) -> None:
        self._session = session

    @property
    def basket_id(self) -> str | None:
        """The name of the visitor's basket, if one was begun."""
        return self._session.get("basket")

    def begin_basket(self) -> str:
        """Return the name of the visitor's basket, making one up if there is none."""
        if self.basket_id is None:
            self._session["basket"] = secrets.token_urlsafe(16)
        return str(self._session["basket"])

    @property
    def account_id(self) -> int | None:
        """The number of the account that is signed in, if any."""
        return self._session.get(ACCOUNT)

    def need_account(self) -> int:
        """Return the number of the account that is signed in, or refuse."""
        if self.account_id is None:
            raise not_signed_in()
        return self.account_id

    def sign_in(self, account_id: int) -> None:
        """Remember who it is."""
        self._session[ACCOUNT] = account_id

    def sign_out(self) -> None:
        """Forget everything: the computer may be a shared one."""
        self._session.clear()

    def remember_way_back(self, path: str) -> None:
        """Keep the path of our own that was asked for before signing in."""
        self._session["way_back"] = path

    def take_way_back(self, default: str) -> str:
        """Return the path to go to after signing in, once."""
        return str(self._session.pop("way_back", default))

    def visitor(self, connection: sqlite3.Connection) -> Visitor:
        """Say who is visiting."""
        name = None if self.account_id is None else accounts.name_of(connection, self.account_id)
        return Visitor(
            signed_in=name is not None, name=name, copies_in_basket=baskets.copies(connection, self.basket_id)
        )


def visit_of(request: Request) -> Visit:
    """Return the visit that a request belongs to."""
    return Visit(request.session)


CurrentVisit = Annotated[Visit, Depends(visit_of)]
