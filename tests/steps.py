"""Work in steps of Python instead of seconds, which are the same on every machine and however busy it is.

What runs inside a single call of C (a regular expression, a copy of bytes) is one step: `python -m benchmarks growing`
measures that.
"""

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from tests.client import own_loop

LINEAR = 6
"""At most so many times the steps for four times as much. Linear work takes four times as many, quadratic sixteen."""


class Steps:
    """Lines of Python that have run since the count began, those of threads that began meanwhile included."""

    count = 0

    def __init__(self, within: str = "") -> None:
        """Count in files whose path has `within`."""
        self._within = within

    def enter(self, frame: FrameType, event: str, argument: object) -> Callable[..., None] | None:
        """Count the call of a function; what it returns is told of the lines."""
        if self._within not in frame.f_code.co_filename:
            return None
        self.count += 1
        return self.add

    def add(self, frame: FrameType, event: str, argument: object) -> None:
        self.count += 1


@contextmanager
def counting(within: str = "") -> Iterator[Steps]:
    """Count the steps of all functions that are entered inside of the context, in files whose path has `within`.

    Nothing is collected meanwhile: what a finalizer does for an earlier test is no step of this one.
    """
    steps, tracer, of_threads, collects = Steps(within), sys.gettrace(), threading.gettrace(), gc.isenabled()
    gc.disable()
    threading.settrace(steps.enter)
    sys.settrace(steps.enter)
    try:
        with own_loop():
            yield steps
    finally:
        sys.settrace(tracer)
        threading.settrace(of_threads)
        if collects:
            gc.enable()


def steps_of(work: Callable[[], object]) -> int:
    """Return the steps that a function takes."""
    with counting() as steps:
        work()
    return steps.count
