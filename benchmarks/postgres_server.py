"""A PostgreSQL of the benchmark's own, gone when it is over, and a relay that counts the round trips to it."""

import asyncio
import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

DEBIAN = Path("/usr/lib/postgresql")
SOCKET = ".s.PGSQL.5432"


@contextmanager
def running_postgres() -> Iterator[Path | None]:
    """Start a server, and give the folder of its socket; None where none is installed."""
    found = shutil.which("initdb") or next(map(str, sorted(DEBIAN.glob("*/bin/initdb"), reverse=True)), None)
    if found is None:
        yield None
        return
    # It does not run as root.
    user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    with TemporaryDirectory(prefix="awp", dir="/tmp") as name:  # a socket's path may be a hundred characters
        folder = Path(name)
        shutil.chown(folder, user)
        words = [found, "--pgdata", str(folder / "data"), "--auth", "trust", "--username", "awp", "--no-sync"]
        subprocess.run(words, user=user, check=True, cwd="/", stdout=subprocess.DEVNULL)
        options = ["-D", str(folder / "data"), "-k", name, "-c", "listen_addresses=", "-c", "log_min_messages=fatal"]
        words = [str(Path(found).with_name("postgres")), *options]
        server = subprocess.Popen(words, user=user, cwd="/", stderr=subprocess.DEVNULL)
        try:
            _wait_for(url_of(folder))
            yield folder
        finally:
            server.send_signal(signal.SIGINT)
            server.wait()


class Trips:
    """Round trips so far: how often clients have asked something after the server had answered."""

    def __init__(self) -> None:
        self.count = 0


@asynccontextmanager
async def counting(server: Path) -> AsyncIterator[tuple[str, Trips]]:
    """The address of a relay before a server, and the trips that it sees."""
    trips = Trips()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_asking = False

        async def pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter, asks: bool) -> None:
            nonlocal is_asking
            while data := await source.read(65536):
                trips.count += asks and not is_asking
                is_asking = asks
                sink.write(data)
            sink.close()

        source, sink = await asyncio.open_unix_connection(server / SOCKET)
        with suppress(asyncio.CancelledError):  # the run is over, and the store keeps its connection
            await asyncio.gather(pass_on(reader, sink, True), pass_on(source, writer, False))

    with TemporaryDirectory(prefix="awp", dir="/tmp") as name:
        listening = await asyncio.start_unix_server(relay, Path(name) / SOCKET)
        try:
            yield url_of(Path(name)), trips
        finally:
            listening.close()


def url_of(folder: Path) -> str:
    return f"postgresql://awp@/postgres?host={folder}"


def _wait_for(url: str) -> None:
    for _ in range(200):
        with suppress(psycopg.OperationalError):
            psycopg.connect(url).close()
            return
        time.sleep(0.05)
    raise TimeoutError("PostgreSQL did not start")
