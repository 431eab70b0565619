"""`make mutants ROOM=awp_publish/calls/gates N=60 SEED=1`: mutants of a folder or file, and the tests that catch them.

The first run records which tests execute which line; later ones record only test files that have changed. With
`--sample`, the mutants of `sample.json` are judged by the tests that have caught them: `make mutants-sample`.
"""

import argparse
import hashlib
import json
import multiprocessing
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.mutants.judge import Verdict, copy_project, judge, prepare
from tools.mutants.mutate import Mutant, mutants_of
from tools.mutants.reach import in_order, recorded, transcripts_of
from tools.mutants.warm import UNSOUND, judge_warm

ROOT: Final = Path(__file__).parents[2]
BUILD: Final = ROOT / "build" / "mutants"
HERE: Final = Path(__file__).parent
SAMPLE: Final = HERE / "sample.json"
CAUGHT: Final = BUILD / "caught.json"
"""The test that has caught a mutant in an earlier run is tried first."""

SECONDS: Final = 10.0
"""Recorded seconds of the tests that a mutant is given."""

MOST: Final = 120
"""The number of these tests."""

FEW: Final = 10
"""Tests by which a function may have been run once for all: what it gives is kept, and other tests judge it, too."""

COLD: Final = (1.5, 25)
"""Those that it is given in processes that import the project anew."""


@dataclass(frozen=True)
class Trial:
    mutant: Mutant
    tests: Sequence[str]
    seconds: float
    """How long the tests took when they were recorded."""

    may_be_kept: bool = False
    """Whether its function may have been run once for all: a warm process has what it made before."""


@dataclass(frozen=True)
class Verdicts:
    caught: Mapping[str, str]
    """The test that has caught a mutant, by the mutant's key; none if it has survived."""

    unsound: Sequence[str]
    """Tests that were to judge a mutant and could not: they fail without it, are skipped or are not collected."""


def read_equivalents() -> dict[str, str]:
    """Return the reason why a mutant is no mistake, by its key."""
    return {
        row["key"]: row["reason"] for row in tomllib.loads((HERE / "equivalents.toml").read_text()).get("mutant", ())
    }


def draw(folder: Path, number: int, seed: str, equivalents: Iterable[str]) -> list[Mutant]:
    """Return mutants of a folder, in an order that changes elsewhere hardly disturb."""
    paths = [folder] if folder.is_file() else sorted(folder.rglob("*.py"))
    mutants = [mutant for path in paths for mutant in mutants_of(path, ROOT)]
    mutants.sort(key=lambda mutant: hashlib.sha256(f"{seed} {mutant.key}".encode()).digest())
    left_out, drawn = set(equivalents), list[Mutant]()
    for mutant in mutants:
        if len(drawn) < number and mutant.key not in left_out and mutant.is_valid:
            drawn.append(mutant)
    return drawn


def trials_of(mutants: Iterable[Mutant], processes: int, tests: str, budget: float = SECONDS) -> Iterator[Trial]:
    """Yield each mutant with tests that execute it, those that tell most for their time first."""
    runs = recorded(ROOT, BUILD, processes, tests)
    seconds = {test: taken for run in runs for test, taken in run.seconds.items()}
    breadth = {test: parts for run in runs for test, parts in run.breadth.items()}
    earlier: dict[str, str] = {
        row["key"]: row["tests"][0] for row in json.loads(SAMPLE.read_text())["mutants"] if row["tests"]
    }
    earlier |= json.loads(CAUGHT.read_text()) if CAUGHT.exists() else {}
    for mutant in mutants:
        reaching = {test: seconds[test] for run in runs for test in run.tests_of(mutant)}
        first = [earlier[mutant.key]] if earlier.get(mutant.key) in seconds else []
        groups = [group for run in runs for group in run.groups_of(mutant)]
        in_function = any(run.has_in_function(mutant) for run in runs)
        is_reached = in_function and len(reaching) >= FEW
        whole = transcripts_of(mutant, reaching if is_reached else seconds)
        narrow = [test for test in in_order(mutant, reaching, breadth, groups) if test not in whole]
        more = _bounded(mutant, narrow, seconds, budget, MOST)
        given = list(dict.fromkeys([*first, *whole, *more.tests]))
        yield Trial(mutant, given, sum(seconds.get(test, 0.1) for test in given), in_function and not is_reached)


def _bounded(mutant: Mutant, tests: Sequence[str], seconds: Mapping[str, float], budget: float, most: int) -> Trial:
    taken, chosen = 0.0, list[str]()
    for test in tests[:most]:
        if taken < budget:
            taken += seconds.get(test, 0.1)
            chosen.append(test)
    return Trial(mutant, chosen, taken)


def judged(trials: Sequence[Trial], processes: int) -> Verdicts:
    """Return which tests catch which mutants: first in warm processes, and where these cannot, in fresh ones."""
    BUILD.mkdir(parents=True, exist_ok=True)
    prepare()
    for slot in range(processes):
        copy_project(ROOT, BUILD / f"copy-{slot}")
    rows = [(trial.mutant, trial.tests, trial.seconds) for trial in trials]
    verdicts = judge_warm(rows, BUILD / "copy-0", BUILD, processes)
    caught = {key: test for key, (kind, test) in verdicts.items() if kind == "caught"}
    unsound = {f"{test} ({how})" for test, (kind, how) in verdicts.items() if kind == UNSOUND}
    left = [
        trial
        for trial in trials
        if (kind := verdicts.get(trial.mutant.key, ("",))[0]) != "caught" and (kind != "passed" or trial.may_be_kept)
    ]
    forks = multiprocessing.get_context("fork")
    slots = forks.Queue()
    for number in range(processes):
        slots.put(number)
    with forks.Pool(processes, _begin, (slots,)) as pool:
        for mutant, verdict in pool.imap_unordered(_judge_cold, left):
            if verdict.is_caught:
                caught[mutant.key] = verdict.test
            unsound |= {f"{test} (alone)" for test in verdict.unsound}
    CAUGHT.write_text(json.dumps((json.loads(CAUGHT.read_text()) if CAUGHT.exists() else {}) | caught, indent=1))
    for test in sorted(unsound):
        print(f"ERROR: without a mutant {test} does not pass, so that it judges nothing.")
    return Verdicts(caught, sorted(unsound))


_copy = BUILD


def _begin(slots: Any) -> None:
    global _copy
    _copy = BUILD / f"copy-{slots.get()}"


def _judge_cold(trial: Trial) -> tuple[Mutant, Verdict]:
    whole = dict.fromkeys(test.partition("[")[0] for test in trial.tests)  # with the cases that were not recorded
    return trial.mutant, judge(trial.mutant, _bounded(trial.mutant, list(whole), {}, *COLD).tests, ROOT, _copy, 120)


def print_survivors(trials: Iterable[Trial], caught: Mapping[str, str]) -> None:
    for trial in trials:
        mutant = trial.mutant
        if mutant.key not in caught:
            print(f"\nSURVIVED {mutant.path}:{mutant.first} {mutant.key}, of {len(trial.tests)} tests")
            print(mutant.diff, flush=True)


def run_rooms(rooms: Sequence[str], number: int, seed: str, processes: int, tests: str, budget: float) -> int:
    """Judge mutants of each room, and print those that survive."""
    begun = time.monotonic()
    drawn, equivalents = {room: draw(ROOT / room, number, seed, ()) for room in rooms}, read_equivalents()
    mutants = {mutant.key: mutant for each in drawn.values() for mutant in each if mutant.key not in equivalents}
    trials = list(trials_of(mutants.values(), processes, tests, budget))
    verdicts = judged(trials, processes)
    caught = verdicts.caught
    print_survivors(trials, caught)
    for room, each in drawn.items():
        keys = {mutant.key for mutant in each}
        print(
            f"{room}: {len(keys)} mutants, {len(keys & caught.keys())} caught, {len(keys & equivalents.keys())} "
            f"equivalent, {len(keys - caught.keys() - equivalents.keys())} left"
        )
    print(f"In {time.monotonic() - begun:.0f} seconds")
    return bool(verdicts.unsound)


def run_sample(processes: int) -> int:
    """Judge the mutants of the sample by the tests that caught them. Fail if fewer are caught than the last time."""
    sample = json.loads(SAMPLE.read_text())
    known = {mutant.key: mutant for path in sorted({row["path"] for row in sample["mutants"]}) for mutant in _of(path)}
    rows = [row for row in sample["mutants"] if row["key"] in known]
    trials = [Trial(known[row["key"]], row["tests"], 1.0) for row in rows]
    verdicts = judged(trials, processes)
    caught = verdicts.caught
    print_survivors(trials, caught)
    print(f"{len(caught)} of {len(trials)} mutants are caught; {len(sample['mutants']) - len(rows)} are gone.")
    lost = [row["key"] for row in rows if row["tests"] and row["key"] not in caught]
    if lost:
        places = ", ".join(f"{known[key].path}:{known[key].first} ({key})" for key in lost)
        print(f"FAILED: the tests no longer catch {places}. If others do: make mutants-sample ANEW=1.")
    if len(rows) < sample["least"]:
        print(f"FAILED: of the sample only {len(rows)} mutants are left. Draw it anew: make mutants-sample ANEW=1.")
    return bool(lost or verdicts.unsound) or len(rows) < sample["least"]


def _of(path: str) -> list[Mutant]:
    return mutants_of(ROOT / path, ROOT) if (ROOT / path).exists() else []


def draw_sample(number: int, seed: str, processes: int, tests: str) -> int:
    """Write the sample: mutants of the whole package, and the test that catches each."""
    trials = list(trials_of(draw(ROOT / "awp_publish", number, seed, read_equivalents()), processes, tests))
    caught = judged(trials, processes).caught
    print_survivors(trials, caught)
    rows = [
        {
            "key": trial.mutant.key,
            "path": trial.mutant.path,
            "tests": [caught[trial.mutant.key]] if trial.mutant.key in caught else [],
        }
        for trial in trials
    ]
    SAMPLE.write_text(json.dumps({"seed": seed, "least": number * 2 // 3, "mutants": rows}, indent=1) + "\n")
    print(f"{len(caught)} of {len(trials)} mutants are caught.")
    return 0


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("rooms", nargs="*", default=["awp_publish"], help="folders or files of the package")
    parser.add_argument("--number", type=int, default=60)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--tests", default="tests", help="the folder of tests that are recorded, if they have changed")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of tests, as recorded, for each mutant")
    parser.add_argument("--sample", action="store_true", help="judge the sample")
    parser.add_argument("--anew", action="store_true", help="draw the sample anew")
    options = parser.parse_args()
    if options.anew:
        return draw_sample(options.number, options.seed, options.processes, options.tests)
    if options.sample:
        return run_sample(options.processes)
    for room in options.rooms:
        if not (ROOT / room).exists():
            parser.error(f"There is no {room}. Rooms are named from the project's root: awp_publish/calls.")
    return run_rooms(options.rooms, options.number, options.seed, options.processes, options.tests, options.seconds)


if __name__ == "__main__":
    sys.exit(main())
