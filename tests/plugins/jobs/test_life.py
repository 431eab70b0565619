"""From acceptance to the end on every store, in threads and with several event loops."""

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from awp_publish.calls.progress import Progress, open_report, report_progress
from awp_publish.plugin import open_store
from awp_publish.plugins.jobs.job import JobResult, printable_value
from awp_publish.plugins.jobs.jobs import JobStore
from awp_publish.plugins.jobs.problems import UnknownJob
from awp_publish.stores.memory import MemoryStore
from tests.plugins.jobs.conftest import House, new_namespace


async def accept(house, action="again", **facts):
    return await house.jobs.accept(action, {"n": 1}, **facts)


async def test_an_accepted_job_is_run_with_its_input_and_its_result_is_kept(house):
    async def run(job):
        return JobResult(201, ((b"awp-receipt", b"r"),), b'{"given":%d}' % job.input["n"])

    house.start(run)
    job = await accept(house, context={"token": "secret"}, request_id="r1", door="woa")
    done = await house.until(job)
    assert (done.status, done.attempt, done.context, done.request_id, done.door) == ("done", 1, {}, "r1", "woa")
    assert done.result == JobResult(201, ((b"awp-receipt", b"r"),), b'{"given":1}')


async def test_progress_of_a_thread_is_seen_while_the_job_runs(house):
    release = asyncio.Event()

    async def run(job):
        report_progress(0.0)
        await asyncio.to_thread(report_progress, 0.5, "half \ud800")
        await release.wait()
        report_progress(1, "all")
        return JobResult(200, (), b"null")

    house.start(run)
    job = await accept(house)
    running = await house.until(job, lambda job: job.progress is not None)
    assert (running.status, running.progress) == ("running", Progress(0.5, "half ?"))
    release.set()
    assert (await house.until(job)).progress == Progress(1.0, "all")


def test_progress_outside_of_a_job_goes_nowhere():
    report_progress(0.5, "nobody listens")
    assert open_report().latest is None


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_fraction_that_is_none_is_refused(fraction):
    with pytest.raises(ValueError, match="between 0 and 1"):
        report_progress(fraction)


async def test_an_impossible_job_id_never_reaches_the_store():
    class NoStore(MemoryStore):
        async def run(self, steps, *, durable=False):
            raise AssertionError("the store was asked")

    with pytest.raises(UnknownJob):
        await JobStore(NoStore()).show("job:../x", "")


def test_a_process_may_have_a_worker_in_each_of_its_event_loops(store_url, caplog):
    """JobStore accepted in one loop wake the worker of another, and are cancelled from there."""
    caplog.set_level(logging.ERROR)
    store = open_store(store_url, new_namespace())
    house = House(store)
    ready, finish = threading.Event(), threading.Event()

    async def work():
        worker = house.start(lambda job: asyncio.sleep(60, JobResult(200, (), b"1")), poll=30.0)
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
def test_endlessly_nested_values_are_printed_up_to_a_depth(kind):
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
