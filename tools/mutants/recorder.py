"""A plug-in of pytest that writes what tests execute of an instrumented copy of the project, and how long each takes.

The copy marks in a table that a part of a function has been entered: a trace function would take longer than the tests.
Of a test with many slow cases the first ones stand for all; what is skipped or fails is not recorded.
"""

import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Generator
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

TABLE_SECONDS: Final = 3.0
"""Seconds in which the cases of a test are recorded, and ten of them in any case."""

LIVE: Final = {"tests.live_server", "tests.processes"}
"""What tests with servers or processes of their own import from: they take long, and tell little of one function."""

_spent: Final = defaultdict[str, float](float)
_cases: Final = Counter[str]()
_not_passed: Final = set[str]()


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
def pytest_runtest_setup(item: pytest.Item) -> None:
    name = item.nodeid.partition("[")[0]
    _cases[name] += 1
    if _cases[name] > 10 and _spent[name] > TABLE_SECONDS:
        pytest.skip("others of its table are recorded")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if not report.passed:
        _not_passed.add(report.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    hits = import_module("reached").hits
    hits[:] = bytes(len(hits))
    begun = _seconds()
    try:
        return (yield)
    finally:
        taken = _seconds() - begun
        _spent[item.nodeid.partition("[")[0]] += taken
        if item.nodeid not in _not_passed:
            row = [item.nodeid, round(taken, 3), [number for number, hit in enumerate(hits) if hit]]
            with Path(os.environ["RECORDED"], f"{os.getpid()}.jsonl").open("a") as file:
                file.write(json.dumps(row, separators=(",", ":")) + "\n")


def _seconds() -> float:
    """Seconds of the processor, and some of those that are spent waiting, maybe for other processes of the machine."""
    return sum(os.times()[:4]) + time.monotonic() / 10


def pytest_sessionfinish() -> None:
    Path(os.environ["RECORDED"], f"{os.getpid()}.ended").touch()
