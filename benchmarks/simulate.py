"""Simulating: what many machines would do, with the service times that `scaling` has measured on one.

The measured points are simulated first: where the simulation is off by more than a fifth, nothing else of it is to be
believed, and neither the picture nor the table of docs/scaling.md is written.
"""

import asyncio
import json
import math
import random
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from awp_publish.plugins.limits.leases import Lease
from awp_publish.stores.memory import MemoryStore
from benchmarks.plot import Line, log_plot
from benchmarks.scaling import MEASURED
from benchmarks.table import Row, at_most
from benchmarks.wire import CONNECTIONS

if TYPE_CHECKING:
    from benchmarks.simulation import Outcome, Service

DOCS: Final = Path(__file__).parents[1] / "docs"
PICTURE: Final = DOCS / "pictures" / "scaling.svg"
PAGE: Final = DOCS / "scaling.md"
BEGIN: Final = "<!-- simulated: python -m benchmarks scaling simulate -->"
END: Final = "<!-- end -->"

NETWORK_SECONDS: Final = 0.3e-3
"""There and back between two machines of a zone."""

RATES: Final = (1_000, 3_000, 10_000, 30_000, 100_000)
SHARDS: Final = (1, 3, 10, 30)
BUSY: Final = 0.6
"""How busy workers and shards are planned to be."""

HANDLER_SECONDS: Final = 5e-3
"""Processor time of a site's own handler, beside one that does nothing."""

CALLS: Final = 8_000
"""Simulated calls of one point."""

_EDGES: Final = {
    "saturated: a shard": "answered; a shard gives way",
    "saturated: workers": "answered; workers give way",
    "all calls": "of all calls",
    "asked": "answered",
    "allowed": "of what it allows",
}
"""What the figure of a row says that tells where a deployment ends, or what a loss costs, by what it is beside."""

COLOURS: Final = {1: "#c53030", 3: "#b7791f", 10: "#2b6cb0", 30: "#2f855a"}


def simulate(_seconds: float) -> list[Row]:
    """Check the simulation against what was measured; then simulate more, and draw it."""
    if find_spec("simpy") is None or not MEASURED.exists():
        why = "python -m benchmarks scaling has not been run" if find_spec("simpy") else "simpy is not installed"
        return [Row("simulated calls beside measured ones", "measured", None, at_most(0.2), why)]
    measured = json.loads(MEASURED.read_text())
    points = measured["points"]
    rows = list(_checks(points, measured["cores"]))
    if not rows:
        return [Row("simulated calls beside measured ones", "measured", None, at_most(0.2), "Redis was not measured")]
    believable = all(row.verdict == "ok" for row in rows)
    service = _service(points["guarded redis 1"])
    outcomes = {(rate, shards): _plan(rate, shards, service) for rate in RATES for shards in SHARDS}
    rows += [_row(rate, shards, *plan) for (rate, shards), plan in outcomes.items()]
    rows += [*_losses(service), *_hot_keys(service, points), *asyncio.run(_accuracy())]
    if believable:
        PICTURE.write_text(_draw({point: outcome for point, (_, outcome) in outcomes.items()}))
        _write_tables(points, service, [row for row in rows if row.beside in _EDGES])
    return rows


def _service(point: Mapping[str, float], trips: int = 2) -> "Service":
    from benchmarks.simulation import Service

    return Service(point["cpu"] * 1e-6, point["store"] * 1e-6 if trips else 0.0, point["load"] * 1e-6, trips)


def _checks(points: Mapping[str, Mapping[str, float]], cores: int) -> Iterator[Row]:
    """Simulate what was measured with Redis and PostgreSQL. The lock of SQLite is not simulated."""
    from benchmarks.simulation import closed_rate

    for name, point in points.items():
        kind, _, rest = name.partition(" ")
        store, _, workers = rest.partition(" ")
        if kind not in ("open", "guarded") or store not in ("redis", "postgres"):
            continue
        service = _service(point, 2 if kind == "guarded" else 0)
        rate = closed_rate(CONNECTIONS, int(workers), cores, service, 1 if store == "redis" else cores)
        details = f"{rate:.0f} : {point['rate']:.0f} /s"
        yield Row(f"simulated, {name}", "measured", abs(rate / point["rate"] - 1), at_most(0.2), details)


def _plan(rate: int, shards: int, service: "Service") -> "tuple[int, Outcome]":
    """Simulate a rate with as many workers as keep to their share. Returns the workers and what came of it."""
    from benchmarks.simulation import Deployment, run

    workers = _workers(rate, service.worker)
    return workers, run(Deployment(rate, workers, shards, service, NETWORK_SECONDS), CALLS)


def _workers(rate: float, seconds: float) -> int:
    return max(2, math.ceil(rate * seconds / BUSY))


def _row(rate: int, shards: int, workers: int, outcome: "Outcome") -> Row:
    details = f"p99 {outcome.p99 * 1000:.1f} ms; workers {outcome.workers:.0%}, shards {outcome.shards:.0%} busy"
    what = f"{rate:,} calls a second, {workers} workers, {shards} {'shards' if shards > 1 else 'shard'}"
    return Row(what, f"saturated: {outcome.saturated}", outcome.answered / rate, None, details)


def _losses(service: "Service") -> Iterator[Row]:
    """A shard of three is lost, and a zone of three: what becomes of the calls until replicas take over, and after."""
    from benchmarks.simulation import Deployment, run

    rate, shards = 10_000, max(3, math.ceil(10_000 * service.store / BUSY))
    workers = _workers(rate, service.worker)

    def simulated(workers: int, lost: tuple[int, ...] = ()) -> "Outcome":
        return run(Deployment(rate, workers, shards, service, NETWORK_SECONDS, lost=lost), CALLS)

    def row(what: str, outcome: "Outcome", share: float) -> Row:
        details = (
            f"p99 {outcome.p99 * 1000:.1f} ms, before {whole.p99 * 1000:.1f} ms; workers {outcome.workers:.0%} busy"
        )
        return Row(what, "all calls", share, None, details)

    whole, shard, zone = simulated(workers), simulated(workers, (0,)), simulated(workers * 2 // 3)
    refused = shard.refused / (shard.refused + shard.answered)
    yield row(f"calls refused while a shard of {shards} has no primary", shard, refused)
    yield row("calls answered with the workers of two zones of three", zone, zone.answered / rate)


def _hot_keys(service: "Service", points: Mapping[str, Mapping[str, float]]) -> Iterator[Row]:
    """Calls under one limit for all callers, which is one key."""
    from benchmarks.simulation import Deployment, run

    rate, shards = 30_000, 10
    for what, hot in (("one exact limit in total", 1.0), ("one limit in total, 100 at a time", 0.01)):
        deployment = Deployment(rate, _workers(rate, service.worker), shards, service, NETWORK_SECONDS, hot)
        outcome = run(deployment, CALLS)
        details = f"p99 {outcome.p99 * 1000:.1f} ms; its shard {outcome.hottest:.0%} busy"
        yield Row(f"{rate:,} calls a second under {what}", "asked", outcome.answered / rate, None, details)


async def _accuracy() -> list[Row]:
    """Let workers lease a limit in total, with their own code, and make twice as many calls as it allows."""
    rows, limit, size = [], 90_000, 100
    for workers in (10, 100, 1_000):
        store = MemoryStore(clock=lambda: 0.0)
        leases = [Lease("limit", limit, 60, size, store, lambda: 0.0) for _ in range(workers)]
        chance, verdicts = random.Random(workers), list[bool]()
        for _ in range(2 * limit):
            lease = chance.choice(leases)
            verdicts.append(lease.take() or await lease.renew())
        allowed, first = sum(verdicts), verdicts.index(False)
        details = f"{limit:,} a minute, {size} at a time: the first refusal after {first / limit:.0%} of it"
        rows.append(Row(f"a leased limit with {workers:,} workers", "allowed", allowed / limit, at_most(1.0), details))
    return rows


def _draw(outcomes: "Mapping[tuple[int, int], Outcome]") -> str:
    """Draw the 99th percentile by calls a second, a line for each number of shards."""
    lines = [
        Line(
            f"{shards} {'shards' if shards > 1 else 'shard'}",
            COLOURS[shards],
            [(rate, outcomes[rate, shards].p99 * 1000) for rate in RATES],
        )
        for shards in SHARDS
    ]
    return log_plot("99th percentile of guarded calls, simulated", "guarded calls a second", "ms", lines)


def _write_tables(points: Mapping[str, Mapping[str, float]], service: "Service", edges: list[Row]) -> None:
    """Write how many workers and which store each rate needs, where a call needs the measured time; and the edges."""
    from benchmarks.simulation import Deployment, Service, run

    one_machine = points["guarded sqlite 1"]["rate"] * BUSY
    lines = [
        "| guarded calls a second | store | workers | 99th percentile | workers, with a handler of 5 ms |",
        "|---|---|---|---|---|",
    ]
    for rate in (100, 300, *RATES):
        shards = math.ceil(rate * service.store / BUSY)
        if rate <= one_machine:
            lines.append(f"| {rate:,} | SQLite, or Redis | {_workers(rate, service.worker)} | ")
        else:
            store = "Redis" if shards == 1 else f"Redis Cluster of {max(3, shards)}"
            lines.append(f"| {rate:,} | {store} | {_workers(rate, service.worker)} | ")
        shards = shards if shards == 1 else max(3, shards)
        for handler in (0.0, HANDLER_SECONDS):
            busy = Service(service.worker + handler, service.store)
            workers = _workers(rate, busy.worker)
            outcome = run(Deployment(rate, workers, shards, busy, NETWORK_SECONDS), CALLS)
            lines[-1] += (
                f"{outcome.p99 * 1000:.1f} ms | " if not handler else f"{workers:,} ({outcome.p99 * 1000:.0f} ms) |"
            )
    lines += ["", "| at the edge | outcome | details |", "|---|---|---|"]
    for row in edges:
        share = f"{min(1.0, row.figure):.0%}" if row.figure is not None else "-"
        lines.append(f"| {row.what} | {share} {_EDGES[row.beside]} | {row.details} |")
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text("".join((before, BEGIN, "\n", "\n".join(lines), "\n", END, after)))
