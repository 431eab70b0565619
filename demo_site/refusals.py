"""Every way in which the shop says no: a status, a code for programs and a sentence for people."""

from http import HTTPStatus

from fastapi import HTTPException

# A 401 must name a scheme, yet none of the registry describes a session cookie: this is the proposed "Cookie" scheme.
SIGN_IN_CHALLENGE = {"WWW-Authenticate": 'Cookie realm="First Lines", form-action="/sign-in", cookie-name="session"'}


NOT_SIGNED_IN = "NOT_SIGNED_IN"


def refusal(status: HTTPStatus, code: str, message: str, headers: dict[str, str] | None = None) -> HTTPException:
    """Return the exception that refuses a request."""
    return HTTPException(status, detail={"code": code, "message": message}, headers=headers)


def unknown_book() -> HTTPException:
    """Say that we have no such book."""
    return refusal(HTTPStatus.NOT_FOUND, "UNKNOWN_BOOK", "We have no book of that name on our shelves.")


def not_in_basket() -> HTTPException:
    """Say that the book to remove is not in the basket."""
    return refusal(HTTPStatus.NOT_FOUND, "NOT_IN_BASKET", "That book is not in your basket.")


def unknown_order() -> HTTPException:
    """Say that there is no such order, or that it is somebody else's: the answer must not tell which."""
    return refusal(HTTPStatus.NOT_FOUND, "UNKNOWN_ORDER", "You have no order of that number.")


def out_of_stock(title: str, copies: int) -> HTTPException:
    """Say that there are not enough copies."""
    left = {0: "no copies", 1: "only one copy"}.get(copies, f"only {copies} copies")
    return refusal(HTTPStatus.CONFLICT, "OUT_OF_STOCK", f"We have {left} of {title} left.")


def empty_basket() -> HTTPException:
    """Say that there is nothing to order."""
    return refusal(HTTPStatus.CONFLICT, "EMPTY_BASKET", "Your basket is empty, so there is nothing to order yet.")


def not_signed_in() -> HTTPException:
    """Ask the visitor to sign in."""
    return refusal(HTTPStatus.UNAUTHORIZED, NOT_SIGNED_IN, "Please sign in first.", SIGN_IN_CHALLENGE)


def wrong_password() -> HTTPException:
    """Say that name and password do not belong together, without telling which of them is wrong."""
    return refusal(
        HTTPStatus.UNAUTHORIZED, "WRONG_PASSWORD", "We know no account with that name and password.", SIGN_IN_CHALLENGE
    )


def foreign_origin() -> HTTPException:
    """Say that a form on another site may not act for our visitor."""
    return refusal(HTTPStatus.FORBIDDEN, "FOREIGN_ORIGIN", "This request was sent by a page of another site.")
