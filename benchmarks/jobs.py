"""10,000 jobs through the in-process queue on SQLite, whose process is killed in the middle: what is lost of them."""

import asyncio
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.jobs_process import open_jobs
from benchmarks.table import Row, at_most

JOBS = 10_000
KILL_AFTER = 3_000
"""Runs, after which the first process is killed."""

BESIDE = "none lost, none of the others run twice"


def jobs(seconds: float) -> list[Row]:
    """Half of the jobs may be run again after their process has died, half may not."""
    with TemporaryDirectory() as folder:
        ended, runs, grown, took = asyncio.run(_measure(Path(folder) / "jobs.db", int(JOBS * min(1.0, seconds / 30))))
    lost = sum(count for status, count in ended.items() if status not in ("done", "failed"))
    twice = sum(count > 1 for (action, _), count in runs.items() if action == "once")
    text = f"{ended['done']} done, {ended['failed']} interrupted, in {took:.1f} s"
    return [
        Row("jobs on SQLite lost by a kill -9 in the middle", BESIDE, lost, at_most(0, "jobs"), text, "jobs"),
        Row("jobs run twice that must not be", BESIDE, twice, at_most(0, "jobs"), text, "jobs"),
        Row("growth of the process that works", "memory stays flat", grown, at_most(16, "MiB"), text, "MiB"),
    ]


async def _measure(path: Path, count: int) -> tuple[Counter[str], Counter[tuple[str, str]], float, float]:
    log, ids = path.with_suffix(".log"), await _accept(path, count)
    started = time.perf_counter()
    first = _start(path, log)
    while not log.exists() or len(log.read_bytes().splitlines()) < KILL_AFTER * count // JOBS:  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    first.send_signal(signal.SIGKILL)
    first.wait()
    second = _start(path, log)
    printed, _ = await asyncio.to_thread(second.communicate)
    took = time.perf_counter() - started
    ended: Counter[str] = Counter()
    found = open_jobs(str(path))
    for job_id, caller in ids:
        ended[(await found.show(job_id, caller)).status] += 1
    await found.store.close()
    lines = (line.split() for line in log.read_text().splitlines())
    return ended, Counter((action, job_id) for action, job_id in lines), float(printed), took


async def _accept(path: Path, count: int) -> list[tuple[str, str]]:
    """Accept jobs of several callers, each of whom may have a thousand that wait. Returns their ids and callers."""
    accepting = open_jobs(str(path))
    ids = []
    for number in range(count):
        action, caller = ("again", "once")[number % 2], f"caller-{number // 500}"
        ids.append(((await accepting.accept(action, {"number": number}, principal=caller)).id, caller))
    await accepting.store.close()
    path.with_suffix(".ids").write_text("\n".join(map(" ".join, ids)))
    return ids


def _start(path: Path, log: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "benchmarks.jobs_process", str(path), str(log)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[1])
