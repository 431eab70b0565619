"""Python processes for tests to kill, forked of one that has imported what all of them import."""

import multiprocessing
import os
import runpy
import subprocess
import sys
from collections.abc import Mapping
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Final

PRELOADED: Final = [
    "a2a.server.routes",
    "awp_publish",
    "fastapi",
    "mcp.server",
    "uvicorn.main",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
]

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(PRELOADED)


class Process:
    """What `subprocess.Popen` is for `python -m module`."""

    def __init__(self, module: str, *arguments: str, cwd: Path, env: Mapping[str, str]) -> None:
        self._process: ForkServerProcess = _context.Process(target=_run, args=(module, arguments, cwd, dict(env)))
        self._process.start()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            assert self._process.pid is not None
            os.kill(self._process.pid, number)

    def kill(self) -> None:
        self._process.kill()

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Return the status with which it has ended; less than zero is the signal that has ended it."""
        self._process.join(timeout)
        status = self._process.exitcode
        if status is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout or 0)
        return status


def _run(module: str, arguments: tuple[str, ...], folder: Path, environment: dict[str, str]) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = [str(folder), *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
