"""What the store has of jobs after each thing that happens to them: `store.txt`.

A line `> WHAT ARGUMENTS` is something that happens: each job has the name under which it was accepted. It is followed
by what came of it, how many runs were durable until then, and what is in the store, in seconds from then. --golden
writes these anew; read the change.
"""

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from awp_publish.calls.call import Principal
from awp_publish.plugins.jobs.job import JobResult, read_job
from awp_publish.plugins.jobs.jobs import ByteLimits, JobStore
from awp_publish.problems import Problem
from awp_publish.stores.memory import MemoryStore
from awp_publish.stores.store import JOB, Ran, Step
from tests.plugins.jobs.conftest import Clock

KNOWN = {"again": True, "once": False}
LIMITS = ByteLimits(of_caller=6000, of_address=4000, of_unknown=5600)


class CountedStore(MemoryStore):
    """A store that counts its runs, and those that have to be durable."""

    runs = durable = 0

    async def run(self, steps: Sequence[Step], *, durable: bool = False) -> Ran:
        self.runs, self.durable = self.runs + 1, self.durable + durable
        return await super().run(steps, durable=durable)


class Scene:
    """Jobs in a store whose clock stands still unless a line says otherwise."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.store = CountedStore(self.clock)
        self.jobs = self.open(absent_seconds=100.0)
        self.ids: dict[str, str] = {}
        self.woken = 0

    def open(self, **options: Any) -> JobStore:
        jobs = JobStore(
            self.store,
            clock=self.clock.day,
            lease_seconds=30.0,
            result_seconds=1000.0,
            pending_seconds=5000.0,
            most=4,
            most_of_caller=3,
            most_bytes=LIMITS,
            **options,
        )
        jobs.announced = "{jobs}ended", self.wake
        return jobs

    def wake(self) -> None:
        self.woken += 1

    async def act(self, line: str) -> Any:
        what, *arguments = line.split()
        job_id = self.ids.get(arguments[0], "") if arguments else ""
        match what, arguments[1:]:
            case "accept", [action, caller, *rest]:
                principal = Principal(caller).key if caller.isalpha() else ""
                job = await self.jobs.accept(
                    action, {"text": "x" * int(rest[0] if rest else 0)}, principal=principal, share=caller
                )
                self.ids[arguments[0]] = job.id
                return "accepted"
            case "sleep", []:
                self.clock.seconds += float(arguments[0])
                return "later"
            case "take", []:
                taken = await self.store.take(f"{{jobs}}{arguments[0]}", 30.0, 1)
                return [self.name(each) for each in taken]
            case "forget", []:
                return await self.jobs.forget()
            case "cancel", [*whose]:
                return (await self.jobs.cancel(job_id, whose[0] if whose else "")).status
            case "pick", []:
                return await self.jobs.pick(job_id, KNOWN.get) is not None
            case "reclaim", []:
                return await self.jobs.reclaim(job_id, KNOWN.get)
        stored = await self.jobs.look(job_id)
        assert stored is not None
        match what, arguments[1:]:
            case "begin", []:
                return await self.jobs.begin(stored, KNOWN[stored.job.action]) is not None
            case "beat", []:
                return await self.jobs.beat(stored) is not None
            case "put_back", [delay]:
                return await self.jobs.put_back(stored, float(delay))
            case "give_up", [*on_purpose]:
                again = await self.jobs.give_up(stored, KNOWN[stored.job.action], on_purpose=bool(on_purpose))
                return again is not None
            case "end", [size]:
                ended = await self.jobs.end(stored, "done", JobResult(200, (), b"x" * int(size)))
                return ended is not None and (ended.job.problem.code if ended.job.problem else ended.job.status)
        raise AssertionError(line)

    def name(self, text: str) -> str:
        for name, job_id in self.ids.items():
            text = text.replace(job_id, name)
        return text

    def contents(self) -> Iterator[str]:
        now = self.clock.seconds
        for key, (raw, until) in sorted(self.store._values.entries.items()):
            if until > now:
                job = read_job(raw)
                facts = [f"{job.status} {job.attempt}", *(["turn"] if job.has_turn else [])]
                facts += ["to be cancelled"] if job.cancel_requested else []
                yield f"{key.removeprefix(JOB)}: {' '.join(facts)} {job.reserved}B, for {until - now:g}"
        for key, (total, until) in sorted(self.store._windows.entries.items()):
            if until > now:
                yield f"{key} {total}B, for {until - now:g}"
        for queue, timed in sorted(self.store._queues.items()):
            members = sorted(timed.entries.items(), key=lambda pair: (pair[1][1], pair[0]))
            yield f"{queue}: " + ", ".join(f"{member} in {entry[1] - now:g}" for member, entry in members)


@pytest.fixture
def ids(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = count(1)
    for module in ("jobs",):
        monkeypatch.setattr(f"awp_publish.plugins.jobs.{module}.new_id", lambda: f"job-{next(numbers):018}")
    monkeypatch.setattr("awp_publish.plugins.jobs.jobs._absent_pause", lambda: 1.5)


async def test_the_store_keeps_jobs_as_in_the_transcript(ids: None, request: pytest.FixtureRequest) -> None:
    path, lines = Path(__file__).parent / "store.txt", list[str]()
    scene = Scene()
    for line in path.read_text().splitlines():
        if line.startswith("# "):
            scene = Scene()
        if line.startswith("# ") or not line:
            lines.append(line)
        if not line.startswith("> "):
            continue
        try:
            answer = str(await scene.act(line[2:]))
        except Problem as problem:
            answer = f"! {problem.code}: {scene.name(problem.detail)} {dict(problem.headers)}"
        runs = f"{scene.store.durable} of {scene.store.runs} runs durable"
        lines += [
            line,
            f"{answer}, {scene.woken} woken, {runs}",
            *(f"    {scene.name(each)}" for each in scene.contents()),
        ]
    if request.config.getoption("--golden"):
        path.write_text("\n".join(lines) + "\n")
    assert lines == path.read_text().splitlines()
