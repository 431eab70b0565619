"""`make mutants ROOM=awp_publish/calls/gates N=60 SEED=1`: mutants of a folder or file, and the tests that catch them.

The first run records which tests execute which line, which takes longer than the tests; later ones record only test
files that have changed.
"""

import argparse
import hashlib
import multiprocessing
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.mutants.judge import Verdict, copy_project, judge, prepare
from tools.mutants.mutate import Mutant, mutants_of
from tools.mutants.reach import in_order, recorded

ROOT: Final = Path(__file__).parents[2]
BUILD: Final = ROOT / "build" / "mutants"
HERE: Final = Path(__file__).parent
STAGES: Final = ((10.0, 120), (50.0, 600))
"""Recorded seconds and number of the tests that a mutant is given: first a few, then, if it survives them, more."""


@dataclass(frozen=True)
class Trial:
    mutant: Mutant
    tests: Sequence[Sequence[str]]
    """The tests of each stage."""


def read_equivalents() -> dict[str, str]:
    """Return the reason why a mutant is no mistake, by its key."""
    return {
        row["key"]: row["reason"] for row in tomllib.loads((HERE / "equivalents.toml").read_text()).get("mutant", ())
    }


def draw(folder: Path, number: int, seed: str) -> list[Mutant]:
    """Return mutants of a folder, in an order that changes elsewhere hardly disturb."""
    paths = [folder] if folder.is_file() else sorted(folder.rglob("*.py"))
    mutants = [mutant for path in paths for mutant in mutants_of(path, ROOT)]
    mutants.sort(key=lambda mutant: hashlib.sha256(f"{seed} {mutant.key}".encode()).digest())
    equivalents, drawn = read_equivalents(), list[Mutant]()
    for mutant in mutants:
        if len(drawn) < number and mutant.key not in equivalents and mutant.is_valid:
            drawn.append(mutant)
    return drawn


def trials_of(mutants: Iterable[Mutant]) -> Iterator[Trial]:
    runs = recorded(ROOT, BUILD)
    seconds = {test: taken for run in runs for test, taken in run.seconds.items()}
    for mutant in mutants:
        found = {test for run in runs for test in run.tests_of(mutant)}
        waiting, stages = in_order({test: seconds[test] for test in found if test in seconds}), list[list[str]]()
        for budget, most in STAGES:
            stage: list[str] = []
            while waiting and len(stage) < most and budget > 0:
                budget -= seconds[waiting[0]]
                stage.append(waiting.pop(0))
            stages.append(stage)
        yield Trial(mutant, stages)


def _begin(slots: Any) -> None:
    global _copy
    _copy = BUILD / f"copy-{slots.get()}"
    copy_project(ROOT, _copy)


def _judge(trial: Trial) -> tuple[Trial, Verdict]:
    verdict = Verdict(False)
    for tests in trial.tests:
        verdict = judge(trial.mutant, tests, ROOT, _copy, 90 + len(tests))
        if verdict.is_caught:
            break
    return trial, verdict


_copy = BUILD


def judged(trials: Sequence[Trial], processes: int) -> Iterator[tuple[Mutant, Verdict]]:
    """Yield each mutant with what came of it, and print the survivors."""
    prepare()
    forks = multiprocessing.get_context("fork")
    slots = forks.Queue()
    for number in range(processes):
        slots.put(number)
    with forks.Pool(processes, _begin, (slots,)) as pool:
        for trial, verdict in pool.imap_unordered(_judge, trials):
            mutant = trial.mutant
            if not verdict.is_caught:
                print(f"\nSURVIVED {mutant.path}:{mutant.first} {mutant.key}, of {sum(map(len, trial.tests))} tests")
                print(mutant.diff, flush=True)
            yield mutant, verdict


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("room", nargs="?", default="awp_publish", help="a folder or file of the package")
    parser.add_argument("--number", type=int, default=60)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    begun = time.monotonic()
    verdicts = list(judged(list(trials_of(draw(ROOT / options.room, options.number, options.seed))), options.processes))
    caught = sum(verdict.is_caught for _, verdict in verdicts)
    print(f"{options.room}: {caught} of {len(verdicts)} caught, in {time.monotonic() - begun:.0f} seconds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
