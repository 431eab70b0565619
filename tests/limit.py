"""A limit of time for each test: the process of one that reaches it ends, with its name and the stacks of all threads.

Nothing less ends what hangs in a lock, in an event loop or in an extension. pytest-xdist reports the test as failed and
goes on in a new process.
"""

import faulthandler
import os
import signal
import subprocess
import time
from collections.abc import Generator, Mapping
from contextlib import suppress
from threading import Thread
from time import sleep  # a test may replace time.sleep for all threads
from typing import Final

import pytest

SECONDS: Final = 60.0
OF_BROWSERS: Final = 120.0
"""Seconds for a test of a browser, which is started by the first of them."""

OF_EXTENSIONS: Final = 90.0
"""Seconds after which the process of an extension that keeps the interpreter to itself ends, without a name."""


class Limit:
    """Watches over the test that is running, from a thread of its own."""

    def __init__(self) -> None:
        self._errors = os.dup(2)  # that of a test is captured
        self._test, self._seconds, self._end = "", 0.0, float("inf")
        Thread(target=self._watch, name="the limit of tests", daemon=True).start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        marker = item.get_closest_marker("limit")
        self._test, self._seconds = item.nodeid, SECONDS if marker is None else marker.args[0]
        self._end = time.monotonic() + self._seconds
        try:
            return (yield)
        finally:
            self._end = float("inf")

    def _watch(self) -> None:
        while time.monotonic() < self._end:
            faulthandler.dump_traceback_later(OF_EXTENSIONS, exit=True, file=self._errors)
            sleep(0.5)
        os.write(self._errors, f"\n{self._test} has not ended after {self._seconds:g} seconds.\n".encode())
        faulthandler.dump_traceback(self._errors)
        for process in descendants(os.getpid()):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        os._exit(1)


def descendants(process: int) -> list[int]:
    """Return the ids of all processes that a process has started, and that these have started."""
    lines = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=False).stdout
    parents: Mapping[int, int] = {int(child): int(parent) for child, parent in map(str.split, lines.splitlines())}
    found = [process]
    for parent in found:
        found += [child for child, of in parents.items() if of == parent]
    return found[1:]
