"""Calls through the WoA and the plain door, in process, beside a direct POST to the same FastAPI route."""

import time
from dataclasses import replace

import orjson

from awp_publish.http.exchange import AsgiApp
from benchmarks.measure import Case, Series, ask, interleave, on_each_loop, same
from benchmarks.shop import (
    FUNCTION_INVOKE,
    INVOCATION,
    ORDER,
    ORDER_INVOKE,
    ORDERS,
    enclosed,
    json_headers,
    shop,
)
from benchmarks.table import Row, at_most, compare, share


def invoking(seconds: float) -> list[Row]:
    """A FastAPI route, and the same function without a route; input and output are validated both ways."""
    found = on_each_loop(lambda: _measure(seconds / 2))
    beside, of_route, of_function = (
        "direct POST without awp_publish",
        "WoA invoke of a route",
        "WoA invoke of a function",
    )
    return [
        compare(f"{of_route}, add_middleware", found, "inside route", "post", beside, at_most(1.65)),
        compare(f"{of_route}, one middleware outside", found, "enclosed route", "post", beside, at_most(2.2)),
        compare(f"{of_route}, outermost", found, "outermost route", "post", beside, at_most(1.65)),
        share(f"what a {of_route} adds", found, "inside route", "post", "post", beside, at_most(0.53)),
        compare(f"{of_function}, add_middleware", found, "inside function", "post", beside, at_most(0.38)),
        compare(f"{of_function}, outermost", found, "outermost function", "post", beside, at_most(0.38)),
        compare("plain call of a route, add_middleware", found, "plain route", "post", beside, at_most(1.65)),
        compare("plain call of a function, add_middleware", found, "plain function", "post", beside, at_most(0.45)),
    ]


async def _measure(seconds: float) -> dict[str, Series]:
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
    for case in cases:
        await _assert_validated(await same(case, wanted))
    return await interleave([replace(case, clock=time.thread_time) for case in (direct, *cases)], seconds)


def _call(name: str, app: AsgiApp, path: str) -> Case:
    return Case(name, app, path, "POST", json_headers(INVOCATION), INVOCATION)


async def _assert_validated(case: Case) -> None:
    body = case.body.replace(b'"copies":2', b'"copies":0')
    refused = await ask(replace(case, body=body, headers=json_headers(body)))
    assert refused.status == 422
    assert orjson.loads(refused.body)["errors"][0]["pointer"] == "/lines/0/copies"
