"""Calls through the WoA door, in process, beside a direct POST to the same FastAPI route."""

from dataclasses import replace

import orjson

from awp_publish.serve.http import AsgiApp
from benchmarks.applications import (
    FUNCTION_INVOKE,
    INVOCATION,
    ORDER,
    ORDER_INVOKE,
    ORDERS,
    enclosed,
    json_headers,
    shop,
)
from benchmarks.measure import Case, Series, ask, interleave, on_each_loop, same
from benchmarks.table import Row, at_most, compare


def invoking(seconds: float) -> list[Row]:
    """A FastAPI route, and the same function without a route; input and output are validated both ways."""
    found = on_each_loop(lambda: _measure(seconds / 2))
    beside, of_route, of_function = (
        "direct POST without awp_publish",
        "WoA invoke of a route",
        "WoA invoke of a function",
    )
    return [
        compare(f"{of_route}, add_middleware", found, "inside route", "post", beside, at_most(1.2)),
        compare(f"{of_route}, one middleware outside", found, "enclosed route", "post", beside, at_most(2.2)),
        compare(f"{of_route}, outermost", found, "outermost route", "post", beside, at_most(1.2)),
        compare(f"{of_function}, add_middleware", found, "inside function", "post", beside, at_most(0.4)),
        compare(f"{of_function}, outermost", found, "outermost function", "post", beside, at_most(0.4)),
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
    ]
    for case in cases:
        await _assert_validated(await same(case, wanted))
    return await interleave([direct, *cases], seconds)


def _call(name: str, app: AsgiApp, path: str) -> Case:
    return Case(name, app, path, "POST", json_headers(INVOCATION), INVOCATION)


async def _assert_validated(case: Case) -> None:
    body = INVOCATION.replace(b'"copies":2', b'"copies":0')
    refused = await ask(replace(case, body=body, headers=json_headers(body)))
    assert refused.status == 422
    assert orjson.loads(refused.body)["errors"][0]["pointer"] == "/lines/0/copies"
