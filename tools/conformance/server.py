"""Applications on a real port, for programs that are not Python."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import uvicorn

from awp_publish.http.exchange import AsgiApp
from tests.redis_server import free_port

PORT: Final = free_port()
ADDRESS: Final = f"http://127.0.0.1:{PORT}"


@contextmanager
def served(make: Callable[[str], AsgiApp]) -> Iterator[None]:
    """The application that is made for ADDRESS, served there."""
    config = uvicorn.Config(make(ADDRESS), port=PORT, log_level="critical")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.05)
        yield
    finally:
        server.should_exit = True
        thread.join()
