"""`make fuzz N=1000000`: hostile requests over all doors.

python -m tools.fuzz 1000000 --seed 7        # the seed is today's date otherwise
python -m tools.fuzz --replay 7:4711         # one input again, in an application of its own
python -m tools.fuzz 0 --cells 5000 --crowds # wrong credentials in all ways; strangers who take all they can get
"""

import argparse
import asyncio
import logging
import os
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from tools.fuzz.attack import Attack
from tools.fuzz.cells import try_cells
from tools.fuzz.crowds import CROWDS, try_crowds
from tools.fuzz.inputs import DOORS, REGRESSIONS, make_input
from tools.fuzz.processes import Report, mib, run
from tools.fuzz.site import make_world

SHOWN: Final = 100
"""Kinds of failures that are told, with the first of each."""


def table(whole: Report, seed: int, seconds: float) -> Iterator[str]:
    """The lines of a summary."""
    done = sum(whole.inputs.values())
    yield f"{done:,} inputs of seed {seed} in {seconds:.0f} seconds; the first {len(REGRESSIONS)} are known ones"
    for door in DOORS:
        answers = Counter({status: number for (at, status), number in whole.statuses.items() if at == door})
        text = ", ".join(f"{status} {number:,}" for status, number in answers.most_common())
        yield f"  {door:<10}{whole.inputs[door]:>9,}   {text}"
    yield f"slowest answer: {whole.slowest[0] * 1000:.0f} ms ({seed}:{whole.slowest[1]})"
    start, warm, end = map(mib, whole.memory)
    yield f"memory of a process: {start} at the start, {warm} warm, {end} at the end"
    kinds: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for index, words in sorted(whole.failures):
        kinds[re.sub(r"[\d.]+", "0", words)[:70]].append((index, words))
    for found in list(kinds.values())[:SHOWN]:
        index, words = found[0]
        yield f"FAILED {seed}:{index} ({len(found)} like it) {' '.join(words.split())[:300]}"
    yield f"{len(whole.failures)} failures of {len(kinds)} kinds" if kinds else "no failures"


async def replay(seed: int, index: int) -> int:
    """Send one input, and tell all of it."""
    given = make_input(seed, index)
    for step in given.steps:
        print(repr(step)[:20_000])
    app, world = make_world()
    async with Attack(app, world).going_on() as attack:
        verdict = await attack.answer(given)
    print(f"{given.door}: {', '.join(verdict.statuses)}; slowest {verdict.slowest * 1000:.0f} ms")
    for words in verdict.wrong:
        print(f"FAILED {words}")
    return bool(verdict.wrong)


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=20_000, help="how many inputs")
    parser.add_argument("--seed", type=int, default=int(f"{datetime.now(UTC):%Y%m%d}"))
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--cells", type=int, default=0, help="how many cells of the matrix of credentials")
    parser.add_argument("--crowds", action="store_true", help="crowds of strangers, too")
    parser.add_argument("--replay", metavar="SEED:INDEX", help="send this one only")
    given = parser.parse_args()
    if given.replay:
        seed, _, index = given.replay.partition(":")
        return asyncio.run(replay(int(seed), int(index)))
    wrong: list[Any] = []
    if given.count:
        begun = time.monotonic()
        whole = run(given.count, given.seed, given.processes)
        print("\n".join(table(whole, given.seed, time.monotonic() - begun)))
        wrong += whole.failures
    logging.lastResort = None
    if given.cells:
        wrong += _told(f"{given.cells:,} cells of seed {given.seed}", try_cells(given.cells, given.seed))
    if given.crowds:
        wrong += _told(f"{len(CROWDS)} crowds", try_crowds())
    return bool(wrong)


def _told(subject: str, wrong: list[str]) -> list[Any]:
    """Print what is wrong, and return it."""
    print("\n".join([*(f"FAILED {words}" for words in wrong), f"{subject}: {len(wrong)} failures"]))
    return [*wrong]


if __name__ == "__main__":
    sys.exit(main())
