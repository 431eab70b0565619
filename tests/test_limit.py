"""The limit of time for each test."""

import subprocess
import sys
import time
from pathlib import Path

HANGING = """
import subprocess
import threading

import pytest


@pytest.mark.limit(0.5)
def test_that_hangs():
    process = subprocess.Popen(["sleep", "600"])
    print(process.pid, file=open("started", "w"), flush=True)
    threading.Event().wait()
"""
CONFIGURATION = """
from tests.limit import Limit


def pytest_configure(config):
    config.addinivalue_line("markers", "limit(seconds)")
    config.pluginmanager.register(Limit())
"""


def test_a_test_that_hangs_is_named_with_its_stack_and_leaves_no_process(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFIGURATION)
    (tmp_path / "test_hanging.py").write_text(HANGING)
    command = (
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    )
    environment = {
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "PATH": "/usr/bin:/bin",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "test_hanging.py::test_that_hangs has not ended after 0.5 seconds." in ended.stderr
    assert "in test_that_hangs" in ended.stderr
    process = Path(f"/proc/{(tmp_path / 'started').read_text().strip()}/stat")
    while _is_running(process):  # it was killed, which takes a busy machine a moment; else the limit ends this test
        time.sleep(0.01)


def _is_running(process: Path) -> bool:
    try:
        return process.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
