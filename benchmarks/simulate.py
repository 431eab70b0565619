"""What many machines would do, simulated with the service times that `scaling` has measured on one.

A call is a worker's processor time, in two halves, with a trip to its caller's shard between and one after; a shard
carries out one run after the other. Arrivals are Poisson. What the measured points say is simulated first: where the
simulation is off by more than a fifth, nothing else of it is to be believed.
"""

import json
import random
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from benchmarks.scaling import MEASURED
from benchmarks.table import Row, at_most

PICTURE: Final = Path(__file__).parents[1] / "docs/pictures/scaling.svg"
RUN_SECONDS: Final = 40e-6
"""Processor time of Redis for one run of a guarded call: 25,000 runs a second of one shard."""

NETWORK_SECONDS: Final = 0.3e-3
"""There and back between two machines of a zone."""

CALLS: Final = 4_000
"""Simulated calls of one point."""


@dataclass(frozen=True, slots=True)
class Point:
    """A deployment under a load: calls a second, workers, shards; seconds of a worker's time a call."""

    rate: float
    workers: int
    shards: int
    cpu: float
    trips: int = 2
    network: float = NETWORK_SECONDS
    hot: float = 0.0
    """The part of calls that go to one shard first: those under a limit in total."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a point came to: calls answered a second, the 99th percentile in seconds, and how busy each part was."""

    rate: float
    p99: float
    workers: float
    shards: float
    hottest: float


def simulate(seconds: float) -> list[Row]:
    """Check the simulation against what was measured; then draw what it says of more."""
    if find_spec("simpy") is None or not MEASURED.exists():
        why = "simpy is not installed" if MEASURED.exists() else "python -m benchmarks scaling has not been run"
        return [Row("simulated calls beside measured ones", "measured", None, at_most(0.2), why)]
    measured = json.loads(MEASURED.read_text())
    rows = [
        _check(name, measured[name]) for name in ("open redis 1", "guarded redis 1", "open redis 2") if name in measured
    ]
    cpu = measured["guarded redis 1"]["cpu"] / 1e6
    plan = [(rate, shards) for rate in (1e3, 1e4, 1e5) for shards in (1, 3, 10, 30)]
    found = {}
    for rate, shards in plan:
        workers = min(1000, max(10, round(rate * cpu / 0.7)))
        point = Point(rate, workers, shards, cpu)
        outcome = found[rate, shards] = run(point)
        saturated = "shards" if outcome.shards > 0.95 else "workers" if outcome.workers > 0.95 else "nothing"
        details = f"p99 {outcome.p99 * 1000:.1f} ms; workers {outcome.workers:.0%}, shards {outcome.shards:.0%} busy"
        rows.append(
            Row(
                f"{rate:.0f} calls a second, {workers} workers, {shards} shards",
                f"saturated: {saturated}",
                outcome.rate / rate,
                None,
                details,
            )
        )
    rows += _losses(cpu)
    if "MISSED" not in {row.verdict for row in rows}:  # a picture of what does not hold would mislead
        PICTURE.write_text(_draw(found))
    return rows


def _check(name: str, measured: dict[str, float]) -> Row:
    """Simulate a measured point: a closed loop of callers on one machine."""
    workers = int(name[-1])
    trips, store = (0, 0.0) if name.startswith("open") else (2, RUN_SECONDS)
    rate = run_closed(32, workers, measured["cpu"] / 1e6, trips, store)
    off = abs(rate / measured["rate"] - 1)
    return Row(f"simulated, {name}", "measured", off, at_most(0.2), f"{rate:.0f} : {measured['rate']:.0f} /s", "of it")


def _losses(cpu: float) -> Iterator[Row]:
    """A shard of three is lost, and a zone of three: what the rest then does."""
    rate, workers = 10_000.0, round(10_000 * cpu / 0.6)
    whole, zone = run(Point(rate, workers, 3, cpu)), run(Point(rate, workers * 2 // 3, 3, cpu))
    details = f"p99 {zone.p99 * 1000:.1f} ms, before {whole.p99 * 1000:.1f} ms; workers {zone.workers:.0%} busy"
    yield Row("calls answered after the loss of a zone of three", "before", zone.rate / whole.rate, None, details)
    yield Row("calls refused (503) while a shard of three has no primary", "all calls", 1 / 3, None, "by its callers")
    hot = run(Point(30_000, round(30_000 * cpu / 0.6), 10, cpu, hot=1.0))
    details = f"p99 {hot.p99 * 1000:.1f} ms; its shard {hot.hottest:.0%} busy"
    yield Row("30000 calls a second under one exact limit in total", "asked", hot.rate / 30_000, None, details)
    leased = run(Point(30_000, round(30_000 * cpu / 0.6), 10, cpu, hot=0.01))
    details = f"p99 {leased.p99 * 1000:.1f} ms; its shard {leased.hottest:.0%} busy"
    yield Row("the same, 100 at a time", "asked", leased.rate / 30_000, None, details)


def run(point: Point) -> Outcome:
    """Simulate calls that arrive by themselves."""
    import simpy

    chance, environment = random.Random(31), simpy.Environment()
    workers = [simpy.Resource(environment) for _ in range(point.workers)]
    shards = [simpy.Resource(environment) for _ in range(point.shards)]
    busy: dict[int, float] = {}
    times: list[float] = []

    def hold(resource: Any, mean: float) -> Generator[Any, Any, Any]:
        with resource.request() as turn:
            yield turn
            taken = chance.gammavariate(4, mean / 4)
            busy[id(resource)] = busy.get(id(resource), 0.0) + taken
            yield environment.timeout(taken)

    def trip(shard: Any) -> Generator[Any, Any, Any]:
        yield environment.timeout(point.network)
        yield from hold(shard, RUN_SECONDS)

    def call() -> Generator[Any, Any, Any]:
        begun, worker, shard = environment.now, chance.choice(workers), chance.choice(shards)
        if chance.random() < point.hot:
            yield from trip(shards[0])
        for _ in range(point.trips):
            yield from hold(worker, point.cpu / (point.trips + 1))
            yield from trip(shard)
        yield from hold(worker, point.cpu / (point.trips + 1))
        times.append(environment.now - begun)

    def arrive() -> Generator[Any, Any, Any]:
        for _ in range(CALLS * max(1, point.workers // 200)):
            yield environment.timeout(chance.expovariate(point.rate))
            environment.process(call())

    environment.process(arrive())
    environment.run()
    times.sort()
    part = {
        name: [busy.get(id(one), 0.0) / environment.now for one in of] for name, of in (("w", workers), ("s", shards))
    }
    busiest = sum(part["w"]) / len(workers), sum(part["s"]) / len(shards), max(part["s"])
    return Outcome(len(times) / environment.now, times[int(len(times) * 0.99)], *busiest)


def run_closed(callers: int, workers: int, cpu: float, trips: int, store: float) -> float:
    """Simulate callers who call again as soon as they have an answer. Returns calls a second."""
    import simpy

    chance, environment, count = random.Random(31), simpy.Environment(), 0
    processes, shard = [simpy.Resource(environment) for _ in range(workers)], simpy.Resource(environment)

    def hold(resource: Any, mean: float) -> Generator[Any, Any, Any]:
        with resource.request() as turn:
            yield turn
            yield environment.timeout(chance.gammavariate(4, mean / 4))

    def call(worker: Any) -> Generator[Any, Any, Any]:
        nonlocal count
        while True:
            for _ in range(trips):
                yield from hold(worker, cpu / (trips + 1))
                yield from hold(shard, store)
            yield from hold(worker, cpu / (trips + 1))
            count += 1

    for number in range(callers):
        environment.process(call(processes[number % workers]))
    environment.run(until=2.0)
    return count / 2.0


COLOURS: Final = {1: "#c53030", 3: "#b7791f", 10: "#2b6cb0", 30: "#2f855a"}


def _draw(found: dict[tuple[float, int], Outcome]) -> str:
    """Draw the 99th percentile by calls a second, a line for each number of shards."""
    rates: Sequence[float] = sorted({rate for rate, _ in found})
    highest = 1000.0  # ms, on a scale of powers of ten from 1

    def place(rate: float, outcome: Outcome) -> str:
        from math import log10

        level = min(max(log10(max(outcome.p99 * 1000, 1.0)) / log10(highest), 0.0), 1.0)
        return f"{70 + rates.index(rate) * 190},{260 - level * 220:.1f}"

    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 560 310" font-family="sans-serif" font-size="12">',
        "<title>99th percentile of guarded calls, simulated, by calls a second and shards</title>",
        '<rect width="560" height="310" fill="#fff"/><path d="M70 40V260H470" fill="none" stroke="#4a5568"/>',
    ]
    for level, words in enumerate(("1 ms", "10 ms", "100 ms", "1 s")):
        parts.append(f'<text x="62" y="{264 - level * 220 / 3:.0f}" text-anchor="end">{words}</text>')
    for number, rate in enumerate(rates):
        parts.append(f'<text x="{70 + number * 190}" y="280" text-anchor="middle">{rate:,.0f}/s</text>')
    for row, (shards, colour) in enumerate(COLOURS.items()):
        line = " ".join(place(rate, found[rate, shards]) for rate in rates)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(
            f'<text x="480" y="{60 + row * 18}" fill="{colour}">{shards} shard{"s" if shards > 1 else ""}</text>'
        )
    parts.append('<text x="270" y="302" text-anchor="middle">guarded calls a second, workers 70 % busy</text></svg>')
    return "\n".join(parts) + "\n"
