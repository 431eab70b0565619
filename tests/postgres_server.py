"""A real PostgreSQL server for tests: its own data, one for each session, reached by a socket in its folder."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

DEBIAN = Path("/usr/lib/postgresql")


class PostgresServer:
    """A server that can be killed and started again on the same data."""

    def __init__(self) -> None:
        found = shutil.which("initdb") or next(map(str, sorted(DEBIAN.glob("*/bin/initdb"), reverse=True)), None)
        if found is None and os.environ.get("CI"):
            pytest.fail("PostgreSQL is not installed")
        if found is None:
            pytest.skip("PostgreSQL is not installed")
        pytest.importorskip("psycopg_pool", reason='psycopg_pool is not installed: pip install "awp-publish[postgres]"')
        self._binaries = Path(found).parent
        self._folder = folder = make_folder()
        # PostgreSQL does not run as root.
        self._user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        self.url = f"postgresql://awp@/postgres?host={folder}"
        folder.chmod(0o755)
        shutil.chown(folder, self._user)
        words = (self._binaries / "initdb", "--pgdata", folder / "data", "--auth", "trust", "--no-sync")
        subprocess.run([*words, "--username", "awp"], user=self._user, check=True, cwd="/", stdout=subprocess.DEVNULL)
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


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of a database that is there for the session."""
    server = PostgresServer()
    try:
        yield server.url
    finally:
        server.stop()
