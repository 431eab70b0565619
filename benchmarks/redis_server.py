"""A Redis of the benchmark's own, gone when it is over."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def running_redis() -> Iterator[str | None]:
    """Start a server on a free port of this machine, and give its address; None where none is installed."""
    program = shutil.which("redis-server")
    if program is None:
        yield None
        return
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        _wait_for(port)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.terminate()
        server.wait()


def _wait_for(port: int) -> None:
    for _ in range(200):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.02)
    raise TimeoutError("redis-server did not start")
