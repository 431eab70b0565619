"""What workers do side by side, second by second of a virtual clock: `workers.txt`.

A line `> WHAT ARGUMENTS` is something that happens; `> wait 5` lets five seconds pass. Below it stands all that
follows: the second, who it was, the steps at the store, what handlers do, and what is logged. A worker is what its
first letter says: `w1` runs jobs, `q1` sends them to taskiq, `r1` receives them from there. --golden writes the text
anew; read the change.
"""

import asyncio
import logging
import re
import signal
from collections.abc import AsyncGenerator, Iterator, Sequence
from itertools import count, groupby
from pathlib import Path
from typing import Any

import pytest
from taskiq import AsyncBroker, BrokerMessage

from awp_publish.calls.progress import report_progress
from awp_publish.plugins.jobs.job import Job, JobResult, read_job
from awp_publish.plugins.jobs.jobs import JobStore
from awp_publish.plugins.jobs.runner import Runner
from awp_publish.plugins.jobs.taskiq_queue import TaskiqQueue, serve_worker
from awp_publish.plugins.jobs.worker import Worker
from awp_publish.problems import Problem, Refused, StoreUnavailable
from awp_publish.stores.memory import MemoryStore
from awp_publish.stores.store import JOB, Look, Ran, Schedule, Step, Swap
from tests.plugins.jobs.conftest import REPEATABLE, Clock
from tests.virtual_time import run_virtually

QUIET = ("{jobs}all", "{jobs}forgotten", "{jobs}of", "{jobs}turn")
"""Queues whose members `store.txt` shows."""


class Scene:
    """Workers that share a store and a queue."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.events: list[tuple[float, str, str]] = []
        self.ids: dict[str, str] = {}
        self.trouble: Exception | None = None
        self.clock = Clock()
        self.store = MemoryStore(self.loop.time)
        self.broker = Broker(self)
        self.jobs = self.open("client")
        self.workers: dict[str, Any] = {}

    def open(self, who: str, lease: float = 30.0, beat: float = 2.0) -> JobStore:
        def now() -> Any:
            self.clock.seconds = self.loop.time()
            return self.clock.day()

        store = WatchedStore(self, who)
        return JobStore(store, clock=now, lease_seconds=lease, beat_seconds=beat, absent_seconds=20.0)

    def note(self, who: str, text: str) -> None:
        self.events.append((self.loop.time(), who, text))

    def start(self, who: str, lease: float = 30.0, beat: float = 2.0, **options: float) -> str:
        jobs = self.jobs if "here" in who else self.open(who, lease, beat)
        actions = {**REPEATABLE, **({"new": False} if "new" in who else {})}
        queue = TaskiqQueue(jobs, self.broker, actions.get, queue_name="unused")
        runner = Runner(jobs, lambda job: self.handle(who, job), actions.get)
        if who[0] == "r":
            self.workers[who] = self.loop.create_task(serve_worker(queue, runner, **options))  # type: ignore[arg-type]
            return ""
        worker = Worker(jobs, queue if who[0] == "q" else runner, **options)  # type: ignore[arg-type]
        before = worker.is_working
        worker.start()
        self.workers[who] = worker
        return f"{before}, {worker.is_working}".replace("False", "idle").replace("True", "working")

    async def handle(self, who: str, job: Job) -> Any:
        """Do the words of a job: seconds to sleep, or what to do."""
        name, given = self.name(job.id), job.input["does"]
        self.note(who, f"{name} is run")
        done = '"done"'
        try:
            for word in str(given).split():
                match word.partition(":"):
                    case "raise", _, _:
                        raise RuntimeError("the press is on fire")
                    case "refuse", _, _:
                        raise Refused("No paper.")
                    case "return", _, _:
                        return Refused("No ink.")
                    case "cancel", _, _:
                        raise asyncio.CancelledError
                    case "report", _, fraction:
                        report_progress(float(fraction), "so far")
                    case "stubborn", _, seconds:
                        await self.sleep_through(float(seconds))
                    case "saves", _, seconds:
                        done = '"saved"' if await self.sleep_through(float(seconds), wakes=True) else done
                    case _:
                        await asyncio.sleep(float(word))
        except BaseException as error:
            self.note(who, f"{name} is left by {type(error).__name__}")
            raise
        self.note(who, f"{name} returns {done}")
        return JobResult(200, (), done.encode())

    async def sleep_through(self, seconds: float, *, wakes: bool = False) -> bool:
        """Sleep in spite of cancellations, or, if it `wakes`, until the first. Return whether there was one."""
        end, is_cancelled = self.loop.time() + seconds, False
        while (left := end - self.loop.time()) > 0 and not (wakes and is_cancelled):
            try:
                await asyncio.sleep(left)
            except asyncio.CancelledError:
                is_cancelled = True
        return is_cancelled

    async def act(self, line: str) -> object:
        what, *words = line.split()
        match what, words:
            case "start", [who, *rest]:
                pairs = (option.split("=") for option in rest)
                options = {name: int(value) if value.isdigit() else float(value) for name, value in pairs}
                began = self.start(who, **options)
                await asyncio.sleep(0)
                return began
            case "accept", [name, action, caller, *does]:
                principal = f"user:{caller}"
                job = await self.jobs.accept(action, {"does": " ".join(does)}, principal=principal)
                self.ids[name] = job.id
            case "wait", [seconds]:
                await asyncio.sleep(float(seconds))
            case "cancel", [name]:
                job = await self.jobs.cancel(self.ids[name], self.owner(name))
                return f"{job.status}, {'to be cancelled' if job.cancel_requested else 'settled'}"
            case "reclaim", [who, name]:
                await (self.jobs if who == "here" else self.open(who)).reclaim(self.ids[name], REPEATABLE.get)
            case "damage", [name]:
                self.store._values.entries[JOB + self.ids[name]] = (b"damaged", self.loop.time() + 900)
            case "deliver", [name]:
                await self.broker.kick(self.message_of(self.ids.get(name, name)))
            case "trouble", [kind]:
                troubles = {"away": StoreUnavailable("The store is away."), "bug": RuntimeError("a bug"), "none": None}
                self.trouble = troubles[kind]
            case "queue", [mode]:
                self.broker.mode = mode
                self.broker.waiting.put_nowait(None)  # whoever listens notices
            case "stop", [who, *grace]:
                worker = self.workers[who]
                if isinstance(worker, Worker):
                    await worker.stop(*map(float, grace))
                    return f"stopped, {'working' if worker.is_working else 'idle'}"
                signal.raise_signal(signal.SIGTERM)
                await worker
            case "kill", [who]:
                await self.kill(who)
            case _:
                raise AssertionError(line)
        return None

    def message_of(self, job_id: str) -> BrokerMessage:
        task = next(iter(self.broker.local_task_registry.values()))
        return self.broker.formatter.dumps(task.kicker()._prepare_message(job_id))

    async def kill(self, who: str) -> None:
        """End a worker's tasks, as a loop that is torn down does."""
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert list(self.workers) == [who], "all tasks of the loop are ended"
        del self.workers[who]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def owner(self, name: str) -> str:
        raw, _ = self.store._values.entries[JOB + self.ids[name]]
        return read_job(raw).principal

    def name(self, text: str) -> str:
        for name, job_id in self.ids.items():
            text = text.replace(job_id, name)
        return text

    def flush(self) -> Iterator[str]:
        """Return what has happened: a line for all that one does at a time, in the order of each job."""
        events = [(round(at, 3), who, self.name(text)) for at, who, text in self.events]
        self.events.clear()
        lines: list[tuple[str, list[float]]] = []
        for (at, who), group in groupby(sorted(events, key=lambda event: event[:2]), lambda event: event[:2]):
            texts = sorted((text for _, _, text in group), key=self.job_of)
            line = f"{who}: {'; '.join(texts)}"
            if lines and lines[-1][0] == line:
                lines[-1][1].append(at)
            else:
                lines.append((line, [at]))
        for line, times in lines:
            many = f"{times[0]:g} to {times[-1]:g}, {len(times)} times, "
            yield f"    {many if len(times) > 2 else ' and '.join(f'{at:g}' for at in times) + ' '}{line}"

    def job_of(self, text: str) -> str:
        return min((name for name in self.ids if re.search(rf"\b{name}\b", text)), default="")

    async def close(self) -> Iterator[str]:
        """Stop all workers. Return what the jobs are."""
        self.trouble = None
        for worker in self.workers.values():
            if isinstance(worker, Worker):
                await worker.stop(0.0)
            else:
                worker.cancel()
        self.events.clear()
        return iter([f"    {name}: {self.state(name)}" for name in self.ids])

    def state(self, name: str) -> str:
        raw, _ = self.store._values.entries.get(JOB + self.ids[name], (b"forgotten", 0.0))
        return state_of(raw) if raw.startswith(b"{") else raw.decode()


def state_of(raw: bytes) -> str:
    job = read_job(raw)
    facts = [job.status, str(job.attempt), *(["turn"] if job.has_turn else [])]
    facts += ["to be cancelled"] if job.cancel_requested else []
    facts += [f"{job.progress.fraction:g}"] if job.progress else []
    facts += [job.result.body.decode()] if job.result else []
    facts += [f"{job.problem.code} {job.problem.detail}"] if job.problem else []
    return " ".join(facts)


class WatchedStore(MemoryStore):
    """What one process sees of the store of a scene."""

    def __init__(self, scene: Scene, who: str) -> None:
        super().__init__()
        self._scene, self._who, self._inner = scene, who, scene.store

    async def run(self, steps: Sequence[Step], *, durable: bool = False) -> Ran:
        await asyncio.sleep(0)
        texts = [text for step in steps if (text := _text_of(step))]
        text = f"{'durably ' if durable else ''}{', '.join(texts)}"
        if self._scene.trouble is not None:
            self._scene.note(self._who, f"{text} fails")
            raise self._scene.trouble
        ran = await self._inner.run(steps, durable=durable)
        self._scene.note(self._who, text if ran.failed is None else f"{text} is refused at {ran.failed}")
        return ran

    async def take(self, queue: str, lease: float, most: int) -> tuple[str, ...]:
        await asyncio.sleep(0)
        asked = f"{queue.removeprefix('{jobs}')} {most} for {lease:g}"
        if self._scene.trouble is not None:
            self._scene.note(self._who, f"take {asked} fails")
            raise self._scene.trouble
        members = await self._inner.take(queue, lease, most)
        if members or not queue.startswith(QUIET):
            self._scene.note(self._who, f"take {asked}{' = ' if members else ''}{' '.join(members)}")
        return members


def _text_of(step: Step) -> str:
    match step:
        case Look(key):
            return f"look {key.removeprefix(JOB)}"
        case Swap(key, _, bytes(new)):
            return f"{key.removeprefix(JOB)}={state_of(new)}"
        case Schedule(queue, member, delay, _) if not queue.startswith(QUIET):
            return f"{member} {queue.removeprefix('{jobs}')} in {delay:g}"
    return ""


class Broker(AsyncBroker):
    """A queue of taskiq in this process, which may be away, or hang."""

    def __init__(self, scene: Scene) -> None:
        super().__init__()
        self._scene = scene
        self.waiting: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.mode = "here"

    async def startup(self) -> None:
        await super().startup()
        self._scene.note("queue", "opened")

    async def shutdown(self) -> None:
        await super().shutdown()
        self._scene.note("queue", "closed")

    async def kick(self, message: BrokerMessage) -> None:
        if self.mode == "away":
            raise ConnectionError
        if self.mode == "hangs":
            await asyncio.Event().wait()
        self._scene.note("queue", "has a message")
        self.waiting.put_nowait(message.message)

    async def listen(self) -> AsyncGenerator[bytes, None]:
        self._scene.note("queue", "is listened to")
        while True:
            if self.mode == "away":
                raise ConnectionError
            if (message := await self.waiting.get()) is not None:
                yield message


class Log(logging.Handler):
    """What is logged, as events of a scene."""

    scene: Scene | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if self.scene is not None:
            error = f" ({record.exc_info[1]!r})" if record.exc_info else ""
            self.scene.note("log", f"{record.levelname} {record.getMessage()}{error}")


@pytest.fixture
def log() -> Iterator[Log]:
    logger, handler = logging.getLogger("awp_publish.plugins.jobs"), Log()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


def test_workers_act_side_by_side_as_in_the_transcript(request, monkeypatch, log):
    numbers = count(1)
    monkeypatch.setattr("awp_publish.plugins.jobs.jobs.new_id", lambda: f"job-{next(numbers):018}")
    monkeypatch.setattr("awp_publish.plugins.jobs.jobs._absent_pause", lambda: 1.5)
    path, lines = Path(__file__).parent / "workers.txt", list[str]()
    for scene in re.split(r"(?m)^(?=# )", path.read_text())[1:]:
        title, *rest = scene.splitlines()
        lines += ["", title] if lines else [title]
        lines += run_virtually(play([line for line in rest if line.startswith("> ")], log))
    if request.config.getoption("--golden"):
        path.write_text("\n".join(lines) + "\n")
    assert lines == path.read_text().splitlines()


async def play(acts: Sequence[str], log: Log) -> list[str]:
    scene = log.scene = Scene()
    lines = list[str]()
    for act in acts:
        lines.append(act)
        try:
            answer = await scene.act(act[2:])
        except Problem as problem:
            answer = f"{problem.code}: {problem.detail}"
        lines += [f"  {answer}"] if answer else []
        lines += scene.flush()
    lines.append("  In the end:")
    lines += await scene.close()
    log.scene = None
    return lines
