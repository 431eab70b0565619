"""Garbage collection while a site is prepared."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Final

_starts: Final = count()

INTERPRETER_FREEZES: Final = 1_000
"""More objects than an interpreter sets aside when it starts (CPython 3.12: 375); applications freeze thousands."""


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause garbage collection during start-up: the new objects all stay alive, and each run would traverse them again.

    After the first start of a process, they are moved to the oldest generation, unless the application itself has
    called `gc.freeze()`. Later starts, as in tests, leave them to the collector: many are garbage by then.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if next(_starts) == 0 and gc.get_freeze_count() < INTERPRETER_FREEZES:  # O(n): it counts the frozen objects
                gc.freeze()
                gc.unfreeze()
            gc.enable()
