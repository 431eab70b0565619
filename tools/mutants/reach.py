"""Which tests execute a line, and how long each takes, as recorded by one run of the suite with coverage contexts."""

import ast
import difflib
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Final

from coverage.numbits import numbits_to_nums

from tools.mutants.mutate import Mutant

COVERAGE: Final = "[run]\nbranch = false\nparallel = true\ndisable_warnings = module-not-imported, no-data-collected\n"
PACKAGES: Final = ("awp_publish", "awp_publish_django")


def record(root: Path, folder: Path, tests: Iterable[str] = (), processes: int = 2) -> None:
    """Run test files, the whole suite if none is named, and keep in a folder what they execute.

    Those that are marked as slow are left out: others reach the same lines.
    """
    folder.mkdir(parents=True)
    (folder / "coverage.ini").write_text(COVERAGE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tools.mutants.seconds", "-p", "no:cacheprovider"]
    command += ["-n", str(processes), "--dist", "worksteal", "-m", "not slow", "--cov-context=test", "--cov-report="]
    command += ["--cov-fail-under=0", f"--cov-config={folder}/coverage.ini", *(f"--cov={name}" for name in PACKAGES)]
    environment = os.environ | {"COVERAGE_FILE": str(folder / "coverage"), "SECONDS_FILE": str(folder / "seconds.json")}
    subprocess.run([*command, *tests], cwd=root, env=environment, stdout=subprocess.DEVNULL, check=False)
    for path in sources(root):
        copy = folder / "sources" / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())


def sources(root: Path) -> Iterator[Path]:
    """The modules of the packages, and the tests."""
    for pattern in ("awp_publish/**/*.py", "contrib/awp_publish_django/**/*.py", "tests/**/test_*.py"):
        yield from sorted(root.glob(pattern))


def recorded(root: Path, folder: Path) -> list["Reach"]:
    """Return all that is recorded, after recording the test files that have changed since."""
    runs = sorted(folder.glob("run-*"))
    changed = [
        str(path.relative_to(root))
        for path in sources(root)
        if path.name.startswith("test_")
        and not any(_same(path, run / "sources" / path.relative_to(root)) for run in runs)
    ]
    if changed:
        print(f"Recording what {len(changed)} test files execute", flush=True)
        runs.append(folder / f"run-{len(runs):03}")
        record(root, runs[-1], changed if len(runs) > 1 else ())
    return [Reach(run, root) for run in runs]


def _same(path: Path, other: Path) -> bool:
    return other.exists() and path.read_bytes() == other.read_bytes()


class Reach:
    """What one recorded run knows."""

    def __init__(self, folder: Path, root: Path) -> None:
        self._folder, self._root = folder, root
        self._data = sqlite3.connect(f"file:{folder / 'coverage'}?mode=ro", uri=True)
        self._contexts: dict[int, str] = {
            number: context.rpartition("|")[0] for number, context in self._data.execute("SELECT * FROM context")
        }
        self._files: dict[str, int] = {}
        for number, path in self._data.execute("SELECT id, path FROM file"):
            parts = Path(path).parts
            at = max(index for index, part in enumerate(parts) if part in PACKAGES)
            at -= parts[at - 1] == "contrib"
            self._files["/".join(parts[at:])] = number
        seconds = json.loads((folder / "seconds.json").read_text())
        self.seconds: dict[str, float] = {test: sum(parts) for test, parts in seconds.items()}

    def tests_of(self, mutant: Mutant) -> set[str]:
        """Return the tests that execute a mutant.

        What is executed when its module is imported belongs to the tests of the lines that name it.
        """
        statement = mutant.statement
        found = self._at(mutant.path, mutant.first, mutant.last)
        found = found or self._at(mutant.path, statement.lineno, statement.end_lineno or statement.lineno)
        if not found:
            words = re.findall(r"[A-Za-z_]\w+", _names(statement))
            for path, source in self._sources.items():
                lines = [number for number, line in enumerate(source, 1) if any(word in line for word in words)]
                for number in lines:
                    found |= self._at(path, number, number)
        return found or self._at(mutant.path, 1, 5000)

    @cached_property
    def _sources(self) -> dict[str, Sequence[str]]:
        return {
            path: (self._root / path).read_text().splitlines() for path in self._files if (self._root / path).exists()
        }

    def _at(self, path: str, first: int, last: int) -> set[str]:
        lines = {self._was(path).get(number, -1) for number in range(first, min(last, first + 5000) + 1)}
        return {test for number in lines for test in self._lines(path).get(number, ())}

    @cache  # noqa: B019
    def _lines(self, path: str) -> dict[int, set[str]]:
        rows = self._data.execute(
            "SELECT context_id, numbits FROM line_bits WHERE file_id = ?", (self._files.get(path, -1),)
        )
        tests: dict[int, set[str]] = defaultdict(set)
        for context, bits in rows:
            if name := self._contexts[context]:
                for number in numbits_to_nums(bits):
                    tests[number].add(name)
        return tests

    @cache  # noqa: B019
    def _was(self, path: str) -> dict[int, int]:
        """The number that a line had when it was recorded, by the one that it has now."""
        copy = self._folder / "sources" / path
        before = copy.read_text().splitlines() if copy.exists() else []
        now = self._sources.get(path, ())
        blocks = difflib.SequenceMatcher(None, before, now, autojunk=False).get_matching_blocks()
        return {block.b + at + 1: block.a + at + 1 for block in blocks for at in range(block.size)}


def in_order(seconds: Mapping[str, float]) -> list[str]:
    """Return tests, the fastest first, but one case of each before any second."""
    cases: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for test, taken in seconds.items():
        cases[test.partition("[")[0]].append((taken, test))
    return [
        test
        for _, _, test in sorted((rank, *case) for each in cases.values() for rank, case in enumerate(sorted(each)))
    ]


def _names(statement: ast.stmt) -> str:
    match statement:
        case ast.Assign(targets=targets):
            return " ".join(ast.unparse(target) for target in targets)
        case ast.AnnAssign(target=target):
            return ast.unparse(target)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
    return str(getattr(statement, "function", "")).replace(".", " ")
