"""Real processes that are killed in the middle: nothing accepted is lost, and only repeatable jobs run twice."""

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from awp_publish.plugin import open_store
from awp_publish.plugins.jobs.problems import JobInterrupted
from tests.plugins.jobs.conftest import House, new_namespace, until
from tests.processes import Process

pytestmark = [pytest.mark.slow, pytest.mark.limit(180)]  # many processes, on a machine that may be busy

Start = Callable[..., Process]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'agents.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def namespace() -> str:
    return new_namespace()


@pytest.fixture
def diary(tmp_path: Path) -> Path:
    path = tmp_path / "diary"
    path.touch()
    return path


@pytest.fixture
def start(url: str, namespace: str, diary: Path) -> Iterator[Start]:
    with ExitStack() as stack:

        def start_one(seconds: float = 0.0) -> Process:
            words = ("tests.plugins.jobs.worker_process", url, namespace, str(diary), str(seconds))
            process = Process(*words, cwd=Path(__file__).parents[3])
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        yield start_one


@pytest.fixture
async def store(url: str, namespace: str):
    store = open_store(url, namespace)
    yield store
    await store.close()


def kill(process: Process) -> None:
    process.kill()
    process.wait()


def lines_of(diary: Path) -> list[str]:
    return diary.read_text().splitlines()


async def has_lines(diary: Path, number: int) -> None:
    await until(lambda: asyncio.to_thread(lines_of, diary), lambda lines: len(lines) >= number)


async def test_a_process_killed_in_the_middle_has_its_repeatable_jobs_run_again_and_others_ended(house, start, diary):
    again, once = await house.jobs.accept("again", {}), await house.jobs.accept("once", {})
    first = start(60)
    await has_lines(diary, 2)
    kill(first)
    start()
    done, interrupted = await house.until(again), await house.until(once)
    assert (done.status, done.attempt) == ("done", 2)
    assert (interrupted.status, type(interrupted.problem)) == ("failed", JobInterrupted)
    assert sorted(lines_of(diary)) == sorted([f"again {again.id} 1", f"again {again.id} 2", f"once {once.id} 1"])


async def test_a_job_accepted_by_a_killed_process_runs_in_the_next(house: House, url: str, namespace: str, start):
    script = (
        "import asyncio, os, signal\n"
        "from awp_publish.plugins.jobs.jobs import JobStore\n"
        "from awp_publish.plugin import open_store\n"
        "async def accept():\n"
        f"    jobs = JobStore(open_store({url!r}, {namespace!r}))\n"
        "    for _ in range(10):\n"
        "        print((await jobs.accept('once', {})).id, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(accept())\n"
    )
    killed = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", script], capture_output=True, text=True, cwd=Path(__file__).parents[3]
    )
    accepted = killed.stdout.split()
    assert (killed.returncode, len(accepted)) == (-9, 10)
    start()
    for job_id in accepted:
        job = await house.jobs.show(job_id, "")
        assert (await house.until(job)).status == "done"


async def test_no_job_is_lost_when_one_of_two_processes_is_killed_again_and_again(house, start, diary):
    accepting = [house.jobs.accept("again" if number % 2 else "once", {}) for number in range(400)]
    jobs = await asyncio.gather(*accepting)
    start(0.005)
    for lines in (50, 150, 250):
        victim = start(0.005)
        await has_lines(diary, lines)
        kill(victim)
    ended = [await house.until(job) for job in jobs]
    runs = Counter(tuple(line.split()[:2]) for line in lines_of(diary))
    for job in ended:
        assert job.status == "done" or isinstance(job.problem, JobInterrupted)
        if job.action == "again":
            assert job.status == "done"
        else:
            assert runs["once", job.id] <= 1
    assert sum(job.status == "failed" for job in ended) <= 3 * 8
