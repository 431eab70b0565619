"""Requests that are made to be slow to read: the time of four times as much, beside that of a quarter.

The shapes are those of `tests/http/test_hostile_shapes.py`, which counts steps of Python. What a single call of C does
in them, such as a regular expression or a copy, is seen only here. Linear work takes four times as long, quadratic work
sixteen times.
"""

import asyncio
import gc
import time
from collections.abc import Iterator
from typing import Final

from benchmarks.table import Row, at_most
from tests.http.test_hostile_shapes import PLACES, Ask, front

SMALL: Final = 60_000
"""Bytes of the smaller request."""

TIMES: Final = 4
QUICK: Final = 0.02
"""Seconds below which nothing can be told."""


def growing(seconds: float) -> list[Row]:
    """The shape of each place that grows the most."""
    return asyncio.run(_measure(seconds / len(PLACES)))


async def _measure(seconds: float) -> list[Row]:
    rows = []
    for place, shapes_at in PLACES.items():
        async with front() as at:
            shapes = shapes_at(at)
            grown = {name: await _growth(ask, seconds / len(shapes)) for name, ask in shapes.items()}
        worst = max(grown, key=lambda name: grown[name])
        rows.append(Row(f"{TIMES} times as much, {place}", "a quarter of it", grown[worst], at_most(9), worst))
    return rows


async def _growth(ask: Ask, seconds: float) -> float:
    """How many times the computing time of the smaller request the larger one takes, by the least of a few runs."""
    least = {SMALL: float("inf"), SMALL * TIMES: float("inf")}
    until = time.process_time() + seconds
    gc.disable()
    try:
        for size in _sizes(until):
            begun = time.process_time()
            await ask(size)
            least[size] = min(least[size], time.process_time() - begun)
            if size != SMALL and least[size] < QUICK:
                return 1.0
    finally:
        gc.enable()
    return least[SMALL * TIMES] / least[SMALL]


def _sizes(until: float) -> Iterator[int]:
    yield SMALL
    yield SMALL * TIMES
    while time.process_time() < until:
        yield SMALL
        yield SMALL * TIMES
