"""Any steps in any order: each store does what a plain model of the protocol does."""

import asyncio
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from awp_publish.stores import Add, Count, Counted, Look, Ran, Reserve, Schedule, Step, Swap, Unschedule
from tests.examples import examples

pytestmark = pytest.mark.slow

KEYS = st.sampled_from(["a", "b", "c"])
TOTALS = st.sampled_from(["total a", "total b"])  # no key is that of a count too
VALUES = st.sampled_from([b"", b"1", b"2"])
SECONDS = st.sampled_from([0, 1000])
DUE = {"early": -3000, "middle": -2000, "late": -1000}
MEMBERS = st.sampled_from(sorted(DUE))
STEPS = st.one_of(
    st.builds(Count, KEYS, st.integers(0, 3), st.sampled_from([0, 100, 1000])),
    st.builds(Look, KEYS),
    st.builds(Add, KEYS, VALUES, SECONDS),
    st.builds(Swap, KEYS, VALUES, st.none() | VALUES, SECONDS),
    st.builds(lambda queue, member: Schedule(queue, member, DUE[member]), KEYS, MEMBERS),
    st.builds(lambda queue, member: Schedule(queue, member, 5000), KEYS, MEMBERS),
    st.builds(Unschedule, KEYS, MEMBERS),
    st.builds(Reserve, TOTALS, st.integers(-3, 3), st.none() | st.integers(0, 4), st.just(1000)),
)
RUNS = st.lists(st.lists(STEPS, max_size=6) | st.tuples(KEYS, st.integers(0, 3)), max_size=12)
_examples = count()


class Model:
    """The protocol in the plainest words, at a time that stands still."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.windows: dict[str, tuple[int, float]] = {}
        self.totals: dict[str, int] = {}
        self.due: dict[str, dict[str, float]] = {}

    def run(self, steps: list[Step]) -> Ran:
        seen = []
        for index, step in enumerate(steps):
            holds, saw = self._look(step)
            seen.append(saw)
            if not holds:
                return Ran(index, tuple(seen))
        for step in steps:
            self._change(step)
        return Ran(None, tuple(seen))

    def take(self, queue: str, most: int) -> tuple[str, ...]:
        due = self.due.get(queue, {})
        taken = sorted((member for member in due if due[member] <= 0), key=lambda member: due[member])[:most]
        due.update(dict.fromkeys(taken, 5000))
        return tuple(taken)

    def _look(self, step: Step):
        if isinstance(step, Count):
            events, left = self.windows.get(step.key, (0, 0))
            if left > step.seconds:
                events = 0
            if events >= step.most:
                return False, Counted(events, left if events else 0)
            left = left if events else step.seconds
            self.windows[step.key] = (events + 1 if left else 0, left)
            return True, Counted(events + 1, left)
        if isinstance(step, Reserve):
            total = self.totals.get(step.key, 0)
            holds = step.most is None or step.amount <= 0 or total + step.amount <= step.most
            return holds, Counted(total, 0)
        value = self.values.get(step[0])
        if isinstance(step, Add):
            return value is None, value
        if isinstance(step, Swap):
            return value == step.old, value
        return True, value if isinstance(step, Look) else None

    def _change(self, step: Step) -> None:
        if isinstance(step, (Add, Swap)):
            new = step.value if isinstance(step, Add) else step.new
            self.values.pop(step.key, None)
            if new is not None and step.seconds:
                self.values[step.key] = new
        elif isinstance(step, Schedule):
            self.due.setdefault(step.queue, {})[step.member] = step.delay
        elif isinstance(step, Unschedule):
            self.due.get(step.queue, {}).pop(step.member, None)
        elif isinstance(step, Reserve):
            self.totals[step.key] = max(self.totals.get(step.key, 0) + step.amount, 0)


def roughly(ran: Ran) -> Ran:
    """Without the seconds that a test takes."""
    seen = [Counted(saw.events, round(saw.seconds_left, -2)) if isinstance(saw, Counted) else saw for saw in ran.seen]
    return Ran(ran.failed, tuple(seen))


async def compare(store, runs) -> None:
    model, example = Model(), f"{next(_examples)} "
    for run in runs:
        if isinstance(run, tuple):
            queue, most = run
            assert await store.take(example + queue, 5000, most) == model.take(queue, most)
        else:
            steps = [step._replace(**{step._fields[0]: example + step[0]}) for step in run]
            assert roughly(await store.run(steps)) == roughly(model.run(run))


def test_every_store_does_what_the_model_does(make_store):
    store = make_store()

    @settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
    @given(RUNS)
    def check(runs):
        asyncio.run(compare(store, runs))

    try:
        check()
    finally:
        asyncio.run(store.close())
