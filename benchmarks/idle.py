"""What the extras of doors cost a site that opens no such door: nothing.

It is measured beside processes in which the extras cannot be imported. Each process publishes a site and answers one
request; both kinds are started in turn, and what is reported is the median of the pairs' differences.
"""

import asyncio
import os
import subprocess
import sys
import time
from operator import sub
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from benchmarks.table import Limit, Row, at_most

EXTRAS: Final = ("mcp", "mcp_types", "a2a", "google.protobuf", "sse_starlette", "httpx2")
LEAST_PAIRS: Final = 2
SECONDS_OF_A_PAIR: Final = 1.2


class Cost(NamedTuple):
    """Microseconds of processor time until the first answer, and MiB of memory after it."""

    time: float
    memory: float


def idle(seconds: float) -> list[Row]:
    """Time and memory that are added."""
    pairs = [_pair(turn) for turn in range(max(LEAST_PAIRS, round(seconds / SECONDS_OF_A_PAIR)))]
    return [
        _row("extras installed, no door open: start", [(mine.time, other.time) for mine, other in pairs], _TIME),
        _row("extras installed, no door open: memory", [(mine.memory, other.memory) for mine, other in pairs], _MEMORY),
    ]


_TIME: Final = at_most(5_000, "us")
_MEMORY: Final = at_most(0.5, "MiB")
"""What two processes of the same kind differ by is within these."""


def _pair(turn: int) -> tuple[Cost, Cost]:
    """With the extras and without, in an order that changes from turn to turn."""
    kinds = ("visible", "hidden") if turn % 2 else ("hidden", "visible")
    found = {kind: _start(kind) for kind in kinds}
    return found["visible"], found["hidden"]


def _row(what: str, pairs: list[tuple[float, float]], limit: Limit) -> Row:
    mine, other = (median(pair[side] for pair in pairs) for side in (0, 1))
    details = f"{mine:,.1f} : {other:,.1f} {limit.unit}"
    return Row(what, "where they cannot be imported", median(sub(*pair) for pair in pairs), limit, details, limit.unit)


def _start(kind: str) -> Cost:
    command = [sys.executable, "-m", "benchmarks.idle", kind]
    time, memory = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return Cost(float(time), float(memory))


# --- In the process of its own -------------------------------------------------------------------------------------


def main(kind: str) -> None:
    """Start, answer, and print what it took."""
    if kind == "hidden":
        sys.modules.update(dict.fromkeys(EXTRAS))  # type: ignore[arg-type]
    began = time.process_time()
    asyncio.run(_answer_once())
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    print((time.process_time() - began) * 1e6, pages * os.sysconf("SC_PAGE_SIZE") / 2**20)


async def _answer_once() -> None:
    from benchmarks.measure import Case, ask
    from benchmarks.shop import shop
    from benchmarks.static_answers import DOCUMENT

    assert (await ask(Case("document", shop("outermost"), DOCUMENT))).status == 200


if __name__ == "__main__":
    main(sys.argv[1])
