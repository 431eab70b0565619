"""Which tests execute a line, and how long each takes, as recorded by runs of test files on an instrumented copy."""

import ast
import difflib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Final

from tools.mutants.instrument import instrument_project
from tools.mutants.judge import copy_project, environment_of
from tools.mutants.mutate import Mutant

PACKAGES: Final = (
    "awp_publish",
    "contrib/awp_publish_django",
    "contrib/awp_publish_fastapi",
    "contrib/awp_publish_openapi",
)
FILES_AT_ONCE: Final = 60
"""Test files that are recorded by one run: an interruption loses no more."""

ELSEWHERE: Final = {
    "client": "agent_client",
    "plugins/sqlite": "stores",
    "plugins/postgres": "stores",
    "plugins/redis": "stores",
    "plugins/woa": "plugins/woa|doors",
    "plugins/plain": "plugins/plain|doors",
    "awp_publish_django": "django",
    "awp_publish_fastapi": "declare",
    "awp_publish_openapi": "declare",
}
"""Folders of tests that are not called as the room."""

LONG: Final = 0.5
"""Recorded seconds of tests that come last."""


def recorded(root: Path, folder: Path, processes: int = 2, tests: str = "tests") -> list["Reach"]:
    """Return all that is recorded, after recording the test files that have changed since.

    Tests that are marked as slow or start servers are left out, since others reach the same lines, and most cases of
    tables that take long.
    """
    folder.mkdir(parents=True, exist_ok=True)
    runs = {run: json.loads((run / "tests.json").read_text()) for run in sorted(folder.glob("run-*"))}
    known = {path: digest for files in runs.values() for path, digest in files.items()}
    now = {str(path.relative_to(root)): _digest(path) for path in sorted(root.glob("tests/**/test_*.py"))}
    waiting = {
        name: digest
        for name, digest in now.items()
        if known.get(name) != digest and (root / name).is_relative_to(root / tests)
    }
    names = list(waiting)
    for begin in range(0, len(names), FILES_AT_ONCE):
        batch = names[begin : begin + FILES_AT_ONCE]
        print(f"Recording what {batch[0]} to {batch[-1]} execute: {begin} of {len(names)} files", flush=True)
        recording = _record(root, folder, batch, processes)
        done = batch if len(list(recording.glob("*.ended"))) == min(processes, len(batch)) else _begun(recording)
        (recording / "tests.json").write_text(json.dumps({name: waiting[name] for name in done}))
        run = folder / f"run-{time.time_ns()}"
        recording.rename(run)
        runs[run] = {name: waiting[name] for name in done}
    return [Reach(run, root, {name for name in files if files[name] == now.get(name)}) for run, files in runs.items()]


def _begun(recording: Path) -> list[str]:
    """Return the test files of which something was recorded, if a process has not come to its end."""
    lines = [line for part in recording.glob("*.jsonl") for line in part.read_text().splitlines()]
    return list(dict.fromkeys(json.loads(line)[0].partition("::")[0] for line in lines))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _record(root: Path, folder: Path, tests: Sequence[str], processes: int) -> Path:
    recording, copy = folder / f"recording-{os.getpid()}", folder / f"instrumented-{os.getpid()}"
    shutil.rmtree(recording, ignore_errors=True)
    recording.mkdir()
    copy_project(root, copy)
    paths = [str(path.relative_to(copy)) for name in PACKAGES for path in sorted((copy / name).rglob("*.py"))]
    for path in paths:
        shutil.copyfile(root / path, copy / path)
        (recording / "sources" / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / path, recording / "sources" / path)
    (recording / "marks.json").write_text(json.dumps(instrument_project(copy, paths)))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tools.mutants.recorder", "-p", "no:cacheprovider"]
    command += ["-p", "no:cov", "-m", "not slow"]
    environment = os.environ | environment_of(copy) | {"RECORDED": str(recording)}
    shares = [share for number in range(processes) if (share := tests[number::processes])]
    runs = [
        subprocess.Popen([*command, *share], cwd=copy, env=environment, stdout=subprocess.DEVNULL) for share in shares
    ]
    for run in runs:
        run.wait()
    shutil.rmtree(copy)
    return recording


class Reach:
    """What one recorded run knows."""

    def __init__(self, folder: Path, root: Path, files: Collection[str]) -> None:
        self._folder, self._root = folder, root
        self._marks: dict[str, list[tuple[int, int, int]]] = json.loads((folder / "marks.json").read_text())
        self.seconds: dict[str, float] = {}
        self.breadth: dict[str, int] = {}
        """How many parts of the package a test passes: one that passes few is about them."""
        self._tests: dict[int, set[str]] = defaultdict(set)
        for part in folder.glob("*.jsonl"):
            for line in part.read_text().splitlines():
                test, seconds, numbers = json.loads(line)
                if test.partition("::")[0] not in files:
                    continue  # it has changed since, or is gone
                self.seconds[test], self.breadth[test] = seconds, len(numbers)
                for number in numbers:
                    self._tests[number].add(test)

    def tests_of(self, mutant: Mutant) -> set[str]:
        """Return the tests that execute a mutant.

        What is executed when its module is imported belongs to the tests of the functions that name it, or else to
        those of the module.
        """
        found = self._at(mutant.path, mutant.first)
        if found is not None:
            return found
        found = set().union(*self._naming(mutant))
        if not found:
            found = {test for number, _, _ in self._marks.get(mutant.path, ()) for test in self._tests[number]}
        return found

    def has_in_function(self, mutant: Mutant) -> bool:
        """Whether a mutant is in a function, so that it is known which tests execute it."""
        return self._at(mutant.path, mutant.first) is not None

    def _naming(self, mutant: Mutant) -> list[set[str]]:
        """Return the tests of each line that names what a statement defines."""
        words = set(re.findall(r"[A-Za-z_]\w+", _names(mutant.statement)))
        places = [place for word in words for place in _places(self._root).get(word, ())]
        return [tests for path, number in places if (tests := self._at(path, number))]

    def groups_of(self, mutant: Mutant) -> list[set[str]]:
        """Return the tests that enter each part of a mutant's function, those of its statement first."""
        was, marks = self._was(mutant.path), self._marks.get(mutant.path, ())
        line = was.get(mutant.first, -1)
        around = [(first, last) for _, first, last in marks if first <= line <= last]
        if not around:
            return sorted(self._naming(mutant), key=len)
        begin, end = min(around)
        lines = {was.get(number) for number in range(mutant.statement.lineno + 1, mutant.last + 1)}
        lines |= {was.get(number) for number in range(mutant.first, (mutant.statement.end_lineno or mutant.last) + 1)}
        parts = [(first not in lines, self._tests[number]) for number, first, _ in marks if begin <= first <= end]
        return [tests for _, tests in sorted(parts, key=lambda part: (part[0], len(part[1])))]

    def _at(self, path: str, now: int) -> set[str] | None:
        """Return the tests that execute a line, or else those that come closest. None if no function has it."""
        line = self._was(path).get(now, -1)
        around = [(first, number) for number, first, last in self._marks.get(path, ()) if first <= line <= last]
        found = [self._tests[number] for _, number in sorted(around, reverse=True)]
        return next(filter(None, found), set()) if around else None

    @cache  # noqa: B019
    def _was(self, path: str) -> dict[int, int]:
        """The number that a line had when it was recorded, by the one that it has now; a new one has that before it."""
        copy = self._folder / "sources" / path
        before = copy.read_text().splitlines() if copy.exists() else []
        now = (self._root / path).read_text().splitlines() if (self._root / path).exists() else []
        if before == now:
            return {number: number for number in range(1, len(now) + 1)}
        blocks = difflib.SequenceMatcher(None, before, now, autojunk=False).get_matching_blocks()
        lines = {block.b + at + 1: block.a + at + 1 for block in blocks for at in range(block.size)}
        for number in range(2, len(now) + 1):
            lines.setdefault(number, lines.get(number - 1, -1))
        return lines


@cache
def _places(root: Path) -> Mapping[str, Sequence[tuple[str, int]]]:
    """Return where each name stands in the packages."""
    places: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for path in (path for name in PACKAGES for path in (root / name).rglob("*.py")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for word in set(re.findall(r"[A-Za-z_]\w+", line)):
                places[word].append((str(path.relative_to(root)), number))
    return places


def transcripts_of(mutant: Mutant, seconds: Mapping[str, float]) -> list[str]:
    """Return the tests of a mutant's room that compare whole what it gives, and then those of all documents."""
    room = "/".join(mutant.path.split("/")[1 : 3 if "/plugins/" in mutant.path else 2])
    rooms = "|".join((ELSEWHERE.get(room, room), *(["checks"] if re.search(r"/checks[/.]", mutant.path) else [])))
    own = re.compile(rf"tests/(?:{rooms})/(?:.*/)?test_[a-z0-9_]*(?:transcript|whole|exchanges)")
    documents = [test for test in seconds if test.startswith("tests/documents/test_whole")]
    tests = dict.fromkeys((*filter(own.match, seconds), *documents))
    return sorted(tests, key=lambda test: (own.match(test) is None, seconds[test]))


def in_order(
    mutant: Mutant, seconds: Mapping[str, float], breadth: Mapping[str, int], groups: Sequence[set[str]]
) -> list[str]:
    """Return tests: one of each group, then a second one, and so on.

    Of a group those come first that share words with the place of a mutant, in turn with those that pass the fewest
    parts of the package. What takes long comes last.
    """
    function = str(getattr(mutant.statement, "function", ""))
    words = {word.rstrip("s") for word in re.split(r"[^a-z]+", f"{mutant.path} {function}".lower()) if len(word) > 3}
    words -= {"awp", "publish", "plugin", "http"}
    shared = {test: sum(word in test.lower() for word in words) for test in seconds}
    by_words = sorted(seconds, key=lambda test: (-shared[test], seconds[test]))
    by_breadth = sorted(seconds, key=lambda test: (breadth[test], seconds[test]))
    orders = [by_words, by_breadth]
    rows = [[test for test in order if test in group] for group in (*groups, seconds.keys()) for order in orders]
    tests = dict.fromkeys(test for column in zip_longest(*rows) for test in column if test is not None)
    return sorted(tests, key=lambda test: seconds[test] > LONG)


def _names(statement: ast.stmt) -> str:
    match statement:
        case ast.Assign(targets=targets):
            return " ".join(ast.unparse(target) for target in targets)
        case ast.AnnAssign(target=target):
            return ast.unparse(target)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
    return str(getattr(statement, "function", "")).replace(".", " ")
