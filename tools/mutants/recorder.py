"""A plug-in of pytest that writes what tests execute of an instrumented copy of the project, and how long each takes.

The copy marks in a table that a part of a function has been entered: a trace function would take longer than the tests.
Of a test with many cases the first ones stand for all.
"""

import json
import os
import time
from collections import Counter
from collections.abc import Generator
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

CASES: Final = 20


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    counts, chosen = Counter[str](), []
    for item in items:
        name = item.nodeid.partition("[")[0]
        counts[name] += 1
        if counts[name] <= CASES:
            chosen.append(item)
    items[:] = chosen


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    hits = import_module("reached").hits
    hits[:] = bytes(len(hits))
    begun = _seconds()
    try:
        return (yield)
    finally:
        row = [item.nodeid, round(_seconds() - begun, 3), [number for number, hit in enumerate(hits) if hit]]
        with Path(os.environ["RECORDED"], f"{os.getpid()}.jsonl").open("a") as file:
            file.write(json.dumps(row, separators=(",", ":")) + "\n")


def _seconds() -> float:
    """Seconds of the processor, and some of those that are spent waiting, maybe for other processes of the machine."""
    return sum(os.times()[:4]) + time.monotonic() / 4
