"""Accept, take, beat, finish, cancel, stop, die and sleep in any order: one final state, and no run too many."""

import asyncio
from collections import Counter

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from awp_publish.plugins.jobs.job import JobResult, Stored
from awp_publish.plugins.jobs.jobs import ALL_JOBS, LEASED, MAX_ATTEMPTS, MORE, QUEUE, JobStore
from awp_publish.plugins.jobs.problems import JobEnded, JobInterrupted
from awp_publish.stores.memory import MemoryStore
from awp_publish.stores.store import Schedule
from tests.examples import examples
from tests.plugins.jobs.conftest import Clock

LEASE = 10.0
KNOWN = {"again": True, "once": False}


class Life(RuleBasedStateMachine):
    """Workers that share a store. A run is what its worker believes it has; it may have been taken for dead."""

    accepted = Bundle("accepted")
    runs = Bundle("runs")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = Clock()
        self.store = MemoryStore(self.clock)
        self.jobs = JobStore(self.store, lease_seconds=LEASE, absent_seconds=LEASE, clock=self.clock.day)
        self.ids: list[str] = []
        self.begun: Counter[str] = Counter()
        self.ended: dict[str, bytes] = {}

    def do(self, awaitable):
        return self.loop.run_until_complete(awaitable)

    def look(self, job_id: str) -> Stored:
        stored = self.do(self.jobs.look(job_id))
        assert stored is not None
        return stored

    @rule(target=accepted, action=st.sampled_from(["again", "once", "gone"]), caller=st.sampled_from(["ann", "ben"]))
    def accept(self, action, caller):
        self.tick()
        job = self.do(self.jobs.accept(action, {}, share=caller))
        self.ids.append(job.id)
        return job.id

    @rule(target=runs, queue=st.sampled_from([QUEUE, MORE]))
    def take(self, queue):
        self.tick()
        return multiple(*filter(None, [self.begin(item) for item in self.do(self.store.take(queue, LEASE, 1))]))

    def tick(self) -> None:
        """No two members are due at the same time, so that their order does not hang on their random ids."""
        self.clock.seconds += 0.001

    @rule()
    def reclaim(self):
        self.tick()
        self.reclaim_all()

    def reclaim_all(self) -> None:
        for job_id in self.do(self.store.take(LEASED, LEASE, 1000)):
            self.do(self.jobs.reclaim(job_id, KNOWN.get))

    @rule(target=runs, queue=st.sampled_from([QUEUE, MORE]))
    def take_and_die_before_the_run_begins(self, queue):
        self.tick()
        for job_id in self.do(self.store.take(queue, LEASE, 1)):
            self.do(self.jobs.pick(job_id, KNOWN.get))
        return multiple()

    def begin(self, job_id: str) -> Stored | None:
        waiting = self.do(self.jobs.pick(job_id, KNOWN.get))
        if waiting is None:
            return None
        begun = self.do(self.jobs.begin(waiting, KNOWN[waiting.job.action]))
        if begun is not None:
            self.begun[job_id] += 1
        return begun

    @rule(target=runs, job_id=accepted)
    def begin_by_a_message_that_comes_late_or_twice(self, job_id):
        stored = self.look(job_id)
        self.tick()
        if stored.job.status != "accepted" or stored.job.action == "gone":
            return multiple()
        begun = self.do(self.jobs.begin(stored, KNOWN[stored.job.action]))
        self.begun[job_id] += 1
        return begun

    @rule(target=runs, run=consumes(runs))
    def beat(self, run):
        self.tick()
        return self.do(self.jobs.beat(run)) or multiple(*self.catch_up(run))

    def catch_up(self, run: Stored) -> list[Stored]:
        stored = self.look(run.job.id)
        return [stored] if stored.job.worker == run.job.worker else []

    @rule(run=consumes(runs), status=st.sampled_from(["done", "cancelled"]))
    def finish(self, run, status):
        result = JobResult(200, (), b"null")
        if self.do(self.jobs.end(run, status, result)) is None:
            for current in self.catch_up(run):
                assert self.do(self.jobs.end(current, status, result)) is not None

    @rule(run=consumes(runs))
    def stop(self, run):
        self.tick()
        self.do(self.jobs.give_up(run, KNOWN[run.job.action], on_purpose=True))

    @rule(run=consumes(runs))
    def die(self, run):
        pass

    @rule(job_id=accepted)
    def cancel(self, job_id):
        before = self.look(job_id).job
        try:
            job = self.do(self.jobs.cancel(job_id, ""))
            assert job.cancel_requested if before.status == "running" else job.status == "cancelled"
        except JobEnded:
            assert before.has_ended

    @rule(seconds=st.sampled_from([1.0, LEASE / 2, LEASE, 3 * LEASE]))
    def sleep(self, seconds):
        self.clock.seconds += seconds

    @invariant()
    def what_has_ended_never_changes(self):
        for job_id in self.ids:
            stored = self.look(job_id)
            if stored.job.has_ended:
                assert self.ended.setdefault(job_id, stored.raw) == stored.raw
                assert (stored.job.worker, stored.job.context) == ("", {})

    @invariant()
    def what_may_not_run_twice_does_not(self):
        for job_id in self.ids:
            job = self.look(job_id).job
            assert self.begun[job_id] <= 1 or job.action == "again"
            assert job.attempt <= MAX_ATTEMPTS
            assert job.action != "gone" or self.begun[job_id] == 0

    @invariant()
    def of_each_caller_one_job_has_the_turn_if_any_waits(self):
        for caller in ("ann", "ben"):
            jobs = [item for item in (self.look(job_id).job for job_id in self.ids) if item.share == caller]
            waits = any(job.status == "accepted" for job in jobs)
            assert waits <= sum(job.has_turn for job in jobs) <= 1

    def teardown(self) -> None:
        """Everything comes to its end, once there is a worker that works and the others sleep."""
        for _ in range(3 * MAX_ATTEMPTS):
            self.clock.seconds += LEASE
            self.reclaim_all()
            for job_id in self.take_all():
                begun = self.begin(job_id)
                if begun is not None:
                    self.finish_now(begun)
        assert all(self.look(job_id).job.has_ended for job_id in self.ids)
        assert self.take_all() == []
        of_callers = ("{jobs}of ann", "{jobs}of ben", "{jobs}turn of ann", "{jobs}turn of ben")
        for queue in (ALL_JOBS, *of_callers):  # nothing that has ended takes anybody's room
            assert self.do(self.store.run([Schedule(queue, "other", 0, most=1)])).failed is None
        for job_id in self.ids:
            job = self.look(job_id).job
            assert not isinstance(job.problem, JobInterrupted) or self.begun[job_id] > 0
        self.what_has_ended_never_changes()
        self.loop.close()

    def take_all(self) -> list[str]:
        return [item for queue in (QUEUE, MORE, LEASED) for item in self.do(self.store.take(queue, LEASE, 1000))]

    def finish_now(self, begun: Stored) -> None:
        assert self.do(self.jobs.end(begun, "done", JobResult(200, (), b"1"))) is not None


TestLife = pytest.mark.slow(Life.TestCase)
TestLife.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
