"""Python's garbage collector, and why it waits while a page is read.

The collector looks for cycles whenever many objects were made and few dropped, and looks through the old ones again
each time there are a quarter more. Making a tree is nothing but that: a page ten times as long took twenty times as
long, most of it in vain, for nothing of a tree is garbage before the whole of it is. So it waits for the few
milliseconds, and looks at everything once when it goes on.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_waits() -> Iterator[None]:
    """Keeps the collector from running, unless it is off already: then whoever turned it off turns it on."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
