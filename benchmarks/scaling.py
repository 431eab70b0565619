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
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.applications import DOCUMENT, INVOCATION, ORDER
from benchmarks.postgres_server import running_postgres, url_of
from benchmarks.redis_server import running_redis
from benchmarks.scaling_site import CALLERS
from benchmarks.table import Limit, Row, at_least
from benchmarks.wire import Load, load

WORKERS: Final = (1, 2, 4)
STORES: Final = ("sqlite", "redis", "postgres")
MEASURED: Final = Path(__file__).with_name("scaling.json")
"""What the last whole run has measured."""

_BESIDE: Final = "the same site without us"
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Measured:
    """The medians of some rounds. `cpu` is processor time of the workers, in microseconds a request."""

    rate: float
    p50: float
    p99: float
    cpu: float


def scaling(seconds: float) -> list[Row]:
    """Calls by workers, guards and stores; calls under one limit; documents."""
    cores, rows, measured = len(os.sched_getaffinity(0)), list[Row](), dict[str, Measured]()
    share = seconds / 30
    with ExitStack() as stack:
        urls = _stores(stack)
        for workers in (workers for workers in WORKERS if workers <= cores):
            for store, url in urls.items():
                for kind in ("open", "guarded"):
                    what = f"{kind} calls, {workers} workers, {store}"
                    if url is None:
                        rows.append(Row(what, _BESIDE, None, None, f"{store} is not installed"))
                        continue
                    pair = _measure(("bare", kind), url, workers, share)
                    rows.append(_row(what, *pair))
                    measured |= {f"bare {workers}": pair[0], f"{kind} {store} {workers}": pair[1]}
        rows += [_scale(measured, store, cores) for store in urls]
        if url := urls["redis"]:
            rows += _hot_key(url, share, measured)
        documents = _measure(("documents",), f"sqlite:///{stack.enter_context(TemporaryDirectory())}/a.db", 1, share)[0]
        measured["documents"] = documents
        rows.append(_documents(documents, cores))
    if seconds >= 30:
        MEASURED.write_text(json.dumps({name: vars_of(one) for name, one in sorted(measured.items())}, indent=1) + "\n")
    return rows


def vars_of(measured: Measured) -> dict[str, float]:
    """Return what was measured as JSON has it."""
    return {name: round(getattr(measured, name), 3) for name in Measured.__slots__}


def _stores(stack: ExitStack) -> dict[str, str | None]:
    folder, postgres = stack.enter_context(TemporaryDirectory()), stack.enter_context(running_postgres())
    return {
        "sqlite": f"sqlite:///{folder}/agents.db",
        "redis": stack.enter_context(running_redis()),
        "postgres": url_of(postgres) if postgres is not None else None,
    }


def _row(what: str, bare: Measured, ours: Measured) -> Row:
    details = (
        f"{ours.rate:.0f} : {bare.rate:.0f} /s; p50 {ours.p50:.1f} : {bare.p50:.1f} ms; "
        f"p99 {ours.p99:.1f} : {bare.p99:.1f} ms; CPU {ours.cpu:.0f} : {bare.cpu:.0f} us"
    )
    return Row(what, _BESIDE, ours.rate / bare.rate, None, details)


def _scale(measured: Mapping[str, Measured], store: str, cores: int) -> Row:
    what, limit = f"guarded calls, 4 workers, {store}", at_least(3.2)
    if cores < 5 or f"guarded {store} 4" not in measured:
        return Row(what, "one worker", None, limit, f"needs four cores and one for the load; here are {cores}")
    ratio = measured[f"guarded {store} 4"].rate / measured[f"guarded {store} 1"].rate
    return Row(what, "one worker", ratio, limit)


def _hot_key(url: str, share: float, measured: dict[str, Measured]) -> list[Row]:
    exact, leased = _measure(("in total", "leased"), url, 1, share)
    measured |= {"in total": exact, "leased": leased}
    details = f"{leased.rate:.0f} : {exact.rate:.0f} /s; CPU {leased.cpu:.0f} : {exact.cpu:.0f} us"
    return [Row("calls under a leased limit in total, redis", "the exact one", leased.rate / exact.rate, None, details)]


def _documents(measured: Measured, cores: int) -> Row:
    details = f"of one worker; p99 {measured.p99:.1f} ms; CPU {measured.cpu:.0f} us; the load shares {cores} cores"
    return Row("documents over HTTP", "", measured.rate, Limit(10_000, "/s", most=False), details, "/s")


# Servers and load


def _measure(kinds: tuple[str, ...], store: str, workers: int, seconds: float) -> list[Measured]:
    """Load sites one after the other, in rounds."""
    with ExitStack() as stack:
        servers = [stack.enter_context(_serve(kind, store, workers)) for kind in kinds]
        rounds: list[list[Measured]] = [[] for _ in kinds]
        for _ in range(3):
            for kind, (port, process), found in zip(kinds, servers, rounds, strict=True):
                requests = _requests(kind)
                before = _cpu(process)
                result: Load = load(port, requests, max(seconds / 3, 0.2))
                count = result.rate * max(seconds / 3, 0.2)
                cpu = (_cpu(process) - before) / count * 1e6
                found.append(Measured(result.rate, result.p50, result.p99, cpu))
    return [Measured(*(median(getattr(one, name) for one in found) for name in Measured.__slots__)) for found in rounds]


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


def _cpu(process: "subprocess.Popen[bytes]") -> float:
    """Seconds of processor time that a process and its children have used."""
    total, parents = 0.0, {process.pid}
    for stat in sorted(Path("/proc").glob("[0-9]*/stat"), key=lambda path: int(path.parent.name)):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(stat.parent.name)
        if pid in parents or int(fields[1]) in parents:
            parents.add(pid)
            total += (int(fields[11]) + int(fields[12])) / _TICKS
    return total
