"""An agent buys two copies of a book in every way that the shop offers, by documents and answers alone."""

import pytest

from benchmarks.journeys import LIMITS, WAYS, go, open_shop
from benchmarks.journeys_by_protocols import NotMeasured

REQUESTS = {
    "Markdown pages": 11,  # three of them are those to which a form leads
    "HTML pages": 11,
    "llms.txt": 5,
    "WoA": 5,
    "plain HTTP, agent.json": 5,
    "plain HTTP, AWAS": 5,
    "A2A": 5,
    "MCP 2025-11-25": 7,  # two of them shake hands
    "MCP 2026-07-28": 5,
    "MCP, TypeScript SDK 1": 8,  # two shake hands, one asks for a stream that there is not
    "MCP, TypeScript SDK 2": 8,
    "MCP 2026-07-28, TypeScript SDK 2": 6,  # one asks which revisions there are
    "AWP": 6,  # one shakes hands
}
"""A document or a list, a search, the basket, the question, the order: no request is wasted.

Pages have signing in, too. Elsewhere the agent calls with a token: what its person does in the browser for that, once
and for an hour and more, is not counted.
"""


@pytest.mark.parametrize("ways", [WAYS[number::3] for number in range(3)])  # an account orders five times a minute
async def test_two_copies_are_bought_without_a_wasted_request_after_the_total_was_shown(ways):
    missing = {}
    async with open_shop() as origin:
        for way in ways:
            try:
                purchase, meter = await go(way, origin)
            except NotMeasured as why:
                missing[way] = str(why)
                continue
            [line] = purchase.order["lines"]
            assert (line["title"], line["quantity"], purchase.order["total_cents"]) == ("Emma", 2, 1900), way
            assert "2 x Emma for $19.00" in purchase.question, way
            assert meter.requests == REQUESTS[way], way
            assert meter.tokens <= LIMITS.get(way, meter.tokens), way
    if missing:
        pytest.skip(f"all but {missing}")
