"""From acceptance to the end: what a caller sees of a job."""

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from awp_publish.calls.progress import Progress, open_report, report_progress
from awp_publish.plugin import open_store
from awp_publish.plugins.jobs.job import Job, JobResult, printable_value
from awp_publish.plugins.jobs.jobs import JobStore
from awp_publish.problems import (
    HandlerFailed,
    JobCancelled,
    JobInterrupted,
    Refused,
    StoreUnavailable,
    UnknownJob,
    UnknownOperation,
    Violation,
)
from awp_publish.stores.memory import MemoryStore
from awp_publish.stores.store import JOB, Swap
from tests.plugins.jobs.conftest import REPEATABLE, House, new_namespace


async def accept(house, action="again", **facts):
    return await house.jobs.accept(action, {"n": 1}, **facts)


def endless():
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def run(job):
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    return run, started, cancelled


async def test_an_accepted_job_is_run_with_its_input_and_its_result_is_kept(house):
    async def run(job):
        return JobResult(201, ((b"awp-receipt", b"r"),), b'{"given":%d}' % job.input["n"])

    house.start(run)
    job = await accept(house, context={"token": "secret"}, request_id="r1", door="woa")
    done = await house.until(job)
    assert (done.status, done.attempt, done.context, done.request_id, done.door) == ("done", 1, {}, "r1", "woa")
    assert done.result == JobResult(201, ((b"awp-receipt", b"r"),), b'{"given":1}')


async def test_the_handler_is_given_the_context_and_an_ended_job_has_it_no_more(house):
    seen = []

    async def run(job):
        seen.append(job.context)
        return JobResult(200, (), b"1")

    job = await accept(house, context={"authorization": "Bearer s3cret"})
    house.start(run)
    await house.until(job)
    assert seen == [{"authorization": "Bearer s3cret"}]
    stored = await house.jobs.look(job.id)
    assert b"s3cret" not in stored.raw
    assert "s3cret" not in repr(job)


async def test_a_job_waits_while_nobody_works(house):
    job = await accept(house)
    assert (await house.jobs.show(job.id, "")).status == "accepted"


async def test_many_jobs_are_run_each_once_and_never_more_than_four_at_a_time(house):
    ran, running, most, four = [], 0, 0, asyncio.Event()

    async def run(job):
        nonlocal running, most
        running += 1
        most = max(most, running)
        ran.append(job.id)
        if running == 4:
            four.set()
        await four.wait()
        await asyncio.sleep(0.001)
        running -= 1
        return JobResult(200, (), b"null")

    house.start(run, concurrency=4)
    jobs = await asyncio.gather(*(accept(house, share=f"caller {n}") for n in range(100)))
    for job in jobs:
        await house.until(job)
    assert sorted(ran) == sorted(job.id for job in jobs)
    assert most == 4


async def test_a_problem_survives_its_way_into_the_store_and_back(house):
    async def run(job):
        raise Refused(
            "Sold \ud800 out.",
            status=410,
            code="SOLD_OUT",
            recovery="Choose another.",
            errors=[Violation("/book", "is gone"), Violation("/copies", "are too many")],
            headers=[("Retry-After", "7"), ("X-Shelf", "3")],
            members={"left": 0, "names": ("a", {1: "b"}), "huge": 2**70},
        )

    house.start(run)
    failed = await house.until(await accept(house))
    problem = failed.problem
    assert failed.status == "failed"
    assert type(problem) is Refused
    assert (problem.detail, problem.status, problem.code) == ("Sold ? out.", 410, "SOLD_OUT")
    assert problem.recovery == "Choose another."
    assert problem.errors == (Violation("/book", "is gone"), Violation("/copies", "are too many"))
    assert problem.headers == (("Retry-After", "7"), ("X-Shelf", "3"))
    assert problem.members == {"left": 0, "names": ["a", {"1": "b"}], "huge": str(2**70)}


async def test_a_handler_that_blows_up_fails_the_job_and_leaves_its_traceback_in_the_log(house, caplog):
    async def run(job):
        raise RuntimeError("the press is on fire")

    house.start(run)
    failed = await house.until(await accept(house, request_id="r7"))
    assert type(failed.problem) is HandlerFailed
    assert "fire" not in failed.problem.detail
    assert "the press is on fire" in caplog.text
    assert "r7" in caplog.text


async def test_a_handler_that_cancels_itself_fails_the_job(house):
    async def run(job):
        raise asyncio.CancelledError

    house.start(run)
    failed = await house.until(await accept(house))
    assert type(failed.problem) is HandlerFailed


async def test_a_job_waits_for_a_worker_that_has_its_action(house, monkeypatch):
    monkeypatch.setattr("awp_publish.plugins.jobs.jobs.ABSENT_PAUSE", 0.05)
    job = await accept(house, "new", principal="ann")
    behind = await accept(house, "again", principal="ben")
    old = house.start(jobs=house.open_jobs(absent_seconds=600.0), concurrency=1)
    await house.until(behind)  # so the other was taken, too
    await old.stop()
    assert (await house.jobs.show(job.id, "ann")).status == "accepted"
    monkeypatch.setitem(REPEATABLE, "new", False)
    house.start()
    assert (await house.until(job)).attempt == 1


async def test_an_action_that_the_site_no_longer_has_ends_its_jobs_with_a_problem(house):
    job = await accept(house, "gone")
    house.start()
    failed = await house.until(job)
    assert (failed.status, type(failed.problem), failed.attempt) == ("failed", UnknownOperation, 0)
    assert '"gone"' in failed.problem.detail


# --- Progress ---


@pytest.mark.parametrize("is_threaded", [False, True])
async def test_progress_is_seen_while_the_job_runs(house, is_threaded):
    release = asyncio.Event()

    async def run(job):
        report_progress(0.0)
        if is_threaded:
            await asyncio.to_thread(report_progress, 0.5, "half \ud800")
        else:
            report_progress(0.5, "half \ud800")
        await release.wait()
        report_progress(1, "all")
        return JobResult(200, (), b"null")

    house.start(run)
    job = await accept(house)
    running = await house.until(job, lambda job: job.progress is not None)
    assert (running.status, running.progress) == ("running", Progress(0.5, "half ?"))
    release.set()
    assert (await house.until(job)).progress == Progress(1.0, "all")


async def test_jobs_beside_each_other_report_for_themselves(house):
    async def run(job):
        await asyncio.sleep(0.01)
        report_progress(job.input["n"] / 10)
        return JobResult(200, (), b"null")

    house.start(run)
    jobs = [await house.jobs.accept("again", {"n": number}) for number in range(10)]
    assert [(await house.until(job)).progress for job in jobs] == [Progress(n / 10) for n in range(10)]


def test_progress_outside_of_a_job_goes_nowhere():
    report_progress(0.5, "nobody listens")
    assert open_report().latest is None


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_fraction_that_is_none_is_refused(fraction):
    with pytest.raises(ValueError, match="between 0 and 1"):
        report_progress(fraction)


# --- Who sees it, and for how long ---


async def test_only_who_started_a_job_sees_and_cancels_it(house):
    job = await accept(house, principal="ada")
    assert (await house.jobs.show(job.id, "ada")).id == job.id
    details = set()
    for job_id, principal in [
        (job.id, "bob"),
        (job.id, ""),
        ("A" * 22, "ada"),
        ("../../etc", "ada"),
        ("A" * 22 + "\n", "ada"),
        ("", "ada"),
        ("\uff41" * 22, "ada"),
    ]:
        for verb in (house.jobs.show, house.jobs.cancel):
            with pytest.raises(UnknownJob) as caught:
                await verb(job_id, principal)
            details.add(caught.value.detail)
    assert len(details) == 1


async def test_what_cannot_be_a_job_id_never_reaches_the_store():
    class NoStore(MemoryStore):
        async def run(self, steps, *, durable=False):
            raise AssertionError("the store was asked")

    with pytest.raises(UnknownJob):
        await JobStore(NoStore()).show("job:../x", "")


DAMAGE = {
    "a state that there is none of": (b'"accepted"', b'"bewitched"'),
    "half of it": (b',"status"', b""),
    "another type": (b'"attempt":0', b'"attempt":"0"'),
    "another job": (b'{"id":"', b'{"id":"AAAAAAAAAAAAAAAAAAAAAA","was":"'),
    "an action of another type": (b'"action":"again"', b'"action":["again"]'),
    "a moment that there is none of": (b'"created":"2', b'"created":"0001-01-01T00:00:00+23:00","was":"2'),
    "no text at all": (b"{", b"\xff{"),
}


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_record_that_cannot_be_read_is_an_unavailable_store_and_stops_nobody(house, damage, caplog):
    bad, good = await accept(house), await accept(house)
    raw = (await house.jobs.look(bad.id)).raw
    assert raw.replace(*DAMAGE[damage]) != raw
    await house.store.run([Swap(f"{JOB}{bad.id}", raw, raw.replace(*DAMAGE[damage]), 60.0)])
    for verb in (house.jobs.show, house.jobs.cancel):
        with pytest.raises(StoreUnavailable):
            await verb(bad.id, "")
    house.start()
    assert (await house.until(good)).status == "done"
    with pytest.raises(StoreUnavailable):
        await house.jobs.show(bad.id, "")
    assert "Traceback" not in caplog.text


async def test_a_result_that_is_not_the_one_that_was_written_is_not_told(house):
    job = await accept(house)
    house.start()
    await house.until(job)
    raw = (await house.jobs.look(job.id)).raw
    await house.store.run([Swap(f"{JOB}{job.id}", raw, raw[:-1], 60.0)])
    with pytest.raises(StoreUnavailable):
        await house.jobs.show(job.id, "")


async def test_a_job_whose_record_is_damaged_while_it_runs_gives_its_slot_back(house):
    async def run(job: Job) -> JobResult:
        if job.action == "once":
            raw = (await house.jobs.look(job.id)).raw
            await house.store.run([Swap(f"{JOB}{job.id}", raw, b"damaged", 60.0)])
        return JobResult(200, (), b"1")

    await house.jobs.accept("once", {})
    house.start(run, concurrency=1)
    await asyncio.sleep(0.1)
    assert (await house.until(await accept(house))).status == "done"


# --- Cancelling ---


async def test_a_job_that_runs_here_is_cancelled_at_once(house):
    slow = house.open_jobs(beat_seconds=60.0, lease_seconds=600.0)
    run, started, stopped = endless()
    house.start(run, jobs=slow)
    job = await slow.accept("once", {})
    await started.wait()
    told = await slow.cancel(job.id, "")
    assert (told.status, told.cancel_requested) == ("running", True)
    await asyncio.wait_for(stopped.wait(), 20)
    assert (await house.until(job)).status == "cancelled"


async def test_a_job_that_runs_elsewhere_is_cancelled_at_its_next_heartbeat(house):
    run, started, stopped = endless()
    house.start(run)
    job = await accept(house, "once")
    await started.wait()
    elsewhere = house.open_jobs()
    assert (await elsewhere.cancel(job.id, "")).cancel_requested
    assert (await elsewhere.cancel(job.id, "")).cancel_requested
    await asyncio.wait_for(stopped.wait(), 20)
    ended = await house.until(job)
    assert (ended.status, type(ended.problem), ended.cancel_requested) == ("cancelled", JobCancelled, False)


async def test_a_handler_that_answers_in_spite_of_its_cancellation_is_done(house):
    started = asyncio.Event()

    async def run(job):
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return JobResult(200, (), b'"saved"')
        raise AssertionError

    house.start(run)
    job = await accept(house)
    await started.wait()
    await house.jobs.cancel(job.id, "")
    ended = await house.until(job)
    assert (ended.status, ended.result.body) == ("done", b'"saved"')


# --- Workers that stop ---


async def test_what_ends_within_the_grace_is_done(house):
    started = asyncio.Event()

    async def run(job):
        started.set()
        await asyncio.sleep(0.1)
        return JobResult(200, (), b"null")

    worker = house.start(run)
    job = await accept(house, "once")
    await started.wait()
    waiting = [await accept(house) for _ in range(20)]
    await worker.stop(grace=30.0)
    assert (await house.jobs.show(job.id, "")).status == "done"
    await worker.stop()
    house.start()
    for other in waiting:
        assert (await house.until(other)).status == "done"


async def test_what_does_not_end_is_cut_short_and_run_again_only_if_it_is_repeatable(house):
    called: asyncio.Queue[str] = asyncio.Queue()  # a job whose handler was not called yet is given back

    async def run(job):
        called.put_nowait(job.id)
        await asyncio.sleep(60)

    worker = house.start(run)
    again, once = await accept(house, "again"), await accept(house, "once")
    async with asyncio.timeout(50):
        assert {await called.get(), await called.get()} == {again.id, once.id}
    await worker.stop(grace=0.01)
    interrupted = await house.jobs.show(once.id, "")
    assert (interrupted.status, type(interrupted.problem)) == ("failed", JobInterrupted)
    waiting = await house.jobs.show(again.id, "")
    assert (waiting.status, waiting.attempt) == ("accepted", 0)
    house.start()
    assert (await house.until(again)).status == "done"


async def test_a_handler_that_heeds_nothing_does_not_keep_the_process(house, monkeypatch):
    monkeypatch.setattr("awp_publish.plugins.jobs.runner.SETTLE_SECONDS", 2.0)  # and so long for the store to be told
    release, started = asyncio.Event(), asyncio.Event()

    async def run(job):
        started.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return JobResult(200, (), b"null")

    worker = house.start(run)
    job = await accept(house, "once")
    await started.wait()
    await house.jobs.cancel(job.id, "")
    try:
        await asyncio.wait_for(worker.stop(grace=0.1), 20)
        assert (await house.jobs.show(job.id, "")).status == "cancelled"
    finally:
        release.set()
    await asyncio.sleep(0.05)


def test_a_process_may_have_a_worker_in_each_of_its_event_loops(store_url, caplog):
    """JobStore accepted in one loop wake the worker of another, and are cancelled from there."""
    caplog.set_level(logging.ERROR)
    store = open_store(store_url, new_namespace())
    house = House(store)
    ready, finish = threading.Event(), threading.Event()

    async def work():
        run, _, _ = endless()
        worker = house.start(run, poll=30.0)
        ready.set()
        await asyncio.to_thread(finish.wait, 30)
        await worker.stop(0)

    async def ask():
        await asyncio.to_thread(ready.wait, 30)
        await asyncio.sleep(0.05)
        job = await accept(house)
        await house.until(job, lambda job: job.status == "running")
        await house.jobs.cancel(job.id, "")
        ended = await house.until(job)
        finish.set()
        return ended.status

    with ThreadPoolExecutor() as threads:
        worked = threads.submit(lambda: asyncio.run(work()))
        assert threads.submit(lambda: asyncio.run(ask())).result(30) == "cancelled"
        worked.result(30)
    asyncio.run(store.close())
    assert not caplog.records


@pytest.mark.parametrize("kind", [list, dict])
def test_what_is_nested_without_end_is_printed_up_to_a_depth(kind):
    nested: object = "end"
    for _ in range(500):
        nested = [nested] if kind is list else {"inner": nested}
    depth, printed = 0, printable_value(nested)
    while not isinstance(printed, str):
        assert isinstance(printed, kind)
        (printed,) = printed.values() if isinstance(printed, dict) else printed
        depth += 1
    assert depth == 100
    assert len(printed) > 400
