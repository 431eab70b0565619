"""Workers that race, workers that die, stores that go away: every job ends, and only repeatable ones run twice."""

import asyncio
import logging

import pytest

from awp_publish.plugins.jobs.job import JobResult, store_job
from awp_publish.plugins.jobs.jobs import QUEUE
from awp_publish.plugins.jobs.runner import Runner
from awp_publish.plugins.jobs.worker import Worker
from awp_publish.problems import JobEnded, JobInterrupted, StoreUnavailable


async def test_of_workers_that_race_for_a_job_exactly_one_runs_it(house):
    ran = []

    async def run(job):
        ran.append(job.id)
        await asyncio.sleep(0)
        return JobResult(200, (), b"null")

    for _ in range(4):
        house.start(run, jobs=house.open_jobs())
    jobs = [await house.jobs.accept("once", {}) for _ in range(80)]
    for job in jobs:
        assert (await house.until(job)).attempt == 1
    assert sorted(ran) == sorted(job.id for job in jobs)


async def test_of_many_who_begin_or_cancel_at_once_one_does(house):
    for _ in range(20):
        job = await house.jobs.accept("once", {})
        stored = await house.jobs.look(job.id)
        begun = await asyncio.gather(*(house.open_jobs().begin(stored, False) for _ in range(5)))
        assert sum(one is not None for one in begun) == 1
        cancelled = await asyncio.gather(*(house.jobs.cancel(job.id, "") for _ in range(5)))
        assert all(one.cancel_requested for one in cancelled)


async def test_a_cancellation_that_races_with_the_end_leaves_one_final_state(house):
    async def run(job):
        await asyncio.sleep(0.001 * (job.input["n"] % 5))
        return JobResult(200, (), b"null")

    house.start(run, concurrency=50)
    jobs = [await house.jobs.accept("once", {"n": number}) for number in range(50)]
    told = await asyncio.gather(*(house.jobs.cancel(job.id, "") for job in jobs), return_exceptions=True)
    for job, answer in zip(jobs, told, strict=True):
        ended = await house.until(job)
        if isinstance(answer, JobEnded):
            assert ended.status == "done"
        else:
            assert ended.status in ("done", "cancelled") if told_running(answer) else ended.status == "cancelled"
        assert store_job(await house.jobs.show(job.id, "")).raw == store_job(ended).raw


def told_running(answer):
    assert not isinstance(answer, BaseException)
    return answer.status == "running"


# --- Dead workers ---


async def died(house, action):
    """A job whose worker has gone without a word."""
    dead = house.open_jobs(lease_seconds=0.05)
    job = await house.jobs.accept(action, {})
    await dead.begin(await dead.look(job.id), True)
    return job


async def test_a_repeatable_job_of_a_dead_worker_is_run_again(house):
    job = await died(house, "again")
    house.start()
    done = await house.until(job)
    assert (done.status, done.attempt) == ("done", 2)


async def test_a_worker_that_was_taken_for_dead_drops_what_it_did(house, caplog):
    """It slept through its lease. Somebody else judged the job; the late result does not change that."""
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def run(job):
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            return JobResult(200, (), b'"late"')
        raise AssertionError

    house.start(run)
    job = await house.jobs.accept("once", {})
    await started.wait()
    elsewhere = house.open_jobs()
    for _ in range(100):  # against its heartbeats
        await elsewhere.reclaim(job.id, lambda _: False)
        if (await elsewhere.show(job.id, "")).has_ended:
            break
    await asyncio.wait_for(cancelled.wait(), 20)
    for worker in house.workers:  # which ends when it has done with the job
        await worker.stop(grace=20)
    ended = await house.jobs.show(job.id, "")
    assert (ended.status, type(ended.problem)) == ("failed", JobInterrupted)
    assert "now belongs to another worker" in caplog.text


async def test_heartbeats_keep_a_long_job_from_being_taken_for_dead(house):
    ran = []

    async def run(job):
        ran.append(job.id)
        await asyncio.sleep(1.25 * lease)
        return JobResult(200, (), b"null")

    for lease in (2.0, 10.0, 40.0):  # a machine may stand still for longer than the first
        for _ in range(2):
            house.start(run, jobs=house.open_jobs(lease_seconds=lease))
        job = await house.jobs.accept("once", {})
        status = (await house.until(job)).status
        for worker in house.workers:
            await worker.stop()
        if status == "done" and ran.count(job.id) == 1:
            return
    raise AssertionError(status)


async def test_a_process_does_not_take_itself_for_dead(house):
    """Its lease has ended because nothing could be written for a while: the run goes on."""
    started, release = asyncio.Event(), asyncio.Event()

    async def run(job):
        started.set()
        await release.wait()
        return JobResult(200, (), b"null")

    house.start(run)
    job = await house.jobs.accept("once", {})
    await started.wait()
    await house.jobs.reclaim(job.id, lambda _: False)
    release.set()
    assert (await house.until(job)).attempt == 1


async def test_a_job_that_begins_after_it_was_found_to_wait_is_not_taken_for_that_of_a_dead_worker(house):
    """As when a queue delivers it while it is taken once more, to be sent again."""
    job, taken = await house.jobs.accept("once", {}), house.jobs.clock()
    await asyncio.sleep(0.001)
    begun = await house.open_jobs().begin(await house.jobs.look(job.id), False)
    await house.jobs.reclaim(job.id, lambda _: False, taken)
    assert (await house.jobs.look(job.id)).raw == begun.raw


async def test_what_a_stopping_worker_took_and_did_not_begin_is_due_at_once(house):
    job = await house.jobs.accept("once", {})
    runner = Runner(house.jobs, lambda job: asyncio.sleep(0, JobResult(200, (), b"null")), lambda _: False)
    assert await house.store.take(QUEUE, 60.0, 1) == (job.id,)
    runner.stop()
    await runner.carry(job.id)
    await runner.carry_accepted(job.id)
    waiting = await house.jobs.show(job.id, "")
    assert (waiting.status, waiting.attempt) == ("accepted", 0)
    house.start()
    assert (await house.until(job)).attempt == 1


async def test_a_worker_knows_whether_it_works(house):
    worker = Worker(house.jobs, Runner(house.jobs, lambda job: asyncio.sleep(0, JobResult(200, (), b"1")), bool))
    seen = [worker.is_working]
    worker.start()
    seen.append(worker.is_working)
    await worker.stop()
    assert [*seen, worker.is_working] == [False, True, False]


async def test_a_worker_whose_event_loop_has_ended_works_no_more_and_hinders_nobody(house):
    runner = Runner(house.jobs, lambda job: asyncio.sleep(0, JobResult(200, (), b"1")), lambda _: False)
    left_alone = Worker(house.jobs, runner)

    async def start_and_leave():
        left_alone.start()

    await asyncio.to_thread(lambda: asyncio.run(start_and_leave()))
    assert not left_alone.is_working
    house.start()
    for _ in range(2):
        assert (await house.until(await house.jobs.accept("once", {}))).status == "done"


# --- Stores that go away ---


class Outage:
    """A store in front of another, which is away when the test says so."""

    def __init__(self, store):
        self._store = store
        self.is_away = False
        self.fails_with = StoreUnavailable("The store is away.")

    @property
    def is_shared(self):
        return self._store.is_shared

    async def run(self, steps, *, durable=False):
        if self.is_away:
            raise self.fails_with
        return await self._store.run(steps, durable=durable)

    async def take(self, queue, lease, most):
        if self.is_away:
            raise self.fails_with
        return await self._store.take(queue, lease, most)

    async def close(self):
        await self._store.close()


@pytest.fixture
def outage(house):
    house.store = Outage(house.store)
    house.jobs = house.open_jobs()
    return house.store


async def test_a_job_that_runs_while_the_store_is_away_loses_neither_its_run_nor_its_result(house, outage, caplog):
    """The outage lasts longer than the lease, and a second process comes back from it at the same time."""
    caplog.set_level(logging.WARNING)
    started, away, ran = asyncio.Event(), asyncio.Event(), []

    async def run(job):
        ran.append(job.id)
        started.set()
        await away.wait()
        return JobResult(200, (), b'"kept"')

    house.start(run, jobs=house.open_jobs(lease_seconds=0.5))
    job = await house.jobs.accept("once", {})
    await started.wait()
    house.start(run, jobs=house.open_jobs(lease_seconds=0.5))
    outage.is_away = True
    away.set()
    async with asyncio.timeout(50):
        while caplog.text.count("background jobs wait") < 2 or "recording is retried" not in caplog.text:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.6)
    with pytest.raises(StoreUnavailable):
        await house.jobs.accept("once", {})
    outage.is_away = False
    done = await house.until(job)
    assert (done.status, done.result.body, ran) == ("done", b'"kept"', [job.id])
    assert caplog.text.count("background jobs wait") == 2  # once for each worker
    assert caplog.text.count("recording is retried") == 1


async def test_a_worker_survives_whatever_its_store_does(house, outage, caplog):
    outage.fails_with = RuntimeError("the store has a bug")
    outage.is_away = True
    house.start()
    async with asyncio.timeout(50):
        while "the store has a bug" not in caplog.text:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    outage.is_away = False
    job = await house.jobs.accept("once", {})
    assert (await house.until(job)).status == "done"
    assert "the store has a bug" in caplog.text


async def test_a_worker_stops_while_the_store_is_away(house, outage):
    started = asyncio.Event()

    async def run(job):
        started.set()
        await asyncio.sleep(60)
        return JobResult(200, (), b"null")

    house.jobs = house.open_jobs(lease_seconds=0.5)
    worker = house.start(run)
    job = await house.jobs.accept("again", {})
    await started.wait()
    outage.is_away = True
    await asyncio.wait_for(worker.stop(grace=0.01), 20)
    outage.is_away = False
    house.start()
    assert (await house.until(job, lambda job: job.attempt == 2 or job.has_ended)).attempt == 2


async def test_a_loop_that_is_torn_down_leaves_the_job_to_the_next_worker(house):
    started = asyncio.Event()

    async def run(job):
        started.set()
        await asyncio.sleep(60 if job.attempt == 1 else 0)
        return JobResult(200, (), b"null")

    house.start(run, jobs=house.open_jobs(lease_seconds=0.5))
    job = await house.jobs.accept("again", {})
    await started.wait()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    house.workers.clear()
    house.start(run, jobs=house.open_jobs())
    assert (await house.until(job)).attempt == 2
