"""A real PostgreSQL server for tests: its own data, one for each session, reached by a socket in its folder."""

import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import OperationalError, connections

from tests.postgres_server import make_folder

ALIAS = "postgres"
DEBIAN = Path("/usr/lib/postgresql")


def find_binaries() -> Path:
    """Where they are. Skips the test without them, except in CI, which has to run every test."""
    found = shutil.which("initdb") or next(map(str, sorted(DEBIAN.glob("*/bin/initdb"), reverse=True)), None)
    if found is not None:
        return Path(found).parent
    if os.environ.get("CI"):
        pytest.fail("PostgreSQL is not installed")
    pytest.skip("PostgreSQL is not installed")


def owner() -> str:
    """PostgreSQL does not run as root."""
    return "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The alias of a database with our tables."""
    binaries, user = find_binaries(), owner()
    folder = make_folder()
    folder.chmod(0o755)
    shutil.chown(folder, user)
    try:
        _run(
            user, binaries / "initdb", "--pgdata", folder / "data", "--auth", "trust", "--no-sync", "--username", "awp"
        )
        options = ("-D", folder / "data", "-k", folder, "-F", "-c", "listen_addresses=", "-c", "log_min_messages=fatal")
        server = subprocess.Popen([binaries / "postgres", *options], user=user, cwd="/", stderr=subprocess.DEVNULL)
        try:
            _connect(folder)
            call_command("migrate", database=ALIAS, verbosity=0)
            yield ALIAS
        finally:
            connections[ALIAS].close()
            del connections.settings[ALIAS]
            server.send_signal(signal.SIGINT)
            server.wait(30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(user: str, *words: str | Path) -> None:
    subprocess.run(words, user=user, check=True, cwd="/", stdout=subprocess.DEVNULL)


def _connect(folder: Path) -> None:
    place = {"ENGINE": "django.db.backends.postgresql", "NAME": "postgres", "USER": "awp", "HOST": str(folder)}
    connections.settings[ALIAS] = {**connections.settings["store"], **place, "OPTIONS": {}}
    until = time.monotonic() + 90
    while True:
        try:
            connections[ALIAS].ensure_connection()
            return
        except OperationalError:
            assert time.monotonic() < until, "PostgreSQL did not start"
            time.sleep(0.05)
