"""Real PostgreSQL servers for tests, each with its own data and reached by a socket in its folder.

All processes of a run share one, in which each has a database of its own; tests that kill a server start their own.
"""

import fcntl
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import psycopg
import pytest

DEBIAN: Final = Path("/usr/lib/postgresql")
OF_THE_RUN: Final = "AWP_PUBLISH_TEST_POSTGRES"
"""The environment's name for the folder of the server that the processes of a run share."""

CONNECTIONS: Final = 300


def find_binaries() -> Path:
    """Where the server's programs are. Skips the test without them, except in CI, which has to run every test."""
    found = shutil.which("initdb") or next(map(str, sorted(DEBIAN.glob("*/bin/initdb"), reverse=True)), None)
    if found is None and os.environ.get("CI"):
        pytest.fail("PostgreSQL is not installed")
    if found is None:
        pytest.skip("PostgreSQL is not installed")
    pytest.importorskip("psycopg_pool", reason='psycopg_pool is not installed: pip install "awp-publish[postgres]"')
    return Path(found).parent


def find_owner() -> str:
    """PostgreSQL does not run as root."""
    return "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name


def run_as_owner(*words: str | Path) -> None:
    subprocess.run(words, user=find_owner(), check=True, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def make_data(folder: Path, binaries: Path) -> None:
    """Make the data of a server in a folder."""
    folder.chmod(0o755)
    shutil.chown(folder, find_owner())
    words = ("--auth", "trust", "--no-sync", "--no-instructions", "--username", "awp")
    run_as_owner(binaries / "initdb", "--pgdata", folder / "data", *words)


class PostgresServer:
    """A server that can be killed and started again on the same data."""

    def __init__(self) -> None:
        self._binaries, self._user = find_binaries(), find_owner()
        self._folder = folder = make_folder()
        self.url = f"postgresql://awp@/postgres?host={folder}"
        make_data(folder, self._binaries)
        self.start()

    def start(self) -> None:
        options = ("-D", self._folder / "data", "-k", self._folder, "-c", "listen_addresses=")
        quiet = ("-c", "log_min_messages=fatal", "-c", "max_connections=60")
        self._process = subprocess.Popen(
            [self._binaries / "postgres", *options, *quiet], user=self._user, cwd="/", stderr=subprocess.DEVNULL
        )
        until = time.monotonic() + 90
        while True:
            try:
                psycopg.connect(self.url).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def kill(self) -> None:
        """End it as a machine that fails does, with the processes of its connections."""
        own = self._process.pid
        children = Path(f"/proc/{own}/task/{own}/children")
        others = children.read_text().split() if children.exists() else []
        for process in (own, *map(int, others)):  # the others would notice only after a moment
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._process.wait(30)

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(30)
        shutil.rmtree(self._folder, ignore_errors=True)


def make_folder() -> Path:
    """A folder for a server: of a short path, as that of a socket may have a hundred characters."""
    return Path(tempfile.mkdtemp(prefix="awp-postgres-", dir="/tmp"))


def share_server() -> None:
    """Name the folder of the server that the processes of this run will share. Whoever needs it first starts it."""
    os.environ[OF_THE_RUN] = str(make_folder())


def stop_shared_server() -> None:
    """Stop the server of this run, if it was started."""
    folder = Path(os.environ.pop(OF_THE_RUN))
    if (folder / "data").exists():
        with suppress(subprocess.CalledProcessError):
            run_as_owner(find_binaries() / "pg_ctl", "stop", "--mode", "immediate", "-D", folder / "data")
    shutil.rmtree(folder, ignore_errors=True)


def make_database(purpose: str) -> tuple[Path, str]:
    """Make a database of this process's own in the server of the run. Return the folder of the server, and its name."""
    name = f"{purpose}_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
    folder, binaries = Path(os.environ[OF_THE_RUN]), find_binaries()
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "started").exists():
            make_data(folder, binaries)
            options = f"-k {folder} -F -c listen_addresses= -c log_min_messages=fatal -c max_connections={CONNECTIONS}"
            # Not a child of this process, which may end before the others.
            run_as_owner(binaries / "pg_ctl", "start", "-w", "-D", folder / "data", "-l", "/dev/null", "-o", options)
            (folder / "started").touch()
    with psycopg.connect(f"postgresql://awp@/postgres?host={folder}", autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return folder, name


@pytest.fixture(scope="session")
def postgres_url() -> str:
    """The URL of a database that is there for the session."""
    folder, name = make_database("stores")
    return f"postgresql://awp@/{name}?host={folder}"
