"""Whether tests catch a mutant: it is written into a copy of the project, and they run in a process forked from one
that has everything imported but the project.

A copy on disk, since tests start processes, too, and since most of what an owner declares is read when it is imported.
"""

import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

from tools.mutants.mutate import Mutant

IMPORTED: Final = (
    *("pytest", "_pytest.assertion.rewrite", "hypothesis", "hypothesis.strategies", "pytest_asyncio.plugin", "httpx"),
    *("starlette.testclient", "starlette.applications", "pydantic", "fastapi", "jsonschema", "jsonschema_rs", "orjson"),
    *("mcp.client.session", "mcp.server.lowlevel", "a2a.types", "a2a.server.request_handlers", "selectolax.lexbor"),
    *("sqlite3", "websockets.sync.client", "jinja2", "jwt", "cryptography.hazmat.primitives.asymmetric.ec", "httpx2"),
)
OPTIONS: Final = ["-q", "-p", "no:cacheprovider", "-p", "no:cov", "-o", "addopts=-rfE"]
IGNORED: Final = ["-W", "ignore::pytest.PytestAssertRewriteWarning", "-W", "ignore::DeprecationWarning:multiprocessing"]
WAITING: Final = 5
"""How often as long a process may take as it may use the processor, which others use, too."""

_FAILED: Final = re.compile(
    r"^(?:(?:FAILED|ERROR) (tests/.*?)(?: - .*)?|(tests/.*) has not ended after .*)$", re.MULTILINE
)
_MISSING: Final = re.compile(r"^ERROR: (?:not found: \S*?|file or directory not found: )(tests/.*)$", re.MULTILINE)
_UNSOUND: Final[set[str]] = set()
_SOUND: Final[set[str]] = set()


@dataclass(frozen=True)
class Verdict:
    """Whether a mutant is caught, and by which test."""

    is_caught: bool
    test: str = ""
    unsound: Sequence[str] = ()
    """Tests that fail without the mutant, too, are skipped or are not collected."""


def prepare() -> None:
    """Import what the tests of all mutants need."""
    for name in IMPORTED:
        with suppress(ImportError):
            import_module(name)


def copy_project(root: Path, copy: Path) -> None:
    """Make a folder like the project, without what git ignores."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = set(subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.split("\0")) - {""}
    for name in names:
        source, target = root / name, copy / name
        if source.is_file() and not (target.exists() and source.stat().st_mtime == target.stat().st_mtime):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    if (root.parent / "shared").exists() and not (copy.parent / "shared").exists():
        (copy.parent / "shared").symlink_to(root.parent / "shared")  # what tests read beside the project
    for path in copy.rglob("*.py"):
        if str(path.relative_to(copy)) not in names:
            path.unlink()


def environment_of(copy: Path) -> dict[str, str]:
    """Return what makes processes import the project from a copy of it."""
    return {"PYTHONPATH": os.pathsep.join([str(copy), str(copy / "contrib")])}


def judge(mutant: Mutant, tests: Sequence[str], root: Path, copy: Path, seconds: float) -> Verdict:
    """Run tests until one fails. A test that fails without the mutant, too, tells nothing."""
    target, given = copy / mutant.path, tests
    while tests := [test for test in given if test not in _UNSOUND]:
        target.write_text(mutant.mutated)
        stamp = random.SystemRandom().randrange(10**9)  # compiled code is known by the second of its source
        os.utime(target, (stamp, stamp))
        try:
            status, output = _run(copy, tests, seconds)
        finally:
            shutil.copy2(root / mutant.path, target)
        if status == 0:
            break
        if missing := _MISSING.findall(output):
            _UNSOUND.update(missing, [test for test in tests if test.partition("::")[0] in missing])
            continue
        failed = _FAILED.search(output)
        culprits = [test for test in tests if failed and test in failed.groups()] or tests[:1]
        if culprits[0] in _SOUND or _run(copy, culprits, 120)[0] == 0:
            _SOUND.update(culprits)
            return Verdict(True, culprits[0])
        _UNSOUND.update(culprits)
    return Verdict(False, "", [test for test in given if test in _UNSOUND])


class NoSkips:
    """A plug-in of pytest: a test that is skipped has failed, since it judges nothing."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.skipped and not hasattr(report, "wasxfail"):
            report.outcome = "failed"
        return report


def _run(copy: Path, tests: Sequence[str], seconds: float) -> tuple[int, str]:
    report = copy.with_suffix(".output")
    process = os.fork()
    if process == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))
        become_pytest(copy, report, ["-x", *tests])
    end = time.monotonic() + WAITING * seconds
    while os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None and time.monotonic() < end:
        time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status), report.read_text(errors="replace")


def become_pytest(copy: Path, report: Path, arguments: Sequence[str], *plugins: object) -> None:
    """Make of this process, a forked one, a run of pytest in a copy of the project, and end it."""
    status = 3
    try:
        os.setsid()
        os.chdir(copy)
        output = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        for stream in (1, 2):
            os.dup2(output, stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for name in [name for name in sys.modules if name.partition(".")[0] in ("tools", "tests", "awp_publish")]:
            del sys.modules[name]
        root = Path(__file__).parents[2]
        sys.path[:] = [str(copy), str(copy / "contrib")] + [
            path for path in sys.path if path not in ("", str(root), str(root / "contrib"))
        ]
        os.environ |= environment_of(copy)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        sys.dont_write_bytecode = False  # processes read what an earlier one has compiled
        status = int(pytest.main([*OPTIONS, *IGNORED, *arguments], [*plugins, NoSkips()]))
    finally:
        sys.stdout.flush()
        os._exit(status)
