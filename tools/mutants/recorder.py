"""A plug-in of pytest that writes what tests execute of an instrumented copy of the project, and how long each takes.

The copy marks in a table that a part of a function has been entered: a trace function would take longer than the tests.
Of a test with many slow cases the first ones stand for all; what is skipped or fails is not recorded.
"""

import json
import os
import time
from collections import Counter, defaultdict
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest
from _pytest.runner import runtestprotocol

TABLE_SECONDS: Final = 3.0
"""Seconds in which the cases of a test are recorded, and two of them in any case."""

LIVE: Final = {"tests.live_server", "tests.processes"}
"""What tests with servers or processes of their own import from: they take long, and tell little of one function."""

_spent: Final = defaultdict[str, float](float)
_cases: Final = Counter[str]()


def is_live(item: pytest.Item) -> bool:
    """Whether a test starts a server or a process."""
    if not isinstance(item, pytest.Function):
        return False
    code, known = getattr(item.function, "__code__", None), vars(item.module)
    used = [known[name] for name in code.co_names if name in known] if code else []
    return any(getattr(each, "__module__", getattr(each, "__name__", "")) in LIVE for each in used)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if not is_live(item)]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    name = item.nodeid.partition("[")[0]
    _cases[name] += 1
    if _cases[name] > 2 and _spent[name] > TABLE_SECONDS:
        item.session._setupstate.teardown_exact(nextitem)
        return True
    hits = import_module("reached").hits
    hits[:] = bytes(len(hits))
    begun = _seconds()
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, nextitem=nextitem)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    taken = _seconds() - begun
    _spent[name] += taken
    if all(report.passed for report in reports):
        row = [item.nodeid, round(taken, 3), [number for number, hit in enumerate(hits) if hit]]
        with Path(os.environ["RECORDED"], f"{os.getpid()}.jsonl").open("a") as file:
            file.write(json.dumps(row, separators=(",", ":")) + "\n")
    return True


def _seconds() -> float:
    """Seconds of the processor, and some of those that are spent waiting, maybe for other processes of the machine."""
    return sum(os.times()[:4]) + time.monotonic() / 4
