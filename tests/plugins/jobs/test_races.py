"""Workers that race, on every store: one of them runs a job, and it has one end."""

import asyncio

from awp_publish.plugins.jobs.job import JobResult, store_job
from awp_publish.plugins.jobs.problems import JobEnded
from awp_publish.plugins.jobs.runner import Runner
from awp_publish.plugins.jobs.worker import Worker


async def test_exactly_one_of_the_workers_that_race_for_a_job_runs_it(house):
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


async def test_one_of_many_simultaneous_requests_to_begin_or_cancel_succeeds(house):
    for _ in range(20):
        job = await house.jobs.accept("once", {})
        stored = await house.jobs.look(job.id)
        begun = await asyncio.gather(*(house.open_jobs().begin(stored, False) for _ in range(5)))
        assert sum(item is not None for item in begun) == 1
        cancelled = await asyncio.gather(*(house.jobs.cancel(job.id, "") for _ in range(5)))
        assert all(item.cancel_requested for item in cancelled)


async def test_a_cancellation_that_races_with_the_end_leaves_one_final_state(house):
    async def run(job):
        await asyncio.sleep(0.001 * (job.input["n"] % 5))
        return JobResult(200, (), b"null")

    house.start(run, concurrency=50)
    jobs = [await house.jobs.accept("once", {"n": number}) for number in range(50)]
    response = await asyncio.gather(*(house.jobs.cancel(job.id, "") for job in jobs), return_exceptions=True)
    for job, answer in zip(jobs, response, strict=True):
        ended = await house.until(job)
        if isinstance(answer, JobEnded):
            assert ended.status == "done"
        else:
            assert ended.status in ("done", "cancelled") if told_running(answer) else ended.status == "cancelled"
        assert store_job(await house.jobs.show(job.id, "")).raw == store_job(ended).raw


def told_running(answer):
    assert not isinstance(answer, BaseException)
    return answer.status == "running"


async def test_a_job_that_begins_after_it_was_found_to_wait_is_not_taken_for_that_of_a_dead_worker(house):
    """As when a queue delivers it while it is taken once more, to be sent again."""
    job, taken = await house.jobs.accept("once", {}), house.jobs.clock()
    await asyncio.sleep(0.001)
    begun = await house.open_jobs().begin(await house.jobs.look(job.id), False)
    await house.jobs.reclaim(job.id, lambda _: False, taken)
    assert (await house.jobs.look(job.id)).raw == begun.raw


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
