"""Python processes of tests, forked of one that has imported what most of them import."""

import multiprocessing
import os
import runpy
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory
from typing import Final

PRELOADED: Final = [
    "a2a.server.routes",
    "awp_publish.cli.application",
    "awp_publish.plugins.postgres.store",
    "awp_publish.plugins.redis.store",
    "awp_publish.plugins.sqlite.store",
    "django.contrib.admin.options",
    "django.core.management.commands.runserver",
    "django.db.backends.sqlite3.base",
    "django.test",
    "fastapi",
    "mcp.server",
    "uvicorn.main",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
]

context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(PRELOADED)


class Process:
    """What `subprocess.Popen` is for `python -m module`, `python script.py` and `python -c code`."""

    def __init__(
        self,
        *words: str,
        cwd: Path,
        env: Mapping[str, str] = os.environ,
        is_strict: bool = False,
        output: Path | None = None,
        errors: Path | None = None,
    ) -> None:
        """Start it. In a strict one, warnings are errors.

        All that it prints goes to the file `output`, or what it prints to stderr to the file `errors`.
        """
        started = (words, cwd, dict(env), is_strict, output, errors or output)
        self._process: ForkServerProcess = context.Process(target=_run, args=started)
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


def run(*words: str, cwd: Path, env: Mapping[str, str] = os.environ, is_strict: bool = False) -> CompletedProcess[str]:
    """Run one to its end, as `subprocess.run` does."""
    with TemporaryDirectory() as folder:
        output, errors = Path(folder, "stdout"), Path(folder, "stderr")
        process = Process(*words, cwd=cwd, env=env, is_strict=is_strict, output=output, errors=errors)
        return CompletedProcess(words, process.wait(), output.read_text(), errors.read_text())


def _run(
    words: Sequence[str],
    folder: Path,
    environment: dict[str, str],
    is_strict: bool,
    output: Path | None,
    errors: Path | None,
) -> None:
    opened: dict[Path, int] = {}
    for number, path in ((1, output), (2, errors)):
        if path is not None:
            if path not in opened:
                opened[path] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(opened[path], number)
    if is_strict:
        warnings.simplefilter("error")
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = [str(folder), *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    sys.argv = [*words] if words[0] != "-c" else ["-c", *words[2:]]
    if words[0] == "-c":
        exec(words[1], {"__name__": "__main__"})
    elif words[0].endswith(".py"):
        runpy.run_path(words[0], run_name="__main__")
    else:
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
