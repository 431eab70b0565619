"""Whether tests catch mutants, in processes forked from one that has imported the project and collected the tests.

A mutant takes the place of the code of its function. What is made when a module is imported cannot be judged here, nor
what only processes that tests start would notice.
"""

import gc
import json
import os
import resource
import signal
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Final

import pytest

from tools.mutants.mutate import Mutant

PATIENCE: Final = 15
"""Seconds of the processor that a mutant is given on top of twice what its tests took when they were recorded."""

IDLE: Final = 30.0
"""Seconds without any work after which tests are taken to wait for ever."""

MORE: Final = 20
"""Cases of a test, most of which were not recorded. At most twice as many are run for a mutant."""


UNSOUND: Final = "unsound"
"""What is written of a test that fails without a mutant, is skipped or is not collected."""


class UnswappableError(Exception):
    """The code of a mutant is none of a function that lives."""


@dataclass(eq=False)
class _Child:
    """A process that runs tests, of a mutant or, to see whether they are sound, of none."""

    process: int
    slot: int
    index: int
    culprit: str = ""
    ticks: str = ""
    since: float = field(default_factory=time.monotonic)
    """Since when it has used the processor for as many ticks."""


@dataclass(eq=False)
class Warm:
    """A plug-in of pytest that judges mutants in place of running the tests."""

    trials: Sequence[tuple[Mutant, Sequence[str], float]]
    """Each mutant with the tests that may catch it, and the seconds these take."""

    root: Path
    folder: Path
    processes: int
    results: Path
    sound: dict[str, bool] = field(default_factory=dict)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._session = session
        self._items = {item.nodeid: item for item in session.items}
        self._cases: dict[str, list[str]] = defaultdict(list)
        for test in self._items:
            self._cases[test.partition("[")[0]].append(test)
        for name in {".".join(Path(mutant.path).with_suffix("").parts) for mutant, _, _ in self.trials}:
            with suppress(Exception):
                import_module(name.removesuffix(".__init__").removeprefix("contrib."))
        gc.unfreeze()
        self._functions = functions_in(self.root)
        gc.collect()
        gc.freeze()
        for test in {test for _, tests, _ in self.trials for test in tests if test not in self._items}:
            self._report(test, "not collected")
        waiting, children, slots = list(range(len(self.trials)))[::-1], list[_Child](), list(range(self.processes))
        while waiting or children:
            while waiting and slots:
                children.append(self._start(waiting.pop(), slots.pop()))
            time.sleep(0.02)
            for child in [child for child in children if self._has_ended(child)]:
                children.remove(child)
                slots.append(child.slot)
                if (again := self._judge(child)) is not None:
                    waiting.append(again)
        return True

    def _start(self, index: int, slot: int) -> _Child:
        mutant, tests, seconds = self.trials[index]
        suspect = self._suspects.pop(index, "")
        if not suspect:
            names = dict.fromkeys(test.partition("[")[0] for test in tests)
            more = [case for name in names for case in self._cases[name][:MORE] if case not in tests]
            tests = [test for test in [*tests, *more[: 2 * MORE]] if self.sound.get(test, True)]
        if process := os.fork():
            return _Child(process, slot, index, suspect)
        limit = PATIENCE + int(2 * seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        self._run(slot, None if suspect else mutant, [suspect] if suspect else tests)
        raise AssertionError("unreachable")

    _suspects: dict[int, str] = field(default_factory=dict)

    def _has_ended(self, child: _Child) -> bool:
        now, ticks = time.monotonic(), _ticks(child.process)
        if ticks != child.ticks:
            child.ticks, child.since = ticks, now
        has_ended = os.waitid(os.P_PID, child.process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        if has_ended or now > child.since + IDLE:
            with suppress(ProcessLookupError):
                os.killpg(child.process, signal.SIGKILL)  # what it has started, too
            os.waitpid(child.process, 0)
            return True
        return False

    def _judge(self, child: _Child) -> int | None:
        """Write what came of a mutant, or return its number if it has to be tried again."""
        state = self._state(child.slot)
        lines = state.read_text().splitlines() if state.exists() else []
        verdict = json.loads(lines[-1]) if lines else {"died": ""}
        kind, test = next(iter(verdict.items()))
        if child.culprit:
            self.sound[child.culprit] = kind == "passed"
            if kind != "passed":
                report = (self.folder / f"output-{child.slot}").read_text(errors="replace")
                print(f"Without a mutant {child.culprit} has {kind}:\n{report[-2000:]}", flush=True)
                if child.culprit in self.trials[child.index][1]:
                    self._report(child.culprit, kind)
                return child.index
            self._write(child.index, "caught", child.culprit)
        elif kind in {"failed", "started"}:
            if self.sound.get(test):
                self._write(child.index, "caught", test)
            else:
                self._suspects[child.index] = test
                return child.index
        else:
            self._write(child.index, kind, "")
        return None

    def _report(self, test: str, kind: str) -> None:
        """Write that a test, which is to judge a mutant, cannot."""
        self.sound[test] = False
        with self.results.open("a") as file:
            file.write(json.dumps([test, UNSOUND, kind]) + "\n")

    def _write(self, index: int, kind: str, test: str) -> None:
        with self.results.open("a") as file:
            file.write(json.dumps([self.trials[index][0].key, kind, test]) + "\n")

    def _state(self, slot: int) -> Path:
        return self.folder / f"state-{slot}"

    def _run(self, slot: int, mutant: Mutant | None, tests: Sequence[str]) -> None:
        try:
            os.setsid()
            state = os.open(self._state(slot), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            output = os.open(self.folder / f"output-{slot}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            for stream in (1, 2):
                os.dup2(output, stream)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.environ["PYTEST_XDIST_WORKER"] = f"gw{os.getpid()}"  # with databases of its own
            self._session.config._tmp_path_factory._given_basetemp = self.folder / f"tmp-{slot}"  # type: ignore[attr-defined]
            try:
                if mutant is not None:
                    swap(mutant, self.root, self._functions)
            except UnswappableError:
                tell(state, "unswappable", "")
                os._exit(0)
            self._session.config.pluginmanager.register(_Reporter(state))
            items = [self._items[test] for test in tests if test in self._items]
            for item, after in zip(items, [*items[1:], None], strict=False):
                tell(state, "started", item.nodeid)
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            tell(state, "passed", "")
        except BaseException:
            os.write(1, traceback.format_exc().encode(errors="replace"))
        finally:
            os._exit(0)


def _ticks(process: int) -> str:
    """Return how long a process has used the processor, as far as the system tells."""
    with suppress(OSError):
        return " ".join(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:15])
    return ""


@dataclass(eq=False)
class _Reporter:
    state: int

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            os.write(1, report.longreprtext.encode(errors="replace"))
            tell(self.state, "failed", report.nodeid)
            os._exit(0)


def tell(state: int, kind: str, test: str) -> None:
    """Write what has happened to the file of a process."""
    os.write(state, json.dumps({kind: test}).encode() + b"\n")


Functions = Mapping[tuple[str, str], Sequence[FunctionType]]


def functions_in(folder: Path) -> Functions:
    """Return the living functions of the modules in a folder, by file and qualified name."""
    functions: dict[tuple[str, str], list[FunctionType]] = defaultdict(list)
    for each in gc.get_objects():
        if type(each) is FunctionType and each.__code__.co_filename.startswith(str(folder)):
            functions[each.__code__.co_filename, each.__code__.co_qualname].append(each)
    return functions


def swap(mutant: Mutant, root: Path, functions: Functions) -> None:
    """Give the living functions of a module the code that they have in a mutant."""
    path = str(root / mutant.path)
    codes = [
        dict(_codes(compile(source, path, "exec", dont_inherit=True))) for source in (mutant.source, mutant.mutated)
    ]
    changed = [key for key in codes[0] if key in codes[1] and not _same(codes[0][key], codes[1][key])]
    swapped = 0
    for name, number in changed:
        before, after = codes[0][name, number], codes[1][name, number]
        for function in functions.get((path, name), ()):
            if function.__code__.co_firstlineno != before.co_firstlineno:
                continue
            if function.__code__.co_freevars != after.co_freevars:
                raise UnswappableError
            function.__code__ = after
            swapped += 1
    if not swapped:
        raise UnswappableError


def _codes(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    """Yield all code in a module, each with its qualified name and which one of that name it is."""
    counts, waiting = Counter[str](), [code]
    while waiting:
        for each in waiting.pop(0).co_consts:
            if isinstance(each, CodeType):
                yield (each.co_qualname, counts[each.co_qualname]), each
                counts[each.co_qualname] += 1
                waiting.append(each)


def _same(code: CodeType, other: CodeType) -> bool:
    """Whether code does the same, wherever it stands."""
    return _meaning(code) == _meaning(other)


def _meaning(code: CodeType) -> tuple[Any, ...]:
    constants = tuple(
        _meaning(each) if isinstance(each, CodeType) else (type(each), repr(each)) for each in code.co_consts
    )
    return code.co_code, constants, code.co_names, code.co_freevars, code.co_cellvars, code.co_varnames


def judge_warm(
    trials: Sequence[tuple[Mutant, Sequence[str], float]], root: Path, folder: Path, processes: int
) -> Mapping[str, tuple[str, str]]:
    """Return what came of mutants, and the test that caught each. The project is a copy, and this process is a fork."""
    results = folder / "results.jsonl"
    results.unlink(missing_ok=True)
    files = list(dict.fromkeys(test.partition("::")[0] for _, tests, _ in trials for test in tests))
    process = os.fork()
    if process == 0:
        from tools.mutants.judge import become_pytest

        plugin = Warm(trials, root, folder, processes, results)
        options = ["-s", "--continue-on-collection-errors", "-m", "not slow"]
        become_pytest(root, folder / "output", [*options, *(file for file in files if (root / file).exists())], plugin)
    os.waitpid(process, 0)
    rows = results.read_text().splitlines() if results.exists() else []
    return {key: (kind, test) for key, kind, test in map(json.loads, rows)}
