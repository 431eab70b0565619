"""Calls through the WoA and the plain door, in process, beside a direct POST to the same FastAPI route."""

import time
from dataclasses import replace
from types import ModuleType

import orjson
from fastapi import FastAPI

from awp_publish.http.exchange import AsgiApp
from benchmarks.before import SMALL_PIECES, load_before
from benchmarks.measure import Case, Series, ask, interleave, on_each_loop, same
from benchmarks.shop import (
    FUNCTION_INVOKE,
    INVOCATION,
    ORDER,
    ORDER_INVOKE,
    ORDERS,
    enclosed,
    json_headers,
    order_books,
    read_book,
    shop,
)
from benchmarks.table import Row, at_most, compare, of_before


def invoking(seconds: float) -> list[Row]:
    """A FastAPI route, and the same function without a route; input and output are validated both ways."""
    before = load_before(SMALL_PIECES)
    found = on_each_loop(lambda: _measure(seconds / 2, before))
    beside, of_route, of_function = (
        "direct POST without awp_publish",
        "WoA invoke of a route",
        "WoA invoke of a function",
    )
    adds, pieces, most = f"what a {of_route} adds", "the same in many small modules", at_most(0.65)
    return [
        compare(f"{of_route}, add_middleware", found, "inside route", "post", beside, at_most(1.65)),
        compare(f"{of_route}, one middleware outside", found, "enclosed route", "post", beside, at_most(2.2)),
        compare(f"{of_route}, outermost", found, "outermost route", "post", beside, at_most(1.65)),
        of_before(adds, found, "inside route", "post", "before", "post", pieces, most)
        if before is not None
        else Row(adds, pieces, None, most, "the history is not at hand"),
        compare(f"{of_function}, add_middleware", found, "inside function", "post", beside, at_most(0.38)),
        compare(f"{of_function}, outermost", found, "outermost function", "post", beside, at_most(0.38)),
        compare("plain call of a route, add_middleware", found, "plain route", "post", beside, at_most(1.65)),
        compare("plain call of a function, add_middleware", found, "plain function", "post", beside, at_most(0.45)),
    ]


async def _measure(seconds: float, before: ModuleType | None) -> dict[str, Series]:
    direct = Case("post", shop("nowhere"), ORDERS, "POST", json_headers(ORDER), ORDER)
    wanted = await ask(direct)
    assert wanted.status == 200
    assert orjson.loads(wanted.body)["total"] == 22.5
    inside, outermost = shop("inside"), shop("outermost")
    cases = [
        _call("inside route", inside, ORDER_INVOKE),
        _call("enclosed route", enclosed(), ORDER_INVOKE),
        _call("outermost route", outermost, ORDER_INVOKE),
        _call("inside function", inside, FUNCTION_INVOKE),
        _call("outermost function", outermost, FUNCTION_INVOKE),
        Case("plain route", inside, "/agents/actions/order_books", "POST", json_headers(ORDER), ORDER),
        Case("plain function", inside, "/agents/actions/price_books", "POST", json_headers(ORDER), ORDER),
    ]
    if before is not None:
        cases.append(_call("before", _shop_of(before), ORDER_INVOKE))
    for case in cases:
        await _assert_validated(await same(case, wanted))
    return await interleave([replace(case, clock=time.thread_time) for case in (direct, *cases)], seconds)


def _shop_of(package: ModuleType) -> AsgiApp:
    """The shop, with awp_publish as it was."""
    app = FastAPI(title="Bookshop")
    app.get("/books/{slug}")(read_book)
    app.post(ORDERS)(order_books)
    site = package.Site("Bookshop", "Find, read about and order public-domain books.", "https://books.example")
    site.action("read_book")(read_book)
    site.action("order_books")(order_books)
    app.add_middleware(package.AgentPublisher, site=site)
    return app


def _call(name: str, app: AsgiApp, path: str) -> Case:
    return Case(name, app, path, "POST", json_headers(INVOCATION), INVOCATION)


async def _assert_validated(case: Case) -> None:
    body = case.body.replace(b'"copies":2', b'"copies":0')
    refused = await ask(replace(case, body=body, headers=json_headers(body)))
    assert refused.status == 422
    assert orjson.loads(refused.body)["errors"][0]["pointer"] == "/lines/0/copies"
