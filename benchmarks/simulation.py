"""A deployment, simulated: workers, the shards of a store, and the machine or network between them.

A guarded call is a worker's processor time in three parts, with a trip to the shard of its caller after the first and
the second. A worker and a shard do one thing at a time, first come, first served. Garbage collection, noisy neighbours
and lost packets are not simulated.
"""

import random
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, Final

import simpy

SEED: Final = 31
WARM_UP: Final = 0.1
"""The part of the calls that come first and are not counted."""


@dataclass(frozen=True, slots=True)
class Service:
    """Seconds of processor time of one call: its worker's, its store's in all trips, and that of the load before it."""

    worker: float
    store: float = 0.0
    load: float = 0.0
    trips: int = 2


@dataclass(frozen=True, slots=True)
class Deployment:
    """Workers and shards on machines of their own, with a trip of `network` seconds between them."""

    rate: float
    workers: int
    shards: int
    service: Service
    network: float
    hot: float = 0.0
    """The part of calls that make one more trip, all to the same shard: for a limit in total."""

    lost: tuple[int, ...] = ()
    """Shards that answer nobody: calls of their callers are refused."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a load: answers and refusals a second, the 99th percentile in seconds, how busy each part was."""

    answered: float
    refused: float
    p99: float
    workers: float
    shards: float
    hottest: float

    @property
    def saturated(self) -> str:
        """The part that is busy all the time, or "nothing"."""
        parts = {"a shard": self.hottest, "workers": self.workers}
        busiest = max(parts, key=lambda part: parts[part])
        return busiest if parts[busiest] > 0.97 else "nothing"


@dataclass
class _Server:
    """A worker or a shard."""

    resource: simpy.Resource
    busy: float = field(default=0.0)


class _World:
    """The clock and the chance of one simulation."""

    def __init__(self) -> None:
        self.environment = simpy.Environment()
        self.chance = random.Random(SEED)

    def server(self, capacity: int = 1) -> _Server:
        return _Server(simpy.Resource(self.environment, capacity))

    def work(self, server: _Server, mean: float, core: _Server | None = None) -> Generator[Any, Any, None]:
        """Keep a server, and a core where cores are shared, for a time that varies by half of its mean."""
        seconds = self.chance.gammavariate(4, mean / 4) if mean else 0.0
        with server.resource.request() as turn:
            yield turn
            if core is None:
                yield self.environment.timeout(seconds)
            else:
                with core.resource.request() as share:
                    yield share
                    yield self.environment.timeout(seconds)
            server.busy += seconds


def run(deployment: Deployment, calls: int) -> Outcome:
    """Simulate calls that arrive by themselves, whatever becomes of the earlier ones."""
    world, service = _World(), deployment.service
    environment, chance = world.environment, world.chance
    workers = [world.server() for _ in range(deployment.workers)]
    shards = [world.server() for _ in range(deployment.shards)]
    times, refused = list[tuple[float, float]](), 0

    def trip(shard: _Server) -> Generator[Any, Any, None]:
        yield environment.timeout(deployment.network)
        yield from world.work(shard, service.store / service.trips)

    def call() -> Generator[Any, Any, None]:
        nonlocal refused
        begun, worker, number = environment.now, chance.choice(workers), chance.randrange(deployment.shards)
        parts = service.trips + 1
        if chance.random() < deployment.hot:
            yield from trip(shards[0])
        for _ in range(service.trips):
            yield from world.work(worker, service.worker / parts)
            if number in deployment.lost:
                refused += 1
                return
            yield from trip(shards[number])
        yield from world.work(worker, service.worker / parts)
        times.append((begun, environment.now - begun))

    def arrive() -> Generator[Any, Any, None]:
        for _ in range(calls):
            yield environment.timeout(chance.expovariate(deployment.rate))
            environment.process(call())

    environment.process(arrive())
    environment.run()
    seconds = environment.now
    counted = sorted(taken for begun, taken in times[int(len(times) * WARM_UP) :])
    busy_shards = [shard.busy / seconds for shard in shards]
    return Outcome(
        len(times) / seconds,
        refused / seconds,
        counted[int(len(counted) * 0.99)],
        sum(worker.busy for worker in workers) / seconds / len(workers),
        sum(busy_shards) / len(shards),
        max(busy_shards),
    )


def closed_rate(callers: int, workers: int, cores: int, service: Service, store_processes: int = 1) -> float:
    """Simulate callers who call again as soon as they are answered, all on one machine. Returns answers a second."""
    world, count, lasts = _World(), 0, 2.0
    machine, load, store = world.server(cores), world.server(), world.server(store_processes)
    processes = [world.server() for _ in range(workers)]

    def call(worker: _Server) -> Generator[Any, Any, None]:
        nonlocal count
        parts = service.trips + 1
        while True:
            yield from world.work(load, service.load, machine)
            for _ in range(service.trips):
                yield from world.work(worker, service.worker / parts, machine)
                yield from world.work(store, service.store / service.trips, machine)
            yield from world.work(worker, service.worker / parts, machine)
            count += 1

    for number in range(callers):
        world.environment.process(call(processes[number % workers]))
    world.environment.run(until=lasts)
    return count / lasts
