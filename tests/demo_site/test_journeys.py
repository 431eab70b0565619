"""An agent buys two copies of a book in every way that the shop offers, by documents and answers alone."""

import pytest

from benchmarks.journeys import LIMITS, WAYS, NotMeasured, go

REQUESTS = {
    "Markdown pages": 11,  # three of them are those to which a form leads
    "HTML pages": 11,
    "llms.txt": 6,
    "WoA": 6,
    "plain HTTP, agent.json": 6,
    "plain HTTP, AWAS": 6,
    "A2A": 6,
    "MCP 2025-11-25": 8,  # two of them shake hands
    "MCP 2026-07-28": 6,
    "MCP, TypeScript SDK 1": 9,  # two shake hands, one asks for a stream that there is not
    "MCP, TypeScript SDK 2": 9,
    "MCP 2026-07-28, TypeScript SDK 2": 7,  # one asks which revisions there are
    "AWP": 7,  # one shakes hands
}
"""A document or a list, a search, signing in, the basket, the question, the order: no request is wasted."""


@pytest.mark.parametrize("way", WAYS)
async def test_two_copies_are_bought_without_a_wasted_request_after_the_total_was_shown(way):
    try:
        purchase, meter = await go(way)
    except NotMeasured as missing:
        pytest.skip(str(missing))
    [line] = purchase.order["lines"]
    assert (line["title"], line["quantity"], purchase.order["total_cents"]) == ("Emma", 2, 1900)
    assert "2 x Emma for $19.00" in purchase.question
    assert meter.requests == REQUESTS[way]
    assert meter.tokens <= LIMITS.get(way, meter.tokens)
