"""What a call with a token of sign-in costs, beside the same call of a caller with a bearer token.

The site keeps its sessions in Starlette's cookie, once inside and once outside of us, and tells by it who is signed in.
The route reads it too. Beside it stands the same with the person's cookie sent along: what the site itself needs to
know somebody, which no token of ours can spare.
"""

import time
from typing import Any

import httpx
from fastapi import FastAPI, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.middleware.sessions import SessionMiddleware

from awp_publish import AgentPublisher, BearerToken, SessionUser, SignIn, Site
from awp_publish.http.exchange import AsgiApp, RawHeaders
from benchmarks.measure import Case, Series, ask, interleave, on_each_loop
from benchmarks.person import carry_out_async, token_steps
from benchmarks.shop import INVOCATION, ORDER_INVOKE, ORDERS, Order, Receipt, json_headers, order_books
from benchmarks.table import Row, at_most, compare

ORIGIN = "https://books.example"
KEY = "a-secret-key-of-the-benchmark-and-nobody-else"
TOKEN = "a-token-of-the-benchmark"
PLACES = ("inside", "outside")


def signing_in(seconds: float) -> list[Row]:
    """The rows of calls with a token, for a session middleware inside and outside of us."""
    found = on_each_loop(lambda: _measure(seconds / 2))
    return [
        row
        for place in PLACES
        for row in (
            compare(
                f"a call with a token of sign-in, sessions {place}",
                found,
                f"token {place}",
                f"bearer {place}",
                "the same with BearerToken",
                at_most(1.1),
            ),
            compare(
                f"the same, sessions {place}",
                found,
                f"token {place}",
                f"cookie {place}",
                "BearerToken and the person's own cookie",
                None,
            ),
        )
    ]


async def _measure(seconds: float) -> dict[str, Series]:
    cases: list[Case] = []
    for place in PLACES:
        signed_in, bearer = _shop(place, True), _shop(place, False)
        token, cookie = await _sign_in(signed_in)
        session = (b"cookie", f"session={cookie}".encode())
        cases += [
            _case(f"token {place}", signed_in, _bearer(token)),
            _case(f"bearer {place}", bearer, _bearer(TOKEN)),
            _case(f"cookie {place}", bearer, (*_bearer(TOKEN), session)),
        ]
    for case in cases:
        answer = await ask(case)
        assert answer.status == 200, (case.name, answer.body)
    return await interleave(cases, seconds)


def _case(name: str, app: AsgiApp, headers: RawHeaders) -> Case:
    whole = (*json_headers(INVOCATION), *headers)
    return Case(name, app, ORDER_INVOKE, "POST", whole, INVOCATION, clock=time.thread_time)


def _bearer(token: str) -> RawHeaders:
    return ((b"authorization", f"Bearer {token}".encode()),)


def _shop(place: str, signs_in: bool) -> AsgiApp:
    options: dict[str, Any] = {"authenticate": BearerToken({TOKEN: "reader"})}
    if signs_in:
        options = {"plugins": [SignIn(login="/sign-in", user=SessionUser("user"))], "secret_keys": [KEY]}
    site = Site("Bookshop", "Find and order books.", ORIGIN, store="memory:", **options)
    app = FastAPI()

    @app.get("/sign-in")
    async def show_form(request: Request, next: str = "/") -> HTMLResponse:  # noqa: A002
        request.session["next"] = next
        return HTMLResponse('<form class="sign-in-form" method=post></form>')

    @app.post("/sign-in")
    async def sign_in(request: Request, name: str = Form()) -> RedirectResponse:
        request.session["user"] = name
        return RedirectResponse(request.session.pop("next"), 303)

    @app.post(ORDERS)
    @site.action("order_books", auth_required=True)
    async def order(order: Order, request: Request) -> Receipt:
        """Order books; the answer is the receipt."""
        assert request.session.get("user", "reader") == "reader"
        return await order_books(order)

    sessions: tuple[Any, dict[str, Any]] = SessionMiddleware, {"secret_key": KEY}
    ours: tuple[Any, dict[str, Any]] = AgentPublisher, {"site": site}
    for middleware, settings in (sessions, ours) if place == "inside" else (ours, sessions):
        app.add_middleware(middleware, **settings)
    return app


async def _sign_in(app: AsgiApp) -> tuple[str, str]:
    """Return a token that a person has allowed, and the cookie of this person's browser."""
    transport: Any = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as browser:
        token = await carry_out_async(token_steps(ORIGIN), browser)
        return token, browser.cookies["session"]
