"""Processes that send inputs, and the one that watches them from outside.

A process that does not answer an input for HANG seconds, or needs more than MEMORY, is ended: that input has failed,
and another process goes on behind it. So a request that stops a worker is told by its number, and not waited for.
"""

import asyncio
import contextlib
import gc
import logging
import os
import resource
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Final, TypeAlias

from awp_publish.http.exchange import AsgiApp
from tests.processes import context
from tools.fuzz.attack import Attack, Verdict
from tools.fuzz.inputs import make_input
from tools.fuzz.site import World, make_world

Make: TypeAlias = Callable[[], tuple[AsgiApp, World]]
"""Makes an application to attack, and what is known of it."""

HANG: Final = 20.0
"""Seconds of one input after which a process is ended."""

MEMORY: Final = 3 << 30
"""Bytes of address space that a process may take."""

WARM: Final = 2_000
"""Inputs of a process after which its memory should be what it stays."""

GROWTH: Final = 48 << 20
"""Bytes by which a process may still grow in the later half of what follows (see `growth`)."""

BATCH: Final = 250
"""Inputs between two reports of a process."""

MOST_ENDED: Final = 60
"""Processes that may be ended before a run is given up."""


@dataclass
class Report:
    """What came of a number of inputs."""

    inputs: Counter[str] = field(default_factory=Counter)
    statuses: Counter[tuple[str, str]] = field(default_factory=Counter)
    slowest: tuple[float, int] = (0.0, -1)
    failures: list[tuple[int, str]] = field(default_factory=list)
    memory: tuple[int, int, int] = (0, 0, 0)

    def add(self, other: "Report") -> None:
        """Add up."""
        self.inputs += other.inputs
        self.statuses += other.statuses
        self.slowest = max(self.slowest, other.slowest)
        self.failures += other.failures


# --- The process that sends ---


def _send_all(pipe: Connection, now: Any, make: Make, seed: int, first: int, last: int, step: int) -> None:
    """Send every `step`-th input, and report. `now` tells the parent what is being answered, and since when."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    logging.lastResort = None
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_send(pipe, now, make, seed, range(first, last, step)))


async def _send(pipe: Connection, now: Any, make: Make, seed: int, indexes: range) -> None:
    app, world = make()
    report, start, warm = Report(), _memory(), 0
    samples: list[int] = []
    async with Attack(app, world).going_on() as attack:
        for done, index in enumerate(indexes, 1):
            now[0], now[1] = index, time.monotonic()
            given = make_input(seed, index)
            _add(report, index, given.door, await attack.answer(given))
            if done % BATCH == 0 or done == len(indexes) or report.failures:
                now[1] = 0.0
                if done >= WARM and not warm:
                    gc.collect()
                    warm = _memory()
                report.memory = (start, warm, _memory())
                samples += [report.memory[2]] if warm else []
                pipe.send(report)
                report = Report()
        now[1] = 0.0
        gc.collect()
        if (grown := growth(samples)) > GROWTH:
            words = f"memory grew from {mib(warm)} to {mib(_memory())}, by {mib(round(grown))} in the later half"
            report.failures.append((indexes[-1], words))
        report.memory = (start, warm, _memory())
        pipe.send(report)
    pipe.send(None)


def _add(report: Report, index: int, door: str, verdict: Verdict) -> None:
    report.inputs[door] += 1
    report.statuses.update((door, status) for status in verdict.statuses)
    report.slowest = max(report.slowest, (verdict.slowest, index))
    report.failures += [(index, f"{door}: {words}") for words in dict.fromkeys(verdict.wrong)]


def growth(samples: Sequence[int]) -> float:
    """Return the bytes by which memory grows over the later half of the samples, by their slope (least squares).

    Caches and a store that keeps everything for a minute fill up to a plateau, whose height depends on the length of
    the run: only what still grows after that is a leak.
    """
    later = samples[(len(samples) - 1) // 2 :]
    if len(later) < 2:
        return 0.0
    return statistics.linear_regression(range(len(later)), later).slope * (len(later) - 1)


def _memory() -> int:
    """The resident set, 0 where nobody tells it."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * resource.getpagesize() if statm.exists() else 0


def mib(size: int) -> str:
    """A size in words."""
    return f"{size / 2**20:.0f} MiB"


# --- The process that watches ---


class _Sender:
    """One process and what it has left to do."""

    def __init__(self, make: Make, seed: int, first: int, last: int, step: int) -> None:
        self._make = make
        self._seed = seed
        self._last = last
        self._step = step
        self._start(first)

    def _start(self, first: int) -> None:
        self.pipe, theirs = context.Pipe(duplex=False)
        self._now = context.Array("d", [first, 0.0], lock=False)
        given = (theirs, self._now, self._make, self._seed, first, self._last, self._step)
        self._process = context.Process(target=_send_all, args=given, daemon=True)
        self._process.start()
        theirs.close()

    def is_stuck(self, hang: float) -> bool:
        """Whether one input takes far too long."""
        since = self._now[1]
        return bool(since and time.monotonic() - since > hang)

    def go_on_behind(self) -> int:
        """End the process, and begin behind the input that ended it, whose number is given.

        What it had not reported is lost, but for failures: those are reported at once.
        """
        self.end()
        index = int(self._now[0])
        self._start(index + self._step)
        return index

    def end(self) -> None:
        """Leave nothing behind."""
        self._process.kill()
        self._process.join()
        self.pipe.close()


def run(count: int, seed: int, processes: int, make: Make = make_world, hang: float = HANG) -> Report:
    """Send the first `count` inputs of a seed to applications that `make` makes, one in each process."""
    os.environ["MALLOC_ARENA_MAX"] = "2"  # else each thread takes address space of its own, where there are many cores
    whole, begun, told, ended = Report(), time.monotonic(), 0.0, 0
    senders = [_Sender(make, seed, number, count, processes) for number in range(min(processes, count))]
    try:
        while senders:
            ready = wait([sender.pipe for sender in senders], timeout=0.5)
            for sender in list(senders):
                has_died = sender.pipe in ready and _take(sender, whole, senders)
                if not has_died and (sender not in senders or not sender.is_stuck(hang)):
                    continue
                ended += 1
                words = "the process has died" if has_died else f"no answer for {hang:g} seconds: the process was ended"
                whole.failures.append((sender.go_on_behind(), words))
            if ended > MOST_ENDED:
                whole.failures.append((count, f"{ended} processes were ended: the run is given up"))
                break
            if time.monotonic() - told > 5:
                told = time.monotonic()
                _tell_progress(whole, count, told - begun)
    finally:
        for sender in senders:
            sender.end()
    return whole


def _take(sender: _Sender, whole: Report, senders: list[_Sender]) -> bool:
    """Take what a process reports. True if it is gone without a word."""
    try:
        report = sender.pipe.recv()
    except (EOFError, OSError):
        return True
    if report is None:
        sender.end()
        senders.remove(sender)
    else:
        whole.add(report)
        if report.memory[1] or not whole.memory[1]:
            whole.memory = report.memory
    return False


def _tell_progress(whole: Report, count: int, seconds: float) -> None:
    done = sum(whole.inputs.values())
    rate = done / seconds if seconds else 0
    print(
        f"{done:,} of {count:,} inputs, {rate:,.0f} a second, {len(whole.failures)} failures",
        file=sys.stderr,
        flush=True,
    )
