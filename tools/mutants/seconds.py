"""A plug-in of pytest that writes how long each test took."""

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

_seconds: dict[str, list[float]] = defaultdict(list)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid].append(report.duration)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        Path(os.environ["SECONDS_FILE"]).write_text(json.dumps(_seconds))
