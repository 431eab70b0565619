"""What one machine does: calls a second, their times, and processor time a call, by workers, guards and stores.

Each site stands beside the same site without us, under the same load in the same round. Where the load shares its cores
with the workers, the ratios mean more than the rates. What was measured is what `simulate` begins with.
"""

import http.client
import itertools
import json
import os
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

import redis

from benchmarks.postgres_server import running_postgres, url_of
from benchmarks.redis_server import running_redis
from benchmarks.scaling_site import CALLERS
from benchmarks.shop import INVOCATION, ORDER
from benchmarks.static_answers import DOCUMENT
from benchmarks.table import Limit, Row, at_least
from benchmarks.wire import load

WORKERS: Final = (1, 2, 4)
STORES: Final = ("sqlite", "redis", "postgres")
MEASURED: Final = Path(__file__).parents[1] / "build" / "scaling.json"
"""What the last whole run has measured."""

_BESIDE: Final = "the same site without us"
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Measured:
    """The medians of some rounds: answers a second, milliseconds, and processor time in microseconds a request, of the
    workers, of the store's server and of the load."""

    rate: float
    p50: float
    p99: float
    cpu: float
    store: float
    load: float


@dataclass(frozen=True, slots=True)
class RunningStore:
    """A store's URL, and the process of its server where it has one."""

    url: str
    process: int | None = None


def scaling(seconds: float) -> list[Row]:
    """Calls by workers, guards and stores; calls under one limit; documents."""
    cores, rows, measured = len(os.sched_getaffinity(0)), list[Row](), dict[str, Measured]()
    share = seconds / 30
    with ExitStack() as stack:
        stores = _stores(stack)
        for workers in (workers for workers in WORKERS if workers <= cores):
            for name, store in stores.items():
                for kind in ("open", "guarded"):
                    what = f"{kind} calls, {workers} {'workers' if workers > 1 else 'worker'}, {name}"
                    if store is None:
                        rows.append(Row(what, _BESIDE, None, None, f"{name} is not installed"))
                        continue
                    pair = _measure(("bare", kind), store, workers, share)
                    rows.append(_row(what, *pair))
                    measured |= {f"bare {workers}": pair[0], f"{kind} {name} {workers}": pair[1]}
        rows += [_scale(measured, name, cores) for name in stores]
        if redis := stores["redis"]:
            rows += _hot_key(redis, share, measured)
        unused = RunningStore(f"sqlite:///{stack.enter_context(TemporaryDirectory())}/agents.db")
        measured["documents"] = documents = _measure(("documents",), unused, 1, share)[0]
        rows.append(_documents(documents, cores))
    if seconds >= 30:
        MEASURED.parent.mkdir(exist_ok=True)
        points = {name: asdict(point) for name, point in sorted(measured.items())}
        MEASURED.write_text(json.dumps({"cores": cores, "points": points}, indent=1) + "\n")
    return rows


def _stores(stack: ExitStack) -> dict[str, RunningStore | None]:
    folder = stack.enter_context(TemporaryDirectory())
    stores: dict[str, RunningStore | None] = {"sqlite": RunningStore(f"sqlite:///{folder}/agents.db")}
    stores |= {"redis": None, "postgres": None}
    if url := stack.enter_context(running_redis()):
        with redis.Redis.from_url(url) as client:
            stores["redis"] = RunningStore(url, client.info("server")["process_id"])
    if postgres := stack.enter_context(running_postgres()):
        process = int((postgres / "data" / "postmaster.pid").read_text().split()[0])
        stores["postgres"] = RunningStore(url_of(postgres), process)
    return stores


def _row(what: str, bare: Measured, ours: Measured) -> Row:
    details = (
        f"{ours.rate:.0f} : {bare.rate:.0f} /s; p50 {ours.p50:.1f} : {bare.p50:.1f} ms; "
        f"p99 {ours.p99:.1f} : {bare.p99:.1f} ms; CPU {ours.cpu:.0f} : {bare.cpu:.0f} us, of the store {ours.store:.0f}"
    )
    return Row(what, _BESIDE, ours.rate / bare.rate, None, details)


def _scale(measured: Mapping[str, Measured], store: str, cores: int) -> Row:
    what, limit = f"guarded calls, 4 workers, {store}", at_least(3.2)
    if cores < 5 or f"guarded {store} 4" not in measured:
        return Row(what, "one worker", None, limit, f"needs four cores and one for the load; here are {cores}")
    ratio = measured[f"guarded {store} 4"].rate / measured[f"guarded {store} 1"].rate
    return Row(what, "one worker", ratio, limit)


def _hot_key(store: RunningStore, share: float, measured: dict[str, Measured]) -> list[Row]:
    exact, leased = _measure(("in total", "leased"), store, 1, share)
    measured |= {"in total": exact, "leased": leased}
    details = f"{leased.rate:.0f} : {exact.rate:.0f} /s; CPU {leased.cpu:.0f} : {exact.cpu:.0f} us"
    return [Row("calls under a leased limit in total, redis", "the exact one", leased.rate / exact.rate, None, details)]


def _documents(measured: Measured, cores: int) -> Row:
    details = f"of one worker; p99 {measured.p99:.1f} ms; CPU {measured.cpu:.0f} us; the load shares {cores} cores"
    return Row("documents over HTTP", "", measured.rate, Limit(10_000, "/s", most=False), details, "/s")


def _measure(kinds: tuple[str, ...], store: RunningStore, workers: int, seconds: float) -> list[Measured]:
    """Load sites one after the other, in rounds."""
    with ExitStack() as stack:
        servers = [stack.enter_context(_serve(kind, store.url, workers)) for kind in kinds]
        rounds: list[list[Measured]] = [[] for _ in kinds]
        for _ in range(3):
            for kind, (port, process), results in zip(kinds, servers, rounds, strict=True):
                requests, lasts = _requests(kind), max(seconds / 3, 0.2)
                before, store_before = _cpu(process.pid), _cpu(store.process)
                result = load(port, requests, lasts)
                count = result.rate * lasts
                cpu = (_cpu(process.pid) - before) / count * 1e6
                store_cpu = (_cpu(store.process) - store_before) / count * 1e6
                results.append(Measured(result.rate, result.p50, result.p99, cpu, store_cpu, result.cpu))
    return [
        Measured(*(median(getattr(result, field.name) for result in results) for field in fields(Measured)))
        for results in rounds
    ]


def _requests(kind: str) -> Callable[[], bytes]:
    """Return the next request of callers who take turns."""
    if kind == "documents":
        return lambda: f"GET {DOCUMENT} HTTP/1.1\r\nhost: books.example\r\n\r\n".encode()
    path, body = ("/orders", ORDER) if kind == "bare" else ("/agents/order/invoke", INVOCATION)
    head = f"POST {path} HTTP/1.1\r\nhost: books.example\r\ncontent-type: application/json\r\n"
    head += f"content-length: {len(body)}\r\n"
    numbers, run = itertools.count(), uuid.uuid4().hex[:8]

    def request() -> bytes:
        number = next(numbers)
        own = f"authorization: Bearer token-of-caller-{number % CALLERS}\r\n"
        if kind == "guarded":
            own += f"idempotency-key: {run}-{number}\r\n"
        return (head + own + "\r\n").encode() + body

    return request


@contextmanager
def _serve(kind: str, store: str, workers: int) -> Iterator[tuple[int, "subprocess.Popen[bytes]"]]:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = int(held.getsockname()[1])
    environment = {"KIND": kind, "STORE": store, "WORKERS": str(workers), "WEB_CONCURRENCY": ""}
    environment = {**os.environ, **environment}
    del environment["WEB_CONCURRENCY"]
    command = [sys.executable, "-m", "benchmarks.scaling_site", str(port)]
    server = subprocess.Popen(command, env=environment)
    try:
        for _ in range(600):
            if _answers(port):
                break
            assert server.poll() is None, "the server did not start"
            time.sleep(0.05)
        yield port, server
    finally:
        server.terminate()
        server.wait(30)


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/openapi.json")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _cpu(process: int | None) -> float:
    """Return the seconds of processor time that a process and its children have used, 0 without a process."""
    if process is None:
        return 0.0
    total, parents = 0.0, {process}
    for stat in sorted(Path("/proc").glob("[0-9]*/stat"), key=lambda path: int(path.parent.name)):
        try:
            columns = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(stat.parent.name)
        if pid in parents or int(columns[1]) in parents:
            parents.add(pid)
            total += (int(columns[11]) + int(columns[12])) / _TICKS
    return total
