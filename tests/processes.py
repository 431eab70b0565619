"""Python processes for tests to kill, forked of one that has imported what all of them import."""

import multiprocessing
import os
import runpy
import subprocess
import sys
import warnings
from collections.abc import Mapping
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Final

PRELOADED: Final = [
    "a2a.server.routes",
    "awp_publish",
    "awp_publish.plugins.postgres.store",
    "awp_publish.plugins.redis.store",
    "awp_publish.plugins.sqlite.store",
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

    def __init__(
        self,
        module: str,
        *arguments: str,
        cwd: Path,
        env: Mapping[str, str] = os.environ,
        is_strict: bool = False,
        output: Path | None = None,
    ) -> None:
        """Start it. In a strict one, warnings are errors. All that it prints goes to the file `output`."""
        started = (module, arguments, cwd, dict(env), is_strict, output)
        self._process: ForkServerProcess = _context.Process(target=_run, args=started)
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

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


def _run(
    module: str,
    arguments: tuple[str, ...],
    folder: Path,
    environment: dict[str, str],
    is_strict: bool,
    output: Path | None,
) -> None:
    if output is not None:
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, 1)
        os.dup2(file, 2)
    if is_strict:
        warnings.simplefilter("error")
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = [str(folder), *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
